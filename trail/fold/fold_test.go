package fold

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/evictrail/evictrail/trail"
	"github.com/evictrail/evictrail/trail/sim"
	"github.com/evictrail/evictrail/trail/tracker"
)

// simulateHistories returns the facts of simulated hours, one after the other with hours between them in which nothing happens, in the order in which they were seen.
func simulateHistories(seeds ...uint64) []trail.Fact {
	tr := tracker.New("c1")
	var facts []trail.Fact
	start := time.Date(2026, 3, 2, 0, 0, 0, 0, time.UTC)
	for i, seed := range seeds {
		run := sim.NewAt(seed, start.Add(time.Duration(i)*7*time.Hour))
		for _, o := range run.Observations {
			for _, f := range tr.Observe(o) {
				f.OccurredAt, f.ObservedAt = f.OccurredAt.Truncate(time.Microsecond), f.ObservedAt.Truncate(time.Microsecond)
				facts = append(facts, f)
			}
		}
	}
	return facts
}

// encodeRows returns rows by subject, table and key, as they are written.
func (m *memory) encodeRows() map[string]string {
	out := map[string]string{}
	for s, tables := range m.rows {
		for table, rows := range tables {
			for key, row := range rows {
				text, err := json.Marshal(row)
				if err != nil {
					panic(err)
				}
				out[fmt.Sprintf("%s %s %s", table, s, key)] = string(text)
			}
		}
	}
	return out
}

// deriveExpectedRows returns the rows of all facts, as they are written.
func deriveExpectedRows(t *testing.T, facts []trail.Fact, rules trail.Thresholds, now time.Time) map[string]string {
	t.Helper()
	m := newMemory(rules)
	for s, d := range trail.DeriveAll(facts, rules, now).Rows {
		c := &Changes{}
		_, _, err := c.updateWindow(&Window{Subject: s}, d, time.Time{}, now, true)
		require.NoError(t, err)
		m.applyChanges(c)
	}
	return m.encodeRows()
}

// withoutRefuted leaves out loops that were reported and turned out to be none: all facts together never show them.
func withoutRefuted(rows map[string]string) map[string]string {
	out := map[string]string{}
	for key, text := range rows {
		var l trail.Loop
		if key[:5] == "loops" {
			_ = json.Unmarshal([]byte(text), &l)
		}
		if l.ClosedBy != trail.LoopRefuted {
			out[key] = text
		}
	}
	return out
}

// addHanded returns marks of facts that a follower recorded, together with those of facts that were handed over.
func addHanded(marks, handed []Dirty) []Dirty {
	for i := range marks {
		marks[i].Facts = nil
	}
	for _, h := range handed {
		if i := slices.IndexFunc(marks, func(m Dirty) bool { return m.Subject == h.Subject }); i >= 0 {
			h.Since = minTime(h.Since, marks[i].Since)
			marks[i] = h
		} else {
			marks = append(marks, h)
		}
	}
	slices.SortFunc(marks, func(a, b Dirty) int { return compareSubjects(a.Subject, b.Subject) })
	return marks
}

