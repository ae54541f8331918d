package store

import (
	"cmp"
	"context"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/evictrail/evictrail/trail"
)

// touched is what a change of the rows of VMs means beyond them: the nodes that they name and, where evacuations are
// concerned, the cluster as a whole, each since when; and the slots of migrations that were taken or freed.
type touched struct {
	around since
	slots  []slotTimes
}

// since says from when on things changed around subjects; the zero time: ever since.
type since map[trail.Subject]time.Time

func (s since) add(of trail.Subject, at time.Time) {
	if was, known := s[of]; !known || at.Before(was) {
		s[of] = at
	}
}

// ever gives that for subjects of which it is not known.
func ever(subjects []trail.Subject) since { return sameSince(subjects, time.Time{}) }

func (s since) join(more since) {
	for of, at := range more {
		s.add(of, at)
	}
}

// of gives that for some of the subjects.
func (s since) of(subjects []trail.Subject) since {
	out := make(since, len(subjects))
	for _, of := range subjects {
		out[of] = s[of]
	}
	return out
}

// sameSince gives a time for all subjects.
func sameSince(subjects []trail.Subject, at time.Time) since {
	out := make(since, len(subjects))
	for _, of := range subjects {
		out[of] = at
	}
	return out
}

func (s since) subjects() []trail.Subject {
	subjects := make(map[trail.Subject]bool, len(s))
	for of := range s {
		subjects[of] = true
	}
	return sortedSubjects(subjects)
}

// slotTimes are when a migration took its slot and when it gave it back.
type slotTimes struct{ from, to *time.Time }

// all takes in everything that the rows of a VM name, whether they changed or not.
func (t *touched) all(d trail.Derived) {
	for of := range d.Around() {
		t.around.add(of, time.Time{})
	}
}

// diff is how the rows of a table changed: those that went and those that came, of which equal ones are no change to
// others.
type diff struct {
	of   table
	rows map[string][]changedRow // by key: at most one that went and one that came
}

// changedRow is a row that went or came, as far as it matters to others.
type changedRow struct {
	Key     string     `db:"key"`
	Subject string     `db:"subject"`
	Node    *string    `db:"node"`
	Matters *int64     `db:"matters"` // a digest of what matters to the node
	Begun   time.Time  `db:"begun"`
	Over    *time.Time `db:"over"`    // its end, where that matters by itself; else nil
	OverBy  *string    `db:"over_by"` // what else belongs to the end
	From    *time.Time `db:"slot_from"`
	To      *time.Time `db:"slot_to"`
	Ended   *string    `db:"ended"`  // how what the row is about ended
	Judged  bool       `db:"judged"` // what came of that is told for good
	Other   *string    `db:"other"`  // another node that it matters to
	Gone    bool       `db:"gone"`   // it went; else it came
}

func newDiff(of table) *diff { return &diff{of: of, rows: map[string][]changedRow{}} }

// returning gives what a change of the table is to return.
func (of table) returning() string {
	node, matters, slot, ended, another := "NULL::text", "NULL::bigint", "NULL::timestamptz AS slot_from, NULL::timestamptz AS slot_to", "NULL::text", "NULL::text"
	over := "NULL::timestamptz AS over, NULL::text AS over_by"
	if of.node != "" {
		immaterial := append(strings.Fields(of.immaterial), "open_until") // which follows from others
		columns := slices.DeleteFunc(jsonKeys(reflect.TypeOf(of.row)), func(c string) bool { return slices.Contains(immaterial, c) })
		node, matters = of.node, "hash_record_extended(ROW(t."+strings.Join(columns, ", t.")+"), 0)"
	}
	if of.name == "migrations" {
		slot = "t.scheduling_at AS slot_from, t.finished_at AS slot_to"
		another = "CASE WHEN t.need = 'not_needed' OR t.benefit = 'harmed' THEN t.target_node END" // which it may have overloaded
	}
	if of.name == "placements" { // which may have begun long ago, and just end
		over = "t.to_at AS over, (t.left_by, t.ended_by)::text AS over_by"
	}
	if of.ended != "" {
		ended = of.ended
	}
	return fmt.Sprintf("t.%s::text AS key, t.subject, %s AS node, %s AS matters, t.%s AS begun, %s, %s, %s AS ended, %s AS judged, %s AS other",
		of.key, node, matters, of.begun, over, slot, ended, cmp.Or(of.judged, "false"), another)
}

// changed collects the rows that a statement took away, and those that it wrote.
func (d *diff) changed(rows pgx.Rows) error {
	all, err := pgx.CollectRows(rows, pgx.RowToStructByName[changedRow])
	for _, r := range all {
		d.rows[r.Key] = append(d.rows[r.Key], r)
	}
	return err
}

