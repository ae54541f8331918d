package export

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/parquet-go/parquet-go"

	"github.com/evictrail/evictrail/trail"
)

// parquetTypes says of the types of Postgres what they are in a file. Each column may be NULL.
var parquetTypes = map[string]struct {
	node    func() parquet.Node
	selects string // how the column is read
}{
	"text":                     {parquet.String, "v.%s"},
	"uuid":                     {parquet.String, "v.%s::text"},
	"jsonb":                    {parquet.String, "v.%s::text"},
	"boolean":                  {func() parquet.Node { return parquet.Leaf(parquet.BooleanType) }, "v.%s"},
	"integer":                  {func() parquet.Node { return parquet.Int(32) }, "v.%s"},
	"bigint":                   {func() parquet.Node { return parquet.Int(64) }, "v.%s"},
	"double precision":         {func() parquet.Node { return parquet.Leaf(parquet.DoubleType) }, "v.%s"},
	"timestamp with time zone": {func() parquet.Node { return parquet.Timestamp(parquet.Microsecond) }, "v.%s"},
	"interval":                 {func() parquet.Node { return parquet.Leaf(parquet.DoubleType) }, "extract(epoch FROM v.%s)::double precision"}, // seconds
}

// rowsTogether is how many rows are a row group, which is held in memory until it is written.
const rowsTogether = 20_000

// parquetEncoder writes Parquet files.
type parquetEncoder struct {
	columns string
	schema  *parquet.Schema
	out     *parquet.GenericWriter[any]
	row     parquet.Row
}

// rowNode is a group whose columns are in the order of the view, not in that of their names.
type rowNode struct {
	parquet.Group
	names []string
}

// Fields returns the columns.
func (n rowNode) Fields() []parquet.Field {
	fields := n.Group.Fields()
	slices.SortFunc(fields, func(a, b parquet.Field) int {
		return slices.Index(n.names, a.Name()) - slices.Index(n.names, b.Name())
	})
	return fields
}

func newParquetEncoder(columns []trail.Column) (*parquetEncoder, error) {
	row := rowNode{Group: parquet.Group{}}
	var selected []string
	for _, c := range columns {
		t, known := parquetTypes[c.Type]
		if !known {
			return nil, fmt.Errorf("column %s of view %s has the type %s, which this evictrail does not know how to write: "+
				"use a newer one", c.Name, c.View, c.Type)
		}
		node := t.node()
		if c.Type == "text" || c.Type == "jsonb" { // most come again and again
			node = parquet.Encoded(node, &parquet.RLEDictionary)
		}
		row.Group[c.Name], row.names = parquet.Optional(node), append(row.names, c.Name)
		selected = append(selected, fmt.Sprintf(t.selects, c.Name))
	}
	return &parquetEncoder{columns: strings.Join(selected, ", "), schema: parquet.NewSchema("row", row)}, nil
}

func (e *parquetEncoder) selection() string { return e.columns }

func (e *parquetEncoder) open(out io.Writer) {
	if e.out != nil { // what it has in memory serves the next file, too
		e.out.Reset(out)
		return
	}
	e.out = parquet.NewGenericWriter[any](out, e.schema, parquet.Compression(&parquet.Zstd),
		parquet.MaxRowsPerRowGroup(rowsTogether), parquet.CreatedBy("evictrail", "1", "1"))
}

func (e *parquetEncoder) write(row []any) error {
	e.row = e.row[:0]
	for i, v := range row {
		value, err := parquetValue(v)
		if err != nil {
			return err
		}
		defined := 1
		if v == nil {
			defined = 0
		}
		e.row = append(e.row, value.Level(0, defined, i))
	}
	_, err := e.out.WriteRows([]parquet.Row{e.row})
	return err
}

// parquetValue returns a value that was read as a file has it.
func parquetValue(v any) (parquet.Value, error) {
	switch v := v.(type) {
	case nil:
		return parquet.NullValue(), nil
	case string:
		return parquet.ByteArrayValue([]byte(v)), nil
	case bool:
		return parquet.BooleanValue(v), nil
	case int32:
		return parquet.Int32Value(v), nil
	case int64:
		return parquet.Int64Value(v), nil
	case float64:
		return parquet.DoubleValue(v), nil
	case time.Time:
		return parquet.Int64Value(v.UnixMicro()), nil
	}
	return parquet.Value{}, fmt.Errorf("cannot write %v, a %T, to Parquet", v, v)
}

func (e *parquetEncoder) close() error { return e.out.Close() }
