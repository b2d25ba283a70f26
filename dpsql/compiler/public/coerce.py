"""Which type becomes which, and how: Postgres's implicit casts, explicit casts and common types.

An implicit cast is one that Postgres makes without being asked; anything else must be written by the analyst. Decides
nothing about operators or functions.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from decimal import Decimal
from zoneinfo import ZoneInfo

from sqlglot import exp

from dpsql.compiler.public import literals
from dpsql.compiler.public.scope import position_of
from dpsql.compiler.public.storage import INTEGER_DIGITS, Digits, digits_of, duckdb_type
from dpsql.compiler.public.term import Term, call, quote_text
from dpsql.errors import NOT_SUPPORTED, TYPE_MISMATCH, Rejected
from dpsql.pgwire.times import parse_interval
from dpsql.types import INTERVAL, NUMERIC, TEXT, Interval, Kind, SqlType

CANNOT_CAST = "42846"

_IMPLICIT: dict[Kind, frozenset[Kind]] = {
    Kind.INT2: frozenset({Kind.INT4, Kind.INT8, Kind.NUMERIC, Kind.FLOAT4, Kind.FLOAT8, Kind.OID}),
    Kind.INT4: frozenset({Kind.INT8, Kind.NUMERIC, Kind.FLOAT4, Kind.FLOAT8, Kind.OID}),
    Kind.INT8: frozenset({Kind.NUMERIC, Kind.FLOAT4, Kind.FLOAT8, Kind.OID}),
    Kind.NUMERIC: frozenset({Kind.FLOAT4, Kind.FLOAT8}),
    Kind.FLOAT4: frozenset({Kind.FLOAT8}),
    Kind.DATE: frozenset({Kind.TIMESTAMP, Kind.TIMESTAMPTZ}),
    Kind.TIMESTAMP: frozenset({Kind.TIMESTAMPTZ}),
    Kind.TIME: frozenset({Kind.INTERVAL}),
    Kind.NAME: frozenset({Kind.TEXT}),
    Kind.CHAR: frozenset({Kind.TEXT}),
}

_CATEGORY: dict[Kind, str] = {
    **dict.fromkeys((Kind.INT2, Kind.INT4, Kind.INT8, Kind.NUMERIC, Kind.FLOAT4, Kind.FLOAT8, Kind.OID), "N"),
    **dict.fromkeys((Kind.TEXT, Kind.NAME, Kind.CHAR), "S"),
    **dict.fromkeys((Kind.DATE, Kind.TIMESTAMP, Kind.TIMESTAMPTZ, Kind.TIME), "D"),
    Kind.INTERVAL: "T",
    Kind.BOOL: "B",
}

PREFERRED = frozenset({Kind.FLOAT8, Kind.TEXT, Kind.TIMESTAMPTZ, Kind.INTERVAL, Kind.BOOL, Kind.OID})


def category(kind: Kind) -> str:
    """Postgres's type category, the kind's own name where it has none in common with others."""
    return _CATEGORY.get(kind, kind.value)


def implicit(source: Kind, target: Kind) -> bool:
    """Whether Postgres casts `source` to `target` without being asked."""
    return source is target or source is Kind.UNKNOWN or target in _IMPLICIT.get(source, frozenset())


def common_type(terms: Sequence[Term], context: str, where: exp.Expr | None) -> SqlType:
    """The type of a CASE, COALESCE, VALUES, UNION ... column (Postgres manual, 10.5)."""
    known = [term.type for term in terms if term.kind is not Kind.UNKNOWN]
    if not known:
        return TEXT
    chosen = known[0]
    for type_ in known[1:]:
        if type_.kind is chosen.kind:
            chosen = chosen if type_ == chosen else SqlType(chosen.kind)
        elif category(type_.kind) != category(chosen.kind):
            text = f"{context} types {name_of(chosen)} and {name_of(type_)} cannot be matched"
            raise Rejected(text, sqlstate=TYPE_MISMATCH, position=position_of(where))
        elif chosen.kind not in PREFERRED and implicit(chosen.kind, type_.kind):
            chosen = type_
    declared = len(known) == len(terms) and all(type_ == chosen for type_ in known)
    return chosen if declared else SqlType(chosen.kind)


def unify(terms: Sequence[Term], zone: str, context: str, where: exp.Expr | None) -> tuple[Term, ...]:
    """The terms, cast to their common type and to one form."""
    type_ = common_type(terms, context, where)
    return one_form(tuple(cast(term, type_, zone, where) for term in terms))


def one_form(terms: Sequence[Term]) -> tuple[Term, ...]:
    """Numerics in one form: the DECIMAL that holds all of them where there is one of equal scale, else text."""
    if not terms or terms[0].kind is not Kind.NUMERIC:
        return tuple(terms)
    forms = {term.digits for term in terms if term.literal is None and term.sql != "NULL"}
    known = [digits for digits in forms if digits is not None]
    if len(known) < len(forms) or len({digits.scale for digits in known}) != 1:
        return tuple(numeric_text(term) for term in terms)
    digits = max(known, key=lambda each: each.precision)
    return tuple(with_digits(term, digits) for term in terms)


def distinct_form(term: Term) -> Term:
    """A numeric kept as text without trailing zeros, so that equal values are equal text; others unchanged."""
    if term.kind is Kind.NUMERIC and term.digits is None:
        return term.becomes(call("pg_numeric_plain", term.sql), term.type)
    return term


def distinct_word(terms: Sequence[Term]) -> str:
    """DISTINCT over output columns: of equal numerics that are printed differently, the first one stays."""
    forms = [distinct_form(term) for term in terms]
    if all(map(lambda form, term: form is term, forms, terms)):
        return "DISTINCT"
    return f"DISTINCT ON ({', '.join(f'({form.sql})' for form in forms)})"


def sort_form(term: Term) -> str:
    """Text whose order is the value's order."""
    return call("pg_numeric_key", term.sql) if term.kind is Kind.NUMERIC and term.digits is None else term.sql


