-- a time series by month
SELECT DATE_TRUNC('month', time_hour) AS time_hour, COUNT(*) AS count
FROM public.flights GROUP BY DATE_TRUNC('month', time_hour)
 LIMIT 10000;

-- a time series by week
SELECT DATE_TRUNC('week', time_hour) AS time_hour, COUNT(*) AS count
FROM public.flights GROUP BY DATE_TRUNC('week', time_hour)
 LIMIT 10000;

-- a time series by quarter
SELECT DATE_TRUNC('quarter', time_hour) AS time_hour, COUNT(*) AS count
FROM public.flights GROUP BY DATE_TRUNC('quarter', time_hour)
 LIMIT 10000;

-- a calendar
SELECT DATE_TRUNC('day', time_hour) AS time_hour, COUNT(*) AS count
FROM public.flights GROUP BY DATE_TRUNC('day', time_hour)
 LIMIT 10000;

-- a time series of averages in a time range
SELECT DATE_TRUNC('month', time_hour) AS time_hour, COUNT(*) AS count, AVG(dep_delay) AS "AVG(dep_delay)"
FROM public.flights
WHERE time_hour >= TO_TIMESTAMP('2013-01-01 00:00:00.000000', 'YYYY-MM-DD HH24:MI:SS.US') AND time_hour < TO_TIMESTAMP('2013-07-01 00:00:00.000000', 'YYYY-MM-DD HH24:MI:SS.US') GROUP BY DATE_TRUNC('month', time_hour)
 LIMIT 10000;

-- a time series with a time column of the old kind
SELECT DATE_TRUNC('month', time_hour) AS __timestamp, COUNT(*) AS count
FROM public.flights
WHERE time_hour >= TO_TIMESTAMP('2013-03-01 00:00:00.000000', 'YYYY-MM-DD HH24:MI:SS.US') AND time_hour < TO_TIMESTAMP('2013-09-01 00:00:00.000000', 'YYYY-MM-DD HH24:MI:SS.US') GROUP BY DATE_TRUNC('month', time_hour)
 LIMIT 10000;

-- the first 4 series
SELECT DATE_TRUNC('week', time_hour) AS time_hour, carrier AS carrier, COUNT(*) AS count
FROM public.flights JOIN (SELECT carrier AS carrier__, COUNT(*) AS mme_inner__
FROM public.flights GROUP BY carrier ORDER BY COUNT(*) DESC
 LIMIT 4) AS series_limit ON carrier = carrier__ GROUP BY DATE_TRUNC('week', time_hour), carrier
 LIMIT 10000;

-- the first series by a sum, in a time range
SELECT DATE_TRUNC('month', time_hour) AS time_hour, carrier AS carrier, AVG(dep_delay) AS "AVG(dep_delay)"
FROM public.flights JOIN (SELECT carrier AS carrier__, AVG(dep_delay) AS mme_inner__
FROM public.flights
WHERE time_hour >= TO_TIMESTAMP('2013-01-01 00:00:00.000000', 'YYYY-MM-DD HH24:MI:SS.US') AND time_hour < TO_TIMESTAMP('2013-07-01 00:00:00.000000', 'YYYY-MM-DD HH24:MI:SS.US') GROUP BY carrier ORDER BY sum(distance) DESC
 LIMIT 1) AS series_limit ON carrier = carrier__
WHERE time_hour >= TO_TIMESTAMP('2013-01-01 00:00:00.000000', 'YYYY-MM-DD HH24:MI:SS.US') AND time_hour < TO_TIMESTAMP('2013-07-01 00:00:00.000000', 'YYYY-MM-DD HH24:MI:SS.US') GROUP BY DATE_TRUNC('month', time_hour), carrier
 LIMIT 10000;

