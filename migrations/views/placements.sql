CREATE OR REPLACE VIEW evictrail_v1.placements AS
SELECT
    cluster,
    namespace,
    vmi,
    vmi_uid,
    node,
    placement_id,
    from_at,
    to_at,
    arrived_by,
    left_by,
    seen_late,
    ended_by,
    strategy,
    not_migratable,
    not_migratable_since,
    opted_out,
    changed_at,
    ended_requester,
    ended_requester_class,
    ended_detail,
    CASE
      WHEN ended_by IN ('evicted', 'taint_manager', 'preempted', 'node_pressure', 'pod_gc', 'post_copy', 'hand_over') THEN true
      WHEN ended_by IN ('stopped', 'deleted') THEN false
    END AS memory_lost,
    CASE
      WHEN ended_by IN ('evicted', 'taint_manager', 'preempted', 'node_pressure', 'pod_gc', 'post_copy', 'hand_over') THEN (
        SELECT min(b.from_at)
        FROM evictrail.placements AS b
        WHERE b.cluster = p.cluster
          AND b.namespace = p.namespace
          AND b.vmi = p.vmi
          AND b.vmi_uid <> p.vmi_uid
          AND b.from_at >= date_trunc('second', p.to_at)
      )
    END AS back_at,
    terminating_since,
    outdated_since
FROM evictrail.placements AS p;

COMMENT ON VIEW evictrail_v1.placements IS 'Placements: on which node each guest ran, and how it came and left.';
COMMENT ON COLUMN evictrail_v1.placements.cluster IS 'Cluster that the row belongs to: --cluster, else the UID of its kube-system namespace.';
COMMENT ON COLUMN evictrail_v1.placements.namespace IS 'Namespace of the VMI.';
COMMENT ON COLUMN evictrail_v1.placements.vmi IS 'Name of the VirtualMachineInstance.';
COMMENT ON COLUMN evictrail_v1.placements.vmi_uid IS 'UID of the VirtualMachineInstance; a restarted VM has a new one. NULL where it is not known.';
COMMENT ON COLUMN evictrail_v1.placements.node IS 'Node that the guest ran on.';
COMMENT ON COLUMN evictrail_v1.placements.placement_id IS 'Identity of the stay.';
COMMENT ON COLUMN evictrail_v1.placements.from_at IS 'When it was first there.';
COMMENT ON COLUMN evictrail_v1.placements.to_at IS 'When it was there no more. NULL while it is.';
COMMENT ON COLUMN evictrail_v1.placements.arrived_by IS 'UID of the migration that brought it, ''start'', or ''unknown''.';
COMMENT ON COLUMN evictrail_v1.placements.left_by IS 'UID of the migration that took it away, ''end'' when the VMI ended there, or ''unknown''. NULL while it is there.';
COMMENT ON COLUMN evictrail_v1.placements.seen_late IS 'True when it was read from a list, not seen when it happened.';
COMMENT ON COLUMN evictrail_v1.placements.ended_by IS 'Why the guest ended there: evicted, taint_manager, preempted, node_pressure, pod_gc (Kubernetes took its pod away), post_copy, hand_over (a migration lost it), stopped, deleted, failed. NULL unless left_by is end.';
COMMENT ON COLUMN evictrail_v1.placements.strategy IS 'The VMIs spec.evictionStrategy. NULL where it has none.';
COMMENT ON COLUMN evictrail_v1.placements.not_migratable IS 'Why it could not be live-migrated at the end of the stay, or cannot now. NULL where it can.';
COMMENT ON COLUMN evictrail_v1.placements.not_migratable_since IS 'Since when. NULL where it can be live-migrated.';
COMMENT ON COLUMN evictrail_v1.placements.opted_out IS 'True where its pod asks the descheduler to leave it alone (prefer-no-eviction).';
COMMENT ON COLUMN evictrail_v1.placements.changed_at IS 'When the row came or last changed, by the clock of the database: when the transaction that wrote it began. To follow changes, ask for those since a minute before the latest that is known.';
COMMENT ON COLUMN evictrail_v1.placements.ended_requester IS 'User name of who began what ended the guest: who asked for the eviction or the migration, or set the taint. NULL where nobody did, or where unknown.';
COMMENT ON COLUMN evictrail_v1.placements.ended_requester_class IS 'What sort of program began it, as requester_class of eviction_requests. NULL where nobody asked, or where unknown.';
COMMENT ON COLUMN evictrail_v1.placements.ended_detail IS 'Key and effect of the taint, the reason that the eviction stated, the message of Kubernetes, or the migration that lost the guest. NULL where there is none.';
COMMENT ON COLUMN evictrail_v1.placements.memory_lost IS 'True where the platform ended the guest: what it had in memory is lost. False where its owner ended it. NULL while it runs, after a move, and where nothing says why it ended.';
COMMENT ON COLUMN evictrail_v1.placements.back_at IS 'When the VM ran again, as another VMI, after the platform had ended its guest. NULL where it did not, or the platform did not end it. It does not change changed_at.';
COMMENT ON COLUMN evictrail_v1.placements.terminating_since IS 'Since when its pod is being deleted (Terminating) while the guest is there. NULL where it is not, or the guest is gone.';
COMMENT ON COLUMN evictrail_v1.placements.outdated_since IS 'Since when its virt-launcher is of another version than KubeVirt starts, at the end of the stay. NULL where it is not, or where that was not recorded.';
