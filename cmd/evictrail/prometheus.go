package main

import (
	"log/slog"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/evictrail/evictrail/collector"
)

// prometheusFlags say which Prometheus is asked how loaded nodes were.
type prometheusFlags struct {
	at         remoteFlags
	queries    []string
	thresholds []string
}

func (f *prometheusFlags) addFlags(cmd *cobra.Command) {
	f.at.addFlags(cmd, "prometheus", "ask the Prometheus at this `URL` how loaded the nodes of each migration were: whether it was needed, and what came of it")
	flags := cmd.Flags()
	flags.StringArrayVar(&f.queries, "prometheus-query", nil, "`metric=PromQL` that returns a ratio for each node, in place of a default ("+
		strings.Join(metricNames(collector.DefaultLoadQueries()), ", ")+") or beside them, or a number for each VM that moves ("+
		strings.Join(metricNames(collector.DefaultTransferQueries()), ", ")+"); metric= leaves one out")
	flags.StringArrayVar(&f.thresholds, "prometheus-threshold", nil, "`metric=PromQL` above which a node is to be relieved: for each node, or one number for all")
}

func metricNames(queries []collector.LoadQuery) []string {
	var out []string
	for _, q := range queries {
		out = append(out, q.Name)
	}
	return out
}

func (f *prometheusFlags) checkFlags(cmd *cobra.Command) error {
	if err := f.at.checkFlags(cmd, "query", "threshold"); err != nil || !f.at.isSet() {
		return err
	}
	nodes, _ := f.mergeQueries()
	for flag, all := range map[string][]string{"query": f.queries, "threshold": f.thresholds} {
		for _, said := range all {
			name, _, is := strings.Cut(said, "=")
			switch {
			case !is || name == "" || strings.ContainsAny(name, " (){}"):
				return usageErrorf("prometheus-%s %q: expected METRIC=PROMQL", flag, said)
			case flag == "threshold" && !slices.Contains(metricNames(nodes), name):
				return usageErrorf("prometheus-threshold %s: there is no such metric: expected one of %s", name, strings.Join(metricNames(nodes), ", "))
			}
		}
	}
	return nil
}

// mergeQueries returns the queries of nodes and of VMs that move: the defaults, with what was said in their place or beside those of nodes.
func (f *prometheusFlags) mergeQueries() (nodes, moves []collector.LoadQuery) {
	nodes, moves = collector.DefaultLoadQueries(), collector.DefaultTransferQueries()
	ofMoves := metricNames(moves)
	for _, said := range f.queries {
		name, query, _ := strings.Cut(said, "=")
		if slices.Contains(ofMoves, name) {
			moves = replaceQuery(moves, name, query)
		} else {
			nodes = replaceQuery(nodes, name, query)
		}
	}
	for _, said := range f.thresholds {
		name, threshold, _ := strings.Cut(said, "=")
		for i := range nodes {
			if nodes[i].Name == name {
				nodes[i].Threshold = threshold
			}
		}
	}
	return nodes, moves
}

// replaceQuery has a metric asked for by another query, which adds one that is not there; by an empty one it is left out.
func replaceQuery(queries []collector.LoadQuery, name, query string) []collector.LoadQuery {
	i := slices.IndexFunc(queries, func(q collector.LoadQuery) bool { return q.Name == name })
	switch {
	case query == "" && i >= 0:
		return slices.Delete(queries, i, i+1)
	case query == "":
	case i >= 0:
		queries[i].Values = []string{query}
	default:
		return append(queries, collector.LoadQuery{Name: name, Values: []string{query}})
	}
	return queries
}

// newTarget returns the Prometheus to ask, nil where there is none.
func (f *prometheusFlags) newTarget() *collector.PrometheusTarget {
	if !f.at.isSet() {
		return nil
	}
	queries, transfers := f.mergeQueries()
	return &collector.PrometheusTarget{Server: f.at.server, Queries: queries, Transfers: transfers}
}

// newLoadSources returns the Prometheus as a source of load; none where there is none.
func (f *prometheusFlags) newLoadSources(log *slog.Logger) ([]collector.LoadSource, error) {
	target := f.newTarget()
	if target == nil {
		return nil, nil
	}
	source, err := collector.NewPrometheus(*target, log)
	if err != nil {
		return nil, err
	}
	return []collector.LoadSource{source}, nil
}
