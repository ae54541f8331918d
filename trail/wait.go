package trail

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"time"
)

// WaitReason says why a migration has no target pod yet, or why it does not get on with one.
type WaitReason string

// The reasons for which a migration waits, in the order in which they are looked for (reference: kubevirt-signals §10.12).
const (
	WaitDeleting       WaitReason = "deleting"        // it is being deleted and its finalizer stays
	WaitQuota          WaitReason = "quota"           // a ResourceQuota refuses the target pod; there is no time limit
	WaitBackup         WaitReason = "backup"          // a backup of the VM runs
	WaitUtilityVolumes WaitReason = "utility_volumes" // utility volumes are still attached
	WaitBackoff        WaitReason = "backoff"         // KubeVirt's wait after a failed attempt
	WaitLeftoverPods   WaitReason = "leftover_pods"   // another pod of the VM is still there
	WaitClusterLimit   WaitReason = "cluster_limit"   // as many migrations run as the cluster may have
	WaitNodeLimit      WaitReason = "node_limit"      // as many migrations leave the node as may
	WaitQueued         WaitReason = "queued"          // none of these: the controller has not come to it

	WaitTargetNode WaitReason = "target_node_not_ready" // it has its target pod, on a node that is not ready: it holds its slot and does not get on
)

// WaitReasons lists the reasons for which a migration waits.
func WaitReasons() []WaitReason { return waitLabels.values() }

// waitConditions are the conditions of a migration that say why it waits.
//
// Source: kubevirt staging/src/kubevirt.io/api/core/v1/types.go, VirtualMachineInstanceMigrationConditionType.
var waitConditions = []struct {
	condition string
	reason    WaitReason
}{
	{"migrationRejectedByResourceQuota", WaitQuota},
	{"migrationBlockedByBackup", WaitBackup},
	{"migrationBlockedByUtilityVolumes", WaitUtilityVolumes},
}

// waitNoticed is the shortest time without a target pod that counts as waiting: phases have a resolution of 1 s, and the
// controller needs a moment.
const waitNoticed = 3 * time.Second

// KubeVirt's limits where its settings name none.
//
// Source: kubevirt pkg/virt-config/virt-config.go.
const (
	defaultPerCluster      = 5
	defaultOutboundPerNode = 2
)

// Slot is the time in which a migration counts against KubeVirt's limits: from its target pod on to its end.
type Slot struct {
	MigrationUID string
	Node         string // that the guest leaves
	From         time.Time
	To           time.Time // zero while it runs
}

// NewSlot returns the time in which a migration counts against the limits; false where it does not.
func (m Migration) NewSlot() (Slot, bool) {
	return Slot{m.UID, m.SourceNode, m.SchedulingAt, m.FinishedAt}, !m.SchedulingAt.IsZero()
}

// waited is how a migration's time without a target pod divides up.
type waited struct {
	goesOn bool
	spans  []waitSpan
}

type waitSpan struct {
	interval
	reason WaitReason
	detail string
}

// explainWaits says of each migration of a VM why it waits or waited, as far as its own facts say. What they leave open
// counts as queued until explainQueue has seen who held the slots.
func explainWaits(lives []*life, migrations []*migration, pods map[string]*launcher, now *moment) {
	all := slices.Collect(maps.Values(pods))
	for i, m := range migrations {
		from, to := m.CreatedAt, m.tookSlot()
		if m.isDecentralized() {
			continue // its halves wait for each other
		}
		m.waited.goesOn = to.IsZero() && m.FinishedAt.IsZero()
		if to = cmp.Or(to, m.FinishedAt); m.waited.goesOn {
			to = maxTime(from, now.now)
		} else if m.SchedulingAt.IsZero() && m.Outcome == OutcomeSucceeded {
			continue // when it got its target pod was not seen
		}
		if !now.hasReached(from.Add(waitNoticed)) || to.Sub(from) < waitNoticed {
			continue
		}
		w := &waiting{m: m, life: lifeOf(lives, m.VMIUID), pods: aliveWithin(all, from, to, m.waited.goesOn), before: migrations[:i]}
		m.waited.spans = m.waited.splitByReason(interval{from, to}, w)
		if m.waited.goesOn {
			w.wakeAt(now)
		}
		m.WaitReason, m.WaitDetail = m.waited.mainReason()
	}
}

