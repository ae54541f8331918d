-- From when on all facts are there is known of each cluster by itself: one that comes from another database brings it
-- along (../schema/clusters.sql). Months are dropped for all clusters at once as before.
ALTER TABLE evictrail.clusters
    ADD COLUMN facts_from timestamptz;
UPDATE evictrail.clusters
SET facts_from = r.facts_from
FROM evictrail.retention AS r;
-- Each cluster is kept for as long as its own recorder says.
ALTER TABLE evictrail.clusters
    ADD COLUMN thinned_to text,
    ADD COLUMN keep_facts interval,
    ADD COLUMN keep_rows interval,
    ADD COLUMN keep_requesters interval;
DROP FUNCTION evictrail.erase_requesters(timestamptz, integer); -- it has another argument (../functions)
-- Clusters move from one database to another.
CREATE TABLE evictrail.moves (
    cluster   text        NOT NULL PRIMARY KEY,
    state     text        NOT NULL CHECK (state IN ('arriving', 'arrived', 'leaving')),
    peer      text        NOT NULL,
    began_at  timestamptz NOT NULL DEFAULT now(),
    ended_at  timestamptz,
    copied    text[]      NOT NULL DEFAULT '{}',
    after_key text[],
    digests   jsonb,
    CHECK ((state = 'arrived') = (digests IS NOT NULL))
);
