package sim

import (
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/evictrail/evictrail/trail"
	"github.com/evictrail/evictrail/trail/tracker"
)

// someSeeds are the runs on which the simulator itself is tested.
const someSeeds = 60

// eachRun plays some runs and passes them to a test.
func eachRun(t *testing.T, check func(*testing.T, Run)) {
	t.Helper()
	for seed := range uint64(someSeeds) {
		check(t, New(seed))
	}
}

func TestSameSeedSameRun(t *testing.T) {
	t.Parallel()
	for seed := range uint64(8) {
		first, second := New(seed), New(seed)
		require.Equal(t, first, second, "seed %d", seed)
	}
	require.NotEqual(t, New(1).Observations, New(3).Observations)
}

func TestObservationsInOrder(t *testing.T) {
	t.Parallel()
	eachRun(t, func(t *testing.T, r Run) {
		t.Helper()
		last := time.Time{}
		versions := map[trail.ObjectKind]string{}
		gone := map[string]bool{}
		for i, o := range r.Observations {
			_, at := kindOf(o)
			require.False(t, at.Before(last), "seed %d: observation %d comes before the one before it", r.Seed, i)
			require.False(t, at.After(r.End), "seed %d: observation %d comes after the end", r.Seed, i)
			last = at
			kind, seen, meta, ok := describeObject(o)
			if !ok {
				continue
			}
			require.False(t, gone[meta.UID], "seed %d: %s %s is seen after its deletion", r.Seed, kind, meta.Name)
			require.Truef(t, versions[kind] == "" || trail.NewerVersion(meta.ResourceVersion, versions[kind]),
				"seed %d: %s %s at version %s after %s", r.Seed, kind, meta.Name, meta.ResourceVersion, versions[kind])
			versions[kind], gone[meta.UID] = meta.ResourceVersion, seen.Gone
		}
	})
}

// phaseRank is the order of the phases of a migration.
var phaseRank = []string{
	"", trail.PhasePending, trail.PhaseScheduling, trail.PhaseScheduled, trail.PhasePreparingTarget, trail.PhaseTargetReady,
	trail.PhaseRunning, trail.PhaseSucceeded, trail.PhaseFailed,
}

func isFinal(phase string) bool { return phase == trail.PhaseSucceeded || phase == trail.PhaseFailed }

func migrationsOf(r Run) []tracker.MigrationObservation {
	var out []tracker.MigrationObservation
	for _, o := range r.Observations {
		if m, ok := o.(tracker.MigrationObservation); ok {
			out = append(out, m)
		}
	}
	return out
}

func TestPhasesGoForward(t *testing.T) {
	t.Parallel()
	eachRun(t, func(t *testing.T, r Run) {
		t.Helper()
		at := map[string]int{}
		for _, m := range migrationsOf(r) {
			rank := slices.Index(phaseRank, m.Phase)
			require.GreaterOrEqual(t, rank, at[m.UID], "seed %d: %s went back to %q", r.Seed, m.Name, m.Phase)
			require.False(t, isFinal(phaseRank[at[m.UID]]) && rank != at[m.UID], "seed %d: %s was final before %q", r.Seed, m.Name, m.Phase)
			at[m.UID] = rank
			last := m.CreatedAt
			for _, p := range m.PhaseTimes {
				require.Zero(t, p.At.Nanosecond(), "seed %d: %s has a time finer than Kubernetes writes", r.Seed, m.Name)
				require.False(t, p.At.Before(last) || p.At.After(m.At), "seed %d: %s reached %s at %s", r.Seed, m.Name, p.Phase, p.At)
				last = p.At
			}
		}
	})
}

func TestOneMigrationAtATime(t *testing.T) {
	t.Parallel()
	eachRun(t, func(t *testing.T, r Run) {
		t.Helper()
		under := map[string]string{}
		for _, m := range migrationsOf(r) {
			vm := m.Namespace + "/" + m.VMI
			if isFinal(m.Phase) || m.Gone {
				if under[vm] == m.UID {
					delete(under, vm)
				}
				continue
			}
			require.Contains(t, []string{"", m.UID}, under[vm], "seed %d: two migrations of %s", r.Seed, vm)
			under[vm] = m.UID
		}
	})
}

// TestParallelLimits counts the migrations that have a target: at most 5 in the cluster, 2 from one node.
func TestParallelLimits(t *testing.T) {
	t.Parallel()
	most := 0
	eachRun(t, func(t *testing.T, r Run) {
		t.Helper()
		running := map[string]string{} // by UID: the node of an evacuation
		for _, m := range migrationsOf(r) {
			delete(running, m.UID)
			if !isFinal(m.Phase) && !m.Gone && slices.Index(phaseRank, m.Phase) >= 2 {
				running[m.UID] = m.EvacuationNode
			}
			perNode := map[string]int{}
			for _, node := range running {
				perNode[node]++
			}
			delete(perNode, "")
			for node, n := range perNode {
				require.LessOrEqual(t, n, parallelPerNode, "seed %d: migrations from %s", r.Seed, node)
			}
			require.LessOrEqual(t, len(running), parallelPerCluster, "seed %d: migrations in the cluster", r.Seed)
			most = max(most, len(running))
		}
	})
	require.Greater(t, most, 2, "no run has so many that a limit could matter")
}

