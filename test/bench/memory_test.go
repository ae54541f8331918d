package bench_test

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"runtime"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// TestMemory has a collector, and a dynamic informer for each of its resources, hold VMIs, as many migrations and as many launcher pods,
// each in a process of its own: what of that is retained, what is resident once all is listed, and what was at most.
func TestMemory(t *testing.T) { //nolint:paralleltest // what runs beside it would be measured, too
	for _, objects := range listSizes(1000) {
		var ours, theirs []held
		for range *rounds {
			ours = append(ours, holdApart(t, "collector", objects))
			if objects <= 10_000 { // a hundred thousand of each would need 20 GB
				theirs = append(theirs, holdApart(t, "informer", objects))
			}
		}
		what := fmt.Sprintf("%d VMIs, migrations and pods: ", objects)
		for _, by := range []struct {
			what, unit string
			of         func(held) float64
		}{
			{"retained for each three", "B", func(h held) float64 { return h.heap / float64(objects) }},
			{"resident", "MB", func(h held) float64 { return h.resident / 1e6 }},
			{"resident at most", "MB", func(h held) float64 { return h.peak / 1e6 }},
		} {
			addRows(row{what + by.what, by.unit, collectFigures(ours, by.of), "dynamic informer", collectFigures(theirs, by.of)})
		}
		addRows(row{what + "listed after", "s", collectFigures(ours, func(h held) float64 { return h.listed }), "dynamic informer", collectFigures(theirs, func(h held) float64 { return h.listed })})
	}
}

// collectFigures returns a figure of each round; nil of none.
func collectFigures[T any](all []T, of func(T) float64) []float64 {
	var out []float64
	for _, one := range all {
		out = append(out, of(one))
	}
	return out
}

// held is what a process holds, in bytes, and how long it listed, in seconds.
type held struct{ heap, resident, peak, listed float64 }

var heldLine = regexp.MustCompile(`held (\d+) (\d+) (\d+) ([\d.]+)`)

// holdApart runs TestHold in a process of its own.
func holdApart(tb testing.TB, who string, objects int) held {
	tb.Helper()
	out, err := exec.CommandContext(tb.Context(), os.Args[0], "-test.run=^TestHold$", "-test.v", "-bench.hold="+who, "-bench.objects="+strconv.Itoa(objects)).CombinedOutput()
	require.NoError(tb, err, string(out))
	m := heldLine.FindStringSubmatch(string(out))
	require.NotNil(tb, m, string(out))
	var n [4]float64
	for i := range n {
		n[i], err = strconv.ParseFloat(m[i+1], 64)
		require.NoError(tb, err)
	}
	return held{n[0], n[1], n[2], n[3]}
}

// TestLeading has a leader take in a cluster and 200 changes a second, in a process of its own: what is resident at most.
func TestLeading(t *testing.T) { //nolint:paralleltest // what runs beside it would be measured, too
	objects := 100 * *size
	var most []float64
	for range *rounds {
		most = append(most, holdApart(t, "leader", objects).peak/1e6)
	}
	addRows(row{what: fmt.Sprintf("leader of %d VMIs, 200 changes a second: resident at most", objects), unit: "MB", ours: most})
}

// TestHold lists a cluster once, says what this process then holds, and ends.
func TestHold(t *testing.T) { //nolint:paralleltest // what runs beside it would be measured, too
	before, began := measureHeap(), time.Now()
	ctx, cancel := context.WithCancel(t.Context())
	objects := map[string]int{vmis: *holdObjects, migrations: *holdObjects, pods: *holdObjects}
	s := newAPIServer(t, objects)
	var keep []any
	switch *hold {
	case "collector":
		c, done := startCollector(ctx, t, s, discard{})
		for resource := range objects {
			require.NoError(t, c.Taken(ctx, resource, fmt.Sprint(listVersion)))
		}
		require.NoError(t, c.Flush(ctx))
		keep = append(keep, c)
		defer func() { require.NoError(t, <-done) }()
	case "informer":
		for resource := range objects {
			informer, _ := startInformer(ctx, t, s, resource)
			keep = append(keep, informer)
		}
	case "leader":
		const rate, long = 200, 20
		keep = append(keep, runLeader(t, *holdObjects, rate, rate*long))
	default:
		t.Fatalf("-bench.hold=%s: collector, leader or informer", *hold)
	}
	listed := time.Since(began)
	time.Sleep(2 * time.Second) // what is only garbage may go
	now, most := readResidentMemory(t, "self")
	_, _ = fmt.Fprintf(t.Output(), "held %d %d %d %.3f\n", max(measureHeap(), before)-before, now, most, listed.Seconds())
	runtime.KeepAlive(keep)
	cancel()
}

// measureHeap returns the bytes that are in use.
func measureHeap() uint64 {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

var residentLine = regexp.MustCompile(`(?m)^(VmHWM|VmRSS):\s+(\d+) kB$`)

// readResidentMemory returns the bytes that a process has of the machine's memory, and how many it had at most; elsewhere than on Linux, those that Go has of it in this
// process. What getrusage says begins with the memory of the process that started this one.
func readResidentMemory(tb testing.TB, process string) (now, most uint64) {
	tb.Helper()
	text, err := os.ReadFile("/proc/" + process + "/status")
	if err != nil {
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return m.Sys - m.HeapReleased, m.Sys
	}
	of := map[string]uint64{}
	for _, m := range residentLine.FindAllStringSubmatch(string(text), -1) {
		kilobytes, err := strconv.ParseUint(m[2], 10, 64)
		require.NoError(tb, err)
		of[m[1]] = kilobytes * 1024
	}
	return of["VmRSS"], of["VmHWM"]
}
