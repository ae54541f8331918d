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

// requestMigration is a user who asks for a migration, with virtctl or with a VMIM of her own. Nobody retries it.
func (c *cluster) requestMigration(v *vm) {
	x := v.vmi
	if !c.isRunning(x) || !v.migratable || x.findUnfinishedMigration() != nil {
		return
	}
	name := "kubevirt-migrate-vm-" + c.dice.newSuffix()
	if c.dice.chance(0.5) {
		name = "alice-" + v.name + "-" + c.dice.newSuffix()
		c.recordAuditEvent(trail.ActionCreateMigration, v.namespace, name, alice, 201, "")
	} else {
		c.recordAuditEvent(trail.ActionMigrate, v.namespace, v.name, alice, 202, "")
		c.recordAuditEvent(trail.ActionCreateMigration, v.namespace, "", virtAPI, 201, "")
	}
	c.startMigration(c.newMigration(x, name))
}

// isRunning reports whether a VMI is up.
func (c *cluster) isRunning(x *vmi) bool { return !x.over && x.phase == "Running" && x.node != "" }

// cancelEvacuation takes the mark off a VMI that stays where it is: evacuate/cancel, or before v1.7 a patch. The annotation that
// says who asked stays, and so does a VMIM that exists.
func (c *cluster) cancelEvacuation(x *vmi, who caller) {
	c.runAfterActs(x.node, func() {
		if !c.isRunning(x) || x.mark == "" {
			return
		}
		if c.release.source {
			c.recordAuditEvent(trail.ActionCancel, x.vm.namespace, x.vm.name, who, 200, "")
		}
		x.mark = ""
		c.endEvacuation(x, ClosedByCancelled)
		c.vmiChanged(x)
		c.clock.scheduleAfter(c.dice.pickDuration(20*time.Millisecond, 90*time.Millisecond), func() { c.reconcileVMI(x) })
	})
}

// restartVM is a user who restarts a VM: another VMI comes up, maybe elsewhere.
func (c *cluster) restartVM(x *vmi) {
	c.runAfterActs(x.node, func() {
		if c.isRunning(x) {
			c.stopVMI(x, "Succeeded")
		}
	})
}

// actForKubeVirt is the controller that acts where the strategy is External: it restarts the VM elsewhere, or lets it be.
func (c *cluster) actForKubeVirt(x *vmi) {
	switch {
	case !c.isRunning(x) || x.mark == "":
	case c.dice.chance(0.7):
		c.restartVM(x)
	default:
		c.cancelEvacuation(x, alice)
	}
}

// startBackgroundActivity lets users, guests and kubelets do what they do all day.
func (c *cluster) startBackgroundActivity() {
	c.repeatEvery(c.options.userEvery, func() { c.requestMigration(pickOne(c.dice, c.vms...)) })
	c.repeatEvery(c.options.restartEvery, func() { c.restartVM(pickOne(c.dice, c.vms...).vmi) })
	c.repeatEvery(c.options.statusEvery, c.sendNoopUpdate)
	if c.options.natural {
		c.repeatEvery(20*time.Minute, c.changeLoads)
	}
}

// repeatEvery does something again and again, at distances that are about the time given; never if that is zero.
func (c *cluster) repeatEvery(d time.Duration, do func()) {
	if d == 0 {
		return
	}
	c.clock.scheduleAfter(c.dice.pickDuration(d/2, d+d/2), func() {
		do()
		c.repeatEvery(d, do)
	})
}

// sendNoopUpdate is an update that changes nothing that we record: a heartbeat, an agent's report.
func (c *cluster) sendNoopUpdate() {
	x := pickOne(c.dice, c.vms...).vmi
	switch kind := c.dice.IntN(20); {
	case kind == 0:
		c.nodeChanged(pickOne(c.dice, c.nodes...))
	case !c.isRunning(x):
	case kind < 5:
		c.podChanged(x.pod)
	default:
		c.vmiChanged(x)
	}
}

// changeLoads changes the load of some guests, so that other nodes become hot.
func (c *cluster) changeLoads() {
	for range 1 + len(c.vms)/10 {
		v := pickOne(c.dice, c.vms...)
		load := 0.3 + 2.5*c.dice.Float64()
		if n := c.findNode(v.vmi.node); n != nil {
			n.load += load - v.load
		}
		v.load = load
	}
}
