"""The ledger in Postgres: what only a server can do to it. What both stores promise is in the other tests."""

from __future__ import annotations

from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path

import psycopg
import pytest
from ledger_cases import COST, DATASET, STEPS, answer, debit, filled, made_in_postgres, release, run, start

from dpsql.errors import Failed
from dpsql.ledger import (
    Calendar,
    Ledger,
    LedgerError,
    anchor_of,
    copies,
    home_of,
    init_ledger,
    open_ledger,
    verify_ledger,
)
from dpsql.ledger.durable import DurableLedger
from dpsql.ledger.migrations import LAYOUT
from dpsql.ledger.postgres import PostgresHome, PostgresStore
from dpsql.types import Cost

SCHEMA = '"dpsql flights"'


@pytest.fixture
def url(postgres_uri: str) -> str:
    return made_in_postgres(postgres_uri)


@pytest.fixture
def ledger(url: str) -> Iterator[Ledger]:
    ledger = open_ledger(url, DATASET)
    yield ledger
    ledger.close()


def edit(url: str, *statements: str) -> None:
    """As a superuser who means harm."""
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(f"SET search_path = {SCHEMA}".encode())
        for statement in statements:
            connection.execute(statement.encode())


def disconnected(ledger: Ledger) -> None:
    """The server ends the ledger's connection."""
    assert isinstance(ledger, DurableLedger)
    assert isinstance(ledger._store, PostgresStore)
    pid = ledger._store._connection.info.backend_pid
    with psycopg.connect(ledger._store._home.url, autocommit=True) as connection:
        connection.execute("SELECT pg_terminate_backend(%s, 5000)", (pid,))


def test_made_once_and_opened_only_if_there(postgres_uri: str, url: str) -> None:
    with pytest.raises(LedgerError, match="already"):
        init_ledger(url, DATASET)
    with pytest.raises(LedgerError, match=r"there is no ledger at postgresql://.* \"dpsql other\""):
        open_ledger(postgres_uri, "other")
    init_ledger(postgres_uri, "other")
    open_ledger(postgres_uri, "other").close()
    edit(url, 'DROP SCHEMA "dpsql other" CASCADE')


def test_no_password_in_messages() -> None:
    home = PostgresHome("postgresql://user:secret@db.example/x?sslmode=require", "d" * 200)
    assert "secret" not in home.name + repr(home)
    assert len(home.schema.encode()) <= 63


def test_no_server() -> None:
    with pytest.raises(LedgerError, match="cannot be reached"):
        open_ledger("postgresql://127.0.0.1:1/none?connect_timeout=2", DATASET)


@pytest.mark.parametrize("setting", ["synchronous_commit = off", "default_transaction_read_only = on"])
def test_a_server_that_does_not_keep_what_it_says(setting: str, url: str) -> None:
    """What the database sets for its sessions does not count, or is refused."""
    edit(url, f"DO $$ BEGIN EXECUTE format('ALTER DATABASE %I SET {setting}', current_database()); END $$")
    try:
        if "read_only" in setting:
            with pytest.raises(LedgerError, match="transaction_read_only = on"):
                open_ledger(url, DATASET)
        else:
            ledger = open_ledger(url, DATASET)
            assert isinstance(ledger, DurableLedger)
            assert isinstance(ledger._store, PostgresStore)
            assert ledger._store._connection.execute("SHOW synchronous_commit").fetchone() == ("on",)
            ledger.close()
    finally:
        name = setting.split(" ")[0]
        with psycopg.connect(url, autocommit=True) as connection:
            connection.execute("SET default_transaction_read_only = off")
            reset = f"DO $$ BEGIN EXECUTE format('ALTER DATABASE %I RESET {name}', current_database()); END $$"
            connection.execute(reset.encode())


@pytest.mark.parametrize(
    "change",
    [
        "UPDATE entry SET rho = '1' WHERE id = 2",
        "UPDATE entry SET dataset_rho = '0' WHERE id = (SELECT max(id) FROM entry)",
        "DELETE FROM entry WHERE id = (SELECT max(id) - 1 FROM entry)",
        "DELETE FROM entry WHERE id = 1",
        "TRUNCATE entry",
        "UPDATE release SET body = 'x' WHERE reservation = 2",
        "DELETE FROM release",
        "INSERT INTO release VALUES (999, 'key', 'x')",
        "DROP TABLE release",
        "DELETE FROM layout",
        "UPDATE layout SET version = 9",
    ],
)
def test_altered_by_hand(change: str, url: str) -> None:
    ledger = open_ledger(url, DATASET)
    answer(ledger, "alice", "key")
    debit(ledger, "alice", "other")
    ledger.close()
    if not change.startswith(("INSERT", "DROP")) and "layout" not in change:
        with pytest.raises(psycopg.Error, match="append-only"):
            edit(url, change)
    edit(url, "SET session_replication_role = replica", change)
    with pytest.raises(LedgerError):
        open_ledger(url, DATASET)


