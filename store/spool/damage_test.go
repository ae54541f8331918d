package spool

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"os"
	"runtime"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/evictrail/evictrail/trail"
)

// filled is a file in which some of 10,000 facts wait and others did, with a sign between.
func filled(t *testing.T) (raw []byte, waiting []trail.Fact) {
	t.Helper()
	return filledWith(t, 500)
}

// filledWith is filled with twenty times so many facts.
func filledWith(t *testing.T, each int) (raw []byte, waiting []trail.Fact) {
	t.Helper()
	r := begin(t, t.TempDir(), 1<<30)
	stored := 0
	for i := range 20 {
		r.take(t, placed(i*each, each))
		if i == 10 {
			batch, _, err := r.Next(t.Context())
			require.NoError(t, err)
			r.Stored()
			stored = len(batch)
			r.Sign(start, []trail.Watching{{Source: "pods", Since: start}})
		}
	}
	raw, err := os.ReadFile(r.path)
	require.NoError(t, err)
	return raw, placed(stored, 20*each-stored)
}

// opened opens a spool on a file of these bytes.
func opened(t *testing.T, raw []byte) *rig {
	t.Helper()
	dir := t.TempDir()
	require.NoError(t, os.WriteFile(PathOf(dir, "c1"), raw, 0o600))
	return begin(t, dir, 1<<30)
}

// requirePart wants facts to be some of those that went in, in their order, each once, and tells how many are missing.
func requirePart(t *testing.T, in, out []trail.Fact, note string) (missing int) {
	t.Helper()
	at := 0
	for _, f := range out {
		for at < len(in) && in[at].ID != f.ID {
			at++
		}
		require.Less(t, at, len(in), "%s: %s of %s did not go in, or not then", note, f.Kind, f.VMI)
		require.Equal(t, in[at], f, note)
		at++
	}
	return len(in) - len(out)
}

// TestFlippedBits turns bits of a spool, one in each of many files, and a thousand in one. What comes out is what went in; what does not is
// counted and told as a gap.
func TestFlippedBits(t *testing.T) {
	t.Parallel()
	raw, want := filled(t)
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d, %d bytes", seed, len(raw))
	random := rand.New(rand.NewPCG(seed, 0))
	flips := append(slices.Repeat([]int{1}, 60), 10, 100, 1000, 1000, 1000)
	lostInAll := 0
	for run, n := range flips {
		damaged := bytes.Clone(raw)
		for range n {
			bit := random.IntN(len(damaged) * 8)
			if run < 20 { // where the structure is: the first pages
				bit = random.IntN(4 * 4096 * 8)
			}
			damaged[bit/8] ^= 1 << (bit % 8)
		}
		lostInAll += requireTold(t, damaged, want, n, fmt.Sprintf("run %d of seed %d", run, seed))
	}
	t.Logf("%d facts lost in all", lostInAll)
	require.Positive(t, lostInAll, "no bit hit a fact")
}

// TestFlippedBuckets turns a bit of each byte that tells where the buckets are and what lies in them, while garbage is collected all the time: of a pointer
// that leads nowhere the collector would end the process.
func TestFlippedBuckets(t *testing.T) {
	t.Parallel()
	raw, want := filledWith(t, 2)
	root, err := rootOf(bytes.NewReader(raw))
	require.NoError(t, err)
	at := bytes.Index(raw, root)
	require.Positive(t, at)
	stop := make(chan struct{})
	var collecting sync.WaitGroup
	defer collecting.Wait()
	defer close(stop)
	collecting.Go(func() {
		for {
			select {
			case <-stop:
				return
			case <-time.After(time.Millisecond): // the machine is for others, too
				runtime.GC()
			}
		}
	})
	values, after := bytes.Index(root, keyKnown), bytes.Index(root, bucketQueue) // between are values that have a CRC of their own
	require.Positive(t, values)
	require.Less(t, values, after)
	for i := range len(bytes.TrimRight(root, "\x00")) {
		if i >= values && i < after {
			continue
		}
		for _, bit := range []byte{0, 4} {
			damaged := bytes.Clone(raw)
			damaged[at+i] ^= 1 << bit
			requireTold(t, damaged, want, 1, fmt.Sprintf("bit %d of byte %d of the page with the buckets", bit, i))
		}
	}
}

