package sim

import (
	"slices"
	"time"

	"github.com/evictrail/evictrail/trail"
	"github.com/evictrail/evictrail/trail/tracker"
)

// migration is one VMIM.
type migration struct {
	meta       tracker.Meta
	vmi        *vmi
	from       string      // the node of the guest when it was made
	evacuates  string      // annotation kubevirt.io/evacuationMigration; empty where somebody else made it
	evacuation *evacuation // the truth: the evacuation that was open when it was made
	updates    bool        // annotation kubevirt.io/workloadUpdateMigration
	priority   string
	phase      string
	times      []trail.PhaseTime
	conditions []tracker.Condition
	state      *tracker.MigrationState
	target     *pod
	source     *pod
	course     course
	gone       bool
}

func (m *migration) hasFinished() bool {
	return m.gone || m.phase == "Succeeded" || m.phase == "Failed"
}

// endedAt is the time of the last phase as the object has it, whole seconds.
func (m *migration) endedAt() time.Time { return m.times[len(m.times)-1].At }

func (c *cluster) newMigration(v *vmi, name string) *migration {
	m := &migration{vmi: v, from: v.node, source: v.pod, meta: tracker.Meta{
		UID: c.nextUID("vmim"), Namespace: v.vm.namespace, Name: name, CreatedAt: truncateToSecond(c.clock.now),
	}}
	v.migrations = append(v.migrations, m)
	return m
}

func (c *cluster) migrationChanged(m *migration) {
	seen, meta := c.updateObject(trail.ObjectMigration, &m.meta, m.gone)
	c.recordSight(seen.At, tracker.MigrationObservation{
		Seen: seen, Meta: meta, VMI: m.vmi.vm.name, Phase: m.phase, PhaseTimes: slices.Clip(m.times), Conditions: slices.Clip(m.conditions),
		State: m.state, EvacuationNode: m.evacuates, Evacuation: m.evacuates != "", WorkloadUpdate: m.updates, Priority: m.priority,
	})
}

// enterPhase takes a migration to a phase.
func (c *cluster) enterPhase(m *migration, phase string) {
	m.phase = phase
	m.times = append(m.times, trail.PhaseTime{Phase: phase, At: truncateToSecond(c.clock.now)})
	c.migrationChanged(m)
	if c.noted != nil {
		c.noted(m)
	}
}

// scheduleStep goes on with a migration that is not over by then.
func (c *cluster) scheduleStep(m *migration, lo, hi time.Duration, do func(*migration)) {
	c.clock.scheduleAfter(c.dice.pickDuration(lo, hi), func() {
		if !m.hasFinished() && !m.vmi.over && m.vmi.phase == "Running" {
			do(m)
		}
	})
}

// startMigration starts the life of a migration: created, then Pending.
func (c *cluster) startMigration(m *migration) {
	m.course = c.courseOf(m)
	c.migrationChanged(m)
	c.scheduleStep(m, 10*time.Millisecond, 70*time.Millisecond, func(m *migration) {
		c.enterPhase(m, trail.PhasePending)
		c.launchMigration(m)
	})
}

// launchMigration makes the target pod as soon as backoff and slots allow it.
func (c *cluster) launchMigration(m *migration) {
	switch held := m.heldUntil().Sub(c.clock.now); {
	case held > 0:
		c.scheduleStep(m, held, held+900*time.Millisecond, c.launchMigration)
	case c.slotsFull(m.from):
		c.scheduleStep(m, time.Second, 5*time.Second, c.launchMigration)
	case m.course.end == held4ever:
		m.conditions = append(m.conditions, tracker.Condition{Type: "migrationRejectedByResourceQuota", Status: "True", Message: "exceeded quota"})
		c.migrationChanged(m)
	default:
		c.makeTarget(m)
	}
}

func (c *cluster) makeTarget(m *migration) {
	c.active = append(c.active, m)
	c.annotateAttempt(m)
	m.target = c.newPod(m.vmi, m)
	n := c.chooseNode(m.vmi.vm, m.from)
	if m.course.end == unschedulable || n == nil {
		m.target.unschedulable = "0/5 nodes are available: 5 Insufficient memory."
		if n == nil && m.vmi.vm.bound != nil {
			m.target.unschedulable = c.schedulerSays(m.vmi.vm, m.from)
		}
		m.course.end = unschedulable
	}
	c.podChanged(m.target)
	if m.course.end != unschedulable {
		m.target.node = n.meta.Name
		c.podChanged(m.target)
	}
	c.scheduleStep(m, 5*time.Millisecond, 40*time.Millisecond, func(m *migration) {
		c.enterPhase(m, trail.PhaseScheduling)
		if m.course.end == unschedulable {
			c.scheduleStep(m, 300*time.Second, 301*time.Second, c.failMigration)
			return
		}
		c.scheduleStep(m, 500*time.Millisecond, 1300*time.Millisecond, c.handOver)
	})
}

// annotateAttempt sets eviction-in-progress as KubeVirt up to v1.6.0 does: for one attempt. Where the VMI still carries
// the state of an attempt that failed, virt-controller takes it off again at once.
//
// Source: kubevirt pkg/virt-controller/watch/migration/migration.go (v1.6.0); the early removal: seen-running.
func (c *cluster) annotateAttempt(m *migration) {
	if c.release.follows || m.evacuates == "" {
		return
	}
	c.annotatePod(m.source, "kubevirt")
	if s := m.vmi.state; s != nil && s.Failed {
		c.scheduleStep(m, 70*time.Millisecond, 400*time.Millisecond, func(m *migration) { c.annotatePod(m.source, "") })
	}
}

// handOver passes the migration to the nodes: from here the VMI carries its state.
func (c *cluster) handOver(m *migration) {
	m.target.phase = "Running"
	c.podChanged(m.target)
	c.enterPhase(m, trail.PhaseScheduled)
	c.scheduleStep(m, 10*time.Millisecond, 60*time.Millisecond, func(m *migration) {
		m.vmi.state = &tracker.MigrationState{
			UID: m.meta.UID, SourceNode: m.from, TargetNode: m.target.node, SourcePod: m.source.meta.Name, TargetPod: m.target.meta.Name,
			GuestMemory: int64(1+len(m.vmi.vm.name)%3) << 30,
		}
		c.vmiChanged(m.vmi)
		c.scheduleStep(m, 10*time.Millisecond, 40*time.Millisecond, c.prepareTarget)
	})
}

func (c *cluster) prepareTarget(m *migration) {
	c.enterPhase(m, trail.PhasePreparingTarget)
	if m.course.end == crashes {
		c.scheduleStep(m, time.Second, 2*time.Second, c.failMigration)
		return
	}
	c.scheduleStep(m, time.Second, 2*time.Second, func(m *migration) {
		c.enterPhase(m, trail.PhaseTargetReady)
		c.scheduleStep(m, 300*time.Millisecond, 500*time.Millisecond, c.transferMemory)
	})
}

// transferMemory lets the guest's memory be copied, as long as the course says.
func (c *cluster) transferMemory(m *migration) {
	m.vmi.state.StartedAt, m.vmi.state.Mode = truncateToSecond(c.clock.now), "PreCopy"
	c.vmiChanged(m.vmi)
	c.enterPhase(m, trail.PhaseRunning)
	took := m.course.takes
	switch m.course.end {
	case succeeds:
		c.scheduleStep(m, took, took+time.Second, c.succeedMigration)
	case aborted:
		c.scheduleStep(m, took, took+time.Second, c.abortMigration)
	case breaks, stuck, crashes, unschedulable, held4ever:
		c.scheduleStep(m, took, took+time.Second, c.failMigration)
	}
}
