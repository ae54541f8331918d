package store

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/evictrail/evictrail/trail"
)

const markStaleQuery = `
INSERT INTO evictrail.subjects AS s (cluster, subject, derived_at, stale_since)
SELECT @cluster, n.subject, '-infinity', n.since
FROM unnest(@subjects::text[], @since::timestamptz[]) AS n(subject, since)
ORDER BY n.subject
ON CONFLICT (cluster, subject) DO UPDATE SET stale_since = least(s.stale_since, excluded.stale_since)`

// Import stores facts of one cluster without deriving their subjects, and tells how many were new: DeriveStale does the
// rest, however the caller ends. It is for facts in bulk whose time never depends on who saw them and when, such as
// those of audit events: only then the same fact meets its own row. See the package comment for its errors.
func (s *Store) Import(ctx context.Context, cluster string, facts []trail.Fact) (int, error) {
	if err := s.ensureFor(ctx, facts, monthsBackImported); err != nil {
		return 0, err
	}
	added := 0
	err := s.inTx(ctx, "import facts", func(tx pgx.Tx) error {
		fresh, err := insertFacts(ctx, tx, cluster, facts)
		if err != nil {
			return err
		}
		added = len(fresh)
		args := pgx.StrictNamedArgs{"cluster": cluster, "at": time.Unix(0, 0), "event": nullTime(lastOccurrence(fresh))} // nobody watched
		if _, err := tx.Exec(ctx, appendedQuery, args); err != nil {
			return explain("note the cluster", err)
		}
		return markStale(ctx, tx, cluster, fresh)
	})
	if err != nil {
		return 0, err
	}
	return added, s.countGrown(ctx, added)
}

// lastOccurrence returns when the newest of imported facts happened: they are read long after.
func lastOccurrence(facts []trail.Fact) time.Time {
	var last time.Time
	for i := range facts {
		if at := facts[i].OccurredAt; at.After(last) {
			last = at
		}
	}
	return last
}

// markStale notes that the subjects of new facts are to be derived.
func markStale(ctx context.Context, tx pgx.Tx, cluster string, added []trail.Fact) error {
	places := make([]factPlace, len(added))
	for i, f := range added {
		places[i] = factPlace{clean(f.Subject.String()), f.OccurredAt}
	}
	return noteStale(ctx, tx, cluster, places)
}

// noteStale notes that subjects are to be derived, each from its earliest place on.
func noteStale(ctx context.Context, tx pgx.Tx, cluster string, places []factPlace) error {
	since := map[string]time.Time{}
	for _, p := range places {
		if at, known := since[p.Subject]; !known || p.OccurredAt.Before(at) {
			since[p.Subject] = p.OccurredAt
		}
	}
	if len(since) == 0 {
		return nil
	}
	subjects, times := make([]string, 0, len(since)), make([]time.Time, 0, len(since))
	for subject, at := range since {
		subjects, times = append(subjects, subject), append(times, at)
	}
	_, err := tx.Exec(ctx, markStaleQuery, pgx.StrictNamedArgs{"cluster": cluster, "subjects": subjects, "since": times})
	return explain("note what is to be derived", err)
}

// aroundTogether is how many nodes are derived of all their rows at once: after some months each has thousands.
const aroundTogether = 50

const staleSubjectsQuery = `
SELECT subject, ` + countFacts + ` AS facts
FROM (
  SELECT *, CASE WHEN stale_since > @around THEN stale_since - @reach::interval ELSE '-infinity' END AS read
  FROM evictrail.subjects
) AS s
WHERE cluster = @cluster
  AND stale_since IS NOT NULL
  AND NOT EXISTS (SELECT FROM evictrail.derive_failures AS f WHERE f.cluster = s.cluster AND f.subject = s.subject AND f.retry_at > now())
ORDER BY least(stale_since, @around + interval '1 second'), subject
LIMIT @limit`

// A subject that is to be derived whatever its facts are, with nothing around it because the others are, too, is stale from one of
// these times on. They are passes: first the VMs and what stands for itself, then again those VMs whose waiting the slots of others
// explain, once all slots are known, and last the nodes and the cluster, once all rows of VMs are.
var (
	everything  = time.Unix(0, 0).UTC()
	onceSlots   = everything.Add(time.Second)
	onceVMsDone = everything.Add(2 * time.Second)
)

