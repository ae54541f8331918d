package read

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/evictrail/evictrail/store/pg"
	"github.com/evictrail/evictrail/trail"
	"github.com/evictrail/evictrail/trail/whatif"
)

// What a replay reads, each in the order of its time. What lasts may have begun before: evacuations that are short then do not matter.
const (
	whatIfLoopsQuery = `
SELECT kind, coalesce(namespace, ''), coalesce(vmi, ''), coalesce(vmi_uid, ''), coalesce(node, ''), opened_at, closed_at, coalesce(closed_by, ''), counts, evidence
FROM evictrail.loops
WHERE cluster = @cluster
  AND opened_at >= @since
  AND opened_at < @until
ORDER BY opened_at`
	whatIfDecisionsQuery = `
SELECT namespace, coalesce(vmi, ''), coalesce(vmi_uid, ''), coalesce(node, ''), decided_at, verdict, until, coalesce(count, 0), origin, inputs
FROM evictrail.cooldown_decisions
WHERE cluster = @cluster
  AND layer = 'descheduler_cooldown'
  AND verdict <> 'released'
  AND decided_at >= @reach
  AND decided_at < @until
ORDER BY decided_at`
	whatIfEvacuationsQuery = `
SELECT evacuation_id, namespace, vmi, vmi_uid, node, marked_at, marked_by, requester_class, ended_at, coalesce(in_progress, '')
FROM evictrail.evacuations
WHERE cluster = @cluster
  AND marked_at >= @reach
  AND marked_at < @until
UNION ALL
SELECT evacuation_id, namespace, vmi, vmi_uid, node, marked_at, marked_by, requester_class, ended_at, coalesce(in_progress, '')
FROM evictrail.evacuations
WHERE cluster = @cluster
  AND marked_at < @reach
  AND (ended_at IS NULL OR ended_at - marked_at > interval '5 minutes')
  AND open_until >= @reach
ORDER BY marked_at`
	whatIfMigrationsQuery = `
SELECT migration_uid, migration, namespace, vmi, coalesce(vmi_uid, ''), evacuation_id, coalesce(source_node, ''), created_at, running_at, finished_at, coalesce(outcome, '')
FROM evictrail.migrations
WHERE cluster = @cluster
  AND created_at >= @reach
  AND created_at < @until
UNION ALL
SELECT migration_uid, migration, namespace, vmi, coalesce(vmi_uid, ''), evacuation_id, coalesce(source_node, ''), created_at, running_at, finished_at, coalesce(outcome, '')
FROM evictrail.migrations
WHERE cluster = @cluster
  AND created_at < @reach
  AND finished_at >= @reach
ORDER BY created_at`
	whatIfCompletionsQuery = `
SELECT vmi_uid, coalesce(migration, ''), migration_uid, occurred_at, detail
FROM evictrail.events
WHERE cluster = @cluster
  AND kind = 'migration_completed'
  AND vmi_uid IS NOT NULL
  AND migration_uid IS NOT NULL
  AND occurred_at >= @reach
  AND occurred_at < @until
ORDER BY occurred_at`
	whatIfRequestsQuery = `
SELECT request_id, namespace, coalesce(vmi, ''), vmi_uid, coalesce(node, ''), requested_at, requester_class, dry_run, answer, evacuation_id
FROM evictrail.eviction_requests
WHERE cluster = @cluster
  AND evacuation_id IS NOT NULL
  AND vmi_uid IS NOT NULL
  AND requested_at >= @reach
  AND requested_at < @until
ORDER BY requested_at`
)

// replayOnly begins a transaction that reads months in order: it takes longer than a question about what is now, and ends with its caller
// (context) or after ten minutes.
const replayOnly = `BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY;
SET LOCAL statement_timeout = '10min';
SET LOCAL jit = off;
SET LOCAL max_parallel_workers_per_gather = 0;
SET LOCAL cursor_tuple_fraction = 1`

