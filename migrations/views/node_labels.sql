CREATE OR REPLACE VIEW evictrail_v1.node_labels AS
SELECT
    l.cluster,
    l.node,
    l.from_at,
    l.to_at,
    l.detail ->> 'zone' AS zone,
    l.detail ->> 'region' AS region,
    l.detail ->> 'instance_type' AS instance_type,
    l.detail ->> 'pool' AS pool,
    l.detail -> 'labels' AS labels,
    l.event_id
FROM (
    SELECT
        f.cluster,
        f.node,
        f.kind,
        f.occurred_at AS from_at,
        lead(f.occurred_at) OVER (PARTITION BY f.cluster, f.node ORDER BY f.occurred_at, f.id) AS to_at,
        f.detail,
        f.id AS event_id
    FROM evictrail.events AS f
    WHERE f.kind IN ('node_labels', 'node_gone')
) AS l
WHERE l.kind = 'node_labels';

COMMENT ON VIEW evictrail_v1.node_labels IS 'Node labels: where nodes were and of what kind, one row from each change of their labels to the next.';
COMMENT ON COLUMN evictrail_v1.node_labels.cluster IS 'Cluster that the row belongs to: --cluster, else the UID of its kube-system namespace.';
COMMENT ON COLUMN evictrail_v1.node_labels.node IS 'Node that has them.';
COMMENT ON COLUMN evictrail_v1.node_labels.from_at IS 'When they were first seen, or seen to have changed.';
COMMENT ON COLUMN evictrail_v1.node_labels.to_at IS 'When others were seen, or the node was deleted. NULL while it has them.';
COMMENT ON COLUMN evictrail_v1.node_labels.zone IS 'topology.kubernetes.io/zone. NULL where it is not set.';
COMMENT ON COLUMN evictrail_v1.node_labels.region IS 'topology.kubernetes.io/region. NULL where it is not set.';
COMMENT ON COLUMN evictrail_v1.node_labels.instance_type IS 'node.kubernetes.io/instance-type. NULL where it is not set.';
COMMENT ON COLUMN evictrail_v1.node_labels.pool IS 'Pool: the label of Karpenter, GKE, EKS or AKS, else the roles (node-role.kubernetes.io/ROLE) beside worker and control-plane, else these. NULL where it has none of them.';
COMMENT ON COLUMN evictrail_v1.node_labels.labels IS 'The labels that these columns are read from, as an object.';
COMMENT ON COLUMN evictrail_v1.node_labels.event_id IS 'The fact; see events.event_id.';
