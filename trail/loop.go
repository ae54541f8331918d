package trail

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
)

// LoopKind says what sort of repetition a loop is.
type LoopKind string

// The kinds of loops.
const (
	LoopDualRetry          LoopKind = "dual_retry"          // KubeVirt retries one VM, the descheduler goes on evicting from its node
	LoopEndlessRetry       LoopKind = "endless_retry"       // KubeVirt retries one VM, again and again
	LoopPingPong           LoopKind = "ping_pong"           // the descheduler moves a VM back to nodes that it took it from
	LoopChurn              LoopKind = "churn"               // the descheduler moves one VM very often
	LoopOscillation        LoopKind = "oscillation"         // the descheduler moves VMs to and fro between two nodes, or round
	LoopFrequentMoves      LoopKind = "frequent_moves"      // one VM is moved very often, no matter who asks
	LoopRepeatedFailures   LoopKind = "repeated_failures"   // migrations of one VM fail again and again, no matter who asks
	LoopShutdownChurn      LoopKind = "shutdown_churn"      // the descheduler shuts one VM down, again and again
	LoopBudgetPinned       LoopKind = "budget_pinned"       // evacuations that do not end hold all slots of the descheduler
	LoopPriorityInversion  LoopKind = "priority_inversion"  // a drain waits for a VM whose migration has the lowest priority
	LoopUnansweredExternal LoopKind = "unanswered_external" // nobody moves a VM that its owner has to move
)

// LoopKinds lists the kinds of loops.
func LoopKinds() []LoopKind { return loopKindLabels.values() }

// LoopPath says by which way a dual retry loop comes about.
type LoopPath string

// The paths of a dual retry loop (reference: kubevirt-signals §1.5).
const (
	PathAnnotationLost   LoopPath = "annotation_lost"   // KubeVirt takes the annotation off at each failure
	PathFreeSlot         LoopPath = "free_slot"         // the annotation stays, and another slot is free
	PathRequestForgotten LoopPath = "request_forgotten" // the descheduler forgets its request after 10 to 20 minutes
	PathGateOff          LoopPath = "gate_off"          // the descheduler counts no evictions in the background
	PathUnclassified     LoopPath = "unclassified"
)

// LoopEnd says why a loop is over.
type LoopEnd string

// The ends of loops.
const (
	LoopMigrated        LoopEnd = "migrated"
	LoopCancelled       LoopEnd = "cancelled"
	LoopVMIGone         LoopEnd = "vmi_gone"
	LoopQuiet           LoopEnd = "quiet" // nothing that belongs to it for a while; budget_pinned: a slot is free again, though no evacuation ended
	LoopBecameDualRetry LoopEnd = "became_dual_retry"
	LoopRefuted         LoopEnd = "refuted" // later facts show that it never was
)

// What loops count.
const (
	countFailedAttempts  = "failed_attempts"
	countDeschedulerActs = "descheduler_acts"
	countOtherVMs        = "other_vms"
	countSameVMRequests  = "same_vm_requests"
	countWaits           = "waits_seconds"
	countMoves           = "moves"
	countReturns         = "returns"
	countSwings          = "swings"
	countMembers         = "members"
	countPeriod          = "period_seconds"
	countFailures        = "failures"
	countShutdowns       = "shutdowns"
	countSlots           = "slots"
	countHeld            = "held"
)

// Loop is an episode of repetition that does not converge.
type Loop struct {
	ID        FactID         `json:"loop_id"`
	Kind      LoopKind       `json:"kind"`
	Path      LoopPath       `json:"path,omitempty"`      // of a dual_retry
	Namespace string         `json:"namespace,omitempty"` // empty where it is about a node's slots, not one VM
	VMI       string         `json:"vmi,omitempty"`
	VMIUID    string         `json:"vmi_uid,omitempty"`
	Node      string         `json:"node,omitempty"`  // empty where it is about no single node
	Nodes     []string       `json:"nodes,omitempty"` // all that it goes on at, Node first if that is one of them; nil: at no other than Node
	OpenedAt  time.Time      `json:"opened_at"`       // when the condition became true
	ClosedAt  time.Time      `json:"closed_at,omitzero"`
	ClosedBy  LoopEnd        `json:"closed_by,omitempty"`
	Summary   string         `json:"summary"`
	Advice    string         `json:"advice"`
	Counts    map[string]int `json:"counts"`
	Evidence  []Exhibit      `json:"evidence"`
}

