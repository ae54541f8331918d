package alerts_test

import (
	"maps"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/evictrail/evictrail/alerts"
	"github.com/evictrail/evictrail/metrics"
)

func TestRulesKeepTheHouseRules(t *testing.T) {
	t.Parallel()
	require.NoError(t, alerts.Lint(alerts.Groups(alerts.DefaultOptions())))
	require.NoError(t, alerts.Lint(alerts.Groups(alerts.Options{
		Job: "other", Namespace: "ops", RunbookURL: "https://wiki.example/evictrail/", DashboardURL: "https://grafana.example/", PublicURL: "https://evictrail.example/", EvacuationTarget: 95,
	})))
}

func TestLintRefuses(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name  string
		spoil func(warning, critical, record *alerts.Rule)
		says  string
	}{
		{"a severity that is none", func(w, _, _ *alerts.Rule) { w.Labels["severity"] = "page" }, `severity "page" is none`},
		{"a fifth page", func(w, _, _ *alerts.Rule) { w.Labels["severity"] = "critical" }, "critical alerts ["},
		{"a page less", func(_, c, _ *alerts.Rule) { c.Labels["severity"] = "warning" }, "critical alerts ["},
		{"no component", func(w, _, _ *alerts.Rule) { delete(w.Labels, "component") }, "it has no component"},
		{"no namespace", func(_, c, _ *alerts.Rule) { delete(c.Labels, "namespace") }, "its namespace must be"},
		{"a namespace over that of the VM", func(w, _, _ *alerts.Rule) { w.Labels["namespace"] = "ops" }, "its namespace must be"},
		{"a long summary", func(w, _, _ *alerts.Rule) { w.Annotations["summary"] = strings.Repeat("x", 90) }, "its summary has 90 characters"},
		{"no summary", func(w, _, _ *alerts.Rule) { delete(w.Annotations, "summary") }, "its summary has 0 characters"},
		{"a summary that is a sentence", func(w, _, _ *alerts.Rule) { w.Annotations["summary"] = "It is." }, "without a period"},
		{"a description without a number", func(w, _, _ *alerts.Rule) { w.Annotations["description"] = "It is." }, "has no number"},
		{"no page", func(w, _, _ *alerts.Rule) { w.Annotations["runbook_url"] = "https://wiki.example" }, "it has no page"},
		{"no dashboard", func(w, _, _ *alerts.Rule) { w.Annotations["dashboard_url"] = "https://grafana.example/d/other" }, "it points to no dashboard"},
		{"a path to a dashboard", func(w, _, _ *alerts.Rule) { w.Annotations["dashboard_url"] = "/d/evictrail-vm" }, "its dashboard has no address"},
		{"a path to a page", func(w, _, _ *alerts.Rule) { w.Annotations["page_url"] = "/vms/a/b" }, "its page has no address"},
		{"the page of another thing", func(w, _, _ *alerts.Rule) { w.Annotations["page_url"] = "https://evictrail.example/loops" }, "its page is not that of its VM"},
		{"a dashboard that gets no VM", func(w, _, _ *alerts.Rule) {
			w.Annotations["dashboard_url"] = strings.ReplaceAll(w.Annotations["dashboard_url"], "var-vmi=", "vmi=")
		}, "its dashboard gets no vmi"},
		{"a duration of zero", func(w, _, _ *alerts.Rule) { w.For = "0m" }, "left out where 0"},
		{"one that comes and goes", func(w, _, _ *alerts.Rule) { w.For, w.KeepFiringFor = "", "" }, "it needs a keep_firing_for"},
		{"another's name", func(w, _, _ *alerts.Rule) { w.Alert = "VMStuck" }, "its name must begin with Evictrail"},
		{"one that is there twice", func(w, c, _ *alerts.Rule) { *w = *c }, "is there twice"},
		{"a recording rule with labels", func(_, _, r *alerts.Rule) { r.Labels = map[string]string{"a": "b"} }, "a recording rule has"},
		{"a recording rule named otherwise", func(_, _, r *alerts.Rule) { r.Record = "evictrail_migrated" }, "a recording rule has"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			groups := alerts.Groups(alerts.ChartOptions())
			tt.spoil(findRule(t, groups, "EvictrailEvacuationStuck"), findRule(t, groups, alerts.EvictrailAbsent), &groups[0].Rules[0])
			require.ErrorContains(t, alerts.Lint(groups), tt.says)
		})
	}
}

// findRule returns the rule of that name, to be changed in place.
func findRule(t *testing.T, groups []alerts.Group, name string) *alerts.Rule {
	t.Helper()
	for i := range groups {
		for j := range groups[i].Rules {
			if r := &groups[i].Rules[j]; r.Alert == name || r.Record == name {
				return r
			}
		}
	}
	require.Fail(t, "no rule", name)
	return nil
}

// TestExpressionsNameWhatThereIs looks for names in the text of expressions; test/prometheus parses them and follows labels.
func TestExpressionsNameWhatThereIs(t *testing.T) {
	t.Parallel()
	known := []string{metrics.DeschedulerBlocksTotal}
	for _, m := range metrics.Catalogue() {
		known = append(known, m.Name)
		if m.Type == metrics.Histogram {
			known = append(known, m.Name+"_bucket", m.Name+"_count")
		}
	}
	recorded := 0
	for _, g := range alerts.Groups(alerts.DefaultOptions()) {
		for _, r := range g.Rules {
			for _, name := range regexp.MustCompile(`\b(evictrail|descheduler)[_:][a-z0-9_:]+`).FindAllString(r.Expr, -1) {
				require.Contains(t, known, name, "%s%s", r.Record, r.Alert)
			}
			if r.Record != "" {
				known = append(known, r.Record)
				recorded++
			}
		}
	}
	require.Equal(t, 22, recorded)
}

