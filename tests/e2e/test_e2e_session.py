"""What a person or a driver does in a session: psql, transactions, cursors, COPY, cancelling, settings, the catalog."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator

import psycopg
import pytest

from e2e.proxy import Client, Proxy, ask, client


@pytest.fixture(scope="module")
def alice(clean: Proxy) -> Iterator[Client]:
    with client(clean) as opened:
        yield opened


def test_psql_in_comfort(clean: Proxy) -> None:
    script = r"""
\timing
SET dpsql.reuse_error = 0;
SELECT city, COUNT(*) FROM people GROUP BY city;
SELECT COUNT(*) FROM people \g
SELECT * FROM people;
SELECT COUNT(*) AS again FROM people;
SET dpsql.epsilon = 0.5;
SHOW dpsql.epsilon;
SHOW dpsql.budget;
EXPLAIN SELECT COUNT(*) FROM people;
SELECT 1; SELECT COUNT(*) FROM visits;
\set FETCH_COUNT 1
SELECT city, COUNT(*) FROM people GROUP BY city;
\echo done
"""
    done = clean.psql(script=script)
    assert done.returncode == 0
    assert "done" in done.stdout
    assert "Time:" in done.stdout
    assert "again" in done.stdout
    assert "NOTICE:  Price: epsilon" in done.stderr
    assert "NOTICE:  Replay of a stored release" in done.stderr
    assert "ERROR:  Rows of a private table are never returned." in done.stderr
    assert "HINT:" in done.stderr
    assert "LINE 1: SELECT * FROM people;" in done.stderr
    assert done.stderr.count("ERROR") == 1


@pytest.mark.parametrize(
    "command",
    [
        "\\d",
        "\\dt",
        "\\dt+",
        "\\d people",
        "\\d+ people",
        "\\l",
        "\\du",
        "\\dn",
        "\\df",
        "\\dv",
        "\\di",
        "\\conninfo",
        "\\dp",
        "\\dT",
    ],
)
def test_psql_looks_around(clean: Proxy, command: str) -> None:
    done = clean.psql("-c", command, "-c", "SELECT 'alive'")
    assert "alive" in done.stdout
    assert done.returncode == 0, done.stderr


def test_the_catalog_shows_what_is_declared_only(clean: Proxy, alice: Client) -> None:
    columns = ask(
        alice,
        "SELECT column_name FROM information_schema.columns WHERE table_name = 'people' ORDER BY ordinal_position",
    )
    assert {name for (name,) in columns} == {"uid", "age", "salary", "score", "city", "joined", "note"}
    assert "hidden" not in clean.psql("-c", "\\d+ people").stdout
    ((rows,),) = ask(alice, "SELECT reltuples FROM pg_class WHERE relname = 'people'")
    assert rows == 1000  # the units that the policy says, never what is there


def test_the_views_that_hints_name(alice: Client) -> None:
    assert ask(alice, "SELECT * FROM dpsql.columns")
    assert ask(alice, "SELECT * FROM dpsql.budget")


def test_catalog_faults_keep_the_session(alice: Client, clean: Proxy) -> None:
    for query in ("SELECT * FROM pg_nothing", "SELECT pg_nothing()", "SELECT nothing FROM pg_class"):
        assert clean.refusal(alice, query).sqlstate not in (None, "58000")
    assert ask(alice, "SELECT 1") == [(1,)]


def test_a_rollback_keeps_the_debit_and_the_answer(clean: Proxy) -> None:
    query = "SELECT COUNT(*) FROM people WHERE age > 11"
    with client(clean) as alice:
        alice.execute("BEGIN")
        first = ask(alice, query)
        alice.execute("ROLLBACK")
        spent = clean.spent()
        assert ask(alice, query) == first
        assert clean.spent() == spent


def test_a_failed_transaction(clean: Proxy, alice: Client) -> None:
    alice.execute("BEGIN")
    assert clean.refusal(alice, "SELECT * FROM people").sqlstate == "42501"
    assert clean.refusal(alice, "SELECT COUNT(*) FROM people").sqlstate == "25P02"
    alice.execute("ROLLBACK")
    assert ask(alice, "SELECT 1") == [(1,)]


def test_two_statements_in_one_query(clean: Proxy) -> None:
    with client(clean) as alice:
        cursor = alice.execute("SELECT 1; SELECT COUNT(*) FROM people; SELECT 'end'")
        results = [cursor.fetchall()]
        while cursor.nextset():
            results.append(cursor.fetchall())
        assert results[0] == [(1,)]
        assert results[2] == [("end",)]
        before = clean.spent()
        assert clean.refusal(alice, "SELECT COUNT(*) FROM people; SELECT * FROM people").sqlstate == "42501"
        assert clean.spent() == before


def test_cursors_and_row_limits_draw_once(clean: Proxy) -> None:
    query = "SELECT shop, COUNT(*) FROM visits GROUP BY shop"
    with client(clean) as alice:
        whole = ask(alice, query)
        before = clean.spent()
        with alice.transaction():
            alice.execute(f"DECLARE c CURSOR FOR {query}".encode())
            pieces = [ask(alice, "FETCH 2 FROM c"), ask(alice, "FETCH ALL FROM c"), ask(alice, "FETCH 1 FROM c")]
        assert [row for piece in pieces for row in piece] == whole
        assert clean.spent() == before


@pytest.mark.parametrize("format", ["text", "csv", "binary"])
def test_copy_out(clean: Proxy, alice: Client, format: str) -> None:
    with alice.cursor().copy(
        f"COPY (SELECT city, COUNT(*) FROM people GROUP BY city) TO STDOUT (FORMAT {format})".encode()
    ) as copy:
        data = b"".join(bytes(part) for part in copy)
    assert b"Rome" in data
    assert ask(alice, "SELECT 1") == [(1,)]


def test_an_answer_without_rows_says_why(clean: Proxy) -> None:
    """Made anew and replayed; not where the keys are public, for then HAVING took the rows away."""
    with client(clean) as alice:
        told: list[str] = []
        alice.add_notice_handler(lambda notice: told.append(notice.message_primary or ""))
        for _ in range(2):
            assert alice.execute("SELECT note, COUNT(*) FROM people WHERE age > 200 GROUP BY note").fetchall() == []
            assert told.pop(0).startswith("No rows: groups whose keys are not public show only where about ")
            assert "left." in told.pop(0)
        assert alice.execute("SELECT COUNT(*) FROM people HAVING COUNT(*) < -1000000").fetchall() == []
        assert len(told) == 1


def test_notices_can_be_turned_off(clean: Proxy) -> None:
    with client(clean) as alice:
        told: list[str] = []
        alice.add_notice_handler(lambda notice: told.append(notice.message_primary or ""))
        alice.execute("SELECT COUNT(*) FROM people WHERE age > 50")
        alice.execute("SELECT COUNT(*) FROM people WHERE age > 50")
        assert told[0].startswith("Price: epsilon 1;")
        assert told[1].startswith("Replay")
        alice.execute("SET dpsql.notices = off")
        alice.execute("SELECT COUNT(*) FROM people WHERE age > 51")
        assert len(told) == 2


def test_epsilon_is_the_price(clean: Proxy) -> None:
    with client(clean) as alice:
        bars = []
        alice.execute("SET dpsql.reuse_error = 0")
        for epsilon in ("0.25", "1", "10"):
            alice.execute(f"SET dpsql.epsilon = {epsilon}".encode())
            bars.append(ask(alice, "SELECT dp_stddev(COUNT(*)) FROM people")[0][0])
        assert bars[0] > 3 * bars[1] > 15 * bars[2]
        options = "SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS (epsilon = 0.25) dp_stddev(COUNT(*)) FROM people"
        assert ask(alice, options)[0][0] == bars[0]


NOBODYS = "SELECT age, AVG(score) AS score, COUNT(*) AS n FROM people WHERE age < 60 AND note = 'nobody' GROUP BY age"
"""Sixty averages of nobody's values: of each the chance to look like something is about 1 in 40."""


