package load

import (
	"context"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/evictrail/evictrail/store/pg"
	"github.com/evictrail/evictrail/store/tables"
	"github.com/evictrail/evictrail/trail"
	"github.com/evictrail/evictrail/trail/fold"
)

// A fact about a node can change what marks since the fact before it mean, and which taint took a pod away; one about the rules or a gap what marks of all
// nodes mean; one about the descheduler also what the ends of migrations mean to it. That a node is ready or not concerns the migrations to it, too.
const affectedQuery = `
SELECT subject
FROM evictrail.events
WHERE cluster = @cluster
  AND kind IN ('evacuation_marked', 'migration_seen', 'migration_completed')
  AND (node = ANY(@nodes) OR @everywhere)
  AND occurred_at >= @since
UNION
SELECT subject
FROM evictrail.migrations
WHERE cluster = @cluster
  AND target_node = ANY(@readiness)
  AND open_until >= @since
UNION
SELECT subject
FROM evictrail.events
WHERE cluster = @cluster
  AND kind = 'launcher_pod'
  AND reason = 'disrupted'
  AND node = ANY(@nodes)
  AND occurred_at >= @since
ORDER BY subject`

const nodesQuery = `
SELECT subject
FROM evictrail.subjects
WHERE cluster = @cluster
  AND (subject LIKE 'node:%' OR subject LIKE 'cluster:%')
ORDER BY subject`

const requestsSinceQuery = `
SELECT DISTINCT subject
FROM evictrail.eviction_requests
WHERE cluster = @cluster
  AND requested_at >= @since
ORDER BY subject`

// A request about a migration is about the VM of that migration, by its name or, where the API server had yet to generate it, by the time of its creation.
const (
	ofNamedMigrationsQuery = `
SELECT DISTINCT e.subject
FROM unnest(@namespaces::text[], @names::text[]) AS m(namespace, name)
JOIN evictrail.events e ON e.cluster = @cluster AND e.namespace = m.namespace AND e.migration = m.name
WHERE e.kind = 'migration_seen'
ORDER BY e.subject`
	ofNewMigrationsQuery = `
SELECT DISTINCT e.subject
FROM unnest(@namespaces::text[], @times::timestamptz[]) AS m(namespace, at)
JOIN evictrail.events e ON e.cluster = @cluster AND e.namespace = m.namespace
  AND e.occurred_at BETWEEN m.at - interval '1 minute' AND m.at + interval '1 minute'
WHERE e.kind = 'migration_seen'
ORDER BY e.subject`
)

// Asked returns requests about pods and migrations (fold.Source).
func (l Source) Asked(ctx context.Context, about fold.Asked) (facts []trail.Fact, err error) {
	collect := func(rows pgx.Rows) error {
		its, err := tables.CollectFacts(rows, l.cluster)
		facts = append(facts, its...)
		return err
	}
	var batch pgx.Batch
	if len(about.Pods) > 0 {
		pods, since := make([]string, len(about.Pods)), make([]time.Time, len(about.Pods))
		for i, want := range about.Pods {
			pods[i], since[i] = pg.CleanText(want.Subject.String()), pg.SendableTime(want.Since)
		}
		batch.Queue(tables.FactsSinceQuery, pgx.StrictNamedArgs{"cluster": l.cluster, "subjects": pods, "from": since}).Query(collect)
	}
	if len(about.Migrations) > 0 {
		var namespaces, of []string
		var from, to []time.Time
		for _, m := range about.Migrations {
			namespaces, of = append(namespaces, pg.CleanText(trail.Subject{Kind: trail.SubjectNamespace, Name: m.Namespace}.String())), append(of, pg.CleanText(m.Name))
			from, to = append(from, m.Created.Add(-fold.AskedSlack)), append(to, m.Deleted.Add(fold.AskedSlack))
		}
		batch.Queue(tables.RequestsAboutMigrationsQuery, pgx.StrictNamedArgs{
			"cluster": l.cluster, "at": pg.Never, "namespaces": namespaces, "names": of, "from": from, "to": to,
		}).Query(collect)
	}
	err = l.db.SendBatch(ctx, &batch).Close()
	return facts, pg.Explain("load requests", err)
}

// ownersQuery finds the VMs whose launcher pods some pods are.
const ownersQuery = `
SELECT DISTINCT e.subject, p.pod
FROM unnest(@namespaces::text[], @names::text[], @pods::text[]) AS p(namespace, name, pod)
JOIN evictrail.events AS e ON e.cluster = @cluster AND e.namespace = p.namespace AND e.detail ->> 'pod' = p.name
WHERE e.kind = 'launcher_pod'`

