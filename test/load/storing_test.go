package load_test

import (
	"slices"
	"strconv"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/evictrail/evictrail/store"
	"github.com/evictrail/evictrail/trail"
	"github.com/evictrail/evictrail/trail/tracker"
)

// mostHeld is what storing facts may hold at once, in bytes, however long the histories of their VMs are.
const mostHeld = 192 << 20

// storing has some VMs of the large cluster, and what is seen of them from when on it was seen last.
type storing struct {
	store   *store.ClusterStore
	vms     []placedVM
	seen    time.Time
	tracker *tracker.Tracker
	changes int
}

type placedVM struct{ Namespace, VMI, UID, Node string }

func newStoring(t *testing.T) *storing {
	t.Helper()
	s, url := openDatabase(t)
	seen, err := s.LastAlive(t.Context(), large)
	require.NoError(t, err)
	conn, err := pgx.Connect(t.Context(), url)
	require.NoError(t, err)
	rows, err := conn.Query(t.Context(), "SELECT namespace, vmi, vmi_uid, node FROM evictrail_v1.placements WHERE cluster = $1 AND to_at IS NULL ORDER BY vmi_uid LIMIT 1000", large)
	require.NoError(t, err)
	vms, err := pgx.CollectRows(rows, pgx.RowToStructByPos[placedVM])
	require.NoError(t, err)
	_, err = conn.Exec(t.Context(), `INSERT INTO evictrail.leaders (cluster, term, holder, since, program, program_term) VALUES ($1, 1, 'r', now(), 'this', 1) ON CONFLICT DO NOTHING`, large)
	require.NoError(t, err, "else the whole history would be derived again")
	require.NoError(t, conn.Close(t.Context()))
	require.NotEmpty(t, vms)
	sink := s.For(large, "r")
	require.NoError(t, sink.Lead(t.Context(), "this", trail.DefaultThresholds()))
	return &storing{store: sink, vms: vms, seen: seen, tracker: tracker.New(large)}
}

// observeChange returns the facts of the next change: one VM after the other is marked, or is marked no more. The first time that a VM is seen there are more.
func (s *storing) observeChange(vm placedVM, mark string) []trail.Fact {
	s.seen, s.changes = s.seen.Add(time.Millisecond), s.changes+1
	return s.tracker.Observe(tracker.VMIObservation{
		Meta: tracker.Meta{UID: vm.UID, Namespace: vm.Namespace, Name: vm.VMI, ResourceVersion: strconv.FormatInt(s.seen.UnixMicro(), 10), CreatedAt: s.seen},
		Seen: tracker.Seen{At: s.seen}, Node: vm.Node, Phase: "Running", Strategy: "LiveMigrate", Mark: mark,
	})
}

// TestHeldAtOnce stores new facts of a thousand VMs of the large cluster at once, as when an outage is over, and reports how much memory was in use at most beside what
// was before.
func TestHeldAtOnce(t *testing.T) { //nolint:paralleltest // what runs beside it would be measured, too
	s := newStoring(t)
	var facts []trail.Fact
	for _, vm := range s.vms {
		for _, mark := range []string{vm.Node, ""} {
			facts = append(facts, s.observeChange(vm, mark)...)
		}
	}
	most, stop := inUse()
	began := time.Now()
	news, err := s.store.Append(t.Context(), facts)
	require.NoError(t, err)
	_, _, err = s.store.CatchUp(t.Context(), nil)
	took := time.Since(began)
	stop()
	require.NoError(t, err)
	t.Logf("%d facts of %d VMs, %d of them new: stored in %s, %d MiB", len(facts), len(s.vms), len(news.Facts), took.Round(time.Millisecond), most()>>20)
	require.Less(t, most(), uint64(mostHeld))
}

// TestLatency has changes of VMs of the large cluster come at a steady rate, and logs how long after each was due it was recorded, and how long after that all that
// is derived of it was committed. As in a leader one goroutine records and another derives: what comes while one is at work is taken together the next time.
func TestLatency(t *testing.T) { //nolint:paralleltest // what runs beside it would be measured, too
	s := newStoring(t)
	marks := map[placedVM]string{}
	for _, rate := range []int{50, 200, 1000} {
		n := max(1, int(lasts.Seconds()*float64(rate)))
		began := time.Now()
		dueAt := func(i int) time.Time { return began.Add(time.Duration(i) * time.Second / time.Duration(rate)) }
		var recordedSoFar atomic.Int64
		derived := make(chan []time.Duration)
		go func() { derived <- s.deriveChanges(t, n, dueAt, &recordedSoFar) }()
		var recorded []time.Duration
		for len(recorded) < n {
			var facts []trail.Fact
			first := len(recorded)
			upTo := first
			for ; upTo < n && !time.Now().Before(dueAt(upTo)); upTo++ {
				vm := s.vms[s.changes%len(s.vms)]
				if marks[vm] == "" {
					marks[vm] = vm.Node
				} else {
					marks[vm] = ""
				}
				facts = append(facts, s.observeChange(vm, marks[vm])...)
			}
			if len(facts) == 0 {
				time.Sleep(10 * time.Millisecond)
				continue
			}
			news, err := s.store.Append(t.Context(), facts)
			require.NoError(t, err)
			require.Len(t, news.Facts, len(facts))
			for i := first; i < upTo; i++ {
				recorded = append(recorded, time.Since(dueAt(i)))
			}
			recordedSoFar.Store(int64(upTo))
		}
		took := <-derived
		slices.Sort(recorded)
		slices.Sort(took)
		t.Logf("%d changes at %d a second: recorded p50 %s, p99 %s; with all rows p50 %s, p99 %s", n, rate,
			recorded[n/2].Round(time.Millisecond), recorded[n*99/100].Round(time.Millisecond), took[n/2].Round(time.Millisecond), took[n*99/100].Round(time.Millisecond))
	}
}

// deriveChanges derives what is recorded until that is all of n changes, and returns how long after each was due all its rows were there.
func (s *storing) deriveChanges(t *testing.T, n int, dueAt func(int) time.Time, recorded *atomic.Int64) []time.Duration {
	t.Helper()
	took := make([]time.Duration, 0, n)
	for len(took) < n {
		upTo := int(recorded.Load())
		_, rest, err := s.store.KeepUp(t.Context())
		if err != nil {
			t.Errorf("derive: %v", err)
			return make([]time.Duration, n)
		}
		if rest > 0 { // nothing is left
			for i := len(took); i < upTo; i++ {
				took = append(took, time.Since(dueAt(i)))
			}
			if err := s.store.Rest(t.Context(), rest); err != nil {
				t.Errorf("rest: %v", err)
			}
		}
	}
	return took
}
