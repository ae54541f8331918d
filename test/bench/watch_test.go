package bench_test

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"runtime"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	jsonv2 "github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/dynamic/dynamicinformer"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"

	"github.com/evictrail/evictrail/collector"
	"github.com/evictrail/evictrail/metrics"
	"github.com/evictrail/evictrail/trail"
	"github.com/evictrail/evictrail/trail/tracker"
)

// spent is what something cost.
type spent struct{ wall, cpu, bytes float64 } // ns, ns of all threads, bytes allocated

// measureCost returns what run costs, without what it leaves to be collected.
func measureCost(run func()) spent {
	runtime.GC()
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	cpu, wall := cpuTime(), time.Now()
	run()
	took, used := time.Since(wall), cpuTime()-cpu
	runtime.ReadMemStats(&after)
	return spent{float64(took), float64(used), float64(after.TotalAlloc - before.TotalAlloc)}
}

// cpuTime is what this process has used so far.
func cpuTime() time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		panic(err) // it takes no argument of ours
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// TestDecodeAndFold has a watch of VMIs deliver changes, one in ten of which says something new: to a collector, from the stream to facts;
// to a dynamic informer, from the stream to a handler that does nothing; and to a decoder of slim structs that keeps nothing.
func TestDecodeAndFold(t *testing.T) { //nolint:paralleltest // what runs beside it would be measured, too
	for _, objects := range listSizes(1000) {
		changes := 4000 * min(*size, 10)
		var ours, informers, decoders []spent
		for range *rounds {
			ours = append(ours, watchCollector(t, newWatched(t, objects, changes)))
			if objects <= 10_000 { // an informer needs some 80 kB for each
				informers = append(informers, watchInformer(t, newWatched(t, objects, changes)))
			}
			decoders = append(decoders, watchSlim(t, newWatched(t, objects, changes)))
		}
		for _, by := range []struct {
			unit string
			of   func(spent) float64
		}{
			{"ns CPU", func(s spent) float64 { return s.cpu }}, {"ns", func(s spent) float64 { return s.wall }}, {"B", func(s spent) float64 { return s.bytes }},
		} {
			of := func(s spent) float64 { return by.of(s) / float64(changes) }
			what := fmt.Sprintf("decode and fold a change of one of %d VMIs", objects)
			addRows(row{what, by.unit, collectFigures(ours, of), "dynamic informer", collectFigures(informers, of)}, row{what, by.unit, collectFigures(ours, of), "slim json v2 alone", collectFigures(decoders, of)})
		}
	}
}

// listSizes returns 1, 10 and 100 times a size, as far as is asked for.
func listSizes(base int) []int {
	var out []int
	for n := 1; n <= *size; n *= 10 {
		out = append(out, n*base)
	}
	return out
}

// newWatched makes an API server whose VMIs change.
func newWatched(tb testing.TB, objects, changes int) *apiServer {
	tb.Helper()
	s := newAPIServer(tb, map[string]int{vmis: objects})
	s.change, s.changes, s.telling = vmis, changes, 10
	return s
}

func watchCollector(tb testing.TB, s *apiServer) spent {
	tb.Helper()
	ctx, cancel := context.WithCancel(tb.Context())
	c, done := startCollector(ctx, tb, s, discard{})
	require.NoError(tb, c.Taken(ctx, vmis, fmt.Sprint(listVersion)))
	require.NoError(tb, c.Flush(ctx))
	cost := measureCost(func() {
		close(s.begin)
		<-s.drained
		require.NoError(tb, c.Taken(ctx, vmis, s.lastVersion()))
		require.NoError(tb, c.Flush(ctx))
	})
	cancel()
	require.NoError(tb, <-done)
	return cost
}

func utcNow() time.Time { return time.Now().UTC() }

// startCollector runs a collector.
func startCollector(ctx context.Context, tb testing.TB, transport http.RoundTripper, sink collector.Sink) (*collector.Collector, chan error) {
	tb.Helper()
	c, err := collector.New(collector.Config{
		REST: &rest.Config{Host: "http://apiserver", Transport: transport}, Tracker: tracker.New("bench"), Sink: sink, Log: slog.New(slog.DiscardHandler),
		Metrics: metrics.New(prometheus.NewRegistry()), Clock: utcNow,
	})
	require.NoError(tb, err)
	done := make(chan error, 1)
	go func() { done <- c.Run(ctx) }()
	return c, done
}

// discard is a Sink that keeps nothing.
type discard struct{}

