-- Subqueries are run only where their columns are asked for.
CREATE OR REPLACE VIEW evictrail_v1.evacuations AS
SELECT
    cluster,
    namespace,
    vmi,
    vmi_uid,
    node,
    evacuation_id,
    strategy,
    marked_at,
    marked_by,
    trigger,
    requester_class,
    confidence,
    evidence,
    ended_at,
    outcome,
    attempts,
    failed_attempts,
    last_failure_class,
    last_failure_reason,
    fulfilled_by,
    seen_late,
    requester,
    cancelled_by,
    next_retry_at,
    in_progress,
    in_progress_lost_at,
    changed_at,
    make_interval(secs => objective_seconds) AS objective,
    objective_met,
    first_failed_at,
    impersonator,
    cancel_impersonator,
    policy,
    (
      SELECT c.alive_at - e.next_retry_at
      FROM evictrail.clusters AS c
      WHERE c.cluster = e.cluster
        AND e.ended_at IS NULL
        AND e.next_retry_at < c.alive_at
    ) AS overdue,
    (
      SELECT k.author
      FROM evictrail.acknowledgements AS k
      WHERE k.cluster = e.cluster
        AND k.subject = 'vmi:' || e.namespace || '/' || e.vmi
        AND k.ended_at IS NULL
        AND k.expires_at > now()
        AND e.ended_at IS NULL
      ORDER BY k.created_at DESC
      LIMIT 1
    ) AS acknowledged_by,
    (
      SELECT k.expires_at
      FROM evictrail.acknowledgements AS k
      WHERE k.cluster = e.cluster
        AND k.subject = 'vmi:' || e.namespace || '/' || e.vmi
        AND k.ended_at IS NULL
        AND k.expires_at > now()
        AND e.ended_at IS NULL
      ORDER BY k.created_at DESC
      LIMIT 1
    ) AS acknowledged_until,
    (
      SELECT k.note
      FROM evictrail.acknowledgements AS k
      WHERE k.cluster = e.cluster
        AND k.subject = 'vmi:' || e.namespace || '/' || e.vmi
        AND k.ended_at IS NULL
        AND k.expires_at > now()
        AND e.ended_at IS NULL
      ORDER BY k.created_at DESC
      LIMIT 1
    ) AS acknowledgement_note,
    outlook,
    outlook_because,
    outlook_change
FROM evictrail.evacuations AS e;

