package trail

import (
	"slices"
	"time"
)

// Cluster is all that the facts of a cluster, or of a part of it, mean at one moment.
type Cluster struct {
	Name string
	Rows map[Subject]Derived
	Now  time.Time // UTC
	Seen Coverage

	env   *Env
	facts map[Subject][]Fact // each in the order of their times
}

// DeriveAll derives facts in memory as they stand at a time: every VM, then the nodes and the cluster as a whole. It does
// what a store does piece by piece.
func DeriveAll(facts []Fact, thresholds Thresholds, now time.Time) *Cluster {
	facts = SortFacts(facts) // a list of our own: the caller's stays as it is
	env := NewEnv(facts)
	env.Judge(thresholds)
	rows := map[Subject]Derived{}
	var slots []Slot
	for s, its := range BySubject(facts) {
		if s.Kind == SubjectVMI {
			rows[s] = Derive(s, its, env, now)
			slots = append(slots, rows[s].Slots()...)
		}
	}
	for s, d := range rows {
		d.ExplainQueue(slots, env)
		rows[s] = d
	}
	return Surround(rows, facts, thresholds, now)
}

// Surround derives what is around VMs, the nodes and the cluster as a whole, of the rows of VMs and of facts as they stand at a time.
// The rows are those of the answer, too.
func Surround(rows map[Subject]Derived, facts []Fact, thresholds Thresholds, now time.Time) *Cluster {
	facts = SortFacts(facts)
	of, env := BySubject(facts), NewEnv(facts)
	env.Judge(thresholds)
	around := map[Subject]Rows{}
	for _, d := range rows {
		for at, rows := range d.Around() {
			all := around[at]
			all.Add(rows)
			around[at] = all
		}
	}
	for s, rows := range around {
		env.Around(s, rows)
		of[s] = slices.Clip(of[s])
	}
	for s, its := range of {
		if s.Kind != SubjectVMI {
			rows[s] = Derive(s, its, env, now)
		}
	}
	return &Cluster{Rows: rows, Now: now, env: env, facts: of}
}

// BySubject returns the facts of each subject, in the order in which they come.
func BySubject(facts []Fact) map[Subject][]Fact {
	count := map[Subject]int{}
	for i := range facts {
		count[facts[i].Subject]++
	}
	room, of := make([]Fact, len(facts)), make(map[Subject][]Fact, len(count))
	for s, n := range count {
		of[s], room = room[:0:n], room[n:]
	}
	for i := range facts {
		s := facts[i].Subject
		of[s] = append(of[s], facts[i])
	}
	return of
}

// NewCluster puts together what is known of a part of a cluster at a moment: rows that were derived before, which may have been
// stored during that time, and facts, in any order, of the rules in force and of annotations.
func NewCluster(rows map[Subject]Derived, facts []Fact, now time.Time) *Cluster {
	for _, d := range rows {
		for i := range d.Migrations {
			d.Migrations[i].restorePhases()
		}
	}
	return &Cluster{Rows: rows, Now: now, env: NewEnv(facts), facts: BySubject(SortFacts(facts))}
}

// VM returns what was derived of a VM.
func (c *Cluster) VM(namespace, name string) Derived { return c.Rows[VMISubject(namespace, name)] }

// Node returns what was derived of a node.
func (c *Cluster) Node(name string) Derived { return c.Rows[Subject{SubjectNode, name}] }

// LoopsOf returns the loops that are about a VM, in the order of their openings.
func (c *Cluster) LoopsOf(namespace, name string) []Loop {
	return slices.DeleteFunc(c.allLoops(), func(l Loop) bool { return l.Namespace != namespace || l.VMI != name })
}

// LoopsAt returns the loops of a node, in the order of their openings: its own, and those of other nodes that go on at it,
// too.
func (c *Cluster) LoopsAt(node string) []Loop {
	out := slices.Clone(c.Node(node).Loops)
	for s, d := range c.Rows {
		for _, l := range d.Loops {
			if s.Kind == SubjectNode && s.Name != node && slices.Contains(l.Nodes, node) {
				out = append(out, l)
			}
		}
	}
	return byOpening(out)
}

