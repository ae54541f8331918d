package main

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/evictrail/evictrail/store"
	"github.com/evictrail/evictrail/store/standby"
)

// onlyPrimary returns what answers callers from a database without a standby.
func onlyPrimary(t *testing.T, s *store.Store) *standby.Servers {
	t.Helper()
	reads, err := (&databaseFlags{}).openReads(t.Context(), s, standby.Options{})
	require.NoError(t, err)
	return reads
}
