"""One served shop for all clients of a test run, and what runs them."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from clients_world import Served, make_shop, serving


@pytest.fixture(scope="session")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    with serving(make_shop(tmp_path_factory.mktemp("shop"))) as proxy:
        yield proxy
