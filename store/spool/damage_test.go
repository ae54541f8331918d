package spool

import (
	"bytes"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/evictrail/evictrail/trail"
	"github.com/evictrail/evictrail/trail/tracker"
)

// image is the content of the files of a spool, by their names.
type image map[string][]byte

// imageOf reads the files of a spool, as a process finds them whose predecessor was killed.
func (r *rig) imageOf(t *testing.T) image {
	t.Helper()
	r.folding.Wait()
	out := image{}
	files, err := os.ReadDir(r.path)
	require.NoError(t, err)
	for _, file := range files {
		raw, err := os.ReadFile(filepath.Join(r.path, file.Name()))
		require.NoError(t, err)
		if len(raw) > 0 {
			out[file.Name()] = raw
		}
	}
	return out
}

// memoryDir returns a directory in memory, where syncing costs nothing; what has to be on a disk is for the tests of power cuts.
func memoryDir(t *testing.T) string {
	t.Helper()
	const shared = "/dev/shm"
	if !pathExists(shared) {
		return t.TempDir()
	}
	dir, err := os.MkdirTemp(shared, "evictrail")
	require.NoError(t, err)
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	return dir
}

// openSpool opens a spool on these files.
func (i image) openSpool(t *testing.T) *rig {
	t.Helper()
	dir := memoryDir(t)
	require.NoError(t, os.Mkdir(PathOf(dir, "c1"), 0o700))
	for name, raw := range i {
		require.NoError(t, os.WriteFile(filepath.Join(PathOf(dir, "c1"), name), raw, 0o600))
	}
	return openRig(t, dir, 1<<30)
}

// listSegments names the segments in their order.
func (i image) listSegments() []string {
	return slices.DeleteFunc(slices.Sorted(maps.Keys(i)), func(name string) bool { return !strings.HasSuffix(name, ".facts") })
}

// flipBits is a copy in which some bits are turned: that of each place in the files one after the other.
func (i image) flipBits(bits ...int) image {
	out := image{}
	for _, name := range slices.Sorted(maps.Keys(i)) {
		out[name] = bytes.Clone(i[name])
		size := len(i[name]) * 8
		for n, bit := range bits {
			if bit >= 0 && bit < size {
				out[name][bit/8] ^= 1 << (bit % 8)
			}
			bits[n] -= size
		}
	}
	return out
}

// size returns the bytes of all files.
func (i image) size() (n int) {
	for _, raw := range i {
		n += len(raw)
	}
	return n
}

// makeFilledSpool is a spool of several segments in which some facts are stored and others wait, with signs between, with states that were folded, and with an identity that
// was noted last. It returns all facts, and how many are stored.
func makeFilledSpool(t *testing.T, batches, each int) (files image, facts []trail.Fact, stored int) {
	t.Helper()
	r := openRig(t, t.TempDir(), 1<<30)
	r.journal.limit = 1 << 10 // bytes: about two batches
	require.NoError(t, r.AnswerDoubt(time.Time{}, nil))
	facts = makePlacementFacts(0, batches*each)
	for i := range batches {
		r.appendFacts(t, facts[i*each:(i+1)*each])
		if i == batches/3 {
			batch, _, err := r.Next(t.Context())
			require.NoError(t, err)
			r.Confirm()
			stored = len(batch)
		}
		r.folding.Wait()
		r.AppendSign(start.Add(time.Duration(i)*time.Second), []trail.Watching{{Source: "pods", Since: start}})
	}
	require.NoError(t, r.SetIdentity(trail.Identity{UID: "kube-system", Epoch: 3}))
	files = r.imageOf(t)
	require.Greater(t, len(files.listSegments()), 1)
	require.Contains(t, files, "state")
	return files, facts, stored
}

// requirePart wants facts to be some of those that went in, in their order, each once, and returns how many are missing.
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