// TestBackoffHolds computes from what was seen when an attempt may start at the earliest, and looks when its target pod
// was seen.
func TestBackoffHolds(t *testing.T) {
	t.Parallel()
	held := 0
	eachRun(t, func(t *testing.T, r Run) {
		t.Helper()
		exist := map[string][]tracker.MigrationObservation{} // VMIMs of evacuations by VM, the oldest first
		for _, o := range r.Observations {
			switch o := o.(type) {
			case tracker.MigrationObservation:
				vm := o.Namespace + "/" + o.VMI
				i := slices.IndexFunc(exist[vm], func(m tracker.MigrationObservation) bool { return m.UID == o.UID })
				switch {
				case !o.Evacuation:
				case o.Gone:
					exist[vm] = slices.Delete(exist[vm], i, i+1)
				case i < 0:
					exist[vm] = append(exist[vm], o)
				default:
					exist[vm][i] = o
				}
			case tracker.PodObservation:
				if !o.CreatedAt.Equal(truncateToSecond(o.At)) || o.MigrationUID == "" || o.Phase != "Pending" {
					continue
				}
				until := computeEarliestStart(exist[o.Namespace+"/"+o.VMI], o.MigrationUID)
				require.False(t, o.At.Before(until), "seed %d: %s started at %s, backoff until %s", r.Seed, o.MigrationName, o.At, until)
				if !until.IsZero() {
					held++
				}
			default:
			}
		}
	})
	require.Greater(t, held, 100, "attempts that had to wait")
}

// computeEarliestStart is KubeVirt's formula once more (reference: kubevirt-signals §2.4); zero where nothing holds the migration.
func computeEarliestStart(exist []tracker.MigrationObservation, uid string) time.Time {
	failed, last := 0, time.Time{}
	for _, m := range slices.Backward(exist) {
		if m.UID == uid || !m.DeletionAt.IsZero() {
			continue
		}
		if m.Phase != trail.PhaseFailed {
			break
		}
		if failed == 0 {
			last = m.PhaseTimes[len(m.PhaseTimes)-1].At
		}
		failed++
	}
	if failed == 0 || !slices.ContainsFunc(exist, func(m tracker.MigrationObservation) bool { return m.UID == uid }) {
		return time.Time{}
	}
	return last.Add(20 * time.Second << (failed - 1))
}

// TestFiveFinishedMigrationsSurvive also looks whether there are VMs with more than five attempts at all.
func TestFiveFinishedMigrationsSurvive(t *testing.T) {
	t.Parallel()
	removed := 0
	eachRun(t, func(t *testing.T, r Run) {
		t.Helper()
		final := map[string]map[string]bool{}
		for _, m := range migrationsOf(r) {
			vm := m.Namespace + "/" + m.VMI
			if final[vm] == nil {
				final[vm] = map[string]bool{}
			}
			switch {
			case m.Gone:
				delete(final[vm], m.UID)
				removed++
			case isFinal(m.Phase):
				final[vm][m.UID] = true
			}
			require.LessOrEqual(t, len(final[vm]), keptMigrations+1, "seed %d: finished VMIMs of %s", r.Seed, vm)
		}
	})
	require.Greater(t, removed, 100)
}

// TestMarks: a mark names the node of the guest, goes with the guest's move, and is shown as the release shows it.
func TestMarks(t *testing.T) {
	t.Parallel()
	eachRun(t, func(t *testing.T, r Run) {
		t.Helper()
		last := map[string]tracker.VMIObservation{}
		for _, o := range r.Observations {
			v, ok := o.(tracker.VMIObservation)
			if !ok {
				continue
			}
			before, known := last[v.UID]
			last[v.UID] = v
			if v.Mark != "" {
				require.Equal(t, v.Node, v.Mark, "seed %d: %s", r.Seed, v.Name)
			}
			if known && before.Node != "" && before.Node != v.Node {
				require.Empty(t, v.Mark, "seed %d: %s moved and is marked", r.Seed, v.Name)
				require.Equal(t, v.Node, v.State.TargetNode, "seed %d: %s moved", r.Seed, v.Name)
			}
			if r.KubeVirt < "v1.7" {
				require.Empty(t, v.EvictionSource)
				require.Len(t, v.Conditions, 1)
			}
		}
	})
}