// DeriveStale derives what Import left or what new rules change, a few subjects at a time, and then the nodes that this and others touched. It tells how
// many subjects that were. done, which may be nil, is told after each of these steps how many there were so far.
func (s *Store) DeriveStale(ctx context.Context, cluster string, done func(subjects int)) (int, error) {
	n, _, err := s.deriveStale(ctx, cluster, 0, nil, done)
	return n, err
}

// deriveStale is DeriveStale in a term, and tells what new facts brought: what is derived anew is no news. Where that takes long, as facts of others go on coming,
// nodes do not wait for its end.
func (s *Store) deriveStale(ctx context.Context, cluster string, term int64, pace *pace, done func(subjects int)) (int, trail.News, error) {
	var news trail.News
	if err := s.retryFailed(ctx, cluster); err != nil {
		return 0, news, err
	}
	var sized []sizedRow
	nodes := time.Now().Add(catchUpMost)
	for count := 0; ; {
		if len(sized) == 0 { // counting takes long where each has many: once for as many as were counted
			var err error
			if sized, err = s.stale(ctx, cluster); err != nil {
				return count, news, err
			}
		}
		if began := time.Now(); len(sized) == 0 || began.After(nodes) {
			n, more, err := s.deriveTouched(ctx, cluster, term, pace)
			news.Add(more)
			if count += n; err != nil || len(sized) == 0 {
				return count, news, err
			}
			nodes = time.Now().Add(max(catchUpMost, (catchUpShare-1)*time.Since(began)))
		}
		subjects, others, err := firstPortion(sized)
		if err != nil {
			return count, news, err
		}
		sized = others
		slices.SortFunc(subjects, func(a, b trail.Subject) int { return strings.Compare(a.String(), b.String()) })
		left := 0
		err = isolated(ctx, s, cluster, subjects, nameOf, func(ctx context.Context, some []trail.Subject, careful bool) error {
			later, brought, err := s.refresh(ctx, cluster, term, some, careful)
			left += later
			news.Add(brought)
			return err
		})
		if err != nil {
			return count, news, err
		}
		if count += len(subjects) - left; done != nil {
			done(count)
		}
		if err := s.countGrown(ctx, countEvery); err != nil {
			return count, news, err
		}
	}
}

// refresh derives subjects that are stale in one transaction, see derivation.refresh.
func (s *Store) refresh(ctx context.Context, cluster string, term int64, subjects []trail.Subject, careful bool) (left int, news trail.News, err error) {
	var failed []DeriveFailure
	err = s.inTx(ctx, "derive", func(tx pgx.Tx) error {
		d, err := newDerivation(ctx, tx, cluster, time.Time{}, term)
		if err != nil {
			return err
		}
		d.careful = careful
		left, news, err = d.refresh(ctx, subjects)
		failed = d.firstFailed
		return err
	})
	if err != nil {
		return 0, trail.News{}, err
	}
	s.reportFailed(failed...)
	return left, news, nil
}

// stale gives the next subjects that are to be derived, none when all are.
func (s *Store) stale(ctx context.Context, cluster string) ([]sizedRow, error) {
	rows, err := s.pool.Query(ctx, staleSubjectsQuery, pgx.StrictNamedArgs{"cluster": cluster, "around": onceVMsDone, "limit": deriveBatch, "most": deriveFacts, "reach": 2 * reachOf(nil, trail.DefaultThresholds())})
	if err != nil {
		return nil, explain("read what is to be derived", err)
	}
	sized, err := pgx.CollectRows(rows, pgx.RowToStructByName[sizedRow])
	return sized, explain("read what is to be derived", err)
}

const makeStaleQuery = `
UPDATE evictrail.subjects
SET stale_since = @since
WHERE cluster = @cluster`

// Rederive derives everything of a cluster anew from its facts, and tells how many subjects that were.
func (s *Store) Rederive(ctx context.Context, cluster string) (int, error) {
	_, err := s.pool.Exec(ctx, makeStaleQuery, pgx.StrictNamedArgs{"cluster": cluster, "since": everything})
	if err != nil {
		return 0, explain("note what is to be derived", err)
	}
	if _, err := s.pool.Exec(ctx, retryAllQuery, pgx.StrictNamedArgs{"cluster": cluster}); err != nil {
		return 0, explain("note what is to be derived", err)
	}
	return s.DeriveStale(ctx, cluster, nil)
}

