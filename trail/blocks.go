package trail

import (
	"math"
	"slices"
	"strconv"
	"strings"
	"time"
)

// BlocksDetail says how often evictions from a node were held back for one reason, in one namespace.
type BlocksDetail struct {
	Target   string    `json:"target"`
	Reason   string    `json:"reason"`   // as it came
	Increase int64     `json:"increase"` // between Since and the fact's time; at least 1
	Count    int64     `json:"count"`    // since the start of the process
	Since    time.Time `json:"since"`    // the scrape before, as far as it is known, or the start of the process where that is later
}

func (*BlocksDetail) isDetail() {}

// DeschedulerDetail is a process of the descheduler. Its start is the fact's time.
type DeschedulerDetail struct {
	Target  string `json:"target"`
	Version string `json:"version,omitempty"`
	Plugin  bool   `json:"plugin"` // KubevirtMigrationAware is at work in it
}

func (*DeschedulerDetail) isDetail() {}

// ProcessCount is the value of a fact about a descheduler (Fact.Value): when its process was started, and what that had counted since.
type ProcessCount struct {
	StartedAt time.Time // UTC
	Count     int64     // zero for the start itself
}

// ParseProcessCount reads what String wrote: zero where that cannot be read.
func ParseProcessCount(value string) (c ProcessCount) {
	start, count, _ := strings.Cut(value, " ")
	c.StartedAt, _ = time.Parse(time.RFC3339Nano, start)
	c.Count, _ = strconv.ParseInt(count, 10, 64)
	return c
}

// String returns the start, and behind a space the count where there is one.
func (c ProcessCount) String() string {
	start := c.StartedAt.Format(time.RFC3339Nano)
	if c.Count == 0 {
		return start
	}
	return start + " " + strconv.FormatInt(c.Count, 10)
}

// processSlack is how far apart two starts may be and still be one process: its start is reckoned from the clock of its
// node, and moves when that is set. A process that lived for so short a time has blocked nothing.
const processSlack = 5 * time.Second

// SameProcess reports whether two starts of a descheduler are those of one process.
func SameProcess(a, b time.Time) bool { return a.Sub(b).Abs() <= processSlack }

// BlockReason returns the reason for which the descheduler's counter says that it held back: ReasonOther where evictrail does not know
// it.
func BlockReason(asItCame string) Reason {
	if reason := Reason(asItCame); reason == ReasonCooldown || reason == ReasonMigrationInProgress {
		return reason
	}
	return ReasonOther
}

// observedBlocks returns what the descheduler's counters say about the node, with the VMs that each can be about: a counter
// names a node, a namespace and a reason, and no VM.
func (n *node) observedBlocks() []Decision {
	var out []Decision
	for _, f := range n.facts {
		d, ok := f.Detail.(*BlocksDetail)
		if !ok || f.OccurredAt.Before(n.Since) {
			continue
		}
		p := n.env.CooldownPolicy(f.OccurredAt)
		out = append(out, Decision{
			ID: hashID("observed", f.ID.String()), Namespace: f.Namespace, Node: n.name, DecidedAt: f.OccurredAt, Layer: LayerCooldown,
			Verdict: VerdictBlocked, Reason: DecidedObserved, Count: int(min(d.Increase, math.MaxInt32)), Model: p.Model, Origin: OriginObserved, EventID: new(f.ID),
			Inputs: Inputs{Since: d.Since, Target: d.Target, ObservedReason: d.Reason, Candidates: n.findBlockedVMs(f, d)},
		})
	}
	return inOrder(out)
}

// BlocksSince returns from when on rows matter to what counters of the descheduler say in facts since a time: they were read before, too.
func BlocksSince(facts []Fact, since time.Time) time.Time {
	from := since
	for _, f := range facts {
		if d, ok := f.Detail.(*BlocksDetail); ok && !f.OccurredAt.Before(since) && d.Since.Before(from) {
			from = d.Since
		}
	}
	return from
}

// findBlockedVMs names the VMs of the node and namespace that were held back between two scrapes, for the reason that was
// counted.
func (n *node) findBlockedVMs(f Fact, d *BlocksDetail) []string {
	between := interval{d.Since, f.OccurredAt}
	var out []string
	add := func(vm string) {
		if !slices.Contains(out, vm) {
			out = append(out, vm)
		}
	}
	for _, p := range n.Placements {
		if p.Namespace != f.Namespace || !between.overlaps(interval{p.FromAt, p.ToAt}) {
			continue
		}
		if d.Reason == DecidedInProgress && n.migratedBetween(p, between) || d.Reason == DecidedCooldown && n.cooledBetween(p, between) {
			add(p.Namespace + "/" + p.VMI)
		}
	}
	slices.Sort(out)
	return out
}

// overlaps reports whether two intervals have a time in common; ends count, as clocks have a resolution of 1 s.
func (i interval) overlaps(o interval) bool {
	return (o.to.IsZero() || !o.to.Before(i.from)) && (i.to.IsZero() || !o.from.After(i.to))
}

func (n *node) cooledBetween(p *Placement, between interval) bool {
	for _, h := range n.Decisions {
		if h.Layer == LayerCooldown && h.Verdict == VerdictHolds && h.VMIUID == p.VMIUID && between.overlaps(interval{h.DecidedAt, h.Until}) {
			return true
		}
	}
	return false
}

// migratedBetween reports whether a migration of the guest away from the node ran during that time.
func (n *node) migratedBetween(p *Placement, between interval) bool {
	for _, m := range n.Migrations {
		running := interval{m.RunningAt.Add(-time.Second), m.FinishedAt}
		if m.VMIUID == p.VMIUID && !m.RunningAt.IsZero() && between.overlaps(running) {
			return true
		}
	}
	return false
}
