package forecast_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/evictrail/evictrail/trail"
	"github.com/evictrail/evictrail/trail/forecast"
)

var noon = time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)

// newHistory returns attempts of VMs that each took about a minute, three times.
func newHistory(failed int) []forecast.Attempt {
	var out []forecast.Attempt
	for _, vm := range []string{"a", "b", "c", "d", "e"} {
		for _, took := range []time.Duration{58, 60, 62} {
			out = append(out, forecast.Attempt{Namespace: "shop", VMI: vm, Took: took * time.Second})
		}
	}
	for range failed {
		out = append(out, forecast.Attempt{Namespace: "shop", VMI: "a", Took: 5 * time.Second, Failed: true, Retried: 30 * time.Second})
	}
	return out
}

func newGuest(vm string) forecast.Guest {
	return forecast.Guest{Namespace: "shop", VMI: vm, VMIUID: vm + "-1", Strategy: "LiveMigrate"}
}

// inMinutes returns the middle of a band.
func inMinutes(b forecast.Band) float64 { return time.Duration(b.Mid).Minutes() }

// TestWhatADrainDoesToAGuest goes through what keeps a guest from moving.
func TestWhatADrainDoesToAGuest(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		change func(*forecast.Guest)
		want   trail.DrainEffect
		says   string
	}{
		"free to move":                     {func(*forecast.Guest) {}, trail.DrainMoves, ""},
		"no strategy":                      {func(g *forecast.Guest) { g.Strategy = "" }, trail.DrainShutsDown, "(none set)"},
		"strategy None":                    {func(g *forecast.Guest) { g.Strategy = "None" }, trail.DrainShutsDown, "None"},
		"external":                         {func(g *forecast.Guest) { g.Strategy = "External" }, trail.DrainStays, "its owner must move it"},
		"not migratable":                   {func(g *forecast.Guest) { g.NotMigratable = "a disk" }, trail.DrainStays, "refused: a disk"},
		"not migratable, and need not be":  {func(g *forecast.Guest) { g.NotMigratable, g.Strategy = "a disk", "LiveMigrateIfPossible" }, trail.DrainShutsDown, "a disk"},
		"never as configured":              {func(g *forecast.Guest) { g.Outlook, g.OutlookBecause = trail.OutlookNever, "no node has its CPU" }, trail.DrainStays, "no node has its CPU"},
		"what is in the way passes":        {func(g *forecast.Guest) { g.Outlook, g.OutlookBecause = trail.OutlookTransient, "it waits" }, trail.DrainMoves, ""},
		"a budget":                         {func(g *forecast.Guest) { g.RefusedAt, g.RefusedText = noon, "no" }, trail.DrainStays, "forbade it at 2026-11-21 12:00:00Z: no"},
		"under way, whatever is said else": {func(g *forecast.Guest) { g.MovingSince, g.NotMigratable = noon, "a disk" }, trail.DrainMoves, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			g := newGuest("a")
			c.change(&g)
			d := forecast.Node{Name: "n1", At: noon, Guests: []forecast.Guest{g}, PerNode: 2, PerCluster: 5}.Forecast()
			require.Equal(t, c.want, d.Guests[0].Effect)
			require.Contains(t, d.Guests[0].Because, c.says)
			require.Equal(t, c.says == "", d.Guests[0].Because == "")
		})
	}
}

// TestLimitsAndWaitsAreKept forecasts drains whose length can be computed by hand.
func TestLimitsAndWaitsAreKept(t *testing.T) {
	t.Parallel()
	node := func(change func(*forecast.Node)) forecast.Drain {
		n := forecast.Node{Name: "n1", At: noon, PerNode: 2, PerCluster: 5, History: newHistory(0)}
		for _, vm := range []string{"a", "b", "c", "d"} {
			n.Guests = append(n.Guests, newGuest(vm))
		}
		change(&n)
		return n.Forecast()
	}
	two := node(func(*forecast.Node) {})
	require.InDelta(t, 2.2, inMinutes(two.Band), 0.4, "two at a time")
	require.Equal(t, 4, two.Raised.PerNode)
	require.InDelta(t, 1.2, inMinutes(two.Raised.Band), 0.3)
	require.Contains(t, two.Text(), "With parallelOutboundMigrationsPerNode at 4 it would be about 1 min")
	four := node(func(n *forecast.Node) { n.PerNode = 4 })
	require.InDelta(t, 1.2, inMinutes(four.Band), 0.3, "all at once")
	require.Nil(t, four.Raised)
	one := node(func(n *forecast.Node) { n.PerCluster = 1 })
	require.InDelta(t, 4.4, inMinutes(one.Band), 0.6, "one at a time in the cluster")
	require.Nil(t, one.Raised, "the limit of the cluster holds")
	busy := node(func(n *forecast.Node) { n.PerCluster, n.Others = 1, []time.Time{noon} })
	require.InDelta(t, inMinutes(one.Band)+1, inMinutes(busy.Band), 0.6, "after the one of another node")
	under := node(func(n *forecast.Node) {
		n.PerNode = 4
		for i := range n.Guests {
			n.Guests[i].MovingSince = noon.Add(-50 * time.Second)
		}
	})
	require.Less(t, inMinutes(under.Band), inMinutes(four.Band)/1.5, "they are under way for most of a minute")
	waits := node(func(n *forecast.Node) { n.Guests[0].Marked, n.Guests[0].RetryAt = true, noon.Add(5*time.Minute) })
	require.InDelta(t, 6, inMinutes(waits.Band), 0.4)
	require.Equal(t, "a", waits.Guests[0].VMI, "which decides")
	require.Greater(t, waits.Guests[0].Decides, 0.99)
	require.Contains(t, waits.Text(), "The last to leave is most likely shop/a (100 %).")
}

// TestWhatIsNotKnownIsSaid has no history, little of it, and guests that never moved.
func TestWhatIsNotKnownIsSaid(t *testing.T) {
	t.Parallel()
	n := forecast.Node{Name: "n1", At: noon, Guests: []forecast.Guest{newGuest("new"), newGuest("a")}, PerNode: 2, PerCluster: 5}
	none := n.Forecast()
	require.True(t, none.Band.IsZero())
	require.Equal(t, "A drain of n1 moves 2 VMs. How long that takes cannot be said: 0 successful migrations seen here in 30 days, and it takes 5 to estimate from.", none.Text())
	require.Empty(t, none.Rests())
	n.History = newHistory(3)
	known := n.Forecast()
	require.Equal(t, 1, known.NeverMoved)
	require.Contains(t, known.Rests(), "It rests on 15 successful migrations and 3 failed ones of this cluster in the last 30 days. Of 1 VM no migration is known: they are taken to be like others.")
	require.Equal(t, known, n.Forecast(), "the same question has the same answer")
	empty := forecast.Node{Name: "n1", At: noon, History: newHistory(0)}.Forecast()
	require.Equal(t, "A drain of n1 has nothing to do: no VM runs there.", empty.Text())
	seen := known.SeenBy(trail.Only("c", "bank"))
	require.Empty(t, seen.Guests)
	require.Zero(t, seen.Moving)
	require.Equal(t, known.Band, seen.Band)
	require.Equal(t, "A drain of n1 does nothing to VMs that you may see: none of them runs there.", seen.Text(), "others' VMs may run there")
	require.Contains(t, known.SeenBy(trail.Only("c", "shop")).Text(), "Of the VMs that you may see, a drain of n1 moves 2 VMs. The VMs that move have left after")
	require.Equal(t, known, known.SeenBy(trail.Within("c")), "who sees all of them")
}
