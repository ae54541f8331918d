package store

import (
	"context"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/evictrail/evictrail/trail"
)

const holdSubjectsQuery = `
INSERT INTO evictrail.subjects (cluster, subject, derived_at)
SELECT @cluster, s, now()
FROM unnest(@subjects::text[]) AS s
ON CONFLICT (cluster, subject) DO UPDATE SET derived_at = excluded.derived_at`

// vmReach finds, as SQL, from when on VMs are derived for what changed since a time: since some time before that, when nothing was open there, so that what
// had ended stays as it is. Their facts matter since what was open some time before that had begun, and some time before, as what happens may
// depend on what had happened by then (trail.Reach). This is what is kept where facts are dropped (reach), for each VM by itself. Placements do not count: a guest
// is always somewhere.
const vmReach = `n AS (
  SELECT n.subject, least(n.since, s.next_at) - @slack::interval AS since
  FROM unnest(@vms::text[], @since::timestamptz[]) AS n(subject, since)
  LEFT JOIN evictrail.subjects AS s ON s.cluster = @cluster AND s.subject = n.subject
), spans AS MATERIALIZED (
  SELECT n.subject, s.began, s.open_until
  FROM n
  CROSS JOIN LATERAL (
    SELECT requested_at AS began, open_until FROM evictrail.eviction_requests WHERE cluster = @cluster AND subject = n.subject
    UNION ALL
    SELECT marked_at, open_until FROM evictrail.evacuations WHERE cluster = @cluster AND subject = n.subject
    UNION ALL
    SELECT created_at, open_until FROM evictrail.migrations WHERE cluster = @cluster AND subject = n.subject
    UNION ALL
    SELECT decided_at, open_until FROM evictrail.cooldown_decisions WHERE cluster = @cluster AND subject = n.subject
    UNION ALL
    SELECT opened_at, open_until FROM evictrail.loops WHERE cluster = @cluster AND subject = n.subject
  ) AS s
), quiet AS (
  SELECT n.subject, least(n.since, min(s.began)) - interval '1 second' AS since
  FROM n
  LEFT JOIN spans AS s ON s.subject = n.subject AND s.open_until >= n.since
  GROUP BY n.subject, n.since
), vm_reach AS MATERIALIZED (
  SELECT q.subject, q.since AS told, least(q.since - @before::interval, min(s.began)) - @before::interval AS read
  FROM quiet AS q
  LEFT JOIN spans AS s ON s.subject = q.subject AND s.open_until >= q.since - @before::interval
  GROUP BY q.subject, q.since
)`

// vmReachQuery also asks whether anything was open across the time since which a VM is derived again.
const vmReachQuery = `
WITH ` + vmReach + `
SELECT v.subject, v.told, v.read, bool_or(s.subject IS NOT NULL)
FROM vm_reach AS v
LEFT JOIN spans AS s ON s.subject = v.subject AND s.began < v.told AND s.open_until >= v.told - @margin::interval
GROUP BY v.subject, v.told, v.read`

// toldMargin is how much earlier than it was told what is told again may begin: reviews and audit events of one request are up to seconds apart.
const toldMargin = time.Minute

// stateBefore is trail.StateBefore as SQL: where to find the facts of a subject s.of from before s.since that say how it stood then. Few columns are read to
// find them: whole rows are read of these alone.
const stateBefore = `older AS MATERIALIZED (
    SELECT occurred_at, id, object_kind, object_uid, object_version, what, migration_uid
    FROM evictrail.events
    WHERE cluster = @cluster
      AND subject = s.of
      AND occurred_at < s.since
  ), there AS MATERIALIZED (
    SELECT *
    FROM older
    WHERE object_kind IN ('VirtualMachineInstance', 'VirtualMachineInstanceMigration', 'Pod', 'Node')
      AND object_uid NOT IN (SELECT object_uid FROM older WHERE what = 'gone')
  ), state_before AS (
    SELECT occurred_at, id
    FROM there
    WHERE object_kind = 'Pod'
    UNION
    SELECT occurred_at, id
    FROM older
    WHERE migration_uid IN (SELECT object_uid FROM there WHERE object_kind = 'VirtualMachineInstanceMigration')
    UNION
    (
      SELECT DISTINCT ON (object_uid) occurred_at, id
      FROM there
      WHERE object_kind IN ('VirtualMachineInstance', 'Node')
      ORDER BY object_uid, length(object_version), object_version, occurred_at
    )
    UNION
    (
      SELECT DISTINCT ON (object_uid, what) occurred_at, id
      FROM there
      WHERE object_kind IN ('VirtualMachineInstance', 'Node')
      ORDER BY object_uid, what, length(object_version) DESC, object_version DESC, occurred_at DESC
    )
  )`

