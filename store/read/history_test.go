package read_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/evictrail/evictrail/store"
	"github.com/evictrail/evictrail/store/storetest"
	"github.com/evictrail/evictrail/trail"
	"github.com/evictrail/evictrail/trail/sim"
	"github.com/evictrail/evictrail/trail/tracker"
)

// TestHistoryIsThatOfAllFacts plays simulated histories into the database and asks about every VM and node, as of now and, at the
// end, as of then: the answers are those that all facts give that had happened.
func TestHistoryIsThatOfAllFacts(t *testing.T) {
	t.Parallel()
	type history struct {
		seed  uint64
		bound bool // of VMs that can run on few nodes
	}
	for _, h := range storetest.Sample(storetest.Some([]history{{2, false}, {7, true}, {26, false}, {116, false}, {4, false}, {114, false}, {124, false}}, 2)) {
		t.Run(fmt.Sprint(h.seed), func(t *testing.T) {
			t.Parallel()
			var run sim.Run
			if h.bound {
				run = sim.NewBound(h.seed).Run
			} else {
				run = sim.New(h.seed)
			}
			s := storetest.New(t)
			tr := tracker.New("c1")
			var facts, fresh []trail.Fact
			var moments []time.Time
			step := run.End.Sub(run.Start) / 4
			next := run.Start.Add(step)
			compared := 0
			ask := func(at time.Time) {
				facts = append(facts, fresh...)
				_, err := s.Append(t.Context(), "c1", fresh)
				require.NoError(t, err)
				require.NoError(t, s.Alive(t.Context(), "c1", at))
				_, _, err = s.DeriveDue(t.Context(), "c1", at)
				require.NoError(t, err)
				compared += storetest.CompareAnswers(t, s, facts, at)
				moments, fresh = append(moments, at), nil
			}
			for _, o := range run.Observations {
				for _, f := range tr.Observe(o) {
					if f.ObservedAt.After(next) {
						ask(next)
						next = next.Add(step)
					}
					f.OccurredAt, f.ObservedAt = f.OccurredAt.Truncate(time.Microsecond), f.ObservedAt.Truncate(time.Microsecond)
					fresh = append(fresh, f)
				}
			}
			ask(run.End)
			for _, at := range moments[:len(moments)-1] {
				storetest.CompareAnswers(t, s, facts, at)
			}
			require.Positive(t, compared, "VMs and nodes that have a story")
			compareSpans(t, s, facts, run.End)
			compareLives(t, s, facts, run.Start, run.End)
		})
	}
}

// compareSpans asks what is recorded now of the times of loops that are over, and wants the attempts, placements and annotations of those
// times, of all VMs that the node had to do with.
func compareSpans(t *testing.T, s *store.Store, facts []trail.Fact, at time.Time) {
	t.Helper()
	all := trail.DeriveAll(facts, trail.DefaultThresholds(), at)
	for of, rows := range all.Rows {
		for _, l := range rows.Loops {
			if of.Kind != trail.SubjectNode || l.Open() {
				continue
			}
			h, err := s.Ask(t.Context(), trail.Question{Cluster: "c1", Of: of, From: l.OpenedAt, At: l.ClosedAt})
			require.NoError(t, err)
			require.Equal(t, l.ClosedAt, h.Now)
			require.Equal(t, formatLoopPicture(all, of.Name, l), formatLoopPicture(h, of.Name, l), "%s", of)
		}
	}
}

// compareLives asks about each VM with all that was since the beginning, and since the creation of each migration: the same rows and
// lines, in the same order, as all facts give.
func compareLives(t *testing.T, s *store.Store, facts []trail.Fact, start, at time.Time) {
	t.Helper()
	all := trail.DeriveAll(facts, trail.DefaultThresholds(), at)
	moves := 0
	for of, want := range all.Rows {
		if of.Kind != trail.SubjectVMI {
			continue
		}
		h, err := s.Ask(t.Context(), trail.Question{Cluster: "c1", Of: of, At: at, Since: start})
		require.NoError(t, err)
		require.Equal(t, formatLife(want, start), formatLife(h.Rows[of], start), "%s", of)
		for i, m := range want.Migrations {
			if i%5 == 0 {
				moves++
				h, err := s.Ask(t.Context(), trail.Question{Cluster: "c1", Of: of, At: at, Move: m.UID})
				require.NoError(t, err)
				require.Equal(t, formatLife(want, m.CreatedAt), formatLife(h.Rows[of], m.CreatedAt), "%s since %s", of, m.UID)
			}
		}
	}
	require.Positive(t, moves)
}

// formatLife returns what a picture of a VM since a time is made of.
func formatLife(d trail.Derived, since time.Time) []string {
	var out []string
	add := func(until time.Time, what ...any) {
		if until.IsZero() || !until.Before(since) {
			out = append(out, fmt.Sprint(what...))
		}
	}
	for _, r := range d.Requests {
		add(r.RequestedAt, r.ID, r.Answer, r.Effect)
	}
	for _, e := range d.Evacuations {
		add(e.EndedAt, e.ID, e.Outcome, e.Attempts)
	}
	for _, m := range d.Migrations {
		add(m.FinishedAt, m.UID, m.Outcome, m.WaitReason)
		for _, p := range m.Phases {
			add(m.FinishedAt, m.UID, p.Phase, p.At.UTC())
		}
	}
	for _, p := range d.Placements {
		add(p.ToAt, p.ID, p.Node, p.LeftBy)
	}
	for _, x := range d.Decisions {
		add(x.DecidedAt, x.ID, x.Verdict)
	}
	for _, l := range d.Timeline {
		add(l.At, l.EventID, l.Sentence)
	}
	return out
}

// formatLoopPicture returns what a picture of a loop is made of.
func formatLoopPicture(c *trail.Cluster, node string, l trail.Loop) []string {
	within := func(from, to time.Time) bool {
		return !from.After(l.ClosedAt) && (to.IsZero() || !to.Before(l.OpenedAt))
	}
	var out []string
	for _, x := range c.Node(node).Loops {
		if within(x.OpenedAt, x.ClosedAt) {
			out = append(out, fmt.Sprint(x.ID, x.Kind, x.ClosedBy))
		}
	}
	for s, rows := range c.Rows {
		for _, m := range rows.Migrations {
			if m.SourceNode == node && within(m.CreatedAt, m.FinishedAt) {
				out = append(out, fmt.Sprint(s, m.UID, m.Outcome, m.FailureReason))
			}
		}
		for _, p := range rows.Placements {
			if p.Node == node && within(p.FromAt, p.ToAt) {
				out = append(out, fmt.Sprint(s, p.ID, p.LeftBy))
			}
		}
		for _, r := range rows.Requests {
			if r.Node == node && r.Salient && within(r.RequestedAt, r.RequestedAt) {
				out = append(out, fmt.Sprint(s, r.ID, r.Answer))
			}
		}
	}
	for _, a := range c.Annotated(node) {
		if within(a.From, a.To) && !a.From.Before(l.OpenedAt) {
			out = append(out, fmt.Sprint(a.Namespace, a.VMI, a.From.UTC()))
		}
	}
	slices.Sort(out)
	return out
}
