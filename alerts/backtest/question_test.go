package backtest_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/evictrail/evictrail/alerts"
	"github.com/evictrail/evictrail/alerts/backtest"
	"github.com/evictrail/evictrail/trail"
	"github.com/evictrail/evictrail/trail/rewind"
)

// madeHistory is a source with a made history, which a cluster was last seen at the end of.
type madeHistory struct {
	*rewind.History
	asked [2]time.Time // of what part
}

func (m *madeHistory) OnlyCluster(context.Context, string) (string, error) { return "prod", nil }

func (m *madeHistory) LastSeen(context.Context, string, time.Time) (time.Time, error) {
	return m.To, nil
}

func (m *madeHistory) Rewind(_ context.Context, _ string, from, to time.Time) (*rewind.History, error) {
	m.asked = [2]time.Time{from, to}
	return m.History, nil
}

func (m *madeHistory) Unobserved(context.Context, string, time.Time, time.Time, int) ([]trail.Gap, error) {
	return nil, nil
}

// TestAskUsualPeriod asks without a period: it is the week before the cluster was last seen.
func TestAskUsualPeriod(t *testing.T) {
	t.Parallel()
	m := &madeHistory{History: makeHistory(5, 3, 9)}
	q := backtest.Question{Rules: []string{"EvictrailVMPingPong"}}
	a, err := q.Ask(t.Context(), m, m.To.Add(time.Hour))
	require.NoError(t, err)
	require.Equal(t, [2]time.Time{m.To.Add(-7 * 24 * time.Hour), m.To}, m.asked, "that alert looks back no further")
	require.Equal(t, m.To, a.Until)
	require.Equal(t, m.To.Add(-7*24*time.Hour), a.Since)
	require.Equal(t, "prod", a.Cluster)
	require.Equal(t, "1m", a.StepText())
	require.NotNil(t, a.NotObserved, "an empty array, not null")

	q.Since = m.To
	_, err = q.Ask(t.Context(), m, m.To)
	require.ErrorIs(t, err, trail.ErrNotFound)
	require.ErrorContains(t, err, "prod is known up to ")
}

// TestAskEndsInTime replays a week of a large cluster for someone who waits half a second: the error is that of the
// context, no matter who noticed.
func TestAskEndsInTime(t *testing.T) {
	t.Parallel()
	m := &madeHistory{History: makeHistory(1000, 50, 7)}
	ctx, cancel := context.WithTimeout(t.Context(), 500*time.Millisecond)
	defer cancel()
	began := time.Now()
	_, err := backtest.Question{}.Ask(ctx, m, m.To)
	require.ErrorIs(t, err, context.DeadlineExceeded)
	require.Less(t, time.Since(began), 10*time.Second)
}

// TestCausesAreBounded has an alert about the cluster fire beside many loops: the first are named, the others counted.
func TestCausesAreBounded(t *testing.T) {
	t.Parallel()
	h := makeHistory(20, 5, 4)
	for i := range 30 {
		at := h.From.Add(48*time.Hour + time.Duration(i)*time.Second)
		h.Loops = append(h.Loops, trail.Loop{
			ID: trail.FactID{byte(i)}, Kind: trail.LoopDualRetry, Node: "node-1", OpenedAt: at, ClosedAt: h.To,
		})
	}
	report, err := backtest.Run(t.Context(), h, h.From, backtest.Options{
		Groups: []alerts.Group{{Name: "test", Rules: []alerts.Rule{{
			Alert: "AnyLoop", Expr: "sum(evictrail_loops_open) > 0", Labels: map[string]string{"severity": "info"},
		}}}}, Step: time.Minute,
	})
	require.NoError(t, err)
	require.Len(t, report.Rules, 1, report.NotInHistory)
	require.Len(t, report.Rules[0].Firings, 1)
	require.Len(t, report.Rules[0].Firings[0].Causes, 20)
	require.Equal(t, 10, report.Rules[0].Firings[0].CausesMore)
}
