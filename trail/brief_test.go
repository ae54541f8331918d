package trail_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/evictrail/evictrail/trail"
	"github.com/evictrail/evictrail/trail/tracker"
)

// TestBrief asks of one VM after another for the answer in a few lines.
func TestBrief(t *testing.T) {
	t.Parallel()
	failTwice := func(h *history) {
		h.changeVM(0, "db", nil)
		h.observePod(0, "virt-launcher-db-a", "db", "n1", "", nil)
		h.observeRequest(time.Minute, "a1", "virt-launcher-db-a", "alice", `Eviction triggered evacuation of VMI "shop/db"`, func(o *tracker.RequestObservation) {
			o.Detail.Agent, o.Detail.StatedReason = "kubectl/v1.35", strings.Repeat("a long reason ", 20)
		})
		h.observeRequest(90*time.Second, "a2", "virt-launcher-db-a", "bob", `Evacuation in progress: VMI "shop/db"`, nil)
		h.markVM(time.Minute, "db", "")
		h.createMigration(2*time.Minute, "a", "db", nil)
		h.failMigration(3*time.Minute, "a")
		h.createMigration(4*time.Minute, "b", "db", nil)
		h.failMigration(5*time.Minute, "b")
	}
	for _, c := range []struct {
		name    string
		arrange func(*history)
		want    []string
	}{
		{"it was never seen", func(*history) {}, []string{"Status: Not running"}},
		{"nothing happened", func(h *history) { h.changeVM(0, "db", nil) }, []string{"Status: On n1 for 10 min; free to move"}},
		{"its attempts fail", failTwice, []string{
			"Status: On n1 for 10 min; to leave it for 9 min 0 s; failing; next attempt overdue by 4 min 20 s",
			`Asked by: alice (kubectl), at 2026-11-21 00:01:00Z, saying "` + strings.Repeat("a long reason ", 8) + `a lon…"; 1 later request, the last at 2026-11-21 00:01:30Z`,
			"Attempts: 2 failed; last failure at 2026-11-21 00:05:00Z: target setup, ended before hand-over",
			"Outlook: Not until something changes: KubeVirt has made no migration since 2026-11-21 00:05:40Z, and nothing that is recorded keeps it from doing so. " +
				"Smallest change: check that virt-controller runs and leads, and that migrations under way get on",
		}},
		{"its owner has to move it", func(h *history) {
			h.changeVM(0, "db", func(v *tracker.VMIObservation) { v.Strategy = trail.StrategyExternal })
			h.markVM(time.Minute, "db", "descheduler")
		}, []string{
			"Status: On n1 for 10 min; to leave it for 9 min 0 s; left to the owner",
			"Asked by: The descheduler, marked at 2026-11-21 00:01:00Z (descheduler, asserted)",
			"Attempts: None by KubeVirt: its owner must move it",
			"Outlook: Not until something changes: its eviction strategy is External: KubeVirt makes no migration. " +
				"Smallest change: have the controller that owns the VM move it, or withdraw the eviction",
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			h := newHistory()
			c.arrange(h)
			var got []string
			for _, l := range h.deriveAt(10*time.Minute).Why("shop", "db").Brief.Lines() {
				got = append(got, l.Label+": "+l.Text)
			}
			require.Equal(t, c.want, got)
		})
	}
}

// TestFoldAttempts folds the attempts of a long retry: the newest are shown singly, runs of one failure before them as one, and what is left is counted.
func TestFoldAttempts(t *testing.T) {
	t.Parallel()
	start := time.Date(2026, 11, 21, 0, 0, 0, 0, time.UTC)
	var all []trail.Migration
	evacuation := trail.FactID{1}
	for i := 1; i <= 246; i++ {
		m := trail.Migration{Attempt: i, EvacuationID: new(evacuation), CreatedAt: start.Add(time.Duration(i) * time.Minute), Outcome: trail.OutcomeFailed, FailureClass: trail.FailureDataPlane, FailureReason: "connection_lost"}
		switch {
		case i == 246:
			m.Outcome, m.FailureClass, m.FailureReason = "", "", ""
		case i < 12 && i%2 == 0:
			m.FailureReason = "libvirt_error"
		}
		all = append(all, m)
	}
	runs, rest := trail.FoldAttempts(all, 10, 5)
	require.Len(t, runs, 15)
	require.Equal(t, 6, rest)
	require.Equal(t, 246, runs[0].First.Attempt)
	require.Equal(t, 1, runs[9].Count)
	require.Equal(t, "Attempts 11-236: 226 × data transfer, connection lost, first 2026-11-21 00:11:00Z, last 2026-11-21 03:56:00Z", runs[10].String())
	counted := rest
	for _, r := range runs {
		counted += r.Count
	}
	require.Equal(t, len(all), counted)

	require.Equal(t, "Attempt 246 (): under way since 2026-11-21 04:06:00Z", runs[0].String())
	all[244].FinishedAt = all[244].CreatedAt.Add(time.Minute)
	require.Equal(t, "Attempt 245 (): failed 2026-11-21 04:06:00Z after 1m0s: data transfer, connection lost", runs[1].String())
	moved := trail.Migration{Name: "m", Outcome: trail.OutcomeSucceeded, SourceNode: "n1", TargetNode: "n2", FinishedAt: start}
	require.Equal(t, "Migration m: moved n1 → n2 at 2026-11-21 00:00:00Z", trail.AttemptRun{First: &moved, Last: &moved, Count: 1}.String())

	for i := range all { // of two evacuations that follow each other the attempts are no run
		if i < 100 {
			all[i].EvacuationID = new(trail.FactID{2})
		}
		all[i].Outcome, all[i].FailureClass, all[i].FailureReason = trail.OutcomeFailed, trail.FailureDataPlane, "connection_lost"
	}
	runs, rest = trail.FoldAttempts(all, 0, 9)
	require.Zero(t, rest)
	require.Equal(t, []int{146, 100}, []int{runs[0].Count, runs[1].Count})

	for i := range all { // what succeeded is shown singly
		all[i].Outcome = trail.OutcomeSucceeded
	}
	runs, rest = trail.FoldAttempts(all, 10, 5)
	require.Equal(t, []int{15, 231}, []int{len(runs), rest}, fmt.Sprint(runs))
}
