package played_test

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/model/value"
	"github.com/prometheus/prometheus/rules"
	"github.com/prometheus/prometheus/storage"
	"github.com/stretchr/testify/require"

	"github.com/evictrail/evictrail/metrics"
	"github.com/evictrail/evictrail/store"
	"github.com/evictrail/evictrail/store/storetest"
	"github.com/evictrail/evictrail/trail"
	"github.com/evictrail/evictrail/trail/sim"
	"github.com/evictrail/evictrail/trail/tracker"
)

// TestAlertsOnSimulations plays simulated histories of some hours, whose truth is known, through the Tracker, the store and the
// metrics into Prometheus' engine, and compares the alerts with what there was: those whose cause lasted long enough fire, and
// no others.
func TestAlertsOnSimulations(t *testing.T) {
	t.Parallel()
	for _, seed := range []uint64{2, 4, 6, 13, 17, 38} {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			t.Parallel()
			run := sim.New(seed)
			s := storetest.New(t)
			fired, facts := simulateHistory(t, s, run)
			requireBacktest(t, s, run, fired)
			all := trail.DeriveAll(facts, trail.DefaultThresholds(), run.End)
			for name, causes := range map[string][]cause{
				"EvictrailDualRetryLoop warning":              loopsOf(run),
				"EvictrailEvacuationStuck warning":            findStuckEvacuations(all, run.End),
				"EvictrailExternalEvictionUnanswered warning": findUnanswered(all, run.End),
				"EvictrailVMPingPong warning":                 findBounces(all, trail.LoopPingPong, run.End),
				"EvictrailVMChurnHigh info":                   findBounces(all, trail.LoopChurn, run.End),
				"EvictrailNodesOscillate warning":             findBounces(all, trail.LoopOscillation, run.End),
				"EvictrailVMMovedOften info":                  findBounces(all, trail.LoopFrequentMoves, run.End),
				"EvictrailVMMigrationsFail warning":           findBounces(all, trail.LoopRepeatedFailures, run.End),
			} {
				want, may := map[string]bool{}, map[string]bool{}
				for _, c := range causes {
					want[c.of] = want[c.of] || c.duration() >= waits[name]+noticed
					may[c.of] = may[c.of] || c.duration() >= waits[name]-noticed
				}
				for of, must := range want {
					require.True(t, !must || fired[name+" "+of] > 0, "%s must fire for %s", name, of)
				}
				for key := range fired {
					of, about := strings.CutPrefix(key, name+" ")
					require.True(t, !about || may[of], "%s must not fire for %s", name, of)
				}
			}
			t.Logf("KubeVirt %s, %s, plots %s:", run.KubeVirt, run.End.Sub(run.Start).Round(time.Minute), run.Plots)
			for _, key := range slices.Sorted(maps.Keys(fired)) {
				t.Logf("  %s: firing for %s", key, time.Duration(fired[key])*step)
			}
		})
	}
}

// waits says how long the cause of an alert must last.
var waits = map[string]time.Duration{"EvictrailDualRetryLoop warning": 5 * time.Minute}

// tooLong is how old a mark is when its alert fires.
const tooLong = 35 * time.Minute

// noticed is how much later than it began the metrics may show a cause, or how much longer: by late audit events, samples and
// evaluations.
const noticed = 75 * time.Second

// cause is a time in which an alert has a cause.
type cause struct {
	of       string
	from, to time.Time
}

func (c cause) duration() time.Duration { return c.to.Sub(c.from) }

func orEnd(t, end time.Time) time.Time {
	if t.IsZero() {
		return end
	}
	return t
}

// loopsOf returns the true dual retry loops by node, those that overlap as one.
func loopsOf(run sim.Run) []cause {
	loops := slices.SortedFunc(slices.Values(run.Loops), func(a, b sim.Loop) int { return a.OpenedAt.Compare(b.OpenedAt) })
	var out []cause
	for _, l := range loops {
		next := cause{l.Node, l.OpenedAt, orEnd(l.ClosedAt, run.End)}
		i := slices.IndexFunc(out, func(c cause) bool { return c.of == next.of && !next.from.After(c.to.Add(step)) })
		if i < 0 {
			out = append(out, next)
		} else if next.to.After(out[i].to) {
			out[i].to = next.to
		}
	}
	return out
}

func findStuckEvacuations(all *trail.Cluster, end time.Time) []cause {
	var out []cause
	for _, d := range all.Rows {
		for _, e := range d.Evacuations {
			var failed []time.Time
			for _, m := range d.Migrations {
				if m.EvacuationID != nil && *m.EvacuationID == e.ID && m.Outcome == trail.OutcomeFailed {
					failed = append(failed, m.FinishedAt)
				}
			}
			if len(failed) < 3 || e.Strategy == trail.StrategyExternal {
				continue
			}
			slices.SortFunc(failed, time.Time.Compare)
			from := e.MarkedAt.Add(tooLong)
			if failed[2].After(from) {
				from = failed[2]
			}
			out = append(out, cause{e.Namespace + "/" + e.VMI, from, orEnd(e.EndedAt, end)})
		}
	}
	return out
}

