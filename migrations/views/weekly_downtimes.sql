CREATE OR REPLACE VIEW evictrail_v1.weekly_downtimes AS
SELECT
    d.cluster,
    w.week,
    d.namespace,
    d.cause,
    d.planned,
    d.requester_class,
    count(*) AS downtimes,
    count(DISTINCT d.vmi) AS vms,
    sum(extract(epoch FROM least(d.until, w.week + interval '7 days') - greatest(d.down_at, w.week)) / 60)::double precision AS minutes
FROM (
    SELECT
        x.*,
        greatest(coalesce(x.up_at, CASE WHEN NOT x.planned THEN c.alive_at END, x.down_at), x.down_at) AS until
    FROM evictrail_v1.downtimes AS x
    JOIN evictrail.clusters AS c ON c.cluster = x.cluster
) AS d
CROSS JOIN LATERAL generate_series(date_trunc('week', d.down_at, 'UTC'), d.until, interval '7 days') AS w(week)
GROUP BY d.cluster, w.week, d.namespace, d.cause, d.planned, d.requester_class;

COMMENT ON VIEW evictrail_v1.weekly_downtimes IS 'Downtimes of a week, by namespace, cause and who began them. One that lasts longer counts in each of its weeks.';
COMMENT ON COLUMN evictrail_v1.weekly_downtimes.cluster IS 'Cluster that the row belongs to: --cluster, else the UID of its kube-system namespace.';
COMMENT ON COLUMN evictrail_v1.weekly_downtimes.week IS 'Monday on which the week begins, at midnight UTC.';
COMMENT ON COLUMN evictrail_v1.weekly_downtimes.namespace IS 'Namespace of the VMs.';
COMMENT ON COLUMN evictrail_v1.weekly_downtimes.cause IS 'Why their guests ended; see placements.ended_by.';
COMMENT ON COLUMN evictrail_v1.weekly_downtimes.planned IS 'Whether their owners, or the guests themselves, ended them; see downtimes.planned.';
COMMENT ON COLUMN evictrail_v1.weekly_downtimes.requester_class IS 'What sort of program began it; see eviction_requests.requester_class. NULL where nobody asked for it, or where unknown.';
COMMENT ON COLUMN evictrail_v1.weekly_downtimes.downtimes IS 'How many downtimes were in that week.';
COMMENT ON COLUMN evictrail_v1.weekly_downtimes.vms IS 'Of how many VMs.';
COMMENT ON COLUMN evictrail_v1.weekly_downtimes.minutes IS 'Minutes in that week, of all of them together. A VM that the platform ended and that does not run yet counts up to when its cluster was last seen; one that its owner stopped and did not start again counts none.';
