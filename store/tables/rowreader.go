package tables

import (
	"fmt"
	"reflect"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"

	"github.com/evictrail/evictrail/store/pg"
	"github.com/evictrail/evictrail/trail"
)

// ColumnsOf returns the columns of a derived row, in the order in which a RowReader reads them. What is in JSON itself cannot be read so.
func ColumnsOf[R any]() string { return strings.Join(jsonKeys(reflect.TypeFor[R]()), ", ") }

// RowReader reads rows of a subject and the columns of an R: to write hundreds of rows as JSON and to read that takes ten times as long. Of texts that come
// again, as most do, one copy is kept; what is NULL is zero. It is not safe for concurrent use.
type RowReader[R any] struct {
	Subject string
	Row     R // that was read last
	texts   map[string]string
	Into    []any // where columns are read into
}

// NewRowReader returns what reads rows of the columns "subject" and ColumnsOf[R]: they are scanned into Into, and are then in Subject and Row.
func NewRowReader[R any]() *RowReader[R] {
	r := &RowReader[R]{texts: map[string]string{}}
	r.Into = []any{textCell{r.texts, reflect.ValueOf(&r.Subject).Elem()}}
	row := reflect.ValueOf(&r.Row).Elem()
	for i := range row.NumField() { // these rows embed nothing
		if key, _, _ := strings.Cut(row.Type().Field(i).Tag.Get("json"), ","); key != "" && key != "-" {
			r.Into = append(r.Into, r.scanTarget(row.Field(i)))
		}
	}
	return r
}

// scanTarget returns where the column of a field is read into.
func (r *RowReader[R]) scanTarget(field reflect.Value) any {
	switch to := field.Addr().Interface().(type) {
	case *time.Time:
		return (*timeCell)(to)
	case *trail.FactID:
		return (*idCell)(to)
	case **trail.FactID:
		return idPointerCell{to}
	case *bool:
		return (*boolCell)(to)
	case *int:
		return (*intCell)(to)
	case *int64:
		return (*int64Cell)(to)
	case **int64, **float64: // pgx itself reads what may be NULL
		return to
	}
	if field.Kind() == reflect.String {
		return textCell{r.texts, field}
	}
	panic(fmt.Sprintf("read a column as %s", field.Type())) // a broken invariant: only such rows are read so
}

type (
	textCell struct {
		texts map[string]string
		to    reflect.Value
	}
	timeCell      time.Time
	idCell        trail.FactID
	idPointerCell struct{ to **trail.FactID }
	boolCell      bool
	intCell       int
	int64Cell     int64
)

// ScanBytes takes in a text.
func (c textCell) ScanBytes(raw []byte) error {
	kept, again := c.texts[string(raw)]
	if !again {
		kept = string(raw)
		c.texts[kept] = kept
	}
	c.to.SetString(kept)
	return nil
}

// ScanTimestamptz takes in a time.
func (c *timeCell) ScanTimestamptz(v pgtype.Timestamptz) error {
	*c = timeCell{}
	if v.Valid {
		*c = timeCell(v.Time.UTC())
	}
	return nil
}

// ScanUUID takes in the ID of a fact.
func (c *idCell) ScanUUID(v pgtype.UUID) error {
	*c = v.Bytes
	return nil
}

// ScanUUID takes in the ID of a fact.
func (c idPointerCell) ScanUUID(v pgtype.UUID) error {
	*c.to = nil
	if v.Valid {
		id := trail.FactID(v.Bytes)
		*c.to = &id
	}
	return nil
}

// ScanBool takes in what is true or not.
func (c *boolCell) ScanBool(v pgtype.Bool) error {
	*c = boolCell(v.Bool)
	return nil
}

// ScanInt64 takes in a number.
func (c *intCell) ScanInt64(v pgtype.Int8) error {
	*c = intCell(v.Int64)
	return nil
}

// ScanInt64 takes in a number; NULL is zero.
func (c *int64Cell) ScanInt64(v pgtype.Int8) error {
	*c = int64Cell(v.Int64)
	return nil
}

// CollectColumnsOf reads rows of a subject and the columns of an R into what is derived of the subjects, after what is there.
func CollectColumnsOf[R any](rows map[trail.Subject]trail.Derived, into func(*trail.Derived) *[]R) func(pgx.Rows) error {
	return func(answer pgx.Rows) error {
		var r *RowReader[R]
		found := map[string][]R{}
		for answer.Next() {
			if r == nil { // most answers are empty
				r = NewRowReader[R]()
			}
			if err := answer.Scan(r.Into...); err != nil {
				return err
			}
			found[r.Subject] = append(found[r.Subject], r.Row)
		}
		if err := answer.Err(); err != nil {
			return err
		}
		for subject, its := range found {
			if err := appendDerived(rows, subject, into, its...); err != nil {
				return err
			}
		}
		return nil
	}
}

// CollectOf reads rows of a subject and a JSON object each into what is derived of the subjects, after what is there.
func CollectOf[R any](rows map[trail.Subject]trail.Derived, into func(*trail.Derived) *[]R) func(pgx.Rows) error {
	return pg.EachRow(func(row pgx.CollectableRow) error {
		var text string
		var r R
		if err := row.Scan(&text, &r); err != nil {
			return err
		}
		return appendDerived(rows, text, into, r)
	})
}

// appendDerived adds rows to what is derived of a subject.
func appendDerived[R any](rows map[trail.Subject]trail.Derived, subject string, into func(*trail.Derived) *[]R, its ...R) error {
	s, err := trail.ParseSubject(subject)
	d := rows[s]
	list := into(&d)
	*list = append(*list, its...)
	rows[s] = d
	return err
}
