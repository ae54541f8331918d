-- +goose Up
-- Postgres plans with what it has counted, and counts a minute or two after a table has grown. Until then it takes the rows of one cluster for a small part of all, and
-- reads them all for each VM. So whoever adds facts has it count what has grown to four times of what it was: after an installation, and at the beginning of each month.
-- It runs as the owner, of a small sample, as autovacuum comes with a larger one. Who counts already is not waited for.
-- +goose StatementBegin
CREATE FUNCTION evictrail.count_grown() RETURNS void
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
-- +goose StatementEnd
REVOKE ALL ON FUNCTION evictrail.count_grown() FROM PUBLIC;

-- +goose Down
DROP FUNCTION evictrail.count_grown();
