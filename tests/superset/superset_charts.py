"""What is asked of Superset: the queries that its charts make, by the kind of chart. Not a test itself."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

MONTHS, WEEKS, DAYS, QUARTERS = "P1M", "P1W", "P1D", "P3M"
HALF = {"col": "time_hour", "op": "TEMPORAL_RANGE", "val": "2013-01-01T00:00:00 : 2013-07-01T00:00:00"}


def by_sql(expression: str, label: str) -> dict[str, object]:
    """A metric or a column that somebody wrote as SQL."""
    return {"expressionType": "SQL", "sqlExpression": expression, "label": label}


def simple(aggregate: str, column: str) -> dict[str, object]:
    label = f"{aggregate}({column})"
    return {"expressionType": "SIMPLE", "column": {"column_name": column}, "aggregate": aggregate, "label": label}


def time(grain: str) -> dict[str, object]:
    """The time axis."""
    return {**by_sql("time_hour", "time_hour"), "columnType": "BASE_AXIS", "timeGrain": grain}


COUNT = by_sql("COUNT(*)", "count")
DELAY = simple("AVG", "dep_delay")
MILES = simple("SUM", "distance")


@dataclass(frozen=True, slots=True)
class Chart:
    """`within`: how far each metric may be from the truth: a number, or the aggregate of which the announced standard
    deviation decides, as the statement writes it. `keys`: the columns that are no metrics."""

    name: str
    query: Mapping[str, object]
    within: Mapping[str, str | float]
    keys: tuple[str, ...] = ()
    dataset: str = "flights"
    rows: int | None = None


def _grain(grain: str, **query: object) -> dict[str, object]:
    return {"columns": [time(grain)], "metrics": [COUNT], "extras": {"time_grain_sqla": grain}, **query}


def _fine(grain: str, seconds: int) -> Chart:
    """Two hours of one day, by a grain below a day."""
    day = {"col": "time_hour", "op": "TEMPORAL_RANGE", "val": "2013-03-01T06:00:00 : 2013-03-01T08:00:00"}
    name, rows = f"a time series by {grain}", 7200 // seconds
    return Chart(name, _grain(grain, filters=[day]), COUNTED, ("time_hour",), rows=rows)


def _top(metric: Mapping[str, object], number: int, grain: str) -> dict[str, object]:
    """A time series of the first `number` carriers: Superset joins the list of them."""
    limit = {"series_columns": ["carrier"], "series_limit": number, "series_limit_metric": metric}
    return {**_grain(grain), "columns": [time(grain), "carrier"], **limit}


COUNTED = {"count": "COUNT(*)"}
FINE = {
    "PT1S": 1,
    "PT5S": 5,
    "PT30S": 30,
    "PT1M": 60,
    "PT5M": 300,
    "PT10M": 600,
    "PT15M": 900,
    "PT30M": 1800,
    "PT1H": 3600,
}
"""Seconds of the grains below a day."""
CARRIERS = {"columns": ["carrier"], "metrics": [COUNT], "orderby": [[COUNT, False]]}

CHARTS = (
    Chart("a time series by month", _grain(MONTHS), COUNTED, ("time_hour",), rows=12),
    Chart("a time series by week", _grain(WEEKS), COUNTED, ("time_hour",), rows=53),
    *(_fine(grain, seconds) for grain, seconds in FINE.items()),
    Chart("a time series by year", _grain("P1Y"), COUNTED, ("time_hour",), rows=1),
    Chart("a time series by quarter", _grain(QUARTERS), COUNTED, ("time_hour",), rows=4),
    Chart("a calendar", _grain(DAYS), COUNTED, ("time_hour",), rows=365),
    Chart(
        "a time series of averages in a time range",
        _grain(MONTHS, metrics=[COUNT, DELAY], filters=[HALF]),
        {**COUNTED, "AVG(dep_delay)": "AVG(dep_delay)"},
        ("time_hour",),
        rows=6,
    ),
    Chart(
        "a time series with a time column of the old kind",
        {
            "metrics": [COUNT],
            "granularity": "time_hour",
            "is_timeseries": True,
            "extras": {"time_grain_sqla": MONTHS},
            "time_range": "2013-03-01 : 2013-09-01",
        },
        COUNTED,
        ("__timestamp",),
        rows=6,
    ),
    Chart("the first 4 series", _top(COUNT, 4, WEEKS), COUNTED, ("time_hour", "carrier"), rows=4 * 53),
    Chart(
        "the first series by a sum, in a time range",
        {**_top(MILES, 1, MONTHS), "metrics": [DELAY], "filters": [HALF]},
        {"AVG(dep_delay)": "AVG(dep_delay)"},
        ("time_hour", "carrier"),
        rows=6,
    ),
    Chart(
        "the first 2 series of a private key",
        {
            **_top(COUNT, 2, QUARTERS),
            "columns": [time(QUARTERS), "dest"],
            "series_columns": ["dest"],
            "filters": [{"col": "dest", "op": "ILIKE", "val": "a%"}],
        },
        COUNTED,
        ("time_hour", "dest"),
        rows=8,
    ),
    Chart("a bar chart of the first 5", {**CARRIERS, "row_limit": 5}, COUNTED, ("carrier",), rows=5),
    Chart("a pie", CARRIERS, COUNTED, ("carrier",), rows=16),
    Chart(
        "a bar chart of a private key",
        {**CARRIERS, "columns": ["dest"], "filters": [{"col": "dest", "op": "IN", "val": ["ATL", "BOS", "LAX"]}]},
        COUNTED,
        ("dest",),
        rows=3,
    ),
    Chart("a big number", {"metrics": [COUNT]}, COUNTED, rows=1),
    Chart(
        "a big number of units",
        {"metrics": [simple("COUNT_DISTINCT", "tailnum")]},
        {"COUNT_DISTINCT(tailnum)": "count(DISTINCT tailnum)"},
    ),
    Chart(
        "an aggregated table",
        {"columns": ["origin", "carrier"], "metrics": [COUNT, MILES], "orderby": [[COUNT, False]], "row_limit": 1000},
        {**COUNTED, "SUM(distance)": "sum(distance)"},
        ("origin", "carrier"),
        rows=48,
    ),
    Chart(
        "a pivot table",
        _grain(MONTHS, columns=["origin", time(MONTHS)]),
        COUNTED,
        ("origin", "time_hour"),
        rows=36,
    ),
    Chart("HAVING", {**CARRIERS, "extras": {"having": "COUNT(*) > 23000"}}, COUNTED, ("carrier",), rows=6),
    Chart(
        "WHERE written by hand",
        {**CARRIERS, "extras": {"where": "dep_delay > 15 AND origin <> 'LGA'"}},
        COUNTED,
        ("carrier",),
        rows=16,
    ),
    Chart(
        "filters of every kind",
        {
            "columns": ["origin"],
            "metrics": [COUNT],
            "filters": [
                HALF,
                {"col": "carrier", "op": "IN", "val": ["UA", "DL", "B6"]},
                {"col": "origin", "op": "NOT IN", "val": ["LGA"]},
                {"col": "distance", "op": ">=", "val": 500},
                {"col": "hour", "op": "<", "val": 18},
                {"col": "dest", "op": "IS NOT NULL"},
                {"col": "dest", "op": "!=", "val": "LAX"},
                {"col": "dest", "op": "ILIKE", "val": "%a%"},
            ],
        },
        COUNTED,
        ("origin",),
    ),
    Chart(
        "a column written by hand",
        {
            "columns": [by_sql("CASE WHEN distance > 1000 THEN 'long' ELSE 'short' END", "length")],
            "metrics": [COUNT],
        },
        COUNTED,
        ("length",),
        rows=2,
    ),
    Chart(
        "percentages",
        {
            **CARRIERS,
            "metrics": [
                COUNT,
                by_sql("COUNT(*) * 100.0 / SUM(COUNT(*)) OVER ()", "percent"),
                by_sql("SUM(CASE WHEN origin = 'JFK' THEN 1 ELSE 0 END) * 1.0 / SUM(COUNT(*)) OVER ()", "from JFK"),
            ],
        },
        {**COUNTED, "percent": 0.5, "from JFK": 0.01},
        ("carrier",),
        rows=16,
    ),
    Chart(
        "a saved query in a chart",
        {"columns": ["name"], "metrics": [COUNT], "orderby": [[COUNT, False]], "extras": {"having": "COUNT(*) > 3860"}},
        COUNTED,
        ("name",),
        dataset="late",
        rows=7,
    ),
    Chart("a saved query by month", _grain(MONTHS), COUNTED, ("time_hour",), dataset="late", rows=12),
    Chart("a second page", {**CARRIERS, "row_limit": 2, "row_offset": 4}, COUNTED, ("carrier",), rows=2),
    Chart("the number of rows", {**CARRIERS, "is_rowcount": True}, {"rowcount": 0}, rows=1),
)


@dataclass(frozen=True, slots=True)
class Preview:
    """A chart that asks for rows."""

    name: str
    query: Mapping[str, object] = field(default_factory=dict)
    kind: str = "full"


PREVIEWS = (
    Preview("raw records", {"columns": ["carrier", "dep_delay"], "metrics": None, "row_limit": 100}),
    Preview(
        "raw records in order",
        {"columns": ["carrier", "dep_delay"], "metrics": None, "orderby": [["dep_delay", False]]},
    ),
    Preview("samples", kind="samples"),
    Preview("drill to detail", {"filters": [{"col": "carrier", "op": "==", "val": "UA"}]}, kind="drill_detail"),
)
