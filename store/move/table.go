package move

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5"

	"github.com/evictrail/evictrail/store/pg"
)

// table is a table with rows of clusters.
type table struct {
	Name    string
	Columns []string // quoted, sorted: their order in the table may differ between databases
	Key     []string // quoted: the primary key without the cluster; may be empty
	Types   []string // of Key
}

// Tables are moved in this order. Subjects are compared before rows that are derived of them: should a leader that
// nobody knows of still write, the rows that it wrote after that are derived again. The cluster comes last, so that
// nobody lists one that is not there yet.
const tablesQuery = `
SELECT
    c.relname::text,
    ARRAY(
        SELECT quote_ident(a.attname)
        FROM pg_catalog.pg_attribute AS a
        WHERE a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped
        ORDER BY a.attname COLLATE "C"
    ),
    ARRAY(
        SELECT quote_ident(a.attname)
        FROM pg_catalog.pg_index AS i
        CROSS JOIN unnest(i.indkey) WITH ORDINALITY AS k(attnum, place)
        JOIN pg_catalog.pg_attribute AS a ON a.attrelid = c.oid AND a.attnum = k.attnum
        WHERE i.indrelid = c.oid AND i.indisprimary AND a.attname <> 'cluster'
        ORDER BY k.place
    ),
    ARRAY(
        SELECT format_type(a.atttypid, a.atttypmod)
        FROM pg_catalog.pg_index AS i
        CROSS JOIN unnest(i.indkey) WITH ORDINALITY AS k(attnum, place)
        JOIN pg_catalog.pg_attribute AS a ON a.attrelid = c.oid AND a.attnum = k.attnum
        WHERE i.indrelid = c.oid AND i.indisprimary AND a.attname <> 'cluster'
        ORDER BY k.place
    ),
    EXISTS (SELECT FROM pg_catalog.pg_index AS i WHERE i.indrelid = c.oid AND i.indisprimary)
FROM pg_catalog.pg_class AS c
WHERE c.relnamespace = 'evictrail'::regnamespace
  AND c.relkind IN ('r', 'p')
  AND NOT c.relispartition
  AND c.relname <> ALL(@unmoved::text[])
  AND EXISTS (
    SELECT FROM pg_catalog.pg_attribute AS a WHERE a.attrelid = c.oid AND a.attname = 'cluster' AND NOT a.attisdropped
  )
ORDER BY c.relname = 'clusters', c.relname <> 'events', c.relname <> 'subjects', c.relname`

// unmoved are the tables with a column cluster whose rows are not moved: those of moves, which are about one database,
// and what is put aside while months are dropped, which is a copy of facts.
var unmoved = []string{"moves", "events_next"}

// tablesOf returns the tables of a database that have rows of clusters.
func tablesOf(ctx context.Context, db *pg.DB) ([]table, error) {
	const doing = "list tables"
	rows, err := db.Query(ctx, tablesQuery, pgx.StrictNamedArgs{"unmoved": unmoved})
	if err != nil {
		return nil, pg.Explain(doing, err)
	}
	all, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (t table, err error) {
		var keyed bool
		err = row.Scan(&t.Name, &t.Columns, &t.Key, &t.Types, &keyed)
		if err == nil && !keyed {
			err = fmt.Errorf("table evictrail.%s has no primary key, by which its rows could be moved", t.Name)
		}
		return t, err
	})
	return all, pg.Explain(doing, err)
}

// tablesOfBoth returns the tables of both databases, which have to be the same.
func (m *Mover) tablesOfBoth(ctx context.Context) ([]table, error) {
	from, err := tablesOf(ctx, m.From)
	if err != nil {
		return nil, err
	}
	to, err := tablesOf(ctx, m.To)
	if err != nil {
		return nil, err
	}
	for _, sides := range [][2][]table{{from, to}, {to, from}} {
		for _, t := range sides[0] {
			same := func(o table) bool {
				return t.Name == o.Name && slices.Equal(t.Columns, o.Columns) && slices.Equal(t.Key, o.Key)
			}
			if !slices.ContainsFunc(sides[1], same) {
				return nil, fmt.Errorf("%w: table evictrail.%s is another one in the two databases, or only in one: "+
					"run `evictrail schema up` on both", pg.ErrSchema, t.Name)
			}
		}
	}
	return from, nil
}

// path returns the name of the table for SQL.
func (t *table) path() string { return pgx.Identifier{"evictrail", t.Name}.Sanitize() }

// columns returns its columns as a list.
func (t *table) columns() string { return strings.Join(t.Columns, ", ") }

// keyTuple returns the key as a row.
func (t *table) keyTuple() string { return "(" + strings.Join(t.Key, ", ") + ")" }

// literalTuple returns the values of a key as a row of constants.
func (t *table) literalTuple(conn *pgx.Conn, key []string) (string, error) {
	parts := make([]string, len(key))
	for i, value := range key {
		text, err := conn.PgConn().EscapeString(value)
		if err != nil {
			return "", err
		}
		parts[i] = "'" + text + "'::" + t.Types[i]
	}
	return "(" + strings.Join(parts, ", ") + ")", nil
}

// quoteText returns a text as a constant of SQL.
func quoteText(conn *pgx.Conn, text string) (string, error) {
	escaped, err := conn.PgConn().EscapeString(text)
	return "'" + escaped + "'", err
}
