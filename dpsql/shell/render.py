"""Results on a terminal: a table where it fits, one block for each row where it does not.

Decides the layout only. Text columns are shortened before a table is given up; numbers never are.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

from rich import box
from rich.cells import cell_len
from rich.console import Console, Group, RenderableType
from rich.table import Table
from rich.text import Text

from dpsql.shell.results import Result, Row, number, shown
from dpsql.shell.values import NULL, error_text, places_of, printable, text_of

Expanded = Literal["auto", "on", "off"]

NARROWEST = 12
ERROR_HEADER = "95 % error"
_GAP = 2


@dataclass(frozen=True, slots=True)
class Lane:
    """A column of the screen. `flexible` ones may be shortened."""

    header: str
    cells: tuple[str, ...]
    right: bool
    flexible: bool
    dim: bool = False

    @property
    def width(self) -> int:
        return max(cell_len(text) for text in (self.header, *self.cells))


def table(result: Result, width: int, expanded: Expanded = "auto", most: int = 0) -> RenderableType:
    """The rows (the first `most`, 0 for all) within `width` terminal cells, and a line that counts them."""
    rows = result.rows[:most] if most else result.rows
    lanes = tuple(_lanes(result.columns, rows))
    body: RenderableType
    if expanded == "on" or (expanded == "auto" and rows and not fits(lanes, width)):
        body = _blocks(lanes, len(rows))
    else:
        body = _grid(lanes, _widths(lanes, width))
    return Group(body, Text(count(len(result.rows), len(rows)), style="dim"))


def count(total: int, seen: int) -> str:
    rows = f"{total} row{'' if total == 1 else 's'}"
    return f"({rows})" if seen == total else f"({seen} of {rows}; \\set rows 0 shows all, \\export writes all)"


def _lanes(columns: tuple[str, ...], rows: Sequence[Row]) -> Iterator[Lane]:
    for column in shown(columns):
        values = [row[column.place] for row in rows]
        numeric = bool(rows) and all(v is None or number(v) is not None for v in values)
        places = places_of(rows, column)
        cells = tuple(text_of(v, None if isinstance(v, int) else places) for v in values)
        yield Lane(printable(column.name), cells, numeric, not numeric)
        errors = tuple(error_text(row, column, places) for row in rows)
        if any(errors):
            yield Lane(ERROR_HEADER, errors, False, False, dim=True)


def fits(lanes: Sequence[Lane], width: int) -> bool:
    """Whether the table fits once its text columns are as short as they may be."""
    least = sum(min(lane.width, NARROWEST) if lane.flexible else lane.width for lane in lanes)
    return least + _GAP * (len(lanes) - 1) <= width


def _widths(lanes: Sequence[Lane], width: int) -> list[int]:
    """The cells of each column: what is left beside the numbers is shared out to the texts that want more."""
    made = [min(lane.width, NARROWEST) if lane.flexible else lane.width for lane in lanes]
    room = width - _GAP * (len(lanes) - 1) - sum(made)
    while room > 0 and (wanting := [at for at, lane in enumerate(lanes) if made[at] < lane.width]):
        for at in wanting:
            more = min(max(room // len(wanting), 1), lanes[at].width - made[at], room)
            made[at] += more
            room -= more
    return made


def _grid(lanes: Sequence[Lane], widths: Sequence[int]) -> Table:
    # One cell of padding and one of divider make the gap.
    made = Table(box=box.SIMPLE_HEAD, padding=(0, _GAP - 1, 0, 0), pad_edge=False, show_edge=False)
    for lane, width in zip(lanes, widths, strict=True):
        made.add_column(
            Text(lane.header, style="dim" if lane.dim else "bold"),
            justify="right" if lane.right else "left",
            no_wrap=True,
            overflow="ellipsis",
            width=width,
        )
    for cells in zip(*(lane.cells for lane in lanes), strict=True):
        made.add_row(*(_cell(text, lane) for text, lane in zip(cells, lanes, strict=True)))
    return made


def _cell(text: str, lane: Lane) -> Text:
    return Text(text, style="dim" if lane.dim or text == NULL else "")


def _blocks(lanes: Sequence[Lane], rows: int) -> RenderableType:
    parts: list[RenderableType] = []
    for row in range(rows):
        parts.append(Text(f"── {row + 1} of {rows} " + "─" * 12, style="dim"))
        block = Table.grid(padding=(0, 2))
        block.add_column(no_wrap=True, style="bold")
        block.add_column(overflow="fold")
        for place, lane in enumerate(lanes):
            if lane.dim:
                continue
            value = _cell(lane.cells[row], lane)
            if place + 1 < len(lanes) and lanes[place + 1].dim and lanes[place + 1].cells[row]:
                value = Text.assemble(value, ("  " + lanes[place + 1].cells[row], "dim"))
            block.add_row(lane.header, value)
        parts.append(block)
    return Group(*parts)


def show(console: Console, result: Result, expanded: Expanded, most: int) -> None:
    """Prints a result: its rows, what COPY wrote, or the tag of a command."""
    if result.copied:
        console.print(Text(result.copied.decode("utf-8", "replace").rstrip("\n")), soft_wrap=True)
    if result.columns:
        console.print(table(result, console.width, expanded, most))
    elif result.tag:
        console.print(Text(result.tag, style="dim"))
