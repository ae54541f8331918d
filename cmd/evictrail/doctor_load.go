package main

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"time"

	"github.com/evictrail/evictrail/collector"
	"github.com/evictrail/evictrail/trail"
)

// nodeLoad checks what the Prometheus knows of the load of nodes.
func (d *doctor) nodeLoad(ctx context.Context) {
	const subject = "node load"
	target := d.f.prometheus.newTarget()
	if target == nil {
		d.addCheck(healthWarn, subject, "no Prometheus is asked", "give --prometheus-url: without it, evictrail cannot say whether a move was needed and what came of it, except where OpenShift's descheduler reports it (--descheduler-metrics-url)")
		return
	}
	source, err := collector.NewPrometheus(*target, slog.New(slog.DiscardHandler))
	if err != nil {
		d.addCheck(healthFail, subject, err.Error(), "name files that can be read")
		return
	}
	loads, err := askWithTimeout(ctx, func(ctx context.Context) (trail.Loads, error) {
		loads, err := source.Loads(ctx, nil, nowUTC().Add(-5*time.Minute), nowUTC())
		if err != nil && len(loads.Points) > 0 {
			d.addCheck(healthWarn, subject, err.Error(), "check the queries (--prometheus-query, --prometheus-threshold): the others are answered")
			return loads, nil
		}
		return loads, err
	})
	if err != nil {
		d.addCheck(healthFail, subject, err.Error(), "check the URL, the network, and --prometheus-token-file, -ca-file or -insecure; all else works without")
		return
	}
	compared := false
	for _, metric := range loads.Metrics {
		nodes, limited := nodesOf(loads, metric.Name)
		compared = compared || limited
		switch {
		case metric.Lack != "":
			d.addCheck(healthWarn, subject+" "+metric.Name, "not known: "+metric.Lack.Label().Short, "say how it is asked for here with --prometheus-query "+metric.Name+"=PROMQL, or leave it out with "+metric.Name+"=")
		case limited:
			d.addOKf(subject+" "+metric.Name, "known of %s, with a threshold", nodes)
		default:
			d.addOKf(subject+" "+metric.Name, "known of %s", nodes)
		}
	}
	if !compared {
		d.addCheck(healthWarn, subject, "no metric has a threshold", "say above what a node is to be relieved with --prometheus-threshold METRIC=PROMQL, such as cpu=0.8: whether a move was needed is not known without")
	}
}

// nodesOf names some of the nodes of which a metric is known, and reports whether it has a threshold.
func nodesOf(loads trail.Loads, metric string) (names string, limited bool) {
	var nodes []string
	for key, points := range loads.Points {
		if key.Metric == metric && len(points) > 0 {
			nodes = append(nodes, key.Node)
			limited = limited || points[len(points)-1].Threshold != nil
		}
	}
	slices.Sort(nodes)
	names = fmt.Sprintf("%d nodes", len(nodes))
	if len(nodes) == 1 {
		names = "1 node"
	}
	const shown = 3
	if len(nodes) <= shown {
		return names + " (" + strings.Join(nodes, ", ") + ")", limited
	}
	return names + " (" + strings.Join(nodes[:shown], ", ") + ", ...)", limited
}
