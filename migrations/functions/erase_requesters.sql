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
CREATE OR REPLACE FUNCTION evictrail.erase_requesters(before timestamptz, most integer, of_cluster text DEFAULT NULL)
RETURNS TABLE (cluster text, subject text, occurred_at timestamptz)
LANGUAGE plpgsql SECURITY DEFINER SET search_path = '' AS $$
#variable_conflict use_column
DECLARE
    key   text;
    erase text := 'WITH erased AS (
        UPDATE evictrail.%I AS e
        SET detail = (e.detail - ''source_ip'') || jsonb_strip_nulls(jsonb_build_object(
            ''user'', CASE WHEN o.person IS NOT NULL THEN o.instead END,
            ''impersonator'', CASE WHEN o.impersonator IS NOT NULL THEN o.instead_of_impersonator END,
            ''user_agent'', evictrail.without(e.detail ->> ''user_agent'', o.person, o.instead, o.impersonator, o.instead_of_impersonator),
            ''message'', evictrail.without(e.detail ->> ''message'', o.person, o.instead, o.impersonator, o.instead_of_impersonator),
            ''stated_reason'', evictrail.without(e.detail ->> ''stated_reason'', o.person, o.instead, o.impersonator, o.instead_of_impersonator),
            ''requested_by'', evictrail.without(e.detail ->> ''requested_by'', o.person, o.instead, o.impersonator, o.instead_of_impersonator)
        ))
        FROM (
            SELECT cluster, subject, occurred_at, id,
                evictrail.person(detail ->> ''user'') AS person, evictrail.instead_of(detail ->> ''user'', $3) AS instead,
                evictrail.person(detail ->> ''impersonator'') AS impersonator, evictrail.instead_of(detail ->> ''impersonator'', $3) AS instead_of_impersonator
            FROM evictrail.%I
            WHERE occurred_at < $1
              AND ($4::text IS NULL OR cluster = $4)
              AND kind IN (''eviction_requested'', ''action_requested'')
              AND (
                evictrail.person(detail ->> ''user'') IS NOT NULL
                OR evictrail.person(detail ->> ''impersonator'') IS NOT NULL
                OR detail ? ''source_ip''
              )
            LIMIT $2
        ) AS o
        WHERE (e.cluster, e.subject, e.occurred_at, e.id) = (o.cluster, o.subject, o.occurred_at, o.id)
        RETURNING e.cluster, e.subject, e.occurred_at, e.seq
        ), unsalted AS (
        UPDATE evictrail.evidence AS v SET names_salt = NULL
        FROM erased AS x
        WHERE v.cluster = x.cluster
          AND x.seq > v.after_seq
          AND x.seq <= v.last_seq
          AND v.month = date_trunc(''month'', x.occurred_at, ''UTC'')::date
          AND v.names_salt IS NOT NULL
        )
        SELECT cluster, subject, occurred_at FROM erased';
BEGIN
    IF before > now() - interval '1 day' THEN
        RAISE EXCEPTION 'erase names before %: expected a time a day ago or longer', before USING ERRCODE = '22023';
    END IF;
    PERFORM pg_advisory_xact_lock(hashtextextended('evictrail names', 0));
    UPDATE evictrail.retention
    SET name_key = gen_random_uuid()::text || gen_random_uuid()::text, name_month = date_trunc('month', before, 'UTC')
    WHERE name_month IS DISTINCT FROM date_trunc('month', before, 'UTC');
    SELECT name_key INTO key FROM evictrail.retention;
    RETURN QUERY EXECUTE format(erase, 'events', 'events') USING before, most, key, of_cluster;
    IF to_regclass('evictrail.events_next') IS NOT NULL THEN
        RETURN QUERY EXECUTE format(erase, 'events_next', 'events_next') USING before, most, key, of_cluster;
    END IF;
END
$$;
REVOKE ALL ON FUNCTION evictrail.erase_requesters(timestamptz, integer, text) FROM PUBLIC;