def numeric_text(term: Term) -> Term:
    """A numeric in its text form."""
    return term if term.digits is None else term.becomes(f"CAST({term.sql} AS VARCHAR)", NUMERIC)


def with_digits(term: Term, digits: Digits) -> Term:
    """A numeric in DECIMAL form of at least its own digits."""
    if term.digits == digits:
        return term
    return term.becomes(f"CAST({term.sql} AS {duckdb_type(NUMERIC, digits)})", NUMERIC, digits)


def cast(term: Term, target: SqlType, zone: str, where: exp.Expr | None = None) -> Term:
    """An explicit cast. `zone` is the policy's time zone. Raises 42846 where Postgres has none."""
    if term.literal is not None:
        return _literal(term, target, zone, where)
    if term.sql == "NULL":
        digits = digits_of(target)
        return term.becomes(f"CAST(NULL AS {duckdb_type(target, digits)})", target, digits)
    if term.kind is Kind.UNKNOWN:
        term = replace(term, type=TEXT)
    if term.kind is target.kind and target.kind is not Kind.NUMERIC:
        return term.becomes(term.sql, target)
    made = _CASTS.get((term.kind, target.kind)) or _from_or_to_text(term.kind, target.kind)
    if made is None:
        text = f"cannot cast type {name_of(term.type)} to {name_of(target)}"
        raise Rejected(text, sqlstate=CANNOT_CAST, position=position_of(where))
    return made(term, target, zone)


def name_of(type_: SqlType) -> str:
    """The type's name as Postgres's messages write it."""
    longer = {Kind.TIMESTAMP: "timestamp without time zone", Kind.TIMESTAMPTZ: "timestamp with time zone"}
    return longer.get(type_.kind, type_.kind.value)


def _literal(term: Term, target: SqlType, zone: str, where: exp.Expr | None) -> Term:
    text = term.literal or ""
    try:
        sql, digits = _constant(text, target, zone)
    except Rejected as error:
        raise Rejected(error.message, sqlstate=error.sqlstate, position=term.position or position_of(where)) from error
    return term.becomes(sql, target, digits)


def _constant(text: str, target: SqlType, zone: str) -> tuple[str, Digits | None]:
    kind = target.kind
    match kind:
        case Kind.INT2 | Kind.INT4 | Kind.INT8:
            return f"CAST({literals.parse_integer(text, kind)} AS {duckdb_type(target)})", None
        case Kind.NUMERIC:
            return _numeric_constant(literals.parse_numeric(text), target)
        case Kind.FLOAT4 | Kind.FLOAT8:
            return f"CAST({quote_text(str(literals.parse_float(text)))} AS {duckdb_type(target)})", None
        case Kind.BOOL:
            return str(literals.parse_bool(text)).upper(), None
        case Kind.DATE:
            return f"DATE '{literals.parse_date(text).isoformat()}'", None
        case Kind.TIME:
            return f"TIME '{literals.parse_time(text).isoformat()}'", None
        case Kind.TIMESTAMP:
            return f"TIMESTAMP '{literals.parse_timestamp(text).isoformat(' ')}'", None
        case Kind.TIMESTAMPTZ:
            return f"TIMESTAMP '{literals.parse_timestamptz(text, ZoneInfo(zone)).isoformat(' ')}'", None
        case Kind.INTERVAL:
            return interval_constant(parse_interval(text)), None
        case Kind.UUID:
            return f"CAST('{literals.parse_uuid(text)}' AS UUID)", None
        case Kind.TEXT | Kind.NAME | Kind.UNKNOWN:
            return quote_text(text), None
        case _:
            raise Rejected(f"literals of type {name_of(target)} are not supported here", sqlstate=NOT_SUPPORTED)


