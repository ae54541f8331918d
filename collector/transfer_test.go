package collector

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/evictrail/evictrail/trail"
)

// TestPrometheusTransfers reads series of VMs that move: under the names of several releases, and with the labels that a
// scrape renames.
func TestPrometheusTransfers(t *testing.T) {
	t.Parallel()
	series := func(labels string, pairs ...string) string {
		return fmt.Sprintf(`{"metric":{%s},"values":[%s]}`, labels, strings.Join(pairs, ","))
	}
	pair := func(second int, value string) string { return fmt.Sprintf(`[%s,%q]`, promAt(second), value) }
	o := &oracle{
		answers: map[string]string{
			"kubevirt_vmi_migration_data_processed_bytes": strings.Join([]string{
				series(`"namespace":"shop","name":"db"`, pair(15, "2e9"), pair(30, "NaN"), pair(45, "3e9")),
				series(`"namespace":"kubevirt","exported_namespace":"shop","name":"web"`, pair(30, "5")),
			}, ","),
			"kubevirt_vmi_migration_disk_transfer_rate_bytes": series(`"namespace":"shop","name":"db"`, pair(30, "7")),
		},
		status: map[string]int{"kubevirt_vmi_migration_data_remaining_bytes": http.StatusBadRequest},
	}
	p, _ := newOracle(t, o, func(target *PrometheusTarget) { target.Transfers = DefaultTransferQueries() })
	from := auditNow.Truncate(time.Minute)
	all, err := p.Transfers(t.Context(), from, from.Add(time.Minute))
	require.ErrorContains(t, err, "this and that")
	require.Equal(t, []trail.LoadMetric{
		{Name: trail.TransferProcessed},
		{Name: trail.TransferRemaining, Lack: trail.LackRefused},
		{Name: trail.TransferDirtyRate, Lack: trail.LackNoSeries},
		{Name: trail.TransferRate},
	}, all.Metrics, "nobody asks how long the guest stood still")
	got := map[string][]string{}
	for key, points := range all.Points {
		for _, p := range points {
			name := fmt.Sprintf("%s/%s %s", key.Namespace, key.VMI, key.Metric)
			got[name] = append(got[name], fmt.Sprintf("%g: %g", secondOf(p.At), p.Value))
		}
	}
	require.Equal(t, map[string][]string{
		"shop/db data_processed":       {"15: 2e+09", "45: 3e+09"},
		"shop/web data_processed":      {"30: 5"},
		"shop/db memory_transfer_rate": {"30: 7"},
	}, got)
}

// transferSource is a source of load that knows what migrations copied, too.
type transferSource struct {
	loadSource
	copied map[string]bool // the VMs of which it knows that
	failed error           // it answers with
	spans  []string
}

func (s *transferSource) Transfers(_ context.Context, from, to time.Time) (trail.Transfers, error) {
	s.spans = append(s.spans, fmt.Sprintf("%s for %s", auditNow.Sub(to), to.Sub(from)))
	out := trail.Transfers{Metrics: []trail.LoadMetric{{Name: trail.TransferProcessed}}, Points: map[trail.TransferKey][]trail.LoadPoint{}}
	for vmi := range s.copied {
		out.Points[trail.TransferKey{Namespace: "shop", VMI: vmi, Metric: trail.TransferProcessed}] = []trail.LoadPoint{{At: to, Value: 1}}
	}
	if s.failed != nil {
		out.Metrics[0].Lack = trail.LackUnanswered
	}
	return out, s.failed
}

// listTransfers returns the facts about what migrations copied.
func (s *sink) listTransfers() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	var out []string
	for _, f := range s.facts {
		if d, is := f.Detail.(*trail.TransferDetail); is {
			out = append(out, fmt.Sprintf("%s %s %s %s", d.Origin, f.What, f.VMI, f.Reason))
		}
	}
	slices.Sort(out)
	return out
}

// TestLookRecordsWhatWasCopied asks about migrations once, of several ages, and about those alone of which nothing is recorded.
func TestLookRecordsWhatWasCopied(t *testing.T) {
	t.Parallel()
	ended := func(vmi string, ago time.Duration) trail.Moved {
		end := auditNow.Add(-ago)
		return trail.Moved{
			Migration: trail.Migration{UID: "m-" + vmi, Namespace: "shop", VMI: vmi, CreatedAt: end, RunningAt: end.Add(-time.Minute), FinishedAt: end, Outcome: trail.OutcomeFailed},
			Looked:    map[string]struct{}{"load/request prometheus": {}, "load/end prometheus": {}},
		}
	}
	asked := ended("asked", 2*time.Minute)
	asked.Looked["transfer prometheus"] = struct{}{}
	for _, c := range []struct {
		name   string
		moved  []trail.Moved
		knows  []string
		failed error
		last   bool
		want   []string
		spans  []string
	}{
		{name: "known", moved: []trail.Moved{ended("a", 2*time.Minute), ended("now", time.Second)}, knows: []string{"a"}, want: []string{"prometheus transfer a sampled"}, spans: []string{"2m0s for 1m0s"}},
		{name: "two of one time", moved: []trail.Moved{ended("a", 2*time.Minute), ended("b", 4*time.Minute)}, knows: []string{"a"}, want: []string{"prometheus transfer a sampled"}, spans: []string{"2m0s for 3m0s"}},
		{name: "recorded before", moved: []trail.Moved{asked}},
		{name: "it will not come", moved: []trail.Moved{ended("a", 11*time.Minute)}, want: []string{"prometheus transfer a not_sampled"}, spans: []string{"11m0s for 1m0s"}},
		{name: "away", moved: []trail.Moved{ended("a", 5*time.Hour), ended("b", 3*time.Hour)}, failed: errors.New("away"), spans: []string{"5h0m0s for 1m0s"}},
		{name: "away for hours", moved: []trail.Moved{ended("a", 335*time.Minute)}, failed: errors.New("away"), want: []string{"prometheus transfer a not_sampled"}, spans: []string{"5h35m0s for 1m0s"}},
		{name: "a recording ends", moved: []trail.Moved{ended("a", time.Second)}, failed: errors.New("away"), last: true, want: []string{"prometheus transfer a not_sampled"}, spans: []string{"1s for 1m0s"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			r := startCollector(t, newAPI(), &sink{}, useAuditClock)
			s := &transferSource{loadSource: loadSource{origin: trail.OriginPrometheus}, copied: map[string]bool{}, failed: c.failed}
			for _, vmi := range c.knows {
				s.copied[vmi] = true
			}
			l := r.NewLoadContext(func(context.Context, time.Time) ([]trail.Moved, error) { return c.moved, nil }, s)
			require.NoError(t, l.Look(t.Context(), c.last))
			require.NoError(t, r.Flush(t.Context()))
			require.Equal(t, c.want, r.sink.listTransfers())
			require.Equal(t, c.spans, s.spans)
		})
	}
}
