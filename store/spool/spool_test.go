package spool

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/evictrail/evictrail/trail"
	"github.com/evictrail/evictrail/trail/tracker"
)

var start = time.Date(2026, 11, 21, 10, 0, 0, 0, time.UTC)

// makePlacementFacts are facts of VMs that come to nodes, one a millisecond.
func makePlacementFacts(from, n int) []trail.Fact {
	t := tracker.New("c1")
	var out []trail.Fact
	for i := from; i < from+n; i++ {
		name := fmt.Sprintf("vm-%d", i)
		out = append(out, t.Observe(tracker.VMIObservation{
			Seen: tracker.Seen{At: start.Add(time.Duration(i) * time.Millisecond), Listed: true},
			Meta: tracker.Meta{UID: "uid-" + name, Namespace: "shop", Name: name, ResourceVersion: fmt.Sprint(1000 + i)}, Node: "worker-1",
		})...)
	}
	return out
}

// makeRefusalFacts are requests of one user for one pod, each refused by a budget.
func makeRefusalFacts(from, n int) []trail.Fact {
	t := tracker.New("c1")
	var out []trail.Fact
	for i := from; i < from+n; i++ {
		out = append(out, t.Observe(tracker.RequestObservation{
			Seen: tracker.Seen{At: start.Add(time.Duration(i) * time.Millisecond)}, Source: trail.SourceAudit, ID: fmt.Sprint("audit-", i),
			Stage: "ResponseComplete", Action: trail.ActionEvict, Namespace: "shop", Name: "virt-launcher-db", AskedAt: start,
			Detail: trail.RequestDetail{User: "drainer", Code: 429, Causes: []string{"DisruptionBudget"}, AnsweredAt: start},
		})...)
	}
	return out
}

// makeBlockFacts are what a counter of the descheduler says from scrape to scrape.
func makeBlockFacts(n int) []trail.Fact {
	t := tracker.New("c1")
	var out []trail.Fact
	for i := range n {
		for _, f := range t.Observe(tracker.ScrapeObservation{
			Seen: tracker.Seen{At: start.Add(time.Duration(i) * time.Second)}, Target: "descheduler", StartedAt: start.Add(-time.Hour), Plugin: true,
			Blocks: []tracker.BlockCount{{Reason: "cooldown", Node: "worker-1", Namespace: "shop", Count: float64(i + 1)}},
		}) {
			if f.Kind == trail.KindBlocksObserved {
				out = append(out, f)
			}
		}
	}
	return out
}

// rig is a spool with what it reported about itself.
type rig struct {
	*Spool
	log  *logged
	lost map[string]int // by kind and cause
}

type logged struct {
	mu sync.Mutex
	b  strings.Builder
}

func (l *logged) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *logged) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

func openRig(t *testing.T, dir string, size int64) *rig {
	t.Helper()
	r := &rig{log: &logged{}, lost: map[string]int{}}
	s, err := Open(Options{
		Dir: dir, Cluster: "c1", Size: size, Log: slog.New(slog.NewTextHandler(r.log, nil)), Clock: func() time.Time { return start.Add(time.Hour) },
		Lost: func(kind trail.Kind, cause Cause, n int) { r.lost[string(kind)+" "+string(cause)] += n },
	})
	require.NoError(t, err)
	r.Spool = s
	t.Cleanup(func() { _ = s.Close() })
	return r
}

// copyCrashed is the spool as a process finds it whose predecessor was killed now: a copy, as nobody closed the first.
func (r *rig) copyCrashed(t *testing.T) string {
	t.Helper()
	r.folding.Wait() // else it may replace a file between two that are copied
	dir := t.TempDir()
	require.NoError(t, os.CopyFS(PathOf(dir, "c1"), os.DirFS(r.path)))
	return dir
}

func (r *rig) appendFacts(t *testing.T, facts []trail.Fact) {
	t.Helper()
	require.NoError(t, r.Append(t.Context(), facts))
}

