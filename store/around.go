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