// staleRow is a subject that is to be derived.
type staleRow struct {
	Subject    string    `db:"subject"`
	StaleSince time.Time `db:"stale_since"`
}

const (
	staleSinceQuery = `
SELECT subject, stale_since
FROM evictrail.subjects
WHERE cluster = @cluster
  AND subject = ANY(@subjects)
  AND stale_since IS NOT NULL`
	freshQuery = `
UPDATE evictrail.subjects
SET stale_since = NULL
WHERE cluster = @cluster
  AND subject = ANY(@subjects)`
)

// refresh takes subjects and derives them, and what their facts concern from the time on that they are stale since. A subject that
// another writer derived meanwhile is not stale any more, and is left alone. The nodes that they touch are left, too. It tells how many it left to a
// later pass, and what new facts brought.
func (d *derivation) refresh(ctx context.Context, subjects []trail.Subject) (left int, news trail.News, err error) {
	if err := d.hold(ctx, nil, subjects...); err != nil {
		return 0, news, err
	}
	args := pgx.StrictNamedArgs{"cluster": d.cluster, "subjects": names(subjects)}
	rows, err := d.tx.Query(ctx, staleSinceQuery, args)
	if err != nil {
		return 0, news, explain("read what is stale", err)
	}
	stale, err := pgx.CollectRows(rows, pgx.RowToStructByName[staleRow])
	if err != nil {
		return 0, news, explain("read what is stale", err)
	}
	staleSince, changed := map[string]time.Time{}, since{}
	for _, r := range stale {
		staleSince[r.Subject] = r.StaleSince
	}
	var vms, around, later []trail.Subject
	for _, s := range subjects {
		from, stale := staleSince[clean(s.String())]
		switch {
		case !stale:
		case from.Equal(everything) && isAround(s):
			later = append(later, s)
		case !from.After(onceVMsDone) && isAround(s):
			around = append(around, s)
		case !from.After(onceVMsDone):
			vms, changed[s] = append(vms, s), time.Time{}
		default:
			changed[s] = from
		}
	}
	if err := d.hold(ctx, changed); err != nil {
		return 0, news, err
	}
	var fresh []trail.Fact
	for _, s := range changed.subjects() {
		for _, f := range d.facts[s] {
			if from := changed[s]; !from.IsZero() && !f.OccurredAt.Before(from) {
				fresh = append(fresh, f)
			}
		}
	}
	touched, err := d.deriveFirst(ctx, fresh)
	if err != nil {
		return 0, news, err
	}
	if err := d.leaveTouched(ctx, touched); err != nil {
		return 0, news, err
	}
	news = d.news
	if _, err = d.tx.Exec(ctx, freshQuery, args); err != nil {
		return 0, news, explain("note what is derived", err)
	}
	if err := d.refreshVMs(ctx, vms); err != nil {
		return 0, news, err
	}
	for some := range slices.Chunk(around, aroundTogether) {
		if err := d.replaceAround(ctx, ever(some)); err != nil {
			return 0, news, err
		}
	}
	return len(later), news, d.leave(ctx, later, onceVMsDone)
}

// refreshVMs derives VMs anew and leaves what that means beyond them to the later passes.
func (d *derivation) refreshVMs(ctx context.Context, vms []trail.Subject) error {
	touched, err := d.replaceVMs(ctx, vms, true)
	if err != nil {
		return err
	}
	waiting, err := d.waiting(ctx, touched.slots, vms)
	if err != nil {
		return err
	}
	if err := d.leave(ctx, waiting.subjects(), onceSlots); err != nil {
		return err
	}
	return d.leave(ctx, touched.around.subjects(), onceVMsDone)
}

const leaveQuery = `
INSERT INTO evictrail.subjects AS s (cluster, subject, derived_at, stale_since)
SELECT @cluster, n, '-infinity', @since
FROM unnest(@subjects::text[]) AS n
ORDER BY n
ON CONFLICT (cluster, subject) DO UPDATE SET stale_since = excluded.stale_since
WHERE s.stale_since IS NULL`

// leave leaves subjects to a later pass, unless they are stale already.
func (d *derivation) leave(ctx context.Context, subjects []trail.Subject, pass time.Time) error {
	if len(subjects) == 0 {
		return nil
	}
	_, err := d.tx.Exec(ctx, leaveQuery, pgx.StrictNamedArgs{"cluster": d.cluster, "subjects": names(subjects), "since": pass})
	return explain("note what is to be derived", err)
}
