package trail_test

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/evictrail/evictrail/trail"
	"github.com/evictrail/evictrail/trail/tracker"
)

// chance makes a history at random: VMs that are marked, moved, fail, are deleted and begin again; nodes that are cordoned,
// tainted and deleted; settings that change; people and programs that ask. Nothing of it needs to make sense.
type chance struct {
	*history
	*rand.Rand
	now    time.Duration
	serial int
	vmOf   []string
	nodeOf []string
	active map[string]string // the migration under way, by VM
	done   []string          // migrations that are over and exist
}

func newChance(seed uint64) *chance {
	c := &chance{
		history: newHistory(), Rand: rand.New(rand.NewPCG(seed, 17)), vmOf: []string{"db", "web", "mail"}, nodeOf: []string{"n1", "n2", "n3"},
		active: map[string]string{},
	}
	many := int64(1000)
	c.applyKubeVirt(0, trail.KubeVirtSettings{Version: "v1.8.4", ParallelPerCluster: &many})
	c.changePolicy()
	for _, n := range c.nodeOf {
		c.changeNode(0, n, nil)
	}
	for _, v := range c.vmOf {
		c.startVM(v)
	}
	return c
}

// pickOne returns one of some.
func pickOne[T any](c *chance, of ...T) T { return of[c.IntN(len(of))] }

// passTime lets time pass: seconds, minutes or hours.
func (c *chance) passTime() {
	c.now += time.Second + time.Duration(c.Int64N(int64(pickOne(c, 10*time.Second, time.Minute, 15*time.Minute, 90*time.Minute, 7*time.Hour))))
	c.now = c.now.Truncate(100 * time.Millisecond)
}

func (c *chance) changePolicy() {
	one := int64(1 + c.IntN(2))
	s := trail.DeschedulerSettings{Model: pickOne(c, "", trail.CooldownLive, trail.CooldownReseeded, trail.CooldownNone)}
	if c.IntN(3) > 0 {
		s.Cooldown = &trail.CooldownSettings{Base: trail.DefaultCooldown, Max: trail.DefaultMaxCooldown, Window: trail.DefaultCooldownWindow}
	}
	if c.IntN(3) > 0 {
		s.LimitPerNode = &one
	}
	if c.IntN(3) > 0 {
		s.LimitTotal = &one
	}
	c.applyPolicy(c.now, s)
}

func (c *chance) newID(prefix string) string {
	c.serial++
	return prefix + strconv.Itoa(c.serial)
}

func (c *chance) startVM(vm string) {
	uid, strategy := c.newID("vmi"), pickOne(c, "LiveMigrate", "LiveMigrate", "LiveMigrateIfPossible", trail.StrategyExternal, "")
	node := pickOne(c, c.nodeOf...)
	c.changeVM(c.now, vm, func(v *tracker.VMIObservation) { v.UID, v.Node, v.Strategy = uid, node, strategy })
	c.launchPod(vm, "")
}

func (c *chance) launchPod(vm, migration string) {
	prefer, stuck := c.IntN(6) == 0, c.IntN(8) == 0
	var progress *string
	if c.IntN(2) == 0 {
		text := pickOne(c, "true", "true", "kubevirt")
		progress = &text
	}
	c.observePod(c.now, c.podOf(vm), vm, c.vms[vm].Node, migration, func(p *tracker.PodObservation) {
		p.PreferNoEviction = prefer
		if stuck {
			p.Unschedulable, p.Node = "0/3 nodes are available", ""
		}
		if progress != nil {
			p.HasInProgress, p.EvictionInProgress = true, *progress
		}
	})
}

func (c *chance) podOf(vm string) string { return "virt-launcher-" + c.vms[vm].UID }

