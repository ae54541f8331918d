CREATE OR REPLACE VIEW evictrail_v1.drains AS
SELECT
    cluster,
    node,
    drain_id,
    started_at,
    ended_at,
    requester,
    requester_class,
    vmis_total,
    vmis_left,
    outcome,
    last_asked_at,
    changed_at,
    impersonator
FROM evictrail.drains;

COMMENT ON VIEW evictrail_v1.drains IS 'Drains: sessions in which a node is emptied, from its cordon or the first request to its end.';
COMMENT ON COLUMN evictrail_v1.drains.cluster IS 'Cluster that the row belongs to: --cluster, else the UID of its kube-system namespace.';
COMMENT ON COLUMN evictrail_v1.drains.node IS 'Node that is emptied.';
COMMENT ON COLUMN evictrail_v1.drains.drain_id IS 'Identity of the drain.';
COMMENT ON COLUMN evictrail_v1.drains.started_at IS 'When the node was cordoned for it, else the first request.';
COMMENT ON COLUMN evictrail_v1.drains.ended_at IS 'When it was over. NULL while it goes on.';
COMMENT ON COLUMN evictrail_v1.drains.requester IS 'User name of who asked first. NULL where unknown.';
COMMENT ON COLUMN evictrail_v1.drains.requester_class IS 'What sort of program asked first; see eviction_requests.requester_class.';
COMMENT ON COLUMN evictrail_v1.drains.vmis_total IS 'Guests that were on the node since it began.';
COMMENT ON COLUMN evictrail_v1.drains.vmis_left IS 'Guests that are left, or were at its end.';
COMMENT ON COLUMN evictrail_v1.drains.outcome IS 'emptied (no guest is left), abandoned (the node takes pods again, or nobody asks any more), node_gone. NULL while it goes on.';
COMMENT ON COLUMN evictrail_v1.drains.last_asked_at IS 'When it was last asked for, repetitions by the minute.';
COMMENT ON COLUMN evictrail_v1.drains.changed_at IS 'When the row came or last changed, by the clock of the database: when the transaction that wrote it began. To follow changes, ask for those since a minute before the latest that is known.';
COMMENT ON COLUMN evictrail_v1.drains.impersonator IS 'User name of who really asked, where that was as the requester. NULL where it was not.';
