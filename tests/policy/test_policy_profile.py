"""`dpsql init --profile-with-epsilon`: what it spends, what one unit can change, and what it finds."""

from __future__ import annotations

from decimal import Decimal
from pathlib import Path

import duckdb
import pytest
from click.testing import CliRunner, Result

from dpsql.backends import open_backend
from dpsql.backends.inspect import inspect
from dpsql.backends.outline import read_outline
from dpsql.commands.init import init
from dpsql.commands.init_profile import DELTA
from dpsql.compiler import Terms, compile_statement
from dpsql.dp.sensitivity import L1
from dpsql.errors import Rejected
from dpsql.ledger import verify_ledger
from dpsql.policy.draft import Plan, plan
from dpsql.policy.draft_profile import MOST_ROWS, YEARS, bounds_of, policy_of, probes, rounded, share, tail, values_of
from dpsql.policy.load import parse

SHOP = """
CREATE TABLE customers (id integer PRIMARY KEY, born date, gender varchar, points integer);
CREATE TABLE orders (id integer PRIMARY KEY, customer_id integer REFERENCES customers (id), total decimal(10, 2),
    status varchar);
CREATE TABLE items (order_id integer REFERENCES orders (id), quantity smallint, weight double);
INSERT INTO customers SELECT i, date '1950-06-01' + (i % 14000)::integer, ['f', 'm'][1 + i % 2], i % 90
    FROM range(3000) AS t (i);
INSERT INTO customers VALUES (3000, date '1903-01-01', 'rare-secret', 1000000000);
INSERT INTO orders SELECT i, (i * 7919) % 3000, i % 180 + 0.5, ['open', 'paid'][1 + i % 2] FROM range(12000) AS t (i);
INSERT INTO items SELECT i // 2, i % 4, (i % 100) / 2 FROM range(24000) AS t (i);
"""