func (discard) Append(context.Context, []trail.Fact) (trail.News, error) { return trail.News{}, nil }
func (discard) Probe(_ context.Context, cause error) error               { return cause }
func (discard) Alive(context.Context, time.Time, []trail.Watching) error { return nil }

// groupVersions has the group and version of each resource.
var groupVersions = map[string]schema.GroupVersion{
	vmis: {Group: "kubevirt.io", Version: "v1"}, migrations: {Group: "kubevirt.io", Version: "v1"}, pods: {Version: "v1"},
}

// startInformer runs a dynamic informer and returns it once it has the objects, with what counts the changes that its handler got.
func startInformer(ctx context.Context, tb testing.TB, transport http.RoundTripper, resource string) (cache.SharedIndexInformer, *atomic.Int64) {
	tb.Helper()
	client, err := dynamic.NewForConfig(&rest.Config{Host: "http://apiserver", Transport: transport, QPS: -1})
	require.NoError(tb, err)
	informer := dynamicinformer.NewFilteredDynamicInformer(client, groupVersions[resource].WithResource(resource), "", 0, cache.Indexers{}, nil).Informer()
	var got atomic.Int64
	_, err = informer.AddEventHandler(cache.ResourceEventHandlerFuncs{UpdateFunc: func(any, any) { got.Add(1) }})
	require.NoError(tb, err)
	go informer.RunWithContext(ctx)
	require.True(tb, cache.WaitForCacheSync(ctx.Done(), informer.HasSynced))
	return informer, &got
}

func watchInformer(tb testing.TB, s *apiServer) spent {
	tb.Helper()
	ctx, cancel := context.WithCancel(tb.Context())
	defer cancel()
	_, got := startInformer(ctx, tb, s, vmis)
	return measureCost(func() {
		close(s.begin)
		<-s.drained
		for got.Load() < int64(s.changes) {
			time.Sleep(time.Millisecond)
		}
	})
}

// slimVMI is a VMI of which only as much is decoded as evictrail reads.
type slimVMI struct {
	Metadata struct {
		Name              string            `json:"name"`
		Namespace         string            `json:"namespace"`
		UID               string            `json:"uid"`
		ResourceVersion   string            `json:"resourceVersion"`
		CreationTimestamp time.Time         `json:"creationTimestamp"`
		Annotations       map[string]string `json:"annotations"`
	} `json:"metadata"`
	Spec struct {
		EvictionStrategy string `json:"evictionStrategy"`
	} `json:"spec"`
	Status struct {
		NodeName           string `json:"nodeName"`
		Phase              string `json:"phase"`
		EvacuationNodeName string `json:"evacuationNodeName"`
		Conditions         []struct {
			Type               string    `json:"type"`
			Status             string    `json:"status"`
			Reason             string    `json:"reason"`
			Message            string    `json:"message"`
			LastTransitionTime time.Time `json:"lastTransitionTime"`
		} `json:"conditions"`
		PhaseTransitionTimestamps []struct {
			Phase string    `json:"phase"`
			At    time.Time `json:"phaseTransitionTimestamp"`
		} `json:"phaseTransitionTimestamps"`
		MigrationState *struct {
			MigrationUID   string    `json:"migrationUid"`
			SourceNode     string    `json:"sourceNode"`
			TargetNode     string    `json:"targetNode"`
			StartTimestamp time.Time `json:"startTimestamp"`
			EndTimestamp   time.Time `json:"endTimestamp"`
			Failed         bool      `json:"failed"`
			FailureReason  string    `json:"failureReason"`
		} `json:"migrationState"`
	} `json:"status"`
}

func watchSlim(tb testing.TB, s *apiServer) spent {
	tb.Helper()
	request, err := http.NewRequestWithContext(tb.Context(), http.MethodGet, "http://apiserver/"+vmis+"?watch=true", http.NoBody)
	require.NoError(tb, err)
	response, err := s.RoundTrip(request)
	require.NoError(tb, err)
	defer func() { _ = response.Body.Close() }()
	d := jsontext.NewDecoder(response.Body)
	next := func() error {
		var event struct {
			Type   string  `json:"type"`
			Object slimVMI `json:"object"`
		}
		return jsonv2.UnmarshalDecode(d, &event)
	}
	for range s.objects[vmis] + 1 {
		require.NoError(tb, next())
	}
	return measureCost(func() {
		close(s.begin)
		for range s.changes {
			require.NoError(tb, next())
		}
	})
}
