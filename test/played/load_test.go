package played_test

import (
	"bytes"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
	"github.com/stretchr/testify/require"

	"github.com/evictrail/evictrail"
	"github.com/evictrail/evictrail/collector"
	"github.com/evictrail/evictrail/collector/recording"
	"github.com/evictrail/evictrail/store/storetest"
)

// nodeFamilies are the metrics in which a descheduler reports how it sees the nodes.
var nodeFamilies = []string{"descheduler_lownodeutilization_node_utilization_threshold", "descheduler_lownodeutilization_node_utilization_value"}

// TestVerdictsFromPrometheus serves what the descheduler said of the nodes through a real Prometheus, and nothing else of it: the verdicts are those that the truth of the
// recordings shows. What the last moves brought the recordings no longer show.
func TestVerdictsFromPrometheus(t *testing.T) {
	t.Parallel()
	for name, want := range map[string][]string{
		"a-descheduler-eviction-success": {
			"vm-a 1 worker-1 to worker-2: needed, helped",
			"vm-b 1 worker-1 to worker-3: needed, helped",
		},
		"b-dual-retry-loop": {
			"vm-a 5 worker-1 to worker-2: not_needed, harmed",
			"vm-a 1 worker-2 to worker-1: needed, unknown",
		},
		"b-dual-retry-loop-v1.8": {
			"vm-d 6 worker-1 to worker-2: not_needed, harmed",
			"vm-e 1 worker-2 to worker-1: needed, unknown",
			"vm-f 1 worker-2 to worker-1: needed, unknown",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			rec, err := recording.Open(evictrail.Recordings(), name, collector.Check)
			require.NoError(t, err)
			text, data, bare := filepath.Join(t.TempDir(), "nodes.om"), t.TempDir(), filepath.Join(t.TempDir(), name)
			writeNodes(t, rec, text)
			runProgram(t, "promtool", "tsdb", "create-blocks-from", "openmetrics", text, data)
			s := startPrometheus(t, data, "global: {}\n")
			require.NoError(t, os.CopyFS(bare, os.DirFS(filepath.Join(root, "testdata/recordings", name))))
			for _, scrapes := range []string{"scrapes.jsonl.gz", "metrics"} {
				require.NoError(t, os.RemoveAll(filepath.Join(bare, scrapes)))
			}
			url := storetest.NewURL(t)
			runProgram(t, "evictrail", "play", bare, "--database-url", url, "--prometheus-url", s.url)
			conn, err := pgx.Connect(t.Context(), url)
			require.NoError(t, err)
			t.Cleanup(func() { _ = conn.Close(t.Context()) })
			texts := func(query string) []string {
				rows, err := conn.Query(t.Context(), query)
				require.NoError(t, err)
				out, err := pgx.CollectRows(rows, pgx.RowTo[string])
				require.NoError(t, err)
				return out
			}
			got := texts(`SELECT format('%s %s %s to %s: %s, %s', vmi, attempt, source_node, target_node, need, benefit) FROM evictrail_v1.migrations ORDER BY created_at`)
			for _, w := range want {
				require.Contains(t, got, w, strings.Join(got, "\n"))
			}
			require.Equal(t, []string{"cpu no_series", "cpu_pressure no_series", "descheduler:MetricResource ", "memory no_series", "memory_pressure no_series"},
				texts(`SELECT DISTINCT metric || ' ' || coalesce(reason, '') FROM evictrail_v1.node_context WHERE coalesce(reason, '') <> 'no_sample' ORDER BY 1`))
			require.Equal(t, []string{"prometheus"}, texts(`SELECT DISTINCT origin FROM evictrail_v1.node_context`))
			require.NotEmpty(t, texts(`SELECT context_id FROM evictrail_v1.node_context WHERE value > threshold AND side = 'source' AND sampled_at <= at`))
			before := texts(`SELECT count(*)::text FROM evictrail_v1.node_context`)
			runProgram(t, "evictrail", "play", bare, "--database-url", url, "--prometheus-url", s.url)
			require.Equal(t, before, texts(`SELECT count(*)::text FROM evictrail_v1.node_context`), "who looks again adds nothing")
		})
	}
}

// writeNodes writes what the descheduler said of the nodes as OpenMetrics, each series whole, as promtool wants it.
func writeNodes(t *testing.T, rec *recording.Recording, file string) {
	t.Helper()
	series := map[string]*bytes.Buffer{}
	for _, s := range rec.Scrapes {
		parser := expfmt.NewTextParser(model.UTF8Validation)
		families, err := parser.TextToMetricFamilies(strings.NewReader(s.Text))
		require.NoError(t, err)
		for _, family := range nodeFamilies {
			for _, m := range families[family].GetMetric() {
				key := family + labelsOf(m)
				if series[key] == nil {
					series[key] = &bytes.Buffer{}
				}
				_, _ = fmt.Fprintf(series[key], "%s %v %.3f\n", key, m.GetGauge().GetValue(), float64(s.At.UnixMilli())/1000)
			}
		}
	}
	require.NotEmpty(t, series)
	var out bytes.Buffer
	for _, family := range nodeFamilies {
		_, _ = fmt.Fprintf(&out, "# TYPE %s gauge\n", family)
		for _, key := range slices.Sorted(maps.Keys(series)) {
			if strings.HasPrefix(key, family+"{") {
				out.Write(series[key].Bytes())
			}
		}
	}
	out.WriteString("# EOF\n")
	require.NoError(t, os.WriteFile(file, out.Bytes(), fs.FileMode(0o600)))
}

func labelsOf(m *dto.Metric) string {
	var out []string
	for _, l := range m.GetLabel() {
		out = append(out, fmt.Sprintf("%s=%q", l.GetName(), l.GetValue()))
	}
	return "{" + strings.Join(out, ",") + "}"
}
