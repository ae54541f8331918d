package trail

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

// forgetsAfter is how long the descheduler remembers a request that it only assumes to be under way. Its clean-up runs
// as often, so that it takes up to twice as long.
//
// Source: descheduler pkg/descheduler/evictions/evictions.go, cleanCache.
const forgetsAfter = 10 * time.Minute

// failuresOf returns the attempts of an evacuation that failed, in the order of their ends.
func (n *node) failuresOf(e *Evacuation) []*Migration {
	var out []*Migration
	for _, m := range n.attempts[e.ID] {
		if m.Outcome == OutcomeFailed {
			out = append(out, m)
		}
	}
	slices.SortStableFunc(out, func(a, b *Migration) int { return a.EndSeenAt.Compare(b.EndSeenAt) })
	return out
}

// dual is a dual retry loop while its acts are gathered.
type dual struct {
	acts []*EvictionRequest
}

func (d dual) lastActAt() time.Time { return d.acts[len(d.acts)-1].RequestedAt }

// dualRetry finds the times in which KubeVirt retried an evacuation that had failed while the descheduler went on evicting
// from its node. It begins with the first act after a failure that is not old, and is over with the evacuation or when the
// descheduler does nothing on the node for a while; a later act begins another.
func (n *node) dualRetry(e *Evacuation) []Loop {
	failures := n.failuresOf(e)
	if len(failures) == 0 {
		return nil
	}
	var loops []Loop
	var now dual
	for _, a := range n.acts {
		if !e.isOpenAt(a.RequestedAt) || !a.RequestedAt.After(failures[0].EndSeenAt) {
			continue
		}
		if len(now.acts) > 0 && a.RequestedAt.Sub(now.lastActAt()) > n.thresholds.Quiet {
			loops, now = append(loops, n.dualLoop(e, now, failures, len(loops))), dual{}
		}
		recent := a.RequestedAt.Sub(lastBefore(failures, a.RequestedAt).EndSeenAt) <= n.thresholds.FailureRecent
		if len(now.acts) > 0 || recent {
			now.acts = append(now.acts, a)
		}
	}
	if len(now.acts) > 0 {
		loops = append(loops, n.dualLoop(e, now, failures, len(loops)))
	}
	return loops
}

// lastBefore returns the last failure before a time; there is one.
func lastBefore(failures []*Migration, at time.Time) *Migration {
	last := failures[0]
	for _, f := range failures {
		if f.EndSeenAt.Before(at) {
			last = f
		}
	}
	return last
}

func (n *node) dualLoop(e *Evacuation, d dual, failures []*Migration, ordinal int) Loop {
	l := e.newLoop(LoopDualRetry, ordinal, d.acts[0].RequestedAt)
	quiet := d.lastActAt().Add(n.thresholds.Quiet)
	switch over := e.Outcome != "" && !e.EndedAt.After(quiet); {
	case over:
		l.endWith(e)
	case e.Outcome != "" || n.now.hasReached(quiet):
		l.close(quiet, LoopQuiet)
	}
	l.Path = n.pathOf(e, d)
	var proof []Exhibit
	var others, shut []string
	again := 0
	for _, a := range d.acts {
		proof = append(proof, Exhibit{a.EventID, a.RequestedAt, a.formatVM(), fmt.Sprintf("%s asked to evict it: %s", a.formatRequester(), a.describeOutcome())})
		switch {
		case a.formatVM() == e.formatVM():
			again++
		case !slices.Contains(others, a.formatVM()):
			others = append(others, a.formatVM())
		}
		if a.Effect == EffectShutdown {
			shut = append(shut, a.formatVM())
		}
	}
	failed, latest := 0, failures[0]
	for _, f := range failures {
		if l.Open() || f.EndSeenAt.Before(l.ClosedAt) {
			failed, latest = failed+1, f
			proof = append(proof, f.newExhibit())
		}
	}
	l.setEvidence(proof)
	l.Counts = map[string]int{countFailedAttempts: failed, countDeschedulerActs: len(d.acts), countOtherVMs: len(others), countSameVMRequests: again}
	l.Summary = dualSummary(l, e, failed, again, others, shut, latest)
	for _, m := range n.attempts[e.ID] {
		if text := m.describeNeedlessMove(); text != "" && m.UID == e.FulfilledBy && l.ClosedBy == LoopMigrated {
			l.Summary += " " + text
		}
	}
	l.Advice = l.selectTense(adviceDual(e, l.Path, n.env.kubevirtSettingsAt(l.OpenedAt)), adviceOver(l))
	return l
}

// newExhibit shows an attempt that failed.
func (m Migration) newExhibit() Exhibit {
	return Exhibit{m.EndEvent, m.EndSeenAt, m.Namespace + "/" + m.VMI, fmt.Sprintf("%s failed: %s", m.formatLabel(), m.whyFailed())}
}

