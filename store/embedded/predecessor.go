package embedded

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
)

const (
	predecessorPoll = 50 * time.Millisecond
	// predecessorTimeout is how long a server that we signalled to stop may take for its last checkpoint.
	predecessorTimeout = 60 * time.Second
)

// awaitPredecessor returns when no server runs on the data directory. A process that forked one and died has left it
// either on its way out or, where the parent-death signal is not to be had, running: after the grace it is signalled to stop.
func (d *directory) awaitPredecessor(ctx context.Context, log *slog.Logger, grace time.Duration) error {
	pid, err := d.postmasterPID()
	if pid == 0 || err != nil {
		return err
	}
	process, err := os.FindProcess(pid) // before we look at it: the signal then goes to no other process
	if err != nil || !isServer(pid, d.dataPath()) {
		return d.removeStalePID(pid)
	}
	log.Warn("previous server still runs", "pid", pid, "dir", d.dataPath())
	if err := d.awaitEnd(ctx, pid, grace); err == nil || ctx.Err() != nil {
		return err
	}
	log.Warn("stopping previous server", "pid", pid, "dir", d.dataPath())
	if err := process.Signal(syscall.SIGINT); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return fmt.Errorf("stop previous server on %s: process %d: %w", d.dataPath(), pid, err)
	}
	return d.awaitEnd(ctx, pid, predecessorTimeout)
}

// awaitEnd returns when the process is no longer a server on the data directory.
func (d *directory) awaitEnd(ctx context.Context, pid int, limit time.Duration) error {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	for isServer(pid, d.dataPath()) {
		select {
		case <-ctx.Done():
			return fmt.Errorf("wait for the end of the previous server on %s: process %d: %w", d.dataPath(), pid, context.Cause(ctx))
		case <-time.After(predecessorPoll):
		}
	}
	return nil
}

// postmasterPID is what the server's own lock file says, 0 when there is none.
func (d *directory) postmasterPID() (int, error) {
	text, err := os.ReadFile(filepath.Join(d.dataPath(), "postmaster.pid"))
	if errors.Is(err, fs.ErrNotExist) {
		return 0, nil
	}
	if err != nil {
		return 0, fmt.Errorf("look for a previous server: %w", err)
	}
	line, _, _ := strings.Cut(string(text), "\n")
	pid, err := strconv.Atoi(strings.TrimSpace(line))
	if err != nil || pid <= 0 {
		return 0, nil // the server says what is wrong with it
	}
	return pid, nil
}

// removeStalePID removes the server's lock file when its process ID now belongs to some other process, as happens after
// a reboot and in containers, where the few IDs come back: the server would refuse to start as long as that one lives.
// Backends that survived their postmaster keep the server from starting all the same, by its shared memory.
func (d *directory) removeStalePID(pid int) error {
	if !isAlive(pid) {
		return nil // the server sees this by itself
	}
	if err := os.Remove(filepath.Join(d.dataPath(), "postmaster.pid")); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("remove stale lock file: %w", err)
	}
	return nil
}

// isAlive reports whether there is such a process or thread, of whichever user.
func isAlive(pid int) bool {
	return !errors.Is(syscall.Kill(pid, 0), syscall.ESRCH)
}
