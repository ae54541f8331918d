package trail

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"
)

// standing is how it stands with one VM.
type standing struct {
	*Cluster
	d              Derived
	namespace, vmi string
}

// findNodeGuests returns the VMs whose guests a node holds now, by their names.
func (c *Cluster) findNodeGuests(node string) []standing {
	var out []standing
	for s, d := range c.Rows {
		if p := placementNow(d); s.Kind == SubjectVMI && p != nil && p.Node == node {
			out = append(out, standing{c, d, p.Namespace, p.VMI})
		}
	}
	slices.SortFunc(out, func(a, b standing) int {
		return cmp.Or(strings.Compare(a.namespace+"/"+a.vmi, b.namespace+"/"+b.vmi), strings.Compare(placementNow(a.d).VMIUID, placementNow(b.d).VMIUID))
	})
	return out
}

// placementNow returns where the guest runs, nil where it does not.
func placementNow(d Derived) *Placement {
	for i := range d.Placements {
		if d.Placements[i].ToAt.IsZero() {
			return &d.Placements[i]
		}
	}
	return nil
}

func (s *standing) currentNode() string {
	if p := placementNow(s.d); p != nil {
		return p.Node
	}
	return ""
}

// findObstacles returns what is in the VM's way, at least one.
func (s *standing) findObstacles() []Obstacle {
	p := placementNow(s.d)
	if p == nil {
		return []Obstacle{s.newObstacle(ObstacleGone, cmp.Or(whereNow(s.d.Placements, s.Now), "nothing was seen of a VM that runs under this name"))}
	}
	out := s.findGroundingObstacles(p)
	if m := s.underWay(); m != nil {
		return append(out, s.newMovingObstacle(m))
	}
	if e := openEvacuation(s.d); e != nil {
		out = append(out, s.findMarkedObstacles(e, p)...)
	} else {
		out = append(out, s.findUnmarkedObstacles(p)...)
	}
	if len(out) == 0 {
		return []Obstacle{s.newObstacle(ObstacleNobodyAsks, s.describeUnobstructed())}
	}
	return out
}

// obstructedSince returns when the first of the obstacles began; zero where that is nothing but how the VM is.
func (s *standing) obstructedSince() time.Time {
	var since time.Time
	if e := openEvacuation(s.d); e != nil {
		since = e.MarkedAt
		if r := e.findRequest(s.d.Requests); r != nil {
			since = minNonZeroTime(since, r.RequestedAt)
		}
	}
	for _, m := range []*Migration{s.underWay(), s.waitingOne(), s.givenUp()} {
		if m != nil {
			since = minNonZeroTime(since, m.CreatedAt)
		}
	}
	if p := placementNow(s.d); p != nil && p.NotMigratable != "" {
		if r := s.findLastRefusal(p); r != nil {
			since = minNonZeroTime(since, r.RequestedAt)
		}
	}
	for _, layer := range []Layer{LayerCooldown, LayerBackoff} {
		if held := heldAt(s.d.Decisions, layer, s.Now); held != nil {
			since = minNonZeroTime(since, held.DecidedAt)
		}
	}
	return since
}

// findGroundingObstacles returns what keeps the VM from being moved at all: its node is not ready, or its pod is being deleted. Nothing where neither is so.
func (s *standing) findGroundingObstacles(p *Placement) []Obstacle {
	deleted := ""
	if !p.TerminatingSince.IsZero() {
		deleted = fmt.Sprintf("its pod is terminating since %s (%s ago)", FormatClock(p.TerminatingSince), formatSpan(s.Now.Sub(p.TerminatingSince)))
	}
	if o := s.findOpenOutage(p.Node); o != nil {
		lead, needs := "it cannot move: ", "a live migration needs the virt-handler of its node"
		if !o.blocksMigration() {
			lead, needs = "its node ", needs+", which may run on"
		}
		text := strings.Join(nonEmpty([]string{lead + o.Node + " " + o.describeState(s.Now), deleted, needs}), "; ")
		down := s.newObstacle(ObstacleNodeNotReady, text)
		down.Reason = string(o.Cause)
		return []Obstacle{down}
	}
	if deleted != "" {
		return []Obstacle{s.newObstacle(ObstacleTerminating, deleted+": the VM is being stopped, and is not moved")}
	}
	return nil
}

