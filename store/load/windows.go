package load

import (
	"context"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"
	"golang.org/x/sync/errgroup"

	"github.com/evictrail/evictrail/store/pg"
	"github.com/evictrail/evictrail/store/tables"
	"github.com/evictrail/evictrail/trail"
	"github.com/evictrail/evictrail/trail/fold"
)

// Source is the fold.Source of a cluster: it reads for a fold.Cluster what that does not hold in memory. It is safe for concurrent use.
type Source struct {
	db      *pg.DB
	cluster string
}

// New returns the Source of a cluster.
func New(db *pg.DB, cluster string) Source { return Source{db, cluster} }

// factsThatMatterQuery reads all facts of subjects since a time, and those from before it that say how they stood. OFFSET is there for what
// FactsOfSubjectsQuery has it for.
const factsThatMatterQuery = `
SELECT f.*
FROM unnest(@subjects::text[], @from::timestamptz[]) AS s(of, since)
CROSS JOIN LATERAL (
  WITH ` + tables.StateBefore + `
  SELECT ` + tables.FactColumns + `
  FROM evictrail.events
  WHERE cluster = @cluster
    AND subject = s.of
    AND occurred_at >= s.since
  UNION ALL
  SELECT its.*
  FROM state_before AS b
  CROSS JOIN LATERAL (
    SELECT ` + tables.FactColumns + `
    FROM evictrail.events
    WHERE cluster = @cluster
      AND subject = s.of
      AND occurred_at = b.occurred_at
      AND id = b.id
    OFFSET 0
  ) AS its
  OFFSET 0
) AS f`

// Of what is asked of a node that matters which is near what became of it: who cordoned it, or tainted it. Somebody may patch it every few seconds for something
// else.
const factsOfNodesQuery = `
SELECT f.*
FROM unnest(@nodes::text[]) AS s(of)
CROSS JOIN LATERAL (
  WITH became AS MATERIALIZED (
    SELECT ` + tables.FactColumns + `
    FROM evictrail.events
    WHERE cluster = @cluster
      AND subject = s.of
      AND subject LIKE 'node:%'
      AND kind <> 'action_requested'
  ), near AS (
    SELECT unnest(range_agg(tstzrange(c.at - @around::interval, c.at + @around::interval))) AS at
    FROM (
      SELECT occurred_at
      FROM became
      WHERE kind IN ('node_cordoned', 'node_uncordoned', 'node_tainted', 'node_untainted')
    ) AS c(at)
  )
  SELECT *
  FROM became
  UNION ALL
  SELECT asked.*
  FROM near
  CROSS JOIN LATERAL (
    SELECT ` + tables.FactColumns + `
    FROM evictrail.events
    WHERE cluster = @cluster
      AND subject = s.of
      AND kind = 'action_requested'
      AND occurred_at BETWEEN lower(near.at) AND upper(near.at)
    OFFSET 0
  ) AS asked
  OFFSET 0
) AS f`

// A descheduler that runs as a CronJob is started hundreds of times a day: of those before a time the last one suffices.
const rulesSinceQuery = `
SELECT f.*
FROM unnest(@subjects::text[]) AS s(of)
CROSS JOIN LATERAL (
  SELECT ` + tables.FactColumns + `
  FROM evictrail.events
  WHERE cluster = @cluster
    AND subject = s.of
    AND (kind <> 'descheduler_started' OR occurred_at >= @since)
  UNION ALL
  (
    SELECT ` + tables.FactColumns + `
    FROM evictrail.events
    WHERE cluster = @cluster
      AND subject = s.of
      AND kind = 'descheduler_started'
      AND occurred_at < @since
    ORDER BY occurred_at DESC
    LIMIT 1
  )
  OFFSET 0
) AS f`

// namespaceSlack is how long before new requests in a namespace its facts are read: lines may be a little later than their facts.
const namespaceSlack = 10 * time.Minute

