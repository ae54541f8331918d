package web

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/evictrail/evictrail/trail"
	"github.com/evictrail/evictrail/trail/whatif"
)

func TestCurve(t *testing.T) {
	t.Parallel()
	s, err := whatif.ParseSweep("base=5m..60m", whatif.Policy{})
	require.NoError(t, err)
	var swept []whatif.Result
	for i, p := range s.Policies {
		swept = append(swept, whatif.Result{
			Name: p.String(), Policy: p, Swept: true, Value: p.Value("base"), MigrationsSaved: 2 * i, HeldBack: i, WaitTotal: trail.Span(i*i) * trail.Span(time.Minute),
		})
	}
	c := curveOf("base", swept)
	require.Len(t, c.Saved.Dots, 12)
	require.Equal(t, dot{"4.000%", "96.000%", "base=5m: 0 migrations saved"}, c.Saved.Dots[0])
	require.Equal(t, dot{"96.000%", "8.000%", "base=1h: 22 migrations saved"}, c.Saved.Dots[11])
	require.Equal(t, "22 migrations saved", c.Saved.Most)
	require.Equal(t, "11 min of waiting on average", c.Wait.Most)
	require.Equal(t, []string{"5m", "20m", "35m", "50m"}, []string{c.Ticks[0].Text, c.Ticks[1].Text, c.Ticks[2].Text, c.Ticks[3].Text})

	for i := range swept {
		swept[i].MigrationsSaved = 0
	}
	c = curveOf("base", swept)
	require.Empty(t, c.Saved.Most)
	require.Equal(t, "96.000%", c.Saved.Dots[11].Y, "nothing saved is a line at the bottom")
	require.Empty(t, curveOf("", nil).Ticks)
}
