package played_test

import (
	"context"
	"log/slog"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/promql"
	"github.com/prometheus/prometheus/promql/parser"
	"github.com/prometheus/prometheus/rules"
	"github.com/prometheus/prometheus/storage"
	"github.com/prometheus/prometheus/tsdb"
	"github.com/stretchr/testify/require"
)

var quiet = slog.New(slog.DiscardHandler)

// openData opens the data directory of a Prometheus.
func openData(t *testing.T, dir string) *tsdb.DB {
	t.Helper()
	options := tsdb.DefaultOptions()
	options.RetentionDuration = 0
	db, err := tsdb.Open(dir, quiet, nil, options, nil)
	require.NoError(t, err)
	return db
}

// ruling is the generated rules, in the hands of Prometheus.
type ruling struct {
	groups   []*rules.Group // what is recorded comes first
	recorded *tsdb.DB       // what they write
}

// generatedRules is the file of the rules that evictrail generates.
var generatedRules = filepath.Join(root, "deploy/alerts/rules.yaml")

// loadRules loads a file of rules to be evaluated over metrics.
func loadRules(t *testing.T, scraped storage.Storage, file string) *ruling {
	t.Helper()
	recorded := openData(t, t.TempDir())
	t.Cleanup(func() { _ = recorded.Close() })
	both := storage.NewFanout(quiet, recorded, scraped)
	engine := promql.NewEngine(promql.EngineOpts{MaxSamples: 10_000_000, Timeout: time.Minute, LookbackDelta: 5 * time.Minute})
	manager := rules.NewManager(&rules.ManagerOptions{
		QueryFunc: rules.EngineQueryFunc(engine, both), Appendable: recorded, Queryable: both, Context: t.Context(), Logger: quiet,
		NotifyFunc: func(context.Context, string, ...*rules.Alert) {}, Parser: parser.NewParser(parser.Options{}),
	})
	loaded, errs := manager.LoadGroups(step, labels.EmptyLabels(), "", nil, false, file)
	require.Empty(t, errs)
	groups := slices.SortedFunc(maps.Values(loaded), func(a, b *rules.Group) int {
		return strings.Compare(strings.Replace(a.Name(), "recording", "", 1), strings.Replace(b.Name(), "recording", "", 1))
	})
	for _, g := range groups {
		for _, r := range g.AlertingRules() {
			r.SetRestored(true) // there was nothing before: ALERTS are written from the first evaluation on
		}
	}
	return &ruling{groups, recorded}
}

// evaluateAt evaluates all rules at a time, and returns the alerts that are firing or pending then.
func (r *ruling) evaluateAt(t *testing.T, at time.Time) []*rules.Alert {
	t.Helper()
	var active []*rules.Alert
	for _, g := range r.groups {
		g.Eval(t.Context(), at)
		for _, rule := range g.Rules() {
			require.NoError(t, rule.LastError(), "%s at %s", rule.Name(), at)
		}
		for _, rule := range g.AlertingRules() {
			rule.ForEachActiveAlert(func(a *rules.Alert) { active = append(active, a) })
		}
	}
	return active
}

// describeAlert names an alert, its severity and what it is about.
func describeAlert(a *rules.Alert) string {
	what := a.Labels.Get("node")
	if vmi := a.Labels.Get("vmi"); vmi != "" {
		what = a.Labels.Get("namespace") + "/" + vmi
	}
	return strings.TrimSpace(a.Labels.Get("alertname") + " " + a.Labels.Get("severity") + " " + what)
}
