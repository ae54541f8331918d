package store

import (
	"context"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/evictrail/evictrail/trail"
	"github.com/evictrail/evictrail/trail/fold"
)

// loader reads for a fold.Cluster what it does not hold in memory.
type loader struct {
	store   *Store
	cluster string
}

// openWindowsQuery finds from when on subjects have to be derived for what changed since a time, and from when on their facts matter to that: rows that had
// ended before the first stay as they are; what is derived of the others depends on what was open within the lookback before.
const openWindowsQuery = `
WITH wanted AS (
  SELECT w.subject, coalesce(s.version, 0) AS version, s.next_at, least(w.since, s.next_at) - @slack::interval AS since
  FROM unnest(@subjects::text[], @since::timestamptz[]) AS w(subject, since)
  LEFT JOIN evictrail.subjects AS s ON s.cluster = @cluster AND s.subject = w.subject
), recorded AS MATERIALIZED (
  SELECT w.subject, r.begun, r.open_until
  FROM wanted AS w
  CROSS JOIN LATERAL (
    SELECT t.requested_at AS begun, t.open_until FROM evictrail.eviction_requests AS t WHERE t.cluster = @cluster AND t.subject = w.subject
    UNION ALL
    SELECT t.marked_at, t.open_until FROM evictrail.evacuations AS t WHERE t.cluster = @cluster AND t.subject = w.subject
    UNION ALL
    SELECT t.created_at, t.open_until FROM evictrail.migrations AS t WHERE t.cluster = @cluster AND t.subject = w.subject
    UNION ALL
    SELECT t.decided_at, t.open_until FROM evictrail.cooldown_decisions AS t WHERE t.cluster = @cluster AND t.subject = w.subject
    UNION ALL
    SELECT t.opened_at, t.open_until FROM evictrail.loops AS t WHERE t.cluster = @cluster AND t.subject = w.subject
  ) AS r
  WHERE w.subject LIKE 'vmi:%'
), rows_of AS (
  SELECT w.subject, w.version, w.next_at, least(w.since, min(r.begun)) - interval '1 second' AS rows_from
  FROM wanted AS w
  LEFT JOIN recorded AS r ON r.subject = w.subject AND r.open_until >= w.since
  GROUP BY w.subject, w.version, w.next_at, w.since
)
SELECT w.subject, w.version, w.next_at, w.rows_from, least(w.rows_from - @lookback::interval, min(r.begun)) - @lookback::interval AS facts_from
FROM rows_of AS w
LEFT JOIN recorded AS r ON r.subject = w.subject AND r.open_until >= w.rows_from - @lookback::interval
GROUP BY w.subject, w.version, w.next_at, w.rows_from`

// openWindow is a row of openWindowsQuery.
type openWindow struct {
	Subject   string
	Version   int64
	NextAt    *time.Time
	RowsFrom  *time.Time
	FactsFrom *time.Time
}

// Windows returns windows of subjects (fold.Source). A version is read before the facts: what is recorded in between is in a later one.
func (l loader) Windows(ctx context.Context, wants []fold.Want, lookback time.Duration) ([]*fold.Window, error) {
	windows := map[trail.Subject]*fold.Window{}
	subjects, since := make([]string, len(wants)), make([]time.Time, len(wants))
	for i, want := range wants {
		windows[want.Subject] = &fold.Window{Subject: want.Subject, Since: want.Since}
		subjects[i], since[i] = clean(want.Subject.String()), sendable(want.Since)
	}
	err := l.read(ctx, func(tx pgx.Tx, frozenTo time.Time) error {
		rows, err := tx.Query(ctx, openWindowsQuery, pgx.StrictNamedArgs{
			"cluster": l.cluster, "subjects": subjects, "since": since, "slack": aroundSlack, "lookback": lookback,
		})
		if err != nil {
			return err
		}
		found, err := pgx.CollectRows(rows, pgx.RowToStructByPos[openWindow])
		if err != nil {
			return err
		}
		return l.fill(ctx, tx, windows, found, frozenTo)
	})
	out := make([]*fold.Window, len(wants))
	for i, want := range wants {
		out[i] = windows[want.Subject]
	}
	return out, err
}

