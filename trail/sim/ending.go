package sim

import (
	"fmt"
	"slices"
	"time"

	"github.com/evictrail/evictrail/trail"
	"github.com/evictrail/evictrail/trail/tracker"
)

// ending is how a migration is going to end.
type ending int

// The endings (reference: kubevirt-signals §6).
const (
	succeeds      ending = iota
	breaks               // libvirt or QEMU stops trying
	stuck                // virt-launcher's monitor aborts it
	crashes              // the target pod dies while it is prepared
	unschedulable        // the target pod finds no node for 300 s
	held4ever            // a quota forbids the target pod: it stays Pending
	aborted              // somebody deletes the VMIM while it runs
)

// course is what is going to become of a migration.
type course struct {
	end   ending
	takes time.Duration // of the transfer
}

// curse lets the evacuations of a VM fail.
type curse struct {
	ends  []ending // of its attempts, one after another
	last  ending   // of all further ones
	takes time.Duration
}

func (x *curse) nextEnding() ending {
	if len(x.ends) == 0 {
		return x.last
	}
	e := x.ends[0]
	x.ends = x.ends[1:]
	return e
}

// curseVM lays the curse that waits on a node upon the VM that is marked there.
func (c *cluster) curseVM(v *vmi) {
	n := c.findNode(v.mark)
	if len(n.curses) == 0 || v.vm.strategy != "LiveMigrate" || v.vm.curse != nil {
		return
	}
	v.vm.curse, n.curses = n.curses[0], n.curses[1:]
}

// liftVMCurse takes the curse off a VM that got away from its node. Where chance rules as well it stays and hits again.
func (c *cluster) liftVMCurse(v *vm) {
	if !c.options.natural {
		v.curse = nil
	}
}

// courseOf decides how a migration goes.
func (c *cluster) courseOf(m *migration) course {
	x := course{succeeds, c.dice.pickDuration(3*time.Second, 9*time.Second)}
	vm := m.vmi.vm
	if vm.transfer > 0 {
		x.takes = c.dice.scatterDuration(vm.transfer, c.options.scatter)
	}
	switch {
	case m.evacuates == "" && vm.userFails:
		x.end = pickOne(c.dice, breaks, stuck, crashes)
	case m.evacuates != "" && vm.curse != nil:
		x.end = vm.curse.nextEnding()
		x.takes += vm.curse.takes
	case c.dice.chance(c.options.flaky):
		x.end = pickOne(c.dice, breaks, breaks, stuck, crashes, unschedulable)
	}
	if x.end == stuck {
		x.takes += c.dice.pickDuration(10*time.Second, 140*time.Second)
	}
	if x.end == aborted {
		x.takes += c.dice.pickDuration(30*time.Second, 90*time.Second)
	}
	return x
}

// succeedMigration moves the guest: nodeName changes and the mark goes in one update, no matter who started the migration.
//
// Source: kubevirt pkg/virt-handler/migration-target.go, ackMigrationCompletion.
func (c *cluster) succeedMigration(m *migration) {
	c.runAfterActs(m.from, func() { c.runAfterActs(m.target.node, func() { c.completeMigration(m) }) })
}

func (c *cluster) completeMigration(m *migration) {
	v := m.vmi
	if m.hasFinished() || v.over || v.phase != "Running" {
		return
	}
	c.endEvacuation(v, ClosedByMigrated)
	v.state.EndedAt = truncateToSecond(c.clock.now)
	c.placeGuest(v, m.target.node)
	v.mark, v.source, v.outdated = "", "", false
	v.pod = m.target
	c.liftVMCurse(v.vm)
	c.vmiChanged(v)
	c.clock.scheduleAfter(c.dice.pickDuration(60*time.Millisecond, 180*time.Millisecond), func() {
		if m.hasFinished() || v.over || v.phase != "Running" {
			return
		}
		v.state.Completed, v.requested = true, time.Time{}
		c.vmiChanged(v)
		c.finishMigration(m, trail.PhaseSucceeded)
	})
	c.clock.scheduleAfter(c.dice.pickDuration(700*time.Millisecond, 1500*time.Millisecond), func() { c.endPod(m.source, "Succeeded") })
}

// failMigration lets an attempt fail.
func (c *cluster) failMigration(m *migration) {
	c.runAfterActs(m.from, func() {
		if m.hasFinished() || m.vmi.over || m.vmi.phase != "Running" {
			return
		}
		c.setFailureState(m)
		c.clock.scheduleAfter(c.dice.pickDuration(8*time.Millisecond, 30*time.Millisecond), func() {
			if m.hasFinished() || m.vmi.over {
				return
			}
			if m.evacuation != nil && m.course.end != aborted {
				m.evacuation.failed = c.clock.now
			}
			c.finishMigration(m, trail.PhaseFailed)
			c.afterFailure(m)
		})
	})
}

