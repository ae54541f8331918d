package store_test

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/evictrail/evictrail/store"
	"github.com/evictrail/evictrail/store/storetest"
	"github.com/evictrail/evictrail/store/tables"
	"github.com/evictrail/evictrail/trail"
	"github.com/evictrail/evictrail/trail/tracker"
)

// openUntil reads until when each row of each derived table is open, by table, subject and key; zero: it goes on.
func openUntil(t *testing.T, s *store.Store) map[string]time.Time {
	t.Helper()
	out := map[string]time.Time{}
	for _, of := range tables.Derived {
		table, key := of.Name, of.Key
		rows, err := s.DB.Query(t.Context(), fmt.Sprintf("SELECT concat_ws(' ', $1::text, subject, %s), nullif(open_until, 'infinity') FROM evictrail.%s", key, table), table)
		require.NoError(t, err)
		type open struct {
			Of    string
			Until *time.Time
		}
		all, err := pgx.CollectRows(rows, pgx.RowToStructByPos[open])
		require.NoError(t, err)
		for _, o := range all {
			out[o.Of] = time.Time{}
			if o.Until != nil {
				out[o.Of] = o.Until.UTC()
			}
		}
	}
	return out
}

// openUntilOf returns the same of what is derived in memory.
func openUntilOf(all *trail.Cluster) map[string]time.Time {
	out := map[string]time.Time{}
	for subject, d := range all.Rows {
		add := func(table string, key any, r trail.Row) {
			until := r.OpenUntil()
			out[fmt.Sprintf("%s %s %s", table, subject, key)] = until.UTC().Round(time.Microsecond)
		}
		for _, r := range d.Requests {
			add("eviction_requests", r.ID, r)
		}
		for _, r := range d.Evacuations {
			add("evacuations", r.ID, r)
		}
		for _, r := range d.Migrations {
			add("migrations", r.UID, r)
		}
		for _, r := range d.Placements {
			add("placements", r.ID, r)
		}
		for _, r := range d.Decisions {
			add("cooldown_decisions", r.ID, r)
		}
		for _, r := range d.Loops {
			add("loops", r.ID, r)
		}
		for _, r := range d.Drains {
			add("drains", r.ID, r)
		}
		for _, r := range d.Blockers {
			add("drain_blockers", r.VMIUID, r)
		}
		for _, r := range d.Consequences {
			add("consequences", r.ID, r)
		}
		for _, r := range d.Outages {
			add("outages", r.ID, r)
		}
		for _, r := range d.Gaps {
			add("gaps", r.ID, r)
		}
		for _, r := range d.Timeline {
			add("timeline", r.EventID, r)
		}
	}
	return out
}

// TestOpenUntil stores histories with outages of nodes and gaps: each row of each table is open until when trail says.
func TestOpenUntil(t *testing.T) {
	t.Parallel()
	storetest.SkipInShort(t)
	r := rand.New(rand.NewPCG(52, 7))
	facts := storetest.Shifts(r, 52, 24, 20)
	tr := tracker.New("c1")
	end := facts[len(facts)-1].ObservedAt
	for i := range 3 {
		at := facts[len(facts)/3*i].ObservedAt
		facts = append(facts, tr.Observe(storetest.Readiness("worker-1", at, i, i%2 == 1))...)
		facts = append(facts, tr.Observe(tracker.GapObservation{
			Seen:      tracker.Seen{At: at.Add(time.Minute)},
			GapReport: trail.GapReport{Source: "nodes", Key: fmt.Sprint(i), OpenedAt: at, ClosedAt: at.Add(time.Minute), Cause: trail.ReasonRelisted},
		})...)
	}
	for i := range facts {
		facts[i].OccurredAt, facts[i].ObservedAt = facts[i].OccurredAt.Truncate(time.Microsecond), facts[i].ObservedAt.Truncate(time.Microsecond)
	}
	s := storetest.New(t)
	require.NoError(t, s.Judge(t.Context(), "c1", storetest.Brief))
	require.NoError(t, s.Alive(t.Context(), "c1", end))
	_, err := s.Import(t.Context(), "c1", facts)
	require.NoError(t, err)
	_, err = s.DeriveStale(t.Context(), "c1", nil)
	require.NoError(t, err)
	_, err = s.DB.Exec(t.Context(), "DELETE FROM evictrail.loops WHERE closed_by = 'refuted'") // all facts do not show them
	require.NoError(t, err)
	require.Equal(t, openUntilOf(trail.DeriveAll(facts, storetest.Brief, end)), openUntil(t, s))

	for _, of := range tables.Derived {
		table := of.Name
		n := storetest.CountRows(t, s, "SELECT count(*) FROM evictrail."+table+" WHERE open_until < 'infinity'")
		t.Log(table, n, "ended")
		require.True(t, n > 0 || table == "drain_blockers" || table == "consequences", table)
	}
}
