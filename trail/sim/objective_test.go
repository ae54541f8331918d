package sim

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/evictrail/evictrail/trail"
)

// newObjectiveThresholds are thresholds by which some evacuations of the runs are late, and some are not.
func newObjectiveThresholds() trail.Thresholds {
	t := trail.DefaultThresholds()
	t.Objectives = trail.Objectives{"descheduler": 90 * time.Second, "descheduler@pool/gpu": 60 * time.Second, "kubectl": 5 * time.Minute, "any": 20 * time.Minute}
	return t
}

// computeVerdict returns in the plainest way what has to be said of an evacuation at a time.
func computeVerdict(e trail.Evacuation, within time.Duration, now time.Time) string {
	due := e.MarkedAt.Add(within)
	switch left := !e.EndedAt.IsZero() && !e.EndedAt.After(due); {
	case left && e.Outcome == trail.OutcomeMigrated:
		return "met"
	case left:
		return "not put to the test"
	case now.Before(due):
		return "open"
	}
	return "missed"
}

func readVerdict(e trail.Evacuation) string {
	switch {
	case e.ObjectiveMet == nil && e.EndedAt.IsZero():
		return "open"
	case e.ObjectiveMet == nil:
		return "not put to the test"
	case *e.ObjectiveMet:
		return "met"
	}
	return "missed"
}

// evacuationsAt derives facts as they stand at a time and returns the evacuations, each with when its VM is derived again.
func evacuationsAt(facts []trail.Fact, now time.Time) (all map[trail.FactID]trail.Evacuation, next map[trail.FactID]time.Time) {
	all, next = map[trail.FactID]trail.Evacuation{}, map[trail.FactID]time.Time{}
	for _, d := range trail.DeriveAll(facts, newObjectiveThresholds(), now).Rows {
		for _, e := range d.Evacuations {
			all[e.ID], next[e.ID] = e, d.NextAt
		}
	}
	return all, next
}

// TestObjectivesAreJudgedOnceAndInTime wants of each evacuation in many runs the one verdict that its times give, in whatever order facts
// come; and as time goes on, that it is missed from the moment on at which the time is over, not before, and that this moment is foretold.
func TestObjectivesAreJudgedOnceAndInTime(t *testing.T) {
	t.Parallel()
	n := someSeeds
	if testing.Short() {
		n /= 3
	}
	of := make([]judgement, n)
	eachAtOnce(n, func(i int) { of[i] = checkObjectives(New(uint64(i))) })
	count := map[string]int{}
	for _, j := range of {
		require.Empty(t, j.wrong)
		for what, n := range j.count {
			count[what] += n
		}
	}
	t.Log(count)
	for _, what := range []string{"met", "missed", "not put to the test", "watched"} {
		require.Positive(t, count[what], what)
	}
}

// judgement is what was found in one run: how many evacuations of each verdict, and what is wrong.
type judgement struct {
	count map[string]int
	wrong []string
}

func checkObjectives(r Run) judgement {
	j, facts, objectives := judgement{count: map[string]int{}}, factsOf(r), newObjectiveThresholds().Objectives
	want := func(ok bool, e trail.Evacuation, what string) {
		if !ok {
			j.wrong = append(j.wrong, fmt.Sprintf("seed %d: %s/%s from %s to %s %s, %s: %s", r.Seed, e.Namespace, e.VMI, e.MarkedAt, e.EndedAt, e.Outcome, readVerdict(e), what))
		}
	}
	all, _ := evacuationsAt(facts, r.End)
	mixed := append(slices.Clone(facts), facts[:len(facts)/3]...)
	rand.New(rand.NewPCG(r.Seed, 1)).Shuffle(len(mixed), func(a, b int) { mixed[a], mixed[b] = mixed[b], mixed[a] })
	again, _ := evacuationsAt(mixed, r.End)
	for id, e := range all {
		pool := "@pool/worker"
		if isOfGPU(e.Node) {
			pool = "@pool/gpu"
		}
		within := cmp.Or(objectives[string(e.RequesterClass)+pool], objectives[string(e.RequesterClass)], objectives[string(trail.AnyRequester)])
		j.count[readVerdict(e)]++
		want(reflect.DeepEqual(e, again[id]), e, "derived otherwise from facts in another order")
		want(e.Objective == trail.Span(within), e, "it has another objective")
		want(readVerdict(e) == computeVerdict(e, within, r.End), e, "its times say "+computeVerdict(e, within, r.End))
		due := e.MarkedAt.Add(within)
		if readVerdict(e) != "missed" || j.count["watched"] == 2 {
			continue
		}
		before, next := evacuationsAt(filterObserved(facts, due.Add(-time.Microsecond)), due.Add(-time.Microsecond))
		if was, is := before[id]; is && was.RequesterClass == e.RequesterClass { // an audit log may name who asked later
			after, _ := evacuationsAt(filterObserved(facts, due), due)
			j.count["watched"]++
			want(readVerdict(was) == "open", was, "it was not open just before its time was over")
			want(!next[id].IsZero() && !next[id].After(due), was, "nobody looks at it again when its time is over")
			want(readVerdict(after[id]) == "missed", after[id], "its time is over")
		}
	}
	return j
}

// filterObserved returns the facts that were observed by a time.
func filterObserved(facts []trail.Fact, at time.Time) []trail.Fact {
	return slices.DeleteFunc(slices.Clone(facts), func(f trail.Fact) bool { return f.ObservedAt.After(at) })
}