// TestFoldIsDeriveAll folds histories in batches of any size, some facts late, while windows are evicted and the process is restarted at random:
// the rows are those of all facts.
func TestFoldIsDeriveAll(t *testing.T) {
	t.Parallel()
	rules := trail.DefaultThresholds()
	rules.Objectives = trail.Objectives{"any": 5 * time.Minute, "any@pool/gpu": time.Minute} // so that the labels of nodes matter
	histories := [][]uint64{{2, 3}, {1}, {52, 24, 20}, {116, 216, 316}, {14, 62, 54}, {30, 79, 40}}
	if testing.Short() {
		histories = histories[:2]
	}
	for _, seeds := range histories {
		t.Run(fmt.Sprint(seeds), func(t *testing.T) {
			t.Parallel()
			r := rand.New(rand.NewPCG(seeds[0], 7))
			m := newMemory(rules)
			c := New(m, 1<<20)
			var deferred map[trail.Subject]time.Time
			fold := func(now time.Time, dirty []Dirty) {
				dirty = m.addDeferred(dirty, deferred)
				changes, err := c.Fold(t.Context(), Batch{Now: now, Thresholds: rules, Dirty: dirty, Others: r.IntN(5), Nodes: r.IntN(5)})
				require.NoError(t, err)
				require.Empty(t, changes.Failed)
				m.applyChanges(changes)
				deferred = changes.Deferred
			}
			all := simulateHistories(seeds...)
			var recorded, late []trail.Fact
			for len(all) > 0 || len(late) > 0 {
				n := min(1+r.IntN(60), len(all))
				var some []trail.Fact
				for _, f := range all[:n] {
					if r.IntN(40) == 0 {
						late = append(late, f)
					} else {
						some = append(some, f)
					}
				}
				if all = all[n:]; r.IntN(8) == 0 || len(all) == 0 {
					some, late = append(some, late...), nil
				}
				if len(some) == 0 {
					continue
				}
				recorded = append(recorded, some...)
				now := recorded[0].ObservedAt
				for i := range recorded {
					now = maxTime(now, recorded[i].ObservedAt)
				}
				byFollower := 0 // how many a follower recorded before
				if r.IntN(5) == 0 {
					byFollower = r.IntN(len(some))
				}
				dirty := addHanded(m.recordFacts(some[:byFollower]), m.recordFacts(some[byFollower:]))
				switch r.IntN(6) {
				case 0:
					c.Reset()
				case 1: // a follower recorded them
					for i := range dirty {
						dirty[i].Facts = nil
					}
				case 2:
					c.bound = 1 << (10 + r.IntN(14))
				}
				fold(now, dirty)
				if len(all) > 0 && r.IntN(40) > 0 {
					continue
				}
				for range 1000 {
					var again []Dirty
					for s, at := range m.due {
						if !at.IsZero() && !at.After(now) {
							again = append(again, Dirty{Subject: s, Since: at, Due: true})
						}
					}
					if len(again) == 0 && len(deferred) == 0 {
						break
					}
					slices.SortFunc(again, func(a, b Dirty) int { return compareSubjects(a.Subject, b.Subject) })
					fold(now, again)
				}
				require.Equal(t, deriveExpectedRows(t, recorded, rules, now), withoutRefuted(m.encodeRows()), "after %d facts", len(recorded))
			}
			t.Log(len(recorded), "facts", m.reads, "reads", c.Size(), "bytes")
		})
	}
}

// TestHandedFactsAreNotAll has a follower record a request before the leader does: what the leader has in memory is not all that is to be folded, unless it folded
// what was before.
func TestHandedFactsAreNotAll(t *testing.T) {
	t.Parallel()
	of := trail.Subject{Kind: trail.SubjectNamespace, Name: "vms"}
	at := time.Date(2026, 3, 2, 0, 0, 0, 0, time.UTC)
	for _, test := range []struct {
		name   string
		second [3]int // at which each fact occurred: two that a follower recorded, and one that was handed over
		folded bool   // the first one is folded
	}{
		{"before what is handed over", [3]int{0, 1, 2}, false},
		{"after what is handed over", [3]int{0, 2, 1}, false},
		{"folded", [3]int{0, 1, 2}, true},
		{"folded, after what is handed over", [3]int{0, 2, 1}, true},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			var facts []trail.Fact
			for i, second := range test.second {
				facts = append(facts, trail.Fact{ID: trail.FactID{byte(i + 1)}, Cluster: "c1", Subject: of, Kind: trail.KindActionRequested, Namespace: "vms", OccurredAt: at.Add(time.Duration(second) * time.Second)})
			}
			m := newMemory(trail.DefaultThresholds())
			c := New(m, 1<<20)
			m.recordFacts(facts[:1])
			marks := m.recordFacts(facts[1:2])
			fold := func(dirty []Dirty) []trail.Fact {
				fresh, _, err := (&tick{c: c, batch: Batch{Dirty: dirty}, nodes: dirtyMarks{}, rederived: map[trail.Subject]bool{}, launched: map[trail.Subject]bool{}}).appendFacts(t.Context())
				require.NoError(t, err)
				return fresh
			}
			if test.folded {
				marks[0].Facts = nil
				require.Len(t, fold(marks), 1)
			}
			dirty := addHanded(marks, m.recordFacts(facts[2:]))
			if test.folded {
				require.Equal(t, facts[2:], fold(dirty))
			} else {
				require.ElementsMatch(t, facts[1:], fold(dirty))
			}
		})
	}
}
