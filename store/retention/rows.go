package retention

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/evictrail/evictrail/store/pg"
	"github.com/evictrail/evictrail/store/tables"
)

// dropRowsQuery drops some of the rows about what had ended before a time. Those stay that show what led to something that goes on, on the node or of the
// VM that it is about.
const dropRowsQuery = `
DELETE FROM evictrail.%[1]s
WHERE cluster = @cluster
  AND ctid = ANY(ARRAY(
  SELECT t.ctid
  FROM evictrail.%[1]s AS t
  WHERE t.cluster = @cluster
    AND t.%[2]s < @settled
    AND t.open_until < @settled
    AND NOT EXISTS (
      SELECT
      FROM unnest(@subjects::text[], @since::timestamptz[]) AS w(subject, since)
      WHERE w.subject = t.subject
        AND t.%[2]s >= w.since
    )
    AND NOT EXISTS (
      SELECT
      FROM unnest(@nodes::text[], @node_since::timestamptz[]) AS w(node, since)
      WHERE w.node = %[3]s
        AND t.%[2]s >= w.since
    )%[4]s
  LIMIT @limit
  FOR UPDATE SKIP LOCKED
))`

// Loops around a VMI, or around the VMIs of one name, are numbered: as long as one is there none of them goes.
const numbered = `
    AND NOT (t.kind IN ('ping_pong', 'churn', 'frequent_moves', 'repeated_failures', 'shutdown_churn') AND EXISTS (
      SELECT 1 FROM evictrail.placements AS p
      WHERE p.cluster = t.cluster AND p.subject = t.subject AND (p.vmi_uid = t.vmi_uid OR t.vmi_uid IS NULL) AND p.to_at IS NULL
    ))`

// rowsTogether is how many derived rows are dropped in one transaction.
const rowsTogether = 5000

// dropRows drops derived rows of a cluster about what had ended before a time, and before its facts that are there: others
// would be derived again. It adds to dropped how many, by table.
func (s months) dropRows(ctx context.Context, cluster string, before time.Time, dropped map[string]int) error {
	settled, err := s.settledOf(ctx, cluster)
	if err != nil || settled.IsZero() {
		return err
	}
	before = pg.EarlierTime(before, settled)
	var r *reach
	err = s.InTx(ctx, "look for what goes on", func(tx pgx.Tx) (err error) {
		r, err = newReach(ctx, tx, cluster, before)
		return err
	})
	if err != nil {
		return err
	}
	args := pgx.NamedArgs{"cluster": cluster, "settled": before, "limit": rowsTogether}
	args["subjects"], args["since"] = r.listOngoing(r.subjects)
	args["nodes"], args["node_since"] = r.listOngoing(r.nodes)
	for _, of := range tables.Derived {
		more := ""
		if of.Name == "loops" {
			more = numbered
		}
		sql := fmt.Sprintf(dropRowsQuery, of.Name, of.Begun, of.Place, more)
		for n := int64(rowsTogether); n == rowsTogether; {
			tag, err := s.Exec(ctx, sql, pg.Planned, args)
			if err != nil {
				return pg.Explain("drop "+of.Name, err)
			}
			n = tag.RowsAffected()
			dropped[of.Name] += int(n)
		}
	}
	for _, query := range []string{dropDaysQuery, dropForecastsQuery} {
		if _, err := s.Exec(ctx, query, pg.Planned, pgx.StrictNamedArgs{"cluster": cluster, "settled": before}); err != nil {
			return pg.Explain("drop counted days and forecasts", err)
		}
	}
	return nil
}

// settledOf returns before which time facts of a cluster were dropped; zero: none were.
func (s months) settledOf(ctx context.Context, cluster string) (time.Time, error) {
	var from *time.Time
	err := s.QueryRow(ctx, tables.SettledQuery, pgx.StrictNamedArgs{"cluster": cluster}).Scan(&from)
	return pg.TimeOrZero(from), pg.Explain("read what is kept", err)
}

// dropDaysQuery drops the days of which rows were dropped: counted again, they would have too few.
const dropDaysQuery = `
DELETE FROM evictrail.cluster_days
WHERE cluster = @cluster
  AND day <= (@settled::timestamptz AT TIME ZONE 'UTC')::date`

// dropForecastsQuery drops what was forecast of drains whose rows were dropped.
const dropForecastsQuery = `
DELETE FROM evictrail.drain_forecasts
WHERE cluster = @cluster
  AND made_at < @settled::timestamptz`

// acknowledgements is the table of what people wrote. It rests on no facts, and nothing rests on it.
const acknowledgements = "acknowledgements"

const dropAcknowledgementsQuery = `
DELETE FROM evictrail.acknowledgements
WHERE ctid = ANY(ARRAY(
  SELECT ctid
  FROM evictrail.acknowledgements
  WHERE cluster = @cluster
    AND created_at < @before
    AND coalesce(ended_at, expires_at) < @before
  LIMIT @limit
  FOR UPDATE SKIP LOCKED
))`

// dropAcknowledgements drops those of a cluster that had ended before a time, and adds to dropped how many.
func (s months) dropAcknowledgements(ctx context.Context, cluster string, before time.Time, dropped map[string]int) error {
	args := pgx.StrictNamedArgs{"cluster": cluster, "before": before, "limit": rowsTogether}
	for n := rowsTogether; n == rowsTogether; {
		tag, err := s.Exec(ctx, dropAcknowledgementsQuery, pg.Planned, args)
		if err != nil {
			return pg.Explain("drop "+acknowledgements, err)
		}
		n = int(tag.RowsAffected())
		dropped[acknowledgements] += n
	}
	return nil
}

// listOngoing returns from when on rows matter to what goes on, by name.
func (r *reach) listOngoing(of map[string]time.Time) (names []string, since []time.Time) {
	for name, began := range of {
		if name != "" {
			names, since = append(names, name), append(since, began.Add(-r.before))
		}
	}
	return names, since
}
