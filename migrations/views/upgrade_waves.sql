-- What is apart by less than an hour belongs to one wave, but that each new version begins one. Its virt-controller labels the first
-- outdated guests before the version is seen, so that the wave begins with these. It is computed for one
-- cluster after the other: each is a small part of the tables, found by its indexes.
CREATE OR REPLACE VIEW evictrail_v1.upgrade_waves AS
SELECT
    one.cluster,
    w.wave_id,
    w.started_at,
    w.ended_at,
    w.outcome,
    w.version_from,
    w.version_to,
    w.vms,
    w.vms_left,
    w.vms_staying,
    w.moved,
    w.shut_down,
    w.evicted,
    w.failed_attempts,
    w.moved_again,
    w.methods,
    w.parallel_limit,
    w.batch_size,
    w.batch_interval,
    w.most_at_once,
    w.per_minute,
    w.low,
    w.mid,
    w.high,
    w.summary
FROM evictrail.clusters AS one
CROSS JOIN LATERAL (
    WITH settings AS (
        SELECT
            e.cluster,
            e.occurred_at AS at,
            e.detail -> 'kubevirt' AS kubevirt,
            e.detail -> 'kubevirt' ->> 'version' AS version,
            lag(e.detail -> 'kubevirt' ->> 'version') OVER in_order AS version_before,
            lag(e.occurred_at) OVER in_order AS before_at
        FROM evictrail.events AS e
        WHERE e.cluster = one.cluster
          AND e.kind = 'config_seen'
          AND e.reason = 'kubevirt_settings'
        WINDOW in_order AS (PARTITION BY e.cluster ORDER BY e.occurred_at, e.id)
    ),
    outdated AS (
        SELECT DISTINCT ON (p.cluster, p.vmi_uid, p.outdated_since)
            p.cluster,
            p.vmi_uid,
            p.outdated_since AS since,
            p.to_at AS until,
            coalesce(p.left_by = 'end', false) AS ended,
            coalesce(p.ended_by = 'evicted' AND p.ended_requester_class = 'kubevirt', false) AS evicted,
            p.not_migratable IS NOT NULL AS fixed,
            p.strategy
        FROM evictrail.placements AS p
        WHERE p.cluster = one.cluster
          AND p.outdated_since IS NOT NULL
        ORDER BY p.cluster, p.vmi_uid, p.outdated_since, p.from_at DESC
    ),
    attempts AS (
        SELECT
            m.cluster,
            coalesce(m.vmi_uid, m.namespace || '/' || m.vmi) AS vmi_uid,
            m.created_at,
            m.scheduling_at,
            coalesce(m.finished_at, c.alive_at) AS until,
            m.outcome
        FROM evictrail.migrations AS m
        JOIN evictrail.clusters AS c ON c.cluster = m.cluster
        WHERE m.cluster = one.cluster
          AND (m.trigger = 'workload_update' OR m.requester_class = 'kubevirt' AND m.evacuation_id IS NOT NULL)
    ),
    signals AS (
        SELECT
            s.cluster,
            coalesce((
                SELECT min(g.since)
                FROM outdated AS g
                WHERE g.cluster = s.cluster
                  AND g.since > greatest(s.before_at, s.at - interval '30 minutes')
                  AND g.since <= s.at
            ), s.at) AS at,
            s.at AS until,
            s.version,
            s.version_before,
            true AS begins
        FROM settings AS s
        WHERE s.version <> s.version_before
        UNION ALL
        SELECT g.cluster, g.since, g.since, NULL, NULL, true
        FROM outdated AS g
        UNION ALL
        SELECT g.cluster, g.until, g.until, NULL, NULL, g.evicted
        FROM outdated AS g
        WHERE g.until IS NOT NULL
        UNION ALL
        SELECT a.cluster, a.created_at, greatest(a.created_at, a.until), NULL, NULL, true
        FROM attempts AS a
    ),
    cuts AS (
        SELECT
            s.*,
            s.version IS NOT NULL OR s.at > max(s.until) OVER before_it + interval '1 hour' AS cut
        FROM signals AS s
        WINDOW before_it AS (
            PARTITION BY s.cluster ORDER BY s.at, s.version NULLS LAST, s.until ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING
        )
    ),
    numbered AS (
        SELECT
            s.*,
            count(*) FILTER (WHERE s.cut) OVER (PARTITION BY s.cluster ORDER BY s.at, s.version NULLS LAST, s.until ROWS UNBOUNDED PRECEDING) AS wave
        FROM cuts AS s
    ),
    begun AS (
        SELECT
            s.cluster,
            min(s.at) AS started_at,
            max(s.until) AS until,
            max(s.version) AS version,
            max(s.version_before) AS version_before
        FROM numbered AS s
        GROUP BY s.cluster, s.wave
        HAVING bool_or(s.begins)
    ),
    waves AS (
        SELECT
            b.cluster,
            b.started_at,
            b.last_at,
            b.next_at,
            c.alive_at,
            coalesce(b.version, s.version) AS version_to,
            b.version_before AS version_from,
            s.methods,
            coalesce(s.methods ? 'LiveMigrate', true) AS moves,
            coalesce(s.methods ? 'Evict', false) AS evicts,
            s.parallel_limit,
            s.batch_size,
            s.batch_interval
        FROM (
            SELECT
                x.*,
                least(x.until, lead(x.started_at) OVER in_order) AS last_at,
                coalesce(lead(x.started_at) OVER in_order, 'infinity') AS next_at
            FROM begun AS x
            WINDOW in_order AS (PARTITION BY x.cluster ORDER BY x.started_at)
        ) AS b
        JOIN evictrail.clusters AS c ON c.cluster = b.cluster
        LEFT JOIN LATERAL (
            SELECT
                f.version,
                coalesce(f.kubevirt -> 'workload_update_methods', '[]') AS methods,
                coalesce((f.kubevirt ->> 'parallel_migrations_per_cluster')::integer, 5) AS parallel_limit,
                coalesce((f.kubevirt ->> 'batch_eviction_size')::integer, 10) AS batch_size,
                make_interval(secs => coalesce((f.kubevirt ->> 'batch_eviction_interval')::double precision, 60)) AS batch_interval
            FROM settings AS f
            WHERE f.cluster = b.cluster
              AND f.at <= b.last_at
            ORDER BY f.at DESC
            LIMIT 1
        ) AS s ON true
    ),
    guests AS (
        SELECT
            w.cluster,
            w.started_at,
            g.vmi_uid,
            bool_or(x.is_left) AS is_left,
            bool_or(g.ended AND NOT x.is_left) AS ended,
            bool_or(g.evicted AND NOT x.is_left) AS evicted,
            bool_or(
                x.is_left AND NOT (w.moves AND NOT g.fixed)
                AND NOT (w.evicts AND g.strategy IS DISTINCT FROM 'External' AND NOT (g.fixed AND coalesce(g.strategy, '') = 'LiveMigrate'))
            ) AS stays,
            max(g.until) FILTER (WHERE NOT x.is_left) AS done_at,
            min(g.until) FILTER (WHERE g.evicted AND NOT x.is_left) AS acted_at
        FROM waves AS w
        JOIN outdated AS g ON g.cluster = w.cluster AND g.since <= w.last_at AND g.since < w.next_at AND (g.until IS NULL OR g.until >= w.started_at)
        CROSS JOIN LATERAL (SELECT g.until IS NULL OR g.until > w.last_at AS is_left) AS x
        GROUP BY w.cluster, w.started_at, g.vmi_uid
    ),
    tried AS (
        SELECT
            w.cluster,
            w.started_at,
            a.vmi_uid,
            min(a.created_at) AS acted_at,
            count(*) FILTER (WHERE a.outcome = 'failed') AS failed,
            max(a.until) FILTER (WHERE a.outcome = 'succeeded' AND a.until <= w.last_at) AS done_at
        FROM waves AS w
        JOIN attempts AS a ON a.cluster = w.cluster AND a.created_at >= w.started_at AND a.created_at <= w.last_at AND a.created_at < w.next_at
        GROUP BY w.cluster, w.started_at, a.vmi_uid
    ),
    repeated AS (
        SELECT w.cluster, w.started_at, m.vmi_uid
        FROM waves AS w
        JOIN evictrail.migrations AS m ON m.cluster = w.cluster AND m.finished_at >= w.started_at AND m.finished_at <= w.last_at
        WHERE m.outcome = 'succeeded'
        GROUP BY w.cluster, w.started_at, m.vmi_uid
        HAVING count(*) > 1
    ),
    busy AS (
        SELECT
            w.cluster,
            w.started_at,
            sum(s.taken) OVER (PARTITION BY w.cluster, w.started_at ORDER BY s.at, s.taken ROWS UNBOUNDED PRECEDING) AS slots
        FROM waves AS w
        JOIN attempts AS a ON a.cluster = w.cluster AND a.created_at >= w.started_at AND a.created_at <= w.last_at AND a.created_at < w.next_at
        CROSS JOIN LATERAL (VALUES (a.scheduling_at, 1), (a.until, -1)) AS s(at, taken)
        WHERE a.scheduling_at IS NOT NULL
    ),
    vms AS (
        SELECT
            cluster,
            started_at,
            coalesce(g.is_left, t.done_at IS NULL) AS is_left,
            coalesce(g.ended AND NOT g.is_left, false) AS ended,
            coalesce(g.evicted AND NOT g.is_left, false) AS evicted,
            coalesce(g.stays, false) AS stays,
            coalesce(t.failed, 0) AS failed,
            least(t.acted_at, g.acted_at) AS acted_at,
            coalesce(CASE WHEN NOT g.is_left THEN g.done_at END, t.done_at) - t.acted_at AS took,
            t.acted_at AS tried_at,
            r.vmi_uid IS NOT NULL AS repeated
        FROM guests AS g
        FULL JOIN tried AS t USING (cluster, started_at, vmi_uid)
        LEFT JOIN repeated AS r USING (cluster, started_at, vmi_uid)
    ),
    counts AS (
        SELECT
            v.cluster,
            v.started_at,
            count(*) AS vms,
            count(*) FILTER (WHERE v.is_left) AS vms_left,
            count(*) FILTER (WHERE v.stays) AS vms_staying,
            count(*) FILTER (WHERE NOT v.is_left AND NOT v.ended) AS moved,
            count(*) FILTER (WHERE v.ended) AS shut_down,
            count(*) FILTER (WHERE v.evicted) AS evicted,
            sum(v.failed)::bigint AS failed_attempts,
            count(*) FILTER (WHERE v.repeated) AS moved_again,
            min(v.acted_at) AS acted_at,
            percentile_cont(0.5) WITHIN GROUP (ORDER BY extract(epoch FROM v.took)) FILTER (WHERE NOT v.is_left) AS half_took,
            percentile_cont(0.9) WITHIN GROUP (ORDER BY extract(epoch FROM v.took)) FILTER (WHERE NOT v.is_left) AS most_took,
            extract(epoch FROM max(v.took) FILTER (WHERE NOT v.is_left)) AS longest,
            min(v.tried_at) FILTER (WHERE v.is_left AND NOT v.stays) AS tries_since
        FROM vms AS v
        GROUP BY v.cluster, v.started_at
    ),
    measured AS (
        SELECT
            w.*,
            n.vms, n.vms_left, n.vms_staying, n.moved, n.shut_down, n.evicted, n.failed_attempts, n.moved_again,
            (SELECT max(b.slots) FROM busy AS b WHERE b.cluster = w.cluster AND b.started_at = w.started_at) AS most_at_once,
            o.over,
            coalesce(n.half_took, 0) AS half_took,
            coalesce(n.most_took, 0) AS most_took,
            greatest(n.longest, extract(epoch FROM w.alive_at - n.tries_since), 0)::double precision AS longest,
            n.vms_left - n.vms_staying AS to_go,
            n.moved + n.shut_down AS done,
            (n.moved + n.shut_down) * 60 / nullif(greatest(extract(epoch FROM CASE WHEN o.over THEN w.last_at ELSE w.alive_at END - n.acted_at), 0), 0)
                ::double precision AS per_minute
        FROM waves AS w
        JOIN counts AS n ON n.cluster = w.cluster AND n.started_at = w.started_at
        CROSS JOIN LATERAL (
            SELECT w.next_at < 'infinity' OR w.alive_at > w.last_at + interval '1 hour' OR n.vms_left = 0 AND w.last_at < w.alive_at AS over
        ) AS o
    ),
    forecast AS (
        SELECT
            t.*,
            make_interval(secs => f.all_of_them / f.factor + t.half_took) AS low,
            make_interval(secs => f.all_of_them + t.most_took) AS mid,
            make_interval(secs => f.all_of_them * f.factor + 3 * t.longest) AS high
        FROM measured AS t
        LEFT JOIN LATERAL (
            SELECT
                60 * t.to_go / nullif(t.per_minute, 0) AS all_of_them,
                exp(1.2816 * sqrt(1.0 / nullif(t.done, 0) + 1.0 / nullif(t.to_go, 0))) AS factor
            WHERE NOT t.over
              AND t.to_go > 0
              AND t.done >= 5
        ) AS f ON true
    )
    SELECT
        md5(f.cluster || ' ' || extract(epoch FROM f.started_at))::uuid AS wave_id,
        f.started_at,
        CASE WHEN f.over THEN f.last_at END AS ended_at,
        CASE
          WHEN NOT f.over THEN NULL
          WHEN f.vms_left = 0 THEN 'completed'
          WHEN f.next_at <= f.last_at + interval '1 hour' THEN 'superseded'
          ELSE 'stopped'
        END AS outcome,
        f.version_from,
        f.version_to,
        f.vms,
        f.vms_left,
        f.vms_staying,
        f.moved,
        f.shut_down,
        f.evicted,
        f.failed_attempts,
        f.moved_again,
        f.methods,
        CASE WHEN f.moves THEN f.parallel_limit END AS parallel_limit,
        CASE WHEN f.evicts THEN f.batch_size END AS batch_size,
        CASE WHEN f.evicts THEN f.batch_interval END AS batch_interval,
        f.most_at_once,
        f.per_minute,
        f.low,
        f.mid,
        f.high,
        format('%s of %s left', f.vms_left, f.vms)
        || CASE
          WHEN f.vms_left > 0 AND NOT f.moves AND NOT f.evicts THEN ' (KubeVirt is to update none)'
          WHEN f.vms_staying > 0 THEN format(' (%s cannot move)', f.vms_staying)
          ELSE ''
        END
        || CASE
          WHEN f.mid IS NULL THEN ''
          WHEN f.per_minute >= 0.95 THEN format('; at %s a minute ', round(f.per_minute::numeric, 1))
          ELSE format('; at %s an hour ', round(60 * f.per_minute::numeric))
        END
        || CASE
          WHEN f.mid IS NULL THEN ''
          WHEN f.high < interval '2 hours' THEN format('%s-%s min', ceil(extract(epoch FROM f.low) / 60), ceil(extract(epoch FROM f.high) / 60))
          ELSE format('%s-%s h', round(extract(epoch FROM f.low) / 3600, 1), round(extract(epoch FROM f.high) / 3600, 1))
        END AS summary
    FROM forecast AS f
) AS w;