// loadPast returns what the spool knows, with the state of objects.
func (r *rig) loadPast(t *testing.T, waiting bool) (p Past, state []trail.Fact) {
	t.Helper()
	p, err := r.LoadPast(waiting, func(f trail.Fact) { state = append(state, f) })
	require.NoError(t, err)
	return p, state
}

// drainAll takes everything out, without waiting for more.
func (r *rig) drainAll(t *testing.T) (facts []trail.Fact, signs []trail.Sign) {
	t.Helper()
	for {
		r.mu.Lock()
		r.since = time.Time{}
		got, sign, wait := r.nextBatch()
		r.mu.Unlock()
		require.Zero(t, wait, "%s", r.log)
		require.LessOrEqual(t, len(got), batchFacts)
		facts = append(facts, got...)
		if sign != nil {
			require.Empty(t, got)
			signs = append(signs, *sign)
		}
		if len(got) == 0 && sign == nil {
			c := r.Condition()
			require.Zero(t, c.Facts)
			require.Zero(t, c.Bytes)
			require.True(t, c.Oldest.IsZero())
			return facts, signs
		}
		r.Confirm()
	}
}

// splitGaps returns the gaps among facts: source, cause, and what they say.
func splitGaps(facts []trail.Fact) (out []string, rest []trail.Fact) {
	for _, f := range facts {
		d, ok := f.Detail.(*trail.GapDetail)
		switch {
		case !ok:
			rest = append(rest, f)
		case f.Kind == trail.KindGapOpened:
			out = append(out, fmt.Sprintf("%s %s: %s", f.Object.UID, d.Cause, d.Detail))
		}
	}
	return out, rest
}

func TestFactsComeOutAsTheyWentIn(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	r := openRig(t, dir, 1<<30)
	first, second := makePlacementFacts(0, batchFacts+1000), append(makeRefusalFacts(0, 3), makeBlockFacts(3)...)
	r.appendFacts(t, first)
	r.AppendSign(start.Add(time.Minute), []trail.Watching{{Source: "pods", Since: start}})
	r.appendFacts(t, second)
	c := r.Condition()
	require.Equal(t, batchFacts+1006, c.Facts)
	require.Equal(t, first[0].ObservedAt, c.Oldest)
	require.Greater(t, c.Bytes, int64((batchFacts+1006)*200))
	require.NoError(t, c.Problem)

	again := openRig(t, r.copyCrashed(t), 1<<30)
	require.Equal(t, c.Bytes, again.Condition().Bytes)
	facts, sign, err := again.Next(t.Context())
	require.NoError(t, err)
	require.Nil(t, sign)
	require.Equal(t, first[:batchFacts], facts)
	same, _, err := again.Next(t.Context())
	require.NoError(t, err)
	require.Equal(t, facts, same, "as long as nobody says that they are stored")
	long, taken := again.Backlog()
	require.False(t, long, "as long as the database has taken nothing")
	require.Zero(t, taken)
	again.Confirm()
	long, taken = again.Backlog()
	require.False(t, long, "1006 are soon stored")
	require.Equal(t, uint64(batchFacts), taken)
	again.makeRoom(batchFacts, 10*prompt)
	long, _ = again.Backlog()
	require.True(t, long)
	again.storedAt = time.Now().Add(-30 * time.Second)
	long, _ = again.Backlog()
	require.True(t, long, "a database that takes long for a batch is behind, not away")
	again.storedAt = time.Now().Add(-2 * time.Minute)
	long, _ = again.Backlog()
	require.False(t, long)
	again.storedAt = time.Now()
	again.MarkAway()
	long, _ = again.Backlog()
	require.False(t, long, "a database that says that it takes nothing is away at once")
	again = openRig(t, again.copyCrashed(t), 1<<30)
	rest, signs := again.drainAll(t)
	require.Equal(t, append(append([]trail.Fact{}, first[batchFacts:]...), second...), rest)
	require.Equal(t, []trail.Sign{{At: start.Add(time.Minute), Watching: []trail.Watching{{Source: "pods", Since: start}}}}, signs)
	empty := openRig(t, again.copyCrashed(t), 1<<30)
	facts, signs = empty.drainAll(t)
	require.Empty(t, facts)
	require.Empty(t, signs)
	require.Empty(t, empty.lost)

	files, err := os.ReadDir(r.path)
	require.NoError(t, err)
	for _, file := range files {
		info, err := file.Info()
		require.NoError(t, err)
		require.Equal(t, os.FileMode(0o600), info.Mode().Perm(), file.Name())
	}
}

