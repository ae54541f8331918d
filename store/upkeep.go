package store

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/evictrail/evictrail/store/pg"
	"github.com/evictrail/evictrail/store/retention"
	"github.com/evictrail/evictrail/trail"
)

// Partitions last until the first month from now on that has none: one far ahead may be there because something named its time. Old facts lie in the default
// partition on purpose.
const upkeepQuery = `
WITH months AS (
  SELECT to_date(right(c.relname, 7), 'YYYY_MM')::timestamp AS begin
  FROM pg_catalog.pg_inherits AS i
  JOIN pg_catalog.pg_class AS c ON c.oid = i.inhrelid
  WHERE i.inhparent = 'evictrail.events'::regclass
    AND c.relname ~ '^events_\d{4}_\d{2}$'
), ends AS (
  SELECT m.begin, m.begin + interval '1 month' AS until
  FROM months AS m
  WHERE NOT EXISTS (SELECT FROM months AS n WHERE n.begin = m.begin + interval '1 month')
)
SELECT
    coalesce(
        (SELECT min(e.until) FROM ends AS e WHERE e.until > now() AND EXISTS (SELECT FROM months AS m WHERE m.begin = date_trunc('month', now(), 'UTC')::timestamp)),
        (SELECT max(e.until) FROM ends AS e WHERE e.begin <= now()),
        (SELECT min(e.until) FROM ends AS e),
        to_timestamp(0)::timestamp
    ),
    (SELECT count(*) FROM (SELECT 1 FROM evictrail.events_default WHERE occurred_at >= date_trunc('month', now(), 'UTC') - @back::interval LIMIT @most) AS d),
    (SELECT count(*) FROM evictrail.derive_failures),
    (SELECT facts_from FROM evictrail.clusters WHERE cluster = @cluster),
    clock_timestamp()`

// Upkeep returns how the database is kept, from when on all facts of a cluster are there, and how far its clock is from ours.
func (s *Store) Upkeep(ctx context.Context, cluster string) (trail.Upkeep, error) {
	var u trail.Upkeep
	var theirs time.Time
	var from *time.Time
	asked := time.Now()
	err := s.DB.QueryRow(ctx, upkeepQuery, pgx.StrictNamedArgs{"most": retention.StrayMost, "back": fmt.Sprintf("%d months", monthsBack), "cluster": cluster}).
		Scan(&u.PartitionsUntil, &u.StrayRows, &u.Underived, &from, &theirs)
	if err != nil {
		return u, pg.Explain("read how the database is kept", err)
	}
	u.FactsFrom = pg.TimeOrZero(from)
	took := time.Since(asked)
	u.ClockSkew = theirs.Sub(asked.Add(took / 2))
	schema, err := s.Schema(ctx)
	u.Schema, u.SchemaExpected = schema.Version, schema.Expected
	stat := s.DB.Stat()
	u.ConnectionsUsed, u.ConnectionsIdle, u.ConnectionsMost = int(stat.AcquiredConns()), int(stat.IdleConns()), int(stat.MaxConns())
	return u, err
}
