package fold

import (
	"bytes"
	"encoding/json"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/evictrail/evictrail/trail"
)

// difference compares the rows of one subject with those that are derived of it now.
type difference struct {
	subject   trail.Subject
	from      time.Time // rows that had ended before then are frozen; zero: none is
	now       time.Time
	rederived bool // derived again, of no new facts: what changes is no news
	changes   *Changes
	ties      ties          // of the lines as they are after it
	was, is   trail.Derived // the rows that changed, before and after
	err       error         // the first row that cannot be written
}

// updateWindow brings the rows of a window to what is derived, and notes what changes. Rows that are frozen stay. It returns the rows that
// changed, as they were and as they are.
func (c *Changes) updateWindow(w *Window, next trail.Derived, from, now time.Time, rederived bool) (was, is trail.Derived, err error) {
	d := &difference{subject: w.Subject, from: from, now: now, rederived: rederived, changes: c, ties: ties{}}
	partly := !from.IsZero()
	compareTable(d, &requestTable, w, &next)
	compareTable(d, &evacuationTable, w, &next)
	compareTable(d, &migrationTable, w, &next)
	compareTable(d, &placementTable, w, &next)
	compareTable(d, &decisionTable, w, &next)
	compareTable(d, &loopTable, w, &next)
	if !partly || len(next.Drains) > 0 { // what is left of a drain is reported until there is another
		compareTable(d, &blockerTable, w, &next)
	}
	compareTable(d, &drainTable, w, &next)
	compareTable(d, &consequenceTable, w, &next)
	compareTable(d, &outageTable, w, &next)
	compareTable(d, &gapTable, w, &next)
	d.ties = tiesOf(next.Timeline)
	compareTable(d, &lineTable, w, &next)
	w.ties = d.ties
	return d.was, d.is, d.err
}

// ties are the places of lines among those of the same time, from 0, which is not in it.
type ties map[trail.FactID]int

func tiesOf(lines []trail.Line) ties {
	out := ties{}
	for i, l := range lines {
		if i > 0 && l.At.Equal(lines[i-1].At) {
			out[l.EventID] = out[lines[i-1].EventID] + 1
		}
	}
	return out
}

// rowWithTie returns a row as it is written.
func (t ties) rowWithTie(row any) any {
	if l, ok := row.(*trail.Line); ok {
		return &Line{*l, t[l.EventID]}
	}
	return row
}

// isUnchanged reports whether a row is written as it was: rows whose JSON is the same are the same.
func (d *difference) isUnchanged(was, is any, before ties) bool {
	if l, ok := was.(*trail.Line); ok && before[l.EventID] != d.ties[l.EventID] {
		return false
	}
	return reflect.DeepEqual(was, is) || bytes.Equal(d.encodeRow(was), d.encodeRow(is))
}

// encodeRow returns a row as it is written; nil where it cannot be, which is noted.
func (d *difference) encodeRow(row any) []byte {
	text, err := json.Marshal(row)
	if err != nil && d.err == nil {
		d.err = err
	}
	return text
}

// compareTable compares the rows of one table.
func compareTable[R trail.Row](d *difference, t *table[R], w *Window, next *trail.Derived) {
	frozen := func(r *R) bool { return trail.EndedBefore(*r, d.from) }
	olds, news := *t.rows(&w.Rows), *t.rows(next)
	if len(olds)+len(news) == 0 {
		return
	}
	before := make(map[string]*R, len(olds))
	for i := range olds {
		before[t.key(&olds[i])] = &olds[i]
	}
	rows := make([]R, 0, len(news))
	var changed []trail.RowChange[R]
	for i := range news {
		r := &news[i]
		key := t.key(r)
		was, known := before[key]
		delete(before, key)
		if frozen(r) && (!known || frozen(was)) {
			if known {
				rows = append(rows, *was)
			}
			continue
		}
		rows = append(rows, *r)
		if known && d.isUnchanged(was, r, w.ties) {
			continue
		}
		change := trail.RowChange[R]{ID: key, Row: *r}
		if known {
			change.Change = trail.ChangeOther
			change.Was, change.Judged = t.describeEnd(was)
			*t.rows(&d.was) = append(*t.rows(&d.was), *was)
		}
		*t.rows(&d.is) = append(*t.rows(&d.is), *r)
		d.setRow(t.name, key, d.ties.rowWithTie(r))
		changed = append(changed, change)
	}
	var gone []*R
	for _, was := range before {
		switch {
		case frozen(was):
			rows = append(rows, *was)
		case t.name == loopTable.name:
			refuted := any(refuteLoop(any(*was).(trail.Loop), d.now)).(*R)
			if !d.isUnchanged(was, refuted, nil) {
				d.setRow(t.name, t.key(refuted), refuted)
			}
			rows = append(rows, *refuted)
		default:
			gone = append(gone, was)
		}
	}
	slices.SortFunc(gone, func(a, b *R) int { return strings.Compare(t.key(a), t.key(b)) })
	for _, was := range gone {
		*t.rows(&d.was) = append(*t.rows(&d.was), *was)
		d.setRow(t.name, t.key(was), nil)
	}
	slices.SortStableFunc(rows, func(a, b R) int { return t.begun(&a).Compare(t.begun(&b)) })
	*t.rows(&w.Rows) = rows
	if t.changes != nil && !d.rederived {
		list := t.changes(&d.changes.News)
		*list = append(*list, t.linkRenamed(changed, gone)...)
	}
}

// linkRenamed ties rows that came to those that went, in a table whose rows may get another key, and adds those that are gone.
func (t *table[R]) linkRenamed(changed []trail.RowChange[R], gone []*R) []trail.RowChange[R] {
	for i := range changed {
		if c := &changed[i]; t.renamed && c.Change == trail.ChangeNew && len(gone) > 0 {
			c.Instead = t.key(gone[0])
			c.Was, c.Judged = t.describeEnd(gone[0])
			gone = gone[1:]
		}
	}
	for _, was := range gone {
		changed = append(changed, trail.RowChange[R]{ID: t.key(was), Change: trail.ChangeGone})
	}
	return changed
}

// describeEnd returns how a row had ended, and whether what came of it was final.
func (t *table[R]) describeEnd(r *R) (outcome string, judged bool) {
	if t.outcome != nil {
		outcome = t.outcome(r)
	}
	return outcome, t.judged != nil && t.judged(r)
}

// refuteLoop returns a loop that was reported and is not derived any more: it stays, as refuted.
func refuteLoop(l trail.Loop, now time.Time) *trail.Loop {
	if l.ClosedBy == trail.LoopRefuted {
		return &l
	}
	if l.ClosedAt.IsZero() {
		l.ClosedAt = now
	}
	l.ClosedAt, l.ClosedBy = maxTime(l.ClosedAt, l.OpenedAt), trail.LoopRefuted
	return &l
}

// setRow notes a row as it stands now; nil: it is no more.
func (d *difference) setRow(table, key string, value any) {
	d.changes.setRow(table, RowKey{d.subject, key}, value)
}
