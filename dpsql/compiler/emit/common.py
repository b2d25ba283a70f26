"""Scalar expressions as SQL that no row can make fail, and the few points where dialects differ.

Totality rests on `Domain.reach`, `grain` and `scale`, which hold for every row: integers are computed in a type that
holds `reach`, numerics as exact decimals (`decimals`); everything else in binary floats, with columns read as NULL
(NaN), as 0 (below 10^-30) or clamped (beyond 10^15), so that no operation can overflow, underflow or meet a NaN. Dates
are clamped to the years 1000..9990 before any function sees them; `numbers` says what keeps calls total. Nothing here
depends on declared bounds being true.

Binary +, -, *, / and floor are IEEE 754 in every dialect, so the same rows give the same integers everywhere.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import date, datetime
from decimal import Decimal
from fractions import Fraction
from typing import Literal
from uuid import UUID

from dpsql.compiler.algebra import FLOAT_REACH, INT8_MAX, Call, Case, Col, Exists, Expr, Lit, Op, Scalar
from dpsql.compiler.emit import decimals
from dpsql.compiler.emit.dialect import Dialect
from dpsql.compiler.emit.moments import moment, plain
from dpsql.compiler.emit.numbers import number_call
from dpsql.compiler.emit.parsed import parsed
from dpsql.compiler.emit.text import folded, text_function
from dpsql.compiler.exact import MOST_DIGITS, digits, is_exact, is_whole_part, precision_of, scale_of
from dpsql.compiler.folding import lower
from dpsql.compiler.fuel import spend
from dpsql.errors import TOO_COMPLEX, Failed, Rejected
from dpsql.types import Kind, Relation, SqlType, Value

DerivedRows = Mapping[int, Relation | None]
"""Public relations computed before this release; None: not yet, a named placeholder stands for its rows."""

Rep = Literal["int", "wide", "exact", "double"]
MAX_SQL = 1_000_000


def quote(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def text(value: str) -> str:
    if "\x00" in value:
        raise Rejected("a string may not contain NUL", sqlstate="22021")
    return "'" + value.replace("'", "''") + "'"


def _no_relations(expr: Exists) -> str:
    raise Failed("EXISTS where only scalar expressions are rendered")


@dataclass(frozen=True, slots=True)
class Emitter:
    """Renders expressions in one dialect."""

    dialect: Dialect
    derived: DerivedRows
    exists: Callable[[Exists], str] = _no_relations
    """Renders EXISTS; `relation` supplies it, as relations are its business."""

    def literal(self, value: Value, type_: SqlType) -> str:
        """A constant of a type."""
        match value:
            case None:
                return f"CAST(NULL AS {self.type_name(type_)})"
            case bool():
                return "TRUE" if value else "FALSE"
            case float():
                return self.double(value)
            case int() | Decimal() if type_.is_float:
                return self.double(float(value))
            case int():
                return str(value)
            case Decimal():
                return f"{value:f}"
            case str():
                return text(value)
            case datetime():
                return "TIMESTAMP '" + value.strftime("%Y-%m-%d %H:%M:%S.%f") + "'"
            case date():
                return f"DATE '{value:%Y-%m-%d}'"
            case UUID():
                return f"CAST('{value}' AS UUID)"
            case _:
                raise Failed(f"no literal for {type(value).__name__}")

    def type_name(self, type_: SqlType) -> str:
        match type_.kind:
            case Kind.TEXT | Kind.UNKNOWN:
                return "VARCHAR" if self.dialect.name == "duckdb" else "TEXT"
            case Kind.FLOAT4 | Kind.FLOAT8:
                return self.dialect.double
            case Kind.NUMERIC:
                return f"NUMERIC({type_.precision},{type_.scale or 0})" if type_.precision else self.dialect.double
            case Kind.TIMESTAMPTZ:
                return "TIMESTAMP"
            case _:
                return str(type_.kind.value).upper()

    def double(self, value: float | Fraction) -> str:
        return f"CAST({float(value)!r} AS {self.dialect.double})"

    # Conditions -------------------------------------------------------------------------------------------------

    def condition(self, expr: Expr) -> str:
        """A boolean expression."""
        spend(5)
        match expr:
            case Call(op="and" | "or", args=args):
                word = " AND " if expr.op == "and" else " OR "
                return self.sized("(" + word.join(self.condition(a) for a in args) + ")")
            case Call(op="not", args=(inner,)):
                return f"(NOT {self.condition(inner)})"
            case Call(op="is_null", args=(inner,)):
                return f"({self.value(inner)} IS NULL)"
            case Call(op="is_true", args=(inner,)):
                return f"({self.condition(inner)} IS TRUE)"
            case Call(op="is_false", args=(inner,)):
                return f"({self.condition(inner)} IS FALSE)"
            case Call(op="eq" | "ne" | "lt" | "le" | "gt" | "ge" | "distinct", args=(a, b)):
                left, right = self.comparable((a, b))
                return self.sized(f"({left} {_COMPARISONS[expr.op]} {right})")
            case Call(op="in", args=args):
                subject, *options = self.comparable(args)
                return self.sized(f"({subject} IN ({', '.join(options)}))")
            case Exists():
                return self.sized(self.exists(expr))
            case Call(op="like" | "ilike", args=(subject, Lit(value=pattern))):
                return self._like(expr.op, subject, pattern)
            case _:
                return self.value(expr)

    def _like(self, op: Op, subject: Expr, pattern: Value) -> str:
        if pattern is None:
            return "CAST(NULL AS BOOLEAN)"
        escape = " ESCAPE '\\'" if "\\" in str(pattern) else ""
        value, wanted = self.value(subject), str(pattern)
        if op == "ilike":
            value, wanted = folded(self, "lower", value), lower(wanted)
        return self.sized(f"({value} LIKE {text(wanted)}{escape})")

    def comparable(self, parts: tuple[Expr, ...]) -> list[str]:
        """Expressions of one family in one representation, so that no comparison needs a cast that could fail."""
        if all(p.type.is_number for p in parts):
            return self._comparable_numbers(parts)
        if any(p.type.is_time for p in parts):
            kinds = {p.type.kind for p in parts if not isinstance(p, Lit) or p.value is not None}
            if kinds == {Kind.DATE}:
                return [self.value(p) for p in parts]
            return [self.value(p) if p.type.kind is not Kind.DATE else self.moment(p) for p in parts]
        return [self.value(p) for p in parts]

    def _comparable_numbers(self, parts: tuple[Expr, ...]) -> list[str]:
        columns = [p for p in parts if isinstance(p, Col)]
        literals = [p for p in parts if isinstance(p, Lit)]
        if len(columns) + len(literals) == len(parts) and len({c.type for c in columns}) == 1:
            type_ = columns[0].type
            free = type_.kind is Kind.NUMERIC and type_.precision is None and self.dialect.name == "postgres"
            if type_.is_float or all(_fits(lit.value, type_, free=free) for lit in literals):
                return [self.literal(p.value, type_) if isinstance(p, Lit) else self.value(p) for p in parts]
        if all(p.type.is_integer for p in parts):
            return [self.number(p)[0] for p in parts]
        rep: Rep = "exact" if _in_one_type(parts) else "double"
        return [self._stored(p) or self.as_rep(p, rep) for p in parts]

    def _stored(self, part: Expr) -> str | None:
        """A stored float as it is: comparisons fail on nothing, and NaN is the largest in all dialects."""
        return quote(part.name) if isinstance(part, Col) and part.type.is_float else None

    # Values -----------------------------------------------------------------------------------------------------

    def value(self, expr: Expr) -> str:
        """An expression in its own type; numbers that take part in arithmetic as `number` gives them."""
        spend(5)
        match expr:
            case Col(name=name):
                return quote(name)
            case Lit(value=value, type=type_):
                return self.literal(value, type_)
            case Scalar():
                return self._scalar(expr)
            case Exists():
                return self.condition(expr)
            case Case() | Call(op="coalesce" | "nullif"):
                return self._chosen(expr)
            case Call() if expr.type.is_number:
                return self.number(expr)[0]
            case Call() if expr.type.kind is Kind.BOOL:
                return self.condition(expr)
            case Call() if expr.type.is_time:
                return self.moment(expr) if expr.type.kind is not Kind.DATE else self._date(expr)
            case Call():
                return self.sized(text_function(self, expr))

    def _scalar(self, expr: Scalar) -> str:
        known = self.derived.get(expr.rows)
        if known is None:
            return f":d{expr.rows}"
        if len(known.rows) > 1:
            raise Rejected("more than one row returned by a subquery used as an expression", sqlstate="21000")
        value = known.rows[0][0] if known.rows else None
        if isinstance(value, int | float | Decimal) and not isinstance(value, bool):
            if value != value:
                value = None
            else:
                value = min(max(value, -int(FLOAT_REACH)), int(FLOAT_REACH))
        return self.literal(plain(value), expr.type)

    def _chosen(self, expr: Case | Call) -> str:
        """CASE, COALESCE, NULLIF: every result in the representation of the whole."""
        if expr.type.is_number:
            return self.number(expr)[0]
        return self.choice(expr, self.moment if expr.type.kind in _MOMENTS else self.value)

    def choice(self, expr: Case | Call, render: Callable[[Expr], str]) -> str:
        if isinstance(expr, Case):
            arms = " ".join(f"WHEN {self.condition(c)} THEN {render(v)}" for c, v in expr.branches)
            last = f" ELSE {render(expr.default)}" if expr.default is not None else ""
            return self.sized(f"(CASE {arms}{last} END)")
        if expr.op == "nullif":
            return f"(CASE WHEN {self.condition(_equal(expr.args))} THEN NULL ELSE {render(expr.args[0])} END)"
        return self.sized(f"COALESCE({', '.join(render(a) for a in expr.args)})")

    # Numbers ----------------------------------------------------------------------------------------------------

    def representation(self, expr: Expr) -> Rep:
        if not expr.type.is_integer and not is_whole_part(expr):
            return "exact" if is_exact(expr) else "double"
        reaches = [expr.domain.reach]
        if isinstance(expr, Call):
            reaches += [a.domain.reach for a in expr.args if a.type.is_integer]
        return "int" if max(reaches) <= INT8_MAX else "wide"

    def as_double(self, expr: Expr) -> str:
        if isinstance(expr, Lit) and expr.value is not None:
            return self._number_literal(expr, "double")
        sql, rep = self.number(expr)
        return sql if rep == "double" else decimals.as_double(self, sql, 0 if rep == "int" else precision_of(expr))

    def as_rep(self, expr: Expr, rep: Rep) -> str:
        """A number in this representation."""
        if rep == "double":
            return self.as_double(expr)
        if isinstance(expr, Lit):
            return self._number_literal(expr, rep)
        sql, own = self.number(expr)
        if own == rep or (rep == "int" and own == "wide"):
            return sql
        if rep == "exact":
            return f"CAST({quote(expr.name) if isinstance(expr, Col) else sql} AS {decimals.type_of(self, expr)})"
        return f"CAST({sql} AS {self.rep_type(rep)})"

    def number(self, expr: Expr) -> tuple[str, Rep]:
        """A number ready for arithmetic, and the type it is computed in."""
        rep = self.representation(expr)
        match expr:
            case Col():
                return self._number_column(expr, rep), rep
            case Lit():
                return self._number_literal(expr, rep), rep
            case Scalar():
                sql = self._scalar(expr)
                return (sql if rep != "double" else f"CAST({sql} AS {self.dialect.double})"), rep
            case Case():
                return self.choice(expr, lambda e: self.as_rep(e, rep)), rep
            case Call():
                return self.sized(number_call(self, expr, rep)), rep
            case Exists():
                raise Failed("EXISTS is not a number")

    def _number_column(self, col: Col, rep: Rep) -> str:
        name = quote(col.name)
        if rep == "int":
            return f"CAST({name} AS BIGINT)"
        if rep == "wide":
            return f"CAST({name} AS {self.dialect.wide})"
        if rep == "exact":
            return self._decimal_column(col, name)
        if col.type.kind is Kind.NUMERIC and col.type.precision is not None:
            return f"CAST({name} AS {self.dialect.double})"
        if col.type.kind is Kind.NUMERIC:
            return f"CAST({self._tamed(name, '1e15', '1e-30', name)} AS {self.dialect.double})"
        return self._tamed(name, self.double(1e15), self.double(1e-30), self.dialect.is_nan(name))

    def _decimal_column(self, col: Col, name: str) -> str:
        """A column of exact decimals, without NaN; of no declared precision: within 10^15, and its first decimals."""
        if col.type.precision is not None or col.domain.computed:
            return name if self.dialect.name == "duckdb" else f"NULLIF({name}, 'NaN')"
        limit = decimals.constant(self, FLOAT_REACH, 0)
        nan = f"WHEN {self.dialect.is_nan(name)} THEN NULL " if self.dialect.name == "postgres" else ""
        cut = f"CASE {nan}WHEN {name} > {limit} THEN {limit} WHEN {name} < -{limit} THEN -{limit} ELSE {name} END"
        scale = scale_of(col) or 0
        return (
            f"ROUND({cut}, {scale})"
            if self.dialect.name == "postgres"
            else f"CAST({cut} AS {decimals.type_of(self, col)})"
        )

    def _tamed(self, name: str, reach: str, grain: str, nan: str) -> str:
        """A column without NaN, infinities, huge or tiny values."""
        nan = self.dialect.is_nan(name) if nan == name else nan
        return (
            f"(CASE WHEN {nan} THEN NULL WHEN {name} > {reach} THEN {reach} WHEN {name} < -{reach} THEN -{reach} "
            f"WHEN {name} < {grain} AND {name} > -{grain} THEN 0 ELSE {name} END)"
        )

    def _number_literal(self, literal: Lit, rep: Rep) -> str:
        value = literal.value
        if value is None:
            return f"CAST(NULL AS {decimals.type_of(self, literal) if rep == 'exact' else self.rep_type(rep)})"
        if rep == "double":
            return self.double(float(str(value)))
        if rep == "exact":
            return decimals.constant(self, Fraction(str(value)), scale_of(literal) or 0)
        return f"CAST({int(str(value))} AS {self.rep_type(rep)})"

    def rep_type(self, rep: Literal["int", "wide", "double"]) -> str:
        return {"int": "BIGINT", "wide": self.dialect.wide, "double": self.dialect.double}[rep]

    # Dates and text ---------------------------------------------------------------------------------------------

    def moment(self, expr: Expr) -> str:
        """A date or timestamp as a timestamp between the years 1000 and 9990, from there on safe to compute with."""
        return self.sized(moment(self, expr))

    def _date(self, expr: Expr) -> str:
        """A computed date."""
        if isinstance(expr, Call) and expr.op == "text_to_date":
            return parsed(self, expr)
        if isinstance(expr, Call) and expr.op == "to_date":
            return f"CAST({self.moment(expr.args[0])} AS DATE)"
        return f"CAST({self.moment(expr)} AS DATE)"

    def sized(self, sql: str) -> str:
        if len(sql) > MAX_SQL:
            raise Rejected("The statement is too complex.", sqlstate=TOO_COMPLEX, hint="Use fewer nested expressions.")
        return sql


_MOMENTS = (Kind.TIMESTAMP, Kind.TIMESTAMPTZ)
_COMPARISONS = {"eq": "=", "ne": "<>", "lt": "<", "le": "<=", "gt": ">", "ge": ">=", "distinct": "IS DISTINCT FROM"}


def _equal(args: tuple[Expr, ...]) -> Call:
    return Call("eq", args, SqlType(Kind.BOOL))


def _in_one_type(parts: tuple[Expr, ...]) -> bool:
    """Whether one decimal type holds the values of all."""
    scales = [scale_of(p) for p in parts]
    most = max((s for s in scales if s is not None), default=0)
    return None not in scales and all(digits(p.domain.reach, most) <= MOST_DIGITS for p in parts)


def _fits(value: Value, type_: SqlType, *, free: bool) -> bool:
    """Whether a column of this type can be compared with the literal exactly, without a cast that could fail.

    `free`: the column is of a type that holds every decimal.
    """
    if value is None:
        return True
    if isinstance(value, bool) or not isinstance(value, int | Decimal):
        return False
    if free:
        return True
    if type_.is_integer:
        return isinstance(value, int) and abs(value) <= INT8_MAX
    digits = Decimal(value).as_tuple()
    scale = -digits.exponent if isinstance(digits.exponent, int) else 99
    return type_.precision is not None and type_.precision <= 18 and len(digits.digits) + abs(scale) <= 18
