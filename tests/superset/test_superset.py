"""Apache Superset itself, driven as its pages drive it: databases, datasets, charts, dashboards, SQL Lab.

Not part of the default suite: `make superset-test`.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator, Mapping
from itertools import count
from pathlib import Path
from time import monotonic, sleep
from typing import Any

import pytest
import superset_statements
from superset_api import Refused
from superset_charts import CHARTS, COUNT, MONTHS, PREVIEWS, Chart, Preview, time
from superset_world import VENV, World, world

pytestmark = [
    pytest.mark.superset,
    pytest.mark.skipif(not (VENV / "superset.db").exists(), reason="Superset is not installed: make superset-test"),
]

COLUMNS = {"month", "day", "hour", "time_hour", "carrier", "origin", "dest", "flight", "tailnum", "dep_delay"}
SAVED_QUERY = """
SELECT f.carrier, a.name, f.origin, f.dep_delay, f.time_hour
FROM flights f JOIN airlines a ON a.carrier = f.carrier WHERE dep_delay > 15
"""
ROWS = "Rows of a private table are never returned."
HINT = "HINT:  Ask for aggregates, such as SELECT "
NUMBERS = count(1)
SLOW = "SELECT COUNT(*) FROM pg_attribute a, pg_type b, pg_attribute c, pg_type d"
"""Only the time limit of catalog queries ends it, after ten seconds, or a stop."""
SIGMAS, CLIPPED = 8, 0.01
"""An answer may differ by so many announced standard deviations, and by what the contribution bounds take away."""


@pytest.fixture(scope="module")
def tool(tmp_path_factory: pytest.TempPathFactory, flights_file: Path) -> Iterator[World]:
    with world(tmp_path_factory.mktemp("superset"), flights_file) as found:
        yield found


@pytest.fixture(scope="module")
def database(tool: World) -> int:
    """The id of the database in Superset."""
    return connected(tool, "flights", tool.uri)


@pytest.fixture(scope="module")
def datasets(tool: World, database: int) -> Mapping[str, int]:
    """The ids of a table's dataset and of a saved query's."""
    table = {"database": database, "schema": "public"}
    kinds = {"flights": {}, "late": {"sql": SAVED_QUERY}}
    return {
        name: tool.api.post("dataset/", {**table, "table_name": name, **more})["id"] for name, more in kinds.items()
    }


def connected(tool: World, name: str, uri: str) -> int:
    return int(tool.api.post("database/", {"database_name": name, "sqlalchemy_uri": uri})["id"])


def lab(tool: World, database: int, statement: str, name: str | None = None) -> Any:
    """SQL Lab's answer; `name` is what the query may be stopped by."""
    asked = {"database_id": database, "sql": statement, "schema": "public", "runAsync": False, "queryLimit": 1000}
    return tool.api.post("sqllab/execute/", {**asked, "client_id": name or f"test{next(NUMBERS):07}"})


def context(dataset: int, query: Mapping[str, object], kind: str = "full") -> dict[str, object]:
    """What a chart posts."""
    complete = {"columns": [], "filters": [], "extras": {}, "row_limit": 10000, **query}
    source = {"id": dataset, "type": "table"}
    asked = {"datasource": source, "queries": [complete], "result_format": "json", "result_type": kind}
    return {**asked, "force": True}


def answer(tool: World, dataset: int, query: Mapping[str, object]) -> Any:
    (found,) = tool.api.post("chart/data", context(dataset, query))["result"]
    assert found["status"] == "success"
    assert found["error"] is None
    return found


# --- the database and its tables -----------------------------------------------------------------------------------


def test_connection(tool: World) -> None:
    tool.api.post("database/test_connection/", {"database_name": "new", "sqlalchemy_uri": tool.uri})
    wrong = tool.uri.replace(tool.password, "wrong")
    with pytest.raises(Refused, match="password"):
        tool.api.post("database/test_connection/", {"database_name": "new", "sqlalchemy_uri": wrong})


