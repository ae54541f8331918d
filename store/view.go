package store

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/evictrail/evictrail/trail"
)

// listQuery builds the question from names of ours; what the caller asks for are parameters. One row more than asked for tells
// whether there are older ones.
func listQuery(v trail.View, selection string, q trail.Query) (string, pgx.StrictNamedArgs) {
	var where []string
	args := pgx.StrictNamedArgs{}
	only := func(condition, name string, value any) {
		where, args[name] = append(where, condition), value
	}
	for column, value := range map[string]string{"namespace": q.Namespace, "vmi": q.VMI, "node": q.Node} {
		if value != "" && slices.Contains(v.Where, column) {
			only(column+" = @"+column, column, value)
		}
	}
	slices.Sort(where)
	switch {
	case q.Cluster != "":
		only("cluster = @cluster", "cluster", q.Cluster)
	case len(where) > 0: // indexes lead with the cluster
		where = append(where, "cluster IN (SELECT cluster FROM evictrail_v1.clusters)")
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
	if q.Open && v.End != "" {
		where = append(where, v.End+" IS NULL")
	}
	if q.First && v.Repeat != "" {
		where = append(where, v.Repeat+" IS NULL")
	}
	if q.Before != nil {
		only(fmt.Sprintf("(%s, %s, cluster) < (@at, @key, @of)", v.At, v.Key), "at", q.Before.At)
		args["key"], args["of"] = q.Before.ID, q.Before.Cluster
	}
	text := "SELECT " + selection + "\nFROM evictrail_v1." + v.Name + " AS v\n"
	if len(where) > 0 {
		text += "WHERE " + strings.Join(where, "\n  AND ") + "\n"
	}
	text += fmt.Sprintf("ORDER BY %s DESC, %s DESC, cluster DESC", v.At, v.Key)
	if q.Limit > 0 {
		args["limit"] = q.Limit + 1
		text += "\nLIMIT @limit"
	}
	return text, args
}

// planned has each statement planned for the values that are asked for: they differ much in how many rows they leave.
const planned = pgx.QueryExecModeCacheDescribe

// pageOf cuts the row off that only tells that there are older ones, and says where those begin.
func pageOf[Row any](rows []Row, limit int, key func(Row) (trail.Key, error)) (trail.Page[Row], error) {
	if limit <= 0 || len(rows) <= limit {
		return trail.Page[Row]{Rows: rows}, nil
	}
	next, err := key(rows[limit-1])
	return trail.Page[Row]{Rows: rows[:limit], Next: &next}, err
}

// ListJSON gives the rows of a view that the query asks for, the newest first, each as a JSON object with the view's
// columns.
func (s *Store) ListJSON(ctx context.Context, v trail.View, q trail.Query) (trail.Page[json.RawMessage], error) {
	text, args := listQuery(v, "to_jsonb(v)::text", q)
	var out []json.RawMessage
	err := s.read(ctx, "list "+v.Name, func(tx pgx.Tx) error {
		rows, err := tx.Query(ctx, text, planned, args)
		if err != nil {
			return err
		}
		out, err = pgx.CollectRows(rows, func(row pgx.CollectableRow) (json.RawMessage, error) {
			var text string
			err := row.Scan(&text)
			return json.RawMessage(text), err
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
func (s *Store) ListText(ctx context.Context, v trail.View, q trail.Query) (trail.Table, error) {
	text, args := listQuery(v, "*", q)
	var t trail.Table
	err := s.read(ctx, "list "+v.Name, func(tx pgx.Tx) error {
		rows, err := tx.Query(ctx, text, planned, pgx.QueryResultFormats{pgx.TextFormatCode}, args)
		if err != nil {
			return err
		}
		defer rows.Close()
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
		return rows.Err()
	})
	if err != nil {
		return trail.Table{}, err
	}
	cell := func(row []*string, column string) string { return known(row[slices.Index(t.Columns, column)]) }
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
