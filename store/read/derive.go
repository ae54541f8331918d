package read

import (
	"context"
	"iter"
	"maps"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/evictrail/evictrail/store/pg"
	"github.com/evictrail/evictrail/store/tables"
	"github.com/evictrail/evictrail/trail"
	"github.com/evictrail/evictrail/trail/fold"
)

// deriveVMs derives VMs of their facts and of what surrounds them. What their migrations waited for in times that do not matter is left open.
func (q *inquiry) deriveVMs(ctx context.Context, of map[trail.Subject][]trail.Fact, matter func(from, to time.Time) bool) (map[trail.Subject]trail.Derived, error) {
	env, err := q.loadEnv(ctx, of)
	if err != nil {
		return nil, err
	}
	rows := map[trail.Subject]trail.Derived{}
	var from, to []time.Time
	var but []trail.Subject
	var slots []trail.Slot
	for s, facts := range of {
		d := trail.Derive(s, facts, env, q.at)
		a, b := d.Queued(nil)
		for i := range a {
			if matter(a[i], b[i]) {
				from, to = append(from, a[i]), append(to, b[i])
			}
		}
		but, slots = append(but, s), append(slots, d.Slots()...)
		rows[s] = d
	}
	if len(from) == 0 {
		return rows, q.restoreFrozenRows(ctx, rows)
	}
	others, err := slotsWithin(ctx, q.tx, q.cluster, from, to, but)
	if err != nil {
		return nil, err
	}
	slots = append(slots, others...)
	for s, d := range rows {
		d.ExplainQueue(slots, env)
		rows[s] = d
	}
	return rows, q.restoreFrozenRows(ctx, rows)
}

func matchesAlways(_, _ time.Time) bool { return true }

// deriveInto reads the facts of VMs and derives them.
func (q *inquiry) deriveInto(ctx context.Context, rows map[trail.Subject]trail.Derived, vms []trail.Subject) error {
	var facts []trail.Fact
	if err := q.loadFacts(ctx, &facts, vms); err != nil {
		return err
	}
	derived, err := q.deriveVMs(ctx, trail.BySubject(facts), matchesAlways)
	for s, d := range derived {
		rows[s] = d
	}
	return err
}

// loadEnv reads what surrounds VMs with these facts.
func (q *inquiry) loadEnv(ctx context.Context, of map[trail.Subject][]trail.Fact) (*trail.Env, error) {
	var around, namespaces []trail.Subject
	common := trail.EnvSubjects()
	for _, s := range trail.EnvSubjects(slices.Collect(maps.Values(of))...) {
		switch {
		case slices.Contains(common, s): // they are read
		case s.Kind == trail.SubjectNamespace:
			namespaces = append(namespaces, s)
		default:
			around = append(around, s)
		}
	}
	facts := slices.Clone(q.common)
	for _, its := range of {
		for i := range its {
			if its[i].Object.Kind == trail.ObjectPod { // whose pods they are is all that VMs say about each other
				facts = append(facts, its[i])
			}
		}
	}
	var batch pgx.Batch
	q.queueFacts(&batch, &facts, around)
	if len(namespaces) > 0 {
		q.factsBy(&batch, &facts, tables.RequestsAboutMigrationsQuery, migrationsIn(q.cluster, q.at, namespaces, maps.Values(of)))
	}
	if err := q.tx.SendBatch(ctx, &batch).Close(); err != nil {
		return nil, err
	}
	env := trail.NewEnv(facts)
	env.Judge(q.thresholds)
	return env, q.evaluateEnv(ctx, env, slices.Collect(maps.Keys(of)))
}

// migrationsIn returns the times from the creation of the migrations of VMs, whose facts these are, in namespaces, by name, to their deletion if somebody
// may have asked for that; at the latest until a moment.
func migrationsIn(cluster string, at time.Time, namespaces []trail.Subject, of iter.Seq[[]trail.Fact]) pgx.StrictNamedArgs {
	type life struct{ from, to time.Time }
	lives := map[[2]string]*life{}
	note := func(f *trail.Fact) {
		in := trail.Subject{Kind: trail.SubjectNamespace, Name: f.Namespace}
		end, ended := f.Detail.(*trail.EndDetail)
		if f.Subject.Kind != trail.SubjectVMI || f.Kind != trail.KindMigrationSeen && (!ended || end.Final) || !slices.Contains(namespaces, in) {
			return
		}
		key := [2]string{pg.CleanText(in.String()), pg.CleanText(f.Migration)}
		if lives[key] == nil {
			lives[key] = &life{f.OccurredAt, f.OccurredAt}
		}
		if f.OccurredAt.Before(lives[key].from) {
			lives[key].from = f.OccurredAt
		}
		if f.OccurredAt.After(lives[key].to) {
			lives[key].to = f.OccurredAt
		}
	}
	for facts := range of {
		for i := range facts {
			note(&facts[i])
		}
	}
	var in, name []string
	var from, to []time.Time
	for key, l := range lives {
		in, name = append(in, key[0]), append(name, key[1])
		from, to = append(from, l.from.Add(-fold.AskedSlack)), append(to, l.to.Add(fold.AskedSlack))
	}
	return pgx.StrictNamedArgs{"cluster": cluster, "at": at, "namespaces": in, "names": name, "from": from, "to": to}
}

// A slot is looked for among those that were taken within a time or up to an hour before, and among those that were held for longer
// than that, which are few.
const slotsQuery = `
SELECT DISTINCT m.migration_uid, m.source_node, m.scheduling_at, m.finished_at
FROM unnest(@from::timestamptz[], @to::timestamptz[]) AS w(since, until)
CROSS JOIN LATERAL (
  SELECT subject, migration_uid, coalesce(source_node, '') AS source_node, scheduling_at, finished_at
  FROM evictrail.migrations
  WHERE cluster = @cluster
    AND scheduling_at BETWEEN w.since - interval '1 hour' AND w.until
    AND open_until >= w.since
  UNION ALL
  SELECT subject, migration_uid, coalesce(source_node, ''), scheduling_at, finished_at
  FROM evictrail.migrations
  WHERE cluster = @cluster
    AND scheduling_at < w.since - interval '1 hour'
    AND (finished_at IS NULL OR finished_at - scheduling_at > interval '1 hour')
    AND open_until >= w.since
) AS m
WHERE NOT m.subject = ANY(@but)`

// slotsWithin returns who held the slots of migrations at some moment of some times, but for some VMs.
func slotsWithin(ctx context.Context, tx pgx.Tx, cluster string, from, to []time.Time, but []trail.Subject) ([]trail.Slot, error) {
	rows, err := tx.Query(ctx, slotsQuery, pgx.StrictNamedArgs{"cluster": cluster, "from": from, "to": to, "but": tables.SubjectTexts(but)})
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, func(row pgx.CollectableRow) (trail.Slot, error) {
		var s trail.Slot
		var end *time.Time
		err := row.Scan(&s.MigrationUID, &s.Node, &s.From, &end)
		if end != nil {
			s.To = *end
		}
		return s, err
	})
}
