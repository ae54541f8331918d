package pg

import "github.com/jackc/pgx/v5"

// EachRow returns what calls a function for each row of an answer, until that returns an error (pgx.QueuedQuery.Query).
func EachRow(read func(pgx.CollectableRow) error) func(pgx.Rows) error {
	return func(rows pgx.Rows) error {
		for rows.Next() {
			if err := read(rows); err != nil {
				return err
			}
		}
		return rows.Err()
	}
}

// CollectJSON returns what reads rows of one JSON object each into a list, in place of what that had.
func CollectJSON[R any](into *[]R) func(pgx.Rows) error {
	return func(rows pgx.Rows) (err error) {
		*into, err = pgx.CollectRows(rows, pgx.RowTo[R])
		return err
	}
}

// Text reads a column of text; what is NULL is empty. Of texts that come again, as most do, one copy is kept (ShareTexts).
type Text struct {
	Last string // in the row that was read last

	kept keptTexts
}

// keptTexts has the texts that were read lately.
type keptTexts map[string]string

// mostTexts is how many texts are kept: there may be hundreds of thousands that come once.
const mostTexts = 20_000

// ScanBytes reads the column of a row.
func (t *Text) ScanBytes(raw []byte) error {
	kept, again := t.kept[string(raw)]
	if !again {
		if len(t.kept) >= mostTexts {
			clear(t.kept)
		}
		kept = string(raw)
		t.kept[kept] = kept
	}
	t.Last = kept
	return nil
}

// ShareTexts has those columns of rows that are a *Text keep one copy together. It comes before a row is read.
func ShareTexts(columns []any) {
	kept := keptTexts{}
	for _, c := range columns {
		if t, ok := c.(*Text); ok {
			t.kept = kept
		}
	}
}
