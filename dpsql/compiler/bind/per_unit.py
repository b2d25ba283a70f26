"""GROUP BY the privacy unit, inside another query: a private relation with one row per unit and key.

The argument: each such row is a function of one unit's own rows, so the relation is private with the same unit, and
removing another unit changes none of its rows. Its aggregates are exact integers on a grid (a float SUM would depend on
the order of rows, hence on other units). As values they are clamped to the interval that follows from the contribution
bound: COUNT [0, m], SUM m * hull(0, lower, upper), others [lower, upper]; in WHERE and HAVING they are exact; as group
keys they are private.
"""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from functools import partial

from sqlglot import exp

from dpsql.compiler.algebra import (
    WIDE_MAX,
    Col,
    Domain,
    Expr,
    Filter,
    Lit,
    Part,
    PerUnit,
    canonical,
    columns_of,
    conjunction,
)
from dpsql.compiler.bind.bounds import contribution
from dpsql.compiler.bind.expr import Context, bind, bind_condition
from dpsql.compiler.bind.grouping import key_nodes
from dpsql.compiler.bind.joins import Numbers
from dpsql.compiler.bind.scope import Field, Source, unknown_columns
from dpsql.compiler.exact import MOST_ROWS, is_exact, scale_of, sums_exactly
from dpsql.compiler.parse import only, refuse, written
from dpsql.compiler.problems import Problems
from dpsql.compiler.public.names import output_name
from dpsql.compiler.walk import substitute
from dpsql.errors import GROUPING, NOT_PERMITTED
from dpsql.types import FLOAT8, INT8, NUMERIC, SqlType

_MOST_STEPS = 2**40


def resolution_of(argument: Expr) -> Fraction:
    """Units per grid step of an inner SUM or AVG: the natural unit, or a power of two fine enough for its values."""
    if argument.type.is_integer:
        return Fraction(1)
    domain = argument.domain
    if domain.lower is not None and domain.upper is not None:
        extent, most = max(abs(domain.lower), abs(domain.upper)), _MOST_STEPS
    else:
        extent, most = domain.reach, 2**62
    scale = scale_of(argument)
    natural = None if scale is None else Fraction(1, 10**scale)
    if natural is not None and extent <= most * natural:
        return natural
    resolution = Fraction(2) ** -60
    while resolution * most < extent:
        resolution *= 2
    return resolution


def per_unit(select: exp.Select, source: Source, context: Context, numbers: Numbers) -> Source | None:
    """The private relation of a grouped or DISTINCT query whose keys determine the unit; None where they do not."""
    distinct = select.args.get("distinct") is not None and not any(e.is_star for e in select.expressions)
    if source.unit is None or not (select.args.get("group") is not None or distinct):
        return None
    problems = Problems()
    found = [problems.catch(partial(bind, node, context)) for node in key_nodes(select, context.fields)]
    if problems.found:
        problems.found += [e for node in select.expressions for e in unknown_columns(node, context.fields)]
        problems.check()
    keys = [key for key in found if key is not None]
    if not determine_unit(keys, source):
        return None
    for clause in ("limit", "offset", "qualify", "windows"):
        if select.args.get(clause):
            raise refuse(
                f"{clause.upper()} over one row per unit is not supported",
                select,
                sqlstate=NOT_PERMITTED,
                hint="Which rows come first depends on other people's rows.",
            )
    only(select, "expressions", "from_", "joins", "where", "group", "having", "order", "with_", "distinct", "kind")
    _check_distinct(select, keys, context)
    return _Grouped(source, context, numbers, keys).build(select)


def _check_distinct(select: exp.Select, keys: list[Expr], context: Context) -> None:
    """DISTINCT says nothing where all keys are shown; elsewhere it would merge rows of different units."""
    distinct = select.args.get("distinct")
    plain = [e.unalias() for e in select.expressions if e.find(exp.AggFunc) is None] if distinct is not None else []
    shown = {canonical(bind(node, context)) for node in plain if not node.is_star}
    if distinct is not None and (distinct.args.get("on") or any(canonical(key) not in shown for key in keys)):
        raise refuse(
            "DISTINCT over one row per unit merges rows of different units",
            select,
            sqlstate=NOT_PERMITTED,
            hint="Leave it out, and count values around the subquery: COUNT(DISTINCT n).",
        )


def determine_unit(keys: list[Expr], source: Source) -> bool:
    """Whether rows with equal keys belong to one unit."""
    names = {key.name for key in keys if isinstance(key, Col)}
    return bool(names & source.units) or any(known <= names for known in source.determines if known)


