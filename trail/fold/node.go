package fold

import (
	"bytes"
	"context"
	"encoding/json"
	"reflect"
	"time"

	"github.com/evictrail/evictrail/trail"
)

// inputs are the rows of VMs that a node, or the cluster as a whole, is derived from, by their keys.
type inputs struct {
	since       time.Time // complete for changes since then
	from        time.Time // what had ended before then may be missing
	placements  map[string]*trail.Placement
	evacuations map[string]*trail.Evacuation
	requests    map[string]*trail.EvictionRequest
	migrations  map[string]*trail.Migration
	arrivals    map[string]*trail.Migration
	swings      map[string]*trail.Migration
	decisions   map[string]*trail.Decision
}

func newInputs(of *NodeRows) *inputs {
	in := &inputs{
		since: of.Since, from: of.From,
		placements: map[string]*trail.Placement{}, evacuations: map[string]*trail.Evacuation{}, requests: map[string]*trail.EvictionRequest{},
		migrations: map[string]*trail.Migration{}, arrivals: map[string]*trail.Migration{}, swings: map[string]*trail.Migration{},
		decisions: map[string]*trail.Decision{},
	}
	in.add(of.Inputs)
	return in
}

func (in *inputs) add(rows trail.Rows) {
	putRows(in.placements, rows.Placements, placementTable.key)
	putRows(in.evacuations, rows.Evacuations, evacuationTable.key)
	putRows(in.requests, rows.Requests, requestTable.key)
	putRows(in.migrations, rows.Migrations, migrationTable.key)
	putRows(in.arrivals, rows.Arrivals, migrationTable.key)
	putRows(in.swings, rows.Swings, migrationTable.key)
	putRows(in.decisions, rows.Decisions, decisionTable.key)
}

func (in *inputs) remove(rows trail.Rows) {
	removeRows(in.placements, rows.Placements, placementTable.key)
	removeRows(in.evacuations, rows.Evacuations, evacuationTable.key)
	removeRows(in.requests, rows.Requests, requestTable.key)
	removeRows(in.migrations, rows.Migrations, migrationTable.key)
	removeRows(in.arrivals, rows.Arrivals, migrationTable.key)
	removeRows(in.swings, rows.Swings, migrationTable.key)
	removeRows(in.decisions, rows.Decisions, decisionTable.key)
}

func putRows[R any](all map[string]*R, rows []*R, key func(*R) string) {
	for _, r := range rows {
		all[key(r)] = r
	}
}

func removeRows[R any](all map[string]*R, rows []*R, key func(*R) string) {
	for _, r := range rows {
		delete(all, key(r))
	}
}

// buildRows returns all inputs; a node sorts them itself.
func (in *inputs) buildRows() trail.Rows {
	return trail.Rows{
		Since: in.from, Placements: listRows(in.placements), Evacuations: listRows(in.evacuations), Requests: listRows(in.requests),
		Migrations: listRows(in.migrations), Arrivals: listRows(in.arrivals), Swings: listRows(in.swings), Decisions: listRows(in.decisions),
	}
}

func listRows[R any](all map[string]*R) []*R {
	out := make([]*R, 0, len(all))
	for _, r := range all {
		out = append(out, r)
	}
	return out
}

// estimateSize returns about how many bytes the inputs take.
func (in *inputs) estimateSize() int {
	return rowShare * (len(in.placements) + len(in.evacuations) + len(in.requests) + len(in.migrations) + len(in.arrivals) + len(in.swings) + len(in.decisions))
}

// updateInputs notes how the rows changed that nodes, and the cluster as a whole, are derived from, and marks these as dirty.
func (t *tick) updateInputs(was, is map[trail.Subject]trail.Rows) {
	for s := range was {
		if _, both := is[s]; !both {
			t.updateInputsOf(s, was[s], trail.Rows{})
		}
	}
	for s := range is {
		t.updateInputsOf(s, was[s], is[s])
	}
}

func (t *tick) updateInputsOf(s trail.Subject, was, is trail.Rows) {
	t.touched[s] = append(t.touched[s], change{was, is})
	if w := t.c.windows[s]; w != nil && w.node != nil {
		w.node.remove(was)
		w.node.add(is)
	}
	if since, changed := changedSince(was, is); changed {
		t.nodes.add(s, since)
	}
}

// change is how the inputs of a node changed.
type change struct{ was, is trail.Rows }

// changedSince reports whether rows differ in what matters to a node, and since when: since what they are about began or, where only the end
// of a placement changed, since that.
func changedSince(was, is trail.Rows) (since time.Time, changed bool) {
	add := func(at time.Time, differ bool) {
		if differ && (!changed || at.Before(since)) {
			since, changed = at, true
		}
	}
	add(differSince(was.Evacuations, is.Evacuations, &evacuationTable))
	add(differSince(was.Requests, is.Requests, &requestTable))
	add(differSince(was.Migrations, is.Migrations, &migrationTable))
	add(differSince(was.Arrivals, is.Arrivals, &migrationTable))
	add(differSince(was.Swings, is.Swings, &migrationTable))
	add(differSince(was.Decisions, is.Decisions, &decisionTable))
	withoutEnd := func(p *trail.Placement) *trail.Placement {
		short := *p
		short.ToAt, short.LeftBy, short.EndedBy, short.EndedRequester, short.EndedRequesterClass, short.EndedDetail, short.TerminatingSince =
			time.Time{}, "", "", "", "", "", time.Time{}
		return &short
	}
	before := map[string]*trail.Placement{}
	putRows(before, was.Placements, placementTable.key)
	for _, p := range is.Placements {
		old := before[p.ID.String()]
		delete(before, p.ID.String())
		switch {
		case old == nil:
			add(p.FromAt, true)
		case isSameRow(old, p):
		case isSameRow(withoutEnd(old), withoutEnd(p)):
			add(earliestEnd(old.ToAt, p.ToAt), true)
		default:
			add(minTime(old.FromAt, p.FromAt), true)
		}
	}
	for _, old := range before {
		add(old.FromAt, true)
	}
	return since, changed
}

