"""Values as text: casts to text, and to_char of dates and timestamps.

Decides which values both backends write alike; the others are refused.
"""

from __future__ import annotations

from datetime import datetime
from decimal import Decimal

from sqlglot import exp

from dpsql.compiler import domains, formats
from dpsql.compiler.algebra import Call, Case, Col, Domain, Expr, Lit
from dpsql.compiler.bind.context import Context, bind, boolean
from dpsql.compiler.bind.numbers import cast_number
from dpsql.compiler.bind.spellings import zero_padded
from dpsql.compiler.bind.text_values import MOST_VALUES, called, mapped
from dpsql.compiler.calendar import next_value, truncate_value
from dpsql.compiler.keys import is_whole
from dpsql.compiler.parse import only, refuse
from dpsql.compiler.public.temporal import original_format
from dpsql.errors import UNDEFINED_FUNCTION
from dpsql.types import INT8, TEXT, Kind, SqlType, Value

_MOST_PERIODS = 20_000


def as_text(value: Expr, node: exp.Expr) -> Expr:
    """CAST(x AS text), where both backends write x alike."""
    kind = value.type.kind
    if kind is Kind.TEXT:
        return value
    if isinstance(value, Lit):
        return Lit(None if value.value is None else _written(value.value, value.type), TEXT)
    if value.type.is_number and not value.type.is_integer and is_whole(value):
        value = cast_number(value, INT8, node)
    if value.type.is_integer:
        return called("to_text", (value,), lambda v: _written(v, INT8))
    scaled = isinstance(value, Col) and kind is Kind.NUMERIC and value.type.precision is not None
    if scaled or kind is Kind.UUID:
        return called("to_text", (value,), lambda v: _written(v, value.type))
    if kind is Kind.BOOL:
        nullable = value.domain.nullable
        branches = ((value, Lit("true", TEXT)), (boolean("not", value), Lit("false", TEXT)))
        return Case(branches, None, TEXT, Domain(values=("true", "false"), nullable=nullable))
    if kind is Kind.DATE:
        return formatted(value, "YYYY-MM-DD")
    if kind is Kind.TIMESTAMP and isinstance(value, Call) and value.op == "date_trunc":
        return formatted(value, "YYYY-MM-DD HH24:MI:SS")
    hint = "Round it to a whole number first, as in CAST(ROUND(x) AS integer), or cast the aggregated result."
    if value.type.is_time:
        hint = "Write to_char(x, 'YYYY-MM-DD HH24:MI:SS'), or cast it to a date first."
    raise refuse(f"CAST from {value.type} to text is not available over private rows", node, hint=hint)


def _written(value: Value, type_: SqlType) -> str:
    """A value as both backends write it."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if type_.is_integer and isinstance(value, int | float | Decimal):
        return str(int(value))
    if type_.kind is Kind.NUMERIC and type_.scale is not None and isinstance(value, int | Decimal):
        return f"{Decimal(value):.{type_.scale}f}"
    return value.isoformat(" ") if isinstance(value, datetime) else str(value)


def to_char(node: exp.Expr, context: Context) -> Expr:
    """to_char(timestamp, 'format'): sqlglot has turned the format into strftime's."""
    only(node, "format")
    form = node.args.get("format")
    value = bind(node.this, context)
    if value.type.is_number and isinstance(form, exp.Literal):
        padded = zero_padded(value, node, str(form.this))
        if padded is not None:
            return bind(padded, context)
    if not value.type.is_time or not isinstance(form, exp.Literal):
        raise refuse(
            "to_char over private rows takes a date or timestamp and a constant format",
            node,
            sqlstate=UNDEFINED_FUNCTION,
            hint="Write CAST(x AS text) for whole numbers, LPAD(CAST(x AS text), 2, '0') with zeros before them.",
        )
    pattern = original_format(str(form.this))
    if formats.pieces(pattern) is None:
        raise refuse(
            f'to_char over private rows does not know all of the format "{pattern[:40]}"',
            node,
            hint=f"It knows {', '.join(formats.FORMS)}, FM before them, and other text in double quotes.",
        )
    return formatted(value, pattern)


def formatted(value: Expr, pattern: str) -> Expr:
    parts = formats.pieces(pattern) or ()
    if isinstance(value, Lit):
        at = domains.moment(value.value)
        return Lit(None if at is None else formats.text_of(at, parts), TEXT)
    first, last = domains.moment(value.domain.first), domains.moment(value.domain.last)
    texts: tuple[Value, ...] | None = formats.all_texts(parts, first, last, _periods, MOST_VALUES)
    if texts is None:
        texts = mapped((value,), lambda at: formats.text_of(domains.moment(at) or datetime.min, parts))
    return Call("to_char", (value, Lit(pattern, TEXT)), TEXT, Domain(values=texts, nullable=value.domain.nullable))


def _periods(unit: str, first: datetime, last: datetime) -> tuple[datetime, ...] | None:
    found: list[datetime] = []
    at = truncate_value(unit, first)
    while at <= last:
        if len(found) >= _MOST_PERIODS:
            return None
        found.append(at)
        at = next_value(unit, at)
    return tuple(found)
