package metrics_test

import (
	"cmp"
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/evictrail/evictrail/metrics"
)

//go:generate go test . -run ^TestDocumentation$ -update

var update = flag.Bool("update", false, "write docs/metrics.md")

const documentation = "../docs/metrics.md"

// TestDocumentation compares docs/metrics.md with the catalogue.
func TestDocumentation(t *testing.T) {
	t.Parallel()
	text := renderDocument()
	if *update {
		require.NoError(t, os.WriteFile(documentation, []byte(text), 0o644))
	}
	written, err := os.ReadFile(documentation)
	require.NoError(t, err)
	require.Equal(t, text, string(written), "run make generate")
}

func renderDocument() string {
	var out strings.Builder
	out.WriteString(`# Metrics

Generated from ` + "`metrics/catalogue.go`" + ` by ` + "`make generate`" + `: do not edit.

Counters and histograms are counted once by the replica that stored what they count, 40 s later, when late audit events are in: sum
them over the replicas. Gauges about the cluster are read from the database every 10 s and are the same on each replica: take their
maximum. Histograms are native ones, with classic buckets for those who cannot read native ones; durations and failures carry the
` + "`event_id`" + ` of their fact as an exemplar. Metrics marked **per VM** have one series for each VM in that state, at most ` + fmt.Sprint(metrics.DefaultMaxVMSeries) + `
(` + "`--max-vm-series`" + `). The metrics of the Go runtime (` + "`go_*`" + `), of the process (` + "`process_*`" + `) and ` + "`evictrail_build_info`" + ` are there, too.

| Metric | Type | Labels | Meaning |
|---|---|---|---|
`)
	for _, m := range metrics.Catalogue() {
		labels := "-"
		if len(m.Labels) > 0 {
			labels = "`" + strings.Join(m.Labels, "`, `") + "`"
		}
		if m.PerVM {
			labels += " **per VM**"
		}
		_, _ = fmt.Fprintf(&out, "| `%s` | %s | %s | %s |\n", m.Name, m.Type, labels, m.Help)
	}
	out.WriteString(`
## Values of labels

Sets are closed: what KubeVirt or the descheduler may say one day that evictrail does not know is ` + "`other`" + ` or ` + "`unknown`" + `. Those of the
metrics about evictrail itself stand in ` + "`metrics/names.go`" + `.

| Label | Of | Values |
|---|---|---|
`)
	for _, s := range metrics.LabelSets() {
		_, _ = fmt.Fprintf(&out, "| `%s` | %s | `%s` |\n", s.Label, cmp.Or(s.Of, "every metric that has it"), strings.Join(s.Values, "`, `"))
	}
	return out.String()
}
