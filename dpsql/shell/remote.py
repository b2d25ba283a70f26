"""A connection to a served proxy, over libpq.

Passwords come from the URL, PGPASSWORD or ~/.pgpass, as libpq looks for them; where it finds none and the server wants
one, `ask_password` is called once. A password is kept in memory only, for connecting again.
"""

from __future__ import annotations

import contextlib
import importlib.util
from collections.abc import Callable

from dpsql.errors import INTERNAL, UNDEFINED_OBJECT, DpsqlError, Rejected
from dpsql.pgwire.values import WireValue, decode_value, type_of
from dpsql.shell.connection import Lost
from dpsql.shell.results import Result
from dpsql.types import TEXT, SqlType

if importlib.util.find_spec("psycopg") is not None:
    import psycopg
    from psycopg import pq
    from psycopg.conninfo import make_conninfo

CANCEL_SECONDS = 5.0
CONNECT_SECONDS = 10


class Remote:
    """The shell's connection to a URL. Raises Lost where it cannot connect."""

    def __init__(self, url: str, user: str | None, ask_password: Callable[[str], str] | None) -> None:
        if importlib.util.find_spec("psycopg") is None:
            hint = "Install it with: pip install 'dpsql[postgres]'"
            raise Rejected("The package psycopg, which connects to URLs, is missing.", sqlstate=INTERNAL, hint=hint)
        self._url = url
        self._options: dict[str, str] = {} if user is None else {"user": user}
        self._ask_password = ask_password
        self._notices: list[str] = []
        self._connection = self._connected()
        self.user = self._connection.info.user
        self.dataset = self._connection.info.dbname

    def _connected(self) -> psycopg.Connection:
        try:
            made = self._attempt()
        except psycopg.OperationalError as error:
            needs = error.pgconn is not None and error.pgconn.needs_password
            if not needs or self._ask_password is None or "password" in self._options:
                raise _no_connection(error) from None
            user = (error.pgconn.user if error.pgconn is not None else b"").decode()
            self._options["password"] = self._ask_password(user)
            try:
                made = self._attempt()
            except psycopg.OperationalError as second:
                raise _no_connection(second) from None
        except psycopg.Error as error:
            raise Rejected(f"This is no connection URL: {_first_line(error)}", sqlstate=UNDEFINED_OBJECT) from None
        made.add_notice_handler(lambda diagnostic: self._notices.append(diagnostic.message_primary or ""))
        return made

    def _attempt(self) -> psycopg.Connection:
        given: dict[str, str | int] = {
            "connect_timeout": CONNECT_SECONDS,
            "application_name": "dpsql shell",
            **self._options,
        }
        return psycopg.connect(make_conninfo(self._url, **given), autocommit=True, prepare_threshold=None)

    def run(self, statement: str) -> Result:
        self._notices.clear()
        if self._connection.closed:
            raise Lost("The connection is closed.")
        try:
            with self._connection.cursor() as cursor:
                if statement.lstrip()[:4].lower() == "copy":
                    return self._copied(cursor, statement)
                cursor.execute(statement.encode())
                return self._result(cursor)
        except psycopg.Error as error:
            raise self._error(error) from None

    def _result(self, cursor: psycopg.Cursor) -> Result:
        found = cursor.pgresult
        if found is None:
            return Result((), (), "", tuple(self._notices))
        places = range(found.nfields)
        names = tuple((found.fname(i) or b"").decode() for i in places)
        types = tuple(_type(found.ftype(i)) for i in places)
        rows = tuple(tuple(_value(found, row, i, types[i]) for i in places) for row in range(found.ntuples))
        return Result(names, rows, cursor.statusmessage or "", tuple(self._notices), types)

    def _copied(self, cursor: psycopg.Cursor, statement: str) -> Result:
        with cursor.copy(statement.encode()) as copy:
            data = b"".join(bytes(part) for part in copy)
        return Result((), (), cursor.statusmessage or "COPY", tuple(self._notices), (), data)

    def _error(self, error: psycopg.Error) -> DpsqlError:
        diagnostic = error.diag
        message = diagnostic.message_primary or _first_line(error)
        if self._connection.broken or self._connection.closed:
            return Lost(f"The connection is lost: {message}.".replace("..", "."))
        position = diagnostic.statement_position
        return Rejected(
            message,
            sqlstate=diagnostic.sqlstate or INTERNAL,
            hint=diagnostic.message_hint,
            detail=diagnostic.message_detail,
            position=int(position) if position else None,
        )

    def cancel(self) -> None:
        # Where even this fails, the statement goes on, and says so by its answer.
        with contextlib.suppress(psycopg.Error):
            self._connection.cancel_safe(timeout=CANCEL_SECONDS)

    def reopen(self) -> None:
        self.close()
        self._connection = self._connected()

    def close(self) -> None:
        with contextlib.suppress(psycopg.Error):
            self._connection.close()


def _type(oid: int) -> SqlType:
    try:
        return type_of(oid)
    except Rejected:
        return TEXT


def _value(found: pq.abc.PGresult, row: int, column: int, type_: SqlType) -> WireValue:
    data = found.get_value(row, column)
    return None if data is None else decode_value(bytes(data), type_)


def _no_connection(error: psycopg.Error) -> Lost:
    return Lost(f"No connection: {_first_line(error)}", "Is the proxy running there, and are user and password right?")


def _first_line(error: psycopg.Error) -> str:
    """The last part of libpq's message, which names the reason, on one line."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    text = lines[0].rpartition("FATAL:")[2].strip() if lines else type(error).__name__
    return text.removeprefix("connection failed: ").removeprefix("connection is bad: ")
