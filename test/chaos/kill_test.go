package chaos_test

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/evictrail/evictrail/store/storetest"
)

// point is a place on the way of a fact at which evictrail dies. It is seen from outside, by what passes between it and Postgres: the program
// has nothing in it for that.
type point struct {
	name string
	at   func(*message) bool
	nth  int // at most, of the times that one run comes there, it dies
}

func newPointBefore(name, statement string, nth int) point {
	return point{"before " + name, func(m *message) bool { return m.isRequestFor(statement) }, nth}
}

func newPointAfter(name, statement string, nth int) point {
	return point{"after " + name, func(m *message) bool { return m.isCompletionOf(statement) }, nth}
}

var points = []point{
	newPointBefore("it learns when it was last alive", "FROM evictrail.clusters", 1),
	newPointBefore("a term begins", "INSERT INTO evictrail.leaders", 1),
	newPointAfter("a term has begun", "INSERT INTO evictrail.leaders", 1),
	newPointBefore("it resumes", "FROM evictrail.aspects", 1),
	newPointBefore("a transaction", begins, 3),
	newPointBefore("subjects are held", "INSERT INTO evictrail.subjects", 3),
	newPointBefore("facts are stored", storesFacts, 3),
	newPointAfter("facts are stored", storesFacts, 3),
	newPointBefore("aspects are kept", "INSERT INTO evictrail.aspects", 3),
	newPointBefore("rows are derived", "evictrail.timeline", 3),
	newPointBefore("it commits", "commit", 3),
	newPointAfter("it has committed", "commit", 3),
	newPointBefore("it notes how far it is", "INSERT INTO evictrail.clusters", 3),
}

// TestT2Kills kills evictrail with SIGKILL, half of the times at a place on the way of a fact, half at a random moment, while migrations go on.
// In the end each transition is stored, once, and what is derived is what deriving all facts again returns.
//
// T2 of the chaos matrix (docs/chaos.md): kill -9 on the way of a fact.
func TestT2Kills(t *testing.T) {
	t.Parallel()
	const (
		every = 25 * time.Millisecond // a transition
		soon  = 800 * time.Millisecond
		kept  = 10 // transitions for each kill that is to come: on a slow machine a start takes those of many
	)
	r := newSeededRand(t)
	kills := chooseCount(3*len(points), 500)
	database := storetest.NewURL(t)
	p := startProxy(t, database)
	c := startCluster(t, newTrace(r, max(60, kills), 40*kills))
	e := newEvictrail(t, c, p.databaseURL(), "evictrail-0")
	done := map[string]int{}
	began := time.Now()
	for n := range kills {
		where, end := "at a random moment", time.After(time.Duration(r.Int64N(int64(soon))))
		reached, gone := make(chan struct{}), make(chan struct{})
		if n%2 == 0 {
			at := points[n/2%len(points)]
			nth := 1 + r.IntN(at.nth)
			where, end = at.name, nil
			var once sync.Mutex
			p.injectFault(func(m *message) bool {
				once.Lock()
				defer once.Unlock()
				if nth == 0 || !at.at(m) {
					return nth > 0
				}
				if nth--; nth > 0 {
					return true
				}
				close(reached)
				<-gone
				return false // the one that it was for is gone
			})
		}
		e.start()
		started := time.Now()
		tick := time.NewTicker(every)
		for dead := false; !dead; {
			select {
			case <-tick.C:
				if len(c.truth)-c.released > kept*(kills-n) {
					c.releaseTransitions(1)
				}
				require.True(t, e.Running() || n%2 == 1, "it ended by itself")
				require.Less(t, time.Since(started), 2*time.Minute, "it is to be killed %s, and that does not come", where)
			case <-reached:
				dead = true
			case <-end:
				dead = true
			}
		}
		tick.Stop()
		e.Kill()
		close(gone)
		p.clearFaults()
		p.cutLinks()
		done[where]++
	}
	e.start()
	e.awaitReady()
	released := c.released
	for !c.isComplete() { // a few at a time: no list says again what this process loses
		c.releaseTransitions(1 + r.IntN(5))
		time.Sleep(5 * time.Millisecond)
	}
	awaitStored(t, database, len(c.truth))
	require.NoError(t, e.Stop())
	late := loadNumber(t, database, "SELECT count(*) AS n FROM evictrail_v1.events WHERE kind = 'migration_phase' AND seen_late")
	t.Logf("T2: %d kills in %s, %d of %d transitions in between, %d of them shown by a list after a kill; %s",
		kills, time.Since(began).Round(time.Second), released, len(c.truth), late, formatCounts(done))
	require.Positive(t, late, "no kill had anything to lose")
	requireTruth(t, database, c.truth)
	requireRederived(t, database)
}

// formatCounts writes how often each thing was, the most often first.
func formatCounts(of map[string]int) string {
	type line struct {
		name string
		n    int
	}
	var lines []line
	for name, n := range of {
		lines = append(lines, line{name, n})
	}
	slices.SortFunc(lines, func(a, b line) int { return cmp.Or(b.n-a.n, strings.Compare(a.name, b.name)) })
	words := make([]string, len(lines))
	for i, l := range lines {
		words[i] = fmt.Sprintf("%d %s", l.n, l.name)
	}
	return strings.Join(words, ", ")
}
