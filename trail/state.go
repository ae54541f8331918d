package trail

import (
	"cmp"
	"slices"
	"strings"
	"time"
)

// State is how it stands with a cluster at one moment: what the gauges show. Lists of VMs begin with those that need
// somebody most.
type State struct {
	At           time.Time
	KubeVirt     KubeVirtSettings     // in force
	PerCluster   int                  // migrations that may run at once
	PerNode      int                  // migrations that may leave one node at once
	Policy       *DeschedulerSettings // in force; nil where none is known
	Descheduler  *DeschedulerDetail   // its process; nil where its metrics were never read
	Nodes        map[string]*NodeState
	Evacuations  []Evacuation                // that are open
	Slots        SlotState                   // of the descheduler, in all
	Running      int                         // migrations that have their target pod
	Pending      map[WaitReason]PendingState // that have no target pod, or one on a node that is not ready
	FailingHour  map[FailureClass]int        // VMs with a failed migration in the last hour
	FailingDay   map[FailureClass]int        // in the last 24 hours
	Returns      []VMCount                   // in the last 6 hours: at least one
	Moves        []VMCount                   // in the last 24 hours, by trigger: at least three
	Repeated     []LoopCount                 // open loops of VMs, no matter who asks: frequent moving, repeated failures
	Cooling      []Cooling                   // VMs that the descheduler leaves alone
	DrainBlocked []DrainBlocked
	Loops        map[LoopPlace]int // that are open
}

// NodeState is how it stands with one node.
type NodeState struct {
	VMIs       int
	InCooldown int // of them
	Marked     int // open evacuations
	Retrying   int // of them, those with a failed attempt
	Outgoing   int // migrations that have their target pod
	Incoming   int
	Slots      SlotState
	DrainSince time.Time // zero where it is not being drained
	Remaining  map[Blocker]int
}

// SlotState says how many of the descheduler's evictions are under way, and since when the oldest is.
type SlotState struct {
	InUse  int
	Oldest time.Time // zero where there is none
}

// PendingState says how many migrations wait for one reason, and since when the oldest does.
type PendingState struct {
	Count  int
	Oldest time.Time
}

// VMCount counts something of a VM.
type VMCount struct {
	Namespace, VMI string
	Trigger        Trigger // of moves
	Count          int
}

// LoopCount is what an open loop of a VM counts.
type LoopCount struct {
	Namespace, VMI string
	Kind           LoopKind
	Count          int
}

// Cooling is a VM that the descheduler leaves alone.
type Cooling struct {
	Namespace, VMI, Node string
	Base, Effective      time.Duration
	Until                time.Time
}

// DrainBlocked is a VM that is left on a node that is being drained.
type DrainBlocked struct {
	Namespace, VMI, Node string
	Blocker              Blocker
	NotMigratable        string // KubeVirt's reason and text; empty where it can be migrated
}

// Cause returns KubeVirt's reason why the VM cannot be migrated, ReasonOther where it is another, or empty where it can.
func (b DrainBlocked) Cause() string {
	reason, _, _ := strings.Cut(b.NotMigratable, " ")
	if reason == "" || slices.Contains(notMigratable, reason) {
		return reason
	}
	return string(ReasonOther)
}

// NotMigratableReasons lists KubeVirt's reasons why a VM cannot be migrated: those of the condition LiveMigratable.
func NotMigratableReasons() []string { return slices.Clone(notMigratable) }

var notMigratable = []string{
	"DisksNotLiveMigratable", "InterfaceNotLiveMigratable", "CPUModeLiveMigratable", "HostDeviceNotLiveMigratable", "SEVNotLiveMigratable",
	"TDXNotLiveMigratable", "SecureExecutionNotLiveMigratable", "NoTSCFrequencyNotLiveMigratable", "HypervPassthroughNotLiveMigratable",
	"HotplugNotLiveMigratable", "VirtIOFSNotLiveMigratable", "PersistentReservationNotLiveMigratable", "DecentralizedNotLiveMigratable", "NotMigratable",
}

// LoopPlace is a kind of loop and where it goes on; no node where it is about no single one.
type LoopPlace struct {
	Kind LoopKind
	Node string
}

// StateRows are the rows that a State is made of.
type StateRows struct {
	Guests      map[string]int // by node
	Evacuations []Evacuation   // that are open
	Migrations  []Migration    // that are not over
	Moved       []Migration    // that succeeded in the last 12 hours, of VMs with several
	Moves       []VMCount
	FailingHour map[FailureClass]int
	FailingDay  map[FailureClass]int
	Cooling     []Cooling
	Loops       map[LoopPlace]int
	Repeated    []LoopCount
	Drains      []Drain // that go on
	Blocked     []DrainBlocked
}

