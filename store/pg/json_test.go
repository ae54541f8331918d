package pg_test

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/evictrail/evictrail/store/pg"
	"github.com/evictrail/evictrail/trail"
)

// FuzzDetail reads anything as the detail of a fact of each kind. What the standard library understands is written, as facts are, and read from there
// by what reads facts: it is the same.
func FuzzDetail(f *testing.F) {
	kinds := trail.Kinds()
	for i := range kinds {
		f.Add(uint8(i), []byte(`{"phase":"Running","reason":"x","code":429,"started_at":"2026-11-21T00:00:00Z","settings":{}}`))
	}
	f.Add(uint8(0), []byte("null"))
	f.Fuzz(func(t *testing.T, kind uint8, raw []byte) {
		k := kinds[int(kind)%len(kinds)].Kind
		detail, err := trail.DecodeDetail(k, raw, json.Unmarshal)
		if err != nil || detail == nil {
			return
		}
		text, err := json.Marshal(detail)
		require.NoError(t, err)
		again, err := trail.DecodeDetail(k, text, pg.Unmarshal)
		require.NoError(t, err, "%s", text)
		second, err := json.Marshal(again)
		require.NoError(t, err)
		require.JSONEq(t, string(text), string(second))
	})
}
