package store

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/evictrail/evictrail/store/load"
	"github.com/evictrail/evictrail/store/pg"
	"github.com/evictrail/evictrail/store/tables"
	"github.com/evictrail/evictrail/trail"
	"github.com/evictrail/evictrail/trail/fold"
)

// DefaultWindowMemory is how many bytes of history are held in memory to derive a cluster, about, where nothing else is set.
const DefaultWindowMemory = 64 << 20

// deriver folds what is recorded of one cluster into rows, in a term. Work waits in one queue: subjects that are dirty, which are marked in the database (subjects.dirty_since)
// and handed over in memory where this process recorded them, and those that are due (subjects.next_at).
type deriver struct {
	store   *Store
	cluster string
	term    int64
	fold    *fold.Cluster
	held    atomic.Int64 // bytes of history in memory after the last tick, about

	mu     sync.Mutex
	handed map[trail.Subject]fold.Dirty // what this process recorded since the last tick
	facts  int                          // how many facts that are
	woken  chan struct{}                // something was handed over since the last tick began
	rest   time.Duration                // after the last tick

	using      sync.Mutex // held by a tool while it derives
	ticking    sync.Mutex // held in a tick
	thresholds trail.Thresholds
	now        time.Time                   // up to which the cluster was seen
	due        map[trail.Subject]time.Time // when time alone changes the rows of subjects
	failing    map[trail.Subject]bool      // that could not be derived; true: they are left out for now
	left       bool                        // something was left to a later tick
	began      bool                        // due is what the database has
	frozenTo   *time.Time                  // facts from before were dropped when it was last looked
	portion    int                         // subjects that are derived at once, pods aside
	deferred   time.Time                   // when nodes were first left to a later tick; zero: none are
}

func (s *Store) newDeriver(cluster string, term int64) *deriver {
	c := fold.New(load.New(s.DB, cluster), cmp.Or(s.WindowMemory, DefaultWindowMemory))
	c.Lookback, c.Derive = tables.Reach, derive
	return &deriver{
		store: s, cluster: cluster, term: term, fold: c,
		handed: map[trail.Subject]fold.Dirty{}, woken: make(chan struct{}, 1), thresholds: trail.DefaultThresholds(), portion: firstPortion,
	}
}

// derive is trail.Derive; tests have one that panics.
var derive = trail.Derive

const (
	handedMost   = 50_000           // facts that wait in memory; what is more is read from the database
	mostOthers   = 100              // VMs that are derived in a tick though they are not dirty
	deferLongest = 10 * time.Second // nodes wait for VMs at the most
)

// How many subjects are derived at once: as many as are derived in a short time and do not need much memory. Pods do not count: little is known of each.
const (
	leastPortion = 4
	firstPortion = 32
	mostPortion  = 1024 // also of all that is derived at once
	tickLong     = 200 * time.Millisecond
	tickBytes    = DefaultWindowMemory / 8
)

// portionAfter returns how many subjects are derived at once after a tick with so many of them.
func portionAfter(portion int, took time.Duration, bytes int, more bool) int {
	switch {
	case bytes > tickBytes || took > tickLong && portion > firstPortion: // below that what each tick does counts for more than what it does for each of them
		return max(portion/2, leastPortion)
	case more && bytes < tickBytes/2 && took < tickLong:
		return min(2*portion, mostPortion)
	}
	return portion
}

// restAfter returns how long to rest after a tick that derived some subjects, and left more or nothing. Where nothing is found again and again it is longer.
func (d *deriver) restAfter(count int, more bool) time.Duration {
	d.mu.Lock()
	defer d.mu.Unlock()
	switch {
	case more:
		d.rest = 0
	case count > 0:
		d.rest = tickEvery
	default:
		d.rest = min(max(2*d.rest, tickEvery), idleLongest)
	}
	return d.rest
}

// addRecording hands over what was recorded.
func (d *deriver) addRecording(r recording) {
	d.mu.Lock()
	defer d.mu.Unlock()
	select {
	case d.woken <- struct{}{}:
	default:
	}
	for i := range r.facts {
		f := r.facts[i]
		version := r.versions[pg.CleanText(f.Subject.String())]
		h, known := d.handed[f.Subject]
		keep := !known || h.Facts != nil && version <= h.Version+1 // otherwise another replica recorded facts in between
		if !known {
			h = fold.Dirty{Subject: f.Subject, Since: f.OccurredAt, First: version}
		}
		d.facts -= len(h.Facts)
		if keep && d.facts < handedMost && !r.replaced[f.ID] {
			h.Facts = append(h.Facts, f)
		} else { // it is read as it is stored
			h.Facts = nil
		}
		d.facts += len(h.Facts)
		h.Version = max(h.Version, version)
		if f.OccurredAt.Before(h.Since) {
			h.Since = f.OccurredAt
		}
		d.handed[f.Subject] = h
		d.advanceNow(f.ObservedAt)
	}
}

