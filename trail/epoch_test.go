package trail_test

import (
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/evictrail/evictrail/trail"
	"github.com/evictrail/evictrail/trail/tracker"
)

// TestVersionsOfEpochs: whatever an epoch records is newer than all that earlier ones did, and says which resourceVersion it was.
func TestVersionsOfEpochs(t *testing.T) {
	t.Parallel()
	ascending := []string{
		trail.Epoch(0).Version("9"), trail.Epoch(0).Version("102656"), trail.Epoch(0).Version("18446744073709551615"),
		trail.Epoch(1).Version("0"), trail.Epoch(1).Version("9"), trail.Epoch(1).Version("10"), trail.Epoch(1).Version("18446744073709551615"),
		trail.Epoch(2).Version("1"), trail.Epoch(10).Version("1"),
	}
	for i, v := range ascending {
		for j, w := range ascending {
			require.Equal(t, i > j, trail.NewerVersion(v, w), "%s, %s", v, w)
		}
	}
	for _, version := range []string{"0", "7", "102656", "18446744073709551615", "of-another-server", ""} {
		for _, epoch := range []trail.Epoch{1, 9, 1_000_000} {
			got, rest := trail.SplitVersion(epoch.Version(version))
			require.Equal(t, version, rest)
			if _, err := strconv.ParseUint(version, 10, 64); err == nil {
				require.Equal(t, epoch, got)
			}
		}
	}
}

// TestRestoredGuests has a guest recorded in an epoch, and found in the next one: its stay goes on where it is where it was, and its end is undone.
func TestRestoredGuests(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 11, 24, 1, 0, 0, 0, time.UTC)
	see := func(version, node string, listed, gone bool) tracker.VMIObservation {
		at = at.Add(time.Minute)
		return tracker.VMIObservation{
			Seen: tracker.Seen{At: at, Listed: listed, Gone: gone}, Node: node, Phase: "Running",
			Meta: tracker.Meta{UID: "u1", Namespace: "shop", Name: "db-1", ResourceVersion: version, CreatedAt: at.Add(-time.Hour)},
		}
	}
	tests := []struct {
		name string
		ends bool   // its end was recorded
		node string // where it is found
		want []string
	}{
		{"it is where it was", false, "n1", []string{"n1"}},
		{"it is where it had been before", false, "n2", []string{"n1", "n2"}},
		{"it had ended", true, "n1", []string{"n1"}},
		{"it had ended elsewhere", true, "n2", []string{"n1", "n2"}},
	}
	for _, tt := range tests {
		tr := tracker.New("c1")
		facts := tr.Observe(see("200", "n1", false, false))
		if tt.ends {
			facts = slices.Concat(facts, tr.Observe(see("210", "n1", false, true)), tr.Observe(see("220", tt.node, true, false))) // seen before the break is noticed
		}
		tr.BeginEpoch(1)
		facts = append(facts, tr.Observe(see("150", tt.node, true, false))...)
		derived := trail.Derive(trail.VMISubject("shop", "db-1"), facts, trail.NewEnv(nil), at.Add(time.Minute))
		var nodes []string
		for _, p := range derived.Placements {
			nodes = append(nodes, p.Node)
		}
		require.Equal(t, tt.want, slices.Compact(slices.Clone(nodes)), tt.name) // what a list showed once more adds nothing to the store
		require.Zero(t, derived.Placements[len(nodes)-1].ToAt, tt.name)
		require.Empty(t, tr.Observe(see("151", tt.node, true, false)), "%s: once in each epoch", tt.name)
	}
}
