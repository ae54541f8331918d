package retention

import (
	"context"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/evictrail/evictrail/store/pg"
	"github.com/evictrail/evictrail/store/tables"
	"github.com/evictrail/evictrail/trail"
)

// What began before a time and was open then, with where it happened. What is left of a drain that has ended is shown until there is another.
const acrossQuery = `
SELECT subject, coalesce(node, ''), coalesce(namespace, ''), began
FROM (
  SELECT subject, node, namespace, marked_at AS began, open_until FROM evictrail.evacuations WHERE cluster = @cluster
  UNION ALL
  SELECT subject, source_node, namespace, created_at, open_until FROM evictrail.migrations WHERE cluster = @cluster
  UNION ALL
  SELECT subject, node, namespace, opened_at, open_until FROM evictrail.loops WHERE cluster = @cluster
  UNION ALL
  SELECT subject, node, NULL, started_at, CASE WHEN EXISTS (
    SELECT 1 FROM evictrail.drain_blockers AS b WHERE b.cluster = d.cluster AND b.subject = d.subject AND b.drain_id = d.drain_id
  ) THEN 'infinity' ELSE open_until END
  FROM evictrail.drains AS d
  WHERE cluster = @cluster
  UNION ALL
  SELECT subject, node, namespace, requested_at, open_until FROM evictrail.eviction_requests WHERE cluster = @cluster
  UNION ALL
  SELECT subject, node, namespace, decided_at, open_until FROM evictrail.cooldown_decisions WHERE cluster = @cluster
  UNION ALL
  SELECT subject, node, NULL, began_at, open_until FROM evictrail.outages WHERE cluster = @cluster
  UNION ALL
  SELECT subject, NULL, NULL, opened_at, open_until FROM evictrail.gaps WHERE cluster = @cluster
) AS r
WHERE began < @back
  AND open_until >= @back`

// reach says how far back facts of a cluster matter to what was open at a boundary: of a VM, a node and the requests in a namespace since what went on
// there had begun, and some time before, in which what happened may bear on that (trail.Reach).
type reach struct {
	cluster  string
	boundary time.Time
	before   time.Duration
	back     time.Time // what was open then matters
	subjects map[string]time.Time
	nodes    map[string]time.Time
	spaces   map[string]time.Time
	first    time.Time
}

const rulesQuery = `
SELECT ` + tables.FactColumns + `
FROM evictrail.events
WHERE cluster = @cluster
  AND kind = 'config_seen'`

func newReach(ctx context.Context, tx pgx.Tx, cluster string, boundary time.Time) (*reach, error) {
	rules, err := tables.FactsBy(ctx, tx, cluster, rulesQuery, pgx.StrictNamedArgs{"cluster": cluster})
	if err != nil {
		return nil, err
	}
	thresholds, err := tables.ThresholdsOf(ctx, tx, cluster)
	if err != nil {
		return nil, err
	}
	before := tables.Reach(rules, thresholds)
	r := &reach{
		cluster: cluster, boundary: boundary, before: before, back: boundary.Add(-before),
		subjects: map[string]time.Time{}, nodes: map[string]time.Time{}, spaces: map[string]time.Time{},
	}
	r.first = r.back
	rows, err := tx.Query(ctx, acrossQuery, pg.Planned, pgx.StrictNamedArgs{"cluster": cluster, "back": r.back})
	if err != nil {
		return nil, err
	}
	type stretch struct {
		Subject, Node, Namespace string
		Began                    time.Time
	}
	across, err := pgx.CollectRows(rows, pgx.RowToStructByPos[stretch])
	for _, x := range across {
		for of, name := range map[*map[string]time.Time]string{&r.subjects: x.Subject, &r.nodes: x.Node, &r.spaces: x.Namespace} {
			if at, known := (*of)[name]; !known || x.Began.Before(at) {
				(*of)[name] = x.Began
			}
		}
		r.first = pg.EarlierTime(r.first, x.Began)
	}
	return r, err
}

