"""Hostile rows, and random statements over them, for tests of what follows from what. Not a test itself.

Values lie outside their declared bounds where nothing coarser is made of them, are NULL, NaN, infinite, negative zero,
fall into the hours that a time zone skips; units have many rows. `tight` has bounds that most units exceed, `loose` has
bounds that none reaches, which no plan knows; `cut` keeps three rows of each unit, `ones` have one by a primary key.
What totals rest on is as declared: lists hold all values of their columns, and NULL where it is declared.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass, replace
from datetime import date, datetime, timedelta
from pathlib import Path
from random import Random

import duckdb

from dpsql.compiler.plan import PlannedRelease
from dpsql.dp.noise import draw
from dpsql.engine import Engine, open_engine
from dpsql.errors import Rejected
from dpsql.ledger import init_ledger
from dpsql.policy.load import load
from dpsql.release import release
from dpsql.replay.derive import choose
from dpsql.replay.recipe import Derived, Kin, Shape
from dpsql.session.ports import CancelToken
from dpsql.types import Release, Reservation, Settings

POLICY = """
dpsql: 1
dataset: hostile-{name}
backend: duckdb:{name}.duckdb
ledger: sqlite:{name}.ledger
timezone: Europe/Rome
privacy:
  unit: person
  units: 1000
  max_groups: {groups}
  max_rows_per_group: {rows}
  accounting: {accounting}
  budget: {{epsilon: 100, delta: 1e-5}}
tables:
  people:
    unit: uid
    max_rows: 1
    columns:
      g: {{type: text, values: [left, right]}}
      h: {{type: integer, lower: 0, upper: 3}}
  facts:
    unit: uid
    {limit}
    columns:
      i: {{type: integer, lower: -5, upper: 12, nullable: true}}
      w: {{type: integer, lower: -3, upper: 9}}
      p: {{type: integer, lower: 0, upper: 9}}
      f: {{type: double, lower: -2, upper: 3.5}}
      n: {{type: "numeric(6,2)", lower: -1.5, upper: 4, nullable: true}}
      d: {{type: date, lower: 2024-02-20, upper: 2024-04-10, nullable: true}}
      t: {{type: timestamp, lower: 2024-02-20, upper: 2024-04-10}}
      z: {{type: timestamptz, lower: "2024-03-30 00:00:00+00", upper: "2024-04-02 00:00:00+00", nullable: true}}
      s: {{type: text, values: ["", a, A, ä, "b "]}}
      o: {{type: text, values: [x, "X", é], nullable: true}}
      l: {{type: integer, values: [3, -1, 2, 0], nullable: true}}
      b: {{type: boolean, nullable: true}}
      c: {{type: boolean}}
roles:
  analyst: {{budget: {{epsilon: 50, delta: 1e-6}}, epsilon: 1}}
users:
  alice: {{role: analyst}}
