-- projection, filter, order
SELECT * FROM r1
SELECT r1.*, 1 FROM r1
SELECT x.* FROM r1 AS x
SELECT x.k0, "x"."a0" FROM r1 x WHERE x.a0 > 5
SELECT a0 AS v FROM r1 ORDER BY v
SELECT a0 FROM r1 ORDER BY a0 DESC
SELECT a0 FROM r1 ORDER BY a0 DESC NULLS LAST, k0
SELECT a0, k0 FROM r1 ORDER BY 2, 1 DESC
SELECT k0, a0 FROM r1 ORDER BY a0 NULLS FIRST, k0 LIMIT 3
SELECT a0 FROM r1 ORDER BY -a0
SELECT a0 FROM r1 ORDER BY a1 + a0, k0
SELECT a0 AS k0 FROM r1 ORDER BY k0
SELECT a0 FROM r1 ORDER BY a0 LIMIT 2 OFFSET 1
SELECT a0 FROM r1 ORDER BY a0 OFFSET 4
SELECT a0 FROM r1 ORDER BY a0 FETCH FIRST 2 ROWS ONLY
SELECT a0 FROM r1 LIMIT 0
SELECT a0 FROM r1 ORDER BY a0 LIMIT ALL
SELECT a2 FROM r1 ORDER BY a2, a0
SELECT a2 FROM r1 ORDER BY a2 DESC, k0
SELECT a0 / 7.0 AS q FROM r1 ORDER BY q DESC, k0
SELECT k0 FROM r1 ORDER BY lower(k0), a0
SELECT a1 FROM r1 WHERE a1 > 0.5 AND k0 = 'a' OR a0 = 17
SELECT TRUE FROM r1 WHERE 1 <> 1 LIMIT 0
SELECT * FROM (SELECT k0, a0 FROM r1) AS source WHERE source.a0 > 5 ORDER BY source.a0
SELECT k0 FROM r1 WHERE NOT k0 IS NULL ORDER BY k0
SELECT price FROM cal ORDER BY price
SELECT name FROM cal ORDER BY name DESC
SELECT day FROM cal ORDER BY day DESC NULLS LAST
SELECT CASE WHEN a0 > 10 THEN FALSE ELSE TRUE END FROM r1 WHERE CASE WHEN a0 > 10 THEN FALSE ELSE TRUE END
-- grouping
SELECT count(*), count(a0), count(DISTINCT k0), count(1) FROM r1
SELECT sum(a0), sum(a1), sum(a2), sum(price), sum(small), sum(id), sum(real) FROM r1, cal
SELECT avg(a0), avg(a1), avg(a2) FROM r1
SELECT avg(price), avg(small), avg(real), avg(id) FROM cal
SELECT min(a0), max(a0), min(a1), max(a1), min(a2), max(a2), min(k0), max(k0) FROM r1
SELECT min(day), max(day), min(at), max(at), max(price), min(small), max(atz) FROM cal
SELECT k0, count(*) FROM r1 GROUP BY k0 ORDER BY k0
SELECT k0, sum(a0) AS s FROM r1 GROUP BY 1 ORDER BY s DESC, k0
SELECT k0, count(*) AS n FROM r1 GROUP BY k0 HAVING count(*) > 1 ORDER BY n DESC, k0
SELECT k0 AS g, avg(a0) FROM r1 GROUP BY g ORDER BY g
SELECT a0 % 3, count(*) FROM r1 GROUP BY a0 % 3 ORDER BY 1
SELECT a0 % 3 + 1, count(*) FROM r1 GROUP BY a0 % 3 ORDER BY 1
SELECT upper(k0), sum(a1) FROM r1 GROUP BY upper(k0) ORDER BY sum(a1)
SELECT sum(a0) / count(*), sum(a0) * 1.0 / count(*), sum(a1) / count(*) FROM r1
SELECT k0, round(100.0 * sum(a0) / sum(sum(a0)) OVER (), 2) AS share FROM r1 GROUP BY k0 ORDER BY k0
SELECT sum(CASE WHEN a0 > 10 THEN 1 ELSE 0 END), count(*) FILTER (WHERE a0 > 10), sum(a0) FILTER (WHERE k0 = 'a') FROM r1
SELECT count(*) FROM r1 WHERE false
SELECT sum(a0), avg(a0), max(a0), min(a2), avg(a2), sum(a2), stddev(a0) FROM r1 WHERE false
SELECT k0, sum(a0) FROM r1 WHERE false GROUP BY k0
SELECT count(*) FROM r1 HAVING count(1) > 0
SELECT k0, count(*) FROM r1 GROUP BY k0 HAVING sum(a0)::float8 / count(*)::float8 > 0 ORDER BY sum(a0)::float8 / count(*)::float8, k0
SELECT k0 FROM r1 GROUP BY k0 HAVING nullif(count(*), 1) > 1 ORDER BY k0
SELECT k0, rank() OVER (ORDER BY sum(a0)::float8 / count(*)::float8 DESC, k0) FROM r1 GROUP BY k0 ORDER BY k0
SELECT k0, sum(count(*)) OVER (PARTITION BY sum(a0) / count(*)) FROM r1 GROUP BY k0 ORDER BY k0
SELECT 1 FROM r1 HAVING count(*) > 100
SELECT SUM(1) AS "cnt:t:ok" FROM r1 HAVING (COUNT(1) > 0)
SELECT string_agg(k0, ',' ORDER BY a0) FROM r1
SELECT string_agg(DISTINCT k0, ',') FROM r1 WHERE k0 = 'a'
SELECT string_agg(k0 || a0, '; ' ORDER BY a0 DESC) FROM r1 WHERE k0 IS NOT NULL
SELECT bool_and(ok), bool_or(ok), every(ok) FROM cal
SELECT stddev(a0), stddev_samp(a0), stddev_pop(a0), variance(a0), var_samp(a0) AS v, var_pop(a0) FROM r1
SELECT stddev(a2), variance(a2), var_pop(a2), stddev(small), stddev_pop(price) FROM r1, cal
SELECT var_pop(a1), stddev_pop(a1), stddev(a1) FROM r1
SELECT corr(a0, a1), covar_pop(a0, a1), covar_samp(a0, a1), regr_slope(a1, a0) FROM r1
SELECT count(DISTINCT a0), sum(DISTINCT a0), count(DISTINCT a2), avg(DISTINCT a0) FROM r1
SELECT percentile_cont(0.5) WITHIN GROUP (ORDER BY a0), percentile_cont(0.25) WITHIN GROUP (ORDER BY a1), percentile_disc(0.5) WITHIN GROUP (ORDER BY a0) FROM r1
SELECT mode() WITHIN GROUP (ORDER BY k0) FROM r1
SELECT count(DISTINCT k0) + MAX(CASE WHEN k0 IS NULL THEN 1 ELSE 0 END) FROM r1
SELECT date_trunc('month', at) AS m, count(*) FROM cal GROUP BY m ORDER BY m
SELECT extract(year from day), sum(price) FROM cal GROUP BY 1 ORDER BY 1
SELECT 'x' AS c, count(*) FROM r1 GROUP BY c
SELECT 1 AS one, k0 FROM r1 GROUP BY one, k0 ORDER BY k0
SELECT CASE WHEN a0 > 10 THEN 'big' ELSE 'small' END AS size, count(*) FROM r1 GROUP BY CASE WHEN a0 > 10 THEN 'big' ELSE 'small' END ORDER BY size
SELECT k0 FROM r1 GROUP BY k0 ORDER BY count(*) DESC, k0
SELECT k0, count(*) FROM r1 GROUP BY k0, a0 ORDER BY k0, a0
SELECT DISTINCT k0 FROM r1 ORDER BY k0
SELECT DISTINCT k0, a0 > 10 FROM r1 ORDER BY 1, 2
SELECT DISTINCT ON (k0) k0, a0 FROM r1 ORDER BY k0, a0 DESC
SELECT count(*) FROM (SELECT DISTINCT k0 FROM r1) AS t
SELECT k0, region, sum(a0) FROM r1 JOIN r2 USING (k0) GROUP BY ROLLUP (k0, region) ORDER BY 1, 2
SELECT k0, count(*) FROM r1 GROUP BY GROUPING SETS ((k0), ()) ORDER BY 1, 2
-- windows
SELECT k0, a0, row_number() OVER (ORDER BY a0, k0) FROM r1
SELECT k0, rank() OVER (PARTITION BY k0 ORDER BY a0), dense_rank() OVER (ORDER BY k0) FROM r1
SELECT a0, sum(a0) OVER (ORDER BY a0) FROM r1 WHERE a0 IS NOT NULL
SELECT a0, sum(a0) OVER () AS total, a0 * 1.0 / sum(a0) OVER () AS share FROM r1
SELECT a0, avg(a0) OVER (ORDER BY a0 ROWS BETWEEN 1 PRECEDING AND 1 FOLLOWING) FROM r1
SELECT a0, lag(a0) OVER (ORDER BY a0), lead(a0, 2, 0) OVER (ORDER BY a0) FROM r1
SELECT a0, first_value(a0) OVER w, last_value(a0) OVER w, nth_value(a0, 2) OVER w FROM r1 WINDOW w AS (ORDER BY a0)
SELECT a0, ntile(3) OVER (ORDER BY a0, k0), percent_rank() OVER (ORDER BY a0), cume_dist() OVER (ORDER BY a0) FROM r1
SELECT k0, sum(a0), rank() OVER (ORDER BY sum(a0) DESC) FROM r1 GROUP BY k0
SELECT k0, count(*), sum(count(*)) OVER (ORDER BY k0) FROM r1 GROUP BY k0
SELECT a0, count(*) OVER (PARTITION BY k0), max(a1) OVER (PARTITION BY k0 ORDER BY a0) FROM r1
SELECT k0, a0 - lag(a0) OVER (PARTITION BY k0 ORDER BY a0) AS diff FROM r1
SELECT a2, sum(a2) OVER (ORDER BY a2), rank() OVER (ORDER BY a2) FROM r1
SELECT a0, sum(a0) FILTER (WHERE a0 > 10) OVER () FROM r1
SELECT * FROM (SELECT k0, a0, row_number() OVER (PARTITION BY k0 ORDER BY a0 DESC) AS rn FROM r1) t WHERE rn = 1 ORDER BY k0
SELECT a0, count(*) OVER (ORDER BY a0 RANGE BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW) FROM r1
-- joins
SELECT r1.k0, a0, region FROM r1 JOIN r2 ON r1.k0 = r2.k0 ORDER BY a0, region
SELECT r1.k0, region FROM r1 LEFT JOIN r2 ON r1.k0 = r2.k0 ORDER BY a0, region
SELECT * FROM r1 JOIN r2 USING (k0)
SELECT * FROM r1 NATURAL JOIN r2
SELECT * FROM r1 RIGHT JOIN r2 USING (k0)
SELECT * FROM r1 FULL JOIN r2 USING (k0)
SELECT k0, region FROM r1 FULL JOIN r2 USING (k0) ORDER BY k0, region, a0
SELECT count(*) FROM r1, r2
SELECT count(*) FROM r1 CROSS JOIN r2
SELECT x.a0, y.a0 FROM r1 x, r1 y WHERE x.k0 = y.k0 AND x.a0 < y.a0 ORDER BY 1, 2
SELECT a.k0 FROM r1 a JOIN (r2 b JOIN r2 c ON b.k0 = c.k0) ON a.k0 = b.k0 ORDER BY 1
SELECT s.k0, s.n, r2.region FROM (SELECT k0, count(*) AS n FROM r1 GROUP BY k0) s JOIN r2 ON s.k0 = r2.k0 ORDER BY 1, 3
SELECT count(*) FROM r1 x JOIN r1 y ON x.a2 = y.a2
SELECT count(*) FROM r1 x JOIN r1 y ON x.a2 = y.a0
SELECT region, count(a0) FROM r2 LEFT JOIN r1 USING (k0) GROUP BY region ORDER BY region
-- subqueries, CTEs, set operations, VALUES
SELECT (SELECT max(a0) FROM r1), (SELECT count(*) FROM r2) AS n
SELECT a0, (SELECT avg(a0) FROM r1) FROM r1
SELECT a0 FROM r1 WHERE a0 > (SELECT avg(a0) FROM r1) ORDER BY a0
SELECT k0 FROM r1 WHERE k0 IN (SELECT k0 FROM r2) ORDER BY a0
SELECT k0 FROM r1 WHERE k0 NOT IN (SELECT k0 FROM r2 WHERE k0 IS NOT NULL) ORDER BY a0
SELECT k0 FROM r1 WHERE EXISTS (SELECT 1 FROM r2 WHERE r2.k0 = r1.k0) ORDER BY a0
SELECT k0 FROM r1 WHERE NOT EXISTS (SELECT * FROM r2 WHERE r2.k0 = r1.k0) ORDER BY a0
SELECT a0, (SELECT region FROM r2 WHERE r2.k0 = r1.k0 LIMIT 1) FROM r1 WHERE k0 = 'b'
SELECT a0 = ANY (SELECT a0 FROM r1 WHERE k0 = 'a'), a0 > ALL (SELECT a0 FROM r1 WHERE k0 = 'b') FROM r1
WITH t AS (SELECT k0, sum(a0) AS s FROM r1 GROUP BY k0) SELECT * FROM t ORDER BY s
WITH t AS (SELECT a0 FROM r1), u AS (SELECT a0 * 2 AS d FROM t) SELECT max(d), min(t.a0) FROM t, u
WITH t(x, y) AS (VALUES (1, 'a'), (2, 'b')) SELECT x, y FROM t ORDER BY x
WITH r1 AS (SELECT 5 AS z) SELECT * FROM r1
SELECT k0 FROM r1 UNION SELECT k0 FROM r2 ORDER BY 1
SELECT k0 FROM r1 UNION ALL SELECT k0 FROM r2 ORDER BY k0 LIMIT 5
SELECT k0 FROM r1 INTERSECT SELECT k0 FROM r2 ORDER BY 1
SELECT k0 FROM r1 EXCEPT SELECT k0 FROM r2
SELECT 1 AS a UNION SELECT 2.5 UNION SELECT NULL ORDER BY a
SELECT 1 UNION ALL SELECT 2.50
SELECT 'a' AS x UNION ALL SELECT k0 FROM r1 WHERE a0 = 5
SELECT NULL AS x UNION ALL SELECT 1
(SELECT k0 FROM r1 ORDER BY a0 LIMIT 1) UNION ALL (SELECT k0 FROM r2 ORDER BY k0 LIMIT 1)
SELECT 1 UNION SELECT 2 EXCEPT SELECT 2
VALUES (1, 'a'), (2, 'b')
VALUES (1, NULL), (2.5, 'x') ORDER BY 1 DESC
SELECT * FROM (VALUES (1, 'a'), (2, 'b')) AS t(n, s) WHERE n > 1
SELECT column1 FROM (VALUES (1), (2)) v
SELECT t.n FROM (SELECT a0 AS n, k0 FROM r1) AS t(n) WHERE n = 5
SELECT COUNT(*) FROM (SELECT k0, count(*) FROM r1 GROUP BY k0) AS t
SELECT * FROM (SELECT k0, sum(a0) AS s FROM r1 GROUP BY k0) AS q WHERE 1 = 0
SELECT "_"."k0", "_"."a0" FROM (SELECT k0, sum(a0) AS a0 FROM r1 GROUP BY k0) AS "_" WHERE NOT "_"."a0" IS NULL ORDER BY 1 LIMIT 1000001
SELECT country AS country, COUNT(*) AS count FROM (SELECT k0 AS country FROM r1) AS virtual_table GROUP BY country HAVING (COUNT(*) > 1) ORDER BY count DESC, country LIMIT 50
SELECT k0, AVG(a0) FROM r1 JOIN (SELECT k0 AS k0__, SUM(a0) AS mme_inner__ FROM r1 GROUP BY k0 ORDER BY SUM(a0) DESC LIMIT 2) AS series_limit ON k0 = k0__ GROUP BY k0 ORDER BY k0
SELECT x.k0, y.v FROM r2 x, LATERAL (SELECT sum(a0) AS v FROM r1 WHERE r1.k0 = x.k0) y ORDER BY 1, 2
SELECT k0, region, count(*), grouping(k0, region) FROM r1 JOIN r2 USING (k0) GROUP BY CUBE (k0, region) ORDER BY 1, 2, 3
-- equal numerics of different scale: one key, shown as it came
SELECT DISTINCT round(a0::numeric, 2) FROM r1 ORDER BY 1
SELECT round(a0 / 7.0, 1) AS r, count(*) FROM r1 GROUP BY r HAVING round(a0 / 7.0, 1) > 0 ORDER BY r DESC
SELECT a2 * 2, count(*) FROM r1 WHERE a2 < 2 GROUP BY a2 ORDER BY a2
SELECT DISTINCT a2 > 2, a2 FROM r1 WHERE a2 < 2 ORDER BY a2
SELECT count(DISTINCT a2), count(*) FROM r1
SELECT count(*) FROM (SELECT a2 FROM r1 UNION SELECT 2.500) AS t
SELECT a2 FROM r1 WHERE a2 < 2 UNION SELECT 7.10 ORDER BY 1
SELECT a2 FROM r1 INTERSECT SELECT 1.5
SELECT NULLIF(a0, 5.5), NULLIF(a0, 5::int2), NULLIF(a2, 1.5::float8), NULLIF(day, at) FROM r1, cal
SELECT 3 BETWEEN SYMMETRIC NULL AND 1.5, 3 BETWEEN SYMMETRIC 5 AND NULL, 3 BETWEEN SYMMETRIC NULL AND 4
-- errors that a guard keeps away
SELECT count(*) FROM r1 WHERE a0 <> 0 AND 10 / a0 > 1
SELECT count(*) FROM r1 WHERE a0 <> 0 AND 10.0 / a0 > 1 AND 10 % a0 < 5
SELECT a0 <> 0 AND 10 / a0 > 1 FROM r1
SELECT a0 = 0 OR 10 / a0 > 1 FROM r1
SELECT CASE WHEN a0 = 0 THEN 0 WHEN 100 / a0 > 10 THEN 1.0 / a0 ELSE 2 END FROM r1
SELECT CASE WHEN false THEN 1 / 0 ELSE 1 END, COALESCE(1, 1 / 0)
SELECT COALESCE(a0, 1 / (a0 - a0)) FROM r1 WHERE a0 IS NOT NULL
SELECT k0, sum(a0) / NULLIF(count(a0), 0) FROM r1 GROUP BY k0 ORDER BY k0
SELECT k0, CASE WHEN count(a0) > 0 THEN sum(a1) / count(a0) END FROM r1 GROUP BY k0 ORDER BY k0
SELECT k0, sum(a0) FROM r1 GROUP BY k0 HAVING count(a0) > 0 AND sum(a0) / count(a0) > 10 ORDER BY k0
SELECT 0.1::real = 0.1, 0.1::real IN (0.1, 2), 0.5::real = 0.5, NULLIF(0.5, 0.25::real)
SELECT to_char(1.25::float8, 'FM990.0'), to_char(1.25, 'FM990.0'), to_char(2.5::float8, '9'), to_char(123456789.123456789::float8, 'FM999999999.999999999')
SELECT count(*) FROM r1 WHERE a0 = 0 OR 10 / a0 > 1
SELECT count(*) FROM r1 WHERE NOT (a0 = 0 OR 10 / a0 > 1) AND k0 = 'a'
SELECT a0 > 5 AND NULL AND 1.0 / NULLIF(a0, 0) > 0 FROM r1
