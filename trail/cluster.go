package trail

import (
	"slices"
	"time"
)

// Cluster is all that the facts of a cluster, or of a part of it, mean at one moment.
type Cluster struct {
	Rows map[Subject]Derived
	Now  time.Time // UTC
	env  *Env
}

// DeriveAll derives facts in memory as they stand at a time: every VM, then the nodes and the cluster as a whole. It does
// what a store does piece by piece.
func DeriveAll(facts []Fact, thresholds Thresholds, now time.Time) *Cluster {
	of := map[Subject][]Fact{}
	for _, f := range facts {
		of[f.Subject] = append(of[f.Subject], f)
	}
	env := NewEnv(distinct(facts))
	env.Judge(thresholds)
	out := map[Subject]Derived{}
	var slots []Slot
	for s, its := range of {
		if s.Kind == SubjectVMI {
			out[s] = Derive(s, its, env, now)
			slots = append(slots, out[s].Slots()...)
		}
	}
	around := map[Subject]Rows{}
	for s, d := range out {
		d.ExplainQueue(slots, env)
		out[s] = d
		d.touch(around)
	}
	for s, rows := range around {
		env.Around(s, rows)
		of[s] = slices.Clip(of[s])
	}
	for s, its := range of {
		if s.Kind != SubjectVMI {
			out[s] = Derive(s, its, env, now)
		}
	}
	return &Cluster{Rows: out, Now: now, env: env}
}

// vm gives what was derived of a VM.
func (c *Cluster) vm(namespace, name string) Derived { return c.Rows[VMISubject(namespace, name)] }

// node gives what was derived of a node.
func (c *Cluster) node(name string) Derived { return c.Rows[Subject{SubjectNode, name}] }

// loopsOf gives the loops that are about a VM, in the order of their openings.
func (c *Cluster) loopsOf(namespace, name string) []Loop {
	var out []Loop
	for _, d := range c.Rows {
		for _, l := range d.Loops {
			if l.Namespace == namespace && l.VMI == name {
				out = append(out, l)
			}
		}
	}
	return byOpening(out)
}

// Slots gives the times in which the migrations of a VM count against KubeVirt's limits.
func (d Derived) Slots() []Slot {
	var out []Slot
	for _, m := range d.Migrations {
		if s, ok := m.slot(); ok {
			out = append(out, s)
		}
	}
	return out
}

// Nodes names the nodes that the rows of a VM touch, in any order.
func (d Derived) Nodes() []string {
	around := map[Subject]Rows{}
	d.touch(around)
	var out []string
	for s := range around {
		if s.Kind == SubjectNode {
			out = append(out, s.Name)
		}
	}
	return out
}

// touch adds the rows of a VM to those of the nodes that it touches, and to those of the cluster.
func (d Derived) touch(around map[Subject]Rows) {
	at := func(node string, add func(*Rows)) {
		if node == "" {
			return
		}
		rows := around[Subject{SubjectNode, node}]
		add(&rows)
		around[Subject{SubjectNode, node}] = rows
	}
	for _, p := range d.Placements {
		at(p.Node, func(r *Rows) { r.Placements = append(r.Placements, p) })
	}
	for _, e := range d.Evacuations {
		at(e.Node, func(r *Rows) { r.Evacuations = append(r.Evacuations, e) })
		all := around[ClusterSubject]
		all.Evacuations = append(all.Evacuations, e)
		around[ClusterSubject] = all
	}
	for _, q := range d.Requests {
		at(q.Node, func(r *Rows) { r.Requests = append(r.Requests, q) })
	}
	for _, m := range d.Migrations {
		if m.EvacuationID != nil {
			at(m.SourceNode, func(r *Rows) { r.Attempts = append(r.Attempts, m) })
		}
	}
	for _, x := range d.Decisions {
		at(x.Node, func(r *Rows) { r.Decisions = append(r.Decisions, x) })
	}
}
