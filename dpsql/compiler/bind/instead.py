"""What to write instead of a function that does not exist over private rows. Words only; decides nothing."""

from __future__ import annotations

from sqlglot import exp

TOTAL = "Only functions that cannot fail on any row may touch private data; apply others to the aggregates."
_DAYS = "Write CAST(a AS date) - CAST(b AS date) for days, or EXTRACT(EPOCH FROM a - b) for seconds."
_WEEKDAY = "Write EXTRACT(dow FROM x), 0 for Sunday to 6, or EXTRACT(isodow FROM x), 1 for Monday to 7."
_CYCLE = "Bring x into CASE WHEN ... or buckets, such as FLOOR(x / 10) * 10."
_BITS = "Remainders tell bits: x % 2, FLOOR(x / 2) % 2, ..."

INSTEAD: dict[type[exp.Expr], str] = {
    exp.DateDiff: _DAYS,
    exp.Overlaps: "Compare the ends: a_start < b_end AND b_start < a_end.",
    exp.Rand: "Chance cannot choose rows here. Ask of all rows: the answer's noise is known.",
    exp.Tuple: "Compare the parts one by one, or write COUNT(DISTINCT (a, b)).",
    exp.DayOfWeek: _WEEKDAY,
    exp.Cbrt: "Write EXP(LN(x) / 3) of positive numbers.",
    exp.Sin: _CYCLE,
    exp.Cos: _CYCLE,
    exp.Tan: _CYCLE,
    exp.BitwiseAnd: _BITS,
    exp.BitwiseOr: _BITS,
    exp.Format: "Write it with ||: a || '-' || b.",
    exp.Ascii: "Write left(x, 1), or compare: x >= 'a' AND x < 'b'.",
    exp.Split: "Write split_part(x, ',', 1).",
    exp.Array: 'Arrays have no form over private rows. Names are quoted with double quotes: "name".',
    exp.Unnest: "Arrays have no form over private rows; a table with one row for each element has.",
    exp.Bracket: "Arrays and JSON have no form over private rows; declare a column of its own.",
    exp.JSONExtract: "JSON has no form over private rows; declare a column of its own.",
    exp.JSONExtractScalar: "JSON has no form over private rows; declare a column of its own.",
    exp.RegexpExtract: "Write split_part(x, '-', 1) or substring(x, 1, 3).",
    exp.Soundex: "Compare lower(left(x, 3)), or LIKE.",
}
INSTEAD_OF = {
    "age": _DAYS,
    "make_date": "Group by the year, month and day themselves, or declare a date column.",
    "date_format": "Write to_char(x, 'YYYY-MM').",
    "weekday": _WEEKDAY,
    "day_of_week": _WEEKDAY,
    "regexp_matches": "Write x ~ 'pattern'.",
    "regexp_match": "Write x ~ 'pattern'.",
    "octet_length": "Write LENGTH(x), of characters.",
    "bit_length": "Write LENGTH(x), of characters.",
    "anon_quantiles": "Write one percentile_cont(0.5) WITHIN GROUP (ORDER BY x) for each.",
    "histogram": "Group by buckets: SELECT WIDTH_BUCKET(x, 0, 100, 10), COUNT(*) FROM ... GROUP BY 1.",
    "geomean": "Write EXP(AVG(LN(x))), of numbers with a lower bound above 0.",
    "geometric_mean": "Write EXP(AVG(LN(x))), of numbers with a lower bound above 0.",
    "product": "Write EXP(SUM(LN(x))), of numbers with a lower bound above 0.",
    "quote_literal": "Quote released keys: SELECT quote_literal(k) FROM (SELECT x AS k FROM ... GROUP BY 1) AS q.",
    "private_count": "Write COUNT(*): every aggregate over private rows is private here.",
    "private_sum": "Write SUM(x): every aggregate over private rows is private here.",
}