-- the first 2 series of a private key
SELECT DATE_TRUNC('quarter', time_hour) AS time_hour, dest AS dest, COUNT(*) AS count
FROM public.flights JOIN (SELECT dest AS dest__, COUNT(*) AS mme_inner__
FROM public.flights
WHERE dest ILIKE 'a%' GROUP BY dest ORDER BY COUNT(*) DESC
 LIMIT 2) AS series_limit ON dest = dest__
WHERE dest ILIKE 'a%' GROUP BY DATE_TRUNC('quarter', time_hour), dest
 LIMIT 10000;

-- a bar chart of the first 5
SELECT carrier AS carrier, COUNT(*) AS count
FROM public.flights GROUP BY carrier ORDER BY count DESC
 LIMIT 5;

-- a pie
SELECT carrier AS carrier, COUNT(*) AS count
FROM public.flights GROUP BY carrier ORDER BY count DESC
 LIMIT 10000;

-- a bar chart of a private key
SELECT dest AS dest, COUNT(*) AS count
FROM public.flights
WHERE dest IN ('ATL', 'BOS', 'LAX') GROUP BY dest ORDER BY count DESC
 LIMIT 10000;

-- a big number
SELECT COUNT(*) AS count
FROM public.flights
 LIMIT 10000;

-- a big number of units
SELECT count(DISTINCT tailnum) AS "COUNT_DISTINCT(tailnum)"
FROM public.flights
 LIMIT 10000;

-- an aggregated table
SELECT origin AS origin, carrier AS carrier, COUNT(*) AS count, sum(distance) AS "SUM(distance)"
FROM public.flights GROUP BY origin, carrier ORDER BY count DESC
 LIMIT 1000;

-- a pivot table
SELECT origin AS origin, DATE_TRUNC('month', time_hour) AS time_hour, COUNT(*) AS count
FROM public.flights GROUP BY origin, DATE_TRUNC('month', time_hour)
 LIMIT 10000;

-- HAVING
SELECT carrier AS carrier, COUNT(*) AS count
FROM public.flights GROUP BY carrier
HAVING (COUNT(*) > 23000) ORDER BY count DESC
 LIMIT 10000;

-- WHERE written by hand
SELECT carrier AS carrier, COUNT(*) AS count
FROM public.flights
WHERE (dep_delay > 15 AND origin <> 'LGA') GROUP BY carrier ORDER BY count DESC
 LIMIT 10000;

-- filters of every kind
SELECT origin AS origin, COUNT(*) AS count
FROM public.flights
WHERE time_hour >= TO_TIMESTAMP('2013-01-01 00:00:00.000000', 'YYYY-MM-DD HH24:MI:SS.US') AND time_hour < TO_TIMESTAMP('2013-07-01 00:00:00.000000', 'YYYY-MM-DD HH24:MI:SS.US') AND carrier IN ('UA', 'DL', 'B6') AND (origin NOT IN ('LGA')) AND distance >= 500 AND hour < 18 AND dest IS NOT NULL AND dest != 'LAX' AND dest ILIKE '%a%' GROUP BY origin
 LIMIT 10000;

-- a column written by hand
SELECT CASE WHEN distance > 1000 THEN 'long' ELSE 'short' END AS length, COUNT(*) AS count
FROM public.flights GROUP BY CASE WHEN distance > 1000 THEN 'long' ELSE 'short' END
 LIMIT 10000;

-- percentages
SELECT carrier AS carrier, COUNT(*) AS count, COUNT(*) * 100.0 / SUM(COUNT(*)) OVER () AS percent, SUM(CASE WHEN origin = 'JFK' THEN 1 ELSE 0 END) * 1.0 / SUM(COUNT(*)) OVER () AS "from JFK"
FROM public.flights GROUP BY carrier ORDER BY count DESC
 LIMIT 10000;

-- a saved query in a chart
SELECT name AS name, COUNT(*) AS count
FROM (SELECT f.carrier, a.name, f.origin, f.dep_delay, f.time_hour
FROM flights f JOIN airlines a ON a.carrier = f.carrier WHERE dep_delay > 15
) AS virtual_table GROUP BY name
HAVING (COUNT(*) > 3860) ORDER BY count DESC
 LIMIT 10000;

