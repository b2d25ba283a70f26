"""The closed algebra: all that can ever be sent to a backend is built from these nodes.

Decides which expressions, relations and aggregations exist. Names in it are made by the binder (`t0_amount`), never
taken from the client. Every node is frozen and compares by value, so a canonical text of a tree identifies what it
measures whatever the client's spelling was.

Totality: an expression's `Domain.reach` bounds its absolute value for *every* row the backend may hold, declared or
not; the emitters use it to choose an arithmetic that cannot overflow. `lower`/`upper`/`values` are declarations, used
for clamps, key domains and prices; privacy never hangs on them being true.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from decimal import Decimal
from fractions import Fraction
from typing import Literal

from dpsql.compiler.fuel import spend
from dpsql.types import BOOL, SqlType, TableName, Value

Bound = Fraction | None

INT8_MAX = 2**63 - 1
WIDE_MAX = 2**126
FLOAT_REACH = Fraction(10**15)
FLOAT_GRAIN = Fraction(1, 10**30)
"""Binary floats are read within +-10^15, and below 10^-30 as 0, wherever they take part in arithmetic."""

LEAST_EXPONENT, LARGEST_EXPONENT = -69, 34
"""EXP is computed between these: e^-69 is above 10^-30, e^34 below 10^15."""


@dataclass(frozen=True, slots=True)
class Domain:
    """What is declared (or follows) about an expression's values, NULL apart.

    `lower` and `upper` bound numbers; `first` and `last` bound dates and timestamps; `values` lists all values.
    `nullable`: NULL belongs to the public domain. `computed`: an aggregate of a unit's rows, private as a group key.
    `reach`: certain bound of the absolute value of a number. `grain`: certain bound from below of every absolute value
    that is not 0, so that divisions and products stay representable. `scale`: every value of a numeric is certainly a
    multiple of 10^-scale; None where it is computed in binary floats (see `exact`). `released`: the values are those of
    a column of a public relation computed before: (relation, column, the most there can be).
    """

    lower: Bound = None
    upper: Bound = None
    values: tuple[Value, ...] | None = None
    first: Value = None
    last: Value = None
    nullable: bool = True
    reach: Fraction = FLOAT_REACH
    grain: Fraction = FLOAT_GRAIN
    computed: bool = False
    scale: int | None = None
    released: tuple[int, int, int] | None = None

    @property
    def bounded(self) -> bool:
        return self.lower is not None and self.upper is not None


@dataclass(frozen=True, slots=True)
class Col:
    """A column of the relation below, by its unique name in the release. `origin`: the declared column it is.

    `row`: which row of that column's table it is read from. Two columns of one relation that share it come from one
    stored row; a table that is joined twice gives two, and the row of a group is another than those it was made from.
    """

    name: str
    type: SqlType
    domain: Domain = field(default=Domain(), compare=False)
    origin: tuple[str, str] | None = field(default=None, compare=False)
    row: str | None = field(default=None, compare=False)


@dataclass(frozen=True, slots=True)
class Lit:
    """A constant; `value` has `type`'s Python type."""

    value: Value
    type: SqlType

    @property
    def domain(self) -> Domain:
        if self.value is None:
            return Domain(nullable=True, reach=Fraction(0), grain=Fraction(1), scale=0)
        if isinstance(self.value, int | float | Decimal) and not isinstance(self.value, bool):
            number, grain = Fraction(self.value), abs(Fraction(self.value)) or Fraction(1)
            return Domain(
                number, number, (self.value,), nullable=False, reach=abs(number), grain=grain, scale=_scale(self.value)
            )
        return Domain(values=(self.value,), first=self.value, last=self.value, nullable=False)


def _scale(value: int | float | Decimal) -> int | None:
    """How many decimals a constant has; None of a binary float."""
    exponent = value.as_tuple().exponent if isinstance(value, Decimal) else 0
    return None if isinstance(value, float) or not isinstance(exponent, int) else max(-exponent, 0)


Op = Literal[
    "and", "or", "not",
    "eq", "ne", "lt", "le", "gt", "ge", "is_null", "distinct", "is_true", "is_false", "in", "like", "ilike",
    "add", "sub", "mul", "div", "idiv", "mod", "neg", "abs", "floor", "ceil", "round", "trunc", "sign", "sqrt", "ln",
    "exp", "clamp", "coalesce", "nullif", "least", "greatest",
    "date_trunc", "date_bin", "extract", "add_interval", "date_diff", "from_epoch",
    "to_int", "to_float", "to_numeric", "to_date", "to_timestamp", "bool_to_int", "to_text",
    "lower", "upper", "length", "substring", "right", "concat", "row", "trim", "ltrim", "rtrim", "lpad", "rpad",
    "replace", "split_part", "position", "to_char", "left", "translate", "md5",
    "text_to_int", "text_to_float", "text_to_date", "text_to_timestamp",
]  # fmt: skip


