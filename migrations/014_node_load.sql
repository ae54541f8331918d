-- +goose Up
-- How loaded the nodes of migrations were is told by facts of the kind node_load, and the verdicts that rest on it by migrations.
CREATE INDEX events_by_load ON evictrail.events (cluster, occurred_at) WHERE kind = 'node_load';
COMMENT ON INDEX evictrail.events_by_load IS 'The load of nodes in a time: view node_context.';

ALTER TABLE evictrail.migrations ADD COLUMN need text CHECK (need IN ('needed', 'not_needed', 'unknown'));
ALTER TABLE evictrail.migrations ADD COLUMN need_because text;
ALTER TABLE evictrail.migrations ADD COLUMN source_last_over_at timestamptz;
ALTER TABLE evictrail.migrations ADD COLUMN benefit text CHECK (benefit IN ('helped', 'no_effect', 'harmed', 'unknown'));
ALTER TABLE evictrail.migrations ADD COLUMN benefit_because text;
ALTER TABLE evictrail.migrations ADD COLUMN benefit_final boolean;

CREATE OR REPLACE VIEW evictrail_v1.migrations AS
SELECT
    cluster, namespace, vmi, vmi_uid, source_node AS node, migration, migration_uid, trigger, trigger_confidence, trigger_evidence, evacuation_id,
    attempt, priority, source_node, target_node, created_at, pending_at, scheduling_at, scheduled_at, preparing_target_at, target_ready_at,
    running_at, finished_at, phase, greatest(scheduling_at - created_at, interval '0') AS queue_wait,
    greatest(finished_at - created_at, interval '0') AS duration, outcome, failure_class, failure_reason, failure_text, failure_evidence, mode,
    policy, seen_late, requester, aborted_by, wait_reason, wait_detail,
    changed_at, need, need_because, source_last_over_at, benefit, benefit_because, benefit_final
FROM evictrail.migrations;
COMMENT ON COLUMN evictrail_v1.migrations.need IS 'Whether its source was over its threshold when it began: needed, not_needed, unknown. NULL where it was not made to relieve a node: a drain, an update, a user.';
COMMENT ON COLUMN evictrail_v1.migrations.need_because IS 'The numbers that need rests on, or why it is not known.';
COMMENT ON COLUMN evictrail_v1.migrations.source_last_over_at IS 'Of a migration that was not needed: when its source was last seen over its threshold before, within half an hour. NULL where it was not.';
COMMENT ON COLUMN evictrail_v1.migrations.benefit IS 'What came of it up to 15 minutes after: helped, no_effect, harmed (the target went over its threshold), unknown. NULL unless it moved the guest and was made to relieve a node.';
COMMENT ON COLUMN evictrail_v1.migrations.benefit_because IS 'The numbers that benefit rests on, or why it is not known.';
COMMENT ON COLUMN evictrail_v1.migrations.benefit_final IS 'True once nothing more is looked at. NULL while benefit may change.';

CREATE VIEW evictrail_v1.node_context AS
SELECT
    f.cluster,
    f.namespace,
    f.vmi,
    f.vmi_uid,
    r.node,
    f.id::text || '/' || lpad(n.ordinal::text, 4, '0') AS context_id,
    f.occurred_at AS at,
    f.detail ->> 'moment' AS moment,
    make_interval(secs => (f.detail ->> 'after_seconds')::double precision) AS after_end,
    r.metric,
    r.value,
    r.threshold,
    f.detail ->> 'origin' AS origin,
    r.sample,
    r.at AS sampled_at,
    r.lack AS reason,
    CASE r.node WHEN m.source_node THEN 'source' WHEN m.target_node THEN 'target' END AS side,
    f.migration,
    f.migration_uid,
    m.evacuation_id,
    m.attempt,
    f.id AS event_id,
    f.stored_at AS changed_at
