"""FROM and WHERE of a query over private rows: items to sources, ON and USING to conditions, one joined source out.

Decides the shape of joins only; whether a join is allowed is `joins`' business. Comma items and inner joins form one
group, whose conditions may stand in ON or in WHERE; an outer join closes the group on its left.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import partial

from sqlglot import exp

from dpsql.compiler.algebra import Expr, Filter, conjunction
from dpsql.compiler.bind import joins
from dpsql.compiler.bind.expr import Context, bind_condition
from dpsql.compiler.bind.joins import Numbers
from dpsql.compiler.bind.scope import Field, Source
from dpsql.compiler.bind.subqueries import where_it_holds
from dpsql.compiler.bind.units import equality
from dpsql.compiler.facts import narrow, narrowed
from dpsql.compiler.parse import name_of, only, refuse
from dpsql.compiler.problems import together
from dpsql.compiler.spelling import Written, either, meant, quoted
from dpsql.errors import AMBIGUOUS_COLUMN, UNDEFINED_COLUMN, Rejected

MakeContext = Callable[[tuple[Field, ...], Source | None], Context]
"""A context over these fields; with the joined source where subqueries may be tied to its unit."""


@dataclass(slots=True)
class Group:
    """Sources joined so far by inner joins, with their conditions.

    `preserved`: an outer join keeps a public table's rows beside private ones. Their groups are all released anyway,
    with noise around 0, so the join is the inner one; `aggregates` refuses what a kept row would add to.
    """

    sources: list[Source]
    conditions: list[Expr] = field(default_factory=list)
    preserved: bool = False

    @property
    def fields(self) -> tuple[Field, ...]:
        return tuple(f for source in self.sources for f in source.fields)


def bind_from(
    first: Source,
    joined: list[tuple[exp.Join, Source]],
    where: exp.Expr | None,
    make: MakeContext,
    numbers: Numbers,
) -> Source:
    """All of FROM, filtered by WHERE. Fields come narrowed by what the conditions say of them."""
    groups = [Group([first])]
    for join, source in joined:
        if _is_comma(join):
            groups.append(Group([source]))
        else:
            groups[-1] = _joined(groups[-1], join, source, make, numbers)
    whole = Group([s for g in groups for s in g.sources], [c for g in groups for c in g.conditions])
    conditions = list(whole.conditions)
    plain, nested = _parts(where)
    conditions += together(partial(bind_condition, part, make(whole.fields, None)) for part in plain)
    made = _joined_all(whole.sources, conditions, numbers, [join for join, _ in joined])
    source = _narrowed(made, conditions)
    source = replace(source, preserved=source.preserved or any(g.preserved for g in groups))
    if not nested:
        return source
    bound = together(partial(bind_condition, part, make(source.fields, source)) for part in nested)
    late = [where_it_holds(condition) for condition in bound]
    if isinstance(source.node, Filter):
        return replace(source, node=Filter(source.node.input, conjunction((*source.node.conditions, *late))))
    return replace(source, node=Filter(source.node, conjunction(tuple(late))))


def _joined_all(sources: list[Source], conditions: list[Expr], numbers: Numbers, places: list[exp.Join]) -> Source:
    """The inner join of everything; a refusal points at the first join."""
    try:
        return joins.combine(sources, conditions, numbers)
    except Rejected as error:
        if error.position is not None or not places:
            raise
        raise refuse(error.message, places[0], sqlstate=error.sqlstate, hint=error.hint) from None


def _parts(where: exp.Expr | None) -> tuple[list[exp.Expr], list[exp.Expr]]:
    """The conjuncts of WHERE: those without subqueries, which may join, and those with, which need the joined rows."""
    if where is None:
        return [], []
    parts = list(where.flatten()) if isinstance(where, exp.And) else [where]
    nested = [p for p in parts if p.find(exp.Query) is not None]
    return [p for p in parts if p.find(exp.Query) is None], nested


def _is_comma(join: exp.Join) -> bool:
    return not any(join.args.get(key) for key in ("side", "kind", "method", "on", "using"))


def _joined(group: Group, join: exp.Join, right: Source, make: MakeContext, numbers: Numbers) -> Group:
    only(join, "side", "kind", "method", "on", "using")
    side = str(join.args.get("side") or "").upper()
    method = str(join.args.get("method") or "").upper()
    if side == "FULL":
        raise refuse("FULL JOIN is not supported over private rows", join, hint="Use LEFT JOIN from the private side.")
    kind = str(join.args.get("kind") or "").upper()
    if method not in ("", "NATURAL") or kind not in ("", "INNER", "OUTER", "CROSS"):
        raise refuse(f"{method or kind} JOIN is not supported", join)
    left = group
    if side == "RIGHT":
        left, right = Group([right]), joins.combine(group.sources, group.conditions, numbers)
    conditions, right = _conditions(left, right, join, natural=method == "NATURAL", make=make)
    if side in ("LEFT", "RIGHT"):
        kept = left.sources[0] if len(left.sources) == 1 else joins.combine(left.sources, left.conditions, numbers)
        rest = left.conditions if len(left.sources) == 1 else []
        if not kept.private and right.private:
            return Group([kept, right], [*rest, *conditions], preserved=True)
        return Group([_placed(join, joins.left_join, kept, right, tuple(conditions), numbers)], list(rest))
    return Group([*left.sources, right], [*left.conditions, *conditions], left.preserved)


def _placed(
    join: exp.Join,
    rule: Callable[[Source, Source, tuple[Expr, ...], Numbers], Source],
    left: Source,
    right: Source,
    conditions: tuple[Expr, ...],
    numbers: Numbers,
) -> Source:
    """Runs a join rule; its refusal points at the join."""
    try:
        return rule(left, right, conditions, numbers)
    except Rejected as error:
        raise refuse(error.message, join, sqlstate=error.sqlstate, hint=error.hint) from None


def _conditions(
    left: Group, right: Source, join: exp.Join, *, natural: bool, make: MakeContext
) -> tuple[list[Expr], Source]:
    """ON, USING or NATURAL as conditions; the right side's merged columns are found by their qualified name only."""
    using: list[Written] = [u.this if isinstance(u, exp.Column) else u for u in join.args.get("using") or []]
    if natural:
        mine = {f.name for f in left.fields}
        using = list(dict.fromkeys(f.name for f in right.fields if f.name in mine))
    conditions: list[Expr] = []
    merged: set[str] = set()
    for name in using:
        a, b = _single(left.fields, name, join), _single(right.fields, name, join)
        conditions.append(equality(a.expr, b.expr))
        merged.add(b.name)
    if using:
        fields = tuple(replace(f, merged=True) if f.name in merged else f for f in right.fields)
        right = replace(right, fields=fields)
    if join.args.get("on") is not None:
        conditions.append(bind_condition(join.args["on"], make((*left.fields, *right.fields), None)))
    return conditions, right


def _single(fields: tuple[Field, ...], written: Written, join: exp.Join) -> Field:
    names = meant(written, [f.name for f in fields if not f.merged])
    found = [f for f in fields if f.name in names and not f.merged]
    if len(names) > 1:
        text = f'column "{name_of(written)}" of USING is ambiguous'
        raise refuse(text, join, sqlstate=AMBIGUOUS_COLUMN, hint=either(map(quoted, names)))
    if len(found) != 1:
        text = f'column "{name_of(written)}" of USING must exist once on both sides'
        raise refuse(text, join, sqlstate=UNDEFINED_COLUMN)
    return found[0]


def _narrowed(source: Source, conditions: list[Expr]) -> Source:
    known = narrow(conditions)
    return replace(source, fields=tuple(_with(f, narrowed(f.expr, known)) for f in source.fields), known=known)


def _with(field: Field, expr: Expr) -> Field:
    return field if expr is field.expr else replace(field, expr=expr)
