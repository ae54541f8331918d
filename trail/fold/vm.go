package fold

import (
	"context"
	"fmt"
	"runtime"
	"slices"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/evictrail/evictrail/trail"
)

// deriveVMs derives subjects that do not depend on rows of others: VMs, and what stands for itself. Then it derives the VMs that
// waited while slots were taken or freed by these, and so on.
func (t *tick) deriveVMs(ctx context.Context, dirty dirtyMarks) error {
	for len(dirty) > 0 {
		if err := ctx.Err(); err != nil {
			return err
		}
		windows, err := t.c.loadWindows(ctx, dirty.listWants())
		if err != nil {
			return err
		}
		if err := t.loadAround(ctx, windows); err != nil {
			return err
		}
		t.settings = t.settingsEnv()
		derived := t.deriveWindows(windows)
		var slots []span
		for w, d := range derived {
			if w.Subject.Kind == trail.SubjectVMI {
				slots = append(slots, t.c.queue.updateMigrations(w, d.rows.Migrations, d.from)...)
			}
		}
		if err := t.explainQueues(ctx, derived); err != nil {
			return err
		}
		for _, w := range windows {
			if d := derived[w]; d != nil {
				t.applyDerivation(w, d)
			}
		}
		dirty, err = t.markWaitingVMs(ctx, mergeSpans(slots), derived)
		if err != nil {
			return err
		}
	}
	return nil
}

// derivation is what was derived of one subject, before it is compared with its rows.
type derivation struct {
	rows trail.Derived
	env  *trail.Env
	from time.Time // rows that had ended before then are frozen
}

// loadAround loads what the derivation of windows reads beside their own facts: the facts of nodes, rules and gaps, and the requests about
// pods and migrations of VMs.
func (t *tick) loadAround(ctx context.Context, windows []*Window) error {
	dirty := dirtyMarks{}
	for _, s := range trail.SettingSubjects() {
		dirty.add(s, t.rulesSince(windows))
	}
	var about Asked
	var askers []*Window
	for _, w := range windows {
		if w.Subject.Kind != trail.SubjectVMI {
			continue
		}
		for _, s := range w.viewFacts().around {
			if s.Kind == trail.SubjectNode {
				dirty.add(s, farFuture)
			}
		}
		if w.addRequestWants(&about) {
			askers = append(askers, w)
		}
	}
	if _, err := t.c.loadWindows(ctx, dirty.listWants()); err != nil {
		return err
	}
	if len(askers) == 0 {
		return nil
	}
	facts, err := t.c.source.Asked(ctx, about)
	if err != nil {
		return err
	}
	of := map[trail.Subject][]*Window{}
	for _, w := range askers {
		for _, s := range w.viewFacts().around {
			of[s] = append(of[s], w)
		}
	}
	heard := map[*Window][]trail.Fact{}
	for i := range facts {
		for _, w := range of[facts[i].Subject] {
			heard[w] = append(heard[w], facts[i])
		}
		if t.launched[facts[i].Subject] { // its requests were rows of its own while its VM was unknown
			t.owned[facts[i].Subject] = true
		}
	}
	for w, its := range heard {
		w.addRequestFacts(its)
	}
	for _, w := range askers {
		if w.left == nil && !w.FactsFrom.IsZero() {
			w.leaveEndedPods()
		}
	}
	return nil
}

// addRequestWants adds what the requests about a VM are about, as far as they are not in its window yet. It reports whether there was anything.
func (w *Window) addRequestWants(about *Asked) bool {
	v, any := w.viewFacts(), false
	for _, pod := range v.pods {
		if !w.knows[pod] {
			w.knows[pod], any = true, true
			about.Pods = append(about.Pods, Want{pod, w.FactsFrom})
		}
	}
	for uid, l := range v.lives {
		if key := uid + " " + l.Deleted.String(); !w.seen[key] {
			w.seen[key], any = true, true
			about.Migrations = append(about.Migrations, l)
		}
	}
	return any
}

// farFuture is later than anything: what is complete for changes since then has all that says how it stands.
var farFuture = time.Date(9999, 1, 1, 0, 0, 0, 0, time.UTC)

// rulesSince returns since when the rules in force matter to windows: since some time before their rows begin.
func (t *tick) rulesSince(windows []*Window) time.Time {
	first := farFuture
	for _, w := range windows {
		if w.RowsFrom.Before(first) {
			first = w.RowsFrom
		}
	}
	if first.IsZero() || first.Equal(farFuture) {
		return first
	}
	return first.Add(-2 * t.c.lookback)
}

// settingsEnv returns what every Env has: the rules in force, and the gaps in which marks may hide.
func (t *tick) settingsEnv() *trail.Env {
	var facts []trail.Fact
	for _, s := range trail.SettingSubjects() {
		if w := t.c.windows[s]; w != nil {
			facts = append(facts, w.Facts...)
		}
	}
	env := trail.NewEnv(facts)
	env.Judge(t.batch.Thresholds)
	return env
}

// envOf returns what surrounds a window when it is derived.
func (t *tick) envOf(w *Window) *trail.Env {
	nodes := map[string][]trail.Fact{}
	for _, s := range w.viewFacts().around {
		if other := t.c.windows[s]; s.Kind == trail.SubjectNode && other != nil {
			nodes[s.Name] = other.viewFacts().ofNode
		}
	}
	return t.settings.Surround(nodes, w.viewFacts().asked)
}

