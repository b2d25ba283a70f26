"""Histogram measurements: exact weights per group and bin, of which one bin per group is chosen with privacy.

Decides, for MIN, MAX, MEDIAN, the percentiles and MODE, what is counted, how far one unit can move it, and the choice.
A unit with n[g,b] contributing rows in group g and bin b, N in all, has the weight floor(1024 n[g,b] min(1, R / N))
there, R the L1 radius of rows (`bound.l1`, at most L0 m): at most C1 = 1024 R over all groups and bins together.
`dp.scores` says how scores follow from the weights of
a group, why they move by a constant times the unit's weight in that group, and `dp.privacy` why the choices in all
groups of one release therefore cost one epsilon.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import log
from typing import Literal

from dpsql.compiler.algebra import Aggregate, End, Expr, canonical
from dpsql.compiler.bins import MAX_BINS, MAX_CANDIDATES, MIN_BINS, Bins, bins_of, values_between
from dpsql.compiler.shown import shown
from dpsql.dp.mechanisms import NoisyMax
from dpsql.dp.privacy import Accounting, noisy_max_for
from dpsql.dp.scores import (
    end_scores,
    end_shift,
    extreme_scores,
    extreme_sensitivity,
    mode_scores,
    mode_sensitivity,
    quantile_scores,
    quantile_sensitivity,
    rank_error_of,
    rank_of,
)
from dpsql.dp.selection import WEIGHT_ONE
from dpsql.dp.sensitivity import L1, ContributionBound, Scores, clip_l1
from dpsql.errors import TOO_COMPLEX, Failed, Rejected
from dpsql.types import SqlType

Wanted = Literal["quantile", "min", "max", "mode"]


@dataclass(frozen=True, slots=True)
class Choice:
    """What is counted and looked for, before its noise is known. `rank`: of a quantile. `end`: of its interval."""

    wanted: Wanted
    rank: Fraction
    argument: Expr
    condition: Expr | None
    bins: Bins
    end: End | None = None

    @property
    def text(self) -> str:
        """What is chosen, canonically."""
        condition = "" if self.condition is None else canonical(self.condition)
        end = "" if self.end is None else f"|{self.end}"
        return f"{self.wanted}({self.rank}|{canonical(self.argument)}|{condition}|{self.bins!r}{end})"


@dataclass(frozen=True, slots=True)
class Histogram:
    """A choice with its sensitivities and mechanism.

    `weights`: how far one unit moves the backend's integers, over all groups and bins. `scores`: how far it moves what
    the mechanism sees, over all groups.
    """

    number: int
    name: str
    choice: Choice
    weights: L1
    scores: Scores
    mechanism: NoisyMax

    @property
    def rank_error(self) -> int | None:
        """Of MIN and MAX: the weight that they leave beyond them on purpose."""
        extreme = self.choice.wanted in ("min", "max")
        return rank_error_of(self.mechanism, self.choice.bins.size) if extreme else None

    @property
    def rank_rows(self) -> float | None:
        """How many rows of a group may lie between the chosen value and the one asked for: of 95 %.

        None for MODE, and for the ends of intervals.

        A bin that is t worse in score is chosen with probability exp(-t / scale) at most, so all bins that are
        scale * ln(20 * bins) worse together with 1/20 (Dwork and Roth 2014, theorem 3.11).
        """
        if self.rank_error is not None:
            return self.rank_error / WEIGHT_ONE
        if self.choice.wanted != "quantile" or self.choice.end is not None:
            return None
        return self.mechanism.scale / self.choice.rank.denominator / WEIGHT_ONE * log(20 * self.choice.bins.size)

    @property
    def needed_rows(self) -> float:
        """How many rows a group must have for the choice to tell them from none.

        Of n rows a quantile of rank r is at most max(r, 1 - r) n ranks off whatever is chosen, an extreme n; that MODE
        chooses what none of them has has less than one chance in 20 where the most frequent has so many (as above).
        """
        if self.rank_rows is None:
            return self.mechanism.scale * log(20 * self.choice.bins.size) / WEIGHT_ONE
        rank = self.choice.rank
        return self.rank_rows / float(max(rank, 1 - rank))

    @property
    def shifted_rows(self) -> float:
        """Of an end of an interval: how many rows from the quantile it is looked for."""
        return end_shift(self.mechanism) / self.choice.rank.denominator / WEIGHT_ONE

    def scored(self, weights: Sequence[int]) -> list[int]:
        """The score of every bin of one group."""
        match self.choice.wanted:
            case "quantile" if self.choice.end is not None:
                return end_scores(weights, self.choice.rank, self.mechanism, upper=self.choice.end == "high")
            case "quantile":
                return quantile_scores(weights, self.choice.rank)
            case "mode":
                return mode_scores(weights)
            case wanted:
                return extreme_scores(weights, self.rank_error or 0, largest=wanted == "max")


@dataclass(frozen=True, slots=True)
class HistogramOutput:
    """The value of the chosen bin. `edge`: of an end of an interval, where the bin's values begin or end."""

    histogram: int
    bins: Bins
    type: SqlType
    edge: End | None = None


