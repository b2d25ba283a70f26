-- Postgres's catalog functions as macros over the tables of schemas pgc (pg_catalog) and isc (information_schema).
-- What would tell of data or of the server answers a constant. One statement a paragraph.

-- A macro's arguments are put into its body as they are written, so a subquery in a body may only know names that no
-- caller writes: the views and columns that begin with z_.

CREATE VIEW pgc.z_type AS
  SELECT oid AS z_oid, typname AS z_name, typelem AS z_element, typcategory = 'A' AND typelem <> 0 AS z_array, CASE oid
    WHEN 16 THEN 'boolean' WHEN 18 THEN '"char"' WHEN 20 THEN 'bigint' WHEN 21 THEN 'smallint' WHEN 23 THEN 'integer'
    WHEN 700 THEN 'real' WHEN 701 THEN 'double precision' WHEN 1042 THEN 'character' WHEN 1043 THEN 'character varying'
    WHEN 1083 THEN 'time without time zone' WHEN 1266 THEN 'time with time zone' WHEN 1560 THEN 'bit'
    WHEN 1562 THEN 'bit varying' WHEN 1114 THEN 'timestamp without time zone'
    WHEN 1184 THEN 'timestamp with time zone' ELSE typname END AS z_shown
  FROM pgc.pg_type;

CREATE VIEW pgc.z_class AS
  SELECT c.oid AS z_oid, c.relname AS z_name, n.nspname AS z_schema, c.relnamespace IN (11, 2200) AS z_visible,
    CASE WHEN c.relnamespace IN (11, 2200) THEN '' ELSE n.nspname || '.' END || c.relname AS z_shown
  FROM pgc.pg_class c JOIN pgc.pg_namespace n ON n.oid = c.relnamespace;

CREATE VIEW pgc.z_key AS
  SELECT c.oid AS z_oid, c.conindid AS z_index, c.conrelid AS z_table, c.contype AS z_kind,
    (SELECT list(a.attname ORDER BY list_position(c.conkey, a.attnum)) FROM pgc.pg_attribute a
     WHERE a.attrelid = c.conrelid AND list_contains(c.conkey, a.attnum)) AS z_columns,
    c.confrelid AS z_parent,
    (SELECT list(a.attname ORDER BY list_position(c.confkey, a.attnum)) FROM pgc.pg_attribute a
     WHERE a.attrelid = c.confrelid AND list_contains(c.confkey, a.attnum)) AS z_parent_columns
  FROM pgc.pg_constraint c;

CREATE MACRO pgf_nonzero(x) AS CASE WHEN x = 0 THEN error('Division by zero') ELSE x END;
CREATE MACRO pgf_type_name(x) AS (
  SELECT CASE WHEN z_array THEN (SELECT z_shown FROM pgc.z_type e WHERE e.z_oid = z.z_element) || '[]' ELSE z_shown END
  FROM pgc.z_type z WHERE z_oid = x);

CREATE MACRO pgf_format_type(x, m) AS CASE
  WHEN x = 1700 AND coalesce(m, -1) >= 4 THEN 'numeric(' || ((m - 4) >> 16) || ',' || ((m - 4) & 65535) || ')'
  WHEN x = 0 THEN '-' ELSE coalesce(pgf_type_name(x), '???') END;

CREATE MACRO pgf_regtype_name(x) AS CASE WHEN x = 0 THEN '-' ELSE coalesce(pgf_type_name(x), x::VARCHAR) END;

CREATE MACRO pgf_regtype_names(x) AS CASE WHEN len(x) = 0 THEN []
  WHEN x IS NOT NULL THEN (SELECT list(pgf_regtype_name(z_item)) FROM (SELECT unnest(x) AS z_item)) END;

CREATE MACRO pgf_to_regtype(x) AS (
  SELECT min(z_oid) FROM pgc.z_type
  WHERE replace(replace(x::VARCHAR, 'pg_catalog.', ''), '"', '') IN (z_name, z_shown, z_oid::VARCHAR));

