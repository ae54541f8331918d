package store

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/evictrail/evictrail/trail"
)

// View is a view of schema evictrail_v1 as readers use it.
type View struct {
	Name  string
	at    string   // column of time that orders the rows and that Since and Until bound
	key   string   // column that orders rows of one time
	where []string // the filters that it has columns for: namespace, vmi, node
	brief string   // which rows a table for people shows; empty: all
	Brief []string // the columns that it shows
}

// HasNode tells whether rows can be asked for by node.
func (v View) HasNode() bool { return slices.Contains(v.where, "node") }

// HasVM tells whether rows can be asked for by namespace and VMI.
func (v View) HasVM() bool { return slices.Contains(v.where, "vmi") }

var vmFilters = []string{"namespace", "vmi", "node"}

// query builds the question from names of ours; what the caller asks for are parameters.
func (v View) query(selection, rows string) string {
	filters := "(@cluster = '' OR cluster = @cluster)"
	for _, column := range v.where {
		filters += fmt.Sprintf("\n  AND (@%[1]s = '' OR %[1]s = @%[1]s)", column)
	}
	if rows != "" {
		filters += "\n  AND " + rows
	}
	return fmt.Sprintf(`
SELECT %[1]s
FROM (
  SELECT *
  FROM evictrail_v1.%[2]s
  WHERE %[3]s
    AND (@since::timestamptz IS NULL OR %[4]s >= @since)
    AND (@until::timestamptz IS NULL OR %[4]s < @until)
  ORDER BY %[4]s DESC, %[5]s DESC
  LIMIT @limit
) AS v
ORDER BY %[4]s, %[5]s`, selection, v.Name, filters, v.at, v.key)
}

func (v View) args(q trail.Query) pgx.NamedArgs {
	args := pgx.NamedArgs{"cluster": q.Cluster, "since": timeArg(q.Since), "until": timeArg(q.Until), "limit": nil}
	if q.Limit > 0 {
		args["limit"] = q.Limit
	}
	for column, value := range map[string]string{"namespace": q.Namespace, "vmi": q.VMI, "node": q.Node} {
		if slices.Contains(v.where, column) {
			args[column] = value
		}
	}
	return args
}

func timeArg(t time.Time) any {
	if t.IsZero() {
		return nil
	}
	return t
}

// ListJSON gives the newest rows of a view that the query asks for, oldest first, each as a JSON object with the
// view's columns.
func (s *Store) ListJSON(ctx context.Context, v View, q trail.Query) ([]json.RawMessage, error) {
	rows, err := s.pool.Query(ctx, v.query("to_jsonb(v)::text", ""), v.args(q))
	if err != nil {
		return nil, explain("list "+v.Name, err)
	}
	out, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (json.RawMessage, error) {
		var text string
		err := row.Scan(&text)
		return json.RawMessage(text), err
	})
	return out, explain("list "+v.Name, err)
}

// Table is rows as Postgres writes them; a nil cell is NULL.
type Table struct {
	Columns []string
	Rows    [][]*string
}

// ListText is ListJSON for spreadsheets: every value as Postgres writes it.
func (s *Store) ListText(ctx context.Context, v View, q trail.Query) (Table, error) {
	return s.listText(ctx, v, q, "")
}

// ListBrief is ListText for people: of a view whose rows repeat, the first ones, with their repetitions counted.
func (s *Store) ListBrief(ctx context.Context, v View, q trail.Query) (Table, error) {
	return s.listText(ctx, v, q, v.brief)
}

func (s *Store) listText(ctx context.Context, v View, q trail.Query, which string) (Table, error) {
	rows, err := s.pool.Query(ctx, v.query("*", which), pgx.QueryResultFormats{pgx.TextFormatCode}, v.args(q))
	if err != nil {
		return Table{}, explain("list "+v.Name, err)
	}
	defer rows.Close()
	var t Table
	for _, f := range rows.FieldDescriptions() {
		t.Columns = append(t.Columns, f.Name)
	}
	for rows.Next() {
		var cells []*string
		for _, raw := range rows.RawValues() {
			cells = append(cells, cellFrom(raw))
		}
		t.Rows = append(t.Rows, cells)
	}
	return t, explain("list "+v.Name, rows.Err())
}

func cellFrom(raw []byte) *string {
	if raw == nil {
		return nil
	}
	text := string(raw)
	return &text
}

const clustersOfQuery = `
SELECT cluster
FROM evictrail.subjects
WHERE subject = @subject
  AND (@cluster = '' OR cluster = @cluster)
ORDER BY cluster`

// ClustersOf names the clusters in which a VM or a node is known; with a cluster given, that one or none.
func (s *Store) ClustersOf(ctx context.Context, cluster string, of trail.Subject) ([]string, error) {
	rows, err := s.pool.Query(ctx, clustersOfQuery, pgx.StrictNamedArgs{"cluster": cluster, "subject": clean(of.String())})
	if err != nil {
		return nil, explain("look for "+of.Name, err)
	}
	out, err := pgx.CollectRows(rows, pgx.RowTo[string])
	return out, explain("look for "+of.Name, err)
}
