"""Prepared statements, and portals: statements bound to parameters, with their rows once they have run.

Decides names, limits and lifetimes. A portal runs its statement at most once, whatever is fetched from it afterwards,
so one debit and one draw of noise serve all its rows.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from dpsql.compiler.kinds import Statement
from dpsql.errors import Rejected
from dpsql.session.ports import WireParameters
from dpsql.types import Again, Column, Kind, Relation, SqlType

UNKNOWN_STATEMENT = "26000"
UNKNOWN_CURSOR = "34000"
DUPLICATE_STATEMENT = "42P05"
DUPLICATE_CURSOR = "42P03"
LIMIT_EXCEEDED = "54000"

OUT_OF_MEMORY = "53200"

MAX_STATEMENTS = 500
MAX_PORTALS = 100
MAX_HELD = 64 << 20
"""Bytes of rows, about, that a session's portals hold together; one alone may hold a whole answer."""
_ROW, _CELL = 64, 56
"""Bytes of a row, and of a value that is no text."""


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
    held: int = 0

    def finish(self) -> None:
        """Lets the rows of a portal go that has given its last."""
        if not self.cursor and self.result is not None and self.result.relation is not None:
            self.result = replace(self.result, relation=Relation(self.result.relation.columns, ()))
            self.position = self.held = 0


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

    def hold(self, portal: Portal, result: Result) -> None:
        """Keeps rows for later. Raises Rejected 53200 where this session's other portals leave no room for them."""
        portal.result, portal.held = result, _size(result.relation)
        others = sum(other.held for other in self.by_name.values() if other is not portal)
        if others and others + portal.held > MAX_HELD:
            portal.result, portal.held = None, 0
            raise Rejected(
                f"the open cursors of this session hold more than {MAX_HELD >> 20} MiB of rows",
                sqlstate=OUT_OF_MEMORY,
                hint="CLOSE some, then ask again: the answer is stored, and free.",
            )

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


def _size(relation: Relation | None) -> int:
    """About the bytes that a relation takes."""
    if relation is None:
        return 0
    fixed = len(relation.rows) * (_ROW + _CELL * len(relation.columns))
    texts = [at for at, column in enumerate(relation.columns) if column.type.kind in _TEXTS]
    return fixed + sum(len(cell) for row in relation.rows for at in texts if isinstance(cell := row[at], str | bytes))


_TEXTS = frozenset((Kind.TEXT, Kind.VARCHAR, Kind.NAME, Kind.JSON, Kind.BYTEA, Kind.UNKNOWN))