// WhatIf replays the history of a period under other policies. It reads the period once, a little at a time: what it holds grows with the
// number of VMs and nodes. Rows of VMs that the reader may not see are replayed, as slots are shared, and neither reported nor counted. Errors:
// trail.ErrNotFound where nothing happened in the period, *trail.AmbiguousError where there are several clusters and none is named.
func (s *Reader) WhatIf(ctx context.Context, q whatif.Question) (whatif.Answer, error) {
	cluster, err := s.OnlyCluster(ctx, q.Cluster)
	if err != nil {
		return whatif.Answer{}, err
	}
	q.Cluster = cluster
	if q.Until.IsZero() {
		if q.Until, err = s.LastSeen(ctx, cluster, s.asOf()); err != nil {
			return whatif.Answer{}, err
		}
		q.Until = q.Until.Add(time.Microsecond) // what was seen at that moment is in the period
	}
	if q.Since.IsZero() {
		q.Since = q.Until.Add(-whatif.UsualPeriod)
	}
	q.Since, q.Until = q.Since.UTC(), q.Until.UTC()
	var answer whatif.Answer
	err = pgx.BeginTxFunc(ctx, s.db, pgx.TxOptions{BeginQuery: replayOnly}, func(tx pgx.Tx) error {
		i := inquiry{db: s.db, tx: tx, cluster: cluster, at: q.Until}
		if err := i.loadCommon(ctx); err != nil {
			return err
		}
		h := whatif.History{Rules: whatif.RulesOf(i.common), Thresholds: i.thresholds, Since: q.Since, Until: q.Until}
		if s.scope.Limited() || q.Namespace != "" || q.Node != "" {
			h.Counts = func(namespace, node string) bool {
				return (q.Namespace == "" || namespace == q.Namespace) && (q.Node == "" || node == q.Node) && s.scope.Sees(namespace)
			}
		}
		r := replaying{tx: tx, args: pgx.StrictNamedArgs{"cluster": cluster, "since": q.Since, "reach": q.Reach(h.Rules), "until": q.Until}}
		answer, err = q.Replay(&h, r.newEventSources(ctx))
		return err
	})
	switch {
	case errors.Is(err, context.DeadlineExceeded), errors.Is(err, context.Canceled):
		return whatif.Answer{}, fmt.Errorf("replay %s: %w", cluster, err)
	case err != nil:
		return whatif.Answer{}, pg.Explain("replay "+cluster, err)
	case answer.Empty():
		return whatif.Answer{}, fmt.Errorf("what if: %w in %s from %s to %s: no evacuation began then", trail.ErrNotFound, cluster, q.Since.UTC().Format(time.DateTime), q.Until.UTC().Format(time.DateTime))
	}
	return answer, nil
}

// OnlyCluster returns the cluster whose history is asked for, or the only one. Errors: trail.ErrNotFound,
// *trail.AmbiguousError.
func (s *Reader) OnlyCluster(ctx context.Context, asked string) (string, error) {
	asked, within := s.scope.Cluster(asked)
	if !within {
		return "", fmt.Errorf("cluster %s: %w", asked, trail.ErrNotFound)
	}
	clusters, err := s.Clusters(ctx)
	if asked != "" {
		clusters = slices.DeleteFunc(clusters, func(c string) bool { return c != pg.CleanText(asked) })
	}
	switch {
	case err != nil:
		return "", err
	case len(clusters) == 0 && asked == "":
		return "", fmt.Errorf("history: %w: no cluster is recorded yet", trail.ErrNotFound)
	case len(clusters) == 0:
		return "", fmt.Errorf("cluster %s: %w", asked, trail.ErrNotFound)
	case len(clusters) > 1:
		return "", &trail.AmbiguousError{Name: "the history", Clusters: clusters}
	}
	return clusters[0], nil
}

// replaying reads what a replay goes through.
type replaying struct {
	tx   pgx.Tx
	args pgx.StrictNamedArgs
}

