package main

import (
	"os"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/evictrail/evictrail/api"
	"github.com/evictrail/evictrail/store/storetest"
)

// TestOpenAPI compares the generated files of package api with what the routes and a database with the current schema give.
func TestOpenAPI(t *testing.T) {
	t.Parallel()
	columns, err := storetest.New(t).Columns(t.Context())
	require.NoError(t, err)
	files, err := api.Generate(columns)
	require.NoError(t, err)
	for name, want := range files {
		path := "../../api/" + name
		if *update {
			require.NoError(t, os.WriteFile(path, want, 0o644))
			continue
		}
		got, err := os.ReadFile(path)
		require.NoError(t, err)
		require.Equal(t, string(want), string(got), "%s: run `make generate`", name)
	}
}
