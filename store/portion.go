package store

import (
	"context"

	"github.com/jackc/pgx/v5"

	"github.com/evictrail/evictrail/trail"
)

// A portion is what is held in memory at once when there is much: so many subjects, of about so many stored facts. A VM that was moved again and again for
// months has ten thousand.
const deriveBatch = 500

var deriveFacts = 10_000 // fewer in tests

// sizedRow is a subject with how many facts it has, at the most as many as a portion.
type sizedRow struct {
	Subject string `db:"subject"`
	Facts   int    `db:"facts"`
}

const countFacts = `(SELECT count(*) FROM (SELECT FROM evictrail.events AS e WHERE e.cluster = @cluster AND e.subject = s.subject LIMIT @most) AS f)`

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

// Of the requests in a namespace only those are read that are about as old as the new ones.
const sizesQuery = `
SELECT s.subject, CASE WHEN s.subject LIKE 'namespace:%' THEN 0 ELSE ` + countFacts + ` END AS facts
FROM unnest(@subjects::text[]) WITH ORDINALITY AS s(subject, place)
ORDER BY s.place`

// sizes tells how many facts subjects have that new facts are about, in their order.
func sizes(ctx context.Context, from queryer, cluster string, subjects []trail.Subject) ([]sizedRow, error) {
	rows, err := from.Query(ctx, sizesQuery, pgx.StrictNamedArgs{"cluster": cluster, "subjects": names(subjects), "most": deriveFacts})
	if err != nil {
		return nil, explain("count facts", err)
	}
	sized, err := pgx.CollectRows(rows, pgx.RowToStructByName[sizedRow])
	return sized, explain("count facts", err)
}

// portions splits subjects, in their order.
func portions(ctx context.Context, from queryer, cluster string, subjects []trail.Subject) ([][]trail.Subject, error) {
	if len(subjects) < 2 {
		return [][]trail.Subject{subjects}, nil
	}
	sized, err := sizes(ctx, from, cluster, subjects)
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

// parts splits new facts, in their order, such that each part with what its subjects have is about a portion: as if they had come one part after the other.
// What was seen at once stays together.
func parts(ctx context.Context, from queryer, cluster string, facts []trail.Fact) ([][]trail.Fact, error) {
	subjects := subjectsOf(facts)
	if len(subjects) < 2 {
		return [][]trail.Fact{facts}, nil
	}
	sized, err := sizes(ctx, from, cluster, subjects)
	if err != nil {
		return nil, err
	}
	of := make(map[trail.Subject]int, len(subjects))
	for i, s := range subjects {
		of[s] = sized[i].Facts
	}
	var out [][]trail.Fact
	begun, left, held := 0, deriveFacts, map[trail.Subject]bool{}
	for i := range facts {
		if left < 0 && !facts[i].ObservedAt.Equal(facts[i-1].ObservedAt) {
			out = append(out, facts[begun:i])
			begun, left, held = i, deriveFacts, map[trail.Subject]bool{}
		}
		left--
		if s := facts[i].Subject; !held[s] {
			held[s] = true
			left -= of[s]
		}
	}
	return append(out, facts[begun:]), nil
}