// explainStalls says of each migration that has its target pod whether that was on a node that was not ready: for KubeVirt it is under way, and
// holds its slot. One that goes on again is not shown as waiting; of one that is over that counts as what it waited for before does.
func explainStalls(migrations []*migration, env *Env, now *moment) {
	for _, m := range migrations {
		from := m.tookSlot()
		if m.TargetNode == "" || from.IsZero() {
			continue
		}
		for _, o := range env.findOutages(m.TargetNode) {
			begin, end := maxTime(from, o.BeganAt), minNonZeroTime(m.FinishedAt, o.EndedAt)
			if !o.blocksMigration() && !m.RunningAt.IsZero() { // its pod runs
				continue
			}
			goesOn := m.FinishedAt.IsZero() && (o.EndedAt.IsZero() || !now.hasReached(o.EndedAt))
			if goesOn {
				end = now.now
			}
			if !now.hasReached(begin) || begin.After(end) || m.FinishedAt.IsZero() && !goesOn {
				continue
			}
			m.waited.goesOn = goesOn
			m.waited.spans = append(m.waited.spans, waitSpan{interval{begin, end}, WaitTargetNode, o.describePeriod()})
			m.WaitReason, m.WaitDetail = m.waited.mainReason()
		}
	}
}

// isStalled reports whether the migration goes on and its target pod is on a node that is not ready.
func (m *Migration) isStalled() bool { return m.FinishedAt.IsZero() && m.WaitReason == WaitTargetNode }

// aliveWithin returns the pods that were there at some time of a stretch or, where that goes on, come after.
func aliveWithin(pods []*launcher, from, to time.Time, goesOn bool) []*launcher {
	var out []*launcher
	for _, p := range pods {
		if (p.endedAt.IsZero() || !p.endedAt.Before(from)) && (goesOn || !p.createdAt.After(to)) {
			out = append(out, p)
		}
	}
	return out
}

// isDecentralized returns the halves of a migration between clusters or namespaces.
func (m *migration) isDecentralized() bool { return m.spec.SendTo != "" || m.spec.Receive != "" }

// tookSlot returns the time at which the migration got its target pod: its first phase past Pending. Zero where it has none.
func (m *migration) tookSlot() time.Time {
	for _, p := range m.Phases {
		if p.Phase != PhasePending && p.Phase != PhaseSucceeded && p.Phase != PhaseFailed {
			return p.At
		}
	}
	return time.Time{}
}

// waiting is what says why one migration waits.
type waiting struct {
	m      *migration
	life   *life
	pods   []*launcher  // that were there during that time
	before []*migration // those created before it, of the same VM
}

// waitReasons returns why a migration waits, from where its reason may have changed.
type waitReasons interface {
	changeTimes() []time.Time // in any order
	reasonAt(t time.Time) (WaitReason, string)
}

// splitByReason returns, for each part of the time, why the migration waited; while it waits, also for the moment itself.
func (w waited) splitByReason(whole interval, by waitReasons) []waitSpan {
	times := []time.Time{whole.from}
	for _, t := range by.changeTimes() {
		if t.After(whole.from) && (t.Before(whole.to) || t.Equal(whole.to) && w.goesOn) {
			times = append(times, t)
		}
	}
	slices.SortFunc(times, time.Time.Compare)
	spans := make([]waitSpan, 0, len(times))
	for i, t := range times {
		end := whole.to
		if i+1 < len(times) {
			end = times[i+1]
		}
		reason, detail := by.reasonAt(t)
		spans = append(spans, waitSpan{interval{t, end}, reason, detail})
	}
	return spans
}

