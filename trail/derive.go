package trail

import (
	"cmp"
	"slices"
	"time"
)

// Derived is what the facts of one subject mean together. Every slice is in the order of its rows' times.
type Derived struct {
	Requests     []EvictionRequest
	Evacuations  []Evacuation
	Migrations   []Migration
	Placements   []Placement
	Decisions    []Decision
	Loops        []Loop
	Drains       []Drain
	Blockers     []DrainBlocker
	Consequences []Consequence
	Outages      []Outage
	Gaps         []Gap
	Timeline     []Line
	NextAt       time.Time // when time alone will change these rows: then the subject is to be derived again. Zero: never
}

// CountRows returns how many rows of all kinds these are.
func (d *Derived) CountRows() int {
	return len(d.Requests) + len(d.Evacuations) + len(d.Migrations) + len(d.Placements) + len(d.Decisions) + len(d.Loops) + len(d.Drains) + len(d.Blockers) +
		len(d.Consequences) + len(d.Outages) + len(d.Gaps) + len(d.Timeline)
}

// Derive ties together the facts of one subject as they stand at a time. It is pure: facts may come in any order and more
// than once, and the same facts in the same Env always give the same rows. VMs come first: what belongs to a node, or to
// the cluster, follows from their rows (Env.Around).
func Derive(subject Subject, facts []Fact, env *Env, now time.Time) Derived {
	m := moment{now: now}
	d := deriveSubject(subject, facts, env, &m)
	d.NextAt = m.next
	return d
}

func deriveSubject(subject Subject, facts []Fact, env *Env, now *moment) Derived {
	facts = SortFacts(facts)
	switch subject.Kind {
	case SubjectVMI:
		return deriveVMI(facts, env, now)
	case SubjectNode:
		return deriveNode(subject, facts, env, now)
	case SubjectSource:
		d := Derived{Gaps: deriveGaps(facts)}
		d.Timeline = gapLines(d.Gaps)
		return d
	case SubjectPod:
		return derivePod(subject, facts, env)
	case SubjectCluster:
		return deriveCluster(env, now)
	case SubjectConfig, SubjectNamespace:
		return Derived{Timeline: factLines(facts, env)}
	case SubjectUnknown:
	}
	return Derived{}
}

// deriveVMI derives everything of one VM: its lives (one per VMI UID), its migrations, and the evacuations that own
// some of them as attempts.
func deriveVMI(facts []Fact, env *Env, now *moment) Derived {
	pods := launchersOf(facts)
	lives := livesOf(facts, pods)
	migrations := migrationsOf(facts, lives)
	for _, l := range lives {
		l.placements = placementsOf(l, migrations, facts)
		l.evacuations = markedEvacuations(l, env)
		l.splitRemarked(pods, env)
	}
	assignAttempts(lives, migrations, env)
	requests := joinRequestEffects(pods, lives, env)
	attributeMigrations(lives, migrations, facts, env)
	classifyFailures(lives, migrations, facts)
	for _, m := range migrations {
		m.summarizeTransfer(env)
	}
	endPlacements(lives, &endingSources{pods, requests, migrations, facts, env})
	markTerminating(lives, pods)
	var d Derived
	for _, l := range lives {
		own := l.selectOwnMigrations(migrations)
		d.Decisions = slices.Concat(d.Decisions, decideCooldowns(l, own, requests, env, now), decideBackoffs(l, own, env, now))
		moves := movesOf(l, migrations)
		d.Loops = slices.Concat(d.Loops, findBounceLoops(l, moves, env, now), findRepeatedFailures(l, moves, own, env, now))
		summarizeAttempts(l, migrations, facts)
		for _, e := range l.evacuations {
			e.evaluateObjective(env, now)
			e.Policy = env.policyName(e.MarkedAt)
		}
	}
	d.Loops = append(d.Loops, shutdownChurn(lives, env, now)...)
	inOrder(d.Decisions)
	byOpening(d.Loops)
	explainWaits(lives, migrations, pods, now)
	explainStalls(migrations, env, now)
	for _, l := range lives {
		l.evaluateOutlooks(migrations, pods, env, now)
	}
	left := map[string]time.Time{} // when the guest left the node that a migration had brought it to, by the UID of that
	for _, l := range lives {
		for _, p := range l.placements {
			left[p.arrivalMigrationUID()] = p.ToAt
		}
	}
	for _, m := range migrations {
		m.evaluateVerdict(left[m.UID])
	}
	for _, r := range requests {
		r.Policy = env.policyName(r.RequestedAt)
		d.Requests = append(d.Requests, r.EvictionRequest)
	}
	for _, l := range lives {
		for _, e := range l.evacuations {
			d.Evacuations = append(d.Evacuations, e.Evacuation)
		}
		d.Placements = append(d.Placements, l.placements...)
	}
	for _, m := range migrations {
		d.Migrations = append(d.Migrations, m.Migration)
	}
	d.Timeline = byTime(append(vmiLines(facts, d, lives, requests, env), evictionLines(pods, env)...))
	return d
}

