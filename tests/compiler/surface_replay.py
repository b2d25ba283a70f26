"""One replay for everything that a backend is asked: cells and histograms of every release of random statements.

Inner releases are fixed: made-up rows stand for them, the same on both sides, so each release is held to its own
promise. `Tally` counts what was accepted, by the kind that wrote it and by what its plan is made of, so that a shape
that is never reached is noticed.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field

from compiler_replay import Cells, compiled_on, integers, violations
from compiler_sites import Site
from compiler_statements import Statement
from histogram_replay import histogram_violations, weights
from surface_statements import Surface, round_of

from dpsql.compiler import Compiled
from dpsql.compiler.algebra import Exists, Join, PerUnit, Scalar, Scan, UnionAll
from dpsql.compiler.plan import PlannedRelease
from dpsql.compiler.walk import expressions, nodes, parts
from dpsql.errors import Rejected

TRIES = 200
"""A kind of which so many statements in a row are refused is starved."""


@dataclass(frozen=True, slots=True)
class Accepted:
    """A statement with private releases."""

    kind: str
    statement: Statement
    compiled: Compiled


@dataclass(slots=True)
class Tally:
    """How many statements of each kind, and with each feature of the plan, were replayed; and what went wrong."""

    kinds: Counter[str] = field(default_factory=Counter)
    features: Counter[str] = field(default_factory=Counter)
    violations: list[str] = field(default_factory=list)

    def add(self, case: Accepted, problems: Iterator[str]) -> None:
        self.kinds[case.kind] += 1
        self.features.update(features(case.compiled))
        self.violations += [f"{problem}\n  {case.statement}" for problem in problems]


def accepted(site: Site, seed: int, wanted: int) -> Iterator[Accepted]:
    """`wanted` statements with private releases, the kinds in turn; the same ones for every run of a seed."""
    surface, kinds = Surface(seed), round_of(rows=site.world.unit == "row")
    surface.random.shuffle(kinds)
    for index in range(wanted):
        kind = kinds[index % len(kinds)]
        yield next(_of_kind(site, surface, kind), None) or _starved(kind)


def _of_kind(site: Site, surface: Surface, kind: str) -> Iterator[Accepted]:
    for _ in range(TRIES):
        statement = surface.of(kind)
        try:
            compiled = compiled_on(site, statement)
        except Rejected:
            continue
        if not all(release.free for release in compiled.releases):
            yield Accepted(kind, statement, compiled)


def _starved(kind: str) -> Accepted:
    raise AssertionError(f"{TRIES} statements in a row were not accepted: {kind}")


def broken(site: Site, compiled: Compiled, names: tuple[str, ...] | None = None) -> Iterator[str]:
    """Every way in which a statement's cells and histograms break their promises on this site."""
    yield from violations(site, compiled, names)
    yield from histogram_violations(site, compiled, names)


def answers(site: Site, compiled: Compiled) -> list[Cells]:
    """All exact integers of a statement."""
    return [*integers(site, compiled), *weights(site, compiled)]


def features(compiled: Compiled) -> set[str]:
    """What the plan is made of."""
    found = {feature for release in compiled.releases for feature in _features(release)}
    return found | ({"several releases"} if len(compiled.releases) > 1 else set())


def _features(release: PlannedRelease) -> Iterator[str]:
    aggregation = release.aggregation
    yield f"form {release.form}"
    yield f"norm {release.norm}"
    yield "private keys" if not release.public else "public keys" if release.keys else "no keys"
    yield from (f"cells {m.cell.kind}{' of moments' if m.cell.moment else ''}" for m in release.measurements)
    yield from (f"histogram {h.choice.wanted}" for h in release.histograms)
    yield from (f"domain {type(key.domain.of).__name__}" for key in release.keys if key.domain is not None)
    yield from ("image" for key in release.keys if key.domain is not None and key.domain.image is not None)
    if aggregation.depends_on:
        yield "after a release"
    if aggregation.preserved:
        yield "public rows kept"
    if any(aggregate.condition is not None for aggregate in aggregation.aggregates):
        yield "FILTER"
    for node in nodes(aggregation):
        match node:
            case Join(kind=kind):
                yield f"{kind} join"
            case PerUnit():
                yield "per unit"
            case UnionAll():
                yield "union"
            case Scan(enforce_rows=limit, row_unit=row_unit):
                yield from ["rows enforced"] * (limit is not None) + ["row unit"] * row_unit
            case _:
                pass
    for expr in expressions(aggregation):
        for part in parts(expr):
            if isinstance(part, Exists | Scalar):
                yield type(part).__name__.lower()
