-- Grafana over lib/pq: tests the source, offers tables and columns, draws panels, fills variables.
SELECT 1
;; rows 1
SELECT current_setting('server_version_num')::int / 100 AS version
;; rows 1
SELECT extversion FROM pg_extension WHERE extname = 'timescaledb'
;; rows 0
SELECT CASE WHEN quote_ident(table_schema) IN (SELECT CASE WHEN trim(s[i]) = '"$user"' THEN user ELSE trim(s[i]) END FROM generate_series(array_lower(string_to_array(current_setting('search_path'), ','), 1), array_upper(string_to_array(current_setting('search_path'), ','), 1)) AS i, string_to_array(current_setting('search_path'), ',') s) THEN quote_ident(table_name) ELSE quote_ident(table_schema) || '.' || quote_ident(table_name) END AS "table" FROM information_schema.tables WHERE quote_ident(table_schema) NOT IN ('information_schema', 'pg_catalog', '_timescaledb_cache', '_timescaledb_catalog', '_timescaledb_internal', '_timescaledb_config', 'timescaledb_information', 'timescaledb_experimental') ORDER BY 1
;; some
SELECT quote_ident(column_name) AS "column", data_type AS "type" FROM information_schema.columns WHERE CASE WHEN array_length(parse_ident('orders'), 1) = 2 THEN quote_ident(table_schema) = (parse_ident('orders'))[1] AND quote_ident(table_name) = (parse_ident('orders'))[2] ELSE quote_ident(table_name) = 'orders' END
;; rows 8
SELECT quote_ident(column_name) AS "column", data_type AS "type" FROM information_schema.columns WHERE quote_ident(table_name) = 'orders'
;; rows 8
SELECT floor(extract(epoch from created_at)/86400)*86400 AS "time", COUNT(*) AS orders FROM orders WHERE created_at BETWEEN '2024-01-15T00:00:00Z' AND '2024-02-14T00:00:00Z' GROUP BY 1 ORDER BY 1
;; some
SELECT floor(extract(epoch from created_at)/604800)*604800 AS "time", state AS metric, sum(amount) AS value FROM orders WHERE created_at BETWEEN '2024-01-15T00:00:00Z' AND '2024-02-14T00:00:00Z' GROUP BY time, metric ORDER BY time, metric
;; some
SELECT date_trunc('month', created_at) AS "time", AVG(amount) AS value FROM orders WHERE created_at >= '2024-01-01T00:00:00Z' AND created_at <= '2024-06-30T23:59:59Z' GROUP BY 1 ORDER BY 1
;; rows 6
SELECT DISTINCT state FROM orders
;; rows 3
SELECT state AS __text, state AS __value FROM orders GROUP BY state ORDER BY state
;; rows 3
SELECT COUNT(*) FROM orders WHERE state IN ('new', 'paid') AND product LIKE 'p%'
;; rows 1
SELECT created_at AS "time", amount FROM orders WHERE created_at BETWEEN '2024-01-15T00:00:00Z' AND '2024-02-14T00:00:00Z' ORDER BY 1 LIMIT 50
;; error 42501
SELECT state, COUNT(*) FROM orders GROUP BY state
;; rows 3
