package main

import (
	"bufio"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/evictrail/evictrail/store"
	"github.com/evictrail/evictrail/store/storetest"
)

// BenchmarkAuditImport imports audit logs of two lengths, 30 % of whose lines repeat others: what it holds in memory is
// the same for both. Reading and storing is measured apart from deriving, which comes after.
func BenchmarkAuditImport(b *testing.B) {
	for _, lines := range []int{50_000, 200_000} {
		b.Run(fmt.Sprintf("lines=%d", lines), func(b *testing.B) {
			log := filepath.Join(b.TempDir(), "audit.log")
			writeAuditLog(b, log, lines)
			for b.Loop() {
				b.StopTimer()
				s, err := store.Open(b.Context(), storetest.NewURL(b), "")
				require.NoError(b, err)
				peak := watchHeap()
				b.StartTimer()
				require.NoError(b, importer{store: s, cluster: "c1", out: io.Discard, progress: io.Discard}.importFiles(b.Context(), []string{log}, nil))
				b.StopTimer()
				b.ReportMetric(float64(peak())/1e6, "peak-MB")
				s.Close()
				b.StartTimer()
			}
			b.ReportMetric(float64(lines)*float64(b.N)/b.Elapsed().Seconds(), "lines/s")
		})
	}
}

// writeAuditLog writes an audit log as a drained cluster's: most of it polls of evictions, on a tenth as many pods as
// a hundredth of its lines, the rest changes of nodes, migrations by users, and what is none of ours.
func writeAuditLog(b *testing.B, path string, lines int) {
	b.Helper()
	file, err := os.Create(path)
	require.NoError(b, err)
	w := bufio.NewWriter(file)
	r := rand.New(rand.NewPCG(1, 1))
	at := time.Now().Add(-60 * 24 * time.Hour).UTC()
	var recent []string
	for i := range lines {
		if len(recent) > 0 && r.IntN(10) < 3 {
			_, _ = w.WriteString(recent[r.IntN(len(recent))])
			continue
		}
		at = at.Add(time.Duration(r.IntN(10_000)) * time.Millisecond)
		line := auditLine(r, i, at)
		_, _ = w.WriteString(line)
		if recent = append(recent, line); len(recent) > 2000 {
			recent = recent[1:]
		}
	}
	require.NoError(b, w.Flush())
	require.NoError(b, file.Close())
}

func auditLine(r *rand.Rand, i int, at time.Time) string {
	vm, kind := r.IntN(5000), r.IntN(10)
	verb, object, code, message := "create", fmt.Sprintf(`"resource":"pods","namespace":"team-%d","name":"virt-launcher-vm-%d-abcde","subresource":"eviction"`, vm%40, vm), 429,
		fmt.Sprintf(`admission webhook denied the request: Evacuation in progress: Eviction triggered evacuation of VMI \"team-%d/vm-%d\"`, vm%40, vm)
	switch kind {
	case 7:
		object, code, message = fmt.Sprintf(`"resource":"virtualmachineinstancemigrations","apiGroup":"kubevirt.io","namespace":"team-%d","name":"m-%d"`, vm%40, vm), 201, ""
	case 8:
		verb, object, code, message = "patch", fmt.Sprintf(`"resource":"nodes","name":"worker-%d"`, vm%50), 200, ""
	case 9:
		verb, object, code, message = "get", `"resource":"pods","namespace":"team-1"`, 200, ""
	}
	return fmt.Sprintf(`{"kind":"Event","apiVersion":"audit.k8s.io/v1","level":"Metadata","auditID":"%08x-7cc6-47d4-ad93-a543bf93ee6e","stage":"ResponseComplete","requestURI":"/api/v1","verb":"%s",`+
		`"user":{"username":"kubernetes-admin","groups":["system:masters","system:authenticated"]},"sourceIPs":["10.0.0.1"],"userAgent":"kubectl/v1.35.4 (linux/amd64) kubernetes/abcdef0",`+
		`"objectRef":{%s},"responseStatus":{"metadata":{},"message":"%s","code":%d},"requestReceivedTimestamp":"%s","stageTimestamp":"%s","annotations":{"authorization.k8s.io/decision":"allow"}}`+"\n",
		i, verb, object, message, code, at.Format(time.RFC3339Nano), at.Add(30*time.Millisecond).Format(time.RFC3339Nano))
}

// watchHeap samples the memory in use until the function that it returns is called, which returns the most.
func watchHeap() func() uint64 {
	var most atomic.Uint64
	stop, done := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		tick := time.NewTicker(20 * time.Millisecond)
		defer tick.Stop()
		for {
			var m runtime.MemStats
			runtime.ReadMemStats(&m)
			most.Store(max(most.Load(), m.HeapInuse))
			select {
			case <-tick.C:
			case <-stop:
				return
			}
		}
	}()
	return func() uint64 {
		close(stop)
		<-done
		return most.Load()
	}
}
