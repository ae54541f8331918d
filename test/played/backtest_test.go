package played_test

import (
	"encoding/json"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/evictrail/evictrail/alerts"
	"github.com/evictrail/evictrail/alerts/backtest"
	"github.com/evictrail/evictrail/store"
	"github.com/evictrail/evictrail/trail/sim"
)

// apart is by how many evaluations two times may differ at which an alert begins or ends: metrics were scraped as facts
// came, some of them late, and a backtest has each at its time.
const apart = 5

// requireBacktestAgrees compares the firings of "evictrail alerts backtest" on a recording with those that Prometheus has on
// the metrics that evictrail had when the recording was played.
func requireBacktestAgrees(t *testing.T, i incident, fired map[string]int) {
	t.Helper()
	got := backtestIncident(t, i)
	requireSameFirings(t, fired, countEvaluations(t, got, presentOf(t)))
	require.NotEmpty(t, got.NotInHistory)
	for _, n := range got.NotInHistory {
		require.NotContains(t, strings.Join(slices.Collect(maps.Keys(fired)), "\n"), n.Alert)
	}
}

// TestBacktestOfOtherNumbers has Prometheus evaluate rules in which numbers are others, as a backtest tries them.
func TestBacktestOfOtherNumbers(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		recording, alert string
		present, other   string // in the file of rules, within the alert's
		variant          string
		fires            bool
	}{
		{"g-churn-cooldown", "EvictrailVMPingPong", ">= 2", ">= 1", "1 in place of 2", true},
		{"g-churn-cooldown", "EvictrailVMChurnHigh", ">= 4", ">= 8", "8 in place of 4", false},
		{"b-dual-retry-loop", "EvictrailVMPingPong", ">= 2", ">= 1", "1 in place of 2", true},
		{"b-dual-retry-loop", "EvictrailEvacuationOrphaned", "for: 10m", "for: 5m", "for 5m", true},
		{"b-dual-retry-loop", "EvictrailDualRetryLoop", "for: 5m", "for: 10m", "for 10m", false},
		{"c-node-drain", "EvictrailNonMigratableBlocksDrain", "for: 5m", "for: 2m30s", "for 2m30s", true},
	} {
		t.Run(tt.recording+" "+tt.alert, func(t *testing.T) {
			t.Parallel()
			i := playRecording(t, tt.recording)
			fired, _ := evaluateAlerts(t, i, replaceInRule(t, tt.alert, tt.present, tt.other))
			keepRule := func(of map[string]int) map[string]int {
				maps.DeleteFunc(of, func(key string, _ int) bool { return !strings.HasPrefix(key, tt.alert+" ") })
				return of
			}
			got := countEvaluations(t, backtestIncident(t, i, "--rule", tt.alert),
				func(r *backtest.RuleReport) *backtest.Variant {
					k := slices.IndexFunc(r.Variants,
						func(v *backtest.Variant) bool { return describeVariant(v) == tt.variant })
					require.GreaterOrEqual(t, k, 0, "%s has no variant %s", r.Alert, tt.variant)
					return r.Variants[k]
				})
			fired = keepRule(fired)
			require.Equal(t, tt.fires, len(fired) > 0)
			total := func(of map[string]int) (sum int) {
				for _, n := range of {
					sum += n
				}
				return sum
			}
			require.InDelta(t, total(fired), total(got), float64(apart*max(len(fired), 1)), "Prometheus: %v", fired)
			require.Equal(t, total(fired) > 0, total(got) > 0)
		})
	}
}

// describeVariant says what is changed, as people read it in the table.
func describeVariant(v *backtest.Variant) string {
	text := (&backtest.RuleReport{For: v.ForText}).Describe(v)
	if v.Threshold == nil {
		text = "for " + v.ForText
	}
	return text
}

