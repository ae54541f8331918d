package trail_test

import (
	"cmp"
	"strconv"
	"time"

	"github.com/evictrail/evictrail/trail"
	"github.com/evictrail/evictrail/trail/tracker"
)

// notMigratableText is what KubeVirt's webhook says of a VM that cannot be moved.
const notMigratableText = "is configured with an eviction strategy but is not live-migratable"

// history is a made-up past of a cluster, recorded step by step through a tracker. Times are counted from day. What it makes is
// in namespace shop; every migration is seen live, at the second at which it changes.
type history struct {
	tracker    *tracker.Tracker
	facts      []trail.Fact
	version    int
	vms        map[string]*tracker.VMIObservation
	migrations map[string]*tracker.MigrationObservation
	nodes      map[string]*tracker.NodeObservation
	ahead      time.Duration // of the cluster's clocks before ours
}

func newHistory() *history {
	return &history{
		tracker: tracker.New("test"), vms: map[string]*tracker.VMIObservation{}, migrations: map[string]*tracker.MigrationObservation{},
		nodes: map[string]*tracker.NodeObservation{},
	}
}

// nextVersion returns the resourceVersion of the next change.
func (h *history) nextVersion() string {
	h.version++
	return strconv.Itoa(h.version)
}

func (h *history) observe(o tracker.Observation) { h.facts = append(h.facts, h.tracker.Observe(o)...) }

// changeVM changes a VM as it was last seen; one that is new runs on n1, can be moved, and has the UID of its name.
func (h *history) changeVM(at time.Duration, name string, change func(*tracker.VMIObservation)) {
	v := h.vms[name]
	if v == nil {
		v = &tracker.VMIObservation{
			Meta: tracker.Meta{UID: name + "-1", Namespace: "shop", Name: name, CreatedAt: day.Add(at)},
			Node: "n1", Phase: "Running", Strategy: "LiveMigrate",
		}
		h.vms[name] = v
	}
	if change != nil {
		change(v)
	}
	v.ResourceVersion, v.At = h.nextVersion(), day.Add(at)
	h.observe(*v)
}

// restartVM ends a VM and begins the next VMI of its name.
func (h *history) restartVM(at time.Duration, name, uid string) {
	h.changeVM(at, name, func(v *tracker.VMIObservation) { v.Gone = true })
	delete(h.vms, name)
	h.changeVM(at+time.Second, name, func(v *tracker.VMIObservation) { v.UID = uid })
}

// markVM has a VM asked to leave its node by the caller that source names.
func (h *history) markVM(at time.Duration, name, source string) {
	h.changeVM(at, name, func(v *tracker.VMIObservation) { v.Mark, v.EvictionSource = v.Node, source })
}

func (h *history) unmarkVM(at time.Duration, name string) {
	h.changeVM(at, name, func(v *tracker.VMIObservation) { v.Mark, v.EvictionSource = "", "" })
}

// createMigration makes a migration: one of an evacuation, unless change says otherwise.
func (h *history) createMigration(at time.Duration, uid, vm string, change func(*tracker.MigrationObservation)) {
	m := &tracker.MigrationObservation{
		Meta: tracker.Meta{UID: uid, Namespace: "shop", Name: "m-" + uid, CreatedAt: day.Add(at + h.ahead)}, VMI: vm, Evacuation: true, EvacuationNode: h.vms[vm].Node,
		Priority: "system-maintenance",
	}
	h.migrations[uid] = m
	if change != nil {
		change(m)
	}
	h.advanceMigration(at, uid, trail.PhasePending)
}

// byUser makes a migration one that somebody made by hand.
func byUser(m *tracker.MigrationObservation) {
	m.Evacuation, m.EvacuationNode, m.Priority = false, "", ""
}

// byUpdater makes a migration one of KubeVirt's workload updater.
func byUpdater(m *tracker.MigrationObservation) {
	m.Evacuation, m.EvacuationNode, m.Priority, m.WorkloadUpdate = false, "", "", true
}

func (h *history) advanceMigration(at time.Duration, uid string, phases ...string) {
	m := h.migrations[uid]
	for _, p := range phases {
		m.Phase = p
		m.PhaseTimes = append(m.PhaseTimes, trail.PhaseTime{Phase: p, At: day.Add(at + h.ahead)})
	}
	h.observeMigration(at, uid)
}

func (h *history) observeMigration(at time.Duration, uid string) {
	m := h.migrations[uid]
	m.ResourceVersion, m.At = h.nextVersion(), day.Add(at)
	h.observe(*m)
}

// failMigration has a migration fail before its target pod was there.
func (h *history) failMigration(at time.Duration, uid string) {
	h.advanceMigration(at, uid, trail.PhaseFailed)
}

// requestDeletion has somebody ask for the deletion of a migration, and goes has it gone.
func (h *history) requestDeletion(at time.Duration, uid string) {
	h.migrations[uid].DeletionAt = day.Add(at + h.ahead)
	h.observeMigration(at, uid)
}

func (h *history) removeMigration(at time.Duration, uid string) {
	h.migrations[uid].Gone = true
	h.observeMigration(at, uid)
}

