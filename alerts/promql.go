package alerts

import (
	"strconv"
	"strings"

	"github.com/evictrail/evictrail/metrics"
)

// The labels that a scrape adds. Series of several clusters in one Prometheus are told apart by cluster, if they carry it:
// every expression keeps it, and where it is missing nothing changes.
const (
	labelCluster  = "cluster"
	labelExported = "exported_namespace" // holds what the target said of namespace, without honor_labels
	labelInstance = "instance"
	labelPod      = "pod"
	labelLe       = "le"
)

// The labels by which series are joined and alerts told apart, beside the cluster.
var (
	perCluster   []string
	perNode      = []string{metrics.LabelNode}
	perVM        = []string{metrics.LabelNamespace, metrics.LabelVMI}
	perVMI       = []string{metrics.LabelNamespace, metrics.LabelVMI, metrics.LabelNode} // a VM on one node
	perRequester = []string{metrics.LabelRequester}
	perReplica   = []string{labelInstance, labelPod} // of evictrail; pod is empty outside Kubernetes
)

// What texts say of the series that fired.
const (
	theVM      = "{{ $labels." + metrics.LabelNamespace + " }}/{{ $labels." + metrics.LabelVMI + " }}"
	theNode    = "{{ $labels." + metrics.LabelNode + " }}"
	theReplica = "{{ or $labels." + labelPod + " $labels." + labelInstance + " }}"
	theValue   = "{{ $value }}"
	theNumber  = "{{ $value | humanize }}"
	theTime    = "{{ $value | humanizeDuration }}"
	theShare   = "{{ $value | humanizePercentage }}"
)

// the returns one label of the series that fired.
func the(label string) string { return "{{ $labels." + label + " }}" }

// series selects the series of a metric, or of a recording rule, that all matchers match.
func series(name string, matchers ...string) string {
	if len(matchers) == 0 {
		return name
	}
	return name + "{" + strings.Join(matchers, ", ") + "}"
}

// is matches a label that has one of the values. The values are plain words.
func is[T ~string](label string, values ...T) string {
	words := make([]string, len(values))
	for i, v := range values {
		words[i] = string(v)
	}
	if len(words) == 1 {
		return label + "=" + strconv.Quote(words[0])
	}
	return label + "=~" + strconv.Quote(strings.Join(words, "|"))
}

// not matches a label that has another value.
func not[T ~string](label string, value T) string { return label + "!=" + strconv.Quote(string(value)) }

// maxBy returns the highest value for each set of the labels. Replicas tell the same of the cluster, so this takes one of them.
func maxBy(of []string, expr string) string { return "max" + by(of) + " (" + expr + ")" }

func minBy(of []string, expr string) string { return "min" + by(of) + " (" + expr + ")" }

// sumBy adds. What is counted when it is stored is counted by one replica each time: the sum over replicas is what happened.
func sumBy(of []string, expr string) string { return "sum" + by(of) + " (" + expr + ")" }

func countBy(of []string, expr string) string { return "count" + by(of) + " (" + expr + ")" }

// by names the labels that an aggregation keeps.
func by(of []string) string { return " by (" + list(of) + ")" }

// on names the labels by which two sides are matched.
func on(of []string) string { return "on (" + list(of) + ")" }

func list(of []string) string { return strings.Join(append([]string{labelCluster}, of...), ", ") }

func rate(selector, window string) string { return "rate(" + selector + "[" + window + "])" }

func increase(selector, window string) string { return "increase(" + selector + "[" + window + "])" }

// age is how many seconds ago a moment was.
func age(moment string) string { return "time() - " + moment }

// as adds the label with the value to every series, so that it can be matched with those that have it.
func as[T ~string](label string, value T, expr string) string {
	return "label_replace(" + expr + ", " + strconv.Quote(label) + ", " + strconv.Quote(string(value)) + `, "", "")`
}

// lines is an expression of several lines.
func lines(of ...string) string { return strings.Join(of, "\n") }

// in puts an expression of several lines into parentheses.
func in(of ...string) string {
	return "(\n  " + strings.ReplaceAll(lines(of...), "\n", "\n  ") + "\n)"
}
