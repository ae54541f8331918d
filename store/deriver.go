package store

import (
	"context"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/evictrail/evictrail/trail"
	"github.com/evictrail/evictrail/trail/fold"
)

// windowBytes is how many bytes of history a deriver holds in memory, about.
const windowBytes = 64 << 20

// deriver folds what is recorded of one cluster into rows, in a term. Work waits in one queue: subjects that are dirty, which are marked in the database (subjects.dirty_since)
// and handed over in memory where this process recorded them, and those that are due (subjects.next_at).
type deriver struct {
	store   *Store
	cluster string
	term    int64
	fold    *fold.Cluster

	mu     sync.Mutex
	handed map[trail.Subject]fold.Dirty // what this process recorded since the last tick
	facts  int                          // how many facts that are

	thresholds trail.Thresholds
	now        time.Time // up to which the cluster was seen
	due        map[trail.Subject]time.Time
	began      bool
	portion    int       // subjects that are derived at once
	deferred   time.Time // when nodes were first left to a later tick; zero: none are
}

func (s *Store) newDeriver(cluster string, term int64) *deriver {
	c := fold.New(loader{s, cluster}, windowBytes)
	c.Lookback = reachOf
	return &deriver{
		store: s, cluster: cluster, term: term, fold: c,
		handed: map[trail.Subject]fold.Dirty{}, thresholds: trail.DefaultThresholds(), due: map[trail.Subject]time.Time{}, portion: leastPortion,
	}
}

const (
	handedMost   = 20_000 // facts that wait in memory; what is more is read from the database
	leastPortion = 32
	mostPortion  = 1024
	deferLongest = 10 * time.Second // nodes wait for VMs at the most
	tickLong     = 200 * time.Millisecond
)

// hand hands over what was recorded.
func (d *deriver) hand(r recording) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for i := range r.facts {
		f, version := r.facts[i], r.versions[i]
		h, known := d.handed[f.Subject]
		switch {
		case !known:
			h = fold.Dirty{Subject: f.Subject, Since: f.OccurredAt, Version: version, First: version}
		case version > h.Version+1 || version > h.Version && h.Facts == nil: // another replica recorded facts in between
			h.Facts, h.Version = nil, version
		}
		if d.facts++; d.facts > handedMost {
			h.Facts = nil
		} else if !known || h.Facts != nil {
			h.Facts = append(h.Facts, f)
		}
		h.Version = max(h.Version, version)
		if f.OccurredAt.Before(h.Since) {
			h.Since = f.OccurredAt
		}
		d.handed[f.Subject] = h
		d.see(f.ObservedAt)
	}
}

// see notes that the cluster was seen up to a time.
func (d *deriver) see(at time.Time) {
	if at.After(d.now) {
		d.now = at
	}
}

const (
	dirtyQuery = `
SELECT subject, dirty_since, version
FROM evictrail.subjects AS s
WHERE cluster = @cluster
  AND dirty_since IS NOT NULL
  AND NOT EXISTS (SELECT FROM evictrail.derive_failures AS f WHERE f.cluster = s.cluster AND f.subject = s.subject AND f.retry_at > now())
ORDER BY subject LIKE 'node:%' OR subject LIKE 'cluster:%', dirty_since, subject
LIMIT @limit`
	dueSubjectsQuery = `
SELECT subject, next_at
FROM evictrail.subjects
WHERE cluster = @cluster
  AND next_at IS NOT NULL`
)