// read runs a function in a transaction in which no facts are dropped. frozenTo is until when facts were dropped before; zero: none were.
func (l loader) read(ctx context.Context, run func(tx pgx.Tx, frozenTo time.Time) error) error {
	return l.store.inTx(ctx, "load windows", func(tx pgx.Tx) error {
		var settled *time.Time
		var batch pgx.Batch
		batch.Queue(dropNoFactsQuery)
		readSettled(&batch, &settled)
		if err := tx.SendBatch(ctx, &batch).Close(); err != nil {
			return err
		}
		return run(tx, orZero(settled))
	})
}

// sendable returns a time that Postgres can read: the zero time, for ever since, is far before all facts.
func sendable(at time.Time) time.Time {
	if at.Before(beginning) {
		return beginning
	}
	return at
}

var beginning = time.Date(1900, 1, 1, 0, 0, 0, 0, time.UTC)

// fill reads the facts and rows of windows.
func (l loader) fill(ctx context.Context, tx pgx.Tx, windows map[trail.Subject]*fold.Window, found []openWindow, frozenTo time.Time) error {
	var vms, whole, nodes, namespaces, rules, all, frozen []string
	var vmFrom, namespaceFrom, rowsFrom, frozenFrom []time.Time
	rulesSince := never
	for _, f := range found {
		s, err := trail.ParseSubject(f.Subject)
		if err != nil {
			return err
		}
		w := windows[s]
		w.Version, w.Due, w.FrozenTo, w.Frozen = f.Version, orZero(f.NextAt), frozenTo, map[trail.Bounce]int{}
		partly := !w.Since.IsZero()
		switch {
		case s.Kind == trail.SubjectNode:
			nodes, w.Since = append(nodes, f.Subject), time.Time{}
			continue // its rows are read with those that it is derived of
		case s.Kind == trail.SubjectCluster:
			w.Since = time.Time{}
			continue
		case s.Kind == trail.SubjectConfig:
			rules = append(rules, f.Subject)
			if w.RowsFrom = w.Since; partly && w.Since.Before(rulesSince) {
				rulesSince = w.Since
			} else if !partly {
				rulesSince = beginning
			}
		case partly && s.Kind == trail.SubjectVMI:
			vms, vmFrom = append(vms, f.Subject), append(vmFrom, f.FactsFrom.UTC())
			w.RowsFrom = f.RowsFrom.UTC()
		case partly && s.Kind == trail.SubjectNamespace: // each request stands for itself, and a namespace may have most of those of a cluster
			w.RowsFrom = w.Since.Add(-namespaceSlack / 2) // lines may be a little later than their facts
			namespaces, namespaceFrom = append(namespaces, f.Subject), append(namespaceFrom, w.Since.Add(-namespaceSlack))
		default:
			whole, w.Since = append(whole, f.Subject), time.Time{}
		}
		all, rowsFrom = append(all, f.Subject), append(rowsFrom, sendable(w.RowsFrom))
		if !w.RowsFrom.IsZero() { // of a whole window all loops are in its rows
			frozen, frozenFrom = append(frozen, f.Subject), append(frozenFrom, w.RowsFrom)
		}
	}
	var batch pgx.Batch
	facts := func(rows pgx.Rows) error {
		its, err := collectFacts(rows, l.cluster)
		for i := range its {
			w := windows[its[i].Subject]
			w.Facts = append(w.Facts, its[i])
		}
		return err
	}
	if len(vms) > 0 {
		batch.Queue(factsThatMatterQuery, pgx.StrictNamedArgs{"cluster": l.cluster, "subjects": vms, "from": vmFrom}).Query(facts)
	}
	if len(whole) > 0 {
		batch.Queue(factsOfSubjectsQuery, pgx.StrictNamedArgs{"cluster": l.cluster, "subjects": whole}).Query(facts)
	}
	if len(nodes) > 0 {
		batch.Queue(factsOfNodesQuery, pgx.StrictNamedArgs{
			"cluster": l.cluster, "nodes": nodes, "became": []string{}, "at": []time.Time{}, "around": askedAround, // all facts are recorded
		}).Query(facts)
	}
	if len(namespaces) > 0 {
		batch.Queue(factsSinceQuery, pgx.StrictNamedArgs{"cluster": l.cluster, "subjects": namespaces, "from": namespaceFrom}).Query(facts)
	}
	if len(rules) > 0 {
		batch.Queue(rulesSinceQuery, pgx.StrictNamedArgs{"cluster": l.cluster, "subjects": rules, "since": rulesSince}).Query(facts)
	}
	rows := map[trail.Subject]trail.Derived{}
	readRows(&batch, l.cluster, all, rowsFrom, rows)
	if len(frozen) > 0 {
		batch.Queue(bouncesQuery, pgx.StrictNamedArgs{"cluster": l.cluster, "subjects": frozen, "before": frozenFrom}).Query(each(func(row pgx.CollectableRow) error {
			var subject string
			var of trail.Bounce
			var n int
			if err := row.Scan(&subject, &of.Of, &of.Kind, &n); err != nil {
				return err
			}
			s, err := trail.ParseSubject(subject)
			windows[s].Frozen[of] = n
			return err
		}))
	}
	if err := tx.SendBatch(ctx, &batch).Close(); err != nil {
		return err
	}
	for s, d := range rows {
		windows[s].Rows = d
	}
	return nil
}

