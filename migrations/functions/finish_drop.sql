-- finish_drop drops the partitions of the months before the time that begin_drop was given, and puts what was kept of
-- them in their place. It returns the names of those that it dropped; none, and does nothing, where something that is
-- to be kept is not there yet, something is still to be derived of them, or a cluster is arriving, whose facts may be
-- there without what says which are to be kept. It runs as the owner.
CREATE OR REPLACE FUNCTION evictrail.finish_drop() RETURNS SETOF name
LANGUAGE plpgsql SECURITY DEFINER SET search_path = '' SET lock_timeout = '200ms' AS $$
DECLARE
    boundary timestamptz;
    part     name;
BEGIN
    ANALYZE evictrail.events_next;
    LOCK TABLE ONLY evictrail.events IN ACCESS EXCLUSIVE MODE;
    SELECT dropping INTO boundary FROM evictrail.retention WHERE complete;
    IF boundary IS NULL
        OR EXISTS (SELECT 1 FROM evictrail.subjects WHERE dirty_since < boundary)
        OR EXISTS (SELECT 1 FROM evictrail.moves WHERE state = 'arriving')
    THEN
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
    UPDATE evictrail.clusters SET facts_from = boundary WHERE facts_from < boundary OR facts_from IS NULL;
    UPDATE evictrail.retention SET facts_from = boundary, dropping = NULL, complete = false, done_cluster = '', done_subject = '';
END
$$;
REVOKE ALL ON FUNCTION evictrail.finish_drop() FROM PUBLIC;
