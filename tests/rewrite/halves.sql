-- one total
SELECT COUNT(*) FROM facts
SELECT COUNT(*), SUM(i), AVG(f), SUM(n) FROM facts
SELECT COUNT(*) + 1, -COUNT(*), COUNT(*) * 2 AS twice, COUNT(*) / 7, COUNT(*) % 7 FROM facts
SELECT (COUNT(*)), ((COUNT(*)) + (1)) FROM facts
SELECT COUNT(*)::numeric / 3, CAST(COUNT(*) AS real), COUNT(*)::text || '!' FROM facts
SELECT SUM(f) / COUNT(*) AS mean, SUM(f) / NULLIF(COUNT(f), 0) FROM facts
SELECT 100.0 * COUNT(*) FILTER (WHERE ok) / COUNT(*) AS percent FROM facts
SELECT round((100.0 * COUNT(*) FILTER (WHERE i > 3 AND f IS NULL) / NULLIF(COUNT(*), 0))::numeric, 2) FROM facts
SELECT COALESCE(SUM(n), 0), GREATEST(COUNT(*), 0), LEAST(COUNT(*), 5, NULL) FROM facts
SELECT CASE WHEN COUNT(*) > 3 THEN 'many' WHEN COUNT(*) IS NULL THEN NULL ELSE 'few' END FROM facts
SELECT CASE COUNT(*) WHEN 1 THEN 'one' ELSE COUNT(*)::text END AS words FROM facts
SELECT COUNT(*) BETWEEN 1 AND 10, COUNT(*) IN (1, 2, 3), COUNT(*) IS NOT NULL, NOT COUNT(*) > 3 FROM facts
SELECT COUNT(*) IS DISTINCT FROM 3, (COUNT(*) IS NOT DISTINCT FROM NULL) AS none FROM facts
SELECT sqrt(COUNT(*)), abs(SUM(i)), power(COUNT(*), 2), ln(1 + COUNT(*)), sign(SUM(i)) FROM facts
SELECT to_char(COUNT(*), 'FM999,999'), to_char(SUM(n), '999999.99') FROM facts
SELECT repeat('x', COUNT(*)::int % 5), lpad(COUNT(*)::text, 12, '0') FROM facts
SELECT COUNT(*) || ' rows' AS said, concat(COUNT(*), '/', SUM(i)) FROM facts
SELECT now() IS NOT NULL AS timed, COUNT(*) FROM facts
SELECT current_date > DATE '2000-01-01' AS later, COUNT(*) FROM facts
SELECT DATE '2020-01-31' + INTERVAL '1 month' AS next, COUNT(*) FROM facts
SELECT INTERVAL '-1 days +02:03' AS span, COUNT(*) FROM facts
SELECT date_trunc('month', TIMESTAMP '2020-02-03 04:05:06') AS month, COUNT(*) FROM facts
SELECT 1 AS one, 'it''s' AS text, NULL AS nothing, TRUE AS yes, COUNT(*) FROM facts
SELECT 1, 'x', NULL, 1.50, COUNT(*) FROM facts
SELECT COUNT(*) AS "Total Count", COUNT(*) AS "a""b" FROM facts
SELECT COUNT(*) AS from_here, SUM(i) AS "from" FROM facts
SELECT COUNT(*) total, SUM(i) "sum of i" FROM facts
SELECT COUNT(*) /* all of them */ AS n -- a comment, with FROM in it
SELECT COUNT(*) FROM facts HAVING COUNT(*) > 2
SELECT COUNT(*) FROM facts HAVING COUNT(*) > 2 AND SUM(i) < 100000 OR COUNT(*) IS NULL
SELECT 1 FROM facts HAVING COUNT(*) > -1000000
SELECT COUNT(*) FROM facts WHERE i IS DISTINCT FROM 3
SELECT COUNT(DISTINCT i), COUNT(DISTINCT kind) FROM facts
SELECT VARIANCE(i), VAR_POP(i), STDDEV(i) FROM facts
SELECT EXTRACT(EPOCH FROM INTERVAL '1 day') * COUNT(*) FROM facts
SELECT substring('abcdef' FROM 2 FOR 3) AS cut, COUNT(*) FROM facts
SELECT trim(both 'x' FROM 'xxaxx') AS cut, position('b' IN 'abc') AS at, COUNT(*) FROM facts
SELECT overlay('Txxxxas' placing 'hom' from 2 for 4) AS put, COUNT(*) FROM facts
SELECT $$dollar ' quoted$$ AS said, E'tab\t' AS tabbed, COUNT(*) FROM facts
-- groups
SELECT kind, COUNT(*) FROM facts GROUP BY kind
SELECT kind, COUNT(*) FROM facts GROUP BY kind ORDER BY kind
SELECT kind, COUNT(*) FROM facts GROUP BY 1 ORDER BY 2 DESC, 1
SELECT kind AS k, COUNT(*) AS n FROM facts GROUP BY k ORDER BY n, k
SELECT f.kind, COUNT(*) FROM facts AS f GROUP BY f.kind ORDER BY f.kind
SELECT facts.kind, COUNT(facts.f) FROM facts GROUP BY facts.kind ORDER BY COUNT(facts.f), kind
SELECT public.facts.kind FROM public.facts GROUP BY public.facts.kind ORDER BY 1
SELECT "kind", "Zone", COUNT(*) FROM facts GROUP BY "kind", "Zone" ORDER BY 1, 2
SELECT upper(kind), COUNT(*) FROM facts GROUP BY upper(kind) ORDER BY upper(kind)
SELECT kind || '-' || "Zone" AS "both", COUNT(*) FROM facts GROUP BY kind || '-' || "Zone" ORDER BY "both"
SELECT kind || '!', length(kind), COUNT(*) FROM facts GROUP BY kind ORDER BY kind
SELECT ok, COUNT(*), SUM(i) FROM facts GROUP BY ok ORDER BY ok NULLS FIRST
SELECT kind, COUNT(*) FROM facts GROUP BY kind ORDER BY COUNT(*) DESC NULLS LAST, kind LIMIT 2
SELECT kind, COUNT(*) FROM facts GROUP BY kind ORDER BY kind OFFSET 1 LIMIT 2
SELECT kind, COUNT(*) FROM facts GROUP BY kind ORDER BY kind LIMIT 2 OFFSET 1
SELECT kind, COUNT(*) FROM facts GROUP BY kind ORDER BY kind FETCH FIRST 2 ROWS ONLY
SELECT kind, COUNT(*) FROM facts GROUP BY kind ORDER BY kind OFFSET 1 ROWS FETCH NEXT 1 ROW ONLY
SELECT kind, COUNT(*) FROM facts GROUP BY kind HAVING COUNT(*) > 3 ORDER BY kind
SELECT kind, COUNT(*) FROM facts GROUP BY kind HAVING kind <> 'a' ORDER BY kind
SELECT kind, COUNT(*) FROM facts GROUP BY kind HAVING SUM(f) / COUNT(*) > 0.5 AND kind IN ('a', 'b', 'c') ORDER BY 1
SELECT kind, COUNT(*) FROM facts GROUP BY kind HAVING NOT (COUNT(*) < 0 OR kind LIKE 'c%') ORDER BY 1
SELECT kind, COUNT(*) FROM facts WHERE i > 2 GROUP BY kind HAVING COUNT(*) BETWEEN -100000 AND 100000 ORDER BY 1
SELECT kind FROM facts GROUP BY kind HAVING COUNT(*) = MAX(i) OR TRUE ORDER BY kind
SELECT DISTINCT kind FROM facts ORDER BY kind
SELECT DISTINCT kind AS k, "Zone" FROM facts ORDER BY k, 2
SELECT DISTINCT kind, COUNT(*) > 5 AS big FROM facts GROUP BY kind ORDER BY 1
SELECT DISTINCT ON (kind) kind, "Zone", COUNT(*) FROM facts GROUP BY kind, "Zone" ORDER BY kind, COUNT(*) DESC
SELECT DISTINCT ON (k) kind AS k, COUNT(*) AS n FROM facts GROUP BY kind, ok ORDER BY k, n DESC
SELECT ALL kind, COUNT(*) FROM facts GROUP BY kind ORDER BY kind
SELECT CASE WHEN kind = 'a' THEN 'first' ELSE 'other' END AS which, COUNT(*) FROM facts GROUP BY 1 ORDER BY 1
SELECT CASE WHEN kind = 'a' THEN 'first' ELSE 'other' END, SUM(i) FROM facts GROUP BY CASE WHEN kind = 'a' THEN 'first' ELSE 'other' END ORDER BY 1
SELECT CASE kind WHEN 'a' THEN COUNT(*) ELSE SUM(i) END AS either FROM facts GROUP BY kind ORDER BY kind
SELECT COALESCE(kind, 'none') AS k, COUNT(*) FROM facts GROUP BY 1 ORDER BY 1
SELECT i / 10 * 10 AS bin, COUNT(*) FROM facts GROUP BY bin ORDER BY bin
SELECT width_bucket(f, 0, 100, 4) AS bucket, COUNT(*) FROM facts GROUP BY 1 ORDER BY 1
-- times
SELECT d, COUNT(*) FROM facts GROUP BY d ORDER BY d
SELECT date_trunc('month', d) AS month, COUNT(*) FROM facts GROUP BY 1 ORDER BY 1
SELECT date_trunc('month', d)::date AS month, COUNT(*) FROM facts GROUP BY 1 ORDER BY month DESC
SELECT date_trunc('week', at), SUM(i) FROM facts GROUP BY date_trunc('week', at) ORDER BY date_trunc('week', at)
SELECT to_char(date_trunc('month', d), 'YYYY "month" MM') AS label, COUNT(*) FROM facts GROUP BY date_trunc('month', d) ORDER BY date_trunc('month', d)
SELECT EXTRACT(month FROM d) AS m, COUNT(*) FROM facts GROUP BY EXTRACT(month FROM d) ORDER BY m
SELECT EXTRACT(month FROM d)::int AS m, COUNT(*) FROM facts GROUP BY 1 ORDER BY 1
SELECT date_part('year', d), COUNT(*) FROM facts GROUP BY 1
SELECT to_char(at, 'YYYY-MM') AS ym, COUNT(*) FROM facts GROUP BY ym ORDER BY ym
SELECT d + 1 AS next, COUNT(*) FROM facts GROUP BY d ORDER BY d
SELECT d - DATE '2020-01-01' AS days, COUNT(*) FROM facts GROUP BY d ORDER BY d
SELECT date_trunc('month', d) + INTERVAL '1 month' - INTERVAL '1 day' AS last, COUNT(*) FROM facts GROUP BY date_trunc('month', d) ORDER BY 1
SELECT age(TIMESTAMP '2021-01-01', date_trunc('month', at)) AS age, COUNT(*) FROM facts GROUP BY date_trunc('month', at) ORDER BY 2, 1
SELECT date_trunc('month', d) AS month, COUNT(*) - LAG(COUNT(*)) OVER (ORDER BY date_trunc('month', d)) AS change FROM facts GROUP BY 1 ORDER BY 1
-- windows
SELECT kind, COUNT(*), RANK() OVER (ORDER BY COUNT(*) DESC) FROM facts GROUP BY kind ORDER BY kind
SELECT kind, COUNT(*), ROW_NUMBER() OVER (ORDER BY COUNT(*), kind) AS place FROM facts GROUP BY kind ORDER BY kind
SELECT kind, SUM(COUNT(*)) OVER () AS total FROM facts GROUP BY kind ORDER BY kind
SELECT kind, COUNT(*) / SUM(COUNT(*)) OVER () AS share FROM facts GROUP BY kind ORDER BY kind
SELECT kind, round(100.0 * COUNT(*) / NULLIF(SUM(COUNT(*)) OVER (), 0), 2) AS share FROM facts GROUP BY kind ORDER BY kind
SELECT kind, "Zone", SUM(SUM(i)) OVER (PARTITION BY kind ORDER BY "Zone") FROM facts GROUP BY kind, "Zone" ORDER BY 1, 2
SELECT kind, AVG(COUNT(*)) OVER (ORDER BY kind ROWS BETWEEN 1 PRECEDING AND CURRENT ROW) FROM facts GROUP BY kind ORDER BY kind
SELECT kind, FIRST_VALUE(COUNT(*)) OVER w, LAST_VALUE(COUNT(*)) OVER w FROM facts GROUP BY kind WINDOW w AS (ORDER BY COUNT(*), kind) ORDER BY kind
SELECT kind, SUM(COUNT(*)) OVER w FROM facts GROUP BY kind WINDOW w AS (PARTITION BY CASE WHEN COUNT(*) > 0 THEN 1 ELSE 0 END) ORDER BY 1
SELECT kind, LAG(COUNT(*), 1, 0) OVER (ORDER BY kind), LEAD(SUM(i)) OVER (ORDER BY kind) FROM facts GROUP BY kind ORDER BY 1
SELECT kind, NTILE(2) OVER (ORDER BY COUNT(*), kind), PERCENT_RANK() OVER (ORDER BY COUNT(*)), CUME_DIST() OVER (ORDER BY COUNT(*)) FROM facts GROUP BY kind ORDER BY 1
SELECT kind, MAX(COUNT(*)) OVER () - COUNT(*) AS behind FROM facts GROUP BY kind ORDER BY kind
SELECT kind, COUNT(*) FROM facts GROUP BY kind QUALIFY ROW_NUMBER() OVER (ORDER BY COUNT(*) DESC, kind) <= 2
-- sets of groups
SELECT kind, COUNT(*) FROM facts GROUP BY ROLLUP (kind) ORDER BY kind NULLS FIRST
SELECT kind, "Zone", SUM(i), AVG(f) FROM facts GROUP BY ROLLUP (kind, "Zone") ORDER BY 1, 2
SELECT kind, "Zone", COUNT(*) FROM facts GROUP BY CUBE (kind, "Zone") ORDER BY 1, 2, 3
SELECT kind, "Zone", COUNT(*), GROUPING(kind) FROM facts GROUP BY GROUPING SETS ((kind), ("Zone"), ()) ORDER BY 1, 2, 3
SELECT COALESCE(kind, 'all') AS k, SUM(n) FROM facts GROUP BY ROLLUP (kind) HAVING COUNT(*) > -100000 ORDER BY GROUPING(kind), 1
SELECT kind, SUM(n) / COUNT(*) AS ratio FROM facts GROUP BY ROLLUP (kind) ORDER BY kind
-- subqueries
SELECT * FROM (SELECT kind, COUNT(*) AS n FROM facts GROUP BY kind) AS t ORDER BY kind
SELECT t.* FROM (SELECT kind, COUNT(*) FROM facts GROUP BY kind) t ORDER BY 1
SELECT t.k, t.n * 2 FROM (SELECT kind, COUNT(*) FROM facts GROUP BY kind) AS t (k, n) ORDER BY 1
SELECT kind, n FROM (SELECT kind, COUNT(*) AS n FROM facts GROUP BY kind) t WHERE n > (SELECT AVG(i) FROM facts) ORDER BY kind
SELECT MAX(n), MIN(kind) FROM (SELECT kind, COUNT(*) AS n FROM facts GROUP BY kind) AS t
SELECT (SELECT COUNT(*) FROM facts), (SELECT COUNT(*) FROM facts WHERE ok) AS good
SELECT (SELECT COUNT(*) FROM facts) * 1.0 / (SELECT COUNT(*) FROM r2)
SELECT 1 + (SELECT COUNT(*) FROM facts) AS n, region FROM r2 ORDER BY region
SELECT region FROM r2 WHERE 3 < (SELECT COUNT(*) FROM facts) ORDER BY 1
SELECT region FROM r2 WHERE k0 IN (SELECT kind FROM facts GROUP BY kind HAVING COUNT(*) > 0) ORDER BY 1
SELECT region FROM r2 WHERE k0 NOT IN (SELECT kind FROM facts GROUP BY kind) ORDER BY 1
SELECT region FROM r2 WHERE EXISTS (SELECT 1 FROM (SELECT kind, COUNT(*) FROM facts GROUP BY kind) AS t WHERE t.kind = r2.k0) ORDER BY 1
SELECT k0 = ANY (SELECT kind FROM facts GROUP BY kind) AS known, k0 FROM r2 ORDER BY k0
SELECT region, n FROM r2 JOIN (SELECT kind, COUNT(*) AS n FROM facts GROUP BY kind) AS t ON t.kind = r2.k0 ORDER BY 1
SELECT region, n FROM r2 LEFT JOIN (SELECT kind AS k0, COUNT(*) AS n FROM facts GROUP BY kind) AS t USING (k0) ORDER BY 1
SELECT * FROM (SELECT kind AS k0, COUNT(*) AS n FROM facts GROUP BY kind) AS t NATURAL JOIN r2 ORDER BY 1, 2, 3
SELECT a.kind, a.n - b.n AS difference FROM (SELECT kind, COUNT(*) AS n FROM facts WHERE ok GROUP BY kind) a JOIN (SELECT kind, COUNT(*) AS n FROM facts WHERE NOT ok GROUP BY kind) b ON a.kind = b.kind ORDER BY 1
SELECT x.n FROM (SELECT COUNT(*) AS n FROM facts) AS x, r2 ORDER BY 1
SELECT kind, COUNT(*) - (SELECT MIN(length(region)) FROM r2) AS less FROM facts GROUP BY kind ORDER BY kind
SELECT kind, COUNT(*) FROM facts GROUP BY kind HAVING COUNT(*) > (SELECT COUNT(*) FROM r2) ORDER BY 1
SELECT string_agg(kind, ',' ORDER BY kind) FROM (SELECT kind FROM facts GROUP BY kind) AS t
-- WITH and views
WITH t AS (SELECT kind, COUNT(*) AS n FROM facts GROUP BY kind) SELECT * FROM t ORDER BY n, kind
WITH t (k, n) AS (SELECT kind, COUNT(*) FROM facts GROUP BY kind) SELECT k, n FROM t ORDER BY 1
WITH t AS MATERIALIZED (SELECT kind, COUNT(*) AS n FROM facts GROUP BY kind) SELECT a.n, b.n FROM t a JOIN t AS b ON a.kind > b.kind ORDER BY 1, 2
WITH rows AS (SELECT kind, i FROM facts WHERE ok), t AS (SELECT kind, SUM(i) AS s FROM rows GROUP BY kind) SELECT SUM(s) FROM t
WITH p AS (SELECT k0, region FROM r2), t AS (SELECT kind, COUNT(*) AS n FROM facts GROUP BY kind) SELECT region, n FROM p JOIN t ON k0 = kind ORDER BY 1
WITH t AS (SELECT kind, COUNT(*) AS n FROM facts GROUP BY kind), u AS (SELECT n * 2 AS d FROM t) SELECT MAX(d) FROM u
WITH t AS (WITH s AS (SELECT kind, COUNT(*) AS n FROM facts GROUP BY kind) SELECT * FROM s WHERE n > 0) SELECT kind FROM t ORDER BY 1
WITH unused AS (SELECT COUNT(*) AS n FROM facts) SELECT region FROM r2 ORDER BY 1
WITH t AS (SELECT COUNT(*) AS n FROM facts) SELECT (SELECT n FROM t) AS n, region FROM r2 ORDER BY region
WITH t AS (SELECT COUNT(*) AS n FROM facts), r2 AS (SELECT n AS k0 FROM t) SELECT k0 FROM r2
WITH t AS (SELECT kind, COUNT(*) AS n FROM facts GROUP BY kind) SELECT t.kind, n, SUM(n) OVER (ORDER BY t.kind) FROM t ORDER BY 1
SELECT * FROM by_kind ORDER BY kind
SELECT b.kind, b.n / 2 FROM by_kind AS b ORDER BY 1
SELECT kind, mean FROM public.by_kind WHERE mean IS NOT NULL ORDER BY 1
SELECT region, n FROM places JOIN by_kind ON kind = k0 ORDER BY 1
SELECT COUNT(*) FROM by_kind
-- set operations
SELECT COUNT(*) FROM facts UNION ALL SELECT COUNT(*) FROM r2 ORDER BY 1
SELECT kind FROM facts GROUP BY kind UNION SELECT k0 FROM r2 ORDER BY 1
SELECT k0 FROM r2 EXCEPT SELECT kind FROM facts GROUP BY kind ORDER BY 1
SELECT k0 FROM r2 INTERSECT ALL SELECT kind FROM facts GROUP BY kind ORDER BY k0
SELECT 'all' AS k, COUNT(*) FROM facts UNION ALL SELECT kind, COUNT(*) FROM facts GROUP BY kind ORDER BY 1, 2 LIMIT 3
SELECT COUNT(*) AS n FROM facts WHERE ok UNION ALL SELECT COUNT(*) FROM facts WHERE NOT ok UNION ALL SELECT COUNT(*) FROM facts ORDER BY n
(SELECT kind, COUNT(*) FROM facts GROUP BY kind ORDER BY 2 DESC, 1 LIMIT 1) UNION ALL (SELECT k0, 0 FROM r2 WHERE k0 = 'e') ORDER BY 1
SELECT * FROM (SELECT 1 AS one, COUNT(*) AS n FROM facts UNION ALL SELECT 2, SUM(i) FROM facts) AS u ORDER BY one
SELECT 1 UNION SELECT COUNT(*) FROM facts EXCEPT SELECT 1 ORDER BY 1
-- errors of estimates
SELECT COUNT(*), dp_stddev(COUNT(*)), dp_interval_low(COUNT(*)), dp_interval_high(COUNT(*)) FROM facts
SELECT kind, SUM(i), dp_interval_low(SUM(i)) AS low, dp_interval_high(SUM(i)) AS high FROM facts GROUP BY kind ORDER BY kind
SELECT AVG(f), dp_interval_low(AVG(f)) FROM facts
SELECT SUM(i) / COUNT(*) AS mean, dp_stddev(SUM(i) / COUNT(*)) AS sd FROM facts
SELECT 2 * COUNT(*) + SUM(i) AS x, dp_interval_low(2 * COUNT(*) + SUM(i)) FROM facts
SELECT kind, 100.0 * COUNT(*) FILTER (WHERE ok) / COUNT(*) AS share, dp_interval_high(100.0 * COUNT(*) FILTER (WHERE ok) / COUNT(*)) AS high FROM facts GROUP BY kind ORDER BY 1
-- beside private rows
SELECT COUNT(*) FROM facts JOIN r2 ON kind = k0
SELECT region, COUNT(*) FROM facts JOIN r2 ON kind = k0 GROUP BY region ORDER BY region
SELECT COUNT(*) FROM facts WHERE i > (SELECT MIN(length(region)) FROM r2)
SELECT kind, COUNT(*) FROM facts WHERE EXISTS (SELECT 1 FROM r2 WHERE k0 = kind) GROUP BY kind ORDER BY kind
SELECT kind, SUM(total) FROM (SELECT uid, kind, SUM(i) AS total FROM facts GROUP BY uid, kind) AS each GROUP BY kind ORDER BY kind
SELECT COUNT(*) AS people FROM (SELECT uid FROM facts GROUP BY uid HAVING COUNT(*) > 1) AS busy
SELECT t.kind, COUNT(*) FROM facts JOIN (SELECT kind, COUNT(*) AS n FROM facts GROUP BY kind ORDER BY n DESC LIMIT 2) AS t ON t.kind = facts.kind GROUP BY t.kind ORDER BY 1
SELECT SUM(i) FROM facts WHERE n > (SELECT AVG(n) FROM facts)
