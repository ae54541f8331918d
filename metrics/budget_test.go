package metrics_test

import (
	"bytes"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/stretchr/testify/require"

	"github.com/evictrail/evictrail/metrics"
	"github.com/evictrail/evictrail/trail"
)

// The size that the budget of series is about.
const (
	bigNodes = 500
	bigVMs   = 10_000
	budget   = 15_000
	hostile  = 20_000 // where every VM is marked
)

var start = time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)

// bigCluster returns metrics of a large cluster after a day of every sort of event, in a state.
func bigCluster(s trail.State) *prometheus.Registry {
	reg := prometheus.NewRegistry()
	m := metrics.New(reg)
	for _, r := range []string{"kubevirts", "nodes", "virtualmachineinstances", "virtualmachineinstancemigrations", "pods", "events", "migrationpolicies", "evictionrequests", "evictions", "configmaps"} {
		m.Watch(r, r)
		m.WatchLastActivity.WithLabelValues(r).Set(1)
		m.TrackedObjects.WithLabelValues(r).Set(1)
	}
	m.AddReceiver("cloudevents")
	m.Waiting(1000, start)
	m.SpoolWritable.WithLabelValues().Set(1)
	m.DeadLetters.WithLabelValues().Set(0)
	m.Refused("bad_credentials")
	m.ClockSkew.WithLabelValues(metrics.PeerAPIServer).Set(0)
	for i := range bigNodes {
		m.Node(nodeName(i))
	}
	m.Count(aDay(), start)
	m.CountRest()
	m.Stored(metrics.OpAppend, nil)
	m.StoreWrite.WithLabelValues(metrics.OpAppend).Observe(.01)
	for _, route := range []string{"/metrics", "/livez", "/readyz", "/audit", "/admission"} {
		m.Answered(route, http.MethodGet, http.StatusOK, time.Millisecond)
	}
	m.SetUpkeep(trail.Upkeep{FactsFrom: start}, start)
	m.RetentionLast.WithLabelValues().Set(1)
	m.SetRecorder(trail.RecorderStatus{State: trail.RecorderRecording, Since: start})
	m.SetStandby(trail.StandbySigns{Used: true, AsOf: start, LagSeconds: 1})
	m.AnswerRepeated(errors.New("the standby is gone"))
	m.SetLeader(trail.LeaderSigns{Leads: true, Since: start}, 1, start)
	m.SetState(s)
	return reg
}

func nodeName(i int) string { return fmt.Sprintf("worker-%03d.example.com", i) }

// aDay has an end of every sort, for every trigger and requester.
func aDay() trail.News {
	var n trail.News
	id := 0
	next := func() string { id++; return fmt.Sprint(id) }
	for _, k := range trail.Kinds() {
		n.Facts = append(n.Facts, trail.Fact{Kind: k.Kind, ObservedAt: start, OccurredAt: start})
	}
	for i, r := range trail.Requesters() {
		for _, a := range trail.Answers() {
			n.Requests = append(n.Requests, trail.RowChange[trail.EvictionRequest]{ID: next(), Row: trail.EvictionRequest{RequesterClass: r, Answer: a}})
		}
		for _, o := range []trail.Outcome{trail.OutcomeMigrated, trail.OutcomeCancelled, trail.OutcomeVMIGone} {
			n.Evacuations = append(n.Evacuations, trail.RowChange[trail.Evacuation]{ID: next(), Row: trail.Evacuation{
				RequesterClass: r, Outcome: o, Node: nodeName(i), MarkedAt: start.Add(-time.Minute), EndedAt: start,
			}})
		}
	}
	var phases []trail.PhaseTime
	for i, p := range trail.Phases() {
		phases = append(phases, trail.PhaseTime{Phase: p, At: start.Add(time.Duration(i) * time.Second)})
	}
	for _, t := range trail.Triggers() {
		for _, o := range []trail.Outcome{trail.OutcomeSucceeded, trail.OutcomeFailed, trail.OutcomeAborted} {
			n.Migrations = append(n.Migrations, trail.RowChange[trail.Migration]{ID: next(), Row: trail.Migration{
				Trigger: t, Outcome: o, CreatedAt: start.Add(-time.Minute), SchedulingAt: start.Add(-time.Second), FinishedAt: start, Phases: phases, FailureClass: trail.FailureDataPlane,
			}})
		}
	}
	for i := range bigNodes { // the descheduler holds VMs back on a tenth of the nodes, in two namespaces each
		if i%10 == 0 {
			for _, namespace := range []string{"shop", "bank"} {
				n.Facts = append(n.Facts, trail.Fact{
					Kind: trail.KindBlocksObserved, Reason: trail.ReasonCooldown, Node: nodeName(i), Namespace: namespace, OccurredAt: start,
					ObservedAt: start, Detail: &trail.BlocksDetail{Reason: "cooldown", Increase: 1},
				})
			}
		}
	}
	n.Decisions = append(n.Decisions, trail.RowChange[trail.Decision]{ID: next(), Row: trail.Decision{
		Layer: trail.LayerCooldown, Verdict: trail.VerdictHolds, Reason: trail.DecidedCompleted, Origin: trail.OriginDerived, Effective: trail.Span(time.Hour),
	}})
	return n
}

