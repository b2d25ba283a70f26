"""Public key domains: all values that a group key can take, known before any private row is read.

Decides whether a key is public, and the order in which its values are released. A key with a domain is mapped to its
index there by the backend, before contributions are bounded; rows outside are dropped. Never looks at data.

A key that is a function of one finite subexpression (`FLOOR(x / 10) * 10`, a shifted or cast DATE_TRUNC) has the image
of that one's domain: the backend finds the index of the `subject`, and what is shown is computed here, exactly. A key
that the statement equates with a released column (a top-N list joined back) has that column's values, of which the text
fixes how many there can be; they are filled in once the inner release is made.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from fractions import Fraction
from functools import partial
from math import ceil, floor, prod
from typing import Any

from dpsql.compiler.algebra import Call, Case, Domain, Expr, Lit
from dpsql.compiler.calendar import from_epoch, moved, next_value, part_value
from dpsql.compiler.domains import moment, number, single
from dpsql.compiler.fuel import spend
from dpsql.types import Kind, Relation, SqlType, Value


@dataclass(frozen=True, slots=True)
class WholeNumbers:
    """All integers from `first` on; `count` of them."""

    first: int
    count: int


@dataclass(frozen=True, slots=True)
class Listed:
    """The values, in key order."""

    values: tuple[Value, ...]


@dataclass(frozen=True, slots=True)
class Released:
    """The distinct values of a column of a public relation computed before; at most `most`."""

    relation: int
    column: int
    most: int


@dataclass(frozen=True, slots=True)
class KeyDomain:
    """A finite public domain; NULL, where it belongs to it, comes last.

    `subject`: the expression whose index the backend finds. `image`: what is shown for each of its values, where that
    is another value than its own.
    """

    of: WholeNumbers | Listed | Released
    nullable: bool
    subject: Expr
    image: tuple[Value | Fraction, ...] | None = None

    @property
    def size(self) -> int:
        """How many keys there are (at most, while the values are not released yet)."""
        match self.of:
            case WholeNumbers(count=count):
                return count + self.nullable
            case Listed(values=values):
                return len(values) + self.nullable
            case Released(most=most):
                return most + self.nullable

    def value(self, index: int, type_: SqlType) -> Value:
        """The key value at an index, as the client sees it."""
        if self.nullable and index == self.size - 1:
            return None
        return shown(self.raw(index), type_)

    def raw(self, index: int) -> Value | Fraction:
        """The value at an index before it takes its SQL type."""
        if self.image is not None:
            return self.image[index]
        match self.of:
            case WholeNumbers(first=first):
                return first + index
            case Listed(values=values):
                return values[index]
            case Released():
                raise ValueError("the values are not released yet")


def filled(domain: KeyDomain, derived: Mapping[int, Relation | None]) -> KeyDomain:
    """The domain with released values in place, once they are there."""
    if not isinstance(domain.of, Released):
        return domain
    known = derived.get(domain.of.relation)
    if known is None:
        return domain
    place = domain.of.column
    found = tuple(dict.fromkeys(_plain(row[place]) for row in known.rows if row[place] is not None))
    return replace(domain, of=Listed(_ordered(found)[: domain.of.most]))


def _plain(value: Value) -> Value:
    return value.replace(tzinfo=None) if isinstance(value, datetime) else value


def shown(value: Value | Fraction, type_: SqlType) -> Value:
    """A key value in the Python form of its SQL type."""
    if value is None:
        return None
    if isinstance(value, Fraction):
        return shown(_rational(value, type_), type_)
    if type_.kind is Kind.NUMERIC and isinstance(value, int | float) and not isinstance(value, bool):
        return Decimal(str(value))
    if type_.is_float and isinstance(value, int | Decimal) and not isinstance(value, bool):
        return float(value)
    if type_.is_integer and isinstance(value, Decimal | float):
        return int(value)
    if type_.kind in (Kind.TIMESTAMP, Kind.TIMESTAMPTZ) and isinstance(value, date):
        at = moment(value)
        return at.replace(tzinfo=UTC) if at is not None and type_.kind is Kind.TIMESTAMPTZ else at
    return value


def _rational(value: Fraction, type_: SqlType) -> Value:
    return float(value) if type_.is_float else Decimal(value.numerator) / Decimal(value.denominator)


def key_domain(key: Expr, limit: int) -> KeyDomain | None:
    """The public domain of a key, or None where it has none or one of more than `limit` values."""
    found = _domain(key, limit)
    return found if found is not None and found.size <= limit else None


def _domain(key: Expr, limit: int) -> KeyDomain | None:
    domain = key.domain
    if domain.computed:
        return None
    nullable = domain.nullable and not (isinstance(key, Lit) and key.value is not None)
    image = _image(key, limit)
    if image is not None:
        return image
    if domain.released is not None:
        return KeyDomain(Released(*domain.released), nullable=False, subject=key)
    of = (
        _finite(key, domain, limit)
        if domain.values is not None
        else _computed(key, limit) or _first_known(key, limit) or _finite(key, domain, limit)
    )
    return None if of is None else KeyDomain(of, nullable, key)


def _finite(key: Expr, domain: Domain, limit: int) -> WholeNumbers | Listed | None:
    if domain.values is not None:
        return Listed(_ordered(domain.values)) if len(domain.values) <= limit else None
    if isinstance(key, Call) and key.op in _ROUNDINGS and domain.lower is not None and domain.upper is not None:
        return _multiples(key.args[1], domain.lower, domain.upper, limit)
    if is_whole(key) and domain.lower is not None and domain.upper is not None:
        first, last = ceil(domain.lower), floor(domain.upper)
        return WholeNumbers(first, max(last - first + 1, 0)) if last - first < limit else None
    if isinstance(key, Call) and key.op == "date_trunc" and isinstance(key.args[0], Lit):
        return _periods(partial(next_value, str(key.args[0].value)), domain, limit)
    if isinstance(key, Call) and key.op == "date_bin" and isinstance(key.args[0], Lit):
        width = timedelta(microseconds=int(str(key.args[0].value)))
        return _periods(lambda at: at + width, domain, limit)
    if key.type.kind is Kind.DATE and not isinstance(key, Case):
        return _days(domain, limit)
    return None


def is_whole(key: Expr) -> bool:
    """Whether every value is a whole number."""
    if key.type.is_integer:
        return True
    if isinstance(key, Case):
        results = [v for _, v in key.branches] + ([] if key.default is None else [key.default])
        return all(is_whole(v) or _is_whole_literal(v) for v in results)
    if not isinstance(key, Call):
        return False
    if key.op in _ROUNDINGS:
        places = key.args[1]
        return isinstance(places, Lit) and isinstance(places.value, int) and places.value <= 0
    if key.op in ("add", "sub", "mul", "neg", "to_float", "to_numeric"):
        return all(is_whole(arg) or _is_whole_literal(arg) for arg in key.args)
    return key.op == "extract" and key.args[0] != _EPOCH


def _is_whole_literal(key: Expr) -> bool:
    exact = number(key.value) if isinstance(key, Lit) else None
    return exact is not None and exact.denominator == 1


def _multiples(places: Expr, lower: Fraction, upper: Fraction, limit: int) -> WholeNumbers | Listed | None:
    """The values of ROUND and its like at a number of decimals: multiples of a power of ten."""
    if not isinstance(places, Lit) or not isinstance(places.value, int):
        return None
    step = Fraction(10) ** -places.value
    first, last = ceil(lower / step), floor(upper / step)
    if last - first >= limit:
        return None
    if step == 1:
        return WholeNumbers(first, max(last - first + 1, 0))
    exact = (n * step for n in range(first, last + 1))
    return Listed(tuple(int(x) if x.denominator == 1 else Decimal(x.numerator) / x.denominator for x in exact))


def _computed(key: Expr, limit: int) -> Listed | None:
    """Whole numbers computed from finite parts (`year * 100 + month`): exact in every arithmetic, so found by value."""
    if not isinstance(key, Call) or key.op not in _COMPUTED or not is_whole(key):
        return None
    parts = [_whole_values(arg, limit) for arg in key.args]
    if prod(len(part) if part is not None else limit + 1 for part in parts) > limit:
        return None
    a, b = ([*parts, (Fraction(0),)])[:2]
    spend(12 * len(a or ()) * len(b or ()))
    found = {exactly(key.op, x, y) for x in a or () for y in b or ()}
    inside = (n for n in found if _bounded(n, key.domain) and abs(n) < 2**53)
    return Listed(_ordered(tuple(int(n) for n in inside)))


def _first_known(key: Expr, limit: int) -> Listed | None:
    """COALESCE of whole numbers or dates: the values of its parts, not all between them (`COALESCE(year, 0)`)."""
    if not isinstance(key, Call) or key.op != "coalesce" or not (key.type.is_integer or key.type.kind is Kind.DATE):
        return None
    found: list[Value | Fraction] = []
    for part in key.args:
        known = None if isinstance(part, Lit) else _domain(part, limit)
        if isinstance(part, Lit):
            found.append(part.value)
        elif known is None or isinstance(known.of, Released) or known.size > limit:
            return None
        else:
            found += [_whole(known.raw(i)) for i in range(known.size - known.nullable)]
    if len(found) > limit or any(isinstance(v, Fraction) for v in found):
        return None
    return Listed(_ordered(tuple(v for v in found if not isinstance(v, Fraction) and _within(v, key.domain))))


def _whole(value: Value | Fraction) -> Value | Fraction:
    return int(value) if isinstance(value, Fraction) and value.denominator == 1 else value


def _within(value: Value, domain: Domain) -> bool:
    """Whether what a filter says of the key leaves the value."""
    exact, at = number(value), moment(value)
    if exact is not None:
        return _bounded(exact, domain)
    first, last = moment(domain.first), moment(domain.last)
    return at is not None and (first is None or at >= first) and (last is None or at <= last)


_ROUNDINGS = ("floor", "ceil", "round", "trunc")
_COMPUTED = ("add", "sub", "mul", "neg", "to_float", "to_numeric")


def exactly(op: str, a: Fraction, b: Fraction) -> Fraction:
    """What +, -, * and the changes of sign and type give; `b` is not read where there is one argument."""
    match op:
        case "add":
            return a + b
        case "sub":
            return a - b
        case "mul":
            return a * b
        case "neg":
            return -a
        case _:
            return a


def _bounded(value: Fraction, domain: Domain) -> bool:
    return (domain.lower is None or value >= domain.lower) and (domain.upper is None or value <= domain.upper)


def _whole_values(part: Expr, limit: int) -> tuple[Fraction, ...] | None:
    if isinstance(part, Lit):
        exact = number(part.value)
        return None if exact is None else (exact,)
    known = _domain(part, limit)
    if known is None or isinstance(known.of, Released) or known.size > limit:
        return None
    values = [_exact(known.raw(i)) for i in range(known.size - known.nullable)]
    return tuple(v for v in values if v is not None)


_EPOCH = Lit("epoch", SqlType(Kind.TEXT))
_ARITHMETIC = ("add", "sub", "mul", "div", "neg", "to_float", "to_numeric", "to_int")
_TEMPORAL = ("add_interval", "to_date", "to_timestamp", "from_epoch")


def _image(key: Expr, limit: int) -> KeyDomain | None:
    """The domain of a key computed from one finite part and constants; None where it is not of that form."""
    if not isinstance(key, Call) or key.op not in (*_ARITHMETIC, *_TEMPORAL, "extract"):
        return None
    varying = [i for i, arg in enumerate(key.args) if not isinstance(arg, Lit)]
    if len(varying) != 1 or not _steps(key.args[varying[0]]):
        return None
    inner = _domain(key.args[varying[0]], limit)
    if inner is None or isinstance(inner.of, Released) or inner.size > limit:
        return None
    count = inner.size - inner.nullable
    spend(5 * count)
    image = tuple(_apply(key, varying[0], inner.raw(i)) for i in range(count))
    if None in image or len(set(image)) < len(image):
        return None
    return replace(inner, image=image)


def _steps(expr: Expr) -> bool:
    """A part that discretises (FLOOR, DATE_TRUNC, EXTRACT, ...) or is built on one; a column keeps its own domain."""
    if not isinstance(expr, Call):
        return False
    if expr.op in ("floor", "ceil", "round", "trunc", "date_trunc", "extract", "idiv", "to_date", "date_bin"):
        return True
    return any(_steps(arg) for arg in expr.args)


def _apply(key: Call, place: int, value: Value | Fraction) -> Value | Fraction:
    """The call's value for one value of its varying argument; exact for numbers, None where it has none."""
    constants = [arg.value if isinstance(arg, Lit) else None for arg in key.args]
    if key.op == "extract":
        found = part_value(str(constants[0]), None if isinstance(value, Fraction) else value)
        return None if found is None else Fraction(found)
    if key.op in _TEMPORAL:
        return _apply_temporal(key.op, value, constants)
    a, b = (_exact(value if i == place else c) for i, c in enumerate((*constants, None)[:2]))
    if a is None or (b is None and key.op in ("add", "sub", "mul", "div")):
        return None
    match key.op:
        case "neg":
            return -a
        case "to_int":
            return a if a.denominator == 1 else None
        case "to_float" | "to_numeric":
            return single(a) if key.type.kind is Kind.FLOAT4 else a
        case "add":
            return a + (b or 0)
        case "sub":
            return a - (b or 0)
        case "mul":
            return a * (b or 0)
        case _:
            return a / b if b else None