def interval_constant(value: Interval) -> str:
    return f"(to_months({value.months}) + to_days({value.days}) + to_microseconds({value.micros}))"


def numeric_constant(value: Decimal) -> tuple[str, Digits | None]:
    """The text of a numeric constant, in DECIMAL form where it fits."""
    if not value.is_finite():
        return quote_text({"Infinity": "Infinity", "-Infinity": "-Infinity"}.get(str(value), "NaN")), None
    scale = max(0, -int(value.as_tuple().exponent))
    digits = Digits(max(len(value.as_tuple().digits), scale + 1), scale)
    plain = f"{value:f}"
    return (f"CAST({plain} AS {duckdb_type(NUMERIC, digits)})", digits) if digits.fits else (quote_text(plain), None)


def _numeric_constant(value: Decimal, target: SqlType) -> tuple[str, Digits | None]:
    sql, digits = numeric_constant(value)
    if target.precision is None:
        return sql, digits
    made = _to_declared(Term(sql, NUMERIC, digits), target)
    return made.sql, made.digits


def _to_declared(term: Term, target: SqlType) -> Term:
    """numeric to numeric(p, s): rounded half away from zero, 22003 where it has too many digits."""
    text = numeric_text(term)
    sql = call("pg_numeric_declare", text.sql, str(target.precision), str(target.scale or 0))
    digits = digits_of(target)
    return term.becomes(sql if digits is None else f"CAST({sql} AS {duckdb_type(target, digits)})", target, digits)


_Maker = Callable[[Term, SqlType, str], Term]


def _plain(term: Term, target: SqlType, _zone: str) -> Term:
    return term.becomes(f"CAST({term.sql} AS {duckdb_type(target)})", target)


def _rounded(term: Term, target: SqlType, _zone: str) -> Term:
    """float to integer: half to even, as Postgres's rint; NaN and too large values raise in the cast."""
    return term.becomes(f"CAST(round_even({term.sql}, 0) AS {duckdb_type(target)})", target)


def _integer_numeric(term: Term, target: SqlType, _zone: str) -> Term:
    digits = INTEGER_DIGITS[term.kind]
    made = term.becomes(f"CAST({term.sql} AS {duckdb_type(NUMERIC, digits)})", NUMERIC, digits)
    return made if target.precision is None else _to_declared(made, target)


def _float_numeric(term: Term, target: SqlType, _zone: str) -> Term:
    made = term.becomes(
        call("pg_numeric_of_" + ("float4" if term.kind is Kind.FLOAT4 else "float8"), term.sql), NUMERIC
    )
    return made if target.precision is None else _to_declared(made, target)


def _numeric_numeric(term: Term, target: SqlType, _zone: str) -> Term:
    if target.precision is None or target == term.type:
        return term.becomes(term.sql, target, term.digits)
    return _to_declared(term, target)


def _numeric_integer(term: Term, target: SqlType, _zone: str) -> Term:
    sql = call("pg_numeric_to_int8", numeric_text(term).sql)
    return term.becomes(sql if target.kind is Kind.INT8 else f"CAST({sql} AS {duckdb_type(target)})", target)


def _numeric_float(term: Term, target: SqlType, _zone: str) -> Term:
    return term.becomes(f"CAST({numeric_text(term).sql} AS {duckdb_type(target)})", target)


def _float_text(term: Term, target: SqlType, _zone: str) -> Term:
    name = "pg_text_of_float4" if term.kind is Kind.FLOAT4 else "pg_text_of_float8"
    return term.becomes(call(name, term.sql), target)


def _to_local(term: Term, target: SqlType, zone: str) -> Term:
    """timestamptz to timestamp or date, in the policy's time zone."""
    local = term.sql if zone == "UTC" else call("pg_local", term.sql, quote_text(zone))
    return term.becomes(f"CAST({local} AS {duckdb_type(target)})", target)


def _from_local(term: Term, target: SqlType, zone: str) -> Term:
    """timestamp or date to timestamptz."""
    local = f"CAST({term.sql} AS TIMESTAMP)"
    return term.becomes(local if zone == "UTC" else call("pg_utc", local, quote_text(zone)), target)


def _time_interval(term: Term, _target: SqlType, _zone: str) -> Term:
    return term.becomes(f"({term.sql} - TIME '00:00:00')", INTERVAL)


def _numeric_to_text(term: Term, target: SqlType, _zone: str) -> Term:
    return term.becomes(numeric_text(term).sql, target)


