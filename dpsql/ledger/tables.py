"""The SQLite file: its tables, its settings, and how it is opened and made.

Decides what makes a file a ledger. Opening must never create, migrate or repair one, and must never go on with a
setting that SQLite did not take: durability that was only asked for is none.
"""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Final
from urllib.parse import quote

from dpsql.ledger.migrations import LAYOUT, STEPS, require_layout, steps
from dpsql.ledger.model import LedgerDamaged, LedgerError, LedgerUnavailable
from dpsql.ledger.rows import Rows

APPLICATION_ID: Final = 0x6470736C  # "dpsl"

_TABLES: Final = f"""
CREATE TABLE entry (
  id INTEGER PRIMARY KEY,
  at INTEGER NOT NULL,
  clock TEXT NOT NULL,
  kind TEXT NOT NULL,
  user TEXT NOT NULL,
  account TEXT NOT NULL,
  "window" TEXT NOT NULL,
  key TEXT NOT NULL,
  statement TEXT NOT NULL,
  reservation INTEGER NOT NULL,
  gate TEXT NOT NULL,
  epsilon TEXT NOT NULL,
  rho TEXT NOT NULL,
  delta TEXT NOT NULL,
  account_epsilon TEXT NOT NULL,
  account_rho TEXT NOT NULL,
  account_delta TEXT NOT NULL,
  dataset_epsilon TEXT NOT NULL,
  dataset_rho TEXT NOT NULL,
  dataset_delta TEXT NOT NULL,
  content TEXT NOT NULL,
  hash TEXT NOT NULL
);
CREATE INDEX entry_about ON entry (reservation, kind, account) WHERE reservation > 0;
CREATE INDEX entry_account ON entry (account, at) WHERE kind IN ('debit', 'view');
CREATE INDEX entry_user ON entry ("user");
CREATE TABLE release (reservation INTEGER PRIMARY KEY, key TEXT NOT NULL, body BLOB NOT NULL);
CREATE INDEX release_key ON release (key, reservation);
CREATE TABLE checkpoint (entry INTEGER PRIMARY KEY, body BLOB NOT NULL);
{";".join(STEPS[1])};
CREATE TRIGGER entry_kept BEFORE DELETE ON entry BEGIN SELECT RAISE(ABORT, 'append-only'); END;
CREATE TRIGGER entry_fixed BEFORE UPDATE ON entry BEGIN SELECT RAISE(ABORT, 'append-only'); END;
CREATE TRIGGER release_kept BEFORE DELETE ON release BEGIN SELECT RAISE(ABORT, 'append-only'); END;
CREATE TRIGGER release_fixed BEFORE UPDATE ON release BEGIN SELECT RAISE(ABORT, 'append-only'); END;
PRAGMA application_id = {APPLICATION_ID};
PRAGMA user_version = {LAYOUT};
"""

_SETTINGS: Final[tuple[tuple[str, str, object], ...]] = (
    ("journal_mode", "WAL", "wal"),
    ("synchronous", "FULL", 2),
    ("fullfsync", "ON", 1),
    ("checkpoint_fullfsync", "ON", 1),
    ("cell_size_check", "ON", 1),
    ("trusted_schema", "OFF", 0),
    ("wal_autocheckpoint", "0", 0),  # see dpsql.ledger.folding
)
_OPENING_TIMEOUT: Final = 10.0

_REASONS: Final = {
    "SQLITE_FULL": "the disk is full",
    "SQLITE_READONLY": "it is read-only",
    "SQLITE_CANTOPEN": "it or its directory is not accessible",
    "SQLITE_PERM": "permission denied",
    "SQLITE_CORRUPT": "the file is damaged",
    "SQLITE_NOTADB": "the file is damaged or no ledger",
    "SQLITE_BUSY": "another program keeps it locked",
    "SQLITE_LOCKED": "another program keeps it locked",
    "SQLITE_IOERR": "the disk reported an error",
}

_PROVEN: Final = ("SQLITE_CORRUPT", "SQLITE_NOTADB", "SQLITE_CONSTRAINT", "SQLITE_MISMATCH", "SQLITE_ERROR")
"""What SQLite says of a file that holds what no ledger does; all else (a lock, no room, no descriptor) may pass."""


def rows_of(connection: sqlite3.Connection) -> Rows:
    """The tables, within the connection's transaction."""
    return Rows(connection.execute)


FAULTS: Final = (sqlite3.Error, UnicodeDecodeError)
"""What SQLite may raise: of a damaged file, even the text of an error may be unreadable."""