// factsThatMatterQuery reads all facts of subjects since a time, and those from before it that say how they stood. OFFSET is there for what
// factsOfSubjectsQuery has it for.
const factsThatMatterQuery = `
SELECT f.*
FROM unnest(@subjects::text[], @from::timestamptz[]) AS s(of, since)
CROSS JOIN LATERAL (
  WITH ` + stateBefore + `
  SELECT ` + factColumns + `
  FROM evictrail.events
  WHERE cluster = @cluster
    AND subject = s.of
    AND occurred_at >= s.since
  UNION ALL
  SELECT its.*
  FROM state_before AS b
  CROSS JOIN LATERAL (
    SELECT ` + factColumns + `
    FROM evictrail.events
    WHERE cluster = @cluster
      AND subject = s.of
      AND occurred_at = b.occurred_at
      AND id = b.id
    OFFSET 0
  ) AS its
  OFFSET 0
) AS f`

// Of what is asked of a node that matters which is near what became of it: who cordoned it, or tainted it. Somebody may patch it every few seconds for something
// else.
const factsOfNodesQuery = `
SELECT f.*
FROM unnest(@nodes::text[]) AS s(of)
CROSS JOIN LATERAL (
  WITH became AS MATERIALIZED (
    SELECT ` + factColumns + `
    FROM evictrail.events
    WHERE cluster = @cluster
      AND subject = s.of
      AND subject LIKE 'node:%'
      AND kind <> 'action_requested'
  ), near AS (
    SELECT unnest(range_agg(tstzrange(c.at - @around::interval, c.at + @around::interval))) AS at
    FROM (
      SELECT occurred_at
      FROM became
      WHERE kind IN ('node_cordoned', 'node_uncordoned', 'node_tainted', 'node_untainted')
      UNION ALL
      SELECT n.at
      FROM unnest(@became::text[], @at::timestamptz[]) AS n(node, at)
      WHERE n.node = s.of
    ) AS c(at)
  )
  SELECT *
  FROM became
  UNION ALL
  SELECT asked.*
  FROM near
  CROSS JOIN LATERAL (
    SELECT ` + factColumns + `
    FROM evictrail.events
    WHERE cluster = @cluster
      AND subject = s.of
      AND kind = 'action_requested'
      AND occurred_at BETWEEN lower(near.at) AND upper(near.at)
    OFFSET 0
  ) AS asked
  OFFSET 0
) AS f`

// becameRow is when a new fact says that a node became something.
type becameRow struct {
	node trail.Subject
	at   time.Time
}

// hold takes the rows of subjects, waiting for other writers, and reads their facts, as far as they matter to what changed since a time; of others, which are
// held later, it takes the rows alone. Rows are taken sorted, so that no two writers wait for each other.
func (d *derivation) hold(ctx context.Context, changed since, others ...trail.Subject) error {
	fresh := since{}
	for s, at := range changed {
		if !d.holds(s, at) {
			fresh[s], d.held[s], d.facts[s] = at, at, nil
			d.forgetFrom(s)
		}
	}
	if len(fresh) == 0 && len(others) == 0 {
		return nil
	}
	facts, err := d.lockAndRead(ctx, fresh, others)
	d.take(facts)
	return explain("take subjects", err)
}

// holds tells whether a subject is held as far as it matters to what changed since a time.
func (d *derivation) holds(s trail.Subject, changed time.Time) bool {
	since, held := d.held[s]
	return held && !changed.Before(since)
}

// release gives up facts of subjects: their rows stay taken until the transaction ends.
func (d *derivation) release(subjects []trail.Subject) {
	for _, s := range subjects {
		delete(d.held, s)
		delete(d.facts, s)
		d.forgetFrom(s)
	}
}

// forgetFrom forgets from when on a subject is derived.
func (d *derivation) forgetFrom(s trail.Subject) {
	delete(d.from, s)
	delete(d.quiet, s)
}