// TestAnnotation: up to v1.6.0 the annotation lives with an attempt, afterwards with the mark.
func TestAnnotation(t *testing.T) {
	t.Parallel()
	set := map[string]int{}
	eachRun(t, func(t *testing.T, r Run) {
		t.Helper()
		want := "true"
		if r.KubeVirt == v160.version {
			want = "kubevirt"
		}
		for _, o := range r.Observations {
			if p, ok := o.(tracker.PodObservation); ok && p.HasInProgress {
				require.Equal(t, want, p.EvictionInProgress, "seed %d: %s", r.Seed, p.Name)
				set[want]++
			}
		}
	})
	require.Len(t, set, 2)
}

// TestDeschedulerLimits: what it believes to be under way stays within its limits when it has just added to it. Drains
// can fill its cache beyond them.
func TestDeschedulerLimits(t *testing.T) {
	t.Parallel()
	asked := 0
	for seed := range uint64(someSeeds) {
		c := newCluster(seed)
		d := c.descheduler
		d.accepted = func(n *node) {
			onNode, all := d.inFlight(n.meta.Name)
			require.LessOrEqual(t, onNode, d.perNode, "seed %d: %s", seed, n.meta.Name)
			if d.total > 0 {
				require.LessOrEqual(t, all, d.total, "seed %d", seed)
			}
			asked++
		}
		c.runToEnd(seed)
	}
	require.Greater(t, asked, 100)
}

// TestActsAreApartFromFailures: what a resolution of 1 s cannot order does not happen.
func TestActsAreApartFromFailures(t *testing.T) {
	t.Parallel()
	for seed := range uint64(someSeeds) {
		c := newCluster(seed)
		c.noted = func(m *migration) {
			if n := c.findNode(m.from); m.phase == trail.PhaseFailed && !m.vmi.over && m.vmi.phase == "Running" {
				require.GreaterOrEqual(t, c.clock.now.Sub(n.acted), 2*time.Second, "seed %d: %s failed", seed, m.meta.Name)
			}
		}
		d := c.descheduler
		d.accepted = func(n *node) {
			for _, e := range c.all.open {
				if e.node == n.meta.Name && !e.failed.IsZero() {
					require.Greater(t, c.clock.now.Sub(e.failed), 2*time.Second, "seed %d: act on %s", seed, e.node)
				}
			}
		}
		c.runToEnd(seed)
	}
}

// TestTruth looks whether the runs hold what they promise.
func TestTruth(t *testing.T) {
	t.Parallel()
	const runs = 400
	without, closed := 0, map[string]int{}
	for seed := range uint64(runs) {
		r := New(seed)
		if !r.Injected {
			require.Empty(t, r.Loops, "seed %d: %v", seed, r.Plots)
			continue
		}
		if len(r.Loops) == 0 {
			without++
		}
		for _, l := range r.Loops {
			require.Equal(t, l.ClosedBy == "", l.ClosedAt.IsZero())
			require.True(t, l.ClosedAt.IsZero() || l.OpenedAt.Before(l.ClosedAt), "seed %d: %+v", seed, l)
			closed[l.ClosedBy]++
		}
	}
	require.Less(t, without, runs/2/10, "runs in which chance undid every loop that was injected")
	for _, by := range []string{"", ClosedByMigrated, ClosedByCancelled, ClosedByVMIGone, ClosedByQuiet} {
		require.Greater(t, closed[by], 10, "loops closed by %q", by)
	}
}

// TestEveryPlotIsStaged looks whether a few hundred runs have all there is.
func TestEveryPlotIsStaged(t *testing.T) {
	t.Parallel()
	staged := map[string]int{}
	for seed := range uint64(200) {
		for _, p := range New(seed).Plots {
			staged[p]++
		}
	}
	for _, p := range slices.Concat(loopPlots, nearMisses) {
		require.Positive(t, staged[p.name], p.name)
	}
}

// TestCut: broken watches hide something, and show of each object no older state after a newer one.
func TestCut(t *testing.T) {
	t.Parallel()
	gaps, late := 0, 0
	for seed := range uint64(20) {
		r := New(seed).Cut()
		seen := map[string]string{}
		last := time.Time{}
		for _, o := range r.Observations {
			kind, s, meta, ok := describeObject(o)
			if g, is := o.(tracker.GapObservation); is {
				require.Less(t, g.ClosedAt.Sub(g.OpenedAt), longestCut)
				gaps++
			}
			if !ok {
				continue
			}
			require.False(t, s.At.Before(last), "seed %d", seed)
			last = s.At
			before := seen[meta.UID]
			require.True(t, before == "" || before == meta.ResourceVersion || trail.NewerVersion(meta.ResourceVersion, before), "seed %d: %s %s", seed, kind, meta.Name)
			if s.Listed && before != meta.ResourceVersion && before != "" {
				late++
			}
			seen[meta.UID] = meta.ResourceVersion
		}
	}
	require.Greater(t, gaps, 200)
	require.Greater(t, late, 100)
}
