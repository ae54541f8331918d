package recording

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

// diary is a collector that writes down what a player does to it.
type diary []string

func (d *diary) note(format string, args ...any) { *d = append(*d, fmt.Sprintf(format, args...)) }

func (d *diary) hooks() Hooks {
	return Hooks{
		Clock:   func(at time.Time) { d.note("clock %s", at.Format("05")) },
		Watched: func(resource string) bool { return resource == "nodes" },
		Taken: func(_ context.Context, resource, version string) error {
			d.note("taken %s %s", resource, version)
			return nil
		},
	}
}

func played(t *testing.T, steps ...string) (*Recording, *Server) {
	t.Helper()
	rec, err := Open(zipped(t, lines(steps...)...), "rec", nil)
	require.NoError(t, err)
	return rec, NewServer(rec, ServerOptions{})
}

func TestPlayGoesLineByLine(t *testing.T) {
	t.Parallel()
	all := lines("SYNC a 7", "SYNC b 7", "ADDED p 8", "WATCH_CLOSED", "DELETED a 9")
	all[2] = strings.Replace(all[2], `"nodes"`, `"pods"`, 1)
	rec, err := Open(zipped(t, all...), "rec", nil)
	require.NoError(t, err)
	var d diary
	hooks := d.hooks()
	hooks.Progress = func(done, total int) { d.note("%d of %d", done, total) }
	require.NoError(t, Play(t.Context(), rec, NewServer(rec, ServerOptions{}), hooks))
	require.Equal(t, diary{
		"clock 00", "1 of 5",
		"clock 01", "taken nodes 7", "2 of 5",
		"clock 02", "3 of 5", // pods are not watched
		"clock 03", "4 of 5",
		"clock 04", "taken nodes 9", "5 of 5",
	}, d)
}

func TestPlayHoldsTheClockUntilTheLineIsTaken(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		rec, server := played(t, "SYNC_EMPTY 7", "ADDED a 8")
		var d diary
		hooks, taken, done := d.hooks(), make(chan struct{}), make(chan error, 1)
		hooks.Taken = func(context.Context, string, string) error { <-taken; return nil }
		go func() { done <- Play(t.Context(), rec, server, hooks) }()
		for _, want := range []diary{{"clock 00"}, {"clock 00", "clock 01"}} {
			synctest.Wait()
			require.Equal(t, want, d)
			require.Empty(t, done)
			taken <- struct{}{}
		}
		require.NoError(t, <-done)
	})
}

func TestPlaySpeed(t *testing.T) {
	t.Parallel()
	for speed, want := range map[float64]time.Duration{0: 0, 0.5: 4 * time.Second, 1: 2 * time.Second, 10: 200 * time.Millisecond} {
		t.Run(fmt.Sprint(speed), func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				rec, server := played(t, "SYNC_EMPTY 7", "ADDED a 8", "DELETED a 9")
				hooks := new(diary).hooks()
				hooks.Speed = speed
				began := time.Now()
				require.NoError(t, Play(t.Context(), rec, server, hooks))
				require.Equal(t, want, time.Since(began))
			})
		})
	}
}

func TestPlayStopsInItsSleep(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		rec, server := played(t, "SYNC_EMPTY 7", "ADDED a 8")
		hooks := new(diary).hooks()
		hooks.Speed = 1
		ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
		defer cancel()
		err := Play(ctx, rec, server, hooks)
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.ErrorContains(t, err, "play rec: line 2: ")
	})
}
