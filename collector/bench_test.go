package collector

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"testing"
	"time"

	"compress/gzip"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/require"
	"k8s.io/client-go/rest"

	"github.com/evictrail/evictrail"
	"github.com/evictrail/evictrail/metrics"
	"github.com/evictrail/evictrail/trail"
	"github.com/evictrail/evictrail/trail/tracker"
)

// BenchmarkHeld lists a cluster of N VMIs, each with its virt-launcher pod, over HTTP and reports what is held for each
// when all is taken: B/VMI of VMIs alone, B/VMI+pod of both.
func BenchmarkHeld(b *testing.B) {
	for _, n := range []int{10_000, 100_000} {
		for _, pods := range []bool{false, true} {
			name, unit := fmt.Sprintf("%d/VMIs", n), "B/VMI"
			if pods {
				name, unit = fmt.Sprintf("%d/VMIs+pods", n), "B/VMI+pod"
			}
			b.Run(name, func(b *testing.B) {
				for b.Loop() {
					held, took := holdCluster(b, n, pods)
					b.ReportMetric(float64(held)/float64(n), unit)
					b.ReportMetric(float64(n)/took.Seconds(), "VMIs/s")
				}
			})
		}
	}
}

// holdCluster returns the bytes that a collector holds of a cluster and how long the lists took.
func holdCluster(b *testing.B, n int, pods bool) (uint64, time.Duration) {
	b.Helper()
	server := httptest.NewServer(syntheticCluster(b, n, pods))
	defer server.Close()
	before := measureHeap()
	c, err := New(Config{
		REST: &rest.Config{Host: server.URL}, Tracker: tracker.New("bench"), Sink: discard{}, Log: slog.New(slog.DiscardHandler),
		Metrics: metrics.New(prometheus.NewRegistry()), Clock: time.Now,
	})
	require.NoError(b, err)
	ctx, cancel := context.WithCancel(b.Context())
	done := make(chan error, 1)
	start := time.Now()
	go func() { done <- c.Run(ctx) }()
	require.NoError(b, c.Taken(ctx, vmis, "1000000"))
	require.NoError(b, c.Taken(ctx, "pods", "1000000"))
	require.NoError(b, c.Flush(ctx))
	took := time.Since(start)
	after := measureHeap()
	runtime.KeepAlive(c)
	cancel()
	require.NoError(b, <-done)
	return max(after, before) - before, took
}

func measureHeap() uint64 {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

type discard struct{ unprobed }

func (discard) Append(context.Context, []trail.Fact) (trail.News, error) { return trail.News{}, nil }
func (discard) Alive(context.Context, time.Time, []trail.Watching) error { return nil }

// syntheticCluster streams N copies of a recorded VMI and pod with names and UIDs of their own, never holding them.
func syntheticCluster(b *testing.B, n int, pods bool) http.Handler {
	b.Helper()
	templates := recordedObjects(b)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		name := r.URL.Path[strings.LastIndex(r.URL.Path, "/")+1:]
		template, synthetic := templates[name]
		if synthetic && (name == vmis || pods) {
			for i := range n {
				_, _ = io.WriteString(w, `{"type":"ADDED","object":`+strings.NewReplacer("@NAME@", fmt.Sprintf("vm-%d", i),
					"@UID@", fmt.Sprintf("00000000-0000-4000-8000-%012d", i)).Replace(template)+"}\n")
			}
		}
		_, _ = fmt.Fprintln(w, `{"type":"BOOKMARK","object":{"metadata":{"resourceVersion":"1000000","annotations":{"k8s.io/initial-events-end":"true"}}}}`)
		_ = http.NewResponseController(w).Flush()
		<-r.Context().Done()
	})
}

// recordedObjects returns a VMI and a pod of a recording as templates.
func recordedObjects(b *testing.B) map[string]string {
	b.Helper()
	file, err := evictrail.Recordings().Open("b-dual-retry-loop-v1.8/trace.jsonl.gz")
	require.NoError(b, err)
	defer func(f fs.File) { _ = f.Close() }(file)
	z, err := gzip.NewReader(file)
	require.NoError(b, err)
	out := map[string]string{}
	for d := json.NewDecoder(z); d.More(); {
		var l struct {
			Resource string
			Object   json.RawMessage
		}
		require.NoError(b, d.Decode(&l))
		if _, known := out[l.Resource]; known || l.Resource != vmis && l.Resource != "pods" {
			continue
		}
		var o struct{ Metadata struct{ Name, UID string } }
		require.NoError(b, json.Unmarshal(l.Object, &o))
		out[l.Resource] = strings.NewReplacer(o.Metadata.Name, "@NAME@", o.Metadata.UID, "@UID@").Replace(string(l.Object))
	}
	return out
}
