SELECT atz, atz::timestamp, atz::date, atz::time, atz::text FROM cal
SELECT day::timestamptz, at::timestamptz, '2020-07-01 12:00'::timestamptz, '2020-01-01 12:00+02'::timestamptz FROM cal
SELECT date_trunc('day', atz), date_trunc('month', day), date_trunc('hour', atz), date_trunc('week', atz) FROM cal
SELECT date_trunc('day', atz, 'Europe/Rome') FROM cal
SELECT extract(hour from atz), extract(epoch from atz), extract(day from atz), extract(dow from atz) FROM cal
SELECT atz + interval '1 day', atz + interval '1 month', atz - interval '36 hours' FROM cal
SELECT to_char(atz, 'YYYY-MM-DD HH24:MI:SS'), to_char(day, 'YYYY-MM-DD HH24') FROM cal
SELECT atz AT TIME ZONE 'UTC', at AT TIME ZONE 'Asia/Tokyo' FROM cal
SELECT to_timestamp('2024-07-01 10:00', 'YYYY-MM-DD HH24:MI'), to_timestamp(0)
SELECT atz > at, atz > day, atz > '2020-06-01' FROM cal
SELECT atz::date, count(*) FROM cal GROUP BY 1 ORDER BY 1
SELECT timestamptz '2020-03-08 02:30:00', timestamp '2020-03-08 02:30' AT TIME ZONE 'America/New_York'