COMMENT ON VIEW evictrail_v1.upgrade_waves IS 'Upgrade waves: sessions in which VMs came to run in the virt-launcher of a new version of KubeVirt, or did not.';
COMMENT ON COLUMN evictrail_v1.upgrade_waves.cluster IS 'Cluster that the row belongs to: --cluster, else the UID of its kube-system namespace.';
COMMENT ON COLUMN evictrail_v1.upgrade_waves.wave_id IS 'Identity of the wave: of its cluster and started_at.';
COMMENT ON COLUMN evictrail_v1.upgrade_waves.started_at IS 'When the first VM was outdated, the new version was seen, or the first VM was asked to move: whichever was first.';
COMMENT ON COLUMN evictrail_v1.upgrade_waves.ended_at IS 'When the last VM was current, the next wave began, or something happened last before an hour in which nothing did. NULL while it goes on.';
COMMENT ON COLUMN evictrail_v1.upgrade_waves.outcome IS 'completed (no VM is left), stopped (VMs are left, and for an hour nothing happened), superseded (VMs are left, and the next began within an hour). NULL while it goes on.';
COMMENT ON COLUMN evictrail_v1.upgrade_waves.version_from IS 'Version of KubeVirt before. NULL where no change was seen.';
COMMENT ON COLUMN evictrail_v1.upgrade_waves.version_to IS 'Version of KubeVirt during the wave. NULL where unknown.';
COMMENT ON COLUMN evictrail_v1.upgrade_waves.vms IS 'VMIs that were outdated in it, and those that KubeVirt tried to move.';
COMMENT ON COLUMN evictrail_v1.upgrade_waves.vms_left IS 'VMIs that are outdated, or were at its end.';
COMMENT ON COLUMN evictrail_v1.upgrade_waves.vms_staying IS 'Of these, those that KubeVirt brings to the new version by none of its methods: they cannot be live-migrated, or it has no method.';
COMMENT ON COLUMN evictrail_v1.upgrade_waves.moved IS 'VMIs that are current since a live migration, no matter who asked for it.';
COMMENT ON COLUMN evictrail_v1.upgrade_waves.shut_down IS 'VMIs that ended instead, no matter who ended them.';
COMMENT ON COLUMN evictrail_v1.upgrade_waves.evicted IS 'Of these, those that KubeVirt itself evicted to update them, as audit events or its Kubernetes Events say.';
COMMENT ON COLUMN evictrail_v1.upgrade_waves.failed_attempts IS 'Failed migrations by which KubeVirt tried to update VMs.';
COMMENT ON COLUMN evictrail_v1.upgrade_waves.moved_again IS 'VMIs that were moved more than once in it, no matter who asked for it.';
COMMENT ON COLUMN evictrail_v1.upgrade_waves.methods IS 'How KubeVirt was to update VMs: LiveMigrate, Evict, in a list. It is empty where it was not to. NULL where its settings were not seen.';
COMMENT ON COLUMN evictrail_v1.upgrade_waves.parallel_limit IS 'Migrations that KubeVirt allows at once in the cluster. NULL where LiveMigrate is no method, or its settings were not seen.';
COMMENT ON COLUMN evictrail_v1.upgrade_waves.batch_size IS 'VMs that KubeVirt evicts at once to update them. NULL where Evict is no method.';
COMMENT ON COLUMN evictrail_v1.upgrade_waves.batch_interval IS 'Time between two batches of these. NULL where Evict is no method.';
COMMENT ON COLUMN evictrail_v1.upgrade_waves.most_at_once IS 'Migrations of the wave that were under way at once, at most. NULL where there was none.';
COMMENT ON COLUMN evictrail_v1.upgrade_waves.per_minute IS 'VMIs that became current in a minute, or ended, from the first that KubeVirt tried to update. NULL where it tried none.';
COMMENT ON COLUMN evictrail_v1.upgrade_waves.low IS 'How long it takes from when the cluster was last seen, at that rate, until none is left but those that stay: one in ten takes less. NULL where it is over, or fewer than five VMIs are done.';
COMMENT ON COLUMN evictrail_v1.upgrade_waves.mid IS 'Half take less.';
COMMENT ON COLUMN evictrail_v1.upgrade_waves.high IS 'One in ten takes more.';
COMMENT ON COLUMN evictrail_v1.upgrade_waves.summary IS 'How far it is, in words: how many are left, and how long they take at the rate so far.';