def reason(error: Exception) -> str:
    """Why SQLite failed, in our words: its own may quote what is stored."""
    name: str = getattr(error, "sqlite_errorname", None) or "unreadable"
    for prefix, words in _REASONS.items():
        if name.startswith(prefix):
            return words
    return f"its content is not readable ({name})"


def is_transient(error: Exception) -> bool:
    """Whether SQLite's error says nothing about what the file holds."""
    name: str = getattr(error, "sqlite_errorname", None) or ""
    return name != "" and not name.startswith(_PROVEN)


def connect(path: Path) -> sqlite3.Connection:
    """Open an existing ledger with every setting read back. Raises LedgerError, also for a file that is none."""
    connection = _connect(path)
    try:
        require_layout(_pragma(connection, "user_version"), str(path))
    except BaseException:
        connection.close()
        raise
    return connection


def _connect(path: Path) -> sqlite3.Connection:
    _require_file(path)
    try:
        connection = sqlite3.connect(
            f"file:{quote(str(path))}?mode=rw",
            uri=True,
            timeout=_OPENING_TIMEOUT,
            isolation_level=None,
            check_same_thread=False,
        )
    except sqlite3.Error as error:
        raise _unopened(path, error) from None
    try:
        _check_identity(connection, path)
        _configure(connection, path)
    except FAULTS as error:
        connection.close()
        raise _unopened(path, error) from None
    except LedgerError:
        connection.close()
        raise
    return connection


def _unopened(path: Path, error: Exception) -> LedgerError:
    kind = LedgerUnavailable if is_transient(error) else LedgerDamaged
    return kind(f"the ledger {path} cannot be opened: {reason(error)}")


def _require_file(path: Path) -> None:
    try:
        present = path.is_file()
    except OSError as error:
        raise LedgerUnavailable(f"the ledger {path} cannot be opened: {error.strerror}") from None
    if not present:
        raise LedgerError(
            f"there is no ledger at {path}",
            hint="For a new dataset run `dpsql ledger init`; otherwise restore the ledger from a backup.",
        )


def _check_identity(connection: sqlite3.Connection, path: Path) -> None:
    if _pragma(connection, "application_id") != APPLICATION_ID:
        raise LedgerDamaged(f"{path} is empty or not a dpsql ledger", hint="Restore the ledger from a backup.")


def _configure(connection: sqlite3.Connection, path: Path) -> None:
    for name, value, expected in _SETTINGS:
        connection.execute(f"PRAGMA {name} = {value}").fetchall()
        if _pragma(connection, name) != expected:
            raise LedgerError(f"SQLite does not keep {name} = {value} for {path}: the ledger would not be durable")


def _pragma(connection: sqlite3.Connection, name: str) -> object:
    row = connection.execute(f"PRAGMA {name}").fetchone()
    return row[0] if row else None


def build(path: Path, fill: Callable[[Rows], None]) -> None:
    """Make a new ledger with what `fill` adds; whole or not at all, and never over an existing file."""
    draft = path.with_name(f".{path.name}.{os.getpid()}.new")
    try:
        os.close(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600))
        _fill(draft, fill)
        os.link(draft, path)
        sync_directory(path.parent)
    except FileExistsError:
        raise LedgerError(f"{path} exists already; a ledger is never made anew") from None
    except OSError as error:
        raise LedgerError(f"the ledger {path} cannot be made: {error.strerror}") from None
    except sqlite3.Error as error:
        raise LedgerError(f"the ledger {path} cannot be made: {reason(error)}") from None
    finally:
        draft.unlink(missing_ok=True)


def _fill(draft: Path, fill: Callable[[Rows], None]) -> None:
    connection = sqlite3.connect(draft, isolation_level=None)
    try:
        _configure(connection, draft)
        connection.executescript(f"BEGIN; {_TABLES}")
        fill(rows_of(connection))
        connection.execute("COMMIT")
    finally:
        connection.close()


def sync_directory(directory: Path) -> None:
    """Make names in a directory durable."""
    file = os.open(directory, os.O_RDONLY)
    try:
        os.fsync(file)
    finally:
        os.close(file)


def migrate(path: Path) -> tuple[int, int]:
    """Bring an older file to this version's layout in one transaction, and verify that the chain is untouched."""
    with closing(_connect(path)) as connection:
        try:
            connection.execute("BEGIN IMMEDIATE")
            version = int(str(_pragma(connection, "user_version")))
            for step in steps(version, str(path)):
                for statement in step:
                    connection.execute(statement)
            connection.execute(f"PRAGMA user_version = {LAYOUT}")
            connection.execute("COMMIT")
        except FAULTS as error:
            raise LedgerError(f"the ledger {path} cannot be migrated: {reason(error)}") from None
    return version, LAYOUT
