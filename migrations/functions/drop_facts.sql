-- drop_facts deletes facts of a cluster from before the time since when all of its facts are there, which is a week
-- ago or longer, and returns how many. It runs as the owner: who drops months may drop these, and no others.
CREATE OR REPLACE FUNCTION evictrail.drop_facts(of_cluster text, subjects text[], times timestamptz[], ids uuid[])
RETURNS bigint LANGUAGE sql SECURITY DEFINER SET search_path = '' AS $$
    WITH dropped AS (
        DELETE FROM evictrail.events AS e
        USING unnest(subjects, times, ids) AS d(subject, occurred_at, id)
        WHERE e.cluster = of_cluster
          AND e.subject = d.subject
          AND e.occurred_at = d.occurred_at
          AND e.id = d.id
          AND e.occurred_at < (
            SELECT c.facts_from
            FROM evictrail.clusters AS c
            WHERE c.cluster = of_cluster
              AND c.facts_from <= now() - interval '7 days'
          )
        RETURNING 1
    )
    SELECT count(*) FROM dropped
$$;
REVOKE ALL ON FUNCTION evictrail.drop_facts(text, text[], timestamptz[], uuid[]) FROM PUBLIC;
