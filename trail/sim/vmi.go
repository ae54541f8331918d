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
	requested  time.Time
	state      *tracker.MigrationState
	pod        *pod         // that runs the guest
	migrations []*migration // the VMIMs that exist, the oldest first
	evacuation *evacuation  // the truth about the mark; nil while there is none
	over       bool
}

// found starts a VM before the run begins: the first list shows it.
func (c *cluster) found(v *vm, n *node) {
	x := c.newVMI(v)
	x.meta.CreatedAt = second(c.clock.now.Add(-c.dice.between(time.Hour, 900*time.Hour)))
	x.pod.meta.CreatedAt = x.meta.CreatedAt
	x.reach("Running", x.meta.CreatedAt.Add(5*time.Second))
	c.settle(x, n.meta.Name)
	x.pod.node, x.pod.phase = n.meta.Name, "Running"
	seen, meta := c.listed(&x.pod.meta)
	c.tell(seen.At, x.pod.observation(seen, meta))
	seen, meta = c.listed(&x.meta)
	c.tell(seen.At, x.observation(seen, meta))
}

func (c *cluster) newVMI(v *vm) *vmi {
	x := &vmi{vm: v, meta: tracker.Meta{UID: c.nextUID("vmi"), Namespace: v.namespace, Name: v.name, CreatedAt: second(c.clock.now)}}
	x.pod = c.newPod(x, nil)
	v.vmi = x
	return x
}

// start gives a stopped VM a new VMI, on a node that the scheduler finds.
func (c *cluster) start(v *vm) {
	n := c.schedule("")
	if n == nil {
		c.clock.after(10*time.Second, func() { c.start(v) })
		return
	}
	x := c.newVMI(v)
	x.phase = "Scheduling"
	c.vmiChanged(x)
	c.podChanged(x.pod)
	c.clock.after(c.dice.between(time.Second, 4*time.Second), func() {
		x.pod.node, x.pod.phase = n.meta.Name, "Running"
		c.podChanged(x.pod)
		x.reach("Running", c.clock.now)
		c.settle(x, n.meta.Name)
		c.vmiChanged(x)
	})
}

// reach notes a phase.
func (v *vmi) reach(phase string, at time.Time) {
	v.phase = phase
	v.times = append(v.times, trail.PhaseTime{Phase: phase, At: second(at)})
}

// vmiChanged shows a VMI as it is now.
func (c *cluster) vmiChanged(v *vmi) {
	seen, meta := c.changed(trail.ObjectVMI, &v.meta, v.over)
	c.tell(seen.At, v.observation(seen, meta))
}

func (v *vmi) observation(seen tracker.Seen, meta tracker.Meta) tracker.VMIObservation {
	o := tracker.VMIObservation{
		Seen: seen, Meta: meta, Node: v.node, Phase: v.phase, Strategy: v.vm.strategy, Mark: v.mark, EvictionSource: v.source,
		PhaseTimes: slices.Clip(v.times), Conditions: []tracker.Condition{{Type: trail.ConditionLiveMigratable, Status: "True"}},
	}
	if !v.vm.migratable {
		o.Conditions[0] = tracker.Condition{Type: trail.ConditionLiveMigratable, Status: "False", Reason: "DisksNotLiveMigratable", Message: "disk is not shared"}
	}
	if !v.requested.IsZero() {
		o.Conditions = append(o.Conditions, tracker.Condition{
			Type: trail.ConditionEvictionRequested, Status: "True", Reason: "EvictionRequested", Message: "VMI is marked for eviction", ChangedAt: second(v.requested),
		})
	}
	if v.state != nil {
		state := *v.state
		o.State = &state
	}
	return o
}

// unfinished returns the migration that is not over, nil where none is: KubeVirt admits one.
func (v *vmi) unfinished() *migration {
	for _, m := range v.migrations {
		if !m.final() {
			return m
		}
	}
	return nil
}

// stop ends a VMI: its owner stops it, or an allowed eviction took its pod. Its VMIMs go with it, and the VM starts
// again as another VMI.
func (c *cluster) stop(v *vmi, phase string) {
	if v.over || v.phase != "Running" {
		return
	}
	v.reach(phase, c.clock.now)
	c.endEvacuation(v, ClosedByVMIGone)
	c.relieve(v.vm)
	c.vmiChanged(v)
	c.endPod(v.pod, phase)
	c.clock.after(c.dice.between(30*time.Millisecond, 100*time.Millisecond), func() {
		for _, m := range slices.Clone(v.migrations) {
			c.lose(m)
		}
		v.over = true
		c.settle(v, "")
		v.node = v.pod.node // its last state still names the node
		c.vmiChanged(v)
		v.node = ""
		c.deletePod(v.pod)
		c.clock.after(c.dice.between(time.Second, 4*time.Second), func() { c.start(v.vm) })
	})
}
