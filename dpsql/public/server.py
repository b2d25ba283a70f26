"""Opens a policy's public server: the Postgres that the policy names, or one that is started.

To connect as a user: a startup message with `user` = `.role_of(user)` and `database` = `.database_of(user)`, on the
unix socket `.socket` or, where that is None, at the `host` and `port` of `.address`, which has both for libpq. Where
`.password_of(user)` is not None, the server asks for it (SCRAM). `.owner` is its superuser: never for a client's
session, and as such for cancelling and ending others' backends.
"""

from __future__ import annotations

from pathlib import Path
from typing import Protocol

from dpsql.policy.schema import Schema
from dpsql.public.elsewhere import ServerElsewhere
from dpsql.public.groups import groups
from dpsql.public.load import PublicRows, Snapshot
from dpsql.public.postmaster import MEMORY
from dpsql.public.started import PublicServer, public_key


class Public(Protocol):
    """A public server, wherever it runs. `owner` is its superuser; never a client's."""

    owner: str
    key: str
    version: str

    @property
    def socket(self) -> Path | None: ...
    @property
    def address(self) -> str: ...
    @property
    def database(self) -> str: ...
    def role_of(self, user: str) -> str: ...
    def database_of(self, user: str) -> str: ...
    def password_of(self, user: str) -> str | None: ...
    def alive(self) -> bool: ...
    def clients(self) -> int: ...
    def restart(self) -> None: ...
    def close(self) -> None: ...


def open_public(schema: Schema, rows: PublicRows | None = None, memory: int = MEMORY) -> PublicServer | ServerElsewhere:
    """`rows`: of public tables; those of the schema's snapshot if absent. Raises Rejected or Failed."""
    rows = Snapshot() if rows is None else rows
    url = schema.policy.server.public
    return PublicServer(schema, rows, memory) if url is None else ServerElsewhere(schema, rows, url)


def holds(schema: Schema, rows: PublicRows | None = None) -> str:
    """A name for all that the policy's public server holds: a server may go on under a policy with the same."""
    rows, where = Snapshot() if rows is None else rows, schema.policy.server.public or "started"
    return public_key(schema, groups(schema), rows, where)


__all__ = ["Public", "PublicServer", "ServerElsewhere", "holds", "open_public"]
