-- literals and names
SELECT 1
SELECT 1+1 AS x
SELECT 1, 'a', NULL, true, 1.5, -3, 3000000000, 99999999999999999999
SELECT 1 AS "Zed", 2 AS "two words", 3 AS MiXed
SELECT 'it''s' AS q, 'a\b' AS b
SELECT 1e3, 1.50, .5, 1.5e-3, 12345678901234567890.123
SELECT NULL::int, NULL::text, NULL::numeric
SELECT date '2020-02-29', timestamp '2020-02-29 12:34:56.789', '2020-01-01'::date
SELECT true AND NULL, false AND NULL, true OR NULL, NOT NULL::bool
SELECT CAST('5' AS int), '5'::int + 1, '1.5'::numeric * 2
SELECT 1::text, 1.50::text, true::text, 2.5::float8::text, 1e20::float8::text, 0.1::float8::text
SELECT 1::int8, 1::int2, 1::float4, 1::numeric, 1::numeric(5,2), 'x'::varchar, 'abcdef'::varchar(3)
SELECT 2.5::int, 3.5::int, -2.5::int, 2.5::float8::int, 3.5::float8::int, -0.5::float8::int
SELECT '  42 '::int, ' 1.50'::numeric, 'on'::bool, 'f'::bool
SELECT 1::bool, 0::bool, true::int
SELECT '2020-01-02 03:04:05'::timestamp::date, '2020-01-02'::date::timestamp
SELECT '2020-01-02 03:04:05+02'::timestamptz, '2020-01-02'::date::timestamptz
SELECT 123.456::numeric(6,1), 123.456::numeric(10,4), -0.05::numeric(3,1)
SELECT 0.1::float8::numeric, 1e15::float8::numeric, 1.0::float4::numeric, 123456.789::float4::numeric
SELECT 123456789.123::float4::text, 1e-5::float8::text, 1e15::float8::text, 1e14::float8::text, 123456.7::float4::text
SELECT '{}'::text, ''::text
SELECT '12:34:56'::time, time '01:02'
SELECT '1.5'::float8, '-1e3'::float8, 'NaN'::float8, 'Infinity'::float8
SELECT 'NaN'::numeric, 'NaN'::numeric + 1
-- arithmetic
SELECT 7/2, -7/2, 7/-2, 7%3, -7%3, 7 % -3
SELECT 7.0/2, 1/3.0, 2/3.0, 100.0/3, 1.0/7, 10.00/4, 0.0/5
SELECT 1::numeric/3, 1000000::numeric/3, 0.001::numeric/3, 123456789::numeric/0.001, 5::numeric/10000000000
SELECT 7.5 % 2, -7.5 % 2, 7.25 % 0.5
SELECT 1.10 + 2.2, 1.10 * 2.20, 3 - 0.05, 2 * 1.5
SELECT 1::int8 + 1::int2, 1::float4 + 1::float4, 1::float4 + 1::float8, 1 + 1.0::float8, 1.5 + 1::float8
SELECT 2 ^ 3, 2 ^ 0.5, 2.0 ^ 3, 2::float8 ^ 3
SELECT -2 ^ 2, 2 * -3, - (-5), -(2.5), -1.0::float8
SELECT 5 - 3 - 1, 2 + 3 * 4, (2 + 3) * 4, 100 / 10 / 2, 7 - 2 * 3
SELECT 1 = 1.0, 1 < 2.5, 1.5 >= 1.5::float8, 2 <> 3, 1 != 1, '1' = 1, 'a' < 'b'
SELECT 0.1 + 0.2 = 0.3, 0.1::float8 + 0.2::float8 = 0.3::float8
SELECT 12345678901234567890 * 98765432109876543210, 12345678901234567890123456789 + 1.123456789012345678901234567890
SELECT 9223372036854775807::int8 * 2.0, 9223372036854775807 / 3, 4611686018427387904 / 7.0
SELECT 5 & 3, 5 | 3, 5 # 3, ~5
SELECT a0 + 1, a0 * 2, a0 / 2, a0 % 3, a0 - 1, -a0 FROM r1
SELECT a1 + 1, a1 * 2, a1 / 2, a1 - 1, -a1 FROM r1
SELECT a2 + 1, a2 * 2, a2 / 2, a2 % 3, a2 - 1, -a2, a2 * 1.5, a2 + a0, a2 / a0 FROM r1 WHERE a0 <> 0
SELECT a0 * 1.0 / 3, a0::float8 / 3, a0::numeric / 7, 100.0 * a0 / 37 FROM r1
SELECT price * small, price / small, price + id, price * 1.1, price::float8 * 2 FROM cal WHERE small <> 0
SELECT real + 1, real * 2, real / 3, real + real, real::float8 FROM cal
-- comparison and logic
SELECT a0 > 10, a0 = 5, a0 <> 5, a0 IS NULL, a0 IS NOT NULL FROM r1
SELECT a0 IS DISTINCT FROM 5, a0 IS NOT DISTINCT FROM NULL FROM r1
SELECT a0 BETWEEN 1 AND 50, a0 NOT BETWEEN 1 AND 50, a1 BETWEEN 0 AND 1 FROM r1
SELECT a0 BETWEEN SYMMETRIC 50 AND 1 FROM r1
SELECT a0 IN (5, 17, 100), a0 NOT IN (5, 17), a0 IN (5, NULL), a2 IN (1.5, 2) FROM r1
SELECT k0 IN ('a', 'b'), k0 NOT IN ('a') FROM r1
SELECT (a0 > 10) IS TRUE, (a0 > 10) IS NOT FALSE, (a0 > 10) IS UNKNOWN FROM r1
SELECT a2 > 1.5, a2 = 2.50, a2 < a0, a2 >= 3, a2 = a1 FROM r1
SELECT price > 10, price = 19.990, price < small FROM cal
SELECT ok, NOT ok, ok AND small > 1, ok OR small > 1, ok = true FROM cal
SELECT (1, 'a') = (1, 'a'), (1, 2) <> (1, 3), (1, NULL) = (2, 3)
SELECT NOT a0 > 5 AND a1 < 2 FROM r1
-- conditional
SELECT CASE WHEN a0 > 10 THEN 'big' WHEN a0 IS NULL THEN 'none' ELSE 'small' END FROM r1
SELECT CASE k0 WHEN 'a' THEN 1 WHEN 'b' THEN 2.5 END FROM r1
SELECT CASE WHEN a0 > 10 THEN a0 ELSE a1 END, CASE WHEN true THEN NULL ELSE 1 END FROM r1
SELECT CASE WHEN a0 > 10 THEN a0 END AS c, CASE WHEN a0 > 10 THEN 1 ELSE a0 END FROM r1
SELECT COALESCE(a0, 0), COALESCE(k0, 'none'), COALESCE(NULL, 1.5), COALESCE(a1, a0) FROM r1
SELECT NULLIF(a0, 5), NULLIF(k0, 'a'), NULLIF(1, 2), NULLIF(a2, 2.5) FROM r1
SELECT GREATEST(a0, 10), LEAST(a0, 10), GREATEST(1, NULL), LEAST(NULL, 2, 3), GREATEST(1, 2.5), LEAST('a', 'b') FROM r1
SELECT GREATEST(a2, 2), LEAST(a2, a0), GREATEST(date '2020-01-01', date '2021-01-01') FROM r1
SELECT a0 / NULLIF(a0, 0) FROM r1
SELECT CASE WHEN a0 = 0 THEN NULL ELSE 10 / a0 END FROM r1
-- mathematical functions
SELECT abs(-5), abs(-5.50), abs(-1.5::float8), abs(a0), abs(a2) FROM r1
SELECT ceil(1.2), ceil(-1.2), floor(1.8), floor(-1.8), ceil(1.2::float8), floor(-1.8::float8), ceiling(2), floor(7)
SELECT round(2.5), round(-2.5), round(2.5::float8), round(3.5::float8), round(1234.567, 2), round(1234.567, -2), round(2.345, 2), round(7)
SELECT round(a0 / 3.0, 2), round(a2, 1), round(a1) FROM r1
SELECT round((100.0 * a0 / 37)::numeric, 2), round(a1::numeric, 3) FROM r1
SELECT trunc(2.7), trunc(-2.7), trunc(1234.567, 1), trunc(2.7::float8), trunc(1234.5, -2)
SELECT sign(-2.5), sign(0), sign(3::float8), sign(a0) FROM r1
SELECT sqrt(2), sqrt(2.0), sqrt(16::numeric), sqrt(2::float8), sqrt(0.0001), sqrt(123456789.12), cbrt(27), cbrt(2)
SELECT exp(1), exp(1.0), exp(0::float8), exp(2.5), exp(10.0), exp(-3.5)
SELECT ln(2), ln(2.0), ln(10::float8), ln(0.5), ln(123456.789), log(100), log(1000.0), log(2.0, 64.0), log(2, 10)
SELECT power(2, 10), power(2.0, 10), power(2.0, 0.5), power(2::float8, 0.5), pow(3, 2), power(10.0, -2), power(1.1, 10.5)
SELECT mod(7, 3), mod(-7, 3), mod(7.5, 2), div(7, 2), div(-7.5, 2), div(7.9, 2)
SELECT pi(), degrees(1), radians(180), sin(1), cos(1), tan(1), asin(0.5), acos(0.5), atan(1), atan2(1, 2)
SELECT width_bucket(5.35, 0.024, 10.06, 5), width_bucket(0, 1, 10, 3), width_bucket(11, 1, 10, 3), width_bucket(3::float8, 10, 0, 5)
SELECT width_bucket(a0, 0, 100, 10), width_bucket(a1, 0, 5, 4) FROM r1
SELECT gcd(12, 18), lcm(4, 6)
SELECT floor(a0 / 10) * 10, floor(a0 / 10.0) * 10, (a0 / 10) * 10 FROM r1
SELECT FLOOR((a1 - 0.0) / 10) * 10 + 0.0 FROM r1
-- text functions
SELECT 'a' || 'b', 'a' || 1, 1 || 'a', k0 || a0, 'x' || NULL, 'n: ' || 1.50 || ' ' || true FROM r1
SELECT lower('ÀBC'), upper('straé'), length('héllo'), char_length('abc'), octet_length('é'), lower(k0) FROM r1
SELECT substring('hello', 2, 3), substring('hello' from 2), substring('hello' from 2 for 2), substr('hello', -1, 4), substring('hello', 0, 3), substr('hello', 10)
SELECT left('hello', 2), left('hello', -2), right('hello', 2), right('hello', -2), left('a', 5), left('abc', 0)
SELECT trim('  a '), ltrim('  a'), rtrim('a  '), trim(both 'x' from 'xxaxx'), ltrim('xyxa', 'xy'), rtrim('abb', 'b'), btrim('xax', 'x'), trim(leading 'x' from 'xa')
SELECT replace('hello', 'l', 'L'), replace('abc', '', 'x'), position('l' in 'hello'), strpos('hello', 'z'), position('' in 'a')
SELECT lpad('hi', 5, 'xy'), lpad('hello', 3), rpad('hi', 5, 'xy'), lpad('hi', 4), rpad('hi', 0), lpad('hi', 5, '')
SELECT concat('a', NULL, 1, 2.50, true), concat_ws('-', 'a', NULL, 'b', 3), concat(k0, a0) FROM r1
SELECT split_part('a,b,c', ',', 2), split_part('a,b,c', ',', 4), split_part('a,b,c', ',', -1)
SELECT reverse('abc'), repeat('ab', 3), repeat('a', 0), ascii('A'), chr(65), initcap('hello wORLD-foo'), starts_with('abc', 'ab')
SELECT md5('a'), to_hex(255), translate('abc', 'ab', 'x'), overlay('abcdef' placing 'XX' from 3 for 2)
SELECT 'abc' LIKE 'a%', 'abc' LIKE 'A%', 'abc' ILIKE 'A%', 'abc' NOT LIKE '%b%', 'a_c' LIKE 'a\_c', 'abc' LIKE 'a\_c', 'a%b' LIKE 'a!%b' ESCAPE '!'
SELECT k0 LIKE 'a', k0 LIKE '_', k0 LIKE '%', k0 ILIKE 'A' FROM r1
SELECT 'abc' ~ '^a', 'abc' ~* 'B', 'abc' !~ 'z', 'abc' !~* 'B'
SELECT quote_literal('it''s'), 'a' || 'b' || 'c' = 'abc'
SELECT name, upper(name), length(name), name || '!' FROM cal
SELECT '100' < '99', 'a' || NULL IS NULL, 'B' < 'a'
-- dates
SELECT day, at, atz FROM cal
SELECT day + 1, day - 1, day - date '2020-01-01', day + interval '1 month', at - interval '1 day', at - timestamp '2020-01-01', day + time '10:00' FROM cal
SELECT atz + interval '1 day', atz - interval '2 hours', atz - timestamptz '2020-01-01 00:00:00+00' FROM cal
SELECT extract(year from day), extract(month from at), extract(dow from day), extract(isodow from day), extract(doy from day), extract(week from day), extract(quarter from day), extract(hour from at), extract(isoyear from day) FROM cal
SELECT extract(epoch from at), extract(epoch from day), extract(epoch from atz), extract(second from at), extract(milliseconds from at), extract(microseconds from at), extract(minute from at) FROM cal
SELECT extract(century from day), extract(decade from day), extract(millennium from day), extract(day from day) FROM cal
SELECT date_trunc('month', at), date_trunc('year', atz), date_trunc('week', at), date_trunc('quarter', at), date_trunc('hour', at), date_trunc('day', day), date_trunc('decade', at), date_trunc('century', at), date_trunc('second', at), date_trunc('milliseconds', at) FROM cal
SELECT date_trunc('month', day)::date, CAST(DATE_TRUNC('week', at + INTERVAL '1 day') AS timestamp) + INTERVAL '-1 day' FROM cal
SELECT FLOOR(EXTRACT(epoch FROM at) / 86400) * 86400 AS time FROM cal
SELECT day < date '2021-01-01', at > '2020-06-01', day = at::date, at BETWEEN '2020-01-01' AND '2020-12-31', day < at, atz > '2020-01-01T00:00:00Z' FROM cal
SELECT to_char(at, 'YYYY-MM-DD HH24:MI:SS'), to_char(day, 'Mon YYYY'), to_char(at, 'FMMonth DD, YYYY'), to_char(at, 'HH12:MI AM'), to_char(at, 'Day DDD D ID Q WW IW'), to_char(at, 'MS US'), to_char(at, 'DDth Dy mon MONTH month') FROM cal
SELECT to_char(day, 'YYYY"Q"Q'), to_char(at, 'YY'), to_char(at, 'FMDD/FMMM'), to_char(at, 'IYYY-IW'), to_char(day, 'YYYY-MM') FROM cal
SELECT to_char(1234.5, '9,999.99'), to_char(1234.5, 'FM9,999.00'), to_char(-5, '999'), to_char(5, '000'), to_char(0.5, '0.99'), to_char(12345, 'FM999,999,999'), to_char(1234567, '999,999'), to_char(0.1234, 'FM990.00'), to_char(-0.5, 'FM0.0'), to_char(12, 'FM00000')
SELECT to_char(0.456 * 100, 'FM990.0') || '%', to_char(1234.567::float8, 'FM9999.00'), to_char(a0, '9999') FROM r1
SELECT to_date('2020-05-06', 'YYYY-MM-DD'), to_date('06/05/2020', 'DD/MM/YYYY'), to_date('20200506', 'YYYYMMDD')
SELECT to_timestamp('2024-01-01 00:00:00.000000', 'YYYY-MM-DD HH24:MI:SS.US'), to_timestamp(1577836800), to_timestamp(1577836800.5)
SELECT make_date(2020, 2, 29), make_timestamp(2020, 1, 2, 3, 4, 5.5)
SELECT at AT TIME ZONE 'UTC', atz AT TIME ZONE 'UTC', atz AT TIME ZONE 'America/New_York', at AT TIME ZONE 'Europe/Rome' FROM cal
SELECT day::timestamp, at::date, atz::date, atz::timestamp, at::timestamptz, at::time, day::text, at::text, atz::text FROM cal
SELECT interval '1 day' * 2, interval '1 hour' / 2, 2 * interval '1 day 2 hours', interval '1 day' + interval '2 hours', interval '90 minutes'
SELECT '1 day'::interval, interval '1' day, interval '2 days 3 hours 4 minutes', interval '-1 day', interval '1 week'
SELECT extract(epoch from interval '1 day 2 hours'), extract(day from interval '3 days'), extract(hour from at - timestamp '2020-01-01 00:00:00') FROM cal
SELECT age(timestamp '2020-03-01', timestamp '2020-01-15')
SELECT date_bin('15 minutes', at, timestamp '2001-01-01') FROM cal
SELECT (interval '1 day')::text, '1 day 02:03:04.5'::interval::text, (at - timestamp '2020-01-01')::text FROM cal
SELECT interval '1 month', interval '1 year 2 mons 3 days 04:05:06', interval '-14 mons +3 days -04:05:06.5', interval '90 hours', interval '0'::text
SELECT date '2013-01-31' + interval '1 month', timestamp '2020-03-31 10:00' - interval '1 mon 1 day', interval '1 year' - interval '1 month'
SELECT interval '1.5 months', interval '1.5 years', interval '1.25 days', interval '2.5 weeks', interval '0.1 decades', interval '1.5 hours ago', interval '@ 1 year -2 mons'
SELECT interval 'P1Y2M3DT4H5M6.7S', interval 'P1.5M', interval 'PT-90M', interval '1 century', interval '2 millennia', '-1 days +02:03:00'::interval
SELECT interval '1 month' * 1.5, interval '1 year' / 5, -interval '1 mon 2 days', interval '1 month' * a0 AS spans FROM r1
SELECT age(at, timestamp '2018-11-30 12:00') AS since, age(timestamp '2018-11-30', at) AS before FROM cal ORDER BY since
SELECT id, at - timestamp '2020-01-01 23:00' AS gone, NULL::interval AS none FROM cal ORDER BY gone DESC NULLS LAST, id
SELECT CASE WHEN a0 > 10 THEN interval '1 month' ELSE interval '40 days' END AS span, COUNT(*) FROM r1 GROUP BY 1 ORDER BY 1
SELECT max(span), min(span) FROM (SELECT interval '1 month' * a0 AS span FROM r1) AS s
SELECT interval '1 month' AS a, interval '30 days' AS a UNION ALL SELECT interval '2 months', NULL
SELECT interval '1 month' = interval '30 days', interval '1 month' > interval '29 days', greatest(interval '1 month', interval '29 days')
WITH s AS (SELECT k0, interval '1 month' * a0 AS span FROM r1) SELECT k0, span FROM s ORDER BY span DESC NULLS FIRST, k0 NULLS LAST LIMIT 3
SELECT isfinite(day), isfinite(at) FROM cal
