"""Text over private rows: ||, CONCAT, parts of a text, casts to text and to_char, with all values where they are known.

Decides the domain of a text: where every argument has finitely many public values, so has the result, which can then
name public keys. The values are computed here; the backend's text is compared with them, so a difference could lose
rows but never show a key that the policy does not tell. Every text that takes part is cut to `emit.text.LONGEST`
characters, so that no result can outgrow what a backend holds.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from decimal import Decimal
from fractions import Fraction
from itertools import product
from math import prod

from sqlglot import exp

from dpsql.compiler import domains, formats
from dpsql.compiler.algebra import Call, Case, Col, Domain, Expr, Lit, Op
from dpsql.compiler.bind.context import Context, Rule, bind, boolean, constant, text
from dpsql.compiler.bind.numbers import cast_number
from dpsql.compiler.bind.spellings import zero_padded
from dpsql.compiler.calendar import next_value, truncate_value
from dpsql.compiler.keys import Released, is_whole, key_domain
from dpsql.compiler.parse import only, refuse
from dpsql.compiler.public.temporal import original_format
from dpsql.errors import TOO_COMPLEX, UNDEFINED_FUNCTION, Rejected
from dpsql.types import INT4, INT8, TEXT, Kind, SqlType, Value

MOST_VALUES = 10_000
MOST_TEXT = 200_000
"""Values of a text that are computed here, and their characters together: texts can grow with every function."""
MOST_PARTS = 50
_MOST_PERIODS = 20_000


def finite(expr: Expr) -> tuple[Value, ...] | None:
    """All values of an expression, NULL apart, where the policy and the statement tell them."""
    if isinstance(expr, Lit):
        return () if expr.value is None else (expr.value,)
    domain = key_domain(expr, MOST_VALUES)
    if domain is None or isinstance(domain.of, Released):
        return None
    return tuple(domain.value(i, expr.type) for i in range(domain.size - domain.nullable))


def mapped(parts: tuple[Expr, ...], compute: Callable[..., Value]) -> tuple[Value, ...] | None:
    """The values of a function of these parts; None where they are not known, or too many."""
    choices = []
    for part in parts:
        values = finite(part)
        if values is None:
            return None
        choices.append(values)
    if prod(len(values) for values in choices) > MOST_VALUES:
        return None
    found: dict[Value, None] = {}
    size = 0
    for chosen in product(*choices):
        made = compute(*chosen)
        size += len(made) if isinstance(made, str) else 0
        if size > MOST_TEXT:
            return None
        found[made] = None
    return tuple(found)


def called(op: Op, args: tuple[Expr, ...], compute: Callable[..., Value]) -> Call:
    """A text function that is NULL where an argument is."""
    values = mapped(args, compute)
    return Call(op, args, TEXT, Domain(values=values, nullable=any(a.domain.nullable for a in args)))


# Casts to text ----------------------------------------------------------------------------------------------------


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


def _part(node: exp.Expr, context: Context) -> Expr:
    """An operand of ||, as text."""
    return as_text(_untyped(bind(node, context)), node)


def _untyped(value: Expr) -> Expr:
    return Lit(value.value, TEXT) if isinstance(value, Lit) and value.type.kind is Kind.UNKNOWN else value


# Joining texts ----------------------------------------------------------------------------------------------------


def joined(parts: tuple[Expr, ...]) -> Expr:
    if len(parts) > MOST_PARTS:
        raise Rejected(f"At most {MOST_PARTS} texts can be joined.", sqlstate=TOO_COMPLEX)
    if all(isinstance(p, Lit) for p in parts):
        values = [p.value for p in parts if isinstance(p, Lit)]
        if sum(len(str(v)) for v in values) > MOST_TEXT:
            raise Rejected(f"A text may have {MOST_TEXT:,} characters at most.", sqlstate=TOO_COMPLEX)
        return Lit(None if None in values else "".join(str(v) for v in values), TEXT)
    return called("concat", parts, lambda *texts: "".join(texts))


def _operator(node: exp.Expr, context: Context) -> Expr:
    """a || b: NULL where one of them is."""
    parts: list[exp.Expr] = []
    while isinstance(node, exp.DPipe | exp.Paren):
        if isinstance(node, exp.DPipe):
            only(node, "expression", "safe")
            parts.insert(0, node.args["expression"])
        node = node.this
    return joined(tuple(_part(each, context) for each in (node, *parts)))


def _or_empty(part: Expr) -> Expr:
    """The text, and '' for NULL, as CONCAT reads it."""
    if isinstance(part, Lit):
        return Lit(part.value or "", TEXT)
    if not part.domain.nullable:
        return part
    empty = Lit("", TEXT)
    return Call("coalesce", (part, empty), TEXT, domains.hull([domains.without_null(part.domain), empty.domain]))


def _concat(node: exp.Expr, context: Context) -> Expr:
    """CONCAT(a, b, ...): NULLs are skipped; booleans are t and f."""
    only(node, "expressions", "safe", "coalesce")
    return joined(tuple(_or_empty(_argument(each, context)) for each in node.expressions))


def _argument(node: exp.Expr, context: Context) -> Expr:
    bound = _untyped(bind(node, context))
    if bound.type.kind is Kind.BOOL:
        raise refuse("CONCAT takes texts and numbers over private rows", node, hint="Write CAST(x AS text).")
    return as_text(bound, node)


def _concat_ws(node: exp.Expr, context: Context) -> Expr:
    """CONCAT_WS(separator, a, b, ...): NULLs are left out, with their separator."""
    only(node, "expressions", "safe", "coalesce")
    separator = constant(node.expressions[0], TEXT, context)
    if separator is None:
        raise refuse("CONCAT_WS takes a constant separator over private rows", node)
    parts = [_argument(each, context) for each in node.expressions[1:]]
    if any(p.domain.nullable for p in parts):
        made = tuple(_or_empty(joined((separator, part))) for part in parts)
        return substring_of(joined(made), len(str(separator.value)) + 1, None)
    spaced = [x for part in parts for x in (separator, part)][1:]
    return joined(tuple(spaced)) if spaced else Lit("", TEXT)


def row(node: exp.Expr, context: Context) -> Expr:
    """(a, b) as one text that tells all rows apart, NULLs included; never NULL itself."""
    parts = tuple(_part(each, context) for each in node.expressions)
    if not 1 <= len(parts) <= MOST_PARTS:
        raise refuse(f"a row has 1 to {MOST_PARTS} parts here", node)
    return Call("row", parts, TEXT, Domain(nullable=False))


# Parts of texts ---------------------------------------------------------------------------------------------------


def _cased(op: Op) -> Rule:
    def rule(node: exp.Expr, context: Context) -> Expr:
        only(node)
        inner = text(node.this, context)
        change = str.lower if op == "lower" else str.upper
        values = mapped((inner,), change)
        plain = values is not None and all(str(v).isascii() for v in values)
        return Call(op, (inner,), TEXT, Domain(values=values if plain else None, nullable=inner.domain.nullable))

    return rule


def _trim(node: exp.Expr, context: Context) -> Expr:
    """TRIM, BTRIM, LTRIM and RTRIM of blanks, or of the characters of a constant."""
    only(node, "position", "expression")
    characters = node.args.get("expression")
    found = Lit(" ", TEXT) if characters is None else constant(characters, TEXT, context)
    if found is None or not str(found.value).isascii():
        raise refuse("TRIM takes constant ASCII characters over private rows", node)
    side = {"LEADING": "ltrim", "TRAILING": "rtrim"}.get(str(node.args.get("position") or "").upper(), "trim")
    strip = {"ltrim": str.lstrip, "rtrim": str.rstrip, "trim": str.strip}[side]
    op: Op = "ltrim" if side == "ltrim" else "rtrim" if side == "rtrim" else "trim"
    return called(op, (text(node.this, context), found), strip)


def _length(node: exp.Expr, context: Context) -> Expr:
    only(node, "big_int", "encoding")
    inner = text(node.this, context)
    values = mapped((inner,), len)
    reach, nullable = Fraction(2**31), inner.domain.nullable
    upper = Fraction(max((int(str(v)) for v in values), default=0)) if values is not None else None
    return Call(
        "length", (inner,), INT4, Domain(Fraction(0), upper, values, nullable=nullable, reach=reach, grain=_ONE)
    )


_ONE = Fraction(1)


def _substring(node: exp.Expr, context: Context) -> Expr:
    """substring(x, start[, length]) of constants, the start perhaps before the text; left(x, n)."""
    only(node, "start", "length", "expression")
    inner = text(node.this, context)
    if isinstance(node, exp.Left):
        return _left(node, inner, context)
    start = _whole(node.args.get("start"), context, 1)
    length_node = node.args.get("length")
    length = None if length_node is None else _whole(length_node, context, 0)
    if start is None or (length_node is not None and (length is None or length < 0)):
        raise refuse(
            "substring takes text, a constant start and a constant length of at least 0 over private rows",
            node,
            hint="Parts between marks: split_part(x, '-', 1); the first and last characters: left(x, 2), right(x, 2).",
        )
    end = None if length is None else max(start + length, 1)
    start = max(start, 1)
    return substring_of(inner, start, None if end is None else max(end - start, 0))


def _left(node: exp.Expr, inner: Expr, context: Context) -> Expr:
    """left(x, n): the first n characters, or all but the last -n."""
    count = _whole(node.args["expression"], context, 0)
    if count is None:
        raise refuse("left takes text and a constant number of characters over private rows", node)
    if count < 0:
        return called("left", (inner, Lit(count, INT4)), lambda x, n: x[:n])
    return substring_of(inner, 1, count)


def substring_of(inner: Expr, start: int, length: int | None) -> Expr:
    end = None if length is None else start - 1 + length
    args = (inner, Lit(start, INT4), Lit(2**31 - 1 if length is None else length, INT4))
    values = mapped((inner,), lambda x: x[start - 1 : end])
    return Call("substring", args, TEXT, Domain(values=values, nullable=inner.domain.nullable))


def _whole(node: exp.Expr | None, context: Context, default: int) -> int | None:
    """A constant whole number."""
    if node is None:
        return default
    bound = bind(node, context)
    found = bound.value if isinstance(bound, Lit) and bound.type.is_integer else None
    return found if isinstance(found, int) and abs(found) < 2**31 else None


def count_of(node: exp.Expr | None, context: Context, default: int) -> int | None:
    """A constant whole number of at least 0."""
    found = _whole(node, context, default)
    return found if found is not None and found >= 0 else None


def _right(node: exp.Expr, context: Context) -> Expr:
    """right(x, n): the last n characters, or all but the first -n."""
    only(node, "expression")
    count = _whole(node.args["expression"], context, 0)
    if count is None:
        raise refuse("right takes text and a constant number of characters over private rows", node)
    if count < 0:
        return substring_of(text(node.this, context), min(1 - count, 2**31 - 1), None)
    return called("right", (text(node.this, context), Lit(count, INT4)), lambda x, n: x[-n:] if n else "")


def _replace(node: exp.Expr, context: Context) -> Expr:
    only(node, "expression", "replacement")
    old, new = (constant(node.args.get(key), TEXT, context) for key in ("expression", "replacement"))
    if old is None or new is None or not old.value or len(str(new.value)) > 100:
        raise refuse("replace takes text and two constants over private rows, the first not empty", node)
    return called("replace", (text(node.this, context), old, new), str.replace)


def _split_part(node: exp.Expr, context: Context) -> Expr:
    only(node, "delimiter", "part_index")
    between = constant(node.args.get("delimiter"), TEXT, context)
    index = count_of(node.args.get("part_index"), context, 0)
    if between is None or not between.value or not index:
        raise refuse("split_part takes text, a constant delimiter and a constant index of at least 1", node)
    return called("split_part", (text(node.this, context), between, Lit(index, INT4)), _nth_part)


def _nth_part(value: str, between: str, index: int) -> str:
    parts = value.split(between)
    return parts[index - 1] if index <= len(parts) else ""


def _position(node: exp.Expr, context: Context) -> Expr:
    """strpos(x, 'a') and position('a' IN x): 0 where it is not there."""
    only(node, "substr")
    inner, word = text(node.this, context), constant(node.args.get("substr"), TEXT, context)
    if word is None or not word.value:
        raise refuse("strpos takes text and a constant that is not empty over private rows", node)
    reach, nullable = Fraction(2**31), inner.domain.nullable
    return Call("position", (inner, word), INT4, Domain(Fraction(0), nullable=nullable, reach=reach, grain=_ONE))


def _padded(node: exp.Expr, context: Context) -> Expr:
    """lpad(x, n, fill) and rpad(x, n, fill): of a constant width up to 1,000."""
    only(node, "expression", "fill_pattern", "is_left")
    filler = node.args.get("fill_pattern")
    fill = Lit(" ", TEXT) if filler is None else constant(filler, TEXT, context)
    width = count_of(node.args["expression"], context, 0)
    if fill is None or not fill.value or width is None or width > 1000:
        raise refuse("lpad and rpad take text, a constant width of at most 1,000 and a constant to fill with", node)
    left = bool(node.args.get("is_left"))

    def pad(value: str, _: int, fill: str) -> str:
        missing = max(width - len(value), 0)
        filled = (fill * missing)[:missing]
        return (filled + value if left else value + filled)[:width]

    return called("lpad" if left else "rpad", (text(node.this, context), Lit(width, INT4), fill), pad)


# to_char ----------------------------------------------------------------------------------------------------------


def _to_char(node: exp.Expr, context: Context) -> Expr:
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


TEXT_RULES: dict[type[exp.Expr], Rule] = {
    exp.DPipe: _operator,
    exp.Concat: _concat,
    exp.ConcatWs: _concat_ws,
    exp.Lower: _cased("lower"),
    exp.Upper: _cased("upper"),
    exp.Trim: _trim,
    exp.Length: _length,
    exp.Substring: _substring,
    exp.Left: _substring,
    exp.Right: _right,
    exp.Replace: _replace,
    exp.SplitPart: _split_part,
    exp.StrPosition: _position,
    exp.Pad: _padded,
    exp.TimeToStr: _to_char,
}
