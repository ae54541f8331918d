package chaos_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/evictrail/evictrail/store/storetest"
)

// TestT7ClockSkew records clusters whose clocks are ahead of ours or behind, or are set back while migrations are under way: each transition is
// stored once, in the order of its source, nothing takes less than no time, and the gauge that the alert looks at says how far the clocks are apart.
//
// T7 of the chaos matrix (docs/chaos.md): clocks that are apart, or are set back.
func TestT7ClockSkew(t *testing.T) {
	t.Parallel()
	r := newSeededRand(t)
	for _, skew := range []struct{ ahead, back time.Duration }{
		{5 * time.Second, 0}, {-5 * time.Second, 0}, {10 * time.Minute, 0}, {-10 * time.Minute, 0}, {0, 10 * time.Minute}, {time.Second, time.Second},
	} {
		name := fmt.Sprintf("%s ahead", skew.ahead)
		if skew.back > 0 {
			name += fmt.Sprintf(", then set back by %s", skew.back)
		}
		database := storetest.NewURL(t)
		transitions := chooseCount(150, 5000)
		by := &clock{at: time.Now().Add(skew.ahead), apart: 30 * time.Millisecond, back: skew.back, marks: true}
		c := startClusterAhead(t, newTraceBy(by, r, nodes, transitions/15, transitions), skew.ahead)
		reported := 0.0
		recordCluster(t, c, database, func(e *evictrail) {
			e.awaitReady()
			for !c.isComplete() {
				c.releaseTransitions(10)
				awaitStored(t, database, c.released)
			}
			reported = e.sumMetric("evictrail_clock_skew_seconds", `peer="apiserver"`)
		})
		requireTruth(t, database, c.truth)
		requireInOrder(t, database, c.truth)
		backwards := requireNoTimeBackwards(t, database)
		t.Logf("T7: %-38s %d transitions, skew of %.1f s reported, %d durations of which none is negative", name, len(c.truth), reported, backwards)
		require.InDelta(t, skew.ahead.Seconds(), reported, 1.5)
		requireRederived(t, database)
	}
}

// requireInOrder wants the transitions of each migration in the order in which its API server sent them, whatever their times are.
func requireInOrder(t *testing.T, database string, truth []transition) {
	t.Helper()
	want, got := map[string]string{}, map[string]string{}
	for _, x := range truth {
		want[x.UID] += x.Phase + " "
	}
	for _, x := range loadRows[transition](t, database, phasesQuery+" ORDER BY length(object_version), object_version, at, event_id") {
		got[x.UID] += x.Phase + " "
	}
	require.Equal(t, want, got)
}

// spans are pairs of times in views, of which the second may be missing and is never before the first.
var spans = []struct{ view, from, until string }{
	{"evacuations", "marked_at", "ended_at"}, {"placements", "from_at", "to_at"}, {"loops", "opened_at", "closed_at"},
	{"gaps", "opened_at", "closed_at"}, {"cooldown_decisions", "decided_at", "until"},
}

// requireNoTimeBackwards looks at all intervals and spans that users can read, and returns how many there are.
func requireNoTimeBackwards(t *testing.T, database string) int {
	t.Helper()
	queries := []string{}
	for _, c := range loadRows[struct{ View, Column string }](t, database, `
SELECT table_name AS view, column_name AS column FROM information_schema.columns WHERE table_schema = 'evictrail_v1' AND data_type = 'interval'`) {
		queries = append(queries, fmt.Sprintf("SELECT '%[1]s.%[2]s' AS what, %[2]s AS took FROM evictrail_v1.%[1]s WHERE %[2]s IS NOT NULL", c.View, c.Column))
	}
	for _, s := range spans {
		queries = append(queries, fmt.Sprintf("SELECT '%[1]s: %[3]s', %[3]s - %[2]s FROM evictrail_v1.%[1]s WHERE %[3]s IS NOT NULL", s.view, s.from, s.until))
	}
	all := "(" + strings.Join(queries, ") UNION ALL (") + ")"
	negative := loadRows[struct {
		What, Took string
		N          int
	}](t, database, "SELECT what, min(took) AS took, count(*) AS n FROM ("+all+") x WHERE took < interval '0' GROUP BY what")
	require.Empty(t, negative)
	return loadNumber(t, database, "SELECT count(*) AS n FROM ("+all+") x")
}
