package evidence

import (
	"bytes"
	"context"
	"crypto/hmac"
	"fmt"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/evictrail/evictrail/store/pg"
	"github.com/evictrail/evictrail/store/tables"
)

// Problem is a day whose facts or links are not those that were sealed.
type Problem struct {
	Day time.Time
	Why string
}

// Report is what a verification of a cluster found.
type Report struct {
	Cluster    string
	From, To   time.Time // the first and the last day that is sealed; zero: none is
	Days       int       // that are sealed
	Facts      int64     // that were compared with their digests
	Dropped    int       // days of which retention dropped facts: only their digests could be compared
	Erased     int       // days in which names were erased: the others of these days could not be compared
	Unsealed   int64     // facts that were stored since
	Unnumbered int64     // facts from before schema 43, which no link covers
	Anchored   int       // days that are in the anchor file, as they are
	Unanchored int       // days after the last that the anchor file has
	Problems   []Problem // by day; empty: nothing differs
}

// addProblem notes what is wrong with a day.
func (r *Report) addProblem(day time.Time, format string, args ...any) {
	r.Problems = append(r.Problems, Problem{day, fmt.Sprintf(format, args...)})
}

// Verify compares the facts of a cluster with their digests, these with one another, and with anchors; nil: there is no
// anchor file. done is called after each day; nil: it is not. What differs is in the report, not an error. It reads day
// by day, so that nobody waits for it.
func Verify(ctx context.Context, db *pg.DB, cluster string, anchors []Anchor, done func(day time.Time)) (Report, error) {
	r := Report{Cluster: cluster}
	links, err := Links(ctx, db, cluster)
	if err != nil {
		return r, err
	}
	all, before, after := links, noLink, int64(0)
	for len(links) > 0 {
		n := 1
		for n < len(links) && links[n].Last == links[0].Last {
			n++
		}
		of := links[:n]
		if of[0].After != after {
			r.addProblem(of[0].Day, "its links begin after fact %d, those before end with fact %d: links were removed",
				of[0].After, after)
		}
		for i := range of {
			if !bytes.Equal(of[i].Digest, of[i].hashLink(before)) {
				r.addProblem(of[i].Day, "its link does not follow from the one before: links were changed, removed or reordered")
			}
			before = of[i].Digest
		}
		if err := r.verifyDay(ctx, db, of); err != nil {
			return r, err
		}
		if r.From.IsZero() {
			r.From = of[0].Day
		}
		r.To, after, links = of[0].Day, of[0].Last, links[n:]
		r.Days++
		if done != nil {
			done(r.To)
		}
	}
	if err := r.countUncovered(ctx, db, after); err != nil {
		return r, err
	}
	if anchors != nil {
		r.compareAnchors(all, anchors)
	}
	slices.SortStableFunc(r.Problems, func(a, b Problem) int { return a.Day.Compare(b.Day) })
	return r, nil
}

// readDay begins a transaction that sees facts, salts and what was dropped as of one moment, for as long as it takes.
const readDay = `BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY;
SET LOCAL statement_timeout = 0;
SET LOCAL jit = off;
` + tables.DropNoFactsQuery

const saltsQuery = `
SELECT month, names_salt
FROM evictrail.evidence
WHERE cluster = @cluster
  AND last_seq = @last`