// findGroundingOutage returns the outage that keeps the VM where it is; nil where none does.
func (s *standing) findGroundingOutage() *Outage {
	if o := s.findOpenOutage(s.currentNode()); o != nil && o.blocksMigration() {
		return o
	}
	return nil
}

// newMovingObstacle says how far a migration is that has its target pod.
func (s *standing) newMovingObstacle(m *Migration) Obstacle {
	switch {
	case m.isStalled():
		return s.describeStall(m)
	case s.findGroundingOutage() != nil:
		return s.newObstacle(ObstacleMigrating, fmt.Sprintf("%s is in phase %s since %s, and does not get on before its node is ready",
			m.formatLabel(), m.Phase, FormatClock(m.phaseSince())))
	default:
		return s.newObstacle(ObstacleMigrating, fmt.Sprintf("it is moving: %s is in phase %s since %s", m.formatLabel(), m.Phase, FormatClock(m.phaseSince())))
	}
}

// describeStall says which slots a migration holds whose target pod is on a node that is not ready.
func (s *standing) describeStall(m *Migration) Obstacle {
	perCluster, perNode := s.env.kubevirtSettingsAt(s.Now).ParallelLimits()
	text := fmt.Sprintf("%s is stalled in phase %s since %s: its target pod is there, and %s; it holds %s for migrations in the cluster and %s for those from %s",
		m.formatLabel(), m.Phase, FormatClock(m.phaseSince()), m.WaitDetail, placeOf(perCluster), placeOf(perNode), m.SourceNode)
	if e := openEvacuation(s.d); e != nil && e.HoldsSlot() && s.env.deschedulerKnown() {
		text += ", and a slot of the descheduler"
	}
	o := s.newObstacle(ObstacleStalled, text)
	o.Reason = string(m.WaitReason)
	return o
}

// placeOf says that one of so many places is taken.
func placeOf(n int) string {
	if n == 1 {
		return "the only place"
	}
	return fmt.Sprintf("one of %d places", n)
}

func (s *standing) newObstacle(kind ObstacleKind, text string) Obstacle {
	return Obstacle{Kind: kind, Namespace: s.namespace, VMI: s.vmi, Text: strings.TrimSuffix(text, ".")}
}

// underWay returns the migration that has its target pod and is not over, nil where there is none.
func (s *standing) underWay() *Migration {
	for i := range s.d.Migrations {
		if m := &s.d.Migrations[i]; m.FinishedAt.IsZero() && !m.SchedulingAt.IsZero() {
			return m
		}
	}
	return nil
}

// waitingOne returns the migration that has no target pod yet, nil where there is none.
func (s *standing) waitingOne() *Migration {
	for i := range s.d.Migrations {
		if m := &s.d.Migrations[i]; m.FinishedAt.IsZero() && m.SchedulingAt.IsZero() {
			return m
		}
	}
	return nil
}

// findMarkedObstacles returns what is in the way of a VM that KubeVirt is to move.
func (s *standing) findMarkedObstacles(e *Evacuation, p *Placement) []Obstacle {
	asked := fmt.Sprintf("its eviction from %s was requested %s ago (%s) by %s", e.Node, Age(s.Now.Sub(e.MarkedAt)), FormatClock(e.MarkedAt), e.formatRequester())
	if e.Strategy == StrategyExternal {
		return []Obstacle{s.newObstacle(ObstacleExternal, asked+", but its eviction strategy is External: KubeVirt makes no migration, the controller that owns the VM must act")}
	}
	var out []Obstacle
	if p.NotMigratable != "" {
		out = append(out, s.newObstacle(ObstacleNotMigratable, asked+", but it cannot be live-migrated any more: "+p.NotMigratable))
	}
	if e.FailedAttempts > 0 {
		o := s.newObstacle(ObstacleFailing, fmt.Sprintf("%s; KubeVirt has tried %s and failed%s", asked, formatRepetition(e.FailedAttempts), s.describeFailures(e)))
		o.Reason = string(e.LastFailureClass)
		out = append(out, o)
	}
	m, stranded := s.waitingOne(), s.strandedAttempt(&s.d, e)
	switch {
	case s.Now.Before(e.NextRetryAt):
		text := fmt.Sprintf("KubeVirt waits after the failure: its next attempt comes not before %s, in %s", FormatClock(e.NextRetryAt), formatSpan(e.NextRetryAt.Sub(s.Now)))
		if held := heldAt(s.d.Decisions, LayerBackoff, s.Now); held != nil && held.Capped {
			text += fmt.Sprintf("; it waits %s each time now, and will go on so without end", formatSpan(time.Duration(held.Effective)))
		}
		o := s.newObstacle(ObstacleBackoff, text)
		o.Until, o.Reason = e.NextRetryAt, string(WaitBackoff)
		out = append(out, o)
	case m == nil && stranded != nil:
		o := s.newObstacle(ObstacleWaiting, leadWithRequester(out, asked)+s.describeStranded(stranded))
		o.Reason = string(WaitLeftoverPods)
		out = append(out, o)
	case m == nil && !e.NextRetryAt.IsZero():
		out = append(out, s.newObstacle(ObstacleWaiting, leadWithRequester(out, asked)+e.overdueAttempt(s.Now)))
	case m != nil:
		o := s.newObstacle(ObstacleWaiting, fmt.Sprintf("%s%s waits since %s: %s", leadWithRequester(out, asked), m.formatLabel(), FormatClock(m.CreatedAt), waitText(m)))
		o.Reason = string(m.WaitReason)
		out = append(out, o)
	case len(out) == 0:
		out = append(out, s.newObstacle(ObstacleWaiting, asked+"; KubeVirt has made no migration for it yet"))
	}
	return out
}

