package main

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/evictrail/evictrail/dashboards"
	"github.com/evictrail/evictrail/dashboards/dashboardstest"
	"github.com/evictrail/evictrail/store/storetest"
)

// manyMigrations makes 64,000 migrations of 8,000 guests in forty days: one in twenty of the guest shop/hot, from node-1 to node-2. The first 1,000 are in a namespace of
// their own, tiny. Each fourth fails, each third is an attempt of an evacuation that the descheduler asked for.
const manyMigrations = `
INSERT INTO evictrail.migrations (
  cluster, subject, migration_uid, migration, namespace, vmi, vmi_uid, trigger, trigger_confidence, trigger_evidence, evacuation_id, attempt, source_node, target_node,
  created_at, scheduling_at, scheduled_at, target_ready_at, running_at, finished_at, outcome, failure_class, failure_reason, failure_text, seen_late
)
SELECT
  'big', 'vmi:' || namespace || '/' || vmi, 'uid-' || n, 'move-' || n, namespace, vmi, 'uid of ' || vmi,
  CASE WHEN evacuated THEN 'descheduler' ELSE 'user' END, 'observed', 'made for a test',
  CASE WHEN evacuated THEN md5((n / 30)::text)::uuid END, CASE WHEN evacuated THEN 1 + n % 30 END,
  CASE WHEN hot THEN 'node-1' ELSE 'node-' || n * 7919 % 97 END, CASE WHEN hot THEN 'node-2' ELSE 'node-' || n * 104729 % 89 END,
  began, began + took, began + 2 * took, began + 3 * took, began + 4 * took, began + 5 * took,
  CASE WHEN failed THEN 'failed' ELSE 'succeeded' END, CASE WHEN failed THEN 'data_plane' END, CASE WHEN failed THEN 'libvirt_error' END, CASE WHEN failed THEN 'broken' END,
  false
FROM (
  SELECT
    n::bigint,
    n % 20 = 0 AS hot,
    n % 4 = 1 OR n % 20 = 0 AND n % 7 = 0 AS failed,
    n % 3 = 0 AS evacuated,
    CASE WHEN n < 1000 THEN 'tiny' ELSE 'shop' END AS namespace,
    CASE WHEN n % 20 = 0 THEN 'hot' ELSE 'vm-' || n * 31 % 8000 END AS vmi,
    timestamptz '2026-01-01Z' + n * interval '54 seconds' AS began,
    (1 + n * 13 % 50) * interval '1 second' AS took
  FROM generate_series(0, 63999) AS n
) AS made`

const theirRequests = `
INSERT INTO evictrail.eviction_requests (
  cluster, subject, request_id, namespace, requested_at, requester, requester_class, stated_reason, source, confidence, dry_run, answer, effect, evacuation_id, repeats, evidence, seen_late
)
SELECT DISTINCT ON (evacuation_id)
  cluster, subject, evacuation_id, namespace, created_at, 'the descheduler', 'descheduler', 'reason ' || extract(minute FROM created_at)::int % 2, 'audit', 'observed', false, 'marked', 'evacuation', evacuation_id, 0,
  'made for a test', false
FROM evictrail.migrations
WHERE evacuation_id IS NOT NULL
ORDER BY evacuation_id, created_at`

// Guest shop/back is moved six times between two nodes, each time after five hours: the sample knows hardly of it.
const backAndForth = `
INSERT INTO evictrail.migrations (
  cluster, subject, migration_uid, migration, namespace, vmi, vmi_uid, trigger, trigger_confidence, trigger_evidence, source_node, target_node, created_at, finished_at, outcome, seen_late
)
SELECT
  'big', 'vmi:shop/back', 'back-' || n, 'back-' || n, 'shop', 'back', 'uid of back', 'user', 'observed', 'made for a test', 'node-' || n % 2, 'node-' || (n + 1) % 2,
  timestamptz '2026-01-02Z' + n * interval '5 hours', timestamptz '2026-01-02Z' + n * interval '5 hours', 'succeeded', false
FROM generate_series(1, 6) AS n;
INSERT INTO evictrail.placements (cluster, subject, placement_id, namespace, vmi, vmi_uid, node, from_at, to_at, arrived_by, left_by, seen_late)
SELECT cluster, subject, md5(migration_uid)::uuid, namespace, vmi, vmi_uid, target_node, finished_at, finished_at + interval '5 hours', migration_uid, 'its next', false
FROM evictrail.migrations
WHERE vmi = 'back'`

