"""Locked in-memory DuckDBs that run remainders.

An engine reads no file, loads no extension and changes no setting; its memory, rows and time are bounded. A statement's
relations travel with it as parameters, so an engine keeps nothing from one statement to the next but the public tables.
A pool must never see private rows: its inputs are `Relation`s, which by construction are public.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field
from queue import Empty, LifoQueue

import duckdb

from dpsql.backends import Cancel
from dpsql.compiler.public import Remainder
from dpsql.compiler.public.term import quote_name
from dpsql.errors import CANCELLED, OUT_OF_RANGE, TOO_COMPLEX, Failed, Rejected
from dpsql.remainder.deadlines import Watchdog
from dpsql.remainder.forms import as_select, as_table, given, readable
from dpsql.remainder.functions import decode_error, install
from dpsql.remainder.plain import passed_on
from dpsql.types import Column, Kind, Relation

_SETTINGS: dict[str, str] = {
    "threads": "1",
    "enable_external_access": "false",
    "autoload_known_extensions": "false",
    "autoinstall_known_extensions": "false",
    "python_enable_replacements": "false",
    "max_temp_directory_size": "0KB",
    "temp_directory": "",
}
_INTEGERS = {"INT16": "smallint", "INT32": "integer", "INT64": "bigint"}
_BAD_PATTERN = re.compile(
    r"Error: (missing \)|missing \]|unexpected \)|invalid escape|no argument for repetition|bad repetition|"
    r"invalid (character class|perl operator|named capture|group name|UTF-8|repetition)|missing argument|trailing \\)"
)
"""What RE2 says of a pattern that it cannot read."""
_LONG = frozenset((Kind.TEXT, Kind.VARCHAR, Kind.NAME, Kind.JSON, Kind.BYTEA, Kind.NUMERIC))
"""Kinds whose values may be of any length."""
_BATCH = 2_000
_OUT_OF_MEMORY, _TOO_MANY_ROWS = "53200", "54000"


@dataclass(frozen=True, slots=True)
class _Engine:
    """One DuckDB and the public tables it has loaded."""

    connection: duckdb.DuckDBPyConnection
    loaded: set[str] = field(default_factory=set)


class Pool:
    """Engines for remainders, made on demand and kept. `public` relations are loaded where they are first read."""

    def __init__(
        self,
        public: Mapping[str, Relation] | None = None,
        memory: str = "256MB",
        max_rows: int = 1_000_000,
        max_text: int = 256 << 20,
    ) -> None:
        self._public = dict(public or {})
        self._memory = memory
        self._max_rows = max_rows
        self._max_text = max_text
        self._idle: LifoQueue[_Engine] = LifoQueue()
        self._watchdog = Watchdog()

    def warm(self, engines: int = 1) -> None:
        """Makes engines ahead of the first statement; public tables are loaded when one reads them."""
        for _ in range(engines):
            self._idle.put(self._open())

    def run(
        self, remainder: Remainder, inputs: Mapping[str, Relation], timeout: float, cancel: Cancel | None = None
    ) -> Relation:
        """The remainder over `inputs`, then the public relations. `timeout` in seconds.

        Raises Rejected for what Postgres would report (22012, 22003, ...), 57014 on timeout or `cancel`, 53200 and
        54000 at the limits; Failed for anything else.
        """
        known = passed_on(remainder, inputs)
        if known is not None and len(known.rows) <= self._max_rows:
            return known
        with self._engine() as engine:
            for name in remainder.relations:
                if name not in inputs and name not in engine.loaded:
                    self._load(engine, name)
            sql, parameters = _with_inputs(remainder, inputs)
            interrupt = engine.connection.interrupt
            stoppable = cancel.interrupting(interrupt) if cancel is not None else nullcontext()
            with self._watchdog.watch(timeout, interrupt), stoppable:
                rows = self._fetched(engine.connection.execute(sql, parameters), remainder.columns)
        return Relation(remainder.columns, given(remainder.columns, rows))

    def _fetched(self, result: duckdb.DuckDBPyConnection, columns: tuple[Column, ...]) -> list[tuple[object, ...]]:
        """All rows, a part at a time: whether they are too many, or their texts too long, is known before all are."""
        places = [place for place, column in enumerate(columns) if column.type.kind in _LONG]
        rows: list[tuple[object, ...]] = []
        size = 0
        while batch := result.fetchmany(_BATCH):
            rows += batch
            size += sum(len(cell) for row in batch for place in places if isinstance(cell := row[place], str | bytes))
            if len(rows) > self._max_rows:
                raise Rejected(f"the result has more than {self._max_rows} rows", sqlstate=_TOO_MANY_ROWS)
            if size > self._max_text:
                hint = "Ask for fewer rows, or for shorter texts."
                raise Rejected(
                    f"the result's texts are longer than {self._max_text} bytes", sqlstate=_TOO_MANY_ROWS, hint=hint
                )
        return rows

    def close(self) -> None:
        """Closes the idle engines."""
        self._watchdog.close()
        while True:
            try:
                self._idle.get_nowait().connection.close()
            except Empty:
                return

    @contextmanager
    def _engine(self) -> Iterator[_Engine]:
        """An engine for one statement. One that failed in a way we do not know is not used again."""
        try:
            engine = self._idle.get_nowait()
        except Empty:
            engine = self._open()
        try:
            yield engine
        except duckdb.Error as error:
            refusal = explained(error)
            if isinstance(refusal, Failed):
                engine.connection.close()
            else:
                self._idle.put(engine)
            raise refusal from error
        except BaseException:
            engine.connection.close()
            raise
        self._idle.put(engine)

    def _open(self) -> _Engine:
        connection = duckdb.connect(":memory:", config={**_SETTINGS, "memory_limit": self._memory})
        install(connection)
        connection.execute("SET lock_configuration = true")
        return _Engine(connection)

    def _load(self, engine: _Engine, name: str) -> None:
        relation = self._public[name]
        select, parameters = as_select(relation)
        engine.connection.execute(as_table(name, relation))
        if relation.rows:
            engine.connection.execute(f"INSERT INTO {quote_name(name)} {select}", parameters)
        engine.loaded.add(name)


def _with_inputs(remainder: Remainder, inputs: Mapping[str, Relation]) -> tuple[str, list[list[object]]]:
    """The remainder with its relations in front, as parameters."""
    definitions, parameters = [], []
    for name in remainder.relations:
        if name in inputs:
            select, values = as_select(_read(inputs[name], remainder.sql))
            definitions.append(f"{quote_name(name)} AS ({select})")
            parameters += values
    asked = readable(remainder.sql, [column.type.kind is Kind.INTERVAL for column in remainder.columns])
    if not definitions:
        return asked, parameters
    head = "WITH " + ", ".join(definitions)
    more = asked.removeprefix("WITH ")
    return f"{head}{' ' if more == asked else ', '}{more}", parameters


def _read(relation: Relation, sql: str) -> Relation:
    """The relation's columns that the text may name, or one, for its rows: each is a parameter, and planned."""
    places = [i for i, column in enumerate(relation.columns) if quote_name(column.name) in sql] or [0]
    if len(places) == len(relation.columns):
        return relation
    rows = tuple(tuple(row[i] for i in places) for row in relation.rows)
    return Relation(tuple(relation.columns[i] for i in places), rows)


