"""Whatever happens to the files: the ledger proves that nothing is lost, or it is refused with a clear message."""

from __future__ import annotations

import os
import random
import re
import shutil
import sqlite3
import tempfile
from collections.abc import Iterator
from contextlib import closing, suppress
from pathlib import Path

import pytest
from ledger_cases import COST, DATASET, answer, connection_of, debit, filled, made, release, run, until_failed

from dpsql.errors import Failed
from dpsql.ledger import LedgerError, Report, init_ledger, open_ledger, verify_ledger

NAME = "flights.ledger"


def flipped(data: bytes, position: int, bit: int) -> bytes:
    return data[:position] + bytes([data[position] ^ (1 << bit)]) + data[position + 1 :]


def verified(url: str) -> Report | str:
    """What a verification finds: a ledger, or why it is refused."""
    try:
        return verify_ledger(url, DATASET)
    except LedgerError as error:
        return error.message


def test_one_bit_changed_anywhere(tmp_path: Path) -> None:
    """Refused, unless the bit means nothing: then entries, totals and releases are all as they were."""
    url = filled(tmp_path)
    path = tmp_path / NAME
    whole, expected = path.read_bytes(), verify_ledger(url, DATASET)
    choose = random.Random(7)
    positions = [*range(100), *(choose.randrange(len(whole)) for _ in range(200))]
    refused = 0
    for position in positions:
        path.write_bytes(flipped(whole, position, choose.randrange(8)))
        state = verified(url)
        assert state == expected or (isinstance(state, str) and NAME in state), position
        refused += isinstance(state, str)
    assert refused > 70