// allLoops returns all loops, in the order of their openings.
func (c *Cluster) allLoops() []Loop {
	var out []Loop
	for _, d := range c.Rows {
		out = append(out, d.Loops...)
	}
	return byOpening(out)
}

// Slots returns the times in which the migrations of a VM count against KubeVirt's limits.
func (d Derived) Slots() []Slot {
	var out []Slot
	for _, m := range d.Migrations {
		if s, ok := m.NewSlot(); ok {
			out = append(out, s)
		}
	}
	return out
}

// Nodes names the nodes that the rows of a VM touch, in any order.
func (d Derived) Nodes() []string {
	var out []string
	for s := range d.Around() {
		if s.Kind == SubjectNode {
			out = append(out, s.Name)
		}
	}
	return out
}

// trimForNode returns as much of a migration as matters to its node: not each phase on the way.
func (m *Migration) trimForNode() *Migration {
	return &Migration{
		UID: m.UID, Name: m.Name, Namespace: m.Namespace, VMI: m.VMI, VMIUID: m.VMIUID, EvacuationID: m.EvacuationID, Attempt: m.Attempt,
		Priority: m.Priority, Trigger: m.Trigger, SourceNode: m.SourceNode, TargetNode: m.TargetNode, CreatedAt: m.CreatedAt, SchedulingAt: m.SchedulingAt, RunningAt: m.RunningAt,
		FinishedAt: m.FinishedAt, Outcome: m.Outcome, FailureClass: m.FailureClass, FailureReason: m.FailureReason, FailureText: m.FailureText,
		WaitReason: m.WaitReason, WaitDetail: m.WaitDetail, Mode: m.Mode, EndEvent: m.EndEvent, EndSeenAt: m.EndSeenAt,
		Need: m.Need, LastOverAt: m.LastOverAt, Benefit: m.Benefit, BenefitBecause: m.BenefitBecause,
	}
}

// trimForNode returns as much of a request as matters to its node: not how often it was repeated.
func (r *EvictionRequest) trimForNode() *EvictionRequest {
	short := *r
	short.Repeats, short.LastRepeatAt = 0, time.Time{}
	return &short
}

// Around returns the rows of a VM by what is derived of them: the nodes that they touch, and the cluster as a whole.
func (d Derived) Around() map[Subject]Rows {
	around := map[Subject]Rows{}
	at := func(node string, rows Rows) {
		if s := (Subject{SubjectNode, node}); node != "" {
			all := around[s]
			all.Add(rows)
			around[s] = all
		}
	}
	for i := range d.Placements {
		at(d.Placements[i].Node, Rows{Placements: []*Placement{&d.Placements[i]}})
	}
	for i := range d.Evacuations {
		rows := Rows{Evacuations: []*Evacuation{&d.Evacuations[i]}}
		at(d.Evacuations[i].Node, rows)
		all := around[ClusterSubject]
		all.Add(rows)
		around[ClusterSubject] = all
	}
	for i := range d.Requests {
		if r := &d.Requests[i]; r.Salient {
			at(r.Node, Rows{Requests: []*EvictionRequest{r.trimForNode()}})
		}
	}
	for i := range d.Migrations {
		short := d.Migrations[i].trimForNode()
		at(short.SourceNode, Rows{Migrations: []*Migration{short}})
		if short.mayCause() {
			at(short.TargetNode, Rows{Arrivals: []*Migration{short}})
		}
		if short.isSwing() {
			at(min(short.SourceNode, short.TargetNode), Rows{Swings: []*Migration{short}})
		}
	}
	for i := range d.Decisions {
		if x := &d.Decisions[i]; x.Verdict == VerdictHolds {
			at(x.Node, Rows{Decisions: []*Decision{x}})
		}
	}
	return around
}
