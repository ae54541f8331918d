package read_test

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/evictrail/evictrail/store"
	"github.com/evictrail/evictrail/store/storetest"
	"github.com/evictrail/evictrail/trail"
)

// TestQueue fills a queue of migrations: what wait comes by priority, then by age, in each cluster by itself; what runs or is over is not in it and fills slots.
func TestQueue(t *testing.T) {
	t.Parallel()
	s, err := store.Open(t.Context(), storetest.NewURL(t), "")
	require.NoError(t, err)
	t.Cleanup(s.Close)
	_, err = s.DB.Exec(t.Context(), `
INSERT INTO evictrail.clusters (cluster, alive_at) VALUES ('c1', '2026-11-21 01:00:00Z'), ('c2', '2026-11-21 01:00:00Z');
INSERT INTO evictrail.migrations (cluster, subject, migration_uid, migration, namespace, vmi, trigger, trigger_confidence, trigger_evidence, priority, source_node, created_at, scheduling_at, finished_at, outcome, wait_reason, seen_late, open_until)
SELECT cluster, 'vmi:shop/' || vmi, cluster || vmi, 'm-' || vmi, 'shop', vmi, 'eviction', 'inferred', 'x', priority, node, created_at::timestamptz, scheduling_at::timestamptz, finished_at::timestamptz, outcome, wait_reason, false, coalesce(finished_at::timestamptz, 'infinity')
FROM (VALUES
  ('c1', 'over',     NULL,                 'n1', '2026-11-21 00:10Z', '2026-11-21 00:11Z', '2026-11-21 00:12Z', 'succeeded', NULL),
  ('c1', 'runs',     NULL,                 'n1', '2026-11-21 00:20Z', '2026-11-21 00:21Z', NULL, NULL, NULL),
  ('c1', 'runs-too', NULL,                 'n2', '2026-11-21 00:20Z', '2026-11-21 00:21Z', NULL, NULL, NULL),
  ('c1', 'old',      NULL,                 'n1', '2026-11-21 00:30Z', NULL, NULL, NULL, 'cluster_limit'),
  ('c1', 'rebalance', 'system-maintenance', 'n1', '2026-11-21 00:31Z', NULL, NULL, NULL, 'cluster_limit'),
  ('c1', 'drained',  'system-critical',    'n2', '2026-11-21 00:40Z', NULL, NULL, NULL, 'cluster_limit'),
  ('c1', 'user',     'user-triggered',     'n1', '2026-11-21 00:35Z', NULL, NULL, NULL, 'queued'),
  ('c2', 'other',    NULL,                 'n1', '2026-11-21 00:40Z', NULL, NULL, NULL, 'node_limit')
) AS v(cluster, vmi, priority, node, created_at, scheduling_at, finished_at, outcome, wait_reason);
INSERT INTO evictrail.events (cluster, subject, occurred_at, id, kind, reason, clock, observed_at, seen_late, object_kind, object_uid, object_version, what, value, evidence, detail)
SELECT 'c2', 'config:KubeVirt', at, gen_random_uuid(), 'config_seen', 'kubevirt_settings', 'observer', at, true, 'KubeVirt', 'u', '1', 'settings', 'x', 'x', detail::jsonb
FROM (VALUES ('2026-11-20 00:00Z'::timestamptz, '{"kubevirt": {"parallel_migrations_per_cluster": 3}}'), ('2026-11-20 01:00Z', '{"kubevirt": {"parallel_migrations_per_cluster": 10}}')) AS v(at, detail)`)
	require.NoError(t, err)
	page, err := s.ListJSON(t.Context(), trail.ViewQueue, trail.Query{Oldest: true})
	require.NoError(t, err)
	type place struct {
		Place      int     `json:"place"`
		Waiting    int     `json:"waiting"`
		OnNode     int     `json:"place_on_node"`
		After      *string `json:"after_vmi"`
		Running    int     `json:"running_in_cluster"`
		RunsOnNode int     `json:"running_from_node"`
		Limit      int     `json:"cluster_limit"`
		NodeLimit  int     `json:"node_limit"`
	}
	got := map[string]place{}
	for _, raw := range page.Rows {
		var name struct {
			VMI string `json:"vmi"`
		}
		var p place
		require.NoError(t, json.Unmarshal(raw, &name))
		require.NoError(t, json.Unmarshal(raw, &p))
		got[name.VMI] = p
	}
	require.Equal(t, map[string]place{
		"drained":   {1, 4, 1, nil, 2, 1, 5, 2},
		"user":      {2, 4, 1, new("shop/drained"), 2, 1, 5, 2},
		"rebalance": {3, 4, 2, new("shop/user"), 2, 1, 5, 2},
		"old":       {4, 4, 3, new("shop/rebalance"), 2, 1, 5, 2},
		"other":     {1, 1, 1, nil, 0, 0, 10, 2}, // the limit of the settings that came last
	}, got)
}
