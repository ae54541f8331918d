package chaos_test

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/evictrail/evictrail/store/storetest"
)

// databaseGap is a gap that says that the database lost what it had acknowledged.
type databaseGap struct {
	OpenedAt time.Time  `json:"opened_at"`
	ClosedAt *time.Time `json:"closed_at"`
}

const databaseGapsQuery = "SELECT opened_at, closed_at FROM evictrail_v1.gaps WHERE cause = 'database_rewound' ORDER BY opened_at"

// TestT24Failover kills the primary while evictrail stores, and promotes the standby that answered callers until then. With
// synchronous replication nothing is lost. Without, the standby has not received the last of it: what objects still say is
// recorded again, and the rest lies in a gap.
//
// T24 of the chaos matrix (docs/chaos.md): failover to a standby.
func TestT24Failover(t *testing.T) {
	t.Parallel()
	for _, synchronous := range []bool{true, false} {
		t.Run(fmt.Sprintf("synchronous=%t", synchronous), func(t *testing.T) {
			t.Parallel()
			failOver(t, synchronous)
		})
	}
}

func failOver(t *testing.T, synchronous bool) {
	t.Helper()
	r := newSeededRand(t)
	transitions := chooseCount(1_500, 15_000)
	c := startCluster(t, newTrace(r, transitions/15, transitions))
	servers := storetest.NewReplication(t, map[string]string{"fsync": "on"})
	if synchronous {
		servers.Exec(servers.PrimaryURL(), "ALTER SYSTEM SET synchronous_standby_names = '*'")
		servers.Exec(servers.PrimaryURL(), "SELECT pg_reload_conf()")
	}
	e := newEvictrail(t, c, servers.EitherURL(), "evictrail-0", "--database-read-url", servers.StandbyURL())
	e.start()
	e.awaitReady()
	awaitCondition(t, time.Minute, "the standby answers", func() bool { return e.sumMetric("evictrail_standby_used", "") == 1 })
	for c.released < transitions/2 {
		c.releaseTransitions(10)
		time.Sleep(2 * time.Millisecond)
	}
	awaitStored(t, servers.PrimaryURL(), c.released)
	var stopped []int
	if !synchronous { // what is stored from now on does not reach the standby
		for _, pid := range strings.Fields(servers.Query(servers.StandbyURL(), receiversQuery)) {
			n, err := strconv.Atoi(pid)
			require.NoError(t, err)
			require.NoError(t, syscall.Kill(n, syscall.SIGSTOP))
			t.Cleanup(func() { _ = syscall.Kill(n, syscall.SIGCONT) })
			stopped = append(stopped, n)
		}
		require.NotEmpty(t, stopped)
	}
	for c.released < transitions*3/4 {
		c.releaseTransitions(10)
		time.Sleep(2 * time.Millisecond)
	}
	if !synchronous {
		awaitStored(t, servers.PrimaryURL(), c.released) // and acknowledged: the spool no longer has it
	}
	acknowledged := loadNumber(t, servers.PrimaryURL(), countPhasesQuery)
	servers.Kill(servers.Primary)
	killed := time.Now()
	for _, pid := range stopped { // it would keep the standby from being promoted
		require.NoError(t, syscall.Kill(pid, syscall.SIGKILL))
	}
	awaitCondition(t, time.Minute, "the standby has all that its receiver got, which is gone", func() bool { return servers.IsTrue(servers.StandbyURL(), isCutOffQuery) })
	had := loadNumber(t, servers.StandbyURL(), countPhasesQuery)
	servers.Promote()
	c.releaseTransitions(len(c.truth))
	if synchronous {
		awaitDerived(t, servers.StandbyURL(), c)
	} else {
		awaitCondition(t, 3*time.Minute, "the loss is noted", func() bool {
			gaps := loadRows[databaseGap](t, servers.StandbyURL(), databaseGapsQuery)
			return len(gaps) > 0 && gaps[0].ClosedAt != nil
		})
		awaitSettled(t, servers.StandbyURL())
	}
	recovered := time.Since(killed)
	awaitCondition(t, time.Minute, "the primary answers", func() bool { return e.sumMetric("evictrail_standby_used", "") == 0 })
	require.NoError(t, e.Stop())
	stored := loadNumber(t, servers.StandbyURL(), countPhasesQuery)
	t.Logf("T24: %d transitions; the primary had acknowledged %d, the standby had %d when it was promoted, %d are stored in the end; all after %s",
		len(c.truth), acknowledged, had, stored, recovered.Round(100*time.Millisecond))
	if synchronous {
		require.GreaterOrEqual(t, had, acknowledged)
		requireTruth(t, servers.StandbyURL(), c.truth)
		require.Empty(t, loadRows[databaseGap](t, servers.StandbyURL(), databaseGapsQuery))
		return
	}
	require.Less(t, had, acknowledged, "the standby was behind")
	requireTruthButFor(t, servers.StandbyURL(), c.truth)
}

const (
	receiversQuery = "SELECT coalesce(string_agg(pid::text, ' '), '') FROM pg_stat_activity WHERE backend_type = 'walreceiver'"
	// isCutOffQuery is answered once Postgres has started again after the end of a receiver that was killed.
	isCutOffQuery = `
SELECT NOT EXISTS (SELECT FROM pg_stat_activity WHERE backend_type = 'walreceiver')
  AND pg_last_wal_replay_lsn() >= coalesce(pg_last_wal_receive_lsn(), '0/0')`
)

const countPhasesQuery = "SELECT count(*) AS n FROM evictrail_v1.events WHERE kind = 'migration_phase' AND value <> ''"

// awaitSettled waits until nothing more is stored and all is derived.
func awaitSettled(t *testing.T, database string) {
	t.Helper()
	before := -1
	awaitCondition(t, 3*time.Minute, "everything is stored and derived", func() bool {
		time.Sleep(2 * time.Second)
		n := loadNumber(t, database, countPhasesQuery)
		same := n == before
		before = n
		return same && loadNumber(t, database, "SELECT count(*) AS n FROM evictrail.subjects WHERE dirty_since IS NOT NULL") == 0
	})
}

// requireTruthButFor wants each transition stored once, or in a gap that says that the database lost it.
func requireTruthButFor(t *testing.T, database string, truth []transition) {
	t.Helper()
	gaps := loadRows[databaseGap](t, database, databaseGapsQuery)
	require.NotEmpty(t, gaps)
	got := map[string]int{}
	for _, x := range loadRows[transition](t, database, phasesQuery) {
		got[x.UID+" "+x.Phase+" "+formatTimestamp(x.At)]++
	}
	lost := 0
	for _, x := range truth {
		key := x.UID + " " + x.Phase + " " + formatTimestamp(x.At)
		require.LessOrEqual(t, got[key], 1, "%s is doubled", key)
		if got[key] > 0 {
			continue
		}
		lost++
		require.True(t, slices.ContainsFunc(gaps, func(g databaseGap) bool {
			return !x.At.Before(g.OpenedAt.Truncate(time.Second)) && (g.ClosedAt == nil || !x.At.After(*g.ClosedAt))
		}), "%s is lost, and lies in no gap", key)
	}
	t.Logf("T24: %d transitions are lost; the gaps: %v", lost, gaps)
}