// pathOf returns by which way the descheduler came to act although an eviction from the node was under way. The strongest
// evidence counts: what it did against its limits, then what it did first.
func (n *node) pathOf(e *Evacuation, d dual) LoopPath {
	if e.InProgress == InProgressPerAttempt {
		return PathAnnotationLost
	}
	if e.InProgress == "" {
		return PathUnclassified
	}
	first := LoopPath("")
	for _, a := range d.acts {
		path := n.pathOfAct(e, a)
		if path == PathGateOff {
			return path
		}
		if first == "" {
			first = path
		}
	}
	return first
}

// pathOfAct returns why the descheduler could do one act while it took the evacuation to be under way. A pod that it takes
// to be under way it does not ask for again, and it heeds its limits, unless it has forgotten: after 10 to 20 minutes.
func (n *node) pathOfAct(e *Evacuation, a *EvictionRequest) LoopPath {
	forgot := a.RequestedAt.Sub(n.lastAsked(e, a.RequestedAt)) >= forgetsAfter
	if a.formatVM() == e.formatVM() {
		if forgot {
			return PathRequestForgotten
		}
		return PathGateOff
	}
	policy := n.env.deschedulerSettingsAt(a.RequestedAt)
	if policy == nil {
		return PathUnclassified
	}
	open, remembered := n.underWay(a)
	switch {
	case policy.LimitPerNode == nil || open < int(*policy.LimitPerNode):
		return PathFreeSlot
	case remembered >= int(*policy.LimitPerNode):
		return PathGateOff
	case forgot:
		return PathRequestForgotten
	}
	return PathFreeSlot // another one was forgotten
}

// lastAsked returns the time of the descheduler's last request for the VM of an evacuation before another act.
func (n *node) lastAsked(e *Evacuation, before time.Time) time.Time {
	last := e.MarkedAt
	for _, a := range n.acts {
		if a.formatVM() == e.formatVM() && a.RequestedAt.Before(before) {
			last = maxTime(last, a.RequestedAt)
		}
	}
	return last
}

// underWay counts the evacuations of other VMs of the node that were open when the descheduler acted, and those of them
// that it surely remembered.
func (n *node) underWay(a *EvictionRequest) (open, remembered int) {
	for _, e := range n.Evacuations {
		if e.formatVM() != a.formatVM() && e.MarkedAt.Before(a.RequestedAt) && e.isOpenAt(a.RequestedAt) {
			open++
			if a.RequestedAt.Sub(n.lastAsked(e, a.RequestedAt)) < forgetsAfter {
				remembered++
			}
		}
	}
	return open, remembered
}

// endlessRetry finds the times in which KubeVirt retried an evacuation again and again and the descheduler had no part in it.
func (n *node) endlessRetry(e *Evacuation, duals []Loop) []Loop {
	failures := n.failuresOf(e)
	if len(failures) < n.thresholds.Failures {
		return nil
	}
	var loops []Loop
	begin := maxTime(failures[n.thresholds.Failures-1].EndSeenAt, e.MarkedAt.Add(n.thresholds.FailingFor))
	add := func(end *Loop) {
		over := e.Outcome != "" && !begin.Before(e.EndedAt)
		if over || !n.now.hasReached(begin) {
			return
		}
		l := e.newLoop(LoopEndlessRetry, len(loops), begin)
		if l.endWith(e); end != nil {
			l.close(end.OpenedAt, LoopBecameDualRetry)
		}
		var proof []Exhibit
		for _, f := range failures {
			if l.Open() || !f.EndSeenAt.After(l.ClosedAt) {
				proof = append(proof, f.newExhibit())
			}
		}
		l.Counts[countFailedAttempts] = len(proof)
		l.setEvidence(proof)
		l.Summary = endlessSummary(l, e, len(proof), failures[len(proof)-1])
		l.Advice = l.selectTense(adviceStuck(e, n.env.kubevirtSettingsAt(begin)), adviceOver(l))
		loops = append(loops, l)
	}
	for i := range duals {
		d := &duals[i]
		if d.OpenedAt.After(begin) {
			add(d)
		}
		if d.Open() {
			return loops
		}
		begin = maxTime(begin, d.ClosedAt)
	}
	add(nil)
	return loops
}

// findUnansweredLoops finds a VM that its owner has to move, and does not.
func (n *node) findUnansweredLoops(e *Evacuation) []Loop {
	begin := e.MarkedAt.Add(n.thresholds.Unanswered)
	over := e.Outcome != "" && !begin.Before(e.EndedAt)
	if e.Strategy != StrategyExternal || over || !n.now.hasReached(begin) {
		return nil
	}
	l := e.newLoop(LoopUnansweredExternal, 0, begin)
	l.endWith(e)
	l.setEvidence([]Exhibit{{new(e.ID), e.MarkedAt, e.formatVM(), "marked to leave " + e.Node + "; its strategy is External"}})
	l.Summary = fmt.Sprintf(l.selectTense(
		"Nobody moves %s: it is to leave %s since %s, and its eviction strategy External leaves that to its owner.",
		"Nobody moved %s: it was to leave %s since %s, and its eviction strategy External left that to its owner."), e.formatVM(), e.Node, FormatClock(e.MarkedAt))
	l.Advice = l.selectTense(adviceExternal(e, n.env.kubevirtSettingsAt(begin)), adviceOver(l))
	return []Loop{l}
}