-- a saved query by month
SELECT DATE_TRUNC('month', time_hour) AS time_hour, COUNT(*) AS count
FROM (SELECT f.carrier, a.name, f.origin, f.dep_delay, f.time_hour
FROM flights f JOIN airlines a ON a.carrier = f.carrier WHERE dep_delay > 15
) AS virtual_table GROUP BY DATE_TRUNC('month', time_hour)
 LIMIT 10000;

-- a second page
SELECT carrier AS carrier, COUNT(*) AS count
FROM public.flights GROUP BY carrier ORDER BY count DESC
 LIMIT 2 OFFSET 4;

-- the number of rows
SELECT COUNT(*) AS rowcount
FROM (SELECT carrier AS carrier, COUNT(*) AS count
FROM public.flights GROUP BY carrier ORDER BY count DESC
 LIMIT 10000) AS rowcount_qry;

-- raw records
SELECT carrier AS carrier, dep_delay AS dep_delay
FROM public.flights
 LIMIT 100;

-- raw records in order
SELECT carrier AS carrier, dep_delay AS dep_delay
FROM public.flights ORDER BY dep_delay DESC
 LIMIT 10000;

-- preview of a table
SELECT
  *
FROM public.flights
LIMIT 100

-- a time series by PT1S
SELECT DATE_TRUNC('second', time_hour) AS time_hour, COUNT(*) AS count
FROM public.flights
WHERE time_hour >= TO_TIMESTAMP('2013-03-01 06:00:00.000000', 'YYYY-MM-DD HH24:MI:SS.US') AND time_hour < TO_TIMESTAMP('2013-03-01 08:00:00.000000', 'YYYY-MM-DD HH24:MI:SS.US') GROUP BY DATE_TRUNC('second', time_hour)
 LIMIT 10000;

-- a time series by PT5S
SELECT DATE_TRUNC('minute', time_hour) + INTERVAL '5 seconds' * FLOOR(EXTRACT(SECOND FROM time_hour) / 5) AS time_hour, COUNT(*) AS count
FROM public.flights
WHERE time_hour >= TO_TIMESTAMP('2013-03-01 06:00:00.000000', 'YYYY-MM-DD HH24:MI:SS.US') AND time_hour < TO_TIMESTAMP('2013-03-01 08:00:00.000000', 'YYYY-MM-DD HH24:MI:SS.US') GROUP BY DATE_TRUNC('minute', time_hour) + INTERVAL '5 seconds' * FLOOR(EXTRACT(SECOND FROM time_hour) / 5)
 LIMIT 10000;

-- a time series by PT30S
SELECT DATE_TRUNC('minute', time_hour) + INTERVAL '30 seconds' * FLOOR(EXTRACT(SECOND FROM time_hour) / 30) AS time_hour, COUNT(*) AS count
FROM public.flights
WHERE time_hour >= TO_TIMESTAMP('2013-03-01 06:00:00.000000', 'YYYY-MM-DD HH24:MI:SS.US') AND time_hour < TO_TIMESTAMP('2013-03-01 08:00:00.000000', 'YYYY-MM-DD HH24:MI:SS.US') GROUP BY DATE_TRUNC('minute', time_hour) + INTERVAL '30 seconds' * FLOOR(EXTRACT(SECOND FROM time_hour) / 30)
 LIMIT 10000;

-- a time series by PT1M
SELECT DATE_TRUNC('minute', time_hour) AS time_hour, COUNT(*) AS count
FROM public.flights
WHERE time_hour >= TO_TIMESTAMP('2013-03-01 06:00:00.000000', 'YYYY-MM-DD HH24:MI:SS.US') AND time_hour < TO_TIMESTAMP('2013-03-01 08:00:00.000000', 'YYYY-MM-DD HH24:MI:SS.US') GROUP BY DATE_TRUNC('minute', time_hour)
 LIMIT 10000;

