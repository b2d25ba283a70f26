"""Mutants of the histograms' SQL, each with the named statement that must notice."""

from __future__ import annotations

from histogram_replay import Mutation


def _without_factor(sql: str) -> str:
    return sql.replace("WHEN x > ", "WHEN FALSE AND x > ")


def _l2_factor(sql: str) -> str:
    """Scaled by the L2 norm of the counts, which one unit's many bins make far smaller."""
    return sql.replace("SUM(CASE WHEN n > 1099511627776 THEN 1099511627776 ELSE n END)", "SQRT(SUM(n * n))")


def _factor_of_everyone(sql: str) -> str:
    """Norms over all units' rows."""
    norms = "(SELECT u, SUM(CASE WHEN n > 1099511627776 THEN 1099511627776 ELSE n END) AS x FROM p GROUP BY u)"
    assert norms in sql
    return sql.replace(norms, "(SELECT DISTINCT u, (SELECT SUM(n) FROM p) AS x FROM p)")


def _factor_of_each_group(sql: str) -> str:
    """The bound held in each bin instead of over all of them."""
    return sql.replace("CAST(x AS", "CAST(n AS").replace("WHEN x >", "WHEN n >")


def _rows_of_nobody(sql: str) -> str:
    return (
        sql.replace('"uid" IS NOT NULL', "TRUE")
        .replace('"t0_uid" IS NOT NULL', "TRUE")
        .replace("USING (u)", "ON p.u IS NOT DISTINCT FROM w.u")
    )


def _not_clamped(sql: str) -> str:
    return sql.replace(" >= ", " >= 100 * ").replace(" <= ", " <= -100 + 0 * ")


MUTATIONS: dict[str, tuple[str, Mutation]] = {
    "no factor": ("public key", _without_factor),
    "no factor, one group": ("one group", _without_factor),
    "l2 factor": ("many keys", _l2_factor),
    "factor of everyone's rows": ("public key", _factor_of_everyone),
    "factor of each bin": ("many keys", _factor_of_each_group),
    "rows of nobody": ("public key", _rows_of_nobody),
    "values not clamped": ("one group", _not_clamped),
}
