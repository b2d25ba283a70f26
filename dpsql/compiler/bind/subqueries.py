"""EXISTS and IN over private or public rows, as conditions on the rows outside.

The argument: a condition on a private row may read other private rows of the same unit only; then removing another unit
never changes it, and every filtered row is still a function of its own unit's data. So a private subquery is accepted
only where its conditions prove equal units (`proofs.same_unit`), and the emitted EXISTS always carries `outer.unit =
inner.unit`, a child's over its declared path. IN is true where EXISTS with `(l = r) IS TRUE`, NULL where else EXISTS
with `(l = r) IS NOT FALSE`, and false elsewhere, within the unit: SQL's own NOT IN would look at other units' NULLs.
Public subqueries need no proof.
"""

from __future__ import annotations

import re
from dataclasses import replace

from sqlglot import exp

from dpsql.compiler.algebra import (
    Call,
    Case,
    Col,
    Domain,
    Exists,
    Expr,
    Filter,
    Lit,
    Op,
    columns_of,
    conjuncts,
    outputs,
)
from dpsql.compiler.bind.expr import boolean
from dpsql.compiler.bind.joins import Numbers
from dpsql.compiler.bind.proofs import equated, same_unit
from dpsql.compiler.bind.scope import Source
from dpsql.compiler.bind.ties import tie
from dpsql.compiler.bind.units import equality
from dpsql.compiler.parse import name_of, refuse
from dpsql.compiler.walk import parts
from dpsql.errors import Failed, Rejected
from dpsql.types import BOOL


def exists(inner: Source, correlated: tuple[Expr, ...], outer: Source, node: exp.Expr, numbers: Numbers) -> Exists:
    """EXISTS of a subquery's rows under the conditions that mention the row outside."""
    if not inner.private:
        return Exists(inner.node, correlated)
    if not outer.private or outer.unit is None:
        raise refuse("EXISTS over private rows cannot filter public rows", node)
    pairs = _pairs(correlated, outer, inner)
    if not same_unit(pairs, outer.units, inner.units, numbers.schema):
        raise _not_proven(node, outer, inner, numbers)
    if inner.unit is None or inner.unit.name not in outputs(inner.node):
        raise Failed("private rows without their unit")
    return Exists(inner.node, (*correlated, equality(outer.unit, inner.unit)))


def membership(
    inner: Source, correlated: tuple[Expr, ...], subject: Expr, member: Expr, outer: Source, node: exp.Expr,
    numbers: Numbers,
) -> Expr:  # fmt: skip
    """subject IN (SELECT member ...): TRUE, FALSE, or NULL where only a comparison with NULL stands against FALSE."""
    equal = boolean("eq", subject, member)
    found = exists(inner, (*correlated, equal), outer, node, numbers)
    rest = tuple(c for c in found.conditions if c is not equal)
    surely = Exists(found.relation, (*rest, boolean("is_true", equal)))
    perhaps = Exists(found.relation, (*rest, boolean("not", boolean("is_false", equal))))
    return Case(((surely, _TRUE), (perhaps, _NULL)), _FALSE, BOOL, Domain(values=(False, True), nullable=True))


_TRUE, _FALSE, _NULL = Lit(True, BOOL), Lit(False, BOOL), Lit(None, BOOL)


def where_it_holds(condition: Expr) -> Expr:
    """A condition of which only being true counts, as in WHERE: IN and NOT IN are then one EXISTS each."""
    return _holds(condition, wanted=True) if any(map(_is_membership, parts(condition))) else condition


def _holds(condition: Expr, *, wanted: bool) -> Expr:
    """A two-valued condition on memberships that is true exactly where `condition` is `wanted`."""
    match condition:
        case Case(branches=((surely, _), (perhaps, _))) if _is_membership(condition):
            return surely if wanted else boolean("not", perhaps)
        case Call(op="and" | "or", args=args):
            other: Op = "or" if condition.op == "and" else "and"
            return boolean(condition.op if wanted else other, *(_holds(a, wanted=wanted) for a in args))
        case Call(op="not", args=(inner,)):
            return _holds(inner, wanted=not wanted)
        case _:
            return condition if wanted else boolean("not", condition)


def _is_membership(expr: Expr) -> bool:
    match expr:
        case Case(branches=((Exists(), first), (Exists(), second)), default=last):
            return (first, second, last) == (_TRUE, _NULL, _FALSE)
        case _:
            return False


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


def _by_alias(condition: str, node: exp.Expr, tables: list[str]) -> str:
    """The condition with the subquery's table, the second, by the name that it has there."""
    last = tables[1].rpartition(".")[2].lower()
    scanned = (t for t in node.find_all(exp.Table) if name_of(t.this).lower() == last)
    alias = next((name_of(t.args["alias"].this) for t in scanned if t.args.get("alias") is not None), "")
    before = "= " if tables[0] == tables[1] else ""
    return re.sub(rf"{before}\b{re.escape(tables[1])}\.", f"{before}{alias}.", condition) if alias else condition


def _not_proven(node: exp.Expr, outer: Source, inner: Source, numbers: Numbers) -> Rejected:
    unit = numbers.schema.policy.privacy.unit
    tables = [s.tables[0] if s.tables else "?" for s in (outer, inner)]
    # What its SELECT shows is not all that its WHERE sees.
    found = tie(outer, replace(inner, fields=()), numbers.schema)
    tied = "" if found is None else _by_alias(found[1], node, tables)
    added = "compare it in its WHERE" if found is None else f"add {tied} to its WHERE"
    joined = f", and join {found[0]} in it" if found is not None and found[0] else ""
    return refuse(
        f"The subquery over {tables[1]} may look at rows of another {unit} than the row it filters.",
        node,
        hint=f"Tie it to the same {unit}: {added}{joined}.",
    )
