-- oldest_schema returns the oldest schema whose programs may work on this one (docs/adr/0038). A schema that they would
-- not get along with comes with another. Those from before schema 46 take the facts of all clusters to be there since the
-- same time: where less is there of one, they would delete rows that can no longer be derived.
CREATE OR REPLACE FUNCTION evictrail.oldest_schema() RETURNS bigint
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = '' AS $$
    SELECT CASE WHEN EXISTS (
        SELECT 1
        FROM evictrail.clusters AS c
        CROSS JOIN evictrail.retention AS r
        WHERE c.facts_from > coalesce(r.facts_from, '-infinity')
    ) THEN 46::bigint ELSE 38::bigint END
$$;
