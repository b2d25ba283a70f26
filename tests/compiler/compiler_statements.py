"""Random statements over the accepted surface: each `Statement` is text and the session's terms.

The grammar knows the types of the worlds' columns, so that most statements are accepted; those that are not are still
useful, since a refusal must be a `Rejected`, never a crash.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from decimal import Decimal
from random import Random

from statement_parts import (
    BOUNDED,
    DAYS,
    DERIVED,
    MEMBERS,
    PRIVATE_KEYS,
    PUBLIC_KEYS,
    SOURCES,
    TEXT_FORMS,
    TIME_FORMS,
    WORDS,
    Family,
    From,
    Place,
    places,
)

from dpsql.compiler import Terms
from dpsql.types import Parameters


@dataclass(frozen=True, slots=True)
class Statement:
    text: str
    terms: Terms
    parameters: Parameters = ()


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
        self.places = places("v", "visits")
        where = f" WHERE {self.condition(1)}" if self.random.random() < 0.4 else ""
        sql = text.format(self._named(BOUNDED), where)
        self.places = [Place(f"x.{name}", name, family) for name, family in columns]
        if sql.startswith("people"):
            self.places += places("p", "people")
        return Statement(self._assembled(sql, From(sql, (), unit), self._keys()), self._terms())

    def _terms(self) -> Terms:
        mechanism = self.random.choice(("auto", "auto", "laplace"))
        groups = self.random.choice((None, None, None, 1, 2))
        epsilon = self.random.choice((Decimal("0.1"), Decimal(1), Decimal("2.5")))
        rows = self.random.choice((None, None, 1, 2))
        return Terms(epsilon, Decimal("1e-7"), mechanism, groups, rows)  # type: ignore[arg-type]

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