def test_what_is_no_more_than_noise_is_null(clean: Proxy) -> None:
    with client(clean) as alice:
        shown = ask(alice, NOBODYS)
        assert ask(alice, NOBODYS, binary=True) == shown
        assert sum(score is None for _, score, _ in shown) > 40
        alice.execute("SET dpsql.null_noise = off")
        assert ask(alice, "SHOW dpsql.null_noise") == [("off",)]
        every = ask(alice, NOBODYS)
        assert all(isinstance(score, float) for _, score, _ in every)
        assert [(age, n) for age, _, n in every] == [(age, n) for age, _, n in shown]
        alice.execute("RESET dpsql.null_noise")
        assert ask(alice, NOBODYS) == shown
        with pytest.raises(psycopg.errors.InvalidParameterValue):
            alice.execute("SET dpsql.null_noise = maybe")
    with client(clean, options="-c dpsql.null_noise=off") as alice:
        assert ask(alice, NOBODYS) == every


def test_what_is_no_more_than_noise_is_nan_in_pandas(clean: Proxy) -> None:
    pandas, sqlalchemy = pytest.importorskip("pandas"), pytest.importorskip("sqlalchemy")
    engine = sqlalchemy.create_engine(
        "postgresql+psycopg://", creator=lambda: psycopg.connect(clean.dsn()), poolclass=sqlalchemy.pool.NullPool
    )
    frame = pandas.read_sql(NOBODYS, engine)
    assert frame["score"].isna().sum() > 40
    assert str(frame["n"].dtype) == "int64"
    engine.dispose()


