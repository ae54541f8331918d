package sim

import (
	"cmp"
	"flag"
	"fmt"
	"maps"
	"math/rand/v2"
	"reflect"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/evictrail/evictrail/trail"
	"github.com/evictrail/evictrail/trail/tracker"
)

// The flags of the comparison with the truth: `make sim` sets them.
var (
	simRuns  = flag.Int("sim.runs", 100, "how many simulated runs the detector is compared with")
	simBound = flag.Int("sim.bound", 30, "how many simulated runs the verdict never is compared with")
	simSeed  = flag.Uint64("sim.seed", 0, "the seed of the first of them; the others follow")
)

// wanted is the share that recall and precision must come to, both.
const wanted = 0.99

// apart is how far the times of a loop may be from the truth.
const apart = 2 * time.Second

// found is a loop as the detector reports it.
type found struct {
	Kind string
	Loop
}

// TestDualRetryRecallAndPrecision compares the dual retry loops that are found in many runs with those that were there.
func TestDualRetryRecallAndPrecision(t *testing.T) {
	t.Parallel()
	results := make([]result, countRuns(*simRuns))
	eachAtOnce(len(results), func(i int) { results[i] = checkRun(New(*simSeed + uint64(i))) })
	full, marks, all := score{}, score{}, summary{kinds: map[string]int{}, closed: map[string]int{}, paths: map[string]int{}}
	for _, r := range results {
		require.Empty(t, r.broken, "seed %d", r.seed)
		full.add(r.full)
		marks.add(r.marks)
		all.addRun(r)
	}
	t.Logf("\n%s", renderTable(full, marks, all))
	for _, wrong := range slices.Concat(full.wrong, marks.wrong) {
		t.Log(wrong)
	}
	require.Positive(t, full.truth, "no loop in any run")
	for name, s := range map[string]score{"with audit": full, "without audit": marks} {
		require.GreaterOrEqual(t, s.recall(), wanted, "%s: recall", name)
		require.GreaterOrEqual(t, s.precision(), wanted, "%s: precision", name)
	}
}

// TestDualRetryThroughBrokenWatches looks at the same histories through watches that break. Something is lost then, and
// what is not may be seen late.
func TestDualRetryThroughBrokenWatches(t *testing.T) {
	t.Parallel()
	scores := make([]score, countRuns(100))
	eachAtOnce(len(scores), func(i int) {
		r := New(*simSeed + uint64(i)).Cut()
		_, loops := deriveLoops(factsOf(r), r.End)
		scores[i] = matchLoops(r, "broken watches", r.Loops, loops, apart+longestCut)
	})
	all := score{}
	for _, s := range scores {
		all.add(s)
	}
	t.Logf("of %d loops %d are found, %d are right: recall %.2f%%, precision %.2f%%", all.truth, all.found, all.right, 100*all.recall(), 100*all.precision())
	for _, wrong := range all.wrong {
		t.Log(wrong)
	}
	require.GreaterOrEqual(t, all.recall(), 0.97, "recall")
	require.GreaterOrEqual(t, all.precision(), 0.97, "precision")
}

// countRuns returns how many of the runs of a test it looks at; with go test -short, as `make test` has it, a sixth.
func countRuns(all int) int {
	if testing.Short() {
		return (all + 5) / 6
	}
	return all
}

// eachAtOnce does something n times, on all processors.
func eachAtOnce(n int, do func(i int)) {
	next := make(chan int)
	var workers sync.WaitGroup
	for range runtime.GOMAXPROCS(0) {
		workers.Go(func() {
			for i := range next {
				do(i)
			}
		})
	}
	for i := range n {
		next <- i
	}
	close(next)
	workers.Wait()
}

// result is what the comparison of one run returns.
type result struct {
	seed         uint64
	observations int
	facts        int
	full, marks  score
	found        []found
	truth        []Loop
	broken       string // a property that does not hold
}

