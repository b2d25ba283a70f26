"""One unit moves the weights of all groups and bins, and the scores of all groups, by no more than was declared."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from fractions import Fraction

import pytest
from compiler_cases import LAPLACE, TERMS
from compiler_replay import compiled_on
from compiler_sites import Site, duckdb_site, postgres_site
from compiler_statements import Statement
from compiler_worlds import WORLDS
from histogram_mutants import MUTATIONS
from histogram_replay import histogram_violations, weights

from dpsql.compiler.plan import PlannedRelease
from dpsql.dp.mechanisms import NoisyMax
from dpsql.dp.scores import quantile_scores
from dpsql.dp.sensitivity import Scores

NAMED = {
    "one group": "SELECT MEDIAN(amount), MAX(price), MIN(qty) FROM visits",
    "public key": "SELECT shop, MEDIAN(amount), MAX(big), MODE(tag = 't1') FROM visits GROUP BY shop",
    "private key": "SELECT tag, MAX(amount), MIN(at), MAX(seen), MODE(shop) FROM visits GROUP BY tag",
    "many keys": "SELECT tag, shop, day, MEDIAN(price) FROM visits GROUP BY tag, shop, day",
    "one row a unit": "SELECT city, MEDIAN(age), MIN(salary), MAX(joined), MODE(level) FROM people GROUP BY city",
    "ends": "SELECT shop, dp_interval_low(MEDIAN(amount)), dp_interval_high(MEDIAN(amount)), "
    "dp_interval_high(PERCENTILE_CONT(0.9) WITHIN GROUP (ORDER BY price)) FROM visits GROUP BY shop",
    "dates": "SELECT MIN(day), MAX(day), MEDIAN(at), MODE(DATE_TRUNC('month', at)) FROM visits",
    "text": "SELECT region, MODE(v.shop), PERCENTILE_DISC(0.5) WITHIN GROUP (ORDER BY v.shop) FROM visits v "
    "JOIN shops s ON v.shop = s.shop GROUP BY region",
    "filter": "SELECT tag, MAX(price) FILTER (WHERE amount > 100) FROM visits GROUP BY tag",
    "two levels": "SELECT MEDIAN(n), MAX(s) FROM (SELECT uid, COUNT(*) AS n, SUM(qty) AS s FROM visits GROUP BY uid) x",
    "join": "SELECT p.city, MAX(v.amount), MEDIAN(v.qty) FROM people p JOIN visits v USING (uid) GROUP BY 1",
    "path": "SELECT i_shop, MEDIAN(i_price * (1 - i_disc)) FROM items GROUP BY i_shop",
    "listed": "SELECT MIN(level), MAX(o_status), MODE(CASE WHEN age > 40 THEN 'old' ELSE 'young' END) "
    "FROM people JOIN orders ON o_uid = uid",
}


@pytest.fixture(scope="module")
def sites(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Site]]:
    base = tmp_path_factory.mktemp("histograms")
    made = {"integer": duckdb_site(WORLDS["integer"](), base / "integer.duckdb")}
    yield made
    for site in made.values():
        site.backend.close()


@pytest.mark.parametrize("terms", [TERMS, LAPLACE], ids=["l2", "l1"])
@pytest.mark.parametrize("name", NAMED)
def test_named_statements_keep_their_promise(sites: dict[str, Site], name: str, terms: object) -> None:
    site = sites["integer"]
    compiled = compiled_on(site, Statement(NAMED[name], terms))  # type: ignore[arg-type]
    assert all(release.histograms for release in compiled.releases)
    assert not list(histogram_violations(site, compiled))


def test_the_order_of_rows_does_not_matter(sites: dict[str, Site]) -> None:
    site = sites["integer"]
    for text in NAMED.values():
        compiled = compiled_on(site, Statement(text, TERMS))
        assert weights(site, compiled) == weights(site, compiled, "shuffled"), text


def test_postgres_gives_the_same_weights_and_keeps_the_promise(sites: dict[str, Site], postgres_uri: str) -> None:
    here, there = sites["integer"], postgres_site(WORLDS["integer"](), postgres_uri)
    try:
        for text in NAMED.values():
            on_duckdb, on_postgres = (compiled_on(site, Statement(text, TERMS)) for site in (here, there))
            assert weights(here, on_duckdb) == weights(there, on_postgres), text
            assert not list(histogram_violations(there, on_postgres, tuple(there.around)[:1])), text
    finally:
        there.backend.close()


# Mutants --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", MUTATIONS)
def test_mutant_is_killed(sites: dict[str, Site], name: str) -> None:
    case, mutation = MUTATIONS[name]
    site = sites["integer"]
    compiled = compiled_on(site, Statement(NAMED[case], TERMS))
    assert list(histogram_violations(site, compiled, None, mutation))


def _with_its_rows(weights: Sequence[int], rank: Fraction, mechanism: NoisyMax, *, upper: bool) -> list[int]:
    """Ends that are looked for a share of the group's rows away, instead of a fixed number."""
    shift = sum(weights) * rank.denominator // 4
    return quantile_scores(weights, rank, shift if upper else -shift)


def test_mutant_ends_that_follow_the_rows_are_killed(sites: dict[str, Site], monkeypatch: pytest.MonkeyPatch) -> None:
    site = sites["integer"]
    compiled = compiled_on(site, Statement(NAMED["ends"], TERMS))
    assert not list(histogram_violations(site, compiled))
    monkeypatch.setattr("dpsql.compiler.histograms.end_scores", _with_its_rows)
    assert "end of quantile 0.5" in "\n".join(histogram_violations(site, compiled))


def test_mutant_score_sensitivity_too_small_is_killed(sites: dict[str, Site]) -> None:
    """Of every kind of score."""
    site = sites["integer"]
    compiled = compiled_on(site, Statement(NAMED["one group"] + " WHERE shop = 'zoo'", TERMS))

    def halved(release: PlannedRelease) -> PlannedRelease:
        changed = (replace(h, scores=Scores(h.scores.bound // 3)) for h in release.histograms)
        return replace(release, histograms=tuple(changed))

    broken = replace(compiled, releases=tuple(map(halved, compiled.releases)))
    assert not list(histogram_violations(site, compiled))
    found = "\n".join(histogram_violations(site, broken))
    assert all(word in found for word in ("max(", "min(", "quantile 0.5("))