CREATE MACRO pgf_regclass_name(x) AS CASE WHEN x = 0 THEN '-'
  ELSE coalesce((SELECT z_shown FROM pgc.z_class WHERE z_oid = x), x::VARCHAR) END;

CREATE MACRO pgf_to_regclass(x) AS (
  SELECT min(z_oid) FROM pgc.z_class
  WHERE replace(x::VARCHAR, '"', '') IN (z_schema || '.' || z_name, z_oid::VARCHAR, CASE WHEN z_visible THEN z_name END,
    (SELECT min(datname) FROM pgc.pg_database) || '.' || z_schema || '.' || z_name));

CREATE MACRO pgf_regnamespace_name(x) AS (
  SELECT min(nspname) FROM (SELECT oid AS z_oid, nspname FROM pgc.pg_namespace) WHERE z_oid = x);

CREATE MACRO pgf_to_regnamespace(x) AS (
  SELECT min(z_oid) FROM (SELECT oid AS z_oid, nspname AS z_name FROM pgc.pg_namespace) WHERE z_name = x::VARCHAR);

CREATE MACRO pgf_regproc_name(x) AS replace(x::VARCHAR, 'pg_catalog.', '');

CREATE MACRO pgf_regrole_name(x) AS (
  SELECT min(z_name) FROM (SELECT oid AS z_oid, rolname AS z_name FROM pgc.pg_roles) WHERE z_oid = x);

CREATE MACRO pgf_pg_get_userbyid(x) AS coalesce(pgf_regrole_name(x), 'unknown (OID=' || x || ')');

CREATE MACRO pgf_pg_encoding_to_char(x) AS CASE x WHEN 6 THEN 'UTF8' ELSE '' END;

CREATE VIEW pgc.z_description AS
  SELECT objoid AS z_oid, classoid AS z_class, objsubid AS z_number, description AS z_text FROM pgc.pg_description;

CREATE MACRO pgf_obj_description(x) AS (SELECT min(z_text) FROM pgc.z_description WHERE z_oid = x AND z_number = 0),
  (x, c) AS (SELECT min(z_text) FROM pgc.z_description
    WHERE z_oid = x AND z_number = 0 AND z_class = pgf_to_regclass(c));

CREATE MACRO pgf_col_description(x, n) AS (
  SELECT min(z_text) FROM pgc.z_description WHERE z_oid = x AND z_number = n AND z_class = 1259);

CREATE MACRO pgf_shobj_description(x, c) AS NULL::VARCHAR;

CREATE MACRO pgf_constraint(x) AS (
  SELECT CASE z_kind WHEN 'p' THEN 'PRIMARY KEY' WHEN 'u' THEN 'UNIQUE' ELSE 'FOREIGN KEY' END
    || ' (' || array_to_string(z_columns, ', ') || ')'
    || CASE WHEN z_kind = 'f' THEN ' REFERENCES ' || pgf_regclass_name(z_parent)
      || '(' || array_to_string(z_parent_columns, ', ') || ')' ELSE '' END
  FROM pgc.z_key WHERE z_oid = x);

CREATE MACRO pgf_pg_get_constraintdef(x) AS pgf_constraint(x), (x, p) AS pgf_constraint(x);

CREATE MACRO pgf_index(x) AS (
  SELECT 'CREATE UNIQUE INDEX ' || pgf_regclass_name(z_index) || ' ON public.' || pgf_regclass_name(z_table)
    || ' USING btree (' || array_to_string(z_columns, ', ') || ')'
  FROM pgc.z_key WHERE z_index = x AND z_kind = 'p');

CREATE MACRO pgf_pg_get_indexdef(x) AS pgf_index(x),
  (x, n, p) AS CASE WHEN n = 0 THEN pgf_index(x)
    ELSE (SELECT z_columns[n] FROM pgc.z_key WHERE z_index = x AND z_kind = 'p') END;

