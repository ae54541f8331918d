package recording_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/evictrail/evictrail/collector/recording"
)

// TestWriter writes a recording in pieces: it can be read after each, and holds what was given.
func TestWriter(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "new", "rec")
	at := time.Date(2026, 11, 21, 0, 0, 0, 123, time.UTC)
	w, err := recording.Create(dir, func() time.Time { at = at.Add(time.Second); return at })
	require.NoError(t, err)
	object := func(version string) json.RawMessage {
		return json.RawMessage(`{"metadata":{"name":"n","uid":"u","resourceVersion":"` + version + `"}}`)
	}
	read := func() *recording.Recording {
		r, err := recording.Open(os.DirFS(filepath.Dir(dir)), "rec", nil)
		require.NoError(t, err)
		return r
	}
	require.NoError(t, w.Flush(), "nothing")
	w.List("pods", "5", nil)
	w.List("nodes", "7", []json.RawMessage{object("3"), object("4")})
	require.NoError(t, w.Flush())
	require.Len(t, read().Lines, 3)
	w.Event("nodes", watch.Modified, object("8"))
	require.Len(t, read().Lines, 3, "before it is flushed")
	w.WatchEnded("nodes", false)
	w.WatchEnded("nodes", true)
	w.ListFailed("nodes")
	w.Audit(json.RawMessage(`{"stageTimestamp":"2026-11-21T00:00:01Z","x":"<&>"}`))
	w.Scrape("descheduler_x 1\n")
	first, err := w.Policy([]byte("a: 1\n"))
	require.NoError(t, err)
	require.True(t, first)
	first, err = w.Policy([]byte("a: 2\n"))
	require.NoError(t, err)
	require.False(t, first)
	require.NoError(t, w.Close())

	r := read()
	var kinds []recording.Kind
	for i, l := range r.Lines {
		kinds = append(kinds, l.Kind)
		if i > 0 {
			require.True(t, l.At.After(r.Lines[i-1].At))
		}
	}
	require.Equal(t, []recording.Kind{
		recording.KindSyncEmpty, recording.KindSync, recording.KindSync, recording.KindModified, recording.KindWatchClosed, recording.KindWatchError, recording.KindListError,
	}, kinds)
	require.Equal(t, "7", r.Lines[1].ListResourceVersion)
	require.JSONEq(t, string(object("8")), string(r.Lines[3].Object))
	require.Contains(t, string(r.Audit[0].Event), `"x":"<&>"`, "as it was given")
	require.Equal(t, "descheduler_x 1\n", r.Scrapes[0].Text)
	require.Equal(t, "a: 1\n", string(r.Policy))
	got := w.Written()
	require.Equal(t, 7, got.Lines)
	require.Equal(t, 1, got.Audit)
	require.Positive(t, got.Bytes)

	_, err = recording.Create(dir, time.Now)
	require.ErrorContains(t, err, "is not empty, it has audit.jsonl.gz: name another folder")
}
