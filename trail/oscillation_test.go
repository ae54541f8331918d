package trail

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// swingsOf returns moves, each so long after the one before. A word names the VM and the target, where it left n1 or n2
// for the other: a2; or both nodes: a23.
func swingsOf(apart time.Duration, words ...string) []*Migration {
	at := time.Date(2026, 11, 21, 0, 0, 0, 0, time.UTC)
	var out []*Migration
	for i, word := range words {
		to, from := "n"+word[len(word)-1:], "n"+word[1:2]
		if len(word) == 2 {
			from = map[string]string{"n1": "n2", "n2": "n1"}[to]
		}
		m := &Migration{
			UID: fmt.Sprint("m", i), Namespace: "shop", VMI: word[:1], VMIUID: word[:1], Trigger: TriggerDescheduler,
			Outcome: OutcomeSucceeded, SourceNode: from, TargetNode: to, FinishedAt: at.Add(time.Duration(i) * apart),
		}
		if min(from, to) == "n1" { // as Derived.Around has it
			out = append(out, m)
		}
	}
	return out
}

func oscillationsOf(swings []*Migration) []Loop {
	n := node{Rows: Rows{Swings: slices.Clone(swings)}, name: "n1", env: &Env{}, thresholds: DefaultThresholds()}
	n.now = &moment{now: swings[len(swings)-1].FinishedAt.Add(1000 * time.Hour)}
	return n.findOscillations()
}

// roundOfTwo are moves of two VMs that go round, one half a turn behind the other.
var roundOfTwo = []string{"b12", "b23", "a12", "b31", "a23", "b12", "a31", "b23", "a12", "b31", "a23", "b12", "a31"}

// TestSwings holds what is a swing, and how many make an oscillation.
func TestSwings(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name   string
		apart  time.Duration
		words  []string
		swings int // zero: no oscillation
	}{
		{"two VMs, again and again", time.Hour, []string{"a2", "b1", "a2", "b1"}, 3},
		{"others each time", time.Hour, []string{"a2", "b1", "c2", "d1", "e2"}, 4},
		{"several one way, then several the other way", time.Minute, []string{"a2", "b2", "c1", "d1", "e2", "f2", "g1"}, 3},
		{"once less", time.Hour, []string{"a2", "b1", "c2"}, 0},
		{"one VM alone", time.Minute, []string{"a2", "a1", "a2", "a1", "a2", "a1"}, 0},
		{"one VM, and another one once", time.Minute, []string{"a2", "a1", "a2", "b1", "a1", "a2", "a1"}, 0},
		{"one way and back once", time.Minute, []string{"a2", "b2", "c2", "a1", "b1", "c1"}, 0},
		{"just within", 2 * time.Hour, []string{"a2", "b1", "c2", "d1"}, 3},
		{"round, of two VMs", 30 * time.Minute, roundOfTwo, 4},
		{"round, both at once", 20 * time.Minute, []string{"a12", "b12", "a23", "b23", "a31", "b31", "a12", "b12", "a23", "b23", "a31", "b31"}, 3},
		{"round, as slow as it may be", 2 * time.Hour, []string{"a12", "b12", "a31", "c12", "b31", "d12"}, 4},
		{"round, of one VM alone", time.Hour, []string{"a12", "a23", "a31", "a12", "a23", "a31", "a12", "a23", "a31"}, 0},
		{"round once, each", 10 * time.Minute, []string{"a12", "b12", "c12", "a23", "b23", "c23", "a31", "b31", "c31"}, 0},
		{"through a node", 10 * time.Minute, []string{"a12", "x31", "b12", "y31", "c12", "z31", "d12", "w31"}, 0},
		{"back from where they went, and others round", time.Hour, []string{"a12", "a23", "b12", "a32", "b21", "a21"}, 0},
		{"round, with a long rest", 50 * time.Minute, []string{
			"a12", "b12", "x45", "x54", "x45", "x54", "x45", "x54", "a31", "c12", "b31", "d12",
		}, 0},
		{"too slow", 2*time.Hour + time.Second, []string{"a2", "b1", "c2", "d1", "e2"}, 0},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			loops := oscillationsOf(swingsOf(tt.apart, tt.words...))
			if tt.swings == 0 {
				require.Empty(t, loops)
				return
			}
			require.Len(t, loops, 1)
			require.Equal(t, tt.swings, loops[0].Counts[countSwings])
			require.Equal(t, LoopQuiet, loops[0].ClosedBy)
		})
	}
}

// TestWays names the nodes of oscillations: one of a pair, and one round, of three moves of which the node sees two.
func TestWays(t *testing.T) {
	t.Parallel()
	pair := oscillationsOf(swingsOf(time.Hour, "a2", "b1", "a2", "b1"))
	require.Equal(t, "The descheduler moved VMs to and fro between n1 and n2, 4 times in 3h0m0s, once to and fro in 2h0m0s (shop/a, shop/b).", pair[0].Summary)
	round := oscillationsOf(swingsOf(30*time.Minute, roundOfTwo...))
	require.Equal(t, "The descheduler moved VMs in a circle, from n1 to n2 and back to n1 from n3, 8 times in 5h0m0s, "+
		"once round in 3h0m0s (shop/a, shop/b).", round[0].Summary)
	require.NotEqual(t, pair[0].ID, round[0].ID)
}

// TestSwingReach finds oscillations without the moves that are out of reach of a time at which none was open: those that come
// later are the same. With moves that are as slow as they may be a shorter reach loses the one that opens.
func TestSwingReach(t *testing.T) {
	t.Parallel()
	swings := swingsOf(2*time.Hour, "z12", "a12", "x45", "x54", "a31", "c12", "b12", "c31", "d12", "a12", "b31")
	for _, m := range swings[slices.IndexFunc(swings, func(m *Migration) bool { return m.VMI == "b" }):] {
		m.FinishedAt = m.FinishedAt.Add(-2 * time.Hour) // b leaves with c, before c is back
	}
	want := oscillationsOf(swings)
	require.Len(t, want, 1)
	from := want[0].OpenedAt.Add(-time.Second) // before it opens
	since := func(reach time.Duration) []Loop {
		return oscillationsOf(slices.DeleteFunc(slices.Clone(swings), func(m *Migration) bool {
			return m.FinishedAt.Before(from.Add(-reach))
		}))
	}
	reach := DefaultThresholds().SwingReach()
	require.Equal(t, want, since(reach))
	require.NotEqual(t, want, since(reach-2*time.Hour))
}
