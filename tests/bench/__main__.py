"""Prints the start of `dpsql serve`, and what the proxy adds to new statements and to replays.

Latency is counted from the sending of a statement to the first byte of its answer, over the wire, the durable debit
included. The backend's own time is that of the statement that the proxy sends it (as EXPLAIN shows it), and the raw
time that of the analyst's text, both on the same file in the same run, one after the other. The columns of processor
time say what a quiet machine would show: they hardly move with what else runs.
"""

from __future__ import annotations

import argparse
import tempfile
from pathlib import Path
from statistics import median

from .measure import Figures, measure, started
from .places import Place, flights, synthetic

START, NEW, REPLAY = 3.0, 15.0, 5.0
"""Targets: seconds, milliseconds, milliseconds."""
_TITLES = ("raw", "backend", "new", "added", "replay", "new/raw", "replay/raw", "added cpu", "replay cpu")
_WIDTHS = (8, 9, 8, 8, 8, 9, 11, 11, 11)


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.bench")
    parser.add_argument("--rounds", type=int, default=25, help="variants of each statement (default 25)")
    rounds = parser.parse_args().rounds
    with tempfile.TemporaryDirectory() as folder:
        places = (flights(Path(folder)), synthetic(Path(folder)))
        found = [figures for place in places for figures in _place(place, rounds)]
    added = median(f.added for f in found)
    replay = median(f.replay for f in found)
    print(f"\nnew statement: {added:.1f} ms added (target {NEW:.0f}): {_verdict(added, NEW)}")
    print(f"replay: {replay:.1f} ms (target {REPLAY:.0f}): {_verdict(replay, REPLAY)}")


def _place(place: Place, rounds: int) -> list[Figures]:
    with started(place) as proxy:
        print(
            f"\n{place.name}: {proxy.listening:.2f} s to listening, {proxy.first_answer:.2f} s to the first answer,"
            f" {proxy.listening_cpu:.2f} s of the processor",
            end=" ",
        )
        print(f"(target {START:.0f}): {_verdict(proxy.first_answer, START)}")
        titles = zip(_TITLES, _WIDTHS, strict=True)
        print(f"{'ms, medians':44}" + "".join(f"{title:>{width}}" for title, width in titles))
        found = []
        for name, template in place.statements.items():
            figures = measure(place, proxy, template, rounds)
            found.append(figures)
            print(
                f"{name:44}{figures.raw:8.1f}{figures.backend:9.1f}{figures.new:8.1f}{figures.added:8.1f}"
                f"{figures.replay:8.1f}{figures.new / figures.raw:8.1f}x{figures.replay / figures.raw:10.1f}x"
                f"{figures.added_cpu:11.1f}{figures.replay_cpu:11.1f}"
            )
        return found


def _verdict(value: float, target: float) -> str:
    return "met" if value < target else "MISSED"


if __name__ == "__main__":
    main()
