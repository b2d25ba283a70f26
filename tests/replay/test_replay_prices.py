"""Every debit names its price: in the notice beside the answer, and in EXPLAIN before it."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path

import pytest
from replay_cases import Shop, opened, write

from dpsql.session.ports import CancelToken
from dpsql.shell.ask import _PRICE
from dpsql.types import Settings

BY_SHOP = "SELECT shop, COUNT(*) FROM visits GROUP BY shop"
ZOO = "SELECT COUNT(*) FROM visits WHERE shop = 'zoo'"
TWO = "SELECT (SELECT COUNT(*) FROM busy), (SELECT COUNT(*) FROM people WHERE age < 9)"
THIRD = "SELECT (SELECT COUNT(*) FROM busy), (SELECT COUNT(*) FROM people WHERE age < 5)"


@pytest.fixture
def shop(tmp_path: Path) -> Iterator[Shop]:
    with opened(write(tmp_path)) as shop:
        yield shop


def told(shop: Shop, text: str, user: str, epsilon: str | None = None) -> tuple[str, bool]:
    """The notice, and whether anything was debited."""
    before = shop.engine.ledger.spent(user)
    notice = shop.ask(text, user, epsilon=None if epsilon is None else Decimal(epsilon)).notices[-1]
    return notice, shop.engine.ledger.spent(user) != before


def foreseen(shop: Shop, text: str, user: str) -> list[dict[str, object]]:
    (row,) = shop.engine.explain(user, text, 0, Settings(), (), "json", CancelToken()).rows
    found = json.loads(str(row[0]))["replay"]
    assert isinstance(found, list)
    return found


def test_a_notice_names_a_price_where_there_is_a_debit_and_only_there(shop: Shop) -> None:
    for user in ("alice", "bob"):
        for text in (BY_SHOP, ZOO, TWO, THIRD, BY_SHOP, ZOO, TWO, THIRD):
            notice, debited = told(shop, text, user)
            assert notice.startswith("Price: epsilon ") == debited, (user, text, notice)
            assert bool(_PRICE.match(notice)) == debited


def test_a_first_view(shop: Shop) -> None:
    told(shop, BY_SHOP, "alice")
    (entry,) = foreseen(shop, BY_SHOP, "bob")
    assert (entry["source"], entry["epsilon"]) == ("view", 1.0)
    notice, _ = told(shop, BY_SHOP, "bob")
    assert notice.startswith("Price: epsilon 1 for a first view; replay of a stored release: no new noise; epsilon ")
    notice, _ = told(shop, BY_SHOP, "bob")
    assert notice.startswith("Replay of a stored release: no new noise; ")


def test_a_derived_first_view(shop: Shop) -> None:
    told(shop, BY_SHOP, "alice")
    notice, _ = told(shop, ZOO, "bob")
    assert notice.startswith(
        "Price: epsilon 1 for a first view; derived from 1 stored release: no new noise, 95 % error"
    )
    notice, debited = told(shop, "SELECT COUNT(*) FROM visits WHERE shop = 'cafe'", "bob")
    assert notice.startswith("Derived from 1 stored release: ")
    assert not debited


def test_what_is_paid_of_a_statement_of_several_releases(shop: Shop) -> None:
    notice, _ = told(shop, TWO, "alice")
    assert notice.startswith("Price: epsilon 1; ")
    notice, _ = told(shop, THIRD, "alice")
    found = re.match(r"Price: epsilon (0[.]\d+) for 1 of 2 releases, the others are replays; ", notice)
    assert found is not None, notice
    assert 0.6 < float(found[1]) < 0.8, "half the rho of epsilon 1"
    notice, _ = told(shop, TWO, "bob")
    assert notice.startswith("Price: epsilon 1 for a first view; ")
    notice, _ = told(shop, "SELECT (SELECT COUNT(*) FROM busy), (SELECT COUNT(*) FROM people WHERE age > 5)", "carol")
    assert notice.startswith("Price: epsilon 1, 1 as a first view; ")
    costs = [entry["epsilon"] for entry in foreseen(shop, TWO, "erik")]
    assert costs == [pytest.approx(float(found[1]), abs=1e-5)] * 2


def test_explain_in_words(shop: Shop) -> None:
    assert "Replay of r0: made anew for epsilon 1" in shop.explained(BY_SHOP)
    told(shop, BY_SHOP, "alice")
    assert "Replay of r0: a first view for epsilon 1, which debits you alone" in shop.explained(BY_SHOP, "bob")
    assert "Replay of r0: stored and seen, free" in shop.explained(BY_SHOP)
