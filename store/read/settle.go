package read

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/evictrail/evictrail/store/pg"
	"github.com/evictrail/evictrail/store/tables"
	"github.com/evictrail/evictrail/trail"
)

// evaluateEnv adds to an Env what is settled of VMs: what had ended when facts were dropped.
func (q *inquiry) evaluateEnv(ctx context.Context, env *trail.Env, vms []trail.Subject) error {
	if q.settled == nil || len(vms) == 0 {
		return nil
	}
	s := trail.Settled{Before: map[trail.Subject]time.Time{}, Bounces: map[trail.Bounce]int{}}
	before := make([]time.Time, len(vms))
	for i, vm := range vms {
		s.Before[vm], before[i] = *q.settled, *q.settled
	}
	rows, err := q.tx.Query(ctx, tables.BouncesQuery, pgx.StrictNamedArgs{"cluster": q.cluster, "subjects": tables.SubjectTexts(vms), "before": before})
	if err != nil {
		return pg.Explain("read what is settled", err)
	}
	type bounces struct {
		Subject, Of string
		Kind        trail.LoopKind
		Count       int
	}
	all, err := pgx.CollectRows(rows, pgx.RowToStructByPos[bounces])
	for _, b := range all {
		s.Bounces[trail.Bounce{Of: b.Of, Kind: b.Kind}] += b.Count
	}
	env.Settle(s)
	return pg.Explain("read what is settled", err)
}

// settledRows has the question for the rows of each derived table that are settled.
var settledRows = func() map[string]string {
	out := map[string]string{}
	for _, of := range tables.Derived {
		order := of.Begun + ", " + of.Key
		if of.Name == "timeline" {
			order = "at, tie, event_id"
		}
		out[of.Name] = rowsQuery(of.Name, "\n  AND open_until < @settled", order)
	}
	return out
}()

// goesOnQuery asks for the keys of rows about what was open when facts were dropped.
var goesOnQuery = func() string {
	var out []string
	for _, of := range tables.Derived {
		out = append(out, fmt.Sprintf(`
SELECT '%[1]s ' || %[2]s::text
FROM evictrail.%[1]s AS t
WHERE cluster = @cluster
  AND subject = ANY(@subjects)
  AND %[3]s < @settled
  AND open_until >= @settled`, of.Name, of.Key, of.Begun))
	}
	return strings.Join(out, "\nUNION ALL")
}()

// restoreFrozenRows replaces, of what was derived, what had ended when facts were dropped by the rows that were stored before.
func (q *inquiry) restoreFrozenRows(ctx context.Context, rows map[trail.Subject]trail.Derived) error {
	if q.settled == nil || len(rows) == 0 {
		return nil
	}
	of := tables.SubjectTexts(tables.SortedSubjects(rows))
	args := pgx.StrictNamedArgs{"cluster": q.cluster, "subjects": of, "settled": q.settled}
	settled := map[trail.Subject]trail.Derived{}
	var batch pgx.Batch
	batch.Queue(settledRows["eviction_requests"], args).Query(tables.CollectOf(settled, func(d *trail.Derived) *[]trail.EvictionRequest { return &d.Requests }))
	batch.Queue(settledRows["evacuations"], args).Query(tables.CollectOf(settled, func(d *trail.Derived) *[]trail.Evacuation { return &d.Evacuations }))
	batch.Queue(settledRows["migrations"], args).Query(tables.CollectOf(settled, func(d *trail.Derived) *[]trail.Migration { return &d.Migrations }))
	batch.Queue(settledRows["placements"], args).Query(tables.CollectOf(settled, func(d *trail.Derived) *[]trail.Placement { return &d.Placements }))
	batch.Queue(settledRows["cooldown_decisions"], args).Query(tables.CollectOf(settled, func(d *trail.Derived) *[]trail.Decision { return &d.Decisions }))
	batch.Queue(settledRows["loops"], args).Query(tables.CollectOf(settled, func(d *trail.Derived) *[]trail.Loop { return &d.Loops }))
	batch.Queue(settledRows["drains"], args).Query(tables.CollectOf(settled, func(d *trail.Derived) *[]trail.Drain { return &d.Drains }))
	batch.Queue(settledRows["outages"], args).Query(tables.CollectOf(settled, func(d *trail.Derived) *[]trail.Outage { return &d.Outages }))
	batch.Queue(settledRows["gaps"], args).Query(tables.CollectOf(settled, func(d *trail.Derived) *[]trail.Gap { return &d.Gaps }))
	batch.Queue(settledRows["timeline"], args).Query(tables.CollectOf(settled, func(d *trail.Derived) *[]trail.Line { return &d.Timeline }))
	goesOn := map[string]bool{}
	batch.Queue(goesOnQuery, args).Query(pg.EachRow(func(row pgx.CollectableRow) error {
		var key string
		err := row.Scan(&key)
		goesOn[key] = true
		return err
	}))
	if err := q.tx.SendBatch(ctx, &batch).Close(); err != nil {
		return err
	}
	for s, d := range rows {
		rows[s] = d.Unsettled(*q.settled, goesOn).After(settled[s])
	}
	return nil
}
