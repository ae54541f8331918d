package lake

import (
	"context"
	"fmt"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/apache/arrow-go/v18/parquet/file"
	"github.com/apache/arrow-go/v18/parquet/pqarrow"
	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/evictrail/evictrail/store/storetest"
	"github.com/evictrail/evictrail/test/build"
)

func TestMain(m *testing.M) { storetest.Main(m) }

// runEvictrail runs the built binary to its end.
func runEvictrail(t *testing.T, args ...string) {
	t.Helper()
	binary, err := build.Evictrail()
	require.NoError(t, err)
	out, err := exec.CommandContext(t.Context(), binary, args...).CombinedOutput()
	require.NoError(t, err, "%s", out)
}

// arrowTypes says how a column of a type of Postgres is read.
var arrowTypes = map[string]arrow.DataType{
	"text": arrow.BinaryTypes.String, "uuid": arrow.BinaryTypes.String, "jsonb": arrow.BinaryTypes.String, "boolean": arrow.FixedWidthTypes.Boolean,
	"integer": arrow.PrimitiveTypes.Int32, "bigint": arrow.PrimitiveTypes.Int64, "double precision": arrow.PrimitiveTypes.Float64,
	"interval": arrow.PrimitiveTypes.Float64, "timestamp with time zone": &arrow.TimestampType{Unit: arrow.Microsecond, TimeZone: "UTC"},
}

// TestAnotherReaderReadsTheSame exports a played recording, and compares each value of each column with the view's, by
// the type that the reader found.
func TestAnotherReaderReadsTheSame(t *testing.T) {
	t.Parallel()
	url, dir := storetest.NewURL(t), t.TempDir()
	runEvictrail(t, "play", filepath.Join(build.Root(), "testdata/recordings/b-dual-retry-loop"), "--database-url", url)
	runEvictrail(t, "export", "--what", "all", "--format", "parquet", "--dir", dir, "--database-url", url)
	conn, err := pgx.Connect(t.Context(), url)
	require.NoError(t, err)
	defer func() { _ = conn.Close(context.WithoutCancel(t.Context())) }()
	for view, order := range map[string]string{
		"facts": "seq", "evacuations": "marked_at, evacuation_id", "migrations": "created_at, migration_uid", "loops": "opened_at, loop_id",
		"cooldown_decisions": "decided_at, decision_id", "timeline": "at, event_id",
	} {
		files, err := filepath.Glob(filepath.Join(dir, view, "cluster=*/date=*/*.parquet"))
		require.NoError(t, err)
		require.NotEmpty(t, files, view)
		var got [][]string
		var schema *arrow.Schema
		for _, name := range files {
			table := readTable(t, name)
			schema = table.Schema()
			got = append(got, cellsOf(table)...)
			table.Release()
		}
		names, want := readView(t, conn, view, order)
		require.Len(t, schema.Fields(), len(names), view)
		for i, name := range names {
			column, kind, _ := strings.Cut(name, " ")
			require.Equal(t, column, schema.Field(i).Name, view)
			require.True(t, schema.Field(i).Nullable)
			require.True(t, arrow.TypeEqual(arrowTypes[kind], schema.Field(i).Type), "%s.%s is %s in Postgres, and read as %s", view, column, kind, schema.Field(i).Type)
		}
		require.Equal(t, want, got, view)
	}
}

// readTable reads a Parquet file.
func readTable(t *testing.T, name string) arrow.Table {
	t.Helper()
	f, err := file.OpenParquetFile(name, false)
	require.NoError(t, err)
	defer func() { _ = f.Close() }()
	r, err := pqarrow.NewFileReader(f, pqarrow.ArrowReadProperties{}, memory.DefaultAllocator)
	require.NoError(t, err)
	table, err := r.ReadTable(t.Context())
	require.NoError(t, err)
	return table
}

// null is a value that is none.
const null = "(NULL)"

// cellsOf returns the values of a table as texts, in the manner of readView.
func cellsOf(table arrow.Table) [][]string {
	rows := make([][]string, table.NumRows())
	for c := range int(table.NumCols()) {
		at := 0
		for _, chunk := range table.Column(c).Data().Chunks() {
			for i := range chunk.Len() {
				rows[at] = append(rows[at], cellOf(chunk, i))
				at++
			}
		}
	}
	return rows
}

// cellOf returns a value as text.
func cellOf(chunk arrow.Array, i int) string {
	if chunk.IsNull(i) {
		return null
	}
	switch of := chunk.(type) {
	case *array.String:
		return of.Value(i)
	case *array.Timestamp:
		return of.Value(i).ToTime(arrow.Microsecond).Format(time.RFC3339Nano)
	case *array.Float64:
		return strconv.FormatFloat(of.Value(i), 'g', -1, 64)
	}
	return chunk.ValueStr(i)
}

// readView returns the rows of a view as texts, but for the cluster, and what its columns are called and of which type
// they are.
func readView(t *testing.T, conn *pgx.Conn, view, order string) (names []string, rows [][]string) {
	t.Helper()
	found, err := conn.Query(t.Context(), "SELECT attname || ' ' || format_type(atttypid, NULL) FROM pg_attribute WHERE attrelid = $1::regclass AND attnum > 0 AND attname <> 'cluster' ORDER BY attnum", "evictrail_v1."+view)
	require.NoError(t, err)
	names, err = pgx.CollectRows(found, pgx.RowTo[string])
	require.NoError(t, err)
	selected := make([]string, len(names))
	for i, name := range names {
		column, kind, _ := strings.Cut(name, " ")
		selected[i] = column
		switch kind {
		case "interval":
			selected[i] = fmt.Sprintf("extract(epoch FROM %s)::float8", column)
		case "jsonb", "uuid":
			selected[i] = column + "::text"
		}
	}
	found, err = conn.Query(t.Context(), "SELECT "+strings.Join(selected, ", ")+" FROM evictrail_v1."+view+" ORDER BY "+order)
	require.NoError(t, err)
	rows, err = pgx.CollectRows(found, func(row pgx.CollectableRow) ([]string, error) {
		values, err := row.Values()
		cells := make([]string, len(values))
		for i, v := range values {
			switch v := v.(type) {
			case nil:
				cells[i] = null
			case time.Time:
				cells[i] = v.UTC().Format(time.RFC3339Nano)
			case float64:
				cells[i] = strconv.FormatFloat(v, 'g', -1, 64)
			default:
				cells[i] = fmt.Sprint(v)
			}
		}
		return cells, err
	})
	require.NoError(t, err)
	return names, rows
}
