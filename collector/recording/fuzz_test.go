package recording

import (
	"testing"
	"testing/fstest"

	"github.com/stretchr/testify/require"
)

// FuzzOpen reads anything as the files of a recording: it is taken whole or not at all, and what is taken can be served to its last line.
func FuzzOpen(f *testing.F) {
	const line = `{"t":"2026-11-21T00:00:00Z","resource":"pods","kind":"SYNC","listResourceVersion":"5","object":{"metadata":{"namespace":"a","name":"b","uid":"u","resourceVersion":"4"}}}` + "\n"
	f.Add(line+`{"t":"2026-11-21T00:00:01Z","resource":"pods","kind":"WATCH_ERROR"}`+"\n", `{"stageTimestamp":"2026-11-21T00:00:00Z"}`+"\n", `{"t":"2026-11-21T00:00:00Z","target":"descheduler","text":"x 1"}`+"\n")
	f.Add(line+`{"t":"2026-11-21T00:00:01Z","resource":"pods","kind":"DELETED","object":{"metadata":{"namespace":"a","name":"b","uid":"u","resourceVersion":"6"}}}`+"\n", "", "")
	f.Add(`{"t":null}`, "{", "null")
	f.Fuzz(func(t *testing.T, trace, audit, scrapes string) {
		rec, err := Open(fstest.MapFS{
			"r/trace.jsonl": {Data: []byte(trace)}, "r/audit.jsonl": {Data: []byte(audit)}, "r/scrapes.jsonl": {Data: []byte(scrapes)},
		}, "r", nil)
		if err != nil {
			require.Nil(t, rec)
			return
		}
		require.NotEmpty(t, rec.Lines)
		s := NewServer(rec, ServerOptions{ExpireEvery: 3})
		for i := range rec.Lines {
			s.Release(i)
		}
	})
}
