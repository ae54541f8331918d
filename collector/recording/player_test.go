package recording

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/fstest"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

// diary is a collector that writes down what a player does to it.
type diary []string

func (d *diary) addEntry(format string, args ...any) { *d = append(*d, fmt.Sprintf(format, args...)) }

func (d *diary) newHooks() Hooks {
	return Hooks{
		Clock:   func(at time.Time) { d.addEntry("clock %s", at.Format("05")) },
		Watched: func(resource string) bool { return resource == "nodes" },
		Taken: func(_ context.Context, resource, version string) error {
			d.addEntry("taken %s %s", resource, version)
			return nil
		},
	}
}

func openRecording(t *testing.T, steps ...string) (*Recording, *Server) {
	t.Helper()
	rec, err := Open(zipRecording(t, renderLines(steps...)...), "rec", nil)
	require.NoError(t, err)
	return rec, NewServer(rec, ServerOptions{})
}

func TestPlayGoesLineByLine(t *testing.T) {
	t.Parallel()
	all := renderLines("SYNC a 7", "SYNC b 7", "ADDED p 8", "WATCH_CLOSED", "DELETED a 9")
	all[2] = strings.Replace(all[2], `"nodes"`, `"pods"`, 1)
	rec, err := Open(zipRecording(t, all...), "rec", nil)
	require.NoError(t, err)
	var d diary
	hooks := d.newHooks()
	hooks.Progress = func(done, total int) { d.addEntry("%d of %d", done, total) }
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
		rec, server := openRecording(t, "SYNC_EMPTY 7", "ADDED a 8")
		var d diary
		hooks, taken, done := d.newHooks(), make(chan struct{}), make(chan error, 1)
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
				rec, server := openRecording(t, "SYNC_EMPTY 7", "ADDED a 8", "DELETED a 9")
				hooks := new(diary).newHooks()
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
		rec, server := openRecording(t, "SYNC_EMPTY 7", "ADDED a 8")
		hooks := new(diary).newHooks()
		hooks.Speed = 1
		ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
		defer cancel()
		err := Play(ctx, rec, server, hooks)
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.ErrorContains(t, err, "play rec: line 2: ")
	})
}

// TestPlayScrapesBetweenTheLines reads the metrics when they are due, with the clock at their time, and after the audit
// events that were logged before.
func TestPlayScrapesBetweenTheLines(t *testing.T) {
	t.Parallel()
	fsys := addScrapes(zipRecording(t, renderLines("SYNC_EMPTY 7", "ADDED a 8", "ADDED b 9")...),
		`{"t":"2026-11-21T00:00:01.5Z","target":"descheduler","text":"first"}`,
		`{"t":"2026-11-21T00:00:07Z","target":"descheduler","text":"second"}`)
	fsys["rec/audit.jsonl"] = &fstest.MapFile{Data: []byte(`{"stageTimestamp":"2026-11-21T00:00:01.2Z"}` + "\n" + `{"stageTimestamp":"2026-11-21T00:00:01.7Z"}` + "\n")}
	rec, err := Open(fsys, "rec", nil)
	require.NoError(t, err)
	server := NewServer(rec, ServerOptions{})
	text := func() string {
		w := httptest.NewRecorder()
		server.ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), http.MethodGet, ScrapePath, nil))
		return fmt.Sprintf("%d %s", w.Code, w.Body)
	}
	require.Contains(t, text(), "503 ", "nothing was scraped yet")
	var d diary
	hooks := d.newHooks()
	hooks.Clock = func(at time.Time) { d.addEntry("clock %s", at.Format("05.0")) }
	hooks.Audit = func(_ context.Context, events [][]byte) error { d.addEntry("audit %d", len(events)); return nil }
	hooks.Scrape = func(context.Context) error { d.addEntry("scrape %s", text()); return nil }
	require.NoError(t, Play(t.Context(), rec, server, hooks))
	require.Equal(t, diary{
		"clock 00.0", "taken nodes 7",
		"clock 01.0", "taken nodes 8",
		"clock 01.2", "audit 1", "clock 01.5", "scrape 200 first", "clock 01.7", "audit 1",
		"clock 02.0", "taken nodes 9",
		"clock 07.0", "scrape 200 second",
	}, d)

	hooks.Scrape = func(context.Context) error { return errors.New("refused") }
	err = Play(t.Context(), rec, NewServer(rec, ServerOptions{}), hooks)
	require.EqualError(t, err, "play rec: line 3: scrape at 2026-11-21T00:00:01Z: refused")
}