// poll reads what is dirty, the first ones, and how far the cluster was seen; the first time also what is due when.
func (d *deriver) poll(ctx context.Context) ([]fold.Dirty, error) {
	var out []fold.Dirty
	var alive time.Time
	var batch pgx.Batch
	batch.Queue(clusterQuery, pgx.StrictNamedArgs{"cluster": d.cluster}).Query(func(rows pgx.Rows) error {
		var thresholds *trail.Thresholds
		_, err := pgx.ForEachRow(rows, []any{&alive, &thresholds}, func() error { return nil })
		if thresholds != nil {
			d.thresholds = *thresholds
		}
		return err
	})
	batch.Queue(dirtyQuery, pgx.StrictNamedArgs{"cluster": d.cluster, "limit": d.portion}).Query(each(func(row pgx.CollectableRow) error {
		var subject string
		var mark fold.Dirty
		if err := row.Scan(&subject, &mark.Since, &mark.Version); err != nil {
			return err
		}
		var err error
		mark.Subject, err = trail.ParseSubject(subject)
		if mark.Since = mark.Since.UTC(); !mark.Since.After(beginning) {
			mark.Since = time.Time{}
		}
		out = append(out, mark)
		return err
	}))
	if !d.began {
		batch.Queue(dueSubjectsQuery, pgx.StrictNamedArgs{"cluster": d.cluster}).Query(each(func(row pgx.CollectableRow) error {
			var subject string
			var at time.Time
			if err := row.Scan(&subject, &at); err != nil {
				return err
			}
			s, err := trail.ParseSubject(subject)
			d.due[s] = at.UTC()
			return err
		}))
	}
	if err := d.store.pool.SendBatch(ctx, &batch).Close(); err != nil {
		return nil, explain("read what is to be derived", err)
	}
	d.began = true
	d.mu.Lock()
	defer d.mu.Unlock()
	d.see(alive.UTC())
	return out, nil
}

// tick derives what waits, a portion of it where that is much. It returns how many subjects that were, and what changed; more reports whether something is left.
func (d *deriver) tick(ctx context.Context) (count int, news trail.News, more bool, err error) {
	marks, err := d.poll(ctx)
	if err != nil {
		return 0, news, false, err
	}
	batch := d.batch(marks)
	more = len(marks) >= d.portion
	if len(batch.Dirty) == 0 {
		return 0, news, more, nil
	}
	batch.DeferNodes = d.deferNodes(more)
	began := time.Now()
	changes, err := d.fold.Fold(ctx, batch)
	if err == nil {
		err = d.store.flush(ctx, d.cluster, d.term, changes)
	}
	if err != nil {
		d.fold.Reset()
		d.began = false
		return 0, news, false, err
	}
	if took := time.Since(began); took > tickLong {
		d.portion = max(d.portion/2, leastPortion)
	} else if more {
		d.portion = min(2*d.portion, mostPortion)
	}
	for s, at := range changes.Due {
		if at.IsZero() {
			delete(d.due, s)
		} else {
			d.due[s] = at
		}
	}
	return len(changes.Due), changes.News, more || len(changes.Deferred) > 0, nil
}

// deferNodes reports whether nodes are left to a later tick: while many VMs wait, but not for long.
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

// batch puts together what is to be folded.
func (d *deriver) batch(marks []fold.Dirty) fold.Batch {
	d.mu.Lock()
	defer d.mu.Unlock()
	b := fold.Batch{Now: d.now, Thresholds: d.thresholds}
	in := map[trail.Subject]bool{}
	for _, m := range marks {
		if h, handed := d.handed[m.Subject]; handed && h.Version == m.Version && !m.Since.Before(h.Since) {
			m = h
		}
		delete(d.handed, m.Subject)
		b.Dirty, in[m.Subject] = append(b.Dirty, m), true
	}
	for s, at := range d.due {
		if !in[s] && !at.After(d.now) {
			b.Dirty, in[s] = append(b.Dirty, fold.Dirty{Subject: s, Since: at, Due: true}), true
		}
	}
	if len(d.handed) == 0 {
		d.facts = 0
	}
	slices.SortFunc(b.Dirty, func(x, y fold.Dirty) int { return strings.Compare(x.Subject.String(), y.Subject.String()) })
	return b
}

// catchUp derives until nothing is left. done, which may be nil, is called with how many subjects were derived so far.
func (d *deriver) catchUp(ctx context.Context, done func(subjects int)) (count int, news trail.News, err error) {
	for {
		n, brought, more, err := d.tick(ctx)
		news.Add(brought)
		if count += n; err != nil || n == 0 && !more {
			return count, news, err
		}
		if done != nil {
			done(count)
		}
	}
}
