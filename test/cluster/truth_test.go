package cluster_test

import (
	"cmp"
	"encoding/json"
	"io/fs"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/evictrail/evictrail"
)

// truth is the part of a recording's expected.json that a cluster of now can show: no UIDs, no creation times.
type truth struct {
	Requests    []requestTruth    `json:"eviction_requests"`
	Evacuations []evacuationTruth `json:"evacuations"`
	Migrations  []migrationTruth  `json:"migrations"`
	Loops       []loopTruth       `json:"loops"`
	Backoffs    []backoffTruth    `json:"backoffs"`
	Cooldowns   []cooldownTruth   `json:"cooldowns"`
}

type requestTruth struct {
	RequestedAt    time.Time `json:"requested_at"`
	Namespace      string    `json:"namespace"`
	Pod            string    `json:"pod"`
	VMI            string    `json:"vmi"`
	Node           string    `json:"node"`
	Requester      string    `json:"requester"`
	RequesterClass string    `json:"requester_class"`
	StatedReason   string    `json:"stated_reason"`
	Answer         string    `json:"answer"`
	AnswerCode     int       `json:"answer_code"`
}

type evacuationTruth struct {
	Namespace      string     `json:"namespace"`
	VMI            string     `json:"vmi"`
	Node           string     `json:"node"`
	Strategy       string     `json:"strategy"`
	MarkedAt       time.Time  `json:"marked_at"`
	EndedAt        *time.Time `json:"ended_at"`
	Outcome        string     `json:"outcome"`
	Attempts       int        `json:"attempts"`
	FailedAttempts int        `json:"failed_attempts"`
	RequesterClass string     `json:"requester_class"`
}

type migrationTruth struct {
	Namespace    string      `json:"namespace"`
	Migration    string      `json:"migration"`
	VMI          string      `json:"vmi"`
	Trigger      string      `json:"trigger"`
	Attempt      *int        `json:"attempt"`
	FinishedAt   *time.Time  `json:"finished_at"`
	SourceNode   *string     `json:"source_node"`
	TargetNode   *string     `json:"target_node"`
	Outcome      *string     `json:"outcome"`
	FailureClass *string     `json:"failure_class"`
	FailureText  *string     `json:"failure_text"`
	Mode         *string     `json:"mode"`
	Priority     *string     `json:"priority"`
	Phases       [][2]string `json:"phases"` // with their times
}

