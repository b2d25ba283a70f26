"""Random statements of the whole surface (DESIGN.md, section 4): `KINDS` names the shapes and says how often they come.

`Surface(seed).of(kind)` writes one statement of a kind. Expressions, conditions and plain FROM clauses are those of
`compiler_statements.Writer`; here stands what is built from them. A statement may still be refused.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from compiler_statements import Statement, Writer
from statement_parts import (
    BEGINNINGS,
    BOUNDED,
    DERIVED,
    MEMBERS,
    PRIVATE_KEYS,
    PUBLIC_KEYS,
    SOURCES,
    From,
    Place,
    places,
)
from surface_parts import ANY, BUCKETS, DERIVED_MORE, INTEGERS, LISTED, MOMENTS, NUMBERS, OUTER, TIMES, UNIONS

from dpsql.types import DATE, FLOAT8, INT8, TEXT, Parameters


class Surface(Writer):
    """Writes one statement of a kind at a time. `made`: the families that its aggregates come from."""

    made: tuple[str, ...] = ()
    parameters: Parameters = ()

    def of(self, kind: str) -> Statement:
        self.made, self.parameters = _ALL, ()
        text = KINDS[kind].write(self)
        return Statement(text, self._terms(), self.parameters)

    # Parts ------------------------------------------------------------------------------------------------------

    def aggregate(self, source: From) -> str:
        made = self._aggregate(self.random.choice(self.made), source)
        return made if self.random.random() < 0.8 else f"{made} FILTER (WHERE {self.condition(1)})"

    def _aggregate(self, family: str, source: From) -> str:
        place = self.random.choice(self.places).sql
        match family:
            case "choice":
                return self._choice()
            case "moment":
                return self.random.choice(MOMENTS).format(self.measured(), self.measured())
            case "distinct":
                return f"COUNT(DISTINCT {place})"
            case "units":
                return f"COUNT(DISTINCT {source.unit})" if source.unit is not None else "COUNT(*)"
            case "cases":
                return f"SUM(CASE WHEN {self.condition(1)} THEN {self.measured()} ELSE 0 END)"
            case "values":
                return self.random.choice((f"COUNT({place})", f"SUM({self.measured()})"))
            case "sum":
                return self.random.choice((f"SUM({self.measured()})", f"AVG({self.measured()})", "COUNT(*)"))
            case _:
                return "COUNT(*)"

    def _choice(self) -> str:
        time, number = self._column("time"), self.random.random()
        if number < 0.25 and time is not None:
            return self.random.choice(TIMES).format(time)
        if number < 0.5:
            named = self._named((*PUBLIC_KEYS, *PRIVATE_KEYS)) or "'a'"
            return self.random.choice(ANY).format(self.random.choice((named, named, f"({self.condition(1)})")))
        return self.random.choice(NUMBERS).format(self.measured())

    def one_key(self) -> str:
        """A key, more often a cheap one; now and then one whose values are another's, each changed."""
        whole, time = self._named(INTEGERS), self._column("time")
        if self.random.random() < 0.1 and whole is not None:
            return self.random.choice(("FLOOR({} / 10) * 10", "ROUND({} / 5) * 5 + 1", "CAST({} AS TEXT)")).format(
                whole
            )
        if self.random.random() < 0.05 and time is not None:
            return self.random.choice(("CAST(DATE_TRUNC('year', {}) AS DATE)", "EXTRACT(MONTH FROM {}) * 10")).format(
                time
            )
        names = PUBLIC_KEYS if self.random.random() < 0.6 else PRIVATE_KEYS
        return self._named(names) or self.key()

    def some_keys(self, least: int, most: int) -> list[str]:
        return list(dict.fromkeys(self.one_key() for _ in range(self.random.randint(least, most))))

    def pick(self, wanted: Callable[[From], bool]) -> From:
        source = self.random.choice([s for s in (*SOURCES, *OUTER) if wanted(s)])
        self.places = source.places
        return From(source.sql.replace(" WHERE_HERE", ""), source.tables, source.unit, source.where)

    def filtered(self, source: From, share: float = 0.5) -> str:
        conditions = [c for c in (source.where, self.condition(1) if self.random.random() < share else "") if c]
        return f" WHERE {' AND '.join(conditions)}" if conditions else ""

    def grouped(self, source: From, keys: list[str], most: int = 2) -> str:
        """SELECT keys, aggregates FROM source GROUP BY keys, plainly."""
        shown = [*keys, *(self.aggregate(source) for _ in range(self.random.randint(1, most)))]
        by = f" GROUP BY {', '.join(keys)}" if keys else ""
        return f"SELECT {', '.join(shown)} FROM {source.sql}{self.filtered(source)}{by}"

    # Kinds ------------------------------------------------------------------------------------------------------

    def from_tables(self, wanted: Callable[[From], bool], *families: str) -> str:
        self.made = families or _ALL
        source = self.pick(wanted)
        return self._assembled(source.sql, source, self._keys())

    def outer(self) -> str:
        source = self.pick(lambda s: s in OUTER)
        kept, self.places = source.places[:2], source.places[4:]
        forms = ("COUNT({0})", "SUM({1})", "AVG({1})", "COUNT(DISTINCT {0})", "COUNT(DISTINCT v.uid)")
        column, number = self.random.choice(self.places).sql, self._named(BOUNDED)
        shown = [form.format(column, number) for form in self.random.sample(forms, 2)]
        key = self.random.choice(kept).sql
        return f"SELECT {key}, {', '.join(shown)} FROM {source.sql} GROUP BY {key}"

    def rollup(self) -> str:
        self.made = ("count", "sum", "values")
        source = self.pick(lambda s: len(s.tables) < 3 and s not in OUTER)
        keys = self.some_keys(2, 3)
        first, rest = keys[0], ", ".join(keys)
        form = self.random.choice((f"ROLLUP ({rest})", f"CUBE ({rest})", f"GROUPING SETS (({rest}), ({first}), ())",
                                   f"{first}, ROLLUP ({rest})"))  # fmt: skip
        shown = [*keys, self.aggregate(source), self.aggregate(source)]
        return f"SELECT {', '.join(shown)} FROM {source.sql}{self.filtered(source)} GROUP BY {form}"

    def derived(self, tables: tuple[tuple[str, str | None, tuple[tuple[str, str], ...]], ...]) -> str:
        text, unit, columns = self.random.choice(tables)
        self.places = places("v", "visits")
        where = f" WHERE {self.condition(1)}" if self.random.random() < 0.4 else ""
        sql = text.format(self._named(BOUNDED), where)
        self.places = [Place(f"x.{name}", name, family) for name, family in columns]  # type: ignore[arg-type]
        return self._assembled(sql, From(sql, (), unit), self._keys())

    def distinct_keys(self) -> str:
        source = self.pick(lambda s: s not in OUTER)
        private = self._named(PRIVATE_KEYS) or self.key()
        keys = list(dict.fromkeys((private, *self.some_keys(0, 2))))
        return f"SELECT DISTINCT {', '.join(keys)} FROM {source.sql}{self.filtered(source)}"

    def top_list(self) -> str:
        """The most frequent values, released first and joined back."""
        table, alias, key = self.random.choice(LISTED)
        limit = self.random.choice(("", " ORDER BY c DESC LIMIT 3", " ORDER BY c LIMIT 20"))
        inner = f"SELECT {key} AS k, COUNT(*) AS c FROM {table} GROUP BY {key}{limit}"
        join = self.random.choice(("JOIN", "JOIN", "LEFT JOIN"))
        sql = f"{table} {alias} {join} ({inner}) AS t ON t.k = {alias}.{key}"
        self.places = places(alias, table)
        unit = f"{alias}.o_uid" if table == "orders" else f"{alias}.uid"
        return self.grouped(From(sql, ((alias, table),), unit), self.random.choice((["t.k"], ["t.k"], ["t.c"], [])))

    def per_period(self) -> str:
        inner = "SELECT DATE_TRUNC('month', o_date) AS m, COUNT(*) AS n FROM orders GROUP BY 1 LIMIT 5"
        sql = f"orders o JOIN ({inner}) AS r ON r.m = DATE_TRUNC('month', o.o_date)"
        self.places = places("o", "orders")
        return self.grouped(
            From(sql, (("o", "orders"),), "o.o_uid"), self.random.choice((["r.m"], ["r.n"], ["o.o_status"]))
        )

    def scalar_inside(self) -> str:
        source = self.pick(lambda s: len(s.tables) == 1)
        column, (_, table) = self._named(BOUNDED) or "1", source.tables[0]
        bare = column.rpartition(".")[2]
        inner = self.random.choice((f"SELECT AVG({bare}) FROM {table}", f"SELECT COUNT(*) / 100.0 FROM {table}",
                                    f"SELECT MEDIAN({bare}) FROM {table}", "SELECT MAX(rank) FROM shops"))  # fmt: skip
        test = f"{column} {self.random.choice('<>')} ({inner})"
        if self.random.random() < 0.5:
            where = " AND ".join(c for c in (source.where, test) if c)
            return self.grouped(From(source.sql, source.tables, source.unit, where), self.some_keys(0, 2))
        counted = f"SUM(CASE WHEN {test} THEN 1 ELSE 0 END)"
        return f"SELECT {counted}, {self.aggregate(source)} FROM {source.sql}{self.filtered(source)}"

    def combined(self) -> str:
        """Several releases, combined in public."""
        self.made = ("count", "sum", "choice", "distinct")
        source = self.pick(lambda s: len(s.tables) == 1)
        key, tables = self._named(PUBLIC_KEYS) or self.key(), source.sql
        a, b = self.aggregate(source), self.aggregate(source)
        where = self.filtered(source, 1.0)
        if self.random.random() < 0.5:
            return f"SELECT (SELECT {a} FROM {tables}) , (SELECT {b} FROM {tables}{where})"
        left = f"SELECT {key} AS k, {a} AS n FROM {tables} GROUP BY {key}"
        right = f"SELECT {key} AS k, {b} AS n FROM {tables}{where} GROUP BY {key}"
        return f"WITH l AS ({left}), r AS ({right}) SELECT l.k, l.n, r.n FROM l JOIN r ON l.k = r.k"

    def with_rows(self) -> str:
        """Private rows under a name, read once or twice."""
        source = self.pick(lambda s: len(s.tables) == 1)
        units = [p for p in self.places if p.sql == source.unit and self.random.random() < 0.5]
        self.places = list({p.sql: p for p in (*units, *self.random.sample(self.places[1:], 3))}.values())
        shown = ", ".join(f"{p.sql} AS {p.name}" for p in self.places)
        inner = f"SELECT {shown} FROM {source.sql}{self.filtered(source, 0.8)}"
        self.places = [Place(f"w.{p.name}", p.name, p.family) for p in self.places]
        unit = f"w.{units[0].name}" if units else None
        outer = self.grouped(From("w", (), unit), self.some_keys(0, 2))
        return f"WITH w AS ({inner}) {outer}"

    def member(self) -> str:
        alias, text = self.random.choice(MEMBERS)
        source = self.pick(lambda s: any(a == alias for a, _ in s.tables) and s not in OUTER)
        where = " AND ".join(c for c in (source.where, text) if c)
        return self.grouped(From(source.sql, source.tables, source.unit, where), self.some_keys(0, 2))

    def bucket(self) -> str:
        source = self.pick(lambda s: s not in OUTER and len(s.tables) < 3)
        column = self._named(INTEGERS if self.random.random() < 0.6 else BOUNDED) or "1"
        period = self._period() if self.random.random() < 0.3 else self._part() if self.random.random() < 0.2 else None
        key = period or self.random.choice(BUCKETS).format(column)
        return self.grouped(source, [key, *self.some_keys(0, 1)])

    def labels(self) -> str:
        source = self.pick(lambda s: s not in OUTER and len(s.tables) < 3)
        return self.grouped(source, [self._labels(), *self.some_keys(0, 1)])

    def windowed(self) -> str:
        self.made = ("count", "sum", "units")
        source = self.pick(lambda s: len(s.tables) < 3 and s not in OUTER)
        keys, value = self.some_keys(1, 2), self.aggregate(source)
        over = self.random.choice((f"RANK() OVER (ORDER BY {value} DESC)", f"SUM({value}) OVER ()",
                                   f"ROW_NUMBER() OVER (PARTITION BY {keys[0]} ORDER BY {value})"))  # fmt: skip
        text = f"SELECT {', '.join(keys)}, {value}, {over} AS o FROM {source.sql}{self.filtered(source)}"
        tail = self.random.choice(("", "", f" QUALIFY {over} < 3", f" HAVING {value} > 5", " ORDER BY 1 LIMIT 2"))
        return f"{text} GROUP BY {', '.join(keys)}{tail}"

    def all_keys(self) -> str:
        source = self.pick(lambda s: s not in OUTER and len(s.tables) < 3)
        return f"SELECT {', '.join([*self.some_keys(1, 2), self.aggregate(source)])} FROM {source.sql} GROUP BY ALL"

    def beginnings(self) -> str:
        source = self.pick(lambda s: s not in OUTER and len(s.tables) < 3 and s.tables[0][1] in ("visits", "orders"))
        key = self.random.choice(BEGINNINGS).format(self._column("time"))
        return self.grouped(source, [key, *self.some_keys(0, 1)])

    def first_known(self) -> str:
        """COALESCE of bounded whole numbers, filtered or not."""
        source = self.pick(lambda s: s not in OUTER and len(s.tables) < 3)
        a, b = self._named(INTEGERS) or "1", self._named(INTEGERS) or "2"
        key = self.random.choice(("COALESCE({0}, 0)", "COALESCE({0}, {1}, -7)", "COALESCE({0} * 2, 300)")).format(a, b)
        where = " AND ".join(c for c in (source.where, self.random.choice(("", f"{key} > 1", f"{a} < 9"))) if c)
        return self.grouped(From(source.sql, source.tables, source.unit, where), [key])

    def intervals(self) -> str:
        """Ends of intervals, of quantiles and of what follows from them, and of sums."""
        source = self.pick(lambda s: s not in OUTER and len(s.tables) < 3)
        of = self.random.choice(
            (
                "MEDIAN({0})",
                "PERCENTILE_CONT(0.95) WITHIN GROUP (ORDER BY {0})",
                "PERCENTILE_DISC(0) WITHIN GROUP (ORDER BY {0})",
                "FLOOR(3 - QUANTILE_CONT({0}, 0.3) / 4)",
                "SUM({0}) / COUNT(*)",
                "CORR({0}, {1})",
            )
        ).format(self._named(BOUNDED), self._named(BOUNDED))
        shown = [of, f"dp_interval_low({of})", f"dp_interval_high({of})"]
        keys = self.some_keys(0, 1)
        by = f" GROUP BY {', '.join(keys)}" if keys else ""
        return f"SELECT {', '.join([*keys, *shown])} FROM {source.sql}{self.filtered(source)}{by}"

    def pairs(self) -> str:
        """Statistics of pairs that may share their columns' moments: comparisons say that neither is NULL."""
        source = self.pick(lambda s: s not in OUTER and len(s.tables) < 3)
        a, b = self._named(BOUNDED) or "1", self._named(BOUNDED) or "1"
        forms = [form.format(a, b) for form in (*MOMENTS, "SUM({0})", "AVG({1})", "COUNT({1})", "COUNT(*)")]
        keys, shown = self.some_keys(0, 1), self.random.sample(forms, 4)
        where = " AND ".join(c for c in (source.where, f"{a} > -1000 AND {b} < 1000000") if c)
        by = f" GROUP BY {', '.join(keys)}" if keys else ""
        return f"SELECT {', '.join([*keys, *shown])} FROM {source.sql} WHERE {where}{by}"

    def series(self) -> str:
        source = self.pick(lambda s: len(s.tables) == 1)
        whole, time = self._named(INTEGERS), self._column("time")
        days = "generate_series(DATE '2020-01-20', DATE '2020-02-20', INTERVAL '10 days') AS g ON g = {0}"
        join = days.format(time) if whole is None else f"generate_series(-4, 9, 2) AS g ON g = {whole}"
        made = From(f"{source.sql} JOIN {join}", source.tables, source.unit, source.where)
        return self.grouped(made, self.random.choice((["g"], [], self.some_keys(1, 1))))

    def with_parameters(self) -> str:
        source = self.pick(lambda s: s not in OUTER)
        self.parameters = ((INT8, 3), (FLOAT8, 40.5), (TEXT, "zoo"), (DATE, None))
        column, text = self._named(BOUNDED) or "1", self._column("text")
        tests = [f"{column} > $1", f"{column} BETWEEN $1 AND $2", *([f"{text} <> $3", f"{text} = $3"] if text else [])]
        where = " AND ".join(c for c in (source.where, self.random.choice(tests)) if c)
        made = f"SUM(LEAST({column}, $2))" if self.random.random() < 0.5 else self.aggregate(source)
        keys = self.some_keys(0, 1)
        by = f" GROUP BY {', '.join(keys)}" if keys else ""
        return f"SELECT {', '.join([*keys, made])} FROM {source.sql} WHERE {where}{by}"


