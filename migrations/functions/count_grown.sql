-- count_grown has Postgres count the rows of tables that have grown to four times of what they were when it last did:
-- after an installation, and at the beginning of each month. Autovacuum does so a minute or two later, and until then
-- Postgres takes the rows of one cluster for a small part of all, and reads them all for each VM. It runs as the owner,
-- of a small sample, as autovacuum comes with a larger one. Who counts already is not waited for.
CREATE OR REPLACE FUNCTION evictrail.count_grown() RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path = '' SET default_statistics_target = 10 AS $$
DECLARE
    grown regclass;
BEGIN
    FOR grown IN
        SELECT c.oid
        FROM pg_catalog.pg_class AS c
        WHERE c.relnamespace = 'evictrail'::regnamespace
          AND c.relkind = 'r'
          AND pg_relation_size(c.oid) >= 4 * greatest(c.relpages, 2) * current_setting('block_size')::bigint
    LOOP
        EXECUTE format('ANALYZE (SKIP_LOCKED) %s', grown);
    END LOOP;
END
$$;
REVOKE ALL ON FUNCTION evictrail.count_grown() FROM PUBLIC;