type loopTruth struct {
	Kind      string     `json:"kind"`
	Node      *string    `json:"node"`
	Namespace string     `json:"namespace"`
	VMI       string     `json:"vmi"`
	OpenedAt  *time.Time `json:"opened_at"`
	ClosedAt  *time.Time `json:"closed_at"`
	Others    []string   `json:"others"`
	Evidence  []struct { // not in the truth
		VMI string `json:"vmi"`
	} `json:"evidence"`
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

// near is how far a time may be from where the clock has it: times in objects have seconds, and we write and see a bit later
// than it was.
const near = 4 * time.Second

// compareRecording compares what was recorded of a recording with the truth: names, classes, order, outcomes, chains, loops, and times by
// the clock.
func compareRecording(t *testing.T, url, name string, c *clock) {
	t.Helper()
	raw, err := fs.ReadFile(evictrail.Recordings(), name+"/expected.json")
	require.NoError(t, err)
	var want truth
	require.NoError(t, json.Unmarshal(c.shiftTimes(raw), &want))
	compareRequests(t, url, want.Requests)
	compareEvacuations(t, url, want.Evacuations)
	compareMigrations(t, url, want.Migrations)
	compareLoops(t, url, want.Loops)
	compareBackoffs(t, url, want.Backoffs)
	compareCooldowns(t, url, want.Cooldowns)
}

// requireNear compares two times, of which either may be missing.
func requireNear(t *testing.T, want, got *time.Time, what ...any) {
	t.Helper()
	if want == nil || got == nil {
		require.Equal(t, want == nil, got == nil, what...)
		return
	}
	require.WithinDuration(t, *want, *got, near, what...)
}

// inOrder groups rows by what they are about; the rows of each are in their order.
func inOrder[T any](all []T, about func(T) string, at func(T) time.Time) map[string][]T {
	out := map[string][]T{}
	for _, row := range slices.SortedStableFunc(slices.Values(all), func(a, b T) int { return at(a).Compare(at(b)) }) {
		out[about(row)] = append(out[about(row)], row)
	}
	return out
}

// forEachPair calls a function with what is wanted and what there is about the same, in order, after checking that there is as much.
func forEachPair[T any](t *testing.T, want, got []T, about func(T) string, at func(T) time.Time, do func(want, got T)) {
	t.Helper()
	wanted, had := inOrder(want, about, at), inOrder(got, about, at)
	require.Equal(t, slices.Sorted(maps.Keys(wanted)), slices.Sorted(maps.Keys(had)))
	for _, key := range slices.Sorted(maps.Keys(wanted)) {
		require.Len(t, had[key], len(wanted[key]), "%s: want %v", key, wanted[key])
		for i, w := range wanted[key] {
			do(w, had[key][i])
		}
	}
}

func compareRequests(t *testing.T, url string, want []requestTruth) {
	t.Helper()
	got := loadRows[requestTruth](t, url, "SELECT * FROM evictrail_v1.eviction_requests WHERE confidence = 'observed'")
	forEachPair(t, want, got, func(r requestTruth) string { return r.Pod }, func(r requestTruth) time.Time { return r.RequestedAt }, func(w, g requestTruth) {
		requireNear(t, &w.RequestedAt, &g.RequestedAt, "request for %s", w.VMI)
		g.StatedReason, g.RequestedAt = strings.TrimSpace(g.StatedReason), w.RequestedAt
		require.Equal(t, w, g)
	})
}

func compareEvacuations(t *testing.T, url string, want []evacuationTruth) {
	t.Helper()
	got := loadRows[evacuationTruth](t, url, "SELECT * FROM evictrail_v1.evacuations")
	forEachPair(t, want, got, func(e evacuationTruth) string { return e.Namespace + "/" + e.VMI }, func(e evacuationTruth) time.Time { return e.MarkedAt }, func(w, g evacuationTruth) {
		requireNear(t, &w.MarkedAt, &g.MarkedAt, "mark of %s", w.VMI)
		requireNear(t, w.EndedAt, g.EndedAt, "end of the evacuation of %s", w.VMI)
		g.Outcome, g.MarkedAt, g.EndedAt = cmp.Or(g.Outcome, "open"), w.MarkedAt, w.EndedAt
		require.Equal(t, w, g)
	})
}

func compareMigrations(t *testing.T, url string, want []migrationTruth) {
	t.Helper()
	got := loadRows[migrationTruth](t, url, `
SELECT m.*, (SELECT json_agg(json_build_array(p.phase, p.at) ORDER BY p.at) FROM evictrail_v1.migration_phases p WHERE p.migration_uid = m.migration_uid AND p.phase <> '') AS phases
FROM evictrail_v1.migrations m`)
	forEachPair(t, want, got, func(m migrationTruth) string { return m.Namespace + "/" + m.Migration }, func(migrationTruth) time.Time { return time.Time{} }, func(w, g migrationTruth) {
		requireNear(t, w.FinishedAt, g.FinishedAt, "end of %s", w.Migration)
		comparePhases(t, w, g)
		for _, text := range []*string{w.FailureText, g.FailureText} {
			if text != nil {
				*text = strings.TrimSpace(*text)
			}
		}
		for _, known := range []struct{ want, got **string }{{&w.SourceNode, &g.SourceNode}, {&w.TargetNode, &g.TargetNode}, {&w.Mode, &g.Mode}, {&w.FailureText, &g.FailureText}} {
			if *known.want == nil { // unknown in the objects: a better source may know
				*known.got = nil
			}
		}
		g.FinishedAt, g.Phases, w.Phases = w.FinishedAt, nil, nil
		require.Equal(t, w, g)
	})
}

// comparePhases compares what phases a migration went through and when. Several may fall into one second.
func comparePhases(t *testing.T, w, g migrationTruth) {
	t.Helper()
	require.Len(t, g.Phases, len(w.Phases), "phases of %s: %s", w.Migration, g.Phases)
	for _, p := range w.Phases {
		i := slices.IndexFunc(g.Phases, func(had [2]string) bool { return had[0] == p[0] })
		require.GreaterOrEqual(t, i, 0, "%s of %s", p[0], w.Migration)
		wanted, err := time.Parse(time.RFC3339Nano, p[1])
		require.NoError(t, err)
		had, err := time.Parse(time.RFC3339Nano, g.Phases[i][1])
		require.NoError(t, err)
		require.WithinDuration(t, wanted, had, near, "%s of %s", p[0], w.Migration)
	}
}

func compareLoops(t *testing.T, url string, want []loopTruth) {
	t.Helper()
	got := loadRows[loopTruth](t, url, "SELECT * FROM evictrail_v1.loops WHERE closed_by IS DISTINCT FROM 'refuted'")
	if *idle > 0 { // such a loop is one that lasts
		want = slices.DeleteFunc(want, func(l loopTruth) bool { return l.Kind == "endless_retry" })
	}
	at := func(l loopTruth) (at time.Time) {
		if l.OpenedAt != nil {
			at = *l.OpenedAt
		}
		return at
	}
	forEachPair(t, want, got, func(l loopTruth) string { return l.Kind + " of " + l.Namespace + "/" + l.VMI }, at, func(w, g loopTruth) {
		what := w.Kind + " of " + w.VMI
		if w.OpenedAt != nil {
			requireNear(t, w.OpenedAt, g.OpenedAt, "opening of the %s", what)
		}
		if w.Kind == "dual_retry" {
			requireNear(t, w.ClosedAt, g.ClosedAt, "end of the %s", what)
			require.Equal(t, w.Node, g.Node, what)
		}
		for _, other := range w.Others {
			require.True(t, slices.ContainsFunc(g.Evidence, func(e struct {
				VMI string `json:"vmi"`
			}) bool {
				return e.VMI == w.Namespace+"/"+other
			}), "%s: evidence about %s", what, other)
		}
	})
}

const holdsQuery = `
SELECT vmi, decided_at AS failed_at, decided_at, count, extract(epoch FROM effective)::float AS seconds, extract(epoch FROM effective)::float AS effective_seconds, capped
FROM evictrail_v1.cooldown_decisions
WHERE reason = '`

func compareBackoffs(t *testing.T, url string, want []backoffTruth) {
	t.Helper()
	got := loadRows[backoffTruth](t, url, holdsQuery+"migration_failed'")
	for _, w := range want {
		i := slices.IndexFunc(got, func(g backoffTruth) bool {
			return g.VMI == w.VMI && g.Seconds == w.Seconds && g.FailedAt.Sub(w.FailedAt).Abs() <= near
		})
		require.True(t, i >= 0 || w.Optional, "backoff of %s after %s", w.VMI, w.FailedAt)
		if i >= 0 {
			got = slices.Delete(got, i, i+1)
		}
	}
	require.Empty(t, got)
}

// compareCooldowns compares the cooldowns of the descheduler. A migration's own time counts for them: how long they are is only as
// it was where nothing is left out.
func compareCooldowns(t *testing.T, url string, want []cooldownTruth) {
	t.Helper()
	got := loadRows[cooldownTruth](t, url, holdsQuery+"migration_completed'")
	forEachPair(t, want, got, func(c cooldownTruth) string { return c.VMI }, func(c cooldownTruth) time.Time { return c.DecidedAt }, func(w, g cooldownTruth) {
		requireNear(t, &w.DecidedAt, &g.DecidedAt, "cooldown of %s", w.VMI)
		if *idle == 0 {
			require.InDelta(t, w.Seconds, g.Seconds, 2, "cooldown of %s", w.VMI)
		}
		g.DecidedAt, g.Seconds = w.DecidedAt, w.Seconds
		require.Equal(t, w, g)
	})
}
