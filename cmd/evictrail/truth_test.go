package main

import (
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// loopTruth is a loop that a recording's expected.json names.
type loopTruth struct {
	Kind      string     `json:"kind"`
	Node      *string    `json:"node"`
	Namespace string     `json:"namespace"`
	VMI       string     `json:"vmi"`
	OpenedAt  *time.Time `json:"opened_at"`
	ClosedAt  *time.Time `json:"closed_at"`
	Others    []string   `json:"others"`
	Path      string     `json:"path"`     // not in the truth
	Evidence  []exhibit  `json:"evidence"` // not in the truth
	Advice    string     `json:"advice"`   // not in the truth
}

type exhibit struct {
	EventID *string `json:"event_id"`
	VMI     string  `json:"vmi"`
}

type backoffTruth struct {
	VMI      string    `json:"vmi"`
	FailedAt time.Time `json:"failed_at"`
	Seconds  float64   `json:"seconds"`
	Optional bool      `json:"optional"`
}

type cooldownTruth struct {
	VMI       string    `json:"vmi"`
	DecidedAt time.Time `json:"decided_at"`
	Count     int       `json:"count"`
	Seconds   float64   `json:"effective_seconds"`
	Capped    bool      `json:"capped"`
}

// paths are how the descheduler came to act in the recordings' dual retry loops, as their scenario.md says.
var paths = map[string]string{
	"b-dual-retry-loop": "annotation_lost", "b2-dual-retry-same-vm": "annotation_lost", "b-dual-retry-loop-v1.8": "free_slot",
	"m-dual-retry-loop-with-cooldown": "free_slot", "p-dual-retry-loop-v1.9": "free_slot", "k-blocked-slot": "request_forgotten",
}

// judgedLoops selects the loops that recordings have a truth of: not those that were refuted, and none of the kinds that are newer than the truth.
const judgedLoops = `closed_by IS DISTINCT FROM 'refuted' AND kind NOT IN ('oscillation', 'frequent_moves', 'repeated_failures')`

// compareLoops compares loops with the truth, and that their evidence is there.
func compareLoops(t *testing.T, url, recording string, want []loopTruth) {
	t.Helper()
	got := queryRows[loopTruth](t, url, "SELECT * FROM evictrail_v1.loops WHERE "+judgedLoops)
	require.Len(t, got, len(want))
	facts := queryRows[exhibit](t, url, "SELECT event_id FROM evictrail_v1.events")
	for _, w := range want {
		i := slices.IndexFunc(got, func(g loopTruth) bool { return g.Kind == w.Kind && g.VMI == w.VMI && g.Namespace == w.Namespace })
		require.GreaterOrEqual(t, i, 0, "%s of %s", w.Kind, w.VMI)
		g := got[i]
		require.True(t, closeTo(g.OpenedAt, w.OpenedAt, time.Second), "opening of the %s of %s: got %v, want %v", w.Kind, w.VMI, g.OpenedAt, w.OpenedAt)
		require.Equal(t, w.Node, g.Node)
		require.NotEmpty(t, g.Advice)
		require.NotEmpty(t, g.Evidence)
		for _, e := range g.Evidence {
			require.NotNil(t, e.EventID, "%s of %s", w.Kind, w.VMI)
			require.True(t, slices.ContainsFunc(facts, func(f exhibit) bool { return *f.EventID == *e.EventID }), "fact %s", *e.EventID)
		}
		if w.Kind != "dual_retry" {
			continue
		}
		require.True(t, closeTo(g.ClosedAt, w.ClosedAt, time.Second), "end of the %s of %s: got %v, want %v", w.Kind, w.VMI, g.ClosedAt, w.ClosedAt)
		require.Equal(t, paths[recording], g.Path)
		for _, other := range w.Others {
			require.True(t, slices.ContainsFunc(g.Evidence, func(e exhibit) bool { return e.VMI == w.Namespace+"/"+other }), "evidence about %s", other)
		}
	}
}

const holdsQuery = `
SELECT vmi, decided_at AS failed_at, decided_at, count, extract(epoch FROM effective)::float AS seconds, extract(epoch FROM effective)::float AS effective_seconds, capped
FROM evictrail_v1.cooldown_decisions
WHERE reason = '`

func compareBackoffs(t *testing.T, url string, want []backoffTruth) {
	t.Helper()
	got := queryRows[backoffTruth](t, url, holdsQuery+"migration_failed'")
	for _, w := range want {
		i := slices.IndexFunc(got, func(g backoffTruth) bool {
			return g.VMI == w.VMI && g.Seconds == w.Seconds && closeTo(&g.FailedAt, &w.FailedAt, 1500*time.Millisecond)
		})
		require.True(t, i >= 0 || w.Optional, "backoff of %s after %s", w.VMI, w.FailedAt)
		if i >= 0 {
			got = slices.Delete(got, i, i+1)
		}
	}
	require.Empty(t, got)
}

func compareCooldowns(t *testing.T, url string, want []cooldownTruth) {
	t.Helper()
	got := queryRows[cooldownTruth](t, url, holdsQuery+"migration_completed'")
	require.Len(t, got, len(want))
	for _, w := range want {
		i := slices.IndexFunc(got, func(g cooldownTruth) bool {
			return g.VMI == w.VMI && closeTo(&g.DecidedAt, &w.DecidedAt, 2*time.Second)
		})
		require.GreaterOrEqual(t, i, 0, "cooldown of %s at %s", w.VMI, w.DecidedAt)
		g := got[i]
		require.InDelta(t, w.Seconds, g.Seconds, 1, "cooldown of %s at %s", w.VMI, w.DecidedAt)
		g.DecidedAt, g.Seconds = w.DecidedAt, w.Seconds
		require.Equal(t, w, g)
	}
}