func findUnanswered(all *trail.Cluster, end time.Time) []cause {
	var out []cause
	for _, d := range all.Rows {
		for _, e := range d.Evacuations {
			if e.Strategy == trail.StrategyExternal {
				out = append(out, cause{e.Namespace + "/" + e.VMI, e.MarkedAt.Add(tooLong), orEnd(e.EndedAt, end)})
			}
		}
	}
	return out
}

func findBounces(all *trail.Cluster, kind trail.LoopKind, end time.Time) []cause {
	var out []cause
	for _, d := range all.Rows {
		for _, l := range d.Loops {
			if l.Kind == kind {
				of := l.Node
				if l.VMI != "" {
					of = l.Namespace + "/" + l.VMI
				}
				out = append(out, cause{of, l.OpenedAt, orEnd(l.ClosedAt, end).Add(2 * noticed)})
			}
		}
	}
	return out
}

// simulateHistory stores a history as it goes, samples the metrics and evaluates the rules at each step. It returns how often each alert
// was firing, and all facts.
func simulateHistory(t *testing.T, s *store.Store, run sim.Run) (fired map[string]int, facts []trail.Fact) {
	t.Helper()
	sink := s.For("c1", "sim")
	require.NoError(t, sink.Lead(t.Context(), "this", trail.DefaultThresholds()))
	reg := prometheus.NewRegistry()
	m := metrics.New(reg)
	m.Leader.Set(1)
	m.CountSince(run.Start)
	scraped := openData(t, t.TempDir())
	defer func() { _ = scraped.Close() }()
	r := loadRules(t, scraped, generatedRules)
	tr, fired := tracker.New("c1"), map[string]int{}
	var fresh []trail.Fact
	shown := map[uint64]labels.Labels{}
	next := run.Start.Truncate(time.Millisecond).Add(step)
	tick := func() {
		news, err := sink.Append(t.Context(), fresh)
		require.NoError(t, err)
		m.Count(news, next)
		m.Stored(metrics.OpAppend, nil)
		facts, fresh = append(facts, fresh...), nil
		news, err = sink.CatchUpTo(t.Context(), next)
		require.NoError(t, err)
		m.Count(news, next)
		state, err := s.State(t.Context(), "c1", next)
		require.NoError(t, err)
		m.SetState(state)
		shown = appendSamples(t, scraped, reg, next, shown)
		for _, a := range r.evaluateAt(t, next) {
			if a.State == rules.StateFiring {
				fired[describeAlert(a)]++
			}
		}
		next = next.Add(step)
	}
	for _, o := range run.Observations {
		if n, is := o.(tracker.NodeObservation); is {
			m.Node(n.Name)
		}
		made := tr.Observe(o)
		for len(made) > 0 && !made[0].ObservedAt.Before(next) {
			tick()
		}
		fresh = append(fresh, made...)
	}
	for !next.After(run.End) {
		tick()
	}
	return fired, facts
}

// appendSamples writes the present values of counters and gauges as a scrape would, that it went well, and of the series that were
// shown before and are not now that they ended. Histograms are left out: no alert that is compared needs one.
func appendSamples(t *testing.T, into storage.Appendable, from prometheus.Gatherer, at time.Time, before map[uint64]labels.Labels) (shown map[uint64]labels.Labels) {
	t.Helper()
	families, err := from.Gather()
	require.NoError(t, err)
	app, shown := into.Appender(t.Context()), map[uint64]labels.Labels{}
	put := func(name string, pairs []*dto.LabelPair, v float64) {
		b := labels.NewScratchBuilder(len(pairs) + 1)
		b.Add(model.MetricNameLabel, name)
		for _, p := range pairs {
			if p.GetValue() != "" {
				b.Add(p.GetName(), p.GetValue())
			}
		}
		b.Sort()
		shown[b.Labels().Hash()] = b.Labels()
		_, err := app.Append(0, b.Labels(), at.UnixMilli(), v)
		require.NoError(t, err)
	}
	for _, f := range families {
		for _, x := range f.Metric {
			switch f.GetType() {
			case dto.MetricType_COUNTER:
				put(f.GetName(), x.Label, x.GetCounter().GetValue())
			case dto.MetricType_GAUGE:
				put(f.GetName(), x.Label, x.GetGauge().GetValue())
			default:
			}
		}
	}
	job := "job"
	evictrail := "evictrail"
	put("up", []*dto.LabelPair{{Name: &job, Value: &evictrail}}, 1)
	for hash, ended := range before {
		if _, still := shown[hash]; !still {
			_, err := app.Append(0, ended, at.UnixMilli(), math.Float64frombits(value.StaleNaN))
			require.NoError(t, err)
		}
	}
	require.NoError(t, app.Commit())
	return shown
}
