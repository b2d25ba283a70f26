"""What follows from stored releases is answered from them, rightly, at its own error; what does not is measured."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from decimal import Decimal
from pathlib import Path

import pytest
from replay_cases import Shop, opened, write

from dpsql.errors import Failed, Rejected
from dpsql.ledger import Kind
from dpsql.ledger.kin import EACH
from dpsql.types import Relation

ANY = Decimal(1_000_000)
"""Any error will do: what may be derived at all."""


@pytest.fixture
def shop(tmp_path: Path) -> Iterator[Shop]:
    with opened(write(tmp_path)) as shop:
        yield shop


@pytest.fixture
def exact(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> Shop:
    """Without noise: a derived answer must be the very one that a measurement gives."""
    monkeypatch.setattr("dpsql.release.draw", lambda mechanism, count: [0] * count)
    return shop


V, P = "SELECT COUNT(*) FROM visits", "SELECT COUNT(*) FROM people"
BY_SHOP = "SELECT shop, COUNT(*) FROM visits GROUP BY shop"
BY_HOUR = "SELECT hour, COUNT(*) FROM visits GROUP BY hour"
BY_MONTH = "SELECT DATE_TRUNC('month', day), COUNT(*) FROM visits GROUP BY 1"
JOINED = "FROM busy JOIN people AS p USING (uid)"
BUSY, OSLO = f"SELECT COUNT(*) {JOINED}", "WHERE city = 'Oslo'"
BUSY_BY_CITY = f"SELECT city, COUNT(*) {JOINED} GROUP BY city"
DERIVED = (
    # fewer measurements
    (["SELECT COUNT(*), AVG(note), SUM(price) FROM visits"], "SELECT SUM(price) FROM visits"),
    (["SELECT AVG(note) FROM visits GROUP BY shop"], "SELECT shop, COUNT(note) FROM visits GROUP BY shop"),
    (["SELECT VAR_POP(price) FROM visits"], "SELECT AVG(price), COUNT(price) FROM visits"),
    (["SELECT AVG(income) FROM people GROUP BY city"], "SELECT city, SUM(income) FROM people GROUP BY city"),
    (["SELECT COUNT(gain), SUM(gain) FROM people"], "SELECT AVG(gain), SUM(gain) / COUNT(gain) FROM people"),
    (["SELECT VAR_POP(income) FROM people"], "SELECT AVG(income), SUM(income) FROM people"),
    (["SELECT AVG(change) FROM people"], "SELECT SUM(change) FROM people"),
    # fewer public keys
    ([BY_SHOP], f"{V} WHERE shop = 'cafe'"),
    ([BY_SHOP], f"{V} WHERE shop IN ('zoo', 'cafe')"),
    ([BY_SHOP], "SELECT shop, COUNT(*) FROM visits WHERE shop <> 'zoo' GROUP BY 1"),
    (
        ["SELECT shop, COUNT(DISTINCT uid) FROM visits GROUP BY shop"],
        "SELECT COUNT(DISTINCT uid) FROM visits WHERE shop = 'zoo'",
    ),
    (["SELECT note, COUNT(*) FROM visits GROUP BY note"], f"{V} WHERE note IS NULL"),
    (["SELECT note, COUNT(*) FROM visits GROUP BY note"], f"{V} WHERE NOT note = 2 AND note BETWEEN 1 AND 3"),
    (
        ["SELECT hour, shop, COUNT(*) FROM visits GROUP BY hour, shop"],
        "SELECT hour, COUNT(*) FROM visits WHERE shop = 'zoo' GROUP BY hour",
    ),
    # coarser keys
    (["SELECT shop, COUNT(*), SUM(price) FROM visits GROUP BY shop"], "SELECT SUM(price), COUNT(*) FROM visits"),
    (
        ["SELECT hour, shop, AVG(price) FROM visits GROUP BY hour, shop"],
        "SELECT hour, AVG(price) FROM visits GROUP BY hour",
    ),
    ([BY_HOUR], "SELECT FLOOR(hour / 6) * 6, COUNT(*) FROM visits GROUP BY 1"),
    ([BY_HOUR], "SELECT FLOOR(hour / 7.0), COUNT(*) FROM visits GROUP BY 1"),
    ([BY_HOUR], "SELECT hour / 5, COUNT(*) FROM visits GROUP BY 1"),
    (["SELECT day, COUNT(*) FROM visits GROUP BY day"], BY_MONTH),
    ([BY_MONTH], "SELECT DATE_TRUNC('quarter', day), COUNT(*) FROM visits GROUP BY 1"),
    (
        ["SELECT DATE_TRUNC('day', at), COUNT(*) FROM visits GROUP BY 1"],
        f"{V} WHERE at >= '2024-03-01' AND at < '2024-04-01'",
    ),
    ([BY_MONTH], f"{V} WHERE EXTRACT(year FROM day) = 2024 AND day < '2024-04-01' AND day >= '2024-02-01'"),
    (["SELECT CASE WHEN price > 9 THEN 3 WHEN hour < 9 THEN 1 END, COUNT(*) FROM visits GROUP BY 1"], V),
    # units with one row each are counted like rows
    (
        ["SELECT city, COUNT(DISTINCT uid) FROM people GROUP BY city"],
        "SELECT COUNT(DISTINCT uid) FROM people",
    ),
    # of rows that are cut to max_rows: the same columns are read
    (["SELECT shop, COUNT(*) FROM calls GROUP BY shop"], "SELECT COUNT(*) FROM calls WHERE shop = 'zoo'"),
    (["SELECT shop, SUM(price) FROM calls GROUP BY shop"], "SELECT SUM(price) FROM calls WHERE shop <> 'zoo'"),
    (["SELECT AVG(price) FROM calls"], "SELECT SUM(price) FROM calls"),
    # of clipped rows: the same cells, the same vectors
    (["SELECT hour, COUNT(*), SUM(hour) FROM busy GROUP BY hour"], "SELECT hour, SUM(hour) FROM busy GROUP BY hour"),
    (["SELECT VAR_POP(hour) FROM busy GROUP BY shop"], "SELECT shop, AVG(hour) FROM busy GROUP BY shop"),
    (
        ["SELECT shop, hour, COUNT(*) FROM busy GROUP BY shop, hour"],
        "SELECT hour, shop, COUNT(*) FROM busy GROUP BY hour, shop",
    ),
    (
        ["SELECT AVG(hour) FROM busy WHERE shop IN ('zoo', 'cafe')"],
        "SELECT COUNT(hour) FROM busy WHERE NOT shop = 'books'",
    ),
    # of clipped rows: a key that the unit determines
    ([BUSY_BY_CITY], f"{BUSY} WHERE city = 'Oslo'"),
    ([BUSY_BY_CITY], BUSY),
    ([f"SELECT city, AVG(hour) {JOINED} GROUP BY city"], f"SELECT AVG(hour), COUNT(hour) {JOINED}"),
    ([f"SELECT city, COUNT(DISTINCT hour) {JOINED} GROUP BY city"], f"SELECT COUNT(DISTINCT hour) {JOINED} {OSLO}"),
    ([f"SELECT city, COUNT(DISTINCT p.uid) {JOINED} GROUP BY city"], f"SELECT COUNT(DISTINCT p.uid) {JOINED}"),
    # whether a unit is there at all is never clipped, where it may be in all groups
    (
        ["SELECT shop, COUNT(DISTINCT uid) FROM busy GROUP BY shop"],
        "SELECT COUNT(DISTINCT uid) FROM busy WHERE shop = 'zoo'",
    ),
)
MEASURED = (
    # what does not add up
    (["SELECT shop, COUNT(DISTINCT uid) FROM busy GROUP BY shop"], "SELECT COUNT(DISTINCT uid) FROM busy"),
    (
        ["SELECT shop, COUNT(DISTINCT note) FROM visits GROUP BY shop"],
        "SELECT COUNT(DISTINCT note) FROM visits WHERE shop <> 'zoo'",
    ),
    (["SELECT shop, MEDIAN(price) FROM visits GROUP BY shop"], "SELECT MEDIAN(price) FROM visits WHERE shop = 'zoo'"),
    (["SELECT shop, MAX(price) FROM visits GROUP BY shop"], "SELECT MAX(price) FROM visits"),
    # other clipping: by rows, or by what they add up to
    (["SELECT AVG(hour) FROM busy"], "SELECT SUM(hour) FROM busy"),
    (["SELECT SUM(hour), COUNT(hour) FROM busy"], "SELECT AVG(hour) FROM busy"),
    (["SELECT AVG(hour) FROM busy GROUP BY shop"], "SELECT shop, SUM(hour) FROM busy GROUP BY shop"),
    (["SELECT AVG(hour) FROM busy GROUP BY shop"], "SELECT shop, COUNT(hour) FROM busy GROUP BY shop"),
    (["SELECT shop, COUNT(hour) FROM busy GROUP BY shop"], "SELECT COUNT(hour), AVG(hour) FROM busy GROUP BY shop"),
    # other cells are clipped otherwise
    (["SELECT shop, COUNT(*) FROM busy GROUP BY shop"], "SELECT COUNT(*) FROM busy WHERE shop = 'zoo'"),
    (
        ["SELECT shop, COUNT(*) FROM busy GROUP BY shop"],
        "SELECT shop, COUNT(*) FROM busy WHERE shop <> 'zoo' GROUP BY 1",
    ),
    (["SELECT shop, COUNT(*) FROM busy GROUP BY shop"], "SELECT COUNT(*) FROM busy"),
    (["SELECT hour, COUNT(*) FROM busy GROUP BY hour"], "SELECT hour / 6, COUNT(*) FROM busy GROUP BY 1"),
    (["SELECT hour, shop, AVG(hour) FROM busy GROUP BY hour, shop"], "SELECT hour, AVG(hour) FROM busy GROUP BY hour"),
    ([f"SELECT city, shop, COUNT(*) {JOINED} GROUP BY 1, 2"], BUSY_BY_CITY),
    (
        ["SELECT hour, COUNT(DISTINCT uid) FROM busy GROUP BY hour"],
        "SELECT COUNT(DISTINCT uid) FROM busy WHERE hour = 3",
    ),
    (
        ["SELECT shop, COUNT(DISTINCT hour) FROM busy GROUP BY shop"],
        "SELECT COUNT(DISTINCT hour) FROM busy WHERE shop = 'zoo'",
    ),
    # other columns are read, so that others of a unit's rows may be kept
    (["SELECT shop, COUNT(*) FROM calls GROUP BY shop"], "SELECT COUNT(*) FROM calls"),
    (["SELECT shop, COUNT(*), SUM(price) FROM calls GROUP BY shop"], "SELECT shop, COUNT(*) FROM calls GROUP BY shop"),
    # several releases
    ([f"{V} WHERE hour BETWEEN 3 AND 7", f"{V} WHERE hour BETWEEN 8 AND 11"], f"{V} WHERE hour > 2 AND hour < 12"),
    ([f"{P} WHERE age < 60", f"{P} WHERE age < 20"], f"{P} WHERE age BETWEEN 20 AND 59"),
    # private keys
    (["SELECT tag, COUNT(*) FROM visits GROUP BY tag"], f"{V} WHERE tag = 't1'"),
    (["SELECT tag, COUNT(*) FROM visits GROUP BY tag"], V),
    # other rows
    (["SELECT shop, COUNT(*) FROM visits WHERE tag = 't1' GROUP BY shop"], f"{V} WHERE shop = 'zoo'"),
    (["SELECT shop, COUNT(*) FROM visits WHERE hour < 9 GROUP BY shop"], f"{V} WHERE shop = 'zoo'"),
    ([f"{V} WHERE hour BETWEEN 0 AND 23"], V),
    ([BY_HOUR], f"{V} WHERE hour >= 6"),
    ([BY_HOUR], V),
    (["SELECT DATE_TRUNC('week', day), COUNT(*) FROM visits GROUP BY 1"], f"{V} WHERE day < '2024-02-05'"),
    (["SELECT ABS(hour), COUNT(*) FROM visits GROUP BY 1"], f"{V} WHERE ABS(hour) >= 3"),
    ([f"{V} WHERE NOT ABS(hour) = 3"], f"{V} WHERE ABS(hour) <> 3 AND ABS(hour) = 4"),
    ([f"{V} WHERE hour BETWEEN 4 AND 9"], f"{V} WHERE hour > 3.00000000000000000001 AND hour < 10"),
    (["SELECT note, COUNT(*) FROM visits GROUP BY note"], f"{V} WHERE note IS NOT NULL"),
    ([f"{V} WHERE hour BETWEEN 3 AND 7", f"{V} WHERE hour BETWEEN 9 AND 11"], f"{V} WHERE hour BETWEEN 3 AND 11"),
    ([f"{V} WHERE hour BETWEEN 3 AND 7", f"{V} WHERE hour BETWEEN 7 AND 11"], f"{V} WHERE hour BETWEEN 3 AND 11"),
    (["SELECT DATE_TRUNC('week', day), COUNT(*) FROM visits GROUP BY 1"], BY_MONTH),
    (["SELECT CASE WHEN price > 9 THEN hour END, COUNT(*) FROM visits GROUP BY 1"], V),
    ([f"{V} WHERE tag = 'scan(x as t1,'"], f"{V} WHERE tag = 'scan(x as t2,'"),
    ([f"{V} WHERE tag = $$'scan(x as t1,$$"], f"{V} WHERE tag = $$'scan(x as t2,$$"),
    ([f"""{V} WHERE tag = '"scan(x as t1,'"""], f"""{V} WHERE tag = '"scan(x as t2,'"""),
    # a sum and a count with the same noise, whose ratio may be negative though the middle of the bounds is positive
    (["SELECT AVG(change) FROM people"], "SELECT SUM(change), COUNT(change) FROM people"),
    # other measurements
    (["SELECT shop, SUM(price) FROM visits GROUP BY shop"], f"{V} WHERE shop = 'zoo'"),
    (["SELECT shop, COUNT(note) FROM visits GROUP BY shop"], f"{V} WHERE shop = 'zoo'"),
    (["SELECT COUNT(*) FILTER (WHERE hour < 3) FROM visits"], V),
)


def rows(relation: Relation) -> list[tuple[object, ...]]:
    return [tuple(round(v, 4) if isinstance(v, float | Decimal) else v for v in row) for row in relation.rows]


@pytest.mark.parametrize(("stored", "asked"), DERIVED)
def test_derived(exact: Shop, stored: list[str], asked: str) -> None:
    for text in stored:
        assert not exact.is_derived(text, reuse_error=ANY)
    answer = exact.ask(asked, reuse_error=ANY)
    assert answer.notices[-1].startswith("Derived from"), answer.notices
    assert rows(answer.relation) == rows(exact.fresh(asked).relation)
    assert len(exact.entries(Kind.DEBIT, "alice")) == len(stored)


@pytest.mark.parametrize(("stored", "asked"), MEASURED)
def test_not_derivable(shop: Shop, stored: list[str], asked: str) -> None:
    for text in stored:
        shop.ask(text, reuse_error=ANY)
    assert not shop.is_derived(asked, reuse_error=ANY)


def test_a_choice_among_so_many_cells_and_no_more(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    """All who ask the ledger wait for it, and EXPLAIN is free: what is stored may not make it long."""
    shop.ask("SELECT note, COUNT(*) FROM visits GROUP BY note")
    shop.ask(BY_HOUR)
    for limit in ("dpsql.ledger.kin.MAX_CELLS", "dpsql.ledger.rows.MAX_TEXT"):
        with monkeypatch.context() as patch:
            patch.setattr(limit, 10)
            assert any("derived" in line for line in shop.explained(f"{V} WHERE hour = 3"))
            assert not any("derived" in line for line in shop.explained(f"{V} WHERE note = 2"))
        assert any("derived" in line for line in shop.explained(f"{V} WHERE note = 2"))


def test_a_statement_of_many_releases_makes_nobody_wait(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    """The first are derived, as many as may be; the others are measured."""
    shop.ask(BY_HOUR)
    parts = " UNION ALL ".join(f"{V} WHERE hour = {hour}" for hour in range(10))
    assert len([line for line in shop.explained(parts) if "derived" in line]) == 10
    monkeypatch.setattr("dpsql.ledger.kin.MAX_WORK", 3 * EACH)
    assert len([line for line in shop.explained(parts) if "derived" in line]) == 3
    paid = len(shop.entries(Kind.DEBIT))
    shop.ask(parts)
    assert len(shop.entries(Kind.DEBIT)) == paid + 7


def test_off(shop: Shop) -> None:
    shop.ask(BY_SHOP)
    assert not shop.is_derived(f"{V} WHERE shop = 'zoo'", reuse_error=Decimal(0))


def test_the_error_decides(shop: Shop) -> None:
    """A key of three is as noisy as asked for alone, all three together are sqrt(3) times."""
    shop.ask(BY_SHOP)
    assert shop.is_derived(f"{V} WHERE shop = 'zoo'", reuse_error=Decimal(1))
    assert shop.is_derived(f"{V} WHERE shop IN ('zoo', 'cafe', 'books')", reuse_error=Decimal("1.74"))
    assert not shop.is_derived(f"{V} WHERE shop IN ('zoo', 'cafe', 'books')", reuse_error=Decimal("1.73"))
    shop.ask(BY_HOUR)
    assert not shop.is_derived("SELECT FLOOR(hour / 12), COUNT(*) FROM visits GROUP BY 1")


def test_more_accuracy_is_charged(shop: Shop) -> None:
    """A statement that names more than the stored one named is made anew, and then answers the others."""
    shop.ask(BY_SHOP)
    asked = f"{V} WHERE shop = 'zoo'"
    assert not shop.is_derived(asked, epsilon=Decimal(2))
    better = shop.value(asked, epsilon=Decimal(2))
    assert shop.value(asked, epsilon=Decimal("1.5")) == better


def test_an_aimed_error_is_met(shop: Shop) -> None:
    """The error is read from both ends: the count between them is rounded, by as much as its noise happens to need."""
    shop.ask(BY_SHOP)
    ends = "dp_interval_high(COUNT(*)) - dp_interval_low(COUNT(*))"
    bars = shop.ask(f"SELECT {ends} FROM visits GROUP BY shop").relation.rows
    error = max(Decimal(str(width)) for (width,) in bars) / 2
    assert error > 5
    assert shop.is_derived(f"{V} WHERE shop = 'zoo'", max_error=round(error, 2) + 1)
    assert not shop.is_derived(f"{V} WHERE shop = 'cafe'", max_error=round(error, 2) - 1)


def test_error_bars_are_its_own(shop: Shop) -> None:
    one = shop.value("SELECT dp_stddev(COUNT(*)) FROM visits GROUP BY shop")
    bars = "dp_stddev(COUNT(*)), dp_interval_high(COUNT(*)) - dp_interval_low(COUNT(*))"
    both = shop.ask(f"SELECT {bars} FROM visits WHERE shop <> 'zoo'")
    assert both.notices[-1].startswith("Derived from 1 stored release: no new noise, 95 % error")
    stddev, width = both.relation.rows[0]
    assert stddev == pytest.approx(one * 2**0.5)
    assert width == pytest.approx(2 * 1.96 * one * 2**0.5)


def test_another_state_or_policy(tmp_path: Path) -> None:
    stored, asked = BY_SHOP, f"{V} WHERE shop = 'zoo'"
    with opened(write(tmp_path)) as shop:
        shop.ask(stored)
    with opened(write(tmp_path, epoch="2")) as shop:
        assert not shop.is_derived(asked)
        shop.ask(stored)
    with opened(write(tmp_path, epoch="2", hours=20)) as shop:
        assert not shop.is_derived(f"{V} WHERE shop = 'cafe'")
    with opened(write(tmp_path, epoch="2")) as shop:  # across a restart
        assert shop.is_derived(f"{V} WHERE shop = 'books'")


def test_a_viewer_pays_once_and_no_more_than_it_would_cost(shop: Shop) -> None:
    ledger = shop.engine.ledger
    shop.ask(BY_SHOP)
    spent = ledger.dataset_spent()
    assert shop.is_derived(f"{V} WHERE shop = 'zoo'", "bob")
    assert (ledger.dataset_spent(), ledger.spent("bob")) == (spent, ledger.spent("alice"))
    assert shop.is_derived(f"{V} WHERE shop = 'cafe'", "bob")
    shop.ask(BY_SHOP, "bob")
    assert ledger.spent("bob") == ledger.spent("alice")
    assert len(shop.entries(Kind.VIEW)) == 1
    assert not shop.is_derived(f"{V} WHERE shop = 'zoo'", "carol", epsilon=Decimal("0.9"))


def test_of_several_the_viewer_gets_what_is_within_the_price(shop: Shop) -> None:
    """The most accurate was made for more than this viewer's statement costs; another one does as well."""
    shop.ask("SELECT city, age, COUNT(*) FROM people GROUP BY city, age")
    shop.ask("SELECT age, COUNT(*) FROM people GROUP BY age", epsilon=Decimal(2))
    spent = shop.engine.ledger.dataset_spent()
    asked = f"{P} WHERE age BETWEEN 0 AND 3"
    assert shop.is_derived(asked, "bob", reuse_error=Decimal(5))
    assert shop.engine.ledger.spent("bob").rho < shop.engine.ledger.spent("alice").rho / 3
    assert shop.engine.ledger.dataset_spent() == spent
    assert not shop.is_derived(asked, "carol", reuse_error=Decimal("0.5"))
    assert shop.engine.ledger.dataset_spent() != spent


