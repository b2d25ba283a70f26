"""The walls of the public server: nothing but public tables, nobody's but one's own, nothing of the machine."""

from __future__ import annotations

import psycopg
import pytest
from psycopg import errors
from public_fakes import Connect

from dpsql.public.server import PublicServer
from dpsql.public.walls import DENIED_IMMUTABLE, OWN_FUNCTIONS, allowed_functions

HOSTILE = [
    "SELECT pg_read_file('/etc/passwd')",
    "SELECT pg_read_binary_file('postgresql.conf')",
    "SELECT * FROM pg_ls_dir('.')",
    "SELECT pg_stat_file('postgresql.conf')",
    "COPY countries TO '/tmp/dpsql-stolen'",
    "COPY countries TO PROGRAM 'cat'",
    "COPY countries FROM '/etc/passwd'",
    "COPY (SELECT 1) TO PROGRAM 'cat > /tmp/dpsql-stolen'",
    "SELECT lo_import('/etc/passwd')",
    "SELECT lo_create(0)",
    "SELECT lo_from_bytea(0, 'x')",
    "SELECT lo_export(1, '/tmp/dpsql-stolen')",
    "DO $$ BEGIN LOOP BEGIN PERFORM 1; EXCEPTION WHEN query_canceled THEN NULL; END; END LOOP; END $$",
    "CREATE TEMP TABLE mine (a int)",
    "CREATE TABLE mine (a int)",
    "CREATE TABLE sales.mine (a int)",
    "CREATE SCHEMA mine",
    "CREATE VIEW mine AS SELECT 1",
    "CREATE FUNCTION mine() RETURNS int LANGUAGE sql AS 'SELECT 1'",
    "CREATE FUNCTION mine() RETURNS int LANGUAGE plpgsql AS 'BEGIN RETURN 1; END'",
    "CREATE FUNCTION mine() RETURNS int LANGUAGE internal AS 'int4pl'",
    "CREATE EXTENSION vector",
    "CREATE ROLE other",
    "CREATE DATABASE other",
    "ALTER SYSTEM SET work_mem = '1GB'",
    "SET ROLE dpsql",
    "SET ROLE carol",
    "SET SESSION AUTHORIZATION dpsql",
    "SET allow_system_table_mods = on",
    "SET temp_file_limit = -1",
    "SET max_stack_depth = '60MB'",
    "SET session_preload_libraries = 'x'",
    "SELECT set_config('temp_file_limit', '-1', false)",
    "LOAD 'vector'",
    "SELECT pg_advisory_lock(1)",
    "SELECT pg_try_advisory_xact_lock(1)",
    "SELECT pg_notify('a', 'b')",
    "SELECT pg_logical_emit_message(false, 'a', 'b')",
    "SELECT pg_export_snapshot()",
    "SELECT pg_sleep(0)",
    "SELECT pg_reload_conf()",
    "SELECT pg_current_wal_lsn()",
    "SELECT pg_switch_wal()",
    "SELECT pg_stat_get_activity_of_all(NULL)",
    "SELECT pg_lock_status_of_all()",
    "SELECT * FROM pg_database_of_all",
    "SELECT * FROM pg_auth_members_of_all",
    "SELECT * FROM pg_db_role_setting_of_all",
    "SELECT * FROM pg_authid",
    "SELECT * FROM pg_shadow",
    "SELECT * FROM pg_largeobject",
    "SELECT * FROM pg_statistic",
    "SELECT query_to_xml('SELECT 1', true, true, '')",
    "SELECT makeaclitem(16384, 16384, 'SELECT', false)::text",
    "INSERT INTO countries VALUES ('x', 'y')",
    "UPDATE countries SET name = ''",
    "DELETE FROM countries",
    "TRUNCATE countries",
    "SELECT * FROM countries FOR UPDATE",
    "ALTER TABLE countries ADD a int",
    "DROP TABLE countries",
    "COMMENT ON TABLE countries IS 'x'",
    "BEGIN; LOCK TABLE countries IN EXCLUSIVE MODE",
    "UPDATE pg_class SET relacl = NULL",
    "BEGIN; PREPARE TRANSACTION 'a'",
    "CHECKPOINT",
    "REINDEX SYSTEM shop",
    "CREATE SUBSCRIPTION s CONNECTION 'host=x' PUBLICATION p",
    "CREATE PUBLICATION p",
    "CREATE EVENT TRIGGER t ON ddl_command_start EXECUTE FUNCTION x()",
]


