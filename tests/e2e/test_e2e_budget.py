"""Budgets over the wire: they bind exactly, survive kills and races, and no answer is ever seen unpaid."""

from __future__ import annotations

import shutil
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, suppress
from decimal import Decimal
from pathlib import Path

import psycopg
import pytest

from e2e.conftest import MakePolicy
from e2e.proxy import Proxy, Rows, ask, client, dpsql, serving
from e2e.world import Terms


@pytest.fixture(scope="module")
def pure(make_policy: MakePolicy) -> Iterator[Proxy]:
    """Epsilons add up: 1 a poor user."""
    with serving(make_policy("duckdb", "clean", Terms(epsilon="3", accounting="pure"))) as proxy:
        yield proxy


def test_ten_times_a_tenth_fit_in_one(pure: Proxy) -> None:
    with client(pure, "carol") as carol:
        carol.execute("SET dpsql.epsilon = 0.1")
        for age in range(10):
            ask(carol, f"SELECT COUNT(*) FROM people WHERE age > {age}")
        for epsilon in ("0.1", "0.000001"):
            carol.execute(f"SET dpsql.epsilon = {epsilon}".encode())
            error = pure.refusal(carol, "SELECT COUNT(*) FROM people WHERE age > 10")
            assert error.sqlstate == "53400"
            said = f"{error.diag.message_primary} {error.diag.message_detail} {error.diag.message_hint}"
            assert "spent" in said
            assert epsilon.rstrip("0") in said or "1e-6" in said.lower(), said
        carol.execute("SET dpsql.epsilon = 0.1")
        assert len(ask(carol, "SELECT COUNT(*) FROM people WHERE age > 3")) == 1
    assert "epsilon 1 (" in pure.spent("carol")


def test_the_dataset_s_budget_bounds_all_users_together(make_policy: MakePolicy) -> None:
    """carol and alice, 1 each, under 1.5."""
    policy = make_policy("duckdb", "clean", Terms(epsilon="1.5", user_epsilon="1", accounting="pure"))
    with serving(policy) as proxy, client(proxy, "alice") as alice, client(proxy, "carol") as carol:
        query = "SELECT COUNT(*) FROM people WHERE age > 20"
        first = ask(alice, query)
        carol.execute("SET dpsql.epsilon = 0.6")
        error = proxy.refusal(carol, "SELECT COUNT(*) FROM people WHERE age > 50")
        assert error.sqlstate == "53400"
        assert "dataset" in (error.diag.message_primary or "")
        carol.execute("SET dpsql.epsilon = 0.5")
        ask(carol, "SELECT COUNT(*) FROM people WHERE age > 50")
        assert proxy.refusal(carol, query).sqlstate == "53400"
        assert ask(alice, query) == first


def test_another_user_s_first_view_debits_them_alone(clean: Proxy) -> None:
    query = "SELECT city, COUNT(*) FROM people WHERE age > 17 GROUP BY city"
    with client(clean, "alice") as alice, client(clean, "bob") as bob:
        before = dict(_spent(ask(alice, "SHOW dpsql.budget")))
        first = ask(alice, query)
        middle, bobs = _spent(ask(alice, "SHOW dpsql.budget")), _spent(ask(bob, "SHOW dpsql.budget"))
        assert ask(bob, query) == first
        after = _spent(ask(bob, "SHOW dpsql.budget"))
        assert after["dataset"] == middle["dataset"] > before["dataset"]
        assert after["you"] > bobs["you"]
        assert ask(bob, query) == first
        assert _spent(ask(bob, "SHOW dpsql.budget")) == after
        bob.execute("SET dpsql.epsilon = 0.5")
        assert ask(bob, query) == first  # what is stored is better, and free
        bob.execute("SET dpsql.reuse_error = 0")
        assert ask(bob, query) != first


def _spent(rows: Rows) -> dict[str, Decimal]:
    return {row[0]: row[2] for row in rows}


def test_a_small_budget_ends_and_says_so(clean: Proxy) -> None:
    with client(clean, "emil") as emil:
        answers = 0
        error: psycopg.Error | None = None
        while error is None and answers < 50:
            try:
                ask(emil, f"SELECT COUNT(*) FROM people WHERE age < {answers + 1}")
                answers += 1
            except psycopg.Error as caught:
                error = caught
        assert error is not None
        assert error.sqlstate == "53400"
        assert error.diag.message_hint
        assert "spent" in (error.diag.message_primary or "") + (error.diag.message_detail or "")
        assert 2 <= answers <= 7
        assert len(ask(emil, "SELECT COUNT(*) FROM people WHERE age < 1")) == 1
        assert ask(emil, "SELECT COUNT(*) FROM shops") == [(5,)]
        assert len(ask(emil, "EXPLAIN SELECT COUNT(*) FROM people WHERE age < 70")) > 1


def test_eight_sessions_and_two_processes_race_for_ten_answers(make_policy: MakePolicy) -> None:
    policy = make_policy("duckdb", "clean", Terms(epsilon="50", user_epsilon="5", accounting="pure"))
    with ExitStack() as stack:
        proxies = [stack.enter_context(serving(policy)) for _ in range(2)]
        with ThreadPoolExecutor(8) as threads:
            outcomes = [o for part in threads.map(_race, [(proxies[i % 2], i) for i in range(8)]) for o in part]
    assert set(outcomes) <= {"answered", "53400"}
    assert outcomes.count("answered") == 10
    assert "epsilon 1 (" in proxies[0].spent("fred")


