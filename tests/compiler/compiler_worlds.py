"""Small hostile databases: every declaration of their policies is broken somewhere, every type has its poison.

A `World` is a policy and rows, all values as text, so that DuckDB and Postgres store the same (`compiler_sites`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from random import Random
from typing import Literal

Row = tuple[str | None, ...]
Rows = Mapping[str, Sequence[Row]]
UnitKind = Literal["integer", "text", "row"]

COLUMNS: dict[str, dict[str, str]] = {
    "people": {
        "uid": "UNIT",
        "age": "INTEGER",
        "salary": "NUMERIC(12,2)",
        "score": "DOUBLE PRECISION",
        "height": "REAL",
        "city": "TEXT",
        "joined": "DATE",
        "note": "TEXT",
        "active": "BOOLEAN",
        "level": "SMALLINT",
    },
    "visits": {
        "uid": "UNIT2",
        "shop": "TEXT",
        "amount": "DOUBLE PRECISION",
        "qty": "SMALLINT",
        "big": "BIGINT",
        "at": "TIMESTAMP",
        "seen": "TIMESTAMPTZ",
        "tag": "TEXT",
        "day": "DATE",
        "price": "NUMERIC(9,3)",
    },
    "shops": {"shop": "TEXT", "region": "TEXT", "rank": "INTEGER", "rent": "DOUBLE PRECISION"},
    "promo": {"shop": "TEXT", "pct": "DOUBLE PRECISION", "starts": "DATE", "gift": "BOOLEAN"},
    "orders": {"o_id": "BIGINT", "o_uid": "UNIT", "o_date": "DATE", "o_total": "NUMERIC(15,2)", "o_status": "TEXT"},
    "items": {
        "i_order": "BIGINT",
        "i_line": "INTEGER",
        "i_shop": "TEXT",
        "i_qty": "INTEGER",
        "i_price": "NUMERIC(10,2)",
        "i_disc": "DOUBLE PRECISION",
    },
}
PRIVATE = ("people", "visits", "orders", "items")
ODD_TEXTS = ("", "(", "%", "_", "\\", "'", '"', "a b ", "Rome", "rome", "x" * 300, "NULL", "-1", "Ünï", "a\nb")
CITIES = ("Rome", "Oslo", "Lima")
SHOPS = ("books", "cafe", "cinema", "garden", "zoo")


@dataclass(frozen=True, slots=True)
class World:
    """One database with its policy. `unit`: the type of the unit's column, or rows as units."""

    name: str
    unit: UnitKind
    policy: str
    rows: Rows
    people_unique: bool = False


def policy_text(
    unit: UnitKind, privacy: str, *, people: str = "max_rows: 1", visits: str = "", timezone: str = "UTC"
) -> str:
    """Declared bounds are far narrower than what the rows hold."""
    row = unit == "row"
    text = f"""
dpsql: 1
dataset: world
backend: duckdb:world.duckdb
timezone: {timezone}
privacy: {{unit: {"row" if row else "person"}, units: 1000, budget: {{epsilon: 10, delta: 1e-6}}, {privacy}}}
tables:
  people:
    unit: uid
    {people}
    columns:
      age: {{type: integer, lower: 0, upper: 120}}
      salary: {{type: "numeric(12,2)", lower: 0, upper: 200000}}
      score: {{type: double, lower: 0, upper: 100, nullable: true}}
      height: {{type: real, lower: 0.5, upper: 2.5}}
      city: {{type: text, values: [Rome, Oslo, Lima], nullable: true}}
      joined: {{type: date, lower: 2000-01-01, upper: 2003-12-31}}
      note: {{type: text}}
      active: {{type: boolean}}
      level: {{type: smallint, values: [1, 2, 3, 5]}}
  visits:
    unit: uid
    {visits}
    columns:
      shop: {{type: text, references: shops.shop}}
      amount: {{type: double, lower: 0, upper: 500, nullable: true}}
      qty: {{type: smallint, lower: -5, upper: 5}}
      big: {{type: bigint, lower: -1000000000000, upper: 1000000000000}}
      at: {{type: timestamp, lower: 2020-01-01 00:00:00, upper: 2020-12-31 23:59:59}}
      seen: {{type: timestamptz, lower: 2020-01-01 00:00:00, upper: 2020-03-31 23:59:59}}
      tag: {{type: text}}
      day: {{type: date, lower: 2020-02-01, upper: 2020-02-29, nullable: true}}
      price: {{type: "numeric(9,3)", lower: 18, upper: 65}}
  orders:
    unit: o_uid
    key: o_id
    columns:
      o_date: {{type: date, lower: 2019-01-01, upper: 2019-12-31}}
      o_total: {{type: "numeric(15,2)", lower: 0, upper: 100000}}
      o_status: {{type: text, values: [open, paid, lost]}}
  items:
    unit: {{through: orders, on: {{i_order: o_id}}}}
    columns:
      i_line: {{type: integer, lower: 1, upper: 7}}
      i_shop: {{type: text, references: shops.shop}}
      i_qty: {{type: integer, lower: 1, upper: 50}}
      i_price: {{type: "numeric(10,2)", lower: 0, upper: 5000}}
      i_disc: {{type: double, lower: 0, upper: 0.1}}
  shops: {{public: true, key: shop}}
  promo: {{public: true}}
"""
    if not row:
        return text
    for unit_line in ("    unit: uid\n", "    unit: o_uid\n", "    unit: {through: orders, on: {i_order: o_id}}\n"):
        text = text.replace(unit_line, "")
    return text.replace("    max_rows: 1\n", "").replace("    key: uid\n", "").replace("    key: o_id\n", "")


