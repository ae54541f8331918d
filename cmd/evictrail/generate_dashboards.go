package main

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"

	"github.com/spf13/cobra"
	"sigs.k8s.io/yaml"

	"github.com/evictrail/evictrail/dashboards"
	"github.com/evictrail/evictrail/dashboards/perses"
)

// The formats of dashboards.
const (
	formatJSON             = "json"
	formatConfigMap        = "configmap"
	formatGrafanaDashboard = "grafanadashboard"
	formatPerses           = "perses"
	formatPersesDashboard  = "persesdashboard"
	formatMarkdown         = "markdown"
)

var dashboardFormats = []cobra.Completion{
	cobra.CompletionWithDesc(formatJSON, "as Grafana imports it"),
	cobra.CompletionWithDesc(formatConfigMap, "ConfigMaps for the sidecar of Grafana's chart"),
	cobra.CompletionWithDesc(formatGrafanaDashboard, "resources of the Grafana operator"),
	cobra.CompletionWithDesc(formatPerses, "as Perses imports it: the panels that ask Prometheus"),
	cobra.CompletionWithDesc(formatPersesDashboard, "resources of the Perses operator"),
	cobra.CompletionWithDesc(formatMarkdown, "what each panel shows, for people"),
}

// dashboardFlags are those of "evictrail generate dashboards".
type dashboardFlags struct {
	format    string
	placing   dashboards.Placing
	publicURL string
	dir       string
}

func newGenerateDashboards() *cobra.Command {
	f := dashboardFlags{placing: dashboards.DefaultPlacing()}
	cmd := &cobra.Command{
		Use: "dashboards [NAME...]", Short: "Print the dashboards, for Grafana or Perses", Args: asUsage(cobra.ArbitraryArgs),
		Long: `Print the named dashboards, by default all. Nothing is applied. They ask a Prometheus that scrapes evictrail and a Postgres
that may read its views (evictrail schema roles); both are chosen in the dashboard.

For Perses, which asks no Postgres, each has the panels that ask Prometheus, by the project's default data source; notes
name the others. A dashboard that has none is left out: standard error says so.

` + formatCompletions(22, dashboardChoice()) + `
docs/dashboards.md says what each panel shows.`,
		Example: `  evictrail generate dashboards --dir dashboards          # JSON, to import or to provision
  evictrail generate dashboards evictrail-loop > loop.json
  evictrail generate dashboards --public-url https://evictrail.example --dir dashboards
  evictrail generate dashboards --format configmap --namespace monitoring | kubectl apply -f -
  evictrail generate dashboards --format grafanadashboard --instance dashboards=grafana | kubectl apply -f -
  evictrail generate dashboards --format perses --dir perses && percli apply -d perses --project monitoring
  evictrail generate dashboards --format persesdashboard --namespace monitoring | kubectl apply -f -`,
		ValidArgsFunction: completeDashboards,
		RunE:              f.run,
	}
	flags := cmd.Flags()
	flags.StringVar(&f.format, "format", formatJSON, "`format`: json, configmap, grafanadashboard, perses, persesdashboard or markdown (one text about all)")
	flags.StringVar(&f.placing.Namespace, "namespace", "", "`namespace` of ConfigMaps, GrafanaDashboards and PersesDashboards; by default where they are applied")
	flags.StringVar(&f.placing.Folder, "folder", f.placing.Folder, "`folder` in Grafana, of ConfigMaps and GrafanaDashboards")
	flags.StringToStringVar(&f.placing.Instances, "instance", f.placing.Instances, "`labels` of the Grafana that GrafanaDashboards are for")
	flags.StringVar(&f.publicURL, "public-url", "", "`URL` of evictrail's pages, as people reach them: VMs, nodes, loops and clusters in tables link to their page")
	addDir(cmd, &f.dir, "a file for each")
	_ = cmd.RegisterFlagCompletionFunc("format", cobra.FixedCompletions(dashboardFormats, cobra.ShellCompDirectiveNoFileComp))
	return cmd
}

// dashboardChoice names the dashboards, each with its question. They are built once, as the help has their names.
var dashboardChoice = sync.OnceValue(func() (all []cobra.Completion) {
	for _, d := range dashboards.All() {
		all = append(all, cobra.CompletionWithDesc(d.UID, d.Title))
	}
	return all
})

func completeDashboards(_ *cobra.Command, given []string, _ string) ([]cobra.Completion, cobra.ShellCompDirective) {
	return withoutGiven(dashboardChoice(), given)
}

