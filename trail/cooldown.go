package trail

import (
	"cmp"
	"fmt"
	"slices"
	"time"
)

// The behaviours of the descheduler's plugin KubevirtMigrationAware, by the version of the descheduler.
const (
	CooldownLive     = ">=4.22" // its memory lives as long as the process, and is seeded once at the start
	CooldownReseeded = "4.21"   // its memory is made again in each cycle
	CooldownNone     = "none"   // there is no plugin, or nothing is known of it
)

// FinishedKept is how many finished migrations KubeVirt keeps per VMI.
//
// Source: kubevirt pkg/virt-controller/watch/migration/migration.go, defaultFinalizedMigrationGarbageCollectionBuffer.
const FinishedKept = 5

// CooldownPolicy is how the descheduler holds back a VM that was migrated.
type CooldownPolicy struct {
	Model  string        // CooldownLive, CooldownReseeded or CooldownNone
	Base   time.Duration // of the first migration in the window
	Max    time.Duration // most that it ever is; 0: no limit
	Window time.Duration // in which migrations count, back from the decision
}

// Completion is the end of a migration as the VMI shows it: what the plugin counts.
type Completion struct {
	Migration    string
	MigrationUID string
	StartedAt    time.Time // zero where unknown
	EndedAt      time.Time // the source node's clock, 1 s resolution
	Failed       bool
	fact         *Fact // that showed it; nil where only the migration shows it
	forgotten    bool  // it stands on the VMI, and is not in the memory of the descheduler
}

// Cooldown is what the policy says after a migration.
type Cooldown struct {
	Count     int           // completions in the window
	Effective time.Duration // from the end of the last one on
	Until     time.Time
	Capped    bool // it would be longer without the limit
}

// Decide returns the cooldown that follows the last of the completions, as the descheduler computes it at a time.
//
// Completions are in ascending order of their ends; those at or before at-p.Window are not counted. A migration that
// took longer than p.Base counts with its own length, and each further one in the window doubles that: 0 and 1 give the
// same. Effective is never below p.Base, and where p.Max > 0 never above it, if p.Max >= p.Base. Without completions it
// is zero.
//
// Source: KubevirtMigrationAware, PreEvictionFilter.
func (p CooldownPolicy) Decide(completions []Completion, at time.Time) Cooldown {
	if len(completions) == 0 {
		return Cooldown{}
	}
	last := completions[len(completions)-1]
	c := Cooldown{Effective: p.Base}
	for _, done := range completions {
		if done.EndedAt.After(at.Add(-p.Window)) && !done.forgotten {
			c.Count++
		}
	}
	if own := last.EndedAt.Sub(last.StartedAt); !last.StartedAt.IsZero() && own > c.Effective {
		c.Effective = own
	}
	doublings := c.Count - 1
	for ; doublings > 0 && !p.atCap(c.Effective); doublings-- {
		c.Effective *= 2
	}
	if p.Max > 0 && (c.Effective > p.Max || c.Effective == p.Max && doublings > 0) {
		c.Effective, c.Capped = p.Max, true
	}
	c.Until = last.EndedAt.Add(c.Effective)
	return c
}

// atCap reports whether doubling is over: at the limit, or where the next one would not fit in 64 bits.
func (p CooldownPolicy) atCap(d time.Duration) bool {
	return p.Max > 0 && d >= p.Max || d >= 1<<62
}

// CooldownPolicy returns the policy in force at a time.
func (e *Env) CooldownPolicy(at time.Time) CooldownPolicy {
	s := e.deschedulerSettingsAt(at)
	if s == nil || s.Cooldown == nil {
		return CooldownPolicy{Model: CooldownNone}
	}
	_, process := e.findDeschedulerProcess(at)
	return CooldownPolicy{Model: cooldownModel(s, process), Base: s.Cooldown.Base, Max: s.Cooldown.Max, Window: s.Cooldown.Window}
}

