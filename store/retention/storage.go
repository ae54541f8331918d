package retention

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/evictrail/evictrail/store/pg"
	"github.com/evictrail/evictrail/store/tables"
)

// StrayMost bounds how far the facts of the default partition are counted.
const StrayMost = 1000

// Storage is what lies in the database, and how fast it grows.
type Storage struct {
	At         time.Time
	FactsFrom  time.Time   // from when on all facts are there; zero: none were dropped
	Partitions []Partition // of facts, in the order of their months; that of those that were kept, which has no From, first
	StrayFacts int         // in the default partition, counted up to 1000
	Classes    []Class     // facts first
	Database   int64       // bytes of the database
	FactsADay  float64     // that happened in the last week, or since the first if that is nearer
	RowsSince  time.Time   // the oldest line of a timeline; zero where there is none
}

// Class is one sort of data.
type Class struct {
	Name  string // facts, derived or state
	Rows  int64  // as Postgres estimates
	Bytes int64  // with indexes
}

// FactBytes is how many bytes a fact takes, with indexes; zero where there is none.
func (s Storage) FactBytes() float64 {
	if len(s.Classes) == 0 || s.Classes[0].Rows == 0 {
		return 0
	}
	return float64(s.Classes[0].Bytes) / float64(s.Classes[0].Rows)
}

// BytesADay is how many bytes come a day at the present rate: facts, and what is derived of them.
func (s Storage) BytesADay() (facts, rows float64) {
	facts = s.FactsADay * s.FactBytes()
	for _, c := range s.Classes {
		if c.Name == "derived" && !s.RowsSince.IsZero() {
			rows = float64(c.Bytes) / max(s.At.Sub(s.RowsSince).Hours()/24, 1)
		}
	}
	return facts, rows
}

// Settles is how many bytes the database will have in the end where all is kept for so long and comes at the present rate: a month of facts goes when all of
// it is old enough. Zero: it grows without end.
func (s Storage) Settles(r Policy) int64 {
	if r.Facts == 0 || r.Rows == 0 {
		return 0
	}
	facts, rows := s.BytesADay()
	rest := s.Database
	for _, c := range s.Classes {
		if c.Name != "state" {
			rest -= c.Bytes
		}
	}
	return rest + int64(facts*(r.Facts.Hours()/24+31)+rows*r.Rows.Hours()/24)
}

// Next returns the month that is dropped next, and when; false where none is.
func (s Storage) Next(r Policy) (p Partition, at time.Time, ok bool) {
	for _, p := range s.Partitions {
		if !p.From.IsZero() && r.Facts > 0 {
			return p, p.To.Add(r.Facts), true
		}
	}
	return Partition{}, time.Time{}, false
}

const (
	// A table that was never analyzed has no estimate: it is counted.
	storageQuery = `
SELECT c.relname, c.relname LIKE 'events\_%%', c.reltuples::bigint, %s
FROM pg_catalog.pg_class AS c
WHERE c.relnamespace = 'evictrail'::regnamespace
  AND c.relkind = 'r'
ORDER BY c.relname`
	growthQuery = `
SELECT
    (SELECT facts_from FROM evictrail.retention),
    (SELECT count(*) FROM (SELECT 1 FROM evictrail.events_default LIMIT @most) AS d),
    pg_database_size(current_database()),
    (SELECT count(*) FROM evictrail.events WHERE occurred_at BETWEEN @week AND @at),
    (SELECT min(occurred_at) FROM evictrail.events WHERE occurred_at >= @week),
    (SELECT min(at) FROM evictrail.timeline)`
)

// Measure returns what lies in a database at a time.
func Measure(ctx context.Context, db *pg.DB, at time.Time) (Storage, error) {
	const doing = "read what lies in the database"
	out := Storage{At: at, Classes: []Class{{Name: "facts"}, {Name: "derived"}, {Name: "state"}}}
	week := at.AddDate(0, 0, -7)
	var from, first, since *time.Time
	var lately int64
	err := db.QueryRow(ctx, growthQuery, pgx.StrictNamedArgs{"most": StrayMost, "at": at, "week": week}).
		Scan(&from, &out.StrayFacts, &out.Database, &lately, &first, &since)
	if err != nil {
		return out, pg.Explain(doing, err)
	}
	out.FactsFrom, out.RowsSince = pg.TimeOrZero(from), pg.TimeOrZero(since)
	if first != nil {
		out.FactsADay = float64(lately) / max(at.Sub(*first).Hours()/24, 1)
	}
	type sized struct {
		Name        string
		Facts       bool
		Rows, Bytes int64
	}
	size, err := db.TableSize(ctx)
	if err != nil {
		return out, pg.Explain(doing, err)
	}
	rows, err := db.Query(ctx, fmt.Sprintf(storageQuery, size))
	if err != nil {
		return out, pg.Explain(doing, err)
	}
	all, err := pgx.CollectRows(rows, pgx.RowToStructByPos[sized])
	if err != nil {
		return out, pg.Explain(doing, err)
	}
	derived := map[string]bool{}
	for _, of := range tables.Derived {
		derived[of.Name] = true
	}
	for _, t := range all {
		if t.Rows < 0 {
			if err := db.QueryRow(ctx, "SELECT count(*) FROM "+pgx.Identifier{"evictrail", t.Name}.Sanitize()).Scan(&t.Rows); err != nil {
				return out, pg.Explain(doing, err)
			}
		}
		class := &out.Classes[2]
		switch {
		case t.Facts:
			class = &out.Classes[0]
			out.Partitions = append(out.Partitions, partitionOf(t.Name, t.Rows, t.Bytes, out.FactsFrom)...)
		case derived[t.Name]:
			class = &out.Classes[1]
		}
		class.Rows, class.Bytes = class.Rows+t.Rows, class.Bytes+t.Bytes
	}
	if size != pg.LocalSize { // the database that answers has empty tables
		out.Database = out.Classes[0].Bytes + out.Classes[1].Bytes + out.Classes[2].Bytes
	}
	slices.SortStableFunc(out.Partitions, func(a, b Partition) int { return a.From.Compare(b.From) })
	return out, nil
}

// partitionOf returns which time the facts of a partition are; nothing of one that is of no certain time.
func partitionOf(name string, facts, bytes int64, from time.Time) []Partition {
	p := Partition{Name: name, Facts: facts, Bytes: bytes}
	month, err := time.Parse("events_2006_01", name)
	switch {
	case err == nil:
		p.From, p.To = month, month.AddDate(0, 1, 0)
	case name == "events_kept":
		p.To = from
	default:
		return nil
	}
	return []Partition{p}
}