def test_a_lost_connection_is_made_again(ledger: Ledger) -> None:
    """Lost while nobody used it, it is noticed by nobody, and no debit is forgotten or made twice."""
    debit(ledger, "alice", "one")
    disconnected(ledger)
    debit(ledger, "alice", "two")
    assert ledger.spent("alice").rho == 2 * COST.rho


def test_an_older_database_is_refused(ledger: Ledger, url: str, tmp_path: Path) -> None:
    """A replica that lacks a commit took over: while open by the chain, at the start by the anchor."""
    anchor = str(tmp_path / "anchor")
    init_ledger(url, DATASET, anchor)
    other = open_ledger(url, DATASET, anchor)
    debit(other, "alice", "one")
    debit(other, "alice", "two")
    edit(url, "SET session_replication_role = replica", "DELETE FROM entry WHERE id = 3")
    for _ in range(2):
        with pytest.raises(Failed) as caught:
            debit(other, "alice", "three")
        assert "entry 3 is gone" in caught.value.cause
    other.close()
    with pytest.raises(LedgerError, match="older copy"):
        open_ledger(url, DATASET, anchor)


@pytest.mark.parametrize("step", ["committed", "recorded"])
def test_killed_at(step: str, url: str) -> None:
    process = run(step, url)
    assert (process.returncode, process.stdout) == (-9, "")
    ledger = open_ledger(url, DATASET)
    assert ledger.dataset_spent() == COST
    assert answer(ledger, "alice", "key") == release("key")
    paid = 2 - (STEPS.index(step) >= STEPS.index("recorded"))
    assert ledger.spent("alice").rho == paid * COST.rho
    ledger.close()


def test_exactly_what_fits(url: str) -> None:
    racers = [start("race", url, "dataset", f"user {number}", "4", "2", "15") for number in range(3)]
    counts = [int(racer.communicate(timeout=60)[0].split()[0]) for racer in racers]
    assert sum(counts) == 15
    assert verify_ledger(url, DATASET).debits == 15


def test_windows_and_grants(ledger: Ledger, url: str) -> None:
    month = Calendar("month", "UTC")
    debit(ledger, "alice", "one")
    ledger.grant("alice", Decimal(1))
    other = open_ledger(url, DATASET)
    spending = other.spending("alice", month)
    assert (spending.spent, spending.granted) == (COST, 10**15)
    other.close()


def test_checkpoints(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dpsql.ledger.durable.CHECKPOINT_EVERY", 8)
    for turn in range(4):
        ledger = open_ledger(url, DATASET)
        for number in range(5):
            answer(ledger, "alice", f"{turn} {number}")
        ledger.close()
    assert verify_ledger(url, DATASET).debits == 20
    edit(url, "UPDATE checkpoint SET body = 'x'")
    open_ledger(url, DATASET).close()


def test_from_a_file_to_a_server_and_back(url: str, tmp_path: Path) -> None:
    """A backup is a file whatever the store; restoring it moves a ledger from one store to the other."""
    file = filled(tmp_path)
    before = verify_ledger(file, DATASET)
    copies.backup(home_of(file, DATASET), DATASET, None, tmp_path / "copy")
    edit(url, f"DROP SCHEMA {SCHEMA} CASCADE")
    anchor = anchor_of(str(tmp_path / "flights.ledger-head"))
    copies.restore(home_of(url, DATASET), DATASET, anchor, tmp_path / "copy", accept_loss=False)
    assert verify_ledger(url, DATASET, str(anchor)) == before
    ledger = open_ledger(url, DATASET)
    answer(ledger, "bob", "key 1")
    ledger.close()
    copies.backup(home_of(url, DATASET), DATASET, None, tmp_path / "back")
    assert verify_ledger(f"sqlite:{tmp_path / 'back'}", DATASET) == verify_ledger(url, DATASET)
    with pytest.raises(LedgerError, match="is whole"):
        copies.restore(home_of(url, DATASET), DATASET, None, tmp_path / "back", accept_loss=True)
    edit(url, "SET session_replication_role = replica", "DELETE FROM entry WHERE id = 4")
    done = copies.restore(home_of(url, DATASET), DATASET, None, tmp_path / "back", accept_loss=True)
    assert (done.lost, done.charged) == (None, Cost())
    edit(url, 'DROP SCHEMA "dpsql flights lost 1" CASCADE')


def test_layouts(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for module in ("migrations", "postgres"):
        monkeypatch.setattr(f"dpsql.ledger.{module}.LAYOUT", LAYOUT + 1)
    with pytest.raises(LedgerError, match=f"needs {LAYOUT + 1}"):
        open_ledger(url, DATASET)
    monkeypatch.setattr("dpsql.ledger.migrations.STEPS", {LAYOUT: ("CREATE TABLE note (text TEXT NOT NULL)",)})
    assert home_of(url, DATASET).migrate() == (LAYOUT, LAYOUT + 1)
    open_ledger(url, DATASET).close()
