"""Answers on large tables beside the raw statement on a copy: their time as a ratio, and their error.

    python -m tests.bench.large [--scale 1] [--rows 10000000] [--rounds 5]

TPC-H with customers as the privacy unit, and `events` of 200,000 users (rows a user: median 25, 99 % below 435). Raw
statement and answer are asked in turns in one process, each answer a new release with its debit. The error of a number
is |answer - raw| / |raw|, noise and clipping together; shown is the median over all numbers and rounds of a statement.
Cwida's figures are of TPC-H at scale 30 on 16 cores, at epsilon 1 and delta 1e-6 (github.com/cwida/privacy).
"""

from __future__ import annotations

import argparse
import shutil
import sys
import tempfile
import time
from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from statistics import geometric_mean, median

import duckdb

from dpsql.engine import Engine, open_engine
from dpsql.ledger import init_ledger
from dpsql.policy.load import load
from dpsql.session.ports import CancelToken
from dpsql.types import Settings

from .places import USER, events

sys.path.insert(0, str(Path(__file__).parents[1] / "tpch"))

from tpch_data import HERE, QUERIES, build

CWIDA = {1: 11.2, 5: 1.76, 6: 2.83, 14: 3.07, 19: 1.85}
"""Their times over raw ones, by number of the statement."""
BOUNDS = {"max_groups: 25": "max_groups: 1", "max_rows_per_group: 250": "max_rows_per_group: 150"}
_COUNT_LINEITEM = "SELECT COUNT(*) FROM lineitem"
_SEGMENTS = """SELECT c_mktsegment, SUM(l_extendedprice * (1 - l_discount)) FROM customer
JOIN orders ON c_custkey = o_custkey JOIN lineitem ON l_orderkey = o_orderkey GROUP BY c_mktsegment"""
_EVENTS = "SELECT {key}, COUNT(DISTINCT uid), SUM(amount), AVG(amount) FROM events GROUP BY {key}"


@dataclass(frozen=True)
class Work:
    """A statement, how many of its first columns are keys, and what another system needs, if it says so.

    `rows`: what the analyst sets `dpsql.max_rows_per_group` to.
    """

    name: str
    statement: str
    keys: int
    theirs: str = ""
    rows: int | None = None


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.bench.large")
    parser.add_argument("--scale", type=Decimal, default=Decimal(1), help="of TPC-H (default 1)")
    parser.add_argument("--rows", type=int, default=10_000_000, help="of events (default 10,000,000)")
    parser.add_argument("--rounds", type=int, default=5, help="of each statement (default 5)")
    asked = parser.parse_args()
    print(f"{'':34}{'raw ms':>9}{'answer ms':>11}{'answer/raw':>12}{'theirs':>16}{'error':>10}")
    with tempfile.TemporaryDirectory() as folder:
        compare(_tpch(Path(folder), asked.scale), _tpch_work(), asked.rounds)
    with tempfile.TemporaryDirectory() as folder:
        compare(events(Path(folder), asked.rows).policy, _events_work(), asked.rounds)


def _tpch(folder: Path, scale: Decimal) -> Path:
    build(folder / "tpch.duckdb", scale)
    text = (HERE / "policy.yaml").read_text()
    for old, new in {"units: 1500": f"units: {int(150_000 * scale)}", **BOUNDS}.items():
        assert old in text
        text = text.replace(old, new)
    policy = folder / "tpch.yaml"
    policy.write_text(text)
    return policy


def _tpch_work() -> tuple[Work, ...]:
    keys, rows = {1: 2, 5: 1}, {5: 3, 6: 4, 14: 4, 19: 1}
    cwida = [Work(f"TPC-H Q{n}", QUERIES[n], keys.get(n, 0), f"cwida {CWIDA[n]}x", rows.get(n)) for n in CWIDA]
    return (
        Work("COUNT(*) of lineitem", _COUNT_LINEITEM, 0, "SmartNoise 18x"),
        Work("revenue by market segment", _SEGMENTS, 1, "Qrlew 8.6x"),
        *cwida,
    )


def _events_work() -> tuple[Work, ...]:
    return (
        Work("events by country", _EVENTS.format(key="country"), 1, "Qrlew 17x"),
        Work("events by product", _EVENTS.format(key="product"), 1, "SmartNoise 19x"),
    )


def compare(policy: Path, work: Sequence[Work], rounds: int) -> None:
    """Print a line for each; and the geometric mean of the ratios."""
    loaded = load(policy)
    copied = shutil.copy(policy.with_suffix(".duckdb"), policy.with_suffix(".raw"))
    init_ledger(loaded.ledger, loaded.dataset)
    ratios = []
    with closing(open_engine(loaded)) as engine, closing(duckdb.connect(str(copied), read_only=True)) as raw:
        for item in work:
            took, answer, error = _measured(engine, raw, item, rounds)
            ratios.append(answer / took)
            print(f"{item.name:34}{took * 1e3:9.1f}{answer * 1e3:11.1f}{answer / took:11.2f}x", end="")
            print(f"{item.theirs:>16}{error:10.3%}")
    print(f"{'geometric mean':34}{'':20}{geometric_mean(ratios):11.2f}x\n")


def _measured(engine: Engine, raw: duckdb.DuckDBPyConnection, item: Work, rounds: int) -> tuple[float, float, float]:
    """Medians: seconds of the raw statement, of the answer; relative error."""
    raws, answers, errors = [], [], []
    for number in range(rounds + 1):
        epsilon = 1 + Decimal(number) / 1000  # more than is stored, so made anew
        settings = Settings(epsilon=epsilon, max_rows_per_group=item.rows)
        start = time.perf_counter()
        truth = raw.execute(item.statement).fetchall()
        raws.append(time.perf_counter() - start)
        start = time.perf_counter()
        answer = engine.answer(USER, item.statement, 0, settings, (), CancelToken())
        answers.append(time.perf_counter() - start)
        errors += _errors(truth, answer.relation.rows, item.keys)
    return median(raws[1:]), median(answers[1:]), median(errors)


def _errors(truth: Sequence[Sequence[object]], rows: Sequence[Sequence[object]], keys: int) -> list[float]:
    """A missing group is wrong by all of it."""
    found = {tuple(row[:keys]): row[keys:] for row in rows}
    errors = []
    for row in truth:
        mine = found.get(tuple(row[:keys]), [0] * (len(row) - keys))
        for true, own in zip(row[keys:], mine, strict=True):
            if isinstance(true, int | float | Decimal) and isinstance(own, int | float | Decimal) and true:
                errors.append(abs(float(own) / float(true) - 1))
    return errors


if __name__ == "__main__":
    main()