// checkRun derives a run: with everything, in another order, with everything twice, and without the audit log.
func checkRun(r Run) result {
	facts := factsOf(r)
	rows, loops := deriveLoops(facts, r.End)
	out := result{seed: r.Seed, observations: len(r.Observations), facts: len(facts), found: loops, truth: r.Loops}
	out.full = matchLoops(r, "with audit", r.Loops, loops, apart)
	out.broken = findBrokenPromise(r, facts, rows)
	if r.MarksShow {
		_, loops = deriveLoops(withoutRequests(facts), r.End)
		out.marks = matchLoops(r, "without audit", r.LoopsByMarks, loops, apart)
	}
	return out
}

// factsOf lets a Tracker see a run.
func factsOf(r Run) []trail.Fact {
	tr := tracker.New("sim")
	var facts []trail.Fact
	for _, o := range r.Observations {
		facts = append(facts, tr.Observe(o)...)
	}
	return facts
}

// withoutRequests drops what only the audit log has.
func withoutRequests(facts []trail.Fact) []trail.Fact {
	return slices.DeleteFunc(slices.Clone(facts), func(f trail.Fact) bool { return f.Object.Kind == trail.ObjectRequest })
}

// findBrokenPromise returns which promise of Derive a run breaks: neither the order of the facts nor seeing them twice matters.
func findBrokenPromise(r Run, facts []trail.Fact, rows map[trail.Subject]trail.Derived) string {
	chance := rand.New(rand.NewPCG(r.Seed, 1))
	twice := slices.Concat(facts, facts)
	chance.Shuffle(len(twice), func(i, j int) { twice[i], twice[j] = twice[j], twice[i] })
	if again, _ := deriveLoops(twice, r.End); sameRows(rows, again) {
		return ""
	}
	shuffled := slices.Clone(facts)
	chance.Shuffle(len(shuffled), func(i, j int) { shuffled[i], shuffled[j] = shuffled[j], shuffled[i] })
	if again, _ := deriveLoops(shuffled, r.End); !sameRows(rows, again) {
		return "shuffled facts give other rows"
	}
	return "facts recorded twice make other rows"
}

// sameRows compares all rows of all subjects.
func sameRows(a, b map[trail.Subject]trail.Derived) bool { return reflect.DeepEqual(a, b) }

// inOrder sorts loops by their times.
func inOrder(loops []found) []found {
	slices.SortFunc(loops, func(a, b found) int {
		return cmp.Or(a.OpenedAt.Compare(b.OpenedAt), cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Node, b.Node),
			cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.VMI, b.VMI))
	})
	return loops
}

// score counts what was found of what was there.
type score struct {
	truth, found, right int
	cause, path         int            // right ones whose end, and whose beginning, is reported by its real cause
	paths               map[string]int // of those whose beginning is reported otherwise: the real path, and the one that is reported
	wrong               []string
}

func (s score) recall() float64    { return computeShare(s.right, s.truth) }
func (s score) precision() float64 { return computeShare(s.right, s.found) }

// computeShare returns 1 for nothing of nothing.
func computeShare(part, whole int) float64 {
	if whole == 0 {
		return 1
	}
	return float64(part) / float64(whole)
}

func (s *score) add(o score) {
	s.truth, s.found, s.right = s.truth+o.truth, s.found+o.found, s.right+o.right
	s.cause, s.path = s.cause+o.cause, s.path+o.path
	s.wrong = append(s.wrong, o.wrong...)
	for name, n := range o.paths {
		s.otherPath(name, n)
	}
}

func (s *score) otherPath(name string, n int) {
	if s.paths == nil {
		s.paths = map[string]int{}
	}
	s.paths[name] += n
}

