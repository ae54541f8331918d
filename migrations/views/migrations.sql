-- Subqueries are run only where their columns are asked for.
CREATE OR REPLACE VIEW evictrail_v1.migrations AS
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
    seen_late,
    requester,
    aborted_by,
    wait_reason,
    wait_detail,
    changed_at,
    need,
    need_because,
    source_last_over_at,
    benefit,
    benefit_because,
    benefit_final,
    coalesce(requester_class, 'unknown') AS requester_class,
    impersonator,
    source_ip,
    abort_impersonator,
    guest_memory,
    data_processed,
    data_remaining,
    dirty_memory_rate,
    memory_transfer_rate,
    make_interval(secs => guest_pause) AS guest_pause,
    CASE
        WHEN running_at IS NOT NULL AND finished_at IS NOT NULL AND data_processed IS NULL
            THEN coalesce(transfer_lack, 'not_asked')
    END AS transfer_lack,
    convergence,
    post_copy_at,
    allow_auto_converge,
    allow_post_copy,
    network,
    greatest(finished_at - running_at, interval '0') AS copy_time,
    greatest(finished_at - scheduling_at, interval '0') AS reserved_time,
    source_place ->> 'zone' AS source_zone,
    source_place ->> 'pool' AS source_pool,
    target_place ->> 'zone' AS target_zone,
    target_place ->> 'pool' AS target_pool
FROM evictrail.migrations AS m
CROSS JOIN LATERAL (
    SELECT
        (
          SELECT l.detail
          FROM evictrail.events AS l
          WHERE l.cluster = m.cluster
            AND l.subject = 'node:' || m.source_node
            AND l.kind = 'node_labels'
            AND l.occurred_at <= coalesce(m.finished_at, 'infinity')
          ORDER BY l.occurred_at DESC, l.id DESC
          LIMIT 1
        ) AS source_place,
        (
          SELECT l.detail
          FROM evictrail.events AS l
          WHERE l.cluster = m.cluster
            AND l.subject = 'node:' || m.target_node
            AND l.kind = 'node_labels'
            AND l.occurred_at <= coalesce(m.finished_at, 'infinity')
          ORDER BY l.occurred_at DESC, l.id DESC
          LIMIT 1
        ) AS target_place
) AS place;

