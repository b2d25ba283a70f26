"""Statements a second that cost nothing, over one connection and over 32, beside a real Postgres's SELECT 1.

    python -m tests.bench.free [--workers N]

The proxy answers a replay, over TLS and over plain TCP; Postgres answers SELECT 1 over plain TCP, directly and through
pgbouncer where that is installed. pgbench asks all of them in the same run, one after the other. The target is a
third of what Postgres gives through pgbouncer, with one worker; a second proxy with several shows how that scales.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "clients"))

from clients_postgres import BINARIES, postgres
from clients_world import PASSWORD, make_shop, serving

SECONDS = 4
TARGET = 1 / 3
REPLAYED = "SELECT state, COUNT(*) FROM orders GROUP BY state"
_RATE = re.compile(r"^tps = ([0-9.]+)", re.MULTILINE)


def rate(folder: Path, dsn: str, text: str, clients: int) -> float:
    """Statements a second by pgbench."""
    script = folder / "statement.sql"
    script.write_text(text + ";\n")
    command = [str(BINARIES / "pgbench"), "-n", "-f", str(script), "-c", str(clients), "-T", str(SECONDS), dsn]
    environment = {**os.environ, "PGPASSWORD": PASSWORD}
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, env=environment, check=True)
    found = _RATE.search(done.stdout)
    assert found is not None, done.stdout
    return float(found[1])


@contextmanager
def bouncer(folder: Path, dsn: str) -> Iterator[str | None]:
    """A pgbouncer in session mode before Postgres; None where it is not installed."""
    program = shutil.which("pgbouncer")
    if program is None:
        yield None
        return
    target = dict(part.split("=") for part in dsn.split())
    port = int(target["port"]) + 1
    config = folder / "bouncer.ini"
    config.write_text(
        f"[databases]\nshop = host=127.0.0.1 port={target['port']} user=dpsql\n[pgbouncer]\nlisten_addr = 127.0.0.1\n"
        f"listen_port = {port}\nauth_type = any\npool_mode = session\nunix_socket_dir =\ndefault_pool_size = 64\n"
    )
    user = "postgres" if os.getuid() == 0 else None
    process = subprocess.Popen([program, str(config)], user=user, stderr=subprocess.DEVNULL)
    try:
        _reachable(port)
        yield f"host=127.0.0.1 port={port} user=dpsql dbname=shop"
    finally:
        process.terminate()
        process.wait(10)


def _reachable(port: int) -> None:
    """Waits until somebody listens."""
    for _ in range(100):
        try:
            socket.create_connection(("127.0.0.1", port)).close()
            return
        except OSError:
            time.sleep(0.1)
    raise SystemExit("pgbouncer does not listen")


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.bench.free")
    parser.add_argument("--workers", type=int, default=2, help="processes of the second proxy (default 2; 1: none)")
    workers = parser.parse_args().workers
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        folder.chmod(0o755)
        counts = (1,) if workers == 1 else (1, workers)
        proxies = {count: stack.enter_context(_proxy(folder / f"shop{count}", count)) for count in counts}
        real = stack.enter_context(postgres(folder / "postgres"))
        pooled = stack.enter_context(bouncer(folder, real))
        titles = (
            "connections",
            "workers",
            "over TLS",
            "replay",
            "SELECT 1",
            "pgbouncer",
            "postgres",
            "TLS ratio",
            "ratio",
        )
        print(" ".join(f"{title:>11}" for title in titles))
        for clients in (1, 32):
            direct = rate(folder, real, "SELECT 1", clients)
            through = rate(folder, pooled, "SELECT 1", clients) if pooled is not None else direct
            for count, (tls, plain) in proxies.items():
                replays = [rate(folder, dsn, REPLAYED, clients) for dsn in (tls, plain)]
                numbers = (clients, count, *replays, rate(folder, plain, "SELECT 1", clients), through, direct)
                ratios = [replay / through for replay in replays]
                verdict = "" if min(ratios) >= TARGET else "  below a third"
                figures = [f"{number:>11.0f}" for number in numbers] + [f"{ratio:>11.2f}" for ratio in ratios]
                print(" ".join(figures) + verdict)


@contextmanager
def _proxy(folder: Path, workers: int) -> Iterator[tuple[str, str]]:
    """A proxy with so many workers; how to reach it over TLS and over plain TCP."""
    folder.mkdir()
    with serving(make_shop(folder), "--workers", str(workers)) as served:
        tls = served.unproved.replace(" channel_binding=require", "")
        yield tls, f"{tls.partition(' sslmode')[0]} sslmode=disable"


if __name__ == "__main__":
    main()
