package fold

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/evictrail/evictrail/trail"
)

// TestAStormGoesRound uses the windows of a few more VMs than fit, one after the other, and again: most are found in memory. What each Fold uses stays.
func TestAStormGoesRound(t *testing.T) {
	t.Parallel()
	const vms, size, rounds = 100, 1000, 10
	c := New(nil, vms*size*9/10)
	rules := trail.Subject{Kind: trail.SubjectConfig, Name: "rules"}
	loaded := map[trail.Subject]int{}
	use := func(s trail.Subject) {
		if c.windows[s] == nil {
			loaded[s]++
			c.windows[s] = &Window{Subject: s, size: size, read: size}
		}
		c.windows[s].used = c.fold
	}
	for range rounds {
		for i := range vms {
			c.fold++
			use(rules)
			use(trail.VMISubject("shop", fmt.Sprint(i)))
			c.evictWindows()
			require.LessOrEqual(t, c.Size(), c.bound)
			require.Len(t, c.windows, c.Size()/size)
		}
	}
	require.Equal(t, 1, loaded[rules])
	all := 0
	for _, n := range loaded {
		all += n
	}
	require.Less(t, all, rounds*vms/2)

	c.bound = size / 2
	c.evictWindows()
	require.Empty(t, c.windows, "of what this Fold used as well")
}
