"""Simple queries: results, several statements in one, transactions, settings, errors."""

from __future__ import annotations

import logging

import pytest
from session_fakes import Client, FakeEngine

from dpsql.errors import Rejected
from dpsql.pgwire import messages as m
from dpsql.pgwire.backend import messages

ROWS7 = ["fields 2", *["row"] * 7, "notice", "'SELECT 7'"]


def test_select() -> None:
    assert Client().query("SELECT city, count(*) FROM t GROUP BY 1") == [*ROWS7, "ready I"]


def test_empty() -> None:
    assert Client().query(" ; -- nothing\n") == ["EmptyQueryResponse", "ready I"]


def test_several_statements_each_answer_and_an_error_ends_them() -> None:
    client = Client()
    assert client.query("SET dpsql.notices = off; SELECT 1 FROM t; DROP TABLE t; SELECT 2 FROM t") == [
        "'SET'",
        "fields 2",
        *["row"] * 7,
        "'SELECT 7'",
        "error 42501",
        "ready I",
    ]
    assert len(client.engine.calls) == 1
    # The implicit transaction failed, so its SET is undone.
    assert client.value("SHOW dpsql.notices") == "on"


def test_a_text_over_the_limits_runs_nothing() -> None:
    client = Client()
    assert client.query("SELECT 1 FROM t; SELECT " + "(" * 1_000_000) == ["error 54001", "ready I"]
    assert client.query("SELECT 1 FROM t; SELECT 'x") == ["error 42601", "ready I"]
    assert not client.engine.calls


def test_error_has_position_in_the_whole_text() -> None:
    replies = Client().send(m.Query("SELECT 1 FROM t;  SELECT * FROM missing, t"))
    error = next(reply for reply in replies if isinstance(reply, m.ErrorResponse))
    assert (error.sqlstate, error.position) == ("42P01", 33)


def test_a_crash_tells_no_value(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.ERROR):
        replies = Client().send(m.Query("SELECT broken FROM t"))
    error = next(reply for reply in replies if isinstance(reply, m.ErrorResponse))
    assert error.sqlstate == "58000"
    assert "incident" in error.message
    assert "4711" not in repr(replies) + caplog.text
    assert "ValueError at" in caplog.text
    assert replies[-1] == m.ReadyForQuery("I")


# --- transactions --------------------------------------------------------------------------------------------------


def test_failed_transaction() -> None:
    client = Client()
    assert client.query("BEGIN ISOLATION LEVEL SERIALIZABLE, READ ONLY") == ["'BEGIN'", "ready T"]
    assert client.query("SELECT 1 FROM t")[-1] == "ready T"
    assert client.query("SELECT * FROM missing, t") == ["error 42P01", "ready E"]
    assert client.query("SELECT 1 FROM t") == ["error 25P02", "ready E"]
    assert client.query("SHOW timezone") == ["error 25P02", "ready E"]
    assert client.query("COMMIT") == ["'ROLLBACK'", "ready I"]


def test_savepoint_revives_a_failed_transaction_and_its_settings() -> None:
    client = Client()
    client.query("BEGIN; SET application_name = 'a'; SAVEPOINT s; SET application_name = 'b'")
    assert client.query("SELECT missing FROM t") == ["error 42P01", "application_name=a", "ready E"]
    assert client.query("ROLLBACK TO s")[:1] == ["'ROLLBACK'"]
    assert client.value("SHOW application_name") == "a"
    assert client.query("RELEASE s") == ["'RELEASE'", "ready T"]
    assert client.query("ROLLBACK TO s")[0] == "error 3B001"
    assert client.query("ROLLBACK") == ["'ROLLBACK'", "ready I"]


def test_rollback_restores_settings_but_not_the_debit() -> None:
    client = Client()
    client.query("BEGIN")
    client.query("SET dpsql.epsilon = 0.2")
    client.query("SELECT 1 FROM t")
    client.query("ROLLBACK")
    assert client.value("SHOW dpsql.epsilon") == "default"
    assert len(client.engine.calls) == 1


def test_set_local_ends_with_the_transaction() -> None:
    client = Client()
    assert client.query("SET LOCAL dpsql.epsilon = 0.2") == ["warning", "'SET'", "ready I"]
    client.query("BEGIN")
    client.query("SET LOCAL dpsql.epsilon = 0.2")
    assert client.value("SHOW dpsql.epsilon") == "0.2"
    client.query("COMMIT")
    assert client.value("SHOW dpsql.epsilon") == "default"


def test_set_survives_commit_and_error_after_commit() -> None:
    client = Client()
    client.query("BEGIN; SET dpsql.epsilon = 0.2; COMMIT; SELECT missing FROM t")
    assert client.value("SHOW dpsql.epsilon") == "0.2"


