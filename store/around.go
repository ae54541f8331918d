package store

import (
	"context"
	"maps"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/evictrail/evictrail/trail"
)

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
  SELECT
  FROM unnest(@subjects::text[]) AS n(subject)
  JOIN evictrail.subjects AS s ON s.cluster = @cluster AND s.subject = n.subject
  ORDER BY s.subject
  FOR SHARE OF s
) AS s`
)

// A descheduler that runs as a CronJob is started hundreds of times a day: of what was before a time the last start tells.
const rulesSinceQuery = `
SELECT f.*
FROM unnest(@subjects::text[]) AS s(of)
CROSS JOIN LATERAL (
  SELECT ` + factColumns + `
  FROM evictrail.events
  WHERE cluster = @cluster
    AND subject = s.of
    AND (kind <> 'descheduler_started' OR occurred_at >= @since)
  UNION ALL
  (
    SELECT ` + factColumns + `
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

// share keeps other writers from adding facts to subjects until the transaction ends, and reads those that are there, as far as they matter since a time: of
// the requests about migrations in a namespace those that can be about the VMs that are held.
func (d *derivation) share(ctx context.Context, subjects []trail.Subject, since time.Time) ([]trail.Fact, error) {
	var facts []trail.Fact
	collect := func(rows pgx.Rows) error {
		more, err := collectFacts(rows, d.cluster)
		facts = append(facts, more...)
		return err
	}
	var namespaces, rules, others []trail.Subject
	for _, s := range subjects {
		switch s.Kind {
		case trail.SubjectNamespace:
			namespaces = append(namespaces, s)
		case trail.SubjectConfig:
			rules = append(rules, s)
		default:
			others = append(others, s)
		}
	}
	var batch pgx.Batch
	args := pgx.StrictNamedArgs{"cluster": d.cluster, "subjects": names(subjects)}
	batch.Queue(shareSubjectsQuery, args)
	batch.Queue(lockSharedQuery, args)
	batch.Queue(factsOfSubjectsQuery, pgx.StrictNamedArgs{"cluster": d.cluster, "subjects": names(others)}).Query(collect)
	if len(rules) > 0 {
		batch.Queue(rulesSinceQuery, pgx.StrictNamedArgs{"cluster": d.cluster, "subjects": names(rules), "since": since}).Query(collect)
	}
	if len(namespaces) > 0 {
		batch.Queue(requestsAboutMigrationsQuery, migrationsIn(d.cluster, never, namespaces, maps.Values(d.facts))).Query(collect)
	}
	err := d.tx.SendBatch(ctx, &batch).Close()
	return facts, explain("share subjects", err)
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
			for _, rules := range trail.RuleSubjects() { // that its requests name
				wanted[rules] = true
			}
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
		if known, held := d.facts[s]; held && s.Kind != trail.SubjectNamespace {
			facts = append(facts, known...)
			delete(wanted, s)
		}
	}
	more, err := d.surrounding(ctx, wanted, d.earliest(d.from.of(onlyVMs(subjects))))
	if err != nil {
		return nil, nil, err
	}
	facts = append(facts, more...)
	pods := map[trail.Subject]bool{}
	for _, f := range facts {
		if f.Subject.Kind == trail.SubjectPod {
			pods[f.Subject] = true
		}
	}
	env := trail.NewEnv(facts)
	env.Judge(d.thresholds)
	return env, sortedSubjects(pods), settle(ctx, d.tx, env, d.cluster, onlyVMs(subjects), d.settled, d.from)
}

// earliest gives since when what surrounds subjects matters that are derived from some times on.
func (d *derivation) earliest(from since) time.Time {
	first := time.Time{}
	for _, at := range from {
		if at.IsZero() {
			return at
		}
		if first.IsZero() || at.Before(first) {
			first = at
		}
	}
	if first.IsZero() {
		return first
	}
	return first.Add(-2 * d.reach)
}

// surrounding reads the facts of what surrounds subjects, as far as they matter since a time. Nodes are held, as they are derived after the VMs; the rest is
// shared.
func (d *derivation) surrounding(ctx context.Context, wanted map[trail.Subject]bool, since time.Time) ([]trail.Fact, error) {
	var nodes, shared []trail.Subject
	for _, s := range sortedSubjects(wanted) {
		if s.Kind == trail.SubjectNode {
			nodes = append(nodes, s)
		} else {
			shared = append(shared, s)
		}
	}
	if err := d.hold(ctx, ever(nodes)); err != nil {
		return nil, err
	}
	var facts []trail.Fact
	for _, s := range nodes {
		facts = append(facts, d.facts[s]...)
	}
	if len(shared) == 0 {
		return facts, nil
	}
	more, err := d.share(ctx, shared, since)
	return append(facts, more...), err
}

// aroundSlack is how long before a change what it means for a node may begin: a drain with a cordon some minutes before it, what the descheduler does
// because of a VM that came half an hour before.
var aroundSlack = time.Hour

// A second is added on both sides of what was open, so that none of it touches the time that is found.
const reachAroundQuery = `
WITH n AS (
  SELECT n.subject, n.node, least(n.since, s.next_at) - @slack::interval AS since
  FROM unnest(@subjects::text[], @nodes::text[], @since::timestamptz[]) AS n(subject, node, since)
  JOIN evictrail.subjects AS s ON s.cluster = @cluster AND s.subject = n.subject
), spans AS (
  SELECT n.subject, t.marked_at AS began, t.open_until
  FROM n
  JOIN evictrail.evacuations AS t ON t.cluster = @cluster AND t.node = n.node
  UNION ALL
  SELECT n.subject, t.opened_at, t.open_until
  FROM n
  JOIN evictrail.loops AS t ON t.cluster = @cluster AND t.subject = n.subject
  UNION ALL
  SELECT n.subject, t.started_at, t.open_until
  FROM n
  JOIN evictrail.drains AS t ON t.cluster = @cluster AND t.subject = n.subject
), times AS (
  SELECT subject, range_agg(tstzrange(began - interval '1 second', open_until + interval '1 second', '[]')) AS busy
  FROM spans
  GROUP BY subject
)
SELECT n.subject, b.since, EXISTS (
  SELECT
  FROM evictrail.drains AS t
  WHERE t.cluster = @cluster
    AND t.subject = n.subject
    AND t.started_at >= b.since
)
FROM n
LEFT JOIN times ON times.subject = n.subject
CROSS JOIN LATERAL (
  SELECT coalesce((SELECT lower(w) FROM unnest(times.busy) AS w WHERE w @> n.since), n.since) AS since
) AS b`

// reachAround gives from when on nodes and the cluster as a whole are derived for what changed there since a time: since before that, when no evacuation,
// drain or loop was open there. Drained are the nodes that were drained since then. What is to be derived of everything has the zero time.
func (d *derivation) reachAround(ctx context.Context, changed since) (from since, drained map[trail.Subject]bool, err error) {
	from, drained = since{}, map[trail.Subject]bool{}
	of := map[string]trail.Subject{}
	var subjects, nodes []string
	var at []time.Time
	for s, t := range changed {
		if t.IsZero() {
			from[s] = t
			continue
		}
		node := ""
		if s.Kind == trail.SubjectNode {
			node = clean(s.Name)
		}
		of[clean(s.String())] = s
		subjects, nodes, at = append(subjects, clean(s.String())), append(nodes, node), append(at, t)
	}
	if len(subjects) == 0 {
		return from, drained, nil
	}
	var batch pgx.Batch
	batch.Queue(reachAroundQuery, pgx.StrictNamedArgs{"cluster": d.cluster, "subjects": subjects, "nodes": nodes, "since": at, "slack": aroundSlack}).
		Query(each(func(row pgx.CollectableRow) error {
			var text string
			var since time.Time
			var is bool
			err := row.Scan(&text, &since, &is)
			from[of[text]], drained[of[text]] = since.UTC(), is
			return err
		}))
	err = d.tx.SendBatch(ctx, &batch).Close()
	return from, drained, explain("read what went on around", err)
}

// envAround reads what surrounds nodes and the cluster as a whole, each from a time on: the rules in force, and the rows of the VMs that touch
// them.
func (d *derivation) envAround(ctx context.Context, from since) (*trail.Env, error) {
	wanted := map[trail.Subject]bool{}
	for _, s := range trail.RuleSubjects() {
		wanted[s] = true
	}
	facts, err := d.surrounding(ctx, wanted, d.earliest(from))
	if err != nil {
		return nil, err
	}
	env := trail.NewEnv(facts)
	env.Judge(d.thresholds)
	around := map[string]*trail.Rows{}
	var nodes []string
	var since, before []time.Time
	for s, at := range from {
		if s.Kind == trail.SubjectNode {
			nodes, since, before = append(nodes, clean(s.Name)), append(since, at), append(before, trail.BlocksSince(d.facts[s], at).Add(-aroundSlack))
			around[clean(s.Name)] = &trail.Rows{Since: at}
		} else {
			around[""] = &trail.Rows{Since: at}
		}
	}
	var batch pgx.Batch
	if len(nodes) > 0 {
		args := pgx.StrictNamedArgs{"cluster": d.cluster, "nodes": nodes, "since": since, "before": before}
		batch.Queue(placementsOfNodesQuery, args).Query(collectColumnsAround(around, func(r *trail.Rows) *[]*trail.Placement { return &r.Placements }))
		batch.Queue(evacuationsOfNodesQuery, args).Query(collectAround(around, func(r *trail.Rows) *[]*trail.Evacuation { return &r.Evacuations }))
		batch.Queue(requestsOfNodesQuery, args).Query(collectColumnsAround(around, func(r *trail.Rows) *[]*trail.EvictionRequest { return &r.Requests }))
		batch.Queue(migrationsOfNodesQuery, args).Query(collectColumnsAround(around, func(r *trail.Rows) *[]*trail.Migration { return &r.Migrations }))
		batch.Queue(arrivalsOfNodesQuery, args).Query(collectColumnsAround(around, func(r *trail.Rows) *[]*trail.Migration { return &r.Arrivals }))
		batch.Queue(holdsOfNodesQuery, args).Query(collectAround(around, func(r *trail.Rows) *[]*trail.Decision { return &r.Decisions }))
	}
	if all := around[""]; all != nil && trail.LimitsTotal(facts) {
		batch.Queue(stuckQuery, pgx.StrictNamedArgs{"cluster": d.cluster, "since": all.Since}).
			Query(collectAround(around, func(r *trail.Rows) *[]*trail.Evacuation { return &r.Evacuations }))
	}
	err = d.tx.SendBatch(ctx, &batch).Close()
	for s := range from {
		rows := around[""]
		if s.Kind == trail.SubjectNode {
			rows = around[clean(s.Name)]
		}
		env.Around(s, *rows)
	}
	return env, explain("read rows of nodes", err)
}
