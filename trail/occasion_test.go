package trail_test

import (
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/evictrail/evictrail/trail"
	"github.com/evictrail/evictrail/trail/tracker"
)

var noon = time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)

func addToNoon(d time.Duration) time.Time { return noon.Add(d) }

// TestOccasions has the moments of a migration come one after the other.
func TestOccasions(t *testing.T) {
	t.Parallel()
	moved := trail.Moved{RequestedAt: noon, Migration: trail.Migration{
		UID: "m", Attempt: 1, SourceNode: "n1", TargetNode: "n2", CreatedAt: addToNoon(time.Second), SchedulingAt: addToNoon(2 * time.Second),
		FinishedAt: addToNoon(10 * time.Second), EndSeenAt: addToNoon(10*time.Second + 300*time.Millisecond), Outcome: trail.OutcomeSucceeded,
	}}
	for _, c := range []struct {
		name   string
		change func(*trail.Moved)
		now    time.Duration
		last   bool
		want   []string
		final  time.Duration // when the one is that none comes after; zero: none
	}{
		{name: "not settled", now: 89 * time.Second},
		{name: "asked for", now: 90 * time.Second, want: []string{"load/request"}},
		{name: "ended", now: 2 * time.Minute, want: []string{"load/request", "load/attempt", "load/end"}},
		{name: "5 minutes after", now: 7 * time.Minute, want: []string{"load/request", "load/attempt", "load/end", "load/after/300"}},
		{
			name: "15 minutes after", now: 17 * time.Minute, want: []string{"load/request", "load/attempt", "load/end", "load/after/300", "load/after/900"},
			final: 15*time.Minute + 10*time.Second + 300*time.Millisecond,
		},
		{name: "a recording ends", now: time.Minute, last: true, want: []string{"load/request", "load/attempt", "load/end", "load/after/300"}, final: time.Minute},
		{
			name: "a recording ends after 6 minutes", now: 6 * time.Minute, last: true,
			want: []string{"load/request", "load/attempt", "load/end", "load/after/300", "load/after/900"}, final: 6 * time.Minute,
		},
		{name: "a later attempt", now: time.Hour, change: func(m *trail.Moved) { m.Attempt = 2 }, want: []string{"load/attempt", "load/end", "load/after/300", "load/after/900"}, final: 15*time.Minute + 10*time.Second + 300*time.Millisecond},
		{name: "failed", now: time.Hour, change: func(m *trail.Moved) { m.Outcome = trail.OutcomeFailed }, want: []string{"load/request", "load/attempt", "load/end"}},
		{name: "never began", now: time.Hour, change: func(m *trail.Moved) { m.SchedulingAt, m.Outcome = time.Time{}, trail.OutcomeAborted }, want: []string{"load/request", "load/end"}},
		{name: "it goes on", now: time.Hour, change: func(m *trail.Moved) { m.FinishedAt, m.EndSeenAt, m.Outcome = time.Time{}, time.Time{}, "" }, want: []string{"load/request", "load/attempt"}},
		{name: "it goes on, to an unknown node", now: time.Hour, change: func(m *trail.Moved) {
			m.FinishedAt, m.EndSeenAt, m.Outcome, m.TargetNode = time.Time{}, time.Time{}, "", ""
		}},
		{name: "of no evacuation", now: 95 * time.Second, change: func(m *trail.Moved) { m.RequestedAt, m.Attempt = time.Time{}, 0 }, want: []string{"load/request", "load/attempt"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			m := moved
			if c.change != nil {
				c.change(&m)
			}
			var got []string
			for _, o := range m.Occasions(addToNoon(c.now), c.last) {
				got = append(got, o.What())
				require.False(t, o.At.After(addToNoon(c.now)))
				require.Equal(t, c.final != 0 && o.At.Equal(addToNoon(c.final)), o.Final, o.What())
			}
			require.Equal(t, c.want, got)
		})
	}
}

