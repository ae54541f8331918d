package backtest

import (
	"testing"
	"time"

	"github.com/prometheus/common/model"
	"github.com/stretchr/testify/require"

	"github.com/evictrail/evictrail/alerts"
)

func findRule(t *testing.T, name, severity string) rule {
	t.Helper()
	_, alerting, err := parseRules(alerts.Groups(alerts.DefaultOptions()))
	require.NoError(t, err)
	for _, r := range alerting {
		if r.Alert == name && r.Labels[labelSeverity] == severity {
			return r
		}
	}
	require.Fail(t, "no rule", name)
	return rule{}
}

func TestThresholds(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		alert, severity string
		want            []float64
	}{
		{"EvictrailEvacuationStuck", "warning", []float64{3, 2100}},
		{"EvictrailDualRetryLoop", "warning", nil},
		{"EvictrailDualRetryLoop", "critical", []float64{3}},
		{"EvictrailNonMigratableBlocksDrain", "warning", nil}, // it is, or it is not
		{"EvictrailEvacuationObjectiveBurn", "warning", []float64{0.144, 2.5, 0.06}},
		{"EvictrailUselessMoves", "warning", []float64{0.5, 10}},
	} {
		require.ElementsMatch(t, tt.want, findThresholds(findRule(t, tt.alert, tt.severity).expr), tt.alert)
	}
}

func TestReplaceThreshold(t *testing.T) {
	t.Parallel()
	burn := findRule(t, "EvictrailEvacuationObjectiveBurn", "warning")
	text, err := replaceThreshold(burn.Expr, 0.144, 0.2)
	require.NoError(t, err)
	expr, err := parseExpr(text)
	require.NoError(t, err)
	require.ElementsMatch(t, []float64{0.2, 2.5, 0.06}, findThresholds(expr),
		"wherever it is compared to, and nothing else")
}

func TestVariants(t *testing.T) {
	t.Parallel()
	describe := func(o Options, alert string) (out []string) {
		of := findRule(t, alert, "warning")
		variants, err := o.newVariants(of)
		require.NoError(t, err)
		for _, v := range variants {
			out = append(out, (&RuleReport{For: model.Duration(of.hold).String()}).Describe(v))
		}
		return out
	}
	require.Equal(t, []string{"present", "2 in place of 3", "6 in place of 3", "1050 in place of 2100",
		"4200 in place of 2100"},
		describe(Options{}, "EvictrailEvacuationStuck"))
	require.Equal(t, []string{"present", "for 2m30s", "for 10m"}, describe(Options{}, "EvictrailDualRetryLoop"))
	require.Equal(t, []string{"present", "for 10m", "1 in place of 2", "1 in place of 2, for 10m"},
		describe(Options{Thresholds: []Change{{0, 1}}, For: []time.Duration{0, 10 * time.Minute}},
			"EvictrailVMPingPong"))

	refused := func(alert string, c Change) string {
		o := Options{Thresholds: []Change{c}}
		_, err := o.newVariants(findRule(t, alert, "warning"))
		require.Error(t, err)
		return err.Error()
	}
	require.Equal(t, "threshold: EvictrailEvacuationStuck has several thresholds (3, 2100): say which, as in 3=5",
		refused("EvictrailEvacuationStuck", Change{0, 5}))
	require.Equal(t, "threshold: EvictrailEvacuationStuck compares nothing to 4; its thresholds: 3, 2100",
		refused("EvictrailEvacuationStuck", Change{4, 5}))
	require.Contains(t, refused("EvictrailDualRetryLoop", Change{0, 5}), "has no threshold")
}

// TestNotInHistory holds that alerts about evictrail itself are never counted as silent, and that those about VMs are
// all tried.
func TestNotInHistory(t *testing.T) {
	t.Parallel()
	recording, alerting, err := parseRules(alerts.Groups(alerts.DefaultOptions()))
	require.NoError(t, err)
	p, missing := newProgram(recording, alerting, nil)
	require.Len(t, alerting, len(p.alerting)+len(missing))
	about := map[string]bool{}
	for _, r := range alerting {
		about[r.Alert] = r.Labels[labelComponent] == "collector" || r.Labels[labelComponent] == "store" ||
			r.Labels[labelComponent] == componentFleet
	}
	for _, n := range missing {
		require.True(t, about[n.Alert], n.Alert)
		require.NotEmpty(t, n.Reads, n.Alert)
		require.NotEmpty(t, n.Reason, n.Alert)
	}
	for _, r := range p.alerting {
		require.False(t, about[r.Alert], r.Alert)
	}
	require.Equal(t, 28*24*time.Hour+90*time.Minute, p.reach,
		"what is usual goes back four weeks, and what was recorded then an hour and a half")

	o := Options{Groups: alerts.Groups(alerts.DefaultOptions()), Rules: []string{"EvictrailVMPingPong"}}
	reach, err := o.check()
	require.NoError(t, err)
	require.Zero(t, reach, "a gauge needs nothing from before")
	o.Rules = []string{"EvictrailNope"}
	_, err = o.check()
	require.ErrorContains(t, err, `no alert is named "EvictrailNope"; there are: EvictrailDualRetryLoop, `)
}
