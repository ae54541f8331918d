package main

import (
	"os"
	"regexp"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/evictrail/evictrail/store/storetest"
)

// TestReadmeQueriesWork runs every SQL query of the README and of docs/sql.md on a recorded cluster.
func TestReadmeQueriesWork(t *testing.T) {
	t.Parallel()
	storetest.SkipInShort(t)
	readme, err := os.ReadFile("../../README.md")
	require.NoError(t, err)
	page, err := os.ReadFile("../../docs/sql.md")
	require.NoError(t, err)
	url := storetest.NewURL(t)
	for _, name := range []string{"k-blocked-slot", "b-dual-retry-loop-v1.8", "c-node-drain"} {
		playBuiltin(t, url, name, "--evacuation-objective=any=2m")
	}
	queries := regexp.MustCompile("(?s)```sql\n(.*?);\n```").FindAllStringSubmatch(string(readme)+string(page), -1)
	require.Len(t, queries, 11)
	for _, q := range queries {
		got := queryRows[map[string]any](t, url, regexp.MustCompile(`now\(\)`).ReplaceAllString(q[1], "timestamptz '2026-11-22'"))
		require.NotEmpty(t, got, q[1])
	}
}
