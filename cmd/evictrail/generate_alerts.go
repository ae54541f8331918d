package main

import (
	"cmp"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/evictrail/evictrail/alerts"
)

// The formats of "evictrail generate alerts". With ".yaml" they are names of files.
const (
	formatPrometheusRule = "prometheusrule"
	formatRules          = "rules"
	formatInhibit        = "inhibit-rules"
)

// alertFormats are the formats, each with what it is.
func alertFormats() []cobra.Completion {
	return []cobra.Completion{
		cobra.CompletionWithDesc(formatPrometheusRule, "an object for the Prometheus operator"),
		cobra.CompletionWithDesc(formatRules, "a file for rule_files of Prometheus"),
		cobra.CompletionWithDesc(formatInhibit, "inhibit_rules for Alertmanager's configuration"),
	}
}

// alertFlags are those of "evictrail generate alerts".
type alertFlags struct {
	options alerts.Options
	name    string
	labels  map[string]string
	format  string
	dir     string
}

func newGenerateAlerts() *cobra.Command {
	f := alertFlags{options: alerts.DefaultOptions()}
	cmd := &cobra.Command{
		Use: "alerts", Short: "Print the alerts for Prometheus and Alertmanager", Args: asUsage(cobra.NoArgs),
		Long: `Print recording rules and alerts as a PrometheusRule, or in another format. Nothing is applied. The formats:

` + formatCompletions(16, alertFormats()) + `
Every alert has a page in docs/runbooks and links to it; --runbook-url says where yours are. With --dashboard-url it links to a dashboard, too, and
with --public-url to the page of its VM, node or cluster. The rules expect evictrail to be scraped with honorLabels: true (honor_labels), since its series name the namespace of VMs.
A Prometheus that holds several clusters needs a label "cluster" on their series.`,
		Example: `  evictrail generate alerts --namespace monitoring --labels release=kube-prometheus-stack | kubectl apply -f -
  evictrail generate alerts --public-url https://evictrail.example --dashboard-url https://grafana.example --runbook-url https://wiki.example/evictrail
  evictrail generate alerts --evacuation-target 99.5
  evictrail generate alerts --format rules --job evictrail-prod > /etc/prometheus/rules/evictrail.yaml
  evictrail generate alerts --format inhibit-rules      # to be put into alertmanager.yaml
  evictrail generate alerts --dir evictrail-files`,
		RunE: f.run,
	}
	o, flags := &f.options, cmd.Flags()
	flags.StringVar(&f.format, "format", formatPrometheusRule, "`format`: "+formatPrometheusRule+", "+formatRules+" or "+formatInhibit)
	flags.StringVar(&f.name, "name", "evictrail", "`name` of the PrometheusRule")
	flags.StringVar(&o.Namespace, "namespace", o.Namespace, "`namespace` of evictrail: of the PrometheusRule, and of alerts that are about no VM")
	flags.StringToStringVar(&f.labels, "labels", nil, "`key=value` of a label of the PrometheusRule, so that a Prometheus selects it (ruleSelector); may be repeated")
	flags.StringVar(&o.RunbookURL, "runbook-url", o.RunbookURL, "`URL` below which the pages of docs/runbooks are")
	flags.StringVar(&o.DashboardURL, "dashboard-url", "", "`URL` of Grafana; without it alerts link to no dashboard")
	flags.StringVar(&o.PublicURL, "public-url", "", "`URL` of evictrail's pages, as people reach them; without it alerts link to no page")
	flags.StringVar(&o.Job, "job", o.Job, "`name` of the scrape job of evictrail")
	flags.Float64Var(&o.EvacuationTarget, "evacuation-target", o.EvacuationTarget, "share of evacuations, in `percent`, that are to keep to their objective (evictrail run --evacuation-objective)")
	addDir(cmd, &f.dir, "a file FORMAT.yaml for each format")
	_ = cmd.RegisterFlagCompletionFunc("format", cobra.FixedCompletions(alertFormats(), cobra.ShellCompDirectiveNoFileComp))
	return cmd
}