// rowsSince asks for the rows of subjects that had not ended before a time of each.
func rowsSince(table, order string) string {
	return `
SELECT t.subject, row_to_json(t)
FROM unnest(@subjects::text[], @since::timestamptz[]) AS s(of, since)
JOIN evictrail.` + table + ` AS t ON t.cluster = @cluster AND t.subject = s.of
WHERE t.open_until >= s.since
ORDER BY ` + order
}

var (
	requestsSince     = rowsSince("eviction_requests", "t.requested_at, t.request_id")
	evacuationsSince  = rowsSince("evacuations", "t.marked_at, t.evacuation_id")
	migrationsSince   = rowsSince("migrations", "t.created_at, t.migration_uid")
	placementsSince   = rowsSince("placements", "t.from_at, t.placement_id")
	decisionsSince    = rowsSince("cooldown_decisions", "t.decided_at, t.decision_id")
	loopsSince        = rowsSince("loops", "t.opened_at, t.loop_id")
	drainsSince       = rowsSince("drains", "t.started_at, t.drain_id")
	blockersSince     = rowsSince("drain_blockers", "t.waiting_since, t.vmi_uid")
	consequencesSince = rowsSince("consequences", "t.at, t.consequence_id")
	outagesSince      = rowsSince("outages", "t.began_at, t.outage_id")
	gapsSince         = rowsSince("gaps", "t.opened_at, t.gap_id")
	linesSince        = rowsSince("timeline", "t.at, t.tie, t.event_id")
)

