"""Several workers behind one port: one budget, one policy, and each worker's end is its own clients' only."""

from __future__ import annotations

import os
import re
import signal
import socket
import struct
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from urllib.request import urlopen

import psycopg
import pytest

from dpsql.server.cancel import number_of
from e2e.conftest import MakePolicy
from e2e.proxy import Client, Proxy, ask, client, dpsql, serving
from e2e.world import Terms

WORKERS = 2
SLOW = (
    "SELECT COUNT(*) FROM generate_series(1, 300) a, generate_series(1, 300) b, generate_series(1, 300) c, "
    "generate_series(1, 300) d, pg_namespace"
)
"""A question to the catalog that only a cancel or the time limit ends."""


@pytest.fixture
def policy(make_policy: MakePolicy) -> Path:
    return make_policy("duckdb", "clean", Terms())


OPTIONS = ("--workers", str(WORKERS), "--metrics", "0")


@pytest.fixture(scope="module")
def proxy(make_policy: MakePolicy) -> Iterator[Proxy]:
    """For the tests that leave it as it was."""
    with serving(make_policy("duckdb", "clean", Terms()), options=OPTIONS) as opened:
        yield opened


@pytest.fixture
def own(policy: Path) -> Iterator[Proxy]:
    """For the tests that end it, or change what it serves."""
    with serving(policy, options=OPTIONS) as opened:
        yield opened


def wait_for(condition: Callable[[], bool], seconds: float = 30.0) -> bool:
    end = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > end:
            return False
        time.sleep(0.05)
    return True


def worker_of(client: Client) -> int:
    return number_of(client.info.backend_pid)


def own_pid(client: Client) -> int:
    """The session's process as it knows it itself: without the worker's number."""
    return client.info.backend_pid & (1 << 25) - 1


def one_of_each(proxy: Proxy, stack: ExitStack, user: str = "alice") -> list[Client]:
    """A client on each worker, by number."""
    found: dict[int, Client] = {}
    for _ in range(2 * WORKERS):
        opened = stack.enter_context(client(proxy, user))
        found.setdefault(worker_of(opened), opened)
    assert sorted(found) == list(range(WORKERS))
    return [found[number] for number in range(WORKERS)]


def processes(proxy: Proxy) -> dict[int, int]:
    """The newest process of each worker."""
    found = re.findall(r"worker (\d+) serves: process (\d+)", proxy.log.read_text())
    return {int(number): int(process) for number, process in found}


def test_clients_are_spread_evenly(proxy: Proxy) -> None:
    with ExitStack() as stack:
        clients = [stack.enter_context(client(proxy)) for _ in range(8)]
        numbers = [worker_of(one) for one in clients]
        assert [numbers.count(number) for number in range(WORKERS)] == [4, 4]
        assert all(ask(one, "SELECT pg_backend_pid()") == [(own_pid(one),)] for one in clients)


def spend(proxy: Proxy, one: Client, first: int) -> int:
    """How many statements are answered before the budget is exhausted."""
    for at in range(30):
        try:
            ask(one, f"SELECT COUNT(*) FROM people WHERE salary < {first + at}")
        except psycopg.errors.ConfigurationLimitExceeded:  # 53400
            return at
    raise AssertionError("the budget has no end")


def test_one_budget(proxy: Proxy) -> None:
    """What one worker's clients spend is gone for all; what is kept is given again by all."""
    with ExitStack() as stack:
        first, second = one_of_each(proxy, stack, "carol")
        answer = ask(first, "SELECT COUNT(*) FROM people WHERE salary < 1")
        assert spend(proxy, second, 2) > 0
        for one in (first, second):
            assert proxy.refusal(one, "SELECT COUNT(*) FROM people WHERE age < 32").sqlstate == "53400"
            assert ask(one, "SELECT COUNT(*) FROM people WHERE salary < 1") == answer


