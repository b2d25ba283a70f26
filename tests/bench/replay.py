"""What 5,000 range counts that follow a Zipf law cost, as a share of what exact-match caching pays for them.

    python -m tests.bench.replay [--values N ...]

All ranges of a public domain are asked for, the i-th most frequent in proportion to 1/i, at one epsilon and with the
default `dpsql.reuse_error`. Caching pays for each distinct range once. The target is a third of that.

Where no contribution can be clipped (one row a unit, `unit: row`, `max_rows` within `max_rows_per_group`) any sums and
differences will do. Where a unit's total may be clipped, only ranges within the asked one tell anything of it, and the
last column counts the ranges that cannot be joined from such in any way, sound or not: no less can be paid by asking
only what was asked.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "replay"))

from workload_cases import ASKS, paid, zipf

TARGET = 1 / 3


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.bench.replay")
    parser.add_argument("--values", type=int, nargs="*", default=[12, 24, 50, 100], help="sizes of the domain")
    sizes = parser.parse_args().values
    titles = ("values", "distinct", "never clipped", "may be clipped", "longest choice", "at least")
    print("".join(f"{title:>{width}}" for title, width in zip(titles, (6, 9, 22, 22, 16, 10), strict=True)))
    for values in sizes:
        workload = zipf(ASKS, values)
        distinct = len(set(workload))
        never, fast = paid(workload, values, "never")
        totals, slow = paid(workload, values, "totals")
        shares = "".join(f"{share:>15.3f} {_verdict(share)}" for share in (never / distinct, totals / distinct))
        floor = _unjoined(workload) / distinct
        print(f"{values:>6}{distinct:>9}{shares}{max(fast, slow) * 1000:>13.0f} ms{floor:>10.3f}")


def _verdict(share: float) -> str:
    return f"{'met' if share <= TARGET else 'MISSED':6}"


def _unjoined(workload: list[tuple[int, int]]) -> int:
    """Ranges whose ends no ranges within them connect, when each such range is measured."""
    stored: list[tuple[int, int]] = []
    for low, high in dict.fromkeys(workload):
        inside = [each for each in stored if low <= each[0] and each[1] <= high]
        reached, before = {low}, 0
        while len(reached) > before:
            before = len(reached)
            reached |= {end for a, b in inside if a in reached or b in reached for end in (a, b)}
        if high not in reached:
            stored.append((low, high))
    return len(stored)


if __name__ == "__main__":
    main()
