-- +goose Up
-- Facts are dropped by months. Of what is dropped, that stays on which what came after rests, in the partition events_kept; derived rows about
-- what was over by then stay as they are (docs/adr/0020). There is one row.
CREATE TABLE evictrail.retention (
    only_row     boolean     NOT NULL DEFAULT true PRIMARY KEY CHECK (only_row),
    facts_from   timestamptz,                   -- before this time only those facts are there that were kept; NULL: all are
    dropping     timestamptz,                   -- up to where facts are being dropped; NULL: none are
    complete     boolean     NOT NULL DEFAULT false, -- everything that is to be kept of them is in events_next
    done_cluster text        NOT NULL DEFAULT '',    -- else that of the subjects up to this one is
    done_subject text        NOT NULL DEFAULT '',
    name_key     text,                          -- with which names that are erased are told apart
    name_month   timestamptz                    -- in which it is used; there is another one in the next
);
INSERT INTO evictrail.retention DEFAULT VALUES;

CREATE INDEX eviction_requests_repeated ON evictrail.eviction_requests (cluster, subject, last_repeat_at) WHERE last_repeat_at IS NOT NULL;
COMMENT ON INDEX evictrail.eviction_requests_repeated IS 'Whether a request is repeated since facts were dropped: derive again.';

-- Begins to drop the facts before a time: makes the table for those that are kept of them, which the caller fills. Facts that are stored from now on
-- know of it. It runs as the owner, as do the next two, and nobody waits for it for long.
-- +goose StatementBegin
CREATE FUNCTION evictrail.begin_drop(boundary timestamptz, caller name) RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path = '' SET lock_timeout = '200ms' AS $$
BEGIN
    IF boundary <> date_trunc('month', boundary, 'UTC') OR boundary > now() - interval '7 days' THEN
        RAISE EXCEPTION 'drop facts before %: expected the beginning of a month, in UTC, a week ago or longer', boundary USING ERRCODE = '22023';
    END IF;
    LOCK TABLE ONLY evictrail.events IN ACCESS EXCLUSIVE MODE;
    DROP TABLE IF EXISTS evictrail.events_next;
    CREATE TABLE evictrail.events_next (LIKE evictrail.events INCLUDING DEFAULTS INCLUDING CONSTRAINTS INCLUDING INDEXES);
    EXECUTE format('ALTER TABLE evictrail.events_next ADD CONSTRAINT before_the_rest CHECK (occurred_at < %L)', boundary);
    EXECUTE format('GRANT SELECT, INSERT ON evictrail.events_next TO %I', caller);
    UPDATE evictrail.retention SET dropping = boundary, complete = false, done_cluster = '', done_subject = '';
END
$$;
-- +goose StatementEnd
REVOKE ALL ON FUNCTION evictrail.begin_drop(timestamptz, name) FROM PUBLIC;

-- Drops the partitions of the months before that time and puts what was kept of them in their place. It gives the names of those that it dropped; none,
-- and does nothing, where something that is to be kept is not there yet, or something is still to be derived of them.
-- +goose StatementBegin
CREATE FUNCTION evictrail.finish_drop() RETURNS SETOF name
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
REVOKE ALL ON FUNCTION evictrail.finish_drop() FROM PUBLIC;

-- Erases the names of people in the requests before a time, some at a time; service accounts and others that Kubernetes itself makes (system:) are no people.
-- In the place of a name is what tells one person from another, for about a month: it is made with a key that is forgotten then. It tells of which requests.
-- +goose StatementBegin
CREATE FUNCTION evictrail.erase_requesters(before timestamptz, most integer) RETURNS TABLE (cluster text, subject text, occurred_at timestamptz)
LANGUAGE plpgsql SECURITY DEFINER SET search_path = '' AS $$
#variable_conflict use_column
DECLARE
    key   text;
    erase text := 'UPDATE evictrail.%I AS e
        SET detail = e.detail || jsonb_strip_nulls(jsonb_build_object(
            ''user'', o.instead,
            ''user_agent'', regexp_replace(e.detail ->> ''user_agent'', o.name, o.instead, ''g''),
            ''message'', regexp_replace(e.detail ->> ''message'', o.name, o.instead, ''g''),
            ''stated_reason'', regexp_replace(e.detail ->> ''stated_reason'', o.name, o.instead, ''g''),
            ''requested_by'', regexp_replace(e.detail ->> ''requested_by'', o.name, o.instead, ''g'')
        ))
        FROM (
            SELECT cluster, subject, occurred_at, id,
                ''(?<![[:alnum:]_-])'' || regexp_replace(detail ->> ''user'', ''([^[:alnum:]_@:/ -])'', ''\\\1'', ''g'') || ''(?![[:alnum:]_-])'' AS name,
                ''(erased '' || left(encode(sha256(convert_to($3 || (detail ->> ''user''), ''UTF8'')), ''hex''), 8) || '')'' AS instead
            FROM evictrail.%I
            WHERE occurred_at < $1
              AND kind IN (''eviction_requested'', ''action_requested'')
              AND detail ->> ''user'' NOT LIKE ''system:%%''
              AND detail ->> ''user'' NOT LIKE ''(erased %%''
            LIMIT $2
        ) AS o
        WHERE (e.cluster, e.subject, e.occurred_at, e.id) = (o.cluster, o.subject, o.occurred_at, o.id)
        RETURNING e.cluster, e.subject, e.occurred_at';
BEGIN
    IF before > now() - interval '1 day' THEN
        RAISE EXCEPTION 'erase names before %: expected a time a day ago or longer', before USING ERRCODE = '22023';
    END IF;
    UPDATE evictrail.retention
    SET name_key = gen_random_uuid()::text || gen_random_uuid()::text, name_month = date_trunc('month', before, 'UTC')
    WHERE name_month IS DISTINCT FROM date_trunc('month', before, 'UTC');
    SELECT name_key INTO key FROM evictrail.retention;
    RETURN QUERY EXECUTE format(erase, 'events', 'events') USING before, most, key;
    IF to_regclass('evictrail.events_next') IS NOT NULL THEN
        RETURN QUERY EXECUTE format(erase, 'events_next', 'events_next') USING before, most, key;
    END IF;
END
$$;
-- +goose StatementEnd
REVOKE ALL ON FUNCTION evictrail.erase_requesters(timestamptz, integer) FROM PUBLIC;

-- +goose Down
DROP INDEX evictrail.eviction_requests_repeated;
DROP TABLE IF EXISTS evictrail.events_next;
DROP FUNCTION evictrail.begin_drop(timestamptz, name), evictrail.finish_drop(), evictrail.erase_requesters(timestamptz, integer);
DROP TABLE evictrail.retention;
