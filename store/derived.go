package store

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/evictrail/evictrail/trail"
)

// derivation is one transaction's work on some subjects: their facts as they are, and what is derived of them.
type derivation struct {
	tx         pgx.Tx
	cluster    string
	now        time.Time                      // for which is derived
	thresholds trail.Thresholds               // of loops
	facts      map[trail.Subject][]trail.Fact // of the subjects that are held
}

const clusterQuery = `
SELECT alive_at, thresholds
FROM evictrail.clusters
WHERE cluster = @cluster`

// newDerivation begins work on a cluster as it stands at a time, or when it was last seen if that is later.
func newDerivation(ctx context.Context, tx pgx.Tx, cluster string, now time.Time) (*derivation, error) {
	d := &derivation{tx: tx, cluster: cluster, now: now, thresholds: trail.DefaultThresholds(), facts: map[trail.Subject][]trail.Fact{}}
	var alive time.Time
	var thresholds *trail.Thresholds
	err := tx.QueryRow(ctx, clusterQuery, pgx.StrictNamedArgs{"cluster": cluster}).Scan(&alive, &thresholds)
	if err != nil && !errors.Is(err, pgx.ErrNoRows) {
		return nil, explain("read how far the cluster was seen", err)
	}
	if alive.After(d.now) {
		d.now = alive.UTC()
	}
	if thresholds != nil {
		d.thresholds = *thresholds
	}
	return d, nil
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

// derive derives again what new facts concern: their own subjects, and what a fact about a node, about the rules in force or
// a request may put in another light.
func (d *derivation) derive(ctx context.Context, added []trail.Fact) error {
	if len(added) == 0 {
		return nil
	}
	subjects := map[trail.Subject]bool{}
	for _, f := range added {
		subjects[f.Subject] = true
	}
	for _, find := range []func(context.Context, []trail.Fact) ([]trail.Subject, error){d.concerned, d.concernedByRequests, d.concernedByRules} {
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
	return d.replace(ctx, sortedSubjects(subjects), false)
}

// replace derives subjects and writes their rows where they changed: VMs and what stands for itself, then the VMs whose
// waiting that explains, then the nodes that their rows touch. Where everything is derived anew, nodes are whose rows did
// not change, too.
func (d *derivation) replace(ctx context.Context, subjects []trail.Subject, anew bool) error {
	var first []trail.Subject
	around := map[trail.Subject]bool{}
	for _, s := range subjects {
		if s.Kind == trail.SubjectNode || s.Kind == trail.SubjectCluster {
			around[s] = true
		} else {
			first = append(first, s)
		}
	}
	touched, err := d.replaceVMs(ctx, first, anew)
	if err != nil {
		return err
	}
	waiting, err := d.waiting(ctx, touched.slots, first)
	if err != nil {
		return err
	}
	if err := d.hold(ctx, waiting); err != nil {
		return err
	}
	more, err := d.replaceVMs(ctx, waiting, false)
	if err != nil {
		return err
	}
	for _, s := range slices.Concat(touched.subjects(), more.subjects()) {
		around[s] = true
	}
	return d.replaceAround(ctx, sortedSubjects(around))
}

// replaceVMs derives VMs and what stands for itself. The requests about the pods of a VM are told with the VM: rows that
// those pods had while nobody knew their VM go.
func (d *derivation) replaceVMs(ctx context.Context, subjects []trail.Subject, anew bool) (touched, error) {
	if len(subjects) == 0 {
		return touched{}, nil
	}
	env, pods, err := d.env(ctx, subjects)
	if err != nil {
		return touched{}, err
	}
	derived := make([]trail.Derived, len(subjects))
	for i, s := range subjects {
		derived[i] = trail.Derive(s, d.facts[s], env, d.now)
	}
	if err := d.explainQueue(ctx, subjects, derived, env); err != nil {
		return touched{}, err
	}
	w := d.tables()
	for i, s := range subjects {
		w.add(s, derived[i])
	}
	changed, err := w.write(ctx, d.tx, append(names(subjects), names(pods)...))
	if anew {
		for _, d := range derived {
			changed.all(d)
		}
	}
	return changed, err
}

// replaceAround derives nodes, and the cluster as a whole, of the rows of the VMs that touch them.
func (d *derivation) replaceAround(ctx context.Context, subjects []trail.Subject) error {
	if len(subjects) == 0 {
		return nil
	}
	if err := d.hold(ctx, subjects); err != nil {
		return err
	}
	env, err := d.envAround(ctx, subjects)
	if err != nil {
		return err
	}
	w := d.tables()
	for _, s := range subjects {
		w.add(s, trail.Derive(s, d.facts[s], env, d.now))
	}
	_, err = w.write(ctx, d.tx, names(subjects))
	return err
}

// owned is what leads every derived row.
type owned struct {
	Cluster string `json:"cluster"`
	Subject string `json:"subject"`
}

// table is a table of derived rows.
type table struct {
	name, key string
	node      string // column of the node that is derived again when a row changes; empty: none is
	matters   string // what of a row matters to the node
}

var derivedTables = []table{
	{"eviction_requests", "request_id", "node", "to_jsonb(t) - 'repeats' || jsonb_build_object('last_repeat_at', date_trunc('minute', last_repeat_at))"},
	{"evacuations", "evacuation_id", "node", "to_jsonb(t)"},
	{"migrations", "migration_uid", "source_node", "to_jsonb(t) - ARRAY['phase', 'pending_at', 'scheduled_at', 'preparing_target_at', 'target_ready_at', 'target_node', 'mode', 'policy']"},
	{"placements", "placement_id", "node", "to_jsonb(t)"},
	{"cooldown_decisions", "decision_id", "node", "to_jsonb(t)"},
	{"loops", "loop_id", "", ""},
	{"drains", "drain_id", "", ""},
	{"drain_blockers", "vmi_uid", "", ""},
	{"gaps", "gap_id", "", ""},
	{"timeline", "event_id", "", ""},
}

// tables gathers the derived rows of some subjects.
type tables struct {
	cluster string
	now     time.Time
	rows    map[string][]any // by table
	next    []*time.Time     // of each subject added, when time alone changes its rows
	of      []string         // the subjects added
}

func (d *derivation) tables() *tables {
	return &tables{cluster: d.cluster, now: d.now, rows: map[string][]any{}}
}

func (t *tables) add(s trail.Subject, d trail.Derived) {
	o := owned{t.cluster, clean(s.String())}
	put(t, "eviction_requests", d.Requests, func(r trail.EvictionRequest) any { return requestRow{o, r} })
	put(t, "evacuations", d.Evacuations, func(r trail.Evacuation) any { return evacuationRow{o, r} })
	put(t, "migrations", d.Migrations, func(r trail.Migration) any { return migrationRow{o, r} })
	put(t, "placements", d.Placements, func(r trail.Placement) any { return placementRow{o, r} })
	put(t, "cooldown_decisions", d.Decisions, func(r trail.Decision) any { return decisionRow{o, r} })
	put(t, "loops", d.Loops, func(r trail.Loop) any { return loopRow{o, r} })
	put(t, "drains", d.Drains, func(r trail.Drain) any { return drainRow{o, r} })
	put(t, "drain_blockers", d.Blockers, func(r trail.DrainBlocker) any { return blockerRow{o, r} })
	put(t, "gaps", d.Gaps, func(r trail.Gap) any { return gapRow{o, r} })
	put(t, "timeline", d.Timeline, func(r trail.Line) any { return timelineRow{o, r} })
	t.of = append(t.of, o.Subject)
	if d.NextAt.IsZero() {
		t.next = append(t.next, nil)
	} else {
		t.next = append(t.next, &d.NextAt)
	}
}

func put[R any](t *tables, name string, rows []R, with func(R) any) {
	for _, r := range rows {
		t.rows[name] = append(t.rows[name], with(r))
	}
}

const noteNextQuery = `
UPDATE evictrail.subjects AS s
SET next_at = n.next_at
FROM unnest(@subjects::text[], @next::timestamptz[]) AS n(subject, next_at)
WHERE s.cluster = @cluster
  AND s.subject = n.subject
  AND s.next_at IS DISTINCT FROM n.next_at`

// write replaces the rows of the subjects in each table, and says what the changes touch. Rows that stay as they are are
// not touched.
func (t *tables) write(ctx context.Context, tx pgx.Tx, subjects []string) (touched, error) {
	changed := touched{nodes: map[string]bool{}}
	for _, of := range derivedTables {
		if err := t.replace(ctx, tx, of, subjects, &changed); err != nil {
			return changed, explain("replace "+of.name, err)
		}
	}
	_, err := tx.Exec(ctx, noteNextQuery, pgx.StrictNamedArgs{"cluster": t.cluster, "subjects": t.of, "next": t.next})
	return changed, explain("note when to derive again", err)
}

// The rows come as a JSON array whose keys are the columns. Table, key and node are names of ours. A loop that is derived
// no more stays: it was told.
const (
	deleteChangedQuery = `
DELETE FROM evictrail.%[1]s AS t
WHERE t.cluster = @cluster
  AND t.subject = ANY(@subjects)
  AND NOT EXISTS (
    SELECT FROM jsonb_populate_recordset(NULL::evictrail.%[1]s, @rows::jsonb) AS n
    WHERE n.subject = t.subject AND n.%[2]s = t.%[2]s AND n IS NOT DISTINCT FROM t
  )
RETURNING %[3]s`
	insertMissingQuery = `
INSERT INTO evictrail.%[1]s AS t
SELECT *
FROM jsonb_populate_recordset(NULL::evictrail.%[1]s, @rows::jsonb)
ON CONFLICT DO NOTHING
RETURNING %[3]s`
	deleteToldQuery = `
DELETE FROM evictrail.%[1]s AS t
USING jsonb_populate_recordset(NULL::evictrail.%[1]s, @rows::jsonb) AS n
WHERE t.cluster = @cluster
  AND t.subject = ANY(@subjects)
  AND n.subject = t.subject AND n.%[2]s = t.%[2]s AND n IS DISTINCT FROM t
RETURNING %[3]s`
	refuteQuery = `
UPDATE evictrail.loops AS t
SET closed_at = greatest(coalesce(closed_at, @now), opened_at), closed_by = 'refuted'
WHERE t.cluster = @cluster
  AND t.subject = ANY(@subjects)
  AND NOT EXISTS (
    SELECT FROM jsonb_populate_recordset(NULL::evictrail.loops, @rows::jsonb) AS n
    WHERE n.subject = t.subject AND n.loop_id = t.loop_id
  )
  AND closed_by IS DISTINCT FROM 'refuted'`
)

func (t *tables) replace(ctx context.Context, tx pgx.Tx, of table, subjects []string, changed *touched) error {
	rows := t.rows[of.name]
	if rows == nil {
		rows = []any{}
	}
	text, err := jsonText(rows)
	if err != nil {
		return err
	}
	args := pgx.StrictNamedArgs{"cluster": t.cluster, "subjects": subjects, "rows": text}
	remove := deleteChangedQuery
	if of.name == "loops" {
		_, err := tx.Exec(ctx, refuteQuery, pgx.StrictNamedArgs{"cluster": t.cluster, "subjects": subjects, "rows": text, "now": t.now})
		if err != nil {
			return err
		}
		remove = deleteToldQuery
	}
	diff := newDiff(of)
	gone, err := tx.Query(ctx, fmt.Sprintf(remove, of.name, of.key, diff.columns()), args)
	if err != nil {
		return err
	}
	if err := diff.collect(gone); err != nil {
		return err
	}
	if len(rows) > 0 {
		come, err := tx.Query(ctx, fmt.Sprintf(insertMissingQuery, of.name, of.key, diff.columns()), pgx.StrictNamedArgs{"rows": text})
		if err != nil {
			return err
		}
		if err := diff.collect(come); err != nil {
			return err
		}
	}
	diff.touches(changed)
	return nil
}