// runMigration has a migration move data from start to end; it ends on a node, or, where that is empty, fails.
func (h *history) runMigration(start, end time.Duration, uid, to string) {
	m := h.migrations[uid]
	v := h.vms[m.VMI]
	h.advanceMigration(start, uid, trail.PhaseScheduling, trail.PhaseScheduled, trail.PhasePreparingTarget, trail.PhaseTargetReady, trail.PhaseRunning)
	state := tracker.MigrationState{UID: uid, SourceNode: v.Node, TargetNode: cmp.Or(to, "n9"), StartedAt: day.Add(start + h.ahead)}
	h.changeVM(start, m.VMI, func(v *tracker.VMIObservation) { s := state; v.State = &s })
	state.EndedAt, state.Completed, state.Failed = day.Add(end+h.ahead), true, to == ""
	if state.Failed {
		state.FailureReason = "Live migration stuck for 15 seconds and has been aborted"
	}
	h.changeVM(end, m.VMI, func(v *tracker.VMIObservation) {
		s := state
		v.State = &s
		if !s.Failed {
			v.Node, v.Mark, v.EvictionSource = to, "", ""
		}
	})
	last := trail.PhaseSucceeded
	if state.Failed {
		last = trail.PhaseFailed
	}
	h.advanceMigration(end+time.Second, uid, last) // virt-controller sees it a moment later
	s := state
	m.State = &s
	h.observeMigration(end+time.Second, uid)
}

// moveVM has a VM moved in one go: a mark of the descheduler, and its migration.
func (h *history) moveVM(start, end time.Duration, uid, vm, to string) {
	h.markVM(start-2*time.Second, vm, "descheduler")
	h.createMigration(start-time.Second, uid, vm, nil)
	h.runMigration(start, end, uid, to)
}

// observePod observes the launcher of a VM on a node; what it was made for, if it is a migration's target.
func (h *history) observePod(at time.Duration, name, vm, node, migration string, change func(*tracker.PodObservation)) {
	p := tracker.PodObservation{
		Meta: tracker.Meta{UID: name, Namespace: "shop", Name: name, CreatedAt: day.Add(at + h.ahead)}, VMI: vm, VMIUID: h.vms[vm].UID, Node: node, Phase: "Running",
		MigrationUID: migration,
	}
	if change != nil {
		change(&p)
	}
	p.ResourceVersion, p.At = h.nextVersion(), day.Add(at)
	h.observe(p)
}

// changeNode changes a node as it was last seen.
func (h *history) changeNode(at time.Duration, name string, change func(*tracker.NodeObservation)) {
	n := h.nodes[name]
	if n == nil {
		n = &tracker.NodeObservation{Meta: tracker.Meta{UID: "uid-" + name, Name: name}}
		h.nodes[name] = n
	}
	if change != nil {
		change(n)
	}
	n.ResourceVersion, n.At = h.nextVersion(), day.Add(at)
	h.observe(*n)
}

func (h *history) applyKubeVirt(at time.Duration, s trail.KubeVirtSettings) {
	h.observe(tracker.KubeVirtObservation{Seen: tracker.Seen{At: day.Add(at)}, Meta: tracker.Meta{UID: "kv", Name: "kubevirt", ResourceVersion: h.nextVersion()}, Settings: s})
}

func (h *history) applyPolicy(at time.Duration, s trail.DeschedulerSettings) {
	h.observe(tracker.PolicyObservation{Seen: tracker.Seen{At: day.Add(at)}, Meta: tracker.Meta{UID: "policy", Name: "policy", ResourceVersion: h.nextVersion()}, Settings: &s})
}

// startDescheduler observes a process of the descheduler that was started at a time.
func (h *history) startDescheduler(at time.Duration, version string, plugin bool) {
	h.observe(tracker.ScrapeObservation{Seen: tracker.Seen{At: day.Add(at + time.Second)}, Target: "d", StartedAt: day.Add(at), Version: version, Plugin: plugin})
}

// observeRequest observes an eviction request that the audit log saw.
func (h *history) observeRequest(at time.Duration, id, pod, user, message string, change func(*tracker.RequestObservation)) {
	o := tracker.RequestObservation{
		Seen: tracker.Seen{At: day.Add(at + 100*time.Millisecond)}, Source: trail.SourceAudit, ID: id, Stage: "ResponseComplete", Action: trail.ActionEvict,
		Namespace: "shop", Name: pod, AskedAt: day.Add(at + h.ahead),
		Detail: trail.RequestDetail{User: user, Code: 429, Message: message, AnsweredAt: day.Add(at + h.ahead + 50*time.Millisecond)},
	}
	if change != nil {
		change(&o)
	}
	h.observe(o)
}

// deriveAt derives the history as it stands at a time.
func (h *history) deriveAt(at time.Duration) *trail.Cluster {
	return trail.DeriveAll(h.facts, trail.DefaultThresholds(), day.Add(at))
}

// decisionsAt returns the decisions of a layer about a VM, as they stand at a time.
func (h *history) decisionsAt(at time.Duration, vm string, layer trail.Layer) []trail.Decision {
	var out []trail.Decision
	for _, d := range h.deriveAt(at).VM("shop", vm).Decisions {
		if d.Layer == layer {
			out = append(out, d)
		}
	}
	return out
}
