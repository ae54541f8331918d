package sim_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/evictrail/evictrail/trail"
	"github.com/evictrail/evictrail/trail/sim"
	"github.com/evictrail/evictrail/trail/tracker"
)

// TestOutlooksComeTrue looks at open evacuations at moments of simulated histories: what is never to succeed does not, and most of what cannot before something
// changes does not within five minutes.
func TestOutlooksComeTrue(t *testing.T) {
	t.Parallel()
	said, soon := map[trail.Outlook]int{}, map[trail.Outlook]int{} // evacuations with an outlook at a moment, and those that succeeded within five minutes
	seeds := uint64(20)
	if testing.Short() {
		seeds = 3
	}
	for seed := range seeds {
		run, tr := sim.New(seed), tracker.New("c1")
		var facts []trail.Fact
		for _, o := range run.Observations {
			facts = append(facts, tr.Observe(o)...)
		}
		end := map[trail.FactID]trail.Evacuation{}
		for _, rows := range trail.DeriveAll(facts, trail.DefaultThresholds(), run.End).Rows {
			for _, e := range rows.Evacuations {
				end[e.ID] = e
			}
		}
		first := facts[0].ObservedAt
		for at := first; at.Before(run.End); at = at.Add(run.End.Sub(first) / 12) {
			var known []trail.Fact
			for _, f := range facts {
				if !f.ObservedAt.After(at) {
					known = append(known, f)
				}
			}
			for _, rows := range trail.DeriveAll(known, trail.DefaultThresholds(), at).Rows {
				for _, e := range rows.Evacuations {
					if e.Outcome != "" || e.Outlook == "" {
						continue
					}
					said[e.Outlook]++
					came := end[e.ID]
					if came.Outcome != trail.OutcomeMigrated {
						continue
					}
					require.NotEqual(t, trail.OutlookNever, e.Outlook, "seed %d at %s: %s/%s: %s", seed, at, e.Namespace, e.VMI, e.OutlookBecause)
					if came.EndedAt.Sub(at) < 5*time.Minute {
						soon[e.Outlook]++
					}
				}
			}
		}
	}
	t.Logf("said: %v, succeeded within 5 minutes: %v", said, soon)
	require.Greater(t, said[trail.OutlookNotUntil], 5*int(seeds))
	require.Less(t, 100*soon[trail.OutlookNotUntil], 3*said[trail.OutlookNotUntil], "of those that succeeded something may have changed")
}