func TestOneProcessPerSpool(t *testing.T) {
	if testing.Short() {
		t.Skip("takes long: make check runs it")
	}
	t.Parallel()
	r := openRig(t, t.TempDir(), 1<<30)
	_, err := Open(Options{Dir: r.Dir, Cluster: "c1", Size: 1 << 30, Log: slog.New(slog.DiscardHandler), Clock: time.Now})
	require.ErrorIs(t, err, ErrHeld)
	require.ErrorContains(t, err, r.path)
	other, err := Open(Options{Dir: r.Dir, Cluster: "a/b", Size: 1 << 30, Log: slog.New(slog.DiscardHandler), Clock: time.Now})
	require.NoError(t, err, "clusters may share a directory")
	require.NoError(t, other.Close())
	require.NoError(t, r.Close())
	openRig(t, r.Dir, 1<<30)
}

// TestSignsOfLife wants signs behind the facts that they speak of, and one where many say the same.
func TestSignsOfLife(t *testing.T) {
	t.Parallel()
	r := openRig(t, t.TempDir(), 1<<30)
	whole := []trail.Watching{{Source: "pods", Since: start}, {Source: trail.SourceSelf, Since: start}}
	for i := range 100 {
		r.AppendSign(start.Add(time.Duration(i)*time.Second), whole)
	}
	r.appendFacts(t, makePlacementFacts(0, 1))
	r.AppendSign(start.Add(200*time.Second), whole[:1])
	r.AppendSign(start.Add(201*time.Second), whole)
	r.AppendSign(start.Add(202*time.Second), whole)
	past, _ := r.loadPast(t, false)
	require.Equal(t, start.Add(202*time.Second), past.Alive)
	require.Equal(t, map[string]time.Time{"pods": start.Add(202 * time.Second), trail.SourceSelf: start.Add(202 * time.Second)}, past.Seen)

	_, sign, err := r.Next(t.Context())
	require.NoError(t, err)
	require.Equal(t, start.Add(99*time.Second), sign.At)
	require.True(t, r.HasMore())
	r.Confirm()
	facts, _, err := r.Next(t.Context())
	require.NoError(t, err)
	require.Len(t, facts, 1)
	r.Confirm()
	r.Confirm() // nothing was given out
	_, sign, err = r.Next(t.Context())
	require.NoError(t, err)
	require.Equal(t, whole[:1], sign.Watching)
	r.Confirm()
	_, sign, err = r.Next(t.Context())
	require.NoError(t, err)
	require.Equal(t, start.Add(202*time.Second), sign.At)
	require.False(t, r.HasMore())
	r.AppendSign(start.Add(203*time.Second), whole) // the last is being stored: another one
	require.True(t, r.HasMore())
	r.Confirm()
	_, sign, err = r.Next(t.Context())
	require.NoError(t, err)
	require.Equal(t, start.Add(203*time.Second), sign.At)
}

