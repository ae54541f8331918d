package store

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/evictrail/evictrail/trail"
)

const (
	leaveTouchedQuery = `
INSERT INTO evictrail.subjects AS s (cluster, subject, derived_at, touched_since)
SELECT @cluster, n.subject, '-infinity', n.since
FROM unnest(@subjects::text[], @since::timestamptz[]) AS n(subject, since)
ORDER BY n.subject
ON CONFLICT (cluster, subject) DO UPDATE SET touched_since = excluded.touched_since
WHERE s.touched_since IS NULL
   OR s.touched_since > excluded.touched_since`
	touchedQuery = `
SELECT subject
FROM evictrail.subjects
WHERE cluster = @cluster
  AND touched_since IS NOT NULL
  AND subject > @after
ORDER BY subject
LIMIT @limit`
	takeTouchedQuery = `
WITH t AS (
  SELECT subject, touched_since
  FROM evictrail.subjects
  WHERE cluster = @cluster
    AND subject = ANY(@subjects)
    AND touched_since IS NOT NULL
  ORDER BY subject
  FOR UPDATE SKIP LOCKED
)
UPDATE evictrail.subjects AS s
SET touched_since = NULL
FROM t
WHERE s.cluster = @cluster
  AND s.subject = t.subject
RETURNING t.subject, t.touched_since`
)

// touchedLong is about how long the nodes take that are derived in one transaction: facts about what is there wait for it. It begins with one, as one may have
// thousands of VMs that move.
const touchedLong = 50 * time.Millisecond

// leaveTouched leaves nodes, and the cluster as a whole, to be derived for what changed there since a time.
func (d *derivation) leaveTouched(ctx context.Context, touched since) error {
	if len(touched) == 0 {
		return nil
	}
	subjects := touched.subjects()
	times := make([]time.Time, len(subjects))
	for i, s := range subjects {
		times[i] = touched[s]
	}
	_, err := d.tx.Exec(ctx, leaveTouchedQuery, pgx.StrictNamedArgs{"cluster": d.cluster, "subjects": names(subjects), "since": times})
	return explain("note which nodes are to be derived", err)
}

// takeTouched takes over what was left of some subjects; another writer may have done some. It waits for one alone. Of several it leaves those that a writer
// reads, or touches once more: that writer may wait for another of them.
func (d *derivation) takeTouched(ctx context.Context, subjects []string) (since, error) {
	query := takeTouchedQuery
	if len(subjects) == 1 {
		query = strings.Replace(query, " SKIP LOCKED", "", 1)
	}
	rows, err := d.tx.Query(ctx, query, pgx.StrictNamedArgs{"cluster": d.cluster, "subjects": subjects})
	if err != nil {
		return nil, explain("take nodes that are to be derived", err)
	}
	all, err := pgx.CollectRows(rows, pgx.RowToStructByPos[touchedRow])
	if err != nil {
		return nil, explain("take nodes that are to be derived", err)
	}
	out := since{}
	for _, r := range all {
		s, err := trail.ParseSubject(r.Subject)
		if err != nil {
			return nil, err
		}
		out[s] = r.Since.UTC()
	}
	return out, nil
}

// touchedRow is a node that is to be derived for what changed there since a time.
type touchedRow struct {
	Subject string
	Since   time.Time
}

// deriveTouched derives what was left, each node once however often others leave it meanwhile, and rests between them where there is a pace. It tells how many
// those were, and what that brought.
func (s *Store) deriveTouched(ctx context.Context, cluster string, term int64, pace *pace) (count int, news trail.News, err error) {
	for after, most := "", 1; ; {
		rows, err := s.pool.Query(ctx, touchedQuery, pgx.StrictNamedArgs{"cluster": cluster, "after": after, "limit": most})
		if err != nil {
			return count, news, explain("read which nodes are to be derived", err)
		}
		subjects, err := pgx.CollectRows(rows, pgx.RowTo[string])
		if err != nil || len(subjects) == 0 {
			return count, news, explain("read which nodes are to be derived", err)
		}
		began := time.Now()
		var busy []string
		step := func(ctx context.Context, some []string, careful bool) error {
			more, brought, err := s.deriveNodes(ctx, cluster, term, some, careful)
			busy = append(busy, more...)
			news.Add(brought)
			return err
		}
		if err := isolated(ctx, s, cluster, subjects, sameName, step); err != nil {
			return count, news, err
		}
		switch took := time.Since(began); {
		case took > touchedLong:
			most = max(most/2, 1)
		case took < touchedLong/2:
			most = min(2*most, aroundTogether)
		}
		for _, one := range busy {
			if err := isolated(ctx, s, cluster, []string{one}, sameName, step); err != nil {
				return count, news, err
			}
		}
		count, after = count+len(subjects), subjects[len(subjects)-1]
		pace.rest(ctx, time.Since(began))
	}
}

// deriveNodes derives what was left of some nodes in one transaction. It gives those that others were busy with.
func (s *Store) deriveNodes(ctx context.Context, cluster string, term int64, subjects []string, careful bool) (busy []string, news trail.News, err error) {
	var failed []DeriveFailure
	err = s.inTx(ctx, "derive nodes", func(tx pgx.Tx) error {
		d, err := newDerivation(ctx, tx, cluster, time.Time{}, term)
		if err != nil {
			return err
		}
		d.careful = careful
		touched, err := d.takeTouched(ctx, subjects)
		if err != nil {
			return err
		}
		taken := names(touched.subjects())
		busy = slices.DeleteFunc(slices.Clone(subjects), func(s string) bool { return len(subjects) == 1 || slices.Contains(taken, s) })
		err = d.replaceAround(ctx, touched)
		news, failed = d.news, d.firstFailed
		return err
	})
	if err != nil {
		return nil, trail.News{}, err
	}
	s.reportFailed(failed...)
	return busy, news, nil
}
