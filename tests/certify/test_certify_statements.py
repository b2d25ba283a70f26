"""All golden releases, and random statements by the thousand over hostile policies, have a certificate, quickly."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path
from random import Random
from statistics import median

import pytest
from certified_cases import gaps, golden, named, refused
from compiler_replay import compiled_on
from compiler_sites import Site, duckdb_site
from compiler_statements import Statement, Writer
from compiler_worlds import WORLDS
from path_statements import ORDINARY, TRICKS, random_statement
from path_worlds import KEYS, duckdb_paths
from surface_replay import accepted, features
from test_surface_neighbours import FEATURES

from dpsql.certify import Certificate
from dpsql.certify.check import certify
from dpsql.compiler import Terms
from dpsql.compiler.plan import PlannedRelease
from dpsql.dp.privacy import cost_of
from dpsql.errors import Rejected
from dpsql.policy.schema import Schema
from dpsql.types import Cost

TERMS = Terms(Decimal(1), Decimal("1e-7"))
DEFAULT, SLOW = 400, 2_900
"""Statements a world: 2,800 and 20,300 in all."""


def test_golden_releases_are_certified_at_their_price() -> None:
    assert len(golden()) > 250
    for each in golden():
        found = certify(each.release, each.schema)
        assert isinstance(found, Certificate), f"{each.name}: {found}"
        assert found.price == each.release.cost
        assert found.noise == _noise(each.release)


def _noise(release: PlannedRelease) -> tuple[object, ...]:
    found: list[object] = [(m.mechanism, m.sensitivity) for m in release.measurements]
    found += [(h.mechanism, h.scores) for h in release.histograms]
    if release.selection is not None:
        found.append((release.selection.mechanism, release.selection.sensitivity))
    return tuple(found)


def test_the_price_is_that_of_the_noise() -> None:
    for each in golden():
        found = certify(each.release, each.schema)
        assert isinstance(found, Certificate)
        total = sum((cost_of(mechanism, moved) for mechanism, moved in found.noise), Cost())
        assert (total.epsilon, total.rho) == (found.price.epsilon, found.price.rho)


def test_a_certificate_takes_less_than_a_millisecond() -> None:
    """The best of several times each: the machine may be busy."""
    took = [min(_seconds(each.release, each.schema) for _ in range(5)) for each in golden()]
    assert median(took) < 0.000_5
    assert sum(took) / len(took) < 0.001


def _seconds(release: PlannedRelease, schema: Schema) -> float:
    begun = time.perf_counter()
    certify(release, schema)
    return time.perf_counter() - begun


@pytest.fixture(scope="module", params=WORLDS)
def site(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    made = duckdb_site(WORLDS[request.param](), tmp_path_factory.mktemp("certify") / "world.duckdb")
    yield made
    made.backend.close()


def test_named_statements_are_certified(site: Site) -> None:
    assert not [each.name for each in named(site) if refused(each.release, each.schema)]


def test_random_statements_are_certified(site: Site) -> None:
    _check_random(site, 300 + list(WORLDS).index(site.world.name), DEFAULT)


@pytest.mark.slow
def test_twenty_thousand_random_statements_are_certified(site: Site) -> None:
    _check_random(site, 9_000 + list(WORLDS).index(site.world.name), SLOW)


def _check_random(site: Site, seed: int, wanted: int) -> None:
    """As many of the whole surface, and the older grammar's beside them."""
    seen = Counter[str]()
    for case in accepted(site, seed, wanted):
        assert not gaps(case.compiled, site.schema), case.statement.text
        seen.update(features(case.compiled))
    assert sum(1 for feature in FEATURES if seen[feature]) > len(FEATURES) * 2 / 3
    writer = Writer(seed)
    for _ in range(wanted // 4):
        statement = writer.statement()
        try:
            compiled = compiled_on(site, statement)
        except Rejected:
            continue
        assert not gaps(compiled, site.schema), statement.text


@pytest.mark.parametrize("kind", KEYS)
def test_paths_are_certified(tmp_path: Path, kind: str) -> None:
    """Whatever of them the binder accepts."""
    site, random, certified = duckdb_paths(kind, tmp_path / "paths.duckdb"), Random(kind), 0
    try:
        for text in (*ORDINARY.values(), *TRICKS.values(), *(random_statement(random) for _ in range(400))):
            try:
                compiled = compiled_on(site, Statement(text, TERMS))
            except Rejected:
                continue
            assert not gaps(compiled, site.schema), text
            certified += 1
    finally:
        site.backend.close()
    assert certified > 50, certified