COMMENT ON VIEW evictrail_v1.migrations IS 'Migrations: one row per VirtualMachineInstanceMigration that was seen.';
COMMENT ON COLUMN evictrail_v1.migrations.cluster IS 'Cluster that the row belongs to: --cluster, else the UID of its kube-system namespace.';
COMMENT ON COLUMN evictrail_v1.migrations.namespace IS 'Namespace of the VMI.';
COMMENT ON COLUMN evictrail_v1.migrations.vmi IS 'Name of the VirtualMachineInstance.';
COMMENT ON COLUMN evictrail_v1.migrations.vmi_uid IS 'UID of the VirtualMachineInstance; a restarted VM has a new one. NULL where it is not known.';
COMMENT ON COLUMN evictrail_v1.migrations.node IS 'Node that the guest is to leave; the same as source_node.';
COMMENT ON COLUMN evictrail_v1.migrations.migration IS 'Name of the VirtualMachineInstanceMigration.';
COMMENT ON COLUMN evictrail_v1.migrations.migration_uid IS 'UID of the VirtualMachineInstanceMigration.';
COMMENT ON COLUMN evictrail_v1.migrations.trigger IS 'Why it was made: descheduler, drain, drain_taint, eviction, workload_update, hotplug, storage, named_node, user, controller (a service account that is none of KubeVirt''s), decentralized, unknown.';
COMMENT ON COLUMN evictrail_v1.migrations.trigger_confidence IS 'How the trigger is known: observed (an audit event has the request), asserted (a field says so, or the eviction observer alone), inferred, unknown.';
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
COMMENT ON COLUMN evictrail_v1.migrations.failure_text IS 'migrationState.failureReason as it came. NULL where KubeVirt set none.';
COMMENT ON COLUMN evictrail_v1.migrations.failure_evidence IS 'What the class rests on.';
COMMENT ON COLUMN evictrail_v1.migrations.mode IS 'PreCopy, PostCopy or Paused. NULL where no data moved.';
COMMENT ON COLUMN evictrail_v1.migrations.policy IS 'Name of the MigrationPolicy in force. NULL where none is.';
COMMENT ON COLUMN evictrail_v1.migrations.seen_late IS 'True when its creation or its end was read from a list, not seen when it happened, or when the requester of its evacuation was reported more than 10 minutes later.';
COMMENT ON COLUMN evictrail_v1.migrations.requester IS 'User name of who asked for it: for an evacuation who evicted, else who made it or called migrate. NULL where unknown.';
COMMENT ON COLUMN evictrail_v1.migrations.aborted_by IS 'User name of who deleted it before it was over. NULL where it was not aborted, or where by whom is unknown.';
COMMENT ON COLUMN evictrail_v1.migrations.wait_reason IS 'Why it has no target pod yet, or does not get on with it, or for what it waited longest: deleting, quota, backup, utility_volumes, backoff, leftover_pods, cluster_limit, node_limit, queued, target_node_not_ready (its target pod is on a node that is not ready; it holds its slot). NULL where it did not wait for 3 s.';
COMMENT ON COLUMN evictrail_v1.migrations.wait_detail IS 'The wait in words: until when, or how full the limits were. NULL where it did not wait.';
COMMENT ON COLUMN evictrail_v1.migrations.changed_at IS 'When the row came or last changed, by the clock of the database: when the transaction that wrote it began. To follow changes, ask for those since a minute before the latest that is known.';
COMMENT ON COLUMN evictrail_v1.migrations.need IS 'Whether its source was over its threshold when it began: needed, not_needed, unknown. NULL where it was not made to relieve a node: a drain, an update, a user.';
COMMENT ON COLUMN evictrail_v1.migrations.need_because IS 'The numbers that need rests on, or why it is not known.';
COMMENT ON COLUMN evictrail_v1.migrations.source_last_over_at IS 'Of a migration that was not needed: when its source was last seen over its threshold before, within half an hour. NULL where it was not.';
COMMENT ON COLUMN evictrail_v1.migrations.benefit IS 'What came of it up to 15 minutes after: helped, no_effect, harmed (the target went over its threshold), unknown. NULL unless it moved the guest and was made to relieve a node.';
COMMENT ON COLUMN evictrail_v1.migrations.benefit_because IS 'The numbers that benefit rests on, or why it is not known.';
COMMENT ON COLUMN evictrail_v1.migrations.benefit_final IS 'True once nothing more is looked at. NULL while benefit may change.';
COMMENT ON COLUMN evictrail_v1.migrations.requester_class IS 'What sort of program asked for it: a class of eviction_requests.requester_class; unknown where it was not seen.';
COMMENT ON COLUMN evictrail_v1.migrations.impersonator IS 'User name of who really asked, where that was as the requester. NULL where it was not.';
COMMENT ON COLUMN evictrail_v1.migrations.source_ip IS 'The address from which was asked; see eviction_requests.source_ip.';
COMMENT ON COLUMN evictrail_v1.migrations.abort_impersonator IS 'User name of who really deleted it, where that was as aborted_by. NULL where it was not.';
COMMENT ON COLUMN evictrail_v1.migrations.guest_memory IS 'Memory of the guest in bytes, as KubeVirt had it during the transfer. NULL where it was not seen.';
COMMENT ON COLUMN evictrail_v1.migrations.data_processed IS 'Bytes that were copied, what the guest wrote again included: the most that Prometheus had of the migration. NULL where it is not known; transfer_lack says why.';
COMMENT ON COLUMN evictrail_v1.migrations.data_remaining IS 'Bytes that were left to copy in the last sample. NULL where it is not known.';
COMMENT ON COLUMN evictrail_v1.migrations.dirty_memory_rate IS 'Bytes a second that the guest wrote, on average over the samples. NULL where it is not known.';
COMMENT ON COLUMN evictrail_v1.migrations.memory_transfer_rate IS 'Bytes a second that were copied, on average over the samples. NULL where it is not known.';
COMMENT ON COLUMN evictrail_v1.migrations.guest_pause IS 'How long the guest stood still at the end. No release of KubeVirt reports it: NULL unless --prometheus-query guest_pause= asks for it.';
COMMENT ON COLUMN evictrail_v1.migrations.transfer_lack IS 'Why data_processed is not known: not_asked (no Prometheus is asked, or not yet), no_series, no_sample (it lasted less than a scrape), not_a_number, refused, unanswered. NULL where it is known, or no data moved.';
COMMENT ON COLUMN evictrail_v1.migrations.convergence IS 'How the transfer ended: converged, post_copy, paused (KubeVirt stopped the guest), not_converged (KubeVirt gave up). NULL where it did not come so far.';
COMMENT ON COLUMN evictrail_v1.migrations.post_copy_at IS 'When it was first seen in post-copy. NULL where it was not, or only its end was seen.';
COMMENT ON COLUMN evictrail_v1.migrations.allow_auto_converge IS 'True where KubeVirt might slow the guest down, as the configuration in force said. NULL where it might not, or that was not seen.';
COMMENT ON COLUMN evictrail_v1.migrations.allow_post_copy IS 'True where KubeVirt might move the guest before its memory, as the configuration in force said. NULL where it might not, or that was not seen.';
COMMENT ON COLUMN evictrail_v1.migrations.network IS 'The network for migrations in the KubeVirt configuration when it was created. NULL: the pod network, or not known.';
COMMENT ON COLUMN evictrail_v1.migrations.copy_time IS 'How long data moved: from phase Running to the end. NULL where none did, and while it runs.';
COMMENT ON COLUMN evictrail_v1.migrations.reserved_time IS 'How long two pods held the resources of one guest: from the target pod to the end. NULL where there was none, and while it runs.';
COMMENT ON COLUMN evictrail_v1.migrations.source_zone IS 'Zone of source_node, by its label topology.kubernetes.io/zone before the migration ended. NULL where it had none, or none was seen.';
COMMENT ON COLUMN evictrail_v1.migrations.source_pool IS 'Pool of source_node before the migration ended; see node_labels.pool.';
COMMENT ON COLUMN evictrail_v1.migrations.target_zone IS 'Zone of target_node; see source_zone.';
COMMENT ON COLUMN evictrail_v1.migrations.target_pool IS 'Pool of target_node before the migration ended; see node_labels.pool.';
