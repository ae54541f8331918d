package truth

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
)

const requestsQuery = `
SELECT requested_at AS at, namespace, pod, requester AS "user", coalesce(answer_code, 0) AS code
FROM evictrail_v1.eviction_requests
WHERE cluster = @cluster
  AND NOT coalesce(dry_run, false)
  AND source <> 'mark'`

const marksQuery = `
SELECT namespace || '/' || vmi AS vmi, node, marked_at AS "from", coalesce(ended_at, '0001-01-01Z') AS until
FROM evictrail_v1.evacuations
WHERE cluster = @cluster`

const migrationsQuery = `
SELECT m.migration_uid AS uid, m.namespace || '/' || m.vmi AS vmi, coalesce(m.source_node, '') AS source, coalesce(m.target_node, '') AS target,
       coalesce(m.phase, '') AS phase, coalesce(m.failure_text, '') AS failure,
       m.trigger = 'workload_update' AS "update",
       coalesce(jsonb_object_agg(p.phase, p.at) FILTER (WHERE p.phase <> ''), '{}') AS phases
FROM evictrail_v1.migrations AS m
LEFT JOIN evictrail_v1.migration_phases AS p USING (cluster, migration_uid)
WHERE m.cluster = @cluster
GROUP BY m.migration_uid, m.namespace, m.vmi, m.source_node, m.target_node, m.phase, m.failure_text, m.trigger`

const staysQuery = `
SELECT namespace || '/' || vmi AS vmi, vmi_uid AS uid, node, from_at AS "from", coalesce(to_at, '0001-01-01Z') AS until
FROM evictrail_v1.placements
WHERE cluster = @cluster`

const backoffsQuery = `
SELECT namespace || '/' || vmi AS vmi, decided_at AS "from", until
FROM evictrail_v1.cooldown_decisions
WHERE cluster = @cluster
  AND layer = 'kubevirt_backoff'
  AND reason = 'migration_failed'
  AND until IS NOT NULL`

const wavesQuery = `
SELECT coalesce(version_from, '') AS "from", coalesce(version_to, '') AS "to", vms, vms_left AS "left", vms_staying AS staying, moved, shut_down,
       failed_attempts AS failed, moved_again, coalesce(most_at_once, 0) AS most_at_once, coalesce(parallel_limit, 0) AS parallel_limit
FROM evictrail_v1.upgrade_waves
WHERE cluster = @cluster`

// Load reads from evictrail's views what it recorded of a cluster.
func Load(ctx context.Context, databaseURL, cluster string) (h History, err error) {
	if h.Requests, err = Rows[Request](ctx, databaseURL, cluster, requestsQuery); err != nil {
		return h, err
	}
	if h.Marks, err = Rows[Mark](ctx, databaseURL, cluster, marksQuery); err != nil {
		return h, err
	}
	if h.Migrations, err = Rows[Migration](ctx, databaseURL, cluster, migrationsQuery); err != nil {
		return h, err
	}
	if h.Stays, err = Rows[Stay](ctx, databaseURL, cluster, staysQuery); err != nil {
		return h, err
	}
	if h.Backoffs, err = Rows[Backoff](ctx, databaseURL, cluster, backoffsQuery); err != nil {
		return h, err
	}
	h.Waves, err = Rows[Wave](ctx, databaseURL, cluster, wavesQuery)
	return h, err
}

// Rows reads the rows of a query about @cluster from evictrail's database. Its columns are named as the fields of T.
func Rows[T any](ctx context.Context, databaseURL, cluster, query string) ([]T, error) {
	const doing = "read what evictrail recorded: %w"
	conn, err := pgx.Connect(ctx, databaseURL)
	if err != nil {
		return nil, fmt.Errorf(doing, err)
	}
	defer func() { _ = conn.Close(context.WithoutCancel(ctx)) }()
	found, err := conn.Query(ctx, query, pgx.StrictNamedArgs{"cluster": cluster})
	if err != nil {
		return nil, fmt.Errorf(doing, err)
	}
	out, err := pgx.CollectRows(found, pgx.RowToStructByName[T])
	if err != nil {
		return nil, fmt.Errorf(doing, err)
	}
	return out, nil
}

// isOpen reports whether the end of a mark or a stay has not come.
func isOpen(until time.Time) bool { return until.Year() <= 1 }
