-- begin_drop begins to drop the facts before a time: it makes the table for those of them that are kept, which the
-- caller fills. Facts that are stored from now on know of it. It runs as the owner, and nobody waits for it for long.
CREATE OR REPLACE FUNCTION evictrail.begin_drop(boundary timestamptz, caller name) RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path = '' SET lock_timeout = '200ms' AS $$
BEGIN
    IF boundary <> date_trunc('month', boundary, 'UTC') OR boundary > now() - interval '7 days' THEN
        RAISE EXCEPTION 'drop facts before %: expected the beginning of a month, in UTC, a week ago or longer', boundary USING ERRCODE = '22023';
    END IF;
    LOCK TABLE ONLY evictrail.events IN ACCESS EXCLUSIVE MODE;
    DROP TABLE IF EXISTS evictrail.events_next;
    CREATE TABLE evictrail.events_next (LIKE evictrail.events INCLUDING DEFAULTS INCLUDING CONSTRAINTS INCLUDING INDEXES);
    ALTER TABLE evictrail.events_next ALTER COLUMN seq SET DEFAULT 0; -- kept facts keep their number; a version that knows none has no new one made
    EXECUTE format('ALTER TABLE evictrail.events_next ADD CONSTRAINT before_the_rest CHECK (occurred_at < %L)', boundary);
    EXECUTE format('GRANT SELECT, INSERT ON evictrail.events_next TO %I', caller);
    UPDATE evictrail.retention SET dropping = boundary, complete = false, done_cluster = '', done_subject = '';
END
$$;
REVOKE ALL ON FUNCTION evictrail.begin_drop(timestamptz, name) FROM PUBLIC;
