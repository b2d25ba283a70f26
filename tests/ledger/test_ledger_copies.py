"""Backups while serving, restoring what was lost, exports, and layouts that change."""

from __future__ import annotations

import json
import sqlite3
import threading
from decimal import Decimal
from fractions import Fraction
from pathlib import Path

import dp_accounting
import pytest
from click.testing import CliRunner
from dp_accounting.pld import PLDAccountant
from ledger_cases import AMPLE, COST, DATASET, answer, debit, filled, made, release
from ledger_paid import paid
from test_ledger_commands import told, written

from dpsql.commands.audit import audit
from dpsql.commands.ledger import ledger as ledger_command
from dpsql.dp.privacy import ChoiceEvent, DeltaEvent, PureEvent, ZcdpEvent
from dpsql.ledger import (
    Kind,
    LedgerError,
    anchor_of,
    copies,
    home_of,
    init_ledger,
    migrations,
    open_ledger,
    verify_ledger,
)
from dpsql.ledger.balance import read
from dpsql.ledger.migrations import LAYOUT
from dpsql.types import Cost

NAME = "flights.ledger"


def backed_up(url: str, target: Path, anchor: str | None = None) -> None:
    copies.backup(home_of(url, DATASET), DATASET, anchor_of(anchor), target)


def restored(url: str, source: Path, anchor: str | None = None, *, word: bool = False) -> copies.Restored:
    return copies.restore(home_of(url, DATASET), DATASET, anchor_of(anchor), source, accept_loss=word)


def test_a_backup_is_the_ledger(tmp_path: Path) -> None:
    url = filled(tmp_path)
    backed_up(url, tmp_path / "copy")
    assert verify_ledger(f"sqlite:{tmp_path / 'copy'}", DATASET) == verify_ledger(url, DATASET)
    with pytest.raises(LedgerError, match="may be an older copy"):
        open_ledger(f"sqlite:{tmp_path / 'copy'}", DATASET)
    init_ledger(f"sqlite:{tmp_path / 'copy'}", DATASET)  # the operator's word
    copy = open_ledger(f"sqlite:{tmp_path / 'copy'}", DATASET)
    assert answer(copy, "bob", "key 0") == release("key 0")
    copy.close()
    with pytest.raises(LedgerError, match="exists already"):
        backed_up(url, tmp_path / "copy")


