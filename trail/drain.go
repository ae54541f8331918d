package trail

import (
	"fmt"
	"slices"
	"time"
)

// DrainOutcome is how a drain ended; empty while it goes on.
type DrainOutcome string

// The outcomes of a drain.
const (
	DrainEmptied   DrainOutcome = "emptied"   // no guest is left
	DrainAbandoned DrainOutcome = "abandoned" // the node takes pods again, or nobody asks any more, with guests left
	DrainNodeGone  DrainOutcome = "node_gone"
)

// Drain is the session in which a node is being emptied: from its cordon, or the first request, to its end.
type Drain struct {
	ID             FactID         `json:"drain_id"` // of the request or evacuation that it was first seen by
	Node           string         `json:"node"`
	StartedAt      time.Time      `json:"started_at"`
	EndedAt        time.Time      `json:"ended_at,omitzero"`
	Requester      string         `json:"requester,omitempty"` // user name; empty where unknown
	RequesterClass RequesterClass `json:"requester_class"`
	Impersonator   string         `json:"impersonator,omitempty"` // user name of who acted as the requester; empty where nobody did
	VMIsTotal      int            `json:"vmis_total"`             // guests that it had to empty the node of
	VMIsLeft       int            `json:"vmis_left"`              // now, or at its end
	Outcome        DrainOutcome   `json:"outcome,omitempty"`
	LastAskedAt    time.Time      `json:"last_asked_at,omitzero"` // repetitions by the minute
}

// Blocker says why a VM is still on a node that is being drained.
type Blocker string

// The causes for which a VM is left.
const (
	BlockerNotMigratable Blocker = "not_migratable"
	BlockerFailing       Blocker = "failing"
	BlockerQueued        Blocker = "queued"
	BlockerMigrating     Blocker = "migrating"
	BlockerExternal      Blocker = "external"
	BlockerOptedOut      Blocker = "opted_out"
	BlockerPDB           Blocker = "pdb"
	BlockerNodeNotReady  Blocker = "node_not_ready"
)

// Blockers lists the causes for which a VM is left.
func Blockers() []Blocker { return blockerLabels.values() }

// DrainEffect says what the drain of its node would do to a VM.
type DrainEffect string

// The effects of a drain, the worst first.
const (
	DrainStays     DrainEffect = "stays"      // as things are the VM does not leave
	DrainShutsDown DrainEffect = "shuts_down" // its pod is deleted, and its memory is lost
	DrainMoves     DrainEffect = "moves"      // KubeVirt moves it
)

// DrainEffects lists the effects of a drain on a VM, the worst first.
func DrainEffects() []DrainEffect { return drainEffectLabels.values() }

// DrainBlocker is one VM that is left of a drain.
type DrainBlocker struct {
	DrainID      FactID    `json:"drain_id"`
	Node         string    `json:"node"`
	Namespace    string    `json:"namespace"`
	VMI          string    `json:"vmi"`
	VMIUID       string    `json:"vmi_uid"`
	Blocker      Blocker   `json:"blocker"`
	Reason       string    `json:"reason"`
	Next         string    `json:"next"` // what KubeVirt will do by itself
	WaitingSince time.Time `json:"waiting_since"`
	LastAskedAt  time.Time `json:"last_asked_at,omitzero"` // when the drain last asked for it, repetitions by the minute; zero where it never did
}

// cordonBefore is how long before the first request a cordon still counts as its beginning: kubectl drain cordons 30 ms
// before it evicts, people take longer.
const cordonBefore = 15 * time.Minute

// drainQuiet is how long after the last request a drain of a node that was never closed is over.
const drainQuiet = time.Hour

// drainAct is something that says that a node is being drained.
type drainAct struct {
	id     FactID
	at     time.Time
	vmiUID string // of the VM that it asks to move; empty where it is about the node
	class  RequesterClass
	who    string
	as     string // who acted as that user; empty where nobody did
}

