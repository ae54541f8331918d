package web

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/evictrail/evictrail/trail"
)

// TestRouteNamesZonesAndPools shows both ends of a migration, with their zones and pools as far as these are known.
func TestRouteNamesZonesAndPools(t *testing.T) {
	t.Parallel()
	require.Equal(t, part{Text: "zone a", Small: true}, newPlacePart("zone", "a", "", false))
	columns := []string{
		"source_node",
		"target_node",
		"outcome",
		"source_zone",
		"target_zone",
		"source_pool",
		"target_pool",
	}
	for _, c := range []struct{ zones, pools [2]string }{
		{},
		{zones: [2]string{"a", "b"}, pools: [2]string{"gpu", "gpu"}},
		{zones: [2]string{"a", ""}},
	} {
		texts := []string{"n1", "n2", "succeeded", c.zones[0], c.zones[1], c.pools[0], c.pools[1]}
		r := listRow{view: trail.ViewMigrations, columns: columns}
		for i := range texts {
			r.cells = append(r.cells, &texts[i])
		}
		var got []string
		for _, p := range showRoute(r).Parts {
			got = append(got, p.Text)
		}
		want := []string{"n1", "n2"}
		switch {
		case c.zones[1] == "b":
			want = append(want, "zone a → b", "pool gpu")
		case c.zones[0] == "a":
			want = append(want, "zone a → ?")
		}
		require.Equal(t, want, got)
	}
}