// changeTimes returns the times at which the reason may change.
func (w *waiting) changeTimes() []time.Time {
	out := []time.Time{w.m.deletedAt, w.backoffUntil()}
	for _, f := range w.m.conditions {
		out = append(out, f.OccurredAt)
	}
	for _, p := range w.pods {
		out = append(out, p.createdAt, p.endedAt)
	}
	return out
}

// wakeAt notes when time alone changes the reason: when a backoff ends, or where a clock of the cluster is before ours.
func (w *waiting) wakeAt(now *moment) {
	for _, t := range w.changeTimes() {
		now.hasReached(t)
	}
}

func (w *waiting) reasonAt(t time.Time) (WaitReason, string) {
	if at := w.m.deletedAt; !at.IsZero() && !t.Before(at) {
		return WaitDeleting, "deleted at " + FormatClock(at) + ", its finalizer stays"
	}
	for _, c := range waitConditions {
		if text, on := w.m.conditionAt(c.condition, t); on {
			return c.reason, text
		}
	}
	if until := w.backoffUntil(); t.Before(until) {
		return WaitBackoff, "not before " + FormatClock(until)
	}
	if pod := w.findLeftoverPod(t); pod != "" {
		return WaitLeftoverPods, "pod " + pod
	}
	return WaitQueued, ""
}

// backoffUntil returns the end of the backoff that holds the migration, zero where none does.
func (w *waiting) backoffUntil() time.Time { return backoffOf(w.m, w.before) }

// backoffOf returns the end of the backoff that holds a migration, zero where none does: it follows from the newest one before
// it that KubeVirt's controllers made and that was still there.
func backoffOf(m *migration, before []*migration) time.Time {
	if !m.backsOff() {
		return time.Time{}
	}
	for i := len(before) - 1; i >= 0; i-- {
		if b := before[i]; b.VMIUID == m.VMIUID && b.backsOff() && !b.FinishedAt.IsZero() && !b.wasDeleted(m.CreatedAt) {
			return b.retryAt
		}
	}
	return time.Time{}
}

// wasDeleted reports whether somebody had asked for the deletion of the migration, or it was gone, at a time.
func (m *migration) wasDeleted(at time.Time) bool {
	return !m.deletedAt.IsZero() && !m.deletedAt.After(at) || m.gone != nil && !m.goneAt.After(at)
}

// findLeftoverPod names a pod that keeps KubeVirt from making another: more than the guest's own is alive. Empty where none does.
func (w *waiting) findLeftoverPod(t time.Time) string {
	if w.life == nil {
		return ""
	}
	var alive []string
	for _, p := range w.pods {
		born := !p.createdAt.After(t)
		dead := !p.endedAt.IsZero() && !p.endedAt.After(t)
		if p.vmiUID == w.life.uid && born && !dead && p.migrationUID != w.m.UID && p.node != w.life.nodeAt(t) {
			alive = append(alive, p.name)
		}
	}
	slices.Sort(alive)
	return firstOf(alive)
}

func firstOf(list []string) string {
	if len(list) == 0 {
		return ""
	}
	return list[0]
}

// conditionAt reports whether a condition of the migration stood at a time, and what it said.
func (m *migration) conditionAt(typ string, t time.Time) (text string, on bool) {
	for _, f := range m.conditions {
		d, ok := f.Detail.(*ConditionDetail)
		if ok && d.Type == typ && !f.OccurredAt.After(t) {
			text, on = d.Message, d.Status == "True"
		}
	}
	return text, on
}

// mainReason returns the reason for which it waits now or, once it waits no more, for which it waited longest.
func (w waited) mainReason() (WaitReason, string) {
	if len(w.spans) == 0 {
		return "", ""
	}
	if last := w.spans[len(w.spans)-1]; w.goesOn {
		return last.reason, last.detail
	}
	total := map[WaitReason]time.Duration{}
	best := w.spans[0]
	for _, s := range w.spans {
		total[s.reason] += s.to.Sub(s.from)
		if total[s.reason] >= total[best.reason] {
			best = s
		}
	}
	return best.reason, best.detail
}