class _Grouped:
    """The relation in the making: names its keys and parts as they are met."""

    def __init__(self, source: Source, context: Context, numbers: Numbers, keys: list[Expr]) -> None:
        self.source = source
        self.numbers = numbers
        self.number = numbers.take()
        self.context = replace(context, aggregate=self._aggregate)
        assert source.unit is not None
        self.unit = self._key("u", source.unit)
        self.keys: dict[str, tuple[Col, Expr]] = {canonical(source.unit): (self.unit, source.unit)}
        for key in keys:
            text = canonical(key)
            if text not in self.keys:
                self.keys[text] = (self._key(f"k{len(self.keys)}", key), key)
        for name in source.units:
            self.keys.setdefault(name, (self.unit, source.unit))
        self.parts: dict[str, tuple[Col, Part]] = {}

    def _key(self, name: str, key: Expr) -> Col:
        """A key's column: of rows that were one row below, all of a group's rows have the same values."""
        origin, row = (key.origin, key.row) if isinstance(key, Col) else (None, None)
        return Col(f"g{self.number}_{name}", key.type, key.domain, origin, row and f"g{self.number}.{row}")

    def build(self, select: exp.Select) -> Source:
        problems = Problems()
        fields = [problems.catch(partial(self._field, node)) for node in select.expressions]
        having = select.args.get("having")
        condition = None if having is None else problems.catch(partial(self._having, having))
        problems.check()
        keys = {col.name: (col.name, key) for col, key in self.keys.values()}
        node = PerUnit(self.source.node, tuple(keys.values()), tuple((c.name, p) for c, p in self.parts.values()))
        names = frozenset(name for name in keys if name != self.unit.name)
        single = not names or all(
            {c.name for c in columns_of(key)} <= self.source.constants for _, key in self.keys.values()
        )
        return Source(
            node=node if condition is None else Filter(node, conjunction((condition,))),
            fields=tuple(f for f in fields if f is not None),
            private=True,
            unit=self.unit,
            units=frozenset({self.unit.name}),
            unique=(frozenset(),) if single else (names,),
            determines=(frozenset({self.unit.name}),),
            constants=frozenset({*keys, *(c.name for c, _ in self.parts.values())})
            if single
            else frozenset({self.unit.name}),
            tables=self.source.tables,
        )

    def _field(self, node: exp.Expr) -> Field:
        if isinstance(node, exp.Star):
            raise refuse("* is not supported in a grouped query", node, sqlstate=GROUPING)
        inner = node.this if isinstance(node, exp.Alias) else node
        return Field("", output_name(node), self._over_groups(bind(inner, self.context), inner))

    def _having(self, having: exp.Expr) -> Expr:
        return self._over_groups(bind_condition(having.this, self.context), having)

    def _over_groups(self, expr: Expr, node: exp.Expr) -> Expr:
        """The expression over keys and parts; any other column is refused."""
        made = substitute(expr, {text: col for text, (col, _) in self.keys.items()})
        known = {col.name for col, _ in (*self.keys.values(), *self.parts.values())}
        if not {col.name for col in columns_of(made)} <= known:
            raise refuse(
                "every column here must appear in the GROUP BY clause or be used in an aggregate function",
                node,
                sqlstate=GROUPING,
            )
        return made

    def _aggregate(self, node: exp.Expr) -> Expr:
        condition = None
        if isinstance(node, exp.Filter):
            only(node, "expression")
            condition = bind_condition(node.args["expression"].this, replace(self.context, aggregate=None))
            node = node.this
        part, type_, domain = self._part(node, condition)
        text = f"{part.kind}|{part.argument and canonical(part.argument)}|{condition and canonical(condition)}"
        if text not in self.parts:
            self.parts[text] = (Col(f"g{self.number}_a{len(self.parts)}", type_, domain), part)
        return self.parts[text][0]

    def _part(self, node: exp.Expr, condition: Expr | None) -> tuple[Part, SqlType, Domain]:
        rows = Fraction(contribution(self.source.node, self.numbers.schema)[1])
        context = replace(self.context, aggregate=None)
        counted = Domain(Fraction(0), rows, nullable=False, reach=MOST_ROWS, grain=Fraction(1), computed=True)
        match node:
            case exp.Count(this=exp.Distinct() as distinct):
                if len(distinct.expressions) != 1:
                    raise refuse("COUNT(DISTINCT ...) takes one expression", node)
                return Part("count_distinct", bind(distinct.expressions[0], context), condition), INT8, counted
            case exp.Count():
                only(node, "big_int")
                star = node.this is None or isinstance(node.this, exp.Star)
                argument = None if star else bind(node.this, context)
                constant = isinstance(argument, Lit) and argument.value is not None
                return Part("count", None if constant else argument, condition), INT8, counted
            case exp.Sum() | exp.Avg() | exp.Min() | exp.Max():
                only(node)
                return self._measured(node, bind(node.this, context), condition, rows)
            case _:
                raise refuse(
                    f"{written(node)} is not available within one unit's rows",
                    node,
                    hint="Available: COUNT, COUNT(DISTINCT x), SUM, AVG, MIN and MAX.",
                )

    def _measured(
        self, node: exp.Expr, argument: Expr, condition: Expr | None, rows: Fraction
    ) -> tuple[Part, SqlType, Domain]:
        inner = argument.domain
        if isinstance(node, exp.Min | exp.Max):
            kind = "min" if isinstance(node, exp.Min) else "max"
            domain = replace(inner, values=None, computed=True, nullable=True)
            kept = isinstance(argument, Col) or not argument.type.is_number or is_exact(argument)
            type_ = argument.type if kept else FLOAT8
            return Part("min" if kind == "min" else "max", argument, condition), type_, domain
        if not argument.type.is_number:
            raise refuse(f"a number is needed here, not {argument.type}", node, sqlstate="42883")
        resolution = resolution_of(argument)
        if isinstance(node, exp.Avg):
            domain = replace(inner, values=None, computed=True, nullable=True, grain=resolution / MOST_ROWS)
            return Part("avg", argument, condition, resolution), FLOAT8, domain
        lower = None if inner.lower is None else rows * min(inner.lower, Fraction(0))
        upper = None if inner.upper is None else rows * max(inner.upper, Fraction(0))
        reach, grain = inner.reach * MOST_ROWS, resolution
        type_ = INT8 if argument.type.is_integer and reach <= WIDE_MAX else FLOAT8
        scale = scale_of(argument) if sums_exactly(argument, resolution) else None
        type_ = NUMERIC if scale is not None and not argument.type.is_integer else type_
        domain = Domain(lower, upper, nullable=True, reach=reach, grain=grain, computed=True, scale=scale)
        return Part("sum", argument, condition, resolution), type_, domain
