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

// on returns the VMs whose guests a node holds now, by their names.
func (c *Cluster) on(node string) []standing {
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

func (s *standing) where() string {
	if p := placementNow(s.d); p != nil {
		return p.Node
	}
	return ""
}

// obstacles returns what is in the VM's way, at least one.
func (s *standing) obstacles() []Obstacle {
	p := placementNow(s.d)
	if p == nil {
		return []Obstacle{s.obstacle(ObstacleGone, cmp.Or(whereNow(s.d.Placements, s.Now), "nothing was seen of a VM that runs under this name"))}
	}
	out := s.grounded(p)
	if m := s.underWay(); m != nil {
		return append(out, s.moving(m))
	}
	if e := openEvacuation(s.d); e != nil {
		out = append(out, s.marked(e, p)...)
	} else {
		out = append(out, s.unmarked(p)...)
	}
	if len(out) == 0 {
		return []Obstacle{s.obstacle(ObstacleNobodyAsks, s.free())}
	}
	return out
}

// since returns when the first of what obstacles tells of began; zero where that is nothing but how the VM is.
func (s *standing) since() time.Time {
	var since time.Time
	if e := openEvacuation(s.d); e != nil {
		since = e.MarkedAt
		if r := e.request(s.d.Requests); r != nil {
			since = earliest(since, r.RequestedAt)
		}
	}
	for _, m := range []*Migration{s.underWay(), s.waitingOne(), s.givenUp()} {
		if m != nil {
			since = earliest(since, m.CreatedAt)
		}
	}
	if p := placementNow(s.d); p != nil && p.NotMigratable != "" {
		if r := s.refused(p); r != nil {
			since = earliest(since, r.RequestedAt)
		}
	}
	for _, layer := range []Layer{LayerCooldown, LayerBackoff} {
		if held := heldAt(s.d.Decisions, layer, s.Now); held != nil {
			since = earliest(since, held.DecidedAt)
		}
	}
	return since
}

// grounded returns what keeps the VM from being moved at all: its node is not ready, or its pod is being deleted. Nothing where neither is so.
func (s *standing) grounded(p *Placement) []Obstacle {
	deleted := ""
	if !p.TerminatingSince.IsZero() {
		deleted = fmt.Sprintf("its pod is terminating since %s (%s ago)", clock(p.TerminatingSince), span(s.Now.Sub(p.TerminatingSince)))
	}
	if o := s.outage(p.Node); o != nil {
		lead, needs := "it cannot move: ", "a live migration needs the virt-handler of its node"
		if !o.grounds() {
			lead, needs = "its node ", needs+", which may run on"
		}
		text := strings.Join(nonEmpty([]string{lead + o.Node + " " + o.state(s.Now), deleted, needs}), "; ")
		down := s.obstacle(ObstacleNodeNotReady, text)
		down.Reason = string(o.Cause)
		return []Obstacle{down}
	}
	if deleted != "" {
		return []Obstacle{s.obstacle(ObstacleTerminating, deleted+": the VM is being stopped, and is not moved")}
	}
	return nil
}

// grounding returns the outage that keeps the VM where it is; nil where none does.
func (s *standing) grounding() *Outage {
	if o := s.outage(s.where()); o != nil && o.grounds() {
		return o
	}
	return nil
}

// moving says how far a migration is that has its target pod.
func (s *standing) moving(m *Migration) Obstacle {
	switch {
	case m.stalled():
		return s.describeStall(m)
	case s.grounding() != nil:
		return s.obstacle(ObstacleMigrating, fmt.Sprintf("%s is in phase %s since %s, and does not get on before its node is ready",
			m.label(), m.Phase, clock(m.phaseSince())))
	default:
		return s.obstacle(ObstacleMigrating, fmt.Sprintf("it is moving: %s is in phase %s since %s", m.label(), m.Phase, clock(m.phaseSince())))
	}
}

// describeStall says which slots a migration holds whose target pod is on a node that is not ready.
func (s *standing) describeStall(m *Migration) Obstacle {
	perCluster, perNode := s.env.settings(s.Now).limits()
	text := fmt.Sprintf("%s is stalled in phase %s since %s: its target pod is there, and %s; it holds %s for migrations in the cluster and %s for those from %s",
		m.label(), m.Phase, clock(m.phaseSince()), m.WaitDetail, placeOf(perCluster), placeOf(perNode), m.SourceNode)
	if e := openEvacuation(s.d); e != nil && e.HoldsSlot() && s.env.deschedulerKnown() {
		text += ", and a slot of the descheduler"
	}
	o := s.obstacle(ObstacleStalled, text)
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

func (s *standing) obstacle(kind ObstacleKind, text string) Obstacle {
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

// marked returns what is in the way of a VM that KubeVirt is to move.
func (s *standing) marked(e *Evacuation, p *Placement) []Obstacle {
	asked := fmt.Sprintf("it is to leave %s since %s (%s ago), asked by %s", e.Node, clock(e.MarkedAt), span(s.Now.Sub(e.MarkedAt)), e.asker())
	if e.Strategy == StrategyExternal {
		return []Obstacle{s.obstacle(ObstacleExternal, asked+", but its eviction strategy is External: KubeVirt makes no migration, the controller that owns the VM has to act")}
	}
	var out []Obstacle
	if p.NotMigratable != "" {
		out = append(out, s.obstacle(ObstacleNotMigratable, asked+", but it cannot be live-migrated any more: "+p.NotMigratable))
	}
	if e.FailedAttempts > 0 {
		o := s.obstacle(ObstacleFailing, fmt.Sprintf("%s; KubeVirt has tried %s and failed%s", asked, times(e.FailedAttempts), s.causes(e)))
		o.Reason = string(e.LastFailureClass)
		out = append(out, o)
	}
	m, stranded := s.waitingOne(), s.strandedAttempt(&s.d, e)
	switch {
	case s.Now.Before(e.NextRetryAt):
		text := fmt.Sprintf("KubeVirt waits after the failure: its next attempt comes not before %s, in %s", clock(e.NextRetryAt), span(e.NextRetryAt.Sub(s.Now)))
		if held := heldAt(s.d.Decisions, LayerBackoff, s.Now); held != nil && held.Capped {
			text += fmt.Sprintf("; it waits %s each time now, and will go on so without end", span(time.Duration(held.Effective)))
		}
		o := s.obstacle(ObstacleBackoff, text)
		o.Until, o.Reason = e.NextRetryAt, string(WaitBackoff)
		out = append(out, o)
	case m == nil && stranded != nil:
		o := s.obstacle(ObstacleWaiting, lead(out, asked)+s.describeStranded(stranded))
		o.Reason = string(WaitLeftoverPods)
		out = append(out, o)
	case m == nil && !e.NextRetryAt.IsZero():
		out = append(out, s.obstacle(ObstacleWaiting, lead(out, asked)+e.overdueAttempt(s.Now)))
	case m != nil:
		o := s.obstacle(ObstacleWaiting, fmt.Sprintf("%s%s waits since %s: %s", lead(out, asked), m.label(), clock(m.CreatedAt), waitText(m)))
		o.Reason = string(m.WaitReason)
		out = append(out, o)
	case len(out) == 0:
		out = append(out, s.obstacle(ObstacleWaiting, asked+"; KubeVirt has made no migration for it yet"))
	}
	return out
}

// lead opens a first sentence with who asked; later ones need not say it again.
func lead(before []Obstacle, asked string) string {
	if len(before) > 0 {
		return ""
	}
	return asked + "; "
}

// causes returns why the attempts of an evacuation failed.
func (s *standing) causes(e *Evacuation) string {
	return causesOf(s.d.attemptsOf(e.ID))
}

// unmarked returns what is in the way of a VM that nobody has KubeVirt move.
func (s *standing) unmarked(p *Placement) []Obstacle {
	var out []Obstacle
	add := func(kind ObstacleKind, reason string, until time.Time, format string, args ...any) {
		o := s.obstacle(kind, fmt.Sprintf(format, args...))
		o.Reason, o.Until = reason, until
		out = append(out, o)
	}
	if m := s.waitingOne(); m != nil {
		add(ObstacleWaiting, string(m.WaitReason), time.Time{}, "%s%s waits since %s: %s", m.label(), m.byWhom(), clock(m.CreatedAt), waitText(m))
	}
	if p.NotMigratable != "" {
		add(ObstacleNotMigratable, "", time.Time{}, "it cannot be live-migrated: %s%s", p.NotMigratable, s.refusal(p))
	}
	if m := s.givenUp(); m != nil {
		add(ObstacleGivenUp, string(m.FailureClass), time.Time{}, "%s%s %s at %s (%s), and nobody tries again: it was made by %s, KubeVirt repeats only its own",
			m.label(), m.byWhom(), ended(m.Outcome), clock(m.FinishedAt), m.whyFailed(), m.maker())
	}
	if !p.evictable() {
		add(ObstacleStrategy, "", time.Time{}, "its eviction strategy %s does not ask to be moved: an eviction shuts it down", strategyText(p.Strategy))
	}
	if held := heldAt(s.d.Decisions, LayerCooldown, s.Now); held != nil {
		add(ObstacleCooldown, string(LayerCooldown), held.Until, "the descheduler leaves it alone until %s (%s more): its cooldown is %s%s",
			clock(held.Until), span(held.Until.Sub(s.Now)), span(time.Duration(held.Effective)), held.because())
	}
	if p.OptedOut {
		add(ObstacleOptedOut, "", time.Time{}, "its pod asks the descheduler to leave it alone (prefer-no-eviction)")
	}
	if held := s.slotsHeld(p.Node); held != "" {
		add(ObstacleSlots, "", time.Time{}, "%s", held)
	}
	return out
}

// refused returns the last request to evict a VM that was refused because it cannot be migrated, and that repeats no other; nil where there is none.
func (s *standing) refused(p *Placement) *EvictionRequest {
	var head *EvictionRequest
	for i := range s.d.Requests {
		r := &s.d.Requests[i]
		if r.Answer == AnswerNotMigratable && r.VMIUID == p.VMIUID && r.RepeatOf == nil {
			head = r
		}
	}
	return head
}

// refusal returns what came of the requests to evict a VM that cannot be migrated.
func (s *standing) refusal(p *Placement) string {
	head := s.refused(p)
	if head == nil {
		return ""
	}
	text := fmt.Sprintf("; at %s %s asked to evict it", clock(head.RequestedAt), head.who())
	if head.Repeats > 0 {
		text += ", and again" + head.repeated()
	}
	return text + ": refused each time, as its strategy is " + strategyText(p.Strategy)
}

// maker says who made a migration that KubeVirt did not make.
func (m *Migration) maker() string {
	if m.RequesterClass.controller() {
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
	return fmt.Sprintf("the descheduler may evict %s %s at a time, and %s", counted(limit, "VM"), where, c.holders(held))
}

// slotHolders returns the evacuations that hold all slots of the descheduler, the oldest first: of the node, or else of the
// cluster. None where one is free, or no limit is known.
func (c *Cluster) slotHolders(node string) (held []*Evacuation, limit int, where string) {
	policy := c.env.policy(c.Now)
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
		return cmp.Or(a.MarkedAt.Compare(b.MarkedAt), strings.Compare(a.vm(), b.vm()))
	})
	return held, limit, where
}

// holders returns which evacuations hold slots, and since when.
func (c *Cluster) holders(held []*Evacuation) string {
	out, hidden := make([]string, 0, len(held)), 0
	for _, e := range held {
		if e.VMI == "" { // it may not be seen
			hidden++
			continue
		}
		text := fmt.Sprintf("%s for %s", e.vm(), span(c.Now.Sub(e.MarkedAt)))
		if e.FailedAttempts > 0 {
			text += fmt.Sprintf(" (%s)", counted(e.FailedAttempts, "failed attempt"))
		}
		if o := c.outage(e.Node); o != nil {
			text += fmt.Sprintf(" (%s is not ready)", e.Node)
		} else if m := c.stalledAttempt(e.ID); m != nil {
			text += fmt.Sprintf(" (stalled: %s, where it goes, is not ready)", m.TargetNode)
		}
		out = append(out, text)
	}
	if hidden > 0 {
		out = append(out, others(hidden))
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
			if m := &d.Migrations[i]; m.EvacuationID != nil && *m.EvacuationID == evacuation && m.stalled() {
				return m
			}
		}
	}
	return nil
}

// free says that nothing is in the way, and whether the descheduler could take the VM.
func (s *standing) free() string {
	text := "nothing is in its way: it can be live-migrated, and nobody asks for it"
	if s.env.deschedulerKnown() {
		text += "; the descheduler may, if its node is over the target"
	}
	return text
}

// drains says whether a drain waits for the VM.
func (s *standing) drains() []string {
	var text []string
	for _, b := range s.Node(s.where()).Blockers {
		if b.Namespace != s.namespace || b.VMI != s.vmi {
			continue
		}
		for _, d := range s.Node(s.where()).Drains {
			if d.ID == b.DrainID && d.Outcome == "" {
				blocker := strings.ReplaceAll(string(b.Blocker), "_", " ")
				text = append(text, fmt.Sprintf("The drain of %s waits for it since %s (%s); KubeVirt will %s.", d.Node, clock(b.WaitingSince), blocker, b.Next))
			}
		}
	}
	return text
}

// advice says what to do about the first obstacle that somebody can remove.
func (s *standing) advice(obstacles []Obstacle) string {
	e := openEvacuation(s.d)
	if m := s.strandedAttempt(&s.d, e); m != nil {
		return adviceStranded(m)
	}
	for _, o := range obstacles {
		switch o.Kind {
		case ObstacleFailing, ObstacleExternal:
			if e != nil {
				return cmp.Or(e.advice(s.env.settings(s.Now)), adviceStuck(e, s.env.settings(s.Now)))
			}
		case ObstacleNotMigratable:
			return "See why, and remove what keeps it from being live-migrated; else only stopping the VM empties the node:\n" +
				fmt.Sprintf("  kubectl get vmi -n %s %s -o jsonpath='{.status.conditions[?(@.type==\"LiveMigratable\")]}'", s.namespace, s.vmi)
		case ObstacleGivenUp:
			lead := "Mend the cause and ask again:"
			if o.Reason == string(FailureAborted) {
				lead = "To ask again:"
			}
			return fmt.Sprintf("%s\n  virtctl migrate -n %s %s", lead, s.namespace, s.vmi)
		case ObstacleOptedOut:
			return "To let the descheduler take it:\n" + adviceOptIn(s.namespace, s.vmi, s.env.settings(s.Now))
		case ObstacleSlots:
			return s.adviceSlots()
		case ObstacleNodeNotReady:
			return adviceOutage(s.where())
		case ObstacleStalled:
			m := s.underWay()
			return adviceStalled(m, s.outage(m.TargetNode))
		case ObstacleGone, ObstacleTerminating, ObstacleMigrating, ObstacleWaiting, ObstacleBackoff, ObstacleStrategy, ObstacleCooldown, ObstacleNobodyAsks:
		}
	}
	return ""
}

// adviceSlots says how the oldest evacuation that holds a slot is ended, if it fails again and again.
func (s *standing) adviceSlots() string {
	held, _, _ := s.slotHolders(s.where())
	if len(held) == 0 || held[0].VMI == "" {
		return ""
	}
	if s.outage(held[0].Node) != nil {
		return adviceOutage(held[0].Node)
	}
	if m := s.stalledAttempt(held[0].ID); m != nil {
		return adviceStalled(m, s.outage(m.TargetNode))
	}
	return held[0].advice(s.env.settings(s.Now))
}
