package store

import (
	"fmt"
	"reflect"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"

	"github.com/evictrail/evictrail/trail"
)

// columnsOf gives the columns of a derived row, in the order in which a rowReader reads them. What is in JSON itself cannot be read so.
func columnsOf[R any]() string { return strings.Join(jsonKeys(reflect.TypeFor[R]()), ", ") }

// rowReader reads rows of a subject and the columns of an R: to write hundreds of rows as JSON and to read that takes ten times as long. Of texts that come
// again, as most do, one copy is kept; what is NULL is zero.
type rowReader[R any] struct {
	subject string
	row     R // that was read last
	texts   map[string]string
	into    []any // where columns are read into
}

func newRowReader[R any]() *rowReader[R] {
	r := &rowReader[R]{texts: map[string]string{}}
	r.into = []any{textCell{r.texts, reflect.ValueOf(&r.subject).Elem()}}
	row := reflect.ValueOf(&r.row).Elem()
	for i := range row.NumField() { // these rows embed nothing
		if key, _, _ := strings.Cut(row.Type().Field(i).Tag.Get("json"), ","); key != "" && key != "-" {
			r.into = append(r.into, r.cell(row.Field(i)))
		}
	}
	return r
}

// cell gives where the column of a field is read into.
func (r *rowReader[R]) cell(field reflect.Value) any {
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

// collectColumnsOf reads rows of a subject and the columns of an R into what is derived of the subjects, after what is there.
func collectColumnsOf[R any](rows map[trail.Subject]trail.Derived, into func(*trail.Derived) *[]R) func(pgx.Rows) error {
	return func(answer pgx.Rows) error {
		var r *rowReader[R]
		found := map[string][]R{}
		for answer.Next() {
			if r == nil { // most answers are empty
				r = newRowReader[R]()
			}
			if err := answer.Scan(r.into...); err != nil {
				return err
			}
			found[r.subject] = append(found[r.subject], r.row)
		}
		if err := answer.Err(); err != nil {
			return err
		}
		for subject, its := range found {
			if err := collect(rows, subject, into, its...); err != nil {
				return err
			}
		}
		return nil
	}
}