// cooldownModel returns the behaviour of the plugin: as it was stated, else by the process that was seen. Either may be nil.
func cooldownModel(s *DeschedulerSettings, process *DeschedulerDetail) string {
	switch {
	case s == nil || s.Cooldown == nil, s.Model == CooldownNone, s.Model == "" && process != nil && !process.Plugin:
		return CooldownNone
	case s.Model == CooldownReseeded, s.Model == "" && process != nil && process.reseedsEachCycle():
		return CooldownReseeded
	}
	return CooldownLive
}

// reseedsEachCycle returns the release that makes its profiles, and so the memory of the plugin, again in each cycle (reference:
// descheduler-signals §1.7).
func (d *DeschedulerDetail) reseedsEachCycle() bool {
	major, minor, known := majorMinor(d.Version)
	return known && major == 4 && minor <= 21
}

// completionsOf returns the ends of migrations that the VMI showed, in their order, each migration once: by the VMI's own
// facts, or, where a gap hid those, by what its migrations kept of its state.
func completionsOf(l *life, migrations []*migration) []Completion {
	byUID := map[string]*Completion{}
	add := func(uid, name string, d ResultDetail, fact *Fact) {
		if d.EndedAt.IsZero() {
			return
		}
		c := byUID[uid]
		if c == nil {
			c = &Completion{MigrationUID: uid}
			byUID[uid] = c
		}
		c.Migration, c.StartedAt, c.EndedAt = cmp.Or(name, c.Migration), d.StartedAt, d.EndedAt
		c.Failed = c.Failed || d.Failed
		c.fact = cmp.Or(fact, c.fact)
	}
	for i := range l.facts {
		f := &l.facts[i]
		if d, ok := f.Detail.(*ResultDetail); ok && f.Kind == KindMigrationCompleted {
			add(f.MigrationUID, f.Migration, *d, f)
		}
	}
	for _, m := range migrations {
		add(m.UID, m.Name, m.result, nil)
	}
	out := make([]Completion, 0, len(byUID))
	for _, c := range byUID {
		out = append(out, *c)
	}
	slices.SortFunc(out, func(a, b Completion) int {
		return cmp.Or(a.EndedAt.Compare(b.EndedAt), cmp.Compare(a.MigrationUID, b.MigrationUID))
	})
	return out
}

// cooling follows the cooldowns of one VMI.
type cooling struct {
	life        *life
	env         *Env
	completions []Completion
	migrations  []*migration // of the VMI
}

// decideCooldowns returns the decisions of the descheduler's cooldown about one VMI, whose migrations they are.
func decideCooldowns(l *life, migrations []*migration, requests []*request, env *Env, m *moment) []Decision {
	c := cooling{life: l, env: env, completions: completionsOf(l, migrations), migrations: migrations}
	var out []Decision
	for i := range c.completions {
		d, ok := c.beginCooldown(i)
		if !ok {
			continue
		}
		out = append(append(out, d), c.followChanges(i, d, m)...)
	}
	for _, r := range requests {
		if r.life == l && r.byDescheduler() {
			if d, ok := c.findBlockingDecision(r); ok {
				out = append(out, d)
			}
		}
	}
	return out
}

// followChanges returns the decisions that change a cooldown after it has begun, to its end: a descheduler that starts again, or goes by
// another policy, computes it from what it knows then. None where the next completion begins another.
func (c *cooling) followChanges(i int, d Decision, m *moment) []Decision {
	var out []Decision
	uid := d.Inputs.MigrationUID
	end := c.life.endedAt
	over := func() bool { return !end.IsZero() && !end.After(d.Until) }
	superseded := func(t time.Time) bool { return i+1 < len(c.completions) && !c.completions[i+1].EndedAt.After(t) }
	for _, t := range c.env.deschedulerChanges() {
		if !t.After(d.DecidedAt) || !t.Before(d.Until) || superseded(t) || !end.IsZero() && !end.After(t) || !m.hasReached(t) {
			continue
		}
		p := c.env.CooldownPolicy(t)
		if p.Model == CooldownNone {
			return append(out, d.newRelease(DecidedOver, t, uid))
		}
		rebuilt := c.newDecision(p, c.completions[:i+1], t)
		if rebuilt.Until.Equal(d.Until) && rebuilt.Count == d.Count {
			continue
		}
		if rebuilt.ID = hashID("cooldown anew", uid, formatTime(t)); !t.Before(rebuilt.Until) {
			return append(out, rebuilt.newRelease(DecidedExpired, t, uid))
		}
		rebuilt.Verdict, rebuilt.Reason, rebuilt.EventID = VerdictHolds, DecidedAgain, d.EventID
		out, d = append(out, rebuilt), rebuilt
	}
	switch {
	case superseded(d.Until):
	case over():
		out = append(out, d.newRelease(DecidedOver, end, uid))
	case m.hasReached(d.Until):
		out = append(out, d.newRelease(DecidedExpired, d.Until, uid))
	}
	return out
}

