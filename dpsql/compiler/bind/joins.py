"""Joins: several sources become one, with the proof that every row still belongs to exactly one unit.

The argument (DESIGN.md section 3): private rows may meet private rows only of the same unit. That holds where the
condition equates the unit columns, or where a child meets one row of its parent along a declared path whose parent key
is verified unique (`proofs`). In both cases the emitted SQL carries the proof: `l.unit = r.unit` where both sides have
a unit of their own, else the path's equalities with that one row, whose unit the child has by the policy's own words.
So the result is a private relation whatever the data holds. One side must have at most one row per join key and unit:
otherwise a unit's rows could multiply to any size, which would be a time and memory oracle. Public rows may multiply
private ones freely: contributions are bounded after the join.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Literal

from dpsql.compiler.algebra import (
    Call,
    Col,
    Expr,
    Filter,
    Join,
    Node,
    Project,
    canonical,
    columns_of,
    conjunction,
    outputs,
)
from dpsql.compiler.bind.proofs import equated, meeting, same_unit
from dpsql.compiler.bind.scope import Field, Source
from dpsql.compiler.bind.ties import added_up, tie
from dpsql.compiler.bind.units import attach_path, equality
from dpsql.errors import NOT_SUPPORTED, Rejected
from dpsql.policy.schema import Schema


@dataclass(slots=True)
class Numbers:
    """Numbers the tables of one statement, so that column names are unique in it."""

    schema: Schema
    next: int = 0

    def take(self) -> int:
        self.next += 1
        return self.next - 1

    def with_unit(self, source: Source) -> Source:
        resolved, self.next = attach_path(source, self.schema, self.next)
        return resolved


def combine(sources: list[Source], conditions: Iterable[Expr], numbers: Numbers) -> Source:
    """The inner join of all sources under all conditions (those of ON and WHERE alike)."""
    known = conjunction(tuple(conditions))
    resolved, proof = _resolve_paths(sources, known, numbers)
    known = _carrying(known, proof)
    private = [s for s in resolved if s.private]
    public = [s for s in resolved if not s.private]
    if not private:
        return _filtered(_join_public(public[0], public[1:], known), known)
    current = next((s for s in private if _owns_unit(s)), private[0])
    waiting = [s for s in private if s is not current]
    while waiting:
        follower = next((s for s in waiting if _connected(current, s, known, numbers.schema)), None)
        if follower is None:
            raise _not_connected(current, waiting[0], numbers.schema)
        waiting.remove(follower)
        current = _join_private("inner", current, follower, known)
    return _filtered(_join_public(current, public, known), known)


def left_join(left: Source, right: Source, conditions: tuple[Expr, ...], numbers: Numbers) -> Source:
    """LEFT JOIN: the left side's rows are kept, the right side's columns may be NULL."""
    known = conjunction(conditions)
    left = numbers.with_unit(left) if left.private else left
    right = _columns_only(right, numbers)
    if right.path is not None:
        proof = _path_link(right, left, known)
        known = _carrying(known, proof)
        right = _child_of(left, right) if proof else numbers.with_unit(right)
    if right.private:
        if not _connected(left, right, known, numbers.schema):
            raise _not_connected(left, right, numbers.schema)
        return _join_private("left", left, right, known)
    return _join_one_public("left", left, right, known)


def _columns_only(source: Source, numbers: Numbers) -> Source:
    """Computed fields become columns below an outer join, so that they are NULL where no row matches."""
    computed: list[tuple[str, Expr]] = []
    fields = []
    for f in source.fields:
        if isinstance(f.expr, Col):
            fields.append(f)
            continue
        col = Col(f"x{numbers.take()}", f.expr.type, f.expr.domain)
        computed.append((col.name, f.expr))
        fields.append(replace(f, expr=col))
    if not computed:
        return source
    return replace(source, node=Project(source.node, tuple(computed)), fields=tuple(fields))


def _filtered(source: Source, known: tuple[Expr, ...]) -> Source:
    """The conditions that no join has used yet, as a filter."""
    used = {canonical(c) for c in _join_conditions(source.node)}
    rest = tuple(c for c in known if canonical(c) not in used)
    return replace(source, node=Filter(source.node, rest)) if rest else source


def _join_conditions(node: Node) -> Iterable[Expr]:
    """Conditions of inner joins that sit on top: those that filter the whole relation."""
    if isinstance(node, Join) and node.kind == "inner":
        yield from node.conditions
        yield from _join_conditions(node.left)


def _equalities(known: Iterable[Expr], left: Source, right: Source) -> list[tuple[Col, Col]]:
    """Pairs of columns equated across two sources: (left's, right's)."""
    return equated(known, _names(left), _names(right))


def _names(source: Source) -> frozenset[str]:
    names = frozenset(col.name for f in source.fields for col in columns_of(f.expr))
    return names | {source.unit.name} if source.unit is not None else names


def _path_link(child: Source, parent: Source, known: tuple[Expr, ...]) -> tuple[Call, ...]:
    """The declared path of a child to one row of the parent, where the conditions join them on all of it."""
    if child.path is None:
        return ()
    return tuple(equality(a, b) for a, b in meeting(_equalities(known, child, parent), child.tables[0], child.path))


def _carrying(known: tuple[Expr, ...], proof: Iterable[Call]) -> tuple[Expr, ...]:
    """The conditions and the proof, where they do not say it already."""
    said = {canonical(c) for c in known}
    return conjunction((*known, *(c for c in proof if canonical(replace(c, args=c.args[::-1])) not in said)))


def _child_of(parent: Source, child: Source) -> Source:
    """A child whose unit is that of the parent's row which it is joined with."""
    return replace(child, unit=parent.unit, units=parent.units, path=None)