// deriveWindows derives windows, on all processors at once, as that is most of what a Fold does. Windows that are left out, and those for which it fails, which is
// noted, are not in what it returns.
func (t *tick) deriveWindows(windows []*Window) map[*Window]*derivation {
	derived := make(map[*Window]*derivation, len(windows))
	failed := make([]error, len(windows))
	var group errgroup.Group
	group.SetLimit(runtime.GOMAXPROCS(0))
	for i, w := range windows {
		if t.batch.LeftOut[w.Subject] {
			continue
		}
		d := &derivation{env: t.envOf(w), from: maxTime(w.RowsFrom, w.FrozenTo)}
		derived[w] = d
		switch {
		case w.Subject.Kind == trail.SubjectPod && t.owned[w.Subject]: // its requests are rows of its VM
			continue
		case w.Subject.Kind == trail.SubjectVMI && !d.from.IsZero():
			d.env.Settle(trail.Settled{Before: map[trail.Subject]time.Time{w.Subject: d.from}, Bounces: w.frozenLoops(d.from)})
		}
		group.Go(func() error {
			d.rows, failed[i] = t.deriveRows(w, d.env)
			return nil
		})
	}
	_ = group.Wait()
	for i, w := range windows {
		if failed[i] != nil {
			t.markFailed(w, failed[i])
			delete(derived, w)
		}
	}
	return derived
}

// deriveRows derives the rows of a window. The error is a panic while it does.
func (t *tick) deriveRows(w *Window, env *trail.Env) (rows trail.Derived, err error) {
	defer func() {
		if cause := recover(); cause != nil {
			err = fmt.Errorf("derive %s: panic: %v", w.Subject, cause)
		}
	}()
	return t.c.Derive(w.Subject, w.Facts, env, t.batch.Now), nil
}

// frozenLoops counts the loops of a window that had ended before a time, by kind.
func (w *Window) frozenLoops(before time.Time) map[trail.Bounce]int {
	out := map[trail.Bounce]int{}
	for b, n := range w.Frozen {
		out[b] = n
	}
	for _, l := range w.Rows.Loops {
		if trail.EndedBefore(l, before) && l.ClosedBy != trail.LoopRefuted {
			out[trail.BounceOf(l)]++
		}
	}
	return out
}

// explainQueues says of migrations that waited for nothing of their own who held the slots during that time.
func (t *tick) explainQueues(ctx context.Context, derived map[*Window]*derivation) error {
	queued := map[*derivation][]span{}
	var all []span
	for w, d := range derived {
		from, to := d.rows.Queued(w.notFrozen(d.from))
		for i := range from {
			queued[d] = append(queued[d], span{from[i], to[i]})
		}
		all = append(all, queued[d]...)
	}
	if len(all) == 0 {
		return nil
	}
	all = mergeSpans(all)
	if err := t.c.loadQueue(ctx, all[0].from, t.batch.Now); err != nil {
		return err
	}
	held := findSlots(t.c.queue.listSlots(), all)
	for d, its := range queued {
		d.rows.ExplainQueue(findSlots(slices.Values(held), mergeSpans(its)), d.env)
	}
	return nil
}

// notFrozen returns what reports whether the row of a migration may change: it had not ended before a time, as derived or as it is written.
func (w *Window) notFrozen(from time.Time) func(*trail.Migration) bool {
	goesOn := map[string]bool{}
	for i := range w.Rows.Migrations {
		if m := &w.Rows.Migrations[i]; !trail.EndedBefore(*m, from) {
			goesOn[m.UID] = true
		}
	}
	return func(m *trail.Migration) bool { return goesOn[m.UID] || !trail.EndedBefore(*m, from) }
}

// applyDerivation compares what was derived with the rows of its window, and marks the nodes that the changes are about as dirty.
func (t *tick) applyDerivation(w *Window, d *derivation) {
	was, is, err := t.changes.updateWindow(w, d.rows, d.from, t.batch.Now, t.rederived[w.Subject])
	if err != nil {
		t.markFailed(w, err)
		return
	}
	w.derived = t.c.fold
	w.Due, t.changes.Due[w.Subject] = d.rows.NextAt, d.rows.NextAt
	t.derived[w.Subject] = true
	if w.Subject.Kind == trail.SubjectVMI {
		t.updateInputs(was.Around(), is.Around())
	}
}

// markWaitingVMs returns the VMs that waited while slots were taken or freed, but for those that were just derived.
func (t *tick) markWaitingVMs(ctx context.Context, slots []span, derived map[*Window]*derivation) (dirtyMarks, error) {
	if len(slots) == 0 {
		return nil, nil
	}
	if err := t.c.loadQueue(ctx, slots[0].from, t.batch.Now); err != nil {
		return nil, err
	}
	out := dirtyMarks{}
	for _, vm := range t.c.queue.findWaitingVMs(slots).listWants() {
		if w := t.c.windows[vm.Subject]; w != nil && derived[w] != nil && w.isCompleteSince(vm.Since) {
			continue
		}
		t.markOrDeferVM(vm.Subject, vm.Since, out)
	}
	return out, nil
}

// markFailed leaves a subject out: its rows stay as they are.
func (t *tick) markFailed(w *Window, err error) {
	t.changes.Failed[w.Subject] = err
	t.derived[w.Subject] = false
}

// dirtyMarks are subjects that are to be derived again, each since when; the zero time: ever.
type dirtyMarks map[trail.Subject]time.Time

func (d dirtyMarks) add(s trail.Subject, since time.Time) {
	if was, known := d[s]; !known || since.Before(was) {
		d[s] = since
	}
}

// listWants returns the marks in the order of their subjects.
func (d dirtyMarks) listWants() []Want {
	out := make([]Want, 0, len(d))
	for s, since := range d {
		out = append(out, Want{s, since})
	}
	slices.SortFunc(out, func(a, b Want) int { return compareSubjects(a.Subject, b.Subject) })
	return out
}
