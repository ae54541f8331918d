package store

import (
	"context"
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

// share keeps other writers from adding facts to subjects until the transaction ends, and reads those that are there.
func (d *derivation) share(ctx context.Context, subjects []trail.Subject) ([]trail.Fact, error) {
	facts, err := d.lockAndRead(ctx, subjects, shareSubjectsQuery, lockSharedQuery)
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
	more, err := d.surrounding(ctx, wanted)
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
	return env, sortedSubjects(pods), settle(ctx, d.tx, env, d.cluster, onlyVMs(subjects), d.settled)
}

// surrounding reads the facts of what surrounds VMs. Nodes are held, as they are derived after the VMs; the rest is shared.
func (d *derivation) surrounding(ctx context.Context, wanted map[trail.Subject]bool) ([]trail.Fact, error) {
	var nodes, shared []trail.Subject
	for _, s := range sortedSubjects(wanted) {
		if s.Kind == trail.SubjectNode {
			nodes = append(nodes, s)
		} else {
			shared = append(shared, s)
		}
	}
	if err := d.hold(ctx, nodes); err != nil {
		return nil, err
	}
	var facts []trail.Fact
	for _, s := range nodes {
		facts = append(facts, d.facts[s]...)
	}
	if len(shared) == 0 {
		return facts, nil
	}
	more, err := d.share(ctx, shared)
	return append(facts, more...), err
}

// envAround reads what surrounds nodes and the cluster as a whole: the rules in force, and the rows of the VMs that touch
// them.
func (d *derivation) envAround(ctx context.Context, subjects []trail.Subject) (*trail.Env, error) {
	wanted := map[trail.Subject]bool{}
	for _, s := range ruleSubjects {
		wanted[s] = true
	}
	facts, err := d.surrounding(ctx, wanted)
	if err != nil {
		return nil, err
	}
	env := trail.NewEnv(facts)
	env.Judge(d.thresholds)
	around := map[string]*trail.Rows{}
	var nodes []string
	for _, s := range subjects {
		if s.Kind == trail.SubjectNode {
			nodes = append(nodes, clean(s.Name))
			around[clean(s.Name)] = &trail.Rows{}
		} else {
			around[""] = &trail.Rows{}
		}
	}
	var batch pgx.Batch
	args := pgx.StrictNamedArgs{"cluster": d.cluster, "nodes": nodes}
	if len(nodes) > 0 {
		batch.Queue(placementsOfNodesQuery, args).Query(collectAround(around, func(r *trail.Rows) *[]*trail.Placement { return &r.Placements }))
		batch.Queue(evacuationsOfNodesQuery, args).Query(collectAround(around, func(r *trail.Rows) *[]*trail.Evacuation { return &r.Evacuations }))
		batch.Queue(requestsOfNodesQuery, args).Query(collectAround(around, func(r *trail.Rows) *[]*trail.EvictionRequest { return &r.Requests }))
		batch.Queue(migrationsOfNodesQuery, args).Query(collectAround(around, func(r *trail.Rows) *[]*trail.Migration { return &r.Migrations }))
		batch.Queue(arrivalsOfNodesQuery, args).Query(collectAround(around, func(r *trail.Rows) *[]*trail.Migration { return &r.Arrivals }))
		batch.Queue(holdsOfNodesQuery, args).Query(collectAround(around, func(r *trail.Rows) *[]*trail.Decision { return &r.Decisions }))
	}
	if around[""] != nil {
		batch.Queue(stuckQuery, pgx.StrictNamedArgs{"cluster": d.cluster}).Query(collectAround(around, func(r *trail.Rows) *[]*trail.Evacuation { return &r.Evacuations }))
	}
	err = d.tx.SendBatch(ctx, &batch).Close()
	for _, s := range subjects {
		rows := around[""]
		if s.Kind == trail.SubjectNode {
			rows = around[clean(s.Name)]
		}
		env.Around(s, *rows)
	}
	return env, explain("read rows of nodes", err)
}
