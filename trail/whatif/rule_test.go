package whatif_test

import (
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/evictrail/evictrail/trail"
	"github.com/evictrail/evictrail/trail/whatif"
)

// someRuns is how many histories a rule is tried on.
const someRuns = 150

// tries is what a plain look at the rows says of the attempts of evacuations.
type tries struct {
	saved, failed, stays int
	unclear              bool // a request came for an evacuation that would have been given up, so that more is to be thought of
}

// findLaterAttempts returns the attempts of an evacuation after those that did not succeed are as many as may be.
func (p *past) findLaterAttempts(most func(*trail.Evacuation) int) (t tries) {
	for _, d := range p.rows.Rows {
		for i := range d.Evacuations {
			e := &d.Evacuations[i]
			n := most(e)
			if n == 0 {
				continue
			}
			tried, gaveUp := 0, time.Time{}
			for _, m := range d.Migrations { // in the order of their creation; attempts follow each other
				if m.EvacuationID == nil || *m.EvacuationID != e.ID || m.FinishedAt.IsZero() || !m.FinishedAt.Before(p.Until) {
					continue
				}
				if tried == n {
					t.saved++
					switch m.Outcome {
					case trail.OutcomeFailed:
						t.failed++
					case trail.OutcomeSucceeded:
						t.stays++
					default:
					}
					continue
				}
				if m.Outcome != trail.OutcomeSucceeded {
					if tried++; tried == n {
						gaveUp = m.FinishedAt
					}
				}
			}
			for _, q := range d.Requests {
				again := q.EvacuationID != nil && *q.EvacuationID == e.ID && !q.DryRun && !gaveUp.IsZero() && !q.RequestedAt.Before(gaveUp)
				t.unclear = t.unclear || again
			}
		}
	}
	return t
}

// TestTriesThatWouldNotHaveBeen compares what is saved by giving up with a plain count of the attempts after that, where nobody asked again.
func TestTriesThatWouldNotHaveBeen(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		policy whatif.Policy
		most   func(*trail.Evacuation) int
	}{
		"try once": {whatif.Policy{TryOnce: true}, func(e *trail.Evacuation) int {
			if e.RequesterClass == trail.RequesterDescheduler {
				return 1
			}
			return 0
		}},
		"give up after two": {whatif.Policy{GiveUpAfter: 2}, func(*trail.Evacuation) int { return 2 }},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			type both struct {
				want tries
				got  whatif.Result
				was  whatif.Tally
			}
			plain, saved := 0, 0
			for seed, x := range eachRun(countRuns(someRuns), func(p past) (b both) {
				b.want = p.findLaterAttempts(c.most)
				b.got, b.was = p.replayPolicy(c.policy)
				return b
			}) {
				require.Equal(t, x.was.Migrations, x.got.Would.Migrations+x.got.MigrationsSaved, "seed %d", seed)
				require.Equal(t, x.was.Failed, x.got.Would.Failed+x.got.FailedSaved, "seed %d", seed)
				require.Zero(t, x.got.HeldBack, "seed %d: slots are free sooner", seed)
				if x.want.unclear {
					require.LessOrEqual(t, x.got.MigrationsSaved, x.want.saved, "seed %d", seed)
					continue
				}
				plain++
				saved += x.want.saved
				require.Equal(t, x.want.saved, x.got.MigrationsSaved, "seed %d: %+v", seed, x.got)
				require.Equal(t, x.want.failed, x.got.FailedSaved, "seed %d", seed)
				require.Equal(t, x.want.stays, x.got.Stays, "seed %d", seed)
			}
			require.Greater(t, plain, countRuns(someRuns)/4)
			require.Positive(t, saved)
		})
	}
}

// TestSlotsHold looks at what would have been let through with one slot for each node: never a second one, but where the history had it against
// its own rule.
func TestSlotsHold(t *testing.T) {
	t.Parallel()
	type result struct {
		whatif.Result
		over int // evictions that would have come while another was under way from their node
	}
	heldBack, skipped := 0, 0
	for seed, x := range eachRun(countRuns(someRuns), func(p past) (out result) {
		out.Result, _ = p.replayPolicy(whatif.Policy{NodeLimit: 1})
		held := map[trail.FactID]bool{}
		for _, d := range p.rows.Rows {
			for _, e := range d.Evacuations {
				held[e.ID] = slices.ContainsFunc(out.Changes, func(c whatif.Change) bool {
					return c.Kind == whatif.ChangeHeldBack && c.VMIUID == e.VMIUID && c.At.Sub(e.MarkedAt).Abs() < 5*time.Second
				})
			}
		}
		for _, d := range p.rows.Rows {
			for _, e := range d.Evacuations {
				if held[e.ID] || e.RequesterClass != trail.RequesterDescheduler || !e.HoldsSlot() {
					continue
				}
				for _, o := range p.rows.Rows {
					for _, f := range o.Evacuations {
						under := f.ID != e.ID && f.Node == e.Node && !held[f.ID] && f.HoldsSlot() && f.MarkedAt.Before(e.MarkedAt.Add(-time.Second)) &&
							(f.EndedAt.IsZero() || f.EndedAt.After(e.MarkedAt.Add(time.Second)))
						if under {
							out.over++
						}
					}
				}
			}
		}
		return out
	}) {
		heldBack += x.HeldBack
		against := 0
		for _, u := range x.Unknown {
			if u.Reason == whatif.UnknownAgainstRule {
				against += u.Count
			}
		}
		if x.ChangesMore > 0 || against > 0 {
			skipped++
			continue
		}
		require.Zero(t, x.over, "seed %d: %+v", seed, x.Changes)
	}
	t.Logf("%d held back; %d histories skipped", heldBack, skipped)
	require.Greater(t, heldBack, countRuns(someRuns)/2)
	require.Less(t, skipped, countRuns(someRuns)/2, "the recorded rule forbids few of what happened")
}