// openWindowsQuery finds from when on subjects have to be derived for what changed since a time, and from when on their facts matter to that: rows that had
// ended before the first stay as they are; what is derived of the others depends on what was open within the lookback before.
const openWindowsQuery = `
WITH wanted AS (
  SELECT w.subject, coalesce(s.version, 0) AS version, s.next_at, least(w.since, s.next_at) - @slack::interval AS since
  FROM unnest(@subjects::text[], @since::timestamptz[]) AS w(subject, since)
  LEFT JOIN evictrail.subjects AS s ON s.cluster = @cluster AND s.subject = w.subject
), recorded AS MATERIALIZED (
  SELECT w.subject, r.begun, r.open_until
  FROM wanted AS w
  CROSS JOIN LATERAL (
    SELECT t.requested_at AS begun, t.open_until FROM evictrail.eviction_requests AS t WHERE t.cluster = @cluster AND t.subject = w.subject
    UNION ALL
    SELECT t.marked_at, t.open_until FROM evictrail.evacuations AS t WHERE t.cluster = @cluster AND t.subject = w.subject
    UNION ALL
    SELECT t.created_at, t.open_until FROM evictrail.migrations AS t WHERE t.cluster = @cluster AND t.subject = w.subject
    UNION ALL
    SELECT t.decided_at, t.open_until FROM evictrail.cooldown_decisions AS t WHERE t.cluster = @cluster AND t.subject = w.subject
    UNION ALL
    SELECT t.opened_at, t.open_until FROM evictrail.loops AS t WHERE t.cluster = @cluster AND t.subject = w.subject
  ) AS r
  WHERE w.subject LIKE 'vmi:%'
), rows_of AS (
  SELECT w.subject, w.version, w.next_at, least(w.since, min(r.begun)) - interval '1 second' AS rows_from
  FROM wanted AS w
  LEFT JOIN recorded AS r ON r.subject = w.subject AND r.open_until >= w.since
  GROUP BY w.subject, w.version, w.next_at, w.since
)
SELECT w.subject, w.version, w.next_at, w.rows_from, least(w.rows_from - @lookback::interval, min(r.begun)) - @lookback::interval AS facts_from
FROM rows_of AS w
LEFT JOIN recorded AS r ON r.subject = w.subject AND r.open_until >= w.rows_from - @lookback::interval
GROUP BY w.subject, w.version, w.next_at, w.rows_from`

// openWindow is a row of openWindowsQuery.
type openWindow struct {
	Subject   string
	Version   int64
	NextAt    *time.Time
	RowsFrom  *time.Time
	FactsFrom *time.Time
}

// Many windows are loaded by two connections at once: Postgres is as busy with it as we are.
const (
	loaders       = 2
	loadsTogether = 8 // windows that are too few to share
)

// Windows returns windows of subjects (fold.Source).
func (l Source) Windows(ctx context.Context, wants []fold.Want, lookback time.Duration) ([]*fold.Window, error) {
	if len(wants) <= loadsTogether {
		return l.loadWindows(ctx, wants, lookback)
	}
	parts := make([][]*fold.Window, loaders)
	group, ctx := errgroup.WithContext(ctx)
	for i := range parts {
		some := wants[len(wants)*i/loaders : len(wants)*(i+1)/loaders]
		group.Go(func() (err error) {
			parts[i], err = l.loadWindows(ctx, some, lookback)
			return err
		})
	}
	err := group.Wait()
	return slices.Concat(parts...), err
}

// loadWindows returns windows that are read in one transaction. A version is read before the facts: what is recorded in between is in a later one.
func (l Source) loadWindows(ctx context.Context, wants []fold.Want, lookback time.Duration) ([]*fold.Window, error) {
	windows := map[trail.Subject]*fold.Window{}
	subjects, since := make([]string, len(wants)), make([]time.Time, len(wants))
	for i, want := range wants {
		windows[want.Subject] = &fold.Window{Subject: want.Subject, Since: want.Since}
		subjects[i], since[i] = pg.CleanText(want.Subject.String()), pg.SendableTime(want.Since)
	}
	err := l.runInTx(ctx, func(tx pgx.Tx, frozenTo time.Time) error {
		rows, err := tx.Query(ctx, openWindowsQuery, pgx.StrictNamedArgs{
			"cluster": l.cluster, "subjects": subjects, "since": since, "slack": tables.AroundSlack, "lookback": lookback,
		})
		if err != nil {
			return err
		}
		found, err := pgx.CollectRows(rows, pgx.RowToStructByPos[openWindow])
		if err != nil {
			return err
		}
		return l.fillWindows(ctx, tx, windows, found, frozenTo)
	})
	out := make([]*fold.Window, len(wants))
	for i, want := range wants {
		out[i] = windows[want.Subject]
	}
	return out, err
}

// runInTx runs a function in a transaction in which no facts are dropped. frozenTo is until when facts were dropped before; zero: none were.
func (l Source) runInTx(ctx context.Context, run func(tx pgx.Tx, frozenTo time.Time) error) error {
	return l.db.InTx(ctx, "load windows", func(tx pgx.Tx) error {
		var settled *time.Time
		var batch pgx.Batch
		batch.Queue(tables.DropNoFactsQuery)
		tables.QueueSettled(&batch, l.cluster, &settled)
		if err := tx.SendBatch(ctx, &batch).Close(); err != nil {
			return err
		}
		return run(tx, pg.TimeOrZero(settled))
	})
}

