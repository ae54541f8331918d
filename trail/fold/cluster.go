package fold

import (
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/evictrail/evictrail/trail"
)

// Cluster folds the facts of one cluster into rows. One goroutine uses it.
type Cluster struct {
	// Lookback returns how far what happens may depend on what had ended before, by the rules in force and the thresholds: trail.Reach. Tests have shorter
	// histories.
	Lookback func(rules []trail.Fact, thresholds trail.Thresholds) time.Duration
	// Derive is trail.Derive. Tests have one that panics.
	Derive func(of trail.Subject, facts []trail.Fact, env *trail.Env, now time.Time) trail.Derived

	source   Source
	bound    int // bytes that windows may take
	size     int // bytes that they take, about
	read     int // bytes that were loaded in the last Fold, about
	fold     int64
	windows  map[trail.Subject]*Window
	queue    queue
	lookback time.Duration               // how far what happens may depend on what had ended before: trail.Reach of the rules and thresholds
	deeper   map[trail.Subject]time.Time // windows that have to reach back further than was wanted, in the Fold that goes on
}

// New returns a Cluster without anything in memory. bound is how many bytes its windows may take, about.
func New(source Source, bound int) *Cluster {
	c := &Cluster{Lookback: trail.Reach, Derive: trail.Derive, source: source, bound: bound}
	c.Reset()
	return c
}

// Reset drops everything from memory: what is needed again is loaded.
func (c *Cluster) Reset() {
	c.windows, c.queue, c.size = map[trail.Subject]*Window{}, newQueue(), 0
}

// Size returns about how many bytes the windows in memory take.
func (c *Cluster) Size() int { return c.size }

// Read returns about how many bytes were loaded in the last Fold.
func (c *Cluster) Read() int { return c.read }

// errTooShort says that a window whose rows were changed in this Fold has to reach back further: the Fold begins again.
var errTooShort = errors.New("a window does not reach back far enough")

// Fold derives what is dirty and what depends on it, and returns what changed. With an error, which is that of the Source, and where the changes are not
// written, call Reset.
func (c *Cluster) Fold(ctx context.Context, b Batch) (*Changes, error) {
	c.deeper = map[trail.Subject]time.Time{}
	c.read = 0
	for {
		c.fold++
		t := &tick{
			c: c, batch: b, deferred: dirtyMarks{}, nodes: dirtyMarks{}, touched: map[trail.Subject][]change{}, owned: map[trail.Subject]bool{}, launched: map[trail.Subject]bool{}, derived: map[trail.Subject]bool{}, rederived: map[trail.Subject]bool{},
			changes: &Changes{
				Due: map[trail.Subject]time.Time{}, Clean: map[trail.Subject]int64{},
				Failed: map[trail.Subject]error{},
			},
		}
		err := t.run(ctx)
		switch {
		case errors.Is(err, errTooShort):
			c.undoFold(t)
			for i := range b.Dirty { // the Source has them
				b.Dirty[i].Facts = nil
			}
			continue
		case err != nil:
			return nil, err
		}
		t.changes.Deferred = t.deferred
		c.queue.dropFinished(b.Now)
		c.evictWindows()
		return t.changes, nil
	}
}

// undoFold drops from memory what a Fold changed there that begins again.
func (c *Cluster) undoFold(t *tick) {
	for s, w := range c.windows {
		if _, touched := t.touched[s]; touched || w.derived == c.fold {
			delete(c.windows, s)
		}
	}
	c.queue = newQueue()
}

// tick is one Fold.
type tick struct {
	c         *Cluster
	batch     Batch
	changes   *Changes
	deferred  dirtyMarks                 // what is left to a later Fold
	others    int                        // VMs that are derived though they were not dirty, or left to a later Fold
	nodes     dirtyMarks                 // nodes and the cluster as a whole, to be derived after the VMs
	touched   map[trail.Subject][]change // how their inputs changed
	owned     map[trail.Subject]bool     // pods that are a launcher pod of a known VM
	derived   map[trail.Subject]bool     // subjects that were derived, or failed
	launched  map[trail.Subject]bool     // launcher pods that new facts name
	rederived map[trail.Subject]bool     // subjects that are derived again whatever their facts are
	settings  *trail.Env                 // what is derived now has these rules and gaps around it (settingsEnv)
}

