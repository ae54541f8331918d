-- person returns a pattern that finds the name of a person as a whole in a text; NULL where it is none of a person's,
-- or was erased.
CREATE OR REPLACE FUNCTION evictrail.person(name text) RETURNS text
LANGUAGE sql IMMUTABLE AS $$
    SELECT CASE WHEN name NOT LIKE 'system:%' AND name NOT LIKE '(erased %' AND name <> '' THEN
        '(?<![[:alnum:]_-])' || regexp_replace(name, '([^[:alnum:]_@:/ -])', '\\\1', 'g') || '(?![[:alnum:]_-])'
    END
$$;

-- instead_of returns what stands in place of a name: it keeps persons apart as long as the key is the same.
CREATE OR REPLACE FUNCTION evictrail.instead_of(name text, key text) RETURNS text
LANGUAGE sql IMMUTABLE AS $$
    SELECT '(erased ' || left(encode(sha256(convert_to(key || name, 'UTF8')), 'hex'), 8) || ')'
$$;

-- without returns a text without the names of two people, each a pattern; one that is NULL is none.
CREATE OR REPLACE FUNCTION evictrail.without(said text, one text, instead_of_one text, other text, instead_of_other text) RETURNS text
LANGUAGE sql IMMUTABLE AS $$
    SELECT coalesce(regexp_replace(t, other, instead_of_other, 'g'), t)
    FROM (SELECT coalesce(regexp_replace(said, one, instead_of_one, 'g'), said) AS t) AS x
$$;

-- erase_requesters erases the names of people in the requests before a time, and the addresses from which was asked,
-- some at a time, of one cluster, or of all where none is named; service accounts and others that Kubernetes itself
-- makes (system:) are no people. In the place of a name keeps persons apart, for about a month: it is made with a key
-- that is forgotten then. It returns of which requests. It runs as the owner.
--
-- The digests of days (../schema/evidence.sql) leave out what is erased here, and have it in a digest of its own: its
-- salt goes with the first name, so that nobody can try names out on the digest. A day is not sealed at the same
-- time: the lock.
--
-- What is written is computed before, and each fact is changed by its key and constants: Citus refuses an UPDATE that computes.
CREATE OR REPLACE FUNCTION evictrail.erase_requesters(before timestamptz, most integer, of_cluster text DEFAULT NULL)
RETURNS TABLE (cluster text, subject text, occurred_at timestamptz)
LANGUAGE plpgsql SECURITY DEFINER SET search_path = '' AS $$
#variable_conflict use_column
DECLARE
    key    text;
    fresh  text := gen_random_uuid()::text || gen_random_uuid()::text;
    month  timestamptz := date_trunc('month', before, 'UTC');
    part   text;
    fact   record;
    wanted text := $find$
        SELECT
            e.cluster, e.subject, e.occurred_at, e.id, e.seq, date_trunc('month', e.occurred_at AT TIME ZONE 'UTC')::date AS month,
            (e.detail - 'source_ip') || jsonb_strip_nulls(jsonb_build_object(
                'user', CASE WHEN e.person IS NOT NULL THEN e.instead END,
                'impersonator', CASE WHEN e.impersonator IS NOT NULL THEN e.instead_of_impersonator END,
                'user_agent', evictrail.without(e.detail ->> 'user_agent', e.person, e.instead, e.impersonator, e.instead_of_impersonator),
                'message', evictrail.without(e.detail ->> 'message', e.person, e.instead, e.impersonator, e.instead_of_impersonator),
                'stated_reason', evictrail.without(e.detail ->> 'stated_reason', e.person, e.instead, e.impersonator, e.instead_of_impersonator),
                'requested_by', evictrail.without(e.detail ->> 'requested_by', e.person, e.instead, e.impersonator, e.instead_of_impersonator)
            )) AS erased
        FROM (
            SELECT cluster, subject, occurred_at, id, seq, detail,
                evictrail.person(detail ->> 'user') AS person, evictrail.instead_of(detail ->> 'user', $3) AS instead,
                evictrail.person(detail ->> 'impersonator') AS impersonator, evictrail.instead_of(detail ->> 'impersonator', $3) AS instead_of_impersonator
            FROM evictrail.%I
            WHERE occurred_at < $1
              AND ($4::text IS NULL OR cluster = $4)
              AND kind IN ('eviction_requested', 'action_requested')
              AND (
                evictrail.person(detail ->> 'user') IS NOT NULL
                OR evictrail.person(detail ->> 'impersonator') IS NOT NULL
                OR detail ? 'source_ip'
              )
            LIMIT $2
        ) AS e$find$;
BEGIN
    IF before > now() - interval '1 day' THEN
        RAISE EXCEPTION 'erase names before %: expected a time a day ago or longer', before USING ERRCODE = '22023';
    END IF;
    PERFORM pg_advisory_xact_lock(hashtextextended('evictrail names', 0));
    UPDATE evictrail.retention AS r
    SET name_key = fresh, name_month = month
    WHERE r.name_month IS DISTINCT FROM month;
    SELECT name_key INTO key FROM evictrail.retention;
    FOREACH part IN ARRAY ARRAY['events', 'events_next'] LOOP
        CONTINUE WHEN to_regclass('evictrail.' || part) IS NULL;
        FOR fact IN EXECUTE format(wanted, part) USING before, most, key, of_cluster LOOP
            IF part = 'events' THEN
                UPDATE evictrail.events AS e
                SET detail = fact.erased
                WHERE e.cluster = fact.cluster AND e.subject = fact.subject AND e.occurred_at = fact.occurred_at AND e.id = fact.id;
            ELSE
                UPDATE evictrail.events_next AS e
                SET detail = fact.erased
                WHERE e.cluster = fact.cluster AND e.subject = fact.subject AND e.occurred_at = fact.occurred_at AND e.id = fact.id;
            END IF;
            UPDATE evictrail.evidence AS v
            SET names_salt = NULL
            WHERE v.cluster = fact.cluster
              AND v.last_seq >= fact.seq
              AND v.after_seq < fact.seq
              AND v.month = fact.month
              AND v.names_salt IS NOT NULL;
            cluster := fact.cluster;
            subject := fact.subject;
            occurred_at := fact.occurred_at;
            RETURN NEXT;
        END LOOP;
    END LOOP;
END
$$;
REVOKE ALL ON FUNCTION evictrail.erase_requesters(timestamptz, integer, text) FROM PUBLIC;