// readRows asks for all rows of subjects that had not ended before a time of each.
func readRows(batch *pgx.Batch, cluster string, subjects []string, since []time.Time, into map[trail.Subject]trail.Derived) {
	if len(subjects) == 0 {
		return
	}
	args := pgx.StrictNamedArgs{"cluster": cluster, "subjects": subjects, "since": since}
	batch.Queue(requestsSince, args).Query(collectOf(into, func(d *trail.Derived) *[]trail.EvictionRequest { return &d.Requests }))
	batch.Queue(evacuationsSince, args).Query(collectOf(into, func(d *trail.Derived) *[]trail.Evacuation { return &d.Evacuations }))
	batch.Queue(migrationsSince, args).Query(collectOf(into, func(d *trail.Derived) *[]trail.Migration { return &d.Migrations }))
	batch.Queue(placementsSince, args).Query(collectOf(into, func(d *trail.Derived) *[]trail.Placement { return &d.Placements }))
	batch.Queue(decisionsSince, args).Query(collectOf(into, func(d *trail.Derived) *[]trail.Decision { return &d.Decisions }))
	batch.Queue(loopsSince, args).Query(collectOf(into, func(d *trail.Derived) *[]trail.Loop { return &d.Loops }))
	batch.Queue(drainsSince, args).Query(collectOf(into, func(d *trail.Derived) *[]trail.Drain { return &d.Drains }))
	batch.Queue(blockersSince, args).Query(collectOf(into, func(d *trail.Derived) *[]trail.DrainBlocker { return &d.Blockers }))
	batch.Queue(consequencesSince, args).Query(collectOf(into, func(d *trail.Derived) *[]trail.Consequence { return &d.Consequences }))
	batch.Queue(outagesSince, args).Query(collectOf(into, func(d *trail.Derived) *[]trail.Outage { return &d.Outages }))
	batch.Queue(gapsSince, args).Query(collectOf(into, func(d *trail.Derived) *[]trail.Gap { return &d.Gaps }))
	batch.Queue(linesSince, args).Query(collectOf(into, func(d *trail.Derived) *[]trail.Line { return &d.Timeline }))
}

// Asked returns requests about pods and migrations (fold.Source).
func (l loader) Asked(ctx context.Context, about fold.Asked) (facts []trail.Fact, err error) {
	collect := func(rows pgx.Rows) error {
		its, err := collectFacts(rows, l.cluster)
		facts = append(facts, its...)
		return err
	}
	var batch pgx.Batch
	if len(about.Pods) > 0 {
		batch.Queue(factsOfSubjectsQuery, pgx.StrictNamedArgs{"cluster": l.cluster, "subjects": names(about.Pods)}).Query(collect)
	}
	if len(about.Migrations) > 0 {
		var namespaces, of []string
		var from, to []time.Time
		for _, m := range about.Migrations {
			namespaces, of = append(namespaces, clean(trail.Subject{Kind: trail.SubjectNamespace, Name: m.Namespace}.String())), append(of, clean(m.Name))
			from, to = append(from, m.Created.Add(-fold.AskedSlack)), append(to, m.Deleted.Add(fold.AskedSlack))
		}
		batch.Queue(requestsAboutMigrationsQuery, pgx.StrictNamedArgs{
			"cluster": l.cluster, "at": never, "namespaces": namespaces, "names": of, "from": from, "to": to,
		}).Query(collect)
	}
	err = l.store.pool.SendBatch(ctx, &batch).Close()
	return facts, explain("load requests", err)
}

// ownersQuery finds the VMs whose launcher pods some pods are.
const ownersQuery = `
SELECT DISTINCT e.subject, p.pod
FROM unnest(@namespaces::text[], @names::text[], @pods::text[]) AS p(namespace, name, pod)
JOIN evictrail.events AS e ON e.cluster = @cluster AND e.namespace = p.namespace AND e.detail ->> 'pod' = p.name
WHERE e.kind = 'launcher_pod'`

