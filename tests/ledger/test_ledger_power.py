"""Power lost at any moment, unsynced writes lost, kept, mixed or torn: what somebody was told is never forgotten.

The ledger runs its own code over the SQLite that Python uses; only the calls to the system are noted on their way (see
`ledger_disk`). At each moment the disk is made again as it may be then, and the ledger is opened on it.
"""

from __future__ import annotations

import pickle
import random
import subprocess
import sys
import threading
from pathlib import Path

import ledger_disk
import pytest
from ledger_cases import COST, DATASET, debit, made, release
from ledger_disk import MODES, Delete, Note, Recorder, Sync, Told, Write, crashed, library, lost

from dpsql.ledger import LedgerError, folding, open_ledger, verify_ledger

NAME = "flights.ledger"
THREADS, ROUNDS = 3, 6


def work(url: str, notes: str) -> None:
    """Answers by several threads at once, in two runs; the log is folded back often."""
    sqlite = library()
    assert sqlite is not None
    folding.WRITES = 3  # type: ignore[misc]
    recorder = Recorder(sqlite)
    with recorder.anchors():
        for part in range(2):
            _served(url, recorder, part)
    recorder.save(Path(notes))


def _served(url: str, recorder: Recorder, part: int) -> None:
    ledger = open_ledger(url, DATASET)

    def ask(thread: int) -> None:
        for number in range(ROUNDS):
            key = f"{part} {thread} {number}"
            reservation = debit(ledger, f"user {thread}", key)
            recorder.told(("granted", key))
            if number % 3:
                ledger.record(reservation, release(key))
                recorder.told(("answered", key))

    threads = [threading.Thread(target=ask, args=(thread,)) for thread in range(THREADS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    ledger.close()


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> tuple[dict[str, bytes], list[Note], Path]:
    """The files before, all that happened to them, and where."""
    if library() is None:
        pytest.skip("this Python has its SQLite built in, so its calls cannot be seen")
    folder = tmp_path_factory.mktemp("power")
    url = made(folder)
    before = {str(path): path.read_bytes() for path in folder.iterdir()}
    subprocess.run([sys.executable, __file__, url, str(folder / "notes")], check=True, timeout=120)
    notes: list[Note] = pickle.loads((folder / "notes").read_bytes())
    return before, notes, folder


def told(notes: list[Note], what: str) -> set[str]:
    return {note.what[1] for note in notes if isinstance(note, Told) and note.what[0] == what}  # type: ignore[index]


def laid_out(files: dict[str, bytes], folder: Path) -> str:
    """The URL of a ledger on these files."""
    for old in folder.iterdir():
        old.unlink()
    for path, data in files.items():
        (folder / Path(path).name).write_bytes(data)
    return f"sqlite:{folder / NAME}"


def check(url: str, notes: list[Note], everybody: int) -> None:
    """Opens without help, and holds what was told by then."""
    granted, answered = told(notes, "granted"), told(notes, "answered")
    ledger = open_ledger(url, DATASET)
    try:
        spent = ledger.dataset_spent().rho // COST.rho
        assert len(granted) <= spent <= everybody
        assert sum(cost.rho for _, cost in ledger.accounts()) == spent * COST.rho
        debited = {entry.key for entry in ledger.entries() if entry.kind.value == "debit"}
        recorded = {entry.key for entry in ledger.entries() if entry.kind.value == "record"}
        assert granted <= debited
        assert answered <= recorded <= debited
    finally:
        ledger.close()
    verify_ledger(url, DATASET)


def test_the_notes_are_complete(run: tuple[dict[str, bytes], list[Note], Path]) -> None:
    """Applied in full, they give the very files that are there; syncs and folding back are among them."""
    before, notes, folder = run
    files = crashed(before, notes, ledger_disk.kept, random.Random(0))
    for path in (folder / NAME, folder / f"{NAME}-head"):
        assert files[str(path)] == path.read_bytes()
    kinds = {(type(note), Path(note.path).name) for note in notes if not isinstance(note, Told)}
    assert {(Sync, NAME), (Sync, f"{NAME}-wal"), (Write, NAME), (Delete, f"{NAME}-wal")} <= kinds
    assert len(told(notes, "granted")) == 2 * THREADS * ROUNDS


@pytest.mark.parametrize("step", [pytest.param(1, marks=pytest.mark.slow), 23])
def test_power_lost(step: int, run: tuple[dict[str, bytes], list[Note], Path], tmp_path: Path) -> None:
    before, notes, _ = run
    choose = random.Random(5)
    for moment in range(0, len(notes) + 1, step):
        for mode in MODES:
            url = laid_out(crashed(before, notes[:moment], mode, choose), tmp_path)
            check(url, notes[:moment], 2 * THREADS * ROUNDS)


def test_without_syncs_it_would_be_noticed(run: tuple[dict[str, bytes], list[Note], Path], tmp_path: Path) -> None:
    """The test itself: were the log not synced, told debits would be missing."""
    before, notes, _ = run
    careless: list[Note] = [note for note in notes if not isinstance(note, Sync)]
    url = laid_out(crashed(before, careless, lost, random.Random(0)), tmp_path)
    with pytest.raises((AssertionError, LedgerError)):
        check(url, careless, 2 * THREADS * ROUNDS)


if __name__ == "__main__":
    work(*sys.argv[1:])