def _text_of(name: str) -> _Maker:
    return lambda term, target, _zone: term.becomes(call(name, term.sql), target)


def _timestamptz_text(term: Term, target: SqlType, zone: str) -> Term:
    return term.becomes(call("pg_text_of_timestamptz", term.sql, quote_text(zone)), target)


def _integer_bool(term: Term, target: SqlType, _zone: str) -> Term:
    return term.becomes(f"({term.sql} <> 0)", target)


_INTEGERS = (Kind.INT2, Kind.INT4, Kind.INT8)
_FLOATS = (Kind.FLOAT4, Kind.FLOAT8)

_CASTS: dict[tuple[Kind, Kind], _Maker] = {
    **{(a, b): _plain for a in _INTEGERS for b in (*_INTEGERS, *_FLOATS, Kind.OID) if a is not b},
    **{(a, b): _plain for a in _FLOATS for b in _FLOATS if a is not b},
    **{(a, b): _rounded for a in _FLOATS for b in _INTEGERS},
    **{(a, Kind.NUMERIC): _integer_numeric for a in _INTEGERS},
    **{(a, Kind.NUMERIC): _float_numeric for a in _FLOATS},
    **{(Kind.NUMERIC, b): _numeric_integer for b in _INTEGERS},
    **{(Kind.NUMERIC, b): _numeric_float for b in _FLOATS},
    (Kind.NUMERIC, Kind.NUMERIC): _numeric_numeric,
    (Kind.OID, Kind.INT4): _plain,
    (Kind.OID, Kind.INT8): _plain,
    (Kind.INT4, Kind.BOOL): _integer_bool,
    (Kind.BOOL, Kind.INT4): _plain,
    (Kind.DATE, Kind.TIMESTAMP): _plain,
    (Kind.TIMESTAMP, Kind.DATE): _plain,
    (Kind.TIMESTAMP, Kind.TIME): _plain,
    (Kind.DATE, Kind.TIMESTAMPTZ): _from_local,
    (Kind.TIMESTAMP, Kind.TIMESTAMPTZ): _from_local,
    (Kind.TIMESTAMPTZ, Kind.TIMESTAMP): _to_local,
    (Kind.TIMESTAMPTZ, Kind.DATE): _to_local,
    (Kind.TIMESTAMPTZ, Kind.TIME): _to_local,
    (Kind.TIME, Kind.INTERVAL): _time_interval,
}

_TEXT_LIKE = (Kind.TEXT, Kind.NAME, Kind.CHAR)

_TO_TEXT: dict[Kind, _Maker] = {
    **dict.fromkeys((*_INTEGERS, Kind.OID, Kind.BOOL, Kind.DATE, Kind.TIME, Kind.UUID, Kind.JSON, *_TEXT_LIKE), _plain),
    Kind.TIMESTAMP: _text_of("pg_text_of_timestamp"),
    **dict.fromkeys(_FLOATS, _float_text),
    Kind.NUMERIC: _numeric_to_text,
    Kind.TIMESTAMPTZ: _timestamptz_text,
    Kind.INTERVAL: _text_of("pg_text_of_interval"),
}


def _of_text(name: str, cast_to: bool = False) -> _Maker:
    def make(term: Term, target: SqlType, zone: str) -> Term:
        arguments = (term.sql, quote_text(zone)) if target.kind is Kind.TIMESTAMPTZ else (term.sql,)
        sql = call(name, *arguments)
        made = term.becomes(f"CAST({sql} AS {duckdb_type(target)})" if cast_to else sql, SqlType(target.kind))
        return _to_declared(made, target) if target.kind is Kind.NUMERIC and target.precision is not None else made

    return make


_OF_TEXT: dict[Kind, _Maker] = {
    Kind.INT2: _of_text("pg_int2_of_text", cast_to=True),
    Kind.INT4: _of_text("pg_int4_of_text", cast_to=True),
    Kind.INT8: _of_text("pg_int8_of_text"),
    Kind.NUMERIC: _of_text("pg_numeric_of_text"),
    Kind.FLOAT4: _of_text("pg_float8_of_text", cast_to=True),
    Kind.FLOAT8: _of_text("pg_float8_of_text"),
    Kind.BOOL: _of_text("pg_bool_of_text"),
    Kind.DATE: _of_text("pg_date_of_text"),
    Kind.TIMESTAMP: _of_text("pg_timestamp_of_text"),
    Kind.TIMESTAMPTZ: _of_text("pg_timestamptz_of_text"),
    Kind.INTERVAL: _of_text("pg_interval_of_text"),
}


def _from_or_to_text(source: Kind, target: Kind) -> _Maker | None:
    if target in _TEXT_LIKE:
        return _TO_TEXT.get(source)
    return _OF_TEXT.get(target) if source in _TEXT_LIKE else None
