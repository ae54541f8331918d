package read_test

import (
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/evictrail/evictrail/store/storetest"
	"github.com/evictrail/evictrail/trail"
	"github.com/evictrail/evictrail/trail/forecast"
	"github.com/evictrail/evictrail/trail/sim"
)

// TestLimitsRestOnTheMigrations records simulated clusters and compares what is said of their limits with what the migrations say
// that all facts make. Who may not see all of a cluster gets no answer.
func TestLimitsRestOnTheMigrations(t *testing.T) {
	t.Parallel()
	for _, seed := range storetest.Sample([]uint64{0, 1, 2}) {
		facts := observeAll(sim.NewAt(seed, time.Date(2026, 11, 24, 12, 0, 0, 0, time.UTC)).Observations)
		seen := facts[len(facts)-1].ObservedAt.Truncate(time.Microsecond)
		s := storetest.New(t)
		storetest.Record(t, s, facts)
		got, err := s.Limits(t.Context(), "")
		require.NoError(t, err)
		require.Len(t, got, 1)

		var settings trail.KubeVirtSettings
		for _, f := range facts {
			if d, is := f.Detail.(*trail.ConfigDetail); is && d.KubeVirt != nil {
				settings = *d.KubeVirt
			}
		}
		want := forecast.Traffic{Cluster: "c1", From: seen.Add(-forecast.LimitsLookBack), To: seen}
		want.PerCluster, want.PerNode = settings.ParallelLimits()
		for _, d := range trail.DeriveAll(facts, trail.DefaultThresholds(), seen).Rows {
			for i := range d.Migrations {
				want.Uses = append(want.Uses, forecast.NewSlotUse(&d.Migrations[i]))
			}
		}
		require.NotEmpty(t, want.Uses)
		require.NotNil(t, got[0].Recorder)
		got[0].Recorder, got[0].NotObserved = nil, nil
		require.Equal(t, roundLimits(want.Weigh()), roundLimits(got[0]))

		hidden, err := s.SeenBy(trail.Only("c1", "shop")).Limits(t.Context(), "")
		require.NoError(t, err)
		require.Empty(t, hidden)
	}
}

// roundLimits drops what times of the database, which have microseconds, do not keep.
func roundLimits(l forecast.Limits) forecast.Limits {
	spans := []*trail.Span{&l.Held, &l.Full}
	l.Options = slices.Clone(l.Options)
	for i := range l.Options {
		spans = append(spans, &l.Options[i].Waited)
	}
	for _, s := range spans {
		*s = trail.Span(time.Duration(*s).Round(10 * time.Millisecond))
	}
	l.From, l.To, l.PerHour, l.Used = l.From.UTC(), l.To.UTC(), 0, 0
	l.Busiest = &forecast.BusyHour{At: l.Busiest.At, Arrived: l.Busiest.Arrived}
	return l
}
