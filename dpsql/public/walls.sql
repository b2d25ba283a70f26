-- What users of the public server may not call or see, in the database that this runs in. Table `allowed` (name) lists
-- the functions that are not immutable and stay callable; `denied` those that are, and do not.

-- Functions: an allow-list, so that what a later Postgres adds is nobody's until someone has looked at it.
CREATE FUNCTION pg_temp.shut() RETURNS void LANGUAGE plpgsql AS $$
DECLARE
  call record;
BEGIN
  FOR call IN
    SELECT p.oid::regprocedure AS what FROM pg_catalog.pg_proc p
    WHERE (p.provolatile <> 'i' AND NOT EXISTS (SELECT FROM pg_temp.allowed a WHERE a.name = p.proname)
           OR EXISTS (SELECT FROM pg_temp.denied d WHERE d.name = p.proname))
      AND EXISTS (SELECT FROM pg_catalog.aclexplode(coalesce(p.proacl, pg_catalog.acldefault('f', p.proowner))) a
                  WHERE a.grantee = 0)
  LOOP
    EXECUTE format('REVOKE ALL ON ROUTINE %s FROM PUBLIC', call.what);
  END LOOP;
END $$;

-- A system view is made again from its own text, so that it calls the functions that now have the names in it.
CREATE TEMP TABLE views AS
  SELECT c.oid, format('%I.%I', n.nspname, c.relname) AS name, pg_catalog.pg_get_viewdef(c.oid) AS body
  FROM pg_catalog.pg_class c JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
  WHERE c.relkind = 'v' AND n.nspname IN ('pg_catalog', 'information_schema');

CREATE FUNCTION pg_temp.again(call text) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
  shown record;
BEGIN
  FOR shown IN SELECT * FROM pg_temp.views v WHERE strpos(v.body, call || '(') > 0 LOOP
    EXECUTE format('CREATE OR REPLACE VIEW %s AS %s', shown.name, shown.body);
  END LOOP;
END $$;

-- Other sessions: a function that tells of all of them is renamed, and one with its name tells of the user's own.
CREATE FUNCTION pg_temp.narrow(call text, whose text) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
  old pg_catalog.pg_proc;
  passed text;
BEGIN
  SELECT * INTO STRICT old FROM pg_catalog.pg_proc WHERE proname = call;
  passed := CASE WHEN old.pronargs = 0 THEN '' ELSE '$1' END;
  EXECUTE format('ALTER FUNCTION %s RENAME TO %I', old.oid::regprocedure, call || '_of_all');
  EXECUTE format(
    'CREATE FUNCTION pg_catalog.%I(%s) RETURNS SETOF record LANGUAGE sql STABLE SECURITY DEFINER ROWS 10 '
    'SET search_path = pg_catalog AS $f$SELECT * FROM pg_catalog.%I(%s) a WHERE %s$f$',
    call, pg_catalog.pg_get_function_arguments(old.oid), call || '_of_all', passed, whose);
  PERFORM pg_temp.again(call);
END $$;

SELECT pg_temp.narrow('pg_stat_get_activity',
  'a.usesysid = (SELECT r.oid FROM pg_catalog.pg_authid r WHERE r.rolname = session_user)');
SELECT pg_temp.narrow('pg_lock_status', 'a.pid = pg_catalog.pg_backend_pid()');

-- Other users: their names are neither listed nor told by number. Those below 16384 are Postgres's own.
CREATE FUNCTION pg_temp.own_rows(shown text, own_column text) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
  EXECUTE format('CREATE OR REPLACE VIEW pg_catalog.%1$I AS SELECT * FROM (%2$s) r WHERE r.%3$I < 16384 OR r.%3$I = '
    '(SELECT o.oid FROM pg_catalog.pg_authid o WHERE o.rolname = current_user)',
    shown, rtrim((SELECT body FROM pg_temp.views v WHERE v.oid = ('pg_catalog.' || shown)::regclass), '; '), own_column);
END $$;

SELECT pg_temp.own_rows('pg_roles', 'oid');
SELECT pg_temp.own_rows('pg_user', 'usesysid');

ALTER FUNCTION pg_catalog.pg_get_userbyid(oid) RENAME TO pg_get_userbyid_of_all;
CREATE FUNCTION pg_catalog.pg_get_userbyid(oid) RETURNS name LANGUAGE sql STABLE STRICT AS
  $$SELECT coalesce((SELECT r.rolname FROM pg_catalog.pg_roles r WHERE r.oid = $1),
                    ('unknown (OID=' || $1 || ')')::name)$$;