_ALL = ("count", "count", "values", "units", "sum", "sum", "cases", "moment", "distinct", "choice", "choice")


@dataclass(frozen=True, slots=True)
class Kind:
    """A shape. `weight`: how many of one round are of it; `rows`: it exists where each row is a unit of its own."""

    write: Callable[[Surface], str]
    weight: int = 1
    rows: bool = True


def _single(source: From) -> bool:
    return len(source.tables) == 1


def _public(source: From) -> bool:
    return source not in OUTER and any(table in ("shops", "promo") for _, table in source.tables)


def _private(source: From) -> bool:
    return len(source.tables) > 1 and not any(table in ("shops", "promo") for _, table in source.tables)


def _kept(source: From) -> bool:
    return "LEFT JOIN" in source.sql or "RIGHT JOIN" in source.sql


KINDS: Mapping[str, Kind] = {
    "one table": Kind(lambda w: w.from_tables(_single), 2),
    "private join": Kind(lambda w: w.from_tables(lambda s: _private(s) and not _kept(s)), 2, rows=False),
    "left join": Kind(lambda w: w.from_tables(lambda s: _private(s) and _kept(s)), rows=False),
    "public join": Kind(lambda w: w.from_tables(_public), 2),
    "public kept": Kind(lambda w: w.outer()),
    "path": Kind(lambda w: w.from_tables(lambda s: ("i", "items") in s.tables and not s.unit), rows=False),
    "choices": Kind(lambda w: w.from_tables(lambda s: s not in OUTER, "choice"), 2),
    "moments": Kind(lambda w: w.from_tables(lambda s: s not in OUTER, "moment"), 2),
    "distinct values": Kind(lambda w: w.from_tables(lambda s: s not in OUTER, "distinct", "distinct", "count"), 2),
    "rollup": Kind(lambda w: w.rollup(), 2),
    "two levels": Kind(lambda w: w.derived((*DERIVED[:2], *DERIVED[3:], *DERIVED_MORE)), 3, rows=False),
    "union all": Kind(lambda w: w.derived(UNIONS), 2, rows=False),
    "distinct keys": Kind(lambda w: w.distinct_keys()),
    "top list": Kind(lambda w: w.top_list()),
    "per period": Kind(lambda w: w.per_period()),
    "scalar inside": Kind(lambda w: w.scalar_inside(), 2),
    "combined": Kind(lambda w: w.combined()),
    "with": Kind(lambda w: w.with_rows()),
    "membership": Kind(lambda w: w.member(), 3, rows=False),
    "bucket": Kind(lambda w: w.bucket(), 2),
    "labels": Kind(lambda w: w.labels()),
    "windows": Kind(lambda w: w.windowed()),
    "all keys": Kind(lambda w: w.all_keys()),
    "parameters": Kind(lambda w: w.with_parameters()),
    "beginnings": Kind(lambda w: w.beginnings()),
    "first known": Kind(lambda w: w.first_known()),
    "intervals": Kind(lambda w: w.intervals()),
    "pairs": Kind(lambda w: w.pairs()),
    "series": Kind(lambda w: w.series()),
}


def round_of(*, rows: bool) -> list[str]:
    """One round: every kind as often as its weight says."""
    return [name for name, kind in KINDS.items() if kind.rows or not rows for _ in range(kind.weight)]