// returnsWithin is the window in which returns are counted.
const returnsWithin = 6 * time.Hour

// NewState sums up rows as they stand at a time. The Env has the rules in force.
func NewState(rows StateRows, env *Env, at time.Time) State {
	s := State{
		At: at, KubeVirt: env.kubevirtSettingsAt(at), Policy: env.deschedulerSettingsAt(at), Nodes: map[string]*NodeState{}, Evacuations: rows.Evacuations,
		Pending: map[WaitReason]PendingState{}, FailingHour: rows.FailingHour, FailingDay: rows.FailingDay, Moves: rows.Moves,
		Cooling: rows.Cooling, DrainBlocked: rows.Blocked, Loops: rows.Loops, Repeated: rows.Repeated,
	}
	s.PerCluster, s.PerNode = s.KubeVirt.ParallelLimits()
	_, s.Descheduler = env.findDeschedulerProcess(at)
	for node, n := range rows.Guests {
		s.ensureNode(node).VMIs = n
	}
	s.Evacuations = onePerVMI(s.Evacuations)
	for i := range s.Evacuations {
		s.addEvacuation(&s.Evacuations[i])
	}
	for i := range rows.Migrations {
		s.addMigration(&rows.Migrations[i])
	}
	for _, c := range s.Cooling {
		s.ensureNode(c.Node).InCooldown++
	}
	for _, d := range rows.Drains {
		s.ensureNode(d.Node).DrainSince = d.StartedAt
	}
	for _, b := range s.DrainBlocked {
		if n := s.ensureNode(b.Node); n.Remaining == nil {
			n.Remaining = map[Blocker]int{b.Blocker: 1}
		} else {
			n.Remaining[b.Blocker]++
		}
	}
	s.Returns = returnsOf(rows.Moved, env.thresholds.ReturnWithin, at)
	s.sortByUrgency()
	return s
}

// onePerVMI drops the evacuations that a drain taint opened where a mark has opened another of the same VMI since: it is moved once.
func onePerVMI(all []Evacuation) []Evacuation {
	marked := map[string]bool{}
	for i := range all {
		marked[all[i].VMIUID] = marked[all[i].VMIUID] || all[i].MarkedBy != MarkedByTaint
	}
	return slices.DeleteFunc(all, func(e Evacuation) bool { return e.MarkedBy == MarkedByTaint && marked[e.VMIUID] })
}

// ensureNode returns the state of a node; an unknown one is a node like others.
func (s *State) ensureNode(name string) *NodeState {
	n := s.Nodes[name]
	if n == nil {
		n = &NodeState{}
		s.Nodes[name] = n
	}
	return n
}

func (s *State) addEvacuation(e *Evacuation) {
	n := s.ensureNode(e.Node)
	n.Marked++
	if e.FailedAttempts > 0 {
		n.Retrying++
	}
	if e.HoldsSlot() {
		n.Slots.addSlot(e.MarkedAt)
		s.Slots.addSlot(e.MarkedAt)
	}
}

func (s *SlotState) addSlot(since time.Time) {
	if s.InUse++; s.Oldest.IsZero() || since.Before(s.Oldest) {
		s.Oldest = since
	}
}

func (s *State) addMigration(m *Migration) {
	if m.SchedulingAt.IsZero() || m.isStalled() {
		reason := cmp.Or(m.WaitReason, WaitQueued)
		p := s.Pending[reason]
		if p.Count++; p.Oldest.IsZero() || m.CreatedAt.Before(p.Oldest) {
			p.Oldest = m.CreatedAt
		}
		s.Pending[reason] = p
	}
	if m.SchedulingAt.IsZero() {
		return
	}
	s.Running++
	if m.SourceNode != "" {
		s.ensureNode(m.SourceNode).Outgoing++
	}
	if m.TargetNode != "" {
		s.ensureNode(m.TargetNode).Incoming++
	}
}