def test_transaction_warnings() -> None:
    client = Client()
    assert client.query("COMMIT") == ["warning", "'COMMIT'", "ready I"]
    assert client.query("START TRANSACTION") == ["'START TRANSACTION'", "ready T"]
    assert client.query("BEGIN") == ["warning", "'BEGIN'", "ready T"]
    assert client.query("ROLLBACK AND CHAIN") == ["'ROLLBACK'", "ready T"]


# --- settings ------------------------------------------------------------------------------------------------------


def test_settings_reach_the_engine() -> None:
    client = Client()
    client.query("SET dpsql.epsilon = 0.25; SET dpsql.mechanism TO laplace; SET dpsql.max_groups = 3")
    client.query("SET statement_timeout = '1min'; SET dpsql.max_error = 10")
    client.query("SELECT 1 FROM t")
    settings = client.engine.calls[0][1]
    assert (str(settings.epsilon), settings.mechanism, settings.max_groups) == ("0.25", "laplace", 3)
    assert (str(settings.max_error), settings.statement_timeout) == ("10", 60.0)


def test_options_clause_is_for_one_statement() -> None:
    client = Client()
    client.query(
        "SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS (epsilon = 0.5, max_groups_contributed = 2) 1; SELECT 2 FROM t"
    )
    client.query("SELECT WITH ANONYMIZATION OPTIONS (kappa = 1, delta = 1e-9, privacy_unit_column = uid) 3")
    (_, first, _), (_, second, _), (_, third, _) = client.engine.calls
    assert (str(first.epsilon), first.max_groups, first.stated) == ("0.5", 2, ())
    assert (second.epsilon, second.max_groups) == (None, None)
    assert (third.max_groups, third.stated) == (1, (("delta", "1e-9"), ("privacy_unit_column", "uid")))


def test_options_ask_for_an_error_instead_of_a_price() -> None:
    client = Client()
    client.query("SET dpsql.max_error = 10; SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS (epsilon = 0.5) 1")
    client.query("SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS (max_error = 50, max_rows_per_group = 4) 2")
    (_, first, _), (_, second, _) = client.engine.calls
    assert (str(first.epsilon), first.max_error) == ("0.5", None)
    assert (second.epsilon, str(second.max_error), second.max_rows_per_group) == (None, "50", 4)
    assert client.query("SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS (max_error = 5, epsilon = 1) 1")[0] == "error 22023"


@pytest.mark.parametrize(
    "option",
    ["max_rows_contributed = 3", "k_threshold = 20", "epsilon = 'NaN'", "epsilon = 0", "max_groups_contributed = 0"],
)
def test_options_that_are_refused(option: str) -> None:
    client = Client()
    replies = client.query(f"SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS ({option}) 1")
    assert replies in (["error 0A000", "ready I"], ["error 22023", "ready I"])
    assert not client.engine.calls


@pytest.mark.parametrize(
    "value",
    ["NaN", "'NaN'", "'inf'", "-1", "0", "1e-400", "'0x1'", "'１'", "1e30", "''", "0.0000000000001", "'1 '';'", "1, 2"],
)
def test_amounts_that_are_refused(value: str) -> None:
    client = Client()
    assert client.query(f"SET dpsql.epsilon = {value}")[0].startswith("error")
    assert client.value("SHOW dpsql.epsilon") == "default"


@pytest.mark.parametrize(
    ("text", "sqlstate"),
    [
        ("SET client_encoding = 'LATIN1'", "22023"),
        ("SET NAMES 'SQL_ASCII'", "22023"),
        ("SET standard_conforming_strings = off", "22023"),
        ("SET TimeZone = '../../etc/passwd'", "22023"),
        ("SET server_version = '9.1'", "55P02"),
        ("SET no_such_thing = 1", "42704"),
        ("SET dpsql.budget = 1", "42704"),
        ("SET dpsql.mechanism = 'none'", "22023"),
        ("SET dpsql.max_groups = 0", "22023"),
        ("SET dpsql.max_rows_per_group = 0", "22023"),
        ("SET ROLE bob", "22023"),
        ("SET SESSION AUTHORIZATION 'bob'", "22023"),
        ("SHOW no_such_thing", "42704"),
        ("SET x", "42601"),
    ],
)
def test_settings_that_are_refused(text: str, sqlstate: str) -> None:
    assert Client().query(text) == [f"error {sqlstate}", "ready I"]


