package store

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/evictrail/evictrail/trail"
	"github.com/evictrail/evictrail/trail/fold"
)

// A fact about a node can change what marks since the fact before it mean, and which taint took a pod away; one about the rules or a gap what marks of all
// nodes mean; one about the descheduler also what the ends of migrations mean to it. That a node is ready or not concerns the migrations to it, too.
const concernedQuery = `
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

// bearing is what new facts may put in another light: what went on on these nodes or everywhere, since a time.
type bearing struct {
	nodes      []string
	readiness  []string // those of them that became ready, or are no more
	everywhere bool
	since      time.Time // zero: ever since
}

// concerned finds the VMs that facts about nodes and rules put in another light.
func (d *derivation) concerned(ctx context.Context, of bearing) (since, error) {
	if len(of.nodes) == 0 && !of.everywhere {
		return nil, nil
	}
	rows, err := d.tx.Query(ctx, concernedQuery, pgx.StrictNamedArgs{
		"cluster": d.cluster, "nodes": of.nodes, "readiness": of.readiness, "everywhere": of.everywhere, "since": of.since,
	})
	if err != nil {
		return nil, explain("find VMs concerned", err)
	}
	vms, err := collectVMs(rows)
	return sameSince(vms, of.since), err
}

// collectVMs reads the subjects of VMs out of rows of one text.
func collectVMs(rows pgx.Rows) ([]trail.Subject, error) {
	all, err := collectSubjects(rows)
	return slices.DeleteFunc(all, func(s trail.Subject) bool { return s.Kind != trail.SubjectVMI }), err
}

// collectSubjects reads subjects out of rows of one text.
func collectSubjects(rows pgx.Rows) ([]trail.Subject, error) {
	texts, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		return nil, explain("find what is concerned", err)
	}
	out := make([]trail.Subject, len(texts))
	for i, text := range texts {
		if out[i], err = trail.ParseSubject(text); err != nil {
			return nil, err
		}
	}
	return out, nil
}

const nodesQuery = `
SELECT subject
FROM evictrail.subjects
WHERE cluster = @cluster
  AND (subject LIKE 'node:%' OR subject LIKE 'cluster:%')
ORDER BY subject`

// concernedByRules gives the nodes and the cluster as a whole where the rules in force changed: limits and versions tell how
// loops come about, and what to do.
func (d *derivation) concernedByRules(ctx context.Context, added []trail.Fact, of bearing) (since, error) {
	if !slices.ContainsFunc(added, func(f trail.Fact) bool { return f.Subject.Kind == trail.SubjectConfig }) {
		return nil, nil
	}
	rows, err := d.tx.Query(ctx, nodesQuery, pgx.StrictNamedArgs{"cluster": d.cluster})
	if err != nil {
		return nil, explain("find nodes concerned", err)
	}
	nodes, err := collectSubjects(rows)
	return sameSince(nodes, of.since), err
}

const requestsSinceQuery = `
SELECT DISTINCT subject
FROM evictrail.eviction_requests
WHERE cluster = @cluster
  AND requested_at >= @since
