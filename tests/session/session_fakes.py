"""A session over a fake engine and a real public server: answers are canned, calls are counted."""

from __future__ import annotations

import atexit
import shutil
import tempfile
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from functools import cache
from pathlib import Path
from typing import Literal

from dpsql.errors import UNDEFINED_TABLE, Rejected
from dpsql.pgwire import messages as m
from dpsql.pgwire.backend import messages
from dpsql.policy.model import Budget, Policy, Privacy, Role, Table, User
from dpsql.policy.schema import Schema, SchemaColumn, SchemaTable
from dpsql.public.place import Names, Place
from dpsql.public.server import open_public
from dpsql.session.ports import (
    Answer,
    CancelToken,
    Description,
    Parameters,
    Settings,
)
from dpsql.session.session import Session
from dpsql.types import INT8, TEXT, Again, Column, Relation, SqlType, Value

COLUMNS = (Column("city", TEXT), Column("n", INT8))
ROWS: tuple[tuple[Value, ...], ...] = tuple((f"city{n}", n) for n in range(1, 8))


def _schema(folder: Path) -> Schema:
    """No tables but a private one, t; alice sees it."""
    policy = Policy(
        dataset="demo",
        backend="duckdb:demo.duckdb",
        ledger=f"sqlite:{folder / 'demo.ledger'}",
        privacy=Privacy("person", 1000, Budget(Decimal(1), Decimal("1e-6"))),
        tables={"t": Table(unit="uid")},
        path=folder / "demo.yaml",
        roles={"analyst": Role()},
        users={"alice": User("analyst")},
    )
    return Schema(policy, {"t": SchemaTable("t", False, (SchemaColumn("uid", INT8),), unit="uid")}, INT8)


@cache
def place() -> Place:
    """Where alice's sessions live: a public server of these tests' own, for as long as the process."""
    folder = Path(tempfile.mkdtemp(prefix="dpsql-test-"))
    folder.chmod(0o711)
    server = open_public(_schema(folder))

    def end() -> None:
        server.close()
        shutil.rmtree(folder, ignore_errors=True)

    atexit.register(end)
    return Place(str(server.socket), server.database_of("alice"), server.role_of("alice"))


@dataclass
class FakeEngine:
    """`calls` holds the texts answered; a text that names `missing` is refused, one that names `broken` crashes."""

    rows: tuple[tuple[Value, ...], ...] = ROWS
    calls: list[tuple[str, Settings, Parameters]] = field(default_factory=list)
    described: int = 0
    tokens: list[CancelToken] = field(default_factory=list)
    recalls: list[str] = field(default_factory=list)
    serial: int = 1

    statement_timeout: float = 30.0

    def place(self, user: str) -> Place:
        return place()

    def names(self, user: str) -> Names:
        return Names(frozenset(("t",)))

    def check(
        self, user: str, text: str, offset: int, settings: Settings, parameters: Parameters, cancel: CancelToken
    ) -> None:
        self._check(text, offset)

    def describe(
        self,
        user: str,
        text: str,
        offset: int,
        settings: Settings,
        parameter_types: tuple[SqlType | None, ...],
        cancel: CancelToken,
    ) -> Description:
        self.described += 1
        self._check(text, offset)
        wanted = text.count("$")
        inferred = tuple((parameter_types[n] if n < len(parameter_types) else None) or TEXT for n in range(wanted))
        return Description(inferred, COLUMNS)

    def answer(
        self, user: str, text: str, offset: int, settings: Settings, parameters: Parameters, cancel: CancelToken
    ) -> Answer:
        self._check(text, offset)
        self.calls.append((text, settings, parameters))
        self.tokens.append(cancel)
        if "broken" in text:
            raise ValueError("secret value 4711")
        again = None if "fresh" in text else Again(self.serial, ("replay",), 1)
        return Answer(Relation(COLUMNS, self.rows), ("price 1",), again)

    def _check(self, text: str, offset: int) -> None:
        if "missing" in text:
            position = offset + text.index("missing") + 1
            raise Rejected('relation "missing" does not exist', sqlstate=UNDEFINED_TABLE, position=position)

    def explain(
        self,
        user: str,
        text: str,
        offset: int,
        settings: Settings,
        parameters: Parameters,
        format: Literal["text", "json"],
        cancel: CancelToken,
    ) -> Relation:
        return Relation((Column("QUERY PLAN", TEXT),), ((f'"plan as {format}"',),))

    def recalled(self, user: str, text: str, again: Again) -> bool:
        self.recalls.append(text)
        return again.serial == self.serial

    def check_settings(self, user: str, settings: Settings) -> None:
        if settings.epsilon is not None and settings.epsilon > 100:
            raise Rejected("epsilon is above the 100 that a statement of yours may cost", sqlstate="22023")

    def budget(self, user: str) -> Relation:
        return Relation((Column("user", TEXT), Column("left", TEXT)), ((user, "14"),))

    def system_relations(self, user: str) -> Mapping[str, Callable[[], Relation]]:
        return {"dpsql.budget": lambda: self.budget(user)}


@dataclass
class Client:
    """Drives a session and reads its replies in short words."""

    engine: FakeEngine = field(default_factory=FakeEngine)
    parameters: Iterable[tuple[str, str]] = ()

    def __post_init__(self) -> None:
        self.session = Session(self.engine, "alice", self.parameters)

    def __del__(self) -> None:
        if hasattr(self, "session"):
            self.session.close()

    def send(self, *events: m.SessionMessage) -> list[m.BackendMessage]:
        return [reply for event in events for reply in messages(self.session.handle(event))]

    def query(self, text: str) -> list[str]:
        return words(self.send(m.Query(text)))

    def rows(self, text: str) -> list[tuple[bytes | None, ...]]:
        return [reply.values for reply in self.send(m.Query(text)) if isinstance(reply, m.DataRow)]

    def value(self, text: str) -> str:
        cell = self.rows(text)[0][0]
        return "" if cell is None else cell.decode()


def words(replies: Iterable[m.BackendMessage]) -> list[str]:
    """Replies as words: rows as `row`, errors by SQLSTATE, command tags in quotes, readiness by its status."""
    return [_word(reply) for reply in replies]


def _word(reply: m.BackendMessage) -> str:
    match reply:
        case m.DataRow():
            return "row"
        case m.RowDescription(fields):
            return f"fields {len(fields)}"
        case m.CommandComplete(tag):
            return f"'{tag}'"
        case m.ReadyForQuery(status):
            return f"ready {status}"
        case m.ErrorResponse(_, sqlstate):
            return f"error {sqlstate}"
        case m.NoticeResponse(severity):
            return severity.lower()
        case m.ParameterStatus(name, value):
            return f"{name}={value}"
        case _:
            return type(reply).__name__