@dataclass(frozen=True, slots=True)
class Call:
    """A total operator or function applied to its arguments; see `emit.common` for the form of each."""

    op: Op
    args: tuple[Expr, ...]
    type: SqlType
    domain: Domain = field(default=Domain(), compare=False)


@dataclass(frozen=True, slots=True)
class Case:
    """The first branch whose condition is true, else `default` (None: NULL)."""

    branches: tuple[tuple[Expr, Expr], ...]
    default: Expr | None
    type: SqlType
    domain: Domain = field(default=Domain(), compare=False)


@dataclass(frozen=True, slots=True)
class Scalar:
    """The single value of a release that is computed before this one (`x > (SELECT AVG(x) ...)`)."""

    rows: int
    type: SqlType
    domain: Domain = field(default=Domain(), compare=False)


@dataclass(frozen=True, slots=True)
class Exists:
    """Whether `relation` has a row that meets the conditions, which may read columns of the row outside.

    A private relation's conditions hold the proof that its rows belong to the unit of the row outside.
    """

    relation: Node
    conditions: tuple[Expr, ...]
    type: SqlType = BOOL
    domain: Domain = field(default=Domain(values=(False, True), nullable=False), compare=False)


Expr = Col | Lit | Call | Case | Scalar | Exists


@dataclass(frozen=True, slots=True)
class Scan:
    """A declared table. `columns` pairs each backend column with its name here. NULL units are dropped here.

    `unit`: the column's name here, None for public tables and for tables whose unit comes over a path.
    `row_unit`: the row's own identity is the unit. `enforce_rows`: at most so many rows a unit, made true by the SQL.
    `source`: where the backend has it, if not under its own name.
    """

    table: str
    columns: tuple[tuple[str, Col], ...]
    unit: str | None = None
    row_unit: bool = False
    enforce_rows: int | None = None
    source: TableName | None = None


@dataclass(frozen=True, slots=True)
class Rows:
    """A public relation computed before this release: rows of the remainder of an earlier one.

    `repeats`: sets of columns, by place, and how many rows at most share values in them (the empty set: rows in all).
    """

    index: int
    columns: tuple[Col, ...]
    repeats: tuple[tuple[frozenset[int], int], ...] = field(default=(), compare=False)


@dataclass(frozen=True, slots=True)
class Filter:
    """Rows for which every condition is true; conditions in canonical order."""

    input: Node
    conditions: tuple[Expr, ...]


@dataclass(frozen=True, slots=True)
class Project:
    """Adds computed columns to those of the input."""

    input: Node
    columns: tuple[tuple[str, Expr], ...]


@dataclass(frozen=True, slots=True)
class Join:
    """`left`: keeps the rows of the left side. `conditions` holds the proof of equal units where both are private."""

    kind: Literal["inner", "left"]
    left: Node
    right: Node
    conditions: tuple[Expr, ...]


PartKind = Literal["count", "count_distinct", "sum", "avg", "min", "max"]


@dataclass(frozen=True, slots=True)
class Part:
    """An aggregate of one unit's own rows within a group: exact, on the grid of `resolution` for SUM and AVG."""

    kind: PartKind
    argument: Expr | None
    condition: Expr | None
    resolution: Fraction | None = None


@dataclass(frozen=True, slots=True)
class PerUnit:
    """GROUP BY the unit and other keys: a private relation, each row a function of one unit's rows."""

    input: Node
    keys: tuple[tuple[str, Expr], ...]
    parts: tuple[tuple[str, Part], ...]


@dataclass(frozen=True, slots=True)
class UnionAll:
    """The rows of all inputs, which offer the same column names."""

    inputs: tuple[Node, ...]
    columns: tuple[str, ...]


Node = Scan | Rows | Filter | Project | Join | PerUnit | UnionAll

AggregateKind = Literal[
    "count", "sum", "avg", "count_units", "count_distinct",
    "var_pop", "var_samp", "stddev_pop", "stddev_samp", "covar_pop", "covar_samp", "corr",
    "min", "max", "mode", "quantile_cont", "quantile_disc",
]  # fmt: skip

End = Literal["low", "high"]


@dataclass(frozen=True, slots=True)
class Aggregate:
    """One aggregate of a release. `condition`: FILTER. `argument` None: COUNT(*). `second`: of COVAR and CORR.

    `rank`: of a quantile. `end`: instead of the quantile, an end of its 95 % interval.
    """

    kind: AggregateKind
    argument: Expr | None
    condition: Expr | None
    type: SqlType
    second: Expr | None = None
    rank: Fraction | None = None
    end: End | None = None


@dataclass(frozen=True, slots=True)
class Aggregation:
    """A private aggregation before planning: one release.

    `unit`: the name of the unit's column in `input`, None when every row is its own unit and no row multiplies.
    `one_group`: the SQL guarantees that a unit has rows in at most one group. `one_row`: at most one row in all.
    `depends_on`: indices of the public relations that must be computed first. `preserved`: an outer join keeps the rows
    of a public table, so every key must be public. `pairs`: aggregates whose covariance is read.
    """

    input: Node
    unit: str | None
    keys: tuple[Expr, ...]
    names: tuple[str, ...]
    aggregates: tuple[Aggregate, ...]
    max_groups: int
    max_rows: int
    one_group: bool = False
    one_row: bool = False
    depends_on: tuple[int, ...] = ()
    tables: tuple[str, ...] = ()
    preserved: bool = False
    pairs: tuple[tuple[int, int], ...] = ()