// runStep has one thing happen.
func (c *chance) runStep() {
	c.passTime()
	vm, node := pickOne(c, c.vmOf...), pickOne(c, c.nodeOf...)
	v := c.vms[vm]
	switch c.IntN(22) {
	case 0, 1, 2:
		c.markVM(c.now, vm, pickOne(c, "descheduler", "descheduler", ""))
	case 3:
		c.unmarkVM(c.now, vm)
	case 4, 5, 6:
		if c.active[vm] == "" {
			uid := c.newID("m")
			c.active[vm] = uid
			tainted := c.nodes[v.Node] != nil && len(c.nodes[v.Node].Taints) > 0
			if (v.Mark != "" || tainted) && c.IntN(5) > 0 {
				c.createMigration(c.now, uid, vm, nil)
			} else {
				c.createMigration(c.now, uid, vm, pickOne(c, byUser, byUpdater))
			}
		}
	case 7, 8, 9, 10:
		if uid := c.active[vm]; uid != "" {
			c.failMigration(c.now, uid)
			c.finishMigration(vm)
		}
	case 11, 12:
		if uid := c.active[vm]; uid != "" {
			start := c.now
			c.passTime()
			if node == v.Node {
				node = ""
			}
			c.runMigration(start, c.now, uid, node)
			c.now += time.Second
			c.finishMigration(vm)
		}
	case 13:
		if uid := c.active[vm]; uid != "" {
			c.advanceMigration(c.now, uid, trail.PhaseScheduling)
		}
	case 14:
		if uid := c.active[vm]; uid != "" && c.IntN(2) == 0 {
			c.requestDeletion(c.now, uid)
		} else if uid != "" {
			c.migrations[uid].Conditions = pickOne(c, nil, []tracker.Condition{{Type: "migrationRejectedByResourceQuota", Status: "True"}})
			c.observeMigration(c.now, uid)
		}
	case 15:
		c.changeNode(c.now, node, func(n *tracker.NodeObservation) { n.Unschedulable = !n.Unschedulable })
	case 16:
		c.changeNode(c.now, node, func(n *tracker.NodeObservation) {
			n.Taints = pickOne(c, nil, []tracker.Taint{{Key: trail.DefaultDrainTaintKey, Effect: trail.EffectNoSchedule}}, []tracker.Taint{{Key: "node.kubernetes.io/unreachable", Effect: "NoExecute", AddedAt: day.Add(c.now)}})
			n.Ready = &tracker.Condition{Status: pickOne(c, "True", "False", "Unknown"), Reason: "KubeletNotReady", ChangedAt: pickOne(c, time.Time{}, day.Add(c.now))}
		})
	case 17:
		user := pickOne(c, "alice", "system:serviceaccount:kube-system:descheduler", "system:serviceaccount:karpenter:karpenter")
		text := pickOne(c, `Evacuation in progress: Eviction triggered evacuation of VMI "shop/db"`, "Cannot evict pod as it would violate the pod's disruption budget.",
			"VMI db "+notMigratableText)
		c.observeRequest(c.now, c.newID("audit"), c.podOf(vm), user, text, nil)
		c.now += 100 * time.Millisecond
	case 18:
		conditions := pickOne(c, nil, []tracker.Condition{{Type: trail.ConditionLiveMigratable, Status: "False", Reason: "DisksNotLiveMigratable"}})
		c.changeVM(c.now, vm, func(v *tracker.VMIObservation) { v.Conditions = conditions })
	case 19:
		if c.IntN(3) == 0 {
			c.changeVM(c.now, vm, func(v *tracker.VMIObservation) { v.Gone = true })
			delete(c.vms, vm)
			delete(c.active, vm)
			c.passTime()
			c.startVM(vm)
		}
	case 20:
		if c.IntN(2) == 0 {
			c.changePolicy()
		} else {
			c.startDescheduler(c.now, pickOne(c, "v4.21.1", "v0.34", ""), c.IntN(4) > 0)
			c.now += time.Second
		}
	case 21:
		switch c.IntN(4) {
		case 0:
			c.changeNode(c.now, node, func(n *tracker.NodeObservation) { n.Gone = true })
			delete(c.nodes, node)
			c.passTime()
			uid := c.newID("node")
			c.changeNode(c.now, node, func(n *tracker.NodeObservation) { n.UID = uid })
		default:
			c.observeBlocks(node)
		}
	}
}

// finishMigration notes that the migration of a VM ended, and has KubeVirt keep five.
func (c *chance) finishMigration(vm string) {
	c.done = append(c.done, c.active[vm])
	delete(c.active, vm)
	if len(c.done) > 8 {
		c.removeMigration(c.now, c.done[0])
		c.done = c.done[1:]
	}
}

func (c *chance) observeBlocks(node string) {
	c.observe(tracker.ScrapeObservation{
		Seen: tracker.Seen{At: day.Add(c.now)}, Target: "d", StartedAt: day, Version: "v0.34", Plugin: true,
		Blocks: []tracker.BlockCount{{Reason: pickOne(c, "cooldown", "migration_in_progress"), Node: node, Namespace: "shop", Count: float64(c.now / time.Second)}},
	})
}

