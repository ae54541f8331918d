package store

// text is a column of text; what is NULL is empty. Of texts that come again, as most do, one copy is kept.
type text struct {
	kept keptTexts
	last string // in the row that was read last
}

// keptTexts has the texts that were read lately.
type keptTexts map[string]string

// mostTexts is how many texts are kept: there may be hundreds of thousands that come once.
const mostTexts = 20_000

// ScanBytes takes in the column of a row.
func (t *text) ScanBytes(raw []byte) error {
	kept, again := t.kept[string(raw)]
	if !again {
		if len(t.kept) >= mostTexts {
			clear(t.kept)
		}
		kept = string(raw)
		t.kept[kept] = kept
	}
	t.last = kept
	return nil
}

// shareTexts has those columns of rows that are texts keep one copy together.
func shareTexts(columns []any) {
	kept := keptTexts{}
	for _, c := range columns {
		if t, ok := c.(*text); ok {
			t.kept = kept
		}
	}
}
