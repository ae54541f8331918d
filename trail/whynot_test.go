package trail_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/evictrail/evictrail/trail"
	"github.com/evictrail/evictrail/trail/tracker"
)

// TestWhyNot asks of one VM after another why it does not move: each kind of obstacle, with its words.
func TestWhyNot(t *testing.T) {
	t.Parallel()
	one := int64(1)
	cooldown := &trail.CooldownSettings{trail.DefaultCooldown, trail.DefaultMaxCooldown, trail.DefaultCooldownWindow}
	const at = 10 * time.Minute
	notMigratable := []tracker.Condition{{Type: trail.ConditionLiveMigratable, Status: "False", Reason: "DisksNotLiveMigratable", Message: "disk x is not shared"}}
	for _, c := range []struct {
		name    string
		arrange func(*history)
		want    []trail.ObstacleKind
		text    string // in the paragraph
		until   string // of the last obstacle
		reason  string // of the last obstacle
		advice  string // in the advice; empty: there is none
	}{
		{"it was never seen", func(*history) {}, []trail.ObstacleKind{trail.ObstacleGone}, "", "-", "", ""},
		{"it ended", func(h *history) {
			h.changeVM(0, "db", nil)
			h.changeVM(time.Minute, "db", func(v *tracker.VMIObservation) { v.Phase = "Succeeded" })
		}, []trail.ObstacleKind{trail.ObstacleGone}, "", "-", "", ""},
		{"it is on its way", func(h *history) {
			h.changeVM(0, "db", nil)
			h.markVM(time.Minute, "db", "descheduler")
			h.createMigration(time.Minute, "a", "db", nil)
			h.advanceMigration(2*time.Minute, "a", trail.PhaseScheduling)
		}, []trail.ObstacleKind{trail.ObstacleMigrating}, "It is moving: attempt 1 (m-a) is in phase Scheduling since 2026-11-21 00:02:00Z", "-", "", ""},
		{"its owner has to move it", func(h *history) {
			h.changeVM(0, "db", func(v *tracker.VMIObservation) { v.Strategy = trail.StrategyExternal })
			h.markVM(time.Minute, "db", "descheduler")
		}, []trail.ObstacleKind{trail.ObstacleExternal}, "its eviction strategy is External", "-", "", "evacuate/cancel"},
		{"it cannot be migrated, and nobody asked", func(h *history) {
			h.changeVM(0, "db", func(v *tracker.VMIObservation) { v.Conditions = notMigratable })
			h.observePod(0, "virt-launcher-db-a", "db", "n1", "", nil)
			h.observeRequest(time.Minute, "a1", "virt-launcher-db-a", "alice", "VMI db "+notMigratableText, nil)
			h.observeRequest(2*time.Minute, "a2", "virt-launcher-db-a", "alice", "VMI db "+notMigratableText, nil)
		}, []trail.ObstacleKind{trail.ObstacleNotMigratable}, "DisksNotLiveMigratable disk x is not shared; at 2026-11-21 00:01:00Z alice asked to evict it, and again", "-", "", "LiveMigratable"},
		{"it cannot be migrated any more, and was to be", func(h *history) {
			h.changeVM(0, "db", nil)
			h.markVM(time.Minute, "db", "descheduler")
			h.changeVM(2*time.Minute, "db", func(v *tracker.VMIObservation) { v.Conditions = notMigratable })
		}, []trail.ObstacleKind{trail.ObstacleNotMigratable}, "it cannot be live-migrated any more", "-", "", "LiveMigratable"},
		{"its attempts fail, and KubeVirt waits", func(h *history) {
			h.changeVM(0, "db", nil)
			h.markVM(time.Minute, "db", "descheduler")
			for i, uid := range []string{"a", "b", "c"} {
				h.createMigration(time.Duration(i+2)*time.Minute, uid, "db", nil)
				h.failMigration(time.Duration(i+2)*time.Minute+50*time.Second, uid)
			}
			h.createMigration(9*time.Minute+40*time.Second, "d", "db", nil)
			h.failMigration(9*time.Minute+50*time.Second, "d")
		}, []trail.ObstacleKind{trail.ObstacleFailing, trail.ObstacleBackoff}, "KubeVirt has tried 4 times and failed", "12:30", "backoff", "cancel"},
		{"and goes on without end", func(h *history) {
			h.changeVM(0, "db", nil)
			h.markVM(time.Second, "db", "descheduler")
			for i := range 6 {
				uid := string(rune('a' + i))
				h.createMigration(time.Duration(i+2)*time.Minute, uid, "db", nil)
				h.failMigration(time.Duration(i+2)*time.Minute+50*time.Second, uid)
			}
		}, []trail.ObstacleKind{trail.ObstacleFailing, trail.ObstacleBackoff}, "it waits 5m20s each time now, and will go on so without end", "13:10", "backoff", "cancel"},
		{"its next attempt waits for something else", func(h *history) {
			h.changeVM(0, "db", nil)
			h.markVM(time.Minute, "db", "descheduler")
			h.createMigration(2*time.Minute, "a", "db", nil)
			h.failMigration(3*time.Minute, "a")
			h.createMigration(4*time.Minute, "b", "db", func(m *tracker.MigrationObservation) {
				m.Conditions = []tracker.Condition{{Type: "migrationRejectedByResourceQuota", Status: "True", Message: "exceeded quota: compute"}}
			})
		}, []trail.ObstacleKind{trail.ObstacleFailing, trail.ObstacleWaiting}, "Attempt 2 (m-b) waits since 2026-11-21 00:04:00Z: resource quota, exceeded quota: compute", "-", "quota", "cancel"},
		{"its first attempt waits", func(h *history) {
			h.changeVM(0, "db", nil)
			h.markVM(time.Minute, "db", "descheduler")
			h.createMigration(2*time.Minute, "a", "db", nil)
		}, []trail.ObstacleKind{trail.ObstacleWaiting}, "by the descheduler; attempt 1 (m-a) waits since 2026-11-21 00:02:00Z: queued", "-", "queued", ""},
		{"it is marked, and that is all", func(h *history) {
			h.changeVM(0, "db", nil)
			h.markVM(time.Minute, "db", "descheduler")
		}, []trail.ObstacleKind{trail.ObstacleWaiting}, "KubeVirt has made no migration for it yet", "-", "", ""},
		{"somebody's own migration waits", func(h *history) {
			h.changeVM(0, "db", nil)
			h.createMigration(2*time.Minute, "a", "db", byUser)
		}, []trail.ObstacleKind{trail.ObstacleWaiting}, "waits since 2026-11-21 00:02:00Z", "-", "queued", ""},
		{"somebody's own migration failed", func(h *history) {
			h.changeVM(0, "db", nil)
			h.createMigration(2*time.Minute, "a", "db", byUser)
			h.failMigration(3*time.Minute, "a")
		}, []trail.ObstacleKind{trail.ObstacleGivenUp}, "and nobody tries again", "-", string(trail.FailureControlPlane), "virtctl migrate -n shop db"},
		{"an eviction would shut it down", func(h *history) {
			h.changeVM(0, "db", func(v *tracker.VMIObservation) { v.Strategy = "" })
		}, []trail.ObstacleKind{trail.ObstacleStrategy}, "Its eviction strategy (none set) does not ask to be moved", "-", "", ""},
		{"the descheduler leaves it alone", func(h *history) {
			h.applyPolicy(0, trail.DeschedulerSettings{Cooldown: cooldown})
			h.changeVM(0, "db", nil)
			h.moveVM(2*time.Minute, 3*time.Minute, "a", "db", "n2")
		}, []trail.ObstacleKind{trail.ObstacleCooldown}, "leaves it alone until 2026-11-21 00:18:00Z (8m0s more): its cooldown is 15m0s (after one migration)", "18:00", string(trail.LayerCooldown), ""},
		{"its pod asks to be left alone", func(h *history) {
			h.changeVM(0, "db", nil)
			h.observePod(0, "virt-launcher-db-a", "db", "n1", "", func(p *tracker.PodObservation) { p.PreferNoEviction = true })
		}, []trail.ObstacleKind{trail.ObstacleOptedOut}, "prefer-no-eviction", "-", "", `prefer-no-eviction":null`},
		{"another VM holds the slot of its node", func(h *history) {
			h.applyPolicy(0, trail.DeschedulerSettings{LimitPerNode: &one})
			h.changeVM(0, "db", nil)
			h.changeVM(0, "web", nil)
			h.markVM(time.Minute, "web", "descheduler")
		}, []trail.ObstacleKind{trail.ObstacleSlots}, "The descheduler may evict one VM from n1 at a time, and its slot is held by shop/web for 9m0s.", "-", "", ""},
		{"another VM elsewhere holds the only slot", func(h *history) {
			h.applyPolicy(0, trail.DeschedulerSettings{LimitTotal: &one})
			h.changeVM(0, "db", nil)
			h.changeVM(0, "web", func(v *tracker.VMIObservation) { v.Node = "n2" })
			h.markVM(time.Minute, "web", "descheduler")
			for i, uid := range []string{"a", "b"} {
				h.createMigration(time.Duration(i+2)*time.Minute, uid, "web", nil)
				h.failMigration(time.Duration(i+2)*time.Minute+10*time.Second, uid)
			}
		}, []trail.ObstacleKind{trail.ObstacleSlots}, "The descheduler may evict one VM of the cluster at a time, and its slot is held by shop/web for 9m0s (2 failed attempts).", "-", "",
			"namespaces/shop/virtualmachineinstances/web/evacuate/cancel"},
		{"several things at once, the most important first", func(h *history) {
			h.applyPolicy(0, trail.DeschedulerSettings{Cooldown: cooldown, LimitPerNode: &one})
			h.changeVM(0, "db", func(v *tracker.VMIObservation) { v.Strategy = "" })
			h.createMigration(time.Minute, "u", "db", byUser)
			h.runMigration(2*time.Minute, 3*time.Minute, "u", "n2")
			h.observePod(3*time.Minute, "virt-launcher-db-b", "db", "n2", "u", func(p *tracker.PodObservation) { p.PreferNoEviction = true })
			h.changeVM(4*time.Minute, "db", func(v *tracker.VMIObservation) { v.Conditions = notMigratable })
			h.changeVM(0, "web", func(v *tracker.VMIObservation) { v.Node = "n2" })
			h.markVM(5*time.Minute, "web", "descheduler")
		}, []trail.ObstacleKind{trail.ObstacleNotMigratable, trail.ObstacleStrategy, trail.ObstacleCooldown, trail.ObstacleOptedOut, trail.ObstacleSlots}, "", "-", "", "LiveMigratable"},
		{"nothing is in its way", func(h *history) { h.changeVM(0, "db", nil) },
			[]trail.ObstacleKind{trail.ObstacleNobodyAsks}, "Free to move; no eviction is pending.", "-", "", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			h := newHistory()
			c.arrange(h)
			a := h.deriveAt(at).WhyNot("shop", "db")
			var kinds []trail.ObstacleKind
			for _, o := range a.Obstacles {
				kinds = append(kinds, o.Kind)
				require.NotEmpty(t, o.Text)
				require.False(t, strings.HasSuffix(o.Text, "."), o.Text)
				require.Equal(t, "shop/db", o.Namespace+"/"+o.VMI)
			}
			require.Equal(t, c.want, kinds, a.Paragraph)
			require.Contains(t, a.Paragraph, c.text)
			require.NotContains(t, a.Paragraph, "..")
			last := a.Obstacles[len(a.Obstacles)-1]
			require.Equal(t, c.until, formatShortTime(last.Until))
			require.Equal(t, c.reason, last.Reason)
			if c.advice == "" {
				require.Empty(t, a.Advice)
			}
			require.Contains(t, a.Advice, c.advice)
		})
	}
}

