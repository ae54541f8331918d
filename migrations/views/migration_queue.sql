-- Migrations without a target pod, in the order in which KubeVirt takes them: by priority, then by age. Running ones hold the slots.
CREATE OR REPLACE VIEW evictrail_v1.migration_queue AS
SELECT
    q.cluster,
    q.namespace,
    q.vmi,
    q.vmi_uid,
    q.source_node AS node,
    q.migration,
    q.migration_uid,
    q.trigger,
    q.priority,
    q.created_at,
    greatest(c.alive_at - q.created_at, interval '0') AS waits_for,
    q.wait_reason,
    q.wait_detail,
    row_number() OVER by_turn AS place,
    count(*) OVER (PARTITION BY q.cluster) AS waiting,
    row_number() OVER (PARTITION BY q.cluster, q.source_node ORDER BY q.weight DESC, q.created_at, q.migration_uid) AS place_on_node,
    lag(q.namespace || '/' || q.vmi) OVER by_turn AS after_vmi,
    q.running_in_cluster,
    coalesce((s.detail -> 'kubevirt' ->> 'parallel_migrations_per_cluster')::integer, 5) AS cluster_limit,
    q.running_from_node,
    coalesce((s.detail -> 'kubevirt' ->> 'parallel_outbound_migrations_per_node')::integer, 2) AS node_limit,
    q.changed_at
FROM evictrail.clusters AS c
LEFT JOIN LATERAL (
    SELECT e.detail
    FROM evictrail.events AS e
    WHERE e.cluster = c.cluster
      AND e.kind = 'config_seen'
      AND e.reason = 'kubevirt_settings'
    ORDER BY e.occurred_at DESC
    LIMIT 1
) AS s ON true
JOIN (
    SELECT
        m.cluster,
        m.namespace,
        m.vmi,
        m.vmi_uid,
        m.source_node,
        m.migration,
        m.migration_uid,
        m.trigger,
        m.priority,
        m.created_at,
        m.scheduling_at,
        m.wait_reason,
        m.wait_detail,
        m.changed_at,
        CASE m.priority WHEN 'system-critical' THEN 100 WHEN 'user-triggered' THEN 50 WHEN 'system-maintenance' THEN 20 ELSE 0 END AS weight,
        count(m.scheduling_at) OVER (PARTITION BY m.cluster) AS running_in_cluster,
        count(m.scheduling_at) FILTER (WHERE m.source_node IS NOT NULL) OVER (PARTITION BY m.cluster, m.source_node) AS running_from_node
    FROM evictrail.migrations AS m
    WHERE m.finished_at IS NULL
      AND m.outcome IS NULL
      AND m.open_until = 'infinity'
) AS q ON q.cluster = c.cluster
WHERE q.scheduling_at IS NULL
WINDOW by_turn AS (PARTITION BY q.cluster ORDER BY q.weight DESC, q.created_at, q.migration_uid);

COMMENT ON VIEW evictrail_v1.migration_queue IS 'Migrations that wait for a target pod, one row each, in the order in which KubeVirt takes them: by priority, then by age. KubeVirt asks again after some seconds, so neighbours may change places. Before v1.9, without the gate MigrationPriorityQueue, evacuations wait before their migration is made and are not here.';
COMMENT ON COLUMN evictrail_v1.migration_queue.cluster IS 'Cluster that the row belongs to: --cluster, else the UID of its kube-system namespace.';
COMMENT ON COLUMN evictrail_v1.migration_queue.namespace IS 'Namespace of the VMI.';
COMMENT ON COLUMN evictrail_v1.migration_queue.vmi IS 'Name of the VirtualMachineInstance.';
COMMENT ON COLUMN evictrail_v1.migration_queue.vmi_uid IS 'UID of the VirtualMachineInstance; a restarted VM has a new one. NULL where it is not known.';
COMMENT ON COLUMN evictrail_v1.migration_queue.node IS 'Node that the guest is to leave. NULL where it is not known yet.';
COMMENT ON COLUMN evictrail_v1.migration_queue.migration IS 'Name of the VirtualMachineInstanceMigration.';
COMMENT ON COLUMN evictrail_v1.migration_queue.migration_uid IS 'Its UID.';
COMMENT ON COLUMN evictrail_v1.migration_queue.trigger IS 'Why it was made; see migrations.trigger.';
COMMENT ON COLUMN evictrail_v1.migration_queue.priority IS 'Its priority in KubeVirt''s queue: system-critical goes first, then user-triggered, then system-maintenance, then those without one. NULL where it has none.';
COMMENT ON COLUMN evictrail_v1.migration_queue.created_at IS 'When it was created.';
COMMENT ON COLUMN evictrail_v1.migration_queue.waits_for IS 'How long it has waited, up to when evictrail last saw the cluster.';
COMMENT ON COLUMN evictrail_v1.migration_queue.wait_reason IS 'Why it waits; see migrations.wait_reason. Only for cluster_limit, node_limit and queued does its place matter.';
COMMENT ON COLUMN evictrail_v1.migration_queue.wait_detail IS 'What the wait rests on.';
COMMENT ON COLUMN evictrail_v1.migration_queue.place IS 'Its place among those that wait in the cluster; 1 is next.';
COMMENT ON COLUMN evictrail_v1.migration_queue.waiting IS 'How many wait in the cluster.';
COMMENT ON COLUMN evictrail_v1.migration_queue.place_on_node IS 'Its place among those that are to leave the same node.';
COMMENT ON COLUMN evictrail_v1.migration_queue.after_vmi IS 'VM whose migration comes right before, as namespace/name. NULL where it is the first, and for readers who may not see that VM.';
COMMENT ON COLUMN evictrail_v1.migration_queue.running_in_cluster IS 'How many migrations of the cluster have a target pod and hold a slot.';
COMMENT ON COLUMN evictrail_v1.migration_queue.cluster_limit IS 'How many may: parallelMigrationsPerCluster, 5 where it is not set or not known.';
COMMENT ON COLUMN evictrail_v1.migration_queue.running_from_node IS 'How many of them leave its node.';
COMMENT ON COLUMN evictrail_v1.migration_queue.node_limit IS 'How many may: parallelOutboundMigrationsPerNode, 2 where it is not set or not known.';
COMMENT ON COLUMN evictrail_v1.migration_queue.changed_at IS 'When the row of the migration came or last changed, by the clock of the database; see evacuations.changed_at.';
