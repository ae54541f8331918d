package spool

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/evictrail/evictrail/trail"
)

// onSmallDisk makes the test binary run smallDisk, in a file system namespace of its own.
const onSmallDisk = "EVICTRAIL_TEST_SPOOL_DISK"

// TestSmallDisk fills a real file system, makes it read-only, and frees its room again.
func TestSmallDisk(t *testing.T) {
	t.Parallel()
	self, err := os.Executable()
	require.NoError(t, err)
	cmd := exec.CommandContext(t.Context(), self)
	cmd.Env = append(os.Environ(), onSmallDisk+"="+t.TempDir())
	cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWNS}
	if os.Geteuid() != 0 { // who is not root may mount in a user namespace of their own
		cmd.SysProcAttr.Cloneflags |= syscall.CLONE_NEWUSER
		cmd.SysProcAttr.UidMappings = []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Geteuid(), Size: 1}}
		cmd.SysProcAttr.GidMappings = []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getegid(), Size: 1}}
	}
	out, err := cmd.CombinedOutput()
	require.NoError(t, err, "%s", out)
	t.Log(string(out))
}

// smallDisk is the process of TestSmallDisk.
func smallDisk() int {
	if err := fillDisk(os.Getenv(onSmallDisk)); err != nil {
		fmt.Println(err)
		return 1
	}
	return 0
}

func fillDisk(dir string) error {
	if err := syscall.Mount("", "/", "", syscall.MS_PRIVATE|syscall.MS_REC, ""); err != nil {
		return fmt.Errorf("keep mounts to ourselves: %w", err)
	}
	if err := syscall.Mount("tmpfs", dir, "tmpfs", 0, "size=2m"); err != nil {
		return fmt.Errorf("mount: %w", err)
	}
	log := &logged{}
	lost := 0
	s, err := Open(Options{
		Dir: dir, Cluster: "c1", Size: 1 << 30, Log: slog.New(slog.NewTextHandler(log, nil)), Clock: time.Now,
		Lost: func(_ trail.Kind, _ Cause, n int) { lost += n },
	})
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	next, kept := 0, 0
	for s.Condition().Problem == nil { // until the disk is full
		facts := makePlacementFacts(next, 200)
		next += len(facts)
		taken := make(chan error, 1)
		go func() { taken <- s.Append(ctx, facts) }()
		for done := false; !done; {
			select {
			case err := <-taken:
				if err != nil {
					return err
				}
				kept, done = next, true
			default:
				if s.Condition().Problem == nil {
					continue
				}
				// The database is there: what lies on the disk is drained first, then the facts that found no room on it.
				n, err := drainOf(ctx, s, next)
				if err != nil {
					return err
				}
				if err := <-taken; err != nil {
					return err
				}
				if n != next {
					return fmt.Errorf("%d of %d facts came out, %d were on the disk", n, next, kept)
				}
				done = true
			}
		}
	}
	said := log.String()
	if !strings.Contains(said, "no space left on device") || strings.Count(said, "spool cannot be written") != 1 || lost != 0 {
		return fmt.Errorf("%d lost, said: %s", lost, said)
	}
	if n := s.Condition().Facts; n != 0 {
		return fmt.Errorf("%d facts still wait", n)
	}
	if err := syscall.Mount("tmpfs", dir, "tmpfs", syscall.MS_REMOUNT, "size=8m"); err != nil {
		return err
	}
	s.retryAt = time.Time{}
	if err := s.Append(ctx, makePlacementFacts(next, 100)); err != nil {
		return err
	}
	if c := s.Condition(); c.Problem != nil || c.Facts != 100 || !strings.Contains(log.String(), "spool works again") {
		return fmt.Errorf("with room again: %+v, said: %s", c, log.String())
	}
	return readOnlyDisk(ctx, s, dir, next)
}