def test_schemas_and_tables(tool: World, database: int) -> None:
    schemas = tool.api.get(f"database/{database}/schemas/?q=(force:!t)")["result"]
    assert set(schemas) == {"public", "dpsql", "information_schema"}
    assert tool.api.get(f"database/{database}/catalogs/")["result"] == ["nyc-flights"]
    tables = tool.api.get(f"database/{database}/tables/?q=(force:!t,schema_name:public)")["result"]
    assert {table["value"] for table in tables} == {"airlines", "airports", "flights", "planes", "weather"}


def test_columns_say_what_the_policy_says(tool: World, database: int) -> None:
    found = tool.api.get(f"database/{database}/table_metadata/?name=flights&schema=public")
    columns = {column["name"]: column for column in found["columns"]}
    assert set(columns) > COLUMNS
    assert columns["dep_delay"]["comment"] == "From -30.0 to 180.0, or NULL"
    assert columns["origin"]["comment"] == "One of EWR, JFK, LGA"
    (key,) = found["foreignKeys"]
    assert key["referred_table"] == "airlines"


def test_datasets(tool: World, datasets: Mapping[str, int]) -> None:
    """Also a saved query's columns have their types, without a row."""
    types = {
        name: {column["column_name"]: column for column in tool.api.get(f"dataset/{number}")["result"]["columns"]}
        for name, number in datasets.items()
    }
    assert set(types["flights"]) > COLUMNS
    assert types["flights"]["dep_delay"]["description"] == "From -30.0 to 180.0, or NULL"
    assert set(types["late"]) == {"carrier", "name", "origin", "dep_delay", "time_hour"}
    for found in types.values():
        assert found["time_hour"]["is_dttm"]
        assert found["dep_delay"]["type_generic"] == 0
        assert found["carrier"]["type_generic"] == 1


# --- charts --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("chart", CHARTS, ids=lambda chart: chart.name)
def test_chart(tool: World, datasets: Mapping[str, int], chart: Chart) -> None:
    """Its numbers are the truth's within the error that is announced; asked again, it costs nothing."""
    found = answer(tool, datasets[chart.dataset], chart.query)
    superset_statements.seen(chart.name, found["query"])
    spent = tool.spent()
    assert answer(tool, datasets[chart.dataset], chart.query)["data"] == found["data"]
    aggregates = {label: within for label, within in chart.within.items() if isinstance(within, str)}
    deviations = keyed(chart, tool.deviations(found["query"], aggregates))
    assert tool.spent() == spent
    if chart.rows is not None:
        assert found["rowcount"] == chart.rows
    truth, answers = keyed(chart, tool.truth(found["query"])), keyed(chart, found["data"])
    assert set(answers) >= set(truth)
    for label, within in chart.within.items():
        for key, row in answers.items():
            most = within if isinstance(within, float | int) else SIGMAS * deviations[key][label]
            true = float(truth[key][label]) if key in truth else 0.0
            assert abs(float(row[label]) - true) <= most + CLIPPED * max(abs(true), 30), (key, label)


def keyed(chart: Chart, rows: list[dict[str, Any]]) -> dict[tuple[object, ...], dict[str, Any]]:
    return {tuple(row[key] for key in chart.keys): row for row in rows}


def test_error_bars(tool: World, datasets: Mapping[str, int]) -> None:
    """The error of an average is a metric as well."""
    sd = {"expressionType": "SQL", "sqlExpression": "dp_stddev(AVG(dep_delay))", "label": "sd"}
    average = {"expressionType": "SQL", "sqlExpression": "AVG(dep_delay)", "label": "average"}
    found = answer(tool, datasets["flights"], {"columns": ["origin"], "metrics": [average, sd]})
    true = "SELECT origin, AVG(dep_delay) AS average FROM flights GROUP BY origin"
    truth = {row["origin"]: row["average"] for row in tool.truth(true)}
    assert len(found["data"]) == 3
    for row in found["data"]:
        assert 0 < row["sd"] < 1
        assert abs(row["average"] - truth[row["origin"]]) < 6 * row["sd"] + 0.3


def test_compared_with_an_earlier_time(tool: World, datasets: Mapping[str, int]) -> None:
    quarter = {"col": "time_hour", "op": "TEMPORAL_RANGE", "val": "2013-07-01T00:00:00 : 2013-10-01T00:00:00"}
    query = {
        "columns": [time(MONTHS)],
        "metrics": [COUNT],
        "filters": [quarter],
        "extras": {"time_grain_sqla": MONTHS},
        "time_offsets": ["3 months ago"],
    }
    found = answer(tool, datasets["flights"], query)
    assert [set(row) for row in found["data"]] == [{"time_hour", "count", "count__3 months ago"}] * 3