// fillWindows reads the facts and rows of windows.
func (l Source) fillWindows(ctx context.Context, tx pgx.Tx, windows map[trail.Subject]*fold.Window, found []openWindow, frozenTo time.Time) error {
	var vms, whole, nodes, namespaces, rules, all, frozen []string
	var vmFrom, namespaceFrom, rowsFrom, frozenFrom []time.Time
	rulesSince := pg.Never
	for _, f := range found {
		s, err := trail.ParseSubject(f.Subject)
		if err != nil {
			return err
		}
		w := windows[s]
		w.Version, w.Due, w.FrozenTo, w.Frozen = f.Version, pg.TimeOrZero(f.NextAt), frozenTo, map[trail.Bounce]int{}
		partly := !w.Since.IsZero()
		switch {
		case s.Kind == trail.SubjectNode:
			nodes, w.Since = append(nodes, f.Subject), time.Time{}
			continue // its rows are read with those that it is derived of
		case s.Kind == trail.SubjectCluster:
			w.Since = time.Time{}
			continue
		case s.Kind == trail.SubjectConfig:
			rules = append(rules, f.Subject)
			if w.RowsFrom = w.Since; partly && w.Since.Before(rulesSince) {
				rulesSince = w.Since
			} else if !partly {
				rulesSince = pg.Beginning
			}
		case partly && s.Kind == trail.SubjectVMI:
			vms, vmFrom = append(vms, f.Subject), append(vmFrom, f.FactsFrom.UTC())
			w.RowsFrom, w.FactsFrom = f.RowsFrom.UTC(), f.FactsFrom.UTC()
		case partly && s.Kind == trail.SubjectNamespace: // each request stands for itself, and a namespace may have most of those of a cluster
			w.RowsFrom = w.Since.Add(-namespaceSlack / 2) // lines may be a little later than their facts
			namespaces, namespaceFrom = append(namespaces, f.Subject), append(namespaceFrom, w.Since.Add(-namespaceSlack))
		default:
			whole, w.Since = append(whole, f.Subject), time.Time{}
		}
		all, rowsFrom = append(all, f.Subject), append(rowsFrom, pg.SendableTime(w.RowsFrom))
		if !w.RowsFrom.IsZero() { // of a whole window all loops are in its rows
			frozen, frozenFrom = append(frozen, f.Subject), append(frozenFrom, w.RowsFrom)
		}
	}
	var batch pgx.Batch
	facts := func(rows pgx.Rows) error {
		its, err := tables.CollectFacts(rows, l.cluster)
		count := map[trail.Subject]int{}
		for i := range its {
			count[its[i].Subject]++
		}
		for i := range its {
			w := windows[its[i].Subject]
			if w.Facts == nil { // each has its own memory, as it is dropped by itself
				w.Facts = make([]trail.Fact, 0, count[w.Subject])
			}
			w.Facts = append(w.Facts, its[i])
		}
		return err
	}
	if len(vms) > 0 {
		batch.Queue(factsThatMatterQuery, pgx.StrictNamedArgs{"cluster": l.cluster, "subjects": vms, "from": vmFrom}).Query(facts)
	}
	if len(whole) > 0 {
		batch.Queue(tables.FactsOfSubjectsQuery, pgx.StrictNamedArgs{"cluster": l.cluster, "subjects": whole}).Query(facts)
	}
	if len(nodes) > 0 {
		batch.Queue(factsOfNodesQuery, pgx.StrictNamedArgs{
			"cluster": l.cluster, "nodes": nodes, "around": fold.AskedAround,
		}).Query(facts)
	}
	if len(namespaces) > 0 {
		batch.Queue(tables.FactsSinceQuery, pgx.StrictNamedArgs{"cluster": l.cluster, "subjects": namespaces, "from": namespaceFrom}).Query(facts)
	}
	if len(rules) > 0 {
		batch.Queue(rulesSinceQuery, pgx.StrictNamedArgs{"cluster": l.cluster, "subjects": rules, "since": rulesSince}).Query(facts)
	}
	rows := map[trail.Subject]trail.Derived{}
	readRows(&batch, l.cluster, all, rowsFrom, rows)
	if len(frozen) > 0 {
		batch.Queue(tables.BouncesQuery, pgx.StrictNamedArgs{"cluster": l.cluster, "subjects": frozen, "before": frozenFrom}).Query(pg.EachRow(func(row pgx.CollectableRow) error {
			var subject string
			var of trail.Bounce
			var n int
			if err := row.Scan(&subject, &of.Of, &of.Kind, &n); err != nil {
				return err
			}
			s, err := trail.ParseSubject(subject)
			windows[s].Frozen[of] = n
			return err
		}))
	}
	if err := tx.SendBatch(ctx, &batch).Close(); err != nil {
		return err
	}
	for s, d := range rows {
		windows[s].Rows = d
	}
	return nil
}