// Exhibit is one piece of a loop's evidence. Times are in ascending order within a loop.
type Exhibit struct {
	EventID *FactID   `json:"event_id,omitempty"` // of the fact or decision; nil where only a derived row has it
	At      time.Time `json:"at"`
	VMI     string    `json:"vmi,omitempty"` // namespace/name
	Text    string    `json:"text"`
}

// exhibitsKept bounds the evidence that a loop shows: the first ones and the last ones.
const exhibitsKept = 40

// setEvidence adds evidence, in the order of its times.
func (l *Loop) setEvidence(all []Exhibit) {
	slices.SortStableFunc(all, func(a, b Exhibit) int { return a.At.Compare(b.At) })
	if n := len(all); n > exhibitsKept {
		all = slices.Concat(all[:exhibitsKept/2], all[n-exhibitsKept/2:])
	}
	l.Evidence = all
}

// Open reports whether the loop goes on.
func (l Loop) Open() bool { return l.ClosedBy == "" }

// Repetitions returns what a loop of a VM counts, no matter who asked: moves, or failures in a row. Repeats is false for loops of other kinds.
func (l Loop) Repetitions() (n int, repeats bool) {
	switch l.Kind {
	case LoopFrequentMoves:
		return l.Counts[countMoves], true
	case LoopRepeatedFailures:
		return l.Counts[countFailures], true
	default:
		return 0, false
	}
}

// newLoop returns a new loop about an evacuation; ordinal distinguishes those of one kind.
func (e *Evacuation) newLoop(kind LoopKind, ordinal int, openedAt time.Time) Loop {
	return Loop{
		ID: hashID("loop", string(kind), e.ID.String(), strconv.Itoa(ordinal)), Kind: kind, Namespace: e.Namespace, VMI: e.VMI,
		VMIUID: e.VMIUID, Node: e.Node, OpenedAt: openedAt, Counts: map[string]int{},
	}
}

// endWith closes a loop with its evacuation, if that is over.
func (l *Loop) endWith(e *Evacuation) {
	if e.Outcome != "" {
		l.close(e.EndedAt, LoopEnd(e.Outcome))
	}
}

func (l *Loop) close(at time.Time, by LoopEnd) { l.ClosedAt, l.ClosedBy = at, by }

func byOpening(loops []Loop) []Loop {
	slices.SortStableFunc(loops, func(a, b Loop) int {
		return cmp.Or(a.OpenedAt.Compare(b.OpenedAt), slices.Compare(a.ID[:], b.ID[:]))
	})
	return loops
}

// Name returns the loop's name with its path.
func (l Loop) Name() string {
	if l.Path == "" || l.Path == PathUnclassified {
		return l.Kind.Label().Short
	}
	return fmt.Sprintf("%s (%s)", l.Kind.Label(), l.Path.Label())
}

// formatWithArticle returns the loop's name with its article: an endless retry. Churn and frequent moving have none.
func (l Loop) formatWithArticle() string {
	if l.Kind == LoopChurn || l.Kind == LoopFrequentMoves {
		return l.Name()
	}
	article := "a "
	if strings.ContainsRune("aeiou", rune(l.Name()[0])) {
		article = "an "
	}
	return article + l.Name()
}

// selectTense picks the words for a loop that is open, or those for one that is over.
func (l Loop) selectTense(open, over string) string {
	if l.Open() {
		return open
	}
	return over
}

// renderOpening says that the loop begins; its summary says how it went on.
func (l Loop) renderOpening() string {
	about := ""
	if l.VMI != "" {
		about = " around " + l.Namespace + "/" + l.VMI
	}
	return fmt.Sprintf("From here on this is %s%s%s.", l.formatWithArticle(), about, formatOnNode(l.Node))
}

func (l Loop) renderClosing() string {
	if l.Kind == LoopBudgetPinned && l.ClosedBy == LoopQuiet {
		return fmt.Sprintf("The %s is over: it has a free slot again.", l.Name())
	}
	switch l.ClosedBy {
	case LoopMigrated:
		return fmt.Sprintf("The %s is over: the VM has moved.", l.Name())
	case LoopCancelled:
		return fmt.Sprintf("The %s is over: the evacuation was cancelled.", l.Name())
	case LoopVMIGone:
		return fmt.Sprintf("The %s is over: the VMI ended.", l.Name())
	case LoopQuiet:
		return fmt.Sprintf("The %s is over: nothing that belongs to it has happened for a while.", l.Name())
	case LoopBecameDualRetry:
		return fmt.Sprintf("The %s became a dual retry loop: the descheduler acts on the node, too.", l.Name())
	case LoopRefuted:
		return fmt.Sprintf("The %s never was: later facts refute it.", l.Name())
	}
	return ""
}
