-- Metabase over pgjdbc: connects, synchronizes, looks into fields, asks.
SET SESSION TIMEZONE TO 'UTC'
;;
SELECT 1
;; rows 1
SHOW timezone
;; rows 1
SELECT n.nspname AS "schema", c.relname AS "name", CASE c.relkind WHEN 'r' THEN 'TABLE' WHEN 'p' THEN 'PARTITIONED TABLE' WHEN 'v' THEN 'VIEW' WHEN 'f' THEN 'FOREIGN TABLE' WHEN 'm' THEN 'MATERIALIZED VIEW' ELSE NULL END AS "type", d.description AS "description", NULLIF(stat.n_live_tup, 0) AS "estimated_row_count"
FROM pg_catalog.pg_class AS c
INNER JOIN pg_catalog.pg_namespace AS n ON c.relnamespace = n.oid
LEFT JOIN pg_catalog.pg_description AS d ON ((c.oid = d.objoid) AND (d.objsubid = 0) AND (d.classoid = 'pg_class'::regclass))
LEFT JOIN pg_stat_user_tables AS stat ON ((n.nspname = stat.schemaname) AND (c.relname = stat.relname))
WHERE (c.relnamespace = n.oid) AND (n.nspname !~ '^information_schema|catalog_history|pg_') AND (c.relkind IN ('r', 'p', 'v', 'f', 'm')) AND (n.nspname IN ('public'))
ORDER BY "type" ASC, "schema" ASC, "name" ASC
;; rows 4
with table_privileges as (
  select NULL as role, t.schemaname as schema, t.objectname as table,
    pg_catalog.has_any_column_privilege(current_user, '"' || replace(t.schemaname, '"', '""') || '"' || '.' || '"' || replace(t.objectname, '"', '""') || '"', 'update') as update,
    pg_catalog.has_any_column_privilege(current_user, '"' || replace(t.schemaname, '"', '""') || '"' || '.' || '"' || replace(t.objectname, '"', '""') || '"', 'select') as select,
    pg_catalog.has_any_column_privilege(current_user, '"' || replace(t.schemaname, '"', '""') || '"' || '.' || '"' || replace(t.objectname, '"', '""') || '"', 'insert') as insert,
    pg_catalog.has_table_privilege(current_user, '"' || replace(t.schemaname, '"', '""') || '"' || '.' || '"' || replace(t.objectname, '"', '""') || '"', 'delete') as delete
  from (
    select schemaname, tablename as objectname from pg_catalog.pg_tables
    union
    select schemaname, viewname as objectname from pg_catalog.pg_views
    union
    select schemaname, matviewname as objectname from pg_catalog.pg_matviews
  ) t
  where t.schemaname !~ '^pg_' and t.schemaname <> 'information_schema' and pg_catalog.has_schema_privilege(current_user, t.schemaname, 'usage')
)
select t.* from table_privileges t where t.schema = 'public'
;; rows 4
SELECT c.column_name AS "name", CASE WHEN c.udt_schema IN ('public', 'pg_catalog') THEN FORMAT('%s', c.udt_name) ELSE FORMAT('"%s"."%s"', c.udt_schema, c.udt_name) END AS "database-type", c.ordinal_position - 1 AS "database-position", c.table_schema AS "table-schema", c.table_name AS "table-name", pk.column_name IS NOT NULL AS "pk?",
  COL_DESCRIPTION(CAST(CAST(FORMAT('%I.%I', CAST(c.table_schema AS TEXT), CAST(c.table_name AS TEXT)) AS REGCLASS) AS OID), c.ordinal_position) AS "field-comment",
  ((column_default IS NULL) OR (LOWER(column_default) = 'null')) AND (is_nullable = 'NO') AND NOT (((column_default IS NOT NULL) AND (column_default LIKE '%nextval(%')) OR (is_identity <> 'NO')) AS "database-required",
  ((column_default IS NOT NULL) AND (column_default LIKE '%nextval(%')) OR (is_identity <> 'NO') AS "database-is-auto-increment"
