package sim

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/evictrail/evictrail/trail"
	"github.com/evictrail/evictrail/trail/tracker"
)

// settled is how long KubeVirt takes, at least, until an attempt for which no node is found has failed, and some.
const settled = 15 * time.Minute

// neverScore is how the verdict never fares in one history.
type neverScore struct {
	due, found int      // evacuations that never succeeded because of how their VM is configured, and those of them of which that was said
	wrong      []string // evacuations of which it was said, and that are not
	missed     []string
}

// scoreNever looks at a history at eight moments and at its end.
func scoreNever(seed uint64) neverScore {
	b, tr := NewBound(seed), tracker.New("c1")
	var facts []trail.Fact
	for _, o := range b.Observations {
		facts = append(facts, tr.Observe(o)...)
	}
	var s neverScore
	const moments = 8
	for i := range moments + 1 {
		at := b.Start.Add(b.End.Sub(b.Start) * time.Duration(i+1) / (moments + 1))
		var known []trail.Fact
		for _, f := range facts {
			if !f.ObservedAt.After(at) {
				known = append(known, f)
			}
		}
		for _, rows := range trail.DeriveAll(known, trail.DefaultThresholds(), at).Rows {
			for _, e := range rows.Evacuations {
				vm := e.Namespace + "/" + e.VMI
				text := fmt.Sprintf("seed %d, %s from %s, marked %s, at %s: %s: %s", seed, vm, e.Node, e.MarkedAt.Format(time.TimeOnly), at.Format(time.TimeOnly), e.Outlook, e.OutlookBecause)
				never := b.Never[vm] && e.Strategy == "LiveMigrate"
				if e.Outlook == trail.OutlookNever && !never {
					s.wrong = append(s.wrong, text)
				}
				if i < moments || !never || e.Outcome != "" || at.Sub(e.MarkedAt) < settled {
					continue
				}
				s.due++
				if e.Outlook == trail.OutlookNever {
					s.found++
				} else {
					s.missed = append(s.missed, text)
				}
			}
		}
	}
	return s
}

// TestNeverIsFound compares the verdict that an evacuation never succeeds as things are configured with histories in which the truth is known: it is said of none
// that can succeed, and of nine in ten that cannot.
func TestNeverIsFound(t *testing.T) {
	t.Parallel()
	scores := make([]neverScore, countRuns(*simBound))
	eachAtOnce(len(scores), func(i int) { scores[i] = scoreNever(*simSeed + uint64(i)) })
	due, found, shown := 0, 0, 0
	for _, s := range scores {
		require.Empty(t, s.wrong)
		due, found = due+s.due, found+s.found
		for _, m := range s.missed {
			if shown++; shown <= 20 {
				t.Log(m)
			}
		}
	}
	t.Logf("%d histories: %d evacuations never succeeded for how their VM is configured, never was said of %d (%.1f %%)", len(scores), due, found, 100*float64(found)/float64(due))
	require.Greater(t, due, len(scores)/2)
	require.GreaterOrEqual(t, 10*found, 9*due)
}
