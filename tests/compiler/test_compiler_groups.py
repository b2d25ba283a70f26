"""Public groups are those that a row can be in: compared with those of Postgres over the columns' whole domains."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import replace

import pytest
from sets_world import Rows, Sets, opened, same

from dpsql.compiler import domains, evaluated, groups, image, instants
from dpsql.compiler.emit import DUCKDB, emit
from dpsql.compiler.evaluated import Unknown

BACKENDS = ("duckdb", "postgres")

WHOLE = {
    "d": "(SELECT d::date FROM generate_series(DATE '2023-01-01', DATE '2024-12-31', '1 day') AS d) AS t",
    "born": "(SELECT d::date AS born FROM generate_series(DATE '1930-01-01', DATE '2029-12-31', '1 day') AS d) AS t",
    "seen": "(SELECT seen FROM generate_series(TIMESTAMP '2024-01-01 00:00:00', TIMESTAMP '2024-12-31 23:59:59', "
    "'1 minute') AS seen) AS t",
    "hour": "(SELECT generate_series(0, 23)::smallint AS hour) AS t",
    "month": "(SELECT generate_series(1, 12) AS month) AS t",
    "x": "(SELECT generate_series(0, 9) AS x UNION ALL SELECT NULL) AS t",
    "price": "(SELECT (generate_series(0, 500) / 100.0)::numeric(6,2) AS price) AS t",
    "month, hour": "(SELECT month, hour::smallint FROM generate_series(1, 12) AS month, generate_series(0, 23) AS hour)"
    " AS t",
}
KEYS = [
    ("month", "(month - 1) / 3"),
    ("month", "(month - 1) / 3 + 1"),
    ("month", "month, (month - 1) / 3"),
    ("month", "month % 3, month / 5, -month / 5"),
    ("month", "CASE WHEN month IN (12, 1, 2) THEN 'winter' WHEN month < 6 THEN 'spring' END, month"),
    ("month", "CASE WHEN month > 20 THEN 'never' ELSE 'always' END"),
    ("month", "CEIL(month / 5.0)"),
    ("month", "ROUND(month / 3.0)"),
    ("month", "ROUND(month / 5::double precision)"),
    ("month", "COALESCE(NULLIF(month, 3), 2)"),
    ("month", "LEAST(month, 5), GREATEST(month, 10)"),
    ("month", "LPAD(month::text, 2, '0'), month"),
    ("month", "'m' || month, right(month::text, 1), left('0' || month, 2)"),
    ("hour", "hour / 6"),
    ("hour", "FLOOR(hour / 6.0)"),
    ("hour", "FLOOR(hour / 6.0) * 6"),
    ("hour", "FLOOR(hour / 7::double precision)"),
    ("hour", "CEIL(hour / 7.0)"),
    ("hour", "TRUNC(hour / 7.0), hour % 2"),
    ("hour", "width_bucket(hour, 0, 24, 4)"),
    ("hour", "hour > 5, hour / 12"),
    ("x", "x, x % 2 = 0"),
    ("x", "x / 3, x IS NULL"),
    ("x", "COALESCE(x, -1), x > 4"),
    ("price", "FLOOR(price)"),
    ("price", "FLOOR(price), price > 2.5"),
    ("price", "TRUNC(price * 2)"),
    ("born", "EXTRACT(decade FROM born)"),
    ("born", "FLOOR(EXTRACT(year FROM born) / 10) * 10"),
    ("born", "EXTRACT(year FROM born)::int / 10 * 10"),
    ("born", "(EXTRACT(year FROM born)::int / 10) * 10, EXTRACT(year FROM born)::int"),
    ("born", "EXTRACT(century FROM born)"),
    ("d", "to_char(d, 'Mon'), EXTRACT(month FROM d)"),
    ("d", "to_char(d, 'YYYY-MM'), date_trunc('month', d)"),
    ("d", "EXTRACT(quarter FROM d), EXTRACT(month FROM d)"),
    ("d", "to_char(d, 'FMMonth'), EXTRACT(month FROM d), EXTRACT(year FROM d)"),
    ("d", "EXTRACT(isodow FROM d), to_char(d, 'FMDay')"),
    ("d", "EXTRACT(isodow FROM d) IN (6, 7), EXTRACT(dow FROM d)"),
    ("d", "date_trunc('week', d), EXTRACT(year FROM d)"),
    ("d", "d, EXTRACT(day FROM d)"),
    ("d", "EXTRACT(year FROM d) * 100 + EXTRACT(month FROM d)"),
    ("d", "d < DATE '2023-07-01', EXTRACT(year FROM d)"),
    ("d", "date_bin('14 days', d::timestamp, '2023-01-02'), EXTRACT(year FROM d)"),
    ("d", "CASE WHEN d < DATE '2024-01-01' THEN 'old' ELSE 'new' END, date_trunc('quarter', d)"),
    ("seen", "EXTRACT(hour FROM seen) / 6"),
    ("seen", "FLOOR(EXTRACT(hour FROM seen) / 6), EXTRACT(hour FROM seen)"),
    ("seen", "EXTRACT(hour FROM seen)::int / 6"),
    ("seen", "to_char(seen, 'HH24'), EXTRACT(hour FROM seen)"),
    ("seen", "date_trunc('month', seen), to_char(seen, 'Mon')"),
    ("seen", "date_trunc('month', seen + INTERVAL '1 day'), EXTRACT(month FROM seen)"),
    ("seen", "seen::date, EXTRACT(week FROM seen)"),
    ("month, hour", "month, hour / 12, (month - 1) / 3"),
]


@pytest.fixture(scope="module")
def sets(tmp_path_factory: pytest.TempPathFactory, postgres_uri: str) -> Iterator[Sets]:
    with opened(tmp_path_factory.mktemp("groups"), postgres_uri) as made:
        yield made


def _without_last(rows: Rows) -> Rows:
    return [row[:-1] for row in rows]


def _with_rows(rows: Rows) -> Rows:
    return [row for row in rows if row[-1]]


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize(("columns", "keys"), KEYS)
def test_groups_are_the_image_of_the_domain(sets: Sets, columns: str, keys: str, backend: str) -> None:
    found = sets.answered(f"SELECT {keys}, COUNT(*) FROM t GROUP BY {_ordinals(keys)}", backend)
    possible = sets.truth(f"SELECT DISTINCT {keys} FROM {WHOLE[columns]}")
    assert same(_without_last(found)) == same(possible)
    assert same(_with_rows(found)) == same(sets.truth(f"SELECT {keys}, COUNT(*) FROM t GROUP BY {_ordinals(keys)}"))


def _ordinals(keys: str) -> str:
    depth, count = 0, 1
    for character in keys:
        depth += (character == "(") - (character == ")")
        count += character == "," and depth == 0
    return ", ".join(str(n) for n in range(1, count + 1))


_WARDS = "t JOIN wards w USING (ward)"
_DRUGS = "t JOIN drugs p ON p.drug = t.drug"
TABLES = [
    ("w.ward_code, w.ward_name", _WARDS, "wards w", 12),
    ("w.ward_name, w.region", _WARDS, "wards w", 12),
    ("w.region, w.beds > 60", _WARDS, "wards w", 5),
    ("w.beds, w.ward_code", _WARDS, "wards w", 12),
    ("t.ward, w.ward_name", _WARDS, "wards t JOIN wards w USING (ward)", 12),
    ("p.category, p.name", _DRUGS, "drugs p", 30),
    ("p.name, t.drug", _DRUGS, "drugs p JOIN drugs t USING (drug)", 30),
    ("p.category, p.name", "t, drugs p WHERE p.drug = t.drug", "drugs p", 30),
    ("p.category, p.name", f"{_DRUGS} WHERE p.category = 'C1'", "drugs p WHERE p.category = 'C1'", 8),
    ("p.name", f"{_DRUGS} WHERE p.category = 'C1'", "drugs p WHERE p.category = 'C1'", 8),
    ("w.ward_code, r.chief", f"{_WARDS} JOIN region r ON r.region = w.region",
     "wards w JOIN region r USING (region)", 12),
    ("r.chief", f"{_WARDS} JOIN region r ON r.region = w.region WHERE w.ward = 3",
     "wards w JOIN region r USING (region) WHERE w.ward = 3", 1),
    ("t.ward, r.chief", f"{_WARDS} JOIN region r ON r.region = w.region",
     "wards t JOIN region r ON r.region = t.region", 12),
    ("w.ward_code, w.region, t.kind", _WARDS, "wards w, (VALUES ('in'), ('out'), ('day')) AS t(kind)", 36),
    ("lower(w.region), w.region", _WARDS, "wards w", 2),
    ("a.region, a.ward_name, b.category", "t JOIN wards a USING (ward) JOIN drugs b ON b.drug = t.drug",
     "wards a, (SELECT DISTINCT category FROM drugs) AS b", 48),
    ("p.category, p.name", "t LEFT JOIN drugs p ON p.drug = t.drug",
     "(SELECT category, name FROM drugs UNION ALL SELECT NULL, NULL) AS p", 31),
    ("t.drug, p.name", "t LEFT JOIN drugs p ON p.drug = t.drug",
     "(SELECT drug, name FROM drugs UNION ALL SELECT NULL, NULL) AS t(drug, name), LATERAL (SELECT t.name) AS p", 31),
    ("COALESCE(p.category, 'none'), p.name", "t LEFT JOIN drugs p ON p.drug = t.drug",
     "(SELECT category, name FROM drugs UNION ALL SELECT NULL, NULL) AS p", 31),
    ("q.ward_code, q.ward_name", "(SELECT uid, ward_code, ward_name, COUNT(*) AS n FROM t JOIN wards USING (ward) "
     "GROUP BY 1, 2, 3) AS q", "wards q", 12),
    ("w.ward_code, w.ward_name", "wards w LEFT JOIN t ON t.ward = w.ward", "wards w", 12),
]  # fmt: skip


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize(("keys", "source", "whole", "count"), TABLES)
def test_groups_of_a_public_table_are_its_rows(
    sets: Sets, keys: str, source: str, whole: str, count: int, backend: str
) -> None:
    measure = "COUNT(t.uid)" if "LEFT JOIN t" in source else "COUNT(*)"
    text = f"SELECT {keys}, {measure} FROM {source} GROUP BY {_ordinals(keys)}"
    found = sets.answered(text, backend)
    assert len(found) == count
    assert same(_without_last(found)) == same(sets.truth(f"SELECT DISTINCT {keys} FROM {whole}"))
    assert same(_with_rows(found)) == same(_with_rows(sets.truth(text)))


KNOWN = [
    f"SELECT w.ward_code, MAX(w.ward_name), MIN(w.region), COUNT(*) FROM {_WARDS} GROUP BY w.ward_code",
    f"SELECT t.ward, MAX(w.ward_name), MIN(w.beds), COUNT(*) FROM {_WARDS} GROUP BY t.ward",
    f"SELECT w.ward_name, w.region, MAX(upper(w.ward_code)), COUNT(*) FROM {_WARDS} GROUP BY 1, 2",
    f"SELECT p.name, MAX(p.category), COUNT(*) FROM {_DRUGS} GROUP BY p.name",
    f"SELECT w.ward, MAX(r.chief), COUNT(*) FROM {_WARDS} JOIN region r ON r.region = w.region GROUP BY w.ward",
    "SELECT month, MAX(month), MIN((month - 1) / 3), COUNT(*) FROM t GROUP BY month",
    "SELECT d, MAX(to_char(d, 'Mon')), MIN(date_trunc('month', d)), COUNT(*) FROM t GROUP BY d HAVING COUNT(*) > 0",
    f"SELECT w.ward_code, MAX(w.ward_name) FROM {_WARDS} GROUP BY w.ward_code",
    "SELECT p.name, p.category, MAX(p.category), COUNT(*) FROM t LEFT JOIN drugs p ON p.drug = t.drug GROUP BY 1, 2",
]


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("text", KNOWN)
def test_what_depends_on_the_key_is_exact_and_free(sets: Sets, text: str, backend: str) -> None:
    (release,) = sets.compiled(text, backend).releases
    assert not release.histograms
    assert len(release.measurements) == ("COUNT(" in text)
    found, expected = same(sets.answered(text, backend)), same(sets.truth(text))
    assert set(expected) <= set(found)


@pytest.mark.parametrize(
    "text",
    [
        f"SELECT w.region, MAX(w.ward_name), COUNT(*) FROM {_WARDS} GROUP BY w.region",
        f"SELECT w.ward_code, MAX(w.beds) FILTER (WHERE t.hour > 3), COUNT(*) FROM {_WARDS} GROUP BY w.ward_code",
        f"SELECT w.ward_code, MAX(t.x), COUNT(*) FROM {_WARDS} GROUP BY w.ward_code",
        "SELECT COALESCE(x, 0), MAX(x), COUNT(*) FROM t GROUP BY 1",
        "SELECT t.kind, MAX(p.name) FROM t JOIN drugs p ON p.drug = t.drug GROUP BY t.kind",
    ],
)
def test_what_does_not_depend_on_the_key_is_measured(sets: Sets, text: str) -> None:
    (release,) = sets.compiled(text).releases
    assert len(release.histograms) == 1


def test_choices_are_drawn_for_groups_that_there_are(sets: Sets) -> None:
    text = f"SELECT w.ward_code, w.ward_name, COUNT(DISTINCT t.uid), AVG(t.x) FROM {_WARDS} GROUP BY 1, 2"
    largest = f"SELECT w.ward_code, w.ward_name, MAX(t.hour) FROM {_WARDS} GROUP BY 1, 2"
    for backend in BACKENDS:
        assert same(sets.answered(text, backend)) == same(sets.truth(text))
        assert len(sets.answered(largest, backend)) == 12


def test_no_private_row_makes_a_group(sets: Sets) -> None:
    """Hours outside of the declared bounds are in no group, whatever their quarter of the day."""
    for engine in sets.engines.values():
        assert engine.schema.tables["t"].column("hour") is not None
    text = "SELECT (month - 1) / 3, COUNT(*) FROM (SELECT uid, month + 3 AS month FROM t) q GROUP BY 1"
    for backend in BACKENDS:
        assert same(_with_rows(sets.answered(text, backend))) == same(sets.truth(text))


def test_max_keys_counts_groups_not_combinations(sets: Sets) -> None:
    """731 days and 731 texts are 534,361 combinations, of which 731 are groups."""
    (release,) = sets.compiled("SELECT d, to_char(d, 'YYYY-MM-DD'), COUNT(*) FROM t GROUP BY 1, 2").releases
    assert release.public
    assert release.size == 731


FLOATS = [("FLOOR(f / 7)", 15), ("FLOOR(f / 3)", 34), ("FLOOR(-f / 7)", 16), ("CEIL(f / 7)", 16), ("TRUNC(-f / 7)", 15),
          ("FLOOR(f / 10)", 11), ("a / 7 + b / 100", 16)]  # fmt: skip


@pytest.mark.parametrize(("key", "count"), FLOATS)
def test_steps_of_an_interval_end_where_it_does(sets: Sets, key: str, count: int) -> None:
    (release,) = sets.compiled(f"SELECT {key}, COUNT(*) FROM t GROUP BY 1").releases
    assert release.size == count


def test_mutant_intervals_end_outside(sets: Sets, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(domains, "whole", lambda a, op: domains.integral(a))
    with pytest.raises(AssertionError):
        test_steps_of_an_interval_end_where_it_does(sets, *FLOATS[0])


# Mutants: each breaks one rule, and a statement above must notice ---------------------------------------------------


def _differs(sets: Sets, keys: str, source: str, possible: str) -> bool:
    """Asked in other words than before: plans are kept by their texts."""
    text = f"/* mutant */ SELECT {keys}, COUNT(*) FROM {source} GROUP BY {_ordinals(keys)}"
    found = sets.answered(text, "duckdb")
    whole = same(_without_last(found)) == same(sets.truth(f"SELECT DISTINCT {keys} FROM {possible}"))
    return not whole or same(_with_rows(found)) != same(_with_rows(sets.truth(text)))


def _unknown(*_: object) -> None:
    raise Unknown


def test_mutant_keys_are_crossed(sets: Sets, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(groups, "_possible", _unknown)
    assert _differs(sets, "to_char(d, 'Mon'), EXTRACT(month FROM d)", "t", WHOLE["d"])


def test_mutant_each_key_is_alone(sets: Sets, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(groups, "_clusters", lambda domains, world: [(i,) for i in range(len(domains))])
    assert _differs(sets, "w.ward_code, w.ward_name", _WARDS, "wards w")


def test_mutant_equal_columns_are_not_tied(sets: Sets, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(image, "_equalities", lambda conditions: iter(()))
    assert _differs(sets, "t.ward, w.ward_name", _WARDS, "wards t JOIN wards w USING (ward)")


def test_mutant_an_outer_join_is_an_inner_one(sets: Sets, monkeypatch: pytest.MonkeyPatch) -> None:
    real = image._with_outer
    monkeypatch.setattr(image, "_with_outer", lambda *args: [r for r in real(*args) if None not in r.values()])
    whole = "(SELECT category, name FROM drugs UNION ALL SELECT NULL, NULL) AS p"
    assert _differs(sets, "p.category, p.name", "t LEFT JOIN drugs p ON p.drug = t.drug", whole)


def test_mutant_filters_are_not_read(sets: Sets, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(image, "_holds", lambda *_: None)
    source = f"{_DRUGS} WHERE p.category = 'C1'"
    assert _differs(sets, "p.name", source, "drugs p WHERE p.category = 'C1'")


def test_mutant_a_month_stands_for_its_days(sets: Sets, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(instants, "_finest", lambda periods, col: "month")
    assert _differs(sets, "d, EXTRACT(day FROM d)", "t", WHOLE["d"])


def test_mutant_a_condition_is_asked_of_the_first_of_the_month(sets: Sets, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(image, "_is_told", lambda condition, exprs: True)
    text = "t WHERE d > DATE '2023-03-20' AND NOT (d BETWEEN DATE '2023-04-01' AND DATE '2023-04-01')"
    possible = WHOLE["d"] + text.removeprefix("t")
    assert _differs(sets, "EXTRACT(month FROM d), EXTRACT(year FROM d)", text, possible)


def test_mutant_division_rounds_down(sets: Sets, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(evaluated, "trunc", lambda x: -(-x).__ceil__() if x >= 0 else x.__floor__())
    assert _differs(sets, "month % 3, month / 5, -month / 5", "t", WHOLE["month"])


def test_mutant_rows_of_no_group_are_kept(sets: Sets, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without the filter in the SQL, a public table that has changed would make a release fail."""
    release = sets.compiled(f"SELECT w.ward_code, w.ward_name, COUNT(*) FROM {_WARDS} GROUP BY 1, 2").releases[0]
    few = replace(release, places=(release.places or ())[:5])
    backend = sets.engines["duckdb"].backend
    assert len(backend.fetch(emit(few, DUCKDB, {}), 2, 10.0).keys) == 5
    monkeypatch.setattr(sys.modules["dpsql.compiler.emit.release"], "inside", lambda _: [])
    assert len(backend.fetch(emit(few, DUCKDB, {}), 2, 10.0).keys) > 5


def test_mutant_one_of_several_values_is_taken(sets: Sets, monkeypatch: pytest.MonkeyPatch) -> None:
    some = lambda index, seen, made: {place: str(min(map(str, values[index]))) for place, values in seen.items()}  # noqa: E731
    monkeypatch.setattr(groups, "_only", some)
    text = f"SELECT w.region, MAX(w.ward_name), COUNT(*) FROM {_WARDS} GROUP BY w.region"
    with pytest.raises(AssertionError):
        test_what_does_not_depend_on_the_key_is_measured(sets, text)
