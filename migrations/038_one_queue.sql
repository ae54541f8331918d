-- +goose Up
-- What is to be derived waits in one queue: subjects.dirty_since.
UPDATE evictrail.subjects
SET dirty_since = least(dirty_since, stale_since, touched_since), version = version + 1
WHERE stale_since IS NOT NULL OR touched_since IS NOT NULL;
ALTER TABLE evictrail.subjects DROP COLUMN stale_since, DROP COLUMN touched_since;
COMMENT ON INDEX evictrail.subjects_dirty IS 'What is still to be derived.';
-- What was last recorded of an aspect tells whether a fact is recorded already.
ALTER TABLE evictrail.aspects ADD COLUMN fact_id uuid;
-- Programs from before derive of the former queues.
CREATE OR REPLACE FUNCTION evictrail.oldest_schema() RETURNS bigint LANGUAGE sql IMMUTABLE AS 'SELECT 38::bigint';

-- Drops the partitions of the months before that time and puts what was kept of them in their place. It gives the names of those that it dropped; none,
-- and does nothing, where something that is to be kept is not there yet, or something is still to be derived of them.
-- +goose StatementBegin
CREATE OR REPLACE FUNCTION evictrail.finish_drop() RETURNS SETOF name
LANGUAGE plpgsql SECURITY DEFINER SET search_path = '' SET lock_timeout = '200ms' AS $$
DECLARE
    boundary timestamptz;
    part     name;
BEGIN
    ANALYZE evictrail.events_next;
    LOCK TABLE ONLY evictrail.events IN ACCESS EXCLUSIVE MODE;
    SELECT dropping INTO boundary FROM evictrail.retention WHERE complete;
    IF boundary IS NULL OR EXISTS (SELECT FROM evictrail.subjects WHERE dirty_since < boundary) THEN
        RETURN;
    END IF;
    FOR part IN
        SELECT c.relname
        FROM pg_catalog.pg_inherits AS i
        JOIN pg_catalog.pg_class AS c ON c.oid = i.inhrelid
        WHERE i.inhparent = 'evictrail.events'::regclass
          AND (c.relname = 'events_kept' OR c.relname ~ '^events_\d{4}_\d{2}$' AND to_date(right(c.relname, 7), 'YYYY_MM')::timestamp AT TIME ZONE 'UTC' < boundary)
        ORDER BY c.relname
    LOOP
        EXECUTE format('DROP TABLE evictrail.%I', part);
        IF part <> 'events_kept' THEN
            RETURN NEXT part;
        END IF;
    END LOOP;
    DELETE FROM evictrail.events_default WHERE occurred_at < boundary; -- what is kept of them is in events_next, too
    ALTER TABLE evictrail.events_next RENAME TO events_kept;
    EXECUTE format('ALTER TABLE evictrail.events ATTACH PARTITION evictrail.events_kept FOR VALUES FROM (MINVALUE) TO (%L)', boundary);
    UPDATE evictrail.retention SET facts_from = boundary, dropping = NULL, complete = false, done_cluster = '', done_subject = '';
END
$$;
-- +goose StatementEnd

-- +goose Down
CREATE OR REPLACE FUNCTION evictrail.oldest_schema() RETURNS bigint LANGUAGE sql IMMUTABLE AS 'SELECT 17::bigint';
ALTER TABLE evictrail.aspects DROP COLUMN fact_id;
ALTER TABLE evictrail.subjects ADD COLUMN stale_since timestamptz, ADD COLUMN touched_since timestamptz;
UPDATE evictrail.subjects SET stale_since = dirty_since WHERE dirty_since IS NOT NULL;
CREATE INDEX subjects_stale ON evictrail.subjects (cluster, subject) WHERE stale_since IS NOT NULL;
COMMENT ON INDEX evictrail.subjects_stale IS 'What is still to be derived.';
CREATE INDEX subjects_touched ON evictrail.subjects (cluster, subject) WHERE touched_since IS NOT NULL;
COMMENT ON INDEX evictrail.subjects_touched IS 'Which nodes are still to be derived of the VMs that touched them.';
-- Drops the partitions of the months before that time and puts what was kept of them in their place. It gives the names of those that it dropped; none,
-- and does nothing, where something that is to be kept is not there yet, or something is still to be derived of them.
-- +goose StatementBegin
CREATE OR REPLACE FUNCTION evictrail.finish_drop() RETURNS SETOF name
LANGUAGE plpgsql SECURITY DEFINER SET search_path = '' SET lock_timeout = '200ms' AS $$
DECLARE
    boundary timestamptz;
    part     name;
BEGIN
    ANALYZE evictrail.events_next;
    LOCK TABLE ONLY evictrail.events IN ACCESS EXCLUSIVE MODE;
    SELECT dropping INTO boundary FROM evictrail.retention WHERE complete;
    IF boundary IS NULL OR EXISTS (SELECT FROM evictrail.subjects WHERE stale_since < boundary) THEN
        RETURN;
    END IF;
    FOR part IN
        SELECT c.relname
        FROM pg_catalog.pg_inherits AS i
        JOIN pg_catalog.pg_class AS c ON c.oid = i.inhrelid
        WHERE i.inhparent = 'evictrail.events'::regclass
          AND (c.relname = 'events_kept' OR c.relname ~ '^events_\d{4}_\d{2}$' AND to_date(right(c.relname, 7), 'YYYY_MM')::timestamp AT TIME ZONE 'UTC' < boundary)
        ORDER BY c.relname
    LOOP
        EXECUTE format('DROP TABLE evictrail.%I', part);
        IF part <> 'events_kept' THEN
            RETURN NEXT part;
        END IF;
    END LOOP;
    DELETE FROM evictrail.events_default WHERE occurred_at < boundary; -- what is kept of them is in events_next, too
    ALTER TABLE evictrail.events_next RENAME TO events_kept;
    EXECUTE format('ALTER TABLE evictrail.events ATTACH PARTITION evictrail.events_kept FOR VALUES FROM (MINVALUE) TO (%L)', boundary);
    UPDATE evictrail.retention SET facts_from = boundary, dropping = NULL, complete = false, done_cluster = '', done_subject = '';
END
$$;
-- +goose StatementEnd
