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

func (m *migration) final() bool { return m.gone || m.phase == "Succeeded" || m.phase == "Failed" }

// endedAt is the time of the last phase as the object has it, whole seconds.
func (m *migration) endedAt() time.Time { return m.times[len(m.times)-1].At }

func (c *cluster) newMigration(v *vmi, name string) *migration {
	m := &migration{vmi: v, from: v.node, source: v.pod, meta: tracker.Meta{
		UID: c.nextUID("vmim"), Namespace: v.vm.namespace, Name: name, CreatedAt: second(c.clock.now),
	}}
	v.migrations = append(v.migrations, m)
	return m
}

func (c *cluster) migrationChanged(m *migration) {
	seen, meta := c.changed(trail.ObjectMigration, &m.meta, m.gone)
	c.tell(seen.At, tracker.MigrationObservation{
		Seen: seen, Meta: meta, VMI: m.vmi.vm.name, Phase: m.phase, PhaseTimes: slices.Clip(m.times), Conditions: slices.Clip(m.conditions),
		State: m.state, EvacuationNode: m.evacuates, Evacuation: m.evacuates != "", Priority: m.priority,
	})
}

// enter takes a migration to a phase.
func (c *cluster) enter(m *migration, phase string) {
	m.phase = phase
	m.times = append(m.times, trail.PhaseTime{Phase: phase, At: second(c.clock.now)})
	c.migrationChanged(m)
	if c.noted != nil {
		c.noted(m)
	}
}

// then goes on with a migration that is not over by then.
func (c *cluster) then(m *migration, lo, hi time.Duration, do func(*migration)) {
	c.clock.after(c.dice.between(lo, hi), func() {
		if !m.final() && !m.vmi.over && m.vmi.phase == "Running" {
			do(m)
		}
	})
}

// begin starts the life of a migration: created, then Pending.
func (c *cluster) begin(m *migration) {
	m.course = c.courseOf(m)
	c.migrationChanged(m)
	c.then(m, 10*time.Millisecond, 70*time.Millisecond, func(m *migration) {
		c.enter(m, trail.PhasePending)
		c.launch(m)
	})
}

// launch makes the target pod as soon as backoff and slots allow it.
func (c *cluster) launch(m *migration) {
	switch held := m.heldUntil().Sub(c.clock.now); {
	case held > 0:
		c.then(m, held, held+900*time.Millisecond, c.launch)
	case c.slotsFull(m.from):
		c.then(m, time.Second, 5*time.Second, c.launch)
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
	n := c.schedule(m.from)
	if m.course.end == unschedulable || n == nil {
		m.target.unschedulable = "0/5 nodes are available: 5 Insufficient memory."
		m.course.end = unschedulable
	}
	c.podChanged(m.target)
	if m.course.end != unschedulable {
		m.target.node = n.meta.Name
		c.podChanged(m.target)
	}
	c.then(m, 5*time.Millisecond, 40*time.Millisecond, func(m *migration) {
		c.enter(m, trail.PhaseScheduling)
		if m.course.end == unschedulable {
			c.then(m, 300*time.Second, 301*time.Second, c.fail)
			return
		}
		c.then(m, 500*time.Millisecond, 1300*time.Millisecond, c.handOver)
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
	c.annotate(m.source, "kubevirt")
	if s := m.vmi.state; s != nil && s.Failed {
		c.then(m, 70*time.Millisecond, 400*time.Millisecond, func(m *migration) { c.annotate(m.source, "") })
	}
}

// handOver gives the migration to the nodes: from here the VMI carries its state.
func (c *cluster) handOver(m *migration) {
	m.target.phase = "Running"
	c.podChanged(m.target)
	c.enter(m, trail.PhaseScheduled)
	c.then(m, 10*time.Millisecond, 60*time.Millisecond, func(m *migration) {
		m.vmi.state = &tracker.MigrationState{
			UID: m.meta.UID, SourceNode: m.from, TargetNode: m.target.node, SourcePod: m.source.meta.Name, TargetPod: m.target.meta.Name,
		}
		c.vmiChanged(m.vmi)
		c.then(m, 10*time.Millisecond, 40*time.Millisecond, c.prepare)
	})
}

func (c *cluster) prepare(m *migration) {
	c.enter(m, trail.PhasePreparingTarget)
	if m.course.end == crashes {
		c.then(m, time.Second, 2*time.Second, c.fail)
		return
	}
	c.then(m, time.Second, 2*time.Second, func(m *migration) {
		c.enter(m, trail.PhaseTargetReady)
		c.then(m, 300*time.Millisecond, 500*time.Millisecond, c.transfer)
	})
}

// transfer lets the guest's memory be copied, as long as the course says.
func (c *cluster) transfer(m *migration) {
	m.vmi.state.StartedAt, m.vmi.state.Mode = second(c.clock.now), "PreCopy"
	c.vmiChanged(m.vmi)
	c.enter(m, trail.PhaseRunning)
	took := m.course.takes
	switch m.course.end {
	case succeeds:
		c.then(m, took, took+time.Second, c.succeed)
	case aborted:
		c.then(m, took, took+time.Second, c.abort)
	case breaks, stuck, crashes, unschedulable, held4ever:
		c.then(m, took, took+time.Second, c.fail)
	}
}