def children(expr: Expr) -> tuple[Expr, ...]:
    """The direct arguments of an expression."""
    spend()
    match expr:
        case Col() | Lit() | Scalar():
            return ()
        case Call(args=args):
            return args
        case Case(branches=branches, default=default):
            flat = tuple(part for branch in branches for part in branch)
            return flat if default is None else (*flat, default)
        case Exists(conditions=conditions):
            return conditions


def columns_of(expr: Expr) -> tuple[Col, ...]:
    """All columns an expression reads."""
    if isinstance(expr, Col):
        return (expr,)
    return tuple(col for child in children(expr) for col in columns_of(child))


def is_constant(expr: Expr) -> bool:
    return not columns_of(expr) and not isinstance(expr, Scalar | Exists)


def conjuncts(expr: Expr) -> tuple[Expr, ...]:
    """The parts of a conjunction."""
    if isinstance(expr, Call) and expr.op == "and":
        return tuple(part for arg in expr.args for part in conjuncts(arg))
    return (expr,)


def canonical(expr: Expr) -> str:
    """A text that equal expressions share; the order of AND and OR arguments does not matter."""
    spend()
    match expr:
        case Col(name=name):
            return name
        case Lit(value=value, type=type_):
            return f"{value!r}:{type_}"
        case Scalar(rows=rows):
            return f"rows{rows}"
        case Call(op=op, args=args, type=type_):
            parts = [canonical(arg) for arg in args]
            if op in ("and", "or", "in"):
                parts = [*parts[:1], *sorted(parts[1:])] if op == "in" else sorted(parts)
            return f"{op}({','.join(parts)}):{type_}"
        case Case(branches=branches, default=default):
            inner = ",".join(f"{canonical(c)}?{canonical(v)}" for c, v in branches)
            return f"case({inner},{canonical(default) if default else 'null'})"
        case Exists(relation=relation, conditions=conditions):
            return f"exists({describe(relation)}|{';'.join(canonical(c) for c in conditions)})"


def conjunction(conditions: tuple[Expr, ...]) -> tuple[Expr, ...]:
    """Conditions flattened, without repeats, in canonical order."""
    flat = {canonical(part): part for condition in conditions for part in conjuncts(condition)}
    return tuple(flat[key] for key in sorted(flat))


def outputs(node: Node) -> frozenset[str]:
    """The names of all columns that a relation offers to the node above."""
    spend()
    match node:
        case Scan(columns=columns, unit=unit):
            names = frozenset(col.name for _, col in columns)
            return names if unit is None else names | {unit}
        case Rows(columns=columns):
            return frozenset(col.name for col in columns)
        case Filter(input=inner):
            return outputs(inner)
        case Project(input=inner, columns=columns):
            return outputs(inner) | {name for name, _ in columns}
        case Join(left=left, right=right):
            return outputs(left) | outputs(right)
        case PerUnit(keys=keys, parts=parts):
            return frozenset(name for name, _ in (*keys, *parts))
        case UnionAll(columns=names):
            return frozenset(names)


def describe(node: Node) -> str:
    """A canonical text of a relation, for fingerprints."""
    match node:
        case Scan(table=table, columns=columns, unit=unit, row_unit=row_unit, enforce_rows=limit, source=source):
            prefix = columns[0][1].name.split("_", 1)[0] if columns else ""
            stored = "" if source is None else f",{source!r}"
            return f"scan({table} as {prefix},{unit},{row_unit},{limit}{stored})"
        case Rows(index=index, columns=columns):
            return f"rows({index},{','.join(c.name for c in columns)})"
        case Filter(input=inner, conditions=conditions):
            return f"filter({describe(inner)},{';'.join(canonical(c) for c in conditions)})"
        case Project(input=inner, columns=columns):
            return f"project({describe(inner)},{';'.join(f'{n}={canonical(e)}' for n, e in columns)})"
        case Join(kind=kind, left=left, right=right, conditions=conditions):
            return f"{kind}({describe(left)},{describe(right)},{';'.join(canonical(c) for c in conditions)})"
        case PerUnit(input=inner, keys=keys, parts=parts):
            named = ";".join(f"{n}={canonical(e)}" for n, e in keys)
            return f"per_unit({describe(inner)},{named},{';'.join(f'{n}={_part_text(p)}' for n, p in parts)})"
        case UnionAll(inputs=inputs, columns=names):
            return f"union({','.join(describe(i) for i in inputs)}|{','.join(names)})"


def _part_text(part: Part) -> str:
    argument = "*" if part.argument is None else canonical(part.argument)
    condition = "" if part.condition is None else canonical(part.condition)
    return f"{part.kind}({argument}|{condition}|{part.resolution})"
