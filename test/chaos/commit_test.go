package chaos_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/evictrail/evictrail/store/storetest"
)

// TestT19FailingCommits fails commits while facts are stored: in half of them Postgres commits and nobody hears of it, in the others it is a
// serialization failure, a deadlock, a standby or a server that is shut down, or Postgres never hears of it. What is stored in the end is
// what an undisturbed evictrail stores: what became of a commit is found out by the identity of the facts.
//
// T19 of the chaos matrix (docs/chaos.md): commits that fail, or whose reply is lost.
func TestT19FailingCommits(t *testing.T) {
	t.Parallel()
	r := newSeededRand(t)
	lost := chooseCount(30, 300)
	transitions, vms := 60*lost, 4*lost
	undisturbed, disturbed := storetest.NewURL(t), storetest.NewURL(t)
	tr := newTrace(r, vms, transitions)
	recordCluster(t, startCluster(t, tr), undisturbed, nil)

	p := startProxy(t, disturbed)
	ways := []string{replyLost, replyLost, replyLost, replyLost, replyLost, requestLost, serialization, deadlock, standby, shutdown}
	failing := newFailingCommits(r, 0.6, 2*lost, ways...)
	c := startCluster(t, tr)
	began := time.Now()
	recordCluster(t, c, p.databaseURL(), func(e *evictrail) {
		e.awaitReady()
		p.injectFault(failing.filterMessage)
		for !c.isComplete() { // each bit when the one before was asked to be committed, so that there are many transactions
			was := failing.countCommits()
			c.releaseTransitions(10)
			awaitCondition(t, 3*time.Minute, "facts are to be committed", func() bool { return failing.countCommits() > was })
		}
		awaitCondition(t, 3*time.Minute, "transactions that are done again are counted", func() bool {
			return int(e.sumMetric("evictrail_store_errors_total", `op="retry",sqlstate_class="40"`)) >= failing.errorsSent(serialization, deadlock)
		})
	})
	t.Logf("T19: %d transitions, %d commits of facts asked for, of which failed: %v; %s", len(c.truth), failing.countCommits(), failing.failed, time.Since(began).Round(time.Second))
	require.GreaterOrEqual(t, failing.failed[replyLost], lost*2/3)
	requireTruth(t, disturbed, c.truth)
	views := append([]string{"events"}, derivedViews...)
	requireSame(t, loadHistory(t, undisturbed, views...), loadHistory(t, disturbed, views...))
}

// recordCluster has evictrail record a cluster into a database until everything is stored and it was asked to end. During that time something happens.
func recordCluster(t *testing.T, c *cluster, database string, during func(*evictrail)) {
	t.Helper()
	e := newEvictrail(t, c, database, "evictrail-0")
	e.start()
	if during != nil {
		during(e)
	} else {
		e.awaitReady()
	}
	c.releaseTransitions(len(c.truth))
	awaitDerived(t, database, c)
	require.NoError(t, e.Stop())
}
