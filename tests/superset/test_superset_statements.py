"""Superset's statements without Superset: every one is answered through its driver, its refusals are readable."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import superset_statements
from superset_charts import CHARTS, PREVIEWS
from superset_world import flights_proxy

STATEMENTS = superset_statements.read()
REFUSED = {*(preview.name for preview in PREVIEWS if preview.kind == "full"), "preview of a table"}


@pytest.fixture(scope="module")
def client(tmp_path_factory: pytest.TempPathFactory, flights_file: Path) -> Iterator[Any]:
    psycopg2 = pytest.importorskip("psycopg2")
    with flights_proxy(tmp_path_factory.mktemp("flights"), flights_file) as address:
        connection = psycopg2.connect(address.dsn)
        connection.autocommit = True
        yield connection
        connection.close()


def test_all_charts_are_here() -> None:
    assert set(STATEMENTS) == {chart.name for chart in CHARTS} | REFUSED


@pytest.mark.parametrize("chart", CHARTS, ids=lambda chart: chart.name)
def test_answered(client: Any, chart: Any) -> None:
    with client.cursor() as cursor:
        cursor.execute(STATEMENTS[chart.name])
        rows = cursor.fetchall()
        assert [column.name for column in cursor.description] == [*chart.keys, *chart.within]
        assert chart.rows in (None, len(rows))
        cursor.execute(STATEMENTS[chart.name])
        assert cursor.fetchall() == rows


@pytest.mark.parametrize("name", sorted(REFUSED))
def test_refused(client: Any, name: str) -> None:
    psycopg2 = pytest.importorskip("psycopg2")
    with client.cursor() as cursor:
        with pytest.raises(psycopg2.errors.InsufficientPrivilege) as refused:
            cursor.execute(STATEMENTS[name])
        assert refused.value.diag.message_primary == "Rows of a private table are never returned."
        assert refused.value.diag.message_hint.startswith("Ask for aggregates, such as")
        cursor.execute("SELECT 1")
