package load_test

import (
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/evictrail/evictrail/store"
	"github.com/evictrail/evictrail/trail"
	"github.com/evictrail/evictrail/trail/sim"
	"github.com/evictrail/evictrail/trail/tracker"
)

// The clusters of the database: a large one, and one beside it that questions without a cluster meet as well.
const (
	large = "large"
	small = "small"
)

// filledUntil is when the days of the large cluster end.
var filledUntil = time.Date(2026, 11, 21, 0, 0, 0, 0, time.UTC)

// fillDatabase makes the database what so many days of the large cluster and some hours of the small one leave: the facts by the bulk way,
// then everything that is derived of them. Without days the large cluster is one like the small. What is there already stays.
func fillDatabase(tb testing.TB, s *store.Store, url string) {
	tb.Helper()
	_, err := s.Up(tb.Context())
	require.NoError(tb, err)
	seen, err := s.LastAlive(tb.Context(), large)
	require.NoError(tb, err)
	if !seen.IsZero() { // it may have been interrupted while it was derived
		if deriveRest(tb, s, large) > 0 {
			vacuumDatabase(tb, url)
		}
		return
	}
	began := time.Now()
	for cluster, play := range map[string]func(see func([]tracker.Observation)){
		small: func(see func([]tracker.Observation)) { see(sim.New(2).Observations) },
		large: func(see func([]tracker.Observation)) {
			if *days == 0 {
				see(sim.New(4).Observations)
			} else {
				sim.LongUntil(1, *vms, *days, filledUntil, see)
			}
		},
	} {
		i := importer{tb: tb, store: s, cluster: cluster, tracker: tracker.New(cluster)}
		play(i.importObservations)
		require.NoError(tb, s.Alive(tb.Context(), cluster, i.last))
		_, err := s.Rederive(tb.Context(), cluster)
		require.NoError(tb, err)
		deriveRest(tb, s, cluster)
	}
	vacuumDatabase(tb, url)
	tb.Logf("filled in %s", time.Since(began).Round(time.Second))
}

// vacuumDatabase does at once what autovacuum does within minutes: until then Postgres plans without knowing what it holds.
func vacuumDatabase(tb testing.TB, url string) {
	tb.Helper()
	conn, err := pgx.Connect(tb.Context(), url)
	require.NoError(tb, err)
	_, err = conn.Exec(tb.Context(), "VACUUM ANALYZE")
	require.NoError(tb, err)
	require.NoError(tb, conn.Close(tb.Context()))
}

// importer turns observations of one cluster into facts and stores them.
type importer struct {
	tb      testing.TB
	store   *store.Store
	cluster string
	tracker *tracker.Tracker
	last    time.Time // of the sights so far
	count   int       // of facts so far
}

// atOnce is how many facts go into one transaction.
const atOnce = 5000

// importObservations stores the facts of observations.
func (i *importer) importObservations(all []tracker.Observation) {
	i.tb.Helper()
	var facts []trail.Fact
	began, before := time.Now(), i.count
	for n, o := range all {
		facts = append(facts, i.tracker.Observe(o)...)
		if len(facts) > 0 {
			i.last = facts[len(facts)-1].ObservedAt
		}
		if len(facts) >= atOnce || n == len(all)-1 {
			_, err := i.store.Import(i.tb.Context(), i.cluster, facts)
			require.NoError(i.tb, err)
			i.count += len(facts)
			facts = facts[:0]
		}
	}
	took := time.Since(began)
	i.tb.Logf("%s: %d facts until %s, lately %.0f a second", i.cluster, i.count, i.last.Format(time.DateOnly), float64(i.count-before)/took.Seconds())
}

// deriveRest derives what is still to be derived of a cluster, and what time has changed. It returns how many subjects were.
func deriveRest(tb testing.TB, s *store.Store, cluster string) int {
	tb.Helper()
	n, err := s.DeriveStale(tb.Context(), cluster, nil)
	require.NoError(tb, err)
	seen, err := s.LastAlive(tb.Context(), cluster)
	require.NoError(tb, err)
	_, _, err = s.DeriveDue(tb.Context(), cluster, seen)
	require.NoError(tb, err)
	return n
}
