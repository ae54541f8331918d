package store

import (
	"fmt"
	"reflect"
	"strings"
	"time"

	"github.com/evictrail/evictrail/trail"
	"github.com/evictrail/evictrail/trail/fold"
)

// owned is what leads every derived row.
type owned struct {
	Cluster   string    `json:"cluster"`
	Subject   string    `json:"subject"`
	OpenUntil openUntil `json:"open_until"`
}

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

// derivedTable is a table of derived rows.
type derivedTable struct {
	name    string
	key     string   // the column by which rows of one subject differ
	begun   string   // the column of when what a row is about began, of which there is an index
	place   string   // the node on which that was, as SQL of a row t
	columns []string // that are written; the database fills changed_at
	put     string   // SQL that inserts or updates rows
	delete  string   // SQL that deletes rows by subject and key
	row     func(o owned, value any) any
}

// derivedTables are the derived tables, in the order in which they are written.
var derivedTables = []derivedTable{
	newDerivedTable("eviction_requests", "request_id", "requested_at", "t.node", func(o owned, r *trail.EvictionRequest) any { return requestRow{o.with(*r), *r} }),
	newDerivedTable("evacuations", "evacuation_id", "marked_at", "t.node", func(o owned, r *trail.Evacuation) any { return evacuationRow{o.with(*r), *r} }),
	newDerivedTable("migrations", "migration_uid", "created_at", "t.source_node", func(o owned, r *trail.Migration) any { return migrationRow{o.with(*r), *r} }),
	newDerivedTable("placements", "placement_id", "from_at", "t.node", func(o owned, r *trail.Placement) any { return placementRow{o.with(*r), *r} }),
	newDerivedTable("cooldown_decisions", "decision_id", "decided_at", "t.node", func(o owned, r *trail.Decision) any { return decisionRow{o.with(*r), *r} }),
	newDerivedTable("loops", "loop_id", "opened_at", "t.node", func(o owned, r *trail.Loop) any { return loopRow{o.with(*r), *r} }),
	newDerivedTable("drains", "drain_id", "started_at", "t.node", func(o owned, r *trail.Drain) any { return drainRow{o.with(*r), *r} }),
	newDerivedTable("drain_blockers", "vmi_uid", "waiting_since", "t.node", func(o owned, r *trail.DrainBlocker) any { return blockerRow{o.with(*r), *r} }),
	newDerivedTable("consequences", "consequence_id", "at", "t.node", func(o owned, r *trail.Consequence) any { return consequenceRow{o.with(*r), *r} }),
	newDerivedTable("outages", "outage_id", "began_at", "t.node", func(o owned, r *trail.Outage) any { return outageRow{o.with(*r), *r} }),
	newDerivedTable("gaps", "gap_id", "opened_at", "NULL", func(o owned, r *trail.Gap) any { return gapRow{o.with(*r), *r} }),
	newDerivedTable("timeline", "event_id", "at", "t.node", func(o owned, r *fold.Line) any { return timelineRow{o.with(r.Line), r.Line, r.Tie} }),
}

// newDerivedTable makes the SQL of a table: its columns are the keys of the JSON of its rows.
func newDerivedTable[R trail.Row](name, key, begun, place string, row func(owned, *R) any) derivedTable {
	columns := jsonKeys(reflect.TypeOf(row(owned{}, new(R))))
	excluded := make([]string, len(columns))
	for i, c := range columns {
		excluded[i] = "excluded." + c
	}
	return derivedTable{
		name: name, key: key, begun: begun, place: place, columns: columns,
		put: fmt.Sprintf(`
INSERT INTO evictrail.%[1]s AS t (%[2]s)
SELECT %[2]s
FROM jsonb_populate_recordset(NULL::evictrail.%[1]s, @rows::jsonb)
ON CONFLICT (cluster, subject, %[3]s) DO UPDATE
SET (%[2]s, changed_at) = (%[4]s, now())`, name, strings.Join(columns, ", "), key, strings.Join(excluded, ", ")),
		delete: fmt.Sprintf(`
DELETE FROM evictrail.%[1]s AS t
USING unnest(@subjects::text[], @keys::text[]) AS d(subject, key)
WHERE t.cluster = @cluster
  AND t.subject = d.subject
  AND t.%[2]s = d.key::%[3]s`, name, key, keyType(key)),
		row: func(o owned, value any) any { return row(o, value.(*R)) },
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