// amongOthers is what a wait says of the other migrations of the cluster, whose number newChance does not limit.
var amongOthers = regexp.MustCompile(`\d+ of 1000 migrations`)

// requireSame shows where two derivations differ, in the words of the stories.
func requireSame(t *testing.T, want, got trail.Derived, text string) {
	t.Helper()
	if want, got = trail.Bare(want), trail.Bare(got); reflect.DeepEqual(want, got) {
		return
	}
	var a, b strings.Builder
	writeRows(&a, want)
	writeRows(&b, got)
	require.Equal(t, a.String(), b.String(), text)
	require.Equal(t, want, got, text)
}

// nextOf returns the first time at which anything is to be derived again; zero where nothing is.
func nextOf(c *trail.Cluster) time.Time {
	next := time.Time{}
	for _, d := range c.Rows {
		if !d.NextAt.IsZero() && (next.IsZero() || d.NextAt.Before(next)) {
			next = d.NextAt
		}
	}
	return next
}

// newTightThresholds returns thresholds by which some evacuations are late.
func newTightThresholds() trail.Thresholds {
	t := trail.DefaultThresholds()
	t.Objectives = trail.Objectives{string(trail.RequesterDescheduler): 4 * time.Minute, string(trail.AnyRequester): 25 * time.Minute}
	return t
}

// requireReported walks through time from a moment on, with no new fact: what changes must have been announced.
func requireReported(t *testing.T, r *rand.Rand, facts []trail.Fact, from time.Time, name string) {
	t.Helper()
	for at, steps := from, 0; ; steps++ {
		require.Less(t, steps, 500, "%s: time alone never comes to rest", name)
		c := trail.DeriveAll(facts, newTightThresholds(), at)
		next := nextOf(c)
		end := at.Add(2000 * time.Hour)
		if !next.IsZero() {
			require.True(t, next.After(at), "%s: at %s it is to be derived again at %s", name, formatShortTime(at), formatShortTime(next))
			end = next
		}
		for _, then := range []time.Time{at.Add(time.Duration(r.Int64N(int64(end.Sub(at))))), end.Add(-1)} {
			again := trail.DeriveAll(facts, newTightThresholds(), then)
			require.Len(t, again.Rows, len(c.Rows), name)
			for s, d := range c.Rows {
				requireSame(t, d, again.Rows[s], fmt.Sprintf("%s: %s at %s and %s, next %s", name, s, formatShortTime(at), formatShortTime(then), formatShortTime(next)))
			}
		}
		if next.IsZero() {
			return
		}
		at = next
	}
}

// requireNothingAhead looks for what a derivation says about a time that has not come.
func requireNothingAhead(t *testing.T, c *trail.Cluster, name string) {
	t.Helper()
	for s, d := range c.Rows {
		for _, l := range d.Loops {
			require.False(t, l.OpenedAt.After(c.Now) || l.ClosedAt.After(c.Now), "%s: %s at %s: %s %s to %s", name, s, formatShortTime(c.Now), l.Kind, formatShortTime(l.OpenedAt), formatShortTime(l.ClosedAt))
			require.False(t, !l.ClosedAt.IsZero() && l.ClosedAt.Before(l.OpenedAt), "%s: %s closes before it opens", name, l.Kind)
			require.Equal(t, l.ClosedAt.IsZero(), l.ClosedBy == "", name)
		}
		for _, x := range d.Decisions {
			require.False(t, x.DecidedAt.After(c.Now), "%s: %s at %s: %s %s at %s", name, s, formatShortTime(c.Now), x.Layer, x.Reason, formatShortTime(x.DecidedAt))
		}
		for _, x := range d.Drains {
			require.False(t, x.StartedAt.After(c.Now) || x.EndedAt.After(c.Now), "%s: drain %s to %s", name, formatShortTime(x.StartedAt), formatShortTime(x.EndedAt))
			require.LessOrEqual(t, x.VMIsLeft, x.VMIsTotal, "%s: drain of %s at %s", name, x.Node, formatShortTime(x.StartedAt))
		}
	}
}

// upTo returns the facts that were observed by a time.
func upTo(facts []trail.Fact, at time.Time) []trail.Fact {
	return slices.DeleteFunc(slices.Clone(facts), func(f trail.Fact) bool { return f.ObservedAt.After(at) })
}

