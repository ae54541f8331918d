package fold

import (
	"context"
	"slices"
	"time"

	"github.com/evictrail/evictrail/trail"
)

// isCompleteSince reports whether a window is complete for changes since a time.
func (w *Window) isCompleteSince(since time.Time) bool { return !since.Before(w.Since) }

// minDueTime returns the earlier of a time and when something is due; zero is never due.
func minDueTime(at, due time.Time) time.Time {
	if due.IsZero() {
		return at
	}
	return minTime(at, due)
}

// view is what the facts of a window, and the requests about it, say of what surrounds it. It is of as many of them as it counts: there are never fewer, or others.
type view struct {
	count  int
	around []trail.Subject                // whose facts its derivation reads (trail.EnvSubjects)
	pods   []trail.Subject                // of a VM
	lives  map[string]MigrationLife       // of a VM: migrations that a user may have created or deleted
	ofNode []trail.Fact                   // of a node: what says something of VMs, in the order of times
	asked  map[trail.Subject][]trail.Fact // of a VM: requests, by what they are about, in the order of times
}

// viewFacts returns the view of the facts that the window has now.
func (w *Window) viewFacts() *view {
	if w.viewed != nil && w.viewed.count == len(w.Facts)+len(w.asked) {
		return w.viewed
	}
	v := &view{count: len(w.Facts) + len(w.asked), around: trail.EnvSubjects(w.Facts), asked: trail.BySubject(trail.SortFacts(w.asked))}
	switch w.Subject.Kind {
	case trail.SubjectVMI:
		v.pods = podsOf(w.Facts)
		if slices.ContainsFunc(v.around, func(s trail.Subject) bool { return s.Kind == trail.SubjectNamespace }) {
			v.lives = livesOf(w.Facts)
		}
	case trail.SubjectNode:
		v.ofNode = slices.DeleteFunc(trail.SortFacts(w.Facts), func(f trail.Fact) bool { return f.Kind == trail.KindBlocksObserved })
	default:
	}
	w.viewed = v
	return v
}

// selectMissing returns those of some facts that a window does not have yet: all where the first of them was recorded in a later version of its subject.
func (w *Window) selectMissing(facts []trail.Fact, first int64) []trail.Fact {
	if first > w.Version {
		return facts
	}
	known := make(map[trail.FactID]bool, len(w.Facts))
	for i := range w.Facts {
		known[w.Facts[i].ID] = true
	}
	return slices.DeleteFunc(slices.Clone(facts), func(f trail.Fact) bool { return known[f.ID] })
}

// addFacts appends facts that a window does not have yet.
func (w *Window) addFacts(facts []trail.Fact) {
	w.Facts = append(w.Facts, facts...)
	for i := range facts {
		w.size += facts[i].Size()
	}
}

// addRequestFacts appends requests about the pods and migrations of a VM, each once. Others may have the same ID (trail.SortFacts).
func (w *Window) addRequestFacts(facts []trail.Fact) {
	for i := range facts {
		if !slices.ContainsFunc(w.asked, func(f trail.Fact) bool { return f.ID == facts[i].ID && f.OccurredAt.Equal(facts[i].OccurredAt) }) {
			w.asked = append(w.asked, facts[i])
			w.size += facts[i].Size()
		}
	}
}

// factsSince returns the facts of a window that occurred since a time.
func (w *Window) factsSince(at time.Time) []trail.Fact {
	var out []trail.Fact
	for i := range w.Facts {
		if !w.Facts[i].OccurredAt.Before(at) {
			out = append(out, w.Facts[i])
		}
	}
	return out
}

// newWindow returns the window of a subject of which nothing is known.
func newWindow(of trail.Subject, frozenTo time.Time) *Window {
	w := &Window{Subject: of, FrozenTo: frozenTo, Frozen: map[trail.Bounce]int{}}
	w.dropRequests()
	return w
}

