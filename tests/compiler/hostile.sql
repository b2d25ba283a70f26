-- REFUSE: from the text and the policy alone
SELECT COUNT(*) FROM visits WHERE amount < 1e30*1e30*1e30*1e30*1e30*1e30*1e30*1e30*1e30*1e30*1e30
SELECT COUNT(*) FROM visits WHERE amount < -(1e30*1e30*1e30*1e30*1e30*1e30*1e30*1e30*1e30*1e30*1e30)
SELECT SUM(LEAST(amount,1e30*1e30*1e30*1e30*1e30*1e30*1e30*1e30*1e30*1e30*1e30)) FROM visits
SELECT SUM(salary(people)) FROM people
SELECT people.* FROM people
SELECT COUNT(people) FROM people
SELECT COUNT(p.*) FROM people p
SELECT COUNT(people.*) FROM people
SELECT people::text, COUNT(*) FROM people GROUP BY 1
SELECT COUNT(*) FROM pg_catalog.pg_class
SELECT COUNT(*) FROM information_schema.tables
SELECT COUNT(*) FROM other.people
SELECT COUNT(*) FROM n0.people
SELECT COUNT(*) FROM "People"
SELECT COUNT(*) FROM 'people.csv'
SELECT COUNT(*) FROM read_csv('/etc/passwd')
SELECT COUNT(*) FROM people TABLESAMPLE BERNOULLI (50)
SELECT COUNT(*) FROM ONLY people
SELECT COUNT(*) FROM people FOR UPDATE
SELECT COUNT(*) INTO x FROM people
TABLE people
SELECT 1 FROM people WHERE uid=1 LIMIT 1
VALUES ((SELECT age FROM people))
SELECT COUNT(*) FROM people WHERE note ~ '(a+)+$'
SELECT COUNT(*) FROM people WHERE note SIMILAR TO '(a+)+'
SELECT COUNT(*) FROM people WHERE note ~ '(a|b)(a|b)(a|b)(a|b)(a|b)(a|b)(a|b)(a|b)'
SELECT COUNT(*) FROM people WHERE note ~ 'a{1000}'
SELECT COUNT(*) FROM people WHERE CAST(note AS integer) > 0
SELECT note::date, COUNT(*) FROM people GROUP BY 1
SELECT SUM(EXP(age)) FROM people
SELECT regexp_replace(note, '(a+)+', 'b', 'g'), COUNT(*) FROM people GROUP BY 1
SELECT reverse(note), COUNT(*) FROM people GROUP BY 1
SELECT repeat(note, 100), COUNT(*) FROM people GROUP BY 1
SELECT SUM(age, contribution_bounds_per_row => (0, 1000)) FROM people
SELECT SUM(age, contribution_bounds_per_row => (1, 0)) FROM people
SELECT SUM(age, contribution_bounds_per_row => (age, 10)) FROM people
SELECT SUM(age, other_bounds => (0, 10)) FROM people
SELECT COUNT(*) FROM people WHERE repeat(note,1000000000) = ''
SELECT COUNT(*) FROM people WHERE pg_sleep(1) IS NULL
SELECT COUNT(*) FROM people WHERE random() < 0.5
SELECT COUNT(*) FROM people WHERE error(note)
SELECT string_agg(note, ',') FROM people
SELECT array_agg(note) FROM people
SELECT any_value(note) FROM people
SELECT bool_or(active) FROM people
SELECT COUNT(*) OVER () FROM people
SELECT ROW_NUMBER() OVER (ORDER BY note) FROM people
SELECT COUNT(*) FROM people WHERE joined + INTERVAL '9999999 years' > '2020-01-01'
SELECT COUNT(*) FROM people WHERE age = 'abc'
SELECT COUNT(*) FROM people WHERE joined = 'tomorrow'
SELECT COUNT(*) FROM people WHERE age IN ()
SELECT COUNT(*) FROM people WHERE note LIKE '\'
SELECT COUNT(*) FROM people WHERE note LIKE E'\\'
SELECT COUNT(*) FROM people GROUP BY 5
SELECT COUNT(*) FROM people GROUP BY 0
SELECT COUNT(*) FROM people GROUP BY COUNT(*)
SELECT age FROM people GROUP BY city
SELECT COUNT(age, city) FROM people
SELECT SUM(age, city) FROM people
SELECT SUM() FROM people
SELECT SUM(*) FROM people
SELECT AVG(city) FROM people
SELECT SUM(active) FROM people
SELECT SUM(joined) FROM people
SELECT COUNT(*) FILTER (WHERE COUNT(*) > 1) FROM people
SELECT SUM(SUM(age)) FROM people
SELECT COUNT(*) FROM people WHERE COUNT(*) > 1
SELECT COUNT(*) FROM people HAVING age > 1
SELECT COUNT(*) FROM people ORDER BY age
SELECT COUNT(*) FROM people WHERE age > $1 + $2
SELECT COUNT(*) FROM people WHERE age > $0
SELECT COUNT(*) FROM people WHERE age > $99999
SELECT COUNT(*) FROM visits WHERE amount > (SELECT amount FROM visits LIMIT 1)
SELECT (SELECT age FROM people LIMIT 1)
SELECT 1 WHERE EXISTS (SELECT 1 FROM people)
SELECT COUNT(*) FROM visits v, visits w
SELECT COUNT(*) FROM visits CROSS JOIN people
SELECT COUNT(*) FROM people a LEFT JOIN people b ON a.age=b.age
SELECT COUNT(*) FROM visits WHERE shop NOT IN (SELECT note FROM people)
SELECT CASE WHEN COUNT(*) > 5 THEN (SELECT age FROM people LIMIT 1) END FROM people
SELECT json_agg(p) FROM people p
SELECT row_to_json(p) FROM people p
SELECT p FROM people p
SELECT COUNT(*) FROM visits WHERE at < '2020-13-01'
SELECT COUNT(*) FROM visits WHERE at < '2020-02-30'
SELECT COALESCE(amount, tag), COUNT(*) FROM visits GROUP BY 1
SELECT COALESCE(), COUNT(*) FROM visits GROUP BY 1
SELECT CASE WHEN qty THEN 1 END, COUNT(*) FROM visits GROUP BY 1
SELECT tag[1], COUNT(*) FROM visits GROUP BY 1
SELECT tag -> 'x', COUNT(*) FROM visits GROUP BY 1
SELECT COLUMNS('a.*') FROM visits
SELECT * EXCLUDE (uid) FROM visits
SELECT shop, COUNT(*) FROM visits GROUP BY shop WINDOW w AS (ORDER BY amount)
SELECT shop, RANK() OVER (ORDER BY amount) FROM visits GROUP BY shop
SELECT shop, SUM(SUM(amount)) OVER (PARTITION BY tag) FROM visits GROUP BY shop
SELECT LISTEN x
LISTEN x
DO 1
CALL x()
ATTACH 'x'
PRAGMA x
SUMMARIZE people
DESCRIBE people
INSERT INTO people VALUES (1)
DELETE FROM people
WITH x AS (DELETE FROM people RETURNING *) SELECT COUNT(*) FROM x
EXPLAIN ANALYZE SELECT 1
COPY people TO '/tmp/x'
SELECT COUNT(*) FROM people; SELECT 1
SELECT
SELECT FROM people
SELECT COUNT(*) FROM
SELECT COUNT(*) FROM people WHERE
SELECT COUNT(*) FROM people SEMI JOIN visits ON people.uid=visits.uid
SELECT COUNT(*) FROM people ASOF JOIN visits ON people.uid=visits.uid
SELECT COUNT(*) FROM people POSITIONAL JOIN visits
SELECT COUNT(*) FROM people JOIN visits USING (nosuch)
SELECT salary FROM people
SELECT * FROM (SELECT age FROM people) x
WITH x AS (SELECT * FROM people) SELECT * FROM x
SELECT age, COUNT(*) OVER () FROM people
SELECT COUNT(*) FROM people WHERE query('x') IS NULL
SELECT COUNT(*) FROM people WHERE set_config('a', 'b', false) IS NULL
SELECT COUNT(*) FROM people WHERE nextval('x') > 1
SELECT COUNT(*) FROM people WHERE query_to_xml('x', true, true, '') IS NULL
SELECT COUNT(*) FROM people WHERE pg_read_file('/etc/passwd') = ''
SELECT COUNT(*) FROM people WHERE lo_import('/etc/passwd') = 1
SELECT COUNT(*) FROM people WHERE read_text('/etc/passwd') = ''
SELECT COUNT(*) FROM glob('*')
SELECT COUNT(*) FROM people WHERE getvariable('x') = 1
SELECT COUNT(*) FROM people WHERE setseed(0.5) IS NULL
SELECT COUNT(*) FROM people WHERE dblink('x', 'y') IS NULL
SELECT COUNT(*) FROM people p WHERE EXISTS (SELECT 1 FROM people q WHERE q.age = p.age)
SELECT COUNT(*) FROM people p WHERE p.age > (SELECT AVG(q.age) FROM people q WHERE q.city = p.city)
SELECT COUNT(*) FROM people p WHERE EXISTS (SELECT 1 FROM visits v WHERE v.uid <> p.uid)
SELECT COUNT(*) FROM shops WHERE EXISTS (SELECT 1 FROM visits)
SELECT COUNT(*) FROM visits a JOIN visits b ON a.uid = b.uid
SELECT COUNT(*) FROM visits a, visits b, visits c WHERE a.uid = b.uid AND b.uid = c.uid
SELECT COUNT(*) FROM people p ANTI JOIN visits v ON p.uid = v.uid
SELECT COUNT(*) FROM items i JOIN orders o ON i.i_order > o.o_id
SELECT COUNT(*) FROM people p LEFT JOIN visits v ON TRUE
SELECT FIRST_VALUE(age) OVER (ORDER BY age) FROM people
SELECT 1 FROM people
SELECT uid FROM people ORDER BY uid LIMIT 5
SELECT COUNT(*) FROM (SELECT * FROM visits LIMIT 10) x
SELECT COUNT(*) FROM (SELECT * FROM visits ORDER BY amount OFFSET 3) x
SELECT COUNT(*) FROM (SELECT uid, ROW_NUMBER() OVER (ORDER BY amount) r FROM visits) x
SELECT shop, amount FROM visits GROUP BY shop
SELECT COUNT(*) FROM people WHERE uid = (SELECT uid FROM visits)
SELECT age + COUNT(*) FROM people
SELECT (SELECT note) FROM people
SELECT COUNT(*) FROM people WHERE note = 'a' UNION SELECT age FROM people
SELECT SUM(ctid) FROM people
SELECT COUNT(xmin) FROM people
SELECT g FROM generate_series(TIMESTAMP '2000-01-31', TIMESTAMP '2000-12-31', '1 month -31 days') AS g
SELECT g FROM generate_series(TIMESTAMP '2000-01-31', TIMESTAMP '2000-12-31', 'often') AS g
SELECT COUNT(*) JOIN visits USING (uid)
SELECT COUNT(*) . people p LEFT JOIN visits v ON v.uid = p.uid
SELECT DISTINCT ON (uid) age, COUNT(*) FROM people GROUP BY age
SELECT DISTINCT ON (age, uid) age, COUNT(*) FROM people GROUP BY age ORDER BY uid
SELECT age, COUNT(*) FROM people GROUP BY age HAVING note = 'a' ORDER BY score QUALIFY RANK() OVER w < 3 WINDOW w AS (ORDER BY salary)
-- EITHER: refused, or total on every row
SELECT COUNT(*) FROM people WHERE joined < now()
SELECT COUNT(*) FROM people WHERE joined < current_date
SELECT COUNT(*) FROM people WHERE sqrt(age-30) > 1
SELECT SUM(1/(age-30)) FROM people
SELECT COUNT(*) FROM people WHERE CAST(note AS INT) = 1
SELECT COUNT(*) FROM people WHERE note::date = '2020-01-01'
SELECT COUNT(*) FROM people WHERE ln(age) > 1
SELECT COUNT(*) FROM people WHERE SUBSTRING(note, 1, -3) = ''
SELECT COUNT(*) FROM people WHERE substr(note, -3) = ''
SELECT COUNT(*) FROM people WHERE joined = 'infinity'
SELECT COUNT(*) FROM people WHERE score = 'NaN'
SELECT COUNT(*) FROM people WHERE score = 'Infinity'::float8
SELECT COUNT(*) FROM people WHERE (age, level) = (1,2)
SELECT COUNT(*) FROM people WHERE note || 'x' = 'y'
SELECT COUNT(*) FROM people WHERE concat(note,'x') = 'y'
SELECT COUNT(*) FROM people WHERE note COLLATE "C" = 'y'
SELECT COUNT(*) FROM people WHERE note LIKE note
SELECT COUNT(*) FROM people WHERE note LIKE 'a' ESCAPE 'b'
SELECT COUNT(*) FROM people WHERE note = $$x$$
SELECT COUNT(*) FROM people WHERE note = U&'\0061'
SELECT COUNT(*) FROM people WHERE note = B'101'
SELECT COUNT(*) FROM people WHERE note = X'41'
SELECT COUNT(*) FROM people GROUP BY GROUPING SETS ((city),())
SELECT SUM(DISTINCT age) FROM people
SELECT COUNT(DISTINCT uid, age) FROM people
SELECT SUM(age ORDER BY age) FROM people
SELECT COUNT(*) FROM people WHERE age > :x
SELECT COUNT(*) FROM people WHERE age > ?
SELECT COUNT(*) FROM people, LATERAL (SELECT 1) x
SELECT COUNT(*) FROM people, generate_series(1,10) g
SELECT COUNT(*) FROM people, unnest(ARRAY[1,2]) g
SELECT COUNT(*) FROM visits WHERE amount > ALL (SELECT 1)
SELECT COUNT(*) FROM visits v WHERE amount > (SELECT rent FROM shops s WHERE s.shop=v.shop)
SELECT shop FROM shops s WHERE EXISTS (SELECT 1 FROM visits v WHERE v.shop=s.shop)
SELECT shop, (SELECT COUNT(*) FROM visits v WHERE v.shop=s.shop) FROM shops s
SELECT ROW(age) FROM people
SELECT COUNT(ROW(age)) FROM people
SELECT COUNT(*) FROM people p WHERE p IS NULL
SELECT COUNT(*) FROM people WHERE people IS NOT NULL
SELECT MD5(note), COUNT(*) FROM people GROUP BY 1
SELECT COUNT(*) FROM people WHERE age::text = '3'
SELECT COUNT(*) FROM people WHERE joined::text = '3'
SELECT COUNT(*) FROM people WHERE age::bool
SELECT EXTRACT(second FROM at), COUNT(*) FROM visits GROUP BY 1
SELECT EXTRACT(century FROM at), COUNT(*) FROM visits GROUP BY 1
SELECT DATE_TRUNC('century', at), COUNT(*) FROM visits GROUP BY 1
SELECT DATE_TRUNC(tag, at), COUNT(*) FROM visits GROUP BY 1
SELECT DATE_TRUNC('day', tag), COUNT(*) FROM visits GROUP BY 1
SELECT at - seen, COUNT(*) FROM visits GROUP BY 1
SELECT COUNT(*) FROM visits WHERE at - at > INTERVAL '1 day'
SELECT COUNT(*) FROM visits WHERE at + qty * INTERVAL '1 day' > '2020-01-01'
SELECT day + qty, COUNT(*) FROM visits GROUP BY 1
SELECT day + 200000, COUNT(*) FROM visits GROUP BY 1
SELECT at AT TIME ZONE 'UTC', COUNT(*) FROM visits GROUP BY 1
SELECT COUNT(*) FROM visits WHERE at < '0001-01-01'
SELECT COUNT(*) FROM visits WHERE at BETWEEN '2020-01-01' AND 5
SELECT POWER(qty, 2), COUNT(*) FROM visits GROUP BY 1
SELECT qty & 1, COUNT(*) FROM visits GROUP BY 1
SELECT qty << 70, COUNT(*) FROM visits GROUP BY 1
SELECT qty ^ 2, COUNT(*) FROM visits GROUP BY 1
SELECT ROUND(amount, qty), COUNT(*) FROM visits GROUP BY 1
SELECT ROUND(amount, 300), COUNT(*) FROM visits GROUP BY 1
SELECT amount::numeric(40,2), COUNT(*) FROM visits GROUP BY 1
SELECT CASE qty WHEN 1 THEN 'a' WHEN 'x' THEN 'b' END, COUNT(*) FROM visits GROUP BY 1
SELECT IF(qty>1,1,2), COUNT(*) FROM visits GROUP BY 1
SELECT TRY_CAST(tag AS INT), COUNT(*) FROM visits GROUP BY 1
SELECT COUNT(*) FROM visits LIMIT (SELECT qty FROM visits LIMIT 1)
SELECT COUNT(*) FROM visits LIMIT 1 OFFSET -1
SELECT DISTINCT ON (shop) shop, amount FROM visits
-- TOTAL: accepted, and no row can make it fail
SELECT SUM(big+9223372036854775807) FROM visits
SELECT COUNT(*) FROM visits WHERE qty = 9223372036854775808
SELECT COUNT(*) FROM visits WHERE qty < -9223372036854775808
SELECT COUNT(*) FROM visits WHERE big = -9223372036854775808
SELECT COUNT(*) FROM visits WHERE price = 0.1234567890123456789
SELECT COUNT(*) FROM visits WHERE price IN (18, 18.5, 1e3, 12345678901234567890)
SELECT SUM(p.salary) FROM people AS p(uid, salary, age)
SELECT SUM(age) FROM (SELECT salary AS age FROM people) x
WITH people AS (SELECT * FROM visits) SELECT SUM(amount) FROM people
WITH people AS (SELECT 5 AS age) SELECT SUM(age) FROM people
SELECT COUNT(*) FROM public.people
SELECT COUNT(*) FROM People
SELECT COUNT(*), now() FROM people
SELECT SUM(COUNT(*)) OVER () FROM people
SELECT COUNT(*) FROM people QUALIFY ROW_NUMBER() OVER () = 1
SELECT COUNT(*) FROM people WHERE 1/(age-30) > 0
SELECT COUNT(*) FROM people WHERE age = '12'
SELECT COUNT(*) FROM people WHERE level = 99999
SELECT COUNT(*) FROM people WHERE note LIKE 'a\b'
SELECT COUNT(*) FROM people WHERE note = E'a\nb'
SELECT COUNT(*) FROM people WHERE note = 'a''b'
SELECT COUNT(*) FROM people -- aa */ SELECT 1 --
SELECT COUNT(*) /* x */ FROM people
SELECT COUNT(*) FROM people GROUP BY -1
SELECT COUNT(*) FROM people GROUP BY 'x'
SELECT COUNT(*), $1 FROM people
SELECT COUNT(*) FROM people WHERE age > $1
SELECT COUNT(*) FROM people WHERE $1
SELECT COUNT(*) FROM people, (VALUES (1),(2)) g(x)
SELECT g.x, COUNT(*) FROM people, (VALUES (1),(2)) g(x) GROUP BY g.x
SELECT COUNT(*) FROM people p, visits v WHERE p.uid=v.uid AND EXISTS (SELECT 1)
SELECT COUNT(*) FROM visits WHERE amount > (SELECT rent FROM shops)
SELECT COUNT(*) FROM visits WHERE amount > (SELECT MAX(rent) FROM shops)
SELECT UPPER(note), COUNT(*) FROM people GROUP BY 1
SELECT SUM(active::int) FROM people
SELECT day - 179999, COUNT(*) FROM visits GROUP BY 1
SELECT amount::numeric(38,15), COUNT(*) FROM visits GROUP BY 1
SELECT DISTINCT shop, COUNT(*) FROM visits GROUP BY shop
SELECT shop, RANK() OVER (ORDER BY SUM(amount)) FROM visits GROUP BY shop
SELECT (SELECT COUNT(*) FROM people) + (SELECT COUNT(*) FROM visits)
SELECT COUNT(*)::text || 'x' FROM people
SELECT COUNT(*) FROM people NATURAL JOIN shops
SELECT COUNT(*) FROM people JOIN visits USING (uid, uid)
SELECT COUNT(*) FROM people JOIN visits ON people.uid = visits.uid AND people.uid = 5
SELECT COUNT(*) FROM people JOIN visits ON TRUE WHERE people.uid=visits.uid
SELECT COUNT(*) FROM people WHERE note = '''; DROP TABLE people; --'
SELECT COUNT(*) AS "x"" FROM people; --" FROM people
SELECT note AS "u", COUNT(*) AS "k0" FROM people AS "p""q" GROUP BY 1
SELECT SUM(amount * 1e-30) FROM visits
SELECT AVG(0.1 + 0.2) FROM visits
SELECT SUM(big % qty), SUM(qty % 3) FROM visits
SELECT SUM(ABS(qty - 32767)) FROM visits
SELECT COUNT(*) FROM visits WHERE amount / amount = 1 AND amount - amount = 0
SELECT COUNT(*) FROM visits WHERE 1 / (amount - amount) IS NULL
SELECT COUNT(*) FROM visits WHERE amount * amount * amount > 1
SELECT COUNT(*) FROM people WHERE height * height / height < 3
SELECT COUNT(*) FROM visits WHERE big * big > 0 AND -big < 5 AND ABS(big) > 1
SELECT COUNT(*) FROM visits WHERE (big::smallint) = 1 OR (amount::int) = 2 OR (price::bigint) = 3
SELECT COUNT(*) FROM visits WHERE day + INTERVAL '490 years' > at - INTERVAL '490 years'
SELECT COUNT(*) FROM visits WHERE day - DATE '1000-01-01' > 3
SELECT COUNT(*) FROM visits WHERE EXTRACT(epoch FROM seen) * 1000 > 1
SELECT DATE_TRUNC('week', day), COUNT(*) FROM visits GROUP BY 1
SELECT seen, day, at, COUNT(*) FROM visits GROUP BY 1, 2, 3
SELECT COUNT(*) FROM people WHERE LENGTH(UPPER(LOWER(TRIM(note)))) > 2 AND LEFT(note, 0) = ''
SELECT SUBSTRING(note, 2147483647, 2147483647), COUNT(*) FROM people GROUP BY 1
SELECT TRY_CAST(note AS integer), COUNT(*) FROM people GROUP BY 1
SELECT TRY_CAST(note AS smallint), TRY_CAST(note AS bigint), COUNT(*) FROM people GROUP BY 1, 2
SELECT SUM(LEAST(GREATEST(TRY_CAST(note AS numeric), 0), 100)) FROM people
SELECT TRY_CAST(note AS date), COUNT(*) FROM people GROUP BY 1
SELECT date_trunc('month', TRY_CAST(note AS timestamp)), COUNT(*) FROM people GROUP BY 1
SELECT COUNT(*) FROM people WHERE EXTRACT(year FROM TRY_CAST(note AS date)) > 2000
SELECT SUM(EXP(LEAST(age, 34))) FROM people
SELECT AVG(EXP(-age)) FROM people
SELECT SUM(LEAST(EXP(LEAST(amount, 30)), 1000)) FROM visits
SELECT left(note, -2147483647), COUNT(*) FROM people GROUP BY 1
SELECT right(note, -2147483647), COUNT(*) FROM people GROUP BY 1
SELECT substring(note, -2147483647, 2147483647), COUNT(*) FROM people GROUP BY 1
SELECT translate(note, 'abc\%_', 'x'), COUNT(*) FROM people GROUP BY 1
SELECT md5(note), COUNT(*) FROM people GROUP BY 1
SELECT repeat(note, 20), COUNT(*) FROM people GROUP BY 1
SELECT overlay(note PLACING 'x' FROM 2147483647 FOR 2147483647), COUNT(*) FROM people GROUP BY 1
SELECT COUNT(*) FROM people WHERE note ~ '^(a|b).*\d$' OR note SIMILAR TO '%(x|y)_' OR note LIKE '!%%' ESCAPE '!'
SELECT initcap(city), md5(city), reverse(city), COUNT(*) FROM people GROUP BY 1, 2, 3
SELECT COUNT(*) FROM visits WHERE (qty, amount, tag) < (3, 10.5, 'b') OR (qty, tag) >= (9, 'a')
SELECT date_diff('second', at, TIMESTAMP '9990-12-31'), COUNT(*) FROM visits GROUP BY 1
SELECT date_diff('quarter', at, day), datediff(day, day, at), COUNT(*) FROM visits GROUP BY 1, 2
SELECT last_day(at), COUNT(*) FROM visits GROUP BY 1
SELECT time_bucket(INTERVAL '1.5 hours', at), COUNT(*) FROM visits GROUP BY 1
SELECT date_add(at, INTERVAL 'P400Y'), dateadd(year, -400, day), COUNT(*) FROM visits GROUP BY 1, 2
SELECT COUNT(DIV(qty, 0)), SUM(DIV(price, 7)) FROM visits
SELECT AVG(age, contribution_bounds_per_row => (10, 20)), ANON_VAR_POP(age CLAMPED BETWEEN 1 AND 5) FROM people
-- SAME: one message for every column that is not declared
SELECT COUNT(rowid) FROM people
SELECT COUNT(nosuch) FROM people
SELECT COUNT(t0_age) FROM people
SELECT COUNT(u) FROM people
SELECT COUNT("t0_age") FROM people