@pytest.mark.parametrize("column", ["carrier", "origin", "dest"])
def test_values_of_a_filter(tool: World, datasets: Mapping[str, int], column: str) -> None:
    """The old way, and a dashboard's filter."""
    dataset = datasets["flights"]
    values = tool.api.get(f"datasource/table/{dataset}/column/{column}/values/")["result"]
    listed = answer(
        tool, dataset, {"columns": [column], "metrics": [], "orderby": [[column, True]], "row_limit": 1000}
    )["data"]
    true = {row[column] for row in tool.truth(f"SELECT DISTINCT {column} FROM flights")}
    assert set(values) <= true
    assert len(values) > 0.9 * len(true)
    assert {row[column] for row in listed} == set(values)


def test_range_of_a_filter(tool: World, datasets: Mapping[str, int]) -> None:
    ends = [
        {"expressionType": "SQL", "sqlExpression": f"{name}(time_hour)", "label": name.lower()}
        for name in ("MIN", "MAX")
    ]
    (row,) = answer(tool, datasets["flights"], {"metrics": ends})["data"]
    assert 1356998400000 <= row["min"] < row["max"] < 1388534400000


# --- dashboards ----------------------------------------------------------------------------------------------------


def test_dashboard(tool: World, datasets: Mapping[str, int]) -> None:
    """Saved charts on a dashboard; refreshed by force, it shows the same and costs nothing."""
    page = tool.api.post("dashboard/", {"dashboard_title": "Flights", "published": True})["id"]
    charts = []
    for chart in CHARTS[:12]:
        dataset = datasets[chart.dataset]
        form = {"viz_type": "table", "datasource": f"{dataset}__table", "slice_name": chart.name}
        saved = {"slice_name": chart.name, "viz_type": "table", "datasource_id": dataset, "datasource_type": "table"}
        asked = json.dumps(context(dataset, chart.query))
        body = {**saved, "params": json.dumps(form), "query_context": asked, "dashboards": [page]}
        charts.append(tool.api.post("chart/", body)["id"])
    tool.api.put(f"dashboard/{page}", {"json_metadata": json.dumps({"refresh_frequency": 10})})
    assert len(tool.api.get(f"dashboard/{page}/charts")["result"]) == len(charts)

    def shown() -> list[Any]:
        found = (tool.api.get(f"chart/{chart}/data/?force=true&dashboard_id={page}") for chart in charts)
        return [each["result"][0]["data"] for each in found]

    first, spent = shown(), tool.spent()
    assert all(first)
    assert shown() == first
    assert tool.spent() == spent
    for chart in charts[:2]:
        warmed = tool.api.put("chart/warm_up_cache", {"chart_id": chart})["result"]
        assert [each["viz_status"] for each in warmed] == ["success"]
    assert tool.spent() == spent


# --- SQL Lab -------------------------------------------------------------------------------------------------------


def test_lab(tool: World, database: int) -> None:
    found = lab(tool, database, "SELECT origin, count(*) AS n, avg(dep_delay) AS d FROM flights GROUP BY 1 ORDER BY 1")
    assert [row["origin"] for row in found["data"]] == ["EWR", "JFK", "LGA"]
    assert [column["type"] for column in found["columns"]] == ["STRING", "LONGINTEGER", "FLOAT"]
    spent = tool.spent()
    again = lab(tool, database, "SELECT origin, count(*) AS n FROM flights GROUP BY 1 ORDER BY n DESC")
    assert {row["origin"]: row["n"] for row in again["data"]} == {row["origin"]: row["n"] for row in found["data"]}
    assert tool.spent() == spent


