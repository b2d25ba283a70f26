"""Text over private rows: ||, CONCAT and parts of a text, with all values where they are known.

Decides the domain of a text: where every argument has finitely many public values, so has the result (`text_values`).
Every text that takes part is cut to `emit.text.LONGEST` characters, so that no result can outgrow what a backend holds.
"""

from __future__ import annotations

from fractions import Fraction

from sqlglot import exp

from dpsql.compiler import domains, folding
from dpsql.compiler.algebra import Call, Domain, Expr, Lit, Op
from dpsql.compiler.bind.context import Context, Rule, bind, constant, text
from dpsql.compiler.bind.text_values import MOST_TEXT, called, mapped
from dpsql.compiler.bind.written import as_text, to_char
from dpsql.compiler.parse import only, refuse
from dpsql.errors import TOO_COMPLEX, Rejected
from dpsql.types import INT4, TEXT, Kind

MOST_PARTS = 50


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
        return called(op, (inner,), folding.lower if op == "lower" else folding.upper)

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
    exp.TimeToStr: to_char,
}
