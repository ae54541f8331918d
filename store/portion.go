package store

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/evictrail/evictrail/trail"
)

// A portion is what is held in memory at once when there is much: so many subjects, of about so many stored facts. A VM that was moved again and again for
// months has ten thousand.
const deriveBatch = 500

var deriveFacts = 5_000 // fewer in tests

// sizedRow is a subject with how many facts it has, at the most as many as a portion.
type sizedRow struct {
	Subject string `db:"subject"`
	Facts   int    `db:"facts"`
}

const countFacts = `(
  SELECT count(*)
  FROM (SELECT FROM evictrail.events AS e WHERE e.cluster = @cluster AND e.subject = s.subject AND e.occurred_at >= s.read LIMIT @most) AS f
)`

// portion tells how many of some subjects, the first ones, are a portion: at least one.
func portion(sized []sizedRow) int {
	facts := deriveFacts
	for i, r := range sized {
		if facts -= r.Facts; facts < 0 && i > 0 {
			return i
		}
	}
	return len(sized)
}

// firstPortion gives the first of some subjects, and the others.
func firstPortion(sized []sizedRow) (first []trail.Subject, others []sizedRow, err error) {
	n := portion(sized)
	first = make([]trail.Subject, n)
	for i, r := range sized[:n] {
		if first[i], err = trail.ParseSubject(r.Subject); err != nil {
			return nil, nil, err
		}
	}
	return first, sized[n:], nil
}

// Of a VM those facts are counted that matter to what changed, and what was asked of its pods meanwhile; of the requests in a namespace, of which those are
// read that are about as old as the new ones, none.
var sizesQuery = `
WITH ` + vmReach + `
SELECT s.subject, CASE WHEN s.subject LIKE 'namespace:%' THEN 0 ELSE ` + countFacts + ` + (
  SELECT count(*)
  FROM (SELECT FROM evictrail.eviction_requests AS r WHERE r.cluster = @cluster AND r.subject = s.subject AND r.requested_at >= s.read LIMIT @most) AS r
) END AS facts
FROM (
  SELECT a.subject, coalesce(v.read, '-infinity') AS read, a.place
  FROM unnest(@subjects::text[]) WITH ORDINALITY AS a(subject, place)
  LEFT JOIN vm_reach AS v ON v.subject = a.subject
) AS s
ORDER BY s.place`

// sizes tells about how many facts of subjects are held for what changed, in the order of the subjects.
func sizes(ctx context.Context, tx pgx.Tx, cluster string, changed since) ([]sizedRow, error) {
	var vms []trail.Subject
	var at []time.Time
	for s, since := range changed {
		if s.Kind == trail.SubjectVMI && !since.IsZero() {
			vms, at = append(vms, s), append(at, since)
		}
	}
	args := vmReachArgs(cluster, vms, at, reachOf(nil, trail.DefaultThresholds()))
	args["subjects"], args["most"] = names(changed.subjects()), deriveFacts
	rows, err := tx.Query(ctx, sizesQuery, args)
	if err != nil {
		return nil, explain("count facts", err)
	}
	sized, err := pgx.CollectRows(rows, pgx.RowToStructByName[sizedRow])
	return sized, explain("count facts", err)
}

// portions splits subjects, in their order.
func portions(ctx context.Context, tx pgx.Tx, cluster string, changed since) ([][]trail.Subject, error) {
	subjects := changed.subjects()
	if len(subjects) < 2 {
		return [][]trail.Subject{subjects}, nil
	}
	sized, err := sizes(ctx, tx, cluster, changed)
	if err != nil {
		return nil, err
	}
	var out [][]trail.Subject
	for len(subjects) > 0 {
		n := portion(sized)
		out = append(out, subjects[:n])
		subjects, sized = subjects[n:], sized[n:]
	}
	return out, nil
}