// requireReported wants the facts that waited in files, of which some are damaged, to come out, but for what is counted and recorded as a gap, and the spool to go on.
func requireReported(t *testing.T, files image, facts []trail.Fact, stored int, note string) (missing int) {
	t.Helper()
	r := files.openSpool(t)
	known := r.Identity().UID == "kube-system"
	require.True(t, known || r.lost["unknown spool_corrupt"] > 0 || !strings.Contains(note, "one bit"), "%s: what is known was lost silently", note)
	states := map[string]bool{}
	_, err := r.LoadPast(false, func(f trail.Fact) { states[f.Object.UID] = true })
	require.NoError(t, err)
	out, _ := r.drainAll(t)
	for _, f := range facts {
		require.True(t, states[f.Object.UID] || r.Doubt() != nil, "%s: the state of %s was lost silently", note, f.VMI)
	}
	gaps, out := splitGaps(out)
	for len(out) > 0 && slices.ContainsFunc(facts[:stored], func(f trail.Fact) bool { return f.ID == out[0].ID }) {
		out = out[1:] // without its mark the spool does not know that it is stored
	}
	missing = requirePart(t, facts[stored:], out, note)
	lost := r.lost["unknown spool_corrupt"]
	require.GreaterOrEqual(t, lost, missing, "%s: %s", note, r.log)
	if lost > 0 {
		require.NotNil(t, r.Doubt(), note)
		r.AppendSign(start, nil)
		more, _ := r.drainAll(t)
		later, _ := splitGaps(more)
		gaps = append(gaps, later...)
		require.Len(t, gaps, 1, note)
		require.Contains(t, gaps[0], fmt.Sprintf("evictrail corrupted: %d fact", lost), note)
	}
	r.appendFacts(t, makePlacementFacts(20_000, 5))
	out, _ = r.drainAll(t)
	require.Len(t, out, 5, "%s: it goes on", note)
	require.NoError(t, r.Close())
	require.NoError(t, os.RemoveAll(r.Dir))
	return missing
}

// everyNinthInShort returns how far the next byte is that a test damages: with go test -short, as `make test` has it, it damages every ninth.
func everyNinthInShort() int {
	if testing.Short() {
		return 9
	}
	return 1
}

// TestEachFlippedByte turns one bit of each byte of a small spool. At most one fact is lost with it, and what is lost is recorded.
func TestEachFlippedByte(t *testing.T) {
	t.Parallel()
	files, facts, stored := makeFilledSpool(t, 5, 2)
	t.Logf("%d bytes in %d files", files.size(), len(files))
	lost := 0
	for at := 0; at < files.size(); at += everyNinthInShort() {
		missing := requireReported(t, files.flipBits(at*8+at%8), facts, stored, fmt.Sprintf("one bit of byte %d of %v", at, files.listSegments()))
		require.LessOrEqual(t, missing, 1, "byte %d", at)
		lost += missing
	}
	require.Greater(t, everyNinthInShort()*lost, 100*(len(facts)-stored), "each byte of a fact that waits counts")
}

// TestFlippedBits turns bits anywhere in a larger spool, one in each of many copies, and a thousand in one.
func TestFlippedBits(t *testing.T) {
	t.Parallel()
	files, facts, stored := makeFilledSpool(t, 20, 50)
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d, %d bytes in %d files", seed, files.size(), len(files))
	random := rand.New(rand.NewPCG(seed, 0))
	lost := 0
	for run, n := range append(slices.Repeat([]int{1}, 30), 10, 100, 1000, 1000, 1000) {
		var bits []int
		for range n {
			bits = append(bits, random.IntN(files.size()*8))
		}
		note := fmt.Sprintf("%d bits, run %d of seed %d", n, run, seed)
		missing := requireReported(t, files.flipBits(bits...), facts, stored, note)
		require.LessOrEqual(t, missing, n, "%s: no fact is lost with another", note)
		lost += missing
	}
	require.Positive(t, lost, "no bit hit a fact")
}

// TestTornTail cuts the last segment at each of its bytes. Where the facts that are cut off had been acknowledged they are recorded as lost; where the write was
// not finished, as the mark of before it says, what is whole comes out and nothing counts as lost.
func TestTornTail(t *testing.T) {
	t.Parallel()
	r := openRig(t, t.TempDir(), 1<<30)
	require.NoError(t, r.AnswerDoubt(time.Time{}, nil))
	facts := makePlacementFacts(0, 6)
	r.appendFacts(t, facts[:4])
	before := r.imageOf(t)["mark"]
	r.appendFacts(t, facts[4:])
	files := r.imageOf(t)
	last := files.listSegments()[0]
	whole := files[last]
	for at := 0; at < len(whole); at += everyNinthInShort() {
		files[last] = whole[:at]
		missing := requireReported(t, files, facts, 0, fmt.Sprintf("cut at %d", at))
		require.Equal(t, missing > 0, at < len(whole), "cut at %d", at)

		torn := maps.Clone(files)
		torn["mark"] = before
		r := torn.openSpool(t)
		out, _ := r.drainAll(t)
		_, out = splitGaps(out)
		missing = requirePart(t, facts, out, fmt.Sprintf("torn at %d", at))
		require.Equal(t, max(0, missing-2), r.lost["unknown spool_corrupt"], "torn at %d: four were acknowledged", at)
		require.NoError(t, os.RemoveAll(r.Dir))
	}
}