// subjectSince returns from when on all facts of a subject matter. pods has the VM that a pod is of.
func (r *reach) subjectSince(subject string, pods map[string]string) time.Time {
	at := pg.EarlierTime(r.back, r.subjects[subject])
	kind, name, _ := strings.Cut(subject, ":")
	switch trail.SubjectKind(kind) {
	case trail.SubjectConfig: // the rules are few, and it is looked back for the last one
		return time.Time{}
	case trail.SubjectSource: // gaps are few, and bear on all VMs
		at = pg.EarlierTime(at, r.first)
	case trail.SubjectNode:
		at = pg.EarlierTime(at, r.nodes[name])
	case trail.SubjectNamespace:
		at = pg.EarlierTime(at, r.spaces[name])
	case trail.SubjectPod:
		at = pg.EarlierTime(at, r.subjects[pods[subject]])
	case trail.SubjectVMI, trail.SubjectCluster, trail.SubjectUnknown:
	}
	return at.Add(-r.before)
}

const (
	// isKept says of a fact of a subject s that it is kept.
	isKept = `(occurred_at >= s.since OR (occurred_at, id) IN (SELECT occurred_at, id FROM state_before))`
	// keepFactsQuery keeps the facts of subjects that matter: all since a time, and those from before it that say how they stood.
	keepFactsQuery = `
INSERT INTO evictrail.events_next (` + keptColumns + `)
SELECT f.*
FROM unnest(@subjects::text[], @since::timestamptz[]) AS s(of, since)
CROSS JOIN LATERAL (
  WITH ` + tables.StateBefore + `
  SELECT ` + keptColumns + `
  FROM evictrail.events
  WHERE cluster = @cluster
    AND subject = s.of
    AND occurred_at < @boundary
    AND ` + isKept + `
  OFFSET 0
) AS f
ON CONFLICT DO NOTHING`
	keptColumns = `
    cluster, subject, occurred_at, id, kind, reason, clock, observed_at, stored_at, seen_late, namespace, vmi, vmi_uid, node, migration, migration_uid,
    object_kind, object_uid, object_version, what, value, evidence, detail, seq`
	podsOfVMsQuery = `
SELECT DISTINCT p.subject, e.subject
FROM unnest(@pods::text[], @namespaces::text[], @names::text[]) AS p(subject, namespace, name)
JOIN evictrail.events AS e ON e.cluster = @cluster AND e.namespace = p.namespace AND e.detail ->> 'pod' = p.name
WHERE e.kind = 'launcher_pod'`
)

// keepSubjectFacts keeps the facts of subjects that matter.
func (r *reach) keepSubjectFacts(ctx context.Context, tx pgx.Tx, subjects []string) error {
	since, err := r.subjectsSince(ctx, tx, subjects)
	if err != nil {
		return err
	}
	_, err = tx.Exec(ctx, keepFactsQuery, pg.Planned, pgx.StrictNamedArgs{
		"cluster": r.cluster, "boundary": r.boundary, "subjects": subjects, "since": since,
	})
	return err
}

// subjectsSince is subjectSince of several.
func (r *reach) subjectsSince(ctx context.Context, tx pgx.Tx, subjects []string) ([]time.Time, error) {
	pods, err := r.loadPodVMs(ctx, tx, subjects)
	since := make([]time.Time, len(subjects))
	for i, s := range subjects {
		since[i] = r.subjectSince(s, pods)
	}
	return since, err
}

// loadPodVMs returns the VMs that the pods among subjects are of.
func (r *reach) loadPodVMs(ctx context.Context, tx pgx.Tx, subjects []string) (map[string]string, error) {
	var pods, namespaces, names []string
	for _, s := range subjects {
		if name, is := strings.CutPrefix(s, string(trail.SubjectPod)+":"); is {
			namespace, pod, _ := strings.Cut(name, "/")
			pods, namespaces, names = append(pods, s), append(namespaces, namespace), append(names, pod)
		}
	}
	of := map[string]string{}
	if len(pods) == 0 {
		return of, nil
	}
	rows, err := tx.Query(ctx, podsOfVMsQuery, pgx.StrictNamedArgs{"cluster": r.cluster, "pods": pods, "namespaces": namespaces, "names": names})
	if err != nil {
		return nil, err
	}
	type launched struct{ Pod, VM string }
	all, err := pgx.CollectRows(rows, pgx.RowToStructByPos[launched])
	for _, o := range all {
		of[o.Pod] = o.VM
	}
	return of, err
}