FROM evictrail.events AS f
CROSS JOIN LATERAL jsonb_array_elements(f.detail -> 'readings') WITH ORDINALITY AS n(reading, ordinal)
CROSS JOIN LATERAL jsonb_to_record(n.reading) AS r(
    node text, metric text, sample text, at timestamptz, value double precision, threshold double precision, lack text
)
LEFT JOIN evictrail.migrations AS m ON m.cluster = f.cluster AND m.subject = f.subject AND m.migration_uid = f.migration_uid
WHERE f.kind = 'node_load';
COMMENT ON VIEW evictrail_v1.node_context IS 'Node context: how loaded source and target were at the moments of each migration that matter, one row per metric and sample.';
COMMENT ON COLUMN evictrail_v1.node_context.cluster IS 'Cluster that the row belongs to: --cluster, else the UID of its kube-system namespace.';
COMMENT ON COLUMN evictrail_v1.node_context.namespace IS 'Namespace of the VMI.';
COMMENT ON COLUMN evictrail_v1.node_context.vmi IS 'Name of the VirtualMachineInstance.';
COMMENT ON COLUMN evictrail_v1.node_context.vmi_uid IS 'UID of the VirtualMachineInstance. NULL where it is not known.';
COMMENT ON COLUMN evictrail_v1.node_context.node IS 'Node whose load it is.';
COMMENT ON COLUMN evictrail_v1.node_context.context_id IS 'Identity of the row.';
COMMENT ON COLUMN evictrail_v1.node_context.at IS 'The moment that the load belongs to; sampled_at says when it was measured.';
COMMENT ON COLUMN evictrail_v1.node_context.moment IS 'request (the eviction was asked for), attempt (the attempt got its target pod), end (the migration was over), after (some minutes later).';
COMMENT ON COLUMN evictrail_v1.node_context.after_end IS 'Of moment after: how long after the end, 5 or 15 minutes; at is earlier where a recording ended before. NULL else.';
COMMENT ON COLUMN evictrail_v1.node_context.metric IS 'What was measured: cpu, memory, cpu_pressure, memory_pressure, or descheduler and a resource: what the descheduler itself goes by.';
COMMENT ON COLUMN evictrail_v1.node_context.value IS 'A ratio: 1 is all of it. NULL where it is not known; reason says why.';
COMMENT ON COLUMN evictrail_v1.node_context.threshold IS 'Above which the descheduler relieves the node. NULL where the metric has none.';
COMMENT ON COLUMN evictrail_v1.node_context.origin IS 'Who told: prometheus, or descheduler (its own metrics, read by evictrail).';
COMMENT ON COLUMN evictrail_v1.node_context.sample IS 'Which sample: before (the last one at the moment), next (the first one after it), peak (the highest on the target since the move), last_over (the last one before in which the source was over its threshold).';
COMMENT ON COLUMN evictrail_v1.node_context.sampled_at IS 'When it was measured. The descheduler shows what it saw in its last cycle, which may be as much earlier as a cycle lasts. NULL where there is no sample.';
COMMENT ON COLUMN evictrail_v1.node_context.reason IS 'Why value is NULL: no_series, no_sample, not_a_number, refused, unanswered. NULL where it is not.';
COMMENT ON COLUMN evictrail_v1.node_context.side IS 'source or target.';
COMMENT ON COLUMN evictrail_v1.node_context.migration IS 'Name of the VirtualMachineInstanceMigration.';
COMMENT ON COLUMN evictrail_v1.node_context.migration_uid IS 'UID of the VirtualMachineInstanceMigration.';
COMMENT ON COLUMN evictrail_v1.node_context.evacuation_id IS 'The evacuation that the migration is an attempt of. NULL outside of any.';
COMMENT ON COLUMN evictrail_v1.node_context.attempt IS 'Its number within the evacuation. NULL outside of any.';
COMMENT ON COLUMN evictrail_v1.node_context.event_id IS 'The fact that tells it, in view events.';
COMMENT ON COLUMN evictrail_v1.node_context.changed_at IS 'When it was stored, by the clock of the database; see evacuations.changed_at.';

-- +goose Down
DROP VIEW evictrail_v1.node_context;
DROP VIEW evictrail_v1.migrations;
CREATE VIEW evictrail_v1.migrations AS
SELECT
    cluster, namespace, vmi, vmi_uid, source_node AS node, migration, migration_uid, trigger, trigger_confidence, trigger_evidence, evacuation_id,
    attempt, priority, source_node, target_node, created_at, pending_at, scheduling_at, scheduled_at, preparing_target_at, target_ready_at,
    running_at, finished_at, phase, greatest(scheduling_at - created_at, interval '0') AS queue_wait,
    greatest(finished_at - created_at, interval '0') AS duration, outcome, failure_class, failure_reason, failure_text, failure_evidence, mode,
    policy, seen_late, requester, aborted_by, wait_reason, wait_detail,
    changed_at
FROM evictrail.migrations;
ALTER TABLE evictrail.migrations DROP COLUMN need, DROP COLUMN need_because, DROP COLUMN source_last_over_at;
ALTER TABLE evictrail.migrations DROP COLUMN benefit, DROP COLUMN benefit_because, DROP COLUMN benefit_final;
DROP INDEX evictrail.events_by_load;
