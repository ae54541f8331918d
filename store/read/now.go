package read

import (
	"context"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/evictrail/evictrail/store/pg"
	"github.com/evictrail/evictrail/store/tables"
	"github.com/evictrail/evictrail/trail"
)

// answerVM answers about a VM as of now. Of its rows those are read that say how it stands, and those since the latest episode of it
// began; where they are behind, all of them are derived. Of what is around it the loops that name it, its node's drain and the
// evacuations that are open are read. Nil where those are behind. Its statements are planned once for each connection: that takes Postgres
// longer than to run them, and what they are asked with changes no plan.
func (q *inquiry) answerVM(ctx context.Context) (*trail.Cluster, error) {
	own := []trail.Subject{q.of}
	stands, late, err := q.loadStatus(ctx)
	if err != nil {
		return nil, err
	}
	rows := map[trail.Subject]trail.Derived{}
	var batch pgx.Batch
	var facts []trail.Fact
	if late {
		if err := q.planEach(ctx); err != nil {
			return nil, err
		}
		if err := q.deriveInto(ctx, rows, own); err != nil {
			return nil, err
		}
		stands = rows
	}
	since := q.wantedSince(stands[q.of])
	if !late {
		q.rowsNear(&batch, rows, own, since)
		q.linesOfVM(&batch, rows, since)
		q.decisionsNear(&batch, rows, own, since)
	}
	q.queueAnnotations(&batch, &facts, own, since)
	if err := q.tx.SendBatch(ctx, &batch).Close(); err != nil {
		return nil, err
	}
	around := []trail.Subject{trail.ClusterSubject}
	for _, n := range rows[q.of].Nodes() {
		around = append(around, trail.Subject{Kind: trail.SubjectNode, Name: n})
	}
	namespace, vmi := q.of.VM()
	batch = pgx.Batch{}
	behind := q.queueStaleCount(&batch, around)
	batch.Queue(loopsOfVMQuery, pgx.StrictNamedArgs{
		"cluster": q.cluster, "namespace": namespace, "vmi": vmi, "name": q.of.Name, "subjects": tables.SubjectTexts(around), "since": since,
	}).Query(tables.CollectOf(rows, func(d *trail.Derived) *[]trail.Loop { return &d.Loops }))
	if p := rows[q.of].Placements; len(p) > 0 {
		q.queueDrains(&batch, rows, []trail.Subject{{Kind: trail.SubjectNode, Name: p[len(p)-1].Node}}, since)
	}
	if !q.recordedNow {
		q.openEvacuations(&batch, rows, tables.SubjectTexts(own))
		q.openOutages(&batch, rows, tables.SubjectTexts(own))
	}
	q.queueNodeLabels(&batch, &facts, rows[q.of])
	if err := q.tx.SendBatch(ctx, &batch).Close(); err != nil {
		return nil, err
	}
	if *behind > 0 {
		return nil, q.planEach(ctx)
	}
	return trail.NewCluster(rows, append(facts, q.common...), q.at), nil
}

// loadStatus reads how it stands with the VM, and whether its rows are behind.
func (q *inquiry) loadStatus(ctx context.Context) (rows map[trail.Subject]trail.Derived, late bool, err error) {
	rows = map[trail.Subject]trail.Derived{}
	known := false
	namespace, vmi := q.of.VM()
	var batch pgx.Batch
	batch.Queue("SELECT " + q.db.PlanOnce(ctx, q.tx))
	batch.Queue(statusQuery, pgx.StrictNamedArgs{"cluster": q.cluster, "subject": pg.CleanText(q.of.String()), "at": q.at}).Query(pg.EachRow(func(row pgx.CollectableRow) error {
		known = true
		return row.Scan(&late)
	}))
	q.rowsNear(&batch, rows, []trail.Subject{q.of}, pg.Never)
	q.decisionsNear(&batch, rows, []trail.Subject{q.of}, pg.Never)
	batch.Queue(moveQuery, pgx.StrictNamedArgs{"cluster": q.cluster, "subject": pg.CleanText(q.of.String()), "uid": pg.CleanText(q.move)}).Query(pg.EachRow(func(row pgx.CollectableRow) error {
		var created time.Time
		err := row.Scan(&created)
		q.since = pg.EarlierTime(q.since, created)
		return err
	}))
	batch.Queue(openLoopsAboutQuery, pgx.StrictNamedArgs{"cluster": q.cluster, "subject": pg.CleanText(q.of.String()), "namespace": namespace, "vmi": vmi}).
		Query(tables.CollectOf(rows, func(d *trail.Derived) *[]trail.Loop { return &d.Loops }))
	if err := q.tx.SendBatch(ctx, &batch).Close(); err != nil {
		return nil, false, err
	}
	if !known {
		err = q.notFoundError()
	}
	return rows, late, err
}