// Queued returns the beginnings and the ends of the times in which migrations that matter waited for what only the other migrations of
// the cluster say; both are empty where none did. matters may be nil: all do.
func (d *Derived) Queued(matters func(*Migration) bool) (from, to []time.Time) {
	for i := range d.Migrations {
		m := &d.Migrations[i]
		if matters != nil && !matters(m) {
			continue
		}
		for _, s := range m.waited.spans {
			if s.reason == WaitQueued {
				from, to = append(from, s.from), append(to, s.to)
			}
		}
	}
	return from, to
}

// ExplainQueue says of the migrations that waited for nothing of their own whether the limits of the cluster or of their
// node kept them waiting. Slots are those of all migrations of the cluster that overlap the times that Queued returns, in
// any order; of migrations that do not matter what is said may be wrong. One that a clock of the cluster puts ahead of ours is looked at again when its time has come (NextAt).
func (d *Derived) ExplainQueue(slots []Slot, env *Env) {
	for i := range d.Migrations {
		m := &d.Migrations[i]
		var spans []waitSpan
		for i, s := range m.waited.spans {
			if s.reason == WaitQueued {
				if m.waited.goesOn && i == len(m.waited.spans)-1 {
					d.NextAt = queue{m, slots, env}.nextChange(s.to, d.NextAt)
				}
				spans = append(spans, m.waited.splitByReason(s.interval, queue{m, findOverlappingSlots(slots, s.interval), env})...)
			} else {
				spans = append(spans, s)
			}
		}
		if spans != nil {
			m.WaitReason, m.WaitDetail = waited{m.waited.goesOn, spans}.mainReason()
		}
	}
}

// findOverlappingSlots returns the slots that were held at some moment of a time: of a busy cluster's, a few.
func findOverlappingSlots(slots []Slot, time interval) []Slot {
	var out []Slot
	for _, s := range slots {
		if time.overlaps(interval{s.From, s.To}) {
			out = append(out, s)
		}
	}
	return out
}

// queue is a migration among the others.
type queue struct {
	m     *Migration
	slots []Slot
	env   *Env
}

// nextChange returns the first time after now at which a slot begins or ends, or another if that comes before.
func (q queue) nextChange(now, next time.Time) time.Time {
	m := moment{now, next}
	for _, t := range q.changeTimes() {
		m.hasReached(t)
	}
	return m.next
}

func (q queue) changeTimes() []time.Time {
	out := make([]time.Time, 0, 2*len(q.slots))
	for _, slot := range q.slots {
		out = append(out, slot.From, slot.To)
	}
	return out
}

func (q queue) reasonAt(t time.Time) (WaitReason, string) {
	all, outbound := 0, 0
	for _, s := range q.slots {
		if s.MigrationUID == q.m.UID || !(interval{s.From, s.To}).containsTime(t) {
			continue
		}
		all++
		if s.Node == q.m.SourceNode {
			outbound++
		}
	}
	perCluster, perNode := q.env.kubevirtSettingsAt(t).ParallelLimits()
	switch {
	case all >= perCluster:
		return WaitClusterLimit, fmt.Sprintf("%d of %d migrations of the cluster under way", all, perCluster)
	case outbound >= perNode:
		return WaitNodeLimit, fmt.Sprintf("%d of %d migrations from %s under way", outbound, perNode, q.m.SourceNode)
	}
	return WaitQueued, fmt.Sprintf("%d of %d migrations of the cluster and %d of %d from %s under way", all, perCluster, outbound, perNode, q.m.SourceNode)
}

// ParallelLimits returns how many migrations may run at once in the cluster, and leave one node.
func (s KubeVirtSettings) ParallelLimits() (perCluster, perNode int) {
	perCluster, perNode = defaultPerCluster, defaultOutboundPerNode
	if s.ParallelPerCluster != nil {
		perCluster = int(*s.ParallelPerCluster)
	}
	if s.ParallelOutboundPerNode != nil {
		perNode = int(*s.ParallelOutboundPerNode)
	}
	return perCluster, perNode
}
