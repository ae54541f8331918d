package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/evictrail/evictrail/trail"
)

// watchRows shows the rows again and again until the context ends, which is no error. On a terminal each look replaces the one before; elsewhere the first one is
// followed by what changed. Only the first look may fail: after that who is asked may be away for a while.
func (l list) watchRows(ctx context.Context, s *source, q *queryFlags, out, notes io.Writer) error {
	changes := &changeLog{view: l.view, wide: q.output == outputWide}
	warned := ""
	for first := true; ; first = false {
		on := detectTerminal(out, q.color)
		var text, warnings bytes.Buffer
		t, err := answerOne(ctx, s, func(ctx context.Context, r reader) (trail.Table, error) {
			text.Reset()
			warnings.Reset()
			return l.lookAgain(ctx, r, q, on, &text, &warnings)
		})
		switch {
		case ctx.Err() != nil:
			return nil
		case err != nil && first && !errors.Is(err, trail.ErrNotFound):
			return err
		case err != nil:
			printTextf(&warnings, "evictrail: %v\n", err)
		}
		if on.interactive {
			title := fmt.Sprintf("evictrail %s, every %s, at %s. Ctrl-C ends.", l.view.Noun, q.every, nowUTC().Format(cellTime+"Z"))
			printTextf(out, "\x1b[H\x1b[2J%s\n%s\n%s", title, warnings.String(), text.String())
		} else {
			if warnings.String() != warned {
				printTextf(notes, "%s", warnings.String())
				warned = warnings.String()
			}
			if first && len(t.Rows) == 0 {
				printTextf(out, "%s", text.String()) // that there are none
			}
			if err == nil || errors.Is(err, trail.ErrNotFound) {
				printTextf(out, "%s", changes.record(t, nowUTC()))
			}
		}
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(q.every):
		}
	}
}

// lookAgain reads the rows once, and writes them for a terminal.
func (l list) lookAgain(ctx context.Context, s reader, q *queryFlags, on terminal, out, notes io.Writer) (trail.Table, error) {
	t, unseen, err := l.loadTable(ctx, s, q, notes)
	if err != nil {
		return t, err
	}
	if len(t.Rows) > 0 {
		printTextf(out, "%s", renderList(t, l.view, q.output == outputWide, on))
	}
	return t, l.explainNothing(ctx, s, q, len(t.Rows), unseen, out)
}

// countingColumns have another value at each look, although nothing happened.
var countingColumns = []string{"remaining", "overdue"}

// changeLog says which rows of a list came, changed and went from one look to the next.
type changeLog struct {
	view    trail.View
	wide    bool
	started bool
	widths  []int
	rows    map[string]watchedRow // by ID and cluster
}

type watchedRow struct {
	texts []string
	state string // what has to be another one for the row to have changed
}

// record compares a look with the one before and returns a line for each difference; of the first look, a line for each row.
func (c *changeLog) record(t trail.Table, at time.Time) string {
	table := newTextTable(t, c.view, columnsOf(t, c.view, c.wide), c.wide)
	now := make(map[string]watchedRow, len(t.Rows))
	var order []string
	for i, row := range t.Rows {
		cell := cellsOf(t, row)
		key := cell(c.view.Key) + " " + cell("cluster")
		var state strings.Builder
		for j, column := range t.Columns {
			if !slices.Contains(countingColumns, column) && row[j] != nil {
				state.WriteString(column + "\x00" + *row[j] + "\x00")
			}
		}
		now[key] = watchedRow{table.rows[i].cells, state.String()}
		order = append(order, key)
	}
	diff := textTable{columns: append([]tableColumn{{head: "SEEN (UTC)"}, {head: "CHANGE"}}, table.columns...)}
	add := func(change string, row watchedRow) {
		diff.rows = append(diff.rows, tableRow{cells: append([]string{at.Format(cellTime), change}, row.texts...)})
	}
	for _, key := range order {
		before, known := c.rows[key]
		switch {
		case !c.started:
			add("listed", now[key])
		case !known:
			add("new", now[key])
		case before.state != now[key].state:
			add("changed", now[key])
		}
	}
	var gone []string
	for key := range c.rows {
		if _, still := now[key]; !still {
			gone = append(gone, key)
		}
	}
	slices.Sort(gone)
	for _, key := range gone {
		add("gone", c.rows[key])
	}
	c.rows, c.started = now, true
	if len(diff.rows) == 0 {
		return ""
	}
	return c.renderLines(diff)
}

// renderLines returns the lines of a table below those of earlier ones: columns grow, and the head stands above the first ones.
func (c *changeLog) renderLines(diff textTable) string {
	shown, widths := diff.fit(0)
	head := c.widths == nil
	for i := range c.widths {
		widths[i] = max(widths[i], c.widths[i])
	}
	c.widths = widths
	var out strings.Builder
	if head {
		heads := make([]string, len(diff.columns))
		for i, column := range diff.columns {
			heads[i] = column.head
		}
		out.WriteString(diff.renderRow(heads, shown, widths))
	}
	for _, row := range diff.rows {
		out.WriteString(diff.renderRow(row.cells, shown, widths))
	}
	return out.String()
}