def _race(task: tuple[Proxy, int]) -> list[str]:
    proxy, number = task
    outcomes = []
    with client(proxy, "fred") as fred:
        fred.execute("SET dpsql.epsilon = 0.1")
        for age in range(4):
            try:
                ask(fred, f"SELECT COUNT(*) FROM people WHERE age > {4 * number + age}")
                outcomes.append("answered")
            except psycopg.Error as error:
                outcomes.append(error.sqlstate or repr(error))
    return outcomes


def test_a_killed_proxy_has_answered_nothing_unpaid(make_policy: MakePolicy) -> None:
    policy = make_policy("duckdb", "clean", Terms())
    answers: dict[str, Rows] = {}
    for round_ in range(2):
        with serving(policy) as proxy:
            threads = [threading.Thread(target=_ask_until_killed, args=(proxy, round_, n, answers)) for n in range(4)]
            for thread in threads:
                thread.start()
            enough = 15 * (round_ + 1)
            while len(answers) < enough and any(thread.is_alive() for thread in threads):
                time.sleep(0.005)
            proxy.process.kill()
            for thread in threads:
                thread.join()
    debits = _debits(policy)
    assert answers
    assert debits >= len(answers)
    assert debits <= len(answers) + 2 * 4
    with serving(policy) as proxy, client(proxy) as alice:
        assert {query: ask(alice, query) for query in answers} == answers
        assert _debits(policy) == debits


def _ask_until_killed(proxy: Proxy, round_: int, number: int, answers: dict[str, Rows]) -> None:
    with suppress(psycopg.Error), client(proxy) as alice:
        for i in range(10_000):
            query = (
                f"SELECT shop, COUNT(*), SUM(amount) FROM visits WHERE amount > {round_}.{number}{i:04} GROUP BY shop"
            )
            answers[query] = ask(alice, query)


def _debits(policy: Path) -> int:
    """Debits of the dataset, counted from what it has spent: every statement here costs the same."""
    report = dpsql("ledger", "verify", str(policy))
    assert report.returncode == 0, report.stderr
    line = next(line for line in report.stdout.splitlines() if line.startswith("entries"))
    return int(line.split("(")[1].split()[0])


def test_leavers_and_cancellers_have_paid(clean: Proxy) -> None:
    """A client that is gone before it reads, or cancels, has spent what an answer costs."""
    before = _debits(clean.policy)
    for age in range(5):
        leaver = clean.connect()
        leaver.pgconn.send_query(f"SELECT COUNT(*) FROM people WHERE age > {age} AND age < 90".encode())
        leaver.pgconn.flush()
        time.sleep(0.1)
        leaver.pgconn.finish()
    deadline = time.monotonic() + 10
    while _debits(clean.policy) < before + 5 and time.monotonic() < deadline:
        time.sleep(0.2)
    assert _debits(clean.policy) == before + 5


def test_a_changed_policy_spends_on(make_policy: MakePolicy) -> None:
    policy = make_policy("duckdb", "clean", Terms(accounting="pure", user_epsilon="1", epsilon="10"))
    with serving(policy) as proxy, client(proxy) as alice:
        ask(alice, "SELECT COUNT(*) FROM people")
        assert proxy.refusal(alice, "SELECT COUNT(*) FROM visits").sqlstate == "53400"
    old = shutil.copy(policy, policy.with_name("old.yaml"))
    text = policy.read_text()
    policy.write_text(text.replace("{epsilon: 1, delta: 1e-5}, epsilon: 1,", "{epsilon: 2, delta: 1e-5}, epsilon: 1,"))
    assert dpsql("serve", str(policy), "--listen", "127.0.0.1:0").returncode == 1
    accepted = dpsql("check", str(policy), "--against", str(old), "--accept")
    assert accepted.returncode == 0, accepted.stderr
    with serving(policy) as proxy, client(proxy) as alice:
        ask(alice, "SELECT COUNT(*) FROM visits")
        assert proxy.refusal(alice, "SELECT COUNT(*) FROM people WHERE age > 5").sqlstate == "53400"


def test_a_damaged_ledger_is_not_served(make_policy: MakePolicy, tmp_path: Path) -> None:
    original = make_policy("duckdb", "clean", Terms())
    asked = dpsql("query", str(original), "--user", "alice", "SELECT city, COUNT(*) FROM people GROUP BY city")
    assert asked.returncode == 0, asked.stderr
    whole = next(original.parent.glob("*.ledger")).read_bytes()
    at = whole.index(b"alice")
    damages = {
        "missing": None,
        "truncated": whole[: len(whole) // 2],
        "flipped": whole[:at] + b"alicf" + whole[at + 5 :],
    }
    for name, damaged in damages.items():
        policy = shutil.copytree(original.parent, tmp_path / name) / original.name
        file = next(policy.parent.glob("*.ledger"))
        file.unlink()
        if damaged is not None:
            file.write_bytes(damaged)
        done = dpsql("query", str(policy), "--user", "alice", "SELECT COUNT(*) FROM people")
        assert (name, done.returncode, done.stdout) == (name, 1, "")
        assert "Traceback" not in done.stderr
