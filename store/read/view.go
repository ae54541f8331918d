package read

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/evictrail/evictrail/store/pg"
	"github.com/evictrail/evictrail/trail"
)

// listQuery builds the question from names of ours; what the caller asks for are parameters. One row more than asked for shows
// whether there are more.
func listQuery(v trail.View, selection string, q trail.Query, in scope, reader trail.Scope) (string, pgx.StrictNamedArgs) {
	var where []string
	args := pgx.StrictNamedArgs{}
	only := func(condition, name string, value any) {
		where, args[name] = append(where, condition), value
	}
	for column, value := range map[string]string{"namespace": q.Namespace, "vmi": q.VMI, "node": q.Node} {
		if value == "" || !slices.Contains(v.Where, column) {
			continue
		}
		if column == "node" && v.Nodes != "" {
			only(v.Nodes+" @> to_jsonb(@node::text)", column, value)
			continue
		}
		only(column+" = @"+column, column, value)
	}
	for column, value := range q.Values {
		if slices.Contains(v.Sets, column) {
			only(column+" = @"+column, column, value)
		}
	}
	slices.Sort(where)
	switch {
	case q.Cluster != "":
		only("cluster = @cluster", "cluster", q.Cluster)
	case len(in.clusters) > 0:
		where = append(where, "cluster = @%s")
	case in.clusters != nil: // it is known nowhere
		where = append(where, "false")
	}
	if reader.Limited() {
		only(seenRows(v), "seen", reader.Namespaces())
	}
	if in.namespaces != nil {
		only("namespace = ANY(@namespaces)", "namespaces", in.namespaces)
	}
	if !q.Since.IsZero() {
		only(v.At+" >= @since", "since", q.Since)
	}
	if !q.Until.IsZero() {
		only(v.At+" < @until", "until", q.Until)
	}
	if !q.ChangedSince.IsZero() && v.Changed != "" {
		only(v.Changed+" >= @changed_since", "changed_since", q.ChangedSince)
	}
	if !q.EndedSince.IsZero() && v.End != "" {
		only(v.End+" >= @ended_since", "ended_since", q.EndedSince)
	}
	if !q.EndedUntil.IsZero() && v.End != "" {
		only(v.End+" < @ended_until", "ended_until", q.EndedUntil)
	}
	if q.Open && v.End != "" {
		where = append(where, v.End+" IS NULL")
	}
	if q.Closed && v.End != "" {
		where = append(where, v.End+" IS NOT NULL")
	}
	if q.First && v.Repeat != "" {
		where = append(where, v.Repeat+" IS NULL")
	}
	direction, after := "DESC", "<"
	if q.Oldest {
		direction, after = "ASC", ">"
	}
	if q.Before != nil {
		only(fmt.Sprintf("(%s, %s, cluster) %s (@at, @key, @of)", v.At, v.Key, after), "at", q.Before.At)
		args["key"], args["of"] = q.Before.ID, q.Before.Cluster
	}
	from := "SELECT *\n  FROM evictrail_v1." + v.Name + "\n"
	if len(where) > 0 {
		from += "  WHERE " + strings.Join(where, "\n    AND ") + "\n"
	}
	order := fmt.Sprintf("ORDER BY %s %s, %s %[2]s, cluster %[2]s", v.At, direction, v.Key)
	const limit = "\nLIMIT @limit"
	args["limit"] = int64(math.MaxInt64) // all: Citus names the columns of whole rows f1, f2, ... where there is no limit
	if q.Limit > 0 {
		args["limit"] = q.Limit + 1
	}
	from += "  " + order + limit
	if len(in.clusters) > 0 {
		from = eachCluster(from, in.clusters, args)
	}
	return "SELECT " + selection + "\nFROM (\n  " + from + "\n) AS v\n" + order + limit, args
}

// eachCluster asks the same of each cluster.
func eachCluster(text string, clusters []string, args pgx.StrictNamedArgs) string {
	parts := make([]string, len(clusters))
	for i, cluster := range clusters {
		name := fmt.Sprintf("cluster_%d", i)
		parts[i], args[name] = "("+strings.Replace(text, "cluster = @%s", "cluster = @"+name, 1)+")", cluster
	}
	return strings.Join(parts, "\n  UNION ALL\n  ")
}

