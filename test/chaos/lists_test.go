package chaos_test

import (
	"fmt"
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/evictrail/evictrail/store/storetest"
)

// What is promised of a cluster of 100,000 VMs.
const (
	listed     = 3 * time.Minute
	hugeMemory = 700_000_000 // bytes
	shortHeap  = 130_000_000 // bytes, of the 6,000 VMs of the short form
)

// TestT14HugeLists starts in a cluster of 100,000 VMs, whose lists come in a stream or in pages, and again: without the database, and with it. It gets
// ready each time, and memory is bounded also while it lists.
//
// T14 of the chaos matrix (docs/chaos.md): lists of 100,000 VMs.
func TestT14HugeLists(t *testing.T) {
	t.Parallel()
	for _, streams := range []bool{true, false} {
		t.Run(fmt.Sprintf("streams=%v", streams), func(t *testing.T) {
			t.Parallel()
			vms := chooseCount(6000, 100_000)
			database := storetest.NewURL(t)
			p := startProxy(t, database)
			c := startCluster(t, newTraceBy(&clock{at: time.Now().Add(-4 * time.Hour), apart: time.Second}, newSeededRand(t), vms/200, vms, 10))
			e := newEvictrail(t, c, p.databaseURL(), "evictrail-0")
			e.args = append([]string{fmt.Sprintf("KUBE_FEATURE_WatchListClient=%v", streams), fmt.Sprintf("GOMEMLIMIT=%d", hugeMemory/10*9), e.program}, e.args...)
			e.program = "env"
			ready := func(name string) {
				e.held.Store(0)
				e.start()
				began := time.Now()
				awaitCondition(t, listed, "evictrail gets ready", func() bool {
					code, _ := e.get(t.Context(), "/readyz")
					return code == http.StatusOK
				})
				took := time.Since(began)
				heap := e.sumMetric("go_memstats_next_gc_bytes", "") // twice what was alive, whatever the collector left for later
				t.Logf("T14: streams %-5v %-32s ready after %s, %d MB at most, the heap may grow to %.0f MB", streams, name+":", took.Round(time.Second), e.peakMemory()/1e6, heap/1e6)
				require.Less(t, e.peakMemory(), int64(hugeMemory))
				require.Less(t, heap, float64(chooseCount(shortHeap, hugeMemory)))
			}
			ready("the first time")
			p.goOffline()
			c.releaseTransitions(len(c.truth))
			require.NoError(t, e.Stop())
			ready("the database away")
			p.clearFaults()
			awaitCondition(t, time.Hour, "what waited is stored", func() bool { return e.storeLagSeconds() < 5 })
			awaitDerived(t, database, c)
			require.NoError(t, e.Stop())
			ready("the database there")
			require.NoError(t, e.Stop())
			requireTruth(t, database, c.truth)
			require.Equal(t, vms, loadNumber(t, database, "SELECT count(DISTINCT vmi_uid) AS n FROM evictrail_v1.events WHERE kind = 'vmi_placed'"))
		})
	}
}
