package bench_test

import (
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/require"

	"github.com/evictrail/evictrail/collector"
	"github.com/evictrail/evictrail/metrics"
	"github.com/evictrail/evictrail/store"
	"github.com/evictrail/evictrail/store/spool"
	"github.com/evictrail/evictrail/store/storetest"
	"github.com/evictrail/evictrail/trail"
	"github.com/evictrail/evictrail/trail/sim"
	"github.com/evictrail/evictrail/trail/tracker"
)

// inOne is how many facts go into one transaction, as many as a spool puts into one; onDisk is how many the collector hands to a spool at once.
const (
	inOne  = 5000
	onDisk = 2000
)

// singles is how many single INSERTs are enough.
const singles = 1000

// TestIngest stores the facts of a simulated cluster, batch by batch on one connection, until they and all that is derived of them are
// committed; through a spool, as `run` does; and in bulk, where deriving comes after; against COPY of the same rows into the same table with
// its indexes, against COPY into a table without any, and against INSERTs of one row.
func TestIngest(t *testing.T) { //nolint:paralleltest // what runs beside it would be measured, too
	for _, n := range listSizes(1000) {
		facts := simulateFacts(n)
		var appended, spooled, imported, copied, plain, single []float64
		for range *rounds {
			s, url := newStore(t)
			appended = append(appended, perSecond(n, func() { appendAll(t, s, facts) }))
			rows := readRows(t, url)
			s, _ = newStore(t)
			spooled = append(spooled, perSecond(n, func() { spoolAll(t, s, facts) }))
			s, _ = newStore(t)
			imported = append(imported, perSecond(n, func() { importAll(t, s, facts) }))
			_, url = newStore(t)
			for month := range collectMonths(facts) {
				execSQL(t, url, "SELECT evictrail.ensure_month('"+month+"')")
			}
			single = append(single, perSecond(min(n, singles), func() { rows.insertOneByOne(t, url, min(n, singles)) }))
			execSQL(t, url, "TRUNCATE evictrail.events")
			copied = append(copied, perSecond(n, func() { rows.copyInto(t, url, pgx.Identifier{"evictrail", "events"}) }))
			execSQL(t, url, "CREATE TABLE plain AS SELECT * FROM evictrail.events LIMIT 0")
			plain = append(plain, perSecond(n, func() { rows.copyInto(t, url, pgx.Identifier{"plain"}) }))
		}
		what := fmt.Sprintf("%d facts with all that is derived", n)
		for _, r := range []row{
			{what: what, ours: appended, against: "COPY into the same table", theirs: copied},
			{what: what, ours: appended, against: "COPY without indexes", theirs: plain},
			{what: what, ours: appended, against: "single INSERTs", theirs: single},
			{what: what + ", through the spool", ours: spooled, against: "COPY into the same table", theirs: copied},
			{what: what + ", in bulk", ours: imported, against: "COPY into the same table", theirs: copied},
		} {
			r.unit = "facts/s"
			addRows(r)
		}
	}
}

// perSecond returns how many of n things were done in a second.
func perSecond(n int, do func()) float64 {
	began := time.Now()
	do()
	return float64(n) / time.Since(began).Seconds()
}

// simulateFacts returns so many facts of a simulated cluster: a small one for a few.
func simulateFacts(n int) []trail.Fact {
	var facts []trail.Fact
	tr := tracker.New("bench")
	see := func(all []tracker.Observation) {
		for _, o := range all {
			if len(facts) < n {
				facts = append(facts, tr.Observe(o)...)
			}
		}
	}
	if n <= 1000 {
		see(sim.New(4).Observations)
	} else {
		sim.Long(1, 5_000, n/40_000+1, see)
	}
	return facts[:min(n, len(facts))]
}

// collectMonths returns the first days of the months of facts.
func collectMonths(facts []trail.Fact) map[string]bool {
	out := map[string]bool{}
	for _, f := range facts {
		out[f.OccurredAt.UTC().Format("2006-01-01")] = true
	}
	return out
}