// shareOfWork returns 5 with go test -short, as `make test` has it: properties are tried on every fifth case. Otherwise it returns 1.
func shareOfWork() int {
	if testing.Short() {
		return 5
	}
	return 1
}

// randomHistories returns how many random histories a property is tried on.
func randomHistories() int { return 150 / shareOfWork() }

// TestTimeIsRecorded holds the contract of NextAt: between a moment and the next one that is named nothing changes.
func TestTimeIsRecorded(t *testing.T) {
	t.Parallel()
	for _, s := range readStories(t) {
		requireReported(t, rand.New(rand.NewPCG(1, 1)), s.observeFacts(), s.now, s.file)
	}
	for seed := range uint64(randomHistories()) {
		c := newChance(seed)
		for range 10 + c.IntN(60) {
			c.runStep()
		}
		requireReported(t, c.Rand, c.facts, day.Add(c.now), fmt.Sprint("seed ", seed))
	}
	for seed := range uint64(randomHistories()) {
		c := newChance(seed)
		c.ahead = time.Duration(c.Int64N(int64(pickOne(c, 5*time.Second, 10*time.Minute))))
		for range 10 + c.IntN(60) {
			c.runStep()
		}
		requireReported(t, c.Rand, c.facts, day.Add(c.now), fmt.Sprint("seed ", seed, " with a clock ahead"))
	}
}

// lasting is a loop, a drain or an evacuation: once recorded it stays, as it began and, once over, as it ended.
type lasting struct {
	name, began, ended string
	endedAt            time.Time
}

// mayGoOn reports whether what ended may turn out not to have: an evacuation whose mark was not seen ends with its last attempt, until KubeVirt makes
// another within retriedWithin, and a loop around it with it.
func (l lasting) mayGoOn(c *trail.Cluster) bool {
	for _, d := range c.Rows {
		for _, e := range d.Evacuations {
			if e.MarkedBy == trail.MarkedByMigration && !e.MarkedAt.After(l.endedAt) {
				return c.Now.Before(l.endedAt.Add(trail.RetriedWithin))
			}
		}
	}
	return false
}

func lastingOf(t *testing.T, c *trail.Cluster, name string) map[trail.FactID]lasting {
	t.Helper()
	out := map[trail.FactID]lasting{}
	ending := func(l trail.Loop) string {
		if l.Open() {
			return ""
		}
		return fmt.Sprint(" ", l.Summary, l.Counts)
	}
	add := func(id trail.FactID, what string, from, to time.Time, by string) {
		require.NotContains(t, out, id, name)
		out[id] = lasting{what, formatShortTime(from), formatShortTime(to) + " " + by, to}
	}
	for _, d := range c.Rows {
		for _, l := range d.Loops {
			add(l.ID, fmt.Sprintf("%s of %s on %s", l.Kind, formatOrDash(l.VMI), formatOrDash(l.Node)), l.OpenedAt, l.ClosedAt, string(l.ClosedBy)+ending(l))
		}
		for _, x := range d.Drains {
			add(trail.HashID("drain", x.ID.String()), "drain of "+x.Node, x.StartedAt, x.EndedAt, string(x.Outcome))
		}
		for _, e := range d.Evacuations {
			if e.MarkedBy == trail.MarkedByMigration { // until its mark is seen, which may come a moment later, or it is tried again
				continue
			}
			add(e.ID, "evacuation of "+e.VMI, e.MarkedAt, e.EndedAt, string(e.Outcome))
		}
	}
	return out
}