-- a time series by PT5M
SELECT DATE_TRUNC('hour', time_hour) + INTERVAL '5 minutes' * FLOOR(EXTRACT(MINUTE FROM time_hour) / 5) AS time_hour, COUNT(*) AS count
FROM public.flights
WHERE time_hour >= TO_TIMESTAMP('2013-03-01 06:00:00.000000', 'YYYY-MM-DD HH24:MI:SS.US') AND time_hour < TO_TIMESTAMP('2013-03-01 08:00:00.000000', 'YYYY-MM-DD HH24:MI:SS.US') GROUP BY DATE_TRUNC('hour', time_hour) + INTERVAL '5 minutes' * FLOOR(EXTRACT(MINUTE FROM time_hour) / 5)
 LIMIT 10000;

-- a time series by PT10M
SELECT DATE_TRUNC('hour', time_hour) + INTERVAL '10 minutes' * FLOOR(EXTRACT(MINUTE FROM time_hour) / 10) AS time_hour, COUNT(*) AS count
FROM public.flights
WHERE time_hour >= TO_TIMESTAMP('2013-03-01 06:00:00.000000', 'YYYY-MM-DD HH24:MI:SS.US') AND time_hour < TO_TIMESTAMP('2013-03-01 08:00:00.000000', 'YYYY-MM-DD HH24:MI:SS.US') GROUP BY DATE_TRUNC('hour', time_hour) + INTERVAL '10 minutes' * FLOOR(EXTRACT(MINUTE FROM time_hour) / 10)
 LIMIT 10000;

-- a time series by PT15M
SELECT DATE_TRUNC('hour', time_hour) + INTERVAL '15 minutes' * FLOOR(EXTRACT(MINUTE FROM time_hour) / 15) AS time_hour, COUNT(*) AS count
FROM public.flights
WHERE time_hour >= TO_TIMESTAMP('2013-03-01 06:00:00.000000', 'YYYY-MM-DD HH24:MI:SS.US') AND time_hour < TO_TIMESTAMP('2013-03-01 08:00:00.000000', 'YYYY-MM-DD HH24:MI:SS.US') GROUP BY DATE_TRUNC('hour', time_hour) + INTERVAL '15 minutes' * FLOOR(EXTRACT(MINUTE FROM time_hour) / 15)
 LIMIT 10000;

-- a time series by PT30M
SELECT DATE_TRUNC('hour', time_hour) + INTERVAL '30 minutes' * FLOOR(EXTRACT(MINUTE FROM time_hour) / 30) AS time_hour, COUNT(*) AS count
FROM public.flights
WHERE time_hour >= TO_TIMESTAMP('2013-03-01 06:00:00.000000', 'YYYY-MM-DD HH24:MI:SS.US') AND time_hour < TO_TIMESTAMP('2013-03-01 08:00:00.000000', 'YYYY-MM-DD HH24:MI:SS.US') GROUP BY DATE_TRUNC('hour', time_hour) + INTERVAL '30 minutes' * FLOOR(EXTRACT(MINUTE FROM time_hour) / 30)
 LIMIT 10000;

-- a time series by PT1H
SELECT DATE_TRUNC('hour', time_hour) AS time_hour, COUNT(*) AS count
FROM public.flights
WHERE time_hour >= TO_TIMESTAMP('2013-03-01 06:00:00.000000', 'YYYY-MM-DD HH24:MI:SS.US') AND time_hour < TO_TIMESTAMP('2013-03-01 08:00:00.000000', 'YYYY-MM-DD HH24:MI:SS.US') GROUP BY DATE_TRUNC('hour', time_hour)
 LIMIT 10000;

-- a time series by year
SELECT DATE_TRUNC('year', time_hour) AS time_hour, COUNT(*) AS count
FROM public.flights GROUP BY DATE_TRUNC('year', time_hour)
 LIMIT 10000;
