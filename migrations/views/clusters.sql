CREATE OR REPLACE VIEW evictrail_v1.clusters AS
SELECT
    cluster,
    nullif(alive_at, to_timestamp(0)) AS last_seen_at,
    facts_from
FROM evictrail.clusters;

COMMENT ON VIEW evictrail_v1.clusters IS 'Clusters: those that are recorded, and up to when.';
COMMENT ON COLUMN evictrail_v1.clusters.cluster IS 'Name of the cluster: --cluster, else the UID of its kube-system namespace.';
COMMENT ON COLUMN evictrail_v1.clusters.last_seen_at IS 'Up to when what happened there is stored. NULL where nothing was seen yet.';
COMMENT ON COLUMN evictrail_v1.clusters.facts_from IS 'From when on all facts are there; rows about what was over by then stay as they are. NULL while no facts were dropped.';
