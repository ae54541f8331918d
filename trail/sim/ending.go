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
	breaks               // libvirt or QEMU gives up
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

func (x *curse) next() ending {
	if len(x.ends) == 0 {
		return x.last
	}
	e := x.ends[0]
	x.ends = x.ends[1:]
	return e
}

// curse lays the curse that waits on a node upon the VM that is marked there.
func (c *cluster) curse(v *vmi) {
	n := c.node(v.mark)
	if len(n.curses) == 0 || v.vm.strategy != "LiveMigrate" || v.vm.curse != nil {
		return
	}
	v.vm.curse, n.curses = n.curses[0], n.curses[1:]
}

// relieve takes the curse off a VM that got away from its node. Where chance rules as well it stays and hits again.
func (c *cluster) relieve(v *vm) {
	if !c.options.natural {
		v.curse = nil
	}
}

// courseOf decides how a migration goes.
func (c *cluster) courseOf(m *migration) course {
	x := course{succeeds, c.dice.between(3*time.Second, 9*time.Second)}
	vm := m.vmi.vm
	switch {
	case m.evacuates == "" && vm.userFails:
		x.end = pick(c.dice, breaks, stuck, crashes)
	case m.evacuates != "" && vm.curse != nil:
		x.end = vm.curse.next()
		x.takes += vm.curse.takes
	case c.dice.chance(c.options.flaky):
		x.end = pick(c.dice, breaks, breaks, stuck, crashes, unschedulable)
	}
	if x.end == stuck {
		x.takes += c.dice.between(10*time.Second, 140*time.Second)
	}
	if x.end == aborted {
		x.takes += c.dice.between(30*time.Second, 90*time.Second)
	}
	return x
}

// succeed moves the guest: nodeName changes and the mark goes in one update, whoever started the migration.
//
// Source: kubevirt pkg/virt-handler/migration-target.go, ackMigrationCompletion.
func (c *cluster) succeed(m *migration) {
	c.clear(m.from, func() { c.clear(m.target.node, func() { c.arrive(m) }) })
}

func (c *cluster) arrive(m *migration) {
	v := m.vmi
	if m.final() || v.over || v.phase != "Running" {
		return
	}
	c.endEvacuation(v, ClosedByMigrated)
	v.state.EndedAt = second(c.clock.now)
	c.settle(v, m.target.node)
	v.mark, v.source = "", ""
	v.pod = m.target
	c.relieve(v.vm)
	c.vmiChanged(v)
	c.clock.after(c.dice.between(60*time.Millisecond, 180*time.Millisecond), func() {
		if m.final() || v.over || v.phase != "Running" {
			return
		}
		v.state.Completed, v.requested = true, time.Time{}
		c.vmiChanged(v)
		c.finish(m, trail.PhaseSucceeded)
	})
	c.clock.after(c.dice.between(700*time.Millisecond, 1500*time.Millisecond), func() { c.endPod(m.source, "Succeeded") })
}

// fail lets an attempt fail.
func (c *cluster) fail(m *migration) {
	c.clear(m.from, func() {
		if m.final() || m.vmi.over || m.vmi.phase != "Running" {
			return
		}
		c.tellFailure(m)
		c.clock.after(c.dice.between(8*time.Millisecond, 30*time.Millisecond), func() {
			if m.final() || m.vmi.over {
				return
			}
			if m.evacuation != nil && m.course.end != aborted {
				m.evacuation.failed = c.clock.now
			}
			c.finish(m, trail.PhaseFailed)
			c.afterFailure(m)
		})
	})
}

// tellFailure writes what the nodes know of the failure into the VMI. They know nothing of one before hand-over, and
// up to v1.8 nothing of a crash while the target was prepared.
func (c *cluster) tellFailure(m *migration) {
	s := m.vmi.state
	if s == nil || s.UID != m.meta.UID || m.course.end == unschedulable || m.course.end == crashes && !c.release.short {
		return
	}
	s.EndedAt, s.Failed, s.Completed = second(c.clock.now), true, c.release.short
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
		text := pick(c.dice, "virError(Code=9, Domain=10, Message='operation failed: migration out job: unexpectedly failed')",
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
		c.annotate(m.source, "")
	}
	if m.course.end == unschedulable {
		c.deletePod(m.target)
	} else {
		phase := "Succeeded"
		if m.course.end == crashes {
			phase = "Failed"
		}
		c.clock.after(c.dice.between(500*time.Millisecond, time.Second), func() { c.endPod(m.target, phase) })
	}
	c.wake(m.vmi)
}

// abort is somebody who deletes a VMIM that runs.
func (c *cluster) abort(m *migration) {
	c.audit(trail.ActionDeleteMigration, m.meta.Namespace, m.meta.Name, alice, 200, "")
	m.meta.DeletionAt = second(c.clock.now)
	m.conditions = append(m.conditions, tracker.Condition{Type: trail.ConditionAbortRequested, Status: "True"})
	c.migrationChanged(m)
	m.vmi.state.AbortRequested, m.vmi.state.AbortStatus = true, "Aborting"
	c.vmiChanged(m.vmi)
	c.then(m, 500*time.Millisecond, time.Second, c.fail)
}

// finish makes a migration final. Its state comes in an update of its own, if the VMI has one of this migration.
func (c *cluster) finish(m *migration, phase string) {
	c.active = slices.DeleteFunc(c.active, func(a *migration) bool { return a == m })
	c.enter(m, phase)
	v := m.vmi
	if v.state != nil && v.state.UID == m.meta.UID {
		state := *v.state
		c.clock.after(c.dice.between(10*time.Millisecond, 80*time.Millisecond), func() {
			if !m.gone {
				m.state = &state
				c.migrationChanged(m)
			}
		})
	}
	c.clock.after(c.dice.between(90*time.Millisecond, 160*time.Millisecond), func() {
		if !m.meta.DeletionAt.IsZero() {
			c.remove(m)
		}
		c.collect(v)
	})
}

// remove deletes a VMIM that is over.
func (c *cluster) remove(m *migration) {
	if m.gone {
		return
	}
	m.gone = true
	m.vmi.migrations = slices.DeleteFunc(m.vmi.migrations, func(x *migration) bool { return x == m })
	c.migrationChanged(m)
}

// lose ends a migration whose VMI is no more.
func (c *cluster) lose(m *migration) {
	if !m.final() {
		c.active = slices.DeleteFunc(c.active, func(a *migration) bool { return a == m })
		c.enter(m, trail.PhaseFailed)
	}
	c.deletePod(m.target)
	c.remove(m)
}
