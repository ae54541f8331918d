package api_test

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/evictrail/evictrail/alerts/backtest"
	"github.com/evictrail/evictrail/api"
)

// TestBacktestIsSentAsItIsRead writes questions as clients send them, and reads them.
func TestBacktestIsSentAsItIsRead(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 11, 28, 0, 0, 0, 0, time.UTC)
	for _, q := range []backtest.Question{
		{},
		{
			Cluster: "a b&c", Since: now.Add(-time.Hour - time.Nanosecond), Until: now,
			Rules:      []string{"EvictrailEvacuationStuck"},
			Thresholds: []backtest.Change{{Present: 2100, Other: 3600.5}, {Present: 3, Other: 0}},
			For:        []time.Duration{0, 90 * time.Second}, Step: 15 * time.Second, EvacuationTarget: 99.95,
		},
		{Rules: []string{"EvictrailVMPingPong"}, Thresholds: []backtest.Change{{Other: 4}}},
		{Rules: []string{"EvictrailVMPingPong", "EvictrailVMChurnHigh"}},
	} {
		got, err := api.ReadBacktest(api.BacktestURL(q).RawQuery, now)
		require.NoError(t, err)
		require.NoError(t, q.Validate()) // which fills in the rest
		require.Equal(t, q, got)
	}
}

// TestBacktestTakesTooLong has answers that come too late, or are too large, refused with what to do.
func TestBacktestTakesTooLong(t *testing.T) {
	t.Parallel()
	var asked backtest.Question
	r := &fakeReader{}
	h := api.Server{Readers: api.ForAll(r)}.Handler()
	r.backtest = func(_ context.Context, q backtest.Question) (backtest.Answer, error) {
		asked = q
		return backtest.Answer{}, fmt.Errorf("backtest: %w", context.DeadlineExceeded)
	}
	w := sendGet(t, h, "/api/v1/alerts/backtest?cluster=prod&for=1m,2m")
	require.Equal(t, http.StatusServiceUnavailable, w.Code)
	require.Contains(t, w.Body.String(), "ask for one alert with rule, or for a shorter time with since; "+
		"`evictrail alerts backtest` on the command line, with the database, waits for it")
	require.Equal(t, "prod", asked.Cluster)
	require.Equal(t, []time.Duration{time.Minute, 2 * time.Minute}, asked.For)
	require.Equal(t, backtest.UsualStep, asked.Step)

	large := strings.Repeat("x", 11<<20)
	r.backtest = func(context.Context, backtest.Question) (backtest.Answer, error) {
		return backtest.Answer{Cluster: large}, nil
	}
	w = sendGet(t, h, "/api/v1/alerts/backtest")
	require.Equal(t, http.StatusBadRequest, w.Code)
	require.Contains(t, w.Body.String(), "the firings are more than 10 MiB: ask for one alert with rule")
}
