package main

import (
	"errors"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"

	"github.com/evictrail/evictrail"
	"github.com/evictrail/evictrail/collector/recording"
	"github.com/evictrail/evictrail/metrics"
	"github.com/evictrail/evictrail/store/storetest"
)

// countedQueries give what counters must have come to when a recording was played: the labels of a series and its value.
// What happened before the recording began is not counted.
var countedQueries = map[string]string{
	metrics.EvictionRequestsTotal: `
SELECT format('answer="%s",requester="%s"', answer, requester_class) AS labels, count(*)::float AS value
FROM evictrail_v1.eviction_requests WHERE NOT dry_run AND requested_at >= BEGAN GROUP BY 1`,
	metrics.EvacuationsStartedTotal: `
SELECT format('node="%s",requester="%s"', node, requester_class) AS labels, count(*)::float AS value
FROM evictrail_v1.evacuations WHERE marked_at >= BEGAN GROUP BY 1`,
	metrics.EvacuationsEndedTotal: `
SELECT format('node="%s",result="%s"', node, outcome) AS labels, count(*)::float AS value
FROM evictrail_v1.evacuations WHERE ended_at >= BEGAN GROUP BY 1`,
	metrics.EvacuationObjectiveTotal: `
SELECT format('requester="%s",result="%s"', requester_class, CASE WHEN objective_met THEN 'met' ELSE 'missed' END) AS labels, count(*)::float AS value
FROM evictrail_v1.evacuations
WHERE objective_met IS NOT NULL AND CASE WHEN objective_met THEN ended_at ELSE marked_at + objective END >= BEGAN
GROUP BY 1`,
	metrics.MigrationsTotal: `
SELECT format('class="%s",result="%s",trigger="%s"', CASE outcome WHEN 'aborted' THEN 'aborted' ELSE coalesce(failure_class, 'none') END, outcome, trigger) AS labels, count(*)::float AS value
FROM evictrail_v1.migrations WHERE finished_at >= BEGAN GROUP BY 1`,
	metrics.LoopsTotal: `
SELECT format('kind="%s"', kind) AS labels, count(*)::float AS value
FROM evictrail_v1.loops WHERE opened_at >= BEGAN GROUP BY 1`,
	metrics.CooldownDecisionsTotal: `
SELECT format('origin="%s",reason="%s"', origin, coalesce(inputs ->> 'observed_reason', reason)) AS labels, sum(CASE origin WHEN 'observed' THEN count ELSE 1 END)::float AS value
FROM evictrail_v1.cooldown_decisions WHERE verdict = 'blocked' AND decided_at >= BEGAN GROUP BY 1`,
	metrics.EffectiveCooldownSeconds + "_count": `
SELECT format('origin="%s"', origin) AS labels, count(*)::float AS value
FROM evictrail_v1.cooldown_decisions WHERE verdict = 'holds' AND reason = 'migration_completed' AND layer = 'descheduler_cooldown' AND decided_at >= BEGAN GROUP BY 1`,
	metrics.FactsTotal: `
SELECT format('kind="%s",stage="committed"', kind) AS labels, count(*)::float AS value
FROM evictrail.events GROUP BY 1`,
}

func TestMetricsOutSaysAtOnceThatItCannotBeWritten(t *testing.T) {
	t.Parallel()
	code, out, stderr := runCommand(t, "play", "../../testdata/recordings/a-descheduler-eviction-success", "--database-url", storetest.NewURL(t), "--metrics-out", t.TempDir())
	require.Equal(t, exitError, code)
	require.Contains(t, stderr, "write metrics: open")
	require.Empty(t, out)
}

// counted is a series and its value.
type counted struct {
	Labels string  `json:"labels"`
	Value  float64 `json:"value"`
}

// compareCounters compares what the counters of a play came to with what was stored. Played again, nothing is counted again.
func compareCounters(t *testing.T, url, name, metricsFile string, again bool) {
	t.Helper()
	rec, err := recording.Open(evictrail.Recordings(), name, nil)
	require.NoError(t, err)
	began := rec.Start().Format(time.RFC3339Nano)
	series := lastSamples(t, metricsFile)
	for metric, query := range countedQueries {
		want := map[string]float64{}
		if !again {
			for _, r := range queryRows[counted](t, url, strings.ReplaceAll(query, "BEGAN", "'"+began+"'")) {
				want[metric+"{"+r.Labels+"}"] = r.Value
			}
		}
		got := countsOf(metric, series)
		maps.DeleteFunc(got, func(_ string, v float64) bool { return v == 0 })
		require.Equal(t, want, got, metric)
	}
}

// countsOf returns the series of a metric that count what was stored: not what was only seen, or was known.
func countsOf(metric string, samples map[string]float64) map[string]float64 {
	out := map[string]float64{}
	for s, v := range samples {
		if strings.HasPrefix(s, metric+"{") && !strings.Contains(s, `stage="observed"`) && !strings.Contains(s, `stage="deduplicated"`) {
			out[s] = v
		}
	}
	return out
}

// TestReplicasCountOnce plays a recording twice at the same time into one database: what both count together is what happened.
func TestReplicasCountOnce(t *testing.T) {
	storetest.SkipInShort(t)
	t.Parallel()
	for _, name := range []string{"b-dual-retry-loop-v1.8", "c-node-drain", "g-churn-cooldown"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			rec, err := recording.Open(evictrail.Recordings(), name, nil)
			require.NoError(t, err)
			url, dir := storetest.NewURL(t), t.TempDir()
			var replicas errgroup.Group
			for _, replica := range []string{"a", "b"} {
				replicas.Go(func() error {
					if replica == "b" { // it may begin when a is in the middle of it
						time.Sleep(rand.N(3 * time.Second))
					}
					code, _, stderr := runCommand(t, "play", filepath.Join("../../testdata/recordings", name), "--database-url", url, "--metrics-out", filepath.Join(dir, replica))
					if code != exitFound {
						return errors.New(stderr)
					}
					return nil
				})
			}
			require.NoError(t, replicas.Wait())
			for metric, query := range countedQueries {
				want, got := 0., 0.
				for _, r := range queryRows[counted](t, url, strings.ReplaceAll(query, "BEGAN", "'"+rec.Start().Format(time.RFC3339Nano)+"'")) {
					want += r.Value
				}
				for _, replica := range []string{"a", "b"} {
					for _, v := range countsOf(metric, lastSamples(t, filepath.Join(dir, replica))) {
						got += v
					}
				}
				require.InDelta(t, want, got, 0, metric)
			}
		})
	}
}

// lastSamples returns the last value of each series in an OpenMetrics file.
func lastSamples(t *testing.T, path string) map[string]float64 {
	t.Helper()
	text, err := os.ReadFile(path)
	require.NoError(t, err)
	require.True(t, strings.HasSuffix(string(text), "# EOF\n"))
	out := map[string]float64{}
	for line := range strings.Lines(string(text)) {
		if strings.HasPrefix(line, "#") {
			continue
		}
		series, rest, found := strings.Cut(line, "} ")
		if !found {
			series, rest, found = strings.Cut(line, " ")
		} else {
			series += "}"
		}
		require.True(t, found, line)
		value, err := strconv.ParseFloat(strings.Fields(rest)[0], 64)
		require.NoError(t, err, line)
		out[series] = value
	}
	return out
}
