package tables

import (
	"fmt"
	"reflect"
	"strings"
	"time"

	"github.com/evictrail/evictrail/trail"
	"github.com/evictrail/evictrail/trail/fold"
)

// Owned is what leads every derived row: whose it is.
type Owned struct {
	Cluster   string    `json:"cluster"`
	Subject   string    `json:"subject"`
	OpenUntil openUntil `json:"open_until"`
}

// withRow returns the columns that lead a row of the subject.
func (o Owned) withRow(r trail.Row) Owned {
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

// Table is a table of derived rows.
//
// Put takes @rows, a JSON array of what Row returns. Delete takes @cluster, and @subjects with @keys beside them.
type Table struct {
	Name    string
	Key     string                       // the column by which rows of one subject differ
	Begun   string                       // the column of when what a row is about began, of which there is an index
	Place   string                       // the node on which that was, as SQL of a row t
	Columns []string                     // that are written; the database fills changed_at, whose default is now()
	Put     string                       // SQL that inserts or updates rows
	Delete  string                       // SQL that deletes rows by subject and key
	Row     func(o Owned, value any) any // what is written of a value, which is a pointer to a row of package trail (fold.Line in the timeline)
}

// Derived are the derived tables, in the order in which they are written.
var Derived = []Table{
	newDerivedTable("eviction_requests", "request_id", "requested_at", "t.node", func(o Owned, r *trail.EvictionRequest) any { return requestRow{o.withRow(*r), *r} }),
	newDerivedTable("evacuations", "evacuation_id", "marked_at", "t.node", func(o Owned, r *trail.Evacuation) any { return evacuationRow{o.withRow(*r), *r} }),
	newDerivedTable("migrations", "migration_uid", "created_at", "t.source_node", func(o Owned, r *trail.Migration) any { return migrationRow{o.withRow(*r), *r} }),
	newDerivedTable("placements", "placement_id", "from_at", "t.node", func(o Owned, r *trail.Placement) any { return placementRow{o.withRow(*r), *r} }),
	newDerivedTable("cooldown_decisions", "decision_id", "decided_at", "t.node", func(o Owned, r *trail.Decision) any { return decisionRow{o.withRow(*r), *r} }),
	newDerivedTable("loops", "loop_id", "opened_at", "t.node", func(o Owned, r *trail.Loop) any { return loopRow{o.withRow(*r), *r} }),
	newDerivedTable("drains", "drain_id", "started_at", "t.node", func(o Owned, r *trail.Drain) any { return drainRow{o.withRow(*r), *r} }),
	newDerivedTable("drain_blockers", "vmi_uid", "waiting_since", "t.node", func(o Owned, r *trail.DrainBlocker) any { return blockerRow{o.withRow(*r), *r} }),
	newDerivedTable("consequences", "consequence_id", "at", "t.node", func(o Owned, r *trail.Consequence) any { return consequenceRow{o.withRow(*r), *r} }),
	newDerivedTable("outages", "outage_id", "began_at", "t.node", func(o Owned, r *trail.Outage) any { return outageRow{o.withRow(*r), *r} }),
	newDerivedTable("gaps", "gap_id", "opened_at", "NULL", func(o Owned, r *trail.Gap) any { return gapRow{o.withRow(*r), *r} }),
	newDerivedTable("timeline", "event_id", "at", "t.node", func(o Owned, r *fold.Line) any { return timelineRow{o.withRow(r.Line), r.Line, r.Tie} }),
}

// newDerivedTable makes the SQL of a table: its columns are the keys of the JSON of its rows.
func newDerivedTable[R trail.Row](name, key, begun, place string, row func(Owned, *R) any) Table {
	columns := jsonKeys(reflect.TypeOf(row(Owned{}, new(R))))
	excluded := make([]string, len(columns))
	for i, c := range columns {
		excluded[i] = "excluded." + c
	}
	return Table{
		Name: name, Key: key, Begun: begun, Place: place, Columns: columns,
		Put: fmt.Sprintf(`
INSERT INTO evictrail.%[1]s AS t (%[2]s)
SELECT %[2]s
FROM jsonb_populate_recordset(NULL::evictrail.%[1]s, @rows::jsonb)
ON CONFLICT (cluster, subject, %[3]s) DO UPDATE
SET (%[2]s, changed_at) = (%[4]s, excluded.changed_at)`, name, strings.Join(columns, ", "), key, strings.Join(excluded, ", ")),
		Delete: fmt.Sprintf(`
DELETE FROM evictrail.%[1]s AS t
USING unnest(@subjects::text[], @keys::text[]) AS d(subject, key)
WHERE t.cluster = @cluster
  AND t.subject = d.subject
  AND t.%[2]s = d.key::%[3]s`, name, key, keyType(key)),
		Row: func(o Owned, value any) any { return row(o, value.(*R)) },
	}
}

// keyType is the type of a key column: IDs of facts are UUIDs, those of Kubernetes objects are text.
func keyType(key string) string {
	if strings.HasSuffix(key, "_uid") {
		return "text"
	}
	return "uuid"
}

// jsonKeys returns the keys that a struct, with those that it embeds, has in JSON.
func jsonKeys(t reflect.Type) []string {
	var out []string
	for _, f := range reflect.VisibleFields(t) {
		if key, _, _ := strings.Cut(f.Tag.Get("json"), ","); key != "" && key != "-" {
			out = append(out, key)
		}
	}
	return out
}

// The rows of the derived tables, as JSON.
type (
	// consequenceRow is one row of evictrail.consequences.
	consequenceRow struct {
		Owned
		trail.Consequence
	}
	// decisionRow is one row of evictrail.cooldown_decisions.
	decisionRow struct {
		Owned
		trail.Decision
	}
	// drainRow is one row of evictrail.drains.
	drainRow struct {
		Owned
		trail.Drain
	}
	// blockerRow is one row of evictrail.drain_blockers.
	blockerRow struct {
		Owned
		trail.DrainBlocker
	}
	// evacuationRow is one row of evictrail.evacuations.
	evacuationRow struct {
		Owned
		trail.Evacuation
	}
	// gapRow is one row of evictrail.gaps.
	gapRow struct {
		Owned
		trail.Gap
	}
	// loopRow is one row of evictrail.loops.
	loopRow struct {
		Owned
		trail.Loop
	}
	// migrationRow is one row of evictrail.migrations.
	migrationRow struct {
		Owned
		trail.Migration
	}
	// outageRow is one row of evictrail.outages.
	outageRow struct {
		Owned
		trail.Outage
	}
	// placementRow is one row of evictrail.placements.
	placementRow struct {
		Owned
		trail.Placement
	}
	// requestRow is one row of evictrail.eviction_requests.
	requestRow struct {
		Owned
		trail.EvictionRequest
	}
	// timelineRow is one row of evictrail.timeline.
	timelineRow struct {
		Owned
		trail.Line
		Tie int `json:"tie"`
	}
)
