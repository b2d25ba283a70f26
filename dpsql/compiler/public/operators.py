"""Binary and unary operators: which one Postgres would choose for the operands' types, and its text in DuckDB."""

from __future__ import annotations

from collections.abc import Sequence

from sqlglot import exp

from dpsql.compiler.public.coerce import (
    cast,
    category,
    common_type,
    implicit,
    name_of,
    numeric_text,
    sort_form,
)
from dpsql.compiler.public.scope import position_of
from dpsql.compiler.public.storage import WIDEST, Digits, duckdb_type
from dpsql.compiler.public.term import Term, call, join_terms
from dpsql.errors import UNDEFINED_FUNCTION, Rejected
from dpsql.types import BOOL, FLOAT8, INTERVAL, NUMERIC, TEXT, Kind, SqlType

_RANK = (Kind.INT2, Kind.INT4, Kind.INT8, Kind.NUMERIC, Kind.FLOAT4, Kind.FLOAT8)
_UDF = {"+": "add", "-": "sub", "*": "mul", "/": "div", "%": "mod"}


def undefined(operator: str, left: Term | None, right: Term, where: exp.Expr | None) -> Rejected:
    names = [name_of(t.type) for t in (left, right) if t is not None]
    text = f"operator does not exist: {' '.join([*names[:-1], operator, names[-1]])}"
    hint = "No operator matches the given name and argument types. You might need to add explicit type casts."
    return Rejected(text, sqlstate=UNDEFINED_FUNCTION, position=position_of(where), hint=hint)


def arithmetic(operator: str, left: Term, right: Term, zone: str, where: exp.Expr | None) -> Term:
    """+ - * / % of numbers, dates, timestamps and intervals."""
    for mine, other in ((left, right), (right, left)):
        if mine.kind is Kind.UNKNOWN and other.type.is_number:
            made = cast(mine, SqlType(other.kind), zone, where)
            left, right = (made, right) if mine is left else (left, made)
            break
    if left.type.is_number and right.type.is_number:
        return _numbers(operator, left, right, zone, where)
    made_time = _temporal(operator, left, right, zone, where)
    if made_time is None:
        raise undefined(operator, left, right, where)
    return made_time


def _numbers(operator: str, left: Term, right: Term, zone: str, where: exp.Expr | None) -> Term:
    kind = max(left.kind, right.kind, key=_RANK.index)
    if kind is Kind.FLOAT4 and left.kind is not right.kind:
        kind = Kind.FLOAT8
    if kind in (Kind.FLOAT4, Kind.FLOAT8) and operator == "%":
        raise undefined(operator, left, right, where)
    pair = tuple(cast(term, SqlType(kind), zone, where) for term in (left, right))
    if kind is Kind.NUMERIC:
        return _numeric(operator, *pair)
    if kind in (Kind.FLOAT4, Kind.FLOAT8):
        return join_terms(_float_text(operator, *pair), SqlType(kind), pair)
    symbol = "//" if operator == "/" else operator
    text = f"({pair[0].sql} {symbol} {pair[1].sql})"
    narrow = symbol in ("//", "%") and kind is Kind.INT2
    return join_terms(f"CAST({text} AS SMALLINT)" if narrow else text, SqlType(kind), pair)


def _float_text(operator: str, left: Term, right: Term) -> str:
    if operator == "/":
        text = call("pg_float_div", left.sql, right.sql)
        return text if left.kind is Kind.FLOAT8 else f"CAST({text} AS FLOAT)"
    return f"({left.sql} {operator} {right.sql})"


def _numeric(operator: str, left: Term, right: Term) -> Term:
    """In DECIMAL where the result's digits are known to fit; else on text, where nothing is lost."""
    digits = _result_digits(operator, left.digits, right.digits)
    if digits is None or not digits.fits:
        sql = call(f"pg_numeric_{_UDF[operator]}", numeric_text(left).sql, numeric_text(right).sql)
        return join_terms(sql, NUMERIC, (left, right))
    sql = f"CAST({left.sql} {operator} {right.sql} AS {duckdb_type(NUMERIC, digits)})"
    return join_terms(sql, NUMERIC, (left, right), digits)


def _result_digits(operator: str, left: Digits | None, right: Digits | None) -> Digits | None:
    if left is None or right is None:
        return None
    if operator in "+-":
        scale = max(left.scale, right.scale)
        return Digits(max(left.whole, right.whole) + 1 + scale, scale)
    return Digits(left.precision + right.precision, left.scale + right.scale) if operator == "*" else None