// newEventSources returns the sources of events, each in the order of its times.
func (r *replaying) newEventSources(ctx context.Context) []whatif.Source {
	return []whatif.Source{
		r.newCursorSource(ctx, "loops", whatIfLoopsQuery, func(row pgx.CollectableRow) (e whatif.Event, err error) {
			l := &trail.Loop{}
			var closed *time.Time
			err = row.Scan(&l.Kind, &l.Namespace, &l.VMI, &l.VMIUID, &l.Node, &l.OpenedAt, &closed, &l.ClosedBy, &l.Counts, &l.Evidence)
			l.ClosedAt = pg.TimeOrZero(closed)
			l.OpenedAt = l.OpenedAt.UTC()
			return whatif.Event{At: l.OpenedAt, Loop: l}, err
		}),
		r.newCursorSource(ctx, "decisions", whatIfDecisionsQuery, func(row pgx.CollectableRow) (e whatif.Event, err error) {
			d := &trail.Decision{Layer: trail.LayerCooldown}
			var until *time.Time
			err = row.Scan(&d.Namespace, &d.VMI, &d.VMIUID, &d.Node, &d.DecidedAt, &d.Verdict, &until, &d.Count, &d.Origin, &d.Inputs)
			d.Until = pg.TimeOrZero(until)
			d.DecidedAt = d.DecidedAt.UTC()
			return whatif.Event{At: d.DecidedAt, Decision: d}, err
		}),
		r.newCursorSource(ctx, "evacuations", whatIfEvacuationsQuery, func(row pgx.CollectableRow) (e whatif.Event, err error) {
			x := &trail.Evacuation{}
			var ended *time.Time
			err = row.Scan((*[16]byte)(&x.ID), &x.Namespace, &x.VMI, &x.VMIUID, &x.Node, &x.MarkedAt, &x.MarkedBy, &x.RequesterClass, &ended, &x.InProgress)
			x.EndedAt = pg.TimeOrZero(ended)
			x.MarkedAt = x.MarkedAt.UTC()
			return whatif.Event{At: x.MarkedAt, Evacuation: x}, err
		}),
		r.newCursorSource(ctx, "migrations", whatIfMigrationsQuery, func(row pgx.CollectableRow) (e whatif.Event, err error) {
			m := &trail.Migration{}
			var running, finished *time.Time
			var of *[16]byte
			err = row.Scan(&m.UID, &m.Name, &m.Namespace, &m.VMI, &m.VMIUID, &of, &m.SourceNode, &m.CreatedAt, &running, &finished, &m.Outcome)
			m.EvacuationID, m.RunningAt, m.FinishedAt = (*trail.FactID)(of), pg.TimeOrZero(running), pg.TimeOrZero(finished)
			m.CreatedAt = m.CreatedAt.UTC()
			return whatif.Event{At: m.CreatedAt, Migration: m}, err
		}),
		r.newCursorSource(ctx, "completions", whatIfCompletionsQuery, func(row pgx.CollectableRow) (e whatif.Event, err error) {
			c := &whatif.Completion{}
			var raw []byte
			var d trail.ResultDetail
			if err = row.Scan(&c.VMIUID, &c.Migration, &c.MigrationUID, &c.EndedAt, &raw); err == nil {
				err = json.Unmarshal(raw, &d)
			}
			c.StartedAt, c.Failed = d.StartedAt, d.Failed
			c.EndedAt = c.EndedAt.UTC()
			return whatif.Event{At: c.EndedAt, Completion: c}, err
		}),
		r.newCursorSource(ctx, "requests", whatIfRequestsQuery, func(row pgx.CollectableRow) (e whatif.Event, err error) {
			x := &trail.EvictionRequest{EvacuationID: &trail.FactID{}}
			err = row.Scan((*[16]byte)(&x.ID), &x.Namespace, &x.VMI, &x.VMIUID, &x.Node, &x.RequestedAt, &x.RequesterClass, &x.DryRun, &x.Answer, (*[16]byte)(x.EvacuationID))
			x.RequestedAt = x.RequestedAt.UTC()
			return whatif.Event{At: x.RequestedAt, Request: x}, err
		}),
	}
}

// Rows are read so many at a time.
const (
	fetched   = 2000
	fetchNext = "FETCH FORWARD 2000 IN replay_" // and the name of the cursor
)

// newCursorSource reads the rows of a query by a cursor, in the order in which they come.
func (r *replaying) newCursorSource(ctx context.Context, name, query string, read pgx.RowToFunc[whatif.Event]) whatif.Source {
	var rows []whatif.Event
	opened, last := false, false
	return func() (whatif.Event, bool, error) {
		if !opened {
			opened = true
			used := pgx.StrictNamedArgs{}
			for argument, value := range r.args {
				if strings.Contains(query, "@"+argument) {
					used[argument] = value
				}
			}
			if _, err := r.tx.Exec(ctx, "DECLARE replay_"+name+" NO SCROLL CURSOR FOR"+query, pgx.QueryExecModeExec, used); err != nil {
				return whatif.Event{}, false, fmt.Errorf("open %s: %w", name, err)
			}
		}
		if len(rows) == 0 && !last {
			got, err := r.tx.Query(ctx, fetchNext+name, pg.Planned)
			if err == nil {
				rows, err = pgx.CollectRows(got, read)
			}
			if err != nil {
				return whatif.Event{}, false, fmt.Errorf("read %s: %w", name, err)
			}
			last = len(rows) < fetched
		}
		if len(rows) == 0 {
			return whatif.Event{}, false, nil
		}
		next := rows[0]
		rows = rows[1:]
		return next, true, nil
	}
}