// leaveEndedPods drops from a window of a VM, with the requests about it, what it knows of pods that had ended before its facts begin, of which there is one for each move before
// KubeVirt v1.9: of these nothing is said any more. Something may be later: then the window is loaded again (isAbout). The pod that ended last stays, as it says
// when a VMI was left without one.
func (w *Window) leaveEndedPods() {
	type pod struct {
		of    trail.Subject
		vmi   string
		ended time.Time
		said  bool // something since the facts begin
	}
	pods, last := map[string]*pod{}, map[string]time.Time{}
	for i := range w.Facts {
		f := &w.Facts[i]
		d, ok := f.Detail.(*trail.PodDetail)
		if !ok {
			continue
		}
		p := pods[f.Object.UID]
		if p == nil {
			p = &pod{of: podSubject(f, d)}
			p.said = len(w.viewFacts().asked[p.of]) > 0
			pods[f.Object.UID] = p
		}
		p.said = p.said || !f.OccurredAt.Before(w.FactsFrom)
		if f.VMIUID != "" {
			p.vmi = f.VMIUID
		}
		if f.Reason == trail.ReasonPodEnded {
			p.ended = f.OccurredAt
		}
	}
	for _, p := range pods {
		last[p.vmi] = maxTime(last[p.vmi], p.ended)
	}
	w.left = map[trail.Subject]bool{}
	for uid, p := range pods {
		if p.said || p.ended.IsZero() || p.ended.Equal(last[p.vmi]) {
			delete(pods, uid)
		} else {
			w.left[p.of] = true
		}
	}
	kept := make([]trail.Fact, 0, len(w.Facts)-len(pods))
	for i := range w.Facts {
		if f := &w.Facts[i]; pods[f.Object.UID] == nil {
			kept = append(kept, *f)
		} else {
			w.size -= f.Size()
		}
	}
	w.Facts, w.read, w.viewed = kept, w.size, nil
}

// isAbout reports whether something is said of a pod that was left out of a window.
func (w *Window) isAbout(pods []trail.Subject) bool {
	return slices.ContainsFunc(pods, func(pod trail.Subject) bool { return w.left[pod] })
}

// dropRequests drops the requests about a VM: they are asked for again.
func (w *Window) dropRequests() {
	w.viewed, w.asked, w.knows, w.seen = nil, nil, map[trail.Subject]bool{}, map[string]bool{}
}

// rowShare is about how many bytes a row takes in memory.
const rowShare = 512

// initLoaded prepares a window that a Source returned.
func (w *Window) initLoaded() {
	w.size = 0
	for i := range w.Facts {
		w.size += w.Facts[i].Size()
	}
	w.dropRequests()
	w.ties = tiesOf(w.Rows.Timeline)
	w.size += rowShare * w.Rows.CountRows()
	w.read = w.size
}

// isOutgrown reports whether a window has so much more in it than when it was loaded that it is worth loading it again, as most of what it
// holds has ended by now.
func (w *Window) isOutgrown() bool {
	const worthwhile = 256 << 10
	return w.size > 2*w.read+worthwhile
}

// loadWindows brings windows into memory, complete for changes since the times wanted, and returns them in the order in which they are wanted.
func (c *Cluster) loadWindows(ctx context.Context, wants []Want) ([]*Window, error) {
	var missing []Want
	tooShort := false
	for _, want := range wants {
		w := c.windows[want.Subject]
		if w != nil {
			want.Since = minDueTime(want.Since, w.Due)
		}
		switch {
		case w != nil && w.isCompleteSince(want.Since):
		case w != nil && w.derived == c.fold: // the Source has its rows from before
			c.deeper[want.Subject], tooShort = want.Since, true
		default:
			if since, known := c.deeper[want.Subject]; known && since.Before(want.Since) {
				want.Since = since
			}
			missing = append(missing, want)
		}
	}
	if tooShort {
		return nil, errTooShort
	}
	if len(missing) > 0 {
		windows, err := c.source.Windows(ctx, missing, c.lookback)
		if err != nil {
			return nil, err
		}
		for _, w := range windows {
			w.initLoaded()
			c.windows[w.Subject] = w
			c.read += w.size
		}
	}
	out := make([]*Window, len(wants))
	for i, want := range wants {
		out[i] = c.windows[want.Subject]
		out[i].used = c.fold
	}
	return out, nil
}

// evictWindows drops windows that have outgrown themselves, and of the others as many as it takes for what is left to take no more than the bound: any of those that
// this Fold did not use, then any. If those went that were used longest ago, a storm that goes round a few more VMs than fit would find none of them.
func (c *Cluster) evictWindows() {
	c.size = 0
	for s, w := range c.windows {
		if w.isOutgrown() {
			delete(c.windows, s)
		} else {
			c.size += w.size
		}
	}
	for _, used := range []bool{false, true} {
		for s, w := range c.windows { // in no order
			if c.size <= c.bound {
				return
			}
			if (w.used == c.fold) == used {
				delete(c.windows, s)
				c.size -= w.size
			}
		}
	}
}
