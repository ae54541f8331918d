package store_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/evictrail/evictrail/store"
	"github.com/evictrail/evictrail/store/storetest"
	"github.com/evictrail/evictrail/trail"
)

// benchmarkIncidents stores incidents of VMs, each marked, failing once and moving, in one batch or fact by fact, and reports facts a second with everything that is
// derived of them. storing returns what stores a batch of a cluster, and returns how many facts that were.
func benchmarkIncidents(b *testing.B, storing func(s *store.Store, cluster string) func([]trail.Fact) int) {
	b.Helper()
	for _, size := range []int{1, 100, 2000} {
		b.Run(fmt.Sprintf("batch=%d", size), func(b *testing.B) {
			s := storetest.New(b)
			stored := 0
			for round := 0; b.Loop(); round++ {
				cluster := fmt.Sprintf("c%d", round)
				store := storing(s, cluster)
				for facts := storetest.Incident(cluster, 20); len(facts) > 0; facts = facts[min(size, len(facts)):] {
					stored += store(facts[:min(size, len(facts))])
				}
			}
			b.ReportMetric(float64(stored)/b.Elapsed().Seconds(), "facts/s")
		})
	}
}

// BenchmarkAppend records and derives, batch by batch, as a leader does.
func BenchmarkAppend(b *testing.B) {
	benchmarkIncidents(b, func(s *store.Store, cluster string) func([]trail.Fact) int {
		leader := s.For(cluster, "r1")
		require.NoError(b, leader.Lead(b.Context(), "this", trail.DefaultThresholds()))
		return func(batch []trail.Fact) int {
			news, err := leader.Append(b.Context(), batch)
			require.NoError(b, err)
			_, _, err = leader.CatchUp(b.Context(), nil)
			require.NoError(b, err)
			return len(news.Facts)
		}
	})
}

// BenchmarkDerive derives one VM with a long history.
func BenchmarkDerive(b *testing.B) {
	for _, vms := range []int{1, 100} {
		facts := storetest.Incident("c1", vms)
		for i := range facts {
			if facts[i].Subject.Kind == trail.SubjectVMI { // all of one VM
				facts[i].Subject = trail.VMISubject("shop", "db-0")
			}
		}
		env := trail.NewEnv(facts)
		b.Run(fmt.Sprintf("facts=%d", len(facts)), func(b *testing.B) {
			for b.Loop() {
				trail.Derive(trail.VMISubject("shop", "db-0"), facts, env, start)
			}
			b.ReportMetric(float64(len(facts))*float64(b.N)/b.Elapsed().Seconds(), "facts/s")
		})
	}
}

// largeState fills the tables with a large cluster after a week: 10,000 VMs on 500 nodes, 2,000 migrations a day, 200 open
// evacuations, and cooldowns.
const largeState = `
INSERT INTO evictrail.placements (cluster, subject, placement_id, namespace, vmi, vmi_uid, node, from_at, to_at, arrived_by, left_by, seen_late)
SELECT 'c1', 'vmi:ns/vm-' || i % 10000, gen_random_uuid(), 'ns', 'vm-' || i % 10000, 'uid-' || i % 10000, 'node-' || i % 500, $1::timestamptz - interval '7 days',
    CASE WHEN i >= 10000 THEN $1::timestamptz - interval '1 day' END, 'start', CASE WHEN i >= 10000 THEN 'end' END, false
FROM generate_series(0, 23999) AS i;
INSERT INTO evictrail.migrations (cluster, subject, migration_uid, migration, namespace, vmi, vmi_uid, trigger, trigger_confidence, trigger_evidence,
    source_node, target_node, created_at, scheduling_at, finished_at, outcome, failure_class, seen_late)
SELECT 'c1', 'vmi:ns/vm-' || i % 3000, 'm-' || i, 'm-' || i, 'ns', 'vm-' || i % 3000, 'uid-' || i % 3000, 'descheduler', 'observed', '',
    'node-' || i % 500, 'node-' || i % 499, $1::timestamptz - i * interval '43 s', $1::timestamptz - i * interval '43 s', $1::timestamptz - i * interval '43 s' + interval '40 s',
    CASE WHEN i % 10 = 0 THEN 'failed' ELSE 'succeeded' END, CASE WHEN i % 10 = 0 THEN 'data_plane' END, false
FROM generate_series(1, 14000) AS i;
INSERT INTO evictrail.evacuations (cluster, subject, evacuation_id, namespace, vmi, vmi_uid, node, marked_at, marked_by, trigger, requester_class, confidence,
    evidence, ended_at, outcome, attempts, failed_attempts, seen_late)
SELECT 'c1', 'vmi:ns/vm-' || i % 3000, gen_random_uuid(), 'ns', 'vm-' || i % 3000, 'uid-' || i % 3000, 'node-' || i % 500, $1::timestamptz - i * interval '43 s', 'mark',
    'descheduler', 'descheduler', 'observed', '', CASE WHEN i > 200 THEN $1::timestamptz - i * interval '43 s' + interval '40 s' END, CASE WHEN i > 200 THEN 'migrated' END, 3, 2, false
FROM generate_series(1, 14000) AS i;
INSERT INTO evictrail.cooldown_decisions (cluster, subject, decision_id, namespace, vmi, vmi_uid, node, decided_at, layer, verdict, reason, base_seconds,
    effective_seconds, until, capped, model, origin, inputs)
SELECT 'c1', 'vmi:ns/vm-' || i % 3000, gen_random_uuid(), 'ns', 'vm-' || i % 3000, 'uid-' || i % 3000, 'node-' || i % 499, $1::timestamptz - i * interval '43 s',
    'descheduler_cooldown', 'holds', 'migration_completed', 900, 3600, $1::timestamptz - i * interval '43 s' + interval '1 hour', false, '>=4.22', 'derived', '{}'
FROM generate_series(1, 14000) AS i;
ANALYZE evictrail.placements; ANALYZE evictrail.migrations; ANALYZE evictrail.evacuations; ANALYZE evictrail.cooldown_decisions`

// BenchmarkState reads the state of a large cluster, as every 10 s.
func BenchmarkState(b *testing.B) {
	s := storetest.New(b)
	for _, statement := range strings.Split(largeState, ";") {
		_, err := s.DB.Exec(b.Context(), strings.ReplaceAll(statement, "$1", "'"+start.Format(time.RFC3339)+"'"))
		require.NoError(b, err)
	}
	b.ReportAllocs()
	for b.Loop() {
		state, err := s.State(b.Context(), "c1", start)
		require.NoError(b, err)
		require.Len(b, state.Evacuations, 200)
		require.Len(b, state.Nodes, 500)
	}
}
