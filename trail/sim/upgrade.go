package sim

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/evictrail/evictrail/trail"
	"github.com/evictrail/evictrail/trail/tracker"
)

// virtController is the account of KubeVirt's workload updater.
var virtController = caller{user: "system:serviceaccount:kubevirt:kubevirt-controller", agent: "virt-controller/v0.0.0 (linux/amd64) kubernetes/$Format"}

// The workload updater's own pace: between two looks, and what it evicts where the CR says nothing else.
//
// Source: kubevirt pkg/virt-controller/watch/workload-updater/workload-updater.go.
const (
	updaterEvery  = 5 * time.Second
	evictionEvery = time.Minute
	evictionSize  = 10
)

// Upgraded is a history in which KubeVirt is upgraded, once or twice.
type Upgraded struct {
	Run
	Upgrades []time.Time // when its new virt-controller began to work
	Methods  []string    // by which KubeVirt brings VMs to the new version; nil: by none
}

// NewUpgraded plays some hours of a cluster in which KubeVirt is upgraded, from one seed to another with other methods of bringing VMs to
// the new version, now and then with a second upgrade while the first goes on, and with drains and users beside it.
func NewUpgraded(seed uint64) Upgraded {
	d := newDice(seed)
	o := options{
		nodes: d.pickInt(3, 8), hours: d.pickDuration(2*time.Hour, 3*time.Hour), policySeen: true, auditDelay: 300 * time.Millisecond,
		flaky: 0.2 * d.Float64(), transfer: d.pickDuration(8*time.Second, 60*time.Second), scatter: 0.2,
		perNode: d.pickInt(1, 4), perCluster: d.pickInt(2, 8), userEvery: 20 * time.Minute, restartEvery: 30 * time.Minute, batch: d.pickInt(0, 3),
		methods: pickOne(d, []string{"LiveMigrate"}, []string{"LiveMigrate"}, []string{"LiveMigrate", "Evict"}, []string{"Evict"}, nil),
	}
	o.vms = o.nodes * d.pickInt(3, 12)
	c := assembleCluster(d, o, pickOne(d, v164, v184, v184queue, v190))
	c.createNodesAndVMs()
	c.startBackgroundActivity()
	r := Upgraded{Run: Run{Seed: seed, KubeVirt: c.release.version, Start: c.clock.now}, Methods: o.methods}
	at := c.clock.now.Add(d.pickDuration(5*time.Minute, 40*time.Minute))
	r.Upgrades = append(r.Upgrades, at)
	if d.chance(0.3) {
		r.Upgrades = append(r.Upgrades, at.Add(d.pickDuration(3*time.Minute, 100*time.Minute)))
	}
	for i, at := range r.Upgrades {
		c.clock.scheduleAt(at, func() { c.upgradeKubeVirt(fmt.Sprintf("%s-%d", r.KubeVirt, i+1)) })
	}
	if d.chance(0.5) {
		c.clock.scheduleAt(at.Add(d.pickDuration(0, 20*time.Minute)), func() { c.startDrain(pickOne(d, c.nodes...), time.Hour, func() {}) })
	}
	c.clock.runUntil(c.clock.now.Add(o.hours))
	r.Observations, r.End = c.watch.listObservations(), c.clock.now.Add(time.Minute)
	return r
}

// upgradeKubeVirt is virt-operator: a new virt-controller labels what runs in an old virt-launcher, and moves it once all of KubeVirt is
// of the new version.
func (c *cluster) upgradeKubeVirt(version string) {
	c.release.version = version
	c.upgrades++
	upgrade := c.upgrades
	for _, v := range c.vms {
		if x := v.vmi; c.isRunning(x) {
			c.clock.scheduleAfter(c.dice.pickDuration(time.Second, 15*time.Second), func() {
				if c.isRunning(x) && !x.outdated {
					x.outdated = true
					c.vmiChanged(x)
				}
			})
		}
	}
	c.clock.scheduleAfter(c.dice.pickDuration(20*time.Second, 90*time.Second), func() {
		seen, meta := c.updateObject(trail.ObjectKubeVirt, &c.kubevirt, false)
		c.recordSight(seen.At, tracker.KubeVirtObservation{Seen: seen, Meta: meta, Settings: c.buildSettings()})
		c.updateWorkloads(upgrade)
	})
}

// updateWorkloads is the workload updater: it migrates what is outdated and can be, as many at once as the cluster allows, and evicts
// the others in batches, as far as its methods allow.
func (c *cluster) updateWorkloads(upgrade int) {
	if upgrade != c.upgrades { // there is another virt-controller
		return
	}
	var moves, evicts []*vmi
	for _, v := range c.vms {
		x := v.vmi
		switch {
		case !c.isRunning(x) || !x.outdated || x.findUnfinishedMigration() != nil:
		case v.migratable && slices.Contains(c.options.methods, "LiveMigrate"):
			moves = append(moves, x)
		case slices.Contains(c.options.methods, "Evict"):
			evicts = append(evicts, x)
		}
	}
	c.dice.Shuffle(len(moves), func(i, j int) { moves[i], moves[j] = moves[j], moves[i] })
	c.dice.Shuffle(len(evicts), func(i, j int) { evicts[i], evicts[j] = evicts[j], evicts[i] })
	free := max(0, cmp.Or(c.options.perCluster, parallelPerCluster)-len(c.active))
	for _, x := range moves[:min(free, len(moves))] {
		m := c.newMigration(x, "kubevirt-workload-update-"+c.dice.newSuffix())
		if m.updates = true; c.release.queue {
			m.priority = "system-critical"
		}
		c.recordAuditEvent(trail.ActionCreateMigration, x.vm.namespace, m.meta.Name, virtController, 201, "")
		c.startMigration(m)
	}
	if c.clock.now.Sub(c.evicted) >= evictionEvery && len(evicts) > 0 {
		c.evicted = c.clock.now
		for _, x := range evicts[:min(cmp.Or(c.options.batch, evictionSize), len(evicts))] {
			c.evictOutdated(x.pod)
		}
	}
	c.clock.scheduleAfter(updaterEvery, func() { c.updateWorkloads(upgrade) })
}

// evictOutdated evicts the pod of a guest that is outdated. A guest that may be shut down takes its time, so that its end is after the
// request by a clock of seconds, too.
func (c *cluster) evictOutdated(p *pod) {
	if p.vmi.vm.strategy != "None" {
		c.evictPod(p, virtController)
		return
	}
	c.recordAuditEvent(trail.ActionEvict, p.meta.Namespace, p.meta.Name, virtController, 201, "")
	c.clock.scheduleAfter(c.dice.pickDuration(2*time.Second, 20*time.Second), func() { c.shutDown(p) })
}