// derivePod returns the requests about a pod whose VMI was never seen, as an audit log that is older than our watch names
// them. Those about a pod that is known belong to its VM.
func derivePod(subject Subject, facts []Fact, env *Env) Derived {
	var d Derived
	if env.known[subject] {
		return d
	}
	requests := requestsOf(facts, env)
	vmi := ""
	for _, r := range requests {
		vmi = cmp.Or(vmi, r.VMI) // some answers name it
	}
	for _, r := range requests {
		r.VMI, r.Effect, r.Policy = vmi, r.computeEffect(), env.policyName(r.RequestedAt)
	}
	foldRepeats(requests)
	for _, r := range requests {
		d.Requests = append(d.Requests, r.EvictionRequest)
	}
	_, pod := subject.VM()
	d.Timeline = byTime(append(requestLines(requests), podEvictionLines(facts, pod)...))
	return d
}

// life is one VMI object from its first sight to its end.
type life struct {
	uid         string
	namespace   string
	vmi         string
	createdAt   time.Time // zero where unknown
	endedAt     time.Time // zero while it lives
	deletedAt   time.Time // from when on the VMI was being deleted, or was gone; zero while it is there
	endSeen     time.Time // our time of the end
	epoch       Epoch     // the last in which it was seen to be somewhere
	endLate     bool      // it was missing from a list, so that the end is older than its sight
	ending      ending    // why it ended
	facts       []Fact    // of the VMI object, in the order in which the API server wrote them
	placements  []Placement
	evacuations []*evacuation
}

// livesOf returns the VMI objects of one name apart. They come in the order of their creation.
func livesOf(facts []Fact, pods map[string]*launcher) []*life {
	byUID := map[string]*life{}
	var lives []*life
	for _, f := range facts {
		if f.Object.Kind != ObjectVMI {
			continue
		}
		l := byUID[f.Object.UID]
		if l == nil {
			l = &life{uid: f.Object.UID, namespace: f.Namespace, vmi: f.VMI}
			byUID[l.uid] = l
			lives = append(lives, l)
		}
		l.facts = append(l.facts, f)
		if d, ok := f.Detail.(*VMIDetail); ok && !d.CreatedAt.IsZero() {
			l.createdAt = d.CreatedAt
		}
		if f.Kind == KindVMIPlaced {
			l.epoch = max(l.epoch, EpochOf(f.Object.ResourceVersion))
		}
	}
	for _, f := range facts {
		l := byUID[f.Object.UID]
		if l == nil || EpochOf(f.Object.ResourceVersion) < l.epoch { // a restore of the cluster undid it
			continue
		}
		if f.Kind == KindVMIEnded && (l.endedAt.IsZero() || f.OccurredAt.Before(l.endedAt)) {
			l.endedAt, l.endSeen, l.endLate = f.OccurredAt, f.ObservedAt, f.Late && f.Clock == ClockObserver
		}
		gone := f.Kind == KindVMIEnded && f.What == WhatGone
		if (f.Kind == KindVMIDeletionAsked || gone) && (l.deletedAt.IsZero() || f.OccurredAt.Before(l.deletedAt)) {
			l.deletedAt = f.OccurredAt
		}
	}
	for _, l := range lives {
		slices.SortStableFunc(l.facts, byVersion)
		if l.createdAt.IsZero() {
			l.createdAt = l.facts[0].OccurredAt
		}
		if over := lastPodEnd(pods, l.uid); l.endLate && !over.IsZero() && over.Before(l.endedAt) {
			l.endedAt = over
		}
	}
	slices.SortStableFunc(lives, func(a, b *life) int { return a.createdAt.Compare(b.createdAt) })
	for i, l := range lives { // a name is free before another VMI bears it
		if i+1 < len(lives) && l.endLate && lives[i+1].createdAt.Before(l.endedAt) {
			l.endedAt = lives[i+1].createdAt
		}
	}
	return lives
}

