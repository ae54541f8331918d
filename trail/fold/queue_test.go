package fold

import (
	"fmt"
	"math/rand/v2"
	"slices"
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
	require.Empty(t, q.updateMigrations(w, []trail.Migration{migration(time.UTC)}, time.Time{}))
	later := migration(time.UTC)
	later.FinishedAt = later.FinishedAt.Add(time.Second)
	require.NotEmpty(t, q.updateMigrations(w, []trail.Migration{later}, time.Time{}), "it held its slot for longer")
}

// TestQueueKeepsWhatIsAskedFor: where everything is derived again each Fold asks for all migrations there were. They are read once, and forgotten when nobody asks any more.
func TestQueueKeepsWhatIsAskedFor(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 11, 25, 12, 0, 0, 0, time.UTC)
	q, vm := newQueue(), trail.VMISubject("shop", "db")
	q.loaded, q.from, q.of[vm] = true, now.Add(-1000*time.Hour), map[string]queued{}
	for i := range mostQueue + 1 {
		q.of[vm][fmt.Sprint(i)] = queued{until: now.Add(-999 * time.Hour)}
	}
	q.asked = q.from
	q.dropFinished(now)
	require.Len(t, q.of[vm], mostQueue+1)
	q.dropFinished(now)
	require.Empty(t, q.of)
	require.Equal(t, now.Add(-keepQueue), q.from)
}

// TestFindSlots looks for slots in spans of any times, as one would do it by comparing each with each.
func TestFindSlots(t *testing.T) {
	t.Parallel()
	r, begin := rand.New(rand.NewPCG(3, 7)), time.Date(2026, 11, 25, 12, 0, 0, 0, time.UTC)
	moment := func() time.Time { return begin.Add(time.Duration(r.IntN(100)) * time.Second) }
	for range 1000 {
		var spans []span
		for range 1 + r.IntN(5) {
			from := moment()
			spans = append(spans, span{from: from, to: from.Add(time.Duration(r.IntN(20)) * time.Second)})
		}
		var slots, expected []trail.Slot
		for range r.IntN(20) {
			s := trail.Slot{From: moment()}
			if r.IntN(4) > 0 {
				s.To = s.From.Add(time.Duration(r.IntN(20)) * time.Second)
			}
			slots = append(slots, s)
			if slices.ContainsFunc(spans, func(x span) bool { return !s.From.After(x.to) && (s.To.IsZero() || !s.To.Before(x.from)) }) {
				expected = append(expected, s)
			}
		}
		require.Equal(t, expected, findSlots(slices.Values(slots), mergeSpans(spans)))
	}
}

// TestWaitingBetweenSlots: a VM is derived again for slots that were held while it waited, not for what lies between the first and the last of them.
func TestWaitingBetweenSlots(t *testing.T) {
	t.Parallel()
	begin := time.Date(2026, 11, 25, 12, 0, 0, 0, time.UTC)
	at := func(minute int) time.Time { return begin.Add(time.Duration(minute) * time.Minute) }
	q := newQueue()
	wait := func(vm string, created int, slot trail.Slot) {
		q.of[trail.VMISubject("shop", vm)] = map[string]queued{vm: {created: at(created), waited: true, slot: slot, holds: !slot.From.IsZero()}}
	}
	wait("during the first", 1, trail.Slot{From: at(3)})
	wait("between", 20, trail.Slot{From: at(30)})
	wait("until the second", 25, trail.Slot{From: at(40)})
	wait("still", 60, trail.Slot{})
	spans := mergeSpans([]span{{at(40), at(45)}, {at(2), at(5)}, {at(4), at(10)}, {at(70), farFuture}})
	require.Equal(t, []span{{at(2), at(10)}, {at(40), at(45)}, {at(70), farFuture}}, spans)
	require.Equal(t, dirtyMarks{
		trail.VMISubject("shop", "during the first"): at(2), trail.VMISubject("shop", "until the second"): at(40), trail.VMISubject("shop", "still"): at(70),
	}, q.findWaitingVMs(spans))
}
