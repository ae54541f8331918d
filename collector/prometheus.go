package collector

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"net/http"
	"slices"
	"strings"
	"time"

	prometheus "github.com/prometheus/client_golang/api"
	v1 "github.com/prometheus/client_golang/api/prometheus/v1"
	"github.com/prometheus/common/model"

	"github.com/evictrail/evictrail/remote"
	"github.com/evictrail/evictrail/trail"
)

// The bounds of asking a Prometheus.
const (
	queryTimeout = 10 * time.Second // of one query, from its connection to its last byte
	queryLimit   = 64 << 20         // bytes of an answer
	maxResources = 32               // metrics that one query has, by the label "resource"
	queryStep    = 15 * time.Second // between two samples; on whole multiples of it, so that who asks again gets the same ones
)

// LoadQuery is a metric of nodes and how a Prometheus is asked for it. Its series name their node in one of nodeLabels; a series with the label "resource" is a metric
// of its own for each.
type LoadQuery struct {
	Name      string
	Values    []string // PromQL; the first that returns anything counts
	Threshold string   // PromQL above which a node is to be relieved: for each node (and resource), or one for all; empty: the metric has none
}

// DefaultLoadQueries ask for what OpenShift has: the rules of its monitoring and of the operator of the descheduler, then for what node_exporter has, and for the
// descheduler's own view, which only OpenShift's descheduler reports.
//
// Source: openshift/cluster-monitoring-operator and kubernetes-monitoring/kubernetes-mixin (node-exporter rules), openshift/cluster-kube-descheduler-operator
// bindata/assets/kube-descheduler/prometheusrule.yaml, openshift/descheduler metrics/metrics.go, node_exporter collector/pressure_linux.go.
func DefaultLoadQueries() []LoadQuery {
	const descheduler = "descheduler_lownodeutilization_node_utilization_"
	return []LoadQuery{
		{Name: trail.MetricDescheduler, Values: []string{descheduler + "value"}, Threshold: descheduler + `threshold{threshold_type="high"}`},
		{Name: "cpu", Values: []string{
			"max by (instance) (instance:node_cpu_utilisation:rate1m)",
			"max by (instance) (instance:node_cpu_utilisation:rate5m)",
			`1 - avg by (instance) (rate(node_cpu_seconds_total{mode="idle"}[5m]))`,
		}},
		{Name: "memory", Values: []string{
			"max by (instance) (instance:node_memory_utilisation:ratio)",
			"1 - node_memory_MemAvailable_bytes / node_memory_MemTotal_bytes",
		}},
		{Name: "cpu_pressure", Values: []string{
			"descheduler:nodepressure:cpu:avg1m",
			"max by (instance) (rate(node_pressure_cpu_waiting_seconds_total[2m]))",
		}},
		{Name: "memory_pressure", Values: []string{
			"descheduler:nodepressure:memory:avg1m",
			"max by (instance) (rate(node_pressure_memory_waiting_seconds_total[2m]))",
		}},
	}
}

// nodeLabels name the node of a series, the first that is there. Prometheus renames the label of a metric that a target has, too; where the scrape does not set instance to
// the node's name, as OpenShift and kube-prometheus do, a query has to make one of these labels of it.
var nodeLabels = []model.LabelName{"exported_node", "node", "nodename", "instance"}

// PrometheusTarget says where a Prometheus is, and what it is asked.
type PrometheusTarget struct {
	remote.Server
	Queries   []LoadQuery // of nodes
	Transfers []LoadQuery // of VMs that move; one without values is not asked
}

// Prometheus asks a Prometheus how loaded nodes were. It is not safe for concurrent use.
type Prometheus struct {
	target PrometheusTarget
	client *remote.Client
	api    v1.API
	log    *slog.Logger
	warned map[string]string // the last warning to each query, which was logged
	answer map[string]int    // which of a metric's queries returned something the last time
}

// NewPrometheus makes a source of load. Its errors are of the files and the URL that the target names.
func NewPrometheus(target PrometheusTarget, log *slog.Logger) (*Prometheus, error) {
	client, err := remote.NewClient(target.Server, queryTimeout)
	if err != nil {
		return nil, fmt.Errorf("ask Prometheus: %w", err)
	}
	p := &Prometheus{target: target, client: client, log: log, warned: map[string]string{}, answer: map[string]int{}}
	return p, p.renewClient()
}