CREATE MACRO pgf_pg_get_expr(x, r) AS NULL::VARCHAR, (x, r, p) AS NULL::VARCHAR;

CREATE MACRO pgf_view(x) AS (
  SELECT min(' ' || z_text || ';') FROM (SELECT schemaname || '.' || viewname AS z_name, definition AS z_text
    FROM pgc.pg_views) JOIN (SELECT z_oid, z_schema || '.' || z_name AS z_name FROM pgc.z_class) USING (z_name)
  WHERE z_oid = x);

CREATE MACRO pgf_pg_get_viewdef(x) AS pgf_view(x), (x, p) AS pgf_view(x);

CREATE MACRO pgf_pg_get_ruledef(x) AS NULL::VARCHAR, (x, p) AS NULL::VARCHAR;

CREATE MACRO pgf_pg_get_triggerdef(x) AS NULL::VARCHAR, (x, p) AS NULL::VARCHAR;

CREATE MACRO pgf_pg_get_functiondef(x) AS NULL::VARCHAR;

CREATE MACRO pgf_pg_get_function_result(x) AS (
  SELECT min(z_result) FROM pgc.z_function WHERE z_oid = x);

CREATE MACRO pgf_pg_get_function_arguments(x) AS (
  SELECT min(z_arguments) FROM pgc.z_function WHERE z_oid = x);

CREATE MACRO pgf_pg_get_function_identity_arguments(x) AS (
  SELECT min(z_identity) FROM pgc.z_function WHERE z_oid = x);

CREATE MACRO pgf_pg_get_statisticsobjdef_columns(x) AS NULL::VARCHAR;

CREATE MACRO pgf_pg_get_partkeydef(x) AS NULL::VARCHAR;

CREATE MACRO pgf_pg_get_serial_sequence(t, c) AS NULL::VARCHAR;

CREATE MACRO pgf_pg_get_replica_identity_index(x) AS NULL::UINTEGER;

CREATE MACRO pgf_pg_relation_is_publishable(x) AS false;

CREATE MACRO pgf_pg_table_is_visible(x) AS (
  SELECT bool_or(z_visible) FROM pgc.z_class WHERE z_oid = x);

CREATE MACRO pgf_pg_type_is_visible(x) AS true;

CREATE MACRO pgf_pg_function_is_visible(x) AS true;

CREATE MACRO pgf_pg_operator_is_visible(x) AS true;

CREATE MACRO pgf_pg_collation_is_visible(x) AS true;

CREATE MACRO pgf_pg_opclass_is_visible(x) AS true;

CREATE MACRO pgf_has_table_privilege(t, p) AS true, (u, t, p) AS true;

CREATE MACRO pgf_has_column_privilege(t, c, p) AS true, (u, t, c, p) AS true;

CREATE MACRO pgf_has_any_column_privilege(t, p) AS true, (u, t, p) AS true;

CREATE MACRO pgf_has_schema_privilege(s, p) AS true, (u, s, p) AS true;

CREATE MACRO pgf_has_database_privilege(d, p) AS true, (u, d, p) AS true;

CREATE MACRO pgf_has_function_privilege(f, p) AS true, (u, f, p) AS true;

CREATE MACRO pgf_pg_has_role(r, p) AS true, (u, r, p) AS true;

CREATE MACRO pgf_pg_size_pretty(x) AS '0 bytes';

CREATE MACRO pgf_pg_table_size(x) AS 0::BIGINT;

CREATE MACRO pgf_pg_relation_size(x) AS 0::BIGINT, (x, f) AS 0::BIGINT;

CREATE MACRO pgf_pg_total_relation_size(x) AS 0::BIGINT;

CREATE MACRO pgf_pg_indexes_size(x) AS 0::BIGINT;