// lockAndRead locks subjects and others, as far as they are not locked yet, and then reads the facts of the subjects: each statement sees what was committed
// before it began.
func (d *derivation) lockAndRead(ctx context.Context, changed since, others []trail.Subject) ([]trail.Fact, error) {
	unlocked := map[trail.Subject]bool{}
	lock := func(s trail.Subject) {
		if !d.locked[s] {
			unlocked[s], d.locked[s] = true, true
		}
	}
	var whole, nodes, vms, namespaces []trail.Subject
	var times, from []time.Time
	for _, s := range changed.subjects() {
		switch at := changed[s]; {
		case s.Kind == trail.SubjectNode:
			nodes, d.held[s] = append(nodes, s), time.Time{}
		case at.IsZero() || s.Kind != trail.SubjectVMI && s.Kind != trail.SubjectNamespace:
			whole, d.held[s] = append(whole, s), time.Time{}
		case s.Kind == trail.SubjectNamespace: // each request stands for itself, and one namespace may have most of a cluster's
			namespaces, from = append(namespaces, s), append(from, at.Add(-namespaceSlack))
			d.from[s] = at.Add(-namespaceSlack / 2) // lines may be told a little later than their facts
		default:
			vms, times = append(vms, s), append(times, at)
		}
		lock(s)
	}
	for _, s := range others {
		lock(s)
	}
	var facts []trail.Fact
	collect := func(rows pgx.Rows) error {
		more, err := collectFacts(rows, d.cluster)
		facts = append(facts, more...)
		return err
	}
	var batch pgx.Batch
	if len(unlocked) > 0 {
		batch.Queue(holdSubjectsQuery, pgx.StrictNamedArgs{"cluster": d.cluster, "subjects": names(sortedSubjects(unlocked))})
	}
	if len(whole) > 0 {
		batch.Queue(factsOfSubjectsQuery, pgx.StrictNamedArgs{"cluster": d.cluster, "subjects": names(whole)}).Query(collect)
	}
	if len(nodes) > 0 {
		of, at := make([]trail.Subject, len(d.became)), make([]time.Time, len(d.became))
		for i, b := range d.became {
			of[i], at[i] = b.node, b.at
		}
		batch.Queue(factsOfNodesQuery, pgx.StrictNamedArgs{"cluster": d.cluster, "nodes": names(nodes), "became": names(of), "at": at, "around": askedAround}).Query(collect)
	}
	if len(namespaces) > 0 {
		batch.Queue(factsSinceQuery, pgx.StrictNamedArgs{"cluster": d.cluster, "subjects": names(namespaces), "from": from}).Query(collect)
	}
	read := map[string]time.Time{}
	if len(vms) > 0 {
		of := map[string]trail.Subject{}
		for _, s := range vms {
			of[clean(s.String())] = s
		}
		args := vmReachArgs(d.cluster, vms, times, d.reach)
		args["margin"] = toldMargin
		batch.Queue(vmReachQuery, args).Query(each(func(row pgx.CollectableRow) error {
			var vm string
			var told, from time.Time
			var across bool
			err := row.Scan(&vm, &told, &from, &across)
			if d.from[of[vm]], read[vm] = told.UTC(), from; !across {
				d.quiet[of[vm]] = told.UTC().Add(-toldMargin)
			}
			return err
		}))
	}
	if err := d.tx.SendBatch(ctx, &batch).Close(); err != nil || len(vms) == 0 {
		return facts, err
	}
	from = from[:0]
	for _, s := range vms {
		from = append(from, read[clean(s.String())])
	}
	more, err := factsBy(ctx, d.tx, d.cluster, factsThatMatterQuery, pgx.StrictNamedArgs{"cluster": d.cluster, "subjects": names(vms), "from": from})
	return append(facts, more...), err
}

// vmReachArgs are the arguments of vmReach.
func vmReachArgs(cluster string, vms []trail.Subject, since []time.Time, before time.Duration) pgx.StrictNamedArgs {
	return pgx.StrictNamedArgs{"cluster": cluster, "vms": names(vms), "since": since, "slack": aroundSlack, "before": before}
}

// missing gives the facts of a held subject that add something to those stored, each once, and takes them in.
func (d *derivation) missing(of trail.Subject, facts []trail.Fact) []trail.Fact {
	out := trail.Fresh(slices.Values(d.facts[of]), facts)
	d.facts[of] = append(d.facts[of], out...)
	return out
}

// take takes in facts of held subjects.
func (d *derivation) take(facts []trail.Fact) {
	count := map[trail.Subject]int{}
	for i := range facts {
		count[facts[i].Subject]++
	}
	for i := range facts {
		s := facts[i].Subject
		if n := count[s]; n > 0 {
			d.facts[s], count[s] = slices.Grow(d.facts[s], n), 0
		}
		d.facts[s] = append(d.facts[s], facts[i])
	}
}