// renewClient makes a client where there is none yet, or the CA has changed.
func (p *Prometheus) renewClient() error {
	client, renewed, err := p.client.Current()
	if err != nil {
		return fmt.Errorf("ask Prometheus: %w", err)
	}
	if p.api != nil && !renewed {
		return nil
	}
	bounded := *client
	bounded.Transport = boundedAnswers{cmp.Or(client.Transport, http.DefaultTransport)}
	c, err := prometheus.NewClient(prometheus.Config{Address: p.target.URL, Client: &bounded})
	if err != nil {
		return fmt.Errorf("ask Prometheus: %w", err)
	}
	p.api = v1.NewAPI(c)
	return nil
}

// boundedAnswers bounds the size of answers.
type boundedAnswers struct{ http.RoundTripper }

// RoundTrip asks, and has the body of the answer end with an error where it is too large.
func (l boundedAnswers) RoundTrip(r *http.Request) (*http.Response, error) {
	answer, err := l.RoundTripper.RoundTrip(r)
	if answer != nil && answer.Body != nil {
		answer.Body = &boundedBody{answer.Body, queryLimit}
	}
	return answer, err
}

type boundedBody struct {
	io.ReadCloser
	left int
}

// Read reads what is left of the limit.
func (b *boundedBody) Read(to []byte) (int, error) {
	if b.left <= 0 {
		return 0, fmt.Errorf("%w: more than %d bytes", ErrTooLarge, queryLimit)
	}
	n, err := b.ReadCloser.Read(to[:min(len(to), b.left)])
	b.left -= n
	return n, err
}

// Origin names the source.
func (p *Prometheus) Origin() trail.LoadOrigin { return trail.OriginPrometheus }

// Loads asks for each metric, of all nodes at once, and keeps those of the nodes named; all where nodes is nil.
func (p *Prometheus) Loads(ctx context.Context, nodes map[string]bool, from, to time.Time) (trail.Loads, error) {
	out := trail.Loads{Origin: trail.OriginPrometheus, Points: map[trail.LoadKey][]trail.LoadPoint{}}
	failed := p.renewClient()
	for _, q := range p.target.Queries {
		lack := trail.LackUnanswered
		var points map[trail.LoadKey][]trail.LoadPoint
		if failed == nil || !isAway(failed) {
			var err error
			points, lack, err = p.queryMetric(ctx, q, nodes, v1.Range{Start: from.Truncate(queryStep), End: to, Step: queryStep})
			failed = errors.Join(failed, err)
		}
		var names []string
		for key, of := range points {
			out.Points[key] = of
			if !slices.Contains(names, key.Metric) {
				names = append(names, key.Metric)
			}
		}
		if len(names) == 0 {
			names = []string{q.Name}
		}
		slices.Sort(names)
		for _, name := range names {
			out.Metrics = append(out.Metrics, trail.LoadMetric{Name: name, Lack: lack})
		}
	}
	return out, failed
}

// isAway reports whether there is no sense in asking on: the next query would fail for the same cause.
func isAway(err error) bool {
	var refused *v1.Error
	return !errors.As(err, &refused) || refused.Type == v1.ErrTimeout || refused.Type == v1.ErrClient
}

// queryMetric asks for one metric. What is missing is said where nothing came: with an error that may go away it is unanswered, a query that Prometheus does not take is refused.
func (p *Prometheus) queryMetric(ctx context.Context, q LoadQuery, nodes map[string]bool, r v1.Range) (map[trail.LoadKey][]trail.LoadPoint, trail.LoadLack, error) {
	query, values, err := p.queryFirst(ctx, q, r)
	if err != nil || len(values) == 0 {
		return nil, lackOf(err), err
	}
	times, thresholds := model.Matrix(nil), model.Matrix(nil)
	if q.Threshold != "" {
		if times, err = p.queryRange(ctx, "timestamp("+query+")", r); err == nil {
			thresholds, err = p.queryRange(ctx, q.Threshold, r)
		}
		if err != nil {
			return nil, lackOf(err), err
		}
	}
	sampled, limits := byNode(q.Name, times), byNode(q.Name, thresholds)
	out := map[trail.LoadKey][]trail.LoadPoint{}
	for _, s := range values {
		key := keyOf(q.Name, s.Metric)
		if nodes != nil && !nodes[key.Node] {
			continue
		}
		limit := limits[key]
		if limit == nil {
			limit = limits[trail.LoadKey{Metric: key.Metric}]
		}
		if limit == nil {
			limit = limits[trail.LoadKey{Metric: q.Name}]
		}
		out[key] = append(out[key], pointsOf(s.Values, sampled[key], limit)...)
	}
	p.boundResources(q.Name, out)
	for key, points := range out {
		slices.SortStableFunc(points, func(a, b trail.LoadPoint) int { return a.At.Compare(b.At) })
		out[key] = slices.CompactFunc(points, func(a, b trail.LoadPoint) bool { return a.At.Equal(b.At) })
	}
	return out, "", nil
}