class Poison:
    """Values that break what their column declares, now and then."""

    def __init__(self, random: Random, unit: UnitKind) -> None:
        self.random = random
        self.unit = unit

    def pick(self, usual: Callable[[], str], odd: Sequence[str | None], share: float = 0.2) -> str | None:
        return self.random.choice(odd) if self.random.random() < share else usual()

    def integer(self, low: int, high: int, limit: int) -> str | None:
        odd = (None, str(limit - 1), str(-limit), str(high + 7), str(low - 9), "0")
        return self.pick(lambda: str(self.random.randint(low, high)), odd)

    def double(self, low: float, high: float) -> str | None:
        odd = (None, "NaN", "Infinity", "-Infinity", "1e308", "-1e308", "5e-324", "-0.0", "1e16", "-1e16", "0.3")
        return self.pick(lambda: repr(self.random.uniform(low, high)), odd)

    def real(self, low: float, high: float) -> str | None:
        odd = (None, "NaN", "Infinity", "-Infinity", "3e38", "-3e38", "1e-45", "-0.0")
        return self.pick(lambda: str(round(self.random.uniform(low, high), 3)), odd)

    def decimal(self, low: int, high: int, digits: int, scale: int) -> str | None:
        largest = "9" * digits + "." + "9" * scale
        odd = (None, largest, "-" + largest, "0", str(high + 1), str(low - 1))
        return self.pick(lambda: f"{self.random.uniform(low, high):.{scale}f}", odd)

    def text(self, usual: Sequence[str]) -> str | None:
        return self.pick(lambda: self.random.choice(usual), (None, *ODD_TEXTS))

    def date(self, year: int, years: int = 1) -> str | None:
        odd = (None, "infinity", "-infinity", "0001-01-01", "9999-12-31", "12000-01-01", "1970-01-01")
        return self.pick(lambda: f"{year + self.random.randrange(years)}-{self._month()}-{self._day()}", odd)

    def moment(self, zone: str = "") -> str | None:
        odd = (None, "infinity", "-infinity", f"0001-01-02 00:00:00{zone}", f"9999-12-30 23:59:59.999999{zone}")
        clock = f"{self.random.randrange(24):02}:{self.random.randrange(60):02}:{self.random.randrange(60):02}"
        return self.pick(lambda: f"2020-{self._month()}-{self._day()} {clock}{zone}", odd)

    def _month(self) -> str:
        return f"{self.random.randint(1, 12):02}"

    def _day(self) -> str:
        return f"{self.random.randint(1, 28):02}"

    def boolean(self) -> str | None:
        return self.random.choice(("true", "false", None))


def units(unit: UnitKind) -> tuple[str, ...]:
    """Unit 0 is in everything, unit 1 has many rows in few groups, 2 many groups, 3 is alone in its groups."""
    if unit == "text":
        return ("whale", "Whale", "", "'", "é", "e", "a b", "a b ", "%", "9", "09", "x" * 40)
    return ("1", "-5", "0", "2147483647", "-2147483648", "7", "8", "9", "10", "11", "12", "13")


def world(
    name: str,
    unit: UnitKind = "integer",
    privacy: str = "max_groups: 3, max_rows_per_group: 4",
    *,
    seed: int,
    unique: bool = False,
    people: str = "max_rows: 1",
    visits: str = "",
) -> World:
    """A random database; `unique`: people really has one row a unit, and a key that says so."""
    random = Random(seed)
    poison = Poison(random, unit)
    ids = units(unit)
    rows: dict[str, list[Row]] = {table: [] for table in COLUMNS}
    rows["shops"] = [
        (shop, random.choice(["north", "south", "Ünï"]), str(i * 3), repr(i * 1.5)) for i, shop in enumerate(SHOPS)
    ]
    rows["promo"] = [
        (
            random.choice((*SHOPS, "books", None, "nowhere")),
            repr(random.uniform(0, 1)),
            "2020-02-03",
            random.choice(("true", "false")),
        )
        for _ in range(9)
    ]
    for uid in (*ids, None):
        for _ in range(1 if unique else random.choice((1, 1, 1, 2, 9))):
            if uid is not None or not unique:
                rows["people"].append(_person(uid, poison))
        for _ in range(150 if uid == ids[0] else 12 if uid is None else random.choice((0, 1, 3, 12, 40))):
            rows["visits"].append(_visit(uid, poison))
    _piled(rows["visits"], ids[1], 90, poison)
    _alone(rows["visits"], ids[3], 25, poison)
    _lopsided(rows["visits"], ids[4], 60)
    _orders(rows, ids, random, poison)
    for table in PRIVATE:
        random.shuffle(rows[table])
    rows["visits"][3] = (ids[0], "books", "0.3", "2", "7", "2020-02-03", "2020-02-03 00:00:00+00", "t1", None, "20")
    rows["people"] = [(*r[:3], "0.3", *r[4:]) if r[0] == ids[0] else r for r in rows["people"]]
    policy = policy_text(unit, privacy, people="key: uid" if unique else people, visits=visits)
    return World(name, unit, policy, rows, people_unique=unique)


