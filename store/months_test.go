package store_test

import (
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/evictrail/evictrail/store/storetest"
	"github.com/evictrail/evictrail/trail"
	"github.com/evictrail/evictrail/trail/tracker"
)

// TestForgedTimesMakeNoPartitions is defect D10: Events whose times lie over eleven years made 123 partitions. An import of audit logs of a year makes them.
func TestForgedTimesMakeNoPartitions(t *testing.T) {
	t.Parallel()
	storetest.SkipInShort(t)
	s := storetest.New(t)
	now := time.Now().UTC().Truncate(time.Second)
	require.NoError(t, s.EnsureMonths(t.Context(), now))
	partitions := func() (n int) {
		require.NoError(t, s.DB.QueryRow(t.Context(), "SELECT count(*) FROM pg_inherits WHERE inhparent = 'evictrail.events'::regclass").Scan(&n))
		return n
	}
	tr := tracker.New("c1")
	var facts []trail.Fact
	for i := range 145 {
		facts = append(facts, tr.Observe(tracker.KubeEventObservation{
			Seen: tracker.Seen{At: now}, Meta: tracker.Meta{UID: "e" + strconv.Itoa(i), Namespace: "shop", Name: "e", ResourceVersion: strconv.Itoa(100 + i)},
			About: tracker.Involved{Kind: "VirtualMachineInstance", Namespace: "shop", Name: "db"}, Reason: "FailedMigration", Count: 1, LastAt: now.AddDate(0, 12-i, 0),
		})...)
	}
	require.Len(t, facts, 145)
	_, err := s.Append(t.Context(), "c1", facts)
	require.NoError(t, err)
	var stored int
	require.NoError(t, s.DB.QueryRow(t.Context(), "SELECT count(*) FROM evictrail.events").Scan(&stored))
	require.Equal(t, 145, stored, "all are stored")
	require.LessOrEqual(t, partitions(), 1+3+1+12, "the default one, three months back, this one, and a year ahead")
	u, err := s.Upkeep(t.Context(), "c1")
	require.NoError(t, err)
	require.Zero(t, u.StrayRows, "what is old lies in the default partition on purpose")

	before := partitions()
	var log []trail.Fact
	for i := range 12 {
		at := now.AddDate(-2, -i, 0)
		log = append(log, tr.Observe(tracker.RequestObservation{
			Seen: tracker.Seen{At: now}, Source: trail.SourceAudit, ID: strconv.Itoa(i), Stage: "ResponseComplete", Action: trail.ActionEvict, Namespace: "shop",
			Name: "virt-launcher-db-x", AskedAt: at,
		})...)
	}
	other := storetest.New(t)
	n, err := other.Import(t.Context(), "c1", log)
	require.NoError(t, err)
	require.Equal(t, 12, n)
	require.NoError(t, other.DB.QueryRow(t.Context(), "SELECT count(*) FROM evictrail.events_default").Scan(&stored))
	require.Zero(t, stored, "each month has its own")
	require.Equal(t, before, partitions())
}

// TestPartitionsAheadAreCountedWithoutAGap: a partition that something far ahead made does not hide that the next month has none.
func TestPartitionsAheadAreCountedWithoutAGap(t *testing.T) {
	t.Parallel()
	s := storetest.New(t)
	now := time.Now().UTC()
	require.NoError(t, s.EnsureMonths(t.Context(), now))
	_, err := s.DB.Exec(t.Context(), "SELECT evictrail.ensure_month(now() + interval '8 months')")
	require.NoError(t, err)
	u, err := s.Upkeep(t.Context(), "c1")
	require.NoError(t, err)
	require.Less(t, u.PartitionsUntil.Sub(now), 63*24*time.Hour)
}
