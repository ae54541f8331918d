package pg_test

import (
	"net/url"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/evictrail/evictrail/store"
	"github.com/evictrail/evictrail/store/pg"
	"github.com/evictrail/evictrail/store/storetest"
)

// TestModeOfStatements opens databases with the modes that work, and refuses the others by name.
func TestModeOfStatements(t *testing.T) {
	t.Parallel()
	database, err := url.Parse(storetest.NewURL(t))
	require.NoError(t, err)
	with := func(mode string) string {
		u := *database
		query := u.Query()
		query.Set("default_query_exec_mode", mode)
		u.RawQuery = query.Encode()
		return u.String()
	}
	for _, mode := range []string{"cache_statement", "cache_describe"} {
		s, err := store.Open(t.Context(), with(mode), "")
		require.NoError(t, err)
		pooled, err := s.DB.CheckPooler(t.Context())
		require.NoError(t, err)
		require.False(t, pooled, "nothing stands before this database")
		s.Close()
	}
	for _, mode := range []string{"describe_exec", "exec", "simple_protocol"} {
		_, err := store.OpenLater(t.Context(), with(mode), "")
		require.ErrorContains(t, err, "default_query_exec_mode="+mode+" does not work here")
		require.ErrorContains(t, err, pg.PoolerMode)
	}
}