// bigState is a cluster in which some VMs are in every state that has series of its own.
func bigState(exceptional int) trail.State {
	total, perNode := int64(5), int64(2)
	rows := trail.StateRows{
		Guests: map[string]int{}, Loops: map[trail.LoopPlace]int{}, FailingHour: map[trail.FailureClass]int{}, FailingDay: map[trail.FailureClass]int{},
	}
	for i := range bigNodes {
		rows.Guests[nodeName(i)] = bigVMs / bigNodes
	}
	for i := range exceptional {
		node, vmi := nodeName(i%bigNodes), fmt.Sprintf("vm-%05d", i)
		rows.Evacuations = append(rows.Evacuations, trail.Evacuation{
			Namespace: "shop", VMI: vmi, Node: node, Strategy: "LiveMigrate", MarkedAt: start, RequesterClass: trail.RequesterDescheduler,
			Attempts: 3, FailedAttempts: 2, InProgress: "true", NextRetryAt: start.Add(time.Minute),
		})
		rows.Moves = append(rows.Moves, trail.VMCount{Namespace: "shop", VMI: vmi, Trigger: trail.TriggerDescheduler, Count: 4})
		rows.Repeated = append(rows.Repeated, trail.LoopCount{Namespace: "shop", VMI: vmi, Kind: trail.LoopRepeatedFailures, Count: 5})
		rows.Cooling = append(rows.Cooling, trail.Cooling{Namespace: "shop", VMI: vmi, Node: node, Base: time.Minute, Effective: time.Hour, Until: start.Add(time.Hour)})
		rows.Blocked = append(rows.Blocked, trail.DrainBlocked{Namespace: "shop", VMI: vmi, Node: node, Blocker: trail.BlockerFailing})
		for k, to := range []string{"a", "b", "a"} {
			rows.Moved = append(rows.Moved, trail.Migration{
				Namespace: "shop", VMI: vmi, Trigger: trail.TriggerDescheduler, SourceNode: []string{"b", "a", "b"}[k], TargetNode: to,
				FinishedAt: start.Add(time.Duration(k-4) * time.Minute),
			})
		}
	}
	rows.Migrations = []trail.Migration{{WaitReason: trail.WaitQuota, CreatedAt: start}, {SchedulingAt: start, SourceNode: nodeName(0), TargetNode: nodeName(1)}}
	for i := range min(exceptional, 20) {
		rows.Drains = append(rows.Drains, trail.Drain{Node: nodeName(i), StartedAt: start})
		rows.Loops[trail.LoopPlace{Kind: trail.LoopDualRetry, Node: nodeName(i)}] = 1
	}
	s := trail.NewState(rows, trail.NewEnv(nil), start)
	s.KubeVirt.Version = "v1.9.0"
	s.Policy = &trail.DeschedulerSettings{LimitTotal: &total, LimitPerNode: &perNode, Cooldown: &trail.CooldownSettings{}}
	s.Descheduler = &trail.DeschedulerDetail{Version: "v0.35.0", Plugin: true}
	return s
}