// TestWhatMattersLeastIsLeftOutFirst fills a spool with everything at once.
func TestWhatMattersLeastIsLeftOutFirst(t *testing.T) {
	t.Parallel()
	r := openRig(t, memoryDir(t), 200_000)
	share := func() float64 { return float64(r.Condition().Bytes) / 200_000 }
	asked, counted, seen := makeRefusalFacts(0, 2000), makeBlockFacts(2000), makePlacementFacts(0, 2000)
	var repeats, blocked, all float64 // how full it was when each began to be left out
	for i := range asked {
		r.appendFacts(t, asked[i:i+1])
		if repeats == 0 && r.lost["eviction_requested spool_full"] > 0 {
			repeats = share()
		}
		r.appendFacts(t, counted[i:i+1])
		if blocked == 0 && r.lost["blocks_observed spool_full"] > 0 {
			blocked = share()
		}
		r.appendFacts(t, seen[i:i+1])
		if all == 0 && r.lost["vmi_placed spool_full"] > 0 {
			all = share()
		}
	}
	require.InDelta(t, 0.8, repeats, 0.02)
	require.InDelta(t, 0.9, blocked, 0.02)
	require.InDelta(t, 1, all, 0.02)
	c := r.Condition()
	require.True(t, c.Full)
	require.LessOrEqual(t, c.Bytes, int64(205_000))
	require.Equal(t, 1, strings.Count(r.log.String(), "spool is filling up"))

	r = reopenRig(t, r)
	watching := []trail.Watching{{Source: "virtualmachineinstances", Since: start}, {Source: "pods", Since: start}}
	r.AppendSign(start.Add(time.Minute), watching)
	facts, signs := r.drainAll(t)
	gaps, rest := splitGaps(facts)
	require.Empty(t, gaps, "until there is room nothing is reported")
	require.Equal(t, watching[1:], signs[0].Watching, "a source of which something is missing was not seen whole")
	r.AppendSign(start.Add(2*time.Minute), watching)
	facts, signs = r.drainAll(t)
	gaps, more := splitGaps(facts)
	require.Empty(t, more)
	n := func(kept int) string { return fmt.Sprint(2000 - kept) }
	kinds := map[trail.Kind]int{}
	for _, f := range rest {
		kinds[f.Kind]++
	}
	require.ElementsMatch(t, []string{
		"audit overflow: " + n(kinds[trail.KindEvictionRequested]) + " facts found no room in the spool: " + n(kinds[trail.KindEvictionRequested]) + " eviction_requested",
		"descheduler overflow: " + n(kinds[trail.KindBlocksObserved]) + " facts found no room in the spool: " + n(kinds[trail.KindBlocksObserved]) + " blocks_observed",
		"virtualmachineinstances overflow: " + n(kinds[trail.KindVMIPlaced]) + " facts found no room in the spool: " + n(kinds[trail.KindVMIPlaced]) + " vmi_placed",
	}, gaps)
	require.Equal(t, watching[1:], signs[0].Watching, "it is of the moment before the gap was recorded")
	r.AppendSign(start.Add(2*time.Hour), watching)
	facts, signs = r.drainAll(t)
	require.Empty(t, facts, "a gap is recorded once")
	require.Equal(t, []trail.Watching{{Source: "virtualmachineinstances", Since: start.Add(time.Hour)}, watching[1]}, signs[0].Watching)
	require.NotNil(t, r.Doubt(), "what was left out of VMs is to be recorded again")
	require.NoError(t, r.AnswerDoubt(start, nil))
	require.True(t, r.NeedsComparison())
}

// reopenRig goes on with a spool after a crash, with what it reported so far.
func reopenRig(t *testing.T, r *rig) *rig {
	t.Helper()
	next := openRig(t, r.copyCrashed(t), r.Size)
	next.lost = r.lost
	return next
}

// TestTheFirstRefusalIsKept wants one of each refusal to be kept, however full it is.
func TestTheFirstRefusalIsKept(t *testing.T) {
	t.Parallel()
	r := openRig(t, t.TempDir(), 100_000)
	for r.Condition().Bytes < 82_000 {
		r.appendFacts(t, makePlacementFacts(int(r.currentMark().Tail), 1))
	}
	r.appendFacts(t, makeRefusalFacts(0, 5))
	require.Equal(t, map[string]int{"eviction_requested spool_full": 4}, r.lost)
}

