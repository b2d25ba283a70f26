"""EXTRACT, date_trunc, AT TIME ZONE and format strings: functions whose meaning hangs on a constant."""

from __future__ import annotations

from collections.abc import Callable
from zoneinfo import ZoneInfo

from sqlglot import exp
from sqlglot.dialects.postgres import Postgres

from dpsql.compiler.public.coerce import cast, name_of
from dpsql.compiler.public.functions import apply
from dpsql.compiler.public.refuse import only, unsupported
from dpsql.compiler.public.scope import Scope, position_of
from dpsql.compiler.public.storage import Digits, duckdb_type
from dpsql.compiler.public.term import Term, quote_text
from dpsql.errors import BAD_PARAMETER, UNDEFINED_FUNCTION, Rejected
from dpsql.types import FLOAT8, NUMERIC, TIMESTAMP, TIMESTAMPTZ, UNKNOWN, Kind

_CLOCK = ("hour", "minute")
_CALENDAR = (
    *("year", "month", "day", "dow", "isodow", "doy", "week", "quarter"),
    *("isoyear", "century", "decade", "millennium"),
)
_TRUNCATED = [
    "microseconds",
    "milliseconds",
    "second",
    "minute",
    "hour",
    "day",
    "week",
    "month",
    "quarter",
    "year",
    "decade",
    "century",
    "millennium",
]
_SYNONYMS = {
    "years": "year",
    "months": "month",
    "days": "day",
    "hours": "hour",
    "minutes": "minute",
    "seconds": "second",
    "weeks": "week",
    "quarters": "quarter",
    "millisecond": "milliseconds",
    "microsecond": "microseconds",
    "weekiso": "week",
}

Maker = Callable[[exp.Expr, Scope], Term]


def extract(node: exp.Expr, scope: Scope) -> Term:
    """EXTRACT(field FROM x): numeric."""
    only(node, "this", "expression")
    return field_of(_word(node.this), scope.context.expression(node.expression, scope), scope, node)


def _field_by_name(word: str) -> Maker:
    """year(x) and its like, as other systems write EXTRACT(year FROM x)."""

    def make(node: exp.Expr, scope: Scope) -> Term:
        only(node, "this")
        return field_of(word, scope.context.expression(node.this, scope), scope, node)

    return make


def date_part(node: exp.Expr, scope: Scope) -> Term:
    """date_part('field', x): double precision."""
    if len(node.expressions) != 2:
        raise unsupported(node)
    made = field_of(_word(node.expressions[0]), scope.context.expression(node.expressions[1], scope), scope, node)
    return made.becomes(f"CAST({made.sql} AS DOUBLE)", FLOAT8)


def _word(node: exp.Expr) -> str:
    if not isinstance(node, exp.Var | exp.Literal | exp.Identifier | exp.Column):
        raise unsupported(node)
    word = node.name.lower()
    return _SYNONYMS.get(word, word)


def field_of(field: str, term: Term, scope: Scope, node: exp.Expr) -> Term:
    if term.kind is Kind.UNKNOWN:
        raise Rejected(
            f"function extract({field}, unknown) is not unique", sqlstate="42725", position=position_of(node)
        )
    if term.kind not in (Kind.DATE, Kind.TIMESTAMP, Kind.TIMESTAMPTZ, Kind.TIME, Kind.INTERVAL):
        text = f"function pg_catalog.extract(unknown, {name_of(term.type)}) does not exist"
        raise Rejected(text, sqlstate=UNDEFINED_FUNCTION, position=position_of(node))
    local = cast(term, TIMESTAMP, scope.zone) if term.kind is Kind.TIMESTAMPTZ else term
    allowed = {Kind.TIME: (), Kind.INTERVAL: ("year", "month", "day", "quarter", "decade", "century", "millennium")}
    clock = term.kind is not Kind.DATE
    if field in allowed.get(term.kind, _CALENDAR) or (field in _CLOCK and clock):
        return _scaled(term, f"extract({field} FROM {local.sql})", 0)
    if field == "epoch":
        micros = f"pg_epoch_us({term.sql})" if term.kind is Kind.INTERVAL else f"epoch_us({term.sql})"
        return _scaled(term, f"{micros} // 1000000", 0) if not clock else _scaled(term, micros, 6)
    scale = {"second": 6, "milliseconds": 3, "microseconds": 0}.get(field)
    if scale is not None and clock:
        return _scaled(term, f"extract(microseconds FROM {local.sql})", scale)
    known = field in (*_CALENDAR, *_CLOCK, "second", "milliseconds", "microseconds")
    what = "not supported" if known else "not recognized"
    state = "0A000" if known else BAD_PARAMETER
    raise Rejected(f'unit "{field}" {what} for type {name_of(term.type)}', sqlstate=state, position=position_of(node))


def _scaled(term: Term, whole: str, scale: int) -> Term:
    """A whole number divided by 10^scale, as a numeric of that scale."""
    digits = Digits(19 + scale, scale)
    if not scale:
        return term.becomes(f"CAST({whole} AS {duckdb_type(NUMERIC, digits)})", NUMERIC, digits)
    step = f"CAST(0.{'1'.rjust(scale, '0')} AS DECIMAL({scale + 1},{scale}))"
    sql = f"CAST(CAST({whole} AS DECIMAL(19,0)) * {step} AS {duckdb_type(NUMERIC, digits)})"
    return term.becomes(sql, NUMERIC, digits)


