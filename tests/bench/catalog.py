"""How soon the catalog is there: its load, a session's first question, and what clients ask all the time.

    python -m tests.bench.catalog

The policy is the demo's. The targets: loaded in 300 ms, a session's first question and the median answer in 20 ms.
Times are of the processor, so that what else the machine does hardly moves them.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from statistics import median

from dpsql.backends import open_backend
from dpsql.backends.inspect import inspect
from dpsql.catalog.catalog import Catalogs
from dpsql.catalog.context import Context
from dpsql.catalog.routing import route
from dpsql.compiler import kinds
from dpsql.compiler.statements import split
from dpsql.errors import DpsqlError
from dpsql.policy.load import load

from .places import USER, flights

LOAD, FIRST, ANSWER = 300.0, 20.0, 20.0
_FIRST = (
    "SELECT c.relname, n.nspname FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace WHERE c.relkind = 'r'"
)
_TRACES = Path(__file__).parents[1] / "catalog" / "client_queries.sql"


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        place = flights(Path(folder))
        policy = load(place.policy)
        with closing(open_backend(policy.backend, policy.timezone)) as backend:
            catalogs = Catalogs(inspect(backend, policy))
            context = Context(USER, policy.dataset, 1, {"timezone": "UTC", "server_version": "15.14"}, {})
            loaded = _milliseconds(lambda: catalogs.of(USER).answer("SELECT 1 FROM pg_database", (), context))
            first = _milliseconds(lambda: catalogs.of(USER).answer(_FIRST, (), context))
            answers = [took for text in _traced() if (took := _answer(catalogs, text, context)) is not None]
            catalogs.close()
    for name, value, target in (
        ("load", loaded, LOAD), ("first question", first, FIRST), ("median answer", median(answers), ANSWER)
    ):  # fmt: skip
        print(f"{name:16}{value:8.1f} ms (target {target:.0f}): {'met' if value < target else 'MISSED'}")


def _traced() -> list[str]:
    parts = (part for text in _TRACES.read_text().split(";;") for part in _split(text))
    return [part.text for part in parts if isinstance(part, kinds.Select)]


def _split(text: str) -> tuple[kinds.Statement, ...]:
    try:
        return tuple(split(text))
    except DpsqlError:
        return ()


def _answer(catalogs: Catalogs, text: str, context: Context) -> float | None:
    """Milliseconds; None for what is no question to the catalog, or wants parameters."""
    try:
        if route(text).tree is None:
            return None
        return _milliseconds(lambda: catalogs.of(USER).answer(text, (), context))
    except DpsqlError:
        return None


def _milliseconds(work: Callable[[], object]) -> float:
    begun = time.process_time()
    work()
    return (time.process_time() - begun) * 1000


if __name__ == "__main__":
    main()
