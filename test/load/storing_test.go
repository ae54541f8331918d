package load_test

import (
	"slices"
	"strconv"
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
	s, url := open(t)
	seen, err := s.LastAlive(t.Context(), large)
	require.NoError(t, err)
	conn, err := pgx.Connect(t.Context(), url)
	require.NoError(t, err)
	rows, err := conn.Query(t.Context(), "SELECT namespace, vmi, vmi_uid, node FROM evictrail_v1.placements WHERE cluster = $1 AND to_at IS NULL ORDER BY vmi_uid LIMIT 1000", large)
	require.NoError(t, err)
	vms, err := pgx.CollectRows(rows, pgx.RowToStructByPos[placedVM])
	require.NoError(t, err)
	_, err = conn.Exec(t.Context(), `INSERT INTO evictrail.leaders (cluster, term, holder, since, program, program_term) VALUES ($1, 1, 'r', now(), 'this', 1) ON CONFLICT DO NOTHING`, large)
	require.NoError(t, err, "else the whole history would be derived anew")
	require.NoError(t, conn.Close(t.Context()))
	require.NotEmpty(t, vms)
	sink := s.For(large, "r")
	require.NoError(t, sink.Lead(t.Context(), "this", trail.DefaultThresholds()))
	return &storing{store: sink, vms: vms, seen: seen, tracker: tracker.New(large)}
}

// change gives the facts of the next change: one VM after the other is marked, or is marked no more. The first time that a VM is seen there are more.
func (s *storing) change(vm placedVM, mark string) []trail.Fact {
	s.seen, s.changes = s.seen.Add(time.Millisecond), s.changes+1
	return s.tracker.Observe(tracker.VMIObservation{
		Meta: tracker.Meta{UID: vm.UID, Namespace: vm.Namespace, Name: vm.VMI, ResourceVersion: strconv.FormatInt(s.seen.UnixMicro(), 10), CreatedAt: s.seen},
		Seen: tracker.Seen{At: s.seen}, Node: vm.Node, Phase: "Running", Strategy: "LiveMigrate", Mark: mark,
	})
}

// TestHeldAtOnce stores new facts of a thousand VMs of the large cluster at once, as when an outage is over, and tells how much memory was in use at most beside what
// was before.
func TestHeldAtOnce(t *testing.T) { //nolint:paralleltest // what runs beside it would be measured, too
	s := newStoring(t)
	var facts []trail.Fact
	for _, vm := range s.vms {
		for _, mark := range []string{vm.Node, ""} {
			facts = append(facts, s.change(vm, mark)...)
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

// TestLatency has changes of VMs of the large cluster come at a steady rate, and tells how long after each was due it was recorded, and how long after that all that
// is derived of it was committed. What came meanwhile is recorded, and derived, together; a leader waits up to 100 ms more between two ticks.
func TestLatency(t *testing.T) { //nolint:paralleltest // what runs beside it would be measured, too
	s := newStoring(t)
	marks := map[placedVM]string{}
	for _, rate := range []int{50, 200, 1000} {
		type due struct {
			facts []trail.Fact
			at    time.Time
		}
		const gathered = 10 * time.Millisecond
		var recorded, took []time.Duration
		n := max(1, int(lasts.Seconds()*float64(rate)))
		began, done := time.Now(), 0
		for done < n {
			var some []due
			for done < n && time.Since(began) >= time.Duration(done)*time.Second/time.Duration(rate) {
				vm := s.vms[s.changes%len(s.vms)]
				if marks[vm] == "" {
					marks[vm] = vm.Node
				} else {
					marks[vm] = ""
				}
				some = append(some, due{s.change(vm, marks[vm]), began.Add(time.Duration(done) * time.Second / time.Duration(rate))})
				done++
			}
			if len(some) == 0 {
				time.Sleep(gathered)
				continue
			}
			var facts []trail.Fact
			for _, d := range some {
				facts = append(facts, d.facts...)
			}
			news, err := s.store.Append(t.Context(), facts)
			require.NoError(t, err)
			require.Len(t, news.Facts, len(facts))
			for _, d := range some {
				recorded = append(recorded, time.Since(d.at))
			}
			_, _, err = s.store.CatchUp(t.Context(), nil)
			require.NoError(t, err)
			for _, d := range some {
				took = append(took, time.Since(d.at))
			}
		}
		slices.Sort(recorded)
		slices.Sort(took)
		t.Logf("%d changes at %d a second: recorded p50 %s, p99 %s; with all rows p50 %s, p99 %s", n, rate,
			recorded[n/2].Round(time.Millisecond), recorded[n*99/100].Round(time.Millisecond), took[n/2].Round(time.Millisecond), took[n*99/100].Round(time.Millisecond))
	}
}
