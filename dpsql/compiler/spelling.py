"""How a name is written, and which name an identifier means.

Decides that it means first what Postgres reads in it, so that what Postgres answers keeps its meaning; one without
quotes that means nothing so means the name alike in all but case, as in DuckDB. What stands in quotes is exact.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable

from sqlglot import exp
from sqlglot.dialects.postgres import Postgres

from dpsql.compiler.parse import name_of

Written = exp.Expr | str | None
Fits = Callable[[Written, str], bool]


def exactly(written: Written, name: str) -> bool:
    """Whether Postgres reads the identifier so."""
    return name_of(written) == name


def alike(written: Written, name: str) -> bool:
    """Whether DuckDB does, where the identifier is not quoted."""
    folds = isinstance(written, exp.Identifier) and not written.args.get("quoted")
    return name_of(written) == (name.lower() if folds else name)


READINGS: tuple[Fits, ...] = (exactly, alike)
"""In the order in which they are tried."""


def meant(written: Written, names: Collection[str]) -> tuple[str, ...]:
    """Those of the names that the identifier may mean."""
    found = ([name for name in names if fits(written, name)] for fits in READINGS)
    return tuple(dict.fromkeys(next((each for each in found if each), [])))


def either(names: Iterable[str]) -> str | None:
    """The hint for a reference that may mean each of these, as they are written; None where all are one name."""
    each = sorted(set(names))
    return f"It may be {' or '.join(each)}. Write one of them, as it stands here." if len(each) > 1 else None


PLACE = "place"
"""Of a public table in a tree: where the public server has it."""

_PLAIN = re.compile(r"[a-z_][a-z0-9_]*")


def quoted(name: str) -> str:
    """The name as a statement has to write it."""
    if _PLAIN.fullmatch(name) and name.upper() not in Postgres.Tokenizer.KEYWORDS:
        return name
    return exp.to_identifier(name, quoted=True).sql(dialect="postgres")
