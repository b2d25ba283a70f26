"""What the shell remembers between statements, and nothing of it on disk but the history of what was typed."""

from __future__ import annotations

from dataclasses import dataclass, field

from rich.console import Console

from dpsql.errors import Rejected
from dpsql.shell.connection import Connection
from dpsql.shell.prices import Account, Price, accounts, standard_price
from dpsql.shell.render import Expanded
from dpsql.shell.results import Result
from dpsql.shell.tables import Table, read_tables


@dataclass(slots=True)
class Options:
    """What `\\set` sets. `rows`: the most that are shown, 0 for all."""

    confirm: bool = True
    timing: bool = False
    chart: bool = False
    x: Expanded = "auto"
    rows: int = 100


@dataclass(frozen=True, slots=True)
class Asked:
    """A statement that was answered, with what it cost, in words."""

    statement: str
    price: str
    seconds: float


@dataclass(slots=True)
class State:
    """One run of the shell. `settings` are the SET statements to repeat in a new session after a lost connection.

    `usual` is the epsilon that a statement takes unless somebody says otherwise: the role's default, or what
    `\\epsilon` has set.
    """

    connection: Connection
    console: Console
    interactive: bool
    options: Options = field(default_factory=Options)
    tables: tuple[Table, ...] = ()
    settings: list[str] = field(default_factory=list)
    asked: list[Asked] = field(default_factory=list)
    last: Result | None = None
    last_statement: str = ""
    usual: float = 0.0
    broken: bool = False
    in_transaction: bool = False
    budgets: tuple[Account, ...] = ()

    def look_around(self) -> None:
        """Reads the tables, the role's price and the budget, as far as the user may; all of it is free."""
        self.tables = read_tables(self.connection)
        price = self.standard()
        self.usual = 0.0 if price is None else price.epsilon
        self.look_at_budget()

    def look_at_budget(self) -> None:
        try:
            self.budgets = accounts(self.connection)
        except Rejected:
            self.budgets = ()

    def standard(self) -> Price | None:
        """What a count costs under the settings as they are."""
        return standard_price(self.connection, [table.name for table in self.tables if not table.public])
