-- DBeaver over pgjdbc: connects, opens the navigator's tree, shows a table's properties and its data.
SELECT version()
;; rows 1
SHOW search_path
;; rows 1
SELECT current_schema(), session_user
;; rows 1
SELECT db.oid, db.* FROM pg_catalog.pg_database db WHERE datallowconn AND NOT datistemplate OR db.datname = 'shop' ORDER BY db.datname
;; rows 1
SELECT * FROM pg_catalog.pg_settings WHERE name = 'standard_conforming_strings'
;; rows 1
SELECT string_agg(word, ',') FROM pg_catalog.pg_get_keywords() WHERE word <> ALL ('{a,abs,absolute,action}'::text[])
;; rows 1
SELECT n.oid, n.*, d.description FROM pg_catalog.pg_namespace n LEFT OUTER JOIN pg_catalog.pg_description d ON d.objoid = n.oid AND d.objsubid = 0 AND d.classoid = 'pg_namespace'::regclass WHERE nspname = 'public' ORDER BY nspname
;; rows 1
SELECT t.oid, t.*, c.relkind, format_type(nullif(t.typbasetype, 0), t.typtypmod) AS base_type_name, d.description FROM pg_catalog.pg_type t LEFT OUTER JOIN pg_catalog.pg_type et ON et.oid = t.typelem LEFT OUTER JOIN pg_catalog.pg_class c ON c.oid = t.typrelid LEFT OUTER JOIN pg_catalog.pg_description d ON t.oid = d.objoid WHERE t.typname IS NOT NULL AND (c.relkind IS NULL OR c.relkind = 'c') AND (et.typcategory IS NULL OR et.typcategory <> 'C')
;; some
SELECT e.enumlabel, e.enumtypid FROM pg_catalog.pg_enum e ORDER BY e.enumsortorder
;; rows 0
SELECT a.oid, a.*, pd.description FROM pg_catalog.pg_roles a LEFT JOIN pg_catalog.pg_shdescription pd ON a.oid = pd.objoid WHERE a.rolname = 'alice' ORDER BY a.rolname
;; rows 1
SELECT t.oid, t.* FROM pg_catalog.pg_tablespace t ORDER BY t.oid
;; some
SELECT e.oid, cfg.tbls, n.nspname AS schema_name, e.* FROM pg_catalog.pg_extension e JOIN pg_namespace n ON n.oid = e.extnamespace LEFT JOIN (SELECT ARRAY_AGG(ns.nspname || '.' || cls.relname) tbls, oid_ext FROM (SELECT UNNEST(e1.extconfig) oid, e1.oid oid_ext FROM pg_catalog.pg_extension e1) c JOIN pg_class cls ON cls.oid = c.oid JOIN pg_namespace ns ON ns.oid = cls.relnamespace GROUP BY oid_ext) cfg ON cfg.oid_ext = e.oid ORDER BY e.oid
;; any
SELECT c.oid, c.*, d.description, pg_catalog.pg_get_expr(c.relpartbound, c.oid) AS partition_expr, pg_catalog.pg_get_partkeydef(c.oid) AS partition_key FROM pg_catalog.pg_class c LEFT OUTER JOIN pg_catalog.pg_description d ON d.objoid = c.oid AND d.objsubid = 0 AND d.classoid = 'pg_class'::regclass WHERE c.relnamespace = 2200 AND c.relkind NOT IN ('i', 'I', 'c')
;; rows 4
SELECT c.relname, a.*, pg_catalog.pg_get_expr(ad.adbin, ad.adrelid, true) AS def_value, dsc.description, dep.objid FROM pg_catalog.pg_attribute a INNER JOIN pg_catalog.pg_class c ON (a.attrelid = c.oid) LEFT OUTER JOIN pg_catalog.pg_attrdef ad ON (a.attrelid = ad.adrelid AND a.attnum = ad.adnum) LEFT OUTER JOIN pg_catalog.pg_description dsc ON (c.oid = dsc.objoid AND a.attnum = dsc.objsubid) LEFT OUTER JOIN pg_depend dep ON dep.refobjid = a.attrelid AND dep.deptype = 'i' AND dep.refobjsubid = a.attnum AND dep.classid = dep.refclassid WHERE NOT a.attisdropped AND c.oid = 'orders'::regclass ORDER BY a.attnum
;; rows 14
SELECT c.oid, c.*, t.relname AS tabrelname, rt.relnamespace AS refnamespace, d.description, CASE WHEN c.contype = 'c' THEN "substring"(pg_get_constraintdef(c.oid), 7) ELSE NULL END consrc_copy FROM pg_catalog.pg_constraint c INNER JOIN pg_catalog.pg_class t ON t.oid = c.conrelid LEFT OUTER JOIN pg_catalog.pg_class rt ON rt.oid = c.confrelid LEFT OUTER JOIN pg_catalog.pg_description d ON d.objoid = c.oid AND d.objsubid = 0 AND d.classoid = 'pg_constraint'::regclass WHERE c.conrelid = 'users'::regclass ORDER BY c.oid
;; rows 3
SELECT i.*, i.indkey AS keys, c.relname, c.relnamespace, c.relam, c.reltablespace, tc.relname AS tabrelname, dsc.description, pg_catalog.pg_get_expr(i.indpred, i.indrelid) AS pred_expr, pg_catalog.pg_get_expr(i.indexprs, i.indrelid, true) AS expr, pg_catalog.pg_relation_size(i.indexrelid) AS index_rel_size, pg_catalog.pg_stat_get_numscans(i.indexrelid) AS index_num_scans FROM pg_catalog.pg_index i INNER JOIN pg_catalog.pg_class c ON c.oid = i.indexrelid INNER JOIN pg_catalog.pg_class tc ON tc.oid = i.indrelid LEFT OUTER JOIN pg_catalog.pg_description dsc ON i.indexrelid = dsc.objoid WHERE i.indrelid = 'users'::regclass ORDER BY tabrelname, c.relname
;; rows 1
SELECT i.*, c.relnamespace FROM pg_catalog.pg_inherits i, pg_catalog.pg_class c WHERE i.inhrelid = 'orders'::regclass AND c.oid = i.inhparent ORDER BY i.inhseqno
;; rows 0
SELECT x.oid, x.*, p.pronamespace AS func_schema_id, d.description FROM pg_catalog.pg_trigger x LEFT OUTER JOIN pg_catalog.pg_proc p ON p.oid = x.tgfoid LEFT OUTER JOIN pg_catalog.pg_description d ON d.objoid = x.oid AND d.objsubid = 0 WHERE x.tgrelid = 'orders'::regclass AND NOT x.tgisinternal
;; rows 0
SELECT pg_catalog.pg_get_viewdef('v_orders'::regclass, true)
;; rows 1
SELECT n.nspname, c.relname, pg_catalog.pg_total_relation_size(c.oid) AS total_rel_size, pg_catalog.pg_relation_size(c.oid) AS rel_size FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace WHERE c.relnamespace = 2200 AND c.relkind NOT IN ('i', 'I', 'c')
;; rows 4
SELECT count(*) FROM public.orders
;; rows 1
SELECT x.* FROM public.orders x
;; error 42501
SELECT x.* FROM public.orders x WHERE state = 'new' ORDER BY amount
;; error 42501
SELECT x.* FROM public.countries x
;; rows 3
SELECT COUNT(*) FROM (SELECT state, COUNT(*) FROM orders GROUP BY state) dbvrcnt
;; rows 1
EXPLAIN (FORMAT XML, ANALYSE) SELECT state, COUNT(*) FROM orders GROUP BY state
;; error
EXPLAIN SELECT state, COUNT(*) FROM orders GROUP BY state
;; some
SELECT state, COUNT(*) FROM orders GROUP BY state
;; rows 3