def test_budget_asked_for_by_all_at_once(proxy: Proxy) -> None:
    """Six clients on two workers get no more out of a budget than one client alone out of an equal one."""
    with ExitStack() as stack:
        alone = spend(proxy, stack.enter_context(client(proxy, "emil")), 1000)
        clients = [stack.enter_context(client(proxy, "dora")) for _ in range(6)]
        counts: list[int] = []
        threads = [
            threading.Thread(target=lambda one=one, at=at: counts.append(spend(proxy, one, 10_000 + 100 * at)))
            for at, one in enumerate(clients)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(60)
        assert sum(counts) == alone


def test_cancel_reaches_the_right_worker(proxy: Proxy) -> None:
    """Several requests, each of which any worker may get."""
    with ExitStack() as stack:
        for one in one_of_each(proxy, stack):
            for _ in range(3):
                timer = threading.Timer(0.3, one.cancel)
                timer.start()
                began = time.monotonic()
                assert proxy.refusal(one, SLOW).sqlstate == "57014"
                assert time.monotonic() - began < 4
                timer.join()


def test_wrong_keys_cancel_nothing_on_any_worker(proxy: Proxy) -> None:
    with client(proxy) as one:
        pid = one.info.backend_pid
        found: list[object] = []

        def run() -> None:
            found.append(proxy.refusal(one, "SET statement_timeout = '2s'; " + SLOW).diag.message_primary)

        thread = threading.Thread(target=run)
        thread.start()
        for number in (pid, pid ^ 1, pid ^ (1 << 25), pid | 63 << 25):
            for _ in range(4):
                with socket.create_connection(("127.0.0.1", proxy.port), timeout=10) as request:
                    request.sendall(struct.pack("!ihhi", 16, 1234, 5678, number) + b"\0\0\0\0")
                    assert request.recv(10) == b""
        thread.join(30)
        assert found == ["canceling statement due to statement timeout"]


def test_sessions_of_ones_own_are_seen_and_stopped(proxy: Proxy) -> None:
    """From any worker: those of one user, and of nobody else."""
    with ExitStack() as stack:
        clients = one_of_each(proxy, stack)
        others = [stack.enter_context(client(proxy, "bob")) for _ in range(2 * WORKERS)]
        pids = {own_pid(one) for one in clients}
        for one in clients:
            assert {pid for (pid,) in ask(one, "SELECT pid FROM pg_stat_activity")} >= pids
            seen = ask(one, "SELECT state FROM pg_stat_activity WHERE pid = pg_backend_pid()")
            assert seen == [("active",)]
            assert not {p for (p,) in ask(one, "SELECT pid FROM pg_stat_activity")} & {own_pid(o) for o in others}
        asker, *stopped = clients
        for one in stopped:
            pid, failures = own_pid(one), list[object]()
            thread = threading.Thread(target=lambda: failures.append(proxy.refusal(one, SLOW).sqlstate))  # noqa: B023
            thread.start()
            active = f"SELECT 1 FROM pg_stat_activity WHERE pid = {pid} AND state = 'active'"
            assert wait_for(lambda: bool(ask(asker, active)))  # noqa: B023
            assert ask(asker, f"SELECT pg_cancel_backend({pid})") == [(True,)]
            thread.join(10)
            assert failures == ["57014"]
            assert ask(one, "SELECT 1") == [(1,)]
            assert ask(asker, f"SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE pid='{pid}'") == [(True,)]
            assert wait_for(lambda: not ask(asker, f"SELECT 1 FROM pg_stat_activity WHERE pid = {pid}"))  # noqa: B023
            with pytest.raises(psycopg.errors.AdminShutdown):
                one.execute("SELECT 1")


def test_sessions_of_others_are_not(proxy: Proxy) -> None:
    with client(proxy) as alice, client(proxy, "bob") as bob:
        for function in ("pg_cancel_backend", "pg_terminate_backend"):
            assert proxy.refusal(alice, f"SELECT {function}({own_pid(bob)})").sqlstate == "42501"
            assert ask(alice, f"SELECT {function}(33333333)") == [(False,)]
        assert ask(bob, "SELECT 1") == [(1,)]


def kill(proxy: Proxy, number: int) -> None:
    """Kills a worker, and waits until another one has its place."""
    old = processes(proxy)[number]
    os.kill(old, signal.SIGKILL)
    assert wait_for(lambda: processes(proxy)[number] != old)


def test_a_killed_worker_takes_only_its_clients_along(proxy: Proxy) -> None:
    with ExitStack() as stack:
        first, second = one_of_each(proxy, stack)
        answer = ask(first, "SELECT COUNT(*) FROM people")
        old = processes(proxy)[0]
        os.kill(old, signal.SIGKILL)
        assert wait_for(lambda: f"worker {worker_of(first)} ended (killed by SIGKILL)" in proxy.log.read_text())
        for _ in range(3):  # until there is a new one, all go to the other
            with client(proxy) as one:
                assert ask(one, "SELECT COUNT(*) FROM people") == answer
        with pytest.raises(psycopg.OperationalError):
            first.execute("SELECT 1")
        assert ask(second, "SELECT COUNT(*) FROM people") == answer
        assert wait_for(lambda: processes(proxy)[0] != old)
        assert all(ask(one, "SELECT COUNT(*) FROM people") == answer for one in one_of_each(proxy, stack))


def test_metrics_of_all(proxy: Proxy) -> None:
    before = metrics(proxy)
    with ExitStack() as stack:
        for one in one_of_each(proxy, stack):
            ask(one, "SELECT COUNT(*) FROM people WHERE age < 77")
    after = metrics(proxy)
    assert (after["dpsql_workers"], after["dpsql_ledger_up"]) == (2, 1)
    counts = [f'dpsql_statements_total{{outcome="answered",worker="{number}"}}' for number in range(WORKERS)]
    assert all(after[name] == before[name] + 1 for name in counts)
    assert releases(after, "fresh") == releases(before, "fresh") + 1
    assert releases(after, "replay") == releases(before, "replay") + 1


def metrics(proxy: Proxy) -> dict[str, float]:
    found = re.search(r"metrics on (\S+)", proxy.log.read_text())
    assert found is not None
    with urlopen(f"http://{found[1]}") as response:
        lines = (line.rsplit(" ", 1) for line in response.read().decode().splitlines())
        return {name: float(value) for name, value in lines}


def releases(found: dict[str, float], source: str) -> float:
    return sum(value for name, value in found.items() if name.startswith(f'dpsql_releases_total{{source="{source}"'))


def test_a_policy_is_taken_over_by_all_or_none(own: Proxy) -> None:
    text = own.policy.read_text()
    with ExitStack() as stack:
        clients = one_of_each(own, stack)
        answers = [ask(one, "SELECT COUNT(note) FROM people") for one in clients]
        assert answers[0] == answers[1]
        for wrong, why in ((text.replace("unit: uid\n", "unit: uod\n"), "uod"), (text + "\nx: 1\n", "x: ")):
            reload(own, wrong, f"reload refused: (?s:.*){why}")
            assert [ask(one, "SELECT COUNT(note) FROM people") for one in clients] == answers
        reload(own, text.replace("      note: {type: text}\n", ""), "is in force")
        for one in clients:
            assert own.refusal(one, "SELECT COUNT(note) FROM people").sqlstate == "42703"
        # Who is started later serves what is in force, not what stands in the file.
        own.policy.write_text("broken")
        kill(own, 0)
        clients = one_of_each(own, stack)
        for one in clients:
            assert own.refusal(one, "SELECT COUNT(note) FROM people").sqlstate == "42703"
        stop(own, clients)


def reload(proxy: Proxy, text: str, told: str) -> None:
    proxy.policy.write_text(text)
    before = len(proxy.log.read_text())
    proxy.process.send_signal(signal.SIGHUP)
    assert wait_for(lambda: re.search(told, proxy.log.read_text()[before:]) is not None), proxy.log.read_text()[before:]


def stop(proxy: Proxy, clients: list[Client]) -> None:
    """Everyone is told, every process ends, the port is free."""
    proxy.process.terminate()
    assert proxy.process.wait(30) == 0
    for one in clients:
        with pytest.raises(psycopg.OperationalError, match="terminating connection"):
            one.execute("SELECT 1")
    assert all(map(gone, processes(proxy).values()))
    with socket.socket() as free:
        free.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        free.bind(("127.0.0.1", proxy.port))


def gone(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return True
    return False


def test_workers_end_with_their_parent(own: Proxy) -> None:
    own.process.kill()
    assert wait_for(lambda: all(map(gone, processes(own).values())))


@pytest.mark.slow
def test_a_loop_of_crashes_ends(own: Proxy) -> None:
    """The ledger is replaced under the workers: those that come back cannot open it."""
    next(own.policy.parent.glob("*.ledger")).write_bytes(b"no ledger" * 1000)
    os.kill(processes(own)[0], signal.SIGKILL)
    assert own.process.wait(120) == 1
    assert re.search(
        r"\ndpsql: worker 0 ended 6 times within \d+ seconds \(the last time: the ledger", own.log.read_text()
    )
    assert all(map(gone, processes(own).values()))


def test_what_cannot_begin_is_said_once(proxy: Proxy, policy: Path) -> None:
    taken = dpsql("serve", str(policy), "--listen", f"127.0.0.1:{proxy.port}", "--workers", "2")
    assert (taken.returncode, taken.stderr.count("dpsql: cannot listen on")) == (1, 1)
    next(policy.parent.glob("*.ledger")).write_bytes(b"no ledger" * 1000)
    broken = dpsql("serve", str(policy), "--listen", "127.0.0.1:0", "--workers", "2")
    assert (broken.returncode, broken.stderr.count("dpsql: the ledger")) == (1, 1)
