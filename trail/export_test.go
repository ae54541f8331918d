package trail

import (
	"slices"
	"time"
)

// What tests outside of the package, which may use the Tracker, look at inside of it.

// Times and texts that rows are made with.
const (
	CordonBefore  = cordonBefore
	LostLately    = lostLately
	RetriedWithin = retriedWithin
)

// Helpers that are tested or used as they are.
var (
	AdviceShutdown = adviceShutdown
	HashID         = hashID
	LastPhase      = lastPhase
	Later          = maxTime
	SpanText       = formatSpan
)

// AllLoops returns the loops of all subjects.
func (c *Cluster) AllLoops() []Loop { return c.allLoops() }

// Env returns what the cluster was derived with.
func (c *Cluster) Env() *Env { return c.env }

// Facts returns the facts of a subject.
func (c *Cluster) Facts(s Subject) []Fact { return c.facts[s] }

// Asked returns the requests that were seen, by pod and by namespace.
func (e *Env) Asked() map[Subject][]Fact { return e.asked }

// Opening returns how an answer begins to speak of the loop.
func (l Loop) Opening() string { return l.renderOpening() }

// Of returns the objective of a class of requesters for a VM of a namespace on a node of a pool.
func (o Objectives) Of(class RequesterClass, namespace, pool string) time.Duration {
	return o.findObjective(class, namespace, pool)
}

// Forgotten returns the completion as one that the descheduler has not in its memory.
func Forgotten(c Completion) Completion {
	c.forgotten = true
	return c
}

// Bare returns rows without what says when to look again, and what ExplainQueue needs.
func Bare(d Derived) Derived {
	d.NextAt = time.Time{}
	d.Migrations = slices.Clone(d.Migrations)
	for i := range d.Migrations {
		d.Migrations[i].waited = waited{}
	}
	return d
}