// readOnlyDisk makes the disk read-only: what waits on it is drained, what comes goes straight through.
func readOnlyDisk(ctx context.Context, s *Spool, dir string, next int) error {
	if err := s.Close(); err != nil {
		return err
	}
	if err := syscall.Mount("tmpfs", dir, "tmpfs", syscall.MS_REMOUNT|syscall.MS_RDONLY, ""); err != nil {
		return err
	}
	log := &logged{}
	s, err := Open(Options{Dir: dir, Cluster: "c1", Size: 1 << 30, Log: slog.New(slog.NewTextHandler(log, nil)), Clock: time.Now})
	if err != nil {
		return err
	}
	if c := s.Condition(); c.Facts != 100 || c.Problem == nil || !strings.Contains(log.String(), "name a directory that can be written with --spool-dir") {
		return fmt.Errorf("read-only: %+v, said: %s", c, log.String())
	}
	taken := make(chan error, 1)
	go func() { taken <- s.Append(ctx, makePlacementFacts(next+100, 10)) }()
	if n, err := drainOf(ctx, s, 110); err != nil || n != 110 {
		return fmt.Errorf("read-only: %d facts came out: %w", n, err)
	}
	return <-taken
}

// drainOf stores until so many facts came out.
func drainOf(ctx context.Context, s *Spool, want int) (n int, err error) {
	seen := map[trail.FactID]bool{}
	for len(seen) < want {
		facts, _, err := s.Next(ctx)
		if err != nil {
			return len(seen), err
		}
		for _, f := range facts {
			seen[f.ID] = true
		}
		s.Confirm()
	}
	return len(seen), nil
}

// TestFailingDisk fails commits as a failing disk does, with a database that is there and one that is away.
func TestFailingDisk(t *testing.T) {
	t.Parallel()
	r := openRig(t, t.TempDir(), 1<<30)
	r.appendFacts(t, makePlacementFacts(0, 10))
	r.journal.sync = func(f *os.File) error { return &os.PathError{Op: "sync", Path: f.Name(), Err: syscall.EIO} }
	ctx, cancel := context.WithCancel(t.Context())
	away := make(chan error, 1)
	go func() { away <- r.Append(ctx, makePlacementFacts(10, 5)) }()
	require.Eventually(t, func() bool { return r.Condition().Facts == 15 }, 2*time.Minute, time.Millisecond, "they wait in memory")
	require.ErrorIs(t, r.Condition().Problem, syscall.EIO)
	r.AppendSign(start, nil)
	cancel()
	require.ErrorIs(t, <-away, context.Canceled, "the database is away, and somebody stops us: they were not kept")

	there := make(chan error, 1)
	go func() { there <- r.Append(t.Context(), makePlacementFacts(10, 5)) }()
	require.Eventually(t, func() bool { return r.Condition().Facts == 15 }, 2*time.Minute, time.Millisecond)
	var got []trail.Fact
	for len(got) < 15 {
		facts, _, err := r.Next(t.Context())
		require.NoError(t, err)
		got = append(got, facts...)
		r.Confirm()
	}
	require.NoError(t, <-there)
	require.Equal(t, makePlacementFacts(0, 15), got)
	_, sign, err := r.Next(t.Context())
	require.NoError(t, err)
	require.Equal(t, start, sign.At, "behind the facts")
	r.Confirm()
	require.Equal(t, 1, strings.Count(r.log.String(), "the disk is failing"), r.log)

	r.mu.Lock()
	r.journal.sync, r.retryAt = (*os.File).Sync, time.Time{}
	r.mu.Unlock()
	r.appendFacts(t, makePlacementFacts(15, 1))
	require.NoError(t, r.Condition().Problem)
	got, _ = r.drainAll(t)
	require.Equal(t, makePlacementFacts(15, 1), got, "what was stored during that time is not given again")
}

// TestNoDirectory begins where no directory can be made, and goes on when one can.
func TestNoDirectory(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "spool")
	require.NoError(t, os.WriteFile(dir, nil, 0o600))
	r := openRig(t, dir, 1<<30)
	require.Error(t, r.Condition().Problem)
	require.NoError(t, os.Remove(dir))
	r.retryAt = time.Time{}
	r.appendFacts(t, makePlacementFacts(0, 1))
	require.NoError(t, r.Condition().Problem)
	facts, _ := r.drainAll(t)
	require.Len(t, facts, 1)
}