def test_identity_is_the_login_alone(clean: Proxy) -> None:
    with client(clean, application_name="bob", options="-c dpsql.epsilon=0.5") as alice:
        assert ask(alice, "SELECT current_user, session_user") == [("alice", "alice")]
        assert ask(alice, "SHOW dpsql.epsilon") == [("0.5",)]
    for options in ("-c role=bob", "-c session_authorization=bob", "-c user=bob", "-c dpsql.epsilon=NaN"):
        with pytest.raises(psycopg.OperationalError):
            clean.connect(options=options)
    for user in ("ALICE", "alice\u200b", "alice ", "bob'; --", ""):
        with pytest.raises(psycopg.OperationalError):
            clean.connect(user.replace("'", "\\'"))
    with pytest.raises(psycopg.OperationalError):
        clean.connect(password="wrong")


def test_statement_timeout(clean: Proxy) -> None:
    slow = "SELECT COUNT(*) FROM " + ", ".join(f"shops s{i}" for i in range(16))
    with client(clean) as alice:
        alice.execute("SET statement_timeout = '300ms'")
        begun = time.monotonic()
        assert clean.refusal(alice, slow).sqlstate == "57014"
        assert time.monotonic() - begun < 5
        assert ask(alice, "SELECT 1") == [(1,)]


def test_cancel(clean: Proxy) -> None:
    slow = "SELECT COUNT(*) FROM " + ", ".join(f"shops s{i}" for i in range(16))
    with client(clean) as alice:
        timer = threading.Timer(0.5, alice.cancel_safe)
        timer.start()
        begun = time.monotonic()
        assert clean.refusal(alice, slow).sqlstate == "57014"
        assert time.monotonic() - begun < 8
        timer.join()
        assert ask(alice, "SELECT 1") == [(1,)]


def test_another_session_cancels_and_ends(clean: Proxy) -> None:
    """As SQL Lab's stop button does it."""
    slow = "SELECT COUNT(*) FROM " + ", ".join(f"shops s{i}" for i in range(16))
    with client(clean) as alice, client(clean) as second, client(clean, "bob") as bob:
        [(pid,)] = ask(alice, "SELECT pg_backend_pid()")
        assert pid == alice.info.backend_pid
        for end, function in ((False, "pg_cancel_backend"), (True, "pg_terminate_backend")):
            found: list[object] = []
            thread = threading.Thread(target=lambda: found.append(clean.refusal(alice, slow).sqlstate))  # noqa: B023
            thread.start()
            time.sleep(0.5)
            stop = f"SELECT {function}(pid) FROM pg_stat_activity WHERE pid='{pid}'"
            assert ask(bob, stop) == []
            assert ask(second, stop) == [(True,)]
            thread.join(10)
            assert found == ["57P01" if end else "57014"]
        assert clean.refusal(second, f"SELECT pg_terminate_backend({bob.info.backend_pid})").sqlstate == "42501"
        assert ask(bob, "SELECT 1") == [(1,)]


def test_a_slow_statement_does_not_stop_others(clean: Proxy) -> None:
    slow = "SELECT COUNT(*) FROM " + ", ".join(f"shops s{i}" for i in range(16))
    with client(clean) as alice, client(clean, "bob") as bob:
        alice.execute("SET statement_timeout = '1500ms'")
        thread = threading.Thread(target=clean.refusal, args=(alice, slow))
        thread.start()
        time.sleep(0.3)
        begun = time.monotonic()
        assert ask(bob, "SELECT 1") == [(1,)]
        assert time.monotonic() - begun < 5
        thread.join()


def test_many_errors_one_connection(clean: Proxy, alice: Client) -> None:
    for i in range(50):
        assert clean.refusal(alice, f"SELECT nothing{i} FROM people").sqlstate == "42703"
    assert ask(alice, "SELECT 1") == [(1,)]


def test_a_pipeline_with_an_error_in_it(clean: Proxy) -> None:
    with client(clean) as alice:
        with pytest.raises(psycopg.errors.UndefinedColumn):
            _pipeline(alice)
        assert ask(alice, "SELECT 1") == [(1,)]


def _pipeline(client: Client) -> None:
    with client.pipeline() as pipeline:
        client.execute("SELECT COUNT(*) FROM people")
        client.execute("SELECT nothing FROM people")
        client.execute("SELECT COUNT(*) FROM visits")
        pipeline.sync()
