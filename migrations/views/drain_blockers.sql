CREATE OR REPLACE VIEW evictrail_v1.drain_blockers AS
SELECT
    cluster,
    namespace,
    vmi,
    vmi_uid,
    node,
    drain_id,
    blocker,
    reason,
    next,
    waiting_since,
    changed_at,
    last_asked_at
FROM evictrail.drain_blockers;

COMMENT ON VIEW evictrail_v1.drain_blockers IS 'Drain blockers: each VM that the last drain of a node has left, or left behind, and why.';
COMMENT ON COLUMN evictrail_v1.drain_blockers.cluster IS 'Cluster that the row belongs to: --cluster, else the UID of its kube-system namespace.';
COMMENT ON COLUMN evictrail_v1.drain_blockers.namespace IS 'Namespace of the VMI.';
COMMENT ON COLUMN evictrail_v1.drain_blockers.vmi IS 'Name of the VirtualMachineInstance.';
COMMENT ON COLUMN evictrail_v1.drain_blockers.vmi_uid IS 'UID of the VirtualMachineInstance.';
COMMENT ON COLUMN evictrail_v1.drain_blockers.node IS 'Node that is emptied.';
COMMENT ON COLUMN evictrail_v1.drain_blockers.drain_id IS 'The drain.';
COMMENT ON COLUMN evictrail_v1.drain_blockers.blocker IS 'not_migratable, failing, queued, migrating, external, opted_out (its strategy does not ask to be moved), pdb, node_not_ready (nothing leaves the node).';
COMMENT ON COLUMN evictrail_v1.drain_blockers.reason IS 'The cause in words.';
COMMENT ON COLUMN evictrail_v1.drain_blockers.next IS 'What KubeVirt will do by itself.';
COMMENT ON COLUMN evictrail_v1.drain_blockers.waiting_since IS 'Since when it blocks the drain.';
COMMENT ON COLUMN evictrail_v1.drain_blockers.changed_at IS 'When the row came or last changed, by the clock of the database: when the transaction that wrote it began. To follow changes, ask for those since a minute before the latest that is known.';
COMMENT ON COLUMN evictrail_v1.drain_blockers.last_asked_at IS 'When the drain last asked to evict it, repetitions by the minute. NULL where it never did.';