// beginCooldown returns the decision that follows a completion; none where no policy is known.
func (c *cooling) beginCooldown(i int) (Decision, bool) {
	done := c.completions[i]
	p := c.env.CooldownPolicy(done.EndedAt)
	if p.Model == CooldownNone {
		return Decision{}, false
	}
	d := c.newDecision(p, c.completions[:i+1], done.EndedAt)
	d.ID = hashID("cooldown", c.life.uid, done.MigrationUID)
	if d.Verdict, d.Reason = VerdictHolds, DecidedCompleted; done.fact != nil {
		d.EventID, d.toldAt = new(done.fact.ID), bestTime(*done.fact)
	}
	return d, true
}

// newDecision computes the cooldown that the descheduler sees at a time, and beside it what the true history says.
func (c *cooling) newDecision(p CooldownPolicy, history []Completion, at time.Time) Decision {
	known, since := c.rememberedCompletions(p, history, at)
	last := history[len(history)-1]
	is, really := p.Decide(known, at), p.Decide(history, at)
	d := Decision{
		Namespace: c.life.namespace, VMI: c.life.vmi, VMIUID: c.life.uid, Node: c.life.nodeAt(at.Add(time.Second)), DecidedAt: at,
		Layer: LayerCooldown, Base: Span(p.Base), Count: is.Count, Effective: Span(is.Effective), Until: is.Until, Cap: Span(p.Max),
		Window: Span(p.Window), Capped: is.Capped, Model: p.Model, Origin: OriginDerived,
		Inputs: Inputs{
			Migration: last.Migration, MigrationUID: last.MigrationUID, StartedAt: last.StartedAt, EndedAt: last.EndedAt,
			TrueCount: really.Count, TrueEffective: Span(really.Effective), DeschedulerStartedAt: since,
		},
	}
	for _, k := range known {
		if k.EndedAt.After(at.Add(-p.Window)) && !k.forgotten {
			d.Inputs.Completions = append(d.Inputs.Completions, k.EndedAt)
		}
	}
	if is.Effective != really.Effective {
		d.Inputs.Finding = fmt.Sprintf("the descheduler remembers %d of %s", is.Count, FormatCount(really.Count, "migration")) + " in its window and waits " + formatSpan(is.Effective) + " instead of " + formatSpan(really.Effective)
	}
	return d
}

// rememberedCompletions returns the completions that the descheduler has in its memory at a time.
func (c *cooling) rememberedCompletions(p CooldownPolicy, history []Completion, at time.Time) (known []Completion, since time.Time) {
	return c.env.Remembered(p, history, at, func(since time.Time) map[string]bool {
		return c.selectSeed(c.seedReadTime(p, history[len(history)-1], since))
	})
}

// Remembered returns those completions that the descheduler has in its memory at a time, and in any case the last one: that
// stands on the VMI. What came before its process started it has read from the migrations that still existed then, and
// only the successes, which seeded names by their UIDs; the older behaviour does so in each cycle, so that it knows no failure.
// Completions are at least one, in ascending order of their ends. Since is from when on it remembers; zero where that is not known.
func (e *Env) Remembered(p CooldownPolicy, history []Completion, at time.Time, seeded func(since time.Time) map[string]bool) (known []Completion, since time.Time) {
	since, _ = e.findDeschedulerProcess(at)
	if p.Model == CooldownReseeded {
		since = at
	}
	if since.IsZero() {
		return history, since
	}
	seed := seeded(since)
	for i, done := range history {
		done.forgotten = !done.EndedAt.After(since) && !seed[done.MigrationUID]
		if !done.forgotten || i == len(history)-1 {
			known = append(known, done)
		}
	}
	return known, since
}

