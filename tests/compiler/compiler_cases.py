"""Named statements for the replay, each aimed at one part of the argument: the mutants are killed by name."""

from __future__ import annotations

from decimal import Decimal

from compiler_statements import Statement

from dpsql.compiler import Terms

TERMS = Terms(Decimal(1), Decimal("1e-7"))
LAPLACE = Terms(Decimal(1), Decimal("1e-7"), "laplace")

TEXTS: dict[str, str] = {
    "count": "SELECT COUNT(*) FROM visits",
    "count by public key": "SELECT shop, COUNT(*) FROM visits GROUP BY shop",
    "count by private key": "SELECT tag, COUNT(*) FROM visits GROUP BY tag",
    "count of values": "SELECT shop, COUNT(amount) FROM visits GROUP BY shop",
    "count with filter": "SELECT shop, COUNT(*) FILTER (WHERE amount > 100) FROM visits GROUP BY shop",
    "sum": "SELECT SUM(amount) FROM visits",
    "sum by public key": "SELECT shop, SUM(amount), SUM(big), SUM(price) FROM visits GROUP BY shop",
    "sum by private key": "SELECT tag, SUM(qty) FROM visits GROUP BY tag",
    "average": "SELECT AVG(price), AVG(amount) FROM visits",
    "average by public key": "SELECT shop, AVG(price), AVG(qty), AVG(amount) FROM visits GROUP BY shop",
    "average by private key": "SELECT tag, AVG(price) FROM visits GROUP BY tag",
    "units": "SELECT COUNT(DISTINCT uid) FROM visits",
    "units by key": "SELECT tag, COUNT(DISTINCT uid) FROM visits GROUP BY tag",
    "many keys": "SELECT tag, shop, day FROM visits GROUP BY tag, shop, day",
    "one row a unit": "SELECT city, COUNT(*), SUM(age) FROM people GROUP BY city",
    "one row a unit, private key": "SELECT note, COUNT(*) FROM people GROUP BY note",
    "one row a unit, finest key": "SELECT salary, COUNT(*) FROM people GROUP BY salary",
    "join that one unit has rows for": "SELECT COUNT(*) FROM people p, visits v WHERE p.uid = v.uid AND tag = 'only 1'",
    "join on the unit": "SELECT p.city, COUNT(*), SUM(v.amount) FROM people p JOIN visits v USING (uid) GROUP BY 1",
    "left join on the unit": "SELECT shop, COUNT(age), SUM(age) FROM visits LEFT JOIN people USING (uid) GROUP BY 1",
    "join along the path": "SELECT o.o_status, SUM(i.i_qty) FROM orders o, items i WHERE o.o_id = i.i_order GROUP BY 1",
    "path not joined": "SELECT i_shop, COUNT(*), SUM(i_price * (1 - i_disc)) FROM items GROUP BY i_shop",
    "shared by public key": "SELECT shop, COUNT(*), COUNT(qty), SUM(qty), AVG(qty), SUM(price), COUNT(price), "
    "STDDEV(price) FROM visits WHERE qty >= -100 GROUP BY shop",
    "shared by private key": "SELECT tag, COUNT(*), SUM(qty), AVG(qty), SUM(price) FILTER (WHERE qty > 1),"
    " AVG(price) FILTER (WHERE qty > 1) FROM visits WHERE qty IN (0, 1, 2, 3, 5, 10) GROUP BY tag",
    "shared": "SELECT COUNT(*), SUM(price), AVG(price), SUM(qty), VAR_POP(qty) FROM visits WHERE price > 1",
    "shared with nothing to clip": "SELECT city, COUNT(age), SUM(age), COUNT(*), SUM(1) FROM people GROUP BY city",
    "variance by public key": "SELECT shop, VAR_POP(price), STDDEV(amount) FROM visits GROUP BY shop",
    "covariance by public key": "SELECT shop, COVAR_POP(price, amount), CORR(qty, price) FROM visits GROUP BY shop",
    "moments of pairs": "SELECT shop, COUNT(*), AVG(qty), SUM(price), CORR(qty, price) FROM visits "
    "WHERE qty IS NOT NULL AND price < 1e9 GROUP BY shop",
    "variance": "SELECT VARIANCE(amount), CORR(amount, price) FROM visits",
    "distinct values": "SELECT COUNT(DISTINCT tag) FROM visits",
    "distinct values by public key": "SELECT shop, COUNT(DISTINCT tag), COUNT(DISTINCT amount) FROM visits GROUP BY 1",
    "distinct values by private key": "SELECT tag, COUNT(DISTINCT day), COUNT(*) FROM visits GROUP BY tag",
    "sum of sums": "SELECT COUNT(*), SUM(s), AVG(n) FROM "
    "(SELECT uid, SUM(amount) s, COUNT(*) n FROM visits GROUP BY uid) x",
    "sum of sums, unit in many rows": "SELECT d, COUNT(*), SUM(n) FROM "
    "(SELECT uid, day AS d, COUNT(*) AS n FROM visits GROUP BY uid, day HAVING COUNT(*) > 0) x GROUP BY d",
    "counts as keys": "SELECT n, COUNT(*) FROM (SELECT uid, COUNT(*) n FROM visits GROUP BY uid) x GROUP BY n",
    "semi-join": "SELECT shop, COUNT(*) FROM visits v WHERE EXISTS "
    "(SELECT 1 FROM visits w WHERE w.uid = v.uid AND w.tag = 'only 1') GROUP BY shop",
    "anti-join": "SELECT shop, COUNT(*) FROM visits v WHERE v.uid NOT IN "
    "(SELECT uid FROM people WHERE age > 30) GROUP BY shop",
    "union": "SELECT t, COUNT(*) FROM "
    "(SELECT uid, tag t FROM visits UNION ALL SELECT uid, note FROM people) x GROUP BY t",
    "union by unit": "SELECT COUNT(*), SUM(n), AVG(s) FROM (SELECT uid, COUNT(*) AS n, SUM(a) AS s FROM "
    "(SELECT uid, amount AS a FROM visits UNION ALL SELECT uid, score FROM people) u GROUP BY uid) q",
    "union joined": "SELECT city, COUNT(*), SUM(a) FROM (SELECT uid, amount AS a FROM visits UNION ALL "
    "SELECT o_uid, o_total FROM orders) u JOIN people USING (uid) GROUP BY city",
    "rows in a union": "SELECT shop, COUNT(*) FROM visits v WHERE EXISTS (SELECT 1 FROM (SELECT uid, shop FROM visits "
    "WHERE tag = 'only 1' UNION ALL SELECT uid, tag FROM visits WHERE tag = 'only 1') u WHERE u.uid = v.uid LIMIT 1) "
    "GROUP BY shop",
    "union of a table with itself": "SELECT COUNT(*), SUM(a) FROM (SELECT uid, amount AS a FROM visits UNION ALL "
    "SELECT uid, qty FROM visits) u",
    "not in, three values": "SELECT shop, COUNT(*), COUNT(tag IN (SELECT w.tag FROM visits w WHERE w.uid = v.uid "
    "AND w.qty > 2)) FROM visits v WHERE NOT (NOT (1 NOT IN (SELECT 1 FROM visits w WHERE w.uid = v.uid "
    "AND tag = 'only 1')) OR (v.uid IN (SELECT o_uid FROM orders)) IS NULL) GROUP BY shop",
    "public rows of the row outside": "SELECT shop, COUNT(*), SUM(amount) FROM visits v WHERE EXISTS "
    "(SELECT 1 FROM promo p WHERE p.shop = v.shop AND p.pct < v.amount) OR (qty IN (SELECT rank FROM shops)) IS NULL "
    "GROUP BY shop",
    "keys that depend on each other": "SELECT v.shop, s.region, s.rank, to_char(day, 'Mon'), COUNT(*), SUM(amount), "
    "AVG(qty), COUNT(DISTINCT tag), COUNT(DISTINCT v.uid), MAX(s.region) FROM visits v JOIN shops s ON s.shop = v.shop "
    "GROUP BY 1, 2, 3, 4",
    "parts of one day": "SELECT EXTRACT(day FROM day), day, qty / 3, COUNT(*), SUM(price) FROM visits GROUP BY 1, 2, 3",
    "rows multiplied": "SELECT gift, COUNT(*), SUM(amount) FROM visits JOIN promo USING (shop) GROUP BY 1",
    "rows multiplied, no key": "SELECT COUNT(*), SUM(p.age) FROM people p CROSS JOIN shops s",
}

