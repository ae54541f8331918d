package whatif_test

import (
	"flag"
	"runtime"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/evictrail/evictrail/trail"
	"github.com/evictrail/evictrail/trail/sim"
	"github.com/evictrail/evictrail/trail/tracker"
	"github.com/evictrail/evictrail/trail/whatif"
)

// runs is how many simulated histories the properties are tried on.
var runs = flag.Int("whatif.runs", 1000, "how many simulated histories are replayed; a fifth of them with -short")

// countRuns returns how many of so many histories are replayed: with go test -short, as `make test` has it, a fifth.
func countRuns(all int) int {
	if testing.Short() {
		return all / 5
	}
	return all
}

// past is a history that can be replayed.
type past struct {
	whatif.History
	events []whatif.Event
	rows   *trail.Cluster
}

// simulateRun returns what is recorded of a simulated run.
func simulateRun(seed uint64) past {
	run := sim.New(seed)
	tr := tracker.New("sim")
	var facts []trail.Fact
	for _, o := range run.Observations {
		facts = append(facts, tr.Observe(o)...)
	}
	c := trail.DeriveAll(facts, trail.DefaultThresholds(), run.End)
	return past{
		whatif.History{Rules: whatif.RulesOf(facts), Thresholds: trail.DefaultThresholds(), Since: run.Start, Until: run.End},
		whatif.Gather(c, facts), c,
	}
}

// replayPolicy returns what would have been different.
func (p *past) replayPolicy(policy whatif.Policy) (whatif.Result, whatif.Tally) {
	r := whatif.New(policy, &p.History)
	for _, e := range p.events {
		r.Step(e)
	}
	return r.End()
}

// eachRun has something found out of some simulated histories, as many at once as there are processors.
func eachRun[R any](n int, of func(past) R) []R {
	out := make([]R, n)
	var wait sync.WaitGroup
	seeds := make(chan int)
	for range runtime.GOMAXPROCS(0) {
		wait.Go(func() {
			for seed := range seeds {
				out[seed] = of(simulateRun(uint64(seed)))
			}
		})
	}
	for seed := range n {
		seeds <- seed
	}
	close(seeds)
	wait.Wait()
	return out
}

// replayed is what a replay returned, and what a plain count of the rows returns.
type replayed struct {
	whatif.Result
	recorded, counted whatif.Tally
}

// TestRecordedPolicyChangesNothing replays under the policy that was in force, said and not said.
func TestRecordedPolicyChangesNothing(t *testing.T) {
	t.Parallel()
	evictions, loops, n := 0, 0, countRuns(*runs)
	if testing.Short() {
		n /= 2
	}
	for seed, both := range eachRun(n, func(p past) (out [2]replayed) {
		said := whatif.Policy{}
		said.NodeLimit, said.TotalLimit, _ = trail.NewEnv(p.Rules).SlotLimits(p.Since)
		for i, policy := range []whatif.Policy{{}, said} {
			out[i].Result, out[i].recorded = p.replayPolicy(policy)
			out[i].counted = p.countTally()
		}
		return out
	}) {
		for _, got := range both {
			require.False(t, got.Changed, "seed %d, %s: %+v", seed, got.Name, got.Result)
			require.Equal(t, got.recorded, got.Would, "seed %d, %s", seed, got.Name)
			require.Equal(t, got.counted, got.recorded, "seed %d, %s", seed, got.Name)
			require.Empty(t, got.Changes, "seed %d, %s", seed, got.Name)
			require.Empty(t, got.LoopsAvoided, "seed %d, %s", seed, got.Name)
		}
		require.Empty(t, both[0].Unknown, "seed %d", seed)
		evictions, loops = evictions+both[0].recorded.Evictions, loops+both[0].recorded.Loops
	}
	require.Greater(t, evictions, 2*n)
	require.Greater(t, loops, n/4)
}

// countTally counts the rows of the period.
func (p *past) countTally() whatif.Tally {
	var want whatif.Tally
	for _, d := range p.rows.Rows {
		for _, e := range d.Evacuations {
			if !e.MarkedAt.Before(p.Since) && e.MarkedAt.Before(p.Until) {
				want.Evacuations++
			}
		}
		for _, q := range d.Requests {
			if q.Answer == trail.AnswerMarked && q.RequesterClass == trail.RequesterDescheduler && q.EvacuationID != nil && !q.DryRun {
				want.Evictions++
			}
		}
		for _, m := range d.Migrations {
			if m.FinishedAt.IsZero() || m.FinishedAt.Before(p.Since) || !m.FinishedAt.Before(p.Until) {
				continue
			}
			want.Migrations++
			switch m.Outcome {
			case trail.OutcomeFailed:
				want.Failed++
			case trail.OutcomeSucceeded:
				want.Moves++
			default:
			}
		}
		for _, l := range d.Loops {
			if l.ClosedBy != trail.LoopRefuted {
				want.Loops++
			}
		}
	}
	return want
}