// scope is where a question looks that does not say so: indexes lead with the cluster, then the namespace, and Postgres is to look into
// each of these, in the order of time, instead of reading whole indexes.
type scope struct {
	clusters   []string // that know the namespace and the node; nil where there is no need
	namespaces []string // in which the VM is known; nil where there is no need
}

const clustersWithQuery = `
SELECT cluster
FROM evictrail.clusters AS c
WHERE (@node = '' OR EXISTS (SELECT 1 FROM evictrail.subjects AS s WHERE s.cluster = c.cluster AND s.subject = 'node:' || @node))
  AND (
    @namespace = ''
    OR EXISTS (
      SELECT 1 FROM evictrail.subjects AS s
      WHERE s.cluster = c.cluster
        AND (s.subject LIKE 'vmi:%' OR s.subject LIKE 'node:%')
        AND starts_with(s.subject, 'vmi:' || @namespace || '/')
    )
    OR EXISTS (SELECT 1 FROM evictrail.subjects AS s WHERE s.cluster = c.cluster AND s.subject = 'namespace:' || @namespace)
    OR EXISTS (SELECT 1 FROM evictrail.eviction_requests AS r WHERE r.cluster = c.cluster AND r.namespace = @namespace)
  )
ORDER BY cluster`

const namespacesOfQuery = `
SELECT split_part(substr(subject, 5), '/', 1)
FROM evictrail.subjects
WHERE subject LIKE 'vmi:%'
  AND split_part(subject, '/', 2) = @vmi
  AND (@cluster = '' OR cluster = @cluster)
UNION
SELECT namespace
FROM evictrail.eviction_requests
WHERE vmi = @vmi
  AND (@cluster = '' OR cluster = @cluster)`

// mostClusters bounds how many clusters are looked into one by one.
const mostClusters = 50

// scopeOf finds where a question looks. A VM that is named without its namespace is looked for where one of that name is known, if only
// from a request; in the views with the most rows alone.
func scopeOf(ctx context.Context, tx pgx.Tx, v trail.View, q trail.Query) (in scope, err error) {
	if q.Cluster == "" && (q.Namespace != "" || q.VMI != "" || q.Node != "") {
		in.clusters, err = loadTexts(ctx, tx, clustersWithQuery, pgx.StrictNamedArgs{"namespace": q.Namespace, "node": q.Node})
		if err != nil {
			return in, err
		}
		if len(in.clusters) > mostClusters {
			in.clusters = nil
		}
	}
	if q.VMI != "" && q.Namespace == "" && (v.Name == trail.ViewEvents.Name || v.Name == trail.ViewTimeline.Name) {
		in.namespaces, err = loadTexts(ctx, tx, namespacesOfQuery, pgx.StrictNamedArgs{"cluster": q.Cluster, "vmi": q.VMI})
	}
	return in, err
}

// loadTexts reads rows of one text; never nil.
func loadTexts(ctx context.Context, tx pgx.Tx, query string, args pgx.StrictNamedArgs) ([]string, error) {
	rows, err := tx.Query(ctx, query, args)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, pgx.RowTo[string])
}

// listView asks for the rows of a view. Collect is to have each row counted.
func (s *Reader) listView(ctx context.Context, v trail.View, selection string, q trail.Query, collect func(pgx.Rows, *rowBound) error, options ...any) error {
	asking, stop := context.WithCancel(ctx)
	defer stop()
	bound := &rowBound{rows: q.Limit, bytes: q.MaxBytes, stop: stop}
	return s.runReadOnly(ctx, "list "+v.Name, func(tx pgx.Tx) error {
		var within bool
		q.Cluster, within = s.scope.Cluster(q.Cluster)
		in := scope{clusters: []string{}}
		if within {
			var err error
			if in, err = scopeOf(ctx, tx, v, q); err != nil {
				return err
			}
		}
		text, args := listQuery(v, selection, q, in, s.scope)
		rows, err := tx.Query(asking, text, append(options, pg.Planned, args)...)
		if err != nil {
			return err
		}
		if err := collect(rows, bound); err != nil {
			return err
		}
		return rows.Err()
	})
}

