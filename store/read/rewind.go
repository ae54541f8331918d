package read

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/evictrail/evictrail/store/pg"
	"github.com/evictrail/evictrail/store/tables"
	"github.com/evictrail/evictrail/trail"
	"github.com/evictrail/evictrail/trail/rewind"
)

// What was recorded of a period. What lasts may have begun up to rewind.OpenReach before (@open), or goes on; moves and
// failures count for rewind.MovesReach after (@reach).
const (
	rewindFactsQuery = `
SELECT ` + tables.FactColumns + `
FROM evictrail.events
WHERE cluster = @cluster
  AND kind IN ('annotation_set', 'annotation_cleared')
  AND reason = 'eviction_in_progress'
  AND occurred_at >= @open
  AND occurred_at < @to`
	rewindBlocksQuery = `
SELECT ` + tables.FactColumns + `
FROM evictrail.events
WHERE cluster = @cluster
  AND kind = 'blocks_observed'
  AND occurred_at >= @from
  AND occurred_at < @to`
	rewindBeginQuery = `
SELECT min(observed_at)
FROM evictrail.events
WHERE cluster = @cluster
  AND occurred_at >= @from
  AND occurred_at < @to`
	rewindRequestsQuery = `
SELECT row_to_json(t)
FROM evictrail.eviction_requests AS t
WHERE cluster = @cluster
  AND requested_at >= @from
  AND requested_at < @to`
	rewindMigrationsQuery = `
SELECT row_to_json(t)
FROM evictrail.migrations AS t
WHERE cluster = @cluster
  AND created_at < @to
  AND (finished_at IS NULL OR created_at >= @open)`
	rewindPlacementsQuery = `
SELECT row_to_json(t)
FROM evictrail.placements AS t
WHERE cluster = @cluster
  AND from_at < @to
  AND open_until >= @from`
	rewindDecisionsQuery = `
SELECT row_to_json(t)
FROM evictrail.cooldown_decisions AS t
WHERE cluster = @cluster
  AND layer = 'descheduler_cooldown'
  AND decided_at >= @cooling
  AND decided_at < @to`
)

// rewindLasting asks for rows of a table that lasted within the period, by the columns of when they began and ended.
func rewindLasting(table, began, ended string) string {
	return `
SELECT row_to_json(t)
FROM evictrail.` + table + ` AS t
WHERE cluster = @cluster
  AND ` + began + ` < @to
  AND (` + ended + ` IS NULL OR ` + began + ` >= @open AND ` + ended + ` >= @from)`
}

var (
	rewindEvacuationsQuery = rewindLasting("evacuations", "marked_at", "ended_at")
	rewindLoopsQuery       = rewindLasting("loops", "opened_at", "closed_at")
	rewindDrainsQuery      = rewindLasting("drains", "started_at", "ended_at")
	rewindOutagesQuery     = rewindLasting("outages", "began_at", "ended_at")
)

// coolingReach is for how long before a period a cooldown may have begun that holds in it: the descheduler's own
// longest history.
const coolingReach = 7 * 24 * time.Hour

// Rewind reads what is recorded of a cluster in a period, with what bears on it. Some months take minutes. Who may not
// see all of the cluster has no history: the error is trail.ErrNotFound.
func (s *Reader) Rewind(ctx context.Context, cluster string, from, to time.Time) (*rewind.History, error) {
	if s.scope.Limited() {
		return nil, fmt.Errorf("history: %w that you may see: it is of all namespaces of %s, and you may see some",
			trail.ErrNotFound, cluster)
	}
	h := &rewind.History{From: from.UTC(), To: to.UTC()}
	args := pgx.StrictNamedArgs{"cluster": cluster}
	timed := func(more pgx.StrictNamedArgs) pgx.StrictNamedArgs {
		all := pgx.StrictNamedArgs{"cluster": cluster, "to": h.To}
		for name, value := range more {
			all[name] = value
		}
		return all
	}
	within := timed(pgx.StrictNamedArgs{"from": h.From})
	open := h.From.Add(-rewind.OpenReach)
	lasting := timed(pgx.StrictNamedArgs{"from": h.From, "open": open})
	since := timed(pgx.StrictNamedArgs{"open": open})
	err := pgx.BeginTxFunc(ctx, s.db, pgx.TxOptions{BeginQuery: replayOnly}, func(tx pgx.Tx) (err error) {
		subjects := pgx.StrictNamedArgs{"cluster": cluster, "subjects": tables.SubjectTexts(trail.RuleSubjects())}
		if h.Rules, err = tables.FactsBy(ctx, tx, cluster, tables.FactsOfSubjectsQuery, subjects); err != nil {
			return err
		}
		if h.Annotations, err = tables.FactsBy(ctx, tx, cluster, rewindFactsQuery, since); err != nil {
			return err
		}
		if h.Blocks, err = tables.FactsBy(ctx, tx, cluster, rewindBlocksQuery, within); err != nil {
			return err
		}
		var begin *time.Time
		if err = tx.QueryRow(ctx, rewindBeginQuery, within).Scan(&begin); err != nil {
			return err
		}
		h.RecordedFrom = pg.TimeOrZero(begin)
		var batch pgx.Batch
		batch.Queue(tables.ThresholdsQuery, args).Query(func(rows pgx.Rows) (err error) {
			h.Thresholds, err = tables.CollectThresholds(rows)
			return err
		})
		batch.Queue(rewindRequestsQuery, within).Query(pg.CollectJSON(&h.Requests))
		batch.Queue(rewindEvacuationsQuery, lasting).Query(pg.CollectJSON(&h.Evacuations))
		batch.Queue(rewindMigrationsQuery, since).Query(pg.CollectJSON(&h.Migrations))
		batch.Queue(rewindPlacementsQuery, within).Query(pg.CollectJSON(&h.Placements))
		batch.Queue(rewindDecisionsQuery,
			timed(pgx.StrictNamedArgs{"cooling": h.From.Add(-coolingReach)})).Query(pg.CollectJSON(&h.Decisions))
		batch.Queue(rewindLoopsQuery, lasting).Query(pg.CollectJSON(&h.Loops))
		batch.Queue(rewindDrainsQuery, lasting).Query(pg.CollectJSON(&h.Drains))
		batch.Queue(rewindOutagesQuery, lasting).Query(pg.CollectJSON(&h.Outages))
		return tx.SendBatch(ctx, &batch).Close()
	})
	return h, pg.Explain("read the history of "+cluster, err)
}
