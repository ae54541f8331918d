-- +goose Up
CREATE SCHEMA IF NOT EXISTS evictrail_v1;
COMMENT ON SCHEMA evictrail_v1 IS 'The views of evictrail, version 1: columns are only added. All times are timestamptz, all durations interval.';

CREATE VIEW evictrail_v1.evacuations AS
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
    seen_late
FROM evictrail.evacuations;
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
COMMENT ON COLUMN evictrail_v1.evacuations.requester_class IS 'Who asked: descheduler, or unknown where no source tells.';
COMMENT ON COLUMN evictrail_v1.evacuations.confidence IS 'How the requester or trigger is known: observed, asserted (a field says so), inferred, unknown.';
COMMENT ON COLUMN evictrail_v1.evacuations.evidence IS 'What the attribution rests on.';
COMMENT ON COLUMN evictrail_v1.evacuations.ended_at IS 'When it ended. NULL while it is open.';
COMMENT ON COLUMN evictrail_v1.evacuations.outcome IS 'migrated, cancelled or vmi_gone. NULL while it is open.';
COMMENT ON COLUMN evictrail_v1.evacuations.attempts IS 'Migrations that KubeVirt made for it.';
COMMENT ON COLUMN evictrail_v1.evacuations.failed_attempts IS 'Those of them that failed; aborted ones are not counted.';
COMMENT ON COLUMN evictrail_v1.evacuations.last_failure_class IS 'Class of the last failure; see migrations.failure_class.';
COMMENT ON COLUMN evictrail_v1.evacuations.last_failure_reason IS 'Finer cause of the last failure; see migrations.failure_reason.';
COMMENT ON COLUMN evictrail_v1.evacuations.fulfilled_by IS 'UID of the migration that moved the guest, whoever started it. NULL where none did or none is known.';
COMMENT ON COLUMN evictrail_v1.evacuations.seen_late IS 'True when it was read from a list, not seen when it happened.';

CREATE VIEW evictrail_v1.migrations AS
SELECT
    cluster,
    namespace,
    vmi,
    vmi_uid,
    source_node AS node,
    migration,
    migration_uid,
    trigger,
    trigger_confidence,
    trigger_evidence,
    evacuation_id,
    attempt,
    priority,
    source_node,
    target_node,
    created_at,
    pending_at,
    scheduling_at,
    scheduled_at,
    preparing_target_at,
    target_ready_at,
    running_at,
    finished_at,
    phase,
    greatest(scheduling_at - created_at, interval '0') AS queue_wait,
    greatest(finished_at - created_at, interval '0') AS duration,
    outcome,
    failure_class,
    failure_reason,
    failure_text,
    failure_evidence,
    mode,
    policy,
    seen_late
