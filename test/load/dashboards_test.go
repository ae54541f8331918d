package load_test

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/evictrail/evictrail/dashboards"
	"github.com/evictrail/evictrail/dashboards/dashboardstest"
)

// buildPanelQuestions returns the queries of SQL of the dashboards, each as Grafana sends it when somebody looks at a day, and at 90; of one namespace, and of all where
// several can be chosen, as nobody has chosen at first.
func buildPanelQuestions(tb testing.TB, url string, of sample) []question {
	tb.Helper()
	conn, err := pgx.Connect(tb.Context(), url)
	require.NoError(tb, err)
	tb.Cleanup(func() { _ = conn.Close(context.Background()) })
	_, err = conn.Exec(tb.Context(), "SET jit = off") // as for evictrail_reader
	require.NoError(tb, err)
	queries, err := dashboards.Queries()
	require.NoError(tb, err)
	var nodes []string
	for _, n := range of.nodes {
		nodes = append(nodes, n.Name)
	}
	var all []question
	for _, q := range queries {
		if q.Language != dashboards.SQL {
			continue
		}
		for name, span := range map[string]time.Duration{"of a day": 24 * time.Hour, "of 90 days": 90 * 24 * time.Hour} {
			ask := func(namespaces func(own string) []string) func(context.Context) error {
				return func(ctx context.Context) error {
					namespace, vmi := pickOne(of, of.vms).VM()
					vars := dashboardstest.Values{
						"cluster": {large}, "namespace": namespaces(namespace), "vmi": {vmi}, "node": nodes, "incident": of.loops[:min(len(of.loops), 1)],
						"cause": {"descheduler", "drain", "user", "KubeVirt update", "other eviction", "controller", "unknown"},
					}
					if q.Dashboard == dashboards.UIDLoop {
						vars["node"] = []string{pickOne(of, of.nodes).Name}
					}
					text, err := dashboardstest.SQL(q.Text, of.seen.Add(-span), of.seen, span/100, vars)
					if err != nil {
						return err
					}
					rows, err := conn.Query(ctx, text, pgx.QueryExecModeSimpleProtocol)
					if err != nil {
						return err
					}
					for rows.Next() {
					}
					return rows.Err()
				}
			}
			name = "dashboard " + strings.TrimPrefix(q.Name(), "evictrail-") + " " + name
			all = append(all, question{name, ask(func(own string) []string { return []string{own} })})
			if strings.Contains(q.Text, "ARRAY[${namespace:") {
				all = append(all, question{name + ", all namespaces", ask(func(string) []string { return of.namespaces })})
			}
		}
	}
	slices.SortStableFunc(all, func(a, b question) int { return strings.Compare(a.name, b.name) })
	return all
}