// rowBound ends the reading of rows that have too many bytes together. Closing rows would read all that are left, and the database would go on
// making them, so the statement is cancelled. That costs its connection, which is cheaper than what it would bring.
type rowBound struct {
	rows  int // that are wanted, and one more is read; 0: all
	bytes int // that they may have; 0: any number
	stop  func()

	counted, taken int
}

// countRow counts one more row, of so many bytes. The row that only says that there are older ones counts for nothing: it is not sent.
func (b *rowBound) countRow(size int) error {
	if b.bytes <= 0 || b.rows > 0 && b.counted >= b.rows {
		return nil
	}
	if b.taken += size; b.taken > b.bytes {
		b.stop()
		return &trail.TooLargeError{Rows: b.counted}
	}
	b.counted++
	return nil
}

// pageOf cuts the row off that only shows that there are older ones, and says where those begin.
func pageOf[Row any](rows []Row, limit int, key func(Row) (trail.Key, error)) (trail.Page[Row], error) {
	if limit <= 0 || len(rows) <= limit {
		return trail.Page[Row]{Rows: rows}, nil
	}
	next, err := key(rows[limit-1])
	return trail.Page[Row]{Rows: rows[:limit], Next: &next}, err
}

// ListJSON returns the rows of a view that the query asks for, in its order, each as a JSON object with the view's
// columns. Errors: *trail.TooLargeError where they have more bytes than the query allows.
func (s *Reader) ListJSON(ctx context.Context, v trail.View, q trail.Query) (trail.Page[json.RawMessage], error) {
	var out []json.RawMessage
	err := s.listView(ctx, v, "to_jsonb(v)::text", q, func(rows pgx.Rows, bound *rowBound) (err error) {
		out, err = pgx.CollectRows(rows, func(row pgx.CollectableRow) (json.RawMessage, error) {
			var text string
			if err := row.Scan(&text); err != nil {
				return nil, err
			}
			if err := bound.countRow(len(text) + len(",\n")); err != nil {
				return nil, err
			}
			return s.veilJSON(v, json.RawMessage(text))
		})
		return err
	})
	if err != nil {
		return trail.Page[json.RawMessage]{}, err
	}
	return pageOf(out, q.Limit, func(row json.RawMessage) (k trail.Key, err error) {
		var cells map[string]json.RawMessage
		err = json.Unmarshal(row, &cells)
		for column, into := range map[string]any{"cluster": &k.Cluster, v.Key: &k.ID, v.At: &k.At} {
			err = cmp.Or(err, json.Unmarshal(cells[column], into))
		}
		return k, err
	})
}

// ListText is ListJSON for spreadsheets and terminals: every value as Postgres writes it.
func (s *Reader) ListText(ctx context.Context, v trail.View, q trail.Query) (trail.Table, error) {
	var t trail.Table
	err := s.listView(ctx, v, "*", q, func(rows pgx.Rows, bound *rowBound) error {
		for _, f := range rows.FieldDescriptions() {
			t.Columns = append(t.Columns, f.Name)
		}
		for rows.Next() {
			var cells []*string
			size := 0
			for _, raw := range rows.RawValues() {
				cells = append(cells, cellFrom(raw))
				size += len(raw) + len(",")
			}
			if err := bound.countRow(size); err != nil {
				return err
			}
			if err := s.veilText(v, t.Columns, cells); err != nil {
				return err
			}
			t.Rows = append(t.Rows, cells)
		}
		return nil
	}, pgx.QueryResultFormats{pgx.TextFormatCode})
	if err != nil {
		return trail.Table{}, err
	}
	cell := func(row []*string, column string) string { return pg.TextOrEmpty(row[slices.Index(t.Columns, column)]) }
	t.Page, err = pageOf(t.Rows, q.Limit, func(row []*string) (trail.Key, error) {
		at, err := time.Parse(trail.CellTime, cell(row, v.At))
		return trail.Key{At: at, ID: cell(row, v.Key), Cluster: cell(row, "cluster")}, err
	})
	return t, err
}

func cellFrom(raw []byte) *string {
	if raw == nil {
		return nil
	}
	text := string(raw)
	return &text
}