def test_a_backup_while_serving(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Any number of them, while debits go on: each proves itself, none is a mixture."""
    monkeypatch.setattr("dpsql.ledger.rows.BATCH", 7)
    monkeypatch.setattr("dpsql.ledger.durable.CHECKPOINT_EVERY", 20)
    url = filled(tmp_path)
    ledger = open_ledger(url, DATASET)
    enough = threading.Event()

    def serve() -> None:
        number = 0
        while not enough.is_set():
            answer(ledger, "alice", f"new {number}")
            number += 1

    thread = threading.Thread(target=serve)
    thread.start()
    try:
        for number in range(5):
            backed_up(url, tmp_path / f"copy {number}")
    finally:
        enough.set()
        thread.join()
    ledger.close()
    counts = [verify_ledger(f"sqlite:{tmp_path / f'copy {number}'}", DATASET).head.count for number in range(5)]
    assert counts == sorted(counts)


@pytest.mark.parametrize("change", ["UPDATE entry SET rho = '1' WHERE id = 3", "DELETE FROM release"])
def test_no_backup_of_a_damaged_ledger(change: str, tmp_path: Path) -> None:
    url = filled(tmp_path)
    connection = sqlite3.connect(tmp_path / NAME)
    connection.executescript(f"DROP TRIGGER entry_fixed; DROP TRIGGER release_kept; {change}")
    connection.close()
    with pytest.raises(LedgerError):
        backed_up(url, tmp_path / "copy")
    assert not (tmp_path / "copy").exists()


def lose(directory: Path) -> None:
    for path in directory.glob(f"{NAME}*"):
        path.unlink()


def test_the_newest_backup_needs_no_word(tmp_path: Path) -> None:
    anchor = str(tmp_path / "anchor")
    url = filled(tmp_path, anchor)
    backed_up(url, tmp_path / "copy", anchor)
    before = verify_ledger(url, DATASET, anchor)
    lose(tmp_path)
    done = restored(url, tmp_path / "copy", anchor)
    assert (done.lost, done.charged) == (0, Cost())
    assert verify_ledger(url, DATASET, anchor) == before


def test_an_older_backup_counts_what_is_lost(tmp_path: Path) -> None:
    """The entries are gone, what they spent is not: the anchor knew."""
    anchor = str(tmp_path / "anchor")
    url = filled(tmp_path, anchor)
    backed_up(url, tmp_path / "copy", anchor)
    ledger = open_ledger(url, DATASET, anchor)
    for number in range(3):
        debit(ledger, "alice", f"lost {number}")
    spent = ledger.dataset_spent()
    ledger.close()
    lose(tmp_path)
    with pytest.raises(LedgerError, match="3 later entries are lost"):
        restored(url, tmp_path / "copy", anchor)
    assert not (tmp_path / NAME).exists()
    done = restored(url, tmp_path / "copy", anchor, word=True)
    assert (done.lost, done.charged.rho) == (3, 3 * COST.rho)
    ledger = open_ledger(url, DATASET, anchor)
    assert ledger.dataset_spent() == spent
    assert ledger.entries()[-1].kind is Kind.RESTORE
    debit(ledger, "alice", "new")
    ledger.close()
    verify_ledger(url, DATASET, anchor)


def test_without_anything_that_knows(tmp_path: Path) -> None:
    url = filled(tmp_path)
    backed_up(url, tmp_path / "copy")
    lose(tmp_path)
    with pytest.raises(LedgerError, match="nothing is left that tells"):
        restored(url, tmp_path / "copy")
    done = restored(url, tmp_path / "copy", word=True)
    assert done.lost is None
    assert done.report.debits == 9


def test_a_broken_ledger_is_moved_aside(tmp_path: Path) -> None:
    url = filled(tmp_path)
    backed_up(url, tmp_path / "copy")
    (tmp_path / NAME).write_bytes(b"broken")
    assert restored(url, tmp_path / "copy").lost == 0
    assert (tmp_path / "flights.lost-1").read_bytes() == b"broken"


def test_a_whole_ledger_is_not_replaced(tmp_path: Path) -> None:
    url = filled(tmp_path)
    backed_up(url, tmp_path / "copy")
    with pytest.raises(LedgerError, match="is whole"):
        restored(url, tmp_path / "copy", word=True)


def test_no_backup_of_another_ledger(tmp_path: Path) -> None:
    (tmp_path / "other").mkdir()
    anchor = str(tmp_path / "anchor")
    url = filled(tmp_path, anchor)
    backed_up(filled(tmp_path / "other"), tmp_path / "copy")
    lose(tmp_path)
    with pytest.raises(LedgerError, match="belongs to another ledger"):
        restored(url, tmp_path / "copy", anchor, word=True)
    init_ledger(f"sqlite:{tmp_path / 'third'}", "third")
    with pytest.raises(LedgerError, match="of dataset 'third'"):
        restored(url, tmp_path / "third", anchor, word=True)


def test_an_open_ledger_is_refused_after_a_restore(tmp_path: Path) -> None:
    url = filled(tmp_path)
    backed_up(url, tmp_path / "copy")
    ledger = open_ledger(url, DATASET)
    lose(tmp_path)
    restored(url, tmp_path / "copy", word=True)
    with pytest.raises(Exception, match="incident"):
        debit(ledger, "alice", "key")
    ledger.close()


def test_export_in_dp_accountings_terms(tmp_path: Path) -> None:
    """An auditor's own sum over the exported events is what the ledger says."""
    url = made(tmp_path)
    ledger = open_ledger(url, DATASET)
    gaussian, laplace, keys = ZcdpEvent(Fraction(1, 200)), PureEvent(Fraction(1, 10)), DeltaEvent(Fraction(1, 10**9))
    cost = Cost(epsilon=10**14, rho=10**13, delta=10**6)
    chosen = ChoiceEvent(Fraction(1, 20))
    (reservation,) = ledger.reserve("alice", [paid("key", cost, (gaussian, laplace, keys, chosen))], AMPLE, AMPLE, "s")
    ledger.record(reservation, release("key"))  # type: ignore[arg-type]
    ledger.reserve("bob", [paid("key", cost)], AMPLE, AMPLE, "s")
    ledger.close()
    lines = [
        json.loads(line)
        for line in copies.export(home_of(url, DATASET), DATASET, None, lambda _, cost: read(cost, Decimal("5e-7")))
    ]
    assert [line["kind"] for line in lines] == ["open", "debit", "record", "view"]
    debited, viewed = lines[1], lines[3]
    assert debited["cost"] == {
        "epsilon": "0.642938",
        "rho": "0.01",
        "pure_epsilon": "0.1",
        "delta": "0.000000001",
    }
    assert debited["events"] == viewed["events"]
    assert [event["event"] for event in debited["events"]] == ["GaussianDpEvent", "LaplaceDpEvent", "delta", "choice"]
    assert debited["events"][2:] == [{"event": "delta", "delta": "0.000000001"}, {"event": "choice", "epsilon": "0.05"}]
    accountant = PLDAccountant()
    for event in debited["events"][:2]:
        accountant.compose(getattr(dp_accounting, event["event"])(event["noise_multiplier"]))
    assert 0.1 < accountant.get_epsilon(1e-6) < 0.7
    assert debited["events"][0]["noise_multiplier"] == pytest.approx(10)
    assert debited["at"].endswith("+00:00")


def test_export_of_a_damaged_ledger_fails(tmp_path: Path) -> None:
    url = filled(tmp_path)
    connection = sqlite3.connect(tmp_path / NAME)
    connection.executescript("DROP TRIGGER entry_fixed; UPDATE entry SET user = 'bob' WHERE id = 5")
    connection.close()
    lines = copies.export(home_of(url, DATASET), DATASET, None, lambda _, cost: read(cost, Decimal("5e-7")))
    assert len([next(lines) for _ in range(4)]) == 4
    with pytest.raises(LedgerError, match="entry 5 has been altered"):
        next(lines)


def test_layouts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An older ledger is refused until the operator migrates it; its entries stay as they are."""
    url = filled(tmp_path)
    before = verify_ledger(url, DATASET)
    for module in ("migrations", "tables", "sqlite"):
        monkeypatch.setattr(f"dpsql.ledger.{module}.LAYOUT", LAYOUT + 1)
    with pytest.raises(LedgerError, match=f"layout {LAYOUT}, this version of dpsql needs {LAYOUT + 1}") as caught:
        open_ledger(url, DATASET)
    assert "migrate" in str(caught.value.hint)
    with pytest.raises(LedgerError, match="from which there is no way"):
        home_of(url, DATASET).migrate()
    monkeypatch.setitem(
        migrations.STEPS, LAYOUT, ("CREATE TABLE note (text TEXT NOT NULL)", "CREATE INDEX n ON note (text)")
    )
    assert home_of(url, DATASET).migrate() == (LAYOUT, LAYOUT + 1)
    assert home_of(url, DATASET).migrate() == (LAYOUT + 1, LAYOUT + 1)
    assert verify_ledger(url, DATASET) == before
    monkeypatch.undo()
    with pytest.raises(LedgerError, match=f"layout {LAYOUT + 1}, this version of dpsql reads {LAYOUT}"):
        open_ledger(url, DATASET)


def test_a_migration_is_whole_or_not(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    url = filled(tmp_path)
    for module in ("migrations", "tables", "sqlite"):
        monkeypatch.setattr(f"dpsql.ledger.{module}.LAYOUT", LAYOUT + 1)
    monkeypatch.setitem(migrations.STEPS, LAYOUT, ("CREATE TABLE note (text TEXT)", "DROP TABLE nothing"))
    with pytest.raises(LedgerError, match="cannot be migrated"):
        home_of(url, DATASET).migrate()
    monkeypatch.undo()
    verify_ledger(url, DATASET)


def test_commands(tmp_path: Path) -> None:
    path, copy, lines = str(written(tmp_path)), str(tmp_path / "copy"), str(tmp_path / "lines")
    told(ledger_command, "init", path)
    opened = open_ledger(f"sqlite:{tmp_path / NAME}", "flights")
    answer(opened, "alice", "key")
    opened.close()
    assert "backup of flights: " in told(ledger_command, "backup", path, copy)
    assert told(ledger_command, "export", path).count("\n") == 3
    told(ledger_command, "export", path, "--output", lines)
    assert Path(lines).read_text() == told(ledger_command, "export", path)
    assert f"layout {LAYOUT} already" in told(ledger_command, "migrate", path)
    lose(tmp_path)
    result = CliRunner().invoke(ledger_command, ["restore", path, copy])
    assert isinstance(result.exception, LedgerError)
    said = told(ledger_command, "restore", path, copy, "--accept-loss")
    assert "is not counted" in said
    assert "run `dpsql refresh`" in said  # one may be among what is lost
    told(ledger_command, "verify", path)
    assert "entries lost: unknown" in told(audit, path, "--format", "json")  # type: ignore[arg-type]
