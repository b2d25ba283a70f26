"""The databases that hold the private data. Only here do exact numbers enter the proxy, as `ExactCells`.

Decides what every backend must offer and how a URL becomes one. A backend runs SQL that the compiler emitted, never a
client's text; it raises `Failed` for whatever goes wrong, with the exception's class as its whole cause, since both
engines quote data values in their messages.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Literal, Protocol

from dpsql.errors import BAD_PARAMETER, NOT_SUPPORTED, Rejected
from dpsql.policy.outline import Listing
from dpsql.types import Column, ExactCells, Relation, TableFacts, TableName

Dialect = Literal["duckdb", "postgres"]


class Cancel(Protocol):
    """A client's wish to stop: while the block runs, cancelling calls `interrupt` from any thread."""

    def interrupting(self, interrupt: Callable[[], None]) -> AbstractContextManager[None]: ...


class Backend(Protocol):
    """One database. Safe to use from several threads at once."""

    @property
    def dialect(self) -> Dialect: ...

    @property
    def immutable(self) -> bool:
        """Whether the data cannot change while the backend is open, so that a check at start stays true."""
        ...

    def listing(self) -> Listing:
        """All tables and views of all schemas but the database's own, and the foreign keys between them."""
        ...

    def facts(self, tables: Sequence[TableName]) -> Mapping[TableName, TableFacts]:
        """What the catalog says of these tables; a table that does not exist has no entry."""
        ...

    def verify_unique(self, table: TableName, columns: Sequence[str]) -> bool:
        """Whether the columns hold no NULL and no row twice. Always False where the data may change."""
        ...

    def public_rows(self, table: TableName) -> Relation:
        """All rows of a public table, in the order of its columns."""
        ...

    def public_lines(self, table: TableName, columns: Sequence[Column]) -> Iterator[bytes]:
        """All rows of a public table as lines of Postgres's COPY in text format, some thousands at a time.

        Raises Failed, or Rejected where the table cannot be read.
        """
        ...

    def public_mark(self, table: TableName) -> str | None:
        """Another text whenever the table's rows may be others; None where nothing tells."""
        ...

    def fetch(self, sql: str, key_columns: int, timeout: float, cancel: Cancel | None = None) -> ExactCells:
        """Runs one emitted query. The first `key_columns` columns are keys, the others bigints.

        Raises Failed (58000; 57014 after `timeout` seconds), and Rejected 57014 if `cancel` came first.
        """
        ...

    def close(self) -> None: ...


def open_backend(url: str, timezone: str, sharers: int = 1) -> Backend:
    """The backend at `url` (`duckdb:FILE`, `postgresql://...`), read only. Raises Rejected if it cannot be opened.

    `sharers`: processes that share this machine's cores and have it open alike.
    """
    scheme, _, rest = url.partition(":")
    if scheme == "duckdb":
        from dpsql.backends.duckdb import DuckdbBackend

        return DuckdbBackend(rest, timezone, sharers)
    if scheme in ("postgresql", "postgres"):
        return _postgres(url, timezone)
    if scheme == "spark":
        raise Rejected("The Spark backend does not exist yet.", sqlstate=NOT_SUPPORTED, hint="Use DuckDB or Postgres.")
    raise Rejected(
        "The backend's URL is of no known kind.", sqlstate=BAD_PARAMETER, hint="Write duckdb:FILE or postgresql://..."
    )


def _postgres(url: str, timezone: str) -> Backend:
    try:
        from dpsql.backends.postgres import PostgresBackend
    except ImportError:
        raise Rejected(
            "The Postgres backend needs psycopg.",
            sqlstate=NOT_SUPPORTED,
            hint="Install it with: pip install 'dpsql[postgres]'",
        ) from None
    return PostgresBackend(url, timezone)
