package alerts

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"sigs.k8s.io/yaml"

	"github.com/evictrail/evictrail/metrics"
)

// Options say what differs from one installation to the next.
type Options struct {
	Job          string // of the scrape: the value of label job of evictrail's own series
	Namespace    string // in which evictrail runs: what alerts that are about no VM carry as their namespace
	RunbookURL   string // what "/<alert>.md" follows
	DashboardURL string // of Grafana, what "/d/<dashboard>" follows; empty: alerts link to no dashboard, as a path alone leads nowhere in a message
	PublicURL    string // of evictrail's pages, what "/nodes/<node>" follows; empty: alerts link to no page

	EvacuationTarget float64 // share of evacuations, in percent, that are to keep to their objective; from LowestTarget to HighestTarget
}

// DefaultOptions are those of the files under deploy/alerts.
func DefaultOptions() Options {
	return Options{
		Job:        "evictrail",
		Namespace:  "evictrail",
		RunbookURL: "https://github.com/evictrail/evictrail/blob/main/docs/runbooks",

		EvacuationTarget: 99,
	}
}

// The addresses of ChartOptions.
const (
	ChartDashboardURL = "https://dashboards.invalid"
	ChartPublicURL    = "https://pages.invalid"
)

// ChartOptions are those of the rules in the chart, which replaces the two addresses by those of its values, or removes the links.
func ChartOptions() Options {
	o := DefaultOptions()
	o.DashboardURL, o.PublicURL = ChartDashboardURL, ChartPublicURL
	return o
}

// Rule is one rule as Prometheus reads it: Record or Alert is set, never both. Durations are in Prometheus' spelling; an
// empty one is none.
type Rule struct {
	Record        string            `json:"record,omitempty"`
	Alert         string            `json:"alert,omitempty"`
	Expr          string            `json:"expr"`
	For           string            `json:"for,omitempty"`
	KeepFiringFor string            `json:"keep_firing_for,omitempty"`
	Labels        map[string]string `json:"labels,omitempty"`
	Annotations   map[string]string `json:"annotations,omitempty"`
}

// Group is a list of rules that Prometheus evaluates one after the other, in this order.
type Group struct {
	Name  string `json:"name"`
	Rules []Rule `json:"rules"`
}

// ListNames returns the names of the alerts of groups, each once, in their order.
func ListNames(groups []Group) []string {
	var names []string
	for _, g := range groups {
		for _, r := range g.Rules {
			if r.Alert != "" && !slices.Contains(names, r.Alert) {
				names = append(names, r.Alert)
			}
		}
	}
	return names
}

// Groups returns all rules: first what is recorded, then the alerts in the order of their nouns. The order never changes
// by itself.
func Groups(o Options) []Group {
	groups := []Group{{Name: "evictrail.recording", Rules: newRecordingRules(o)}}
	for _, g := range []struct {
		component string
		alerts    []alert
	}{
		{componentLoops, newLoopAlerts()},
		{"evacuations", slices.Concat(newEvacuationAlerts(), newObjectiveAlerts(o))},
		{"requests", newRequestAlerts()},
		{"storms", []alert{newStormAlert()}},
		{"drains", newDrainAlerts()},
		{"cooldowns", newCooldownAlerts()},
		{"migrations", newMigrationAlerts()},
		{"guests", newGuestAlerts()},
		{componentFleet, newFleetAlerts()},
		{"collector", newCollectorAlerts(o.Job)},
		{"store", newStoreAlerts()},
	} {
		group := Group{Name: "evictrail." + g.component}
		for _, a := range g.alerts {
			group.Rules = append(group.Rules, a.buildRule(g.component, o))
		}
		groups = append(groups, group)
	}
	return groups
}

// The labels of every alert beside those of its series.
const (
	labelSeverity  = "severity"
	labelComponent = "component" // the group's noun: whom the alert is for
)

// componentLoops are the alerts that have a list of their own among the pages.
const componentLoops = "loops"

// The severities. Critical wakes somebody: what cannot be brought back is lost, or will be soon. A warning is for the next
// hour, an info for who looks.
const (
	Critical = "critical"
	Warning  = "warning"
	Info     = "info"
)

// The annotations of every alert. The last two are there where Options have the address.
const (
	annotationSummary     = "summary"
	annotationDescription = "description"
	annotationRunbook     = "runbook_url"
	annotationDashboard   = "dashboard_url"
	annotationPage        = "page_url"
)

// The dashboards to which alerts point.
const (
	boardCollector  = "evictrail-collector"
	boardCooldown   = "evictrail-cooldown"
	boardDrain      = "evictrail-drain"
	boardFleet      = "evictrail-fleet"
	boardLoop       = "evictrail-loop"
	boardMigrations = "evictrail-migrations"
	boardOverview   = "evictrail-overview"
	boardVM         = "evictrail-vm"
)

