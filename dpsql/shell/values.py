"""Values as a person reads them on a screen.

Decides digits: where a column has error bars, its numbers are shown to two digits of the smallest error, since further
ones are noise; other fractions to six places. Exports and CSV keep every digit. Control characters never reach the
terminal as they are.
"""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal
from math import floor, isfinite, log10

from dpsql.pgwire.values import WireValue
from dpsql.shell.results import Row, Shown, interval, number

PLACES = 6
NULL = "NULL"


def text_of(value: WireValue, places: int | None = None) -> str:
    """One value; `places` rounds fractions, where None leaves at most six."""
    match value:
        case None:
            return NULL
        case bool():
            return "true" if value else "false"
        case float() | Decimal():
            return _fraction(value, places)
        case bytes():
            return "\\x" + value.hex()
        case tuple():
            return "{" + ",".join(text_of(item) for item in value) + "}"
        case _:
            return printable(str(value))


def _fraction(value: float | Decimal, places: int | None) -> str:
    if not isfinite(value):
        return str(value)
    if places is not None:
        return format(value, f".{places}f")
    exact = format(Decimal(str(value)), "f")
    digits = len(exact.partition(".")[2])
    if digits <= PLACES:
        return exact.removesuffix(".0")
    size = abs(float(value))
    needed = PLACES - 1 - floor(log10(size)) if 0 < size < 1 else PLACES
    if needed > 2 * PLACES:
        return f"{value:.{PLACES - 1}e}"
    return format(value, f".{min(needed, digits)}f").rstrip("0").rstrip(".")


def printable(text: str) -> str:
    """The text with control characters spelled out, so that no value can steer the terminal."""
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() else repr(c)[1:-1] for c in text)


def places_of(rows: Sequence[Row], column: Shown) -> int | None:
    """Decimal places for a column with error bars: two digits of its smallest error."""
    ends = [found for row in rows if (found := interval(row, column)) is not None]
    errors = [(high - low) / 2 for low, high in ends if isfinite(high - low) and high > low]
    if not errors:
        return None
    return min(max(1 - floor(log10(min(errors))), 0), 10)


def error_text(row: Row, column: Shown, places: int | None) -> str:
    """`± error`, or both ends where they do not lie evenly around the value (at a bound, say), or are no numbers."""
    ends, value = interval(row, column), number(row[column.place])
    if ends is None or value is None:
        both = () if column.bar is None else (row[column.bar.low], row[column.bar.high])
        return " to ".join(text_of(end) for end in both) if None not in both else ""
    low, high = ends
    error = (high - low) / 2
    shift = abs((low + high) / 2 - value)
    if shift > max(0.02 * (high - low), 0.5 if isinstance(row[column.place], int) else 0.0):
        return f"{low:.{places or 0}f} to {high:.{places or 0}f}"
    return f"± {error:.{places or 0}f}"