func (t *tick) run(ctx context.Context) error {
	rules := dirtyMarks{}
	for _, s := range trail.RuleSubjects() {
		rules.add(s, farFuture)
	}
	windows, err := t.c.loadWindows(ctx, rules.listWants())
	if err != nil {
		return err
	}
	var settings []trail.Fact
	for _, w := range windows {
		settings = append(settings, w.Facts...)
	}
	t.c.lookback = t.c.Lookback(settings, t.batch.Thresholds)
	fresh, vms, err := t.appendFacts(ctx)
	if err != nil {
		return err
	}
	if err := t.markAffected(ctx, fresh, vms); err != nil {
		return err
	}
	if err := t.deriveVMs(ctx, vms); err != nil {
		return err
	}
	owned := dirtyMarks{}
	for s := range t.owned {
		if !t.derived[s] {
			owned.add(s, time.Time{})
		}
	}
	if err := t.deriveVMs(ctx, owned); err != nil {
		return err
	}
	if err := t.deriveNodes(ctx, t.firstNodes()); err != nil {
		return err
	}
	for _, d := range t.batch.Dirty {
		if !d.Due {
			t.changes.Clean[d.Subject] = d.Version
		}
	}
	return nil
}

// appendFacts adds the new facts to the windows of their subjects. It returns those that say something new, and marks what stands for itself as dirty.
func (t *tick) appendFacts(ctx context.Context) (fresh []trail.Fact, vms dirtyMarks, err error) {
	vms = dirtyMarks{}
	load := dirtyMarks{}
	dirty := make(map[trail.Subject]Dirty, len(t.batch.Dirty))
	count := 0
	for _, d := range t.batch.Dirty {
		count += len(d.Facts)
		since := d.Since
		t.rederived[d.Subject] = since.IsZero()
		for i := range d.Facts {
			since = minTime(since, dirtySince(&d.Facts[i]))
		}
		w := t.c.windows[d.Subject]
		if !d.isComplete(w) {
			d.Facts = nil
		}
		if w != nil && d.Version > w.Version && (d.Facts == nil || d.First > w.Version+1) {
			delete(t.c.windows, d.Subject) // another replica recorded facts in between
		}
		if w != nil && len(w.left) > 0 && w.isAbout(podsOf(d.Facts)) {
			delete(t.c.windows, d.Subject)
		}
		if slices.ContainsFunc(d.Facts, func(f trail.Fact) bool { return isNodeChange(&f) }) {
			delete(t.c.windows, d.Subject) // what was asked of a node shortly before is known to the Source alone
		}
		if isNode(d.Subject) {
			t.nodes.add(d.Subject, since)
			since = farFuture
		} else if d.First == 1 && d.Facts != nil && t.c.windows[d.Subject] == nil {
			t.c.windows[d.Subject] = newWindow(d.Subject, t.batch.FrozenTo) // the Source has nothing else of it
		}
		load.add(d.Subject, since)
		dirty[d.Subject] = d
	}
	wants := load.listWants()
	windows, err := t.c.loadWindows(ctx, wants)
	if err != nil {
		return nil, nil, err
	}
	fresh = make([]trail.Fact, 0, count)
	for i, w := range windows {
		since, d := wants[i].Since, dirty[w.Subject]
		its := d.Facts
		switch {
		case its != nil && w.Version < d.Version:
			w.addFacts(w.selectMissing(its, d.First))
			w.Version = d.Version
		case its == nil && !d.Due && !d.Since.IsZero():
			its = w.factsSince(d.Since)
		}
		if !d.Due {
			w.folded = d.Version
		}
		for i := range its {
			f := &its[i]
			if hasNoEffect(f, w.Facts) {
				continue
			}
			fresh = append(fresh, *f)
			if at := dirtySince(f); isNode(w.Subject) {
				t.nodes.add(w.Subject, at)
			} else {
				since = minTime(since, at)
			}
		}
		for _, pod := range podsOf(its) {
			t.launched[pod] = true
		}
		if !isNode(w.Subject) {
			vms.add(w.Subject, since)
		}
	}
	return fresh, vms, nil
}

