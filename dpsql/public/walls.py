"""What a user of the public server may not do, as SQL: rights, functions, the sight of others.

Decides by allow-list: a function that is not immutable may be called only if `functions.txt` names it, so that what
another version of Postgres adds is nobody's until someone has looked at it. Rights are the wall; what kinds of
statements the proxy passes on at all (no DO, no LISTEN, no ALTER ROLE of oneself) is decided where it reads them.
What it must never do: grant a right beyond SELECT on public relations and REFERENCES on the others.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import cache
from importlib.resources import files

from dpsql.public.shadow import literal, quoted

DENIED_IMMUTABLE = ("makeaclitem",)
"""Immutable, and yet not to be had: its text would tell the name of any user by number."""
OWN_FUNCTIONS = frozenset(
    {"dp_only", "dp_stddev", "dp_interval_low", "dp_interval_high"}
    | {"pg_get_userbyid", "pg_stat_get_activity", "pg_lock_status"}
)
"""Made by `stubs.sql` and `walls.sql`; three in place of Postgres's, which tell of all users."""
_ATTRIBUTES = "LOGIN NOSUPERUSER NOCREATEDB NOCREATEROLE NOREPLICATION NOBYPASSRLS INHERIT"


def _text(name: str) -> str:
    return files("dpsql.public").joinpath(name).read_text(encoding="utf-8")


@cache
def allowed_functions() -> frozenset[str]:
    """The names of functions that are not immutable and may be called."""
    lines = (line for line in _text("functions.txt").splitlines() if not line.startswith("#"))
    return frozenset(name for line in lines for name in line.split())


def wall_ddl() -> tuple[str, ...]:
    """For a database, and those that are made after it, before anything else is made in it. Needs a superuser."""
    return (
        "SET allow_system_table_mods = on",
        _text("stubs.sql"),
        _listed("allowed", allowed_functions() | OWN_FUNCTIONS),
        _listed("denied", DENIED_IMMUTABLE),
        _text("walls.sql"),
    )


def _listed(table: str, names: Iterable[str]) -> str:
    rows = ", ".join(f"({literal(name)})" for name in sorted(names))
    return f"CREATE TEMP TABLE {table} AS SELECT name FROM (VALUES {rows}) AS listed (name)"


def role_ddl(role: str) -> str:
    return f"CREATE ROLE {quoted(role)} {_ATTRIBUTES}"


def entrance_ddl(entrance: str, roles: Sequence[str]) -> tuple[str, ...]:
    """A role that only opens databases: their access lists, which everybody may read, name no user."""
    line = f"CREATE ROLE {quoted(entrance)} NOLOGIN"
    return (line, *(f"GRANT {quoted(entrance)} TO {quoted(role)}" for role in roles))


def database_ddl(database: str, entrance: str) -> tuple[str, ...]:
    """Who may enter a database; nobody may make temporary tables in it."""
    return (
        f"REVOKE ALL ON DATABASE {quoted(database)} FROM PUBLIC",
        f"GRANT CONNECT ON DATABASE {quoted(database)} TO {quoted(entrance)}",
    )


def named(database: str, shown: str) -> tuple[str, ...]:
    """A database that appears to its users under another name: several are of one dataset."""
    return (
        "SET LOCAL allow_system_table_mods = on",
        f"""DO $do$ BEGIN EXECUTE (
          SELECT 'CREATE OR REPLACE VIEW pg_catalog.pg_database AS SELECT ' || string_agg(
              CASE a.attname WHEN 'datname' THEN {literal(literal(shown) + "::name AS datname")}
              ELSE 't.' || quote_ident(a.attname) END, ', ' ORDER BY a.attnum)
            || ' FROM pg_catalog.pg_database_of_all t WHERE t.oid = '
            || (SELECT d.oid FROM pg_catalog.pg_database_of_all d WHERE d.datname = {literal(database)})
          FROM pg_catalog.pg_attribute a
          WHERE a.attrelid = 'pg_catalog.pg_database'::regclass AND a.attnum > 0); END $do$""",
        "UPDATE pg_catalog.pg_proc SET prolang = (SELECT oid FROM pg_catalog.pg_language WHERE lanname = 'sql'), "
        f"prosrc = {literal(f'SELECT {literal(shown)}::name')} "
        "WHERE oid = 'pg_catalog.current_database()'::regprocedure",
    )
