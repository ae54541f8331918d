package store

import (
	"bytes"
	"cmp"
	"context"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/evictrail/evictrail/store/pg"
	"github.com/evictrail/evictrail/store/retention"
	"github.com/evictrail/evictrail/store/tables"
	"github.com/evictrail/evictrail/trail"
)

const recordQuery = tables.InsertFactsQuery + `
RETURNING id`

// recording is facts that were new, in the order in which they came.
type recording struct {
	facts    []trail.Fact
	versions map[string]int64      // of their subjects, as they are stored
	replaced map[trail.FactID]bool // facts with texts that may be stored otherwise than they came
	frozenTo time.Time             // facts from before were dropped; zero: none were
}

// buildNews returns what was recorded as news. What happened before facts were dropped changes no row.
func (r recording) buildNews() trail.News {
	news := trail.News{Facts: r.facts}
	if slices.ContainsFunc(r.facts, func(f trail.Fact) bool { return f.OccurredAt.Before(r.frozenTo) }) {
		news.Settled = r.frozenTo
	}
	return news
}

// recordInTx inserts facts of one cluster that say something new, once no function of the check fails. Nothing depends on what they mean. What is left to be
// sent marks their subjects as dirty.
func recordInTx(ctx context.Context, tx pg.Sender, cluster string, facts []trail.Fact, check func(*pgx.Batch)) (out recording, left *pgx.Batch, err error) {
	facts, err = filterUnrecorded(ctx, tx, cluster, facts, check)
	if err != nil {
		return recording{}, nil, err
	}
	out = recording{versions: map[string]int64{}, replaced: map[trail.FactID]bool{}}
	for some := range slices.Chunk(facts, tables.InsertTogether) {
		if err := out.insertFacts(ctx, tx, cluster, some); err != nil {
			return recording{}, nil, err
		}
	}
	left = &pgx.Batch{}
	out.queueDirtyMarks(left, cluster)
	return out, left, nil
}

// insertFacts inserts facts, and adds those that were new to the recording.
func (r *recording) insertFacts(ctx context.Context, tx pg.Sender, cluster string, facts []trail.Fact) error {
	rows, err := tables.FactRows(facts)
	if err != nil {
		return err
	}
	for i := range rows {
		if rows[i].Replaced() {
			r.replaced[rows[i].ID.Bytes] = true
		}
	}
	slices.SortFunc(rows, func(a, b *tables.FactRow) int {
		return cmp.Or(strings.Compare(a.Subject, b.Subject), a.OccurredAt.Compare(b.OccurredAt), bytes.Compare(a.ID.Bytes[:], b.ID.Bytes[:]))
	})
	isNew := make(map[trail.FactID]bool, len(rows))
	var batch pgx.Batch
	batch.Queue(recordQuery, tables.FactArgs(cluster, rows)).Query(pg.EachRow(func(row pgx.CollectableRow) error {
		var id [16]byte
		err := row.Scan(&id)
		isNew[id] = true
		return err
	}))
	if err := tx.SendBatch(ctx, &batch).Close(); err != nil {
		return pg.Explain("record facts", err)
	}
	for i := range facts {
		if isNew[facts[i].ID] {
			r.facts = append(r.facts, facts[i])
		}
	}
	return nil
}

// queueDirtyMarks marks the subjects of the recording as dirty.
func (r *recording) queueDirtyMarks(batch *pgx.Batch, cluster string) {
	if len(r.facts) == 0 {
		return
	}
	subjects, since := make([]string, len(r.facts)), make([]time.Time, len(r.facts))
	for i := range r.facts {
		subjects[i], since[i] = pg.CleanText(r.facts[i].Subject.String()), r.facts[i].OccurredAt
	}
	tables.QueueMarkDirty(batch, cluster, subjects, since).Query(pg.EachRow(func(row pgx.CollectableRow) error {
		var subject string
		var version int64
		err := row.Scan(&subject, &version)
		r.versions[subject] = version
		return err
	}))
}

// confirmation is written in the transaction that records facts which were seen up to a time; nil: nothing is.
type confirmation func(batch *pgx.Batch, at time.Time)