"""
BOUNDS = {
    "loose": (40, 400, ""),
    "tight": (2, 2, ""),
    "cut": (2, 3, "max_rows: 3"),
    "ones": (2, 2, "max_rows: 1"),
}
COLUMNS = {
    "i": "INTEGER", "w": "INTEGER", "p": "INTEGER", "f": "DOUBLE", "n": "DECIMAL(6,2)", "d": "DATE", "t": "TIMESTAMP",
    "z": "TIMESTAMPTZ", "s": "TEXT", "o": "TEXT", "l": "INTEGER", "b": "BOOLEAN", "c": "BOOLEAN",
}  # fmt: skip
MICRO = timedelta(microseconds=1)


def row(random: Random) -> list[object]:
    """One row without its unit."""
    times = (
        datetime(2024, 2, 21) + timedelta(hours=random.randrange(1100)),
        datetime(2024, 3, random.randrange(1, 32)),
    )
    at = random.choice(times) + random.choice((0, 0, 1, -1)) * MICRO
    zoned = datetime(2024, 3, 30, 22) + timedelta(minutes=10 * random.randrange(36))
    f = random.choice(
        (0.0, -0.0, float("nan"), float("inf"), float("-inf"), 5e-324, -5e-324, 1e308, -2.0, 3.5, 1.0, 1.5, 2.0)
    )
    return [
        random.choice((None, *range(-8, 16))),
        random.randrange(-3, 10),
        random.randrange(0, 10),
        random.choice((f, None, random.uniform(-3, 4))),
        random.choice((None, random.randrange(-150, 401) / 100)),
        random.choice((None, date(2024, 2, 15) + timedelta(days=random.randrange(60)))),
        at,
        random.choice((None, f"{zoned}+00")),
        random.choice(("", "a", "A", "ä", "b ")),
        random.choice(("x", "X", "é", None)),
        random.choice((3, -1, 2, 0, None)),
        random.choice((True, False, None)),
        random.choice((True, False)),
    ]


def fill(path: Path, random: Random, *, ones: bool, people: int = 25) -> None:
    with closing(duckdb.connect(str(path))) as connection:
        columns = ", ".join(f"{name} {kind}" for name, kind in COLUMNS.items())
        connection.execute("CREATE TABLE people (uid INTEGER PRIMARY KEY, g TEXT, h INTEGER)")
        owners = [[unit, random.choice(("left", "right")), random.randrange(4)] for unit in range(people)]
        connection.executemany("INSERT INTO people VALUES (?, ?, ?)", owners)
        connection.execute(f"CREATE TABLE facts (uid INTEGER {'PRIMARY KEY' if ones else ''}, {columns})")
        rows = [
            [random.choice((unit, unit, None)) if unit == 0 and not ones else unit, *row(random)]
            for unit in range(4 * people if ones else people)
            for _ in range(1 if ones else random.choice((1, 2, 3, 30)))
        ]
        connection.executemany(f"INSERT INTO facts VALUES ({', '.join('?' * (len(COLUMNS) + 1))})", rows)


# Statements -----------------------------------------------------------------------------------------------------------

ENDS: dict[str, tuple[str, ...]] = {
    "i": ("-6", "-5", "-1", "0", "1.5", "4", "4.00000000000000000001", "7", "12", "13", "100"),
    "w": ("-4", "-3", "-1.0", "0", "2", "5", "9", "10"),
    "f": ("-2", "-0.0", "0", "0.5", "1", "1.5", "3.5", "4", "1e300"),
    "n": ("-1.5", "-0.01", "0", "0.005", "1", "2.50", "4", "4.004"),
    "d": ("DATE '2024-02-20'", "'2024-03-01'", "TIMESTAMP '2024-03-01 12:00'", "'2024-03-31'", "DATE '2024-04-10'"),
    "t": ("'2024-02-20'", "DATE '2024-03-01'", "'2024-03-01 00:00:00.000001'", "'2024-03-31 02:30'", "'2024-04-10'"),
    "z": ("'2024-03-31 01:00+00'", "'2024-03-31 02:30'", "'2024-03-31 03:00'", "'2024-03-31'", "'2024-04-01'"),
    "s": ("''", "'a'", "'A'", "'ä'", "'b '", "'b'", "'zz'"),
    "o": ("'x'", "'X'", "'é'", "'e'"),
    "l": ("3", "-1", "2", "0", "1", "2.5"),
    "g": ("'left'", "'right'", "'up'"),
    "h": ("0", "1", "2", "3", "7"),
}
READ: dict[str, tuple[str, ...]] = {
    "i": ("i", "i", "i", "FLOOR(i / 5.0)", "i / 4", "i + 3", "i * 2", "-i", "ABS(i)", "i % 3", "CAST(i AS real)"),
    "w": ("w", "w", "w / 3", "ABS(w)", "w % 2", "FLOOR(w / 2.0) * 2", "CASE WHEN w < 2 THEN 0 WHEN w < 7 THEN 1 END"),
    "f": ("f", "f", "FLOOR(f)", "f * 2", "FLOOR(f / 2)"),
    "n": ("n", "n", "FLOOR(n)", "n + 1", "FLOOR(n * 10)"),
    "d": ("d", "d", "DATE_TRUNC('month', d)", "EXTRACT(year FROM d)", "EXTRACT(month FROM d)"),
    "t": ("t", "t", "DATE_TRUNC('week', t)", "CAST(t AS date)", "DATE_TRUNC('day', t)"),
    "z": ("z", "z", "DATE_TRUNC('day', z)", "DATE_TRUNC('hour', z)", "CAST(z AS date)"),
    "s": ("s",), "o": ("o",), "l": ("l", "l", "l + 1"), "g": ("g",), "h": ("h", "h / 2"),
}  # fmt: skip
KEYS = (
    "i", "w", "FLOOR(w / 5.0)", "w / 3", "FLOOR(w / 2.0) * 2", "w % 2", "FLOOR(n)", "FLOOR(f)", "d",
    "DATE_TRUNC('month', t)", "DATE_TRUNC('week', t)", "EXTRACT(dow FROM d)", "DATE_TRUNC('day', t)", "CAST(t AS date)",
    "DATE_TRUNC('hour', z)", "DATE_TRUNC('day', z)", "CAST(z AS date)", "s", "o", "l", "b", "c", "l + 1", "ABS(w)",
    "ABS(i)", "-i", "i % 3", "FLOOR(n * 10)", "FLOOR(f / 2)",
    "CASE WHEN w < 2 THEN 0 WHEN w < 7 THEN 1 ELSE 2 END", "CASE WHEN i < 2 THEN 0 WHEN i < 7 THEN 1 END",
    "CASE WHEN i < 7 THEN i END", "COALESCE(i, 0)", "CASE WHEN l > 0 THEN l ELSE 0 END",
    "g", "h", "h / 2",
)  # fmt: skip
AGGREGATES: tuple[tuple[str, ...], ...] = (
    ("COUNT(*)",), ("COUNT(*)",), ("COUNT(*)", "COUNT(w)", "AVG(w)"), ("COUNT(i)", "AVG(i)"), ("COUNT(f)", "AVG(f)"),
    ("SUM(p)",), ("SUM(p)", "AVG(p)", "COUNT(p)"), ("SUM(w)", "AVG(w)"), ("SUM(f)", "VAR_POP(f)"),
    ("AVG(n)", "SUM(n)", "COUNT(n)"), ("COUNT(DISTINCT uid)",), ("VAR_POP(p)", "COUNT(*)", "AVG(p), SUM(p)"),
    ("COUNT(*) FILTER (WHERE p > 3)", "SUM(p) FILTER (WHERE p > 3)", "AVG(p) FILTER (WHERE p > 3)"),
    ("COUNT(n), SUM(n)", "SUM(n)", "COUNT(n)", "AVG(n)"), ("COUNT(i), SUM(p)", "SUM(p)", "COUNT(i)"),
)  # fmt: skip


def simple(random: Random, column: str) -> str:
    """A condition on one column."""
    if column in ("b", "c"):
        forms = ("{0}", "NOT {0}", "{0} = true", "{0} IS NULL", "{0} IS NOT NULL", "{0} <> true", "{0} IS TRUE")
        return random.choice(forms).format(column)
    subject, ends = random.choice(READ[column]), ENDS[column]
    if subject.startswith("EXTRACT"):
        ends = ("2", "3", "2024")
    elif subject.startswith("FLOOR") or subject in ("ABS(i)", "i % 3", "-i", "ABS(w)", "w % 2"):
        ends = ("-2", "-1", "0", "1", "2")
    elif subject.startswith("CASE"):
        ends = ("0", "1")
    a, b, c = (random.choice(ends) for _ in range(3))
    form = random.choice((
        "{x} < {a}", "{x} <= {a}", "{a} < {x}", "{x} >= {a}", "{x} = {a}", "{x} <> {a}", "{x} BETWEEN {a} AND {b}",
        "{x} NOT BETWEEN {a} AND {b}", "{x} >= {a} AND {x} < {b}", "{x} > {a} AND {x} <= {b}", "{x} IN ({a}, {b}, {c})",
        "{x} NOT IN ({a}, {b})", "NOT {x} < {a}", "{x} < {a} OR {x} >= {b}", "{x} IS NULL", "{x} IS NOT NULL",
        "NOT ({x} >= {a} AND {x} < {b})", "{x} = {a} OR {x} IS NULL", "NOT ({x} = {a} OR {x} = {b})",
        "NOT ({x} > {a} OR {x} IS NULL)",
    ))  # fmt: skip
    return form.format(x=subject, a=a, b=b, c=c)


def statements(random: Random, count: int) -> list[str]:
    """Statements about one column, with one of a few aggregates, so that much follows from much."""
    joined = random.random() < 0.4
    own_columns = [name for name in (*ENDS, "b", "c") if name not in ("g", "h")]
    column = random.choice(("g", "h") if joined and random.random() < 0.7 else own_columns)
    aggregates = random.choice(AGGREGATES)
    source = "facts JOIN people USING (uid)" if joined else "facts"
    other = random.choice((*(("g", "h") if joined else ()), "w", "s", "b", "l", "o")) if random.random() < 0.3 else None
    fixed = f" AND ({simple(random, other)})" if other and random.random() < 0.5 else ""
    own = [key for key in KEYS if column in re.findall(r"\b[a-z]\b", key)]
    found = []
    for _ in range(count):
        keys = [random.choice(own)] if own and random.random() < 0.5 else []
        if other and random.random() < 0.3:
            keys.append(other)
        conditions = simple(random, column) if random.random() < 0.9 else "TRUE"
        group = f" GROUP BY {', '.join(str(i + 1) for i in range(len(keys)))}" if keys else ""
        measured = random.choice(aggregates)
        found.append(f"SELECT {', '.join([*keys, measured])} FROM {source} WHERE ({conditions}){fixed}{group}")
    return list(dict.fromkeys(found))


# What is measured -----------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Known:
    """A statement's release without noise, and its shape."""

    text: str
    shape: Shape
    planned: PlannedRelease
    release: Release

    @property
    def noisy(self) -> Release:
        """With the noise that it is planned with."""
        drawn = [draw(m.mechanism, len(self.release.cells)) for m in self.planned.measurements]
        cells = (
            tuple(cell + int(extra) for cell, extra in zip(row, noise, strict=True))
            for row, noise in zip(self.release.cells, zip(*drawn, strict=True), strict=True)
        )
        return replace(self.release, cells=tuple(cells))


