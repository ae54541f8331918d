package fold

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/evictrail/evictrail/trail"
)

// TestSlotsOfLoadedRows: a window that was loaded holds times in another location than those that are derived. Slots that did not change are no reason to derive VMs
// that waited for them; that went on for ever, portion by portion, in a database of months.
func TestSlotsOfLoadedRows(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 11, 25, 12, 0, 0, 0, time.UTC)
	migration := func(in *time.Location) trail.Migration {
		return trail.Migration{
			UID: "m", SourceNode: "worker-1", CreatedAt: at.In(in), SchedulingAt: at.Add(time.Minute).In(in), FinishedAt: at.Add(2 * time.Minute).In(in), Outcome: trail.OutcomeSucceeded,
		}
	}
	q := newQueue()
	w := &Window{Subject: trail.VMISubject("shop", "db"), Rows: trail.Derived{Migrations: []trail.Migration{migration(time.FixedZone("", 0))}}}
	require.Equal(t, span{}, q.updateMigrations(w, []trail.Migration{migration(time.UTC)}, time.Time{}))
	later := migration(time.UTC)
	later.FinishedAt = later.FinishedAt.Add(time.Second)
	require.NotEqual(t, span{}, q.updateMigrations(w, []trail.Migration{later}, time.Time{}), "it held its slot for longer")
}
