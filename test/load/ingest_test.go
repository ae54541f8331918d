package load_test

import (
	"slices"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/evictrail/evictrail/store/storetest"
	"github.com/evictrail/evictrail/trail"
	"github.com/evictrail/evictrail/trail/sim"
	"github.com/evictrail/evictrail/trail/tracker"
)

// nextDays is how many days of the large cluster are stored beside those that its database has.
const nextDays = 3

// TestIngest stores what the large cluster does in the days after those of its database, as a leader does, and logs how fast facts were there with all rows; and how fast
// COPY writes as many facts into the same table.
func TestIngest(t *testing.T) { //nolint:paralleltest // what runs beside it would be measured, too
	s := newStoring(t)
	facts := simulateNextDays(s.seen)
	began := time.Now()
	keptUp := storetest.KeepUp(t, s.store)
	for batch := range slices.Chunk(facts, atOnce) {
		_, err := s.store.Append(t.Context(), batch)
		require.NoError(t, err)
	}
	recorded := time.Since(began)
	keptUp()
	_, _, err := s.store.CatchUp(t.Context(), nil)
	require.NoError(t, err)
	derived := time.Since(began)
	copied := s.copyFacts(t, s.seen)
	perSecond := func(took time.Duration) float64 { return float64(len(facts)) / took.Seconds() }
	t.Logf("%d facts: recorded %.0f a second, with all rows %.0f; COPY %.0f: ratio %.2f",
		len(facts), perSecond(recorded), perSecond(derived), perSecond(copied), copied.Seconds()/derived.Seconds())
}

// simulateNextDays returns the facts of the large cluster that were seen after a time. Where its database has no days they are those of a few VMs that it did not have.
func simulateNextDays(after time.Time) []trail.Fact {
	var facts []trail.Fact
	of, count := tracker.New(large), *vms
	if *days == 0 {
		count = 125
	}
	sim.LongUntil(1, count, *days+nextDays, filledUntil.Add(nextDays*24*time.Hour), func(all []tracker.Observation) {
		for _, o := range all {
			for _, f := range of.Observe(o) {
				if f.ObservedAt.After(after) {
					facts = append(facts, f)
				}
			}
		}
	})
	return facts
}

// copyFacts copies facts that were seen after a time into their table once more, under other IDs, and returns how long that took.
func (s *storing) copyFacts(t *testing.T, after time.Time) time.Duration {
	t.Helper()
	rows, err := s.db.Query(t.Context(), "SELECT * FROM evictrail.events WHERE cluster = $1 AND observed_at > $2 ORDER BY observed_at", large, after)
	require.NoError(t, err)
	var columns []string
	for _, f := range rows.FieldDescriptions() {
		columns = append(columns, f.Name)
	}
	facts, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) ([]any, error) { return row.Values() })
	require.NoError(t, err)
	id, seq := slices.Index(columns, "id"), slices.Index(columns, "seq")
	for _, f := range facts {
		other := f[id].([16]byte)
		other[0]++
		f[id], f[seq] = other, f[seq].(int64)+int64(len(facts))
	}
	began := time.Now()
	for batch := range slices.Chunk(facts, atOnce) {
		_, err := s.db.CopyFrom(t.Context(), pgx.Identifier{"evictrail", "events"}, columns, pgx.CopyFromRows(batch))
		require.NoError(t, err)
	}
	return time.Since(began)
}
