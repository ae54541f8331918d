package store

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/evictrail/evictrail/trail"
)

// recordQuery inserts facts that are not there yet, and marks their subjects as dirty since the earliest of them. A subject's version counts how often that was
// done: the row of the subject is locked until the transaction ends, so versions are in the order of commits. Rows are taken in order, so that two replicas that record
// the same wait for each other instead of deadlocking.
const recordQuery = `
WITH recorded AS (` + insertFactsIfNew + `
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
}

// recordInTx inserts facts of one cluster, and marks their subjects as dirty. It reads no facts, and nothing depends on what they mean.
func recordInTx(ctx context.Context, tx pgx.Tx, cluster string, facts []trail.Fact) (recording, error) {
	var out recording
	for some := range slices.Chunk(facts, insertTogether) {
		versions, err := recordSome(ctx, tx, cluster, some)
		if err != nil {
			return recording{}, err
		}
		for i := range some {
			if v, is := versions[some[i].ID]; is {
				delete(versions, some[i].ID) // a fact that is given twice is recorded once
				out.facts, out.versions = append(out.facts, some[i]), append(out.versions, v)
			}
		}
	}
	if err := keepLate(ctx, tx, out.facts); err != nil {
		return recording{}, err
	}
	return out, keepAspects(ctx, tx, cluster, out.facts)
}

func recordSome(ctx context.Context, tx pgx.Tx, cluster string, facts []trail.Fact) (map[trail.FactID]int64, error) {
	rows, err := rowsFromFacts(facts)
	if err != nil {
		return nil, err
	}
	slices.SortFunc(rows, func(a, b factRow) int {
		return cmp.Or(strings.Compare(a.Subject, b.Subject), a.OccurredAt.Compare(b.OccurredAt), slices.Compare(a.ID.Bytes[:], b.ID.Bytes[:]))
	})
	recorded, err := tx.Query(ctx, recordQuery, factArgs(cluster, rows))
	if err != nil {
		return nil, explain("record facts", err)
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
	return out, explain("record facts", err)
}

// record records facts of one cluster, all or none, and notes that all that was seen until then is stored. Facts that are recorded already add nothing, whatever else
// they say.
func (s *Store) record(ctx context.Context, cluster string, facts []trail.Fact, confirm confirmation) (recording, error) {
	facts = slices.Clone(facts)
	for i := range facts { // as they will be read
		facts[i].OccurredAt, facts[i].ObservedAt = facts[i].OccurredAt.Truncate(time.Microsecond), facts[i].ObservedAt.Truncate(time.Microsecond)
	}
	if len(facts) == 0 {
		return recording{}, nil
	}
	if err := s.ensureFor(ctx, facts, monthsBack); err != nil {
		return recording{}, err
	}
	var out recording
	err := s.inTx(ctx, "record facts", func(tx pgx.Tx) (err error) {
		if confirm != nil {
			if err := confirm(ctx, tx, lastSeen(facts)); err != nil {
				return err
			}
		}
		if out, err = recordInTx(ctx, tx, cluster, facts); err != nil {
			return err
		}
		_, err = tx.Exec(ctx, appendedQuery, pgx.StrictNamedArgs{"cluster": cluster, "at": lastSeen(facts), "event": nullTime(lastEvent(out.facts))})
		return err
	})
	if err != nil {
		return recording{}, err
	}
	return out, s.countGrown(ctx, len(out.facts))
}