// setFailureState writes what the nodes know of the failure into the VMI. They know nothing of one before hand-over, and
// up to v1.8 nothing of a crash while the target was prepared.
func (c *cluster) setFailureState(m *migration) {
	s := m.vmi.state
	if s == nil || s.UID != m.meta.UID || m.course.end == unschedulable || m.course.end == crashes && !c.release.short {
		return
	}
	s.EndedAt, s.Failed, s.Completed = truncateToSecond(c.clock.now), true, c.release.short
	if m.course.end == crashes {
		s.StartedAt = s.EndedAt
	}
	s.FailureReason = c.failureText(m)
	if m.course.end == stuck || m.course.end == aborted {
		s.AbortStatus = "Succeeded"
	}
	c.vmiChanged(m.vmi)
}

// failureText returns migrationState.failureReason as the release words it (reference: kubevirt-signals §6.2).
func (c *cluster) failureText(m *migration) string {
	switch {
	case m.course.end == crashes:
		return "Target pod is down"
	case m.course.end == breaks:
		text := pickOne(c.dice, "virError(Code=9, Domain=10, Message='operation failed: migration out job: unexpectedly failed')",
			"virError(Code=38, Domain=7, Message='End of file while reading data: Input/output error')")
		if c.release.short {
			return text
		}
		return "Live migration failed error encountered during MigrateToURI3 libvirt api call: " + text
	case c.release.short:
		return "Live migration has been aborted"
	case m.course.end == aborted:
		return "Live migration aborted "
	}
	return fmt.Sprintf("Live migration stuck for %d seconds and has been aborted", int(m.course.takes.Seconds()))
}

// afterFailure cleans up and lets the evacuation controller try again.
func (c *cluster) afterFailure(m *migration) {
	if !c.release.follows && m.evacuates != "" {
		c.annotatePod(m.source, "")
	}
	if m.course.end == unschedulable {
		c.deletePod(m.target)
	} else {
		phase := "Succeeded"
		if m.course.end == crashes {
			phase = "Failed"
		}
		c.clock.scheduleAfter(c.dice.pickDuration(500*time.Millisecond, time.Second), func() { c.endPod(m.target, phase) })
	}
	c.requeueVMI(m.vmi)
}

// abortMigration is somebody who deletes a VMIM that runs.
func (c *cluster) abortMigration(m *migration) {
	c.recordAuditEvent(trail.ActionDeleteMigration, m.meta.Namespace, m.meta.Name, alice, 200, "")
	m.meta.DeletionAt = truncateToSecond(c.clock.now)
	m.conditions = append(m.conditions, tracker.Condition{Type: trail.ConditionAbortRequested, Status: "True"})
	c.migrationChanged(m)
	m.vmi.state.AbortRequested, m.vmi.state.AbortStatus = true, "Aborting"
	c.vmiChanged(m.vmi)
	c.scheduleStep(m, 500*time.Millisecond, time.Second, c.failMigration)
}

// finishMigration makes a migration final. Its state comes in an update of its own, if the VMI has one of this migration.
func (c *cluster) finishMigration(m *migration, phase string) {
	c.active = slices.DeleteFunc(c.active, func(a *migration) bool { return a == m })
	c.enterPhase(m, phase)
	v := m.vmi
	if v.state != nil && v.state.UID == m.meta.UID {
		state := *v.state
		c.clock.scheduleAfter(c.dice.pickDuration(10*time.Millisecond, 80*time.Millisecond), func() {
			if !m.gone {
				m.state = &state
				c.migrationChanged(m)
			}
		})
	}
	c.clock.scheduleAfter(c.dice.pickDuration(90*time.Millisecond, 160*time.Millisecond), func() {
		if !m.meta.DeletionAt.IsZero() {
			c.deleteMigration(m)
		}
		c.collectGarbage(v)
	})
}

// deleteMigration deletes a VMIM that is over.
func (c *cluster) deleteMigration(m *migration) {
	if m.gone {
		return
	}
	m.gone = true
	m.vmi.migrations = slices.DeleteFunc(m.vmi.migrations, func(x *migration) bool { return x == m })
	c.migrationChanged(m)
}

// abandonMigration ends a migration whose VMI is no more.
func (c *cluster) abandonMigration(m *migration) {
	if !m.hasFinished() {
		c.active = slices.DeleteFunc(c.active, func(a *migration) bool { return a == m })
		c.enterPhase(m, trail.PhaseFailed)
	}
	c.deletePod(m.target)
	c.deleteMigration(m)
}