func TestStateOutlivesTheProcess(t *testing.T) {
	t.Parallel()
	seen := func(tr *tracker.Tracker, rv, node, mark string, gone bool) []trail.Fact {
		return tr.Observe(tracker.VMIObservation{
			Seen: tracker.Seen{At: start, Gone: gone}, Meta: tracker.Meta{UID: "u", Namespace: "shop", Name: "db", ResourceVersion: rv}, Node: node, Mark: mark,
		})
	}
	before := tracker.New("c1")
	r := openRig(t, t.TempDir(), 1<<30)
	r.appendFacts(t, seen(before, "10", "worker-1", "worker-1", false))
	r.appendFacts(t, before.Observe(tracker.PodObservation{
		Seen: tracker.Seen{At: start}, Meta: tracker.Meta{UID: "p", Namespace: "shop", Name: "virt-launcher-db", ResourceVersion: "11"}, VMI: "db", VMIUID: "u", Node: "worker-1",
	}))
	r.drainAll(t)

	resumed := func(waiting bool) *tracker.Tracker {
		tr := tracker.New("c1")
		_, err := openRig(t, r.copyCrashed(t), 1<<30).LoadPast(waiting, tr.Resume)
		require.NoError(t, err)
		return tr
	}
	require.Empty(t, resumed(true).Held(), "what is stored is read from the database where that is there")
	again := resumed(false)
	require.Empty(t, seen(again, "10", "worker-1", "worker-1", false), "it is as it was recorded")
	cleared := seen(again, "12", "worker-1", "", false)
	require.Len(t, cleared, 1)
	require.Equal(t, trail.KindEvacuationUnmarked, cleared[0].Kind)
	gone := resumed(false).Observe(tracker.ListObservation{Seen: tracker.Seen{At: start}, Kind: trail.ObjectPod, ResourceVersion: "20"})
	require.Len(t, gone, 1)
	require.Equal(t, "virt-launcher-db", gone[0].Detail.(*trail.PodDetail).Pod)

	r.appendFacts(t, seen(before, "13", "worker-1", "worker-1", true))
	require.Equal(t, map[trail.ObjectKind]int{trail.ObjectPod: 1}, resumed(false).Held(), "who is gone is forgotten")
}

// TestRememberTakesWhatTheDatabaseHas wants the state to be that of the database, with what waits for it.
func TestRememberTakesWhatTheDatabaseHas(t *testing.T) {
	t.Parallel()
	r := openRig(t, t.TempDir(), 1<<30)
	require.NotNil(t, r.Doubt(), "a new one does not know what the database has")
	r.appendFacts(t, makePlacementFacts(0, 2)) // vm-1 is to be forgotten, vm-0 not: it still waits
	r.drainAll(t)
	r.appendFacts(t, append(makePlacementFacts(0, 1), makePlacementFacts(7, 1)...))
	database := tracker.New("c1")
	for _, f := range makePlacementFacts(2, 3) {
		database.Resume(f)
	}
	require.NoError(t, r.ReplaceStates(Past{Alive: start, Seen: map[string]time.Time{"pods": start}}, database.State()))
	r = reopenRig(t, r)
	past, state := r.loadPast(t, false)
	var names []string
	for _, f := range state {
		names = append(names, f.VMI)
	}
	require.ElementsMatch(t, []string{"vm-0", "vm-7", "vm-2", "vm-3", "vm-4"}, names)
	require.Equal(t, start, past.Alive)
	waiting, state := r.loadPast(t, true)
	require.Len(t, state, 2)
	require.True(t, waiting.Alive.IsZero())

	require.NoError(t, r.ReplaceStates(Past{Alive: start}, database.State()))
	r.AppendSign(start.Add(time.Second), []trail.Watching{{Source: "pods", Since: start}})
	require.NotNil(t, r.Doubt(), "not everything was listed yet")
	r.AppendSign(start.Add(2*time.Second), []trail.Watching{{Source: trail.SourceSelf, Since: start}})
	require.Nil(t, r.Doubt())
}

