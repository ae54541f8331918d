package backtest

import (
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/prometheus/common/model"

	"github.com/evictrail/evictrail/metrics"
)

// formatNumber writes a number without an exponent.
func formatNumber(n float64) string { return strconv.FormatFloat(n, 'f', -1, 64) }

// formatLabels writes labels in the order of their names.
func formatLabels(of map[string]string) string {
	var parts []string
	for _, name := range slices.Sorted(maps.Keys(of)) {
		parts = append(parts, name+"="+of[name])
	}
	return strings.Join(parts, " ")
}

// VM returns the VM that a firing is about; empty where it is about none.
func (f Firing) VM() (namespace, name string) {
	return f.Labels[metrics.LabelNamespace], f.Labels[metrics.LabelVMI]
}

// Node returns the node that a firing is about; empty where it is about none.
func (f Firing) Node() string { return f.Labels[metrics.LabelNode] }

// OtherLabels writes the labels of a firing beside those of its VM and its node, in order; empty where there are none.
func (f Firing) OtherLabels() string {
	other := maps.Clone(f.Labels)
	if namespace, vm := f.VM(); namespace != "" && vm != "" {
		delete(other, metrics.LabelNamespace)
		delete(other, metrics.LabelVMI)
	}
	delete(other, metrics.LabelNode)
	return formatLabels(other)
}

// StepText writes the time between two samples.
func (r *Report) StepText() string {
	return model.Duration(time.Duration(r.StepSeconds * float64(time.Second))).String()
}

// FiringTime is how long all firings together would have lasted.
func (v *Variant) FiringTime() time.Duration {
	return time.Duration(v.FiringFor * float64(time.Second))
}

// Subject says what a firing is about, as people write it: its labels' values.
func (f Firing) Subject() string {
	if text := formatLabels(f.Labels); text != "" {
		return text
	}
	return "the cluster"
}

// Fires reports whether the alert would have fired, as it is or with any of the numbers tried.
func (r *RuleReport) Fires() bool {
	return slices.ContainsFunc(r.Variants, func(v *Variant) bool { return v.Count > 0 })
}

// MissingReason is why nothing is said of some alerts.
type MissingReason struct {
	Reason string
	Alerts []string // names, each once
}

// MissingReasons returns why nothing is said of alerts, those with the same reason together.
func (r *Report) MissingReasons() (out []MissingReason) {
	for _, n := range r.NotInHistory {
		i := slices.IndexFunc(out, func(m MissingReason) bool { return m.Reason == n.Reason })
		switch {
		case i < 0:
			out = append(out, MissingReason{n.Reason, []string{n.Alert}})
		case !slices.Contains(out[i].Alerts, n.Alert):
			out[i].Alerts = append(out[i].Alerts, n.Alert)
		}
	}
	return out
}