def test_lab_shows_prices_and_budgets(tool: World, database: int) -> None:
    spent = tool.spent()
    plan = lab(tool, database, "EXPLAIN SELECT month, count(*) FROM flights WHERE hour < 7 GROUP BY month")["data"]
    assert plan[0]["QUERY PLAN"].startswith("Price: epsilon 40")
    assert [row["whose"] for row in lab(tool, database, "SHOW dpsql.budget")["data"]] == ["you", "dataset"]
    assert len(lab(tool, database, "SELECT * FROM dpsql.columns")["data"]) > 20
    assert len(lab(tool, database, "SELECT * FROM airlines")["data"]) == 16
    assert tool.spent() == spent


def test_lab_takes_several_statements(tool: World, database: int) -> None:
    priced = "SET dpsql.epsilon = 2; EXPLAIN SELECT count(*) FROM flights WHERE hour < 7"
    assert lab(tool, database, priced)["data"][0]["QUERY PLAN"].startswith("Price: epsilon 2 ")


# --- what is refused -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("preview", PREVIEWS, ids=lambda preview: preview.name)
def test_charts_of_rows(tool: World, datasets: Mapping[str, int], preview: Preview) -> None:
    spent = tool.spent()
    for dataset in datasets.values():
        with pytest.raises(Refused) as refused:
            tool.api.post("chart/data", context(dataset, preview.query, preview.kind))
        assert_readable(refused.value)
    assert tool.spent() == spent
    if preview.kind == "full":
        (made,) = tool.api.post("chart/data", context(datasets["flights"], preview.query, "query"))["result"]
        superset_statements.seen(preview.name, made["query"])


def test_samples(tool: World, datasets: Mapping[str, int]) -> None:
    """The page of a dataset."""
    asked = "force=true&datasource_type=table&per_page=50&page=1"
    for dataset in datasets.values():
        with pytest.raises(Refused) as refused:
            tool.api.post(f"/datasource/samples?{asked}&datasource_id={dataset}", {})
        assert_readable(refused.value)


def test_preview_of_a_table(tool: World, database: int) -> None:
    """SQL Lab runs what `select_star` gives it when a table is clicked."""
    statement = tool.api.get(f"database/{database}/select_star/flights/public/")["result"]
    superset_statements.seen("preview of a table", statement)
    with pytest.raises(Refused) as refused:
        lab(tool, database, statement)
    assert_readable(refused.value)
    public = tool.api.get(f"database/{database}/select_star/airlines/public/")["result"]
    assert len(lab(tool, database, public)["data"]) == 16


def assert_readable(error: Refused) -> None:
    """One sentence first, then where, then what to do."""
    first, *_ = error.text.splitlines()
    assert first.removeprefix("postgresql error: ").removeprefix("Error: ") == ROWS
    assert HINT in error.text


def test_stop(tool: World, database: int) -> None:
    """SQL Lab's stop button ends the session that runs the statement, well before its time is up."""
    failures: list[str] = []

    def run() -> None:
        with pytest.raises(Refused) as refused:
            lab(tool, database, SLOW, "stoppable1")
        failures.append(refused.value.text)

    thread = threading.Thread(target=run)
    began = monotonic()
    thread.start()
    sleep(2)
    tool.api.post("query/stop", {"client_id": "stoppable1"})
    thread.join(30)
    assert monotonic() - began < 8
    assert len(failures) == 1
    assert "took too long" not in failures[0]
    assert lab(tool, database, "SELECT 1 AS one")["data"] == [{"one": 1}]


def test_mistakes(tool: World, database: int) -> None:
    with pytest.raises(Refused, match="nosuch"):
        lab(tool, database, "SELECT count(nosuch) FROM flights")
    with pytest.raises(Refused, match=r"has no declared bounds"):
        lab(tool, database, "SELECT sum(flight) FROM flights")


def test_budget_exhausted(tool: World) -> None:
    """The message says what was asked and what is left; what was answered before is answered again."""
    guest = connected(tool, "guest", tool.uri.replace("//alice:", "//bob:"))
    first = "SELECT origin, count(*) AS n FROM flights GROUP BY origin"
    shown = lab(tool, guest, first)["data"]
    lab(tool, guest, "SELECT count(*) FROM flights WHERE hour <> 1")
    with pytest.raises(Refused, match="budget") as refused:
        lab(tool, guest, "SELECT count(*) FROM flights WHERE hour <> 2")
    assert "left" in refused.value.text
    assert lab(tool, guest, first)["data"] == shown