// TestTargetIsWhatExpressionsAllow states other targets: the rest is what may be missed.
func TestTargetIsWhatExpressionsAllow(t *testing.T) {
	t.Parallel()
	for target, want := range map[float64][3]string{99: {"0.01", "0.99", "1%"}, 99.9: {"0.001", "0.999", "0.1%"}, 99.99: {"0.0001", "0.9999", "0.01%"}, 95: {"0.05", "0.95", "5%"}} {
		o := alerts.DefaultOptions()
		o.EvacuationTarget = target
		groups := alerts.Groups(o)
		burn := findRule(t, groups, "EvictrailEvacuationObjectiveBurn")
		require.Contains(t, burn.Expr, "> (14.4 * "+want[0]+")\n")
		require.Contains(t, burn.Expr, "> (6 * "+want[0]+")\n")
		require.Contains(t, burn.Annotations["description"], "; "+want[2]+" may be.")
		require.True(t, strings.HasSuffix(findRule(t, groups, alerts.RecordEvacuationTarget).Expr, " + "+want[1]))
	}
}

// TestLateIsABucket holds that facts are counted up to the bound beyond which they are late.
func TestLateIsABucket(t *testing.T) {
	t.Parallel()
	i := slices.IndexFunc(metrics.Catalogue(), func(m metrics.Metric) bool { return m.Name == metrics.CommitLagSeconds })
	require.Contains(t, metrics.Catalogue()[i].Buckets, 5.)
	require.Contains(t, findRule(t, alerts.Groups(alerts.DefaultOptions()), alerts.RecordCommitLate5m).Expr, `le=~"5|5[.]0"`)
}

func TestRulesAreTheSameEachTime(t *testing.T) {
	t.Parallel()
	write := func() (out string) {
		groups := alerts.Groups(alerts.DefaultOptions())
		for _, text := range []func() (string, error){
			alerts.InhibitRules,
			func() (string, error) { return alerts.RulesFile(groups) },
			func() (string, error) {
				return alerts.PrometheusRule(groups, "a", "b", map[string]string{"c": "d", "e": "f", "g": "h"})
			},
		} {
			part, err := text()
			require.NoError(t, err)
			out += part
		}
		return out
	}
	first := write()
	for range 10 {
		require.Equal(t, first, write())
	}
}

func TestOptionsArriveInEveryAlert(t *testing.T) {
	t.Parallel()
	for _, g := range alerts.Groups(alerts.Options{
		Job: `a"b`, Namespace: "ops", RunbookURL: "https://wiki.example/", DashboardURL: "https://grafana.example/g/", PublicURL: "https://evictrail.example/",
	})[1:] {
		for _, r := range g.Rules {
			require.Equal(t, "https://wiki.example/"+r.Alert+".md", r.Annotations["runbook_url"])
			require.Regexp(t, `^https://grafana\.example/g/d/evictrail-`, r.Annotations["dashboard_url"])
			require.Regexp(t, `^https://evictrail\.example(/|\{\{)`, r.Annotations["page_url"])
			if namespace, ok := r.Labels["namespace"]; ok {
				require.Equal(t, "ops", namespace)
			}
			if r.Alert == alerts.EvictrailAbsent {
				require.Contains(t, r.Expr, `up{job="a\"b"}`)
			}
		}
	}
}

// TestLinksNeedAnAddress: a path is dead in a message, so without an address there is no link.
func TestLinksNeedAnAddress(t *testing.T) {
	t.Parallel()
	for _, g := range alerts.Groups(alerts.DefaultOptions())[1:] {
		for _, r := range g.Rules {
			require.NotContains(t, r.Annotations, "dashboard_url", r.Alert)
			require.NotContains(t, r.Annotations, "page_url", r.Alert)
		}
	}
}

func TestInhibitionsNameAlertsThatThereAre(t *testing.T) {
	t.Parallel()
	names := map[string]bool{}
	for _, g := range alerts.Groups(alerts.DefaultOptions()) {
		for _, r := range g.Rules {
			names[r.Alert] = true
		}
	}
	named := 0
	for _, in := range alerts.Inhibitions() {
		require.Contains(t, in.Equal, "cluster")
		for _, m := range slices.Concat(in.SourceMatchers, in.TargetMatchers) {
			_, pattern, is := strings.Cut(m, `alertname=`)
			if !is {
				continue
			}
			matcher := regexp.MustCompile("^(" + strings.Trim(pattern, `~"`) + ")$")
			require.True(t, slices.ContainsFunc(slices.Collect(maps.Keys(names)), matcher.MatchString), m)
			for _, name := range strings.Split(strings.Trim(pattern, `~"`), "|") {
				if !strings.HasSuffix(name, "+") {
					require.True(t, names[name], name)
					named++
				}
			}
		}
	}
	require.Equal(t, 17, named)
}