@pytest.mark.parametrize("text", HOSTILE)
def test_nothing_hostile_succeeds(connect: Connect, text: str) -> None:
    with pytest.raises(psycopg.Error) as refused:
        connect().execute(text)
    allowed = (errors.InsufficientPrivilege, errors.UndefinedFunction, errors.CantChangeRuntimeParam)
    switched_off = (errors.FeatureNotSupported, errors.ObjectNotInPrerequisiteState)
    assert isinstance(refused.value, (*allowed, *switched_off)), refused.value


def test_every_function_of_postgres_has_been_looked_at(connect: Connect) -> None:
    """Whoever makes a function callable has to name it in functions.txt."""
    connection = connect()
    called = connection.execute(
        "SELECT DISTINCT proname, provolatile = 'i' FROM pg_proc WHERE has_function_privilege(oid, 'EXECUTE')"
    ).fetchall()
    known = allowed_functions() | OWN_FUNCTIONS
    changing = {str(name) for name, immutable in called if not immutable}
    assert changing - known == set()
    assert not {str(name) for name, _ in called} & set(DENIED_IMMUTABLE)
    assert len(changing) > 300
    assert sum(immutable for _, immutable in called) > 1_500, "what computes values stays callable"


def test_no_callable_function_is_one_that_reaches_out(connect: Connect) -> None:
    """A second reading of the list, by name: files, large objects, locks, sessions, logs, replication."""
    pattern = (
        "^(lo_|lo(read|write)$|pg_(ls_|read_|write_|stat_file|advisory|try_advisory|sleep|notify|logical|create|drop|"
        "copy|export|reload|rotate|promote|backup|switch|wal_replay|log_|stat_reset|import|restore_|"
        "clear_|replication_(slot|origin_[^o])|current_wal|stat_get_(db_|backend|wal|progress|archiver|replication))|"
        "(query|cursor|table|schema|database)_to_xml|ts_stat|binary_upgrade|nextval|setval|brin_summarize|gin_clean)"
    )
    called = "SELECT proname FROM pg_proc WHERE has_function_privilege(oid, 'EXECUTE') AND proname ~ %s"
    found = {str(row[0]) for row in connect().execute(called, (pattern,)).fetchall()}
    assert found == {"pg_advisory_unlock_all"}, "pools call it; no lock can be taken"


def test_no_right_but_select_on_public_relations(connect: Connect) -> None:
    writable = (
        "SELECT c.relname FROM pg_class c WHERE has_table_privilege(c.oid, 'INSERT, UPDATE, DELETE, TRUNCATE, TRIGGER')"
        " OR c.relkind = 'S' AND has_sequence_privilege(c.oid, 'USAGE')"
    )
    assert connect().execute(writable).fetchall() in ([], [("pg_settings",)]), "UPDATE of pg_settings is SET"
    read = (
        "SELECT c.relname FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace "
        "WHERE n.nspname NOT IN ('pg_catalog', 'information_schema', 'pg_toast') AND c.relkind IN ('r', 'v') "
        "AND has_table_privilege(c.oid, 'SELECT') ORDER BY 1"
    )
    assert connect().execute(read).fetchall() == [("columns",), ("countries",), ("names",), ("values",)]


