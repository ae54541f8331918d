package collector

import (
	"context"
	"errors"
	"math"
	"slices"
	"time"

	v1 "github.com/prometheus/client_golang/api/prometheus/v1"
	"github.com/prometheus/common/model"

	"github.com/evictrail/evictrail/trail"
	"github.com/evictrail/evictrail/trail/tracker"
)

// transferStep is the time between two samples: many a transfer lasts some seconds.
const transferStep = 5 * time.Second

// TransferSource reads what migrations copied.
type TransferSource interface {
	LoadSource
	// Transfers returns the samples of all migrations, from a time to another. Beside an error stands what was learned all
	// the same.
	Transfers(ctx context.Context, from, to time.Time) (trail.Transfers, error)
}

// DefaultTransferQueries ask for what virt-handler reports of a VM while it moves. No release of KubeVirt reports how long
// the guest stood still, so that there is no query for that.
//
// Source: kubevirt docs/observability/metrics.md; the names of v1.7 first, then those before.
func DefaultTransferQueries() []LoadQuery {
	const migration = "kubevirt_vmi_migration_"
	return []LoadQuery{
		{Name: trail.TransferProcessed, Values: []string{migration + "data_processed_bytes"}},
		{Name: trail.TransferRemaining, Values: []string{migration + "data_remaining_bytes"}},
		{Name: trail.TransferDirtyRate, Values: []string{migration + "dirty_memory_rate_bytes"}},
		{Name: trail.TransferRate, Values: []string{migration + "memory_transfer_rate_bytes", migration + "disk_transfer_rate_bytes"}},
		{Name: trail.TransferPause},
	}
}

// Transfers asks for each metric, of all VMs at once.
func (p *Prometheus) Transfers(ctx context.Context, from, to time.Time) (trail.Transfers, error) {
	out := trail.Transfers{Points: map[trail.TransferKey][]trail.LoadPoint{}}
	failed := p.renewClient()
	for _, q := range p.target.Transfers {
		if len(q.Values) == 0 {
			continue
		}
		lack := trail.LackUnanswered
		if failed == nil || !isAway(failed) {
			_, found, err := p.queryFirst(ctx, q, v1.Range{Start: from.Truncate(transferStep), End: to, Step: transferStep})
			if lack = lackOf(err); len(found) > 0 {
				lack = ""
			}
			for _, s := range found {
				key := trail.TransferKey{Namespace: firstLabel(s.Metric, namespaceLabels), VMI: firstLabel(s.Metric, vmiLabels), Metric: q.Name}
				out.Points[key] = append(out.Points[key], numbersOf(s.Values)...)
			}
			failed = errors.Join(failed, err)
		}
		out.Metrics = append(out.Metrics, trail.LoadMetric{Name: q.Name, Lack: lack})
	}
	for _, points := range out.Points {
		slices.SortStableFunc(points, func(a, b trail.LoadPoint) int { return a.At.Compare(b.At) })
	}
	return out, failed
}

// The labels that name the VM of a series, the first that is there: Prometheus renames that of a metric which its target
// has, too.
var (
	namespaceLabels = []model.LabelName{"exported_namespace", "namespace"}
	vmiLabels       = []model.LabelName{"name", "vmi"}
)

func firstLabel(labels model.Metric, names []model.LabelName) string {
	for _, name := range names {
		if value := labels[name]; value != "" {
			return trail.ClipText(string(value), maxName)
		}
	}
	return ""
}

// numbersOf returns the samples that are numbers.
func numbersOf(values []model.SamplePair) []trail.LoadPoint {
	var out []trail.LoadPoint
	for _, v := range values {
		if n := float64(v.Value); !math.IsNaN(n) && math.Abs(n) < 1<<62 {
			out = append(out, trail.LoadPoint{At: v.Timestamp.Time().UTC(), Value: n})
		}
	}
	return out
}

// lookAtTransfers reads what the migrations copied that have ended, where a source knows that.
func (l *LoadContext) lookAtTransfers(ctx context.Context, source TransferSource, moved []trail.Moved, now time.Time, last bool) error {
	var due []trail.TransferSpan
	for _, m := range moved {
		if s, is := m.Transfer(now, last); is && !m.HasTransfer(source.Origin()) {
			due = append(due, s)
		}
	}
	return eachWindow(due, now, last, func(w window[trail.TransferSpan]) (bool, error) {
		all, failed := source.Transfers(ctx, w.from, w.to)
		var seen []Observation
		for _, s := range w.of {
			o := tracker.TransferObservation{Of: s, Detail: all.Read(s)}
			o.Detail.Origin = source.Origin()
			if len(o.Detail.Readings) > 0 && (last || isSettled(o.Detail.Known(), source.Origin(), failed != nil, now.Sub(s.To))) {
				seen = append(seen, func(seen tracker.Seen) tracker.Observation {
					o.Seen = seen
					return o
				})
			}
		}
		return l.handOver(ctx, source, seen, failed)
	})
}
