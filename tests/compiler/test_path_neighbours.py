"""Paths of several columns and of every kind of key: no statement meets rows of another unit, on any backend."""

from __future__ import annotations

from collections.abc import Iterator
from decimal import Decimal
from random import Random

import pytest
from compiler_replay import compiled_on, violations
from compiler_sites import Site
from compiler_statements import Statement
from histogram_replay import histogram_violations
from path_statements import ORDINARY, TRICKS, random_statement
from path_worlds import KEYS, duckdb_paths, postgres_paths

from dpsql.compiler import Terms
from dpsql.errors import Rejected

TERMS = Terms(Decimal(1), Decimal("1e-7"))
RANDOM = 100


@pytest.fixture(scope="module", params=KEYS)
def site(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    made = duckdb_paths(request.param, tmp_path_factory.mktemp("paths") / "paths.duckdb")
    yield made
    made.backend.close()


def problems(site: Site, text: str) -> list[str] | None:
    """All that is wrong with an answer; None where there is none."""
    try:
        compiled = compiled_on(site, Statement(text, TERMS))
    except Rejected:
        return None
    return [*violations(site, compiled), *histogram_violations(site, compiled)]


@pytest.mark.parametrize("name", ORDINARY)
def test_ordinary_paths_are_answered(site: Site, name: str) -> None:
    assert problems(site, ORDINARY[name]) == []


@pytest.mark.parametrize("name", TRICKS)
def test_a_path_is_taken_from_one_row(site: Site, name: str) -> None:
    assert not problems(site, TRICKS[name])


def test_random_paths_keep_the_promise(site: Site) -> None:
    random = Random(site.world.name)
    texts = sorted({random_statement(random) for _ in range(RANDOM)})
    found = {text: problems(site, text) for text in texts}
    assert {text: wrong for text, wrong in found.items() if wrong} == {}
    assert sum(wrong is not None for wrong in found.values()) > len(texts) / 10


@pytest.mark.parametrize("kind", KEYS)
def test_postgres_keeps_the_promise(postgres_uri: str, kind: str) -> None:
    site, random = postgres_paths(kind, postgres_uri), Random(kind)
    try:
        assert [name for name, text in ORDINARY.items() if problems(site, text) != []] == []
        texts = [*TRICKS.values(), *sorted({random_statement(random) for _ in range(RANDOM // 3)})]
        assert [text for text in texts if problems(site, text)] == []
    finally:
        site.backend.close()


HINTED = (
    "SELECT COUNT(*) FROM orders o1, lines l WHERE o1.v = l.l_v",
    "SELECT COUNT(*) FROM lines l1, lines l2 WHERE l1.l_v = l2.l_v AND l1.l_ln = l2.l_ln",
    "SELECT COUNT(*) FROM (SELECT uid, v FROM orders GROUP BY uid, v) g, lines l WHERE l.l_v = g.v",
    "SELECT COUNT(*) FROM lines l, pays p WHERE p_v = l_v AND l_ln = 1",
)


@pytest.mark.parametrize("text", HINTED)
def test_what_a_refused_join_is_told_to_add_proves_it(site: Site, text: str) -> None:
    with pytest.raises(Rejected) as refusal:
        compiled_on(site, Statement(text, TERMS))
    added = (refusal.value.hint or "").partition("Add one up and join that: ")[2]
    if added:
        assert not _refusal(site, f"SELECT COUNT(*) FROM {text.split(' FROM ')[1].split(',')[0]} {added}")
        return
    table, condition = _hinted(refusal.value.hint or "")
    again = text.replace(" WHERE ", f"{table} WHERE {condition} AND ")
    message = _refusal(site, again)
    assert not message or "could multiply" in message  # then rows are of one unit, but not few


def _refusal(site: Site, text: str) -> str:
    try:
        compiled_on(site, Statement(text, TERMS))
    except Rejected as error:
        return error.message
    return ""


def _hinted(hint: str) -> tuple[str, str]:
    """The table and the condition that a hint says to add."""
    if hint.startswith("Join "):
        table, condition = hint.removeprefix("Join ").split(" as well, with ")
        return f", {table}", condition.rstrip(".")
    return "", hint.split(" as in ")[1].rstrip(".")