// Affected returns the subjects that new facts concern beside their own (fold.Source).
func (l Source) Affected(ctx context.Context, of fold.Impact) (out fold.Affected, err error) {
	collect := func(into *[]trail.Subject, only func(trail.Subject) bool) func(pgx.Rows) error {
		return func(rows pgx.Rows) error {
			found, err := collectSubjects(rows)
			*into = append(*into, slices.DeleteFunc(found, func(s trail.Subject) bool { return !only(s) })...)
			return err
		}
	}
	isVM := func(s trail.Subject) bool { return s.Kind == trail.SubjectVMI }
	all := func(trail.Subject) bool { return true }
	var batch pgx.Batch
	if len(of.Nodes) > 0 || of.Everywhere {
		batch.Queue(affectedQuery, pgx.StrictNamedArgs{
			"cluster": l.cluster, "nodes": of.Nodes, "readiness": of.Readiness, "everywhere": of.Everywhere, "since": pg.SendableTime(of.Since),
		}).Query(collect(&out.VMs, isVM))
	}
	if of.AllNodes {
		batch.Queue(nodesQuery, pgx.StrictNamedArgs{"cluster": l.cluster}).Query(collect(&out.Nodes, all))
	}
	if of.Settings != nil {
		batch.Queue(requestsSinceQuery, pgx.StrictNamedArgs{"cluster": l.cluster, "since": pg.SendableTime(*of.Settings)}).Query(collect(&out.Requesters, all))
	}
	if len(of.Pods) > 0 {
		var namespaces, podNames []string
		for _, pod := range of.Pods {
			namespace, name := pod.VM()
			namespaces, podNames = append(namespaces, pg.CleanText(namespace)), append(podNames, pg.CleanText(name))
		}
		batch.Queue(ownersQuery, pgx.StrictNamedArgs{"cluster": l.cluster, "namespaces": namespaces, "names": podNames, "pods": tables.SubjectTexts(of.Pods)}).Query(pg.EachRow(func(row pgx.CollectableRow) error {
			var vm, pod string
			if err := row.Scan(&vm, &pod); err != nil {
				return err
			}
			owner, err := trail.ParseSubject(vm)
			if err != nil {
				return err
			}
			owned, err := trail.ParseSubject(pod)
			out.Owners, out.Owned = append(out.Owners, owner), append(out.Owned, owned)
			return err
		}))
	}
	var named, unnamed objectNames
	for _, m := range of.Migrations {
		if m.Name != "" {
			named.add(m.Namespace, m.Name, m.Created)
		} else {
			unnamed.add(m.Namespace, "", m.Created)
		}
	}
	if len(named.names) > 0 {
		batch.Queue(ofNamedMigrationsQuery, pgx.StrictNamedArgs{"cluster": l.cluster, "namespaces": named.namespaces, "names": named.names}).Query(collect(&out.Owners, isVM))
	}
	if len(unnamed.names) > 0 {
		batch.Queue(ofNewMigrationsQuery, pgx.StrictNamedArgs{"cluster": l.cluster, "namespaces": unnamed.namespaces, "times": unnamed.times}).Query(collect(&out.Owners, isVM))
	}
	err = l.db.SendBatch(ctx, &batch).Close()
	return out, pg.Explain("find what new facts affect", err)
}

// queueQuery reads the migrations that had not finished by a time, as far as slots and waiting are concerned.
const queueQuery = `
SELECT subject, migration_uid, coalesce(source_node, ''), created_at, scheduling_at, finished_at, coalesce(wait_reason, '')
FROM evictrail.migrations
WHERE cluster = @cluster
  AND open_until >= @since`

// Migrations returns the migrations that had not finished by a time (fold.Source).
func (l Source) Migrations(ctx context.Context, since time.Time, see func(trail.Subject, *trail.Migration)) error {
	var m trail.Migration
	var batch pgx.Batch
	batch.Queue(queueQuery, pgx.StrictNamedArgs{"cluster": l.cluster, "since": pg.SendableTime(since)}).Query(pg.EachRow(func(row pgx.CollectableRow) error {
		var vm string
		var scheduling, finished *time.Time
		if err := row.Scan(&vm, &m.UID, &m.SourceNode, &m.CreatedAt, &scheduling, &finished, &m.WaitReason); err != nil {
			return err
		}
		m.CreatedAt, m.SchedulingAt, m.FinishedAt = m.CreatedAt.UTC(), pg.TimeOrZero(scheduling), pg.TimeOrZero(finished)
		s, err := trail.ParseSubject(vm)
		if err == nil {
			see(s, &m)
		}
		return err
	}))
	return pg.Explain("load the queue of migrations", l.db.SendBatch(ctx, &batch).Close())
}

// collectSubjects reads subjects out of rows of one text.
func collectSubjects(rows pgx.Rows) ([]trail.Subject, error) {
	texts, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		return nil, pg.Explain("find what is concerned", err)
	}
	out := make([]trail.Subject, len(texts))
	for i, text := range texts {
		if out[i], err = trail.ParseSubject(text); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// objectNames are names of objects as unnest wants them, with the times of what was asked of them.
type objectNames struct {
	namespaces, names []string
	times             []time.Time
}

func (o *objectNames) add(namespace, name string, at time.Time) {
	o.namespaces, o.names, o.times = append(o.namespaces, pg.CleanText(namespace)), append(o.names, pg.CleanText(name)), append(o.times, at)
}
