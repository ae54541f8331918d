CREATE OR REPLACE VIEW evictrail_v1.weekly_move_costs AS
SELECT
    cluster,
    date_trunc('week', finished_at, 'UTC') AS week,
    namespace,
    node,
    trigger,
    requester_class,
    requester,
    count(*) FILTER (WHERE outcome = 'succeeded') AS moves,
    count(*) FILTER (WHERE outcome IN ('failed', 'aborted')) AS failed,
    count(*) FILTER (WHERE need = 'not_needed') AS not_needed,
    coalesce(sum(copy_time), interval '0') AS copy_time,
    coalesce(sum(reserved_time), interval '0') AS reserved_time,
    coalesce(sum(guest_memory / 1073741824.0 * extract(epoch FROM reserved_time) / 3600), 0)::double precision AS reserved_gib_hours,
    coalesce(sum(data_processed), 0)::bigint AS data_processed,
    count(data_processed) AS measured,
    count(transfer_lack) AS not_measured,
    sum(guest_pause) AS guest_pause
FROM evictrail_v1.migrations
WHERE finished_at IS NOT NULL
GROUP BY cluster, week, namespace, node, trigger, requester_class, requester;

COMMENT ON VIEW evictrail_v1.weekly_move_costs IS 'What the migrations of a week cost, by namespace, node, trigger and requester. Each counts in the week of its end.';
COMMENT ON COLUMN evictrail_v1.weekly_move_costs.cluster IS 'Cluster that the row belongs to: --cluster, else the UID of its kube-system namespace.';
COMMENT ON COLUMN evictrail_v1.weekly_move_costs.week IS 'Monday on which the week begins, at midnight UTC.';
COMMENT ON COLUMN evictrail_v1.weekly_move_costs.namespace IS 'Namespace of the VMs.';
COMMENT ON COLUMN evictrail_v1.weekly_move_costs.node IS 'Node that the guests were to leave. NULL where unknown.';
COMMENT ON COLUMN evictrail_v1.weekly_move_costs.trigger IS 'Why the migrations were made; see migrations.trigger.';
COMMENT ON COLUMN evictrail_v1.weekly_move_costs.requester_class IS 'What sort of program asked for them; see eviction_requests.requester_class.';
COMMENT ON COLUMN evictrail_v1.weekly_move_costs.requester IS 'User name of who asked for them. NULL where unknown.';
COMMENT ON COLUMN evictrail_v1.weekly_move_costs.moves IS 'Migrations that moved a guest.';
COMMENT ON COLUMN evictrail_v1.weekly_move_costs.failed IS 'Migrations that failed or were aborted: their cost bought nothing.';
COMMENT ON COLUMN evictrail_v1.weekly_move_costs.not_needed IS 'Migrations that were to relieve a node which was not over its threshold; see migrations.need.';
COMMENT ON COLUMN evictrail_v1.weekly_move_costs.copy_time IS 'How long data moved, all migrations added up.';
COMMENT ON COLUMN evictrail_v1.weekly_move_costs.reserved_time IS 'How long two pods held the resources of one guest, all migrations added up.';
COMMENT ON COLUMN evictrail_v1.weekly_move_costs.reserved_gib_hours IS 'Memory that was held twice, in GiB hours; of guests whose memory is known.';
COMMENT ON COLUMN evictrail_v1.weekly_move_costs.data_processed IS 'Bytes that were copied; of measured migrations.';
COMMENT ON COLUMN evictrail_v1.weekly_move_costs.measured IS 'Migrations of which Prometheus had what they copied.';
COMMENT ON COLUMN evictrail_v1.weekly_move_costs.not_measured IS 'Migrations whose data moved, and of which that is not known: data_processed is too low by them.';
COMMENT ON COLUMN evictrail_v1.weekly_move_costs.guest_pause IS 'How long guests stood still, all migrations added up. NULL where no query asks for it.';
