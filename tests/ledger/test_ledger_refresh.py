"""New data: what was kept is not given again, what was spent stays spent, and old ledgers prove themselves as ever."""

from __future__ import annotations

import threading
import time
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import duckdb
import psycopg
import pytest
from click.testing import CliRunner
from ledger_cases import DATASET, answer, debit, made, made_in_postgres
from test_ledger_reload import connected, serving, waited, written

from dpsql.backends import Backend, open_backend
from dpsql.commands.ledger import ledger as ledger_command
from dpsql.commands.refresh import refresh
from dpsql.commands.reload import Current
from dpsql.engine import Engine, Refreshed, open_engine
from dpsql.errors import Rejected
from dpsql.ledger import Kind, open_ledger, verify_ledger
from dpsql.ledger.books import Books, to_bytes
from dpsql.policy.force import text_of
from dpsql.policy.load import load
from dpsql.session.ports import CancelToken
from dpsql.types import Settings

ASK = "SELECT COUNT(*) FROM people WHERE age > 30"


def refreshed(path: Path) -> None:
    """`dpsql refresh`, in another process than the proxy, has returned."""
    done = CliRunner().invoke(refresh, [str(path)], catch_exceptions=False)
    assert "asks the new data" in done.output


def test_an_entry(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dpsql.ledger.durable.CHECKPOINT_EVERY", 5)
    monkeypatch.setattr("dpsql.ledger.durable.LEASE", 1000)
    url = made(tmp_path)
    assert b"refresh" not in to_bytes(Books())  # so that older checkpoints hold
    ledger = open_ledger(url, DATASET)
    assert ledger.refreshes() == 0
    spent = ledger.dataset_spent()
    assert ledger.refresh().kind is Kind.REFRESH
    ledger.refresh()
    for number in range(10):
        answer(ledger, "alice", f"{number}")
    ledger.close()
    again = open_ledger(url, DATASET)  # from a checkpoint
    assert again.refreshes() == 2
    assert again.dataset_spent() != spent
    again.close()
    verify_ledger(url, DATASET)


@pytest.mark.parametrize("store", ["sqlite", "postgres"])
@pytest.mark.parametrize("busy", [False, True])
def test_no_ledger_knows_the_epoch_before_it(
    store: str, busy: bool, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    """Neither one that looks all the time nor one that has long not looked, once the refresh has returned."""
    url = made(tmp_path) if store == "sqlite" else made_in_postgres(request.getfixturevalue("postgres_uri"))
    proxy, operator = open_ledger(url, DATASET), open_ledger(url, DATASET)
    assert proxy.refreshes() == 0
    assert proxy.knows_epoch(0)
    assert not proxy.knows_epoch(1)
    returned: list[float] = []

    def say() -> None:
        operator.refresh()
        returned.append(time.monotonic())

    thread = threading.Thread(target=say)
    thread.start()
    known = time.monotonic()
    while not returned:
        begun = time.monotonic()
        known = begun if proxy.knows_epoch(0) else known
        if busy:
            debit(proxy, "alice", f"{begun}")
        time.sleep(0.001)
    thread.join()
    assert not proxy.knows_epoch(0)
    assert known < returned[0]
    assert proxy.refreshes() == 1
    assert proxy.knows_epoch(1)
    time.sleep(1.05)
    assert not proxy.knows_epoch(1)  # too long ago
    proxy.close()
    operator.close()


@pytest.mark.parametrize(
    ("store", "workers"), [("sqlite", 2), ("postgres", 1), pytest.param("postgres", 3, marks=pytest.mark.slow)]
)
def test_served(store: str, workers: int, tmp_path: Path, request: pytest.FixtureRequest) -> None:
    """The same statement is free until the data change, then asked anew and debited: in every worker, at once."""
    path = written(tmp_path)
    if store == "postgres":
        url = request.getfixturevalue("postgres_uri")
        with psycopg.connect(url, autocommit=True) as server:
            server.execute('DROP SCHEMA IF EXISTS "dpsql flights" CASCADE')
        path = written(tmp_path, ("ledger: sqlite:flights.ledger", f'ledger: "{url}"'))
    with ExitStack() as stack:
        _, port, _ = stack.enter_context(serving(path, "--workers", str(workers)))
        clients = [stack.enter_context(connected(port, "alice")) for _ in range(2 * workers)]
        (first,) = {by_age(client) for client in clients for _ in range(4)}
        for _ in range(2):
            refreshed(path)
            (then,) = {by_age(client) for client in clients}  # nobody gets what was
            assert then != first
            assert {by_age(client) for client in clients for _ in range(4)} == {then}
            first = then
    policy = load(path)
    ledger = open_ledger(policy.ledger, policy.dataset)
    kinds = [entry.kind for entry in ledger.entries() if entry.kind in (Kind.DEBIT, Kind.REFRESH)]
    assert kinds == [Kind.DEBIT, Kind.REFRESH, Kind.DEBIT, Kind.REFRESH, Kind.DEBIT]
    ledger.close()


def by_age(client: psycopg.Connection[tuple[object, ...]]) -> object:
    """So many noisy numbers that two measurements are never equal."""
    return tuple(client.execute("SELECT age, COUNT(*) FROM people GROUP BY age").fetchall())


def counted(client: psycopg.Connection[tuple[object, ...]]) -> object:
    ((number,),) = client.execute(ASK).fetchall()
    return number


def put_data(folder: Path, rows: int, column: str = "age") -> None:
    """Another database file under the same name."""
    new = folder / "new.duckdb"
    with duckdb.connect(str(new)) as database:
        database.execute(f"CREATE TABLE people AS SELECT range AS uid, 40 AS {column} FROM range({rows})")
        database.execute("CREATE TABLE codes AS SELECT range AS uid FROM range(10)")
    new.replace(folder / "flights.duckdb")


def test_a_file_in_the_place_of_another(tmp_path: Path) -> None:
    """The proxy lets go of the old one and reads the new one."""
    path = written(tmp_path)
    put_data(tmp_path, 1_000)
    CliRunner().invoke(ledger_command, ["init", str(path)], catch_exceptions=False)
    with serving(path) as (_, port, log), connected(port, "alice") as alice:
        assert 800 < int(str(counted(alice))) < 1_200
        put_data(tmp_path, 50_000)
        assert 800 < int(str(counted(alice))) < 1_200  # nobody has said so
        refreshed(path)
        assert 49_800 < int(str(counted(alice))) < 50_200
        waited(log, "new data")


def many(engine: Engine | Current) -> bool:
    """Whether it is the new file that is asked."""
    ((number,),) = engine.answer("alice", ASK, 0, Settings(), (), CancelToken()).relation.rows
    return int(str(number)) > 25_000


def changed(path: Path) -> None:
    """Another file, and the operator's word, this very moment."""
    put_data(path.parent, 50_000)
    policy = load(path)
    operator = open_ledger(policy.ledger, policy.dataset)
    operator.refresh()
    operator.close()


@pytest.fixture
def small(tmp_path: Path) -> Path:
    """The policy of a small file, with a ledger."""
    path = written(tmp_path)
    put_data(tmp_path, 1_000)
    CliRunner().invoke(ledger_command, ["init", str(path)], catch_exceptions=False)
    return path


def test_a_change_while_an_engine_is_opened(small: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """One that has opened the old file never answers as of the new one."""

    def opened(*given: Any) -> Backend:
        backend = open_backend(*given)
        changed(small)
        return backend

    with monkeypatch.context() as patch:
        patch.setattr("dpsql.engine.open_backend", opened)
        current = Current(open_engine(load(small)))
    assert many(current)
    current.close()


@pytest.mark.parametrize("when", ["just before", "prepared", "renewed"])
def test_a_change_while_a_policy_is_taken_over(small: Path, when: str) -> None:
    current = Current(open_engine(load(small)))
    assert not many(current)
    if when == "just before":  # so lately that it need not be known here
        policy = load(small)
        put_data(small.parent, 50_000)
        operator = open_ledger(policy.ledger, policy.dataset)
        assert current.engine.ledger.refreshes() == 0
        thread = threading.Thread(target=operator.refresh)
        thread.start()
        while not operator.refreshes():
            pass
        current.reload(policy)
        thread.join()
        operator.close()
    else:
        prepared = current.prepare(load(small))
        changed(small)
        assert when == "prepared" or many(current)
        current.commit(prepared)
    assert many(current)
    assert many(current)
    current.close()


@pytest.mark.parametrize("edit", ['epoch: "2"', "timezone: Asia/Tokyo"])
def test_a_policy_for_a_file_in_the_place_of_another(small: Path, edit: str) -> None:
    """A new epoch is a word of the operator's too, and a time zone needs the file opened again."""
    current = Current(open_engine(load(small)))
    assert not many(current)
    put_data(small.parent, 50_000)
    assert not many(current)
    small.write_text(f"{small.read_text()}\n{edit}\n")
    policy = load(small)
    current.engine.ledger.accept(text_of(policy))
    current.abandon(current.prepare(policy))
    assert not many(current)
    current.reload(policy)
    assert many(current)
    assert many(current)
    current.close()


def test_data_that_do_not_fit(tmp_path: Path) -> None:
    """Nothing is answered, not even what was, until they do; the log says why, the client nothing."""
    path = written(tmp_path)
    put_data(tmp_path, 1_000)
    CliRunner().invoke(ledger_command, ["init", str(path)], catch_exceptions=False)
    policy = load(path)
    operator = open_ledger(policy.ledger, policy.dataset)
    with serving(path) as (_, port, log), connected(port, "alice") as alice:
        assert counted(alice) == counted(alice)
        put_data(tmp_path, 50_000, "years")
        with pytest.raises(Rejected, match="age"):
            CliRunner().invoke(refresh, [str(path)], catch_exceptions=False)
        assert counted(alice) == counted(alice)  # no refresh, no change
        operator.refresh()
        for _ in range(2):
            with pytest.raises(psycopg.errors.SystemError) as caught:
                counted(alice)
            assert "could not be completed" in str(caught.value)
            assert "age" not in str(caught.value)
        assert "age" in waited(log, "the policy cannot be served on them")
        put_data(tmp_path, 50_000)
        assert 49_800 < int(str(counted(alice))) < 50_200
    operator.close()


def test_opened_right_here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An engine that nobody renews, as a shell's, refuses to go on."""
    monkeypatch.setattr("dpsql.ledger.durable.LEASE", 1000)
    path = written(tmp_path)
    put_data(tmp_path, 1_000)
    CliRunner().invoke(ledger_command, ["init", str(path)], catch_exceptions=False)
    policy = load(path)
    engine = open_engine(policy)
    operator = open_ledger(policy.ledger, policy.dataset)
    engine.answer("alice", ASK, 0, Settings(), (), CancelToken())
    operator.refresh()
    with pytest.raises(Refreshed, match="have changed"):
        engine.answer("alice", ASK, 0, Settings(), (), CancelToken())
    with pytest.raises(Refreshed):
        engine.explain("alice", ASK, 0, Settings(), (), "json", CancelToken())
    operator.close()
    engine.close()
