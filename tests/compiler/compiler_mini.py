"""Databases of a few hand-written rows, for tests that know the exact integers."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing, contextmanager
from decimal import Decimal
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory

import duckdb

from dpsql.backends import Backend, open_backend
from dpsql.backends.inspect import inspect
from dpsql.compiler import Terms, compile_statement
from dpsql.compiler.emit import DUCKDB, emit
from dpsql.engine import Engine, open_engine
from dpsql.ledger import init_ledger
from dpsql.policy.load import parse
from dpsql.policy.schema import Schema
from dpsql.types import Value

TERMS = Terms(Decimal(1), Decimal("1e-7"))

_HEAD = """
dpsql: 1
dataset: mini
backend: duckdb:{path}
timezone: {zone}
privacy: {{unit: {unit}, units: 1000, budget: {{epsilon: 10, delta: 1e-6}}, {privacy}}}
tables:
"""
BOUNDS = "max_groups: 2, max_rows_per_group: 3"


FOLDER = TemporaryDirectory()


@cache
def opened(data: str, tables: str, unit: str, zone: str, privacy: str) -> tuple[Backend, Schema]:
    """One database per distinct content, open until the run ends."""
    path = Path(FOLDER.name) / f"mini{abs(hash((data, tables, unit, zone, privacy)))}.duckdb"
    with closing(duckdb.connect(str(path))) as connection:
        connection.execute("SET TimeZone = 'UTC'; " + data)
    policy = parse(_HEAD.format(path=path, zone=zone, unit=unit, privacy=privacy) + tables, Path("mini.yaml"))
    backend = open_backend(policy.backend, policy.timezone)
    return backend, inspect(backend, policy)


def exact(
    data: str, tables: str, statement: str, *, unit: str = "person", zone: str = "UTC", privacy: str = BOUNDS
) -> dict[tuple[Value, ...], tuple[int, ...]]:
    """The exact cells of a statement with one release; public keys as the values they stand for."""
    backend, schema = opened(data, tables, unit, zone, privacy)
    (release,) = compile_statement(statement, schema, TERMS).releases
    found = backend.fetch(emit(release, DUCKDB, {}), len(release.keys), 10.0)

    def shown(key: tuple[Value, ...]) -> tuple[Value, ...]:
        return tuple(
            declared.domain.value(value, declared.expr.type) if declared.domain and isinstance(value, int) else value
            for value, declared in zip(key, release.keys, strict=True)
        )

    return {shown(key): cells for key, cells in zip(found.keys, found.cells, strict=True)}


@contextmanager
def mini_engine(folder: Path, data: str, tables: str, more: str = "", role: str = "") -> Iterator[Engine]:
    """An engine over such a database with a ledger, for ann and bob. `more`: lines of the policy, `role`: keys."""
    file = folder / "mini.duckdb"
    with closing(duckdb.connect(str(file))) as connection:
        connection.execute(data)
    head = f"""
dpsql: 1
dataset: mini
backend: duckdb:{file}
ledger: sqlite:{folder}/mini.ledger
privacy: {{unit: person, units: 1000, {BOUNDS}, budget: {{epsilon: 10, delta: 1e-6}}}}
roles: {{analyst: {{budget: {{epsilon: 5, delta: 1e-7}}, epsilon: 1{role}}}}}
users: {{ann: {{role: analyst}}, bob: {{role: analyst}}}}
{more}
tables:
"""
    policy = parse(head + tables, folder / "mini.yaml")
    init_ledger(policy.ledger, policy.dataset)
    with closing(open_engine(policy)) as made:
        yield made
