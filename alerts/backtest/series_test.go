package backtest

import (
	"math"
	"testing"
	"time"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/model/value"
	"github.com/prometheus/prometheus/promql"
	"github.com/prometheus/prometheus/tsdb/chunkenc"
	"github.com/stretchr/testify/require"
)

// TestIterator compares what an iterator returns from each sample on with a list of samples.
func TestIterator(t *testing.T) {
	t.Parallel()
	d := newDatabase(1000, 10)
	s := d.find(labels.FromStrings(model.MetricNameLabel, "m", "a", "b"))
	stale := math.Float64frombits(value.StaleNaN)
	all := map[int]float64{} // by step
	for step := range 20 {
		d.last = step
		switch {
		case step < 2:
		case step == 9:
			s.end(step)
			all[step] = stale
		case step > 9 && step < 13:
			s.end(step) // it has ended already
		default:
			s.set(step, float64(step/3))
			all[step] = float64(step / 3)
		}
	}
	require.Less(t, len(s.changes), 10, "values that do not change take no room")
	for first := -1; first < 22; first++ {
		for last := first; last < 22; last++ {
			q, err := d.Querier(d.timeOf(first), d.timeOf(last))
			require.NoError(t, err)
			set := q.Select(t.Context(), true, nil, labels.MustNewMatcher(labels.MatchEqual, model.MetricNameLabel,
				"m"))
			require.True(t, set.Next())
			for seek := first - 1; seek <= last+1; seek++ {
				it := set.At().Iterator(nil)
				at := max(seek, first, 0)
				kind := it.Seek(d.timeOf(seek))
				for ; at <= last; at++ {
					want, there := all[at]
					if !there {
						continue
					}
					require.Equal(t, chunkenc.ValFloat, kind, "step %d from %d, seeking %d", at, first, seek)
					ts, v := it.At()
					require.Equal(t, d.timeOf(at), ts)
					require.Equal(t, math.Float64bits(want), math.Float64bits(v))
					require.Equal(t, chunkenc.ValFloat, it.Seek(ts), "seeking what is there moves nothing")
					require.Equal(t, ts, it.AtT())
					kind = it.Next()
				}
				require.Equal(t, chunkenc.ValNone, kind)
			}
			require.False(t, set.Next())
		}
	}
}

func TestWriteEndsSeriesWithoutValue(t *testing.T) {
	t.Parallel()
	d := newDatabase(0, 10)
	d.last = 9
	of := func(name string) labels.Labels { return labels.FromStrings("node", name) }
	d.write("r", promql.Matrix{
		{Metric: of("a"), Floats: []promql.FPoint{{T: 0, F: 1}, {T: 10, F: 1}, {T: 30, F: 2}}},
		{Metric: of("b"), Floats: []promql.FPoint{{T: 0, F: 5}, {T: 10, F: 5}, {T: 20, F: 5}, {T: 30, F: 5}}},
	}, 0, 3)
	d.write("r", promql.Matrix{{Metric: of("b"), Floats: []promql.FPoint{{T: 40, F: 5}}}}, 4, 4)
	a := d.find(labels.FromStrings(model.MetricNameLabel, "r", "node", "a")).changes
	require.Len(t, a, 4)
	require.Equal(t, []int{0, 2, 3, 4}, []int{a[0].step, a[1].step, a[2].step, a[3].step})
	require.Equal(t, []bool{false, true, false, true}, []bool{a[0].ended, a[1].ended, a[2].ended, a[3].ended})
	require.Equal(t, []change{{step: 0, value: 5}}, d.find(labels.FromStrings(model.MetricNameLabel, "r", "node",
		"b")).changes)
}

// TestRuling follows one alert with a `for` of two steps: t holds, dots do not.
func TestRuling(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name, holds string
		hold, keep  int      // steps
		want        [][3]int // pending, fired, ended (-1: never)
	}{
		{"too short", "..tt....", 2, 0, nil},
		{"long enough", "..ttt...", 2, 0, [][3]int{{2, 4, 5}}},
		{"interrupted", ".tt.tttt", 2, 0, [][3]int{{4, 6, -1}}},
		{"at once", "..t.tt..", 0, 0, [][3]int{{2, 2, 3}, {4, 4, 6}}},
		{"kept", "..t..t....", 0, 3, [][3]int{{2, 2, 9}}},
		{"kept to its end", "t...t", 0, 3, [][3]int{{0, 0, -1}}},
		{"pending is not kept", "t..t.", 1, 3, nil},
	}
	for _, tt := range tests {
		for _, together := range []int{1, 3, 100} {
			t.Run(tt.name, func(t *testing.T) {
				t.Parallel()
				at := func(step int) time.Time { return time.UnixMilli(int64(step) * 1000).UTC() }
				r := newRuling(time.Duration(tt.hold)*time.Second, time.Duration(tt.keep)*time.Second)
				for first := 0; first < len(tt.holds); first += together {
					var steps []time.Time
					var points []promql.FPoint
					for step := first; step < min(first+together, len(tt.holds)); step++ {
						steps = append(steps, at(step))
						if tt.holds[step] == 't' {
							points = append(points, promql.FPoint{T: at(step).UnixMilli(), F: 1})
						}
					}
					var values promql.Matrix
					if points != nil {
						values = promql.Matrix{{Metric: labels.FromStrings("node", "n"), Floats: points}}
					}
					r.follow(values, steps)
				}
				var got [][3]int
				for _, f := range r.finish() {
					ended := -1
					if !f.EndedAt.IsZero() {
						ended = int(f.EndedAt.Unix())
					}
					got = append(got, [3]int{int(f.PendingAt.Unix()), int(f.FiredAt.Unix()), ended})
					require.Equal(t, map[string]string{"node": "n"}, f.Labels)
				}
				require.Equal(t, tt.want, got)
			})
		}
	}
}