// TestDoubtIsAskedOnce wants what the database said before anything was drained to outlive the process.
func TestDoubtIsAskedOnce(t *testing.T) {
	t.Parallel()
	r := openRig(t, t.TempDir(), 1<<30)
	r.appendFacts(t, makePlacementFacts(0, 1))
	require.False(t, r.NeedsComparison())
	require.NoError(t, r.AnswerDoubt(start, map[string]time.Time{"pods": start}))
	require.NoError(t, r.AnswerDoubt(start.Add(time.Hour), nil))
	r = reopenRig(t, r)
	require.Equal(t, &Doubt{Asked: true, Alive: start, Seen: map[string]time.Time{"pods": start}}, r.Doubt())
	require.True(t, r.NeedsComparison())
	require.NoError(t, r.ReplaceStates(Past{Alive: start}, tracker.New("c1").State()))
	require.False(t, r.NeedsComparison(), "it is being done")

	fresh := openRig(t, t.TempDir(), 1<<30)
	require.NoError(t, fresh.AnswerDoubt(time.Time{}, nil))
	require.Nil(t, fresh.Doubt(), "a database that knows nothing has nothing to compare with")
}

// onDisk returns the bytes of all files of a spool.
func (r *rig) onDisk(t *testing.T) (n int64) {
	t.Helper()
	r.folding.Wait()
	files, err := os.ReadDir(r.path)
	require.NoError(t, err)
	for _, file := range files {
		info, err := file.Info()
		require.NoError(t, err)
		n += info.Size()
	}
	return n
}

// TestDiskIsReturned wants what is stored to be deleted, and the states of objects to stay.
func TestDiskIsReturned(t *testing.T) {
	t.Parallel()
	r := openRig(t, t.TempDir(), 1<<30)
	r.journal.limit = 1 << 20
	r.appendFacts(t, makePlacementFacts(0, 10))
	for i := range 20 {
		r.appendFacts(t, makeRefusalFacts(i*1000, 1000))
	}
	require.Greater(t, r.onDisk(t), int64(8<<20))
	facts, _ := r.drainAll(t)
	require.Len(t, facts, 20_010)
	r.folding.Wait() // on a busy machine it goes on until all is drained, and the next one begins with what is drained next
	r.appendFacts(t, makeRefusalFacts(30_000, 1))
	r.drainAll(t)
	require.Less(t, r.onDisk(t), int64(3<<20), "the last segment, and one whose states are folded later")
	r.appendFacts(t, makePlacementFacts(100, 5))
	r = reopenRig(t, r)
	_, state := r.loadPast(t, false)
	require.Len(t, state, 15, "the state of objects stays")
	facts, _ = r.drainAll(t)
	require.Len(t, facts, 5)
}

// TestWhatCannotBeWrittenIsRefused wants one impossible fact to hold up nothing.
func TestWhatCannotBeWrittenIsRefused(t *testing.T) {
	t.Parallel()
	r := openRig(t, t.TempDir(), 1<<30)
	facts := makePlacementFacts(0, 3)
	facts[1].OccurredAt = time.Date(10_000, 1, 1, 0, 0, 0, 0, time.UTC)
	r.appendFacts(t, facts)
	got, _ := r.drainAll(t)
	require.Equal(t, []trail.Fact{facts[0], facts[2]}, got[:2])
	gaps, _ := splitGaps(got[2:])
	require.Equal(t, []string{"virtualmachineinstances refused: 1 fact refused: 1 vmi_placed"}, gaps)
	require.Equal(t, map[string]int{"vmi_placed store_reject": 1}, r.lost)
	letters, unreadable, err := DeadLetters(r.Dir, r.Cluster)
	require.NoError(t, err)
	require.Zero(t, unreadable)
	require.Len(t, letters, 1)
	require.Nil(t, letters[0].Fact)
	require.Contains(t, letters[0].Dump, "vm-1")
}

