package main

import (
	"encoding/json"
	"io/fs"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/evictrail/evictrail"
	"github.com/evictrail/evictrail/store"
	"github.com/evictrail/evictrail/store/storetest"
)

// truth is the part of a recording's expected.json that this test compares.
type truth struct {
	Requests    []requestTruth    `json:"eviction_requests"`
	Evacuations []evacuationTruth `json:"evacuations"`
	Migrations  []migrationTruth  `json:"migrations"`

	Loops             []loopTruth     `json:"loops"`
	LoopsWithoutAudit []loopTruth     `json:"loops_without_audit"`
	Backoffs          []backoffTruth  `json:"backoffs"`
	Cooldowns         []cooldownTruth `json:"cooldowns"`
}

type requestTruth struct {
	RequestedAt    time.Time `json:"requested_at"`
	Namespace      string    `json:"namespace"`
	Pod            string    `json:"pod"`
	VMI            string    `json:"vmi"`
	Node           string    `json:"node"`
	Requester      string    `json:"requester"`
	RequesterClass string    `json:"requester_class"`
	StatedReason   *string   `json:"stated_reason"`
	Answer         string    `json:"answer"`
	AnswerCode     int       `json:"answer_code"`
}

type evacuationTruth struct {
	Namespace      string     `json:"namespace"`
	VMI            string     `json:"vmi"`
	VMIUID         string     `json:"vmi_uid"`
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
	UID          string      `json:"migration_uid"`
	VMI          string      `json:"vmi"`
	VMIUID       string      `json:"vmi_uid"`
	Trigger      string      `json:"trigger"`
	Attempt      *int        `json:"attempt"`
	CreatedAt    *time.Time  `json:"created_at"`
	FinishedAt   *time.Time  `json:"finished_at"`
	SourceNode   *string     `json:"source_node"`
	TargetNode   *string     `json:"target_node"`
	Outcome      *string     `json:"outcome"`
	FailureClass *string     `json:"failure_class"`
	FailureText  *string     `json:"failure_text"`
	Mode         *string     `json:"mode"`
	Priority     *string     `json:"priority"`
	Phases       [][2]string `json:"phases"`
}

type phaseRow struct {
	UID   string    `json:"migration_uid"`
	Phase string    `json:"phase"`
	At    time.Time `json:"at"`
}

// TestRecordings plays every recording and compares requests, evacuations, migrations and phases, loops, backoffs and
// cooldowns with what really happened, also when it is played twice, with watches that are cut, with a server that forgets its history, and with an
// audit log that comes late, much too late, or never. The short form plays each way once, each time another recording.
func TestRecordings(t *testing.T) {
	t.Parallel()
	ways := map[string][][]string{
		"twice":    {nil, nil},
		"cut":      {{"--cut-every=37"}},
		"expired":  {{"--expire-every=120"}, {"--expire-every=120"}},
		"delayed":  {{"--audit-delay=30s"}},
		"imported": {{"--no-audit"}}, // and the audit log afterwards
	}
	for i, name := range listRecordings(t) {
		raw, err := fs.ReadFile(evictrail.Recordings(), name+"/expected.json")
		require.NoError(t, err)
		var want truth
		require.NoError(t, json.Unmarshal(raw, &want))
		for n, way := range slices.Sorted(maps.Keys(ways)) {
			plays := ways[way]
			if testing.Short() && (i != 2*n || n > 1) {
				continue
			}
			t.Run(name+"/"+way, func(t *testing.T) {
				t.Parallel()
				url := storetest.NewURL(t)
				var before map[string][]string
				for i, args := range plays {
					if way != "cut" { // who samples the metrics waits for each batch: what comes together does so there alone
						metricsFile := filepath.Join(t.TempDir(), "metrics.om")
						playBuiltin(t, url, name, append([]string{"--metrics-out", metricsFile, "--evacuation-objective=any=2m"}, args...)...)
						compareCounters(t, url, name, metricsFile, i > 0)
					} else {
						playBuiltin(t, url, name, args...)
					}
					if i > 0 {
						require.Equal(t, before, readPublicViews(t, url), "rows after the second play")
					}
					before = readPublicViews(t, url)
				}
				if way == "imported" {
					compareTruth(t, url, name, want, false)
					importShuffled(t, url, name)
					before = readPublicViews(t, url)
				}
				rederiveCluster(t, url, name)
				require.Equal(t, before, readPublicViews(t, url), "rows derived again from the facts")
				compareTruth(t, url, name, want, true)
				if way == "expired" {
					require.NotEmpty(t, before["gaps"], "each gap is a row")
				}
			})
		}
	}
}

// compareTruth compares what was recorded with what happened, with its audit log or without.
func compareTruth(t *testing.T, url, name string, want truth, audit bool) {
	t.Helper()
	loops := want.LoopsWithoutAudit
	if audit {
		compareRequests(t, url, want.Requests)
		loops = want.Loops
	}
	compareEvacuations(t, url, want.Evacuations, audit)
	compareMigrations(t, url, want.Migrations, audit)
	compareLoops(t, url, name, loops)
	compareBackoffs(t, url, want.Backoffs)
	compareCooldowns(t, url, want.Cooldowns)
}

// importShuffled imports the audit log of a recording in a random order, with each line twice.
func importShuffled(t *testing.T, url, name string) {
	t.Helper()
	lines := strings.SplitAfter(strings.TrimSpace(auditLog(t, name))+"\n", "\n")
	lines = append(lines, lines...)
	rand.New(rand.NewPCG(7, 7)).Shuffle(len(lines), func(i, j int) { lines[i], lines[j] = lines[j], lines[i] })
	file := filepath.Join(t.TempDir(), "audit.log")
	require.NoError(t, os.WriteFile(file, []byte(strings.Join(lines, "")), 0o600))
	code, out, stderr := runCommand(t, "audit", "import", file, "--cluster", name, "--database-url", url)
	require.Equal(t, exitFound, code, stderr)
	require.Contains(t, out, "0 refused")
}

