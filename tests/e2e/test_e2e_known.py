"""Faults that are known and not yet repaired. Each must fail; one that passes has been repaired and moves elsewhere."""

from __future__ import annotations

import time
from collections.abc import Iterator

import pytest

from e2e.conftest import MakePolicy
from e2e.proxy import Client, Proxy, ask, client, serving
from e2e.world import Terms


@pytest.fixture(scope="module")
def proxy(make_policy: MakePolicy) -> Iterator[Proxy]:
    """One of its own: what is asked here may hold it up."""
    with serving(make_policy("duckdb", "clean", Terms())) as opened:
        yield opened


@pytest.fixture
def alice(proxy: Proxy) -> Iterator[Client]:
    with client(proxy) as opened:
        yield opened


def seconds_to_refuse(proxy: Proxy, alice: Client, statement: str) -> float:
    begun = time.monotonic()
    error = proxy.refusal(alice, statement)
    assert error.sqlstate != "58000"
    return time.monotonic() - begun


def test_a_chain_of_subscripts(proxy: Proxy, alice: Client) -> None:
    assert seconds_to_refuse(proxy, alice, "SELECT 1" + "[1]" * 500) < 0.5


def test_division_by_zero_in_the_catalog(proxy: Proxy, alice: Client) -> None:
    assert proxy.refusal(alice, "SELECT 1 / 0 FROM pg_class").sqlstate == "22012"


def test_the_view_of_one_s_own_entries(alice: Client) -> None:
    assert ask(alice, "SELECT * FROM dpsql.ledger") is not None