// TestGarbageBehind wants a write that the disk did not finish, of which the size of the file is all that came, to cost nothing; and where nobody knows any more
// what was acknowledged, to count as a fact.
func TestGarbageBehind(t *testing.T) {
	t.Parallel()
	files, facts, stored := makeFilledSpool(t, 5, 2)
	last := files.listSegments()[len(files.listSegments())-1]
	files[last] = append(bytes.Clone(files[last]), make([]byte, 5000)...)
	r := files.openSpool(t)
	out, _ := r.drainAll(t)
	require.Equal(t, facts[stored:], out)
	require.Empty(t, r.lost)

	delete(files, "mark")
	r = files.openSpool(t)
	out, _ = r.drainAll(t)
	require.Equal(t, 1, r.lost["unknown spool_corrupt"])
	require.Zero(t, requirePart(t, facts[stored:], out[len(out)-len(facts)+stored:], "all come out"))
}

// TestMissingAndForeignFiles wants whatever lies in the place of a spool not to keep evictrail from starting, and what is missing to be recorded.
func TestMissingAndForeignFiles(t *testing.T) {
	t.Parallel()
	files, facts, stored := makeFilledSpool(t, 20, 20)
	segments := files.listSegments()
	first := func(i int) (n int) { // of the facts of a segment, how many came before
		if i == len(segments) {
			return len(facts)
		}
		_, err := fmt.Sscanf(segments[i], segmentName, new(int), &n)
		require.NoError(t, err)
		return n - 1
	}
	for i, name := range append(slices.Clone(segments), "state", "mark", "known") {
		want := 0
		if i < len(segments) {
			want = max(0, first(i+1)-max(first(i), stored))
		}
		for what, content := range map[string][]byte{"is gone": nil, "is empty": {}, "has zeros": make([]byte, 1<<20), "is another program's": []byte("this is a letter, and no spool")} {
			damaged := maps.Clone(files)
			if damaged[name] = content; content == nil {
				delete(damaged, name)
			}
			require.Equal(t, want, requireReported(t, damaged, facts, stored, name+" "+what), "%s %s", name, what)
		}
	}
	foreign := maps.Clone(files)
	foreign["notes.txt"], foreign["0000000001-1.facts"], foreign["9999999999-x.facts"] = []byte("hello"), []byte("hello"), []byte("hello")
	require.Zero(t, requireReported(t, foreign, facts, stored, "files of somebody else"))
	require.Equal(t, len(facts)-stored, requireReported(t, image{"mark": files["mark"], "known": files["known"]}, facts, stored, "all facts are gone"))
}

// TestDamageWhileItRuns damages the files below an open spool.
func TestDamageWhileItRuns(t *testing.T) {
	if testing.Short() {
		t.Skip("takes long: make check runs it")
	}
	t.Parallel()
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	random := rand.New(rand.NewPCG(seed, 0))
	for run := range 20 {
		note := fmt.Sprintf("run %d of seed %d", run, seed)
		r := openRig(t, t.TempDir(), 1<<30)
		r.journal.limit = 100 << 10
		facts := makePlacementFacts(0, 1800)
		for i := range 6 {
			r.appendFacts(t, facts[i*300:(i+1)*300])
		}
		r.folding.Wait()
		for range 30 {
			segment := r.journal.list[random.IntN(len(r.journal.list))]
			f, err := os.OpenFile(r.journal.segmentPath(segment), os.O_RDWR, 0)
			require.NoError(t, err)
			_, err = f.WriteAt([]byte{byte(random.IntN(256))}, random.Int64N(segment.size))
			require.NoError(t, err)
			require.NoError(t, f.Close())
		}
		r.appendFacts(t, makePlacementFacts(5000, 10))
		out, _ := r.drainAll(t)
		_, out = splitGaps(out)
		missing := requirePart(t, append(facts, makePlacementFacts(5000, 10)...), out, note)
		require.Equal(t, missing, r.lost["unknown spool_corrupt"], "%s: %s", note, r.log)
		require.LessOrEqual(t, missing, 30, note)
		require.NoError(t, r.Condition().Problem, note)
	}
}

// TestStatesAreDoubtedWhenDamaged wants a comparison with the database where a state cannot be read, and the others to be resumed from.
func TestStatesAreDoubtedWhenDamaged(t *testing.T) {
	t.Parallel()
	r := openRig(t, t.TempDir(), 1<<30)
	require.NoError(t, r.AnswerDoubt(time.Time{}, nil))
	tr := tracker.New("c1")
	for _, f := range makePlacementFacts(0, 10) {
		tr.Resume(f)
	}
	require.NoError(t, r.ReplaceStates(Past{}, tr.State()))
	files := r.imageOf(t)
	files["state"][len(files["state"])/2] ^= 1
	r = files.openSpool(t)
	require.Nil(t, r.Doubt(), "nobody looked yet")
	_, state := r.loadPast(t, false)
	require.Len(t, state, 9)
	require.NotNil(t, r.Doubt())
	require.True(t, r.NeedsComparison())
}
