CREATE OR REPLACE VIEW evictrail_v1.downtimes AS
SELECT
    p.cluster,
    p.namespace,
    p.vmi,
    p.vmi_uid,
    p.node,
    p.placement_id AS downtime_id,
    p.to_at AS down_at,
    back.from_at AS up_at,
    back.from_at - p.to_at AS lasted,
    back.node AS back_on,
    p.ended_by AS cause,
    coalesce(p.ended_by IN ('stopped', 'deleted'), false) AS planned,
    p.ended_requester AS requester,
    p.ended_requester_class AS requester_class,
    p.ended_detail AS detail,
    p.strategy,
    p.seen_late,
    greatest(p.changed_at, back.changed_at) AS changed_at
FROM evictrail.placements AS p
LEFT JOIN LATERAL (
    SELECT b.from_at, b.node, b.changed_at
    FROM evictrail.placements AS b
    WHERE b.cluster = p.cluster
      AND b.namespace = p.namespace
      AND b.vmi = p.vmi
      AND b.vmi_uid <> p.vmi_uid
      AND b.from_at >= date_trunc('second', p.to_at)
    ORDER BY b.from_at, b.placement_id
    LIMIT 1
) AS back ON true
WHERE p.left_by = 'end';

COMMENT ON VIEW evictrail_v1.downtimes IS 'Downtimes: when the guest of a VM did not run, why, and who began it. The pause of a live migration is none.';
COMMENT ON COLUMN evictrail_v1.downtimes.cluster IS 'Cluster that the row belongs to: --cluster, else the UID of its kube-system namespace.';
COMMENT ON COLUMN evictrail_v1.downtimes.namespace IS 'Namespace of the VM.';
COMMENT ON COLUMN evictrail_v1.downtimes.vmi IS 'Name of the VirtualMachineInstance, which is that of its VM.';
COMMENT ON COLUMN evictrail_v1.downtimes.vmi_uid IS 'UID of the VirtualMachineInstance that ended.';
COMMENT ON COLUMN evictrail_v1.downtimes.node IS 'Node on which the guest ended.';
COMMENT ON COLUMN evictrail_v1.downtimes.downtime_id IS 'Identity of the downtime: that of the placement that ended.';
COMMENT ON COLUMN evictrail_v1.downtimes.down_at IS 'When the guest ended.';
COMMENT ON COLUMN evictrail_v1.downtimes.up_at IS 'When the next guest of the VM ran. NULL while none does: it is still down, or was removed.';
COMMENT ON COLUMN evictrail_v1.downtimes.lasted IS 'From down_at to up_at. NULL while it is down.';
COMMENT ON COLUMN evictrail_v1.downtimes.back_on IS 'Node on which it ran again. NULL while it is down.';
COMMENT ON COLUMN evictrail_v1.downtimes.cause IS 'Why the guest ended; see placements.ended_by.';
COMMENT ON COLUMN evictrail_v1.downtimes.planned IS 'Whether its owner, or the guest itself, ended it: stopped or deleted. Else the platform did, or nothing seen says who.';
COMMENT ON COLUMN evictrail_v1.downtimes.requester IS 'User name of who began what the platform did. NULL where nobody did, or where unknown.';
COMMENT ON COLUMN evictrail_v1.downtimes.requester_class IS 'What sort of program that was; see eviction_requests.requester_class. NULL where nobody asked for it, or where unknown.';
COMMENT ON COLUMN evictrail_v1.downtimes.detail IS 'The taint, the reason that was stated, Kubernetes'' message, or the migration that lost the guest. NULL where there is none.';
COMMENT ON COLUMN evictrail_v1.downtimes.strategy IS 'spec.evictionStrategy of the VMI that ended. NULL where unset.';
COMMENT ON COLUMN evictrail_v1.downtimes.seen_late IS 'Whether its beginning or its end was not seen when it happened: times may be those of the list that showed it.';
COMMENT ON COLUMN evictrail_v1.downtimes.changed_at IS 'When the row came or last changed, by the clock of the database; see evacuations.changed_at.';
