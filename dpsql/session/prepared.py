"""Prepared statements, and portals: statements bound to parameters, with their rows once they have run.

Decides names, limits and lifetimes. A portal runs its statement at most once, whatever is fetched from it afterwards,
so one debit and one draw of noise serve all its rows.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from dpsql.compiler.kinds import Statement
from dpsql.errors import Rejected
from dpsql.session.ports import WireParameters
from dpsql.types import Again, Column, Relation, SqlType

UNKNOWN_STATEMENT = "26000"
UNKNOWN_CURSOR = "34000"
DUPLICATE_STATEMENT = "42P05"
DUPLICATE_CURSOR = "42P03"
LIMIT_EXCEEDED = "54000"

MAX_STATEMENTS = 500
MAX_PORTALS = 100


@dataclass(frozen=True, slots=True)
class Result:
    """What running a statement gave. `relation` None: a command without rows, or the rows go out as COPY data.

    `verb` is the command tag; the number of rows sent is added to it if `counted`. `binary`: rows of a binary cursor,
    which a simple query gets in that form.
    """

    verb: str
    relation: Relation | None = None
    counted: bool = False
    notices: tuple[str, ...] = ()
    again: Again | None = None
    binary: bool = False


@dataclass(frozen=True, slots=True)
class Prepared:
    """A statement with its types. `columns` None: it returns no rows.

    `oids` are what ParameterDescription says: as declared, else those of the inferred types.
    """

    statement: Statement
    types: tuple[SqlType, ...] = ()
    oids: tuple[int, ...] = ()
    columns: tuple[Column, ...] | None = None


@dataclass(slots=True)
class Portal:
    """`position` counts rows from 1: 0 is before the first, total + 1 behind the last.

    `settled`: a held cursor whose transaction is over, so that no rollback removes it any more.
    """

    prepared: Prepared
    parameters: WireParameters = ()
    formats: tuple[int, ...] = ()
    cursor: bool = False
    hold: bool = False
    settled: bool = False
    scroll: bool | None = None
    binary: bool = False
    result: Result | None = None
    position: int = 0
    noticed: bool = False


@dataclass(slots=True)
class Statements:
    """Named statements of the wire and of PREPARE share one space; the unnamed one is ''."""

    by_name: dict[str, Prepared] = field(default_factory=dict)

    def add(self, name: str, prepared: Prepared) -> None:
        if name and name in self.by_name:
            raise Rejected(f'prepared statement "{name}" already exists', sqlstate=DUPLICATE_STATEMENT)
        if len(self.by_name) >= MAX_STATEMENTS and name not in self.by_name:
            raise Rejected(
                f"more than {MAX_STATEMENTS} prepared statements",
                sqlstate=LIMIT_EXCEEDED,
                hint="DEALLOCATE those that are no longer needed.",
            )
        self.by_name[name] = prepared

    def get(self, name: str) -> Prepared:
        prepared = self.by_name.get(name)
        if prepared is None:
            which = f'prepared statement "{name}"' if name else "unnamed prepared statement"
            raise Rejected(f"{which} does not exist", sqlstate=UNKNOWN_STATEMENT)
        return prepared


@dataclass(slots=True)
class Portals:
    """Portals of the wire and cursors of DECLARE share one space; the unnamed one is ''."""

    by_name: dict[str, Portal] = field(default_factory=dict)

    def add(self, name: str, portal: Portal) -> None:
        if name and name in self.by_name:
            raise Rejected(f'cursor "{name}" already exists', sqlstate=DUPLICATE_CURSOR)
        if len(self.by_name) >= MAX_PORTALS and name not in self.by_name:
            raise Rejected(f"more than {MAX_PORTALS} open cursors", sqlstate=LIMIT_EXCEEDED, hint="CLOSE some.")
        self.by_name[name] = portal

    def get(self, name: str) -> Portal:
        portal = self.by_name.get(name)
        if portal is None:
            what = "cursor" if name else "unnamed portal"
            raise Rejected(f'{what} "{name}" does not exist', sqlstate=UNKNOWN_CURSOR)
        return portal

    def all(self) -> tuple[Portal, ...]:
        return tuple(self.by_name.values())

    def keep(self, before: tuple[Portal, ...]) -> None:
        """Drops what a ROLLBACK TO SAVEPOINT undoes: cursors that were not there at the savepoint."""
        self.by_name = {
            name: portal for name, portal in self.by_name.items() if any(portal is known for known in before)
        }

    def end_of_transaction(self, keep_held: bool) -> None:
        """Held cursors outlive a commit; those opened in a transaction that rolls back do not."""
        self.by_name = {
            name: portal for name, portal in self.by_name.items() if portal.hold and (keep_held or portal.settled)
        }
        for portal in self.by_name.values():
            portal.settled = True