// TestDashboardsSayThatTheyReadASample compares what panels show of a sample of many migrations with what the same queries return of all of them, and of few with what they
// are when they are counted plainly.
func TestDashboardsSayThatTheyReadASample(t *testing.T) {
	storetest.SkipInShort(t)
	t.Parallel()
	conn, err := pgx.Connect(t.Context(), storetest.NewURL(t))
	require.NoError(t, err)
	t.Cleanup(func() { _ = conn.Close(context.Background()) })
	for _, text := range []string{manyMigrations, theirRequests, backAndForth, "VACUUM ANALYZE evictrail.migrations", "VACUUM ANALYZE evictrail.eviction_requests"} {
		_, err = conn.Exec(t.Context(), text)
		require.NoError(t, err)
	}
	a := asker{conn: conn, of: map[string]dashboards.Query{}}
	for _, q := range sqlQueries(t) {
		if strings.Contains(q.Text, "hashtext(") {
			a.of[q.Panel+"/"+q.RefID] = q
		}
	}
	require.Len(t, a.of, 8, "panels that ask for a sample")
	for name, q := range a.of {
		require.Contains(t, a.explainQuery(t, q, "shop"), "migrations_sampled", "%s reads the index of the sample", name)
		require.Equal(t, a.queryUnsampledPanel(t, name, "tiny"), a.queryPanel(t, name, "tiny"), "%s of few", name)
		require.NotEmpty(t, a.queryPanel(t, name, "tiny"), name)
	}

	for name, columns := range map[string][]string{
		"Started migrations by cause/A":     {"value"},
		"Requesters and stated reasons/A":   {"vms", "moves", "failed"},
		"Time per phase by outcome/A":       {"waits", "target_starts", "target_prepares", "handover", "data_moves"},
		"Moves between nodes/nodes":         {"arc__succeeded", "arc__failed"},
		"Cost of migrations by requester/A": {"moves", "failed", "copying", "held_twice"},
	} {
		got, want := sumColumns(a.queryPanel(t, name, "shop"), columns), sumColumns(a.queryUnsampledPanel(t, name, "shop"), columns)
		for _, c := range columns {
			require.InEpsilon(t, want[c], got[c], 0.1, "%s, %s: an estimate", name, c)
		}
	}
	for _, name := range []string{"Failures by reason and pair of nodes/A", "Moves between nodes/edges", "Paths of VMs moved more than once/A"} {
		require.Equal(t, a.queryUnsampledPanel(t, name, "shop")[0], a.queryPanel(t, name, "shop")[0], "%s: what is frequent is found, and counted", name)
	}
	var listed []any
	for _, vm := range a.queryPanel(t, "Paths of VMs moved more than once/A", "shop") {
		listed = append(listed, vm["vmi"])
	}
	require.Contains(t, listed[:2], "back", "what goes back and forth is found, however few moves that are")
	var nodes []any
	for _, n := range a.queryPanel(t, "Moves between nodes/nodes", "shop") {
		nodes = append(nodes, n["id"])
	}
	for _, e := range a.queryPanel(t, "Moves between nodes/edges", "shop") {
		require.True(t, slices.Contains(nodes, e["source"]) && slices.Contains(nodes, e["target"]), "both ends of %s are nodes", e["id"])
	}

	plain := a.queryRows(t, whoAskedPlainly)
	require.Len(t, plain, 3)
	for i, row := range a.queryPanel(t, "Requesters and stated reasons/A", "tiny") {
		require.Equal(t, fmt.Sprint(plain[i]), fmt.Sprint(row))
	}
}

const whoAskedPlainly = `
SELECT coalesce(r.requester, 'nobody was seen') AS requester, coalesce(r.stated_reason, 'none given') AS stated_reason, m.trigger AS cause, count(DISTINCT m.vmi_uid) AS vms,
  count(*) FILTER (WHERE m.outcome = 'succeeded') AS moves, count(*) FILTER (WHERE m.outcome = 'failed') AS failed, 0::bigint AS running
FROM evictrail_v1.migrations AS m
LEFT JOIN evictrail_v1.eviction_requests AS r USING (cluster, evacuation_id)
WHERE m.namespace = 'tiny'
GROUP BY 1, 2, 3
ORDER BY count(*) DESC, 1, 2`

// sumColumns adds up some columns of rows.
func sumColumns(rows []map[string]any, columns []string) map[string]float64 {
	out := map[string]float64{}
	for _, r := range rows {
		for _, c := range columns {
			switch v := r[c].(type) {
			case int64:
				out[c] += float64(v)
			case float64:
				out[c] += v
			}
		}
	}
	return out
}

// asker asks panels about the migrations of one namespace.
type asker struct {
	conn *pgx.Conn
	of   map[string]dashboards.Query // by panel and letter
}

func (a asker) renderQuery(t *testing.T, q dashboards.Query, namespace string) string {
	t.Helper()
	var nodes []string
	for n := range 100 {
		nodes = append(nodes, fmt.Sprintf("node-%d", n))
	}
	from := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	text, err := dashboardstest.SQL(q.Text, from, from.AddDate(0, 0, 40), 12*time.Hour, dashboardstest.Values{
		"cluster": {"big"}, "namespace": {namespace}, "node": nodes, "cause": {"descheduler", "drain", "user", "KubeVirt update", "other eviction", "controller", "unknown"},
	})
	require.NoError(t, err)
	return text
}

// queryPanel returns the rows of a panel, and all those that it has where it never shows a sample.
func (a asker) queryPanel(t *testing.T, name, namespace string) []map[string]any {
	t.Helper()
	return a.queryRows(t, a.renderQuery(t, a.of[name], namespace))
}

func (a asker) queryUnsampledPanel(t *testing.T, name, namespace string) []map[string]any {
	t.Helper()
	text := a.renderQuery(t, a.of[name], namespace)
	plain := strings.NewReplacer("(SELECT n FROM size) >= 750", "false", "(SELECT n FROM size) < 750", "true").Replace(text)
	require.NotEqual(t, text, plain)
	return a.queryRows(t, plain)
}

func (a asker) queryRows(t *testing.T, text string) []map[string]any {
	t.Helper()
	rows, err := a.conn.Query(t.Context(), text, pgx.QueryExecModeSimpleProtocol)
	require.NoError(t, err)
	out, err := pgx.CollectRows(rows, pgx.RowToMap)
	require.NoError(t, err)
	return out
}

// explainQuery returns how Postgres looks for the rows of a panel.
func (a asker) explainQuery(t *testing.T, q dashboards.Query, namespace string) string {
	t.Helper()
	rows, err := a.conn.Query(t.Context(), "EXPLAIN "+a.renderQuery(t, q, namespace), pgx.QueryExecModeSimpleProtocol)
	require.NoError(t, err)
	lines, err := pgx.CollectRows(rows, pgx.RowTo[string])
	require.NoError(t, err)
	return strings.Join(lines, "\n")
}
