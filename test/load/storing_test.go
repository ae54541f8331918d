package load_test

import (
	"fmt"
	"slices"
	"strconv"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/evictrail/evictrail/store"
	"github.com/evictrail/evictrail/store/pg"
	"github.com/evictrail/evictrail/trail"
	"github.com/evictrail/evictrail/trail/tracker"
)

// mostHeld is what storing facts may hold at once, in bytes, however long the histories of their VMs are.
const mostHeld = 192 << 20

// storing has some VMs of the large cluster, and what is seen of them from when on it was seen last.
type storing struct {
	db      *pg.DB
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
	return &storing{db: s.DB, store: sink, vms: vms, seen: seen, tracker: tracker.New(large)}
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

// due is a change of a VM: when it was to be recorded, and the latest of its facts.
type due struct {
	at   time.Time
	vm   trail.Subject
	last time.Time
}

// TestLatency has changes of VMs of the large cluster come at a steady rate, and logs how long after each was due it was recorded, how long after that the rows of its VM
// were committed, and how long after that all that is derived, those of nodes, too. As in a leader one goroutine records and another derives: what comes while one is
// at work is taken together the next time.
func TestLatency(t *testing.T) { //nolint:paralleltest // what runs beside it would be measured, too
	s := newStoring(t)
	marks := map[placedVM]string{}
	for _, rate := range []int{50, 200, 1000} {
		n := max(1, int(lasts.Seconds()*float64(rate)))
		began := time.Now()
		changes := make([]due, n)
		var recordedSoFar atomic.Int64
		derived := make(chan [2][]time.Duration)
		go func() {
			vms, all := s.deriveChanges(t, changes, &recordedSoFar)
			derived <- [2][]time.Duration{vms, all}
		}()
		var recorded []time.Duration
		for len(recorded) < n {
			var facts []trail.Fact
			first := len(recorded)
			upTo := first
			for ; upTo < n; upTo++ {
				at := began.Add(time.Duration(upTo) * time.Second / time.Duration(rate))
				if time.Now().Before(at) {
					break
				}
				vm := s.vms[s.changes%len(s.vms)]
				if marks[vm] == "" {
					marks[vm] = vm.Node
				} else {
					marks[vm] = ""
				}
				facts = append(facts, s.observeChange(vm, marks[vm])...)
				changes[upTo] = due{at, trail.VMISubject(vm.Namespace, vm.VMI), facts[len(facts)-1].OccurredAt}
			}
			if len(facts) == 0 {
				time.Sleep(10 * time.Millisecond)
				continue
			}
			news, err := s.store.Append(t.Context(), facts)
			require.NoError(t, err)
			require.Len(t, news.Facts, len(facts))
			for i := first; i < upTo; i++ {
				recorded = append(recorded, time.Since(changes[i].at))
			}
			recordedSoFar.Store(int64(upTo))
		}
		took := <-derived
		t.Logf("%d changes at %d a second: recorded %s; with the rows of its VM %s; with all rows %s", n, rate, formatPercentiles(recorded), formatPercentiles(took[0]), formatPercentiles(took[1]))
	}
}

// formatPercentiles returns two of some durations as a text.
func formatPercentiles(of []time.Duration) string {
	slices.Sort(of)
	return fmt.Sprintf("p50 %s, p99 %s", of[len(of)/2].Round(time.Millisecond), of[len(of)*99/100].Round(time.Millisecond))
}

// deriveChanges derives what is recorded until that is all of the changes. It returns how long after each was due the rows of its VM were there, and all rows.
func (s *storing) deriveChanges(t *testing.T, changes []due, recorded *atomic.Int64) (vms, all []time.Duration) {
	t.Helper()
	var waiting []due
	taken := 0
	for len(all) < len(changes) {
		upTo := int(recorded.Load())
		waiting = append(waiting, changes[taken:upTo]...)
		taken = upTo
		_, rest, err := s.store.KeepUp(t.Context())
		if err != nil {
			t.Errorf("derive: %v", err)
			return make([]time.Duration, len(changes)), make([]time.Duration, len(changes))
		}
		dirty := s.dirtyVMs(t)
		waiting = slices.DeleteFunc(waiting, func(c due) bool {
			since, is := dirty[c.vm]
			done := !is || c.last.Before(since)
			if done {
				vms = append(vms, time.Since(c.at))
			}
			return done
		})
		if rest > 0 { // nothing is left
			for i := len(all); i < upTo; i++ {
				all = append(all, time.Since(changes[i].at))
			}
			if err := s.store.Rest(t.Context(), rest); err != nil {
				t.Errorf("rest: %v", err)
			}
		}
	}
	return vms, all
}

// dirtyVMs returns since when VMs are to be derived.
func (s *storing) dirtyVMs(t *testing.T) map[trail.Subject]time.Time {
	t.Helper()
	type mark struct {
		Subject    string
		DirtySince time.Time
	}
	rows, _ := s.db.Query(t.Context(), "SELECT subject, dirty_since FROM evictrail.subjects WHERE cluster = $1 AND dirty_since IS NOT NULL AND subject LIKE 'vmi:%'", large)
	marks, err := pgx.CollectRows(rows, pgx.RowToStructByPos[mark])
	if err != nil {
		t.Errorf("read what is dirty: %v", err)
	}
	out := make(map[trail.Subject]time.Time, len(marks))
	for _, m := range marks {
		vm, err := trail.ParseSubject(m.Subject)
		if err != nil {
			t.Errorf("read what is dirty: %v", err)
		}
		out[vm] = m.DirtySince
	}
	return out
}
