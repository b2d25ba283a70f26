"""Proxies over the dataset of the hostile cases, on both backends."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from e2e.proxy import Proxy, init_ledger, serving
from e2e.world import Terms, Variant, build_duckdb, build_postgres, policy_text

Databases = Callable[[str, Variant], str]
MakePolicy = Callable[[str, Variant, Terms], Path]


@pytest.fixture(scope="session")
def databases(tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest) -> Databases:
    """The URL of a backend's database, made at first use."""
    folder = tmp_path_factory.mktemp("databases")
    made: dict[tuple[str, Variant], str] = {}

    def url(backend: str, variant: Variant) -> str:
        if (backend, variant) not in made:
            if backend == "duckdb":
                made[backend, variant] = build_duckdb(folder / f"{variant}.duckdb", variant)
            else:
                name = f"e2e_{variant}_{os.environ.get('PYTEST_XDIST_WORKER', 'alone')}"
                made[backend, variant] = build_postgres(request.getfixturevalue("postgres_uri"), name, variant)
        return made[backend, variant]

    return url


@pytest.fixture(scope="session")
def make_policy(databases: Databases, tmp_path_factory: pytest.TempPathFactory) -> MakePolicy:
    """A policy file with a new ledger, in a folder of its own."""

    def make(backend: str, variant: Variant, terms: Terms) -> Path:
        path = tmp_path_factory.mktemp(f"{backend}-{variant}") / "policy.yaml"
        path.write_text(policy_text(f"{variant}-{backend}", databases(backend, variant), terms))
        init_ledger(path)
        return path

    return make


@pytest.fixture(scope="session", params=["duckdb", "postgres"])
def clean(request: pytest.FixtureRequest, make_policy: MakePolicy) -> Iterator[Proxy]:
    with serving(make_policy(request.param, "clean", Terms())) as proxy:
        yield proxy


@pytest.fixture(scope="session", params=["duckdb", "postgres"])
def poison(request: pytest.FixtureRequest, make_policy: MakePolicy) -> Iterator[Proxy]:
    """After all tests: no planted value was told to anyone, and nothing was a fault of ours."""
    with serving(make_policy(request.param, "poison", Terms())) as proxy:
        yield proxy
        assert proxy.leaks() == []
        assert "incident" not in proxy.log.read_text()