// asOf has rows derived as of a time, or when the cluster was last seen if that is later.
func (d *deriver) asOf(at time.Time) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.now = at
}

// advanceNow notes that the cluster was seen up to a time.
func (d *deriver) advanceNow(at time.Time) {
	if at.After(d.now) {
		d.now = at
	}
}

const (
	dirtyQuery = `
SELECT subject, dirty_since, version
FROM evictrail.subjects
WHERE cluster = @cluster
  AND dirty_since IS NOT NULL
ORDER BY CASE WHEN subject LIKE 'vmi:%' THEN 1 WHEN subject LIKE 'node:%' OR subject LIKE 'cluster:%' THEN 2 ELSE 0 END, dirty_since, subject
LIMIT @limit`
	dueSubjectsQuery = `
SELECT subject, next_at
FROM evictrail.subjects
WHERE cluster = @cluster
  AND next_at IS NOT NULL`
)

// loadDirty reads what is dirty, the first ones, how far the cluster was seen, and what could not be derived; the first time also what is due when.
func (d *deriver) loadDirty(ctx context.Context) ([]fold.Dirty, error) {
	var out []fold.Dirty
	var alive time.Time
	var frozenTo *time.Time
	failing := map[trail.Subject]bool{}
	var batch pgx.Batch
	batch.Queue(tables.ClusterQuery, pgx.StrictNamedArgs{"cluster": d.cluster}).Query(func(rows pgx.Rows) error {
		var thresholds *trail.Thresholds
		_, err := pgx.ForEachRow(rows, []any{&alive, &thresholds, &frozenTo}, func() error { return nil })
		if thresholds != nil {
			d.thresholds = *thresholds
		}
		return err
	})
	batch.Queue(dirtyQuery, pgx.StrictNamedArgs{"cluster": d.cluster, "limit": mostPortion}).Query(eachSubject(func(s trail.Subject, row pgx.CollectableRow) error {
		mark := fold.Dirty{Subject: s}
		err := row.Scan(nil, &mark.Since, &mark.Version)
		if mark.Since = mark.Since.UTC(); !mark.Since.After(pg.Beginning) {
			mark.Since = time.Time{}
		}
		out = append(out, mark)
		return err
	}))
	batch.Queue(failuresQuery, pgx.StrictNamedArgs{"cluster": d.cluster}).Query(eachSubject(func(s trail.Subject, row pgx.CollectableRow) error {
		var leftOut bool
		err := row.Scan(nil, &leftOut)
		failing[s] = leftOut
		return err
	}))
	if !d.began {
		d.due = map[trail.Subject]time.Time{}
		batch.Queue(dueSubjectsQuery, pgx.StrictNamedArgs{"cluster": d.cluster}).Query(eachSubject(func(s trail.Subject, row pgx.CollectableRow) error {
			var at time.Time
			err := row.Scan(nil, &at)
			d.due[s] = at.UTC()
			return err
		}))
	}
	if err := d.store.DB.SendBatch(ctx, &batch).Close(); err != nil {
		return nil, pg.Explain("read what is to be derived", err)
	}
	if !sameTime(d.frozenTo, frozenTo) { // what is in memory has facts that were dropped
		d.fold.Reset()
	}
	d.began, d.failing, d.frozenTo = true, failing, frozenTo
	d.mu.Lock()
	defer d.mu.Unlock()
	d.advanceNow(alive.UTC())
	return out, nil
}

// sameTime reports whether two times, or none, are the same.
func sameTime(a, b *time.Time) bool { return pg.TimeOrZero(a).Equal(pg.TimeOrZero(b)) }

// eachSubject reads rows whose first column is a subject.
func eachSubject(take func(trail.Subject, pgx.CollectableRow) error) func(pgx.Rows) error {
	return pg.EachRow(func(row pgx.CollectableRow) error {
		s, err := trail.ParseSubject(string(row.RawValues()[0]))
		if err != nil {
			return err
		}
		return take(s, row)
	})
}

