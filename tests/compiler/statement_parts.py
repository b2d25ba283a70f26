"""What random statements are made of: columns by how they can be used, FROM clauses, subqueries and forms of keys."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from compiler_worlds import COLUMNS

Family = Literal["num", "text", "time", "bool"]

_FAMILIES: dict[str, Family] = {
    "TEXT": "text",
    "DATE": "time",
    "TIMESTAMP": "time",
    "TIMESTAMPTZ": "time",
    "BOOLEAN": "bool",
}
BOUNDED = (
    "age",
    "salary",
    "score",
    "height",
    "level",
    "amount",
    "qty",
    "big",
    "price",
    "o_total",
    "i_line",
    "i_qty",
    "i_price",
    "i_disc",
    "rank",
    "rent",
    "pct",
    "n",
    "s",
    "m",
)
PUBLIC_KEYS = (
    "city",
    "active",
    "level",
    "shop",
    "qty",
    "o_status",
    "i_shop",
    "i_line",
    "i_qty",
    "region",
    "gift",
    "age",
)
PRIVATE_KEYS = (
    "note",
    "tag",
    "score",
    "salary",
    "height",
    "big",
    "at",
    "seen",
    "joined",
    "o_total",
    "amount",
    "starts",
)
WORDS = ("Rome", "Oslo", "t1", "n1", "open", "", "(", "%a", "a_", "\\\\", "Ünï")
DAYS = ("2020-02-03", "2000-01-01", "2019-06-30", "2020-02-27 12:00:00", "2003-12-31")


@dataclass(frozen=True, slots=True)
class Place:
    """A visible column: how it is written, its name in the world, and its family."""

    sql: str
    name: str
    family: Family


def places(alias: str, table: str) -> list[Place]:
    return [Place(f"{alias}.{name}", name, _FAMILIES.get(of, "num")) for name, of in COLUMNS[table].items()]


@dataclass(frozen=True, slots=True)
class From:
    """FROM with what it makes visible. `unit`: a column that is the unit; `where`: conditions the join needs."""

    sql: str
    tables: tuple[tuple[str, str], ...]
    unit: str | None
    where: str = ""

    @property
    def places(self) -> list[Place]:
        return [place for alias, table in self.tables for place in places(alias, table)]


P, V, S, Q, R, L = ("p", "people"), ("v", "visits"), ("s", "shops"), ("q", "promo"), ("o", "orders"), ("i", "items")

SOURCES: tuple[From, ...] = (
    From("people p", (P,), "p.uid"),
    From("visits v", (V,), "v.uid"),
    From("visits AS v", (V,), "v.uid"),
    From("orders o", (R,), "o.o_uid"),
    From("items i", (L,), None),
    From("items i JOIN orders o ON o.o_id = i.i_order", (L, R), "o.o_uid"),
    From("orders o, items i", (R, L), "o.o_uid", "i.i_order = o.o_id"),
    From("orders o LEFT JOIN items i ON i.i_order = o.o_id AND i.i_qty > 10", (R, L), "o.o_uid"),
    From("orders o JOIN people p ON p.uid = o.o_uid", (R, P), "p.uid"),
    From("people p LEFT JOIN orders o ON o.o_uid = p.uid", (P, R), "p.uid"),
    From("people p JOIN orders o ON o.o_uid = p.uid JOIN items i ON i.i_order = o.o_id", (P, R, L), "p.uid"),
    From(
        "people p, orders o, items i, shops s",
        (P, R, L, S),
        "p.uid",
        "p.uid = o.o_uid AND i.i_order = o.o_id AND s.shop = i.i_shop",
    ),
    From("people p JOIN visits v ON p.uid = v.uid", (P, V), "v.uid"),
    From("visits v LEFT JOIN people p ON v.uid = p.uid AND p.age > 30", (V, P), "v.uid"),
    From("people p LEFT JOIN visits v ON p.uid = v.uid AND v.amount > 10", (P, V), "p.uid"),
    From("visits v RIGHT JOIN people p ON p.uid = v.uid", (V, P), "p.uid"),
    From("people p1, people p WHERE_HERE", (("p1", "people"), P), "p.uid", "p1.uid = p.uid"),
    From("visits v JOIN shops s ON v.shop = s.shop", (V, S), "v.uid"),
    From("visits v LEFT JOIN shops s ON v.shop = s.shop AND s.rank > 3", (V, S), "v.uid"),
    From("visits v, shops s", (V, S), "v.uid", "s.shop = v.shop AND s.rank >= 0"),
    From("visits v CROSS JOIN shops s", (V, S), "v.uid"),
    From("visits v JOIN promo q ON v.shop = q.shop", (V, Q), "v.uid"),
    From("people p LEFT JOIN promo q ON p.age > 40", (P, Q), "p.uid"),
    From("people p, promo q", (P, Q), "p.uid"),
    From("items i JOIN shops s ON s.shop = i.i_shop", (L, S), None),
    From("items i LEFT JOIN promo q ON q.shop = i.i_shop", (L, Q), None),
    From("orders o JOIN people p ON p.uid = o.o_uid LEFT JOIN promo q ON q.starts < o.o_date", (R, P, Q), "p.uid"),
    From("visits v JOIN people p ON v.uid = p.uid JOIN shops s ON s.shop = v.shop", (V, P, S), "p.uid"),
)


DERIVED: tuple[tuple[str, str | None, tuple[tuple[str, Family], ...]], ...] = (
    (
        "(SELECT v.uid, COUNT(*) AS n, SUM({0}) AS s, MAX(v.day) AS d FROM visits v{1} GROUP BY v.uid) AS x",
        "x.uid",
        (("n", "num"), ("s", "num"), ("d", "time")),
    ),
    (
        "(SELECT v.uid, v.shop, AVG({0}) AS s, COUNT(DISTINCT v.tag) AS n, MIN(v.qty) AS m FROM visits v{1} "
        "GROUP BY v.uid, v.shop HAVING COUNT(*) > 1) AS x",
        "x.uid",
        (("shop", "text"), ("s", "num"), ("n", "num"), ("m", "num")),
    ),
    (
        "(SELECT v.uid, {0} AS s, v.tag AS t FROM visits v{1} "
        "UNION ALL SELECT p.uid, p.score, p.note FROM people p) AS x",
        "x.uid",
        (("s", "num"), ("t", "text")),
    ),
    (
        "people p JOIN (SELECT v.uid, SUM({0}) AS s, COUNT(v.amount) AS n FROM visits v{1} GROUP BY v.uid) AS x "
        "ON x.uid = p.uid",
        "p.uid",
        (("s", "num"), ("n", "num")),
    ),
    (
        "(SELECT o.o_id, COUNT(i.i_qty) AS n, SUM(i.i_price) AS s FROM orders o "
        "LEFT JOIN items i ON i.i_order = o.o_id GROUP BY o.o_id) AS x",
        None,
        (("n", "num"), ("s", "num")),
    ),
)
"""Relations of one row per unit and key, and unions: text, the unit's column, and the columns of `x`."""

