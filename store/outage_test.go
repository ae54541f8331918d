package store_test

import (
	"os"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/evictrail/evictrail/store"
	"github.com/evictrail/evictrail/store/embedded"
	"github.com/evictrail/evictrail/store/pg"
	"github.com/evictrail/evictrail/store/storetest"
	"github.com/evictrail/evictrail/trail"
)

// TestServerStopsAndComesBack stops the server below an open store: appending fails as unavailable, and the same call
// succeeds when the server is back.
func TestServerStopsAndComesBack(t *testing.T) {
	storetest.SkipInShort(t)
	t.Parallel()
	dir, err := os.MkdirTemp("", "evictrail-outage-") // t.TempDir is closed to the user that runs the server for root
	require.NoError(t, err)
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	require.NoError(t, os.Chmod(dir, 0o755))
	options := embedded.Options{Dir: dir, Settings: map[string]string{"fsync": "off"}}
	server, err := embedded.Start(t.Context(), options)
	require.NoError(t, err)
	s, err := store.Open(t.Context(), server.URL("evictrail"), "")
	require.NoError(t, err)
	t.Cleanup(s.Close)
	_, err = s.Up(t.Context())
	require.NoError(t, err)
	facts := storetest.Incident("c1", 2)
	half := len(facts) / 2
	_, err = s.Append(t.Context(), "c1", facts[:half])
	require.NoError(t, err)

	require.NoError(t, server.Stop(t.Context()))
	_, err = s.Append(t.Context(), "c1", facts)
	require.ErrorIs(t, err, pg.ErrUnavailable)
	require.NotErrorIs(t, err, trail.ErrRefused)

	server, err = embedded.Start(t.Context(), options)
	require.NoError(t, err)
	defer func() { require.NoError(t, server.Stop(t.Context())) }()
	news, err := s.Append(t.Context(), "c1", facts)
	require.NoError(t, err)
	require.Len(t, news.Facts, len(facts)-half)
	require.Equal(t, storetest.DumpOf(t, "c1", facts), storetest.Dump(t, s))
}