// TestEntriesOfAnotherVersion wants an entry that is whole and cannot be understood to be set aside alone.
func TestEntriesOfAnotherVersion(t *testing.T) {
	t.Parallel()
	r := openRig(t, t.TempDir(), 1<<30)
	r.appendFacts(t, makePlacementFacts(0, 1))
	newer := frame{form: formFact, payload: []byte(`{"id":"01020304-0000-8000-8000-000000000000","kind":"new","subject":"of another time"}`)}
	require.NoError(t, r.commitEntries([]frame{newer}, r.known))
	r.appendFacts(t, makePlacementFacts(2, 1))
	facts, _ := r.drainAll(t)
	require.Len(t, facts, 2)
	require.Empty(t, r.lost, "it is kept")
	letters, _, err := DeadLetters(r.Dir, r.Cluster)
	require.NoError(t, err)
	require.Len(t, letters, 1)
	require.Contains(t, string(letters[0].Fact), "of another time")
	r.AppendSign(start, nil)
	facts, _ = r.drainAll(t)
	gaps, _ := splitGaps(facts)
	require.Equal(t, []string{"evictrail refused: 1 fact refused: 1 new"}, gaps)
	require.Equal(t, makePlacementFacts(0, 1)[0].ObservedAt, facts[0].OccurredAt, "between those around it")
	require.Equal(t, makePlacementFacts(2, 1)[0].ObservedAt, facts[1].OccurredAt)
}

func TestNextEndsWithItsContext(t *testing.T) {
	t.Parallel()
	r := openRig(t, t.TempDir(), 1<<30)
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() {
		_, _, err := r.Next(ctx)
		done <- err
	}()
	cancel()
	require.ErrorIs(t, <-done, context.Canceled)
}

// TestMemoryIsBounded wants what waits to be on disk alone.
func TestMemoryIsBounded(t *testing.T) { //nolint:paralleltest // others would be measured, too
	r := openRig(t, memoryDir(t), 1<<30)
	heap := func() uint64 {
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return m.HeapAlloc
	}
	facts := makeRefusalFacts(0, 2000)
	before := heap()
	for range 100 {
		r.appendFacts(t, facts)
	}
	require.Greater(t, r.Condition().Bytes, int64(80<<20))
	after := heap()
	require.Less(t, after, before+8<<20)
	require.Equal(t, 200_000, r.Condition().Facts)
}

// TestTheFileOfAnEarlierVersion wants what this version cannot read to be kept, recorded as a gap once, and in nobody's way.
func TestTheFileOfAnEarlierVersion(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	former := filepath.Join(dir, "c1.spool")
	require.NoError(t, os.WriteFile(former, []byte("pages"), 0o600))
	r := openRig(t, dir, 1<<30)
	require.NoFileExists(t, former)
	require.FileExists(t, former+".old")
	require.Contains(t, r.log.String(), "set aside")
	require.Equal(t, map[string]int{"unknown spool_corrupt": 1}, r.lost)
	require.NotNil(t, r.Doubt())
	r = reopenRig(t, r)
	r.appendFacts(t, makePlacementFacts(0, 1))
	facts, _ := r.drainAll(t)
	gaps, facts := splitGaps(facts)
	require.Equal(t, makePlacementFacts(0, 1), facts)
	require.Equal(t, []string{"evictrail corrupted: 1 fact in the spool could not be read again: 1 unknown"}, gaps)
	require.Equal(t, map[string]int{"unknown spool_corrupt": 1}, r.lost, "once")
}

