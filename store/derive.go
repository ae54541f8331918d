package store

import (
	"context"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/evictrail/evictrail/trail"
)

// Of the requests about migrations in a namespace only those can be about a VM that name one of its migrations, or that were made
// when one was created whose name the API server had yet to generate.
const requestsAboutMigrationsQuery = `
SELECT ` + factColumns + `
FROM evictrail.events
WHERE cluster = @cluster
  AND subject = ANY(@subjects)
  AND occurred_at <= @at
  AND (
    migration = ANY(@names)
    OR migration IS NULL AND EXISTS (
      SELECT FROM unnest(@times::timestamptz[]) AS t(created)
      WHERE occurred_at BETWEEN created - interval '1 minute' AND created + interval '1 minute'
    )
  )`

// derive derives VMs of their facts and of what surrounds them.
func (q *inquiry) derive(ctx context.Context, of map[trail.Subject][]trail.Fact) (map[trail.Subject]trail.Derived, error) {
	var own []trail.Fact
	for _, facts := range of {
		own = append(own, facts...)
	}
	env, err := q.env(ctx, own)
	if err != nil {
		return nil, err
	}
	rows := map[trail.Subject]trail.Derived{}
	var from, to []time.Time
	var but []trail.Subject
	var slots []trail.Slot
	for s, facts := range of {
		d := trail.Derive(s, facts, env, q.at)
		a, b := d.Queued()
		from, to, but, slots = append(from, a...), append(to, b...), append(but, s), append(slots, d.Slots()...)
		rows[s] = d
	}
	if len(from) == 0 {
		return rows, nil
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
	return rows, nil
}

// deriveInto reads the facts of VMs and derives them.
func (q *inquiry) deriveInto(ctx context.Context, rows map[trail.Subject]trail.Derived, vms []trail.Subject) error {
	var facts []trail.Fact
	if err := q.read(ctx, &facts, vms); err != nil {
		return err
	}
	of := map[trail.Subject][]trail.Fact{}
	for _, f := range facts {
		of[f.Subject] = append(of[f.Subject], f)
	}
	derived, err := q.derive(ctx, of)
	for s, d := range derived {
		rows[s] = d
	}
	return err
}

// env reads what surrounds VMs with these facts.
func (q *inquiry) env(ctx context.Context, own []trail.Fact) (*trail.Env, error) {
	var around, namespaces []trail.Subject
	common := trail.EnvSubjects(nil)
	for _, s := range trail.EnvSubjects(own) {
		switch {
		case slices.Contains(common, s): // they are read
		case s.Kind == trail.SubjectNamespace:
			namespaces = append(namespaces, s)
		default:
			around = append(around, s)
		}
	}
	facts := slices.Concat(own, q.common)
	var batch pgx.Batch
	q.facts(&batch, &facts, around)
	if len(namespaces) > 0 {
		var migrations objectNames
		for _, f := range own {
			if f.Kind == trail.KindMigrationSeen {
				migrations.add(f.Namespace, f.Migration, f.OccurredAt)
			}
		}
		q.factsBy(&batch, &facts, requestsAboutMigrationsQuery, pgx.StrictNamedArgs{
			"cluster": q.cluster, "subjects": names(namespaces), "at": q.at, "names": migrations.names, "times": migrations.times,
		})
	}
	if err := q.tx.SendBatch(ctx, &batch).Close(); err != nil {
		return nil, err
	}
	env := trail.NewEnv(facts)
	env.Judge(q.thresholds)
	return env, nil
}