def test_shared(tmp_path: Path) -> None:
    with opened(write(tmp_path, replay="shared")) as shop:
        shop.ask(BY_SHOP)
        assert shop.is_derived(f"{V} WHERE shop = 'zoo'", "bob")
        assert shop.engine.ledger.spent("bob").rho == 0


def test_explain_says_what_is_free_and_spends_nothing(shop: Shop) -> None:
    asked, stored = f"{V} WHERE shop = 'zoo'", BY_SHOP
    assert "Replay of r0: made anew for epsilon 1" in shop.explained(asked)
    shop.ask(stored)
    head = shop.engine.ledger.head()
    assert "Replay of r0: stored and seen, free" in shop.explained(stored)
    (line,) = [line for line in shop.explained(asked) if line.startswith("Replay")]
    assert line.startswith("Replay of r0: derived from 1 stored, 95 % error ")
    assert line.endswith(", free")
    (line,) = [line for line in shop.explained(asked, "bob") if line.startswith("Replay")]
    view = "a first view for epsilon 1, which debits you alone; what else follows from the same is free then"
    assert line.endswith(view)
    (line,) = [line for line in shop.explained(V) if line.startswith("Replay")]
    assert " (a new measurement: " in line
    assert shop.engine.ledger.head() == head


def test_a_changed_shape_is_a_doubt(tmp_path: Path) -> None:
    path = write(tmp_path)
    with opened(path) as shop:
        shop.ask("SELECT hour, shop, COUNT(*) FROM visits GROUP BY hour, shop")
    with closing(sqlite3.connect(tmp_path / "shop.ledger")) as connection, connection:
        connection.execute("UPDATE shape SET body = replace(body, '[0,1,24]', '[1,1,24]')")
    with opened(path) as shop, pytest.raises(Failed):
        shop.ask(f"{V} WHERE hour = 1 AND shop = 'zoo'", reuse_error=ANY)


@pytest.mark.parametrize(("allowed", "derived"), [("3", True), ("1.74", True), ("1.7", False), ("off", False)])
def test_the_role_bounds_the_error(tmp_path: Path, allowed: str, derived: bool) -> None:
    """What its users may set, and what they get who set nothing."""
    path = write(tmp_path)
    path.write_text(path.read_text("utf-8").replace("max_epsilon: 40", f"max_epsilon: 40, reuse_error: {allowed}"))
    with opened(path) as shop:
        shop.ask(BY_SHOP)
        asked = V
        assert not shop.is_derived(f"{V} WHERE shop = 'books'", reuse_error=Decimal(0))
        assert any("derived" in line for line in shop.explained(asked)) == derived
        with pytest.raises(Rejected, match=r"reuse_error 4 is above what the policy allows you"):
            shop.ask(asked, reuse_error=Decimal(4))
