package spool

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/evictrail/evictrail/trail"
)

// TestEachOfManyBatchesComesBack keeps 1,200 batches of facts that were seen at any microsecond, and takes them out again, now and then after a
// restart: a spool that loses a fact of one batch in 200 loses here for certain. What comes back is the facts, in order, each once.
func TestEachOfManyBatchesComesBack(t *testing.T) {
	t.Parallel()
	const batches, most = 1200, 8
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	random := rand.New(rand.NewPCG(seed, 0))
	facts := movesOf(batches * most)
	for i := range facts {
		facts[i].ObservedAt = facts[i].ObservedAt.Add(time.Duration(random.IntN(1000)) * time.Microsecond)
	}
	dir := t.TempDir()
	r := openRig(t, dir, 1<<30)
	kept, got := 0, []trail.Fact(nil)
	for range batches {
		n := 1 + random.IntN(most)
		r.appendFacts(t, facts[kept:kept+n])
		kept += n
		switch random.IntN(100) {
		case 0:
			require.NoError(t, r.Close())
			r = openRig(t, dir, 1<<30)
		case 1, 2, 3:
			out, _ := r.drainAll(t)
			got = append(got, out...)
		}
	}
	out, _ := r.drainAll(t)
	got = append(got, out...)
	require.Len(t, got, kept)
	for i, f := range got {
		require.Equal(t, facts[i].ID, f.ID, "fact %d of %d", i, kept)
		require.True(t, facts[i].ObservedAt.Equal(f.ObservedAt), "fact %d of %d", i, kept)
	}
	require.Empty(t, r.lost)
}