// TestNothingIsAhead derives stories and random histories after each of their steps: nothing is said about the future, and what a
// random history recorded stays.
func TestNothingIsAhead(t *testing.T) {
	t.Parallel()
	for _, s := range readStories(t) {
		facts := s.observeFacts()
		for _, o := range s.observations {
			at := o.SeenAt()
			known := upTo(facts, at)
			ahead := func(f trail.Fact) bool { return f.OccurredAt.After(at) } // a clock of the cluster is before ours
			if !slices.ContainsFunc(known, ahead) {
				requireNothingAhead(t, trail.DeriveAll(known, trail.DefaultThresholds(), at), s.file)
			}
		}
	}
	for seed := range uint64(4 * randomHistories()) {
		c := newChance(seed)
		name := fmt.Sprint("seed ", seed)
		before, last := map[trail.FactID]lasting{}, day
		for range 10 + c.IntN(60) {
			c.runStep()
			now := c.deriveAt(c.now)
			requireNothingAhead(t, now, name)
			lasting := lastingOf(t, now, name)
			for _, l := range now.AllLoops() {
				slack := time.Second
				if l.Kind == trail.LoopPriorityInversion {
					slack = trail.CordonBefore // its drain began with the cordon, and was known by the first request
				}
				_, known := before[l.ID]
				require.False(t, !known && l.OpenedAt.Before(last.Add(-slack)), "%s at %s: a %s of %s/%s was not recorded before, from %s", name, formatShortTime(now.Now),
					l.Kind, l.VMI, l.Node, formatShortTime(l.OpenedAt))
			}
			last = now.Now
			for id, was := range before {
				is, still := lasting[id]
				require.True(t, still, "%s at %s: %s from %s is recorded no more", name, formatShortTime(now.Now), was.name, was.began)
				require.Equal(t, was.began, is.began, "%s at %s: %s", name, formatShortTime(now.Now), was.name)
				if was.ended != "- " && !was.mayGoOn(now) {
					require.Equal(t, was.ended, is.ended, "%s at %s: %s from %s", name, formatShortTime(now.Now), was.name, was.began)
				}
			}
			before = lasting
		}
	}
}

// TestHistoriesInAnyOrder derives random histories in another order and with repetitions.
func TestHistoriesInAnyOrder(t *testing.T) {
	t.Parallel()
	for seed := range uint64(randomHistories()) {
		c := newChance(seed)
		for range 60 {
			c.runStep()
		}
		want := trail.DeriveAll(c.facts, newTightThresholds(), day.Add(c.now))
		facts := append(slices.Clone(c.facts), c.facts[:len(c.facts)/2]...)
		c.Shuffle(len(facts), func(i, j int) { facts[i], facts[j] = facts[j], facts[i] })
		got := trail.DeriveAll(facts, newTightThresholds(), day.Add(c.now))
		for s, d := range want.Rows {
			requireSame(t, d, got.Rows[s], fmt.Sprint("seed ", seed, " ", s))
		}
	}
}

// TestOthersDoNotMatter derives a VM and its nodes with and without what happens to others elsewhere.
func TestOthersDoNotMatter(t *testing.T) {
	t.Parallel()
	for seed := range uint64(randomHistories()) {
		c := newChance(seed)
		c.vmOf, c.nodeOf = []string{"alone"}, []string{"x1", "x2"}
		own := map[trail.Subject]bool{trail.VMISubject("shop", "alone"): true, {Kind: trail.SubjectNode, Name: "x1"}: true, {Kind: trail.SubjectNode, Name: "x2"}: true}
		others := newChance(seed + 1000)
		c.startVM("alone")
		for range 50 {
			if c.IntN(2) == 0 {
				c.runStep()
				continue
			}
			// The others share the tracker, the clock and the settings, and nothing else.
			others.history, others.now = c.history, c.now
			if others.serial < 100000 {
				others.serial = 100000
			}
			others.runStep()
			c.now = others.now
		}
		with := c.deriveAt(c.now)
		its := maps.Clone(own)
		for _, f := range c.facts {
			if d, ok := f.Detail.(*trail.PodDetail); ok && f.VMI == "alone" {
				its[trail.Subject{Kind: trail.SubjectPod, Name: f.Namespace + "/" + d.Pod}] = true
			}
		}
		facts := slices.DeleteFunc(slices.Clone(c.facts), func(f trail.Fact) bool {
			named := f.Subject.Kind == trail.SubjectVMI || f.Subject.Kind == trail.SubjectNode || f.Subject.Kind == trail.SubjectPod
			return named && !its[f.Subject]
		})
		without := trail.DeriveAll(facts, trail.DefaultThresholds(), day.Add(c.now))
		for _, s := range slices.SortedFunc(maps.Keys(own), func(a, b trail.Subject) int { return strings.Compare(a.String(), b.String()) }) {
			var want, got strings.Builder
			writeRows(&want, without.Rows[s])
			writeRows(&got, with.Rows[s])
			require.Equal(t, amongOthers.ReplaceAllString(want.String(), ""), amongOthers.ReplaceAllString(got.String(), ""), "seed %d, %s", seed, s)
		}
	}
}