// touches adds what the changes touch.
func (d *diff) touches(t *touched) {
	if d.of.node == "" {
		return
	}
	for _, rows := range d.rows {
		since, changed := changedSince(rows)
		if !changed {
			continue
		}
		if d.of.name == "evacuations" {
			t.around.add(trail.ClusterSubject, since)
		}
		for _, r := range rows {
			for _, node := range []*string{r.Node, r.Other} {
				if known(node) != "" {
					t.around.add(trail.Subject{Kind: trail.SubjectNode, Name: *node}, since)
				}
			}
		}
		same := len(rows) == 2 && sameTime(rows[0].From, rows[1].From) && sameTime(rows[0].To, rows[1].To) && known(rows[0].Node) == known(rows[1].Node)
		if !same {
			for _, r := range rows {
				if r.From != nil {
					t.slots = append(t.slots, slotTimes{r.From, r.To})
				}
			}
		}
	}
}

// changedSince tells whether the rows of one key mean a change to others, and since when: since what they are about began or, where only its end
// changed, since that.
func changedSince(rows []changedRow) (since time.Time, changed bool) {
	since = rows[0].Begun
	if len(rows) == 1 {
		return since, true
	}
	was, is := rows[0], rows[1]
	switch {
	case *was.Matters != *is.Matters:
		return earliest(was.Begun, is.Begun), true
	case sameTime(was.Over, is.Over) && known(was.OverBy) == known(is.OverBy):
		return since, false
	case was.Over == nil:
		return *is.Over, true
	case is.Over == nil:
		return *was.Over, true
	}
	return earliest(*was.Over, *is.Over), true
}

func earliest(times ...time.Time) time.Time { return slices.MinFunc(times, time.Time.Compare) }

func sameTime(a, b *time.Time) bool {
	return a == nil && b == nil || a != nil && b != nil && a.Equal(*b)
}

const waitingQuery = `
SELECT DISTINCT subject
FROM evictrail.migrations
WHERE cluster = @cluster
  AND wait_reason IS NOT NULL
  AND (created_at <= @to OR @to::timestamptz IS NULL)
  AND (scheduling_at IS NULL OR scheduling_at >= @from)
  AND NOT subject = ANY(@but)
ORDER BY subject`

// waiting finds the VMs, but for some that were derived since then, with migrations that waited while slots were taken or freed, since the first was.
func (d *derivation) waiting(ctx context.Context, slots []slotTimes, but []trail.Subject) (since, error) {
	var from, to *time.Time
	open := false
	for _, s := range slots {
		if s.from != nil && (from == nil || s.from.Before(*from)) {
			from = s.from
		}
		open = open || s.to == nil
		if s.to != nil && (to == nil || s.to.After(*to)) {
			to = s.to
		}
	}
	if from == nil {
		return nil, nil
	}
	if open {
		to = nil
	}
	but = slices.DeleteFunc(slices.Clone(but), func(s trail.Subject) bool { return !d.holds(s, *from) })
	rows, err := d.tx.Query(ctx, waitingQuery, pgx.StrictNamedArgs{"cluster": d.cluster, "from": from, "to": to, "but": names(but)})
	if err != nil {
		return nil, explain("find migrations that wait", err)
	}
	vms, err := collectVMs(rows)
	return sameSince(vms, *from), err
}

// A slot is looked for among those that were taken within a time or up to an hour before, and among those that were held for longer
// than that, which are few.
const slotsQuery = `
SELECT DISTINCT m.migration_uid, m.source_node, m.scheduling_at, m.finished_at
FROM unnest(@from::timestamptz[], @to::timestamptz[]) AS w(since, until)
CROSS JOIN LATERAL (
  SELECT subject, migration_uid, coalesce(source_node, '') AS source_node, scheduling_at, finished_at
  FROM evictrail.migrations
  WHERE cluster = @cluster
    AND scheduling_at BETWEEN w.since - interval '1 hour' AND w.until
    AND open_until >= w.since
  UNION ALL
  SELECT subject, migration_uid, coalesce(source_node, ''), scheduling_at, finished_at
  FROM evictrail.migrations
  WHERE cluster = @cluster
    AND scheduling_at < w.since - interval '1 hour'
    AND (finished_at IS NULL OR finished_at - scheduling_at > interval '1 hour')
    AND open_until >= w.since
) AS m
WHERE NOT m.subject = ANY(@but)`