func (f *dashboardFlags) run(cmd *cobra.Command, names []string) error {
	if err := f.checkFlags(cmd, names); err != nil {
		return err
	}
	files, err := f.renderFiles(cmd.ErrOrStderr(), names)
	if err != nil {
		return err
	}
	return outputFiles(cmd.OutOrStdout(), f.dir, files)
}

// checkFlags says what cannot be.
func (f *dashboardFlags) checkFlags(cmd *cobra.Command, names []string) error {
	known := dashboardNames()
	for _, name := range names {
		if !slices.Contains(known, name) {
			return usageErrorf("dashboard %q: expected one of %s", name, strings.Join(known, ", "))
		}
	}
	formats := []string{formatJSON, formatConfigMap, formatGrafanaDashboard, formatPerses, formatPersesDashboard, formatMarkdown}
	if !slices.Contains(formats, f.format) {
		return usageErrorf("format %q: expected one of %s", f.format, strings.Join(formats, ", "))
	}
	if err := checkWebAddress("public-url", f.publicURL); err != nil {
		return usageErrorf("%w", err)
	}
	if f.format == formatMarkdown && len(names) > 0 {
		return usageErrorf("format markdown is one text about all dashboards: give no names")
	}
	for flag, formats := range map[string][]string{
		"namespace": {formatConfigMap, formatGrafanaDashboard, formatPersesDashboard}, "folder": {formatConfigMap, formatGrafanaDashboard}, "instance": {formatGrafanaDashboard},
		"public-url": {formatJSON, formatConfigMap, formatGrafanaDashboard, formatPerses, formatPersesDashboard},
	} {
		if cmd.Flags().Changed(flag) && !slices.Contains(formats, f.format) {
			return usageErrorf("%s has no meaning for format %s", flag, f.format)
		}
	}
	return nil
}

func dashboardNames() []string {
	var out []string
	for _, d := range dashboards.All() {
		out = append(out, d.UID)
	}
	return out
}

// renderFiles returns the named dashboards in the chosen format, all where none was named, in the order of dashboards.All.
// What has no form in that format is left out, and said on said.
func (f *dashboardFlags) renderFiles(said io.Writer, names []string) ([]textFile, error) {
	if f.format == formatMarkdown {
		text, err := dashboards.Markdown()
		return []textFile{{"dashboards.md", string(text)}}, err
	}
	var out []textFile
	for _, d := range dashboards.All() {
		if len(names) > 0 && !slices.Contains(names, d.UID) {
			continue
		}
		render := f.renderFile
		if f.format == formatPerses || f.format == formatPersesDashboard {
			render = f.renderForPerses
		}
		file, err := render(d.LinkPages(f.publicURL))
		switch {
		case errors.Is(err, errNothingForPerses) && len(names) == 0:
			printTextf(said, "%s is left out: %s\n", d.UID, errNothingForPerses)
			continue
		case err != nil:
			return nil, err
		}
		out = append(out, file)
	}
	return out, nil
}

func (f *dashboardFlags) renderFile(d dashboards.Dashboard) (textFile, error) {
	if f.format == formatJSON {
		text, err := d.JSON()
		return textFile{d.UID + ".json", string(text)}, err
	}
	object := d.ConfigMap
	if f.format == formatGrafanaDashboard {
		object = d.GrafanaDashboard
	}
	made, err := object(f.placing)
	if err != nil {
		return textFile{}, err
	}
	text, err := yaml.Marshal(made)
	if err != nil {
		return textFile{}, fmt.Errorf("encode %s %s: %w", f.format, d.UID, err)
	}
	return textFile{d.UID + ".yaml", string(text)}, nil
}

var errNothingForPerses = errors.New("none of its panels asks Prometheus, and Perses asks nothing else")

// renderForPerses returns a dashboard for Perses or its operator. It is errNothingForPerses where there is none.
func (f *dashboardFlags) renderForPerses(d dashboards.Dashboard) (textFile, error) {
	made, draws, err := perses.Convert(d, f.publicURL)
	switch {
	case err != nil:
		return textFile{}, err
	case !draws:
		return textFile{}, usageErrorf("dashboard %s: %w", d.UID, errNothingForPerses)
	case f.format == formatPerses:
		text, err := made.JSON()
		return textFile{d.UID + ".json", string(text)}, err
	}
	text, err := yaml.Marshal(made.Object(f.placing.Namespace))
	if err != nil {
		return textFile{}, fmt.Errorf("encode %s %s: %w", f.format, d.UID, err)
	}
	return textFile{d.UID + ".yaml", string(text)}, nil
}