// seedReadTime returns the time as of which the plugin reads the migrations that exist. Where it does so in each cycle, that is
// when the last one is final, which is a moment after its end showed on the VMI.
func (c *cooling) seedReadTime(p CooldownPolicy, last Completion, since time.Time) time.Time {
	for _, m := range c.migrations {
		if p.Model == CooldownReseeded && m.UID == last.MigrationUID {
			return maxTime(since, m.FinishedAt)
		}
	}
	return since
}

// selectSeed names the migrations that the plugin reads at its start: the successes among those that KubeVirt still kept.
func (c *cooling) selectSeed(at time.Time) map[string]bool {
	seed := map[string]bool{}
	for _, m := range finishedAt(c.migrations, at) {
		if m.Outcome == OutcomeSucceeded {
			seed[m.UID] = true
		}
	}
	return seed
}

// findBlockingDecision returns the decision that an act of the descheduler met: it was to be blocked, as a migration was running or a
// cooldown held. None where nothing was in its way.
func (c *cooling) findBlockingDecision(r *request) (Decision, bool) {
	p := c.env.CooldownPolicy(r.RequestedAt)
	if p.Model == CooldownNone {
		return Decision{}, false
	}
	d := Decision{
		Namespace: c.life.namespace, VMI: c.life.vmi, VMIUID: c.life.uid, Node: r.Node, DecidedAt: r.RequestedAt, Layer: LayerCooldown,
		Reason: DecidedInProgress, Model: p.Model, Origin: OriginDerived,
	}
	if m := c.findRunningMigration(r.RequestedAt); m != nil {
		d.Inputs.Migration, d.Inputs.MigrationUID, d.Inputs.StartedAt = m.Name, m.UID, m.result.StartedAt
	} else {
		history := c.endedBy(r.RequestedAt)
		if len(history) == 0 {
			return Decision{}, false
		}
		d = c.newDecision(p, history, r.RequestedAt)
		if !r.RequestedAt.Before(d.Until) {
			return Decision{}, false
		}
		d.Reason, d.Node = DecidedCooldown, r.Node
	}
	d.ID, d.Verdict = hashID("blocked", r.ID.String()), VerdictBlocked
	d.Inputs.Requester, d.Inputs.RequestID = r.formatRequester(), new(r.ID)
	return d, true
}

// endedBy returns the completions up to a time. Their clock has a resolution of 1 s.
func (c *cooling) endedBy(at time.Time) []Completion {
	n, _ := slices.BinarySearchFunc(c.completions, at, func(done Completion, t time.Time) int {
		if done.EndedAt.After(t) {
			return 1
		}
		return -1
	})
	return c.completions[:n]
}

// findRunningMigration returns the migration whose data moved at a time, as the plugin's filter sees it: started, and not ended. Nil
// where none did.
func (c *cooling) findRunningMigration(at time.Time) *migration {
	for _, m := range c.migrations {
		r := m.result
		end := cmp.Or(r.EndedAt, m.FinishedAt)
		if !r.StartedAt.IsZero() && r.StartedAt.Before(at) && (end.IsZero() || end.After(at)) {
			return m
		}
	}
	return nil
}

// newRelease returns the decision that ends what this one began.
func (d Decision) newRelease(reason string, at time.Time, of string) Decision {
	d.ID = hashID(reason, string(d.Layer), d.VMIUID, of)
	d.Verdict, d.Reason, d.DecidedAt, d.toldAt = VerdictReleased, reason, at, time.Time{}
	return d
}

// finishedAt returns the finished migrations that existed at a time, the newest first: KubeVirt keeps a few.
func finishedAt(migrations []*migration, at time.Time) []*migration {
	var out []*migration
	for i := len(migrations) - 1; i >= 0 && len(out) < FinishedKept; i-- {
		m := migrations[i]
		gone := m.gone != nil && !m.goneAt.After(at)
		if !m.FinishedAt.IsZero() && !m.FinishedAt.After(at) && !gone {
			out = append(out, m)
		}
	}
	return out
}