func (f *alertFlags) run(cmd *cobra.Command, _ []string) error {
	if err := f.checkFlags(cmd); err != nil {
		return err
	}
	formats := []string{f.format}
	if f.dir != "" {
		formats = []string{formatPrometheusRule, formatRules, formatInhibit}
	}
	if f.options.DashboardURL == "" && f.format != formatInhibit {
		_, _ = fmt.Fprintln(cmd.ErrOrStderr(), "evictrail: alerts have no dashboard_url: say where Grafana is with --dashboard-url")
	}
	var files []textFile
	for _, format := range formats {
		text, err := f.renderAlerts(format)
		if err != nil {
			return err
		}
		files = append(files, textFile{format + ".yaml", text})
	}
	return outputFiles(cmd.OutOrStdout(), f.dir, files)
}

// renderAlerts returns the alerts in one of the formats.
func (f *alertFlags) renderAlerts(format string) (string, error) {
	groups := alerts.Groups(f.options)
	switch format {
	case formatInhibit:
		return alerts.InhibitRules()
	case formatRules:
		return alerts.RulesFile(groups)
	}
	return alerts.PrometheusRule(groups, f.name, f.options.Namespace, f.labels)
}

// checkFlags says what cannot be: one line for each mistake.
func (f *alertFlags) checkFlags(cmd *cobra.Command) error {
	var wrong []error
	say := func(format string, args ...any) { wrong = append(wrong, fmt.Errorf(format, args...)) }
	formats := []string{formatPrometheusRule, formatRules, formatInhibit}
	if !slices.Contains(formats, f.format) {
		say("format %q: expected one of %s", f.format, strings.Join(formats, ", "))
	}
	if cmd.Flags().Changed("format") && f.dir != "" {
		say("format names one format, dir writes all: give one of them")
	}
	for flag, apt := range map[string]bool{
		"name": f.format == formatPrometheusRule, "labels": f.format == formatPrometheusRule, "job": f.format != formatInhibit,
		"evacuation-target": f.format != formatInhibit, "namespace": f.format != formatInhibit, "runbook-url": f.format != formatInhibit, "dashboard-url": f.format != formatInhibit,
		"public-url": f.format != formatInhibit,
	} {
		if cmd.Flags().Changed(flag) && !apt {
			say("%s has no place in format %s", flag, f.format)
		}
	}
	if err := errors.Join(append(wrong, f.checkValues()...)...); err != nil {
		return usageErrorf("%w", err)
	}
	return nil
}

func (f *alertFlags) checkValues() []error {
	var wrong []error
	valid := func(what, value string, problems []string) {
		if len(problems) > 0 {
			wrong = append(wrong, fmt.Errorf("%s %q: %s", what, value, problems[0]))
		}
	}
	valid("name", f.name, validation.IsDNS1123Subdomain(f.name))
	valid("namespace", f.options.Namespace, validation.IsDNS1123Label(f.options.Namespace))
	for key, value := range f.labels {
		valid("label", key, validation.IsQualifiedName(key))
		valid("label "+key, value, validation.IsValidLabelValue(value))
	}
	if f.options.Job == "" {
		wrong = append(wrong, errors.New("job: must not be empty"))
	}
	target := f.options.EvacuationTarget
	if within := target >= alerts.LowestTarget && target <= alerts.HighestTarget; !within { // nor is what is no number
		wrong = append(wrong, fmt.Errorf("evacuation-target %v: expected %v to %v percent; with less the alert could not detect a bad hour: give evacuations more time instead",
			target, alerts.LowestTarget, alerts.HighestTarget))
	}
	return append(wrong, checkWebAddress("runbook-url", cmp.Or(f.options.RunbookURL, "/")), checkWebAddress("dashboard-url", f.options.DashboardURL),
		checkWebAddress("public-url", f.options.PublicURL))
}

// checkWebAddress returns an error where the value of a flag is no address; an empty one is none, and right.
func checkWebAddress(flag, value string) error {
	if value == "" || webAddress(value) {
		return nil
	}
	return fmt.Errorf("%s %q: expected http or https://HOST[/PATH]", flag, value)
}

// webAddress reports whether links can be made by adding to the text.
func webAddress(text string) bool {
	u, err := url.Parse(text)
	return err == nil && (u.Scheme == "https" || u.Scheme == "http") && u.Host != "" && u.RawQuery == "" && u.Fragment == "" &&
		!strings.Contains(text, "{{")
}