// leadWithRequester opens a first sentence with who asked; later ones need not say it again.
func leadWithRequester(before []Obstacle, asked string) string {
	if len(before) > 0 {
		return ""
	}
	return asked + "; "
}

// describeFailures returns why the attempts of an evacuation failed.
func (s *standing) describeFailures(e *Evacuation) string {
	return causesOf(s.d.attemptsOf(e.ID))
}

// findUnmarkedObstacles returns what is in the way of a VM that nobody has KubeVirt move.
func (s *standing) findUnmarkedObstacles(p *Placement) []Obstacle {
	var out []Obstacle
	add := func(kind ObstacleKind, reason string, until time.Time, format string, args ...any) {
		o := s.newObstacle(kind, fmt.Sprintf(format, args...))
		o.Reason, o.Until = reason, until
		out = append(out, o)
	}
	if m := s.waitingOne(); m != nil {
		add(ObstacleWaiting, string(m.WaitReason), time.Time{}, "%s%s waits since %s: %s", m.formatLabel(), m.byWhom(), FormatClock(m.CreatedAt), waitText(m))
	}
	if p.NotMigratable != "" {
		add(ObstacleNotMigratable, "", time.Time{}, "it cannot be live-migrated: %s%s", p.NotMigratable, s.describeRefusal(p))
	}
	if m := s.givenUp(); m != nil {
		add(ObstacleGivenUp, string(m.FailureClass), time.Time{}, "%s%s %s at %s (%s), and nobody tries again: it was made by %s, KubeVirt repeats only its own",
			m.formatLabel(), m.byWhom(), formatOutcome(m.Outcome), FormatClock(m.FinishedAt), m.whyFailed(), m.formatMakerKind())
	}
	if p.Strategy == StrategyExternal {
		add(ObstacleExternal, "", time.Time{}, "no eviction is pending; its eviction strategy External leaves it to its owner to move it, KubeVirt does not")
	}
	if !p.isEvictable() {
		add(ObstacleStrategy, "", time.Time{}, "its eviction strategy %s does not ask to be moved: an eviction shuts it down", FormatStrategy(p.Strategy))
	}
	if held := heldAt(s.d.Decisions, LayerCooldown, s.Now); held != nil {
		add(ObstacleCooldown, string(LayerCooldown), held.Until, "the descheduler leaves it alone until %s (%s more): its cooldown is %s%s",
			FormatClock(held.Until), formatSpan(held.Until.Sub(s.Now)), formatSpan(time.Duration(held.Effective)), held.describeCause())
	}
	if p.OptedOut {
		add(ObstacleOptedOut, "", time.Time{}, "its pod asks the descheduler to leave it alone (prefer-no-eviction)")
	}
	if held := s.slotsHeld(p.Node); held != "" {
		add(ObstacleSlots, "", time.Time{}, "%s", held)
	}
	return out
}

