-- What analysts may call over private tables and Postgres lacks: it exists, so that Postgres itself finds the types of
-- a statement's parameters and columns. Called over public rows, or where nothing has replaced it, it refuses.

CREATE FUNCTION pg_catalog.dp_only(name text) RETURNS void LANGUAGE plpgsql STABLE AS $$
BEGIN
  RAISE EXCEPTION '% is answered over private tables only', name
    USING ERRCODE = 'feature_not_supported',
          HINT = CASE WHEN name LIKE 'dp\_%' THEN 'It is of an aggregate: ' || name || '(SUM(x)).'
                      ELSE 'Over public tables: percentile_cont(0.5) WITHIN GROUP (ORDER BY x), COUNT(DISTINCT x).' END;
END $$;

DO $do$
DECLARE
  of text;
  name text;
BEGIN
  FOREACH of IN ARRAY ARRAY['double precision', 'date', 'timestamp', 'timestamptz', 'text'] LOOP
    FOREACH name IN ARRAY ARRAY['dp_interval_low', 'dp_interval_high'] LOOP
      EXECUTE format('CREATE FUNCTION pg_catalog.%s(%s) RETURNS %s LANGUAGE plpgsql STABLE AS '
        '$$BEGIN PERFORM pg_catalog.dp_only(%L); RETURN NULL; END$$', name, of, of, name);
    END LOOP;
    EXECUTE format('CREATE FUNCTION pg_catalog.dp_stddev(%s) RETURNS double precision LANGUAGE plpgsql STABLE AS '
      '$$BEGIN PERFORM pg_catalog.dp_only(%L); RETURN NULL; END$$', of, 'dp_stddev');
  END LOOP;
END $do$;

-- The aggregates: their end refuses, too, since over no rows it is all that is called.
DO $do$
DECLARE
  call record;
BEGIN
  FOR call IN
    SELECT * FROM (VALUES
      ('median', 'double precision', 'double precision'),
      ('median', 'date', 'date'),
      ('median', 'timestamp', 'timestamp'),
      ('median', 'timestamptz', 'timestamptz'),
      ('quantile_cont', 'double precision, double precision', 'double precision'),
      ('quantile_cont', 'date, double precision', 'date'),
      ('quantile_cont', 'timestamp, double precision', 'timestamp'),
      ('quantile_cont', 'timestamptz, double precision', 'timestamptz'),
      ('quantile_disc', 'anyelement, double precision', 'anyelement'),
      ('quantile', 'anyelement, double precision', 'anyelement'),
      ('approx_quantile', 'anyelement, double precision', 'anyelement'),
      ('approx_percentile', 'anyelement, double precision', 'anyelement'),
      ('percentile_approx', 'anyelement, double precision', 'anyelement'),
      ('approx_count_distinct', 'anyelement', 'bigint'),
      ('approx_distinct', 'anyelement', 'bigint'),
      ('count_if', 'boolean', 'bigint'),
      ('countif', 'boolean', 'bigint')
    ) AS listed (name, takes, gives)
  LOOP
    EXECUTE format('CREATE FUNCTION pg_catalog.dp_step_%1$s(%3$s, %2$s) RETURNS %3$s LANGUAGE plpgsql STABLE AS '
      '$$BEGIN PERFORM pg_catalog.dp_only(%1$L); RETURN NULL; END$$', call.name, call.takes, call.gives);
    EXECUTE format('CREATE FUNCTION pg_catalog.dp_end_%1$s(%2$s) RETURNS %2$s LANGUAGE plpgsql STABLE AS '
      '$$BEGIN PERFORM pg_catalog.dp_only(%1$L); RETURN NULL; END$$', call.name, call.gives);
    EXECUTE format('CREATE AGGREGATE pg_catalog.%1$s(%2$s) (SFUNC = pg_catalog.dp_step_%1$s, STYPE = %3$s, '
      'FINALFUNC = pg_catalog.dp_end_%1$s)', call.name, call.takes, call.gives);
  END LOOP;
END $do$;