def _resolve_paths(sources: list[Source], known: tuple[Expr, ...], numbers: Numbers) -> tuple[list[Source], list[Call]]:
    """Gives every private source its unit: from the parent that the statement joins, else from an added path.

    With the conditions by which children meet their parents: the proof, for the SQL to carry.
    """
    done: dict[int, Source] = {i: s for i, s in enumerate(sources) if s.path is None}
    waiting = [i for i, s in enumerate(sources) if s.path is not None]
    proof: list[Call] = []
    while waiting:
        links = ((i, p) for i in waiting for p, parent in done.items() if _path_link(sources[i], parent, known))
        ready = next(links, None)
        if ready is not None:
            child, parent = ready
            proof += _path_link(sources[child], done[parent], known)
            done[child] = _child_of(done[parent], sources[child])
        else:
            child = next((i for i in waiting if not _linked(i, waiting, sources, known)), waiting[0])
            done[child] = numbers.with_unit(sources[child])
        waiting.remove(child)
    return [done[i] for i in range(len(sources))], proof


def _linked(child: int, waiting: list[int], sources: list[Source], known: tuple[Expr, ...]) -> bool:
    """Whether a parent of the child waits for its own unit."""
    return any(p != child and _path_link(sources[child], sources[p], known) for p in waiting)


def _owns_unit(source: Source) -> bool:
    """The unit's column is the source's own, not that of a parent which is still to be joined."""
    return source.unit is not None and source.unit.name in outputs(source.node)


def _connected(left: Source, right: Source, known: tuple[Expr, ...], schema: Schema) -> bool:
    """The conditions equate the units of both sides, or follow a declared path between them."""
    assert right.unit is not None
    pairs = _equalities(known, left, right)
    if not _owns_unit(right):
        return bool(pairs) and right.unit.name in outputs(left.node)
    return same_unit(pairs, left.units, right.units, schema)


def _not_connected(left: Source, right: Source, schema: Schema) -> Rejected:
    unit = schema.policy.privacy.unit
    tables = f"{left.tables[0] if left.tables else '?'} and {right.tables[0] if right.tables else '?'}"
    if schema.policy.privacy.is_row:
        return Rejected(
            f"Rows of {tables} cannot be joined: each row is a privacy unit of its own.",
            sqlstate=NOT_SUPPORTED,
            hint="Join with public tables only, or declare a unit column in the policy.",
        )
    return Rejected(
        f"The join of {tables} does not prove that both rows belong to the same {unit}.",
        sqlstate=NOT_SUPPORTED,
        hint=_how_to_join(left, right, schema),
    )


