package export

import (
	"bufio"
	"io"

	"github.com/evictrail/evictrail/trail"
)

// encoder writes rows to a file. Its selection is what of a row v is read for it.
type encoder interface {
	selection() string
	open(out io.Writer)
	write(row []any) error // the values of the selection
	close() error          // writes what is left; out stays open
}

// newEncoder returns what writes the columns in a format. It is used for one file after the other.
func newEncoder(f Format, columns []trail.Column, withCluster bool) (encoder, error) {
	if f == Parquet {
		return newParquetEncoder(columns)
	}
	e := &jsonEncoder{rows: "to_jsonb(v)::text"}
	if !withCluster {
		e.rows = "(to_jsonb(v) - 'cluster')::text"
	}
	return e, nil
}

// jsonEncoder writes JSON lines, as Postgres makes them.
type jsonEncoder struct {
	rows string
	out  *bufio.Writer
}

func (e *jsonEncoder) selection() string { return e.rows }

func (e *jsonEncoder) open(out io.Writer) { e.out = bufio.NewWriterSize(out, 1<<16) }

func (e *jsonEncoder) write(row []any) error {
	text, _ := row[0].(string)
	_, _ = e.out.WriteString(text) // the writer keeps its error
	return e.out.WriteByte('\n')
}

func (e *jsonEncoder) close() error { return e.out.Flush() }