ORDER BY subject`

// concernedBySettings finds what has requests since settings changed: they name those in force.
func (d *derivation) concernedBySettings(ctx context.Context, added []trail.Fact) (since, error) {
	var first *time.Time
	for _, f := range added {
		if f.Kind == trail.KindConfigSeen {
			if at := trail.SettingsSince(f, d.facts[f.Subject]); first == nil || at.Before(*first) {
				first = &at
			}
		}
	}
	if first == nil {
		return nil, nil
	}
	rows, err := d.tx.Query(ctx, requestsSinceQuery, pgx.StrictNamedArgs{"cluster": d.cluster, "since": *first})
	if err != nil {
		return nil, explain("find requests concerned", err)
	}
	subjects, err := collectSubjects(rows)
	return sameSince(subjects, *first), err
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

// concernedByRequests finds the VMs that requests are about, since the first of them.
func (d *derivation) concernedByRequests(ctx context.Context, added []trail.Fact) (since, error) {
	var pods, named, unnamed objectNames
	var first time.Time
	for _, f := range added {
		if (f.Subject.Kind == trail.SubjectPod || f.Subject.Kind == trail.SubjectNamespace) && (first.IsZero() || f.OccurredAt.Before(first)) {
			first = f.OccurredAt
		}
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
	out := since{}
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
		out.join(sameSince(found, first))
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

// askedAround is how far what is asked of a node may be from what becomes of it.
const askedAround = fold.AskedAround

// idle tells whether a fact is of no consequence: that somebody patched a node only says who did what became of it then.
func (d *derivation) idle(f trail.Fact) bool {
	return f.Subject.Kind == trail.SubjectNode && f.Kind == trail.KindActionRequested && !slices.ContainsFunc(d.facts[f.Subject], func(other trail.Fact) bool {
		return becomes(&other) && other.OccurredAt.Sub(f.OccurredAt).Abs() <= askedAround
	})
}

// becomes tells whether a fact says what became of a node that somebody may have asked for.
func becomes(f *trail.Fact) bool {
	return f.Kind == trail.KindNodeCordoned || f.Kind == trail.KindNodeUncordoned || f.Kind == trail.KindNodeTainted || f.Kind == trail.KindNodeUntainted
}

// surroundings tells which nodes the new facts are about, whether some are about the rules or gaps, and since when they
// may matter: a gap since it opened, others since the fact before the earliest of them, for ever where there is none.
func (d *derivation) surroundings(added []trail.Fact) (of bearing) {
	seen := map[string]bool{}
	var bounds []time.Time
	for _, f := range added {
		switch f.Kind {
		case trail.KindBlocksObserved:
			continue // what the counters say changes no mark
		case trail.KindDeschedulerStarted: // its memory begins anew; that there is one at all also says who may have asked before
			of.everywhere = true
			from := d.before(f)
			if !from.IsZero() {
				from = f.OccurredAt.Add(-time.Second)
			}
			bounds = append(bounds, from)
			continue
		default:
		}
		switch f.Subject.Kind {
		case trail.SubjectNode:
			if !seen[f.Subject.Name] {
				seen[f.Subject.Name] = true
				of.nodes = append(of.nodes, f.Subject.Name)
			}
			if f.OfOutage() && !slices.Contains(of.readiness, f.Subject.Name) {
				of.readiness = append(of.readiness, f.Subject.Name)
			}
		case trail.SubjectConfig:
			of.everywhere = true
			if f.Kind == trail.KindConfigSeen {
				bounds = append(bounds, trail.SettingsSince(f, d.facts[f.Subject]))
			}
		case trail.SubjectSource:
			of.everywhere = true
			bounds = append(bounds, f.OccurredAt.Add(-time.Second))
			continue
		case trail.SubjectVMI, trail.SubjectPod, trail.SubjectNamespace, trail.SubjectUnknown, trail.SubjectCluster:
			continue
		}
		bounds = append(bounds, d.before(f))
	}
	for i, b := range bounds {
		if i == 0 || b.Before(of.since) {
			of.since = b
		}
	}
	return of
}

// before gives the time of the last fact of the same subject that is older than f, zero where there is none. The counters of
// the descheduler, and what is asked of a node, stand beside the state of the subject and do not count.
func (d *derivation) before(f trail.Fact) time.Time {
	var last time.Time
	for _, other := range d.facts[f.Subject] {
		if other.Kind == trail.KindBlocksObserved || f.Subject.Kind == trail.SubjectNode && other.Kind == trail.KindActionRequested {
			continue
		}
		if other.OccurredAt.Before(f.OccurredAt) && other.OccurredAt.After(last) {
			last = other.OccurredAt
		}
	}
	return last
}