// findDrains finds the drains of the node, and what is left of the last one.
func (n *node) findDrains() ([]Drain, []DrainBlocker) {
	var drains []Drain
	closed := n.closedIntervals()
	acts := n.drainActs(closed)
	for i, a := range acts {
		if k := len(drains); k > 0 && drains[k-1].hasAct(a) {
			drains[k-1].LastAskedAt = a.at
			continue
		}
		if len(n.guestsAt(a.at)) == 0 {
			continue // kubectl asks on for pods that are only to be deleted
		}
		drains = append(drains, n.newDrain(acts[i:], closed))
	}
	if len(drains) == 0 {
		return nil, nil
	}
	return drains, n.findDrainBlockers(&drains[len(drains)-1], acts)
}

// hasAct reports whether an act that is not before a drain belongs to it.
func (d *Drain) hasAct(a drainAct) bool {
	return !a.at.Before(d.StartedAt) && (d.Outcome == "" || a.at.Before(d.EndedAt))
}

// closedIntervals returns the times in which the node took no pods, by a cordon or the drain taint. One whose beginning was not seen
// begins at the zero time.
func (n *node) closedIntervals() []interval {
	var out []interval
	held := map[string]bool{}
	for _, f := range n.facts {
		if f.Kind == KindNodeGone && len(held) > 0 { // another of its name begins again
			out[len(out)-1].to, held = f.OccurredAt, map[string]bool{}
		}
		if f.What != WhatCordon && !n.env.isDrainTaint(f) {
			continue
		}
		switch f.Kind {
		case KindNodeCordoned, KindNodeTainted:
			if len(held) == 0 {
				begin := f.OccurredAt
				if f.Late {
					begin = time.Time{}
				}
				out = append(out, interval{from: begin})
			}
			held[f.What] = true
		case KindNodeUncordoned, KindNodeUntainted:
			if delete(held, f.What); len(held) == 0 && len(out) > 0 {
				out[len(out)-1].to = f.OccurredAt
			}
		default:
		}
	}
	return out
}

// closedAt returns the time in which the node took no pods at a moment; false where it did.
func closedAt(closed []interval, at time.Time) (interval, bool) {
	for _, c := range closed {
		if c.containsTime(at) || c.containsTime(at.Add(envSlack)) {
			return c, true
		}
	}
	return interval{}, false
}

// drainActs returns what says that the node is being drained, in the order of their times: requests of programs that drain,
// those of others while the node takes no pods, evacuations that were attributed to a drain, and the drain taint.
func (n *node) drainActs(closed []interval) []drainAct {
	var out []drainAct
	for _, r := range n.Requests {
		_, is := closedAt(closed, r.RequestedAt)
		if r.byOthers() && (is || r.RequesterClass.isDrainer()) {
			out = append(out, drainAct{r.ID, r.RequestedAt, r.VMIUID, r.RequesterClass, r.Requester, r.Impersonator})
		}
	}
	for _, e := range n.Evacuations {
		if e.Trigger == TriggerDrain || e.Trigger == TriggerDrainTaint {
			out = append(out, drainAct{e.ID, e.MarkedAt, e.VMIUID, e.RequesterClass, e.Requester, e.Impersonator})
		}
	}
	for _, f := range n.facts {
		if f.Kind == KindNodeTainted && n.env.isDrainTaint(f) { // it asks KubeVirt to move all that can
			a := drainAct{id: f.ID, at: f.OccurredAt, class: RequesterUnknown}
			if who := n.own.nodeChangedBy(f); who != nil {
				a.who, a.as = who.User, who.Impersonator
			}
			out = append(out, a)
		}
	}
	out = slices.DeleteFunc(out, func(a drainAct) bool { return a.at.Before(n.Since) })
	slices.SortStableFunc(out, func(a, b drainAct) int { return a.at.Compare(b.at) })
	return out
}

// isDrainer returns the programs that evict in order to empty a node, and nothing else.
func (c RequesterClass) isDrainer() bool {
	switch c {
	case RequesterClusterAutoscaler, RequesterKarpenter, RequesterMachineConfig, RequesterClusterAPI, RequesterNodeMaintenance, RequesterKured,
		RequesterHarvester:
		return true
	case RequesterDescheduler, RequesterKubectl, RequesterKubeVirt, RequesterForklift, RequesterConsole, RequesterArgoCD, RequesterFlux,
		RequesterEvictionRequest, RequesterServiceAccount, RequesterOther, RequesterUnknown, AnyRequester:
	}
	return false
}

