package store

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/evictrail/evictrail/trail"
)

// derivation is one transaction's work on some subjects: their facts as they are, and what is derived of them.
type derivation struct {
	tx      pgx.Tx
	cluster string
	facts   map[trail.Subject][]trail.Fact // of the subjects that are held
}

const holdSubjectsQuery = `
INSERT INTO evictrail.subjects (cluster, subject, derived_at)
SELECT @cluster, s, now()
FROM unnest(@subjects::text[]) AS s
ON CONFLICT (cluster, subject) DO UPDATE SET derived_at = excluded.derived_at`

// hold takes the rows of subjects, waiting for other writers, and reads their facts. Subjects come sorted, so that no
// two writers wait for each other.
func (d *derivation) hold(ctx context.Context, subjects []trail.Subject) error {
	var fresh []trail.Subject
	for _, s := range subjects {
		if _, held := d.facts[s]; !held {
			d.facts[s] = nil
			fresh = append(fresh, s)
		}
	}
	if len(fresh) == 0 {
		return nil
	}
	_, err := d.tx.Exec(ctx, holdSubjectsQuery, pgx.StrictNamedArgs{"cluster": d.cluster, "subjects": names(fresh)})
	if err != nil {
		return explain("take subjects", err)
	}
	facts, err := factsOf(ctx, d.tx, d.cluster, fresh)
	for _, f := range facts {
		d.facts[f.Subject] = append(d.facts[f.Subject], f)
	}
	return err
}

// missing gives the facts that are not stored yet, each once, and takes them in.
func (d *derivation) missing(facts []trail.Fact) []trail.Fact {
	stored := map[trail.FactID]bool{}
	for _, of := range d.facts {
		for _, f := range of {
			stored[f.ID] = true
		}
	}
	var out []trail.Fact
	for _, f := range facts {
		if !stored[f.ID] {
			stored[f.ID] = true
			out = append(out, f)
			d.facts[f.Subject] = append(d.facts[f.Subject], f)
		}
	}
	return out
}

// derive derives again what new facts concern: their own subjects, and the VMs whose marks a fact about a node or
// about the rules in force may put in another light.
func (d *derivation) derive(ctx context.Context, added []trail.Fact) error {
	if len(added) == 0 {
		return nil
	}
	subjects := map[trail.Subject]bool{}
	for _, f := range added {
		subjects[f.Subject] = true
	}
	for _, find := range []func(context.Context, []trail.Fact) ([]trail.Subject, error){d.concerned, d.concernedByRequests} {
		concerned, err := find(ctx, added)
		if err != nil {
			return err
		}
		if err := d.hold(ctx, concerned); err != nil {
			return err
		}
		for _, s := range concerned {
			subjects[s] = true
		}
	}
	return d.replace(ctx, sortedSubjects(subjects))
}

// A fact about a node can change what marks since the fact before it mean, one about the rules or a gap those of all
// nodes.
const concernedQuery = `
SELECT DISTINCT subject
FROM evictrail.events
WHERE cluster = @cluster
  AND kind IN ('evacuation_marked', 'migration_seen')
  AND (node = ANY(@nodes) OR @everywhere)
  AND occurred_at >= @since
ORDER BY subject`

// concerned finds the VMs that facts about nodes and rules put in another light.
func (d *derivation) concerned(ctx context.Context, added []trail.Fact) ([]trail.Subject, error) {
	nodes, everywhere, since := d.surroundings(added)
	if len(nodes) == 0 && !everywhere {
		return nil, nil
	}
	rows, err := d.tx.Query(ctx, concernedQuery, pgx.StrictNamedArgs{
		"cluster": d.cluster, "nodes": nodes, "everywhere": everywhere, "since": since,
	})
	if err != nil {
		return nil, explain("find VMs concerned", err)
	}
	return collectVMs(rows)
}

