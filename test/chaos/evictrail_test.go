package chaos_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/evictrail/evictrail/test/build"
	"github.com/evictrail/evictrail/test/cluster/kubetest"
	"github.com/evictrail/evictrail/test/ports"
)

// evictrail is the built program, recording a cluster into a database, again after each end.
type evictrail struct {
	t       *testing.T
	program string
	name    string // of the replica
	address string
	args    []string
	dir     string
	runs    int
	held    atomic.Int64 // bytes of memory at most

	*kubetest.Process
}

// newEvictrail returns the program of this source, which is not started yet.
func newEvictrail(t *testing.T, c *cluster, database, name string, args ...string) *evictrail {
	t.Helper()
	program, err := build.Evictrail()
	require.NoError(t, err)
	e := &evictrail{t: t, program: program, name: name, address: ports.Free(t), dir: t.TempDir()}
	e.args = append([]string{
		"run", "--kubeconfig", c.kubeconfig, "--cluster", "c1", "--database-url", database, "--listen", e.address, "--replica", name,
		"--spool-dir=" + filepath.Join(e.dir, "spool"),
	}, args...)
	return e
}

// start starts it.
func (e *evictrail) start() {
	e.t.Helper()
	e.runs++
	e.Process = kubetest.StartProcess(e.t, filepath.Join(e.dir, fmt.Sprintf("%s-%d.log", e.name, e.runs)), e.program, e.args...)
	go e.watchMemory(fmt.Sprintf("/proc/%d/status", e.PID()), e.Ended())
}

// awaitReady waits until it says that it is ready.
func (e *evictrail) awaitReady() {
	e.t.Helper()
	awaitCondition(e.t, 3*time.Minute, "evictrail gets ready", func() bool {
		code, _ := e.get(e.t.Context(), "/readyz")
		return code == http.StatusOK
	})
}

// get asks it; code 0 is that it does not answer.
func (e *evictrail) get(ctx context.Context, path string) (code int, body string) {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+e.address+path, http.NoBody)
	if err != nil {
		return 0, err.Error()
	}
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		return 0, err.Error()
	}
	defer func() { _ = answer.Body.Close() }()
	text, err := io.ReadAll(answer.Body)
	if err != nil {
		return 0, err.Error()
	}
	return answer.StatusCode, string(text)
}

// sumMetric returns the sum of the samples of a metric whose labels contain a text; it waits until evictrail answers.
func (e *evictrail) sumMetric(name, labels string) float64 {
	e.t.Helper()
	return e.sumMetricByLabels(name, labels)[0]
}

// sumMetricByLabels returns for each of some texts the sum of the samples of a metric whose labels contain it, all of the same moment.
func (e *evictrail) sumMetricByLabels(name string, labels ...string) []float64 {
	e.t.Helper()
	sums := make([]float64, len(labels))
	awaitCondition(e.t, 3*time.Minute, "evictrail serves its metrics", func() bool {
		code, text := e.get(e.t.Context(), "/metrics")
		if code != http.StatusOK {
			return false
		}
		clear(sums)
		for lines := bufio.NewScanner(strings.NewReader(text)); lines.Scan(); {
			series, value, _ := strings.Cut(lines.Text(), " ")
			of, rest, _ := strings.Cut(series, "{")
			if of != name {
				continue
			}
			v, err := strconv.ParseFloat(value, 64)
			require.NoError(e.t, err, lines.Text())
			for i, text := range labels {
				if strings.Contains(rest, text) {
					sums[i] += v
				}
			}
		}
		return true
	})
	return sums
}

// peakMemory returns the most memory of its own that it was seen to hold, in bytes.
func (e *evictrail) peakMemory() int64 { return e.held.Load() }

// watchMemory looks at its memory as long as it runs.
func (e *evictrail) watchMemory(status string, ended <-chan struct{}) {
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for {
		text, _ := os.ReadFile(status) // gone when it ends
		for line := range strings.Lines(string(text)) {
			if rest, is := strings.CutPrefix(line, "RssAnon:"); is {
				if kib, err := strconv.ParseInt(strings.Fields(rest)[0], 10, 64); err == nil {
					e.held.Store(max(e.held.Load(), kib<<10))
				}
			}
		}
		select {
		case <-tick.C:
		case <-ended:
			return
		}
	}
}