// newDrain makes the session that begins with the first of some acts.
func (n *node) newDrain(acts []drainAct, closed []interval) Drain {
	a := acts[0]
	d := Drain{ID: a.id, Node: n.name, StartedAt: a.at, Requester: a.who, RequesterClass: a.class, Impersonator: a.as, LastAskedAt: a.at}
	c, is := closedAt(closed, a.at)
	if is && !c.from.IsZero() && a.at.Sub(c.from) <= cordonBefore && c.from.Before(a.at) {
		d.StartedAt = c.from
	}
	if at := n.emptyAfter(a.at); !at.IsZero() {
		d.EndedAt, d.Outcome = at, DrainEmptied
	}
	over := func(at time.Time, as DrainOutcome) {
		if !at.IsZero() && at.After(a.at) && (d.EndedAt.IsZero() || at.Before(d.EndedAt)) {
			d.EndedAt, d.Outcome = at, as
		}
	}
	over(n.goneAfter(a.at), DrainNodeGone)
	if is {
		over(c.to, DrainAbandoned)
	} else if quiet := lastOfRun(acts).Add(drainQuiet); (d.Outcome == "" || quiet.Before(d.EndedAt)) && n.now.hasReached(quiet) {
		over(quiet, DrainAbandoned)
	}
	guests := map[string]bool{}
	for _, p := range n.Placements {
		if (p.ToAt.IsZero() || p.ToAt.After(d.StartedAt)) && (d.EndedAt.IsZero() || p.FromAt.Before(d.EndedAt)) {
			guests[p.VMIUID] = true
		}
	}
	d.VMIsTotal, d.VMIsLeft = len(guests), len(n.guestsAt(n.endOf(d)))
	return d
}

// endOf returns the moment at which what is left of a drain counts: just before its end, or now.
func (n *node) endOf(d Drain) time.Time {
	switch {
	case d.EndedAt.IsZero():
		return n.now.now
	case d.Outcome == DrainEmptied:
		return d.EndedAt
	}
	return d.EndedAt.Add(-time.Microsecond)
}

// lastOfRun returns the end of the acts that follow one another closely.
func lastOfRun(acts []drainAct) time.Time {
	last := acts[0].at
	for _, a := range acts {
		if a.at.Sub(last) <= drainQuiet {
			last = a.at
		}
	}
	return last
}

// emptyAfter returns the first time after another at which no guest was on the node; zero while one is.
func (n *node) emptyAfter(at time.Time) time.Time {
	for {
		guests := n.guestsAt(at)
		if len(guests) == 0 {
			return at
		}
		for _, p := range guests {
			if p.ToAt.IsZero() {
				return time.Time{}
			}
			at = maxTime(at, p.ToAt)
		}
	}
}

// goneAfter returns the first time after another at which the node was deleted, zero where it was not.
func (n *node) goneAfter(at time.Time) time.Time {
	for _, f := range n.facts {
		if f.Kind == KindNodeGone && f.OccurredAt.After(at) {
			return f.OccurredAt
		}
	}
	return time.Time{}
}

// findDrainBlockers says of each VM that a drain has left, or left behind, why, and when one of its acts last asked for it. Of a drain that emptied its node none are.
func (n *node) findDrainBlockers(d *Drain, acts []drainAct) []DrainBlocker {
	if d.Outcome == DrainEmptied {
		return nil
	}
	at := n.endOf(*d)
	var out []DrainBlocker
	for _, p := range n.guestsAt(at) {
		b := DrainBlocker{
			DrainID: d.ID, Node: n.name, Namespace: p.Namespace, VMI: p.VMI, VMIUID: p.VMIUID,
			WaitingSince: maxTime(d.StartedAt, p.FromAt),
		}
		for _, a := range acts {
			if a.vmiUID == p.VMIUID && d.hasAct(a) {
				b.LastAskedAt = a.at
			}
		}
		n.explainBlocker(&b, p, at)
		out = append(out, b)
	}
	return out
}