// countSeries counts the lines of a scrape: what a Prometheus that keeps classic buckets would store.
func countSeries(t *testing.T, reg *prometheus.Registry) int {
	t.Helper()
	w := httptest.NewRecorder()
	newScrapeHandler(reg).ServeHTTP(w, newScrapeRequest())
	n := 0
	for line := range strings.Lines(w.Body.String()) {
		if !strings.HasPrefix(line, "#") {
			n++
		}
	}
	return n
}

func newScrapeHandler(reg *prometheus.Registry) http.Handler {
	return promhttp.HandlerFor(reg, promhttp.HandlerOpts{EnableOpenMetrics: true, DisableCompression: true})
}

func newScrapeRequest() *http.Request {
	r := httptest.NewRequest(http.MethodGet, "/metrics", nil)
	r.Header.Set("Accept", "application/openmetrics-text;version=1.0.0")
	return r
}

func TestSeriesOfALargeCluster(t *testing.T) {
	t.Parallel()
	n := countSeries(t, bigCluster(bigState(200)))
	t.Logf("%d nodes, %d VMs, 200 in every exceptional state: %d series", bigNodes, bigVMs, n)
	require.Less(t, n, budget)
}

func TestSeriesWhereEveryVMIsMarked(t *testing.T) {
	t.Parallel()
	s := bigState(bigVMs)
	s.Moves, s.Returns, s.Repeated, s.Cooling, s.DrainBlocked = nil, nil, nil, nil, nil
	n := countSeries(t, bigCluster(s))
	t.Logf("%d nodes, %d VMs, all marked: %d series", bigNodes, bigVMs, n)
	require.Less(t, n, hostile)
}

func TestSeriesOfSingleVMsAreCapped(t *testing.T) {
	t.Parallel()
	reg := bigCluster(bigState(bigVMs))
	for _, m := range metrics.Catalogue() {
		if m.PerVM {
			shown, err := testutil.GatherAndCount(reg, m.Name)
			require.NoError(t, err)
			require.Equal(t, metrics.DefaultMaxVMSeries, shown, m.Name)
		}
	}
	families, err := reg.Gather()
	require.NoError(t, err)
	for _, f := range families {
		if f.GetName() == metrics.SeriesDroppedTotal {
			for _, s := range f.Metric {
				require.InDelta(t, bigVMs-metrics.DefaultMaxVMSeries, s.GetCounter().GetValue(), 0, "what is left out is counted: %s", s)
			}
		}
	}
}

// BenchmarkScrape scrapes a large cluster with 200 exceptional VMs. Beside what each scrape allocates it reports what the very
// first one did.
func BenchmarkScrape(b *testing.B) {
	h := newScrapeHandler(bigCluster(bigState(200)))
	size := 0
	once := func() {
		w := &httptest.ResponseRecorder{Body: new(bytes.Buffer)}
		h.ServeHTTP(w, newScrapeRequest())
		size = w.Body.Len()
	}
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	once()
	runtime.ReadMemStats(&after)
	b.ReportAllocs()
	for b.Loop() {
		once()
	}
	b.ReportMetric(float64(after.TotalAlloc-before.TotalAlloc), "first-B/op")
	b.ReportMetric(float64(size), "B/scrape")
}

// BenchmarkSetState makes the gauges of a large cluster, as every 10 s.
func BenchmarkSetState(b *testing.B) {
	m := metrics.New(prometheus.NewRegistry())
	s := bigState(200)
	b.ReportAllocs()
	for b.Loop() {
		m.SetState(s)
	}
}