MEMBERS = (
    ("v", "v.uid IN (SELECT p.uid FROM people p WHERE p.age > 30)"),
    ("v", "v.uid NOT IN (SELECT p.uid FROM people p WHERE p.active)"),
    ("v", "EXISTS (SELECT 1 FROM people p WHERE p.uid = v.uid AND p.score < v.amount)"),
    ("v", "NOT EXISTS (SELECT 1 FROM orders o WHERE o.o_uid = v.uid AND o.o_total > 100)"),
    ("v", "EXISTS (SELECT 1 FROM visits w WHERE w.uid = v.uid AND w.tag = v.tag AND w.amount > v.amount)"),
    ("v", "v.shop IN (SELECT s.shop FROM shops s WHERE s.rank > 3)"),
    ("v", "v.shop NOT IN (SELECT q.shop FROM promo q)"),
    ("v", "v.qty IN (SELECT p.level FROM people p WHERE p.uid = v.uid)"),
    ("v", "v.qty NOT IN (SELECT p.level FROM people p WHERE p.uid = v.uid)"),
    ("o", "o.o_id IN (SELECT i.i_order FROM items i WHERE i.i_qty > 10)"),
    ("o", "o.o_id NOT IN (SELECT i.i_order FROM items i WHERE i.i_disc > 0.05)"),
    ("i", "EXISTS (SELECT 1 FROM items j WHERE j.i_order = i.i_order AND j.i_line <> i.i_line)"),
    ("p", "p.uid IN (SELECT v.uid FROM visits v WHERE v.shop = 'zoo')"),
    ("p", "NOT EXISTS (SELECT 1 FROM visits v WHERE v.uid = p.uid AND v.qty > p.level)"),
    ("v", "v.amount > (SELECT AVG(w.amount) FROM visits w)"),
    ("p", "p.age < (SELECT MAX(s.rank) * 5 FROM shops s)"),
)
"""Conditions with subqueries, each after the alias of the query around it that it reads."""


TEXT_FORMS = (
    "SUBSTRING({0}, 1, 2)",
    "COALESCE({0}, 'none')",
    "NULLIF({0}, '')",
    "TRIM({0})",
    "{0} || '-' || {1}",
    "CONCAT_WS('/', {0}, {0})",
    "UPPER(RIGHT({0}, 2))",
    "LOWER({0})",
    "REPLACE({0}, 'o', '0')",
    "LPAD({0}, 3, '*')",
    "SPLIT_PART({0}, ' ', 1)",
)
TIME_FORMS = (
    "DATE_TRUNC('{1}', {0})",
    "DATE_TRUNC('{1}', {0})",
    "DATE_BIN('5 days', {0}, '2020-01-01')",
    "TO_CHAR({0}, 'YYYY-MM')",
    "TO_CHAR({0}, 'Dy HH24')",
    "TO_TIMESTAMP(FLOOR(EXTRACT(epoch FROM {0}) / 86400) * 86400)",
    "(EXTRACT(year FROM {0}) * 100 + EXTRACT(month FROM {0}))",
)
BEGINNINGS = (
    "date_trunc('hour', {0}) + INTERVAL '20 minutes' * FLOOR(EXTRACT(minute FROM {0}) / 20)",
    "date_trunc('hour', {0}) - INTERVAL '1 hour' * MOD(CAST(EXTRACT(hour FROM {0}) AS integer), 6)",
    "date_trunc('day', {0}) + FLOOR(EXTRACT(hour FROM {0}) / 12) * INTERVAL '12 hours'",
    "date_trunc('day', {0}) - EXTRACT(dow FROM {0}) * INTERVAL '1 day'",
    "CAST({0} AS date) - CAST(EXTRACT(dow FROM {0}) AS integer)",
    "CAST({0} AS date) - (CAST(EXTRACT(isodow FROM {0}) AS integer) - 1)",
    "COALESCE(CAST({0} AS date), DATE '2020-02-15')",
    "COALESCE(CAST(date_trunc('month', {0}) AS date), DATE '1999-12-31')",
)
"""Parts of time as tools write them, and dates that stand for none."""
