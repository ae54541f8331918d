package web

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/evictrail/evictrail/trail"
	"github.com/evictrail/evictrail/trail/whatif"
)

func TestCurves(t *testing.T) {
	t.Parallel()
	s, err := whatif.ParseSweep("base=5m..1h", whatif.Policy{})
	require.NoError(t, err)
	var swept []whatif.Result
	for i, p := range s.Policies {
		swept = append(swept, whatif.Result{
			Name: p.String(), Policy: p, Swept: true, Value: p.Value("base"), MigrationsSaved: 2 * i, HeldBack: i, WaitTotal: trail.Span(i*i) * trail.Span(time.Minute),
		})
	}
	a := whatif.Answer{SweepOf: "base", Rules: &whatif.Rules{Cooldown: &whatif.Cooldown{Base: trail.Span(15 * time.Minute)}}}
	c := curvesOf(&a, swept)
	saved, wait := c.Charts[0], c.Charts[1]
	require.Len(t, saved.Dots, 5)
	require.Equal(t, dot{"4.000%", "92.000%", "base=5m: 0 migrations saved"}, saved.Dots[0])
	require.Equal(t, dot{"96.000%", "8.000%", "base=1h: 8 migrations saved"}, saved.Dots[4])
	require.Equal(t, []gridLine{{"92.000%", "0"}, {"71.000%", "2"}, {"50.000%", "4"}, {"29.000%", "6"}, {"8.000%", "8"}}, saved.Axis)
	require.Equal(t, []gridLine{{"92.000%", "0 s"}, {"71.000%", "1 min"}, {"50.000%", "2 min"}, {"29.000%", "3 min"}, {"8.000%", "4 min"}}, wait.Axis, "an axis of its own")
	require.Equal(t, &nowLine{"50.000%", "now: 15m"}, c.Now, "at the point of today's value")
	a.Rules.Cooldown.Base = trail.Span(20 * time.Minute)
	require.Equal(t, "57.667%", curvesOf(&a, swept).Now.X, "a third of the way from 15 to 30 minutes")
	a.Rules.Cooldown.Base = trail.Span(30 * time.Second)
	c = curvesOf(&a, swept)
	require.Nil(t, c.Now)
	require.Equal(t, "Now it is 30s, which is not within the sweep.", c.Note)

	for i := range swept {
		swept[i].MigrationsSaved = 0
	}
	require.Equal(t, "92.000%", curvesOf(&a, swept).Charts[0].Dots[4].Y, "nothing saved is a line at the bottom")
	require.Empty(t, curvesOf(&a, nil).Charts)
}

func TestClusterToSave(t *testing.T) {
	t.Parallel()
	require.Empty(t, clusterToSave(nil))
	require.Equal(t, "b", clusterToSave([]trail.ClusterSummary{{Name: "a", Stuck: 7}, {Name: "b", Closed: 1}, {Name: "c", Loops: 1}}))
	require.Equal(t, "a", clusterToSave([]trail.ClusterSummary{{Name: "a"}, {Name: "b"}}), "nothing to save anywhere")
}