// findLastRefusal returns the last request to evict a VM that was refused because it cannot be migrated, and that repeats no other; nil where there is none.
func (s *standing) findLastRefusal(p *Placement) *EvictionRequest {
	var head *EvictionRequest
	for i := range s.d.Requests {
		r := &s.d.Requests[i]
		if r.Answer == AnswerNotMigratable && r.VMIUID == p.VMIUID && r.RepeatOf == nil {
			head = r
		}
	}
	return head
}

// describeRefusal returns what came of the requests to evict a VM that cannot be migrated.
func (s *standing) describeRefusal(p *Placement) string {
	head := s.findLastRefusal(p)
	if head == nil {
		return ""
	}
	text := fmt.Sprintf("; at %s %s asked to evict it", FormatClock(head.RequestedAt), head.formatRequester())
	if head.Repeats > 0 {
		text += ", and again" + head.describeRepeats()
	}
	return text + ": refused each time, as its strategy is " + FormatStrategy(p.Strategy)
}

// formatMakerKind says who made a migration that KubeVirt did not make.
func (m *Migration) formatMakerKind() string {
	if m.RequesterClass.isController() {
		return "a controller"
	}
	return "hand"
}

// givenUp returns the last migration if somebody made it by hand, or a controller did, and it did not succeed.
func (s *standing) givenUp() *Migration {
	if n := len(s.d.Migrations); n > 0 {
		m := &s.d.Migrations[n-1]
		byHand := m.Trigger == TriggerUser || m.Trigger == TriggerController || m.Trigger == TriggerNamedNode
		if m.EvacuationID == nil && byHand && (m.Outcome == OutcomeFailed || m.Outcome == OutcomeAborted) {
			return m
		}
	}
	return nil
}

// slotsHeld says who holds the slots of the descheduler, if all are taken: of the node, or of the cluster. Empty where one
// is free, or no limit is known.
func (c *Cluster) slotsHeld(node string) string {
	held, limit, where := c.slotHolders(node)
	if len(held) == 0 {
		return ""
	}
	return fmt.Sprintf("the descheduler may evict %s %s at a time, and %s", formatCountInWords(limit, "VM"), where, c.describeSlotHolders(held))
}

// slotHolders returns the evacuations that hold all slots of the descheduler, the oldest first: of the node, or else of the
// cluster. None where one is free, or no limit is known.
func (c *Cluster) slotHolders(node string) (held []*Evacuation, limit int, where string) {
	policy := c.env.deschedulerSettingsAt(c.Now)
	if policy == nil {
		return nil, 0, ""
	}
	var here, all []*Evacuation
	for _, d := range c.Rows {
		for i := range d.Evacuations {
			if e := &d.Evacuations[i]; e.Outcome == "" && e.HoldsSlot() {
				all = append(all, e)
				if e.Node == node {
					here = append(here, e)
				}
			}
		}
	}
	full := func(limit *int64, held []*Evacuation) bool {
		return limit != nil && *limit > 0 && len(held) >= int(*limit)
	}
	switch {
	case full(policy.LimitPerNode, here):
		held, limit, where = here, int(*policy.LimitPerNode), "from "+node
	case full(policy.LimitTotal, all):
		held, limit, where = all, int(*policy.LimitTotal), "of the cluster"
	}
	slices.SortFunc(held, func(a, b *Evacuation) int {
		return cmp.Or(a.MarkedAt.Compare(b.MarkedAt), strings.Compare(a.formatVM(), b.formatVM()))
	})
	return held, limit, where
}

// describeSlotHolders returns which evacuations hold slots, and since when.
func (c *Cluster) describeSlotHolders(held []*Evacuation) string {
	out, hidden := make([]string, 0, len(held)), 0
	for _, e := range held {
		if e.VMI == "" { // it may not be seen
			hidden++
			continue
		}
		text := fmt.Sprintf("%s for %s", e.formatVM(), formatSpan(c.Now.Sub(e.MarkedAt)))
		if e.FailedAttempts > 0 {
			text += fmt.Sprintf(" (%s)", formatCountInWords(e.FailedAttempts, "failed attempt"))
		}
		if o := c.findOpenOutage(e.Node); o != nil {
			text += fmt.Sprintf(" (%s is not ready)", e.Node)
		} else if m := c.stalledAttempt(e.ID); m != nil {
			text += fmt.Sprintf(" (stalled: %s, where it goes, is not ready)", m.TargetNode)
		}
		out = append(out, text)
	}
	if hidden > 0 {
		out = append(out, formatHiddenVMs(hidden))
	}
	if len(held) == 1 {
		return "its slot is held by " + out[0]
	}
	return "the slots are held by " + strings.Join(out, ", ")
}

