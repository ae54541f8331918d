package main

import (
	"log/slog"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/evictrail/evictrail/store/storetest"
)

// TestReadyDatabaseHasPartitions holds that gauges, which are read once the database is ready, find the partition of the next month.
func TestReadyDatabaseHasPartitions(t *testing.T) {
	t.Parallel()
	storetest.SkipInShort(t)
	log := slog.New(slog.DiscardHandler)
	f := databaseFlags{url: storetest.EmptyURL(t)}
	db, err := f.openOrEmbedLater(t.Context(), log)
	require.NoError(t, err)
	defer db.Close()
	began, err := db.prepareIfAvailable(t.Context(), log)
	require.NoError(t, err)
	require.True(t, began)

	upkeep, err := db.Upkeep(t.Context(), "c1")
	require.NoError(t, err)
	require.GreaterOrEqual(t, upkeep.PartitionsUntil.Sub(nowUTC()).Hours(), 28*24.0, "made until %s", upkeep.PartitionsUntil)
}
