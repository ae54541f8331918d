package load_test

import (
	"strconv"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/evictrail/evictrail/trail"
)

// mostHeld is what storing facts may hold at once, in bytes, however long the histories of their VMs are.
const mostHeld = 192 << 20

// TestHeldAtOnce stores new facts of a thousand VMs of the large cluster at once, as when an outage is over, and tells how much memory was in use at most beside what
// was before.
func TestHeldAtOnce(t *testing.T) { //nolint:paralleltest // what runs beside it would be measured, too
	s, url := open(t)
	seen, err := s.LastAlive(t.Context(), large)
	require.NoError(t, err)
	conn, err := pgx.Connect(t.Context(), url)
	require.NoError(t, err)
	rows, err := conn.Query(t.Context(), "SELECT namespace, vmi, vmi_uid, node FROM evictrail_v1.placements WHERE cluster = $1 AND to_at IS NULL ORDER BY vmi_uid LIMIT 1000", large)
	require.NoError(t, err)
	type placed struct{ Namespace, VMI, UID, Node string }
	vms, err := pgx.CollectRows(rows, pgx.RowToStructByPos[placed])
	require.NoError(t, err)
	require.NoError(t, conn.Close(t.Context()))
	require.NotEmpty(t, vms)
	var facts []trail.Fact
	tracker, rv := trail.NewTracker(large), 1_000_000_000_000
	for _, vm := range vms {
		for _, mark := range []string{vm.Node, ""} {
			seen, rv = seen.Add(time.Millisecond), rv+1
			facts = append(facts, tracker.Observe(trail.VMIObservation{
				Meta: trail.Meta{UID: vm.UID, Namespace: vm.Namespace, Name: vm.VMI, ResourceVersion: strconv.Itoa(rv), CreatedAt: seen}, Seen: trail.Seen{At: seen},
				Node: vm.Node, Phase: "Running", Strategy: "LiveMigrate", Mark: mark,
			})...)
		}
	}
	most, stop := inUse()
	began := time.Now()
	news, err := s.Append(t.Context(), large, facts)
	took := time.Since(began)
	stop()
	require.NoError(t, err)
	t.Logf("%d facts of %d VMs, %d of them new: stored in %s, %d MiB", len(facts), len(vms), len(news.Facts), took.Round(time.Millisecond), most()>>20)
	require.Less(t, most(), uint64(mostHeld))
}