def explained(error: duckdb.Error) -> Rejected | Failed:
    """A DuckDB error as Postgres would report it. Rows are public here, but no engine's text is passed on."""
    text = str(error)
    ours = decode_error(text)
    if ours is not None:
        return ours
    if isinstance(error, duckdb.InterruptException):
        return Rejected("canceling statement due to statement timeout", sqlstate=CANCELLED)
    if isinstance(error, duckdb.OutOfMemoryException):
        return Rejected("the public part of this statement needs too much memory", sqlstate=_OUT_OF_MEMORY)
    if "Division by zero" in text:
        return Rejected("division by zero", sqlstate="22012")
    if isinstance(error, duckdb.OutOfRangeException | duckdb.ConversionException):
        kind = next((name for word, name in _INTEGERS.items() if word in text), "value")
        return Rejected(f"{kind} out of range", sqlstate=OUT_OF_RANGE)
    if _BAD_PATTERN.search(text):
        return Rejected("invalid regular expression", sqlstate="2201B")
    if "More than one row returned by a subquery" in text:
        return Rejected("more than one row returned by a subquery used as an expression", sqlstate="21000")
    if "expression depth limit" in text or "grouping set count" in text:
        return Rejected("the statement is too complex", sqlstate=TOO_COMPLEX)
    return Failed(f"remainder: {type(error).__name__}")