// Affected returns the subjects that new facts concern beside their own (fold.Source).
func (l loader) Affected(ctx context.Context, of fold.Impact) (out fold.Affected, err error) {
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
		batch.Queue(concernedQuery, pgx.StrictNamedArgs{
			"cluster": l.cluster, "nodes": of.Nodes, "readiness": of.Readiness, "everywhere": of.Everywhere, "since": sendable(of.Since),
		}).Query(collect(&out.VMs, isVM))
	}
	if of.AllNodes {
		batch.Queue(nodesQuery, pgx.StrictNamedArgs{"cluster": l.cluster}).Query(collect(&out.Nodes, all))
	}
	if of.Settings != nil {
		batch.Queue(requestsSinceQuery, pgx.StrictNamedArgs{"cluster": l.cluster, "since": sendable(*of.Settings)}).Query(collect(&out.Requesters, all))
	}
	if len(of.Pods) > 0 {
		var namespaces, podNames []string
		for _, pod := range of.Pods {
			namespace, name := pod.VM()
			namespaces, podNames = append(namespaces, clean(namespace)), append(podNames, clean(name))
		}
		batch.Queue(ownersQuery, pgx.StrictNamedArgs{"cluster": l.cluster, "namespaces": namespaces, "names": podNames, "pods": names(of.Pods)}).Query(each(func(row pgx.CollectableRow) error {
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
	err = l.store.pool.SendBatch(ctx, &batch).Close()
	return out, explain("find what new facts affect", err)
}

// queueQuery reads the migrations that had not finished by a time, as far as slots and waiting are concerned.
const queueQuery = `
SELECT subject, migration_uid, coalesce(source_node, ''), created_at, scheduling_at, finished_at, coalesce(wait_reason, '')
FROM evictrail.migrations
WHERE cluster = @cluster
  AND open_until >= @since`

// Migrations returns the migrations that had not finished by a time (fold.Source).
func (l loader) Migrations(ctx context.Context, since time.Time) ([]fold.MigrationOf, error) {
	rows, err := l.store.pool.Query(ctx, queueQuery, pgx.StrictNamedArgs{"cluster": l.cluster, "since": sendable(since)})
	if err != nil {
		return nil, explain("load the queue of migrations", err)
	}
	out, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (fold.MigrationOf, error) {
		var vm string
		var m trail.Migration
		var scheduling, finished *time.Time
		if err := row.Scan(&vm, &m.UID, &m.SourceNode, &m.CreatedAt, &scheduling, &finished, &m.WaitReason); err != nil {
			return fold.MigrationOf{}, err
		}
		m.CreatedAt, m.SchedulingAt, m.FinishedAt = m.CreatedAt.UTC(), orZero(scheduling), orZero(finished)
		s, err := trail.ParseSubject(vm)
		return fold.MigrationOf{VM: s, Migration: &m}, err
	})
	return out, explain("load the queue of migrations", err)
}

// quietNodesQuery finds from when on nodes have to be derived for what changed since a time: since before that, when no evacuation, drain or loop was open there.
const quietNodesQuery = `
WITH wanted AS (
  SELECT w.subject, w.node, least(w.since, s.next_at) - @slack::interval AS since
  FROM unnest(@subjects::text[], @nodes::text[], @since::timestamptz[]) AS w(subject, node, since)
  LEFT JOIN evictrail.subjects AS s ON s.cluster = @cluster AND s.subject = w.subject
), recorded AS (
  SELECT w.subject, t.marked_at AS begun, t.open_until
  FROM wanted AS w
  JOIN evictrail.evacuations AS t ON t.cluster = @cluster AND t.node = w.node
  UNION ALL
  SELECT w.subject, t.opened_at, t.open_until
  FROM wanted AS w
  JOIN evictrail.loops AS t ON t.cluster = @cluster AND t.subject = w.subject
  UNION ALL
  SELECT w.subject, t.started_at, t.open_until
  FROM wanted AS w
  JOIN evictrail.drains AS t ON t.cluster = @cluster AND t.subject = w.subject
), busy AS (
  SELECT subject, range_agg(tstzrange(begun - interval '1 second', open_until + interval '1 second', '[]')) AS times
  FROM recorded
  GROUP BY subject
)
SELECT w.subject, coalesce((SELECT lower(b) FROM unnest(busy.times) AS b WHERE b @> w.since), w.since)
FROM wanted AS w
LEFT JOIN busy ON busy.subject = w.subject`

// NodeRows returns what nodes, and the cluster as a whole, are derived from (fold.Source).
func (l loader) NodeRows(ctx context.Context, wants []fold.NodeWant) ([]*fold.NodeRows, error) {
	of := map[string]*fold.NodeRows{}
	out := make([]*fold.NodeRows, len(wants))
	var subjects, nodes []string
	var since []time.Time
	for i, want := range wants {
		out[i] = &fold.NodeRows{Subject: want.Subject, Since: want.Since}
		of[clean(want.Subject.String())] = out[i]
		if want.Since.IsZero() {
			continue
		}
		node := ""
		if want.Subject.Kind == trail.SubjectNode {
			node = clean(want.Subject.Name)
		}
		subjects, nodes, since = append(subjects, clean(want.Subject.String())), append(nodes, node), append(since, want.Since)
	}
	err := l.read(ctx, func(tx pgx.Tx, frozenTo time.Time) error {
		if len(subjects) > 0 {
			var batch pgx.Batch
			batch.Queue(quietNodesQuery, pgx.StrictNamedArgs{"cluster": l.cluster, "subjects": subjects, "nodes": nodes, "since": since, "slack": aroundSlack}).
				Query(each(func(row pgx.CollectableRow) error {
					var subject string
					var from time.Time
					err := row.Scan(&subject, &from)
					of[subject].From = from.UTC()
					return err
				}))
			if err := tx.SendBatch(ctx, &batch).Close(); err != nil {
				return err
			}
		}
		return l.fillNodes(ctx, tx, out, wants, frozenTo)
	})
	return out, err
}

// fillNodes reads the rows of VMs that nodes are derived from, and their own.
func (l loader) fillNodes(ctx context.Context, tx pgx.Tx, out []*fold.NodeRows, wants []fold.NodeWant, frozenTo time.Time) error {
	inputs := map[string]*trail.Rows{}
	var subjects, nodes []string
	var from, nodesFrom, before []time.Time
	for i, n := range out {
		n.FrozenTo = frozenTo
		subjects, from = append(subjects, clean(n.Subject.String())), append(from, sendable(n.From))
		if n.Subject.Kind != trail.SubjectNode {
			inputs[""] = &n.Inputs
			continue
		}
		nodes, nodesFrom, before = append(nodes, clean(n.Subject.Name)), append(nodesFrom, sendable(n.From)), append(before, sendable(trail.BlocksSince(wants[i].Facts, n.From).Add(-aroundSlack)))
		inputs[clean(n.Subject.Name)] = &n.Inputs
	}
	var batch pgx.Batch
	rows := map[trail.Subject]trail.Derived{}
	readRows(&batch, l.cluster, subjects, from, rows)
	if len(nodes) > 0 {
		args := pgx.StrictNamedArgs{"cluster": l.cluster, "nodes": nodes, "since": nodesFrom, "before": before}
		batch.Queue(placementsOfNodesQuery, args).Query(collectColumnsAround(inputs, func(r *trail.Rows) *[]*trail.Placement { return &r.Placements }))
		batch.Queue(evacuationsOfNodesQuery, args).Query(collectAround(inputs, func(r *trail.Rows) *[]*trail.Evacuation { return &r.Evacuations }))
		batch.Queue(requestsOfNodesQuery, args).Query(collectColumnsAround(inputs, func(r *trail.Rows) *[]*trail.EvictionRequest { return &r.Requests }))
		batch.Queue(migrationsOfNodesQuery, args).Query(collectColumnsAround(inputs, func(r *trail.Rows) *[]*trail.Migration { return &r.Migrations }))
		batch.Queue(arrivalsOfNodesQuery, args).Query(collectColumnsAround(inputs, func(r *trail.Rows) *[]*trail.Migration { return &r.Arrivals }))
		batch.Queue(holdsOfNodesQuery, args).Query(collectAround(inputs, func(r *trail.Rows) *[]*trail.Decision { return &r.Decisions }))
	}
	if all := inputs[""]; all != nil {
		for _, n := range out {
			if n.Subject.Kind != trail.SubjectNode {
				batch.Queue(stuckQuery, pgx.StrictNamedArgs{"cluster": l.cluster, "since": sendable(n.From)}).
					Query(collectAround(inputs, func(r *trail.Rows) *[]*trail.Evacuation { return &r.Evacuations }))
			}
		}
	}
	if err := tx.SendBatch(ctx, &batch).Close(); err != nil {
		return err
	}
	for _, n := range out {
		n.Rows = rows[n.Subject]
	}
	return nil
}
