package cluster

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"sync"
)

// Host is what kubetest wants of a test, for a program: kubetest.TB. What ends a test is a panic, which Do makes an error.
//
// All that a lab writes is below its folder, and Stop ends all that was started with it.
type Host struct {
	Dir      string
	ctx      context.Context
	cancel   context.CancelFunc
	progress io.Writer

	mu       sync.Mutex
	cleanups []func()
	stopped  bool
}

// failure is why a step cannot go on.
type failure struct{ error }

// NewHost returns a host whose folder is empty or absent; the name "" is a new one among the system's temporary files. Progress is
// what happens, a line a step.
func NewHost(ctx context.Context, dir string, progress io.Writer) (*Host, error) {
	dir, err := prepareDir(dir)
	if err != nil {
		return nil, err
	}
	h := &Host{Dir: dir, progress: progress}
	h.ctx, h.cancel = context.WithCancel(ctx)
	return h, nil
}

// prepareDir returns the absolute path of an empty folder. The data of an earlier lab is refused: its certificates are of no use.
func prepareDir(dir string) (string, error) {
	if dir == "" {
		return os.MkdirTemp("", "evictrail-lab-")
	}
	if err := os.MkdirAll(dir, 0o711); err != nil { //nolint:gosec // for root, Postgres runs as another user and must reach its folder
		return "", err
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		return "", err
	}
	if len(entries) > 0 {
		return "", fmt.Errorf("folder %s: must be empty", dir)
	}
	return filepath.Abs(dir)
}

// Stop ends the context, and then what was started, the last first.
func (h *Host) Stop() {
	h.cancel()
	h.mu.Lock()
	all := h.cleanups
	h.cleanups, h.stopped = nil, true
	h.mu.Unlock()
	for _, f := range slices.Backward(all) {
		f()
	}
}

// Do runs f, and returns its error or why the host cannot go on.
func (h *Host) Do(f func() error) (err error) {
	defer func() {
		if r := recover(); r != nil {
			failed, ours := r.(failure)
			if !ours {
				panic(r)
			}
			err = failed.error
		}
	}()
	return f()
}

// Helper does nothing: a program has no lines of tests.
func (h *Host) Helper() {}

// Context ends when the host stops.
func (h *Host) Context() context.Context { return h.ctx }

// Failed is false: no program says how it ended before it was stopped.
func (h *Host) Failed() bool { return false }

// Logf writes a line of progress.
func (h *Host) Logf(format string, args ...any) { _, _ = fmt.Fprintf(h.progress, format+"\n", args...) }

// Fatal ends what Do runs.
func (h *Host) Fatal(args ...any) { panic(failure{errors.New(fmt.Sprint(args...))}) }

// Fatalf ends what Do runs.
func (h *Host) Fatalf(format string, args ...any) { panic(failure{fmt.Errorf(format, args...)}) }

// TempDir returns a new folder below the host's.
func (h *Host) TempDir() string {
	dir, err := os.MkdirTemp(h.Dir, "cluster-")
	if err != nil {
		h.Fatal(err)
	}
	return dir
}

// Cleanup has f run when the host stops; at once where it has stopped.
func (h *Host) Cleanup(f func()) {
	h.mu.Lock()
	stopped := h.stopped
	if !stopped {
		h.cleanups = append(h.cleanups, f)
	}
	h.mu.Unlock()
	if stopped {
		f()
	}
}
