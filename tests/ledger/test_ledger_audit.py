"""`dpsql audit`: who asked what when, at which price, how it ended, from the ledger and from the trail."""

from __future__ import annotations

import json
from contextlib import closing
from decimal import Decimal
from pathlib import Path

import pytest
from click.testing import CliRunner
from ledger_cases import answer, debit
from ledger_paid import paid
from test_ledger_commands import priced, told, written

from dpsql.commands.audit import audit
from dpsql.commands.ledger import ledger as ledger_command
from dpsql.dp.accounting import Limits
from dpsql.errors import Rejected
from dpsql.ledger import LedgerError, open_ledger
from dpsql.policy.load import load
from dpsql.types import Cost

TRAIL = [
    {"at": "2030-01-01T10:00:00.000+00:00", "event": "login", "user": "alice"},
    {
        "at": "2030-01-01T10:00:01.000+00:00",
        "user": "alice",
        "statement": "f" * 64,
        "outcome": "refused",
        "price": {},
        "made": {},
        "releases": 0,
        "replayed": 0,
        "seconds": 0.1,
        "sqlstate": "42501",
    },
    {
        "at": "2030-01-01T10:00:02.000+00:00",
        "user": "alice",
        "statement": "e" * 64,
        "outcome": "answered",
        "price": {"rho": "0.1"},
        "made": {"rho": "0.05"},
        "releases": 1,
        "replayed": 2,
        "seconds": 0.1,
    },
    {"at": "2030-01-01T10:00:03.000+00:00", "event": "login refused", "user": None, "sqlstate": "28P01"},
]


@pytest.fixture
def path(tmp_path: Path) -> str:
    """A policy whose ledger has answers, a first view, a debit without release, and a grant."""
    path = str(written(tmp_path))
    told(ledger_command, "init", path)
    ledger = open_ledger(load(path).ledger, "flights")
    answer(ledger, "alice", "key")
    answer(ledger, "bob", "key")
    debit(ledger, "alice", "lost")
    ledger.grant("alice", Decimal(1))
    ledger.close()
    return path


def lines(*arguments: str) -> list[dict[str, str]]:
    done = CliRunner().invoke(audit, [*arguments, "--format", "json"], catch_exceptions=False)
    assert done.exit_code == 0, done.output
    return [json.loads(line) for line in done.output.splitlines()]


def test_from_the_ledger(path: str) -> None:
    found = [(line.get("user"), line["event"], line.get("outcome"), line.get("source")) for line in lines(path)]
    assert found == [
        (None, "open", None, None),
        ("alice", "statement", "released", "made anew"),
        ("bob", "statement", "released", "first view of a stored release"),
        ("alice", "statement", "no release", "made anew"),
        ("alice", "grant", None, None),
    ]
    assert "rho 0.1, delta " in lines(path)[1]["price"]
    assert lines(path)[-1]["text"] == "epsilon 1"
    assert {line["user"] for line in lines(path, "--user", "bob")} == {"bob"}
    assert lines(path, "--since", "2999-01-01") == []


@pytest.mark.parametrize(("user", "delta"), [("alice", "5e-7"), ("bob", "5e-8"), ("gone", "5e-7")])
@pytest.mark.parametrize("epsilon", ["0.01", "0.5", "1.25"])
def test_a_price_is_told_as_it_was_asked(user: str, delta: str, epsilon: str, tmp_path: Path) -> None:
    """Half of the smaller delta is for noise: alice's and the dataset's are 1e-6, that of bob's role is 1e-7."""
    path = str(written(tmp_path))
    told(ledger_command, "init", path)
    with closing(open_ledger(load(path).ledger, "flights")) as ledger:
        answer(ledger, user, "key", priced(epsilon, Decimal(delta)))
    assert lines(path)[1]["epsilon"] == epsilon
    assert epsilon in told(audit, path)  # type: ignore[arg-type]


def test_pure_prices_are_epsilons_themselves(tmp_path: Path) -> None:
    path = str(written(tmp_path, "pure"))
    told(ledger_command, "init", path)
    with closing(open_ledger(load(path).ledger, "flights")) as ledger:
        ample = Limits(10**18, None, 0)
        ledger.reserve("alice", [paid("key", Cost(epsilon=5 * 10**14))], ample, ample, "statement")
    assert (lines(path)[1]["epsilon"], lines(path)[1]["price"]) == ("0.5", "epsilon 0.5")


def test_with_the_trail(path: str, tmp_path: Path) -> None:
    """Also what cost nothing; the trail's own lines stand for the debits."""
    trail = tmp_path / "trail"
    trail.write_text("\n".join(map(json.dumps, TRAIL)) + "\n")
    found = lines(path, "--trail", str(trail), "--since", "2029-12-31")
    assert [line["event"] for line in found] == ["login", "statement", "statement", "login refused"]
    assert found[1]["outcome"] == "refused 42501"
    assert (found[2]["price"], found[2]["source"]) == ("rho 0.05", "1 made anew, 2 replayed")
    everything = lines(path, "--trail", str(trail))
    assert [line["event"] for line in everything[:3]] == ["open", "statement", "grant"]
    assert everything[1]["source"] == "first view of a stored release"


def test_as_a_table(path: str) -> None:
    shown = told(audit, path)  # type: ignore[arg-type]
    assert all(word in shown for word in ("alice", "made anew", "no release", "grant"))


def test_refused(path: str, tmp_path: Path) -> None:
    with pytest.raises(Rejected, match="--since takes a time"):
        lines(path, "--since", "yesterday")
    (tmp_path / "trail").write_text('{"at": 1}\n')
    with pytest.raises(Rejected, match="line 1 is not one of an audit trail"):
        lines(path, "--trail", str(tmp_path / "trail"))
    with pytest.raises(Rejected, match="cannot be read"):
        lines(path, "--trail", str(tmp_path / "none"))
    ledger = Path(load(path).ledger.removeprefix("sqlite:"))
    ledger.write_bytes(ledger.read_bytes().replace(b"bob", b"eve"))
    with pytest.raises(LedgerError):
        lines(path)
