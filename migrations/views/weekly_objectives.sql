CREATE OR REPLACE VIEW evictrail_v1.weekly_objectives AS
SELECT
    e.cluster,
    date_trunc('week', e.marked_at, 'UTC') AS week,
    e.namespace,
    e.pool,
    e.requester_class,
    e.objective,
    count(*) FILTER (WHERE e.objective_met) AS met,
    count(*) FILTER (WHERE NOT e.objective_met) AS missed,
    (count(*) FILTER (WHERE e.objective_met))::double precision / count(*) AS met_share
FROM (
    SELECT
        v.cluster,
        v.marked_at,
        v.namespace,
        v.requester_class,
        make_interval(secs => v.objective_seconds) AS objective,
        v.objective_met,
        (
          SELECT l.detail ->> 'pool'
          FROM evictrail.events AS l
          WHERE l.cluster = v.cluster
            AND l.subject = 'node:' || v.node
            AND l.kind = 'node_labels'
            AND l.occurred_at <= coalesce(v.ended_at, 'infinity')
          ORDER BY l.occurred_at DESC, l.id DESC
          LIMIT 1
        ) AS pool
    FROM evictrail.evacuations AS v
    WHERE v.objective_met IS NOT NULL
) AS e
GROUP BY e.cluster, week, e.namespace, e.pool, e.requester_class, e.objective;

COMMENT ON VIEW evictrail_v1.weekly_objectives IS 'How often evacuations met their objective, by week, namespace, pool of the node and requester class. Each counts in the week of its mark.';
COMMENT ON COLUMN evictrail_v1.weekly_objectives.cluster IS 'Cluster that the row belongs to: --cluster, else the UID of its kube-system namespace.';
COMMENT ON COLUMN evictrail_v1.weekly_objectives.week IS 'Monday on which the week begins, at midnight UTC.';
COMMENT ON COLUMN evictrail_v1.weekly_objectives.namespace IS 'Namespace of the VMs.';
COMMENT ON COLUMN evictrail_v1.weekly_objectives.pool IS 'Pool of the node that the VMs were to leave; see node_labels.pool. NULL where it has none, or none was seen.';
COMMENT ON COLUMN evictrail_v1.weekly_objectives.requester_class IS 'What sort of program asked; see eviction_requests.requester_class.';
COMMENT ON COLUMN evictrail_v1.weekly_objectives.objective IS 'Time within which the VMs were to be moved; see evacuations.objective.';
COMMENT ON COLUMN evictrail_v1.weekly_objectives.met IS 'Evacuations whose VM was moved in time.';
COMMENT ON COLUMN evictrail_v1.weekly_objectives.missed IS 'Evacuations whose VM was not: the error budget that was spent. 5 of 100 are within a budget of 5 %.';
COMMENT ON COLUMN evictrail_v1.weekly_objectives.met_share IS 'Share that was met, 0 to 1.';