// alert is an alert before it knows the installation.
type alert struct {
	name     string
	severity string
	expr     string
	of       []string // the labels that its series carry beside the cluster
	wait     string   // for; empty fires at the first evaluation
	keep     string   // keep_firing_for

	summary     string // the subject of a mail: below 90 characters
	description string // what is going on, what it means, with numbers
	board       string
}

func (a alert) buildRule(component string, o Options) Rule {
	labels := map[string]string{labelSeverity: a.severity, labelComponent: component}
	if !slices.Contains(a.of, metrics.LabelNamespace) {
		labels[metrics.LabelNamespace] = o.Namespace
	}
	annotations := map[string]string{
		annotationSummary:     a.summary,
		annotationDescription: a.description,
		annotationRunbook:     fmt.Sprintf("%s/%s.md", strings.TrimRight(o.RunbookURL, "/"), a.name),
	}
	if o.DashboardURL != "" {
		annotations[annotationDashboard] = a.buildDashboardURL(o)
	}
	if o.PublicURL != "" {
		annotations[annotationPage] = strings.TrimRight(o.PublicURL, "/") + a.buildPagePath(component)
	}
	return Rule{Alert: a.name, Expr: a.expr, For: a.wait, KeepFiringFor: a.keep, Labels: labels, Annotations: annotations}
}

// buildPagePath leads to the page of the alert's VM, else of its node, else of its cluster. It has no time: a rule does not know when its
// alert began. Alertmanager does, and deploy/alertmanager/evictrail.tmpl adds it.
func (a alert) buildPagePath(component string) string {
	path := "/"
	switch component {
	case componentLoops:
		path = "/loops"
	case componentFleet:
		path = "/compare"
	}
	switch {
	case slices.Contains(a.of, metrics.LabelVMI):
		path = "/vms/" + theVM
	case slices.Contains(a.of, metrics.LabelNode):
		path = "{{ with $labels." + metrics.LabelNode + " }}/nodes/{{ . }}{{ else }}" + path + "{{ end }}"
	}
	return path + fmt.Sprintf("{{ with or $labels.%[1]s $externalLabels.%[1]s }}?%[1]s={{ urlquery . }}{{ end }}", labelCluster)
}

// buildDashboardURL links to the alert's dashboard with its variables filled in, as far as the alert knows them.
func (a alert) buildDashboardURL(o Options) string {
	var link strings.Builder
	_, _ = fmt.Fprintf(&link, "%s/d/%s?", strings.TrimRight(o.DashboardURL, "/"), a.board)
	_, _ = fmt.Fprintf(&link, "{{ with or $labels.%[1]s $externalLabels.%[1]s }}var-%[1]s={{ urlquery . }}&{{ end }}", labelCluster)
	for _, label := range []string{metrics.LabelNode, metrics.LabelNamespace, metrics.LabelVMI} {
		if slices.Contains(a.of, label) {
			_, _ = fmt.Fprintf(&link, "var-%[1]s={{ $labels.%[1]s }}&", label)
		}
	}
	link.WriteString("from=now-6h&to=now")
	return link.String()
}

// RulesFile returns the groups as a file for rule_files of Prometheus.
func RulesFile(groups []Group) (string, error) {
	return marshalYAML("For rule_files of Prometheus.", map[string]any{"groups": groups})
}

// PrometheusRule returns the groups as an object for the Prometheus operator. The labels are those by which a Prometheus
// selects its rules (spec.ruleSelector).
func PrometheusRule(groups []Group, name, namespace string, labels map[string]string) (string, error) {
	object := prometheusRule{APIVersion: "monitoring.coreos.com/v1", Kind: "PrometheusRule"}
	object.Metadata.Name, object.Metadata.Namespace, object.Metadata.Labels = name, namespace, maps.Clone(labels)
	object.Spec.Groups = groups
	return marshalYAML("For kubectl apply, where the Prometheus operator runs.", object)
}

// prometheusRule is as much of the operator's type as is written.
//
// Source: prometheus-operator pkg/apis/monitoring/v1/prometheusrule_types.go.
type prometheusRule struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
	Metadata   struct {
		Name      string            `json:"name"`
		Namespace string            `json:"namespace"`
		Labels    map[string]string `json:"labels,omitempty"`
	} `json:"metadata"`
	Spec struct {
		Groups []Group `json:"groups"`
	} `json:"spec"`
}

// marshalYAML writes YAML with keys in alphabetical order below a comment that says where it comes from.
func marshalYAML(use string, v any) (string, error) {
	text, err := yaml.Marshal(v)
	if err != nil {
		return "", fmt.Errorf("write rules: %w", err)
	}
	return "# " + use + "\n# Code generated by \"evictrail generate alerts\"; DO NOT EDIT.\n" + string(text), nil
}
