"""Workloads of ranges that follow a Zipf law, and what they cost. Not a test itself."""

from __future__ import annotations

import time
from collections.abc import Iterable
from decimal import Decimal
from random import Random
from typing import Literal

from dpsql.replay.derive import choose
from dpsql.replay.recipe import Axis, Kin, Measured, Shape

ASKS, REUSE = 5_000, 3.0
Clips = Literal["never", "totals", "cells"]
"""Whether contributions may be clipped: not with one row a unit; in totals of one group; scaled over several groups."""


def zipf(asks: int, values: int) -> list[tuple[int, int]]:
    """Ranges [a, b) of a domain of so many values; the i-th most frequent comes up in proportion to 1/i."""
    random = Random(20240)
    ranges = [(a, b) for a in range(values) for b in range(a + 1, values + 1)]
    random.shuffle(ranges)
    return random.choices(ranges, [1 / (i + 1) for i in range(len(ranges))], k=asks)


def paid(workload: Iterable[tuple[int, int]], values: int, clips: Clips) -> tuple[int, float]:
    """How many of the ranges are measured, all at one price, and the most seconds (of the processor) of a choice."""
    count = Measured("count", True, True, 1.0, grows=clips == "totals")
    stored: list[tuple[int, Shape]] = []
    longest = 0.0
    for low, high in dict.fromkeys(workload):  # the same one again is a replay
        axis = Axis("x", ((-1, values + 1),), (((low, high),),))
        shape = Shape("family", (axis,), (count,), clips == "never", Decimal(1))
        start = time.process_time()
        if choose(Kin(shape, (REUSE**2,)), stored) is None:
            stored.append((len(stored), shape))
        longest = max(longest, time.process_time() - start)
    return len(stored), longest