// TestFlippedSign turns a bit of the sign of life between facts: what cannot be read counts as lost, as nothing says that it was no fact.
func TestFlippedSign(t *testing.T) {
	t.Parallel()
	raw, want := filled(t)
	at := bytes.Index(raw, []byte(`{"at":"2`))
	require.Positive(t, at)
	raw[at] ^= 1
	require.Zero(t, requireTold(t, raw, want, 1, "the sign"))
}

// requireTold wants what went into a file, of which some bits were turned, to come out but for what is told as lost, and the spool to go on.
func requireTold(t *testing.T, damaged []byte, want []trail.Fact, bits int, note string) (missing int) {
	t.Helper()
	r := opened(t, damaged)
	facts, signs := r.drain(t)
	told, facts := gaps(facts)
	missing = requirePart(t, want, facts, note)
	lost := missing + 1 - len(signs) // one sign of life went in
	require.Equal(t, lost, r.lost["unknown spool_corrupt"], "%s: %s", note, r.log)
	if bits < 1000 {
		require.LessOrEqual(t, lost, bits, "%s: no entry is lost with another", note)
	}
	if lost > 0 {
		require.NotNil(t, r.Doubted(), note)
		r.Sign(start, nil)
		more, _ := r.drain(t)
		later, _ := gaps(more)
		told = append(told, later...)
		require.Len(t, told, 1, note)
		noun := "facts"
		if lost == 1 {
			noun = "fact"
		}
		require.Contains(t, told[0], fmt.Sprintf("evictrail corrupted: %d %s in", lost, noun), note)
	}
	r.take(t, placed(20_000, 5))
	facts, _ = r.drain(t)
	require.Len(t, facts, 5, "%s: it goes on", note)
	require.NoError(t, r.Close())
	return missing
}

// TestCutAndForeignFiles wants whatever lies in the place of a spool not to keep evictrail from starting.
func TestCutAndForeignFiles(t *testing.T) {
	t.Parallel()
	raw, want := filled(t)
	for name, damaged := range map[string][]byte{
		"cut in the middle": raw[:len(raw)/2], "a page and a half": raw[:6000], "some bytes": raw[:100], "zeros": make([]byte, 1<<20),
		"another program's": []byte("this is a letter, and no spool"), "its middle is gone": append(append(append([]byte{}, raw[:len(raw)/3]...), make([]byte, len(raw)/3)...), raw[len(raw)/3*2:]...),
	} {
		r := opened(t, damaged)
		facts, _ := r.drain(t)
		_, facts = gaps(facts)
		missing := requirePart(t, want, facts, name)
		require.Contains(t, r.log.String(), "spool damaged", name)
		require.FileExists(t, r.path+".damaged", name)
		require.NotNil(t, r.Doubted(), name)
		if name == "cut in the middle" || name == "its middle is gone" {
			require.Less(t, missing, len(want), name)
			require.Positive(t, r.lost["unknown spool_corrupt"], name)
		}
		r.take(t, placed(20_000, 5))
		facts, _ = r.drain(t)
		_, facts = gaps(facts)
		require.Len(t, facts, 5, name)
	}
}

// TestDamageWhileItRuns damages the file below an open spool.
func TestDamageWhileItRuns(t *testing.T) {
	t.Parallel()
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	random := rand.New(rand.NewPCG(seed, 0))
	for run := range 20 {
		note := fmt.Sprintf("run %d of seed %d", run, seed)
		r := begin(t, t.TempDir(), 1<<30)
		var want []trail.Fact
		for i := range 6 {
			facts := placed(i*300, 300)
			want = append(want, facts...)
			r.take(t, facts)
		}
		f, err := os.OpenFile(r.path, os.O_RDWR, 0)
		require.NoError(t, err)
		size := 2 << 20
		info, err := f.Stat()
		require.NoError(t, err)
		size = min(size, int(info.Size()))
		for range 30 {
			_, err := f.WriteAt([]byte{byte(random.IntN(256))}, int64(2*4096+random.IntN(size-2*4096)))
			require.NoError(t, err)
		}
		require.NoError(t, f.Close())
		r.take(t, placed(5000, 10))
		want = append(want, placed(5000, 10)...)
		facts, _ := r.drain(t)
		_, facts = gaps(facts)
		missing := requirePart(t, want, facts, note)
		require.Equal(t, missing, r.lost["unknown spool_corrupt"], "%s: %s", note, r.log)
		require.LessOrEqual(t, missing, 30, note)
		require.NoError(t, r.Condition().Problem, note)
	}
}
