"""Where a release's rows lie: filters and group keys over public domains as sets on axes.

Decides which conditions and keys can be told apart from what is measured. An axis is a column of a scanned table whose
domain is ordered (bounded numbers, dates, timestamps) or lists its values, or an expression with a public domain of its
own. Positions on it: the number itself, microseconds since 1970, or the place in the list. What is not understood here
stays part of what is measured, so that nothing is derived across it.

What counts as all of an axis decides whether totals follow from cells. `values` are all values that count, so the cells
of all of them are the whole; NULL is one of them only where it is declared. Bounds are what values are clipped to: rows
beyond them, and NULL, are there, so the whole of an ordered axis is more than the cells of its keys, and no total over
all rows follows from these. So it is with what is computed from such values, but for CASE with constants, which has one
for every row. Of a key's cell, what lies beyond the bounds is taken not to be there: a measurement would count such
rows in the first and last of coarse buckets, if a table has any in spite of its declaration.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from hashlib import sha256
from math import floor
from typing import Final

from dpsql.compiler.algebra import Call, Case, Col, Expr, Filter, Join, Lit, Node, Project, Scan, canonical
from dpsql.compiler.domains import moment, number
from dpsql.compiler.keys import KeyDomain, Listed, WholeNumbers, key_domain
from dpsql.compiler.plan import Key
from dpsql.replay.rising import LEAST, MOST, after, at_least, between, grid, is_exact, is_told_apart, position, varying
from dpsql.replay.sets import NOTHING, Set, common, union, without
from dpsql.types import Kind, Value

_ALL: Final[Set] = ((LEAST, MOST + 1),)
_NULL: Final[Set] = ((MOST, MOST + 1),)
"""NULL on an ordered axis."""

_PROBE: Final = 2000
MAX_PLACES: Final = 10_000
_SIMPLE: Final = ("is_null", "in", "eq", "lt", "le", "gt", "ge")
_FLIPPED: Final = {"eq": "eq", "ne": "ne", "lt": "gt", "le": "ge", "gt": "lt", "ge": "le"}


@dataclass(frozen=True, slots=True)
class Line:
    """An axis: its name, which tells its domain too, and all of it. `null`: where a comparison is not known to hold.

    `tells_null`: that part is NULL alone, so IS NULL is a set here. `open`: rows may have values that have no position
    here, so that of comparisons only equality with one that has is a set.
    """

    name: str
    full: Set
    null: Set
    tells_null: bool
    open: bool = False


@dataclass(frozen=True, slots=True)
class Part:
    """A set of positions on an axis: where a condition holds."""

    line: Line
    holds: Set


def columns(node: Node) -> Mapping[str, Col]:
    """The columns of tables that a relation offers with their declared domains; not those an outer join may null."""
    match node:
        case Scan(columns=pairs):
            return {col.name: col for _, col in pairs}
        case Filter(input=inner) | Project(input=inner):
            return columns(inner)
        case Join(kind=kind, left=left, right=right):
            return {**columns(left), **(columns(right) if kind == "inner" else {})}
        case _:
            return {}


# Conditions ---------------------------------------------------------------------------------------------------------


def part_of(condition: Expr, known: Mapping[str, Col]) -> Part | None:
    """The condition as a set on one axis, where it is nothing else."""
    match condition:
        case Call(op="and" | "or" as op, args=args):
            return _together(op, [part_of(arg, known) for arg in args])
        case Call(op="not", args=(Call(op=op) as inner,)) if op in _SIMPLE:
            return _opposite(part_of(inner, known), () if op == "is_null" else None)
        case Call(op="is_null", args=(subject,)):
            line = _line_of(subject, known)
            return None if line is None or not line.tells_null else Part(line, line.null)
        case Call(op="in", args=(subject, *options)) if all(isinstance(o, Lit) for o in options):
            return _together("or", [_compared("eq", subject, o, known) for o in options if isinstance(o, Lit)])
        case Call(op="eq" | "ne" | "lt" | "le" | "gt" | "ge" as op, args=(Lit() as literal, subject)):
            return _compared(_FLIPPED[op], subject, literal, known)
        case Call(op="eq" | "ne" | "lt" | "le" | "gt" | "ge" as op, args=(subject, Lit() as literal)):
            return _compared(op, subject, literal, known)
        case Col() if condition.type.kind is Kind.BOOL:
            return _compared("eq", condition, Lit(True, condition.type), known)
    return None


def _opposite(part: Part | None, undefined: Set | None) -> Part | None:
    """Where the condition is false."""
    if part is None or (part.line.open and undefined is None):
        return None
    unknown = part.line.null if undefined is None else undefined
    return Part(part.line, without(without(part.line.full, unknown), part.holds))


def _together(op: str, parts: Sequence[Part | None]) -> Part | None:
    """All of them, or one of them, where all are of one axis."""
    made = [part for part in parts if part is not None]
    if not made or len(made) < len(parts) or any(part.line != made[0].line for part in made):
        return None
    holds = made[0].holds
    for part in made[1:]:
        holds = common(holds, part.holds) if op == "and" else union((*holds, *part.holds))
    return Part(made[0].line, holds)


def _compared(op: str, subject: Expr, literal: Lit, known: Mapping[str, Col]) -> Part | None:
    if literal.value is None:
        return None
    if op == "ne":
        return _opposite(_compared("eq", subject, literal, known), None)
    line = _line_of(subject, known)
    if line is None:
        return None
    values = _values(subject, known)
    if values is not None:
        return _chosen(op, line, values, literal.value)
    at = position(literal.value)
    if at is None or not (LEAST < at < MOST and is_told_apart(subject, at)):
        return None
    above = after(subject, at)
    if above is None and op not in ("ge", "lt"):
        return None
    low = {"ge": at, "gt": above, "eq": at}.get(op, LEAST)
    high = {"lt": at, "le": above, "eq": above}.get(op, MOST)
    if low is None or high is None:
        return None
    holds = between(subject, low, high)
    return None if holds is None else Part(line, holds)


def _chosen(op: str, line: Line, values: Sequence[Value | Fraction], literal: Value) -> Part | None:
    """The places of the listed values for which the comparison holds."""
    right = _comparable(literal)
    places = []
    for place, value in enumerate(values):
        left = _comparable(value)
        if type(left) is not type(right):
            return None
        if _OPERATORS[op](left, right):
            places.append((place, place + 1))
    return None if line.open and (op != "eq" or not places) else Part(line, union(places))


_OPERATORS: Final[Mapping[str, Callable[..., bool]]] = {
    "eq": lambda a, b: a == b,
    "lt": lambda a, b: a < b,
    "le": lambda a, b: a <= b,
    "gt": lambda a, b: a > b,
    "ge": lambda a, b: a >= b,
}


def _comparable(value: Value | Fraction) -> object:
    if isinstance(value, Fraction):
        return value
    exact = number(value)
    return exact if exact is not None else moment(value) or value


# Axes ---------------------------------------------------------------------------------------------------------------


def _line_of(subject: Expr, known: Mapping[str, Col]) -> Line | None:
    """The axis that a value is read from: that of its column where the value rises with it, else its own."""
    col = _column(subject, known)
    if col is not None:
        return _line_of_column(col)
    if _values(subject, known) is None:
        return None
    domain = key_domain(subject, MAX_PLACES)
    return None if domain is None else _line_of_places(subject, domain)


def _column(subject: Expr, known: Mapping[str, Col]) -> Col | None:
    """The declared column of which the value is a rising function; itself where it lists its values."""
    if isinstance(subject, Col):
        col = known.get(subject.name)
        return col if col is not None and (_is_ordered(col) or _is_listed(col)) else None
    if not isinstance(subject, Call) or not subject.args or at_least(subject, _PROBE) is None:
        return None
    inner = varying(subject)
    found = None if inner is None else _column(inner, known)
    return found if found is not None and _is_ordered(found) and is_exact(found) else None


def _is_listed(col: Col) -> bool:
    return col.domain.values is not None and 0 < len(col.domain.values) <= MAX_PLACES and col.domain.released is None


def _is_ordered(col: Col) -> bool:
    domain, kind = col.domain, col.type.kind
    if domain.values is not None or domain.released is not None or domain.computed:
        return False
    if kind in (Kind.DATE, Kind.TIMESTAMP):
        return domain.first is not None and domain.last is not None
    return col.type.is_number and domain.bounded


def _line_of_column(col: Col) -> Line:
    if not _is_listed(col):
        return Line(f"{col.name}:{col.type}", _ALL, _NULL, tells_null=True)
    return _line_of_list(f"{col.name}:{col.type}={_print(_places(col))}", len(_places(col)), col.domain.nullable)


def _line_of_list(name: str, count: int, nullable: bool) -> Line:
    null: Set = ((count, count + 1),) if nullable else NOTHING
    return Line(f"{name}{'?' if nullable else ''}", ((0, count + nullable),), null, tells_null=nullable)


def _line_of_places(subject: Expr, domain: KeyDomain) -> Line | None:
    if not isinstance(domain.of, WholeNumbers | Listed):
        return None
    name = f"{canonical(subject)}={_print((domain.of, domain.image))}"
    made = _line_of_list(name, domain.size - domain.nullable, domain.nullable)
    if _is_labelled(subject):
        return made
    rest: Set = ((domain.size, domain.size + 1),)
    return replace(made, full=((0, domain.size + 1),), null=made.null or rest, open=True)


def _is_labelled(subject: Expr) -> bool:
    """Whether every row has one of the constants that the statement names, or NULL."""
    if not isinstance(subject, Case):
        return isinstance(subject, Lit)
    labels = [label for _, label in subject.branches]
    return all(map(_is_labelled, labels if subject.default is None else [*labels, subject.default]))


def _print(part: object) -> str:
    return sha256(repr(part).encode()).hexdigest()[:16]


def _places(col: Col) -> tuple[Value, ...]:
    """The listed values in order; text in binary order, which is that of code points."""
    listed = dict.fromkeys(v for v in col.domain.values or () if v is not None)
    return tuple(sorted(listed, key=lambda v: moment(v) or v))


def _values(subject: Expr, known: Mapping[str, Col]) -> Sequence[Value | Fraction] | None:
    """The values behind the places of an axis that is a list; None for one of numbers or times."""
    col = _column(subject, known)
    if col is not None:
        return _places(col) if _is_listed(col) else None
    if isinstance(subject, Lit | Col):
        return None
    domain = key_domain(subject, MAX_PLACES)
    if domain is None or not isinstance(domain.of, WholeNumbers | Listed):
        return None
    return [domain.raw(i) for i in range(domain.size - domain.nullable)]


def _declared(col: Col) -> Set:
    """The part of an ordered axis that lies within the bounds."""
    number_like = col.type.is_number
    low = position(col.domain.lower if number_like else col.domain.first)
    high = position(col.domain.upper if number_like else col.domain.last)
    if low is None or high is None:
        return NOTHING
    return union(((grid(col, low), after(col, high) or floor(high) + 1),))


# Keys ---------------------------------------------------------------------------------------------------------------


def cells_of(key: Key, known: Mapping[str, Col], subjects: Mapping[str, Expr]) -> tuple[Line, tuple[Set, ...]] | None:
    """The axis of a public key, and the set of each of its values, in order.

    `subjects`: the expressions of the conditions, with domains that these have not narrowed, by canonical text.
    """
    domain = key.domain
    if domain is None or not isinstance(domain.of, WholeNumbers | Listed):
        return None
    subject = subjects.get(canonical(domain.subject), domain.subject)
    line, col = _line_of(subject, known), _column(subject, known)
    values = _values(subject, known)
    if line is None or (col is None and values is None):
        line = _line_of_places(domain.subject, domain)
        return None if line is None else (line, tuple(((i, i + 1),) for i in range(domain.size)))
    sources = [_source(domain.of, i) for i in range(domain.size - domain.nullable)]
    if values is not None:
        cells = _listed_cells(sources, values)
    elif col is not None:
        cells = _ordered_cells(sources, subject, _declared(col))
    return None if cells is None else (line, (*cells, *((line.null,) if domain.nullable else ())))


def _source(of: WholeNumbers | Listed, index: int) -> Value:
    """The subject's value at an index, before its image is taken."""
    return of.first + index if isinstance(of, WholeNumbers) else of.values[index]


def _listed_cells(sources: Sequence[Value], values: Sequence[Value | Fraction]) -> list[Set] | None:
    places = {_comparable(value): place for place, value in enumerate(values)}
    found = [places.get(_comparable(value)) for value in sources]
    return None if None in found else [((place, place + 1),) for place in found if place is not None]


def _ordered_cells(sources: Sequence[Value], subject: Expr, declared: Set) -> list[Set] | None:
    cells: list[Set] = []
    for value in sources:
        at = position(value)
        above = None if at is None else after(subject, at)
        if at is None or above is None:
            return None
        found = ((at, above),) if isinstance(subject, Col) else between(subject, at, above)
        if found is None:
            return None
        cells.append(_clipped(found, declared))
    return cells


def _clipped(cell: Set, declared: Set) -> Set:
    """`common` of two single intervals."""
    if len(cell) != 1 or len(declared) != 1:
        return common(cell, declared)
    low, high = max(cell[0][0], declared[0][0]), min(cell[0][1], declared[0][1])
    return ((low, high),) if low < high else NOTHING