// planEach has statements planned for what they are asked with again, as those that derive are: how many facts they read differs by far.
func (q *inquiry) planEach(ctx context.Context) error {
	_, err := q.tx.Exec(ctx, planEachQuery)
	return err
}

// wantedSince returns from when on the rows of the VM that stands so are wanted: with a little more than what is asked or shown, as pictures show
// that.
func (q *inquiry) wantedSince(stands trail.Derived) time.Time {
	since := q.since
	if !q.recordedNow {
		story := stands.StoryFrom()
		if story.IsZero() {
			return story
		}
		since = pg.EarlierTime(since, story)
	}
	return since.Add(-max(q.at.Sub(since)/20, time.Minute))
}

// answerNode answers about a node as of now: its own rows are read, and those of the VMs that it holds or that had to do with it lately.
// VMs whose rows are behind are derived. Nil where those of the node are.
func (q *inquiry) answerNode(ctx context.Context) (*trail.Cluster, error) {
	own := []trail.Subject{q.of}
	lately := stay{node: q.of.Name, from: q.since, to: q.at}
	if !q.recordedNow {
		lately.from = pg.EarlierTime(q.since, q.at.Add(-lookBack))
		args := pgx.StrictNamedArgs{"cluster": q.cluster, "node": q.of.Name, "subject": pg.CleanText(q.of.String()), "since": lately.from}
		if err := q.tx.QueryRow(ctx, openSinceQuery, args).Scan(&lately.from); err != nil {
			return nil, err
		}
	}
	if err := q.loadStretch(ctx, &lately); err != nil {
		return nil, err
	}
	since := lately.began
	if q.recordedNow { // the rows of that time alone
		since = lately.from
	}
	rows := map[trail.Subject]trail.Derived{}
	var batch pgx.Batch
	behind := q.queueStaleCount(&batch, own)
	vms, late := q.queueVMsOnNode(&batch, since)
	q.rowsNear(&batch, rows, own, since)
	q.decisionsNear(&batch, rows, own, since)
	q.linesNear(&batch, rows, own, since)
	q.queueDrains(&batch, rows, own, since)
	batch.Queue(loopsThroughNodeQuery, pgx.StrictNamedArgs{"cluster": q.cluster, "node": q.of.Name, "since": since}).
		Query(tables.CollectOf(rows, func(d *trail.Derived) *[]trail.Loop { return &d.Loops }))
	if err := q.tx.SendBatch(ctx, &batch).Close(); err != nil {
		return nil, err
	}
	if *behind > 0 {
		return nil, nil
	}
	all := slices.Concat(*vms, *late)
	facts := q.common
	batch = pgx.Batch{}
	q.rowsNear(&batch, rows, *vms, since)
	q.decisionsNear(&batch, rows, *vms, since)
	if !q.recordedNow {
		q.openEvacuations(&batch, rows, tables.SubjectTexts(all))
		q.openOutages(&batch, rows, tables.SubjectTexts(all))
	}
	q.queueAnnotations(&batch, &facts, all, lately.began) // those that were set before, and still were
	q.factsBy(&batch, &facts, loadQuery, pgx.StrictNamedArgs{"cluster": q.cluster, "node": pg.CleanText(q.of.Name), "since": q.at.Add(-loadWithin), "at": q.at})
	if err := q.tx.SendBatch(ctx, &batch).Close(); err != nil {
		return nil, err
	}
	if len(*late) > 0 {
		if err := q.deriveInto(ctx, rows, *late); err != nil {
			return nil, err
		}
	}
	return trail.NewCluster(rows, facts, q.at), nil
}

