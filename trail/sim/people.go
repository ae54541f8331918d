package sim

import (
	"time"

	"github.com/evictrail/evictrail/trail"
)

// Those who send requests beside the descheduler.
var (
	admin   = caller{user: "kubernetes-admin", agent: "kubectl/v1.35.4 (linux/amd64) kubernetes/8f2a1c0"}
	alice   = caller{user: "alice", agent: "kubectl/v1.35.4 (linux/amd64) kubernetes/8f2a1c0"}
	virtAPI = caller{user: "system:serviceaccount:kubevirt:kubevirt-apiserver", agent: "virt-api/v0.0.0 (linux/amd64) kubernetes/$Format"}
)

// migrate is a user who asks for a migration, with virtctl or with a VMIM of her own. Nobody retries it.
func (c *cluster) migrate(v *vm) {
	x := v.vmi
	if !c.running(x) || !v.migratable || x.unfinished() != nil {
		return
	}
	name := "kubevirt-migrate-vm-" + c.dice.suffix()
	if c.dice.chance(0.5) {
		name = "alice-" + v.name + "-" + c.dice.suffix()
		c.audit(trail.ActionCreateMigration, v.namespace, name, alice, 201, "")
	} else {
		c.audit(trail.ActionMigrate, v.namespace, v.name, alice, 202, "")
		c.audit(trail.ActionCreateMigration, v.namespace, "", virtAPI, 201, "")
	}
	c.begin(c.newMigration(x, name))
}

// running reports whether a VMI is up.
func (c *cluster) running(x *vmi) bool { return !x.over && x.phase == "Running" && x.node != "" }

// cancel takes the mark off a VMI that stays where it is: evacuate/cancel, or before v1.7 a patch. The annotation that
// says who asked stays, and so does a VMIM that exists.
func (c *cluster) cancel(x *vmi, who caller) {
	c.clear(x.node, func() {
		if !c.running(x) || x.mark == "" {
			return
		}
		if c.release.source {
			c.audit(trail.ActionCancel, x.vm.namespace, x.vm.name, who, 200, "")
		}
		x.mark = ""
		c.endEvacuation(x, ClosedByCancelled)
		c.vmiChanged(x)
		c.clock.after(c.dice.between(20*time.Millisecond, 90*time.Millisecond), func() { c.reconcile(x) })
	})
}

// restart is a user who restarts a VM: another VMI comes up, maybe elsewhere.
func (c *cluster) restart(x *vmi) {
	c.clear(x.node, func() {
		if c.running(x) {
			c.stop(x, "Succeeded")
		}
	})
}

// actForKubeVirt is the controller that acts where the strategy is External: it restarts the VM elsewhere, or lets it be.
func (c *cluster) actForKubeVirt(x *vmi) {
	switch {
	case !c.running(x) || x.mark == "":
	case c.dice.chance(0.7):
		c.restart(x)
	default:
		c.cancel(x, alice)
	}
}

// live lets users, guests and kubelets do what they do all day.
func (c *cluster) live() {
	c.every(c.options.userEvery, func() { c.migrate(pick(c.dice, c.vms...)) })
	c.every(c.options.restartEvery, func() { c.restart(pick(c.dice, c.vms...).vmi) })
	c.every(c.options.statusEvery, c.noise)
	if c.options.natural {
		c.every(20*time.Minute, c.drift)
	}
}

// every does something again and again, at distances that are about the time given; never if that is zero.
func (c *cluster) every(d time.Duration, do func()) {
	if d == 0 {
		return
	}
	c.clock.after(c.dice.between(d/2, d+d/2), func() {
		do()
		c.every(d, do)
	})
}

// noise is an update that changes nothing that we record: a heartbeat, an agent's report.
func (c *cluster) noise() {
	x := pick(c.dice, c.vms...).vmi
	switch kind := c.dice.IntN(20); {
	case kind == 0:
		c.nodeChanged(pick(c.dice, c.nodes...))
	case !c.running(x):
	case kind < 5:
		c.podChanged(x.pod)
	default:
		c.vmiChanged(x)
	}
}

// drift changes the load of some guests, so that other nodes become hot.
func (c *cluster) drift() {
	for range 1 + len(c.vms)/10 {
		v := pick(c.dice, c.vms...)
		load := 0.3 + 2.5*c.dice.Float64()
		if n := c.node(v.vmi.node); n != nil {
			n.load += load - v.load
		}
		v.load = load
	}
}