def _exact(value: Value | Fraction) -> Fraction | None:
    return value if isinstance(value, Fraction) else number(value)


def _apply_temporal(op: str, value: Value | Fraction, constants: list[Value]) -> Value:
    if op == "from_epoch":
        return from_epoch(_exact(value))
    at = None if isinstance(value, Fraction) else moment(value)
    if op == "add_interval" and at is not None:
        months, days, micros = (int(str(c)) for c in constants[1:])
        return moved(at, (months, days, micros))
    return at.date() if op == "to_date" and at is not None else at


def _periods(following: Callable[[datetime], datetime], domain: Domain, limit: int) -> Listed | None:
    at, last = moment(domain.first), moment(domain.last)
    if at is None or last is None or (last - at) > timedelta(days=366) * (limit + 1):
        return None
    found: list[Value] = []
    while at <= last:
        if len(found) >= limit:
            return None
        spend(3)
        found.append(at)
        at = following(at)
    return Listed(tuple(found))


def _days(domain: Domain, limit: int) -> Listed | None:
    at, last = moment(domain.first), moment(domain.last)
    if at is None or last is None or (last - at).days >= limit:
        return None
    first = at.toordinal()
    return Listed(tuple(date.fromordinal(n) for n in range(first, first + (last - at).days + 1)))


def _ordered(values: tuple[Value, ...]) -> tuple[Value, ...]:
    """Ascending and without repeats; text in binary order."""
    spend(len(values))
    return tuple(sorted(dict.fromkeys(v for v in values if v is not None), key=_rank))


def _rank(value: Value) -> Any:
    at = moment(value)
    return at if at is not None else value


def product(domains: tuple[KeyDomain, ...]) -> int:
    return prod(d.size for d in domains)
