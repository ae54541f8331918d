CREATE OR REPLACE VIEW evictrail_v1.timeline AS
SELECT
    cluster,
    namespace,
    vmi,
    vmi_uid,
    node,
    at,
    kind,
    reason,
    sentence,
    event_id,
    seen_late,
    changed_at
FROM evictrail.timeline;

COMMENT ON VIEW evictrail_v1.timeline IS 'Timeline: one line that a person can read for each thing that matters, per VMI and node.';
COMMENT ON COLUMN evictrail_v1.timeline.cluster IS 'Cluster that the row belongs to: --cluster, else the UID of its kube-system namespace.';
COMMENT ON COLUMN evictrail_v1.timeline.namespace IS 'Namespace of the VMI.';
COMMENT ON COLUMN evictrail_v1.timeline.vmi IS 'Name of the VirtualMachineInstance.';
COMMENT ON COLUMN evictrail_v1.timeline.vmi_uid IS 'UID of the VirtualMachineInstance; a restarted VM has a new one. NULL where it is not known.';
COMMENT ON COLUMN evictrail_v1.timeline.node IS 'Node that the line speaks of. NULL where it speaks of none.';
COMMENT ON COLUMN evictrail_v1.timeline.at IS 'When it happened, by the best clock there is. Where that clock knows whole seconds only and the sight came later, the end of that second.';
COMMENT ON COLUMN evictrail_v1.timeline.kind IS 'Kind of the fact that the line is about.';
COMMENT ON COLUMN evictrail_v1.timeline.reason IS 'Reason of that fact.';
COMMENT ON COLUMN evictrail_v1.timeline.sentence IS 'The line.';
COMMENT ON COLUMN evictrail_v1.timeline.event_id IS 'The fact, in view events.';
COMMENT ON COLUMN evictrail_v1.timeline.seen_late IS 'True when it was read from a list, not seen when it happened.';
COMMENT ON COLUMN evictrail_v1.timeline.changed_at IS 'When the row came or last changed, by the clock of the database: when the transaction that wrote it began. To follow changes, ask for those since a minute before the latest that is known.';