def test_users_see_no_others(connect: Connect, server: PublicServer) -> None:
    carol, alice = connect("carol"), connect("alice")
    carol.execute("SELECT 'the secret of carol'")
    seen = alice.execute("SELECT DISTINCT usename::text FROM pg_stat_activity").fetchall()
    assert seen == [("alice",)]
    assert alice.execute("SELECT DISTINCT pid FROM pg_locks").fetchall() == [(alice.info.backend_pid,)]
    others = "SELECT rolname::text FROM pg_roles WHERE rolname NOT LIKE 'pg\\_%' ORDER BY 1"
    assert alice.execute(others).fetchall() == [("alice",), (server.owner,)]
    assert alice.execute("SELECT usename::text FROM pg_user ORDER BY 1").fetchall() == [("alice",), (server.owner,)]
    assert "carol" not in str(alice.execute("SELECT * FROM pg_database").fetchall())
    assert "carol" not in str(alice.execute("SELECT * FROM pg_auth_members").fetchall())
    assert alice.execute("SELECT datname::text FROM pg_database").fetchall() == [("shop",)]
    assert alice.execute("SELECT count(*) FROM pg_stat_database").fetchall() == [(0,)]
    told = alice.execute(
        "SELECT string_agg(pg_get_userbyid(n::oid)::text || n::oid::regrole::text, ' ') "
        "FROM generate_series(16384, 17000) n"
    ).fetchall()
    assert "carol" not in str(told)
    assert "alice" in str(told)


def test_no_relation_that_may_be_read_names_another_user(connect: Connect) -> None:
    connection = connect("alice")
    relations = connection.execute(
        "SELECT c.oid::regclass::text FROM pg_class c WHERE c.relkind IN ('r', 'v') "
        "AND has_table_privilege(c.oid, 'SELECT')"
    ).fetchall()
    for (relation,) in relations:
        assert "carol" not in str(connection.execute(f"SELECT * FROM {relation}").fetchall()), relation


def test_only_own_sessions_can_be_ended(connect: Connect) -> None:
    alice, second, carol = connect("alice"), connect("alice"), connect("carol")
    for call in ("pg_cancel_backend", "pg_terminate_backend"):
        with pytest.raises(errors.InsufficientPrivilege):
            alice.execute(f"SELECT {call}({carol.info.backend_pid})")
    assert alice.execute(f"SELECT pg_terminate_backend({second.info.backend_pid})").fetchall() == [(True,)]
    assert carol.execute("SELECT 1").fetchall() == [(1,)]


def test_own_sessions_are_seen(connect: Connect) -> None:
    first, second = connect("alice"), connect("alice")
    pids = {row[0] for row in second.execute("SELECT pid FROM pg_stat_activity").fetchall()}
    assert {first.info.backend_pid, second.info.backend_pid} <= pids


def test_views_that_call_what_is_shut_are_empty_and_the_others_answer(connect: Connect) -> None:
    connection = connect()
    views = connection.execute(
        "SELECT format('%I.%I', n.nspname, c.relname) FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace "
        "WHERE c.relkind = 'v' AND n.nspname IN ('pg_catalog', 'information_schema') "
        "AND has_table_privilege(c.oid, 'SELECT')"
    ).fetchall()
    assert len(views) > 120
    failed = []
    for (view,) in views:
        try:
            connection.execute(f"SELECT * FROM {view}")
        except psycopg.Error as error:
            failed.append((view, str(error)))
    assert failed == []


def test_a_work_mem_beyond_all_bounds_ends_in_a_clean_error(connect: Connect) -> None:
    greedy, other = connect(), connect("carol")
    greedy.execute("SET work_mem = '10GB'")
    with pytest.raises((errors.OutOfMemory, errors.ProgramLimitExceeded)):
        greedy.execute(
            "SELECT count(*) FROM (SELECT DISTINCT repeat('x', 100000) || n FROM generate_series(1, 40000) n) a"
        )
    assert greedy.execute("SELECT 1").fetchall() == [(1,)]
    assert other.execute("SELECT 1").fetchall() == [(1,)]


def test_temporary_files_are_limited(connect: Connect) -> None:
    with pytest.raises(errors.ConfigurationLimitExceeded):
        connect().execute(
            "SELECT count(*) FROM (SELECT repeat('x', 1000) || n FROM generate_series(1, 3000000) n ORDER BY 1) a"
        )