// recordFacts records facts of one cluster, all or none, and notes that all that was seen until then is stored. Facts that are recorded already add nothing, whatever else
// they say.
func (s *Store) recordFacts(ctx context.Context, cluster string, facts []trail.Fact, confirm confirmation) (recording, error) {
	seen := lastSeen(facts)
	check := func(batch *pgx.Batch) {
		if confirm != nil {
			confirm(batch, seen)
		}
	}
	return s.recordSeen(ctx, cluster, facts, monthsBack, check, func(batch *pgx.Batch, fresh []trail.Fact) {
		batch.Queue(appendedQuery, pgx.StrictNamedArgs{"cluster": cluster, "at": seen, "event": pg.NullTime(lastEvent(fresh))})
	})
}

// Import records facts of one cluster that nobody watched, and returns how many were new: DeriveStale derives them, however the caller ends. It is for facts in bulk
// whose time never depends on who saw them and when, such as those of audit events: only then the same fact meets its own row. See the package comment for its errors.
func (s *Store) Import(ctx context.Context, cluster string, facts []trail.Fact) (int, error) {
	out, err := s.recordSeen(ctx, cluster, facts, monthsBackImported, func(*pgx.Batch) {}, func(batch *pgx.Batch, fresh []trail.Fact) {
		batch.Queue(appendedQuery, pgx.StrictNamedArgs{"cluster": cluster, "at": time.Unix(0, 0), "event": pg.NullTime(lastOccurrence(fresh))})
	})
	return len(out.facts), err
}

// recordSeen records facts that are from so many months at the most once no function of a check fails, and notes what that says of the cluster.
func (s *Store) recordSeen(
	ctx context.Context, cluster string, facts []trail.Fact, months int, check func(*pgx.Batch), note func(batch *pgx.Batch, fresh []trail.Fact),
) (recording, error) {
	if len(facts) == 0 {
		return recording{}, nil
	}
	facts = slices.Clone(facts)
	for i := range facts { // as they will be read
		facts[i].OccurredAt, facts[i].ObservedAt = facts[i].OccurredAt.Truncate(time.Microsecond), facts[i].ObservedAt.Truncate(time.Microsecond)
	}
	if err := s.ensureFor(ctx, facts, months); err != nil {
		return recording{}, err
	}
	var out recording
	var frozenTo *time.Time
	err := s.DB.InBatches(ctx, "record facts", func(tx *pg.Batches) (err error) {
		var last *pgx.Batch
		out, last, err = recordInTx(ctx, tx, cluster, facts, func(batch *pgx.Batch) {
			queueWhole(batch, cluster, &frozenTo)
			check(batch)
		})
		if err != nil {
			return err
		}
		retention.KeepLate(last, out.facts)
		keepAspects(last, cluster, out.facts)
		note(last, out.facts)
		return pg.Explain("record facts", tx.SendLast(ctx, last))
	})
	if err != nil {
		return recording{}, err
	}
	out.frozenTo = pg.TimeOrZero(frozenTo)
	return out, s.countGrown(ctx, len(out.facts))
}

// latestOf returns the latest of the times that facts have; zero where none has one.
func latestOf(facts []trail.Fact, at func(*trail.Fact) time.Time) time.Time {
	var last time.Time
	for i := range facts {
		if t := at(&facts[i]); t.After(last) {
			last = t
		}
	}
	return last
}

// lastSeen returns when the last of facts was seen.
func lastSeen(facts []trail.Fact) time.Time {
	return latestOf(facts, func(f *trail.Fact) time.Time { return f.ObservedAt })
}

// lastEvent returns when the newest fact was seen that is about the cluster, not about how it is watched; zero where there is none.
func lastEvent(facts []trail.Fact) time.Time {
	return latestOf(facts, func(f *trail.Fact) time.Time {
		if f.Subject.Kind == trail.SubjectSource {
			return time.Time{}
		}
		return f.ObservedAt
	})
}

// lastOccurrence returns when the newest of imported facts happened: they are read long after.
func lastOccurrence(facts []trail.Fact) time.Time {
	return latestOf(facts, func(f *trail.Fact) time.Time { return f.OccurredAt })
}
