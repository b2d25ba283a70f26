"""Random statements over the accepted surface: each `Statement` is text and the session's terms.

The grammar knows the types of the worlds' columns, so that most statements are accepted; those that are not are still
useful, since a refusal must be a `Rejected`, never a crash.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from decimal import Decimal
from random import Random
from typing import Literal

from compiler_worlds import COLUMNS

from dpsql.compiler import Terms
from dpsql.types import Parameters

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
class Statement:
    text: str
    terms: Terms
    parameters: Parameters = ()


@dataclass(frozen=True, slots=True)
class Place:
    """A visible column: how it is written, its name in the world, and its family."""

    sql: str
    name: str
    family: Family


def _places(alias: str, table: str) -> list[Place]:
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
        return [place for alias, table in self.tables for place in _places(alias, table)]


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


class Writer:
    """Writes one random statement at a time."""

    def __init__(self, seed: int) -> None:
        self.random = Random(seed)
        self.places: list[Place] = []

    def statement(self) -> Statement:
        if self.random.random() < 0.15:
            return self._two_level()
        source = self.random.choice(SOURCES)
        sql = source.sql.replace(" WHERE_HERE", "")
        self.places = source.places
        if self.random.random() < 0.15 and len(source.tables) == 1:
            sql = self._subquery(source)
        keys = self._keys()
        return Statement(self._assembled(sql, source, keys), self._terms())

    def _two_level(self) -> Statement:
        text, unit, columns = self.random.choice(DERIVED)
        self.places = _places("v", "visits")
        where = f" WHERE {self.condition(1)}" if self.random.random() < 0.4 else ""
        sql = text.format(self._named(BOUNDED), where)
        self.places = [Place(f"x.{name}", name, family) for name, family in columns]
        if sql.startswith("people"):
            self.places += _places("p", "people")
        return Statement(self._assembled(sql, From(sql, (), unit), self._keys()), self._terms())

    def _terms(self) -> Terms:
        mechanism = self.random.choice(("auto", "auto", "laplace"))
        groups = self.random.choice((None, None, None, 1, 2))
        epsilon = self.random.choice((Decimal("0.1"), Decimal(1), Decimal("2.5")))
        return Terms(epsilon, Decimal("1e-7"), mechanism, groups)  # type: ignore[arg-type]

    def _subquery(self, source: From) -> str:
        alias, table = source.tables[0]
        where = f" WHERE {self.condition(1)}" if self.random.random() < 0.6 else ""
        columns = self.random.choice(("*", ", ".join(f"{p.sql} AS {p.name}" for p in self.places)))
        return f"(SELECT {columns} FROM {table} {alias}{where}) AS {alias}"

    def _assembled(self, sql: str, source: From, keys: list[str]) -> str:
        aggregates = [self.aggregate(source) for _ in range(self.random.choice((1, 1, 2, 3, 4)))]
        conditions = [c for c in (source.where, self.condition(2) if self.random.random() < 0.6 else "") if c]
        aliases = {alias for alias, _ in source.tables}
        members = [text for alias, text in MEMBERS if alias in aliases]
        if members and self.random.random() < 0.15:
            conditions.append(self.random.choice(members))
        where = f" WHERE {' AND '.join(conditions)}" if conditions else ""
        if not keys:
            return f"SELECT {', '.join(aggregates)} FROM {sql}{where}"
        form = self.random.choice(("text", "ordinal", "alias"))
        names = [f"g{i}" for i in range(len(keys))]
        shown = [f"{key} AS {name}" for key, name in zip(keys, names, strict=True)]
        by = {"text": keys, "alias": names, "ordinal": [str(i + 1) for i in range(len(keys))]}[form]
        tail = self.random.choice(("", "", " HAVING COUNT(*) > 3", " ORDER BY 1 DESC LIMIT 3", " ORDER BY g0 OFFSET 1"))
        return f"SELECT {', '.join((*shown, *aggregates))} FROM {sql}{where} GROUP BY {', '.join(by)}{tail}"

    # Keys and aggregates ----------------------------------------------------------------------------------------

    def _keys(self) -> list[str]:
        return list(dict.fromkeys(self.key() for _ in range(self.random.choice((0, 0, 1, 1, 1, 2, 2, 3)))))

    def key(self) -> str:
        makers: Sequence[Callable[[], str | None]] = (
            lambda: self._named(PUBLIC_KEYS),
            lambda: self._named(PUBLIC_KEYS),
            lambda: self._named(PUBLIC_KEYS),
            lambda: self._named(PRIVATE_KEYS),
            self._period,
            self._part,
            self._labels,
            lambda: f"({self.condition(1)})",
            lambda: self._integer("({} / 10)"),
            lambda: self._integer("({} % 7)"),
            lambda: self._integer("FLOOR({} / 10) * 10"),
            lambda: self._text_key(),
            lambda: self._integer("COALESCE({}, 0)"),
            lambda: self._integer("ROUND({} * 1.5, 1)"),
        )
        while True:
            made = self.random.choice(makers)()
            if made is not None:
                return made

    def _named(self, names: Sequence[str]) -> str | None:
        found = [p.sql for p in self.places if p.name in names]
        return self.random.choice(found) if found else None

    def _period(self) -> str | None:
        column = self._column("time")
        unit = self.random.choice(("year", "quarter", "month", "week", "day"))
        form = self.random.choice(("DATE_TRUNC('{1}', {0})", *TIME_FORMS))
        return None if column is None else form.format(column, unit)

    def _part(self) -> str | None:
        column = self._column("time")
        part = self.random.choice(("year", "quarter", "month", "dow", "hour", "isodow", "day"))
        return None if column is None else f"EXTRACT({part} FROM {column})"

    def _labels(self) -> str:
        other = self.random.choice((" ELSE 'other'", ""))
        return f"CASE WHEN {self.condition(1)} THEN 'a' WHEN {self.condition(1)} THEN 'b'{other} END"

    def _text_key(self) -> str | None:
        column = self._column("text")
        form = self.random.choice(TEXT_FORMS)
        other = self.random.choice([p.sql for p in self.places if p.family in ("text", "bool")] or ["'a'"])
        return None if column is None else form.format(column, other)

    def _integer(self, form: str) -> str | None:
        column = self._named(("age", "qty", "level", "i_line", "i_qty", "big"))
        return None if column is None else form.format(column)

    def aggregate(self, source: From) -> str:
        number = self.random.random()
        if number < 0.25:
            made = "COUNT(*)"
        elif number < 0.4:
            made = f"COUNT({self.random.choice(self.places).sql})"
        elif number < 0.5 and source.unit is not None:
            made = f"COUNT(DISTINCT {source.unit})"
        elif number < 0.54:
            made = f"COUNT(DISTINCT {self.random.choice(self.places).sql})"
        elif number < 0.62:
            made = f"{self.random.choice(('VAR_POP', 'VARIANCE', 'STDDEV_POP', 'STDDEV'))}({self.measured()})"
        elif number < 0.66:
            made = f"{self.random.choice(('COVAR_POP', 'CORR'))}({self.measured()}, {self.measured()})"
        elif number < 0.7:
            made = f"SUM(CASE WHEN {self.condition(1)} THEN 1 ELSE 0 END)"
        else:
            made = f"{self.random.choice(('SUM', 'SUM', 'AVG'))}({self.measured()})"
        return made if self.random.random() < 0.75 else f"{made} FILTER (WHERE {self.condition(1)})"

    def measured(self) -> str:
        """A number with derivable bounds, most of the time."""
        column = self._named(BOUNDED) or "1"
        other = self._named(BOUNDED) or "2"
        forms = (
            "{0}",
            "{0}",
            "{0}",
            "{0} * 2",
            "-{0}",
            "{0} + {1}",
            "{0} - {1}",
            "{0} * (1 - {1})",
            "ABS({0})",
            "{0} / 7",
            "{0} / 3.5",
            "CASE WHEN {2} THEN {0} ELSE 0 END",
            "CASE WHEN {2} THEN {0} ELSE {1} END",
            "COALESCE({0}, 1)",
            "ROUND({0}, 1)",
            "FLOOR({0})",
            "CAST({0} AS INTEGER)",
            "CAST({0} AS DOUBLE PRECISION)",
            "CAST({0} AS NUMERIC(12,2))",
            "LEAST(GREATEST({0} / NULLIF({1}, 0), 0), 50)",
            "NULLIF({0}, 0)",
            "TRUNC({0})",
            "LEAST({0}, {1})",
            "GREATEST({0}, {1}, 3)",
            "SIGN({0})",
            "{0} % 7",
            "CEIL({0} * 0.37)",
            "0.1 + 0.2 * {0}",
            "LEAST({3}, 1000)",
            "({4})::int",
            "{0} * {1} * {0}",
            "0 * {0}",
            "{0} - {0}",
            "5",
        )
        return self.random.choice(forms).format(column, other, self.condition(1), self.number(2), self.condition(1))

    # Expressions ------------------------------------------------------------------------------------------------

    def _column(self, family: Family) -> str | None:
        found = [p.sql for p in self.places if p.family == family]
        return self.random.choice(found) if found else None

    def number(self, depth: int) -> str:
        column = self._named(BOUNDED)
        if depth == 0 or column is None or self.random.random() < 0.3:
            return column or self.random.choice(("1", "-3", "2.5", "0"))
        a, b = self.number(depth - 1), self.number(depth - 1)
        time, text = self._column("time"), self._column("text")
        forms = [
            f"({a} + {b})",
            f"({a} - {b})",
            f"({a} * {b})",
            f"({a} / {b})",
            f"ABS({a})",
            f"(-{a})",
            f"ROUND({a}, 2)",
            f"FLOOR({a})",
            f"NULLIF({a}, {b})",
            f"COALESCE({a}, {b})",
            f"GREATEST({a}, {b})",
            f"CAST({a} AS BIGINT)",
            f"CAST({a} AS SMALLINT)",
            f"(CASE WHEN {self.condition(0)} THEN {a} END)",
        ]
        if time is not None:
            forms += [
                f"EXTRACT(epoch FROM {time})",
                f"EXTRACT(week FROM {time})",
                f"EXTRACT(doy FROM {time})",
                f"({time}::date - DATE '2020-01-01')",
                f"EXTRACT(day FROM {time} + INTERVAL '1 month 3 days')",
            ]
        if text is not None:
            forms += [f"LENGTH({text})", f"STRPOS({text}, 'o')"]
        return self.random.choice(forms)

    def condition(self, depth: int) -> str:
        if depth and self.random.random() < 0.4:
            a, b = self.condition(depth - 1), self.condition(depth - 1)
            return self.random.choice(
                (f"({a} AND {b})", f"({a} OR {b})", f"NOT ({a})", f"(({a}) IS TRUE)", f"(({a}) IS NOT FALSE)")
            )
        makers = (
            self._compared,
            self._compared,
            self._about_text,
            self._about_time,
            self._about_null,
            self._about_bool,
        )
        while True:
            made = self.random.choice(makers)(depth)
            if made is not None:
                return made

    def _compared(self, depth: int) -> str | None:
        a = self.number(depth)
        sign = self.random.choice(("=", "<>", "<", "<=", ">", ">="))
        forms = (
            f"{a} {sign} {self.random.choice(('3', '50', '0.5', '-2', '1e3', '12345678901234567890', '0.1'))}",
            f"{a} {sign} {self.number(depth)}",
            f"{a} BETWEEN 2 AND 40",
            f"{a} NOT BETWEEN -1 AND 1",
            f"{a} IN (1, 2, 3, 5)",
            f"{a} NOT IN (0, 2.5)",
            f"{a} IS DISTINCT FROM 3",
            f"{a} = ANY(ARRAY[1, 2, 50])",
        )
        return self.random.choice(forms)

    def _about_text(self, depth: int) -> str | None:
        column = self._column("text")
        if column is None:
            return None
        word, other = (w.replace("'", "''") for w in self.random.choices(WORDS, k=2))
        forms = (
            f"{column} = '{word}'",
            f"{column} IN ('{word}', '{other}', 'zoo')",
            f"{column} LIKE '{word}%'",
            f"{column} NOT LIKE '%o%'",
            f"{column} ILIKE '%OO%'",
            f"{column} > '{word}'",
            f"{column} <> '{word}'",
            f"COALESCE({column}, '') = ''",
            f"SUBSTRING({column}, 2, 1) = 'o'",
            f"LENGTH({column}) < 5",
            f"{column} IS NOT DISTINCT FROM '{word}'",
            f"LEFT({column}, 1) IN ('z', 'R')",
        )
        return self.random.choice(forms)

    def _about_time(self, depth: int) -> str | None:
        column = self._column("time")
        if column is None:
            return None
        day, other = self.random.choices(DAYS, k=2)
        forms = (
            f"{column} >= '{day}'",
            f"{column} BETWEEN '{min(day, other)}' AND '{max(day, other)}'",
            f"{column} < DATE '2020-03-01'",
            f"{column} + INTERVAL '3 months' > TIMESTAMP '2020-06-01 10:00:00'",
            f"EXTRACT(month FROM {column}) IN (1, 2)",
            f"DATE_TRUNC('month', {column}) = '2020-02-01'",
            f"{column}::date = DATE '2020-02-03'",
            f"{column} - INTERVAL '100 years' < '1920-06-01'",
        )
        return self.random.choice(forms)

    def _about_null(self, depth: int) -> str | None:
        return f"{self.random.choice(self.places).sql} {self.random.choice(('IS NULL', 'IS NOT NULL'))}"

    def _about_bool(self, depth: int) -> str | None:
        column = self._column("bool")
        return None if column is None else self.random.choice((column, f"NOT {column}", f"{column} IS NOT TRUE"))