// differSince reports whether rows of one table differ, and since when.
func differSince[R trail.Row](was, is []*R, t *table[R]) (since time.Time, differ bool) {
	add := func(at time.Time) {
		if !differ || at.Before(since) {
			since, differ = at, true
		}
	}
	before := map[string]*R{}
	putRows(before, was, t.key)
	for _, r := range is {
		old := before[t.key(r)]
		delete(before, t.key(r))
		if old == nil || !isSameRow(old, r) {
			add(t.begun(r))
			if old != nil {
				add(t.begun(old))
			}
		}
	}
	for _, old := range before {
		add(t.begun(old))
	}
	return since, differ
}

// isSameRow reports whether two rows are written alike.
func isSameRow(a, b any) bool {
	if reflect.DeepEqual(a, b) {
		return true
	}
	x, errX := json.Marshal(a)
	y, errY := json.Marshal(b)
	return errX == nil && errY == nil && bytes.Equal(x, y)
}

func minTime(a, b time.Time) time.Time {
	if b.Before(a) {
		return b
	}
	return a
}

// earliestEnd returns the earlier of two ends; zero is none.
func earliestEnd(a, b time.Time) time.Time {
	switch {
	case a.IsZero():
		return b
	case b.IsZero():
		return a
	}
	return minTime(a, b)
}

// deriveNodes derives nodes, and the cluster as a whole, from the rows of the VMs that are about them.
func (t *tick) deriveNodes(ctx context.Context, dirty dirtyMarks) error {
	if len(dirty) == 0 {
		return nil
	}
	wants := dirty.listWants()
	facts := dirtyMarks{}
	for _, w := range wants {
		facts.add(w.Subject, farFuture)
	}
	windows, err := t.c.loadWindows(ctx, facts.listWants())
	if err != nil {
		return err
	}
	if err := t.loadNodeRows(ctx, wants); err != nil {
		return err
	}
	first := farFuture
	for _, w := range windows {
		first = minTime(first, w.node.from)
	}
	rules := dirtyMarks{}
	for _, s := range trail.RuleSubjects() {
		if since := first; since.IsZero() {
			rules.add(s, since)
		} else {
			rules.add(s, since.Add(-2*t.c.lookback))
		}
	}
	if _, err := t.c.loadWindows(ctx, rules.listWants()); err != nil {
		return err
	}
	t.settings = t.settingsEnv()
	whole := dirtyMarks{}
	for _, w := range windows {
		if t.deriveNode(w) {
			whole.add(w.Subject, time.Time{})
		}
	}
	return t.deriveNodes(ctx, whole)
}

// loadNodeRows loads what nodes are derived from, complete for changes since the times wanted.
func (t *tick) loadNodeRows(ctx context.Context, wants []Want) error {
	var missing []NodeWant
	for _, want := range wants {
		w := t.c.windows[want.Subject]
		want.Since = minDueTime(want.Since, w.Due)
		if w.node == nil || want.Since.Before(w.node.since) {
			missing = append(missing, NodeWant{want, w.Facts, t.batch.Thresholds.SwingReach()})
		}
	}
	if len(missing) == 0 {
		return nil
	}
	rows, err := t.c.source.NodeRows(ctx, missing)
	if err != nil {
		return err
	}
	for _, r := range rows {
		w := t.c.windows[r.Subject]
		in := newInputs(r)
		for _, c := range t.touched[r.Subject] { // the Source has them as they were before
			in.remove(c.was)
			in.add(c.is)
		}
		w.size += in.estimateSize()
		t.c.read += in.estimateSize()
		w.node, w.Rows, w.ties, w.FrozenTo = in, r.Rows, tiesOf(r.Rows.Timeline), r.FrozenTo
		w.read = w.size
	}
	return nil
}

// deriveNode derives one node from its inputs. It reports whether that has to be done of its whole history: where a drain is none any more, the one
// before it is reported again.
func (t *tick) deriveNode(w *Window) (whole bool) {
	if t.batch.LeftOut[w.Subject] {
		return false
	}
	d := &derivation{env: t.envOf(w), from: w.node.from}
	rows := w.node.buildRows()
	if w.Subject == trail.ClusterSubject && !t.limitsTotal() {
		rows.Evacuations = nil
	}
	d.env.Around(w.Subject, rows)
	var err error
	if d.rows, err = t.deriveRows(w, d.env); err != nil {
		t.markFailed(w, err)
		return false
	}
	d.from = maxTime(d.from, w.FrozenTo)
	if len(d.rows.Drains) == 0 && len(w.Rows.Drains) > 0 && !w.node.from.IsZero() {
		return true
	}
	t.applyDerivation(w, d)
	return false
}

// limitsTotal reports whether rules in force bound how many VMs the descheduler may evict from all nodes together.
func (t *tick) limitsTotal() bool {
	var rules []trail.Fact
	for _, s := range trail.RuleSubjects() {
		if w := t.c.windows[s]; w != nil {
			rules = append(rules, w.Facts...)
		}
	}
	return trail.LimitsTotal(rules)
}