FROM evictrail.migrations;
COMMENT ON VIEW evictrail_v1.migrations IS 'Migrations: one row per VirtualMachineInstanceMigration that was seen.';
COMMENT ON COLUMN evictrail_v1.migrations.cluster IS 'Cluster that the row belongs to: --cluster, else the UID of its kube-system namespace.';
COMMENT ON COLUMN evictrail_v1.migrations.namespace IS 'Namespace of the VMI.';
COMMENT ON COLUMN evictrail_v1.migrations.vmi IS 'Name of the VirtualMachineInstance.';
COMMENT ON COLUMN evictrail_v1.migrations.vmi_uid IS 'UID of the VirtualMachineInstance; a restarted VM has a new one. NULL where it is not known.';
COMMENT ON COLUMN evictrail_v1.migrations.node IS 'Node that the guest is to leave; the same as source_node.';
COMMENT ON COLUMN evictrail_v1.migrations.migration IS 'Name of the VirtualMachineInstanceMigration.';
COMMENT ON COLUMN evictrail_v1.migrations.migration_uid IS 'UID of the VirtualMachineInstanceMigration.';
COMMENT ON COLUMN evictrail_v1.migrations.trigger IS 'Why it exists: descheduler, drain, drain_taint, eviction, workload_update, hotplug, storage, named_node, user, decentralized, unknown.';
COMMENT ON COLUMN evictrail_v1.migrations.trigger_confidence IS 'How the trigger is known: observed, asserted (a field says so), inferred, unknown.';
COMMENT ON COLUMN evictrail_v1.migrations.trigger_evidence IS 'What the trigger rests on.';
COMMENT ON COLUMN evictrail_v1.migrations.evacuation_id IS 'The evacuation that it is an attempt of. NULL outside of any.';
COMMENT ON COLUMN evictrail_v1.migrations.attempt IS 'Its number within the evacuation, from 1. NULL outside of any.';
COMMENT ON COLUMN evictrail_v1.migrations.priority IS 'spec.priority as KubeVirt''s controller set it. NULL where unset.';
COMMENT ON COLUMN evictrail_v1.migrations.source_node IS 'Node that the guest leaves. NULL where unknown.';
COMMENT ON COLUMN evictrail_v1.migrations.target_node IS 'Node that the target pod got. NULL where it got none or is not known.';
COMMENT ON COLUMN evictrail_v1.migrations.created_at IS 'creationTimestamp; the API server''s clock, 1 s resolution.';
COMMENT ON COLUMN evictrail_v1.migrations.pending_at IS 'First time in phase Pending; virt-controller''s clock, 1 s resolution, as for all phases.';
COMMENT ON COLUMN evictrail_v1.migrations.scheduling_at IS 'First time in phase Scheduling: the target pod exists.';
COMMENT ON COLUMN evictrail_v1.migrations.scheduled_at IS 'First time in phase Scheduled: the target pod is ready.';
COMMENT ON COLUMN evictrail_v1.migrations.preparing_target_at IS 'First time in phase PreparingTarget.';
COMMENT ON COLUMN evictrail_v1.migrations.target_ready_at IS 'First time in phase TargetReady.';
COMMENT ON COLUMN evictrail_v1.migrations.running_at IS 'First time in phase Running: data moves.';
COMMENT ON COLUMN evictrail_v1.migrations.finished_at IS 'First time in phase Succeeded or Failed; where neither was seen, when the object was gone. NULL while it runs.';
COMMENT ON COLUMN evictrail_v1.migrations.phase IS 'The last phase seen, as KubeVirt spells it. NULL before the first.';
COMMENT ON COLUMN evictrail_v1.migrations.queue_wait IS 'Time from its creation until its target pod existed: slot, quota, backoff. NULL while it waits.';
COMMENT ON COLUMN evictrail_v1.migrations.duration IS 'Time from its creation to its end. NULL while it runs.';
COMMENT ON COLUMN evictrail_v1.migrations.outcome IS 'succeeded, failed or aborted. NULL while it runs, and where its end was not seen (failure_reason end_not_seen).';
COMMENT ON COLUMN evictrail_v1.migrations.failure_class IS 'scheduling, control_plane, data_plane, post_copy, aborted, guest_lost or unknown. NULL unless it failed or was aborted.';
COMMENT ON COLUMN evictrail_v1.migrations.failure_reason IS 'Finer cause within the class.';
COMMENT ON COLUMN evictrail_v1.migrations.failure_text IS 'migrationState.failureReason as it came. NULL where KubeVirt gave none.';
COMMENT ON COLUMN evictrail_v1.migrations.failure_evidence IS 'What the class rests on.';
COMMENT ON COLUMN evictrail_v1.migrations.mode IS 'PreCopy, PostCopy or Paused. NULL where no data moved.';
COMMENT ON COLUMN evictrail_v1.migrations.policy IS 'Name of the MigrationPolicy in force. NULL where none is.';
COMMENT ON COLUMN evictrail_v1.migrations.seen_late IS 'True when its creation or its end was read from a list, not seen when it happened.';

CREATE VIEW evictrail_v1.placements AS
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
    seen_late
FROM evictrail.placements;
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

CREATE VIEW evictrail_v1.gaps AS
SELECT
    cluster,
    gap_id,
    source,
    opened_at,
    closed_at,
    cause,
    detail
