CREATE OR REPLACE VIEW evictrail_v1.node_outages AS
SELECT
    cluster,
    node,
    outage_id,
    began_at,
    ended_at,
    ended_by,
    cause,
    message,
    changed_at
FROM evictrail.outages;

COMMENT ON VIEW evictrail_v1.node_outages IS 'Node outages: when a node was not ready. While its kubelet was silent no VM left it, and no migration to it got on.';
COMMENT ON COLUMN evictrail_v1.node_outages.cluster IS 'Cluster that the row belongs to: --cluster, else the UID of its kube-system namespace.';
COMMENT ON COLUMN evictrail_v1.node_outages.node IS 'Node that was not ready.';
COMMENT ON COLUMN evictrail_v1.node_outages.outage_id IS 'Identity of the outage; it stays the same when the row is derived again.';
COMMENT ON COLUMN evictrail_v1.node_outages.began_at IS 'When its condition Ready or a taint began to say so.';
COMMENT ON COLUMN evictrail_v1.node_outages.ended_at IS 'When it was ready again, or deleted. NULL while it is not ready.';
COMMENT ON COLUMN evictrail_v1.node_outages.ended_by IS 'recovered (it was ready again) or node_gone (it was deleted). NULL while it is not ready.';
COMMENT ON COLUMN evictrail_v1.node_outages.cause IS 'silent (its kubelet did not answer: Ready Unknown, or the taint unreachable) or reported (its kubelet said that it was not ready: Ready False, or the taint not-ready); the last one, where both came.';
COMMENT ON COLUMN evictrail_v1.node_outages.message IS 'Reason and message of the condition Ready. NULL where only a taint was seen.';
COMMENT ON COLUMN evictrail_v1.node_outages.changed_at IS 'When the row came or last changed, by the clock of the database; see evacuations.changed_at.';