// appendAll records facts as a leader does, who derives them during that time, and waits until all that is derived of them is there.
func appendAll(tb testing.TB, s *store.Store, facts []trail.Fact) {
	tb.Helper()
	sink := s.For("bench", "bench")
	require.NoError(tb, sink.Lead(tb.Context(), "this", trail.DefaultThresholds()))
	keptUp := storetest.KeepUp(tb, sink)
	for batch := range slices.Chunk(facts, inOne) {
		_, err := sink.Append(tb.Context(), batch)
		require.NoError(tb, err)
	}
	keptUp()
	_, _, err := sink.CatchUp(tb.Context(), nil)
	require.NoError(tb, err)
}

// spoolAll takes facts into a spool on disk, out of which they are stored during that time, and waits until all that is derived of them is there.
func spoolAll(tb testing.TB, s *store.Store, facts []trail.Fact) {
	tb.Helper()
	sink, log := s.For("bench", "bench"), slog.New(slog.DiscardHandler)
	require.NoError(tb, sink.Lead(tb.Context(), "this", trail.DefaultThresholds()))
	taken, err := spool.Open(spool.Options{Dir: tb.TempDir(), Cluster: "bench", Size: spool.DefaultSize, Log: log, Clock: utcNow})
	require.NoError(tb, err)
	storing := collector.Storing{Sink: sink, Log: log, Metrics: metrics.New(prometheus.NewRegistry()), Clock: utcNow}
	keptUp, stopping := storetest.KeepUp(tb, sink), make(chan struct{})
	var draining sync.WaitGroup
	draining.Go(func() { storing.Drain(tb.Context(), taken, stopping) })
	for batch := range slices.Chunk(facts, onDisk) {
		require.NoError(tb, taken.Append(tb.Context(), batch))
	}
	require.NoError(tb, taken.WaitEmpty(tb.Context()))
	close(stopping)
	draining.Wait()
	keptUp()
	_, _, err = sink.CatchUp(tb.Context(), nil)
	require.NoError(tb, err)
	require.NoError(tb, taken.Close())
}

func importAll(tb testing.TB, s *store.Store, facts []trail.Fact) {
	tb.Helper()
	for batch := range slices.Chunk(facts, inOne) {
		_, err := s.Import(tb.Context(), "bench", batch)
		require.NoError(tb, err)
	}
	_, err := s.DeriveStale(tb.Context(), "bench", nil)
	require.NoError(tb, err)
}

// tableRows is what a table holds.
type tableRows struct {
	columns []string
	rows    [][]any
}

// readRows reads all facts of a database as rows, in the order in which they were seen.
func readRows(tb testing.TB, url string) tableRows {
	tb.Helper()
	conn, err := pgx.Connect(tb.Context(), url)
	require.NoError(tb, err)
	defer func() { require.NoError(tb, conn.Close(tb.Context())) }()
	result, err := conn.Query(tb.Context(), "SELECT * FROM evictrail.events ORDER BY observed_at")
	require.NoError(tb, err)
	var out tableRows
	for _, f := range result.FieldDescriptions() {
		out.columns = append(out.columns, f.Name)
	}
	out.rows, err = pgx.CollectRows(result, func(row pgx.CollectableRow) ([]any, error) { return row.Values() })
	require.NoError(tb, err)
	return out
}

// copyInto copies the rows into a table, as many at once as facts are stored at once.
func (t tableRows) copyInto(tb testing.TB, url string, into pgx.Identifier) {
	tb.Helper()
	conn, err := pgx.Connect(tb.Context(), url)
	require.NoError(tb, err)
	defer func() { require.NoError(tb, conn.Close(tb.Context())) }()
	for batch := range slices.Chunk(t.rows, inOne) {
		_, err := conn.CopyFrom(tb.Context(), into, t.columns, pgx.CopyFromRows(batch))
		require.NoError(tb, err)
	}
}

// insertOneByOne inserts the first rows one by one.
func (t tableRows) insertOneByOne(tb testing.TB, url string, n int) {
	tb.Helper()
	conn, err := pgx.Connect(tb.Context(), url)
	require.NoError(tb, err)
	defer func() { require.NoError(tb, conn.Close(tb.Context())) }()
	places := ""
	for i := range t.columns {
		places += fmt.Sprintf(", $%d", i+1)
	}
	for _, row := range t.rows[:min(n, len(t.rows))] {
		_, err := conn.Exec(tb.Context(), "INSERT INTO evictrail.events VALUES ("+places[2:]+")", row...)
		require.NoError(tb, err)
	}
}