@pytest.mark.parametrize(
    "text",
    [
        "SET SESSION CHARACTERISTICS AS TRANSACTION ISOLATION LEVEL READ COMMITTED",
        "SET TRANSACTION READ ONLY",
        "SET extra_float_digits = 3",
        "SET search_path TO public, pg_catalog",
        "SET DateStyle = 'ISO'",
        "SET client_encoding = 'utf-8'",
        "SET TIME ZONE DEFAULT",
        "SET TIME ZONE INTERVAL '+00:00' HOUR TO MINUTE",
        "SET client_min_messages TO warning",
        "SET statement_timeout = 5000",
        "SET ROLE NONE",
        "SET SESSION AUTHORIZATION DEFAULT",
        "SET jit = off",
        "RESET ALL",
        "RESET TIME ZONE",
        "RESET SESSION AUTHORIZATION",
        "DISCARD ALL",
        "DISCARD TEMP",
        "UNLISTEN *",
        "LISTEN x",
        "CLOSE ALL",
        "DEALLOCATE ALL",
        "SHOW ALL",
        "SHOW TRANSACTION ISOLATION LEVEL",
        "SHOW standard_conforming_strings",
        "SHOW time zone",
    ],
)
def test_what_clients_send_succeeds(text: str) -> None:
    replies = Client().query(text)
    assert not any(reply.startswith("error") for reply in replies)
    assert replies[-1] == "ready I"


def test_changed_parameters_are_reported_once() -> None:
    client = Client()
    assert client.query("SET application_name = 'x\u00e4'") == ["'SET'", "application_name=x\\xc3\\xa4", "ready I"]
    assert "TimeZone=Europe/Rome" in client.query("SET TIME ZONE 'Europe/Rome'")
    assert client.query("SELECT 1 FROM t")[-2:] == ["'SELECT 7'", "ready I"]


def test_notices_can_be_turned_off() -> None:
    client = Client()
    client.query("SET dpsql.notices = off")
    assert "notice" not in client.query("SELECT 1 FROM t")
    client.query("SET dpsql.notices = on; SET client_min_messages = warning")
    assert "notice" not in client.query("SELECT 1 FROM t")


def test_show_budget_and_explain() -> None:
    client = Client()
    assert client.rows("SHOW dpsql.budget") == [(b"alice", b"14")]
    assert client.value("EXPLAIN SELECT 1 FROM t") == '"plan as text"'
    assert client.value("EXPLAIN (FORMAT JSON) SELECT 1 FROM t") == '"plan as json"'
    assert client.query("EXPLAIN ANALYZE SELECT 1 FROM t") == ["error 42501", "ready I"]
    assert not client.engine.calls


def test_catalog_queries_do_not_reach_the_engine() -> None:
    client = Client()
    assert client.value("SELECT version()").startswith("PostgreSQL 1")
    assert not client.engine.calls


# --- start ---------------------------------------------------------------------------------------------------------


def test_startup_parameters() -> None:
    client = Client(
        parameters=[
            ("user", "mallory"),
            ("database", "x"),
            ("application_name", "psql"),
            ("client_encoding", "'utf-8'"),
            ("statement_timeout", "5000"),
            ("options", r"-c dpsql.epsilon=0.5 --search-path=a -cgeqo=off"),
            ("_pq_.x", "1"),
        ]
    )
    statuses = {
        reply.name: reply.value
        for reply in messages(iter(client.session.greeting()))
        if isinstance(reply, m.ParameterStatus)
    }
    assert int(statuses["server_version"].partition(".")[0]) >= 15
    assert statuses["application_name"] == "psql"
    assert statuses["session_authorization"] == "alice"
    assert client.value("SHOW dpsql.epsilon") == "0.5"
    assert client.value("SHOW search_path") == "a"
    assert client.value("SHOW statement_timeout") == "5s"
    client.query("SET dpsql.epsilon = 1; RESET ALL")
    assert client.value("SHOW dpsql.epsilon") == "0.5"


@pytest.mark.parametrize(
    "parameter",
    [
        ("options", "-c role=bob"),
        ("options", "-c session_authorization=bob"),
        ("options", "-c dpsql.epsilon=inf"),
        ("options", "-c"),
        ("options", "-x"),
        ("options", "nonsense"),
        ("client_encoding", "LATIN1"),
        ("replication", "database"),
        ("no_such_thing", "1"),
        ("server_version", "16"),
    ],
)
def test_startup_parameters_that_are_refused(parameter: tuple[str, str]) -> None:
    with pytest.raises(Rejected):
        Client(FakeEngine(), [parameter])


def test_a_price_that_is_not_allowed_is_refused_at_once() -> None:
    client = Client()
    for text in ("SET dpsql.epsilon = 101", "SET LOCAL dpsql.epsilon = '1000'", "SET SESSION dpsql.epsilon TO 101"):
        assert client.query(text) == ["error 22023", "ready I"]
    assert client.value("SHOW dpsql.epsilon") == "default"
    assert client.query("SET dpsql.epsilon = 100") == ["'SET'", "ready I"]
    with pytest.raises(Rejected):
        Client(parameters=[("options", "-c dpsql.epsilon=101")])