func compareRequests(t *testing.T, url string, want []requestTruth) {
	t.Helper()
	got := queryRows[requestTruth](t, url, "SELECT * FROM evictrail_v1.eviction_requests WHERE confidence = 'observed'")
	require.Len(t, got, len(want))
	for _, w := range want {
		i := slices.IndexFunc(got, func(g requestTruth) bool {
			return g.Pod == w.Pod && closeTo(&g.RequestedAt, &w.RequestedAt, 10*time.Millisecond)
		})
		require.GreaterOrEqual(t, i, 0, "request for %s at %s", w.VMI, w.RequestedAt)
		g := got[i]
		if g.StatedReason != nil {
			*g.StatedReason = strings.TrimSpace(*g.StatedReason)
		}
		g.RequestedAt = w.RequestedAt
		require.Equal(t, w, g)
	}
}

// rederiveCluster derives everything of a cluster again, from nothing.
func rederiveCluster(t *testing.T, url, cluster string) {
	t.Helper()
	s, err := store.Open(t.Context(), url, "")
	require.NoError(t, err)
	defer s.Close()
	for _, table := range []string{
		"eviction_requests", "evacuations", "migrations", "placements", "cooldown_decisions", "loops", "drains", "drain_blockers", "gaps", "timeline",
	} {
		execSQL(t, url, "DELETE FROM evictrail."+table)
	}
	n, err := s.Rederive(t.Context(), cluster)
	require.NoError(t, err)
	require.Positive(t, n)
}

func compareEvacuations(t *testing.T, url string, want []evacuationTruth, audit bool) {
	t.Helper()
	got := queryRows[evacuationTruth](t, url, "SELECT * FROM evictrail_v1.evacuations")
	require.Len(t, got, len(want))
	for _, w := range want {
		i := slices.IndexFunc(got, func(g evacuationTruth) bool {
			return g.VMIUID == w.VMIUID && closeTo(&g.MarkedAt, &w.MarkedAt, 1500*time.Millisecond)
		})
		require.GreaterOrEqual(t, i, 0, "evacuation of %s at %s", w.VMI, w.MarkedAt)
		g := got[i]
		require.True(t, closeTo(g.EndedAt, w.EndedAt, 2*time.Second), "end of the evacuation of %s: got %v, want %v", w.VMI, g.EndedAt, w.EndedAt)
		if w.Outcome == "open" {
			w.Outcome = ""
		}
		g.MarkedAt, g.EndedAt = w.MarkedAt, w.EndedAt
		if !audit {
			g.RequesterClass = w.RequesterClass
		}
		require.Equal(t, w, g)
	}
}

func compareMigrations(t *testing.T, url string, want []migrationTruth, audit bool) {
	t.Helper()
	got := queryRows[migrationTruth](t, url, "SELECT * FROM evictrail_v1.migrations")
	require.Len(t, got, len(want))
	phases := queryRows[phaseRow](t, url, "SELECT * FROM evictrail_v1.migration_phases")
	for _, w := range want {
		i := slices.IndexFunc(got, func(g migrationTruth) bool { return g.UID == w.UID })
		require.GreaterOrEqual(t, i, 0, "migration %s", w.Migration)
		g := got[i]
		require.True(t, closeTo(g.CreatedAt, w.CreatedAt, time.Second), "creation of %s: got %v, want %v", w.Migration, g.CreatedAt, w.CreatedAt)
		require.True(t, closeTo(g.FinishedAt, w.FinishedAt, 1500*time.Millisecond), "end of %s: got %v, want %v", w.Migration, g.FinishedAt, w.FinishedAt)
		comparePhases(t, w, phases)
		forgiveUnknown(&g, &w, audit)
		require.Equal(t, w, g)
	}
}

// forgiveUnknown takes out what the truth does not know, what only an audit log shows, and what was compared already.
func forgiveUnknown(g, w *migrationTruth, audit bool) {
	if w.SourceNode == nil {
		g.SourceNode = nil
	}
	if w.TargetNode == nil {
		g.TargetNode = nil
	}
	if w.Mode == nil {
		g.Mode = nil
	}
	if w.FailureText == nil {
		g.FailureText = nil
	} else if g.FailureText != nil {
		*g.FailureText, *w.FailureText = strings.TrimSpace(*g.FailureText), strings.TrimSpace(*w.FailureText)
	}
	if !audit && (w.Trigger == "descheduler" || w.Trigger == "eviction") {
		g.Trigger = w.Trigger
	}
	g.CreatedAt, g.FinishedAt, g.Phases, w.Phases = w.CreatedAt, w.FinishedAt, nil, nil
}

func comparePhases(t *testing.T, w migrationTruth, phases []phaseRow) {
	t.Helper()
	at := map[string]time.Time{}
	for _, p := range phases {
		if p.UID == w.UID {
			at[p.Phase] = p.At
		}
	}
	require.Len(t, at, len(w.Phases), "phases of %s", w.Migration)
	for _, p := range w.Phases {
		want, err := time.Parse(time.RFC3339, p[1])
		require.NoError(t, err)
		require.Contains(t, at, p[0], w.Migration)
		require.WithinDuration(t, want, at[p[0]], 1500*time.Millisecond, "%s of %s", p[0], w.Migration)
	}
}
