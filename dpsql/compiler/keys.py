"""Public key domains: all values that a group key can take, known before any row is read.

Decides whether a key is public, and the order in which its values are released. A key with a domain is mapped to its
index there by the backend, before contributions are bounded; rows outside are dropped. Never looks at data.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from math import ceil, floor, prod
from typing import Any

from dpsql.compiler.algebra import Call, Case, Domain, Expr, Lit
from dpsql.compiler.bind.temporal import next_value
from dpsql.compiler.domains import moment
from dpsql.types import Kind, SqlType, Value


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
class KeyDomain:
    """A finite public domain; NULL, where it belongs to it, comes last."""

    of: WholeNumbers | Listed
    nullable: bool

    @property
    def size(self) -> int:
        count = self.of.count if isinstance(self.of, WholeNumbers) else len(self.of.values)
        return count + self.nullable

    def value(self, index: int, type_: SqlType) -> Value:
        """The key value at an index, as the client sees it."""
        if self.nullable and index == self.size - 1:
            return None
        raw: Value = self.of.first + index if isinstance(self.of, WholeNumbers) else self.of.values[index]
        return shown(raw, type_)


def shown(value: Value, type_: SqlType) -> Value:
    """A key value in the Python form of its SQL type."""
    if value is None:
        return None
    if type_.kind is Kind.NUMERIC and isinstance(value, int | float) and not isinstance(value, bool):
        return Decimal(str(value))
    if type_.is_float and isinstance(value, int | Decimal) and not isinstance(value, bool):
        return float(value)
    if type_.kind in (Kind.TIMESTAMP, Kind.TIMESTAMPTZ) and isinstance(value, date):
        at = moment(value)
        return at.replace(tzinfo=UTC) if at is not None and type_.kind is Kind.TIMESTAMPTZ else at
    return value


def key_domain(key: Expr, limit: int) -> KeyDomain | None:
    """The public domain of a key, or None where it has none or one of more than `limit` values."""
    domain = key.domain
    if domain.computed:
        return None
    of = _finite(key, domain, limit)
    if of is None:
        return None
    nullable = domain.nullable and not (isinstance(key, Lit) and key.value is not None)
    found = KeyDomain(of, nullable)
    return found if found.size <= limit else None


def _finite(key: Expr, domain: Domain, limit: int) -> WholeNumbers | Listed | None:
    if domain.values is not None:
        return Listed(_ordered(domain.values)) if len(domain.values) <= limit else None
    whole = key.type.is_integer or (isinstance(key, Call) and key.op == "extract" and key.args[0] != _EPOCH)
    if whole and domain.lower is not None and domain.upper is not None:
        first, last = ceil(domain.lower), floor(domain.upper)
        return WholeNumbers(first, max(last - first + 1, 0)) if last - first < limit else None
    if isinstance(key, Call) and key.op == "date_trunc" and isinstance(key.args[0], Lit):
        return _periods(str(key.args[0].value), domain, limit)
    if key.type.kind is Kind.DATE and not isinstance(key, Case):
        days = _periods("day", domain, limit)
        return None if days is None else Listed(tuple(d.date() for d in days.values if isinstance(d, datetime)))
    return None


_EPOCH = Lit("epoch", SqlType(Kind.TEXT))


def _periods(unit: str, domain: Domain, limit: int) -> Listed | None:
    at, last = moment(domain.first), moment(domain.last)
    if at is None or last is None or (last - at) > timedelta(days=366) * (limit + 1):
        return None
    found: list[Value] = []
    while at <= last:
        if len(found) >= limit:
            return None
        found.append(at)
        at = next_value(unit, at)
    return Listed(tuple(found))


def _ordered(values: tuple[Value, ...]) -> tuple[Value, ...]:
    """Ascending; text in binary order."""
    return tuple(sorted((v for v in values if v is not None), key=_rank))


def _rank(value: Value) -> Any:
    at = moment(value)
    return at if at is not None else value


def product(domains: tuple[KeyDomain, ...]) -> int:
    return prod(d.size for d in domains)
