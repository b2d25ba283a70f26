"""EXISTS and IN over private or public rows, as conditions on the rows outside.

The argument: a condition on a private row may read other private rows of the same unit only; then removing another unit
never changes it, and every filtered row is still a function of its own unit's data. So a private subquery is accepted
only where its conditions prove equal units (`joins.same_unit`), and the emitted EXISTS carries `outer.unit =
inner.unit`. IN is EXISTS with `(l = r) IS TRUE`; NOT IN is NOT EXISTS with `(l = r) IS NOT FALSE`, within the unit:
SQL's own NOT IN would look at other units' NULLs. Public subqueries need no proof.
"""

from __future__ import annotations

from dataclasses import replace

from sqlglot import exp

from dpsql.compiler.algebra import Col, Exists, Expr, Filter, columns_of, conjuncts, outputs
from dpsql.compiler.bind.expr import boolean
from dpsql.compiler.bind.joins import Numbers, equated, same_unit
from dpsql.compiler.bind.scope import Source
from dpsql.compiler.bind.units import equality
from dpsql.compiler.parse import refuse
from dpsql.errors import Rejected


def exists(inner: Source, correlated: tuple[Expr, ...], outer: Source, node: exp.Expr, numbers: Numbers) -> Exists:
    """EXISTS of a subquery's rows under the conditions that mention the row outside."""
    if not inner.private:
        return Exists(inner.node, correlated)
    if not outer.private or outer.unit is None:
        raise refuse("EXISTS over private rows cannot filter public rows", node)
    pairs = _pairs(correlated, outer, inner)
    if not same_unit(pairs, outer.units, inner.units, numbers.schema):
        raise _not_proven(node, outer, inner, numbers)
    proof = () if inner.unit is None or inner.unit.name not in outputs(inner.node) else (
        equality(outer.unit, inner.unit),
    )  # fmt: skip
    return Exists(inner.node, (*correlated, *proof))


def membership(
    inner: Source, correlated: tuple[Expr, ...], subject: Expr, member: Expr, negated: bool, outer: Source,
    node: exp.Expr, numbers: Numbers,
) -> Expr:  # fmt: skip
    """subject [NOT] IN (SELECT member ...)."""
    equal = boolean("eq", subject, member)
    if not inner.private:
        test = boolean("not", boolean("is_false", equal)) if negated else boolean("is_true", equal)
        made = Exists(inner.node, (*correlated, test))
        return boolean("not", made) if negated else made
    proven = exists(inner, (*correlated, equal), outer, node, numbers)
    rest = tuple(c for c in proven.conditions if c is not equal)
    test = boolean("not", boolean("is_false", equal)) if negated else boolean("is_true", equal)
    made = Exists(proven.relation, (*rest, test))
    return boolean("not", made) if negated else made


def separated(source: Source) -> tuple[Source, tuple[Expr, ...]]:
    """A subquery's source without the conditions that read columns of the query outside, and those conditions."""
    node = source.node
    if not isinstance(node, Filter):
        return source, ()
    mine = outputs(node.input)
    inside = tuple(c for c in node.conditions if {col.name for col in columns_of(c)} <= mine)
    outside = tuple(c for c in node.conditions if c not in inside)
    kept = Filter(node.input, inside) if inside else node.input
    return replace(source, node=kept), outside


def _pairs(correlated: tuple[Expr, ...], outer: Source, inner: Source) -> list[tuple[Col, Col]]:
    """Equated columns: (outside, inside)."""
    parts = (part for c in correlated for part in conjuncts(c))
    return equated(parts, outputs(outer.node), outputs(inner.node))


def _not_proven(node: exp.Expr, outer: Source, inner: Source, numbers: Numbers) -> Rejected:
    unit = numbers.schema.policy.privacy.unit
    names = [s.unit.origin[1] if s.unit is not None and s.unit.origin is not None else "unit" for s in (outer, inner)]
    tables = [s.tables[0] if s.tables else "?" for s in (outer, inner)]
    return refuse(
        f"The subquery over {tables[1]} may look at rows of another {unit} than the row it filters.",
        node,
        hint=f"Tie it to the same {unit}: add {tables[1]}.{names[1]} = {tables[0]}.{names[0]} to its WHERE.",
    )
