package store

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/evictrail/evictrail/trail"
)

// strayMost bounds how far the facts of the default partition are counted.
const strayMost = 1000

const upkeepQuery = `
SELECT
    coalesce((
        SELECT to_date(max(right(c.relname, 7)), 'YYYY_MM') + interval '1 month'
        FROM pg_catalog.pg_inherits AS i
        JOIN pg_catalog.pg_class AS c ON c.oid = i.inhrelid
        WHERE i.inhparent = 'evictrail.events'::regclass
          AND c.relname ~ '^events_\d{4}_\d{2}$'
    ), to_timestamp(0)::timestamp),
    (SELECT count(*) FROM (SELECT FROM evictrail.events_default LIMIT @most) AS d),
    (SELECT facts_from FROM evictrail.retention),
    clock_timestamp()`

// Upkeep tells how the database is kept, and how far its clock is from ours.
func (s *Store) Upkeep(ctx context.Context) (trail.Upkeep, error) {
	var u trail.Upkeep
	var theirs time.Time
	var from *time.Time
	asked := time.Now()
	err := s.pool.QueryRow(ctx, upkeepQuery, pgx.StrictNamedArgs{"most": strayMost}).Scan(&u.PartitionsUntil, &u.StrayRows, &from, &theirs)
	if err != nil {
		return u, explain("read how the database is kept", err)
	}
	u.FactsFrom = orZero(from)
	took := time.Since(asked)
	u.ClockSkew = theirs.Sub(asked.Add(took / 2))
	schema, err := s.Schema(ctx)
	u.Schema, u.SchemaExpected = schema.Version, schema.Expected
	stat := s.pool.Stat()
	u.ConnectionsUsed, u.ConnectionsIdle, u.ConnectionsMost = int(stat.AcquiredConns()), int(stat.IdleConns()), int(stat.MaxConns())
	return u, err
}
