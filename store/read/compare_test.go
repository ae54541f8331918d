package read_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/evictrail/evictrail/store/storetest"
	"github.com/evictrail/evictrail/trail"
)

// daysOfClusters are days of three clusters: one with loops, one whose migrations fail more, and one with gaps.
const daysOfClusters = `
INSERT INTO evictrail.cluster_days (
    cluster, day, kubevirt, moved, failed, aborted, failed_scheduling, failed_control_plane, failed_data_plane, failed_post_copy, failed_guest_lost, failed_unknown,
    needed, not_needed, helped, harmed, objectives_met, objectives_missed, loops, dual_retry_loops, gaps, counted_at
)
SELECT c.name, d::date, CASE WHEN c.name = 'looping' AND d < '2026-03-03' THEN 'v1.6.1' ELSE c.version END,
    8, c.failed, 1, 0, 0, c.failed - 1, 0, 0, 1, 2, 6, 1, 0, 3, 1, c.loops, c.loops, c.gaps, '2026-03-05T01:00:00Z'
FROM (VALUES ('failing', 'v1.6.2', 4, 0, 0), ('looping', 'v1.7.0', 2, 1, 0), ('quiet', NULL, 1, 0, 1)) AS c(name, version, failed, loops, gaps)
CROSS JOIN generate_series(timestamp '2026-03-01', timestamp '2026-03-04', interval '1 day') AS d`

// TestClustersAreCompared adds up days of clusters: over all that there are, over some, by version, and for who may see only a namespace.
func TestClustersAreCompared(t *testing.T) {
	t.Parallel()
	storetest.SkipInShort(t)
	s := storetest.New(t)
	_, err := s.DB.Exec(t.Context(), daysOfClusters)
	require.NoError(t, err)
	march := func(day int) time.Time { return time.Date(2026, 3, day, 0, 0, 0, 0, time.UTC) }
	names := func(q trail.CompareQuery) (out []string) {
		t.Helper()
		all, err := s.Compare(t.Context(), q)
		require.NoError(t, err)
		for _, c := range all {
			out = append(out, c.Cluster)
		}
		return out
	}
	require.Equal(t, []string{"looping", "failing", "quiet"}, names(trail.CompareQuery{}))
	require.Equal(t, []string{"failing"}, names(trail.CompareQuery{KubeVirt: "1.6"}), "what ran it earlier is not among them")
	require.Equal(t, []string{"looping"}, names(trail.CompareQuery{KubeVirt: "v1.7"}))
	require.Equal(t, []string{"looping", "failing"}, names(trail.CompareQuery{KubeVirt: "1.6", Until: march(2)}), "the version is that of the last day that is asked for")
	require.Empty(t, names(trail.CompareQuery{Since: march(5)}))

	all, err := s.Compare(t.Context(), trail.CompareQuery{Since: march(2).Add(23 * time.Hour), Until: march(3).Add(time.Hour)})
	require.NoError(t, err)
	require.Equal(t, trail.ClusterComparison{
		Cluster: "failing", KubeVirt: "v1.6.2", First: march(2), Last: march(3), Days: 2, Moved: 16, Failed: 8, Aborted: 2, Needed: 4, Needless: 12, Helped: 2,
		Met: 6, Missed: 2, Failures: map[trail.FailureClass]int{trail.FailureDataPlane: 6, trail.FailureUnknown: 2}, CountedAt: march(5).Add(time.Hour),
	}, all[1])
	share, known := all[1].FailedShare()
	require.True(t, known)
	require.InDelta(t, 1.0/3, share, 1e-9)
	class, count := all[1].MostFrequent()
	require.Equal(t, trail.FailureDataPlane, class)
	require.Equal(t, 6, count)
	require.Equal(t, 2, all[2].GapDays)

	hidden, err := s.SeenBy(trail.Only("failing", "shop")).Compare(t.Context(), trail.CompareQuery{})
	require.NoError(t, err)
	require.Empty(t, hidden, "the counts are those of all namespaces")
}

// BenchmarkCompareYear compares 300 clusters over a year of days.
func BenchmarkCompareYear(b *testing.B) {
	s := storetest.New(b)
	_, err := s.DB.Exec(b.Context(), `
INSERT INTO evictrail.cluster_days
SELECT 'c' || c, d::date, 'v1.6.2', 'rules', 8, 2, 1, 0, 0, 2, 0, 0, 0, 2, 6, 1, 0, 3, 1, c % 3, c % 2, 0, now()
FROM generate_series(1, 300) AS c
CROSS JOIN generate_series(timestamp '2026-01-01', timestamp '2026-12-31', interval '1 day') AS d;
ANALYZE evictrail.cluster_days`)
	if err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		all, err := s.Compare(b.Context(), trail.CompareQuery{Since: time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)})
		if err != nil || len(all) != 300 {
			b.Fatal(len(all), err)
		}
	}
}
