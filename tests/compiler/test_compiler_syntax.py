"""What sqlglot reads and Postgres does not."""

from __future__ import annotations

import pytest

from dpsql.compiler.parse import parse
from dpsql.errors import Rejected

NO_SQL = ["1 < 2 = TRUE", "a = b = c", "1 = 2 <> FALSE", "'a' 'b'", "'a' /* x */ 'b'", "E'a' 'b'"]


@pytest.mark.parametrize("text", NO_SQL)
def test_what_postgres_does_not_read_is_no_sql(text: str) -> None:
    with pytest.raises(Rejected) as refused:
        parse(f"SELECT {text}")
    assert refused.value.sqlstate == "42601"


@pytest.mark.parametrize("text", ["(1 < 2) = TRUE", "'a'\n'b'", "1 < 2 AND 2 = 2", "'a''b', 'c'", "NOT 1 = 2"])
def test_what_postgres_reads(text: str) -> None:
    assert parse(f"SELECT {text}")


@pytest.mark.parametrize("text", ["U&'d!0061t!!' UESCAPE '!'", r"U&'d\0061t!'", "U&'d!+000061t!!' UESCAPE '!'"])
def test_escapes_of_unicode(text: str) -> None:
    assert parse(f"SELECT {text}").expressions[0].name == "dat!"
