-- What each migration asked of KubeVirt's limits, cut at full hours. What waited for something else than a slot was ready when that
-- came. It is computed for one cluster after the other: each is a small part of the tables, found by its indexes.
CREATE OR REPLACE VIEW evictrail_v1.migration_slots AS
SELECT
    one.cluster,
    h.hour,
    h.arrived,
    h.unserved,
    h.held,
    h.most_held,
    h.waited,
    h.held / nullif(s.cluster_limit, 0) AS used,
    s.cluster_limit,
    s.node_limit
FROM evictrail.clusters AS one
LEFT JOIN LATERAL (
    SELECT
        coalesce((e.detail -> 'kubevirt' ->> 'parallel_migrations_per_cluster')::integer, 5) AS cluster_limit,
        coalesce((e.detail -> 'kubevirt' ->> 'parallel_outbound_migrations_per_node')::integer, 2) AS node_limit
    FROM evictrail.events AS e
    WHERE e.cluster = one.cluster
      AND e.kind = 'config_seen'
      AND e.reason = 'kubevirt_settings'
    ORDER BY e.occurred_at DESC
    LIMIT 1
) AS s ON true
CROSS JOIN LATERAL (
    WITH uses AS (
        SELECT
            r.ready_at,
            CASE WHEN m.scheduling_at IS NOT NULL THEN greatest(m.scheduling_at, r.ready_at) END AS started_at,
            greatest(least(m.finished_at, one.alive_at), m.scheduling_at, r.ready_at) AS ended_at
        FROM evictrail.migrations AS m
        CROSS JOIN LATERAL (
            SELECT CASE
              WHEN coalesce(m.wait_reason, 'queued') IN ('cluster_limit', 'node_limit', 'queued') THEN m.created_at
              ELSE coalesce(m.scheduling_at, m.created_at)
            END AS ready_at
        ) AS r
        WHERE m.cluster = one.cluster
    ),
    arrivals AS (
        SELECT
            date_trunc('hour', u.ready_at, 'UTC') AS hour,
            count(*) AS arrived,
            count(*) FILTER (WHERE u.started_at IS NULL) AS unserved
        FROM uses AS u
        GROUP BY 1
    ),
    held AS (
        SELECT x.hour, greatest(u.started_at, x.hour) AS from_at, least(u.ended_at, x.hour + interval '1 hour') AS to_at
        FROM uses AS u
        CROSS JOIN LATERAL generate_series(date_trunc('hour', u.started_at, 'UTC'), u.ended_at, interval '1 hour') AS x(hour)
        WHERE x.hour < u.ended_at
    ),
    changes AS (
        SELECT d.hour, sum(c.taken) OVER (PARTITION BY d.hour ORDER BY c.at, c.taken ROWS UNBOUNDED PRECEDING) AS taken
        FROM held AS d
        CROSS JOIN LATERAL (VALUES (d.from_at, 1), (d.to_at, -1)) AS c(at, taken)
    ),
    most AS (
        SELECT c.hour, max(c.taken) AS most_held
        FROM changes AS c
        GROUP BY c.hour
    ),
    taken AS (
        SELECT d.hour, (sum(extract(epoch FROM d.to_at - d.from_at)) / 3600)::double precision AS held
        FROM held AS d
        GROUP BY d.hour
    ),
    waiting AS (
        SELECT x.hour, range_agg(tstzrange(greatest(u.ready_at, x.hour), least(u.started_at, x.hour + interval '1 hour'))) AS times
        FROM uses AS u
        CROSS JOIN LATERAL generate_series(date_trunc('hour', u.ready_at, 'UTC'), u.started_at, interval '1 hour') AS x(hour)
        WHERE x.hour < u.started_at
          AND u.ready_at < u.started_at
        GROUP BY x.hour
    )
    SELECT
        hour,
        coalesce(a.arrived, 0) AS arrived,
        coalesce(a.unserved, 0) AS unserved,
        coalesce(t.held, 0) AS held,
        coalesce(m.most_held, 0) AS most_held,
        coalesce((SELECT sum(upper(w.time) - lower(w.time)) FROM unnest(g.times) AS w(time)), interval '0') AS waited
    FROM arrivals AS a
    FULL JOIN taken AS t USING (hour)
    FULL JOIN most AS m USING (hour)
    FULL JOIN waiting AS g USING (hour)
) AS h;

COMMENT ON VIEW evictrail_v1.migration_slots IS 'How far migrations filled the slots that KubeVirt''s limits leave, by hour. Slots, arrivals and waits are those of `evictrail limits`: it adds up the migrations that were created in the last week. Hours in which there was nothing have no row.';
COMMENT ON COLUMN evictrail_v1.migration_slots.cluster IS 'Cluster that the row belongs to: --cluster, else the UID of its kube-system namespace.';
COMMENT ON COLUMN evictrail_v1.migration_slots.hour IS 'When the hour begins, UTC.';
COMMENT ON COLUMN evictrail_v1.migration_slots.arrived IS 'Migrations that from this hour on needed a slot and nothing else, those without one among them.';
COMMENT ON COLUMN evictrail_v1.migration_slots.unserved IS 'Of these, those that ended without a slot, or wait.';
COMMENT ON COLUMN evictrail_v1.migration_slots.held IS 'Slots of the cluster that were held, on average over the hour; of the last hour as if nothing came after the cluster was last seen.';
COMMENT ON COLUMN evictrail_v1.migration_slots.most_held IS 'Slots of the cluster that were held at once, at most.';
COMMENT ON COLUMN evictrail_v1.migration_slots.waited IS 'Time in which at least one migration waited for a slot; of those that got one.';
COMMENT ON COLUMN evictrail_v1.migration_slots.used IS 'Share of cluster_limit that was held, from 0 to 1. NULL where that is.';
COMMENT ON COLUMN evictrail_v1.migration_slots.cluster_limit IS 'Migrations that KubeVirt now allows at once in the cluster. NULL where its settings were not seen.';
COMMENT ON COLUMN evictrail_v1.migration_slots.node_limit IS 'Migrations that KubeVirt now allows at once from one node. NULL where its settings were not seen.';
