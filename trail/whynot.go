package trail

import (
	"cmp"
	"fmt"
	"strings"
	"time"
)

// ObstacleKind says what sort of thing keeps a VM where it is.
type ObstacleKind string

// The kinds of obstacles, in the order in which they are shown.
const (
	ObstacleGone          ObstacleKind = "not_running"    // the VM does not run
	ObstacleNodeNotReady  ObstacleKind = "node_not_ready" // its node is not ready
	ObstacleTerminating   ObstacleKind = "terminating"    // its pod is being deleted
	ObstacleMigrating     ObstacleKind = "migrating"      // none: it is on its way
	ObstacleStalled       ObstacleKind = "stalled"        // it is on its way, to a node that is not ready
	ObstacleExternal      ObstacleKind = "external"       // its owner has to move it
	ObstacleNotMigratable ObstacleKind = "not_migratable" // it cannot be live-migrated
	ObstacleFailing       ObstacleKind = "failing"        // its migrations fail
	ObstacleWaiting       ObstacleKind = "waiting"        // its migration waits, and for what
	ObstacleBackoff       ObstacleKind = "backoff"        // KubeVirt waits after a failure
	ObstacleGivenUp       ObstacleKind = "not_retried"    // a user's migration failed, and nobody tries again
	ObstacleStrategy      ObstacleKind = "strategy"       // an eviction would shut it down
	ObstacleCooldown      ObstacleKind = "cooldown"       // the descheduler leaves it alone
	ObstacleOptedOut      ObstacleKind = "opted_out"      // the descheduler was asked to leave it alone
	ObstacleSlots         ObstacleKind = "slots"          // the slots of the descheduler are taken
	ObstacleNobodyAsks    ObstacleKind = "nobody_asks"    // nothing is in its way, and nobody asks
)

// Obstacle is one thing that keeps a VM where it is.
type Obstacle struct {
	Kind      ObstacleKind `json:"kind"`
	Namespace string       `json:"namespace"`
	VMI       string       `json:"vmi"`
	Text      string       `json:"text"`             // a sentence without a stop
	Until     time.Time    `json:"until,omitzero"`   // when it is over by itself; zero where it is not, or nobody knows
	Reason    string       `json:"reason,omitempty"` // finer: a wait_reason, a failure class, the cause of an outage
}

// NotAnswer is what evictrail says to the question why a VM, or a node's VMs, do not move.
type NotAnswer struct {
	Node      string     `json:"node"`
	Namespace string     `json:"namespace,omitempty"` // empty where the question is about a node
	VMI       string     `json:"vmi,omitempty"`
	Paragraph string     `json:"paragraph"`
	Advice    string     `json:"advice,omitempty"`
	AsOf      time.Time  `json:"as_of"` // the moment for which it speaks
	Obstacles []Obstacle `json:"obstacles"`
	Outage    Outage     `json:"outage,omitzero"` // of the node, which goes on; zero where it is ready, or nothing is known of it
	Rests

	Recorder    *RecorderNote `json:"recorder,omitempty"`     // state of the recorder now; nil where the question is about the past
	NotObserved []Gap         `json:"not_observed,omitempty"` // gaps that overlap the time since Since, at least the hour before AsOf, the newest first
}

// WhyNot answers what keeps a VM from moving: each thing that is in its way, the most important first.
func (c *Cluster) WhyNot(namespace, vmi string) NotAnswer {
	s := standing{Cluster: c, d: c.VM(namespace, vmi), namespace: namespace, vmi: vmi}
	a := NotAnswer{Namespace: namespace, VMI: vmi, Node: s.currentNode(), AsOf: c.Now, Obstacles: s.findObstacles()}
	text := make([]string, 0, len(a.Obstacles)+2)
	for _, o := range a.Obstacles {
		text = append(text, UpperFirst(o.Text)+".")
	}
	text = append(nonEmpty([]string{s.d.describeRecentShutdown(c.Now)}), text...)
	loops, advice := c.describeLoops(namespace, vmi, c.Now)
	text = append(append(text, s.describeDrains()...), loops...)
	a.Paragraph = fmt.Sprintf("%s/%s%s: %s", namespace, vmi, formatOnNode(a.Node), strings.Join(text, " "))
	if o := c.findOpenOutage(a.Node); o != nil {
		a.Outage, advice = *o, adviceOutage(a.Node)
	}
	a.Advice = cmp.Or(advice, s.renderAdvice(a.Obstacles))
	a.Rests = c.newRests(minNonZeroTime(s.obstructedSince(), minNonZeroTime(c.loopsSince(c.LoopsOf(namespace, vmi)), c.drainsSince(a.Node))))
	return a
}