FROM information_schema.columns AS c
LEFT JOIN (SELECT tc.table_schema, tc.table_name, kc.column_name FROM information_schema.table_constraints AS tc INNER JOIN information_schema.key_column_usage AS kc ON (tc.constraint_name = kc.constraint_name) AND (tc.table_schema = kc.table_schema) AND (tc.table_name = kc.table_name) WHERE tc.constraint_type = 'PRIMARY KEY') AS pk ON (c.table_schema = pk.table_schema) AND (c.table_name = pk.table_name) AND (c.column_name = pk.column_name)
WHERE c.table_schema !~ '^information_schema|catalog_history|pg_' AND (c.table_schema IN ('public')) AND (c.table_name IN ('orders', 'users'))
UNION ALL
SELECT pa.attname AS "name", CASE WHEN ptn.nspname IN ('public', 'pg_catalog') THEN FORMAT('%s', pt.typname) ELSE FORMAT('"%s"."%s"', ptn.nspname, pt.typname) END AS "database-type", pa.attnum - 1 AS "database-position", pn.nspname AS "table-schema", pc.relname AS "table-name", FALSE AS "pk?", NULL AS "field-comment", FALSE AS "database-required", FALSE AS "database-is-auto-increment"
FROM pg_catalog.pg_class AS pc INNER JOIN pg_catalog.pg_namespace AS pn ON pn.oid = pc.relnamespace INNER JOIN pg_catalog.pg_attribute AS pa ON pa.attrelid = pc.oid INNER JOIN pg_catalog.pg_type AS pt ON pt.oid = pa.atttypid INNER JOIN pg_catalog.pg_namespace AS ptn ON ptn.oid = pt.typnamespace
WHERE (pc.relkind = 'm') AND (pa.attnum >= 1) AND (pn.nspname IN ('public'))
ORDER BY "table-schema" ASC, "table-name" ASC, "database-position" ASC
;; rows 12
SELECT fk_ns.nspname AS "fk-table-schema", fk_table.relname AS "fk-table-name", fk_column.attname AS "fk-column-name", pk_ns.nspname AS "pk-table-schema", pk_table.relname AS "pk-table-name", pk_column.attname AS "pk-column-name"
FROM pg_constraint AS c INNER JOIN pg_class AS fk_table ON c.conrelid = fk_table.oid INNER JOIN pg_namespace AS fk_ns ON c.connamespace = fk_ns.oid INNER JOIN pg_attribute AS fk_column ON c.conrelid = fk_column.attrelid INNER JOIN pg_class AS pk_table ON c.confrelid = pk_table.oid INNER JOIN pg_namespace AS pk_ns ON pk_table.relnamespace = pk_ns.oid INNER JOIN pg_attribute AS pk_column ON c.confrelid = pk_column.attrelid
WHERE fk_ns.nspname !~ '^information_schema|catalog_history|pg_' AND c.contype = 'f'::"char" AND (fk_column.attnum = ANY(c.conkey)) AND (pk_column.attnum = ANY(c.confkey)) AND (fk_ns.nspname IN ('public'))
ORDER BY "fk-table-schema" ASC, "fk-table-name" ASC
;; rows 1
SELECT nspname, typname FROM pg_type t LEFT JOIN pg_namespace n ON n.oid = t.typnamespace WHERE t.oid IN (SELECT DISTINCT enumtypid FROM pg_enum e)
;; rows 0
SELECT TRUE AS "_" FROM "public"."orders" WHERE 1 <> 1 LIMIT 0
;; rows 0
-- Metabase:: fingerprint
SELECT "public"."orders"."state" AS "state", SUBSTRING("public"."orders"."product", 1, 1234) AS "substring1", "public"."orders"."amount" AS "amount" FROM "public"."orders" LIMIT 10000
;; error 42501
SELECT "public"."orders"."state" AS "state" FROM "public"."orders" GROUP BY "public"."orders"."state" ORDER BY "public"."orders"."state" ASC LIMIT 1000
;; rows 3
SELECT "public"."orders"."product" AS "product" FROM "public"."orders" GROUP BY "public"."orders"."product" ORDER BY "public"."orders"."product" ASC LIMIT 1000
;; rows 2
-- Metabase:: userID: 1 queryType: MBQL queryHash: 0a
SELECT COUNT(*) AS "count" FROM "public"."orders"
;; rows 1
-- Metabase:: userID: 1 queryType: MBQL queryHash: 0b
SELECT "public"."orders"."state" AS "state", COUNT(*) AS "count", SUM("public"."orders"."amount") AS "sum" FROM "public"."orders" GROUP BY "public"."orders"."state" ORDER BY "count" DESC, "public"."orders"."state" ASC LIMIT 1048575
;; rows 3
-- Metabase:: userID: 1 queryType: MBQL queryHash: 0c
SELECT CAST(DATE_TRUNC('month', "public"."orders"."created_at") AS date) AS "created_at", AVG("public"."orders"."amount") AS "avg" FROM "public"."orders" WHERE ("public"."orders"."created_at" >= DATE '2024-01-01') AND ("public"."orders"."created_at" < DATE '2024-07-01') GROUP BY CAST(DATE_TRUNC('month', "public"."orders"."created_at") AS date) ORDER BY CAST(DATE_TRUNC('month', "public"."orders"."created_at") AS date) ASC
;; rows 6
-- Metabase:: userID: 1 queryType: MBQL queryHash: 0d
SELECT CAST(DATE_TRUNC('week', "public"."orders"."created_at" + INTERVAL '1 day') AS timestamp) + INTERVAL '-1 day' AS "created_at", COUNT(*) AS "count" FROM "public"."orders" GROUP BY CAST(DATE_TRUNC('week', "public"."orders"."created_at" + INTERVAL '1 day') AS timestamp) + INTERVAL '-1 day' ORDER BY CAST(DATE_TRUNC('week', "public"."orders"."created_at" + INTERVAL '1 day') AS timestamp) + INTERVAL '-1 day' ASC
;; rows 53
-- Metabase:: userID: 1 queryType: MBQL queryHash: 0e
SELECT FLOOR((("public"."orders"."amount" - 0.0) / 25)) * 25 + 0.0 AS "amount", COUNT(*) AS "count" FROM "public"."orders" GROUP BY FLOOR((("public"."orders"."amount" - 0.0) / 25)) * 25 + 0.0 ORDER BY FLOOR((("public"."orders"."amount" - 0.0) / 25)) * 25 + 0.0 ASC
;; rows 5
-- Metabase:: userID: 1 queryType: MBQL queryHash: 0f
SELECT "source"."state" AS "state", "source"."count" AS "count" FROM (SELECT "public"."orders"."state" AS "state", COUNT(*) AS "count" FROM "public"."orders" GROUP BY "public"."orders"."state") AS "source" WHERE "source"."count" > 0 LIMIT 1048575
;; rows 3
-- Metabase:: userID: 1 queryType: MBQL queryHash: 10
SELECT "Countries"."name" AS "Countries__name", COUNT(DISTINCT "public"."users"."id") AS "count" FROM "public"."users" LEFT JOIN "public"."countries" AS "Countries" ON "public"."users"."country" = "Countries"."code" GROUP BY "Countries"."name" ORDER BY "Countries"."name" ASC
;; rows 4
-- Metabase:: userID: 1 queryType: native queryHash: 11
SELECT state, COUNT(*) FROM orders WHERE product = 'pen' GROUP BY state
;; rows 3
-- Metabase:: the rows of a table
SELECT "public"."orders"."user_id" AS "user_id", "public"."orders"."state" AS "state" FROM "public"."orders" LIMIT 2000
;; error 42501
SELECT 1
;; rows 1
