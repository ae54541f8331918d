package read

import (
	"context"
	"encoding/json"
	"slices"
	"strings"
	"sync/atomic"

	"github.com/jackc/pgx/v5"

	"github.com/evictrail/evictrail/store/pg"
	"github.com/evictrail/evictrail/trail"
)

// Reader answers questions as far as one caller may know the answer: of rows about VMs it reads those of the namespaces that its Scope
// sees, of what VMs share it shows numbers and no names. docs/access.md says what that means for each view. It is safe for concurrent use.
type Reader struct {
	db    *pg.DB
	scope trail.Scope
	own   *ownSigns
	// standby is how the standby was that is to answer, when the answer began; nil: the primary alone answers.
	standby *trail.StandbySigns
}

// Overlay returns the signs of clusters with those of the recorder of this process as it knows them now. Named is the only cluster that was
// asked for; empty: all were.
type Overlay func(signs []trail.ClusterSigns, named string) []trail.ClusterSigns

// ownSigns holds what the recorder of this process knows of itself; empty where this process records nothing.
type ownSigns struct {
	overlay atomic.Pointer[Overlay]
}

// Whole is the Reader to which nothing is hidden, with what is answered as a whole, no matter who asks, such as the State of a cluster: for the program itself. What answers callers
// has a Reader of it (SeenBy).
type Whole struct{ *Reader }

// New returns what reads all of a database.
func New(db *pg.DB) Whole {
	return Whole{&Reader{db: db, scope: trail.Everything(), own: &ownSigns{}}}
}

// SeenBy returns the Reader of the same database for a caller.
func (s Whole) SeenBy(scope trail.Scope) *Reader { return &Reader{s.db, scope, s.own, s.standby} }

// OverlaySigns has readers replace what the recorder of this process reported last by what it knows now, which is newer and does not depend
// on a database that takes writes.
func (s *Reader) OverlaySigns(overlay Overlay) { s.own.overlay.Store(&overlay) }

// addScopeArgs adds to the arguments of a question what its reader sees.
func (s *Reader) addScopeArgs(args pgx.StrictNamedArgs) pgx.StrictNamedArgs {
	args["everyone"], args["seen"] = !s.scope.Limited(), s.scope.Namespaces()
	return args
}

// Of rows that have no namespace, or more than one, these are seen: loops that are about a VM that is, or name one; drains and outages of a node
// that had one during it; nodes that ever had one.
const (
	loopSeen  = `(namespace = ANY(@seen) OR EXISTS (SELECT FROM jsonb_path_query(evidence, '$[*].vmi') AS x WHERE split_part(x #>> '{}', '/', 1) = ANY(@seen)))`
	drainSeen = `EXISTS (
    SELECT 1 FROM evictrail.placements AS p
    WHERE p.cluster = drains.cluster
      AND p.node = drains.node
      AND p.namespace = ANY(@seen)
      AND p.from_at <= coalesce(drains.ended_at, 'infinity')
      AND p.open_until >= drains.started_at
  )`
	outageSeen = `EXISTS (
    SELECT 1 FROM evictrail.placements AS p
    WHERE p.cluster = node_outages.cluster
      AND p.node = node_outages.node
      AND p.namespace = ANY(@seen)
      AND p.from_at <= coalesce(node_outages.ended_at, 'infinity')
      AND p.open_until >= node_outages.began_at
  )`
	nodesSeen = `SELECT p.node FROM evictrail.placements AS p WHERE p.cluster = @cluster AND p.namespace = ANY(@seen)`
)

// seenRows says which rows of a view a limited reader gets.
func seenRows(v trail.View) string {
	switch {
	case v.Name == trail.ViewLoops.Name:
		return loopSeen
	case v.HasVM():
		return "namespace = ANY(@seen)"
	case v.Name == trail.ViewDrains.Name:
		return drainSeen
	case v.Name == trail.ViewOutages.Name:
		return outageSeen
	case v.Name == trail.ViewGaps.Name:
		return "@seen::text[] IS NOT NULL" // all of them
	}
	return "false AND @seen::text[] IS NOT NULL"
}