// matchLoops pairs what was found with what was there, each at most once. Times may be apart by what within says.
func matchLoops(r Run, source string, truth []Loop, loops []found, within time.Duration) score {
	var dual []Loop
	for _, l := range loops {
		if l.Kind == "dual_retry" {
			dual = append(dual, l.Loop)
		}
	}
	s := score{truth: len(truth), found: len(dual)}
	say := func(what string, l Loop) {
		s.wrong = append(s.wrong, fmt.Sprintf("seed %d (%s, %s) %s: %s %v", r.Seed, r.KubeVirt, source, what, l.formatRelative(r.Start), r.Plots))
	}
	for _, want := range truth {
		i := slices.IndexFunc(dual, func(l Loop) bool { return want.isSameAs(l, within) })
		if i < 0 {
			say("missed", want)
			continue
		}
		s.right++
		if dual[i].ClosedBy == want.ClosedBy {
			s.cause++
		}
		if dual[i].Path == want.Path {
			s.path++
		} else {
			s.otherPath(want.Path+" reported as "+cmp.Or(dual[i].Path, "nothing"), 1)
		}
		dual = slices.Delete(dual, i, i+1)
	}
	for _, l := range dual {
		say("not there", l)
	}
	return s
}

// isSameAs reports whether two loops are the same one.
func (l Loop) isSameAs(o Loop, within time.Duration) bool {
	near := func(a, b time.Time) bool { return a.IsZero() == b.IsZero() && a.Sub(b).Abs() <= within }
	return l.Node == o.Node && l.Namespace == o.Namespace && l.VMI == o.VMI && near(l.OpenedAt, o.OpenedAt) && near(l.ClosedAt, o.ClosedAt)
}

func (l Loop) formatRelative(start time.Time) string {
	closed := "open"
	if !l.ClosedAt.IsZero() {
		closed = l.ClosedAt.Sub(start).Round(10*time.Millisecond).String() + " " + l.ClosedBy
	}
	return fmt.Sprintf("%s/%s on %s from %s to %s", l.Namespace, l.VMI, l.Node, l.OpenedAt.Sub(start).Round(10*time.Millisecond), closed)
}

// summary is what the runs were made of.
type summary struct {
	runs, observations, facts int
	kinds, closed, paths      map[string]int
}

func (s *summary) addRun(r result) {
	s.runs++
	s.observations += r.observations
	s.facts += r.facts
	for _, l := range r.found {
		s.kinds[l.Kind]++
	}
	for _, l := range r.truth {
		s.closed[cmp.Or(l.ClosedBy, "open")]++
		s.paths[l.Path]++
	}
}

// renderTable returns the outcome as people read it. Paths and ends are shown, not checked: the path is partly a guess from outside.
func renderTable(full, marks score, all summary) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%d runs, %d observations, %d facts\n\n", all.runs, all.observations, all.facts)
	fmt.Fprintf(&b, "%-14s %7s %7s %7s %9s %10s %11s %11s\n", "dual_retry", "there", "found", "right", "recall", "precision", "right path", "right end")
	for _, row := range []struct {
		name string
		score
	}{{"with audit", full}, {"without audit", marks}} {
		fmt.Fprintf(&b, "%-14s %7d %7d %7d %8.2f%% %9.2f%% %10.2f%% %10.2f%%\n", row.name, row.truth, row.found, row.right,
			100*row.recall(), 100*row.precision(), 100*computeShare(row.path, row.right), 100*computeShare(row.cause, row.right))
	}
	b.WriteString(renderShares("other paths, with audit", full.paths))
	b.WriteString(renderShares("found, by kind", all.kinds))
	b.WriteString(renderShares("there, by what closed them", all.closed))
	b.WriteString(renderShares("there, by how they came about", all.paths))
	return b.String()
}

func renderShares(title string, counts map[string]int) string {
	var b strings.Builder
	sum := 0
	for _, n := range counts {
		sum += n
	}
	fmt.Fprintf(&b, "\n%s\n", title)
	for _, name := range slices.Sorted(maps.Keys(counts)) {
		fmt.Fprintf(&b, "  %-44s %7d %8.2f%%\n", name, counts[name], 100*computeShare(counts[name], sum))
	}
	return b.String()
}