@pytest.fixture(scope="module")
def shop(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("profile") / "shop.duckdb"
    with duckdb.connect(str(path)) as connection:
        connection.execute(SHOP)
    return path


@pytest.fixture(scope="module")
def made(shop: Path) -> Plan:
    return plan(read_outline(f"duckdb:{shop}"))


def _init(*arguments: str | Path) -> Result:
    return CliRunner().invoke(init, [str(argument) for argument in arguments])


def test_it_measures_what_a_draft_leaves_open_and_spends_what_it_says(shop: Path, tmp_path: Path) -> None:
    policy = tmp_path / "shop.yaml"
    done = _init(shop, "-o", policy, "--profile-with-epsilon", "200")
    assert done.exit_code == 0, done.exception
    text = policy.read_text()
    for line in (
        "units: 3000",
        "gender: {type: text, values: [f, m], nullable: true}",
        "status: {type: text, values: [open, paid], nullable: true}",
        "quantity: {type: integer, lower: 0, upper: 5, nullable: true}",
        "points: {type: integer, lower: 0, upper: 100, nullable: true}",
        "lower: 1950-01-01, upper: 1959-01-01, nullable: true}",
        "    max_rows_per_group: 5 ",
        "  max_rows_per_group: 10 ",
    ):
        assert line in text
    assert "rare-secret" not in text + done.output
    report = verify_ledger(f"sqlite:{tmp_path}/shop.ledger", "shop")
    epsilon, delta = report.dataset_spent.epsilon, report.dataset_spent.delta
    assert 199 * 10**15 < epsilon <= 200 * 10**15
    assert 0 < delta <= DELTA * 10**15
    again = _init(shop, "-o", policy, "--force", "--profile-with-epsilon", "200")
    assert isinstance(again.exception, Rejected)
    assert verify_ledger(f"sqlite:{tmp_path}/shop.ledger", "shop").dataset_spent == report.dataset_spent


@pytest.mark.parametrize("rows", [1, MOST_ROWS])
def test_one_unit_moves_every_measurement_by_at_most_one(made: Plan, shop: Path, rows: int) -> None:
    """Each statement counts a unit once: by one row in all, or because its statement has one row a unit."""
    text = policy_of(made, "shop", f"duckdb:{shop}", Decimal(1), DELTA, rows)
    policy = parse(text, shop.with_name("profile.yaml"))
    backend = open_backend(policy.backend, "UTC")
    try:
        schema = inspect(backend, policy)
    finally:
        backend.close()
    wanted = [probe for probe in probes(made) if (probe.what == "rows") == (rows == MOST_ROWS)]
    assert {probe.what for probe in wanted} == ({"rows"} if rows > 1 else {"units", "bounds", "years", "values"})
    for probe in wanted:
        sql = probe.sql.replace("{tail}", "0.1")
        planned = compile_statement(sql, schema, Terms(Decimal(1), DELTA)).releases
        assert len(planned) == 1
        bounds = [m.sensitivity for m in planned[0].measurements] + [h.weights for h in planned[0].histograms]
        assert all(bound == L1(1024) for bound in bounds)
        if planned[0].selection is not None:
            assert planned[0].selection.sensitivity == L1(1024)
        assert len(bounds) + (planned[0].selection is not None) == probe.shares


def test_shares_never_add_up_to_more(made: Plan) -> None:
    wanted = probes(made)
    for epsilon in map(Decimal, ("1", "0.3", "0.000001", "7.123456789012")):
        assert sum(probe.shares for probe in wanted) * share(epsilon, wanted) <= epsilon
    assert share(Decimal("1e-12"), wanted) == 0


def test_noise_widens_the_share_left_outside_until_nothing_can_be_said() -> None:
    assert tail(10**6, Decimal(1), 90) == 0.005
    few, many = tail(4000, Decimal("0.1"), 90), tail(8000, Decimal("0.1"), 90)
    assert few is not None
    assert many is not None
    assert 0.005 < many < few < 0.2
    assert tail(50, Decimal("0.1"), 90) is None
    assert tail(0, Decimal(1), 90) is None


def test_what_says_nothing_is_left_open(made: Plan) -> None:
    (bounds, *_) = [probe for probe in probes(made) if probe.what == "bounds"]
    (years, *_) = [probe for probe in probes(made) if probe.what == "years"]
    assert bounds_of(bounds, 3, 3) is None
    assert bounds_of(bounds, -1, 10**6) is None
    assert bounds_of(years, 2000, 2001) == ("2000-01-01", "2002-01-01")
    assert YEARS[0] == 1900
    assert values_of([]) is None
    assert values_of([str(i) for i in range(51)]) is None
    assert values_of(["b", "a: b"]) == ('"a: b"', "b")
    assert (rounded(-5), rounded(7), rounded(4013)) == (1, 7, 4000)


def test_it_needs_a_unit_a_file_and_a_possible_amount(tmp_path: Path) -> None:
    path = tmp_path / "readings.duckdb"
    with duckdb.connect(str(path)) as connection:
        connection.execute("CREATE TABLE readings (value double)")
    undecided = _init(path, "-o", tmp_path / "x.yaml", "--profile-with-epsilon", "1")
    assert isinstance(undecided.exception, Rejected)
    assert "--unit" in str(undecided.exception.hint)
    assert _init(path, "--profile-with-epsilon", "1").exit_code == 2
    for wrong in ("0", "-1", "nan", "inf", "much"):
        assert _init(path, "-o", tmp_path / "x.yaml", "--profile-with-epsilon", wrong).exit_code == 2
    assert list(tmp_path.glob("*.ledger*")) == []


def test_by_row_and_with_too_little_it_leaves_decisions_open(tmp_path: Path) -> None:
    path, policy = tmp_path / "few.duckdb", tmp_path / "few.yaml"
    with duckdb.connect(str(path)) as connection:
        connection.execute("CREATE TABLE readings (value double, kind varchar)")
        connection.execute("INSERT INTO readings SELECT i, 'a' FROM range(30) AS t (i)")
    done = _init(path, "-o", policy, "--unit", "row", "--profile-with-epsilon", "0.1")
    assert done.exit_code == 0, done.exception
    assert "value: {type: double, lower: DECIDE, upper: DECIDE, nullable: true}" in policy.read_text()
    assert "values: DECIDE" in policy.read_text()
