"""The audit trail and the metrics: who asked what at which price and how it ended, and never a value or a text."""

from __future__ import annotations

import json
import logging
from contextlib import suppress
from pathlib import Path
from urllib.error import HTTPError
from urllib.request import urlopen

import psycopg
import pytest
from test_ledger_reload import connected, serving, waited, written

from dpsql.errors import BUDGET_EXHAUSTED, CANCELLED, Failed, Rejected
from dpsql.ledger import trail
from dpsql.types import Cost, Release, Reservation


def line_of(caplog: pytest.LogCaptureFixture) -> dict[str, object]:
    found: dict[str, object] = json.loads(caplog.records[-1].getMessage())
    return found


@pytest.fixture(autouse=True)
def told(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "dpsql.audit")


def test_an_answer(caplog: pytest.LogCaptureFixture) -> None:
    cost = Cost(0, 10**13, 5)
    with trail.statement("alice", "SELECT 'secret'", False) as line:
        line.granted([cost, cost], [Reservation(1, "alice", "a", cost), Release("b", (), ())])
    found = line_of(caplog)
    assert found["price"] == {"rho": "0.02", "delta": "0.00000000000001"}
    assert found["made"] == {"rho": "0.01", "delta": "0.000000000000005"}
    assert (found["user"], found["outcome"], found["releases"], found["replayed"]) == ("alice", "answered", 1, 1)
    assert "secret" not in caplog.text


@pytest.mark.parametrize(
    ("error", "outcome"),
    [
        (Rejected("No: 'secret'.", sqlstate=BUDGET_EXHAUSTED), "refused"),
        (Rejected("Cancelled.", sqlstate=CANCELLED), "cancelled"),
        (Failed("secret"), "failed"),
        (ValueError("secret"), "failed"),
        (KeyboardInterrupt(), "failed"),
    ],
)
def test_no_answer(error: BaseException, outcome: str, caplog: pytest.LogCaptureFixture) -> None:
    with pytest.raises(type(error)), trail.statement("alice", "SELECT 'secret'", False):
        raise error
    found = line_of(caplog)
    assert found["outcome"] == outcome
    assert found.get("sqlstate") == getattr(error, "sqlstate", None)
    assert found.get("incident") == getattr(error, "incident", None)
    assert "secret" not in caplog.text


def test_the_text_if_the_policy_says_so(caplog: pytest.LogCaptureFixture) -> None:
    with trail.statement("alice", "SELECT 1", True):
        pass
    assert line_of(caplog)["text"] == "SELECT 1"


def test_a_refusal_to_describe(caplog: pytest.LogCaptureFixture) -> None:
    with trail.refusals("alice", "SELECT 1", False):
        pass
    assert caplog.records == []
    with pytest.raises(Rejected), trail.refusals("alice", "SELECT 1", False):
        raise Rejected("no")
    assert line_of(caplog)["outcome"] == "refused"


def test_served(tmp_path: Path) -> None:
    """Over the wire: one line a statement in a file of its own, and the operator's numbers."""
    audit = tmp_path / "audit"
    with serving(written(tmp_path), "--audit", str(audit), "--metrics", "0") as (_, port, log):
        url = "http://" + waited(log, "metrics on").split(" on ")[1]
        with connected(port, "alice") as alice:
            for _ in range(2):
                alice.execute("SELECT COUNT(*) FROM people WHERE age > 79")
            with pytest.raises(psycopg.Error):
                alice.execute("SELECT secret FROM people")
            for number in range(9):
                with suppress(psycopg.Error):
                    alice.execute(f"SELECT SUM(age) FROM people WHERE age < {number + 10}")
        with urlopen(url) as response:
            metrics = dict(line.rsplit(" ", 1) for line in response.read().decode().splitlines())
        with pytest.raises(HTTPError, match="404"):
            urlopen(url.replace("/metrics", "/"))
        with pytest.raises(psycopg.OperationalError, match="password"):
            connected(port, "alice", "wrong")
        with pytest.raises(psycopg.OperationalError, match="password"):
            connected(port, "mallory")
    everything = [json.loads(line) for line in audit.read_text().splitlines()]
    events = [(line["event"], line["user"], line.get("sqlstate")) for line in everything if "event" in line]
    assert events == [
        ("login", "alice", None),
        ("logout", "alice", None),
        ("login refused", "alice", "28P01"),
        ("login refused", None, "28P01"),
    ]
    assert "mallory" not in audit.read_text()
    assert "wrong" not in audit.read_text()
    lines = [line for line in everything if "event" not in line]
    assert [line["outcome"] for line in lines[:3]] == ["answered", "answered", "refused"]
    assert [(line["releases"], line["replayed"]) for line in lines[:2]] == [(1, 0), (0, 1)]
    assert lines[0]["statement"] == lines[1]["statement"] != lines[2]["statement"]
    assert lines[2]["sqlstate"] == "42703"
    assert lines[-1]["sqlstate"] == BUDGET_EXHAUSTED
    assert not any("secret" in line or "text" in json.loads(line) for line in audit.read_text().splitlines())
    assert float(metrics['dpsql_statements_total{outcome="refused"}']) >= 2
    assert float(metrics['dpsql_releases_total{source="replay"}']) >= 1
    assert 0 < float(metrics["dpsql_dataset_epsilon_spent"]) <= float(metrics["dpsql_dataset_epsilon_budget"]) == 4
    assert metrics["dpsql_ledger_up"] == "1"