// stalledAttempt returns the attempt of an evacuation whose target pod is on a node that is not ready; nil where there is none.
func (c *Cluster) stalledAttempt(evacuation FactID) *Migration {
	for _, d := range c.Rows {
		for i := range d.Migrations {
			if m := &d.Migrations[i]; m.EvacuationID != nil && *m.EvacuationID == evacuation && m.isStalled() {
				return m
			}
		}
	}
	return nil
}

// describeUnobstructed says that nothing is in the way, and whether the descheduler could take the VM.
func (s *standing) describeUnobstructed() string {
	text := "free to move; no eviction is pending"
	if s.env.deschedulerKnown() {
		text += ". The descheduler may pick it if its node goes over the threshold"
	}
	return text
}

// describeDrains reports whether a drain waits for the VM.
func (s *standing) describeDrains() []string {
	var text []string
	for _, b := range s.Node(s.currentNode()).Blockers {
		if b.Namespace != s.namespace || b.VMI != s.vmi {
			continue
		}
		for _, d := range s.Node(s.currentNode()).Drains {
			if d.ID == b.DrainID && d.Outcome == "" {
				blocker := strings.ReplaceAll(string(b.Blocker), "_", " ")
				text = append(text, fmt.Sprintf("The drain of %s has waited for it since %s (%s). KubeVirt's next step: %s.", d.Node, FormatClock(b.WaitingSince), blocker, b.Next))
			}
		}
	}
	return text
}

// renderAdvice says what to do about the first obstacle that somebody can remove.
func (s *standing) renderAdvice(obstacles []Obstacle) string {
	e := openEvacuation(s.d)
	if m := s.strandedAttempt(&s.d, e); m != nil {
		return adviceStranded(m)
	}
	for _, o := range obstacles {
		switch o.Kind {
		case ObstacleFailing, ObstacleExternal:
			if e != nil {
				return cmp.Or(e.renderAdvice(s.env.kubevirtSettingsAt(s.Now)), adviceStuck(e, s.env.kubevirtSettingsAt(s.Now)))
			}
		case ObstacleNotMigratable:
			return "See why, and remove what keeps it from being live-migrated; else only stopping the VM empties the node:\n" +
				fmt.Sprintf("  kubectl get vmi -n %s %s -o jsonpath='{.status.conditions[?(@.type==\"LiveMigratable\")]}'", s.namespace, s.vmi)
		case ObstacleGivenUp:
			lead := "Fix the cause and ask again:"
			if o.Reason == string(FailureAborted) {
				lead = "To ask again:"
			}
			return fmt.Sprintf("%s\n  virtctl migrate -n %s %s", lead, s.namespace, s.vmi)
		case ObstacleOptedOut:
			return "To let the descheduler take it:\n" + adviceOptIn(s.namespace, s.vmi, s.env.kubevirtSettingsAt(s.Now))
		case ObstacleSlots:
			return s.adviceSlots()
		case ObstacleNodeNotReady:
			return adviceOutage(s.currentNode())
		case ObstacleStalled:
			m := s.underWay()
			return adviceStalled(m, s.findOpenOutage(m.TargetNode))
		case ObstacleGone, ObstacleTerminating, ObstacleMigrating, ObstacleWaiting, ObstacleBackoff, ObstacleStrategy, ObstacleCooldown, ObstacleNobodyAsks:
		}
	}
	return ""
}

// adviceSlots says how the oldest evacuation that holds a slot is ended, if it fails again and again.
func (s *standing) adviceSlots() string {
	held, _, _ := s.slotHolders(s.currentNode())
	if len(held) == 0 || held[0].VMI == "" {
		return ""
	}
	if s.findOpenOutage(held[0].Node) != nil {
		return adviceOutage(held[0].Node)
	}
	if m := s.stalledAttempt(held[0].ID); m != nil {
		return adviceStalled(m, s.findOpenOutage(m.TargetNode))
	}
	return held[0].renderAdvice(s.env.kubevirtSettingsAt(s.Now))
}
