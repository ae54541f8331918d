package alerts

import (
	"strconv"
	"strings"

	"github.com/evictrail/evictrail/metrics"
	"github.com/evictrail/evictrail/trail"
)

// The labels that a scrape adds. Series of several clusters in one Prometheus are distinguished by cluster, if they carry it:
// every expression keeps it, and where it is missing nothing changes.
const (
	labelCluster  = "cluster"
	labelExported = "exported_namespace" // holds what the target said of namespace, without honor_labels
	labelInstance = "instance"
	labelPod      = "pod"
	labelLe       = "le"
)

// The labels by which series are joined and alerts distinguished, in addition to the cluster.
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
	theCount   = "{{ $value | printf \"%.0f\" }}"
	theTime    = "{{ $value | humanizeDuration }}"
	theShare   = "{{ $value | humanizePercentage }}"
)

// insertLabel returns one label of the series that fired.
func insertLabel(label string) string { return "{{ $labels." + label + " }}" }

// explainLabel is a template that writes, after a space, what the value of a label means, which is one of a few.
func explainLabel[T interface{ Label() trail.Label }](label string, values ...T) string {
	out, begin := "{{ with $labels."+label+" }}", "{{ if"
	for _, v := range values {
		out += begin + " eq . \"" + v.Label().Value + "\" }} " + v.Label().Text
		begin = "{{ else if"
	}
	return out + "{{ end }}{{ end }}"
}

// selectSeries selects the series of a metric, or of a recording rule, that all matchers match.
func selectSeries(name string, matchers ...string) string {
	if len(matchers) == 0 {
		return name
	}
	return name + "{" + strings.Join(matchers, ", ") + "}"
}

// matchLabel matches a label that has one of the values. The values are plain words.
func matchLabel[T ~string](label string, values ...T) string {
	words := make([]string, len(values))
	for i, v := range values {
		words[i] = string(v)
	}
	if len(words) == 1 {
		return label + "=" + strconv.Quote(words[0])
	}
	return label + "=~" + strconv.Quote(strings.Join(words, "|"))
}

// excludeLabel matches a label that has another value.
func excludeLabel[T ~string](label string, value T) string {
	return label + "!=" + strconv.Quote(string(value))
}

// maxBy returns the highest value for each set of the labels. Replicas report the same about the cluster, so this takes one of them.
func maxBy(of []string, expr string) string { return "max" + groupBy(of) + " (" + expr + ")" }

func minBy(of []string, expr string) string { return "min" + groupBy(of) + " (" + expr + ")" }

// sumBy adds. What is counted when it is stored is counted by one replica each time: the sum over replicas is what happened.
func sumBy(of []string, expr string) string { return "sum" + groupBy(of) + " (" + expr + ")" }

func countBy(of []string, expr string) string { return "count" + groupBy(of) + " (" + expr + ")" }

// groupBy names the labels that an aggregation keeps.
func groupBy(of []string) string { return " by (" + joinLabels(of) + ")" }

// matchOn names the labels by which two sides are matched.
func matchOn(of []string) string { return "on (" + joinLabels(of) + ")" }

func joinLabels(of []string) string { return strings.Join(append([]string{labelCluster}, of...), ", ") }

func rateOf(selector, window string) string { return "rate(" + selector + "[" + window + "])" }

func increaseOf(selector, window string) string { return "increase(" + selector + "[" + window + "])" }

// secondsSince is how many seconds ago a moment was.
func secondsSince(moment string) string { return "time() - " + moment }

// addLabel adds the label with the value to every series, so that it can be matched with those that have it.
func addLabel[T ~string](label string, value T, expr string) string {
	return "label_replace(" + expr + ", " + strconv.Quote(label) + ", " + strconv.Quote(string(value)) + `, "", "")`
}

// joinLines is an expression of several lines.
func joinLines(of ...string) string { return strings.Join(of, "\n") }

// wrapInParens puts an expression of several lines into parentheses.
func wrapInParens(of ...string) string {
	return "(\n  " + strings.ReplaceAll(joinLines(of...), "\n", "\n  ") + "\n)"
}