// queueVMsOnNode queues the question for the VMs that were on the node, were to leave it or were asked to, since a time: those whose rows are up to the moment, and
// those whose rows are behind.
func (q *inquiry) queueVMsOnNode(batch *pgx.Batch, since time.Time) (vms, late *[]trail.Subject) {
	vms, late = new([]trail.Subject), new([]trail.Subject)
	batch.Queue(onNodeQuery, pgx.StrictNamedArgs{"cluster": q.cluster, "node": q.of.Name, "at": q.at, "since": since}).Query(pg.EachRow(func(row pgx.CollectableRow) error {
		var text string
		var isLate bool
		if err := row.Scan(&text, &isLate); err != nil {
			return err
		}
		vm, err := trail.ParseSubject(text)
		if isLate {
			*late = append(*late, vm)
		} else {
			*vms = append(*vms, vm)
		}
		return err
	}))
	return vms, late
}

// queueAnnotations queues the question for the annotations of VMs since a time. The watch of pods may show them a little before the mark.
func (q *inquiry) queueAnnotations(batch *pgx.Batch, into *[]trail.Fact, vms []trail.Subject, since time.Time) {
	var namespaces, vmis []string
	for _, s := range vms {
		namespace, vmi := s.VM()
		namespaces, vmis = append(namespaces, pg.CleanText(namespace)), append(vmis, pg.CleanText(vmi))
	}
	q.factsBy(batch, into, annotationsQuery, pgx.StrictNamedArgs{
		"cluster": q.cluster, "namespaces": namespaces, "vmis": vmis, "since": since.Add(-time.Minute), "at": q.at,
	})
}

// queueNodeLabels queues the question for the labels of the nodes on which a VM was last.
func (q *inquiry) queueNodeLabels(batch *pgx.Batch, into *[]trail.Fact, vm trail.Derived) {
	var nodes []string
	for _, n := range vm.LastNodes() {
		nodes = append(nodes, subjectOfNode(n))
	}
	if len(nodes) > 0 {
		q.factsBy(batch, into, nodeLabelsQuery, pgx.StrictNamedArgs{"cluster": q.cluster, "nodes": nodes, "at": q.at})
	}
}

// What is read of the rows of subjects: those since a time and, of what is older, what says how they stand.
var (
	loopsNearQuery = rowsQuery("loops", `
  AND open_until >= @since`, "opened_at, loop_id")
	evacuationsNearQuery = rowsQuery("evacuations", `
  AND (
    open_until >= @since
    OR evacuation_id IN (`+lastEvacuations+`)
  )`, "marked_at, evacuation_id")
	placementsNearQuery = plainQuery[trail.Placement]("placements", `
  AND (
    open_until >= @since
    OR placement_id IN (
      SELECT DISTINCT ON (subject, ended_by) placement_id
      FROM evictrail.placements
      WHERE cluster = @cluster
        AND subject = ANY(@subjects)
      ORDER BY subject, ended_by, from_at DESC, placement_id DESC
    )
    OR placement_id IN ( -- when a VM ran again of which it is said that it was shut down lately
      SELECT DISTINCT ON (subject, vmi_uid) placement_id
      FROM evictrail.placements
      WHERE cluster = @cluster
        AND subject = ANY(@subjects)
        AND from_at >= @at::timestamptz - interval '24 hours'
      ORDER BY subject, vmi_uid, from_at, placement_id
    )
  )`, "from_at, placement_id")
	requestsNearQuery = plainQuery[trail.EvictionRequest]("eviction_requests", `
  AND (
    requested_at >= @since AND (salient OR repeat_of IS NULL OR @each)
    OR effect = 'shutdown'
    OR effect = 'evacuation' AND evacuation_id IN (`+lastEvacuations+`)
    OR request_id IN (
      SELECT DISTINCT ON (subject, answer, dry_run) request_id
      FROM evictrail.eviction_requests
      WHERE cluster = @cluster
        AND subject = ANY(@subjects)
        AND repeat_of IS NULL
        AND requested_at <= @at
      ORDER BY subject, answer, dry_run, requested_at DESC, request_id DESC
    )
  )
  AND requested_at <= @at`, "requested_at, request_id")
	migrationsNearQuery = plainQuery[trail.Migration]("migrations", `
  AND (
    open_until >= @since
    OR migration_uid IN (
      SELECT DISTINCT ON (subject, evacuation_id IS NULL) migration_uid
      FROM evictrail.migrations
      WHERE cluster = @cluster
        AND subject = ANY(@subjects)
        AND created_at <= @at
      ORDER BY subject, evacuation_id IS NULL, created_at DESC, migration_uid DESC
    )
  )
  AND created_at <= @at`, "created_at, migration_uid")
	decisionsNearQuery = rowsQuery("cooldown_decisions", `
  AND (
    decided_at >= @since
    OR decision_id IN (
      SELECT DISTINCT ON (subject, layer) decision_id
      FROM evictrail.cooldown_decisions
      WHERE cluster = @cluster
        AND subject = ANY(@subjects)
        AND decided_at < @since
        AND verdict <> 'blocked'
      ORDER BY subject, layer, decided_at DESC, decision_id DESC
    )
  )
  AND decided_at <= @at`, "decided_at, decision_id")
	drainsNearQuery = rowsQuery("drains", `
  AND open_until >= @since`, "started_at, drain_id")
	blockersOfQuery = rowsQuery("drain_blockers", "", "waiting_since, vmi_uid")
	loopsOfVMQuery  = rowsQuery("loops", `
  AND open_until >= @since
  AND `+isAboutVM, "opened_at, loop_id")
)