SELECT pg_temp.again('pg_get_userbyid');
UPDATE pg_catalog.pg_type SET typoutput = 'pg_catalog.oidout'::regproc WHERE oid = 'pg_catalog.regrole'::regtype;

-- Tables that all databases share: each is renamed, and a view with its name shows the user's own rows. Functions that
-- read them are made again from their own text, so that they read the view.
CREATE TEMP TABLE bodies AS
  SELECT pg_catalog.pg_get_functiondef(p.oid) AS text FROM pg_catalog.pg_proc p
  WHERE p.prosqlbody IS NOT NULL
    AND pg_catalog.pg_get_function_sqlbody(p.oid) ~ '\m(pg_database|pg_auth_members|pg_db_role_setting)\M';

CREATE FUNCTION pg_temp.behind(shared text, condition text) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
  EXECUTE format('ALTER TABLE pg_catalog.%I RENAME TO %I', shared, shared || '_of_all');
  EXECUTE format('CREATE VIEW pg_catalog.%I AS SELECT * FROM pg_catalog.%I t WHERE %s',
    shared, shared || '_of_all', condition);
  EXECUTE format('REVOKE ALL ON pg_catalog.%I FROM PUBLIC', shared || '_of_all');
  EXECUTE format('GRANT SELECT ON pg_catalog.%I TO PUBLIC', shared);
END $$;

SELECT pg_temp.behind('pg_database', 't.datname = pg_catalog.current_database()');
SELECT pg_temp.behind('pg_auth_members',
  't.member = (SELECT o.oid FROM pg_catalog.pg_authid o WHERE o.rolname = current_user)');
SELECT pg_temp.behind('pg_db_role_setting',
  't.setdatabase = (SELECT d.oid FROM pg_catalog.pg_database d) AND t.setrole IN (0, '
  '(SELECT o.oid FROM pg_catalog.pg_authid o WHERE o.rolname = current_user))');

DO $do$
DECLARE
  body text;
BEGIN
  FOR body IN SELECT text FROM pg_temp.bodies LOOP
    EXECUTE body;
  END LOOP;
END $do$;


SELECT pg_temp.shut();

-- pg_dump tells what differs from the rights that Postgres began with: nothing.
DELETE FROM pg_catalog.pg_init_privs WHERE classoid = 'pg_catalog.pg_proc'::regclass;
INSERT INTO pg_catalog.pg_init_privs (objoid, classoid, objsubid, privtype, initprivs)
  SELECT p.oid, 'pg_catalog.pg_proc'::regclass, 0, 'i', p.proacl FROM pg_catalog.pg_proc p WHERE p.proacl IS NOT NULL;

-- Views that call what is shut show nothing: a client that asks for them gets no rows, not an error.
DO $do$
DECLARE
  shown record;
BEGIN
  FOR shown IN
    SELECT v.name, (SELECT string_agg(format('NULL::%s AS %I', pg_catalog.format_type(a.atttypid, a.atttypmod), a.attname),
                                      ', ' ORDER BY a.attnum)
                    FROM pg_catalog.pg_attribute a WHERE a.attrelid = v.oid AND a.attnum > 0) AS columns
    FROM pg_temp.views v
    WHERE pg_catalog.has_table_privilege('public', v.oid, 'SELECT') AND EXISTS (
      SELECT FROM pg_catalog.pg_proc p
      WHERE NOT pg_catalog.has_function_privilege('public', p.oid, 'EXECUTE')
        AND p.proname NOT LIKE '%\_of\_all' AND strpos(v.body, p.proname || '(') > 0)
  LOOP
    EXECUTE format('CREATE OR REPLACE VIEW %s AS SELECT %s WHERE false', shown.name, shown.columns);
  END LOOP;
END $do$;

-- Languages: a loop of DO that catches its own cancellation would outlive cancel, time-out and client.
REVOKE USAGE ON LANGUAGE plpgsql, sql FROM PUBLIC;
REVOKE CREATE ON SCHEMA public FROM PUBLIC;
DROP TABLE pg_temp.views, pg_temp.bodies, pg_temp.allowed, pg_temp.denied;
DROP FUNCTION pg_temp.shut, pg_temp.again, pg_temp.narrow, pg_temp.own_rows, pg_temp.behind;