// rowsSince asks for the rows of subjects that had not ended before a time of each, as columns or, where these hold JSON, as JSON. OFFSET is there
// for what FactsOfSubjectsQuery has it for.
func rowsSince(columns, table, order string) string {
	return `
SELECT t.subject, ` + columns + `
FROM unnest(@subjects::text[], @since::timestamptz[]) AS s(of, since)
CROSS JOIN LATERAL (
  SELECT *
  FROM evictrail.` + table + `
  WHERE cluster = @cluster
    AND subject = s.of
    AND open_until >= s.since
  OFFSET 0
) AS t
ORDER BY ` + order
}

const asJSON = "row_to_json(t)"

var (
	requestsSince     = rowsSince(tables.ColumnsOf[trail.EvictionRequest](), "eviction_requests", "t.requested_at, t.request_id")
	evacuationsSince  = rowsSince(asJSON, "evacuations", "t.marked_at, t.evacuation_id")
	migrationsSince   = rowsSince(tables.ColumnsOf[trail.Migration](), "migrations", "t.created_at, t.migration_uid")
	placementsSince   = rowsSince(tables.ColumnsOf[trail.Placement](), "placements", "t.from_at, t.placement_id")
	decisionsSince    = rowsSince(asJSON, "cooldown_decisions", "t.decided_at, t.decision_id")
	loopsSince        = rowsSince(asJSON, "loops", "t.opened_at, t.loop_id")
	drainsSince       = rowsSince(asJSON, "drains", "t.started_at, t.drain_id")
	blockersSince     = rowsSince(asJSON, "drain_blockers", "t.waiting_since, t.vmi_uid")
	consequencesSince = rowsSince(asJSON, "consequences", "t.at, t.consequence_id")
	outagesSince      = rowsSince(asJSON, "outages", "t.began_at, t.outage_id")
	gapsSince         = rowsSince(asJSON, "gaps", "t.opened_at, t.gap_id")
	linesSince        = rowsSince(tables.ColumnsOf[trail.Line](), "timeline", "t.at, t.tie, t.event_id")
)

// readRows asks for all rows of subjects that had not ended before a time of each.
func readRows(batch *pgx.Batch, cluster string, subjects []string, since []time.Time, into map[trail.Subject]trail.Derived) {
	if len(subjects) == 0 {
		return
	}
	args := pgx.StrictNamedArgs{"cluster": cluster, "subjects": subjects, "since": since}
	batch.Queue(requestsSince, args).Query(tables.CollectColumnsOf(into, func(d *trail.Derived) *[]trail.EvictionRequest { return &d.Requests }))
	batch.Queue(evacuationsSince, args).Query(tables.CollectOf(into, func(d *trail.Derived) *[]trail.Evacuation { return &d.Evacuations }))
	batch.Queue(migrationsSince, args).Query(tables.CollectColumnsOf(into, func(d *trail.Derived) *[]trail.Migration { return &d.Migrations }))
	batch.Queue(placementsSince, args).Query(tables.CollectColumnsOf(into, func(d *trail.Derived) *[]trail.Placement { return &d.Placements }))
	batch.Queue(decisionsSince, args).Query(tables.CollectOf(into, func(d *trail.Derived) *[]trail.Decision { return &d.Decisions }))
	batch.Queue(loopsSince, args).Query(tables.CollectOf(into, func(d *trail.Derived) *[]trail.Loop { return &d.Loops }))
	batch.Queue(drainsSince, args).Query(tables.CollectOf(into, func(d *trail.Derived) *[]trail.Drain { return &d.Drains }))
	batch.Queue(blockersSince, args).Query(tables.CollectOf(into, func(d *trail.Derived) *[]trail.DrainBlocker { return &d.Blockers }))
	batch.Queue(consequencesSince, args).Query(tables.CollectOf(into, func(d *trail.Derived) *[]trail.Consequence { return &d.Consequences }))
	batch.Queue(outagesSince, args).Query(tables.CollectOf(into, func(d *trail.Derived) *[]trail.Outage { return &d.Outages }))
	batch.Queue(gapsSince, args).Query(tables.CollectOf(into, func(d *trail.Derived) *[]trail.Gap { return &d.Gaps }))
	batch.Queue(linesSince, args).Query(tables.CollectColumnsOf(into, func(d *trail.Derived) *[]trail.Line { return &d.Timeline }))
}