// replaceInRule writes the generated rules with another number in one alert, and returns the file.
func replaceInRule(t *testing.T, alert, present, other string) string {
	t.Helper()
	text, err := os.ReadFile(generatedRules)
	require.NoError(t, err)
	parts := strings.Split(string(text), "\n  - ")
	replaced := false
	for i, part := range parts {
		if strings.HasPrefix(part, "alert: "+alert+"\n") && strings.Contains(part, present) {
			parts[i], replaced = strings.ReplaceAll(part, present, other), true
		}
	}
	require.True(t, replaced, "%s has no %s", alert, present)
	file := filepath.Join(t.TempDir(), "rules.yaml")
	require.NoError(t, os.WriteFile(file, []byte(strings.Join(parts, "\n  - ")), 0o600))
	return file
}

// backtestIncident asks the command about a recording that was played, at the steps at which its metrics were sampled.
func backtestIncident(t *testing.T, i incident, args ...string) *backtest.Report {
	t.Helper()
	out := runProgram(t, "evictrail", append([]string{
		"alerts", "backtest", "--database-url", i.url, "--step", "15s", "-o", "json",
		"--since", i.from.UTC().Format(time.RFC3339Nano), "--until", i.to.UTC().Format(time.RFC3339Nano),
	}, args...)...)
	var report backtest.Report
	require.NoError(t, json.Unmarshal([]byte(out), &report), out)
	return &report
}

// presentOf returns the variant of a rule as it is.
func presentOf(*testing.T) func(*backtest.RuleReport) *backtest.Variant {
	return func(r *backtest.RuleReport) *backtest.Variant { return r.Variants[0] }
}

// countEvaluations returns at how many evaluations each alert was firing in one variant of each rule: where the firings
// of that are known by what they are about, else in all.
func countEvaluations(t *testing.T, report *backtest.Report,
	pick func(*backtest.RuleReport) *backtest.Variant) map[string]int {
	t.Helper()
	out := map[string]int{}
	for _, r := range report.Rules {
		v := pick(r)
		if !v.Present {
			if v.Count > 0 {
				out[r.Alert+" "+r.Severity] += int(v.FiringFor / step.Seconds())
			}
			continue
		}
		for _, f := range r.Firings {
			what := f.Labels["node"]
			if vmi := f.Labels["vmi"]; vmi != "" {
				what = f.Labels["namespace"] + "/" + vmi
			}
			end := f.EndedAt
			if end.IsZero() {
				end = report.Until.Add(step)
			}
			out[strings.TrimSpace(r.Alert+" "+r.Severity+" "+what)] += int(end.Sub(f.FiredAt) / step)
		}
	}
	return out
}

// requireSameFirings wants the same alerts to fire for about the same time. One that fires for no longer than times may
// differ by may be in one alone.
func requireSameFirings(t *testing.T, prometheus, got map[string]int) {
	t.Helper()
	for key, n := range prometheus {
		require.InDelta(t, n, got[key], apart, "%s\nPrometheus: %v\nbacktest: %v", key, prometheus, got)
	}
	for key, n := range got {
		require.InDelta(t, prometheus[key], n, apart, "%s\nPrometheus: %v\nbacktest: %v", key, prometheus, got)
	}
}

// requireBacktest compares the firings of a backtest on a simulated history of some hours with those that Prometheus
// had as it went.
func requireBacktest(t *testing.T, s *store.Store, run sim.Run, fired map[string]int) {
	t.Helper()
	from := run.Start.Truncate(time.Millisecond).Add(step)
	h, err := s.Rewind(t.Context(), "c1", from, run.End)
	require.NoError(t, err)
	h.RecordedFrom = from // the steps are those of the samples
	report, err := backtest.Run(t.Context(), h, from,
		backtest.Options{Groups: alerts.Groups(alerts.DefaultOptions()), Step: step})
	require.NoError(t, err)
	got := countEvaluations(t, report, presentOf(t))
	for _, n := range report.NotInHistory {
		maps.DeleteFunc(fired, func(key string, _ int) bool { return strings.HasPrefix(key, n.Alert+" ") })
	}
	require.NotEmpty(t, got)
	requireSameFirings(t, fired, got)
}