// loopNamesVM is true for the loops that name a VM.
const isAboutVM = `(namespace = @namespace AND vmi = @vmi OR evidence @> jsonb_build_array(jsonb_build_object('vmi', @name::text)))`

// lastEvacuations are the last ones of subjects.
const lastEvacuations = `
      SELECT DISTINCT ON (subject) evacuation_id
      FROM evictrail.evacuations
      WHERE cluster = @cluster
        AND subject = ANY(@subjects)
      ORDER BY subject, marked_at DESC, evacuation_id`

// rowsQuery asks for the rows of subjects in a table, each with its subject, that meet some conditions more.
func rowsQuery(table, and, order string) string {
	return selectRows("row_to_json(t)", table, and, order)
}

// plainQuery asks for the columns of such rows.
func plainQuery[R any](table, and, order string) string {
	return selectRows(tables.ColumnsOf[R](), table, and, order)
}

func selectRows(what, table, and, order string) string {
	return `
SELECT subject, ` + what + `
FROM evictrail.` + table + ` AS t
WHERE cluster = @cluster
  AND subject = ANY(@subjects)` + and + `
ORDER BY ` + order
}

const (
	planEachQuery = `SET LOCAL plan_cache_mode = auto`
	statusQuery   = `
SELECT dirty_since IS NOT NULL OR coalesce(next_at <= @at, false)
FROM evictrail.subjects
WHERE cluster = @cluster
  AND subject = @subject`
	moveQuery = `
SELECT created_at
FROM evictrail.migrations
WHERE cluster = @cluster
  AND subject = @subject
  AND migration_uid = @uid`
	openSinceQuery = `
SELECT least(
  @since::timestamptz,
  (SELECT min(opened_at) FROM evictrail.loops WHERE cluster = @cluster AND node = @node AND closed_at IS NULL),
  (SELECT min(started_at) FROM evictrail.drains WHERE cluster = @cluster AND subject = @subject AND ended_at IS NULL)
)`
	openLoopsAboutQuery = `
SELECT @subject::text, row_to_json(t)
FROM evictrail.loops AS t
WHERE cluster = @cluster
  AND closed_at IS NULL
  AND namespace = @namespace
  AND vmi = @vmi`
	loopsThroughNodeQuery = `
SELECT subject, row_to_json(t)
FROM evictrail.loops AS t
WHERE cluster = @cluster
  AND subject LIKE 'node:%'
  AND node <> @node
  AND nodes @> to_jsonb(@node::text)
  AND open_until >= @since
ORDER BY opened_at, loop_id`
	openEvacuationsOfQuery = `
SELECT subject, row_to_json(t)
FROM evictrail.evacuations AS t
WHERE cluster = @cluster
  AND ended_at IS NULL
  AND NOT subject = ANY(@but)`
	behindQuery = `
SELECT count(*)
FROM evictrail.subjects
WHERE cluster = @cluster
  AND subject = ANY(@subjects)
  AND (dirty_since IS NOT NULL OR next_at <= @at)`
	onNodeQuery = `
SELECT s.subject, s.dirty_since IS NOT NULL OR coalesce(s.next_at <= @at, false)
FROM (
  SELECT subject
  FROM evictrail.placements
  WHERE cluster = @cluster
    AND node = @node
    AND from_at <= @at
    AND open_until >= @since
  UNION
  SELECT subject
  FROM evictrail.evacuations
  WHERE cluster = @cluster
    AND node = @node
    AND marked_at <= @at
    AND open_until >= @since
  UNION
  SELECT subject
  FROM evictrail.eviction_requests
  WHERE cluster = @cluster
    AND node = @node
    AND salient
    AND requested_at BETWEEN @since AND @at
) AS n
JOIN evictrail.subjects AS s ON s.cluster = @cluster AND s.subject = n.subject
WHERE n.subject LIKE 'vmi:%'
ORDER BY s.subject`
	annotationsQuery = `
SELECT ` + tables.FactColumns + `
FROM evictrail.events AS e
WHERE cluster = @cluster
  AND (namespace, vmi) IN (SELECT namespace, vmi FROM unnest(@namespaces::text[], @vmis::text[]) AS v(namespace, vmi))
  AND kind IN ('annotation_set', 'annotation_cleared')
  AND occurred_at BETWEEN @since AND @at`
	loadQuery = `
SELECT ` + tables.FactColumns + `
FROM evictrail.events AS e
WHERE cluster = @cluster
  AND kind = 'node_load'
  AND occurred_at BETWEEN @since AND @at
  AND detail -> 'readings' @> jsonb_build_array(jsonb_build_object('node', @node::text))
ORDER BY occurred_at DESC
LIMIT 8` // events_by_load
	nodeLabelsQuery = `
SELECT ` + tables.FactColumns + `
FROM evictrail.events AS e
WHERE cluster = @cluster
  AND subject = ANY(@nodes)
  AND kind = 'node_labels'
  AND occurred_at <= @at` // events_of_node_labels
)