// priorityInversion finds a drain that waits for a migration which the descheduler had asked for first, so that all
// others go before it.
func (n *node) priorityInversion(e *Evacuation, drains []Drain) []Loop {
	if e.RequesterClass != RequesterDescheduler {
		return nil
	}
	for _, d := range drains {
		asked := maxTime(d.StartedAt, e.MarkedAt)
		if !e.isOpenAt(asked) || !d.EndedAt.IsZero() && !asked.Before(d.EndedAt) {
			continue
		}
		low, begin, begun := n.findLowPriorityAttempt(e, asked)
		if low == nil || !d.EndedAt.IsZero() && !begin.Before(d.EndedAt) {
			continue
		}
		l := e.newLoop(LoopPriorityInversion, 0, begin)
		l.endWith(e)
		l.setEvidence([]Exhibit{
			{new(e.ID), e.MarkedAt, e.formatVM(), "marked for the descheduler"},
			{low.EndEvent, low.CreatedAt, e.formatVM(), fmt.Sprintf("%s was made with priority %s", low.formatLabel(), low.Priority)},
			{nil, asked, e.formatVM(), "the drain of " + n.name + " waits for it"},
		})
		if !begun.IsZero() { // while it waits, only time would change it
			l.Counts[countWaits] = int(begun.Sub(asked).Seconds())
		}
		l.Summary = fmt.Sprintf(l.selectTense(
			"The drain of %s waits for %s: the descheduler had asked for it first, so its migration has the lowest priority (%s), and all others take the free migration slots before it.",
			"The drain of %s waited for %s: the descheduler had asked for it first, so its migration had the lowest priority (%s), and all others took the free migration slots before it."),
			n.name, e.formatVM(), low.Priority)
		l.Advice = l.selectTense(adviceInversion(e, low, n.env.kubevirtSettingsAt(asked)), adviceOver(l))
		return []Loop{l}
	}
	return nil
}

// findLowPriorityAttempt returns the first attempt of lowest priority that a drain, which asked at a time, had to wait for, from when on that
// is too long, and when it got its target pod or was over: zero while it waits. Nil where there is none. What it waits for
// a backoff does not count.
func (n *node) findLowPriorityAttempt(e *Evacuation, asked time.Time) (low *Migration, begin, begun time.Time) {
	for _, m := range n.attempts[e.ID] {
		begin = maxTime(maxTime(asked, m.CreatedAt), n.backoffBefore(m)).Add(n.thresholds.DrainWaits)
		begun = m.SchedulingAt
		for _, end := range []time.Time{m.FinishedAt, e.EndedAt} {
			if begun.IsZero() || !end.IsZero() && end.Before(begun) {
				begun = end
			}
		}
		if m.Priority == priorityMaintenance && (begun.IsZero() || begun.After(begin)) && n.now.hasReached(begin) {
			return m, begin, begun
		}
	}
	return nil, begin, begun
}

// backoffBefore returns the end of the last backoff that began before an attempt was created, zero where none did.
func (n *node) backoffBefore(m *Migration) time.Time {
	until := time.Time{}
	for _, d := range n.Decisions {
		if d.Layer == LayerBackoff && d.Verdict == VerdictHolds && d.VMIUID == m.VMIUID && !d.DecidedAt.After(m.CreatedAt) {
			until = d.Until
		}
	}
	return until
}

func dualSummary(l Loop, e *Evacuation, failed, again int, others, shut []string, last *Migration) string {
	text := fmt.Sprintf("Two controllers %s against each other on %s: KubeVirt failed %s to move %s (last failure: %s) and %s, while the descheduler",
		l.selectTense("work", "worked"), e.Node, formatRepetition(failed), e.formatVM(), last.whyShort(), l.selectTense("tries on", "kept trying"))
	var did []string
	if len(others) > 0 {
		text := fmt.Sprintf("%s %s of the node: %s", l.selectTense("evicts", "evicted"), formatCountInWords(len(others), "other VM"), strings.Join(others, ", "))
		if len(shut) > 0 {
			text += fmt.Sprintf(" (shut down, not moved: %s)", strings.Join(shut, ", "))
		}
		did = append(did, text)
	}
	if again > 0 {
		did = append(did, "asked for the same VM again, "+formatRepetition(again))
	}
	return text + " " + strings.Join(did, " and ") + "."
}

func endlessSummary(l Loop, e *Evacuation, failed int, last *Migration) string {
	return fmt.Sprintf("KubeVirt failed %s to move %s away from %s since %s (last failure: %s) and %s.",
		formatRepetition(failed), e.formatVM(), e.Node, FormatClock(e.MarkedAt), last.whyShort(), l.selectTense("tries on without end", "kept trying"))
}

func formatRepetition(n int) string {
	switch n {
	case 1:
		return "once"
	case 2:
		return "twice"
	}
	return fmt.Sprintf("%d times", n)
}

// formatCountInWords writes how many there are: one other VM, 3 other VMs.
func formatCountInWords(n int, noun string) string {
	if n == 1 {
		return "one " + noun
	}
	return FormatCount(n, noun)
}