// explainQueue says of the migrations that waited for nothing of their own who held the slots meanwhile: those that are
// derived with them, and the others, also older ones of VMs that are derived in part.
func (d *derivation) explainQueue(ctx context.Context, subjects []trail.Subject, derived []trail.Derived, env *trail.Env) error {
	var from, to []time.Time
	var slots []trail.Slot
	own := map[string]bool{}
	for _, r := range derived {
		for _, s := range r.Slots() {
			slots, own[s.MigrationUID] = append(slots, s), true
		}
		a, b := r.Queued()
		from, to = append(from, a...), append(to, b...)
	}
	if len(from) == 0 {
		return nil
	}
	whole := slices.DeleteFunc(slices.Clone(subjects), func(s trail.Subject) bool { return !d.from[s].IsZero() })
	others, err := slotsWithin(ctx, d.tx, d.cluster, from, to, whole)
	if err != nil {
		return explain("read who held the slots", err)
	}
	slots = append(slots, slices.DeleteFunc(others, func(s trail.Slot) bool { return own[s.MigrationUID] })...)
	for i := range derived {
		derived[i].ExplainQueue(slots, env)
	}
	return nil
}

// slotsWithin gives who held the slots of migrations at some moment of some times, but for some VMs.
func slotsWithin(ctx context.Context, tx pgx.Tx, cluster string, from, to []time.Time, but []trail.Subject) ([]trail.Slot, error) {
	rows, err := tx.Query(ctx, slotsQuery, pgx.StrictNamedArgs{"cluster": cluster, "from": from, "to": to, "but": names(but)})
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, func(row pgx.CollectableRow) (trail.Slot, error) {
		var s trail.Slot
		var end *time.Time
		err := row.Scan(&s.MigrationUID, &s.Node, &s.From, &end)
		if end != nil {
			s.To = *end
		}
		return s, err
	})
}

// The rows of VMs that touch nodes, as columns or, where these hold JSON, as JSON with the columns of the table as keys: those that were open at a time,
// and a little before where what comes then may look back.
var (
	nodesSince = `
FROM unnest(@nodes::text[], @since::timestamptz[], @before::timestamptz[]) AS n(name, since, before)`
	placementsOfNodesQuery = `
SELECT t.node, ` + columnsOf[trail.Placement]() + nodesSince + `
JOIN evictrail.placements AS t ON t.cluster = @cluster AND t.node = n.name
WHERE t.open_until >= n.before`
	evacuationsOfNodesQuery = `
SELECT t.node, row_to_json(t)` + nodesSince + `
JOIN evictrail.evacuations AS t ON t.cluster = @cluster AND t.node = n.name
WHERE t.open_until >= n.since`
	requestsOfNodesQuery = `
SELECT t.node, ` + columnsOf[trail.EvictionRequest]() + nodesSince + `
JOIN evictrail.eviction_requests AS t ON t.cluster = @cluster AND t.node = n.name
WHERE t.salient
  AND t.requested_at >= n.since`
	migrationsOfNodesQuery = `
SELECT t.source_node, ` + columnsOf[trail.Migration]() + nodesSince + `
JOIN evictrail.migrations AS t ON t.cluster = @cluster AND t.source_node = n.name
WHERE t.open_until >= n.before`
	arrivalsOfNodesQuery = `
SELECT t.target_node, ` + columnsOf[trail.Migration]() + nodesSince + `
JOIN evictrail.migrations AS t ON t.cluster = @cluster AND t.target_node = n.name
WHERE (t.need = 'not_needed' OR t.benefit = 'harmed')
  AND t.outcome = 'succeeded'
  AND t.open_until >= n.before`
	holdsOfNodesQuery = `
SELECT t.node, row_to_json(t)` + nodesSince + `
JOIN evictrail.cooldown_decisions AS t ON t.cluster = @cluster AND t.node = n.name
WHERE t.verdict = 'holds'
  AND t.open_until >= n.before`
	stuckQuery = `
SELECT '', row_to_json(t)
FROM evictrail.evacuations AS t
WHERE cluster = @cluster
  AND (ended_at IS NULL OR ended_at - marked_at > interval '5 minutes')
  AND open_until >= @since`
)

// collectColumnsAround reads rows that touch nodes, by column, into what is known of each node.
func collectColumnsAround[R any](around map[string]*trail.Rows, into func(*trail.Rows) *[]*R) func(pgx.Rows) error {
	return func(answer pgx.Rows) error {
		r := newRowReader[R]()
		_, err := pgx.ForEachRow(answer, r.into, func() error {
			row, list := r.row, into(around[r.subject])
			*list = append(*list, &row)
			return nil
		})
		return err
	}
}

// collectAround reads rows that touch nodes into what is known of each node.
func collectAround[R any](around map[string]*trail.Rows, into func(*trail.Rows) *[]*R) func(pgx.Rows) error {
	return each(func(row pgx.CollectableRow) error {
		var node string
		var r R
		err := row.Scan(&node, &r)
		list := into(around[node])
		*list = append(*list, &r)
		return err
	})
}
