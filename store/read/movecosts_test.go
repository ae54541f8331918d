package read_test

import (
	"cmp"
	"math"
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

// weeklyCost is a row of view weekly_move_costs; times are in seconds.
type weeklyCost struct {
	Week                                       time.Time
	Namespace, Node, Trigger, Class, Requester string
	Moves, Failed, NotNeeded                   int
	CopyTime, ReservedTime                     float64
	ReservedGiBHours                           float64
	DataProcessed                              int64
	Measured, NotMeasured                      int
	GuestPause                                 *float64
}

const weeklyCostsQuery = `
SELECT week, namespace, coalesce(node, ''), trigger, requester_class, coalesce(requester, ''), moves, failed, not_needed,
  extract(epoch FROM copy_time)::double precision, extract(epoch FROM reserved_time)::double precision, reserved_gib_hours,
  data_processed, measured, not_measured, extract(epoch FROM guest_pause)::double precision
FROM evictrail_v1.weekly_move_costs
WHERE cluster = 'c1'
ORDER BY week, namespace, node, trigger, requester_class, requester`

// TestWeeklyMoveCostsAreThoseOfTheMigrations records simulated clusters across the end of a week, has two of three
// migrations measured, and compares what they cost with the migrations that all facts make.
func TestWeeklyMoveCostsAreThoseOfTheMigrations(t *testing.T) {
	t.Parallel()
	for _, seed := range storetest.Sample([]uint64{0, 1, 2}) {
		run := sim.NewAt(seed, time.Date(2026, 11, 22, 23, 0, 0, 0, time.UTC)) // the next week begins within each run
		tr := tracker.New("c1")
		var facts []trail.Fact
		for _, o := range run.Observations {
			facts = append(facts, tr.Observe(o)...)
		}
		seen := facts[len(facts)-1].ObservedAt.Truncate(time.Microsecond)
		facts = append(facts, measureMigrations(tr, trail.DeriveAll(facts, trail.DefaultThresholds(), seen), seen)...)
		s := storetest.New(t)
		storetest.Record(t, s, facts)
		want := addUpCosts(trail.DeriveAll(facts, trail.DefaultThresholds(), seen))
		require.NotEmpty(t, want)
		require.True(t, slices.ContainsFunc(want, func(c weeklyCost) bool { return c.ReservedGiBHours > 0 && c.NotMeasured > 0 && c.Measured > 0 }))
		rows, err := s.DB.Query(t.Context(), weeklyCostsQuery)
		require.NoError(t, err)
		got, err := pgx.CollectRows(rows, pgx.RowToStructByPos[weeklyCost])
		require.NoError(t, err)
		require.Len(t, got, len(want))
		for i := range got {
			got[i].Week = got[i].Week.UTC()
			require.InDelta(t, want[i].ReservedGiBHours, got[i].ReservedGiBHours, 1e-6)
			require.InDelta(t, want[i].CopyTime, got[i].CopyTime, 1e-4)
			require.InDelta(t, want[i].ReservedTime, got[i].ReservedTime, 1e-4)
			for _, c := range []*weeklyCost{&got[i], &want[i]} {
				c.ReservedGiBHours, c.CopyTime, c.ReservedTime = 0, 0, 0
				if c.GuestPause != nil {
					c.GuestPause = new(math.Round(*c.GuestPause * 1e4))
				}
			}
		}
		require.Equal(t, want, got)
	}
}

// measureMigrations returns facts about what migrations copied that have ended: each third one is not measured.
func measureMigrations(tr *tracker.Tracker, c *trail.Cluster, seen time.Time) []trail.Fact {
	var facts []trail.Fact
	n := 0
	for _, d := range c.Rows {
		for _, m := range d.Migrations {
			span, due := trail.Moved{Migration: m}.Transfer(seen, true)
			if n++; !due || n%3 == 0 {
				continue
			}
			detail := &trail.TransferDetail{Origin: trail.OriginPrometheus, Samples: 1, Readings: []trail.TransferReading{
				{Metric: trail.TransferProcessed, Value: new(float64(1000 + n))},
				{Metric: trail.TransferPause, Value: new(0.001 * float64(n))},
			}}
			facts = append(facts, tr.Observe(tracker.TransferObservation{Seen: tracker.Seen{At: seen}, Of: span, Detail: detail})...)
		}
	}
	return facts
}

// addUpCosts returns what migrations cost, in the order of weeklyCostsQuery.
func addUpCosts(c *trail.Cluster) []weeklyCost {
	type key struct {
		week                                       time.Time
		namespace, node, trigger, class, requester string
	}
	sums := map[key]*weeklyCost{}
	for _, d := range c.Rows {
		for _, m := range d.Migrations {
			if m.FinishedAt.IsZero() {
				continue
			}
			k := key{
				m.FinishedAt.UTC().Truncate(7 * 24 * time.Hour), // the zero time is a Monday
				m.Namespace, m.SourceNode, string(m.Trigger), cmp.Or(string(m.RequesterClass), "unknown"), m.Requester,
			}
			if sums[k] == nil {
				sums[k] = &weeklyCost{Week: k.week, Namespace: k.namespace, Node: k.node, Trigger: k.trigger, Class: k.class, Requester: k.requester}
			}
			sums[k].addMigration(m)
		}
	}
	var out []weeklyCost
	for _, c := range sums {
		out = append(out, *c)
	}
	slices.SortFunc(out, func(a, b weeklyCost) int {
		return cmp.Or(a.Week.Compare(b.Week), cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Node, b.Node),
			cmp.Compare(a.Trigger, b.Trigger), cmp.Compare(a.Class, b.Class), cmp.Compare(a.Requester, b.Requester))
	})
	return out
}

// addMigration adds what one migration cost.
func (c *weeklyCost) addMigration(m trail.Migration) {
	switch m.Outcome {
	case trail.OutcomeSucceeded:
		c.Moves++
	case trail.OutcomeFailed, trail.OutcomeAborted:
		c.Failed++
	case trail.OutcomeMigrated, trail.OutcomeCancelled, trail.OutcomeVMIGone:
	}
	if m.Need == trail.NotNeeded {
		c.NotNeeded++
	}
	reserved := 0.0
	if !m.SchedulingAt.IsZero() {
		reserved = max(0, m.FinishedAt.Sub(m.SchedulingAt).Seconds())
	}
	if !m.RunningAt.IsZero() {
		c.CopyTime += max(0, m.FinishedAt.Sub(m.RunningAt).Seconds())
	}
	c.ReservedTime += reserved
	c.ReservedGiBHours += float64(m.GuestMemory) / (1 << 30) * reserved / 3600
	switch {
	case m.DataProcessed != nil:
		c.DataProcessed += *m.DataProcessed
		c.Measured++
	case !m.RunningAt.IsZero():
		c.NotMeasured++
	}
	if m.GuestPause != nil {
		c.GuestPause = new(*m.GuestPause + valueOrZero(c.GuestPause))
	}
}

func valueOrZero(v *float64) float64 {
	if v == nil {
		return 0
	}
	return *v
}