// TestLoadsRead picks samples around a moment.
func TestLoadsRead(t *testing.T) {
	t.Parallel()
	half := 0.5
	point := func(at time.Duration, value float64) trail.LoadPoint {
		return trail.LoadPoint{At: addToNoon(at), Value: value, Threshold: &half}
	}
	plain := func(at time.Duration, value float64) trail.LoadPoint {
		return trail.LoadPoint{At: addToNoon(at), Value: value}
	}
	attempt := trail.Occasion{SourceNode: "n1", TargetNode: "n2", Moment: trail.MomentAttempt, At: noon}
	end := trail.Occasion{SourceNode: "n1", TargetNode: "n2", Moment: trail.MomentEnd, At: noon}
	later := trail.Occasion{SourceNode: "n2", TargetNode: "n1", Moment: trail.MomentAfter, At: noon, EndedAt: addToNoon(-15 * time.Minute)}
	again := later
	again.LeftAt = addToNoon(-14*time.Minute - time.Second)
	for _, c := range []struct {
		name   string
		at     trail.Occasion
		points []trail.LoadPoint // of n1
		lack   trail.LoadLack    // of the metric
		want   map[trail.LoadSample]float64
		why    trail.LoadLack
	}{
		{name: "around the beginning", at: attempt, points: []trail.LoadPoint{point(-40*time.Second, 0.4), point(-10*time.Second, 0.3), point(20*time.Second, 0.6), point(50*time.Second, 0.7)}, want: map[trail.LoadSample]float64{"before": 0.3, "next": 0.6}},
		{name: "at the beginning", at: attempt, points: []trail.LoadPoint{point(0, 0.4), point(30*time.Second, 0.3)}, want: map[trail.LoadSample]float64{"before": 0.4, "next": 0.3}},
		{name: "without a threshold", at: attempt, points: []trail.LoadPoint{plain(-10*time.Second, 0.3), plain(20*time.Second, 0.6)}, want: map[trail.LoadSample]float64{"before": 0.3}},
		{name: "it was over its threshold", at: attempt, points: []trail.LoadPoint{point(-29*time.Minute, 0.6), point(-20*time.Minute, 0.7), point(-10*time.Second, 0.5)}, want: map[trail.LoadSample]float64{"last_over": 0.7, "before": 0.5}},
		{name: "long ago", at: attempt, points: []trail.LoadPoint{point(-31*time.Minute, 0.6), point(-10*time.Second, 0.4)}, want: map[trail.LoadSample]float64{"before": 0.4}},
		{name: "and is again", at: attempt, points: []trail.LoadPoint{point(-20*time.Minute, 0.7), point(-10*time.Second, 0.4), point(10*time.Second, 0.6)}, want: map[trail.LoadSample]float64{"before": 0.4, "next": 0.6}},
		{name: "stale", at: attempt, points: []trail.LoadPoint{point(-301*time.Second, 0.4)}, why: trail.LackNoSample},
		{name: "too late", at: attempt, points: []trail.LoadPoint{point(121*time.Second, 0.4)}, why: trail.LackNoSample},
		{name: "at the end nothing later counts", at: end, points: []trail.LoadPoint{point(-10*time.Second, 0.4), point(10*time.Second, 0.6)}, want: map[trail.LoadSample]float64{"before": 0.4}},
		{name: "nothing", at: end, why: trail.LackNoSample},
		{name: "no such metric", at: end, lack: trail.LackNoSeries, why: trail.LackNoSeries},
		{name: "no number", at: end, points: []trail.LoadPoint{point(-time.Second, math.NaN())}, why: trail.LackNotANumber},
		{name: "peak of the first minutes", at: later, points: []trail.LoadPoint{
			point(-16*time.Minute, 0.95), point(-14*time.Minute, 0.6), point(-13*time.Minute, 0.7), point(-12*time.Minute, 0.65), point(-9*time.Minute, 0.9), point(-time.Minute, 0.4),
		}, want: map[trail.LoadSample]float64{"peak": 0.7, "before": 0.4}},
		{name: "peak while the guest was there", at: again, points: []trail.LoadPoint{
			point(-14*time.Minute, 0.6), point(-13*time.Minute, 0.7), point(-time.Minute, 0.4),
		}, want: map[trail.LoadSample]float64{"peak": 0.6, "before": 0.4}},
		{name: "nothing since", at: later, points: []trail.LoadPoint{point(-16*time.Minute, 0.95)}, why: trail.LackNoSample},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			loads := trail.Loads{Metrics: []trail.LoadMetric{{Name: "cpu", Lack: c.lack}}, Points: map[trail.LoadKey][]trail.LoadPoint{{Node: "n1", Metric: "cpu"}: c.points}}
			got := map[trail.LoadSample]float64{}
			others := 0
			for _, r := range loads.Read(c.at) {
				switch {
				case r.Node == "n2":
					others++
					require.Nil(t, r.Value)
				case r.Value == nil:
					require.Equal(t, c.why, r.Lack)
				default:
					require.Empty(t, r.Lack)
					got[r.Sample] = *r.Value
				}
			}
			require.Equal(t, 1, others, "the other node has no samples")
			if c.want == nil {
				c.want = map[trail.LoadSample]float64{}
			}
			require.Equal(t, c.want, got)
		})
	}
}

// TestLoadIsOneFact observes the same moment twice, as two replicas or a restart do, with other samples.
func TestLoadIsOneFact(t *testing.T) {
	t.Parallel()
	value := 0.4
	o := tracker.LoadObservation{
		Seen: tracker.Seen{At: addToNoon(2 * time.Minute)}, Origin: trail.OriginPrometheus,
		Of:       trail.Occasion{Namespace: "shop", VMI: "db", MigrationUID: "m", SourceNode: "n1", Moment: trail.MomentEnd, At: noon},
		Readings: []trail.Reading{{Node: "n1", Metric: "cpu", Sample: trail.SampleBefore, At: noon, Value: &value}},
	}
	first := tracker.New("c").Observe(o)
	require.Len(t, first, 1)
	require.Equal(t, trail.ReasonSampled, first[0].Reason)
	require.Equal(t, noon, first[0].OccurredAt)
	again := o
	again.At, again.Readings = addToNoon(time.Hour), []trail.Reading{{Node: "n1", Metric: "cpu", Sample: trail.SampleBefore, Lack: trail.LackNoSample}}
	second := tracker.New("c").Observe(again)
	require.Equal(t, first[0].ID, second[0].ID)
	require.Equal(t, trail.ReasonNotSampled, second[0].Reason)
	for _, change := range []func(*tracker.LoadObservation){
		func(o *tracker.LoadObservation) { o.Of.MigrationUID = "other" },
		func(o *tracker.LoadObservation) { o.Of.Moment = trail.MomentAttempt },
		func(o *tracker.LoadObservation) { o.Of.Moment, o.Of.After = trail.MomentAfter, time.Minute },
		func(o *tracker.LoadObservation) { o.Origin = trail.OriginDescheduler },
	} {
		other := o
		change(&other)
		require.NotEqual(t, first[0].ID, tracker.New("c").Observe(other)[0].ID)
	}
}