_D, _T, _Z, _I, _C = Kind.DATE, Kind.TIMESTAMP, Kind.TIMESTAMPTZ, Kind.INTERVAL, Kind.TIME
_N, _F = Kind.INT4, Kind.FLOAT8

_TEMPORAL: dict[tuple[str, Kind, Kind], tuple[Kind, str]] = {
    ("+", _D, _N): (_D, "({0} + {1})"),
    ("+", _N, _D): (_D, "({1} + {0})"),
    ("-", _D, _N): (_D, "({0} - {1})"),
    ("-", _D, _D): (_N, "CAST({0} - {1} AS INTEGER)"),
    ("+", _D, _I): (_T, "(CAST({0} AS TIMESTAMP) + {1})"),
    ("+", _I, _D): (_T, "(CAST({1} AS TIMESTAMP) + {0})"),
    ("-", _D, _I): (_T, "(CAST({0} AS TIMESTAMP) - {1})"),
    ("+", _D, _C): (_T, "({0} + {1})"),
    ("+", _C, _D): (_T, "({1} + {0})"),
    ("+", _T, _I): (_T, "({0} + {1})"),
    ("+", _I, _T): (_T, "({1} + {0})"),
    ("-", _T, _I): (_T, "({0} - {1})"),
    ("-", _T, _T): (_I, "({0} - {1})"),
    ("-", _Z, _Z): (_I, "({0} - {1})"),
    ("+", _I, _I): (_I, "({0} + {1})"),
    ("-", _I, _I): (_I, "({0} - {1})"),
    ("+", _C, _I): (_C, "({0} + {1})"),
    ("+", _I, _C): (_C, "({1} + {0})"),
    ("-", _C, _I): (_C, "({0} - {1})"),
    ("-", _C, _C): (_I, "to_microseconds(epoch_us({0}) - epoch_us({1}))"),
    ("*", _I, _F): (_I, "({0} * {1})"),
    ("*", _F, _I): (_I, "({1} * {0})"),
    ("/", _I, _F): (_I, "({0} / pg_nonzero({1}))"),
}
_ZONED = {("+", _Z, _I): "({0} + {1})", ("+", _I, _Z): "({1} + {0})", ("-", _Z, _I): "({0} - {1})"}


def _temporal(operator: str, left: Term, right: Term, zone: str, where: exp.Expr | None) -> Term | None:
    pair = _guess(operator, left, right)
    zoned = _ZONED.get((operator, *pair))
    if zoned is not None:
        return _zoned(zoned, left, right, pair, zone, where)
    found = _TEMPORAL.get((operator, *pair))
    if found is None:
        found, pair = _widened(operator, *pair)
    if found is None:
        return None
    terms = tuple(cast(t, SqlType(k), zone, where) for t, k in zip((left, right), pair, strict=True))
    return join_terms(found[1].format(*(t.sql for t in terms)), SqlType(found[0]), terms)


def _guess(operator: str, left: Term, right: Term) -> tuple[Kind, Kind]:
    """The operands' kinds; an open literal takes the other side's type, as Postgres tries first."""
    a, b = left.kind, right.kind
    if a is Kind.UNKNOWN:
        a = b
    elif b is Kind.UNKNOWN:
        b = _I if operator == "+" and a in (_T, _Z) else a
    return a, b


def _widened(operator: str, a: Kind, b: Kind) -> tuple[tuple[Kind, str] | None, tuple[Kind, Kind]]:
    """The first operator that the operands reach by implicit casts."""
    for (symbol, x, y), found in _TEMPORAL.items():
        if symbol == operator and implicit(a, x) and implicit(b, y):
            return found, (x, y)
    return None, (a, b)


def _zoned(
    template: str, left: Term, right: Term, pair: tuple[Kind, Kind], zone: str, where: exp.Expr | None
) -> Term | None:
    """timestamptz and interval: months and days are added on the local clock."""
    terms = [cast(t, SqlType(k), zone, where) for t, k in zip((left, right), pair, strict=True)]
    local = [cast(t, SqlType(_T), zone) if t.kind is _Z else t for t in terms]
    made = join_terms(template.format(*(t.sql for t in local)), SqlType(_T), local)
    return cast(made, SqlType(_Z), zone)