// loadWithin is how old the load of a node may be that an answer as of now still has.
const loadWithin = time.Hour

// queueStaleCount queues the question how many of some subjects are to be derived again.
func (q *inquiry) queueStaleCount(batch *pgx.Batch, subjects []trail.Subject) *int {
	var n int
	batch.Queue(behindQuery, pgx.StrictNamedArgs{"cluster": q.cluster, "subjects": tables.SubjectTexts(subjects), "at": q.at}).QueryRow(func(row pgx.Row) error { return row.Scan(&n) })
	return &n
}

// openEvacuations queues the question for the evacuations that are open in the cluster, but for those of some VMs.
func (q *inquiry) openEvacuations(batch *pgx.Batch, rows map[trail.Subject]trail.Derived, but []string) {
	batch.Queue(openEvacuationsOfQuery, pgx.StrictNamedArgs{"cluster": q.cluster, "but": but}).
		Query(tables.CollectOf(rows, func(d *trail.Derived) *[]trail.Evacuation { return &d.Evacuations }))
}

// rowsNear queues the questions for the rows of subjects since a time, and for those that say how they stand. Of VMs around the one that
// is asked about, requests that only repeat others are left out.
func (q *inquiry) rowsNear(batch *pgx.Batch, rows map[trail.Subject]trail.Derived, subjects []trail.Subject, since time.Time) {
	args := q.buildNearArgs(subjects, since)
	batch.Queue(loopsNearQuery, args).Query(tables.CollectOf(rows, func(d *trail.Derived) *[]trail.Loop { return &d.Loops }))
	batch.Queue(evacuationsNearQuery, args).Query(tables.CollectOf(rows, func(d *trail.Derived) *[]trail.Evacuation { return &d.Evacuations }))
	batch.Queue(placementsNearQuery, args).Query(tables.CollectColumnsOf(rows, func(d *trail.Derived) *[]trail.Placement { return &d.Placements }))
	batch.Queue(migrationsNearQuery, args).Query(tables.CollectColumnsOf(rows, func(d *trail.Derived) *[]trail.Migration { return &d.Migrations }))
	args = q.buildNearArgs(subjects, since)
	args["each"] = len(subjects) == 1 && subjects[0] == q.of
	batch.Queue(requestsNearQuery, args).Query(tables.CollectColumnsOf(rows, func(d *trail.Derived) *[]trail.EvictionRequest { return &d.Requests }))
}

