"""Fills a walled Postgres with a policy's public half: databases, then tables, rows, keys, views.

Decides the order, and what may be left out where Postgres refuses it: a key or a view is shown or not, a wall or a
right is never skipped.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import psycopg
from psycopg import Connection
from psycopg.conninfo import make_conninfo
from psycopg.rows import TupleRow
from psycopg.sql import SQL

from dpsql.policy.places import DEFAULT, search_path
from dpsql.policy.schema import Schema
from dpsql.public import shadow, walls
from dpsql.public.groups import Group, role_of
from dpsql.public.load import PublicRows, copy_rows
from dpsql.public.shadow import literal, quoted

FOR_ALL = "template1"
MARK = "dpsql public half"
"""How the comment of every database that is ours begins."""
UNFINISHED = f"{MARK}, unfinished"


def fill(address: str, schema: Schema, found: tuple[Group, ...], rows: PublicRows) -> None:
    """Into a Postgres that has just been made and walled; `address` is a connection string without a database."""
    with connected(address, FOR_ALL) as connection:
        _run(connection, f"REVOKE ALL ON DATABASE {FOR_ALL}, postgres FROM PUBLIC")
        for user in schema.policy.users:
            _run(connection, walls.role_ddl(role_of(user)))
        for group in found:
            _database(connection, group)
        _run(connection, "DROP DATABASE postgres")
    for group in found:
        with connected(address, group.database) as connection:
            fill_database(connection, schema, group, rows)
            _run(connection, "CHECKPOINT")


def _database(connection: Connection[TupleRow], group: Group, template: str = FOR_ALL) -> None:
    path = ", ".join(quoted(name) for name in search_path(group.tables))
    _run(
        connection,
        f"CREATE DATABASE {quoted(group.database)} TEMPLATE {quoted(template)}",
        f"ALTER DATABASE {quoted(group.database)} SET search_path = {path}",
        *walls.entrance_ddl(group.entrance, tuple(role_of(user) for user in group.users)),
        *walls.database_ddl(group.database, group.entrance),
    )


def fill_beside(address: str, schema: Schema, found: tuple[Group, ...], rows: PublicRows, mark: str) -> None:
    """Into a Postgres that holds other things as well: everything of ours there is thrown away and made anew.

    The comment of the first database, made last, is `mark`: without it, the next start begins again.
    """
    with connected(address) as connection:
        for group in found:
            _run(connection, f"DROP DATABASE IF EXISTS {quoted(group.database)} WITH (FORCE)")
            _run(connection, f"DROP ROLE IF EXISTS {quoted(group.entrance)}")
        known = {str(name) for (name,) in connection.execute("SELECT rolname FROM pg_roles").fetchall()}
        for role in map(role_of, schema.policy.users):
            if role not in known:
                _run(connection, walls.role_ddl(role))
        for group in found:
            _database(connection, group, "template0")
            _run(connection, f"COMMENT ON DATABASE {quoted(group.database)} IS {literal(UNFINISHED)}")
    for group in found:
        with connected(address, group.database) as connection:
            with connection.transaction():
                _run(connection, *walls.wall_ddl())
            fill_database(connection, schema, group, rows)
    with connected(address) as connection:
        for group in found:
            _run(connection, f"COMMENT ON DATABASE {quoted(group.database)} IS {literal(mark)}")


def fill_database(connection: Connection[TupleRow], schema: Schema, group: Group, rows: PublicRows) -> None:
    """One database: all or nothing, so that rows need no log."""
    with connection.transaction():
        if group.database != schema.policy.dataset:
            _run(connection, *walls.named(group.database, schema.policy.dataset))
        _run(connection, *shadow.shadow_ddl(schema, group.tables))
        for table in group.tables:
            if table.public:
                copy_rows(connection, table, rows)
        for line in shadow.key_ddl(group.tables):
            _try(connection, line)
        _views(connection, group)
        _run(connection, "ANALYZE", *shadow.estimates(schema, group.tables))


def _views(connection: Connection[TupleRow], group: Group) -> None:
    """A view may read others, in any order; what Postgres refuses gets its columns alone."""
    waiting = list(group.views)
    while waiting:
        left = []
        for view in waiting:
            text, _ = shadow.view_ddl(view, group.tables)
            if text is None or not _try(connection, text):
                left.append(view)
        if len(left) == len(waiting):
            for view in left:
                _try(connection, shadow.view_ddl(view, group.tables)[1])
            break
        waiting = left
    for view in group.views:
        _try(connection, f"GRANT REFERENCES ON {quoted(DEFAULT)}.{quoted(view.name)} TO PUBLIC")
    _run(connection, _READABLE)


_READABLE = """
DO $do$
DECLARE
  view regclass;
BEGIN
  FOR view IN
    WITH RECURSIVE reads (view, relation) AS (
      SELECT c.oid, d.refobjid FROM pg_catalog.pg_class c
      JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace AND n.nspname = 'public'
      JOIN pg_catalog.pg_rewrite r ON r.ev_class = c.oid
      JOIN pg_catalog.pg_depend d ON d.classid = 'pg_catalog.pg_rewrite'::regclass AND d.objid = r.oid
        AND d.refclassid = 'pg_catalog.pg_class'::regclass AND d.refobjid <> c.oid
      WHERE c.relkind = 'v'
      UNION
      SELECT v.view, d.refobjid FROM reads v
      JOIN pg_catalog.pg_rewrite r ON r.ev_class = v.relation
      JOIN pg_catalog.pg_depend d ON d.classid = 'pg_catalog.pg_rewrite'::regclass AND d.objid = r.oid
        AND d.refclassid = 'pg_catalog.pg_class'::regclass AND d.refobjid <> v.relation
    )
    SELECT v.view FROM reads v JOIN pg_catalog.pg_class c ON c.oid = v.relation
    GROUP BY v.view
    HAVING bool_and(c.relkind = 'v' OR pg_catalog.has_table_privilege('public', c.oid, 'SELECT'))
       AND bool_or(c.relkind <> 'v')
  LOOP
    EXECUTE format('GRANT SELECT ON %s TO PUBLIC', view);
  END LOOP;
END $do$
"""
"""A view may be read where all tables below it may; one that reads nothing stands for one that Postgres refused."""


@contextmanager
def connected(address: str, database: str | None = None) -> Iterator[Connection[TupleRow]]:
    """As the superuser, to the address's own database if no other is named."""
    with psycopg.connect(make_conninfo(address, dbname=database), autocommit=True) as connection:
        yield connection


def _run(connection: Connection[TupleRow], *lines: str) -> None:
    for line in lines:
        connection.execute(SQL(line))  # made of quoted names and literals only


def _try(connection: Connection[TupleRow], line: str) -> bool:
    try:
        with connection.transaction():
            _run(connection, line)
    except psycopg.Error:
        return False
    return True
