"""A public server that somebody else runs: `server: {public: postgresql://...}`, a Postgres 15 or newer.

Decides what of it is ours: databases with our mark in their comment, and the roles of the policy's users. Each role's
password follows from the URL, so that all processes of a policy know it and none has to be kept. What it must never
do: touch a database without the mark, or take over a role that has rights of its own.
"""

from __future__ import annotations

import hmac
import threading
from hashlib import sha256
from pathlib import Path

import psycopg
from psycopg import Connection
from psycopg.conninfo import conninfo_to_dict
from psycopg.rows import TupleRow
from psycopg.sql import SQL

from dpsql.errors import NOT_SUPPORTED, Rejected
from dpsql.policy.schema import Schema
from dpsql.public.build import MARK, connected, fill_beside
from dpsql.public.groups import Group, groups, role_of
from dpsql.public.load import PublicRows
from dpsql.public.shadow import literal, quoted
from dpsql.public.started import public_key

OLDEST = 150_000
_LOCK = 0x6470_7073


class ServerElsewhere:
    """As `dpsql.public.started.PublicServer`, over a server that is neither started nor stopped here."""

    pid: None = None

    def __init__(self, schema: Schema, rows: PublicRows, url: str) -> None:
        self._url, self._schema, self._rows = url, schema, rows
        self._groups = groups(schema)
        self._guard = threading.Lock()
        self._databases = {user: group.database for group in self._groups for user in group.users}
        self.key = ""
        self.version = ""
        with self._reached() as connection:
            self.host, self.port = connection.info.host, connection.info.port
            self.owner = connection.info.user
            self._make(connection)

    @property
    def socket(self) -> Path | None:
        """Where it listens on this machine; None: at `.host` and `.port`."""
        return Path(self.host) / f".s.PGSQL.{self.port}" if self.host.startswith("/") else None

    @property
    def database(self) -> str:
        return self._groups[0].database

    @property
    def address(self) -> str:
        return f"host={self.host} port={self.port}"

    def role_of(self, user: str) -> str:
        return role_of(user)

    def database_of(self, user: str) -> str:
        return self._databases[user]

    def password_of(self, user: str) -> str:
        return hmac.new(self._url.encode(), f"dpsql {role_of(user)}".encode(), sha256).hexdigest()

    def alive(self) -> bool:
        try:
            with connected(self._url) as connection:
                return connection.execute("SELECT 1").fetchone() is not None
        except psycopg.Error:
            return False

    def restart(self) -> None:
        """Makes ours again where it is gone, once the server answers."""
        with self._guard, self._reached() as connection:
            self._make(connection)

    def clients(self) -> int:
        """Nobody's affair: it is not ended here."""
        return 0

    def close(self) -> None:
        """What is there stays, for the next start."""

    def __enter__(self) -> ServerElsewhere:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    # --- inside ----------------------------------------------------------------------------------------------------

    def _reached(self) -> Connection[TupleRow]:
        try:
            connection = psycopg.connect(self._url, autocommit=True)
        except psycopg.Error:
            host = conninfo_to_dict(self._url).get("host", "localhost")
            raise _refused(f"The Postgres that `server: public` names, on {host}, does not let dpsql in.") from None
        found = connection.execute("SELECT rolsuper FROM pg_roles WHERE rolname = session_user").fetchone()
        if connection.info.server_version < OLDEST or found != (True,):
            connection.close()
            raise _refused("`server: public` has to name a Postgres 15 or newer, as a superuser.")
        self.version = str(connection.info.parameter_status("server_version"))
        return connection

    def _make(self, connection: Connection[TupleRow]) -> None:
        """One process at a time; the lock goes with the connection."""
        connection.execute("SELECT pg_advisory_lock(%s, hashtext(%s))", (_LOCK, self._schema.policy.dataset))
        self.key = public_key(self._schema, self._groups, self._rows, self.version)
        mark = f"{MARK} {self.key}"
        comments = [_comment(connection, group) for group in self._groups]
        for group, comment in zip(self._groups, comments, strict=True):
            if comment is not None and not comment.startswith(MARK):
                raise _refused(f"`server: public` has a database {group.database} that is not dpsql's.")
        if comments != [mark] * len(comments):
            self._refuse_others(connection)
            fill_beside(self._url, self._schema, self._groups, self._rows, mark)
        for user in self._schema.policy.users:
            password = literal(self.password_of(user))
            connection.execute(SQL(f"ALTER ROLE {quoted(role_of(user))} PASSWORD {password}"))

    def _refuse_others(self, connection: Connection[TupleRow]) -> None:
        """Roles that are there already must have no right of their own: another policy's users have none."""
        for user in self._schema.policy.users:
            found = connection.execute(_OWN_RIGHTS, (role_of(user),)).fetchone()
            if found is not None and found[0]:
                raise _refused(f"`server: public` has a role {role_of(user)} with rights of its own.")


_OWN_RIGHTS = """
SELECT r.rolsuper OR r.rolcreatedb OR r.rolcreaterole OR r.rolreplication OR r.rolbypassrls
    OR EXISTS (SELECT FROM pg_auth_members m JOIN pg_roles g ON g.oid = m.roleid
               WHERE m.member = r.oid AND (g.rolcanlogin OR g.rolname !~ '^dpsql_* .*~[0-9]+$'))
    OR EXISTS (SELECT FROM pg_shdepend d WHERE d.refclassid = 'pg_authid'::regclass AND d.refobjid = r.oid
               AND d.deptype IN ('o', 'a') AND d.classid <> 'pg_auth_members'::regclass)
FROM pg_roles r WHERE r.rolname = %s
"""


def _comment(connection: Connection[TupleRow], group: Group) -> str | None:
    """Of the group's database; None where there is no database, empty where it has none."""
    asked = "SELECT coalesce(shobj_description(oid, 'pg_database'), '') FROM pg_database WHERE datname = %s"
    found = connection.execute(asked, (group.database,)).fetchone()
    return None if found is None else str(found[0])


def _refused(message: str) -> Rejected:
    return Rejected(message, sqlstate=NOT_SUPPORTED, hint="Name a Postgres of its own, or leave `public` out.")
