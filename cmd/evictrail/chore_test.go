package main

import (
	"bytes"
	"context"
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/require"

	"github.com/evictrail/evictrail/metrics"
	"github.com/evictrail/evictrail/store"
)

// TestChoresAreThoseOfTheLeader has a replica follow, lead and follow again: what is to be done from time to time is done while it leads.
func TestChoresAreThoseOfTheLeader(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var did []time.Time
		leads := false
		ctx, stop := context.WithCancel(t.Context())
		ended := make(chan error)
		c := chore{time.Minute, time.Hour, func(_ context.Context, at time.Time) { did = append(did, at) }}
		begun := nowUTC()
		go func() { ended <- c.run(ctx, func() bool { return leads }) }()
		time.Sleep(30 * time.Minute)
		require.Empty(t, did, "a follower does nothing")
		leads = true
		time.Sleep(2 * time.Hour)
		leads = false
		time.Sleep(3 * time.Hour)
		require.Equal(t, []time.Time{begun.Add(61 * time.Minute), begun.Add(121 * time.Minute)}, did)
		stop()
		require.NoError(t, <-ended)
	})
}

// TestDaysAreCounted counts what a recording brought, and says once what is in the way.
func TestDaysAreCounted(t *testing.T) {
	t.Parallel()
	url := playedURL(t, "b-dual-retry-loop")
	type day struct{ Day, KubeVirt string }
	const query = `SELECT day::text AS "Day", kubevirt AS "KubeVirt" FROM evictrail_v1.cluster_days WHERE moved > 0 AND dual_retry_loops > 0`
	require.Len(t, queryRows[day](t, url, query), 1, "what is played is counted at its end")
	s, err := store.Open(t.Context(), url, "")
	require.NoError(t, err)
	t.Cleanup(s.Close)
	execSQL(t, url, "DELETE FROM evictrail.cluster_days")
	var log bytes.Buffer
	c := &dayCounter{db: s.DB, cluster: "b-dual-retry-loop", trouble: trouble{metrics: metrics.New(prometheus.NewRegistry()), log: slog.New(slog.NewTextHandler(&log, nil))}}
	c.countDays(t.Context(), nowUTC())
	require.Len(t, queryRows[day](t, url, query), 1)
	require.Empty(t, log.String())
	execSQL(t, url, "ALTER TABLE evictrail.cluster_days RENAME TO other_days")
	c.countDays(t.Context(), nowUTC())
	c.countDays(t.Context(), nowUTC())
	require.Equal(t, 1, bytes.Count(log.Bytes(), []byte("days are not counted")), log.String())
}