// deriveNextBatch derives what waits, a portion of it where that is much. It returns how many subjects that were, and what changed, also with an error; more reports whether
// something is left.
func (d *deriver) deriveNextBatch(ctx context.Context) (count int, news trail.News, more bool, err error) {
	d.ticking.Lock()
	defer d.ticking.Unlock()
	select {
	case <-d.woken:
	default:
	}
	marks, err := d.loadDirty(ctx)
	if err != nil {
		return 0, news, false, err
	}
	batch, more := d.buildBatch(marks)
	if len(batch.Dirty) == 0 {
		return 0, news, more, nil
	}
	if !d.deferNodes(more) {
		batch.Nodes = d.portion
	}
	if !more {
		batch.Others = mostOthers
	}
	began := time.Now()
	d.left = false
	news, err = d.foldAndFlush(ctx, batch)
	d.held.Store(int64(d.fold.Size()))
	if err != nil {
		return 0, news, false, err
	}
	d.portion = portionAfter(d.portion, time.Since(began), d.fold.Read(), more)
	return len(batch.Dirty), news, more || d.left, d.store.countGrown(ctx, len(batch.Dirty))
}

// foldAndFlush folds a batch and writes what that changes. What fails for what a subject is leaves that subject out.
func (d *deriver) foldAndFlush(ctx context.Context, b fold.Batch) (news trail.News, err error) {
	var changes *fold.Changes
	err = runGuarded(ctx, deriveWithin, func(ctx context.Context) (err error) {
		if changes, err = d.fold.Fold(ctx, b); err != nil {
			return err
		}
		return d.flushChanges(ctx, changes, false)
	})
	if err == nil {
		d.updateDue(changes)
		return changes.News, nil
	}
	d.resetFold()
	if ctx.Err() != nil || !pg.MayBeOfRecord(err) {
		return news, err
	}
	if changes != nil && !errors.Is(err, context.DeadlineExceeded) { // writing failed: rows by themselves
		err = runGuarded(ctx, deriveWithin, func(ctx context.Context) error { return d.flushChanges(ctx, changes, true) })
		if err == nil || ctx.Err() != nil || !pg.MayBeOfRecord(err) {
			return changes.News, err
		}
	}
	return d.isolateFailure(ctx, b, err)
}

// updateDue notes when the subjects that were derived are due again.
func (d *deriver) updateDue(c *fold.Changes) {
	d.left = d.left || len(c.Deferred) > 0
	for s, at := range c.Due {
		if at.IsZero() {
			delete(d.due, s)
		} else {
			d.due[s] = at
		}
	}
	for s := range c.Failed {
		delete(d.due, s)
	}
}

// resetAll drops everything from memory, also what was handed over: the database may not have it.
func (d *deriver) resetAll() {
	d.ticking.Lock()
	defer d.ticking.Unlock()
	d.mu.Lock()
	defer d.mu.Unlock()
	clear(d.handed)
	d.facts = 0
	d.resetFold()
}

// resetFold drops what was folded from memory.
func (d *deriver) resetFold() {
	d.fold.Reset()
	d.began = false
}

// deferNodes reports whether nodes are left to a later tick: while many subjects wait, but not for long.
func (d *deriver) deferNodes(more bool) bool {
	switch {
	case !more:
		d.deferred = time.Time{}
		return false
	case d.deferred.IsZero():
		d.deferred = time.Now()
	case time.Since(d.deferred) > deferLongest:
		d.deferred = time.Now()
		return false
	}
	return true
}

// buildBatch puts together what is to be folded. more reports whether something is left.
func (d *deriver) buildBatch(marks []fold.Dirty) (b fold.Batch, more bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	room := d.portion
	fits := func(s trail.Subject) bool {
		if s.Kind != trail.SubjectPod {
			room--
		}
		return room >= 0
	}
	b = fold.Batch{Now: d.now, FrozenTo: pg.TimeOrZero(d.frozenTo), Thresholds: d.thresholds, LeftOut: map[trail.Subject]bool{}}
	in := map[trail.Subject]bool{}
	more = len(marks) == mostPortion
	for _, m := range marks {
		if !fits(m.Subject) {
			more = true
			break
		}
		if h, handed := d.handed[m.Subject]; handed {
			if m.Since.Before(h.Since) {
				h.Since = m.Since
			}
			m = h
		}
		delete(d.handed, m.Subject)
		d.facts -= len(m.Facts)
		b.Dirty, in[m.Subject] = append(b.Dirty, m), true
	}
	for s, leftOut := range d.failing {
		if leftOut {
			b.LeftOut[s] = true
		} else if !in[s] {
			b.Dirty, in[s] = append(b.Dirty, fold.Dirty{Subject: s, Due: true}), true
		}
	}
	for s, at := range d.due {
		switch {
		case in[s] || at.After(d.now) || b.LeftOut[s]:
		case fits(s):
			b.Dirty, in[s] = append(b.Dirty, fold.Dirty{Subject: s, Since: at, Due: true}), true
		default:
			more = true
		}
	}
	slices.SortFunc(b.Dirty, func(x, y fold.Dirty) int { return strings.Compare(x.Subject.String(), y.Subject.String()) })
	return b, more
}
