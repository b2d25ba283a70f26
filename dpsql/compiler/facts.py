"""Facts: what a filter's conditions say of single expressions.

Decides which values can pass: `x = 1`, `x IN (...)`, bounds and their alternatives. Rows outside never reach an
aggregate, so it is clamped to the narrower interval and gets the smaller noise. Nothing here is trusted for privacy.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from datetime import date, datetime, time
from decimal import Decimal
from fractions import Fraction

from dpsql.compiler.algebra import Call, Col, Domain, Expr, Lit, canonical
from dpsql.compiler.domains import hull, moment, number
from dpsql.types import Kind, SqlType, Value

Narrowed = dict[str, Domain]
"""Domains by the canonical text of an expression (a column's is its name)."""


def narrow(conditions: Iterable[Expr]) -> Narrowed:
    """What the filter's conditions say of single expressions: rows outside these domains never pass."""
    found: Narrowed = {}
    for condition in conditions:
        for subject, domain in _facts(condition):
            text = canonical(subject)
            found[text] = _intersect(found.get(text, subject.domain), domain)
    return found


def narrowed(expr: Expr, known: Narrowed) -> Expr:
    """The expression with what the filter says of it."""
    domain = known.get(canonical(expr)) if isinstance(expr, Col | Call) and known else None
    return replace(expr, domain=domain) if isinstance(expr, Col | Call) and domain is not None else expr


def _facts(part: Expr) -> Iterable[tuple[Expr, Domain]]:
    match part:
        case Call(op="and", args=args):
            for arg in args:
                yield from _facts(arg)
        case Call(op="or", args=args):
            yield from _alternatives(args)
        case Call(op="in", args=(subject, *options)) if all(isinstance(o, Lit) for o in options):
            yield subject, _listed(subject, [o for o in options if isinstance(o, Lit)])
        case Call(op="eq", args=(Lit() as literal, subject)) | Call(op="eq", args=(subject, Lit() as literal)):
            yield subject, _listed(subject, [literal])
        case Call(op="eq", args=(Col() as a, Col() as b)):
            for one, other in ((a, b), (b, a)):
                if other.domain.released is not None:
                    yield one, Domain(nullable=False, released=other.domain.released)
        case Call(op="le" | "lt", args=(Lit() as literal, subject)):
            yield subject, _from(literal, subject, strict=part.op == "lt")
        case Call(op="ge" | "gt", args=(Lit() as literal, subject)):
            yield subject, _until(literal, subject, strict=part.op == "gt")
        case Call(op="ge" | "gt", args=(subject, Lit() as literal)):
            yield subject, _from(literal, subject, strict=part.op == "gt")
        case Call(op="le" | "lt", args=(subject, Lit() as literal)):
            yield subject, _until(literal, subject, strict=part.op == "lt")
        case Call(op="not", args=(Call(op="is_null", args=(subject,)),)):
            yield subject, Domain(nullable=False)
        case _:
            return


def _alternatives(args: tuple[Expr, ...]) -> Iterable[tuple[Expr, Domain]]:
    """`x = 1 OR x = 2`: the same expression on every side."""
    sides = []
    for arg in args:
        side: dict[str, tuple[Expr, Domain]] = {}
        for subject, domain in _facts(arg):
            text = canonical(subject)
            side[text] = (subject, _intersect(side[text][1], domain) if text in side else domain)
        sides.append(side)
    for text in set.intersection(*(set(side) for side in sides)):
        yield sides[0][text][0], hull(side[text][1] for side in sides)


def _listed(subject: Expr, options: list[Lit]) -> Domain:
    stored = (_stored(o.value, subject.type) for o in options)
    values = tuple(dict.fromkeys(value for value in stored if value is not None))
    numbers = [n for v in values if (n := number(v)) is not None]
    moments = [v for v in values if moment(v) is not None]
    whole = len(numbers) == len(values) and bool(values)
    return Domain(
        min(numbers) if whole else None,
        max(numbers) if whole else None,
        values,
        min(moments, key=lambda v: moment(v) or datetime.min) if moments else None,
        max(moments, key=lambda v: moment(v) or datetime.max) if moments else None,
        nullable=False,
    )


def _stored(value: Value, type_: SqlType) -> Value:
    """A constant as a column of this type would hold it, so that equal ones are one value; None: no such column can."""
    if type_.is_integer and isinstance(value, Decimal):
        whole = value.is_finite() and value == value.to_integral_value()
        return int(value) if whole else None
    if type_.is_float and isinstance(value, Decimal | int) and not isinstance(value, bool):
        return float(value)
    if type_.kind in (Kind.TIMESTAMP, Kind.TIMESTAMPTZ):
        return moment(value) or value
    if isinstance(value, datetime) and type_.kind is Kind.DATE and value.time() == time():
        return value.date()
    return value


def _from(literal: Lit, column: Expr, *, strict: bool) -> Domain:
    """`x > literal` excludes the literal itself: a day more for dates, a whole number more for integers."""
    lower, first = _end(literal, column), _time_bound(literal)
    if strict and lower is not None and column.type.is_integer and lower.denominator == 1:
        lower += 1
    if strict and type(first) is date and column.type.kind is Kind.DATE and first < date.max:
        first = first + date.resolution
    return Domain(lower=lower, first=first, nullable=False)


def _until(literal: Lit, column: Expr, *, strict: bool) -> Domain:
    """`x < literal` excludes the literal itself: a day less for dates, a whole number less for integers."""
    upper, last = _end(literal, column), literal.value if moment(literal.value) is not None else None
    if strict and upper is not None and column.type.is_integer and upper.denominator == 1:
        upper -= 1
    if strict and last is not None:
        last = _before(last)
    return Domain(upper=upper, last=last, nullable=False)


def _end(literal: Lit, column: Expr) -> Fraction | None:
    """The constant as it is compared: with floats as the nearest one, which may lie beyond it."""
    return number(_stored(literal.value, column.type) if column.type.is_float else literal.value)


def _time_bound(literal: Lit) -> Value:
    return literal.value if moment(literal.value) is not None else None


def _before(value: Value) -> Value:
    if isinstance(value, datetime):
        return value - datetime.resolution if value > datetime.min else value
    if isinstance(value, date):
        return value - date.resolution if value > date.min else value
    return value


def _intersect(a: Domain, b: Domain) -> Domain:
    lower = max((x for x in (a.lower, b.lower) if x is not None), default=None)
    upper = min((x for x in (a.upper, b.upper) if x is not None), default=None)
    if lower is not None and upper is not None and lower > upper:
        upper = lower
    values = _common(a, b)
    firsts = [v for v in (a.first, b.first) if v is not None]
    lasts = [v for v in (a.last, b.last) if v is not None]
    first = max(firsts, key=lambda v: moment(v) or datetime.min) if firsts else None
    last = min(lasts, key=lambda v: moment(v) or datetime.max) if lasts else None
    if first is not None and last is not None and (moment(first) or 0) > (moment(last) or 0):  # type: ignore[operator]
        last = first
    return Domain(
        lower,
        upper,
        values,
        first,
        last,
        a.nullable and b.nullable,
        a.reach,
        a.grain,
        scale=a.scale,
        released=a.released or b.released,
    )


def _common(a: Domain, b: Domain) -> tuple[Value, ...] | None:
    if a.values is None and b.values is None:
        return None
    if a.values is None:
        chosen = b.values or ()
    elif b.values is None:
        chosen = a.values
    else:
        chosen = tuple(v for v in a.values if v in b.values)
    return tuple(v for v in chosen if _within(v, a) and _within(v, b))


def _within(value: Value, domain: Domain) -> bool:
    exact, at = number(value), moment(value)
    if exact is not None:
        return (domain.lower is None or exact >= domain.lower) and (domain.upper is None or exact <= domain.upper)
    if at is not None:
        first, last = moment(domain.first), moment(domain.last)
        return (first is None or at >= first) and (last is None or at <= last)
    return True