@pytest.mark.parametrize(
    "change",
    [
        "UPDATE entry SET rho = '1' WHERE id = 2",
        "UPDATE entry SET account_rho = '0', dataset_rho = '0' WHERE id = (SELECT max(id) FROM entry)",
        "UPDATE entry SET user = 'mallory' WHERE id = 4",
        "UPDATE entry SET hash = 'x' WHERE id = (SELECT max(id) FROM entry)",
        "UPDATE entry SET at = 'yesterday' WHERE id = 3",
        "UPDATE entry SET at = at + 1 WHERE id = 3",
        "DELETE FROM entry WHERE id = (SELECT max(id) FROM entry)",
        "DELETE FROM entry WHERE id = 5",
        "DELETE FROM entry",
        "DELETE FROM entry WHERE id = 1",
        "UPDATE release SET body = CAST(replace(CAST(body AS TEXT), '17', '18') AS BLOB) WHERE reservation = 2",
        "DELETE FROM release WHERE reservation = 2",
        "INSERT INTO release VALUES (999, 'key 0', x'00')",
        "UPDATE release SET reservation = reservation + 1000",
        'INSERT INTO entry SELECT id + 1, at, clock, kind, user, account, "window", key, statement, reservation, gate, '
        "epsilon, rho, delta, account_epsilon, account_rho, account_delta, dataset_epsilon, dataset_rho, "
        "dataset_delta, content, hash FROM entry WHERE id = (SELECT max(id) FROM entry)",
        "PRAGMA application_id = 1",
        "PRAGMA user_version = 9",
        "DROP TABLE release",
    ],
)
def test_altered_by_hand(change: str, tmp_path: Path) -> None:
    url = filled(tmp_path)
    connection = sqlite3.connect(tmp_path / NAME)
    for (trigger,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'trigger'").fetchall():
        connection.execute(f"DROP TRIGGER {trigger}")
    connection.execute(change)
    connection.commit()
    connection.close()
    with pytest.raises(LedgerError):
        open_ledger(url, DATASET)


@pytest.mark.parametrize("change", ["UPDATE entry SET rho = '1'", "DELETE FROM entry", "DELETE FROM release"])
def test_append_only(change: str, tmp_path: Path) -> None:
    filled(tmp_path)
    connection = sqlite3.connect(tmp_path / NAME)
    with pytest.raises(sqlite3.IntegrityError, match="append-only"):
        connection.execute(change)
    connection.close()


@pytest.mark.parametrize("keep", [0, 1, 99, 100, 4095, 4096, 12288, -4096, -1])
def test_truncated(keep: int, tmp_path: Path) -> None:
    url = filled(tmp_path)
    path = tmp_path / NAME
    path.write_bytes(path.read_bytes()[:keep])
    with pytest.raises(LedgerError, match=NAME):
        open_ledger(url, DATASET)


def test_missing(tmp_path: Path) -> None:
    url = filled(tmp_path)
    (tmp_path / NAME).unlink()
    with pytest.raises(LedgerError, match="there is no ledger at"):
        open_ledger(url, DATASET)
    with pytest.raises(LedgerError, match=r"there was a ledger at .* before") as caught:
        init_ledger(url, DATASET)
    assert "forget" in str(caught.value.hint)
    assert not (tmp_path / NAME).exists()


def test_never_made_by_opening(tmp_path: Path) -> None:
    with pytest.raises(LedgerError, match="there is no ledger"):
        open_ledger(f"sqlite:{tmp_path}/new.ledger", DATASET)
    assert list(tmp_path.iterdir()) == []


def test_never_made_twice(tmp_path: Path) -> None:
    url = filled(tmp_path)
    before = (tmp_path / NAME).read_bytes()
    with pytest.raises(LedgerError, match="already"):
        init_ledger(url, DATASET)
    assert (tmp_path / NAME).read_bytes() == before


def test_wrong_dataset(tmp_path: Path) -> None:
    with pytest.raises(LedgerError, match="that of dataset 'flights', not of 'Flights'") as refusal:
        open_ledger(filled(tmp_path), "Flights")
    assert refusal.value.hint == "A dataset keeps its name for ever: check `dataset` and `ledger` in the policy."


def test_something_else(tmp_path: Path) -> None:
    (tmp_path / NAME).write_text("not a ledger " * 1000)
    with pytest.raises(LedgerError, match="damaged or no ledger"):
        open_ledger(f"sqlite:{tmp_path / NAME}", DATASET)
    sqlite3.connect(tmp_path / "other.db").close()
    (tmp_path / "other.db").touch()
    with pytest.raises(LedgerError, match="empty or not a dpsql ledger"):
        open_ledger(f"sqlite:{tmp_path / 'other.db'}", DATASET)


def test_old_copy(tmp_path: Path) -> None:
    """The whole directory restored: the anchor elsewhere knows better. The ledger alone: the file beside it does."""
    live, old = tmp_path / "live", tmp_path / "old"
    live.mkdir()
    anchor = str(tmp_path / "anchor")
    url = filled(live, anchor)
    shutil.copytree(live, old)
    ledger = open_ledger(url, DATASET, anchor)
    debit(ledger, "alice", "one more")
    ledger.close()

    shutil.copy(old / NAME, live / NAME)
    with pytest.raises(LedgerError, match=r"older copy: it holds .* but .*-head remembers"):
        open_ledger(url, DATASET)
    shutil.copy(old / f"{NAME}-head", live / f"{NAME}-head")
    with pytest.raises(LedgerError, match=r"older copy: it holds .* but .*anchor remembers"):
        open_ledger(url, DATASET, anchor)


@pytest.mark.parametrize("anchored", [False, True])
def test_old_copy_without_its_head(anchored: bool, tmp_path: Path) -> None:
    """Deleting what remembers the newest entry makes no old copy the newest; only the operator's word does."""
    anchor = str(tmp_path / "anchor") if anchored else None
    url = filled(tmp_path, anchor)
    old = (tmp_path / NAME).read_bytes()
    ledger = open_ledger(url, DATASET, anchor)
    debit(ledger, "alice", "one more")
    ledger.close()
    (tmp_path / NAME).write_bytes(old)
    (tmp_path / f"{NAME}-head").unlink()
    with pytest.raises(LedgerError, match="older copy") as refusal:
        open_ledger(url, DATASET, anchor)
    assert anchored or "ledger init" in str(refusal.value.hint)
    if anchored:
        with pytest.raises(LedgerError, match="older copy"):
            init_ledger(url, DATASET, anchor)
        return
    assert init_ledger(url, DATASET) == verify_ledger(url, DATASET).head
    open_ledger(url, DATASET).close()


def test_what_only_an_anchor_can_tell(tmp_path: Path) -> None:
    """As docs/operating.md says: without one, an older copy with its own head is served."""
    url = filled(tmp_path)
    old = {path: path.read_bytes() for path in tmp_path.iterdir()}
    ledger = open_ledger(url, DATASET)
    spent = ledger.dataset_spent()
    debit(ledger, "alice", "one more")
    ledger.close()
    for path, data in old.items():
        path.write_bytes(data)
    ledger = open_ledger(url, DATASET)
    assert ledger.dataset_spent() == spent
    ledger.close()
    told = (Path(__file__).parents[2] / "docs" / "operating.md").read_text()
    assert "an older copy put back together with its own `-head` file" in " ".join(told.split())


def test_forked_history(tmp_path: Path) -> None:
    """Two copies that went on by themselves: the anchor follows one, the other is refused, even if it is longer."""
    live, other = tmp_path / "live", tmp_path / "other"
    live.mkdir()
    anchor = str(tmp_path / "anchor")
    url = filled(live, anchor)
    shutil.copytree(live, other)
    for directory, asks, known in ((live, 1, anchor), (other, 3, None)):
        ledger = open_ledger(f"sqlite:{directory / NAME}", DATASET, known)
        for number in range(asks):
            debit(ledger, "alice", f"{directory} {number}")
        ledger.close()
    open_ledger(url, DATASET, anchor).close()
    with pytest.raises(LedgerError, match=r"not the one that .*anchor remembers"):
        open_ledger(f"sqlite:{other / NAME}", DATASET, anchor)


def test_anchor_damaged_or_missing(tmp_path: Path) -> None:
    anchor = tmp_path / "anchor"
    url = filled(tmp_path, str(anchor))
    whole = anchor.read_bytes()
    for position in range(0, len(whole), 3):
        anchor.write_bytes(flipped(whole, position, 1))
        with pytest.raises(LedgerError, match="anchor"):
            open_ledger(url, DATASET, str(anchor))
    anchor.unlink()
    with pytest.raises(LedgerError, match="anchor is missing"):
        open_ledger(url, DATASET, str(anchor))
    init_ledger(url, DATASET, str(anchor))
    assert anchor.read_bytes() == whole
    open_ledger(url, DATASET, str(anchor)).close()


def test_anchor_without_its_ledger(tmp_path: Path) -> None:
    anchor = tmp_path / "anchor"
    url = filled(tmp_path, str(anchor))
    for name in (NAME, f"{NAME}-head"):
        (tmp_path / name).unlink()
    with pytest.raises(LedgerError, match="anchor is left of it"):
        init_ledger(url, DATASET, str(anchor))


@pytest.mark.parametrize("fate", ["removed", "replaced", "truncated", "log removed", "anchor ahead", "head removed"])
def test_changed_while_open(fate: str, tmp_path: Path) -> None:
    anchor = tmp_path / "anchor"
    url = filled(tmp_path, str(anchor))
    path = tmp_path / NAME
    ledger = open_ledger(url, DATASET, str(anchor))
    match fate:
        case "removed":
            path.unlink()
        case "replaced":
            shutil.copy(path, tmp_path / "copy")
            os.replace(tmp_path / "copy", path)
        case "truncated":
            os.truncate(path, 8192)
        case "log removed":
            (tmp_path / f"{NAME}-wal").unlink()
        case "anchor ahead":
            anchor.write_text(anchor.read_text().replace(" 000000000000000000", " 000000000000000001"))
        case "head removed":
            (tmp_path / f"{NAME}-head").unlink()
    for _ in range(2):
        with pytest.raises(Failed) as caught:
            debit(ledger, "alice", "new")
        assert NAME in caught.value.cause
        assert NAME not in caught.value.message  # the client learns nothing of the operator's files
    ledger.close()


@pytest.mark.parametrize("folded", [True, False])
def test_an_old_copy_written_over_it_while_open(folded: bool, tmp_path: Path) -> None:
    """The same file with its old bytes, its log folded back or not: refused, or nothing is missing."""
    anchor = str(tmp_path / "anchor")
    url = filled(tmp_path, anchor)
    path = tmp_path / NAME
    old = path.read_bytes()
    ledger = open_ledger(url, DATASET, anchor)
    for number in range(5):
        debit(ledger, "alice", f"more {number}")
    spent = ledger.dataset_spent().rho
    if folded:
        connection_of(ledger).execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
    with path.open("r+b") as file:
        file.write(old)
        file.truncate(len(old))
    with suppress(Failed):
        debit(ledger, "alice", "new")
        assert ledger.dataset_spent().rho == spent + COST.rho
    ledger.close()
    with suppress(LedgerError), closing(open_ledger(url, DATASET, anchor)) as again:
        assert again.dataset_spent().rho >= spent


def test_release_altered_while_open(tmp_path: Path) -> None:
    """Read again from a file that somebody writes to: refused, and from then on everything is."""
    ledger = open_ledger(filled(tmp_path), DATASET)
    other = sqlite3.connect(tmp_path / NAME)
    other.executescript("DROP TRIGGER release_fixed; UPDATE release SET body = x'00' WHERE reservation = 2;")
    other.close()
    with pytest.raises(Failed) as caught:
        answer(ledger, "alice", "key 0")
    assert "altered" in caught.value.cause
    with pytest.raises(Failed):
        answer(ledger, "alice", "key 3")
    ledger.close()


def test_entry_rolled_back_while_open(tmp_path: Path) -> None:
    ledger = open_ledger(filled(tmp_path), DATASET)
    other = sqlite3.connect(tmp_path / NAME)
    other.executescript("DROP TRIGGER entry_kept; DELETE FROM entry WHERE id = (SELECT max(id) FROM entry);")
    other.close()
    with pytest.raises(Failed) as caught:
        answer(ledger, "alice", "key 0")
    assert "is gone or has been altered" in caught.value.cause
    ledger.close()


@pytest.fixture
def open_directory() -> Iterator[Path]:
    """A directory that a user without privileges can reach."""
    directory = Path(tempfile.mkdtemp(prefix="dpsql-ledger-"))
    directory.chmod(0o755)
    yield directory
    directory.chmod(0o755)
    shutil.rmtree(directory)


@pytest.mark.parametrize(("file_mode", "directory_mode"), [(0o444, 0o777), (0o666, 0o555)])
def test_read_only(file_mode: int, directory_mode: int, open_directory: Path) -> None:
    url = made(open_directory)
    for path in open_directory.iterdir():
        path.chmod(file_mode)
    open_directory.chmod(directory_mode)
    process = run("unprivileged", url)
    assert process.returncode == 0, process.stderr
    assert re.match(rf"the (ledger|anchor) {open_directory / NAME}(-head)? cannot be ", process.stdout)


def test_disk_full(tmp_path: Path) -> None:
    """SQLite finds no page: no debit, no answer; when there is room again, it goes on."""
    ledger = open_ledger(filled(tmp_path), DATASET)
    connection = connection_of(ledger)
    pages = connection.execute("PRAGMA page_count").fetchone()[0]
    connection.execute(f"PRAGMA max_page_count = {pages}").fetchall()
    answered, cause = until_failed(ledger)
    assert "the disk is full" in cause
    connection.execute("PRAGMA max_page_count = 1000000").fetchall()
    assert answer(ledger, "alice", "later") == release("later")
    debits = ledger.spent("alice").rho // COST.rho
    assert debits - (8 + answered + 1) in (0, 1)
    ledger.close()
    assert verify_ledger(f"sqlite:{tmp_path / NAME}", DATASET).releases == 8 + answered + 1


def test_file_may_not_grow(tmp_path: Path) -> None:
    url = made(tmp_path)
    process = run("small_disk", url)
    answered, _, cause = process.stdout.partition(" ")
    assert "no room to record" in cause or "the disk" in cause, process
    report = verify_ledger(url, DATASET)
    assert report.releases == int(answered) <= report.debits <= int(answered) + 1


def test_not_across_a_fork(tmp_path: Path) -> None:
    assert run("fork", filled(tmp_path)).stdout == "child refused, parent answered\n"
