CREATE OR REPLACE VIEW evictrail_v1.node_context AS
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
COMMENT ON COLUMN evictrail_v1.node_context.origin IS 'Source: prometheus, or descheduler (its own metrics, read by evictrail).';
COMMENT ON COLUMN evictrail_v1.node_context.sample IS 'Which sample: before (the last one at the moment), next (the first one after it), peak (the highest on the target since the move), last_over (the last one before in which the source was over its threshold).';
COMMENT ON COLUMN evictrail_v1.node_context.sampled_at IS 'When it was measured. The descheduler shows what it saw in its last cycle, which may be as much earlier as a cycle lasts. NULL where there is no sample.';
COMMENT ON COLUMN evictrail_v1.node_context.reason IS 'Why value is NULL: no_series, no_sample, not_a_number, refused, unanswered. NULL where it is not.';
COMMENT ON COLUMN evictrail_v1.node_context.side IS 'source or target.';
COMMENT ON COLUMN evictrail_v1.node_context.migration IS 'Name of the VirtualMachineInstanceMigration.';
COMMENT ON COLUMN evictrail_v1.node_context.migration_uid IS 'UID of the VirtualMachineInstanceMigration.';
COMMENT ON COLUMN evictrail_v1.node_context.evacuation_id IS 'The evacuation that the migration is an attempt of. NULL outside of any.';
COMMENT ON COLUMN evictrail_v1.node_context.attempt IS 'Its number within the evacuation. NULL outside of any.';
COMMENT ON COLUMN evictrail_v1.node_context.event_id IS 'The fact that holds it, in view events.';
COMMENT ON COLUMN evictrail_v1.node_context.changed_at IS 'When it was stored, by the clock of the database; see evacuations.changed_at.';