def _person(uid: str | None, poison: Poison) -> Row:
    return (
        uid,
        poison.integer(0, 120, 2**31),
        poison.decimal(0, 200_000, 10, 2),
        poison.double(0, 100),
        poison.real(0.5, 2.5),
        poison.text(CITIES),
        poison.date(2000, 4),
        poison.text(("n1", "n2", "n3")),
        poison.boolean(),
        poison.integer(1, 5, 2**15),
    )


def _visit(uid: str | None, poison: Poison) -> Row:
    return (
        uid,
        poison.text(SHOPS),
        poison.double(0, 500),
        poison.integer(-5, 5, 2**15),
        poison.integer(-(10**12), 10**12, 2**63),
        poison.moment(),
        poison.moment("+00"),
        poison.text(("t1", "t2", "t3", "t4")),
        poison.date(2020),
        poison.decimal(18, 65, 6, 3),
    )


def _piled(visits: list[Row], uid: str, count: int, poison: Poison) -> None:
    """Many rows of one unit in one group, all at the far ends."""
    for _ in range(count):
        visits.append(
            (
                uid,
                "zoo",
                "1e308",
                "5",
                str(2**63 - 1),
                "2020-02-03 01:02:03",
                "2020-02-03 01:02:03+00",
                "t1",
                "2020-02-03",
                "65",
            )
        )


def _alone(visits: list[Row], uid: str, count: int, poison: Poison) -> None:
    """Groups that hold one unit only."""
    for index in range(count):
        visits.append(
            (
                uid,
                "cafe",
                "500",
                "-5",
                str(-(10**12)),
                "2020-07-03 01:02:03",
                "2020-01-03 01:02:03+00",
                f"only {index}",
                "2020-02-27",
                "18",
            )
        )


def _lopsided(visits: list[Row], uid: str, count: int) -> None:
    """Many rows that lack one of two values: pairs are few, sums of the other are large."""
    usual = ("garden", "0.5", "5", "1000000000000", "2020-02-03", "2020-02-03 00:00:00+00", "t2", "2020-02-03", "65")
    visits.append((uid, *usual))
    visits += [(uid, usual[0], None, *usual[2:])] * count


def _orders(rows: dict[str, list[Row]], ids: Sequence[str], random: Random, poison: Poison) -> None:
    """Orders of most units and of nobody; items of these, of no order, and of orders that do not exist."""
    numbers = iter([0, -1, 2**63 - 1, -(2**63), 2**53 + 1, 2**53, *range(100, 400)])
    known: list[str] = []
    for uid in (*ids[:9], None):
        for _ in range(random.choice((1, 3, 8)) if uid != ids[0] else 30):
            known.append(str(next(numbers)))
            rows["orders"].append(
                (
                    known[-1],
                    uid,
                    poison.date(2019),
                    poison.decimal(0, 100_000, 13, 2),
                    poison.text(("open", "paid", "lost")),
                )
            )
    for _ in range(400):
        order = random.choice((*known, *known[:6], None, "999999"))
        rows["items"].append(
            (
                order,
                poison.integer(1, 7, 2**31),
                poison.text(SHOPS),
                poison.integer(1, 50, 2**31),
                poison.decimal(0, 5000, 8, 2),
                poison.double(0, 0.1),
            )
        )


WORLDS: Mapping[str, Callable[..., World]] = {
    "integer": partial(world, "integer", seed=1),
    "text": partial(
        world, "text", "text", "max_groups: 2, max_rows_per_group: 3, accounting: pure", seed=2, unique=True
    ),
    "row": partial(world, "row", "row", "max_groups: 1, max_rows_per_group: 1", seed=3),
    "narrow": partial(
        world,
        "narrow",
        "integer",
        "max_groups: 5, max_rows_per_group: 1, selection_cap: 7, max_keys: 30",
        seed=4,
        unique=True,
    ),
    "broken": partial(world, "broken", "text", "max_groups: 2, max_rows_per_group: 30", seed=5),
    "row pure": partial(world, "row pure", "row", "max_groups: 2, max_rows_per_group: 3, accounting: pure", seed=6),
    "some rows": partial(world, "some rows", seed=7, people="max_rows: 2"),
}
"""Each with the seed of its rows, which another may take the place of."""

FEW_ROWS: Mapping[str, Callable[..., World]] = {
    "few rows": partial(world, "few rows", seed=8, visits="max_rows: 5"),
    "few rows pure": partial(
        world,
        "few rows pure",
        "text",
        "max_groups: 3, max_rows_per_group: 4, accounting: pure",
        seed=9,
        visits="max_rows: 5",
    ),
}
"""The rows of a unit in all are cut to more than may count in one group, and to fewer than may in all groups."""