def date_trunc(node: exp.Expr, scope: Scope) -> Term:
    """date_trunc('unit', x [, zone]): timestamptz of a date, as in Postgres."""
    only(node, "this", "unit", "zone")
    term = scope.context.expression(node.this, scope)
    zone = scope.zone if node.args.get("zone") is None else zone_of(node.args["zone"])
    if term.kind in (Kind.DATE, Kind.UNKNOWN):
        term = cast(term, TIMESTAMPTZ, scope.zone, node)
    if term.kind not in (Kind.TIMESTAMP, Kind.TIMESTAMPTZ):
        text = f"function date_trunc(unknown, {name_of(term.type)}) does not exist"
        raise Rejected(text, sqlstate=UNDEFINED_FUNCTION, position=position_of(node))
    unit = _word(node.args["unit"])
    if unit not in _TRUNCATED:
        text = f'unit "{unit}" not recognized for type {name_of(term.type)}'
        raise Rejected(text, sqlstate=BAD_PARAMETER, position=position_of(node))
    if term.kind is Kind.TIMESTAMP:
        return term.becomes(_truncated(unit, term.sql), TIMESTAMP)
    local = cast(term, TIMESTAMP, zone)
    return cast(local.becomes(_truncated(unit, local.sql), TIMESTAMP), TIMESTAMPTZ, zone)


def _truncated(unit: str, sql: str) -> str:
    """Postgres's centuries and millennia start in year 1, DuckDB's in year 0."""
    if unit in ("century", "millennium"):
        return f"CAST(date_trunc('{unit}', {sql} - to_years(1)) + to_years(1) AS TIMESTAMP)"
    return f"CAST(date_trunc('{unit}', {sql}) AS TIMESTAMP)"


def at_time_zone(node: exp.Expr, scope: Scope) -> Term:
    only(node, "this", "zone")
    term, zone = scope.context.expression(node.this, scope), zone_of(node.args["zone"])
    if term.kind in (Kind.DATE, Kind.UNKNOWN):
        term = cast(term, TIMESTAMPTZ, scope.zone, node)
    if term.kind is Kind.TIMESTAMP:
        return cast(term, TIMESTAMPTZ, zone)
    if term.kind is Kind.TIMESTAMPTZ:
        return cast(term, TIMESTAMP, zone)
    text = f"function pg_catalog.timezone(unknown, {name_of(term.type)}) does not exist"
    raise Rejected(text, sqlstate=UNDEFINED_FUNCTION, position=position_of(node))


def zone_of(node: exp.Expr) -> str:
    """A time zone named by a literal."""
    name = node.name if isinstance(node, exp.Literal) else ""
    name = "UTC" if name.upper() in ("UTC", "Z", "GMT") else name
    try:
        ZoneInfo(name)
    except (KeyError, ValueError, OSError) as error:
        text = f'time zone "{name}" not recognized'
        raise Rejected(text, sqlstate=BAD_PARAMETER, position=position_of(node)) from error
    return name


_FORMATTED: dict[type[exp.Expr], str] = {
    exp.TimeToStr: "to_char",
    exp.StrToDate: "to_date",
    exp.StrToTime: "to_timestamp",
}


def formatted(node: exp.Expr, scope: Scope) -> Term:
    """to_char, to_date and to_timestamp with a format: sqlglot has turned the format into strftime's; turn it back."""
    only(node, "this", "format")
    terms = [scope.context.expression(node.this, scope)]
    pattern = node.args.get("format")
    if isinstance(pattern, exp.Literal):
        text = original_format(str(pattern.this))
        terms.append(Term(quote_text(text), UNKNOWN, literal=text))
    elif pattern is not None:
        terms.append(scope.context.expression(pattern, scope))
    return apply(_FORMATTED[type(node)], terms, scope.zone, node)


def original_format(text: str) -> str:
    codes = sorted(Postgres.INVERSE_TIME_MAPPING, key=len, reverse=True)
    made, at = "", 0
    while at < len(text):
        code = next((c for c in codes if text.startswith(c, at)), text[at])
        made += Postgres.INVERSE_TIME_MAPPING.get(code, code)
        at += len(code)
    return made


def date_bin(node: exp.Expr, scope: Scope) -> Term:
    """date_bin(stride, x, origin): sqlglot reads the origin as a unit."""
    only(node, "this", "expression", "unit", "zone", "origin")
    origin = node.args.get("origin") or node.args.get("unit")
    if origin is None or isinstance(origin, exp.Var):
        raise unsupported(node)
    terms = [scope.context.expression(each, scope) for each in (node.this, node.expression, origin)]
    return apply("date_bin", terms, scope.zone, node)


MAKERS: dict[type[exp.Expr], Maker] = {
    exp.Extract: extract,
    **{kind: _field_by_name(kind.key) for kind in (exp.Year, exp.Quarter, exp.Month, exp.Week, exp.Day)},
    **{kind: _field_by_name(kind.key) for kind in (exp.Hour, exp.Minute, exp.Second)},
    exp.TimestampTrunc: date_trunc,
    exp.AtTimeZone: at_time_zone,
    exp.TimeToStr: formatted,
    exp.StrToDate: formatted,
    exp.StrToTime: formatted,
    exp.DateBin: date_bin,
}