// decisionsNear queues the question for the decisions about subjects since a time, and for those that hold.
func (q *inquiry) decisionsNear(batch *pgx.Batch, rows map[trail.Subject]trail.Derived, subjects []trail.Subject, since time.Time) {
	batch.Queue(decisionsNearQuery, q.buildNearArgs(subjects, since)).Query(tables.CollectOf(rows, func(d *trail.Derived) *[]trail.Decision { return &d.Decisions }))
}

// linesNearQuery asks for the lines of subjects since a time. OFFSET keeps Postgres from going through the lines of all subjects since the time.
var linesNearQuery = `
SELECT subject, ` + tables.ColumnsOf[trail.Line]() + `
FROM (
  SELECT *
  FROM evictrail.timeline
  WHERE cluster = @cluster
    AND subject = ANY(@subjects)
  OFFSET 0
) AS t
WHERE at >= @since
ORDER BY at, tie, event_id`

// linesNear queues the question for the timelines of subjects since a time.
func (q *inquiry) linesNear(batch *pgx.Batch, rows map[trail.Subject]trail.Derived, subjects []trail.Subject, since time.Time) {
	batch.Queue(linesNearQuery, q.buildNearArgs(subjects, since)).Query(tables.CollectColumnsOf(rows, func(d *trail.Derived) *[]trail.Line { return &d.Timeline }))
}

// linesOfVMQuery asks for the lines of a VM since a time, of which there is an index.
var linesOfVMQuery = `
SELECT subject, ` + tables.ColumnsOf[trail.Line]() + `
FROM evictrail.timeline
WHERE cluster = @cluster
  AND subject = @subject
  AND namespace = @namespace
  AND vmi = @vmi
  AND at >= @since
ORDER BY at, tie, event_id`

// linesOfVM queues the question for the timeline of the VM since a time.
func (q *inquiry) linesOfVM(batch *pgx.Batch, rows map[trail.Subject]trail.Derived, since time.Time) {
	namespace, vmi := q.of.VM()
	batch.Queue(linesOfVMQuery, pgx.StrictNamedArgs{
		"cluster": q.cluster, "subject": pg.CleanText(q.of.String()), "namespace": pg.CleanText(namespace), "vmi": pg.CleanText(vmi), "since": since,
	}).Query(tables.CollectColumnsOf(rows, func(d *trail.Derived) *[]trail.Line { return &d.Timeline }))
}

// queueDrains queues the questions for the drains of nodes since a time.
func (q *inquiry) queueDrains(batch *pgx.Batch, rows map[trail.Subject]trail.Derived, nodes []trail.Subject, since time.Time) {
	args := q.buildNearArgs(nodes, since)
	batch.Queue(drainsNearQuery, args).Query(tables.CollectOf(rows, func(d *trail.Derived) *[]trail.Drain { return &d.Drains }))
	batch.Queue(blockersOfQuery, args).Query(tables.CollectOf(rows, func(d *trail.Derived) *[]trail.DrainBlocker { return &d.Blockers }))
}

func (q *inquiry) buildNearArgs(subjects []trail.Subject, since time.Time) pgx.NamedArgs {
	return pgx.NamedArgs{"cluster": q.cluster, "subjects": tables.SubjectTexts(subjects), "since": since, "at": q.at}
}

const openOutagesQuery = `
SELECT subject, row_to_json(t)
FROM evictrail.outages AS t
WHERE cluster = @cluster
  AND ended_at IS NULL`

// The attempts of others matter that hold slots and do not get on.
var stalledQuery = `
SELECT subject, ` + tables.ColumnsOf[trail.Migration]() + `
FROM evictrail.migrations
WHERE cluster = @cluster
  AND finished_at IS NULL
  AND wait_reason = 'target_node_not_ready'
  AND NOT subject = ANY(@but)`

// openOutages queues the questions which nodes are not ready and which migrations that stalls, but for those of some VMs.
func (q *inquiry) openOutages(batch *pgx.Batch, rows map[trail.Subject]trail.Derived, but []string) {
	batch.Queue(openOutagesQuery, pgx.StrictNamedArgs{"cluster": q.cluster}).
		Query(tables.CollectOf(rows, func(d *trail.Derived) *[]trail.Outage { return &d.Outages }))
	batch.Queue(stalledQuery, pgx.StrictNamedArgs{"cluster": q.cluster, "but": but}).
		Query(tables.CollectColumnsOf(rows, func(d *trail.Derived) *[]trail.Migration { return &d.Migrations }))
}
