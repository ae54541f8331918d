package forecast_test

import (
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/evictrail/evictrail/trail"
	"github.com/evictrail/evictrail/trail/forecast"
)

// use returns a migration that was ready, had a slot and ended so many minutes after noon.
func newUse(node string, ready, started, ended float64) forecast.SlotUse {
	at := func(minutes float64) time.Time { return noon.Add(time.Duration(minutes * float64(time.Minute))) }
	return forecast.SlotUse{Node: node, ReadyAt: at(ready), StartedAt: at(started), EndedAt: at(ended)}
}

// queueUses returns migrations that were ready at once, each of a minute, as limits of so many let them through.
func queueUses(count, perNode int, nodes ...string) []forecast.SlotUse {
	var out []forecast.SlotUse
	for i := range count {
		round := float64(i / len(nodes) / perNode)
		out = append(out, newUse(nodes[i%len(nodes)], 0, round, round+1))
	}
	return out
}

// TestWeighAdvisesTheLimitThatHolds has migrations wait for a node, for the cluster, for both, and for nothing.
func TestWeighAdvisesTheLimitThatHolds(t *testing.T) {
	t.Parallel()
	three := []string{"n1", "n2", "n3"}
	for _, c := range []struct {
		name        string
		uses        []forecast.SlotUse
		node, total int
		want        forecast.LimitAdvice
		text        string
	}{
		{name: "nothing came", node: 2, total: 5, want: forecast.LimitsUnknown, text: "No migration came in the last 7 d 0 h."},
		{name: "too few", uses: queueUses(19, 1, "n1"), node: 1, total: 5, want: forecast.LimitsUnknown, text: "Too few to advise from: it takes 20 that had a slot."},
		{
			name: "one node", uses: queueUses(20, 1, "n1"), node: 1, total: 5, want: forecast.RaiseNodeLimit,
			text: "In the last 7 d 0 h 20 migrations came. One has its slot for 1 min 0 s on average, so that the limit of 5 in the cluster lets 300 an hour through. " +
				"Of the slots 0.0 % were taken, in the busiest hour, from 2026-11-21 12:00:00Z on, 7 %. For 19 min at least one waited for a slot. " +
				"Raise parallelOutboundMigrationsPerNode to 2: the same migrations would have waited 1 h 30 min in all, not 3 h 10 min, with up to 2 side by side (1 now), " +
				"as long as these do not slow each other down.",
		},
		{name: "the cluster", uses: queueUses(30, 1, three...), node: 5, total: 3, want: forecast.RaiseClusterLimit, text: "Raise parallelMigrationsPerCluster to 6: "},
		{name: "both", uses: queueUses(30, 1, three...), node: 1, total: 3, want: forecast.RaiseBothLimits, text: "Raise parallelOutboundMigrationsPerNode to 2 and parallelMigrationsPerCluster to 6: "},
		{
			name: "none waited", uses: func() (out []forecast.SlotUse) {
				for i := range 20 {
					out = append(out, newUse("n1", float64(10*i), float64(10*i), float64(10*i+1)))
				}
				return out
			}(), node: 1, total: 1, want: forecast.LimitsFit, text: "None waited for a slot. The limits fit: ",
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			l := forecast.Traffic{From: noon.Add(-forecast.LimitsLookBack / 2), To: noon.Add(forecast.LimitsLookBack / 2), PerNode: c.node, PerCluster: c.total, Uses: c.uses}.Weigh()
			require.Equal(t, c.want, l.Advice, l.Text())
			require.Contains(t, l.Text(), c.text)
		})
	}
}

// TestReplayUnderTheSameLimitsIsWhatHappened lets made-up migrations through as KubeVirt's limits would, minute by minute, and
// wants Weigh to find the same waits under these limits, and none under limits that are never reached.
func TestReplayUnderTheSameLimitsIsWhatHappened(t *testing.T) {
	t.Parallel()
	for seed := range uint64(200) {
		r := rand.New(rand.NewPCG(seed, 0))
		perNode, perCluster := 1+r.IntN(3), 1+r.IntN(6)
		var uses []forecast.SlotUse
		for range 1 + r.IntN(60) {
			ready := float64(r.IntN(30))
			uses = append(uses, newUse([]string{"n1", "n2", "n3"}[r.IntN(3)], ready, ready, ready+float64(1+r.IntN(9))))
		}
		slices.SortStableFunc(uses, func(a, b forecast.SlotUse) int { return a.ReadyAt.Compare(b.ReadyAt) })
		waited := admitByMinute(uses, perNode, perCluster)
		l := forecast.Traffic{From: noon, To: noon.Add(24 * time.Hour), PerNode: perNode, PerCluster: perCluster, Uses: uses}.Weigh()
		require.LessOrEqual(t, l.Options[0].AtOnce, perCluster)
		require.InDelta(t, waited.Minutes(), time.Duration(l.Options[0].Waited).Minutes(), 0.001, "seed %d", seed)
		for _, o := range l.Options[1:] {
			require.LessOrEqual(t, o.AtOnce, o.PerCluster)
		}
		free := forecast.Traffic{From: noon, To: noon.Add(24 * time.Hour), PerNode: 100, PerCluster: 100, Uses: uses}.Weigh()
		require.Zero(t, free.Options[0].Waited)
	}
}

// admitByMinute lets migrations, which are in the order in which they were ready, have slots, looking at each minute. It writes when each had
// its slot and returns how long all waited.
func admitByMinute(uses []forecast.SlotUse, perNode, perCluster int) (waited time.Duration) {
	started := map[int]bool{}
	for minute := 0; len(started) < len(uses); minute++ {
		now := noon.Add(time.Duration(minute) * time.Minute)
		for i := range uses {
			u := &uses[i]
			if started[i] || u.ReadyAt.After(now) {
				continue
			}
			all, here := 0, 0
			for j := range uses {
				if started[j] && uses[j].EndedAt.After(now) {
					all++
					if uses[j].Node == u.Node {
						here++
					}
				}
			}
			if all < perCluster && here < perNode {
				lasts := u.EndedAt.Sub(u.StartedAt)
				u.StartedAt, u.EndedAt, started[i] = now, now.Add(lasts), true
				waited += now.Sub(u.ReadyAt)
			}
		}
	}
	return waited
}

// TestSlotUseOfOtherWaits has what waited for a quota or a backoff be ready when that came, and what waited for a slot when it was made.
func TestSlotUseOfOtherWaits(t *testing.T) {
	t.Parallel()
	for reason, ready := range map[trail.WaitReason]time.Duration{
		"": 0, trail.WaitClusterLimit: 0, trail.WaitNodeLimit: 0, trail.WaitQueued: 0, trail.WaitQuota: time.Minute, trail.WaitBackoff: time.Minute,
	} {
		u := forecast.NewSlotUse(&trail.Migration{CreatedAt: noon, SchedulingAt: noon.Add(time.Minute), FinishedAt: noon.Add(time.Hour), WaitReason: reason})
		require.Equal(t, noon.Add(ready), u.ReadyAt, reason)
		require.Equal(t, noon.Add(time.Minute), u.StartedAt)
	}
	never := forecast.NewSlotUse(&trail.Migration{CreatedAt: noon, FinishedAt: noon.Add(time.Hour), WaitReason: trail.WaitQuota})
	require.Equal(t, noon, never.ReadyAt)
	l := forecast.Traffic{From: noon, To: noon.Add(2 * time.Hour), PerNode: 2, PerCluster: 5, Uses: []forecast.SlotUse{never}}.Weigh()
	require.Equal(t, "In the last 2 h 0 min 1 migration came, of which 1 had no slot.", l.Text())
}