FROM evictrail.gaps;
COMMENT ON VIEW evictrail_v1.gaps IS 'Gaps: intervals in which a source could not be seen. What happened in them was rebuilt where an object still told it, and is flagged seen_late.';
COMMENT ON COLUMN evictrail_v1.gaps.cluster IS 'Cluster that the row belongs to: --cluster, else the UID of its kube-system namespace.';
COMMENT ON COLUMN evictrail_v1.gaps.gap_id IS 'Identity of the gap.';
COMMENT ON COLUMN evictrail_v1.gaps.source IS 'The watch''s resource, or evictrail when it was not running.';
COMMENT ON COLUMN evictrail_v1.gaps.opened_at IS 'When the source was last seen whole.';
COMMENT ON COLUMN evictrail_v1.gaps.closed_at IS 'When it was whole again. NULL while it is not.';
COMMENT ON COLUMN evictrail_v1.gaps.cause IS 'expired (410 Gone), relisted (the watch broke), not_running.';
COMMENT ON COLUMN evictrail_v1.gaps.detail IS 'What is known of the break.';

CREATE VIEW evictrail_v1.timeline AS
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
    seen_late
FROM evictrail.timeline;
COMMENT ON VIEW evictrail_v1.timeline IS 'Timeline: one line that a person can read for each thing that matters, per VMI and node.';
COMMENT ON COLUMN evictrail_v1.timeline.cluster IS 'Cluster that the row belongs to: --cluster, else the UID of its kube-system namespace.';
COMMENT ON COLUMN evictrail_v1.timeline.namespace IS 'Namespace of the VMI.';
COMMENT ON COLUMN evictrail_v1.timeline.vmi IS 'Name of the VirtualMachineInstance.';
COMMENT ON COLUMN evictrail_v1.timeline.vmi_uid IS 'UID of the VirtualMachineInstance; a restarted VM has a new one. NULL where it is not known.';
COMMENT ON COLUMN evictrail_v1.timeline.node IS 'Node that the line speaks of. NULL where it speaks of none.';
COMMENT ON COLUMN evictrail_v1.timeline.at IS 'When it happened, by the best clock there is.';
COMMENT ON COLUMN evictrail_v1.timeline.kind IS 'Kind of the fact that the line tells of.';
COMMENT ON COLUMN evictrail_v1.timeline.reason IS 'Reason of that fact.';
COMMENT ON COLUMN evictrail_v1.timeline.sentence IS 'The line.';
COMMENT ON COLUMN evictrail_v1.timeline.event_id IS 'The fact, in view events.';
COMMENT ON COLUMN evictrail_v1.timeline.seen_late IS 'True when it was read from a list, not seen when it happened.';

CREATE VIEW evictrail_v1.migration_phases AS
SELECT
    e.cluster,
    e.namespace,
    e.vmi,
    m.vmi_uid,
    m.source_node AS node,
    e.migration,
    e.migration_uid,
    e.value AS phase,
    e.occurred_at AS at,
    e.observed_at,
    e.seen_late
FROM evictrail.events e
LEFT JOIN evictrail.migrations m ON m.cluster = e.cluster AND m.subject = e.subject AND m.migration_uid = e.migration_uid
WHERE e.kind = 'migration_phase';
COMMENT ON VIEW evictrail_v1.migration_phases IS 'Migration phases: each phase that a migration reached, once.';
COMMENT ON COLUMN evictrail_v1.migration_phases.cluster IS 'Cluster that the row belongs to: --cluster, else the UID of its kube-system namespace.';
COMMENT ON COLUMN evictrail_v1.migration_phases.namespace IS 'Namespace of the VMI.';
COMMENT ON COLUMN evictrail_v1.migration_phases.vmi IS 'Name of the VirtualMachineInstance.';
COMMENT ON COLUMN evictrail_v1.migration_phases.vmi_uid IS 'UID of the VirtualMachineInstance; a restarted VM has a new one. NULL where it is not known.';
COMMENT ON COLUMN evictrail_v1.migration_phases.node IS 'Node that the guest is to leave. NULL where unknown.';
COMMENT ON COLUMN evictrail_v1.migration_phases.migration IS 'Name of the VirtualMachineInstanceMigration.';
COMMENT ON COLUMN evictrail_v1.migration_phases.migration_uid IS 'UID of the VirtualMachineInstanceMigration.';
COMMENT ON COLUMN evictrail_v1.migration_phases.phase IS 'The phase, as KubeVirt spells it.';
COMMENT ON COLUMN evictrail_v1.migration_phases.at IS 'When it was reached; virt-controller''s clock, 1 s resolution.';
COMMENT ON COLUMN evictrail_v1.migration_phases.observed_at IS 'When evictrail saw it.';
COMMENT ON COLUMN evictrail_v1.migration_phases.seen_late IS 'True when it was read from a list, not seen when it happened.';

