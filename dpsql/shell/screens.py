"""The pages behind the backslash commands. Pure: from what is known to what is shown."""

from __future__ import annotations

from collections.abc import Sequence

from rich import box
from rich.console import Group, RenderableType
from rich.table import Table as Grid
from rich.text import Text

from dpsql.shell.prices import Account, Price
from dpsql.shell.state import Asked, Options
from dpsql.shell.tables import Field, Table
from dpsql.shell.values import printable

GAUGE = 30
LONGEST_NAME = 24


def _grid(*headers: str) -> Grid:
    made = Grid(box=box.SIMPLE_HEAD, pad_edge=False, show_edge=False, header_style="bold")
    for header in headers:
        made.add_column(header, overflow="fold", no_wrap=header in ("table", "column", "type", "unit", "NULL", "price"))
    return made


def _name(name: str) -> Text:
    """A name on one line, but for very long ones, which are folded."""
    shown = printable(name)
    parts = [shown[at : at + LONGEST_NAME] for at in range(0, len(shown), LONGEST_NAME)]
    return Text("\n".join(parts))


# --- tables --------------------------------------------------------------------------------------------------------


def tables(found: Sequence[Table], width: int) -> RenderableType:
    """All tables; columns as far as there is room."""
    if not found:
        return Text("There is no table that you may ask.")
    grid = _grid("table", "kind", "unit", "columns")
    for each in found:
        kind = Text("public: exact and free") if each.public else Text("private")
        names = ", ".join(field.name for field in each.fields)
        grid.add_row(_name(each.name), kind, Text(each.unit or ""), Text(printable(names), style="dim"))
    return Group(grid, Text("\\d TABLE shows types, bounds and values.", style="dim"))


def table(found: Table) -> RenderableType:
    """One table's columns, and what their declarations mean for a statement."""
    grid = _grid("column", "type", "NULL", "bounds or values", "remark")
    for field in found.fields:
        grid.add_row(
            _name(field.name),
            Text(field.type),
            Text("yes" if field.nullable else ""),
            Text(printable(field.bounds)),
            Text(_remark(field, found), style="dim"),
        )
    return Group(grid, Text(_words(found), style="dim"))


def _remark(field: Field, found: Table) -> str:
    if field.is_unit:
        return "privacy unit"
    if field.refers_to is not None:
        return f"refers to {printable(field.refers_to)}"
    unbounded = not (field.bounds or found.public or field.type in ("text", "boolean"))
    return "no bounds" if unbounded else ""


def _words(found: Table) -> str:
    if found.public:
        return "A public table: its rows are answered exactly, and free."
    return (
        "A private table: aggregates only, with noise. Columns with bounds can be summed and averaged. GROUP BY "
        "columns with values or whole-number bounds shows every group; by others, only groups of enough units."
    )


# --- the budget ----------------------------------------------------------------------------------------------------


def budget(accounts: Sequence[Account], price: Price | None, user: str) -> RenderableType:
    """A gauge for each budget, and how many statements fit into the smaller one."""
    if not accounts:
        return Text("You have no budget: public tables only.")
    grid = Grid.grid(padding=(0, 2))
    for account in accounts:
        spent = f"{account.share_spent:.1%} spent"
        left = f"epsilon {account.epsilon_left:.4g} of {account.epsilon:g} left"
        name = "you" if account.whose == user else "dataset"
        grid.add_row(Text(name, style="bold"), _gauge(account.share_spent), Text(f"{spent}, {left}{_window(account)}"))
    lines: list[RenderableType] = [grid]
    if price is not None and not price.free:
        lines.append(Text(_fitting(price, accounts)))
    if any(account.zcdp for account in accounts):
        lines.append(Text(_ZCDP, style="dim"))
    return Group(*lines)


_ZCDP = (
    "`left` is the largest single statement that fits. Losses add up more slowly than their epsilons, so many "
    "small statements fit where one large one would."
)


def _window(account: Account) -> str:
    return f", {account.window}" if account.window else ""


def _gauge(share: float) -> Text:
    full = round(share * GAUGE)
    if share > 0:
        full = max(full, 1)
    style = "green" if share < 0.7 else "yellow" if share < 0.9 else "red"
    return Text.assemble(("█" * full, style), ("░" * (GAUGE - full), "dim"))


def _fitting(price: Price, accounts: Sequence[Account]) -> str:
    count = min(account.statements(price) for account in accounts)
    many = "No statement" if count == 0 else "1 statement" if count == 1 else f"{count} statements"
    return f"{many} of epsilon {price.epsilon:g} still fit{'s' if count < 2 else ''}."


def epsilon(price: Price, accounts: Sequence[Account]) -> RenderableType:
    """What statements cost under the settings as they are."""
    tail = f" {_fitting(price, accounts)}" if accounts else ""
    return Text(f"A statement costs epsilon {price.epsilon:g}.{tail}")


def greeting(version: str, dataset: str, user: str, price: Price | None, accounts: Sequence[Account]) -> RenderableType:
    """The first lines of an interactive session."""
    head = Text.assemble((f"dpsql {version}", "bold"), f" · {dataset} as {user}")
    left = _fitting(price, accounts) if price is not None and accounts else "Public tables only: you have no budget."
    return Group(head, Text(left), Text("\\d lists tables, \\help commands; a statement ends with a ;", style="dim"))


def toolbar(accounts: Sequence[Account], usual: float, user: str) -> str:
    """The line below the prompt."""
    own = next((account for account in accounts if account.whose == user), None)
    if own is None:
        return f" {user} · public tables only"
    left = f"epsilon {own.epsilon_left:.4g} of {own.epsilon:g} left"
    return f" {user} · {left} · a statement: epsilon {usual:g} · \\help"


# --- the rest ------------------------------------------------------------------------------------------------------


def history(asked: Sequence[Asked], width: int) -> RenderableType:
    """Numbers, prices and statements, each on one line."""
    if not asked:
        return Text("Nothing has been asked yet.")
    grid = _grid("#", "price", "statement")
    for number, each in enumerate(asked, 1):
        line = " ".join(each.statement.split())
        grid.add_row(Text(str(number)), Text(each.price), Text(printable(line)))
    return grid


def options(values: Options) -> RenderableType:
    """The shell's options with their values."""
    grid = _grid("option", "value", "meaning")
    switches = {True: "on", False: "off"}
    grid.add_row("chart", switches[values.chart], "bars below grouped results")
    grid.add_row("confirm", switches[values.confirm], "ask before an expensive statement")
    grid.add_row("rows", str(values.rows), "the most rows that are shown; 0 is all")
    grid.add_row("timing", switches[values.timing], "show how long statements take")
    grid.add_row("x", values.x, "blocks instead of a table: on, off, auto")
    return grid


def help_page(commands: Sequence[tuple[str, str]]) -> RenderableType:
    """What there is to type."""
    grid = Grid.grid(padding=(0, 2))
    grid.add_column(no_wrap=True, style="bold")
    grid.add_column(overflow="fold")
    for usage, meaning in commands:
        grid.add_row(Text(usage), Text(meaning))
    keys = (
        "SQL may take several lines and ends with a semicolon. Tab completes, ↑ finds earlier statements, Ctrl-R "
        "searches them, Ctrl-C stops a statement or clears the line."
    )
    return Group(grid, Text(keys, style="dim"))
