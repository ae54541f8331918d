-- From when on all facts are there is known of each cluster by itself: one that comes from another database brings it along
-- (../schema/clusters.sql). Months are dropped for all clusters at once as before.
ALTER TABLE evictrail.clusters
    ADD COLUMN facts_from timestamptz;
UPDATE evictrail.clusters
SET facts_from = r.facts_from
FROM evictrail.retention AS r;