COMMENT ON VIEW evictrail_v1.evacuations IS 'Evacuations: from KubeVirt''s mark on a VMI (status.evacuationNodeName) to its end, with their attempts counted.';
COMMENT ON COLUMN evictrail_v1.evacuations.cluster IS 'Cluster that the row belongs to: --cluster, else the UID of its kube-system namespace.';
COMMENT ON COLUMN evictrail_v1.evacuations.namespace IS 'Namespace of the VMI.';
COMMENT ON COLUMN evictrail_v1.evacuations.vmi IS 'Name of the VirtualMachineInstance.';
COMMENT ON COLUMN evictrail_v1.evacuations.vmi_uid IS 'UID of the VirtualMachineInstance; a restarted VM has a new one. NULL where it is not known.';
COMMENT ON COLUMN evictrail_v1.evacuations.node IS 'Node that the guest is to leave.';
COMMENT ON COLUMN evictrail_v1.evacuations.evacuation_id IS 'Identity of the evacuation; it stays the same when the row is derived again.';
COMMENT ON COLUMN evictrail_v1.evacuations.strategy IS 'The VMI''s spec.evictionStrategy when it was marked. NULL where no mark showed it.';
COMMENT ON COLUMN evictrail_v1.evacuations.marked_at IS 'When the VMI was marked; under a drain taint, or where the mark was not seen, when the first attempt was created.';
COMMENT ON COLUMN evictrail_v1.evacuations.marked_by IS 'What opened it: mark, taint (the drain taint; KubeVirt then sets no mark), migration (its first attempt; the mark was not seen).';
COMMENT ON COLUMN evictrail_v1.evacuations.trigger IS 'Why: descheduler, drain, drain_taint, eviction, unknown.';
COMMENT ON COLUMN evictrail_v1.evacuations.requester_class IS 'What sort of program requested the eviction: a class of eviction_requests.requester_class, or unknown where no source says or, under a drain taint, none was requested.';
COMMENT ON COLUMN evictrail_v1.evacuations.confidence IS 'How the requester or trigger is known: observed (an audit event has the request), asserted (a field says so, or the eviction observer alone), inferred, unknown.';
COMMENT ON COLUMN evictrail_v1.evacuations.evidence IS 'What the attribution rests on.';
COMMENT ON COLUMN evictrail_v1.evacuations.ended_at IS 'When it ended. NULL while it is open.';
COMMENT ON COLUMN evictrail_v1.evacuations.outcome IS 'migrated, cancelled or vmi_gone. NULL while it is open.';
COMMENT ON COLUMN evictrail_v1.evacuations.attempts IS 'Migrations that KubeVirt made for it.';
COMMENT ON COLUMN evictrail_v1.evacuations.failed_attempts IS 'Those of them that failed; aborted ones are not counted.';
COMMENT ON COLUMN evictrail_v1.evacuations.last_failure_class IS 'Class of the last failure; see migrations.failure_class.';
COMMENT ON COLUMN evictrail_v1.evacuations.last_failure_reason IS 'Finer cause of the last failure; see migrations.failure_reason.';
COMMENT ON COLUMN evictrail_v1.evacuations.fulfilled_by IS 'UID of the migration that moved the guest, no matter who started it. NULL where none did or none is known.';
COMMENT ON COLUMN evictrail_v1.evacuations.seen_late IS 'True when it was read from a list, not seen when it happened, or when its requester was reported more than 10 minutes later.';
COMMENT ON COLUMN evictrail_v1.evacuations.requester IS 'User name of who asked; under a drain taint, of who set it. NULL where unknown.';
COMMENT ON COLUMN evictrail_v1.evacuations.cancelled_by IS 'User name of who cancelled it. NULL where it was not cancelled, or where by whom is unknown.';
COMMENT ON COLUMN evictrail_v1.evacuations.next_retry_at IS 'Before then KubeVirt makes no next attempt. NULL unless one waits for that.';
COMMENT ON COLUMN evictrail_v1.evacuations.in_progress IS 'Value of the annotation eviction-in-progress on the source pod: true, or kubevirt (up to v1.6.0). NULL where none was seen.';
COMMENT ON COLUMN evictrail_v1.evacuations.in_progress_lost_at IS 'When that annotation was taken off although the evacuation was open. NULL where it was not, or came back.';
COMMENT ON COLUMN evictrail_v1.evacuations.changed_at IS 'When the row came or last changed, by the clock of the database: when the transaction that wrote it began. To follow changes, ask for those since a minute before the latest that is known.';
COMMENT ON COLUMN evictrail_v1.evacuations.objective IS 'Time from marked_at within which the guest is to be moved, by evictrail run --evacuation-objective. NULL where there is none for its requester_class.';
COMMENT ON COLUMN evictrail_v1.evacuations.objective_met IS 'True: the guest was moved in time. False: it had not been when the time was over. NULL: it still may be, it was cancelled or its VMI ended in time, or there is no objective.';
COMMENT ON COLUMN evictrail_v1.evacuations.first_failed_at IS 'When the first of its attempts failed. NULL where none has.';
COMMENT ON COLUMN evictrail_v1.evacuations.impersonator IS 'User name of who really asked, where that was as the requester. NULL where it was not.';
COMMENT ON COLUMN evictrail_v1.evacuations.cancel_impersonator IS 'User name of who really cancelled it, where that was as cancelled_by. NULL where it was not.';
COMMENT ON COLUMN evictrail_v1.evacuations.policy IS 'Fingerprint of the settings in force when it began; see eviction_requests.policy. NULL where no settings were seen.';
COMMENT ON COLUMN evictrail_v1.evacuations.overdue IS 'How long ago its next attempt was due (next_retry_at), as of when evictrail last saw the cluster. NULL unless one is overdue.';
COMMENT ON COLUMN evictrail_v1.evacuations.acknowledged_by IS 'Who acknowledged the problem of its VM; see acknowledgements. NULL where nobody has, it is over, or the acknowledgement has ended.';
COMMENT ON COLUMN evictrail_v1.evacuations.acknowledged_until IS 'Until when that acknowledgement holds. NULL where there is none.';
COMMENT ON COLUMN evictrail_v1.evacuations.acknowledgement_note IS 'What its author wrote. NULL where there is none.';
COMMENT ON COLUMN evictrail_v1.evacuations.outlook IS 'Whether an open evacuation can succeed as things are: never (not as the VM, its disks and the nodes are configured), not_until (something must change first), transient (what is in the way passes by itself). NULL where it is over, or nothing is in its way.';
COMMENT ON COLUMN evictrail_v1.evacuations.outlook_because IS 'The evidence for that, such as the words of the scheduler. NULL where there is no outlook.';
COMMENT ON COLUMN evictrail_v1.evacuations.outlook_change IS 'The smallest change that would help. NULL where there is no outlook, or none is needed.';
