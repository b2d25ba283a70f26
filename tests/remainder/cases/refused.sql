-- functions that exist somewhere, but not here
SELECT pg_sleep(1)
SELECT set_config('a', 'b', false)
SELECT current_setting('a')
SELECT nextval('x')
SELECT random()
SELECT setseed(0.5)
SELECT pg_read_file('/etc/passwd')
SELECT read_text('/etc/passwd')
SELECT getvariable('x')
SELECT error('x')
SELECT query_to_xml('SELECT 1', true, true, '')
SELECT dblink('x', 'y')
SELECT generate_series(1, 10)
SELECT unnest(ARRAY[1, 2])
SELECT any_value(a0) FROM r1
SELECT array_agg(a0) FROM r1
SELECT version()
SELECT current_user
SELECT pg_numeric_div('1', '2')
SELECT COLUMNS('a') FROM r1
-- relations that are none
SELECT * FROM read_csv('/etc/passwd')
SELECT * FROM 'file.csv'
SELECT * FROM "file.csv"
SELECT * FROM duckdb_settings()
SELECT * FROM generate_series(1, 10)
SELECT * FROM information_schema.tables
SELECT * FROM pg_catalog.pg_class
SELECT * FROM sqlite_master
SELECT * FROM r1 TABLESAMPLE bernoulli(10)
SELECT * FROM ONLY r1
-- clauses and forms
SELECT * FROM r1 FOR UPDATE
SELECT a0 INTO x FROM r1
WITH x AS (DELETE FROM r1 RETURNING *) SELECT * FROM x
WITH RECURSIVE t AS (SELECT 1 AS n UNION ALL SELECT n + 1 FROM t) SELECT * FROM t
SELECT (r1).a0 FROM r1
SELECT r1 FROM r1
SELECT r1::text FROM r1
SELECT k0(r1) FROM r1
SELECT ctid FROM r1
SELECT rowid FROM r1
SELECT * EXCLUDE (a0) FROM r1
SELECT a0 COLLATE "C" FROM r1
SELECT {'a': 1}
SELECT [1, 2]
SELECT a0[1] FROM r1
SELECT ARRAY(SELECT 1)
SELECT '{}'::jsonb
SELECT try_cast('a' AS int)
SELECT 'r1'::regclass
SELECT a0 FROM r1 ORDER BY random()
SELECT 1 FROM r1 GROUP BY ALL
SELECT * FROM r1 PIVOT (sum(a0) FOR k0 IN ('a'))
SELECT sum(a0) OVER (ORDER BY a0 RANGE BETWEEN 1 PRECEDING AND CURRENT ROW) FROM r1
SELECT lag(a0) IGNORE NULLS OVER (ORDER BY a0) FROM r1
SELECT a0 FROM r1 LIMIT (SELECT 1)
SELECT a0 FROM r1 LIMIT 1 + 1
SELECT $1
SELECT ?
SELECT @x
SELECT x'AB'
SELECT e'a\n'
SELECT FROM r1
SELECT (SELECT max(r1.a0)) FROM r1