// TestWhyNotNode asks why the VMs of a node do not leave it.
func TestWhyNotNode(t *testing.T) {
	t.Parallel()
	h := newHistory()
	h.changeNode(0, "n1", nil)
	for _, vm := range []string{"a", "b", "c", "d"} {
		h.changeVM(0, vm, nil)
		h.observePod(0, "virt-launcher-"+vm, vm, "n1", "", nil)
	}
	h.changeVM(0, "elsewhere", func(v *tracker.VMIObservation) { v.Node = "n2" })
	h.changeNode(time.Minute, "n1", func(n *tracker.NodeObservation) { n.Unschedulable = true })
	for _, vm := range []string{"a", "b"} {
		h.observeRequest(2*time.Minute, "k-"+vm, "virt-launcher-"+vm, "alice", `Eviction triggered evacuation of VMI "shop/`+vm+`"`, func(o *tracker.RequestObservation) { o.Detail.Agent = "kubectl/v1.35" })
		h.markVM(2*time.Minute, vm, "")
		h.createMigration(2*time.Minute, vm, vm, nil)
		h.failMigration(3*time.Minute, vm)
	}
	a := h.deriveAt(10 * time.Minute).WhyNotNode("n1")
	require.Equal(t, "n1: Being drained by alice (kubectl) for 9 min 0 s (since 2026-11-21 00:01:00Z), 4 of 4 VMs still on it. "+
		"4 VMs: 2 failing, 2 free to move.", a.Paragraph)
	var kinds []trail.ObstacleKind
	for _, o := range a.Obstacles {
		kinds = append(kinds, o.Kind)
	}
	require.Equal(t, []trail.ObstacleKind{trail.ObstacleFailing, trail.ObstacleFailing, trail.ObstacleNobodyAsks, trail.ObstacleNobodyAsks}, kinds, "in the order of their names")
	slices.Reverse(a.Obstacles)
	var order []string
	for _, g := range h.deriveAt(10 * time.Minute).Guests(a.Obstacles) {
		order = append(order, fmt.Sprint(g.VMI, " ", g.Kind, " ", g.FailedAttempts, " ", g.LastMove != nil))
	}
	require.Equal(t, []string{"a failing 1 true", "b failing 1 true", "c nobody_asks 0 false", "d nobody_asks 0 false"}, order, "the worst first")
	require.Equal(t, "n9: No VMs.", h.deriveAt(10*time.Minute).WhyNotNode("n9").Paragraph)
	vm := h.deriveAt(10*time.Minute).WhyNot("shop", "a")
	require.Contains(t, vm.Paragraph, "The drain of n1 has waited for it since 2026-11-21 00:02:00Z (failing). KubeVirt's next step: try again")

	one := int64(1)
	h.applyPolicy(11*time.Minute, trail.DeschedulerSettings{LimitPerNode: &one})
	h.changeNode(12*time.Minute, "n1", func(n *tracker.NodeObservation) { n.Unschedulable = false })
	a = h.deriveAt(50 * time.Minute).WhyNotNode("n1")
	require.NotContains(t, a.Paragraph, "being drained")
	require.Contains(t, a.Paragraph, "The descheduler may evict one VM from n1 at a time, and the slots are held by shop/a for 48m0s (one failed attempt), shop/b for 48m0s (one failed attempt).")
	require.Contains(t, a.Paragraph, "Blocked descheduler, open since 2026-11-21 00:32:00Z: ")
	require.Contains(t, a.Advice, "cancel the evacuation")
}
