package pooler_test

import (
	"context"
	"flag"
	"fmt"
	"os"
	"slices"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"

	"github.com/evictrail/evictrail/store/pg"
	"github.com/evictrail/evictrail/store/storetest"
)

var (
	fleetClusters = flag.Int("fleet.clusters", 8, "how many clusters write into one database")
	fleetVMs      = flag.Int("fleet.vms", 50, "how many VMs each of them has")
	fleetRate     = flag.Float64("fleet.rate", 1, "steps of a migration a second and cluster; a migration has four, and makes seven facts")
	fleetNoise    = flag.Float64("fleet.noise", 50, "how many times as many steps the noisy cluster makes")
	fleetFor      = flag.Duration("fleet.for", 4*time.Second, "how long they write: half of it without the noisy cluster's noise, half of it with that")
)

// noisy is the cluster that makes the noise.
const noisy = 0

// TestFleet has many clusters record and derive into one database through a pooler in transaction mode, each with two connections as the documentation advises,
// first at the same rate, then one of them at many times that. Every migration is there in the end, as one row, in its own cluster; how long after each step its rows
// were committed is logged, of the noisy cluster and of the others.
func TestFleet(t *testing.T) { //nolint:paralleltest // what runs beside it would be measured, too
	database := storetest.NewURL(t)
	pooled := startPgBouncer(t, database, "transaction", fmt.Sprintf("max_client_conn = %d", 4**fleetClusters+20)) + "&" + pg.PoolerMode + "&pool_max_conns=2"
	fleet := make([]*fleetCluster, *fleetClusters)
	g, ctx := errgroup.WithContext(t.Context())
	g.SetLimit(4)
	for i := range fleet {
		g.Go(func() (err error) {
			fleet[i], err = openFleetCluster(ctx, pooled, fmt.Sprintf("c%03d", i))
			return err
		})
	}
	require.NoError(t, g.Wait())
	t.Cleanup(func() {
		for _, c := range fleet {
			c.db.Close()
		}
	})
	quiet := writeFleet(t, fleet, database, 1)
	loud := writeFleet(t, fleet, database, *fleetNoise)
	t.Logf("the others' p99 with one noisy cluster is %.1f times that without", loud.Seconds()/quiet.Seconds())
	conn, err := pgx.Connect(t.Context(), database)
	require.NoError(t, err)
	defer func() { _ = conn.Close(context.WithoutCancel(t.Context())) }()
	for _, c := range fleet {
		var moved, left int
		const query = `SELECT (SELECT count(*) FROM evictrail_v1.migrations WHERE cluster = $1 AND outcome = 'succeeded' AND attempt = 1),
			(SELECT count(*) FROM evictrail_v1.evacuations WHERE cluster = $1 AND outcome = 'migrated')`
		require.NoError(t, conn.QueryRow(t.Context(), query, c.name).Scan(&moved, &left))
		require.Equal(t, []int{c.moves, c.moves}, []int{moved, left}, c.name)
	}
}

// writeFleet has all clusters write for half of the time, the noisy one many times as much as the others, logs what that took, and returns the p99 of the others.
func writeFleet(t *testing.T, fleet []*fleetCluster, database string, noise float64) time.Duration {
	t.Helper()
	took := make([][]time.Duration, len(fleet))
	began := time.Now()
	g, ctx := errgroup.WithContext(t.Context())
	connections, before := countConnections(ctx, t, database), countTransactions(t, database)
	for i, c := range fleet {
		rate := *fleetRate
		if i == noisy {
			rate *= noise
		}
		g.Go(func() (err error) {
			took[i], err = c.writeSteps(ctx, rate, *fleetFor/2)
			return err
		})
	}
	require.NoError(t, g.Wait())
	facts := 0
	for _, c := range fleet {
		facts, c.facts = facts+c.facts, 0
	}
	lasted := time.Since(began)
	loud, others := took[noisy], slices.Delete(slices.Clone(took), noisy, noisy+1)
	worst := slices.MaxFunc(others, func(a, b []time.Duration) int { return int(computePercentile(a, 99) - computePercentile(b, 99)) })
	together := slices.Concat(others...)
	t.Logf("%d clusters, one at %g times the rate of %g steps a second: %.0f facts and %.0f transactions a second, at most %d connections of Postgres, %d MB resident of all recorders; to the rows, the noisy one p50 %s, p99 %s; "+
		"the others p50 %s, p99 %s; the worst of them p99 %s", len(fleet), noise, *fleetRate, float64(facts)/lasted.Seconds(), float64(countTransactions(t, database)-before)/lasted.Seconds(), connections(), readResident(t)>>20,
		computePercentile(loud, 50), computePercentile(loud, 99), computePercentile(together, 50), computePercentile(together, 99), computePercentile(worst, 99))
	return computePercentile(together, 99)
}

// computePercentile returns a percentile of some durations, which it sorts.
func computePercentile(of []time.Duration, percent int) time.Duration {
	slices.Sort(of)
	if len(of) == 0 {
		return 0
	}
	return of[(len(of)-1)*percent/100].Round(time.Millisecond)
}

// countConnections counts the connections of a server from now on, until what it returns is called, which returns how many there were at most.
func countConnections(ctx context.Context, t *testing.T, database string) func() int {
	t.Helper()
	conn, err := pgx.Connect(ctx, database)
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(ctx)
	most := make(chan int, 1)
	go func() {
		highest := 0
		for ctx.Err() == nil {
			var n int
			if conn.QueryRow(ctx, "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()").Scan(&n) == nil {
				highest = max(highest, n)
			}
			time.Sleep(200 * time.Millisecond)
		}
		most <- highest
	}()
	return func() int {
		cancel()
		n := <-most
		_ = conn.Close(context.WithoutCancel(ctx))
		return n
	}
}

// countTransactions returns how many transactions a database has committed.
func countTransactions(t *testing.T, database string) (n int64) {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), database)
	require.NoError(t, err)
	require.NoError(t, conn.QueryRow(t.Context(), "SELECT xact_commit FROM pg_stat_database WHERE datname = current_database()").Scan(&n))
	require.NoError(t, conn.Close(t.Context()))
	return n
}

// readResident returns how many bytes of this process are in memory.
func readResident(t *testing.T) int64 {
	t.Helper()
	text, err := os.ReadFile("/proc/self/statm")
	require.NoError(t, err)
	var pages, resident int64
	_, err = fmt.Sscan(string(text), &pages, &resident)
	require.NoError(t, err)
	return resident * int64(os.Getpagesize())
}
