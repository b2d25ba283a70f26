"""The terms in force are the ledger's: two proxies over one ledger, of which one has a stricter policy."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psycopg
import pytest
from click.testing import CliRunner
from ledger_cases import AMPLE, COST, DATASET, made, made_in_postgres
from ledger_paid import paid
from test_ledger_reload import connected, serving, waited, written

from dpsql.commands.check import check
from dpsql.errors import Rejected
from dpsql.ledger import Ledger, open_ledger
from dpsql.policy.force import Force, Superseded, text_of
from dpsql.policy.load import load
from dpsql.policy.model import Policy
from dpsql.types import Reservation

STRICT = ("{epsilon: 4,", "{epsilon: 2,")


@contextmanager
def second(first: Path, *edits: tuple[str, str]) -> Iterator[tuple[int, int, Path]]:
    """Another proxy, over the same ledger and data, from a policy file of its own: its process, port and file."""
    folder = first.parent / "second"
    folder.mkdir(exist_ok=True)
    path = written(
        folder, ("sqlite:flights.ledger", "sqlite:../flights.ledger"), ("duckdb:flights", "duckdb:../flights"), *edits
    )
    (folder / "flights.duckdb").touch()
    with serving(path) as (process, port, _):
        yield process.pid, port, path


def cheaply(port: int) -> psycopg.Connection[tuple[object, ...]]:
    """A client whose statements hardly cost anything."""
    made = connected(port, "bob")
    made.execute("SET dpsql.epsilon = 0.01")
    return made


def spent(one: psycopg.Connection[tuple[object, ...]]) -> object:
    return one.execute("SHOW dpsql.budget").fetchall()[1][2]


def test_a_proxy_that_has_not_taken_over_a_stricter_policy(tmp_path: Path) -> None:
    """It debits nothing, its own unchanged file is not written back, and with the operator's word it is."""
    path = written(tmp_path)
    with serving(path) as (process, port, log), cheaply(port) as bob:
        bob.execute("SELECT COUNT(*) FROM people WHERE age > 1")
        before = spent(bob)
        with second(path, STRICT) as (_, other, _file), cheaply(other) as there:
            with pytest.raises(psycopg.Error, match="a stricter policy is in force") as refusal:
                bob.execute("SELECT COUNT(*) FROM people WHERE age > 2")
            assert refusal.value.sqlstate == "40001"
            assert spent(bob) == before == spent(there)
            assert "promise more: weaker: privacy.budget.epsilon: 2 -> 4" in waited(log, "nothing is debited")

            os.kill(process.pid, signal.SIGHUP)
            assert "promises less than the policy in force" in waited(log, "reload refused")
            there.execute("SELECT COUNT(*) FROM people WHERE age > 2")
            with pytest.raises(psycopg.Error, match="a stricter policy is in force"):
                bob.execute("SELECT COUNT(*) FROM people WHERE age > 3")

            CliRunner().invoke(check, [str(path), "--accept"], catch_exceptions=False)
            os.kill(process.pid, signal.SIGHUP)
            waited(log, "reload: ")
            bob.execute("SELECT COUNT(*) FROM people WHERE age > 3")
            there.execute("SELECT COUNT(*) FROM people WHERE age > 4")  # it is stricter than what is in force now


def test_a_reload_by_all_workers_refuses_nobody(tmp_path: Path) -> None:
    """Statements go on while workers take a stricter policy over one after the other."""
    path = written(tmp_path)
    with serving(path, "--workers", "2") as (process, port, log):
        clients = [cheaply(port) for _ in range(4)]
        failed: list[str] = []
        done = threading.Event()

        def ask(number: int) -> None:
            for turn in range(10_000):
                if done.is_set():
                    return
                try:
                    clients[number].execute(
                        f"SELECT COUNT(*) FROM people WHERE age > {turn % 100} AND age < {number + 101}"
                    )
                except psycopg.Error as error:
                    failed.append(str(error))

        threads = [threading.Thread(target=ask, args=(number,)) for number in range(len(clients))]
        for thread in threads:
            thread.start()
        for turn in range(4):
            written(tmp_path, ("{epsilon: 4,", f"{{epsilon: 3.{9 - turn},"))
            os.kill(process.pid, signal.SIGHUP)
            waited(log, "reload: ", turn + 1)
        done.set()
        for thread in threads:
            thread.join()
        for client in clients:
            client.close()
        assert failed == []


@pytest.fixture(params=["sqlite", "postgres"])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    return made(tmp_path) if request.param == "sqlite" else made_in_postgres(request.getfixturevalue("postgres_uri"))


def strict(tmp_path: Path) -> tuple[Policy, Policy]:
    return load(written(tmp_path)), load(written(tmp_path, STRICT, name="strict.yaml"))


def debit(ledger: Ledger, key: str, force: Force) -> Reservation:
    (made,) = ledger.reserve("alice", [paid(key, COST)], AMPLE, AMPLE, "s", terms=force)
    assert isinstance(made, Reservation)
    return made


def test_looked_at_in_the_transaction_of_the_debit(url: str, tmp_path: Path) -> None:
    """A policy that another process puts in force between a statement's first look and its debit holds for it."""
    lax, stricter = strict(tmp_path)
    ours, theirs = open_ledger(url, DATASET), open_ledger(url, DATASET)
    force, looks = Force(lax), []

    def looked(held: str) -> None:
        looks.append(held)
        force(held)
        if len(looks) == 1:
            thread = threading.Thread(target=theirs.follow, args=(text_of(stricter),))
            thread.start()
            thread.join()

    ours.follow(text_of(lax))
    with pytest.raises(Superseded):
        ours.reserve("alice", [paid("key", COST)], AMPLE, AMPLE, "s", terms=looked)
    assert looks == [text_of(lax), text_of(stricter)]
    assert ours.dataset_spent().rho == 0
    assert debit(theirs, "key", Force(stricter))
    for ledger in (ours, theirs):
        ledger.close()


def test_a_policy_follows_only_what_is_in_force_then(url: str, tmp_path: Path) -> None:
    """Looked at before, another one may have come between: the check is in the transaction of the new entry."""
    lax, stricter = strict(tmp_path)
    ledger, other = open_ledger(url, DATASET), open_ledger(url, DATASET)
    ledger.follow(text_of(lax))
    other.follow(text_of(stricter))
    asked: list[tuple[str, bool]] = []

    def refuse(held: str, accepted: bool) -> None:
        asked.append((held, accepted))
        if not accepted:
            raise Rejected("no")

    with pytest.raises(Rejected):
        ledger.follow(text_of(lax), refuse)
    assert ledger.policy() == text_of(stricter)
    other.accept(text_of(lax))
    assert ledger.follow(text_of(lax), refuse) is not None
    assert asked == [(text_of(stricter), False), (text_of(stricter), True)]
    for each in (ledger, other):
        each.close()


def test_as_much_or_more_may_be_served(tmp_path: Path) -> None:
    lax, stricter = strict(tmp_path)
    for held in ("", text_of(lax), text_of(stricter)):
        Force(stricter)(held)
    Force(lax)(text_of(lax))
    for _ in range(2):
        with pytest.raises(Superseded, match="stricter"):
            Force(lax)(text_of(stricter))