CREATE MACRO pgf_pg_database_size(x) AS 0::BIGINT;

CREATE MACRO pgf_pg_tablespace_location(x) AS '';

CREATE MACRO pgf_pg_my_temp_schema() AS 0::UINTEGER;

CREATE MACRO pgf_pg_is_other_temp_schema(x) AS false;

CREATE MACRO pgf_pg_is_in_recovery() AS false;

CREATE MACRO pgf_pg_advisory_unlock_all() AS '';

CREATE MACRO pgf_inet_server_addr() AS NULL::VARCHAR;

CREATE MACRO pgf_inet_client_addr() AS NULL::VARCHAR;

CREATE MACRO pgf_inet_server_port() AS NULL::INTEGER;

CREATE MACRO pgf_txid_current() AS 1::BIGINT;

CREATE MACRO pgf_quote_ident(x) AS CASE WHEN regexp_full_match(x::VARCHAR, '[a-z_][a-z0-9_$]*') THEN x::VARCHAR
  ELSE '"' || replace(x::VARCHAR, '"', '""') || '"' END;

CREATE MACRO pgf_quote_literal(x) AS '''' || replace(x::VARCHAR, '''', '''''') || '''';

CREATE MACRO pgf_array_upper(x, d) AS nullif(len(x), 0)::INTEGER;

CREATE MACRO pgf_array_lower(x, d) AS CASE WHEN len(x) > 0 THEN 1 END;

CREATE MACRO pgf_array_length(x, d) AS nullif(len(x), 0)::INTEGER;

CREATE MACRO pgf_vector_upper(x, d) AS (len(x) - 1)::INTEGER;

CREATE MACRO pgf_vector_lower(x, d) AS CASE WHEN len(x) > 0 THEN 0 END;

CREATE MACRO pgf__pg_expandarray(x) AS unnest(list_transform(x, lambda e, i: {'x': e, 'n': i}));

CREATE MACRO pgf_cardinality(x) AS len(x)::INTEGER;

CREATE MACRO pgf_array_to_string(x, d) AS array_to_string(x::VARCHAR[], d);

CREATE MACRO pgf_string_to_array(x, d) AS string_split(x, d);

CREATE MACRO pgf_parse_ident(x) AS list_transform(regexp_extract_all(x::VARCHAR, '"(?:[^"]|"")+"|[^".]+'),
  lambda e: CASE WHEN e LIKE '"%' THEN replace(e[2:-2], '""', '"') ELSE lower(e) END);

CREATE MACRO pgf_formatted(f, n, x) AS CASE regexp_extract_all(f, '%([sIL])', 1)[n]
  WHEN 'I' THEN pgf_quote_ident(x) WHEN 'L' THEN pgf_quote_literal(x) ELSE coalesce(x::VARCHAR, '') END;

CREATE MACRO pgf_between(f, n) AS replace(string_split_regex(f, '%[sIL]')[n], '%%', '%');

CREATE MACRO pgf_format(f, x) AS pgf_between(f, 1) || pgf_formatted(f, 1, x) || pgf_between(f, 2),
  (f, x, y) AS pgf_between(f, 1) || pgf_formatted(f, 1, x) || pgf_between(f, 2) || pgf_formatted(f, 2, y)
    || pgf_between(f, 3);

CREATE MACRO pgf_pg_stat_get_numscans(x) AS 0::BIGINT;

CREATE MACRO pgf_pg_partition_ancestors(x) AS TABLE SELECT 0::UINTEGER AS relid, 0::BIGINT AS ordinality WHERE false;

CREATE MACRO pgf_pg_partition_ancestors_value(x) AS NULL::UINTEGER;

CREATE MACRO pgf_pg_partition_tree(x) AS TABLE SELECT 0::UINTEGER AS relid WHERE false;

CREATE MACRO pgf_pg_get_keywords() AS TABLE SELECT * FROM pgc.z_keyword