WRITTEN: dict[str, str] = {
    "formatted dates": "SELECT to_char(day, 'YYYY-MM'), to_char(at, 'FMDay HH24'), COUNT(*) FROM visits GROUP BY 1, 2",
    "texts joined": "SELECT shop || '-' || tag, COUNT(*), SUM(amount) FROM visits GROUP BY 1",
    "texts joined, NULL left out": "SELECT concat_ws('/', shop, tag, qty), COUNT(*) FROM visits GROUP BY 1",
    "texts of public values": "SELECT city || ':' || level::text, COUNT(*) FROM people GROUP BY 1",
    "numbers as text": "SELECT qty::text, big::text, price::text, day::text, COUNT(*) FROM visits GROUP BY 1, 2, 3, 4",
    "parts of texts": "SELECT split_part(tag, ' ', 1), right(tag, 2), replace(tag, ' ', ''), lpad(tag, 3, '0'), "
    "COUNT(*) FROM visits WHERE strpos(tag, 'n') > 0 OR starts_with(tag, 't') GROUP BY 1, 2, 3, 4",
    "trimmed texts": "SELECT ltrim(tag), rtrim(tag, '1'), btrim(tag), upper(left(shop, 1)), COUNT(*) FROM visits "
    "GROUP BY 1, 2, 3, 4",
    "equal bins": "SELECT date_bin('7 days', day, '2020-01-01'), COUNT(*), AVG(amount) FROM visits GROUP BY 1",
    "equal bins of hours": "SELECT date_bin('6 hours', at, '2001-01-01'), COUNT(*) FROM visits GROUP BY 1",
    "epochs rounded": "SELECT to_timestamp(FLOOR(EXTRACT(epoch FROM at) / 86400) * 86400), COUNT(*) FROM visits "
    "GROUP BY 1",
    "seconds between": "SELECT shop, SUM(EXTRACT(epoch FROM at - day) / 3600) FROM visits GROUP BY shop",
    "Sundays": "SELECT date_trunc('day', day) - EXTRACT(dow FROM day) * INTERVAL '1 day', COUNT(*) FROM visits "
    "GROUP BY 1",
    "Mondays": "SELECT day - (EXTRACT(isodow FROM day)::int - 1), date_trunc('day', at)::text, COUNT(*) FROM visits "
    "GROUP BY 1, 2",
    "year and month in a number": "SELECT EXTRACT(year FROM day) * 100 + EXTRACT(month FROM day), COUNT(*), SUM(qty) "
    "FROM visits GROUP BY 1",
    "rounded to hundreds": "SELECT ROUND(amount, -2), ROUND(price / 100, 1), COUNT(*) FROM visits GROUP BY 1, 2",
    "later of two": "SELECT GREATEST(day, DATE '2020-02-01'), COUNT(*) FROM visits GROUP BY 1",
    "parts of dates": "SELECT EXTRACT(isoyear FROM day), EXTRACT(decade FROM at), EXTRACT(century FROM day), COUNT(*) "
    "FROM visits GROUP BY 1, 2, 3",
    "distinct pairs": "SELECT shop, COUNT(DISTINCT (tag, day)), COUNT(DISTINCT (qty, tag)) FROM visits GROUP BY shop",
    "rows compared": "SELECT COUNT(*) FROM visits WHERE (shop, qty) IN (('zoo', 1), ('books', 2))",
    "patterns": "SELECT shop, COUNT(*) FROM visits WHERE tag ~ '^t' OR tag ~* 'N1$' OR tag !~ '%' GROUP BY shop",
    "logarithms": "SELECT AVG(LOG(amount + 1)), SUM(LOG(2, qty + 1)) FROM visits WHERE amount >= 0 AND qty >= 0",
    "counted where": "SELECT shop, COUNT_IF(amount > 10) FROM visits GROUP BY shop",
    "text as numbers": "SELECT TRY_CAST(tag AS integer), COUNT(*), "
    "SUM(LEAST(GREATEST(TRY_CAST(right(tag, 1) AS numeric), 0), 100)) FROM visits GROUP BY 1",
    "text as dates": "SELECT TRY_CAST(day::text AS date), date_trunc('month', TRY_CAST(tag AS timestamp)), COUNT(*) "
    "FROM visits GROUP BY 1, 2",
    "characters replaced": "SELECT translate(tag, 'nt ', 'x'), overlay(tag PLACING '-' FROM 2), left(tag, -1), "
    "repeat(right(tag, -1), 2), md5(tag), COUNT(*) FROM visits GROUP BY 1, 2, 3, 4, 5",
    "words of listed values": "SELECT initcap(city), reverse(city), regexp_replace(city, '^.', '*'), COUNT(*), "
    "SUM(age) FROM people GROUP BY 1, 2, 3",
    "patterns written out": "SELECT shop, COUNT(*) FROM visits WHERE tag ~ '^(t|o).*[0-9]$' "
    "OR tag SIMILAR TO '%(n|m)_' OR tag LIKE ANY (ARRAY['a%', '%b']) GROUP BY shop",
    "rows in order": "SELECT COUNT(*), SUM(qty) FROM visits WHERE (qty, tag) >= (2, 'm') AND (shop, qty) <> ('zoo', 3)",
    "exponentials": "SELECT AVG(EXP(qty)), SUM(EXP(-amount / 100)) FROM visits WHERE qty <= 8 "
    "AND amount BETWEEN 0 AND 99",
    "regression by public key": "SELECT shop, REGR_SLOPE(price, qty), REGR_COUNT(price, qty) FROM visits GROUP BY shop",
    "days and months between": "SELECT DATE_DIFF('month', day, at), DATE_DIFF('day', day, DATE '2020-04-01'), COUNT(*) "
    "FROM visits GROUP BY 1, 2",
    "ends of months": "SELECT LAST_DAY(day), time_bucket(INTERVAL '7 days', at), COUNT(*), AVG(amount) FROM visits "
    "GROUP BY 1, 2",
    "bounds of rows": "SELECT shop, AVG(amount, contribution_bounds_per_row => (0, 50)) FROM visits GROUP BY shop",
    "bounds of one row": "SELECT ANON_SUM(age CLAMPED BETWEEN 18 AND 65), ANON_AVG(age CLAMPED BETWEEN 20 AND 30) "
    "FROM people",
    "as of yesterday": "SELECT shop, COUNT(*) FROM visits WHERE day > 'yesterday'::date - 30 AND at <= 'now' "
    "GROUP BY shop",
    "as of today": "SELECT shop, COUNT(*) FROM visits WHERE day > CURRENT_DATE - 30 AND at <= now() GROUP BY shop",
}
"""Functions as other systems' users write them."""

_TENTHS = ", ".join(f"{i / 10:.1f}" for i in range(45))
_DAYS = ", ".join(f"DATE '2020-{month:02}-{day:02}'" for month in (1, 2) for day in range(1, 25))

EQUAL_KEYS: dict[str, str] = {
    "equal numbers listed twice": "SELECT score, COUNT(*) FROM people "
    f"WHERE score IN ({_TENTHS}, 0.30000000000000001, '0.3', 3e-1) GROUP BY score",
    "equal moments listed twice": "SELECT at, COUNT(*) FROM visits "
    f"WHERE at IN ({_DAYS}, TIMESTAMP '2020-02-03 00:00:00') GROUP BY at",
}
"""More than 40 values, two of them equal in the backend only: a row must find one index."""


def cases() -> dict[str, Statement]:
    return {
        **{name: Statement(text, TERMS) for name, text in {**TEXTS, **WRITTEN, **EQUAL_KEYS}.items()},
        **{f"{name} (l1)": Statement(text, LAPLACE) for name, text in TEXTS.items()},
    }