CREATE VIEW evictrail_v1.events AS
SELECT
    cluster,
    namespace,
    vmi,
    vmi_uid,
    node,
    id AS event_id,
    occurred_at AS at,
    clock,
    observed_at,
    stored_at,
    kind,
    reason,
    migration,
    migration_uid,
    object_kind,
    object_uid,
    object_version,
    what,
    value,
    evidence,
    detail,
    seen_late
FROM evictrail.events;
COMMENT ON VIEW evictrail_v1.events IS 'Events: every fact, as it was recorded, in one stream.';
COMMENT ON COLUMN evictrail_v1.events.cluster IS 'Cluster that the row belongs to: --cluster, else the UID of its kube-system namespace.';
COMMENT ON COLUMN evictrail_v1.events.namespace IS 'Namespace of the VMI.';
COMMENT ON COLUMN evictrail_v1.events.vmi IS 'Name of the VirtualMachineInstance.';
COMMENT ON COLUMN evictrail_v1.events.vmi_uid IS 'UID of the VirtualMachineInstance; a restarted VM has a new one. NULL where it is not known.';
COMMENT ON COLUMN evictrail_v1.events.node IS 'Node that the fact names. NULL where it names none.';
COMMENT ON COLUMN evictrail_v1.events.event_id IS 'Identity of the fact, from its natural key.';
COMMENT ON COLUMN evictrail_v1.events.at IS 'When it happened: the time of the cluster, read from the clock named in column clock.';
COMMENT ON COLUMN evictrail_v1.events.clock IS 'Whose clock: apiserver, virt_controller, source_node, emitter, observer (ours).';
COMMENT ON COLUMN evictrail_v1.events.observed_at IS 'When evictrail saw it.';
COMMENT ON COLUMN evictrail_v1.events.stored_at IS 'When it was stored.';
COMMENT ON COLUMN evictrail_v1.events.kind IS 'What sort of fact it is.';
COMMENT ON COLUMN evictrail_v1.events.reason IS 'Why: a closed set per kind.';
COMMENT ON COLUMN evictrail_v1.events.migration IS 'Name of the migration that the fact names. NULL where it names none.';
COMMENT ON COLUMN evictrail_v1.events.migration_uid IS 'UID of the migration that the fact names. NULL where it names none.';
COMMENT ON COLUMN evictrail_v1.events.object_kind IS 'Kind of the object on which it showed.';
COMMENT ON COLUMN evictrail_v1.events.object_uid IS 'UID of that object.';
COMMENT ON COLUMN evictrail_v1.events.object_version IS 'resourceVersion at which it showed.';
COMMENT ON COLUMN evictrail_v1.events.what IS 'Which aspect of the object changed.';
COMMENT ON COLUMN evictrail_v1.events.value IS 'What the aspect became.';
COMMENT ON COLUMN evictrail_v1.events.evidence IS 'The field that says so.';
COMMENT ON COLUMN evictrail_v1.events.detail IS 'What else is known, by kind.';
COMMENT ON COLUMN evictrail_v1.events.seen_late IS 'True when it was read from a list, not seen when it happened.';

-- +goose Down
DROP SCHEMA evictrail_v1 CASCADE;