// lifeAt returns the VMI that bore the name at a time: the last one created by then, 1 s being the resolution of
// creation times. Nil where none is known.
func lifeAt(lives []*life, at time.Time) *life {
	var found *life
	for _, l := range lives {
		if !l.createdAt.After(at.Add(time.Second)) {
			found = l
		}
	}
	return found
}

// selectOwnMigrations returns those of some migrations that are of this VMI, in their order.
func (l *life) selectOwnMigrations(all []*migration) []*migration {
	var own []*migration
	for _, m := range all {
		if m.VMIUID == l.uid {
			own = append(own, m)
		}
	}
	return own
}

func lifeOf(lives []*life, uid string) *life {
	for _, l := range lives {
		if l.uid == uid {
			return l
		}
	}
	return nil
}

// SortFacts copies the facts, each once, in the order in which they should be read: by the cluster's time, then ours. Of facts with the same ID the first counts: a client
// may choose the ID by which the audit log knows its request.
func SortFacts(facts []Fact) []Fact {
	out, seen := make([]Fact, 0, len(facts)), make(map[FactID]bool, len(facts))
	for _, f := range sortFactRefs(facts) {
		if !seen[f.ID] {
			seen[f.ID], out = true, append(out, *f)
		}
	}
	return out
}

// sortFactRefs returns facts in the order of their times; they are large.
func sortFactRefs(facts []Fact) []*Fact {
	order := make([]*Fact, len(facts))
	for i := range facts {
		order[i] = &facts[i]
	}
	slices.SortFunc(order, func(a, b *Fact) int {
		if c := a.OccurredAt.Compare(b.OccurredAt); c != 0 {
			return c
		}
		return cmp.Or(a.ObservedAt.Compare(b.ObservedAt), byVersion(*a, *b), slices.Compare(a.ID[:], b.ID[:]))
	})
	return order
}

// byVersion orders the facts of one object as the API server wrote them; those of one version by what they need of
// each other: where the guest is comes before what the mark did.
func byVersion(a, b Fact) int {
	switch {
	case a.Object.ResourceVersion == b.Object.ResourceVersion:
		return cmp.Compare(rankKind(a.Kind), rankKind(b.Kind))
	case a.Object.ResourceVersion == "" || b.Object.ResourceVersion == "":
		return cmp.Compare(a.Object.ResourceVersion, b.Object.ResourceVersion)
	case NewerVersion(a.Object.ResourceVersion, b.Object.ResourceVersion):
		return 1
	}
	return -1
}

func rankKind(k Kind) int {
	switch k {
	case KindMigrationResult, KindMigrationCompleted:
		return 0
	case KindVMIPlaced:
		return 1
	case KindEvacuationMarked, KindEvacuationUnmarked:
		return 2
	default:
		return 3
	}
}
