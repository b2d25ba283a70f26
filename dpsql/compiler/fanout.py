"""How many rows of the public side one private row can meet: computed from public facts, and refused beyond a small
number.

Why: what a statement takes grows with the rows that it makes. If one person's row met a million public rows, the time
of an answer would tell whether the person is there, at any price (`FROM nums a, nums b, nums c, people WHERE uid = 7`).
How often values stand in a public table is public, so the bound, and the refusal, say nothing of private rows. A public
side that is joined on its key is met once. Beyond the contribution bound more rows are of no use: they are clipped.

Decides from the bound algebra and the snapshot of the public tables alone; whether a join is allowed at all, and what
is measured, it does not decide. All figures are upper bounds: conditions other than equality with a column of the
public side count as always true.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from math import prod

from sqlglot import exp

from dpsql.compiler.algebra import (
    Aggregation,
    Call,
    Col,
    Exists,
    Expr,
    Filter,
    Join,
    Node,
    PerUnit,
    Project,
    Rows,
    Scan,
    UnionAll,
    columns_of,
    conjunction,
    outputs,
)
from dpsql.compiler.parse import refuse
from dpsql.compiler.walk import expressions, inputs, nodes, parts
from dpsql.errors import TOO_COMPLEX, Rejected
from dpsql.policy.schema import Schema, SchemaTable
from dpsql.types import Relation

LEAST_MET, MOST_MET = 100, 1_000
"""A private row may meet as many public rows as its unit may contribute, and always 100, but never more than 1,000."""
MOST_COMPARED = 10_000
"""Public rows that EXISTS, IN and NOT IN may look at for one private row: they are compared, not added up."""
MOST_WORK = 100_000
"""Rows that a private row becomes, times the parts of all expressions that are computed for each."""
UNKNOWN = 2**62
"""More rows than there can be: nothing public bounds their number."""


def check_fan_out(made: Aggregation, schema: Schema, at: exp.Expr) -> None:
    """Refuses an aggregation of which one private row could take much longer than none. `at`: where it is written."""
    facts = Facts(schema)
    most = max(LEAST_MET, min(made.max_groups * made.max_rows, MOST_MET))
    size = sum(1 for expr in expressions(made) for _ in parts(expr))
    for root in (root for root in _roots(made) if not facts.is_public(root)):
        met = facts.spread(root, ())
        if met > most:
            raise _too_many(met, most, made, at)
        if met > 1 and met * size > MOST_WORK:
            raise _too_much_work(met, made, at)
        compared = met * sum(facts.compared(each) for each in _public_tests(root, made, facts))
        if compared > MOST_COMPARED:
            raise _too_many_compared(compared, made, at)


def _roots(made: Aggregation) -> Iterator[Node]:
    """The relations whose rows are made one by one: what is aggregated, here or for each unit, and tested by EXISTS."""
    yield made.input
    for node in nodes(made):
        if isinstance(node, PerUnit):
            yield node.input
    for expr in expressions(made):
        yield from (part.relation for part in parts(expr) if isinstance(part, Exists))


def _public_tests(root: Node, made: Aggregation, facts: Facts) -> Iterator[Exists]:
    """The EXISTS over public rows that are evaluated for rows of `root`."""
    own = [e for node in _same_rows(root) for e in _conditions(node)]
    if root is made.input:
        own += list(made.keys)
        own += [e for a in made.aggregates for e in (a.argument, a.second, a.condition) if e is not None]
    for expr in own:
        yield from (e for e in parts(expr) if isinstance(e, Exists) and facts.is_public(e.relation))


def _same_rows(node: Node) -> Iterator[Node]:
    yield node
    if not isinstance(node, PerUnit):
        for inner in inputs(node):
            yield from _same_rows(inner)


def _conditions(node: Node) -> tuple[Expr, ...]:
    match node:
        case Filter(conditions=conditions) | Join(conditions=conditions):
            return conditions
        case Project(columns=columns):
            return tuple(expr for _, expr in columns)
        case PerUnit(keys=keys, parts=parts_):
            read = (e for _, part in parts_ for e in (part.argument, part.condition) if e is not None)
            return (*(expr for _, expr in keys), *read)
        case Scan() | Rows() | UnionAll():
            return ()


@dataclass(frozen=True, slots=True)
class Facts:
    """What is public about the relations of a statement: which are, and how often their values stand in them."""

    schema: Schema

    def is_public(self, node: Node) -> bool:
        if isinstance(node, Scan):
            table = self.table(node)
            return table is None or table.public
        return not isinstance(node, PerUnit) and all(map(self.is_public, inputs(node)))

    def table(self, scan: Scan) -> SchemaTable | None:
        return self.schema.tables.get(scan.table)

    def spread(self, node: Node, known: tuple[Expr, ...]) -> int:
        """How many rows of a relation come of one private row. `known`: what the filters above ask of them."""
        match node:
            case Filter(input=inner, conditions=conditions):
                return self.spread(inner, (*known, *conditions))
            case Project(input=inner):
                return self.spread(inner, known)
            case Join(left=left, right=right, conditions=conditions):
                every = (*known, *conditions)
                return _capped(self._side(a, b, every) for a, b in ((left, right), (right, left)))
            case UnionAll(inputs=inner_nodes):
                return min(sum(self.spread(each, ()) for each in inner_nodes), UNKNOWN)
            case PerUnit(input=inner, keys=keys):
                private = frozenset(name for scan in self._private(inner) for name in outputs(scan))
                own = all(col.name in private for _, key in keys for col in columns_of(key))
                return 1 if own else self.spread(inner, ())
            case Scan() | Rows():
                return 1

    def _side(self, side: Node, other: Node, known: tuple[Expr, ...]) -> int:
        return self.matches(side, known, outputs(other)) if self.is_public(side) else self.spread(side, known)

    def _private(self, node: Node) -> Iterator[Node]:
        """The outermost relations without anything public in them."""
        if isinstance(node, Join):
            for inner in inputs(node):
                yield from self._private(inner)
        elif isinstance(node, Filter | Project):
            yield from self._private(node.input)
        elif not self.is_public(node):
            yield node

    def compared(self, test: Exists) -> int:
        """How many public rows EXISTS looks at for one row outside."""
        outside = {col.name for condition in test.conditions for col in columns_of(condition)}
        return self.matches(test.relation, test.conditions, frozenset(outside - outputs(test.relation)))

    def matches(self, node: Node, known: tuple[Expr, ...], given: frozenset[str]) -> int:
        """How many rows of a public relation meet one row outside, whose columns are `given`, under the conditions."""
        match node:
            case Scan(columns=columns):
                fixed, table = _equated(known, outputs(node), given), self.table(node)
                names = frozenset(stored for stored, col in columns if col.name in fixed)
                return UNKNOWN if table is None else repeats(table, names)
            case Rows(columns=columns, repeats=found):
                fixed = _equated(known, outputs(node), given)
                places = {place for place, col in enumerate(columns) if col.name in fixed}
                return min((most for own, most in found if own <= places), default=UNKNOWN)
            case Filter(input=inner, conditions=conditions):
                return self.matches(inner, (*known, *conditions), given)
            case Project(input=inner):
                return self.matches(inner, known, given)
            case Join(left=left, right=right, conditions=conditions):
                every = (*known, *conditions)
                return min(self._one_by_one(a, b, every, given) for a, b in ((left, right), (right, left)))
            case UnionAll(inputs=inner_nodes):
                return min(sum(self.matches(each, (), frozenset()) for each in inner_nodes), UNKNOWN)
            case PerUnit():
                return UNKNOWN

    def _one_by_one(self, first: Node, then: Node, known: tuple[Expr, ...], given: frozenset[str]) -> int:
        """The rows of one side that are met, times those of the other side that meet each of them."""
        after = given | outputs(first)
        return _capped((self.matches(first, known, given), self.matches(then, known, after)))


def _capped(factors: Iterable[int]) -> int:
    return min(prod(factors), UNKNOWN)


def _equated(conditions: Iterable[Expr], mine: frozenset[str], given: frozenset[str]) -> frozenset[str]:
    """The columns among `mine` that equal something made of `given` and constants alone.

    Of alternatives those that every one of them fixes.
    """
    found: set[str] = set()
    for condition in conjunction(tuple(conditions)):
        match condition:
            case Call(op="is_true", args=(inner,)):
                found |= _equated((inner,), mine, given)
            case Call(op="or", args=alternatives):
                found |= frozenset.intersection(*(_equated((each,), mine, given) for each in alternatives))
            case Call(op="eq", args=(a, b)):
                found |= {
                    column.name
                    for column, other in ((a, b), (b, a))
                    if isinstance(column, Col) and column.name in mine and _made_of(other, given)
                }
    return frozenset(found)


def _made_of(expr: Expr, given: frozenset[str]) -> bool:
    return all(col.name in given for col in columns_of(expr))


def repeats(table: SchemaTable, names: frozenset[str]) -> int:
    """The most rows of a public table that share values in the columns `names`; how many rows it has where none."""
    if any(unique <= names for unique in table.unique):
        return 1
    return UNKNOWN if table.rows is None else _repeated(_Snapshot(table.rows), names)


@dataclass(frozen=True, slots=True, eq=False)
class _Snapshot:
    """A relation, known again by being the same object: comparing a million rows would take as long as counting."""

    relation: Relation

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Snapshot) and other.relation is self.relation

    def __hash__(self) -> int:
        return id(self.relation)


@lru_cache(maxsize=1024)
def _repeated(snapshot: _Snapshot, names: frozenset[str]) -> int:
    relation = snapshot.relation
    places = [place for place, column in enumerate(relation.columns) if column.name in names]
    if not places:
        return len(relation.rows)
    counts = Counter(tuple(row[place] for place in places) for row in relation.rows)
    return max((n for values, n in counts.items() if None not in values), default=0)


def _too_many(met: int, most: int, made: Aggregation, at: exp.Expr) -> Rejected:
    if met >= UNKNOWN:
        return refuse(
            f"One row of {_private_table(made)} could meet any number of rows of the subquery it is joined with.",
            at,
            sqlstate=TOO_COMPLEX,
            hint="GROUP BY the columns that it is joined on, SELECT DISTINCT them, or give the subquery a LIMIT.",
        )
    return refuse(
        f"One row of {_private_table(made)} could become {met:,} rows; a statement may make at most {most:,} of one.",
        at,
        sqlstate=TOO_COMPLEX,
        hint="Join public tables on their keys, or with more columns. What only repeats rows is a factor: write "
        "100 * COUNT(*) instead of joining 100 rows.",
    )


def _too_much_work(met: int, made: Aggregation, at: exp.Expr) -> Rejected:
    return refuse(
        f"One row of {_private_table(made)} could become {met:,} rows, too many for the expressions of this statement.",
        at,
        sqlstate=TOO_COMPLEX,
        hint="Ask for fewer or simpler aggregates at once, or join public tables on their keys.",
    )


def _too_many_compared(compared: int, made: Aggregation, at: exp.Expr) -> Rejected:
    number = "any number of" if compared >= UNKNOWN else f"{compared:,}"
    return refuse(
        f"One row of {_private_table(made)} would be compared with {number} public rows; at most {MOST_COMPARED:,} are"
        " allowed.",
        at,
        sqlstate=TOO_COMPLEX,
        hint="Use IN with a column that is a key of the public table, or SELECT DISTINCT it in the subquery.",
    )


def _private_table(made: Aggregation) -> str:
    return made.tables[0] if made.tables else "a private table"