// explainBlocker says why a guest is still there, and what KubeVirt will do about it.
func (n *node) explainBlocker(b *DrainBlocker, p *Placement, at time.Time) {
	e := n.evacuationAt(p, at)
	r := n.lastRequest(p, b.WaitingSince, at)
	down := outageAt(n.outages, at)
	switch {
	case down != nil && down.blocksMigration():
		b.WaitingSince = maxTime(b.WaitingSince, down.BeganAt)
		b.Blocker, b.Reason, b.Next = BlockerNodeNotReady, down.describePeriod(), "move nothing from it before it is ready"
	case p.Strategy == StrategyExternal:
		b.Blocker, b.Reason, b.Next = BlockerExternal, "its eviction strategy is External", "nothing; its owner must move it"
	case e != nil:
		b.WaitingSince = maxTime(b.WaitingSince, e.MarkedAt)
		n.blocksMarked(b, e, p, at)
	case r != nil && r.Answer == AnswerPDB:
		b.Blocker, b.Reason, b.Next = BlockerPDB, "a PodDisruptionBudget forbids it: "+r.AnswerText, "nothing; the API server refuses the eviction"
	case p.NotMigratable != "" && p.Strategy != "" && p.Strategy != strategyNone || r != nil && r.Answer == AnswerNotMigratable:
		b.notMigratable(p)
	case r == nil && !p.isEvictable():
		b.Blocker, b.Reason = BlockerOptedOut, "its eviction strategy "+FormatStrategy(p.Strategy)+" does not ask to be moved"
		b.Next = "nothing; an eviction of its pod shuts it down"
	default:
		b.Blocker, b.Reason, b.Next = BlockerQueued, "nobody has asked to evict it since the drain began", "nothing until its pod is evicted"
		if n.env.drainTainted(n.name, at) {
			b.Reason, b.Next = "KubeVirt has made no migration for it yet", "make one, when a slot is free"
		} else if r != nil {
			b.Reason, b.Next = "last asked at "+FormatClock(r.RequestedAt)+": "+r.describeOutcome(), "nothing until its pod is evicted again"
		}
	}
}

// blocksMarked says how it stands with a guest that is to be moved.
func (n *node) blocksMarked(b *DrainBlocker, e *Evacuation, p *Placement, at time.Time) {
	attempts := n.attempts[e.ID]
	var last *Migration
	if len(attempts) > 0 {
		last = attempts[len(attempts)-1]
	}
	waits := last != nil && last.FinishedAt.IsZero() && last.SchedulingAt.IsZero()
	switch {
	case last != nil && last.isStalled():
		b.Blocker, b.Next = BlockerMigrating, "wait for that node"
		b.Reason = fmt.Sprintf("%s is stalled: its target pod is there, and %s", last.formatLabel(), last.WaitDetail)
	case last != nil && last.FinishedAt.IsZero() && !waits:
		b.Blocker, b.Reason, b.Next = BlockerMigrating, fmt.Sprintf("%s is under way since %s", last.formatLabel(), FormatClock(last.SchedulingAt)), "finish this attempt"
	case e.FailedAttempts > 0:
		b.Blocker = BlockerFailing
		b.Reason = fmt.Sprintf("%s failed, most recently: %s", formatCountInWords(e.FailedAttempts, "attempt"), formatFailure(e.LastFailureClass, e.LastFailureReason))
		b.Next = n.nextAttempt(e, at)
	case waits:
		b.Blocker, b.Reason, b.Next = BlockerQueued, "its migration waits: "+waitText(last), "start "+last.formatLabel()
	case p.NotMigratable != "":
		b.notMigratable(p)
	default:
		b.Blocker, b.Reason, b.Next = BlockerQueued, "it is marked, and KubeVirt has made no migration yet", "make one, when a slot is free"
	}
	if e.hasMissedObjective() {
		b.Reason += "; it was to leave within " + formatBriefDuration(time.Duration(e.Objective))
	}
}