def _how_to_join(left: Source, right: Source, schema: Schema) -> str:
    found = tie(left, right, schema)
    if found is None:
        return f"Join the tables that lead to the {schema.policy.privacy.unit} as well, and compare it."
    table, condition = found
    if table:
        return f"Join {table} as well, with {condition}."
    if (added := added_up(left, right, condition, schema)) is not None:
        return f"Many rows of both may meet. Add one up and join that: {added}"
    return f"Add what ties both to the same {schema.policy.privacy.unit} to the join condition, as in {condition}."


def _covers(unique: tuple[frozenset[str], ...], columns: set[str]) -> bool:
    return any(names <= columns for names in unique)


def _join_private(kind: Literal["inner", "left"], left: Source, right: Source, known: tuple[Expr, ...]) -> Source:
    assert left.unit is not None
    assert right.unit is not None
    pairs = _equalities(known, left, right)
    one_right = _covers(right.unique, {b.name for _, b in pairs})
    one_left = _covers(left.unique, {a.name for a, _ in pairs})
    if not one_left and not one_right:
        raise Rejected(
            f"The join of {left.tables[0]} and {right.tables[0]} could multiply one unit's rows without limit.",
            hint="Join on a column that is unique in one of them, or declare max_rows: 1 where a unit has one row.",
        )
    proof = () if left.unit.name == right.unit.name else (equality(left.unit, right.unit),)
    mine = _usable(known, left, right) if kind == "inner" else known
    unique = (*(left.unique if one_right else ()), *(right.unique if one_left and kind == "inner" else ()))
    return Source(
        node=Join(kind, left.node, right.node, conjunction((*mine, *proof))),
        fields=(*left.fields, *(right.fields if kind == "inner" else _nullable(right.fields))),
        private=True,
        unit=left.unit,
        units=left.units | (right.units if kind == "inner" else frozenset()),
        unique=tuple(dict.fromkeys(unique)),
        determines=(*left.determines, *(right.determines if kind == "inner" else ())),
        constants=left.constants | (right.constants if kind == "inner" or _steady(known, left, right) else frozenset()),
        multiplies=left.multiplies or right.multiplies,
        tables=(*left.tables, *right.tables),
    )


def _usable(known: tuple[Expr, ...], left: Source, right: Source) -> tuple[Expr, ...]:
    """The conditions that speak of both sides and of nothing else."""
    mine, theirs = _names(left), _names(right)
    found = []
    for condition in known:
        names = {col.name for col in columns_of(condition)}
        if names <= mine | theirs and names & mine and names & theirs:
            found.append(condition)
    return tuple(found)


def _join_public(current: Source, public: list[Source], known: tuple[Expr, ...]) -> Source:
    """Adds public sources, those that a condition ties to the current ones first."""
    waiting = list(public)
    while waiting:
        chosen = next((s for s in waiting if _usable(known, current, s)), waiting[0])
        waiting.remove(chosen)
        current = _join_one_public("inner", current, chosen, known)
    return current


def _join_one_public(kind: Literal["inner", "left"], left: Source, right: Source, known: tuple[Expr, ...]) -> Source:
    pairs = _equalities(known, left, right)
    single = _covers(right.unique, {b.name for _, b in pairs})
    constant = single and (
        _steady(known, left, right) if kind == "left" else all(a.name in left.constants for a, _ in pairs)
    )
    names = frozenset(col.name for f in right.fields for col in columns_of(f.expr))
    mine = _usable(known, left, right) if kind == "inner" else known
    return replace(
        left,
        node=Join(kind, left.node, right.node, mine),
        fields=(*left.fields, *(right.fields if kind == "inner" else _nullable(right.fields))),
        unique=left.unique if single else (),
        constants=left.constants | names if constant else left.constants,
        multiplies=left.multiplies or not single,
    )


def _steady(known: tuple[Expr, ...], left: Source, right: Source) -> bool:
    """Whether a row matches does not differ between one unit's rows: the conditions read constants of the unit only."""
    theirs = right.constants if right.private else outputs(right.node)
    return all(col.name in left.constants | theirs for condition in known for col in columns_of(condition))


def _nullable(fields: tuple[Field, ...]) -> tuple[Field, ...]:
    """Columns of the side that an outer join does not keep: NULL belongs to their domain."""
    nulled = []
    for f in fields:
        expr = f.expr
        if isinstance(expr, Col):
            expr = replace(expr, domain=replace(expr.domain, nullable=True))
        nulled.append(replace(f, expr=expr))
    return tuple(nulled)
