package store

import (
	"context"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/evictrail/evictrail/trail"
)

// owned is what leads every derived row.
type owned struct {
	Cluster   string    `json:"cluster"`
	Subject   string    `json:"subject"`
	OpenUntil openUntil `json:"open_until"`
}

func (o owned) subject() string { return o.Subject }

// with returns the columns that lead a row of the subject.
func (o owned) with(r trail.Row) owned {
	o.OpenUntil = openUntil(r.OpenUntil())
	return o
}

// openUntil is a trail.Row's OpenUntil as Postgres has it: infinity while what the row is about goes on.
type openUntil time.Time

// MarshalText returns the time in RFC 3339, or infinity.
func (t openUntil) MarshalText() ([]byte, error) {
	if at := time.Time(t); !at.IsZero() {
		return at.MarshalText()
	}
	return []byte("infinity"), nil
}

// table is a table of derived rows.
type table struct {
	name, key  string
	row        any    // a row as it is written: the keys of its JSON are the columns but for changed_at, which is the database's
	of         string // the kinds of subjects that have rows in it
	node       string // the node that is derived again when a row t changes, as SQL; empty: none is
	immaterial string // the columns that do not matter to the node
	ended      string // how what a row t is about ended, as SQL; empty: it has no end
	judged     string // whether what came of it is told for good, as SQL; empty: nothing is
	renamed    bool   // what a row is about may be told under another key later
	begun      string // the column of when what a row is about began, of which there is an index
	place      string // the node on which that was, as SQL of a row t
}

var derivedTables = []table{
	{
		name: "eviction_requests", key: "request_id", row: requestRow{}, of: "vmi pod", renamed: true,
		node: "CASE WHEN t.salient THEN t.node END", immaterial: "repeats last_repeat_at policy",
		begun: "requested_at", place: "t.node",
	},
	{
		name: "evacuations", key: "evacuation_id", row: evacuationRow{}, of: "vmi", renamed: true,
		node: "t.node", immaterial: "policy",
		ended: "t.outcome", judged: "t.objective_met IS NOT NULL", begun: "marked_at", place: "t.node",
	},
	{
		name: "migrations", key: "migration_uid", row: migrationRow{}, of: "vmi",
		node: "t.source_node", immaterial: "phase phase_since pending_at scheduled_at preparing_target_at target_ready_at target_node policy need_because benefit_final",
		ended: "t.outcome", judged: "coalesce(t.benefit_final, false)", begun: "created_at", place: "t.source_node",
	},
	{
		name: "placements", key: "placement_id", row: placementRow{}, of: "vmi",
		node: "t.node", immaterial: "to_at left_by ended_by ended_requester ended_requester_class ended_detail terminating_since", ended: "t.ended_by",
		begun: "from_at", place: "t.node",
	},
	{
		name: "cooldown_decisions", key: "decision_id", row: decisionRow{}, of: "vmi node",
		node:  "t.node",
		begun: "decided_at", place: "t.node",
	},
	{
		name: "loops", key: "loop_id", row: loopRow{}, of: "vmi node cluster",
		ended: "t.closed_by", begun: "opened_at", place: "t.node",
	},
	{
		name: "drains", key: "drain_id", row: drainRow{}, of: "node",
		begun: "started_at", place: "t.node",
	},
	{
		name: "drain_blockers", key: "vmi_uid", row: blockerRow{}, of: "node",
		begun: "waiting_since", place: "t.node",
	},
	{
		name: "consequences", key: "consequence_id", row: consequenceRow{}, of: "node",
		begun: "at", place: "t.node",
	},
	{
		name: "outages", key: "outage_id", row: outageRow{}, of: "node",
		begun: "began_at", place: "t.node",
	},
	{
		name: "gaps", key: "gap_id", row: gapRow{}, of: "source",
		begun: "opened_at", place: "NULL",
	},
	{
		name: "timeline", key: "event_id", row: timelineRow{}, of: "vmi pod node cluster source config namespace",
		begun: "at", place: "t.node",
	},
}

// subjects gives those among subjects that may have rows in the table.
func (of table) subjects(all []string) []string {
	var out []string
	for _, s := range all {
		if kind, _, _ := strings.Cut(s, ":"); slices.Contains(strings.Fields(of.of), kind) {
			out = append(out, s)
		}
	}
	return out
}

// tables gathers the derived rows of some subjects.
type tables struct {
	cluster string
	now     time.Time
	settled *time.Time           // what had ended before is settled; nil: nothing is
	since   map[string]time.Time // by subject, where not all that it has is derived: what had ended before stays as it is
	rows    map[string][]any     // by table
	next    []*time.Time         // of each subject added, when time alone changes its rows
	of      []string             // the subjects added
}

func (d *derivation) tables() *tables {
	return &tables{cluster: d.cluster, now: d.now, settled: d.settled, since: map[string]time.Time{}, rows: map[string][]any{}}
}