// returnsOf counts, for each VM, how often the descheduler brought it back not long ago.
func returnsOf(moved []Migration, within time.Duration, at time.Time) []VMCount {
	slices.SortFunc(moved, func(a, b Migration) int {
		return cmp.Or(strings.Compare(a.Namespace, b.Namespace), strings.Compare(a.VMI, b.VMI), a.FinishedAt.Compare(b.FinishedAt))
	})
	var out []VMCount
	var moves []move // of the same VM so far
	for i := range moved {
		m := &moved[i]
		if n := len(moves); n > 0 && (moves[n-1].migration.Namespace != m.Namespace || moves[n-1].migration.VMI != m.VMI) {
			moves = nil
		}
		next := move{m.FinishedAt, m.SourceNode, m.TargetNode, m.Trigger == TriggerDescheduler, m}
		if isReturn(moves, next, within) && at.Sub(m.FinishedAt) < returnsWithin {
			if k := len(out) - 1; k >= 0 && out[k].Namespace == m.Namespace && out[k].VMI == m.VMI {
				out[k].Count++
			} else {
				out = append(out, VMCount{Namespace: m.Namespace, VMI: m.VMI, Count: 1})
			}
		}
		moves = append(moves, next)
	}
	return out
}

// sortByUrgency puts first what needs somebody most: what failed most often, what has waited longest, what was moved most. Ties are
// settled by name, so that the same VMs are kept wherever there are too many.
func (s *State) sortByUrgency() {
	slices.SortFunc(s.Evacuations, func(a, b Evacuation) int {
		return cmp.Or(cmp.Compare(b.FailedAttempts, a.FailedAttempts), a.MarkedAt.Compare(b.MarkedAt), strings.Compare(a.formatVM(), b.formatVM()))
	})
	slices.SortFunc(s.Cooling, func(a, b Cooling) int {
		return cmp.Or(cmp.Compare(b.Effective, a.Effective), b.Until.Compare(a.Until), strings.Compare(a.Namespace, b.Namespace), strings.Compare(a.VMI, b.VMI))
	})
	for _, counts := range [][]VMCount{s.Returns, s.Moves} {
		slices.SortFunc(counts, func(a, b VMCount) int {
			return cmp.Or(cmp.Compare(b.Count, a.Count), strings.Compare(a.Namespace, b.Namespace), strings.Compare(a.VMI, b.VMI), strings.Compare(string(a.Trigger), string(b.Trigger)))
		})
	}
	slices.SortFunc(s.Repeated, func(a, b LoopCount) int {
		return cmp.Or(cmp.Compare(b.Count, a.Count), strings.Compare(a.Namespace, b.Namespace), strings.Compare(a.VMI, b.VMI), strings.Compare(string(a.Kind), string(b.Kind)))
	})
	slices.SortFunc(s.DrainBlocked, func(a, b DrainBlocked) int {
		return cmp.Or(strings.Compare(a.Node, b.Node), strings.Compare(a.Namespace, b.Namespace), strings.Compare(a.VMI, b.VMI))
	})
}

// To what KubeVirt ties the annotation eviction-in-progress of the pod.
const (
	AnnotatedByAttempt = "attempt" // it is taken off when an attempt fails, until v1.6.0
	AnnotatedByMark    = "mark"    // it stays until the evacuation ends
	AnnotatedUnknown   = "unknown"
)

// AnnotationMode says to what KubeVirt of this version ties the annotation.
//
// Source: kubevirt pull requests 15423 (v1.7.0) and 15491 (v1.6.1).
func (s KubeVirtSettings) AnnotationMode() string {
	major, minor, known := majorMinor(s.Version)
	patch := strings.SplitN(s.Version, ".", 3)
	switch {
	case !known:
		return AnnotatedUnknown
	case major > 1 || minor >= 7 || minor == 6 && len(patch) == 3 && patch[2] != "0" && !strings.HasPrefix(patch[2], "0-"):
		return AnnotatedByMark
	}
	return AnnotatedByAttempt
}

// AnnotationShown reports whether the pod of an open evacuation bears the annotation eviction-in-progress; not known where it
// was never seen.
func (e *Evacuation) AnnotationShown() (shown, known bool) {
	return e.InProgressLostAt.IsZero(), e.InProgress != ""
}

// Upkeep says how the database is kept.
type Upkeep struct {
	PartitionsUntil                                   time.Time     // facts from then on have no partition of their own
	StrayRows                                         int           // facts in the default partition that are not there for their age, counted up to 1000
	Underived                                         int           // subjects that cannot be derived
	FactsFrom                                         time.Time     // from when on all facts of the cluster are there; zero: none were dropped
	Schema, SchemaExpected                            int64         // versions: that of the database, and the one that is needed
	ClockSkew                                         time.Duration // how far its clock is ahead of ours
	ConnectionsUsed, ConnectionsIdle, ConnectionsMost int           // of the pool
}
