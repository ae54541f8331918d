package sim

import (
	"slices"
	"time"

	"github.com/evictrail/evictrail/trail"
	"github.com/evictrail/evictrail/trail/tracker"
)

// vmi is one life of a VM.
type vmi struct {
	vm         *vm
	meta       tracker.Meta
	node       string
	phase      string
	times      []trail.PhaseTime
	mark       string // status.evacuationNodeName
	source     string // annotation kubevirt.io/eviction-source
	outdated   bool   // label kubevirt.io/outdatedLauncherImage
	requested  time.Time
	state      *tracker.MigrationState
	pod        *pod         // that runs the guest
	migrations []*migration // the VMIMs that exist, the oldest first
	evacuation *evacuation  // the truth about the mark; nil while there is none
	over       bool
}

// addRunningVM starts a VM before the run begins: the first list shows it.
func (c *cluster) addRunningVM(v *vm, n *node) {
	x := c.newVMI(v)
	x.meta.CreatedAt = truncateToSecond(c.clock.now.Add(-c.dice.pickDuration(time.Hour, 900*time.Hour)))
	x.pod.meta.CreatedAt = x.meta.CreatedAt
	x.enterPhase("Running", x.meta.CreatedAt.Add(5*time.Second))
	c.placeGuest(x, n.meta.Name)
	x.pod.node, x.pod.phase = n.meta.Name, "Running"
	seen, meta := c.listObject(&x.pod.meta)
	c.recordSight(seen.At, x.pod.newObservation(seen, meta))
	seen, meta = c.listObject(&x.meta)
	c.recordSight(seen.At, x.newObservation(seen, meta))
}

func (c *cluster) newVMI(v *vm) *vmi {
	x := &vmi{vm: v, meta: tracker.Meta{UID: c.nextUID("vmi"), Namespace: v.namespace, Name: v.name, CreatedAt: truncateToSecond(c.clock.now)}}
	x.pod = c.newPod(x, nil)
	v.vmi = x
	return x
}

// startVM creates a new VMI of a stopped VM, on a node that the scheduler finds.
func (c *cluster) startVM(v *vm) {
	n := c.chooseNode(v, "")
	if n == nil {
		c.clock.scheduleAfter(10*time.Second, func() { c.startVM(v) })
		return
	}
	x := c.newVMI(v)
	x.phase = "Scheduling"
	c.vmiChanged(x)
	c.podChanged(x.pod)
	c.clock.scheduleAfter(c.dice.pickDuration(time.Second, 4*time.Second), func() {
		x.pod.node, x.pod.phase = n.meta.Name, "Running"
		c.podChanged(x.pod)
		x.enterPhase("Running", c.clock.now)
		c.placeGuest(x, n.meta.Name)
		c.vmiChanged(x)
	})
}

// enterPhase notes a phase.
func (v *vmi) enterPhase(phase string, at time.Time) {
	v.phase = phase
	v.times = append(v.times, trail.PhaseTime{Phase: phase, At: truncateToSecond(at)})
}

// vmiChanged shows a VMI as it is now.
func (c *cluster) vmiChanged(v *vmi) {
	seen, meta := c.updateObject(trail.ObjectVMI, &v.meta, v.over)
	c.recordSight(seen.At, v.newObservation(seen, meta))
}

func (v *vmi) newObservation(seen tracker.Seen, meta tracker.Meta) tracker.VMIObservation {
	o := tracker.VMIObservation{
		Seen: seen, Meta: meta, Node: v.node, Phase: v.phase, Strategy: v.vm.strategy, Mark: v.mark, EvictionSource: v.source, Outdated: v.outdated,
		PhaseTimes: slices.Clip(v.times), Conditions: []tracker.Condition{{Type: trail.ConditionLiveMigratable, Status: "True"}},
	}
	if !v.vm.migratable {
		o.Conditions[0] = tracker.Condition{Type: trail.ConditionLiveMigratable, Status: "False", Reason: "DisksNotLiveMigratable", Message: "disk is not shared"}
	}
	if !v.requested.IsZero() {
		o.Conditions = append(o.Conditions, tracker.Condition{
			Type: trail.ConditionEvictionRequested, Status: "True", Reason: "EvictionRequested", Message: "VMI is marked for eviction", ChangedAt: truncateToSecond(v.requested),
		})
	}
	if v.state != nil {
		state := *v.state
		o.State = &state
	}
	return o
}

// findUnfinishedMigration returns the migration that is not over, nil where none is: KubeVirt admits one.
func (v *vmi) findUnfinishedMigration() *migration {
	for _, m := range v.migrations {
		if !m.hasFinished() {
			return m
		}
	}
	return nil
}

// stopVMI ends a VMI: its owner stops it, or an allowed eviction took its pod. Its VMIMs go with it, and the VM starts
// again as another VMI.
func (c *cluster) stopVMI(v *vmi, phase string) {
	if v.over || v.phase != "Running" {
		return
	}
	v.enterPhase(phase, c.clock.now)
	c.endEvacuation(v, ClosedByVMIGone)
	c.liftVMCurse(v.vm)
	c.vmiChanged(v)
	c.endPod(v.pod, phase)
	c.clock.scheduleAfter(c.dice.pickDuration(30*time.Millisecond, 100*time.Millisecond), func() {
		for _, m := range slices.Clone(v.migrations) {
			c.abandonMigration(m)
		}
		v.over, v.outdated = true, false
		c.placeGuest(v, "")
		v.node = v.pod.node // its last state still names the node
		c.vmiChanged(v)
		v.node = ""
		c.deletePod(v.pod)
		c.clock.scheduleAfter(c.dice.pickDuration(time.Second, 4*time.Second), func() { c.startVM(v.vm) })
	})
}
