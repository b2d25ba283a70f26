"""Locked in-memory DuckDBs that run remainders.

An engine reads no file, loads no extension and changes no setting; its memory, rows and time are bounded. Relations are
loaded into the connection's own temporary tables and dropped when the statement ends. A pool must never see private
rows: its inputs are `Relation`s, which by construction are public.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from decimal import Decimal
from queue import Empty, LifoQueue

import duckdb

from dpsql.compiler.public import Remainder
from dpsql.compiler.public.storage import Digits, digits_of, duckdb_type
from dpsql.compiler.public.term import quote_name
from dpsql.errors import CANCELLED, OUT_OF_RANGE, Failed, Rejected
from dpsql.remainder.functions import decode_error, install
from dpsql.remainder.text_forms import float4
from dpsql.types import Column, Kind, Relation, Value

_SETTINGS = {"threads": "1", "enable_external_access": "false", "autoload_known_extensions": "false"}
_INTEGERS = {"INT16": "smallint", "INT32": "integer", "INT64": "bigint"}
_OUT_OF_MEMORY = "53200"


class Pool:
    """Engines for remainders, made on demand and kept. `public` relations are loaded once into each."""

    def __init__(
        self, public: Mapping[str, Relation] | None = None, memory: str = "256MB", max_rows: int = 1_000_000
    ) -> None:
        self._public = dict(public or {})
        self._memory = memory
        self._max_rows = max_rows
        self._idle: LifoQueue[duckdb.DuckDBPyConnection] = LifoQueue()

    def warm(self, engines: int = 1) -> None:
        """Makes engines ahead of the first statement."""
        for _ in range(engines):
            self._idle.put(self._open())

    def run(self, remainder: Remainder, inputs: Mapping[str, Relation], timeout: float) -> Relation:
        """The remainder over `inputs` (and the public relations). `timeout` in seconds.

        Raises Rejected for what Postgres would report (22012, 22003, ...), 57014 on timeout, 53200 and 54000 at the
        limits; Failed for anything else.
        """
        with self._engine() as engine:
            try:
                needed = [name for name in remainder.relations if name in inputs]
                for name in needed:
                    _load(engine, name, inputs[name])
                with _deadline(engine, timeout):
                    rows = engine.execute(remainder.sql).fetchmany(self._max_rows + 1)
            except duckdb.Error as error:
                raise _explain(error) from error
            finally:
                for name in needed:
                    engine.execute(f"DROP TABLE IF EXISTS temp.{quote_name(name)}")
        if len(rows) > self._max_rows:
            raise Rejected(f"the result has more than {self._max_rows} rows", sqlstate="54000")
        return Relation(remainder.columns, _given(rows, remainder.columns))

    def close(self) -> None:
        """Closes the idle engines."""
        while True:
            try:
                self._idle.get_nowait().close()
            except Empty:
                return

    @contextmanager
    def _engine(self) -> Iterator[duckdb.DuckDBPyConnection]:
        try:
            engine = self._idle.get_nowait()
        except Empty:
            engine = self._open()
        try:
            yield engine
        finally:
            self._idle.put(engine)

    def _open(self) -> duckdb.DuckDBPyConnection:
        engine = duckdb.connect(":memory:", config={**_SETTINGS, "memory_limit": self._memory})
        install(engine)
        for name, relation in self._public.items():
            _load(engine, name, relation, "TABLE")
        engine.execute("SET lock_configuration = true")
        return engine


@contextmanager
def _deadline(engine: duckdb.DuckDBPyConnection, timeout: float) -> Iterator[None]:
    timer = threading.Timer(timeout, engine.interrupt)
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()


def _load(engine: duckdb.DuckDBPyConnection, name: str, relation: Relation, kind: str = "TEMP TABLE") -> None:
    """The relation as a table, its columns kept as `storage` says."""
    forms = [digits_of(c.type) for c in relation.columns]
    types = [duckdb_type(c.type, f) for c, f in zip(relation.columns, forms, strict=True)]
    names = [quote_name(c.name) for c in relation.columns]
    columns = ", ".join(f"{n} {t}" for n, t in zip(names, types, strict=True))
    target = quote_name(name)
    engine.execute(f"CREATE {kind} {target} ({columns})")
    if relation.rows:
        values = ", ".join(f"unnest(CAST(? AS {t}[]))" for t in types)
        taken = [
            _kept(v, c, f) for v, c, f in zip(zip(*relation.rows, strict=True), relation.columns, forms, strict=True)
        ]
        engine.execute(f"INSERT INTO {target} SELECT {values}", taken)


def _kept(values: Sequence[Value], column: Column, digits: Digits | None) -> list[object]:
    """A column's values as DuckDB takes them."""
    if column.type.kind is Kind.TIMESTAMPTZ:
        return [v.astimezone(UTC).replace(tzinfo=None) if isinstance(v, datetime) else v for v in values]
    if column.type.kind is Kind.NUMERIC:
        return [None if v is None else f"{Decimal(v):f}" for v in values]  # type: ignore[arg-type]
    return list(values)


def _given(rows: Sequence[tuple[object, ...]], columns: Sequence[Column]) -> tuple[tuple[Value, ...], ...]:
    """DuckDB's rows as values."""
    makers = [_MAKERS.get(c.type.kind) for c in columns]
    if not any(makers):
        return tuple(rows)  # type: ignore[arg-type]
    return tuple(
        tuple(v if m is None or v is None else m(v) for m, v in zip(makers, row, strict=True))  # type: ignore[misc]
        for row in rows
    )


def _utc(value: object) -> object:
    return value.replace(tzinfo=UTC) if isinstance(value, datetime) else value


def _decimal(value: object) -> object:
    return value if isinstance(value, Decimal) else Decimal(str(value))


def _single(value: object) -> object:
    """The shortest double that means the same single: what a client would read from Postgres's text."""
    return float(float4(value)) if isinstance(value, float) else value


_MAKERS = {Kind.TIMESTAMPTZ: _utc, Kind.NUMERIC: _decimal, Kind.FLOAT4: _single}


def _explain(error: duckdb.Error) -> Rejected | Failed:
    """A DuckDB error as Postgres would report it. Inputs are public, but no engine text is passed on."""
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
    if "More than one row returned by a subquery" in text:
        return Rejected("more than one row returned by a subquery used as an expression", sqlstate="21000")
    return Failed(f"remainder: {type(error).__name__}")
