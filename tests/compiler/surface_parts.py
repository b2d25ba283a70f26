"""What statements of the whole surface are made of, beyond `statement_parts`: aggregates, buckets, relations."""

from __future__ import annotations

from statement_parts import From

NUMBERS = (
    "MIN({0})",
    "MAX({0})",
    "MEDIAN({0})",
    "PERCENTILE_CONT(0.9) WITHIN GROUP (ORDER BY {0} DESC)",
    "PERCENTILE_DISC(1) WITHIN GROUP (ORDER BY {0})",
    "QUANTILE_CONT({0}, 0.123)",
    "APPROX_QUANTILE({0}, 0.01)",
    "MODE({0})",
)
ANY = ("MODE() WITHIN GROUP (ORDER BY {0})", "PERCENTILE_DISC(0.3) WITHIN GROUP (ORDER BY {0})", "MAX({0})", "MIN({0})")
TIMES = (
    "MEDIAN({0})",
    "MIN({0})",
    "MAX({0})",
    "MODE({0})",
    "QUANTILE_DISC({0}, 0.7)",
    "MODE(DATE_TRUNC('month', {0}))",
)
MOMENTS = ("VAR_POP({0})", "VARIANCE({0})", "STDDEV_POP({0})", "STDDEV({0})", "AVG({0})", "COVAR_POP({0}, {1})",
           "COVAR_SAMP({0}, {1})", "CORR({0}, {1})")  # fmt: skip
BUCKETS = (
    "FLOOR({0} / 10) * 10",
    "WIDTH_BUCKET({0}, 0, 100, 5)",
    "LEAST({0}, 7)",
    "CEIL({0} / 25.0)",
    "ROUND({0} / 5) * 5",
    "GREATEST(LEAST({0}, 9), 2)",
    "({0} / 10)",
    "{0} % 4",
)
INTEGERS = ("age", "qty", "level", "i_line", "i_qty", "n")

LISTED = (("visits", "v", "shop"), ("visits", "v", "tag"), ("orders", "o", "o_status"), ("visits", "v", "qty"))

OUTER = (
    From("shops s LEFT JOIN visits v ON v.shop = s.shop", (("s", "shops"), ("v", "visits")), "v.uid"),
    From("visits v RIGHT JOIN shops s ON v.shop = s.shop AND v.qty > 0", (("s", "shops"), ("v", "visits")), "v.uid"),
)
"""Public rows kept: their groups are released whether or not anybody is in them."""

DERIVED_MORE: tuple[tuple[str, str | None, tuple[tuple[str, str], ...]], ...] = (
    ("(SELECT v.uid, v.tag AS t, COUNT(*) AS n, SUM({0}) AS s FROM visits v{1} GROUP BY v.uid, v.tag) AS x", "x.uid",
     (("t", "text"), ("n", "num"), ("s", "num"))),
    ("(SELECT y.uid, COUNT(*) AS n, MAX(y.s) AS s FROM (SELECT v.uid, v.shop, SUM({0}) AS s FROM visits v{1} "
     "GROUP BY v.uid, v.shop) AS y GROUP BY y.uid) AS x", "x.uid", (("n", "num"), ("s", "num"))),
    ("(SELECT p.uid, COUNT(v.tag) AS n, AVG(v.amount) AS s FROM people p LEFT JOIN visits v ON v.uid = p.uid "
     "GROUP BY p.uid HAVING COUNT(*) < 50) AS x", "x.uid", (("n", "num"), ("s", "num"))),
    ("(SELECT DISTINCT v.uid, v.shop FROM visits v{1}) AS x", "x.uid", (("shop", "text"),)),
)  # fmt: skip
UNIONS: tuple[tuple[str, str | None, tuple[tuple[str, str], ...]], ...] = (
    ("(SELECT v.uid, {0} AS s, v.tag AS t FROM visits v{1} UNION ALL SELECT p.uid, p.score, p.note FROM people p) AS x",
     "x.uid", (("s", "num"), ("t", "text"))),
    ("(SELECT v.uid, v.shop, v.qty AS n FROM visits v{1} UNION ALL SELECT o.o_uid, i.i_shop, i.i_qty FROM items i "
     "JOIN orders o ON o.o_id = i.i_order UNION ALL SELECT v.uid, v.shop, 2 FROM visits v) AS x", "x.uid",
     (("shop", "text"), ("n", "num"))),
    ("(SELECT v.uid, v.day AS d FROM visits v{1} UNION ALL SELECT o.o_uid, o.o_date FROM orders o "
     "UNION ALL SELECT p.uid, p.joined FROM people p WHERE p.active) AS x", "x.uid", (("d", "time"),)),
)  # fmt: skip