// verifyDay compares the facts of a day with its links. A link that differs is not held against the database where
// retention dropped the month.
func (r *Report) verifyDay(ctx context.Context, db *pg.DB, links []Link) error {
	day := links[0]
	salts := map[time.Time][]byte{}
	var parts map[time.Time]*part
	var kept *time.Time
	err := pgx.BeginTxFunc(ctx, db.Pool, pgx.TxOptions{BeginQuery: readDay}, func(tx pgx.Tx) error {
		var batch pgx.Batch
		batch.Queue(saltsQuery, pgx.StrictNamedArgs{"cluster": day.Cluster, "last": day.Last}).Query(
			pg.EachRow(func(row pgx.CollectableRow) error {
				var month time.Time
				var salt []byte
				err := row.Scan(&month, &salt)
				salts[month.UTC()] = salt
				return err
			}))
		if err := tx.SendBatch(ctx, &batch).Close(); err != nil {
			return err
		}
		if err := tx.QueryRow(ctx, tables.SettledQuery, pgx.StrictNamedArgs{"cluster": day.Cluster}).Scan(&kept); err != nil {
			return err
		}
		var err error
		saltOf := func(month time.Time) []byte { return salts[month] }
		parts, err = digestFacts(ctx, tx, day.Cluster, day.After, day.Last, saltOf)
		return err
	})
	if err != nil {
		return pg.Explain("verify "+day.Day.Format(time.DateOnly), err)
	}
	dropped, erased := false, false
	for i := range links {
		l := &links[i]
		p := parts[l.Month]
		delete(parts, l.Month)
		why := p.differsFrom(l)
		switch {
		case why == "":
			r.Facts += l.Facts
			erased = erased || salts[l.Month] == nil
		case kept != nil && l.Month.Before(*kept):
			dropped = true
		default:
			r.addProblem(l.Day, "%s", why)
		}
	}
	for month, p := range parts {
		if kept == nil || !month.Before(*kept) {
			r.addProblem(day.Day, "%d facts of %s are there, none was sealed: facts were added, or their times changed", p.facts, month.Format("2006-01"))
		}
	}
	if dropped {
		r.Dropped++
	}
	if erased {
		r.Erased++
	}
	return nil
}

// differsFrom reports how the facts of a month are not those that a link sealed; empty: they are. A part may be nil:
// there are none.
func (p *part) differsFrom(l *Link) string {
	switch {
	case p == nil:
		return fmt.Sprintf("none of its %d facts of %s is there: they were removed, or their times changed", l.Facts,
			l.Month.Format("2006-01"))
	case p.facts < l.Facts:
		return fmt.Sprintf("%d facts are there, %d were sealed: facts were removed", p.facts, l.Facts)
	case p.facts > l.Facts:
		return fmt.Sprintf("%d facts are there, %d were sealed: facts were added", p.facts, l.Facts)
	case !bytes.Equal(p.all.Sum(nil), l.FactsDigest):
		return fmt.Sprintf("its %d facts were changed or reordered", l.Facts)
	case p.names != nil && !hmac.Equal(p.names.Sum(nil), l.NamesDigest):
		return "names in its requests, their texts or addresses were changed"
	}
	return ""
}

const uncoveredQuery = `
SELECT count(*) FILTER (WHERE seq > 0), count(*) FILTER (WHERE seq = 0)
FROM evictrail.events
WHERE cluster = @cluster
  AND (seq = 0 OR seq > @after)`

// countUncovered counts the facts that no link covers.
func (r *Report) countUncovered(ctx context.Context, db *pg.DB, after int64) error {
	args := pgx.StrictNamedArgs{"cluster": r.Cluster, "after": after}
	err := db.QueryRow(ctx, uncoveredQuery, pg.Planned, args).Scan(&r.Unsealed, &r.Unnumbered)
	return pg.Explain("count facts that are not sealed", err)
}

// compareAnchors compares links with what an anchor file has of them.
func (r *Report) compareAnchors(links []Link, anchors []Anchor) {
	type place struct {
		last  int64
		month string
	}
	known, lastAnchored := map[place]Anchor{}, int64(0)
	for _, a := range anchors {
		if a.Cluster == r.Cluster {
			known[place{a.Last, a.Month}] = a
			lastAnchored = max(lastAnchored, a.Last)
		}
	}
	anchored, unanchored := map[int64]bool{}, map[int64]bool{}
	for _, l := range links {
		is := NewAnchor(l)
		at := place{is.Last, is.Month}
		was, found := known[at]
		delete(known, at)
		switch {
		case found && was.Digest == is.Digest && was.Day == is.Day:
			anchored[l.Last] = true
		case found:
			r.addProblem(l.Day, "its digest is %s, the anchor file has %s: links were made again", is.Digest, was.Digest)
		case l.Last < lastAnchored:
			r.addProblem(l.Day, "it is not in the anchor file, which has later days")
		default:
			unanchored[l.Last] = true
		}
	}
	for _, a := range known {
		day, _ := time.Parse(time.DateOnly, a.Day)
		r.addProblem(day, "the anchor file has a link up to fact %d, the database has none: links were removed, or the database lost them", a.Last)
	}
	r.Anchored, r.Unanchored = len(anchored), len(unanchored)
}