// redactRow hides in the cells of a row what its reader may not see; cell returns one of them, nil where it is NULL.
func (s *Reader) redactRow(v trail.View, cell func(column string) *string, set func(column string, value *string)) error {
	if !s.scope.Limited() {
		return nil
	}
	switch v.Name {
	case trail.ViewDrains.Name:
		set("requester", nil)
		set("impersonator", nil)
	case trail.ViewGaps.Name:
		set("detail", nil)
	case trail.ViewQueue.Name:
		if namespace, _, _ := strings.Cut(pg.TextOrEmpty(cell("after_vmi")), "/"); !s.scope.Sees(namespace) {
			set("after_vmi", nil)
		}
	case trail.ViewLoops.Name:
		l := trail.Loop{Namespace: pg.TextOrEmpty(cell("namespace")), VMI: pg.TextOrEmpty(cell("vmi")), VMIUID: pg.TextOrEmpty(cell("vmi_uid")), Summary: pg.TextOrEmpty(cell("summary")), Advice: pg.TextOrEmpty(cell("advice"))}
		if err := json.Unmarshal([]byte(pg.TextOrEmpty(cell("evidence"))), &l.Evidence); err != nil {
			return err
		}
		l, _ = s.scope.Loop(l)
		if l.Namespace == "" { // whose problem it is that was acknowledged is not for this reader
			for _, column := range []string{"acknowledged_by", "acknowledged_until", "acknowledgement_note"} {
				set(column, nil)
			}
		}
		evidence, err := json.Marshal(l.Evidence)
		if err != nil {
			return err
		}
		for column, value := range map[string]string{
			"namespace": l.Namespace, "vmi": l.VMI, "vmi_uid": l.VMIUID, "summary": l.Summary, "advice": l.Advice, "evidence": string(evidence),
		} {
			if value == "" {
				set(column, nil)
			} else {
				set(column, &value)
			}
		}
	}
	return nil
}

// veilJSON is veil for a row as a JSON object.
func (s *Reader) veilJSON(v trail.View, row json.RawMessage) (json.RawMessage, error) {
	if !s.scope.Limited() {
		return row, nil
	}
	var cells map[string]json.RawMessage
	if err := json.Unmarshal(row, &cells); err != nil {
		return nil, err
	}
	err := s.redactRow(v, func(column string) *string {
		var text *string
		if raw := cells[column]; json.Unmarshal(raw, &text) != nil { // it is no text
			whole := string(raw)
			text = &whole
		}
		return text
	}, func(column string, value *string) {
		raw, _ := json.Marshal(value)             // a text: cannot fail
		if value != nil && column == "evidence" { // which is JSON itself
			raw = []byte(*value)
		}
		cells[column] = raw
	})
	if err != nil {
		return nil, err
	}
	return json.Marshal(cells)
}

// veilText is veil for a row of cells.
func (s *Reader) veilText(v trail.View, columns []string, row []*string) error {
	return s.redactRow(v, func(column string) *string { return row[slices.Index(columns, column)] },
		func(column string, value *string) { row[slices.Index(columns, column)] = value })
}

const nodeSeenQuery = `
SELECT EXISTS (` + nodesSeen + ` AND p.node = @node)`

// canSee reports whether the reader may see a VM or a node of a cluster.
func (s *Reader) canSee(ctx context.Context, cluster string, of trail.Subject) (bool, error) {
	if !s.scope.Limited() {
		return true, nil
	}
	if of.Kind != trail.SubjectNode {
		namespace, _ := of.VM()
		return s.scope.Sees(namespace), nil
	}
	var seen bool
	err := s.db.QueryRow(ctx, nodeSeenQuery, pgx.StrictNamedArgs{"cluster": cluster, "node": pg.CleanText(of.Name), "seen": s.scope.Namespaces()}).Scan(&seen)
	return seen, pg.Explain("look for "+of.Name, err)
}
