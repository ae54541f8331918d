package chaos_test

import (
	"os/exec"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/evictrail/evictrail/store/storetest"
	"github.com/evictrail/evictrail/test/build"
)

// previous is the commit that stands for the version before this one: the first with schema 38, from which on a version works on the schema of the next
// (docs/adr/0038). Those from before refuse to.
const previous = "d829da089d559df82dca65b2e42aef02bd2d33a9"

// buildPrevious builds the version before this one out of the history of the repository.
func buildPrevious(t *testing.T) (program string) {
	t.Helper()
	dir := t.TempDir()
	archive := exec.CommandContext(t.Context(), "git", "archive", "--format=tar", "--output", filepath.Join(dir, "source.tar"), previous)
	archive.Dir = build.Root()
	out, err := archive.CombinedOutput()
	require.NoError(t, err, "the version before is built of commit %s, so this test needs a clone of the repository with its history, not an archive of its source or a shallow clone: %s", previous, out)
	for _, command := range [][]string{{"tar", "-xf", "source.tar"}, {"go", "build", "-o", "evictrail", "./cmd/evictrail"}} {
		run := exec.CommandContext(t.Context(), command[0], command[1:]...)
		run.Dir = dir
		out, err := run.CombinedOutput()
		require.NoError(t, err, string(out))
	}
	return filepath.Join(dir, "evictrail")
}

// awaitWatching waits until a program has listed what it watches. The version before says that it is ready as soon as another replica records, or did some
// seconds ago: what happens before its own lists is recorded from a list, as of other times.
func awaitWatching(e *evictrail) {
	e.t.Helper()
	e.awaitReady()
	awaitCondition(e.t, time.Minute, "VMIs and migrations are listed", func() bool {
		return !slices.Contains(e.sumMetricByLabels("evictrail_watch_synced", `"virtualmachineinstances"`, `"virtualmachineinstancemigrations"`), 0)
	})
}

// TestT17Versions upgrades and downgrades between this version and the one before, each of which records a part, and then (T16) has both record at once, while
// the lease goes from one to the other: the history is that which this version records alone.
//
// T16 and T17 of the chaos matrix (docs/chaos.md): two versions together, and in turns.
func TestT17Versions(t *testing.T) {
	t.Parallel()
	r := newSeededRand(t)
	changes, part := chooseCount(2, 10), chooseCount(75, 1000)
	alone, both := storetest.NewURL(t), storetest.NewURL(t)
	tr := newTrace(r, part/5, part*(2*changes+changes))
	recordCluster(t, startCluster(t, tr), alone, nil)

	old := buildPrevious(t)
	c := startCluster(t, tr)
	before, now := newEvictrail(t, c, both, "evictrail-0", elected...), newEvictrail(t, c, both, "evictrail-1", elected...)
	before.program = old
	began := time.Now()
	for range changes {
		for _, e := range []*evictrail{before, now} {
			e.start()
			awaitWatching(e)
			c.releaseTransitions(part)
			awaitDerived(t, both, c)
			require.NoError(t, e.Stop())
		}
	}
	t.Logf("T17: %d upgrades and %d downgrades, %d transitions, in %s", changes, changes-1, c.released, time.Since(began).Round(time.Second))

	began = time.Now()
	before.start()
	now.start()
	awaitWatching(before)
	awaitWatching(now)
	turns := map[*evictrail]int{}
	for range changes {
		was := awaitLeader(t, []*evictrail{before, now})
		turns[was]++
		c.releaseTransitions(part / 2)
		other := map[*evictrail]*evictrail{before: now, now: before}[was]
		require.NoError(t, was.Stop())
		c.releaseTransitions(part / 2)
		require.Same(t, other, awaitLeader(t, []*evictrail{other}))
		awaitDerived(t, both, c)
		was.start()
		awaitWatching(was)
	}
	c.releaseTransitions(len(c.truth))
	awaitDerived(t, both, c)
	require.NoError(t, before.Stop())
	require.NoError(t, now.Stop())
	t.Logf("T16: both recorded for %s, the one before derived %d times first, this one %d times", time.Since(began).Round(time.Second), turns[before], turns[now])
	requireTruth(t, both, c.truth)
	views := append([]string{"events"}, derivedViews...)
	rederiveHistory(t, both) // a version may say the same in other words
	requireSame(t, loadHistory(t, alone, views...), loadHistory(t, both, views...))
	requireRederived(t, both)
}