// addSince adds what is derived of a subject since a time.
func (t *tables) addSince(s trail.Subject, d trail.Derived, from time.Time) {
	if t.add(s, d); from.After(trail.EarliestTime) { // what is older is everything, and not every such time can be sent
		t.since[clean(s.String())] = from
	}
}

func (t *tables) add(s trail.Subject, d trail.Derived) {
	o := owned{Cluster: t.cluster, Subject: clean(s.String())}
	put(t, "eviction_requests", d.Requests, func(r trail.EvictionRequest) any { return requestRow{o.with(r), r} })
	put(t, "evacuations", d.Evacuations, func(r trail.Evacuation) any { return evacuationRow{o.with(r), r} })
	put(t, "migrations", d.Migrations, func(r trail.Migration) any { return migrationRow{o.with(r), r} })
	put(t, "placements", d.Placements, func(r trail.Placement) any { return placementRow{o.with(r), r} })
	put(t, "cooldown_decisions", d.Decisions, func(r trail.Decision) any { return decisionRow{o.with(r), r} })
	put(t, "loops", d.Loops, func(r trail.Loop) any { return loopRow{o.with(r), r} })
	put(t, "drains", d.Drains, func(r trail.Drain) any { return drainRow{o.with(r), r} })
	put(t, "drain_blockers", d.Blockers, func(r trail.DrainBlocker) any { return blockerRow{o.with(r), r} })
	put(t, "consequences", d.Consequences, func(r trail.Consequence) any { return consequenceRow{o.with(r), r} })
	put(t, "outages", d.Outages, func(r trail.Outage) any { return outageRow{o.with(r), r} })
	put(t, "gaps", d.Gaps, func(r trail.Gap) any { return gapRow{o.with(r), r} })
	put(t, "timeline", timelineRows(o, d.Timeline), func(r timelineRow) any { return r })
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

// undrained tells whether there was no drain of a node since it is derived: what is left of the last one stays.
func (t *tables) undrained(subject string) bool {
	_, partly := t.since[subject]
	return partly && !slices.ContainsFunc(t.rows["drains"], func(r any) bool { return r.(drainRow).Subject == subject })
}

const noteNextQuery = `
UPDATE evictrail.subjects AS s
SET next_at = n.next_at
FROM unnest(@subjects::text[], @next::timestamptz[]) AS n(subject, next_at)
WHERE s.cluster = @cluster
  AND s.subject = n.subject
  AND s.next_at IS DISTINCT FROM n.next_at`

// sentAtOnce is how much text of rows goes in one round trip, in bytes: it is copied on its way.
const sentAtOnce = 1 << 20

// write replaces the rows of the subjects in each table, in few round trips, says what the changes touch and adds them to
// the news. Rows that stay as they are are not touched.
func (t *tables) write(ctx context.Context, tx pgx.Tx, subjects []string, news *trail.News) (touched, error) {
	changed := touched{around: since{}}
	var diffs []*diff
	batch, size := &pgx.Batch{}, 0
	send := func() error {
		err := explain("replace derived rows", tx.SendBatch(ctx, batch).Close())
		batch, size = &pgx.Batch{}, 0
		return err
	}
	for _, of := range derivedTables {
		its := of.subjects(subjects)
		if of.name == "drain_blockers" {
			its = slices.DeleteFunc(its, t.undrained)
		}
		if len(its) == 0 {
			continue
		}
		text, err := t.text(of)
		if err != nil {
			return changed, fmt.Errorf("replace %s: %w", of.name, err)
		}
		if size += len(text); size > sentAtOnce && batch.Len() > 0 {
			if err := send(); err != nil {
				return changed, err
			}
			size = len(text)
		}
		d := newDiff(of)
		t.replace(batch, d, its, text)
		diffs = append(diffs, d)
	}
	batch.Queue(noteNextQuery, pgx.StrictNamedArgs{"cluster": t.cluster, "subjects": t.of, "next": t.next})
	if err := send(); err != nil {
		return changed, err
	}
	for _, d := range diffs {
		d.touches(&changed)
		t.tell(d, news)
	}
	return changed, nil
}

// What a row n that is derived, and a row t that is stored, are about ended before facts were dropped, or before the time since when the subject is derived
// again: it is settled.
const (
	newSettled = "coalesce(n.open_until < greatest(@settled::timestamptz, (@since::jsonb ->> n.subject)::timestamptz), false)"
	oldSettled = "coalesce(t.open_until < greatest(@settled::timestamptz, (@since::jsonb ->> t.subject)::timestamptz), false)"
)

// The rows come as a JSON array whose keys are the columns. Table, key and columns are names of ours. Rows are compared column
// by column, without changed_at, which a row that comes or changes gets of the database; rows that a program wrote that knows
// no changed_at count as changed. A loop that is derived no more stays: it was shown. What is settled stays as it is, unless it is derived as open since;
// and what is derived as settled counts only where it is stored as open. Nothing comes before all went that goes, as that is counted first: it may have
// the same key.
const (
	replaceQuery = `
WITH n AS MATERIALIZED (
  SELECT *
  FROM jsonb_populate_recordset(NULL::evictrail.%[1]s, @rows::jsonb)
), went AS (%[2]s
  RETURNING %[3]s
), came AS (
  INSERT INTO evictrail.%[1]s AS t (%[4]s)
  SELECT %[4]s
  FROM n
  WHERE (SELECT count(*) FROM went) >= 0
    AND NOT ` + newSettled + `
  ON CONFLICT DO NOTHING
  RETURNING %[3]s
)%[5]s
SELECT true AS gone, *
FROM went
UNION ALL
SELECT false, *
FROM came%[6]s`
	goChangedQuery = `
  DELETE FROM evictrail.%[1]s AS t
  WHERE t.cluster = @cluster
    AND t.subject = ANY(@subjects)
    AND NOT EXISTS (
      SELECT
      FROM n
      WHERE n.subject = t.subject AND n.%[2]s = t.%[2]s AND ((%[3]s) IS NOT DISTINCT FROM (%[4]s) AND t.changed_at IS NOT NULL OR ` + newSettled + `)
    )
    AND (NOT ` + oldSettled + ` OR EXISTS (SELECT FROM n WHERE n.subject = t.subject AND n.%[2]s = t.%[2]s))`
	goToldQuery = `
  DELETE FROM evictrail.%[1]s AS t
  USING n
  WHERE t.cluster = @cluster
    AND t.subject = ANY(@subjects)
    AND n.subject = t.subject AND n.%[2]s = t.%[2]s AND ((%[3]s) IS DISTINCT FROM (%[4]s) OR t.changed_at IS NULL) AND NOT ` + newSettled
	endQuery = `, ended AS (
  UPDATE evictrail.%[1]s AS t
  SET (%[2]s, changed_at) = (%[3]s, now())
  FROM n
  WHERE t.cluster = @cluster
    AND t.subject = ANY(@subjects)
    AND n.subject = t.subject AND n.%[4]s = t.%[4]s AND ` + newSettled + ` AND NOT ` + oldSettled + `
  RETURNING %[5]s
)`
	andEnded = `
UNION ALL
SELECT false, *
FROM ended`
	refuteQuery = `
UPDATE evictrail.loops AS t
SET (closed_at, open_until) = (SELECT at, at FROM greatest(coalesce(t.closed_at, @now), t.opened_at) AS at), closed_by = 'refuted', changed_at = now()
WHERE t.cluster = @cluster
  AND t.subject = ANY(@subjects)
  AND NOT EXISTS (
    SELECT FROM jsonb_populate_recordset(NULL::evictrail.loops, @rows::jsonb) AS n
    WHERE n.subject = t.subject AND n.loop_id = t.loop_id
  )
  AND NOT ` + oldSettled + `
  AND closed_by IS DISTINCT FROM 'refuted'`
)

// replacings has the SQL that replaces rows of each derived table, by its name: where something is settled, and where nothing is.
var replacings = func() map[bool]map[string]string {
	out := map[bool]map[string]string{true: {}, false: {}}
	for _, of := range derivedTables {
		columns, returning := jsonKeys(reflect.TypeOf(of.row)), of.returning()
		all, new, old := strings.Join(columns, ", "), "n."+strings.Join(columns, ", n."), "t."+strings.Join(columns, ", t.")
		went := fmt.Sprintf(goChangedQuery, of.name, of.key, new, old)
		if of.name == "loops" {
			went = fmt.Sprintf(goToldQuery, of.name, of.key, new, old)
		}
		ended := fmt.Sprintf(endQuery, of.name, all, new, of.key, returning)
		out[true][of.name] = fmt.Sprintf(replaceQuery, of.name, went, returning, all, ended, andEnded)
		out[false][of.name] = fmt.Sprintf(replaceQuery, of.name, went, returning, all, "", "")
	}
	return out
}()

// jsonKeys gives the keys that a struct, with those that it embeds, has in JSON.
func jsonKeys(t reflect.Type) []string {
	var out []string
	for _, f := range reflect.VisibleFields(t) {
		if key, _, _ := strings.Cut(f.Tag.Get("json"), ","); key != "" && key != "-" {
			out = append(out, key)
		}
	}
	return out
}

// text gives the rows of a table as a JSON array.
func (t *tables) text(of table) (string, error) {
	rows := t.rows[of.name]
	if rows == nil {
		rows = []any{}
	}
	return jsonText(rows)
}

// replace queues what replaces the rows of subjects in one table.
func (t *tables) replace(batch *pgx.Batch, d *diff, subjects []string, rows string) {
	args := pgx.NamedArgs{"cluster": t.cluster, "subjects": subjects, "rows": rows, "now": t.now, "settled": t.settled, "since": t.since}
	if d.of.name == "loops" {
		batch.Queue(refuteQuery, args)
	}
	batch.Queue(replacings[t.settled != nil][d.of.name], args).Query(d.changed)
}
