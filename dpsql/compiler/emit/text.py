"""Text functions as SQL: total, and the same characters in every dialect.

Each text that takes part in a function whose result could grow is cut to LONGEST characters, so that no row can make a
result larger than a backend holds. In Postgres everything made here has the binary collation, as columns have.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from dpsql.compiler import folding
from dpsql.compiler.algebra import Call, Expr, Lit
from dpsql.compiler.formats import NAME_WIDTH, NAMES, Piece, pieces
from dpsql.errors import Failed
from dpsql.types import TEXT

if TYPE_CHECKING:
    from dpsql.compiler.emit.common import Emitter

LONGEST = 100_000
_SHORT = ("to_text", "to_char", "lpad", "rpad", "md5")


def text_function(emitter: Emitter, call: Call) -> str:
    """A call whose value is text."""
    first = call.args[0]
    rest = [emitter.value(arg) for arg in call.args[1:]]
    match call.op:
        case "lower" | "upper":
            return folded(emitter, call.op, emitter.value(first))
        case "trim" | "ltrim" | "rtrim":
            name = "BTRIM" if call.op == "trim" and emitter.dialect.name == "postgres" else call.op.upper()
            return f"{name}({emitter.value(first)}, {rest[0]})"
        case "substring" | "split_part":
            return f"{call.op.upper()}({emitter.value(first)}, {', '.join(rest)})"
        case "right" | "left":
            return f"{call.op.upper()}({emitter.value(first)}, {rest[0]})"
        case "translate":
            return f"TRANSLATE({_cut(emitter, first)}, {', '.join(rest)})"
        case "md5":
            return _collated(emitter, f"MD5({emitter.value(first)})")
        case "replace" | "lpad" | "rpad":
            return f"{call.op.upper()}({_cut(emitter, first)}, {', '.join(rest)})"
        case "concat":
            return f"({' || '.join(_cut(emitter, arg) for arg in call.args)})"
        case "row":
            return f"({' || '.join(_told_apart(emitter, arg) for arg in call.args)})"
        case "to_text":
            written = emitter.number(first)[0] if first.type.is_integer else emitter.value(first)
            return _collated(emitter, f"CAST({written} AS {emitter.type_name(TEXT)})")
        case "to_char":
            return _to_char(emitter, first, call.args[1])
        case _:
            raise Failed(f"no text form of {call.op}")


def folded(emitter: Emitter, op: Literal["lower", "upper"], sql: str) -> str:
    """A text in the other case by the table of `folding`: the backend's own function sees A to Z, or what it agrees on.

    The table's own form takes tens of microseconds a text, so it is left to what neither of these holds.
    """
    fast = f"WHEN REGEXP_FULL_MATCH({sql}, {emitter.literal(_AGREED, TEXT)}) THEN {op.upper()}({sql})"
    size, plain = "STRLEN", sql
    if emitter.dialect.name == "postgres":
        size, plain, fast = "OCTET_LENGTH", f'{sql} COLLATE "C"', ""
    pairs = folding.pairs(op)
    table = ", ".join(emitter.literal("".join(side), TEXT) for side in (pairs, pairs.values()))
    slow = f"TRANSLATE(LEFT({sql}, {LONGEST}), {table})"
    ascii_ = f"WHEN {size}({sql}) = LENGTH({sql}) THEN {op.upper()}({plain})"
    return emitter.sized(_collated(emitter, f"(CASE {ascii_} {fast} ELSE {slow} END)"))


_AGREED = "[" + "".join(f"\\x{{{first:X}}}-\\x{{{end - 1:X}}}" for first, end in folding.agreed_by_duckdb()) + "]*"
"""Letters that DuckDB folds as the table does."""


def _collated(emitter: Emitter, sql: str) -> str:
    return f'({sql} COLLATE "C")' if emitter.dialect.name == "postgres" else sql


def _cut(emitter: Emitter, expr: Expr) -> str:
    sql = emitter.value(expr)
    return sql if isinstance(expr, Lit) or (isinstance(expr, Call) and expr.op in _SHORT) else f"LEFT({sql}, {LONGEST})"


def _told_apart(emitter: Emitter, expr: Expr) -> str:
    """A text behind its length, or a letter for NULL: joined, different rows give different texts."""
    cut = _cut(emitter, expr)
    length = f"CAST(LENGTH({cut}) AS {emitter.type_name(TEXT)})"
    return f"COALESCE({length} || ':' || {cut}, 'n')"


def _to_char(emitter: Emitter, value: Expr, form: Expr) -> str:
    found = pieces(str(form.value)) if isinstance(form, Lit) else None
    if found is None:
        raise Failed("a format that was not checked")
    at = emitter.moment(value)
    if emitter.dialect.name == "postgres":
        written = "".join(f"{'' if p.filled else 'FM'}{p.code}" if p.is_field else f'"{p.code}"' for p in found)
        return _collated(emitter, f"TO_CHAR({at}, {emitter.literal(written, TEXT)})")
    return f"({' || '.join(_strftime(emitter, p, at) for p in found) or emitter.literal('', TEXT)})"


_CODES = {
    "YYYY": "%Y", "YY": "%y", "IYYY": "%G", "MM": "%m", "MONTH": "%B", "MON": "%b", "IW": "%V", "DDD": "%j", "DD": "%d",
    "DAY": "%A", "DY": "%a", "HH24": "%H", "HH12": "%I", "HH": "%I", "AM": "%p", "PM": "%p", "MI": "%M", "SS": "%S",
}  # fmt: skip
_COUNTED = {"Q": "EXTRACT(QUARTER FROM {0})", "D": "(EXTRACT(DOW FROM {0}) + 1)", "ID": "EXTRACT(ISODOW FROM {0})"}


def _strftime(emitter: Emitter, piece: Piece, at: str) -> str:
    """One field in DuckDB."""
    if not piece.is_field:
        return emitter.literal(piece.code, TEXT)
    code = piece.code.upper()
    if code in _COUNTED:
        return f"CAST({_COUNTED[code].format(at)} AS VARCHAR)"
    made = f"STRFTIME({at}, '{_CODES[code]}')"
    if code not in NAMES:
        return made if piece.filled else f"CAST(CAST({made} AS INTEGER) AS VARCHAR)"
    if piece.code.isupper() or piece.code.islower():
        made = f"{'UPPER' if piece.code.isupper() else 'LOWER'}({made})"
    return f"RPAD({made}, {NAME_WIDTH}, ' ')" if piece.filled and code in ("MONTH", "DAY") else made