class World:
    """One policy over the rows."""

    def __init__(self, engine: Engine) -> None:
        self.engine = engine

    def known(self, text: str) -> Known | None:
        """None for what is refused, free, or has no shape. Needs noise to be switched off."""
        try:
            ready = self.engine.preparer.ready("alice", text, 0, Settings(), ())
        except Rejected:
            return None
        if len(ready.paid) != 1 or ready.paid[0].id not in ready.shapes:
            return None
        planned = ready.paid[0]
        (query,) = ready.queries[planned.id]
        cells = self.engine.backend.fetch(query, len(planned.keys), 60.0, CancelToken())
        made = release(planned, cells, Reservation(1, "alice", "key", planned.cost), ())
        return Known(text, ready.shapes[planned.id], planned, made)


def derived(asked: Known, stored: list[Known]) -> Derived | None:
    """What follows from stored releases, at any error; without noise."""
    limits = tuple(measured.variance * 1e12 for measured in asked.shape.measured)
    made = next(choose(Kin(asked.shape, limits), list(enumerate(known.shape for known in stored))), None)
    return None if made is None else Derived(made, stored[made.source].release)


@contextmanager
def worlds(folder: Path, seed: int, accounting: str = "zcdp") -> Iterator[dict[str, World]]:
    """Those of BOUNDS, by name."""
    opened: dict[str, World] = {}
    try:
        for name, (groups, rows, limit) in BOUNDS.items():
            fill(folder / f"{name}.duckdb", Random(seed), ones=name == "ones")
            path = folder / f"{name}.yaml"
            text = POLICY.format(name=name, groups=groups, rows=rows, accounting=accounting, limit=limit)
            path.write_text(text.replace("1e-5", "0" if accounting == "pure" else "1e-5"), encoding="utf-8")
            init_ledger(load(path).ledger, f"hostile-{name}")
            opened[name] = World(open_engine(load(path)))
        yield opened
    finally:
        for world in opened.values():
            world.engine.close()


def pairs(random: Random, known: list[Known], count: int) -> Iterator[tuple[Known, list[Known]]]:
    """Targets with some of the others of their family."""
    families: dict[str, list[Known]] = {}
    for each in known:
        families.setdefault(each.shape.family, []).append(each)
    several = [family for family in families.values() if len(family) > 1]
    weights = [len(family) for family in several]
    for _ in range(count if several else 0):
        family = random.choices(several, weights)[0]
        target = random.choice(family)
        others = [each for each in family if each.text != target.text]
        yield target, random.sample(others, random.randint(1, len(others)))