def negative(term: Term, zone: str, where: exp.Expr | None) -> Term:
    if term.kind is Kind.UNKNOWN:
        term = cast(term, SqlType(Kind.FLOAT8), zone, where)
    if term.kind is Kind.NUMERIC and term.digits is None:
        return term.becomes(call("pg_numeric_neg", term.sql), NUMERIC)
    if term.kind is Kind.INTERVAL:
        return term.becomes(f"(to_days(0) - {term.sql})", INTERVAL)
    if not term.type.is_number:
        raise undefined("-", None, term, where)
    return term.becomes(f"(- {term.sql})", SqlType(term.kind), term.digits)


def alike(terms: Sequence[Term], operator: str, zone: str, where: exp.Expr | None = None) -> tuple[Term, ...]:
    """All terms in one type and form for comparison with the first, or 42883."""
    try:
        type_ = common_type(terms, "comparison", where)
        if type_.kind is Kind.FLOAT4 and len(terms) < 3 and {t.kind for t in terms} - {Kind.FLOAT4, Kind.UNKNOWN}:
            type_ = FLOAT8  # `real = numeric` is computed in double precision; a list has one type, real
        made = tuple(cast(term, SqlType(type_.kind), zone, where) for term in terms)
    except Rejected as error:
        if error.sqlstate not in ("42804", "42846"):
            raise
        wrong = next((t for t in terms[1:] if category(t.kind) != category(terms[0].kind)), terms[-1])
        raise undefined(operator, terms[0], wrong, where) from error
    if any(term.kind is Kind.JSON for term in terms):
        raise undefined(operator, terms[0], terms[-1], where)
    if type_.kind is Kind.NUMERIC and not _native(made):
        return tuple(numeric_text(term) for term in made)
    return made


def comparable(left: Term, right: Term, zone: str, operator: str, where: exp.Expr | None = None) -> tuple[Term, Term]:
    """Both sides in one type and form, or 42883."""
    pair = alike((left, right), operator, zone, where)
    return pair[0], pair[1]


_FAMILIES = (
    frozenset((Kind.INT2, Kind.INT4, Kind.INT8)),
    frozenset((Kind.FLOAT4, Kind.FLOAT8)),
    frozenset((Kind.DATE, Kind.TIMESTAMP, Kind.TIMESTAMPTZ)),
)


def compared_as_is(left: Term, right: Term) -> bool:
    """Whether Postgres has an operator for just these two types, so that neither is cast."""
    return left.kind is right.kind or any(left.kind in f and right.kind in f for f in _FAMILIES)


def compare(operator: str, left: Term, right: Term, zone: str, where: exp.Expr | None = None) -> Term:
    """= <> < <= > >= and IS [NOT] DISTINCT FROM."""
    a, b = comparable(left, right, zone, operator, where)
    return join_terms(f"({sort_form(a)} {operator} {sort_form(b)})", BOOL, (a, b))


def _native(terms: Sequence[Term]) -> bool:
    """Whether DuckDB compares the decimals without losing digits."""
    digits = [term.digits for term in terms if term.sql != "NULL"]
    known = [each for each in digits if each is not None]
    if len(known) < len(digits) or not known:
        return False
    return max(each.whole for each in known) + max(each.scale for each in known) <= WIDEST


def concatenate(left: Term, right: Term, zone: str, where: exp.Expr | None) -> Term:
    """|| : text with text, or text with anything that has a text form."""
    text_like = (Kind.TEXT, Kind.NAME, Kind.CHAR, Kind.UNKNOWN)
    if left.kind not in text_like and right.kind not in text_like:
        raise undefined("||", left, right, where)
    pair = tuple(cast(term, TEXT, zone, where) for term in (left, right))
    return join_terms(f"({pair[0].sql} || {pair[1].sql})", TEXT, pair)


def bitwise(symbol: str, left: Term, right: Term, zone: str, where: exp.Expr | None) -> Term:
    """& | # of integers."""
    for mine, other in ((left, right), (right, left)):
        if mine.kind is Kind.UNKNOWN and other.type.is_integer:
            made = cast(mine, other.type, zone, where)
            left, right = (made, right) if mine is left else (left, made)
    if not left.type.is_integer or not right.type.is_integer:
        raise undefined(symbol, left, right, where)
    type_ = SqlType(max(left.kind, right.kind, key=_RANK.index))
    pair = tuple(cast(term, type_, zone, where) for term in (left, right))
    sql = call("xor", pair[0].sql, pair[1].sql) if symbol == "#" else f"({pair[0].sql} {symbol} {pair[1].sql})"
    return join_terms(sql, type_, pair)