// boundResources leaves out what is of more resources than are kept: anyone who has metrics of their own collected may name more.
func (p *Prometheus) boundResources(metric string, points map[trail.LoadKey][]trail.LoadPoint) {
	names := map[string]bool{}
	for key := range points {
		names[key.Metric] = true
	}
	if len(names) <= maxResources {
		return
	}
	kept := slices.Sorted(maps.Keys(names))[:maxResources]
	maps.DeleteFunc(points, func(key trail.LoadKey, _ []trail.LoadPoint) bool { return !slices.Contains(kept, key.Metric) })
	p.logWarning(metric, fmt.Sprintf("%d resources: the first %d are kept", len(names), maxResources))
}

// logWarning logs a warning about a query, or about a metric, when it is another than before.
func (p *Prometheus) logWarning(query, text string) {
	if text != "" && p.warned[query] != text {
		p.log.Warn("answer of Prometheus with a warning: what it leaves out is not known", "query", query, "warning", text)
		p.warned[query] = text
	}
}

// lackOf says why a metric is missing.
func lackOf(err error) trail.LoadLack {
	var refused *v1.Error
	switch {
	case err == nil:
		return trail.LackNoSeries
	case errors.As(err, &refused) && (refused.Type == v1.ErrBadData || refused.Type == v1.ErrExec):
		return trail.LackRefused
	}
	return trail.LackUnanswered
}

// queryFirst asks the queries of a metric until one returns something, beginning with the one that did the last time. It returns that query.
func (p *Prometheus) queryFirst(ctx context.Context, q LoadQuery, r v1.Range) (string, model.Matrix, error) {
	for i := range q.Values {
		k := (p.answer[q.Name] + i) % len(q.Values)
		found, err := p.queryRange(ctx, q.Values[k], r)
		if err != nil {
			return "", nil, err
		}
		if len(found) > 0 {
			p.answer[q.Name] = k
			return q.Values[k], found, nil
		}
	}
	p.answer[q.Name] = 0
	return "", nil, nil
}

// queryRange asks one query over a time.
func (p *Prometheus) queryRange(ctx context.Context, query string, r v1.Range) (model.Matrix, error) {
	value, warnings, _, err := p.api.QueryRange(ctx, query, r, v1.WithTimeout(queryTimeout), v1.WithLimit(maxSeries))
	if err != nil {
		return nil, fmt.Errorf("ask Prometheus %q: %w", query, clipError(err))
	}
	p.logWarning(query, trail.ClipText(strings.Join(warnings, "; "), maxEcho))
	matrix, is := value.(model.Matrix)
	if !is {
		return nil, fmt.Errorf("ask Prometheus %q: answered with a %s: expected a matrix", query, value.Type())
	}
	return matrix, nil
}

// keyOf names a series: its node, and its metric with its resource where it is of one.
func keyOf(metric string, labels model.Metric) trail.LoadKey {
	key := trail.LoadKey{Metric: metric}
	if resource := labels["resource"]; resource != "" {
		key.Metric += ":" + trail.ClipText(string(resource), maxName)
	}
	for _, label := range nodeLabels {
		if node := labels[label]; node != "" {
			key.Node = trail.ClipText(string(node), maxName)
			break
		}
	}
	return key
}

// byNode returns the values of series by time. Of several series of one node those that come later count.
func byNode(metric string, all model.Matrix) map[trail.LoadKey]map[model.Time]float64 {
	out := map[trail.LoadKey]map[model.Time]float64{}
	for _, s := range all {
		key := keyOf(metric, s.Metric)
		if out[key] == nil {
			out[key] = make(map[model.Time]float64, len(s.Values))
		}
		for _, v := range s.Values {
			out[key][v.Timestamp] = float64(v.Value)
		}
	}
	return out
}

// pointsOf joins values with when they were sampled and with their thresholds, where those are known.
func pointsOf(values []model.SamplePair, sampled, limits map[model.Time]float64) []trail.LoadPoint {
	out := make([]trail.LoadPoint, 0, len(values))
	for _, v := range values {
		p := trail.LoadPoint{At: v.Timestamp.Time().UTC(), Value: float64(v.Value)}
		if at, known := sampled[v.Timestamp]; known && at > 0 && at < 1e11 {
			p.At = time.UnixMilli(int64(at * 1000)).UTC()
		}
		if limit, known := limits[v.Timestamp]; known {
			p.Threshold = &limit
		}
		out = append(out, p)
	}
	return out
}