def is_choice(aggregate: Aggregate) -> bool:
    return aggregate.kind in ("min", "max", "mode", "quantile_cont", "quantile_disc")


def histogram_output(aggregate: Aggregate, groups: int | None, choices: list[Choice]) -> HistogramOutput:
    """How such an aggregate is read; adds its choice if it is not there yet. `groups`: how many, where it is public."""
    made = _choice(aggregate, groups)
    known = [choice.text for choice in choices]
    if made.text not in known:
        choices.append(made)
    place = known.index(made.text) if made.text in known else len(known)
    edge = aggregate.end if values_between(made.argument, made.bins) else None
    return HistogramOutput(place, made.bins, aggregate.type, edge)


def _choice(aggregate: Aggregate, groups: int | None) -> Choice:
    argument, kind = aggregate.argument, aggregate.kind
    most = min(MAX_BINS, max(MIN_BINS, MAX_CANDIDATES // max(groups or 1, 1)))
    if argument is None:
        raise Failed(f"{kind} without an argument")
    bins = bins_of(argument, most, listed=kind != "quantile_cont", ordered=kind != "mode")
    if bins is None:
        raise Failed(f"{kind} over an argument without bins")
    if groups is not None and groups * bins.size > 2 * MAX_CANDIDATES:
        raise Rejected(
            f"{groups} groups with {bins.size} possible values each are too many to choose from.",
            sqlstate=TOO_COMPLEX,
            hint="Group by fewer keys, or filter them.",
        )
    wanted: dict[str, Wanted] = {"min": "min", "max": "max", "mode": "mode"}
    rank = rank_of(aggregate.rank) if aggregate.rank is not None else Fraction(0)
    return Choice(wanted.get(kind, "quantile"), rank, argument, aggregate.condition, bins, aggregate.end)


def histogram(
    number: int, choice: Choice, bound: ContributionBound, share: Fraction, accounting: Accounting
) -> Histogram:
    """The choice with noise that spends `share` of the budget: an epsilon under pure accounting, else a rho."""
    weights = clip_l1(bound, WEIGHT_ONE)
    scores = _sensitivity(choice, weights)
    return Histogram(number, _name(choice), choice, weights, scores, noisy_max_for(scores, share, accounting))


def _sensitivity(choice: Choice, weights: L1) -> Scores:
    match choice.wanted:
        case "quantile":
            return quantile_sensitivity(weights, choice.rank)
        case "mode":
            return mode_sensitivity(weights)
        case _:
            return extreme_sensitivity(weights)


def _name(choice: Choice) -> str:
    """What is chosen, for EXPLAIN."""
    wanted = f"quantile {float(choice.rank):.4g}" if choice.wanted == "quantile" else choice.wanted
    condition = "" if choice.condition is None else f" FILTER (WHERE {shown(choice.condition)})"
    end = "" if choice.end is None else f"{choice.end} end of "
    return f"{end}{wanted}({shown(choice.argument)}){condition}"