// collectVMs reads the subjects of VMs out of rows of one text.
func collectVMs(rows pgx.Rows) ([]trail.Subject, error) {
	texts, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		return nil, explain("find VMs concerned", err)
	}
	var out []trail.Subject
	for _, text := range texts {
		s, err := trail.ParseSubject(text)
		if err != nil {
			return nil, err
		}
		if s.Kind == trail.SubjectVMI {
			out = append(out, s)
		}
	}
	return out, nil
}

// A request about a pod concerns the VM whose launcher it is; one about a migration the VM of that migration, by its
// name or, where the API server had yet to generate it, by the time of its creation.
const (
	ofPodsQuery = `
SELECT DISTINCT e.subject
FROM unnest(@namespaces::text[], @names::text[]) AS p(namespace, name)
JOIN evictrail.events e ON e.cluster = @cluster AND e.namespace = p.namespace AND e.detail ->> 'pod' = p.name
WHERE e.kind = 'launcher_pod'
ORDER BY e.subject`
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

// concernedByRequests finds the VMs that requests are about.
func (d *derivation) concernedByRequests(ctx context.Context, added []trail.Fact) ([]trail.Subject, error) {
	var pods, named, unnamed objectNames
	for _, f := range added {
		switch {
		case f.Subject.Kind == trail.SubjectPod:
			_, pod, _ := strings.Cut(f.Subject.Name, "/")
			pods.add(f.Namespace, pod, f.OccurredAt)
		case f.Subject.Kind == trail.SubjectNamespace && f.Migration != "":
			named.add(f.Namespace, f.Migration, f.OccurredAt)
		case f.Subject.Kind == trail.SubjectNamespace:
			unnamed.add(f.Namespace, "", f.OccurredAt)
		}
	}
	var out []trail.Subject
	for _, q := range []struct {
		sql  string
		of   objectNames
		args pgx.StrictNamedArgs
	}{
		{ofPodsQuery, pods, pgx.StrictNamedArgs{"names": pods.names}},
		{ofNamedMigrationsQuery, named, pgx.StrictNamedArgs{"names": named.names}},
		{ofNewMigrationsQuery, unnamed, pgx.StrictNamedArgs{"times": unnamed.times}},
	} {
		if len(q.of.namespaces) == 0 {
			continue
		}
		q.args["cluster"], q.args["namespaces"] = d.cluster, q.of.namespaces
		rows, err := d.tx.Query(ctx, q.sql, q.args)
		if err != nil {
			return nil, explain("find VMs concerned", err)
		}
		found, err := collectVMs(rows)
		if err != nil {
			return nil, err
		}
		out = append(out, found...)
	}
	return out, nil
}

// objectNames are names of objects as unnest wants them, with the times of what was asked of them.
type objectNames struct {
	namespaces, names []string
	times             []time.Time
}

func (o *objectNames) add(namespace, name string, at time.Time) {
	o.namespaces, o.names, o.times = append(o.namespaces, clean(namespace)), append(o.names, clean(name)), append(o.times, at)
}

// surroundings tells which nodes the new facts are about, whether some are about the rules or gaps, and since when they
// may matter: a gap since it opened, others since the fact before the earliest of them, for ever where there is none.
func (d *derivation) surroundings(added []trail.Fact) (nodes []string, everywhere bool, since time.Time) {
	seen := map[string]bool{}
	var bounds []time.Time
	for _, f := range added {
		switch f.Subject.Kind {
		case trail.SubjectNode:
			if !seen[f.Subject.Name] {
				seen[f.Subject.Name] = true
				nodes = append(nodes, f.Subject.Name)
			}
		case trail.SubjectConfig:
			everywhere = true
		case trail.SubjectSource:
			everywhere = true
			bounds = append(bounds, f.OccurredAt.Add(-time.Second))
			continue
		case trail.SubjectVMI, trail.SubjectPod, trail.SubjectNamespace, trail.SubjectUnknown:
			continue
		}
		bounds = append(bounds, d.before(f))
	}
	for i, b := range bounds {
		if i == 0 || b.Before(since) {
			since = b
		}
	}
	return nodes, everywhere, since
}

// before gives the time of the last fact of the same subject that is older than f, zero where there is none.
func (d *derivation) before(f trail.Fact) time.Time {
	var last time.Time
	for _, other := range d.facts[f.Subject] {
		if other.OccurredAt.Before(f.OccurredAt) && other.OccurredAt.After(last) {
			last = other.OccurredAt
		}
	}
	return last
}

// replace derives subjects and writes their rows where they changed. The requests about the pods of a VM are told with
// the VM: rows that those pods had while nobody knew their VM go.
func (d *derivation) replace(ctx context.Context, subjects []trail.Subject) error {
	env, pods, err := d.env(ctx, subjects)
	if err != nil {
		return err
	}
	w := tables{cluster: d.cluster}
	for _, s := range subjects {
		w.add(s, trail.Derive(s, d.facts[s], env))
	}
	return w.write(ctx, d.tx, append(names(subjects), names(pods)...))
}

// Inserting waits for a writer who is making the same row; sharing it waits for one who holds it. Whoever comes second
// sees the facts of the first.
const (
	shareSubjectsQuery = `
INSERT INTO evictrail.subjects (cluster, subject, derived_at)
SELECT @cluster, s, now()
FROM unnest(@subjects::text[]) AS s
ON CONFLICT DO NOTHING`
	lockSharedQuery = `
SELECT count(*)
FROM (
  SELECT FROM evictrail.subjects
  WHERE cluster = @cluster
    AND subject = ANY(@subjects)
  ORDER BY subject
  FOR SHARE
) AS s`
)

// share keeps other writers from adding facts to subjects until the transaction ends.
func (d *derivation) share(ctx context.Context, subjects []trail.Subject) error {
	args := pgx.StrictNamedArgs{"cluster": d.cluster, "subjects": names(subjects)}
	if _, err := d.tx.Exec(ctx, shareSubjectsQuery, args); err != nil {
		return explain("share subjects", err)
	}
	_, err := d.tx.Exec(ctx, lockSharedQuery, args)
	return explain("share subjects", err)
}

const launchersQuery = `
SELECT ` + factColumns + `
FROM evictrail.events e
JOIN unnest(@namespaces::text[], @names::text[]) AS p(pod_namespace, pod) ON e.namespace = p.pod_namespace AND e.detail ->> 'pod' = p.pod
WHERE e.cluster = @cluster
  AND e.kind = 'launcher_pod'`

// env reads what surrounds the VMs among the subjects and whose pods the others are about. It also gives the pods that
// requests about the VMs name.
func (d *derivation) env(ctx context.Context, subjects []trail.Subject) (*trail.Env, []trail.Subject, error) {
	wanted := map[trail.Subject]bool{}
	var asked objectNames
	for _, s := range subjects {
		switch s.Kind {
		case trail.SubjectVMI:
			for _, around := range trail.EnvSubjects(d.facts[s]) {
				wanted[around] = true
			}
		case trail.SubjectPod:
			namespace, pod, _ := strings.Cut(s.Name, "/")
			asked.add(namespace, pod, time.Time{})
		default:
		}
	}
	var facts []trail.Fact
	if len(asked.names) > 0 {
		owners, err := factsBy(ctx, d.tx, d.cluster, launchersQuery, pgx.StrictNamedArgs{
			"cluster": d.cluster, "namespaces": asked.namespaces, "names": asked.names,
		})
		if err != nil {
			return nil, nil, err
		}
		facts = owners
	}
	for s := range wanted {
		if known, held := d.facts[s]; held {
			facts = append(facts, known...)
			delete(wanted, s)
		}
	}
	if len(wanted) > 0 {
		around := sortedSubjects(wanted)
		if err := d.share(ctx, around); err != nil {
			return nil, nil, err
		}
		more, err := factsOf(ctx, d.tx, d.cluster, around)
		if err != nil {
			return nil, nil, err
		}
		facts = append(facts, more...)
	}
	pods := map[trail.Subject]bool{}
	for _, f := range facts {
		if f.Subject.Kind == trail.SubjectPod {
			pods[f.Subject] = true
		}
	}
	return trail.NewEnv(facts), sortedSubjects(pods), nil
}

// owned is what leads every derived row.
type owned struct {
	Cluster string `json:"cluster"`
	Subject string `json:"subject"`
}

// tables gathers the derived rows of some subjects, one slice for each table.
type tables struct {
	cluster     string
	requests    []any
	evacuations []any
	migrations  []any
	placements  []any
	gaps        []any
	timeline    []any
}

func (t *tables) add(s trail.Subject, d trail.Derived) {
	o := owned{t.cluster, clean(s.String())}
	for _, r := range d.Requests {
		t.requests = append(t.requests, requestRow{o, r})
	}
	for _, r := range d.Evacuations {
		t.evacuations = append(t.evacuations, evacuationRow{o, r})
	}
	for _, r := range d.Migrations {
		t.migrations = append(t.migrations, migrationRow{o, r})
	}
	for _, r := range d.Placements {
		t.placements = append(t.placements, placementRow{o, r})
	}
	for _, r := range d.Gaps {
		t.gaps = append(t.gaps, gapRow{o, r})
	}
	for _, r := range d.Timeline {
		t.timeline = append(t.timeline, timelineRow{o, r})
	}
}

// write replaces the rows of the subjects in each table. Rows that stay as they are are not touched.
func (t *tables) write(ctx context.Context, tx pgx.Tx, subjects []string) error {
	for _, table := range []struct {
		name, key string
		rows      []any
	}{
		{"eviction_requests", "request_id", t.requests},
		{"evacuations", "evacuation_id", t.evacuations},
		{"migrations", "migration_uid", t.migrations},
		{"placements", "placement_id", t.placements},
		{"gaps", "gap_id", t.gaps},
		{"timeline", "event_id", t.timeline},
	} {
		if table.rows == nil {
			table.rows = []any{}
		}
		if err := replaceRows(ctx, tx, table.name, table.key, t.cluster, subjects, table.rows); err != nil {
			return err
		}
	}
	return nil
}

// The rows come as a JSON array whose keys are the columns. Table and key are names of ours.
const (
	deleteChangedQuery = `
DELETE FROM evictrail.%[1]s AS t
WHERE t.cluster = @cluster
  AND t.subject = ANY(@subjects)
  AND NOT EXISTS (
    SELECT FROM jsonb_populate_recordset(NULL::evictrail.%[1]s, @rows::jsonb) AS n
    WHERE n.subject = t.subject AND n.%[2]s = t.%[2]s AND n IS NOT DISTINCT FROM t
  )`
	insertMissingQuery = `
INSERT INTO evictrail.%[1]s
SELECT *
FROM jsonb_populate_recordset(NULL::evictrail.%[1]s, @rows::jsonb)
ON CONFLICT DO NOTHING`
)

func replaceRows(ctx context.Context, tx pgx.Tx, table, key, cluster string, subjects []string, rows []any) error {
	text, err := jsonText(rows)
	if err != nil {
		return fmt.Errorf("replace %s: %w", table, err)
	}
	_, err = tx.Exec(ctx, fmt.Sprintf(deleteChangedQuery, table, key), pgx.StrictNamedArgs{
		"cluster": cluster, "subjects": subjects, "rows": text,
	})
	if err != nil || len(rows) == 0 {
		return explain("replace "+table, err)
	}
	_, err = tx.Exec(ctx, fmt.Sprintf(insertMissingQuery, table), pgx.StrictNamedArgs{"rows": text})
	return explain("replace "+table, err)
}