// TestAllAtOnce appends, drains, folds, resumes and looks at a spool at the same time: all facts come out in order, and the states are complete in the end.
func TestAllAtOnce(t *testing.T) {
	t.Parallel()
	r := openRig(t, memoryDir(t), 1<<30)
	r.journal.limit = 16 << 10 // bytes: states are folded all the time
	facts := makePlacementFacts(0, 3000)
	tr := tracker.New("c1")
	for _, f := range facts[:100] {
		tr.Resume(f)
	}
	var running, looking sync.WaitGroup
	done := make(chan struct{})
	running.Go(func() {
		for i := 0; i < len(facts); i += 10 {
			require.NoError(t, r.Append(t.Context(), facts[i:i+10]))
			r.AppendSign(start.Add(time.Duration(i)*time.Second), []trail.Watching{{Source: "pods", Since: start}})
			require.NoError(t, r.SetIdentity(trail.Identity{UID: "a", Epoch: trail.Epoch(i)}))
		}
	})
	var got []trail.Fact
	running.Go(func() {
		for len(got) < len(facts) {
			some, _, err := r.Next(t.Context())
			require.NoError(t, err)
			got = append(got, some...)
			r.Confirm()
		}
	})
	for _, look := range []func(){
		func() { require.NoError(t, r.Condition().Problem) },
		func() { _, err := r.LoadPast(false, func(trail.Fact) {}); require.NoError(t, err) },
		func() { require.NoError(t, r.ReplaceStates(Past{}, tr.State())) },
		func() { r.Backlog(); r.HasMore(); r.NeedsComparison() },
	} {
		looking.Go(func() {
			for {
				select {
				case <-done:
					return
				case <-time.After(time.Millisecond):
					look()
				}
			}
		})
	}
	running.Wait()
	close(done)
	looking.Wait()
	require.Equal(t, facts, got)
	require.Empty(t, r.lost)
	for _, f := range facts {
		tr.Resume(f)
	}
	require.NoError(t, r.ReplaceStates(Past{}, tr.State()))
	_, state := reopenRig(t, r).loadPast(t, false)
	require.Len(t, state, len(facts))
}

// TestRoom lets as many facts wait as are stored promptly.
func TestRoom(t *testing.T) {
	t.Parallel()
	r := openRig(t, t.TempDir(), 1<<30)
	for _, batch := range []struct {
		facts int
		took  time.Duration
		room  int
	}{
		{5000, time.Second, mostRoom},
		{5000, 20 * time.Second, 750},
		{5000, 20 * time.Second, 750},
		{750, 15 * time.Second, leastRoom},
		{10, 10 * time.Millisecond, leastRoom},
		{500, time.Second, 2 * leastRoom},
		{500, 6 * time.Second, leastRoom},
		{600, time.Second, 2 * leastRoom},
		{5000, time.Second, 4 * leastRoom},
	} {
		r.makeRoom(batch.facts, batch.took)
		require.Equal(t, batch.room, r.room, "%+v", batch)
	}
}

// TestBreaks notes a second break before the first is known to be recorded: each becomes a gap, and none is left once everything is seen again.
func TestBreaks(t *testing.T) {
	t.Parallel()
	r := openRig(t, t.TempDir(), 1<<30)
	restored := trail.Break{Cause: trail.ReasonClusterRestored, Key: "epoch/1", From: start}
	rebuilt := trail.Break{Cause: trail.ReasonClusterRebuilt, Key: "epoch/2", From: start.Add(time.Minute)}
	whole := []trail.Watching{{Source: trail.SourceSelf, Since: start}}
	require.NoError(t, r.BeginEpoch(trail.Identity{UID: "a", Epoch: 1}, restored))
	require.Equal(t, []trail.Break{restored}, r.ClaimBreaks())
	r.AppendSign(start.Add(time.Second), nil) // not everything is seen
	require.NoError(t, r.BeginEpoch(trail.Identity{UID: "b", Epoch: 2}, rebuilt))
	r.AppendSign(start.Add(2*time.Second), whole) // of the collector that does not know of the second
	require.NoError(t, r.Close())

	r = openRig(t, r.Dir, 1<<30)
	require.Equal(t, trail.Identity{UID: "b", Epoch: 2}, r.Identity())
	require.Equal(t, []trail.Break{restored, rebuilt}, r.ClaimBreaks())
	require.NoError(t, r.BeginEpoch(trail.Identity{UID: "b", Epoch: 2}, rebuilt))
	require.Equal(t, []trail.Break{restored, rebuilt}, r.ClaimBreaks(), "the same break once")
	r.AppendSign(start.Add(3*time.Minute), whole)
	require.Empty(t, r.ClaimBreaks())
}
