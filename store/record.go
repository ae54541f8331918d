package store

import (
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

// recordQuery inserts facts that are not there yet, and marks their subjects as dirty since the earliest of them. A subject's version counts how often that was
// done: the row of the subject is locked until the transaction ends, so versions are in the order of commits. Rows are taken in order, so that two replicas that record
// the same wait for each other instead of deadlocking.
const recordQuery = `
WITH recorded AS (` + tables.InsertFactsQuery + `
  RETURNING subject, occurred_at, id
), dirty AS (
  INSERT INTO evictrail.subjects AS s (cluster, subject, derived_at, dirty_since, version)
  SELECT @cluster, subject, '-infinity', min(occurred_at), 1
  FROM recorded
  GROUP BY subject
  ORDER BY subject
  ON CONFLICT (cluster, subject) DO UPDATE SET dirty_since = least(s.dirty_since, excluded.dirty_since), version = s.version + 1
  RETURNING subject, version
)
SELECT recorded.id, dirty.version
FROM recorded
JOIN dirty ON dirty.subject = recorded.subject`

// recording is facts that were new, in the order in which they came, with the version of the subject of each.
type recording struct {
	facts    []trail.Fact
	versions []int64
	replaced map[trail.FactID]bool // facts with texts that may be stored otherwise than they came
	frozenTo time.Time             // facts from before were dropped; zero: none were
}

// news returns what was recorded as news. What happened before facts were dropped changes no row.
func (r recording) news() trail.News {
	news := trail.News{Facts: r.facts}
	if slices.ContainsFunc(r.facts, func(f trail.Fact) bool { return f.OccurredAt.Before(r.frozenTo) }) {
		news.Settled = r.frozenTo
	}
	return news
}

// recordInTx inserts facts of one cluster that say something new, and marks their subjects as dirty. Nothing depends on what they mean.
func recordInTx(ctx context.Context, tx pgx.Tx, cluster string, facts []trail.Fact) (recording, error) {
	facts, err := unrecorded(ctx, tx, cluster, facts)
	if err != nil {
		return recording{}, err
	}
	out := recording{replaced: map[trail.FactID]bool{}}
	for some := range slices.Chunk(facts, tables.InsertTogether) {
		versions, err := recordSome(ctx, tx, cluster, some, out.replaced)
		if err != nil {
			return recording{}, err
		}
		for i := range some {
			if v, is := versions[some[i].ID]; is {
				out.facts, out.versions = append(out.facts, some[i]), append(out.versions, v)
			}
		}
	}
	return out, nil
}

// recordSome inserts facts, and returns the versions of their subjects by the facts that were new. It adds those whose texts are replaced to a set.
func recordSome(ctx context.Context, tx pgx.Tx, cluster string, facts []trail.Fact, replaced map[trail.FactID]bool) (map[trail.FactID]int64, error) {
	rows, err := tables.FactRows(facts)
	if err != nil {
		return nil, err
	}
	for i := range rows {
		if rows[i].Replaced() {
			replaced[rows[i].ID.Bytes] = true
		}
	}
	slices.SortFunc(rows, func(a, b tables.FactRow) int {
		return cmp.Or(strings.Compare(a.Subject, b.Subject), a.OccurredAt.Compare(b.OccurredAt), slices.Compare(a.ID.Bytes[:], b.ID.Bytes[:]))
	})
	recorded, err := tx.Query(ctx, recordQuery, tables.FactArgs(cluster, rows))
	if err != nil {
		return nil, pg.Explain("record facts", err)
	}
	type fact struct {
		ID      [16]byte
		Version int64
	}
	all, err := pgx.CollectRows(recorded, pgx.RowToStructByPos[fact])
	out := make(map[trail.FactID]int64, len(all))
	for _, f := range all {
		out[f.ID] = f.Version
	}
	return out, pg.Explain("record facts", err)
}

// confirmation is written in the transaction that records facts which were seen up to a time; nil: nothing is.
type confirmation func(batch *pgx.Batch, at time.Time)

// record records facts of one cluster, all or none, and notes that all that was seen until then is stored. Facts that are recorded already add nothing, whatever else
// they say.
func (s *Store) record(ctx context.Context, cluster string, facts []trail.Fact, confirm confirmation) (recording, error) {
	seen := lastSeen(facts)
	return s.recordSeen(ctx, cluster, facts, monthsBack, func(batch *pgx.Batch, fresh []trail.Fact) {
		if confirm != nil {
			confirm(batch, seen)
		}
		batch.Queue(appendedQuery, pgx.StrictNamedArgs{"cluster": cluster, "at": seen, "event": pg.NullTime(lastEvent(fresh))})
	})
}

// Import records facts of one cluster that nobody watched, and returns how many were new: DeriveStale derives them, however the caller ends. It is for facts in bulk
// whose time never depends on who saw them and when, such as those of audit events: only then the same fact meets its own row. See the package comment for its errors.
func (s *Store) Import(ctx context.Context, cluster string, facts []trail.Fact) (int, error) {
	out, err := s.recordSeen(ctx, cluster, facts, monthsBackImported, func(batch *pgx.Batch, fresh []trail.Fact) {
		batch.Queue(appendedQuery, pgx.StrictNamedArgs{"cluster": cluster, "at": time.Unix(0, 0), "event": pg.NullTime(lastOccurrence(fresh))})
	})
	return len(out.facts), err
}

// recordSeen records facts that are from so many months at the most, and notes what that says of the cluster.
func (s *Store) recordSeen(
	ctx context.Context, cluster string, facts []trail.Fact, months int, note func(batch *pgx.Batch, fresh []trail.Fact),
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
	err := s.DB.InTx(ctx, "record facts", func(tx pgx.Tx) (err error) {
		if out, err = recordInTx(ctx, tx, cluster, facts); err != nil {
			return err
		}
		var frozenTo *time.Time
		var batch pgx.Batch
		retention.KeepLate(&batch, out.facts)
		keepAspects(&batch, cluster, out.facts)
		tables.QueueSettled(&batch, &frozenTo)
		note(&batch, out.facts)
		err = tx.SendBatch(ctx, &batch).Close()
		out.frozenTo = pg.TimeOrZero(frozenTo)
		return err
	})
	if err != nil {
		return recording{}, err
	}
	return out, s.countGrown(ctx, len(out.facts))
}

// lastSeen returns when the last of facts was seen.
func lastSeen(facts []trail.Fact) time.Time {
	var last time.Time
	for i := range facts {
		if at := facts[i].ObservedAt; at.After(last) {
			last = at
		}
	}
	return last
}

// lastEvent returns when the newest fact was seen that is about the cluster, not about how it is watched; zero where there is none.
func lastEvent(facts []trail.Fact) time.Time {
	var last time.Time
	for i := range facts {
		if f := &facts[i]; f.Subject.Kind != trail.SubjectSource && f.ObservedAt.After(last) {
			last = f.ObservedAt
		}
	}
	return last
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
