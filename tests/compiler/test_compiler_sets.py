"""UNION ALL, IN, EXISTS and group domains mean what they mean in Postgres: without noise, its very rows."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from sets_world import Sets, opened, same

from dpsql.compiler.algebra import Case
from dpsql.compiler.bind import bounds, subqueries, union
from dpsql.compiler.bind.expr import boolean
from dpsql.compiler.split import private
from dpsql.errors import Rejected

BACKENDS = ("duckdb", "postgres")


@pytest.fixture(scope="module")
def sets(tmp_path_factory: pytest.TempPathFactory, postgres_uri: str) -> Iterator[Sets]:
    with opened(tmp_path_factory.mktemp("sets"), postgres_uri) as made:
        yield made


_BOTH = "(SELECT uid FROM t UNION ALL SELECT uid FROM t2)"
UNIONS = {
    "the unit goes through": f"SELECT AVG(n), COUNT(*) FROM (SELECT uid, COUNT(*) AS n FROM {_BOTH} u GROUP BY uid) q",
    "rows of both": f"SELECT COUNT(*) FROM {_BOTH} u",
    "the same table twice": "SELECT COUNT(*) FROM (SELECT uid FROM t UNION ALL SELECT uid FROM t) u",
    "three times": f"SELECT COUNT(*) FROM ({_BOTH} UNION ALL SELECT uid FROM t) u",
    "by key": "SELECT k, COUNT(*), SUM(x) FROM (SELECT uid, 'a' AS k, x FROM t UNION ALL SELECT uid, 'b', x FROM t2) u "
    "GROUP BY k",
    "one key": "SELECT x, COUNT(*) FROM (SELECT uid, x FROM t WHERE x > 2 UNION ALL SELECT uid, x FROM t WHERE x > 2) "
    "u GROUP BY x",
    "units": f"SELECT COUNT(DISTINCT uid) FROM {_BOTH} u",
    "joined": f"SELECT COUNT(*), SUM(t.x) FROM {_BOTH} u JOIN t ON t.uid = u.uid",
    "joined by name": f"SELECT COUNT(*) FROM {_BOTH} u JOIN t USING (uid)",
    "EXISTS after": f"SELECT COUNT(*) FROM {_BOTH} u WHERE EXISTS (SELECT 1 FROM log WHERE log.uid = u.uid AND n = 3)",
    "EXISTS over": f"SELECT COUNT(*) FROM t WHERE EXISTS (SELECT 1 FROM {_BOTH} u WHERE u.uid = t.uid)",
    "IN of": f"SELECT COUNT(*) FROM t WHERE uid IN {_BOTH}",
    "filtered": f"SELECT COUNT(*) FROM {_BOTH} u WHERE uid < 50",
    "WITH": f"WITH u AS {_BOTH} SELECT COUNT(*) FROM u JOIN t2 USING (uid)",
    "a sum for each": "SELECT SUM(s) FROM (SELECT uid, SUM(x) AS s FROM (SELECT uid, x FROM t UNION ALL SELECT uid, x "
    "FROM t2) u GROUP BY uid HAVING COUNT(*) = 2) q",
}


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("name", UNIONS)
def test_union_all_is_postgres_own(sets: Sets, name: str, backend: str) -> None:
    assert same(sets.answered(UNIONS[name], backend)) == same(sets.truth(UNIONS[name]))


def test_union_all_of_something_else_than_the_unit_is_no_unit(sets: Sets) -> None:
    """A column that is the unit on one side only cannot be joined on, nor name rows of one unit."""
    mixed = "(SELECT uid FROM t UNION ALL SELECT b FROM t2)"
    with pytest.raises(Rejected, match="does not prove"):
        sets.compiled(f"SELECT COUNT(*) FROM {mixed} u JOIN t ON t.uid = u.uid")


_IN = ("x IN (SELECT y FROM pub)", "x IN (SELECT y FROM full_pub)", "x IN (SELECT y FROM none_pub)")
_FORMS = (
    "{}", "NOT ({})", "NOT (NOT ({}))", "NOT ({} OR hour > 12)", "NOT ({} AND hour > 12)", "({}) IS NULL",
    "({}) IS NOT NULL", "({}) IS TRUE", "({}) IS NOT TRUE", "({}) IS FALSE", "({}) = (hour > 12)", "({}) OR x IS NULL",
    "CASE WHEN {} THEN hour < 20 ELSE hour < 10 END", "COALESCE({}, hour > 12)", "({}) IS DISTINCT FROM (hour > 12)",
    "NOT (NOT (NOT ({})) OR x = 2)",
)  # fmt: skip
_MEMBERSHIPS = [form.format(test) for form in _FORMS for test in (*_IN, "x NOT IN (SELECT y FROM pub)")]
_MEMBERSHIPS += [
    "EXISTS (SELECT 1 FROM pub WHERE pub.y = t.x)",
    "EXISTS (SELECT 1 FROM pub WHERE y = x)",
    "NOT EXISTS (SELECT 1 FROM pub p WHERE p.y = t.x AND p.y > 1)",
    "EXISTS (SELECT * FROM wards w WHERE w.ward = t.ward AND w.beds > t.hour * 3)",
    "EXISTS (SELECT 1 FROM wards w JOIN region r ON r.region = w.region WHERE w.ward = t.ward AND chief = 'Nora')",
    "EXISTS (SELECT 1 FROM wards w, region r WHERE r.region = w.region AND w.ward = t.ward AND chief = 'Nora')",
    "EXISTS (SELECT 1 FROM pub LIMIT 1)",
    "EXISTS (SELECT 1 FROM none_pub LIMIT 1)",
    "EXISTS (SELECT 1 FROM pub WHERE y = x ORDER BY y LIMIT 1)",
    "EXISTS (SELECT 1 FROM pub LIMIT 0)",
    "EXISTS (SELECT 1 FROM log WHERE log.uid = t.uid AND n = 3 LIMIT 1)",
    "EXISTS (SELECT 1 FROM log WHERE log.uid = t.uid FETCH FIRST 1 ROWS ONLY)",
    "x IN (SELECT y FROM pub WHERE pub.y < t.hour)",
    "x NOT IN (SELECT y FROM full_pub WHERE full_pub.y < t.hour)",
    "NOT (x NOT IN (SELECT y FROM pub WHERE pub.y < t.hour OR y IS NULL))",
    "f <> 'NaN'::float8",
    "f = 'NaN'::float8",
    "NOT (f = 'NaN'::double precision)",
    "('NaN'::float8 <> f) IS NULL",
    "f <> 'NaN'::float8 AND f > 10",
    "x IN (SELECT MAX(y) FROM pub)",
    "uid NOT IN (SELECT uid FROM log)",
    "NOT (NOT (uid IN (SELECT uid FROM log)))",
    "(uid IN (SELECT uid FROM log WHERE n = 3)) IS FALSE",
]


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("condition", _MEMBERSHIPS)
def test_in_and_exists_have_three_values(sets: Sets, condition: str, backend: str) -> None:
    text = f"SELECT COUNT(*) FROM t WHERE {condition}"
    assert sets.answered(text, backend) == sets.truth(text), condition


def test_membership_is_a_value(sets: Sets) -> None:
    text = (
        "SELECT COUNT(*) FILTER (WHERE x IN (SELECT y FROM pub)), COUNT(*) FILTER (WHERE x NOT IN (SELECT y FROM pub)),"
        " COUNT(x IN (SELECT y FROM pub)), SUM(CASE WHEN NOT (x IN (SELECT y FROM full_pub)) THEN 1 ELSE 0 END) FROM t"
    )
    for backend in BACKENDS:
        assert same(sets.answered(text, backend)) == same(sets.truth(text))


def test_not_in_of_private_rows_reads_the_units_own_alone(sets: Sets) -> None:
    """Nobody else's NULL makes it NULL: not Postgres's answer, on purpose."""
    text = "SELECT COUNT(*) FROM t WHERE x NOT IN (SELECT l.n FROM log l WHERE l.uid = t.uid)"
    for backend in BACKENDS:
        assert sets.answered(text, backend) == sets.truth(text)


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize(
    "text",
    [
        "SELECT COUNT(*), SUM(q.a) FROM (t JOIN log USING (uid)) AS q",
        "SELECT q.region, COUNT(*) FROM (t JOIN wards USING (ward)) AS q GROUP BY q.region",
        "SELECT COUNT(*), SUM(n) FROM t2 JOIN (t JOIN log USING (uid)) AS q ON q.uid = t2.uid",
        "SELECT COUNT(*), COUNT(name) FROM (t LEFT JOIN drugs ON drugs.drug = t.drug) AS q",
        "SELECT COUNT(*) FROM (wards JOIN region USING (region)) AS q",
    ],
)
def test_a_join_in_brackets_is_a_table(sets: Sets, text: str, backend: str) -> None:
    assert same(sets.answered(text, backend)) == same(sets.truth(text))


def test_what_is_not_bounded_is_told_by_what_is_there(sets: Sets) -> None:
    text = "SELECT AVG({}) FROM t"
    for argument, word in (("f - (SELECT AVG(f) FROM t)", "subquery"), ("f / (x - 3)", "division")):
        with pytest.raises(Rejected) as refused:
            sets.compiled(text.format(argument))
        assert word in (refused.value.hint or "")
        written = (refused.value.hint or "").split("as in ")[1].removesuffix(".")
        assert sets.compiled(text.format(written)).releases


PROBES = (
    "SELECT 1 FROM t LIMIT 1",
    "SELECT NULL AS nil FROM t LIMIT 1",
    "SELECT 1 AS one, 'a' FROM t FETCH FIRST 1 ROWS ONLY",
)


@pytest.mark.parametrize("text", PROBES)
def test_constants_of_a_table_are_a_probe(sets: Sets, text: str) -> None:
    made = sets.compiled(text)
    assert made.columns_only
    assert not made.releases
    assert sets.answered(text, "duckdb") == []


@pytest.mark.parametrize(
    "text",
    [
        "SELECT 1 FROM t WHERE x = 3 LIMIT 1",
        "SELECT 1 FROM t JOIN t2 USING (uid) LIMIT 1",
        "SELECT NULL FROM t, t2 WHERE t.uid = t2.uid LIMIT 1",
        "SELECT 1 FROM (SELECT * FROM t WHERE x = 3) q LIMIT 1",
    ],
)
def test_whether_such_a_row_exists_is_no_probe(sets: Sets, text: str) -> None:
    with pytest.raises(Rejected, match="Rows of a private table"):
        sets.compiled(text)


# Mutants: each breaks one rule, and a statement above must notice ---------------------------------------------------


def _differs(sets: Sets, text: str) -> bool:
    """Asked in other words than before: plans are kept by their texts."""
    text = f"/* mutant */ {text}"
    return same(sets.answered(text, "duckdb")) != same(sets.truth(text))


def test_mutant_the_larger_bound_of_a_union(sets: Sets, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bounds, "sum", max, raising=False)
    assert _differs(sets, UNIONS["the same table twice"])


def test_mutant_bounds_of_the_left_side(sets: Sets, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bounds, "sum", lambda parts: next(iter(parts)), raising=False)
    assert _differs(sets, UNIONS["three times"])


def test_mutant_the_unit_on_one_side(sets: Sets, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(union, "_is_unit", lambda a, b, type_, left, right: a.expr.name in left.units)
    with pytest.raises(pytest.fail.Exception):
        test_union_all_of_something_else_than_the_unit_is_no_unit(sets)


def test_mutant_in_of_two_values(sets: Sets, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(subqueries, "_NULL", subqueries._FALSE)
    assert _differs(sets, "SELECT COUNT(*) FROM t WHERE (x IN (SELECT y FROM pub)) IS NULL")


def test_mutant_not_in_is_not_surely(sets: Sets, monkeypatch: pytest.MonkeyPatch) -> None:
    """Under NOT, what may be equal counts as well."""
    holds = subqueries._holds
    monkeypatch.setattr(
        subqueries,
        "_holds",
        lambda c, wanted: (
            holds(c, wanted=wanted) if wanted or not isinstance(c, Case) else boolean("not", c.branches[0][0])
        ),
    )
    assert _differs(sets, "SELECT COUNT(*) FROM t WHERE NOT (x IN (SELECT y FROM pub) OR hour > 12)")


def test_mutant_or_stays_or_under_not(sets: Sets, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(subqueries, "boolean", lambda op, *args: boolean("or" if op == "and" else op, *args))
    assert _differs(sets, "SELECT COUNT(*) FROM t WHERE NOT (x IN (SELECT y FROM full_pub) OR hour > 12)")


def test_mutant_limit_zero_is_no_limit(sets: Sets, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(private, "literal_limit", lambda query: 1)
    assert _differs(sets, "SELECT COUNT(*) FROM t WHERE EXISTS (SELECT 1 FROM pub LIMIT 0)")