func (b *DrainBlocker) notMigratable(p *Placement) {
	b.Blocker, b.Reason = BlockerNotMigratable, "it cannot be live-migrated"
	if p.NotMigratable != "" {
		b.Reason += ": " + p.NotMigratable
	}
	b.Next = "nothing; it refuses each eviction"
	if !p.NotMigratableSince.IsZero() {
		b.WaitingSince = maxTime(b.WaitingSince, p.NotMigratableSince)
	}
}

// nextAttempt says when KubeVirt tries again, as of a time, and where that was to be before.
func (n *node) nextAttempt(e *Evacuation, at time.Time) string {
	switch {
	case e.NextRetryAt.IsZero():
		return "try again"
	case n.isWithin(interval{from: e.NextRetryAt}, at):
		return "try again: the next attempt was due at " + FormatClock(e.NextRetryAt)
	}
	return "try again, not before " + FormatClock(e.NextRetryAt)
}

// waitText says why a migration waits.
func waitText(m *Migration) string {
	switch {
	case m.WaitReason == "":
		return "it was just made"
	case m.WaitDetail == "":
		return m.WaitReason.Label().Short
	}
	return fmt.Sprintf("%s, %s", m.WaitReason.Label(), m.WaitDetail)
}

// evacuationAt returns the evacuation of a guest from the node that was open at a time, nil where none was.
func (n *node) evacuationAt(p *Placement, at time.Time) *Evacuation {
	for _, e := range n.ofVMI(p.VMIUID).Evacuations {
		if n.isWithin(interval{e.MarkedAt, e.EndedAt}, at) {
			return e
		}
	}
	return nil
}

// lastRequest returns the last request of anybody but the descheduler about a guest between two times; nil where there is none.
func (n *node) lastRequest(p *Placement, since, at time.Time) *EvictionRequest {
	var last *EvictionRequest
	for _, r := range n.ofVMI(p.VMIUID).Requests {
		if r.byOthers() && n.isWithin(interval{from: r.RequestedAt}, at) && !r.RequestedAt.Before(since) {
			last = r
		}
	}
	return last
}

// isEvictable reports whether the guest's strategy asks to be moved.
func (p *Placement) isEvictable() bool { return AsksToBeMoved(p.Strategy) }

// AsksToBeMoved reports whether an eviction strategy asks that the guest is moved where its pod is evicted.
func AsksToBeMoved(strategy string) bool {
	return strategy == strategyMigrate || strategy == StrategyIfPossible || strategy == StrategyExternal
}

// FormatStrategy returns an eviction strategy, also where none is set.
func FormatStrategy(s string) string {
	if s == "" {
		return "(none set)"
	}
	return s
}

// formatRequester names the one who began the drain, as in the middle of a sentence.
func (d Drain) formatRequester() string {
	if d.Requester == "" && d.RequesterClass == RequesterUnknown {
		return "somebody"
	}
	return formatRequester(d.Requester, d.Impersonator, d.RequesterClass)
}

// describeStart says what the drain is about, without a subject.
func (d Drain) describeStart() string {
	return fmt.Sprintf("began to drain %s of %s.", d.Node, FormatCount(d.VMIsTotal, "VM"))
}

func (d Drain) renderOpening() string {
	return capitalizeRequester(d.formatRequester()) + " " + d.describeStart()
}

func (d Drain) renderClosing() string {
	took := formatSpan(d.EndedAt.Sub(d.StartedAt))
	switch d.Outcome {
	case DrainEmptied:
		return fmt.Sprintf("The drain of %s is done: no VM is left, after %s.", d.Node, took)
	case DrainAbandoned:
		return fmt.Sprintf("The drain of %s was given up after %s, with %s left.", d.Node, took, FormatCount(d.VMIsLeft, "VM"))
	case DrainNodeGone:
		return fmt.Sprintf("The drain of %s ended with the node, after %s.", d.Node, took)
	}
	return ""
}