// WhyNotNode answers what keeps the VMs of a node from leaving it: how it stands with its drain, with the slots of the
// descheduler, and with each VM.
func (c *Cluster) WhyNotNode(name string) NotAnswer {
	a := NotAnswer{Node: name, AsOf: c.Now}
	var text []string
	vms := c.findNodeGuests(name)
	if o := c.findOpenOutage(name); o != nil {
		a.Outage, a.Advice = *o, adviceOutage(name)
		text = append(text, "it "+o.describeState(c.Now)+describeTerminatingPods(vms))
	}
	for _, d := range c.Node(name).Drains {
		if d.Outcome == "" {
			text = append(text, d.Standing(c.Now))
		}
	}
	count := map[ObstacleKind]int{}
	var order []ObstacleKind
	since := minNonZeroTime(c.loopsSince(c.LoopsAt(name)), c.drainsSince(name))
	for _, vm := range vms {
		since = minNonZeroTime(since, vm.obstructedSince())
		o := vm.findObstacles()[0]
		if count[o.Kind] == 0 {
			order = append(order, o.Kind)
		}
		count[o.Kind]++
		if vm.vmi != "" { // else it may not be seen, and counts
			a.Obstacles = append(a.Obstacles, o)
		}
	}
	if len(vms) == 0 {
		text = append(text, "no VMs")
	} else {
		var parts []string
		for _, k := range order {
			parts = append(parts, fmt.Sprintf("%d %s", count[k], k.Label()))
		}
		text = append(text, fmt.Sprintf("%s: %s", FormatCount(len(vms), "VM"), strings.Join(parts, ", ")))
	}
	if hidden := len(vms) - len(a.Obstacles); hidden > 0 {
		text = append(text, fmt.Sprintf("%d of them %s of other namespaces", hidden, isOrAre(hidden)))
	}
	if held := c.slotsHeld(name); held != "" {
		text = append(text, held)
	}
	for i := range text {
		text[i] = UpperFirst(text[i]) + "."
	}
	for _, l := range c.LoopsAt(name) {
		if l.Open() {
			text = append(text, fmt.Sprintf("%s, open since %s: %s", UpperFirst(l.Name()), FormatClock(l.OpenedAt), l.Summary))
			a.Advice = cmp.Or(a.Advice, l.Advice)
		}
	}
	a.Paragraph = name + ": " + strings.Join(text, " ")
	a.Rests = c.newRests(since)
	return a
}

// loopsSince returns when the first of those loops opened that are open; zero where none is.
func (c *Cluster) loopsSince(loops []Loop) time.Time {
	var since time.Time
	for _, l := range loops {
		if l.Open() {
			since = minNonZeroTime(since, l.OpenedAt)
		}
	}
	return since
}

// drainsSince returns when the first drain of a node began that is not over; zero where there is none.
func (c *Cluster) drainsSince(node string) time.Time {
	var since time.Time
	for _, d := range c.Node(node).Drains {
		if d.Outcome == "" {
			since = minNonZeroTime(since, d.StartedAt)
		}
	}
	return since
}

// describeTerminatingPods says how many pods of VMs are being deleted, after what is said of their node; empty where none is.
func describeTerminatingPods(vms []standing) string {
	n := 0
	for _, vm := range vms {
		if !placementNow(vm.d).TerminatingSince.IsZero() {
			n++
		}
	}
	if n == 0 {
		return ""
	}
	return fmt.Sprintf("; %d of its pods %s terminating", n, isOrAre(n))
}

func isOrAre(n int) string {
	if n == 1 {
		return "is"
	}
	return "are"
}

func formatOnNode(node string) string {
	if node == "" {
		return ""
	}
	return " on " + node
}

// Standing says how far a drain is, as a sentence without its stop.
func (d Drain) Standing(now time.Time) string {
	return fmt.Sprintf("being drained by %s for %s (since %s), %d of %s still on it", formatRequester(d.Requester, d.Impersonator, d.RequesterClass),
		Age(now.Sub(d.StartedAt)), FormatClock(d.StartedAt), d.VMIsLeft, FormatCount(d.VMIsTotal, "VM"))
}