// markAffected marks as dirty what new facts are not of but affect.
func (t *tick) markAffected(ctx context.Context, fresh []trail.Fact, vms dirtyMarks) error {
	impact := impactOf(fresh, func(s trail.Subject) []trail.Fact {
		if w := t.c.windows[s]; w != nil {
			return w.Facts
		}
		return nil
	})
	for _, d := range t.batch.Dirty {
		if d.Subject.Kind == trail.SubjectPod && !slices.Contains(impact.Pods, d.Subject) {
			impact.addRequest(d.Since, MigrationLife{}, d.Subject)
		}
	}
	if impact.isEmpty() {
		return nil
	}
	of, err := t.c.source.Affected(ctx, impact)
	if err != nil {
		return err
	}
	for _, s := range of.VMs {
		t.markOrDeferVM(s, impact.Since, vms)
	}
	for _, s := range of.Nodes {
		t.nodes.add(s, impact.Since)
	}
	for _, s := range of.Requesters {
		t.markOrDeferVM(s, *impact.Settings, vms)
	}
	for _, s := range of.Owned {
		t.owned[s] = true
	}
	again := slices.ContainsFunc(t.batch.Dirty, func(d Dirty) bool { return d.Facts == nil && !d.Due })
	requests := slices.DeleteFunc(slices.Clone(fresh), func(f trail.Fact) bool {
		return f.Subject.Kind != trail.SubjectPod && f.Subject.Kind != trail.SubjectNamespace
	})
	for _, s := range of.Owners {
		t.markOrDeferVM(s, impact.Requested, vms)
		switch w := t.c.windows[s]; {
		case w == nil:
		case w.isAbout(impact.Pods):
			delete(t.c.windows, s)
		default:
			if again { // requests that are known may have changed: names are erased
				w.dropRequests()
			}
			w.addRequestFacts(w.filterRequests(requests))
		}
	}
	return nil
}

// firstNodes returns as many of the dirty nodes as the Batch allows, and leaves the others to a later Fold.
func (t *tick) firstNodes() dirtyMarks {
	first := dirtyMarks{}
	for _, want := range t.nodes.listWants() {
		if len(first) < t.batch.Nodes {
			first.add(want.Subject, want.Since)
		} else {
			t.deferred.add(want.Subject, want.Since)
		}
	}
	return first
}

// markOrDeferVM marks a VM as dirty that depends on what is: in this Fold, or a later one where there are many.
func (t *tick) markOrDeferVM(s trail.Subject, since time.Time, vms dirtyMarks) {
	_, dirty := vms[s]
	if !dirty {
		t.others++
	}
	if dirty || t.others <= t.batch.Others {
		vms.add(s, since)
	} else {
		t.deferred.add(s, since)
	}
}

// isComplete reports whether the Facts of a mark are all that was recorded of a subject since its window, if there is one, was folded. They are not where another
// writer recorded facts in between: these are in the Source alone.
func (d *Dirty) isComplete(w *Window) bool {
	return d.First == 1 || w != nil && d.First == w.folded+1
}

// filterRequests returns those of some requests that are about a pod or a migration of a VM.
func (w *Window) filterRequests(requests []trail.Fact) []trail.Fact {
	var out []trail.Fact
	var lives map[string]MigrationLife
	for i := range requests {
		f := &requests[i]
		concerns := w.knows[f.Subject]
		if f.Subject.Kind == trail.SubjectNamespace {
			if lives == nil {
				lives = livesOf(w.Facts)
			}
			for _, l := range lives {
				concerns = concerns || l.Namespace == f.Namespace && (f.Migration == l.Name || f.Migration == "")
			}
		}
		if concerns {
			out = append(out, *f)
		}
	}
	return out
}

func isNode(s trail.Subject) bool {
	return s.Kind == trail.SubjectNode || s.Kind == trail.SubjectCluster
}

func compareSubjects(a, b trail.Subject) int { return strings.Compare(a.String(), b.String()) }
