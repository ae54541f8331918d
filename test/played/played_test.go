package played_test

import (
	"bytes"
	"context"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/evictrail/evictrail"
	"github.com/evictrail/evictrail/collector/recording"
	"github.com/evictrail/evictrail/store/storetest"
	"github.com/evictrail/evictrail/test/build"
)

const root = "../.."

func TestMain(m *testing.M) { storetest.Main(m) }

// buildProgram returns the path of a program that the tests run: evictrail, prometheus or promtool.
func buildProgram(t *testing.T, name string) string {
	t.Helper()
	of := map[string]func() (string, error){"evictrail": build.Evictrail, "prometheus": build.Prometheus().Build, "promtool": build.Promtool().Build}
	path, err := of[name]()
	require.NoError(t, err, "build %s", name)
	return path
}

// runProgram runs a program and returns what it prints.
func runProgram(t *testing.T, name string, args ...string) string {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), buildProgram(t, name), args...).CombinedOutput()
	require.NoError(t, err, "%s %s\n%s", name, strings.Join(args, " "), out)
	return string(out)
}

// incident is a recording that was played.
type incident struct {
	name     string
	url      string // of its database
	blocks   string // the data directory of a Prometheus with its metrics
	from, to time.Time
}

// listRecordings lists the recordings.
func listRecordings(t *testing.T) []string {
	t.Helper()
	folders, err := fs.ReadDir(evictrail.Recordings(), ".")
	require.NoError(t, err)
	var out []string
	for _, f := range folders {
		if f.IsDir() {
			out = append(out, f.Name())
		}
	}
	require.NotEmpty(t, out)
	return out
}

// playRecording plays a recording into a database and a Prometheus' data directory of its own.
func playRecording(t *testing.T, name string, args ...string) incident {
	t.Helper()
	rec, err := recording.Open(evictrail.Recordings(), name, nil)
	require.NoError(t, err)
	i := incident{name: name, url: storetest.NewURL(t), blocks: t.TempDir(), from: rec.Start().Truncate(time.Millisecond), to: rec.End()}
	text := filepath.Join(t.TempDir(), "metrics.om")
	runProgram(t, "evictrail", append([]string{"play", filepath.Join(root, "testdata/recordings", name), "--database-url", i.url, "--metrics-out", text}, args...)...)
	addScrapeMetrics(t, text, i)
	runProgram(t, "promtool", "tsdb", "create-blocks-from", "openmetrics", text, i.blocks)
	return i
}

// addScrapeMetrics adds to an OpenMetrics file what a Prometheus writes itself when it scrapes.
func addScrapeMetrics(t *testing.T, path string, i incident) {
	t.Helper()
	text, err := os.ReadFile(path)
	require.NoError(t, err)
	var up bytes.Buffer
	up.Write(bytes.TrimSuffix(text, []byte("# EOF\n")))
	up.WriteString("# HELP up Whether the scrape went well.\n# TYPE up gauge\n")
	for at := i.from; !at.After(i.to); at = at.Add(15 * time.Second) {
		_, _ = fmt.Fprintf(&up, "up{instance=\"127.0.0.1:8080\",job=\"evictrail\"} 1 %.3f\n", float64(at.UnixMilli())/1000)
	}
	up.WriteString("# EOF\n")
	require.NoError(t, os.WriteFile(path, up.Bytes(), 0o600))
}

// startProgram runs a program until the test ends, and then ends it.
func startProgram(t *testing.T, name string, args ...string) *lockedBuffer {
	t.Helper()
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	out := &lockedBuffer{}
	cmd := exec.CommandContext(ctx, buildProgram(t, name), args...)
	cmd.Stdout, cmd.Stderr = out, out
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	cmd.WaitDelay = 20 * time.Second
	require.NoError(t, cmd.Start())
	t.Cleanup(func() {
		cancel()
		_ = cmd.Wait()
		if t.Failed() {
			t.Logf("%s:\n%s", name, out)
		}
	})
	return out
}

// lockedBuffer may be written while it is read.
type lockedBuffer struct {
	mu sync.Mutex
	bytes.Buffer
}

func (b *lockedBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.Buffer.Write(p)
}

func (b *lockedBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.Buffer.String()
}
