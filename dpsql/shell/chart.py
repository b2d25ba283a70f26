"""A result as bars: one for each row, solid up to the lower end of its error bar, shaded up to the upper one.

Decides which column is drawn: the one that is named, else the first with an error bar, else the last numeric one.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from rich.cells import cell_len, set_cell_size
from rich.console import RenderableType
from rich.text import Text

from dpsql.errors import UNDEFINED_COLUMN, Rejected
from dpsql.shell.results import Result, Row, Shown, interval, number, shown
from dpsql.shell.values import error_text, places_of, printable, text_of

LONGEST_LABEL = 24
MOST_BARS = 60
SOLID, SHADED = "█", "░"


@dataclass(frozen=True, slots=True)
class Line:
    """One bar: from zero to `value`, uncertain from `low` to `high`."""

    label: str
    figure: str
    value: float
    low: float
    high: float


def chart(result: Result, width: int, name: str | None = None) -> RenderableType:
    """The bars within `width` cells. Raises Rejected where there is nothing to draw."""
    columns = shown(result.columns)
    drawn = _drawn(result.rows, columns, name)
    lines = _lines(result.rows[:MOST_BARS], columns, drawn)
    if not lines:
        raise Rejected("There is nothing to draw.", hint=r"\chart draws the numbers of the last result.")
    made = _draw(lines, width)
    left = len(result.rows) - len(lines)
    if left > 0:
        made.append(f"({left} more rows)\n", "dim")
    head = Text(printable(drawn.name) + "\n", style="bold")
    if drawn.bar is not None:
        head.append(f"{SHADED} is the 95 % error\n", "dim")
    made.rstrip()
    return head + made


def can_chart(result: Result) -> bool:
    """Whether bars say more than the table: several rows, with a label and a number."""
    columns = shown(result.columns)
    return 1 < len(result.rows) <= MOST_BARS and len(columns) > 1 and bool(_numeric(result.rows, columns))


def _numeric(rows: Sequence[Row], columns: Sequence[Shown]) -> list[Shown]:
    return [c for c in columns if any(number(row[c.place]) is not None for row in rows)]


def _drawn(rows: Sequence[Row], columns: Sequence[Shown], name: str | None) -> Shown:
    numeric = _numeric(rows, columns)
    if name is not None:
        numeric = [column for column in numeric if column.name == name]
    if not numeric:
        what = "no column of numbers" if name is None else f"no column of numbers named {name}"
        raise Rejected(f"The last result has {what}.", sqlstate=UNDEFINED_COLUMN)
    return next((column for column in numeric if column.bar is not None), numeric[-1])


def _lines(rows: Sequence[Row], columns: Sequence[Shown], drawn: Shown) -> list[Line]:
    places = places_of(rows, drawn)
    found = []
    for at, row in enumerate(rows):
        value = number(row[drawn.place])
        if value is None:
            continue
        keys = [text_of(row[c.place]) for c in columns if c != drawn and c.bar is None]
        figure = text_of(row[drawn.place], None if isinstance(row[drawn.place], int) else places)
        low, high = interval(row, drawn) or (value, value)
        error = error_text(row, drawn, places)
        found.append(Line(" ".join(keys) or str(at + 1), f"{figure} {error}".strip(), value, low, high))
    return found


def _draw(lines: Sequence[Line], width: int) -> Text:
    labels = min(max(cell_len(line.label) for line in lines), LONGEST_LABEL)
    figures = max(cell_len(line.figure) for line in lines)
    room = max(width - labels - figures - 4, 8)
    least = min(0.0, *(line.low for line in lines))
    most = max(0.0, *(line.high for line in lines))
    scale = room / (most - least) if most > least else 0.0

    def at(value: float) -> int:
        return round((value - least) * scale)

    zero, made = at(0.0), Text()
    for line in lines:
        label = line.label if cell_len(line.label) <= labels else set_cell_size(line.label, labels - 1) + "…"
        made.append(set_cell_size(label, labels) + "  ")
        for solid, shaded in (_cell(x, zero, at(line.low), at(line.high)) for x in range(room)):
            made.append(SOLID if solid else SHADED if shaded else " ", "cyan" if solid else "dim cyan")
        made.append("  " + line.figure + "\n", "dim")
    return made


def _cell(x: int, zero: int, low: int, high: int) -> tuple[bool, bool]:
    """Whether a cell lies between zero and the nearer end of the interval, and whether in the interval."""
    inside = low <= x < high or (low == high == x)
    solid = zero <= x < low or high <= x < zero
    return solid, inside and not solid
