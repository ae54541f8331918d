package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/evictrail/evictrail/api"
	"github.com/evictrail/evictrail/api/web"
	"github.com/evictrail/evictrail/trail"
)

// answerList answers with the rows of a view, as the command prints them to a file.
func (a assistant) answerList(ctx context.Context, l list, arguments json.RawMessage) (toolAnswer, error) {
	query, err := api.ReadList(l.view, arguments, nowUTC())
	if err != nil {
		return toolAnswer{}, err
	}
	asked, notes := queryFlags{query: query, output: outputTable}, bytes.Buffer{}
	table, unseen, err := l.loadTable(ctx, a.reader, &asked, &notes)
	if err != nil {
		return toolAnswer{}, err
	}
	query.First = true // as the table has them
	page, err := a.reader.ListJSON(ctx, l.view, query)
	if err != nil {
		return toolAnswer{}, err
	}
	text, objects, next := table.Rows, page.Rows, page.Next
	slices.Reverse(objects)
	rows := min(len(text), len(objects))
	out, shown, err := fitAnswer(rows, func(newest int) (toolAnswer, error) {
		table.Rows = text[len(text)-newest:]
		return newToolAnswer(l.renderRows(table), slices.Concat([]json.RawMessage{}, objects[len(objects)-newest:]))
	})
	if err != nil {
		return toolAnswer{}, err
	}
	if rows == 0 {
		if out.text, err = l.explainNoRows(ctx, a.reader, &asked, unseen); err != nil {
			return toolAnswer{}, err
		}
	}
	for line := range strings.Lines(notes.String()) {
		out.notes = append(out.notes, strings.TrimSpace(strings.TrimPrefix(line, "evictrail: ")))
	}
	if shown < rows {
		query.Limit = shown
		if page, err = a.reader.ListJSON(ctx, l.view, query); err != nil {
			return toolAnswer{}, err
		}
		next = page.Next
	}
	if next != nil {
		key, err := next.MarshalText()
		if err != nil {
			return toolAnswer{}, err
		}
		out.nextPage = string(key)
		out.notes = append(
			out.notes,
			fmt.Sprintf(
				"Older rows are left out: these are the newest %d. "+
					"Ask again with page set to next_page for those before them, or for less.",
				shown,
			),
		)
	}
	out.addListPages(l.view, asked.query, objects[len(objects)-shown:])
	return out, nil
}

// renderRows returns a table of rows, in which nothing is shortened for a terminal.
func (l list) renderRows(t trail.Table) string {
	if len(t.Rows) == 0 {
		return ""
	}
	return renderList(t, l.view, false, terminal{})
}

// explainNoRows says why a list is empty. Only a cluster that is not known is an error.
func (l list) explainNoRows(ctx context.Context, s api.Reader, q *queryFlags, unseen bool) (string, error) {
	q.query.Open = q.query.Open && l.view.End != ""
	var b bytes.Buffer
	err := l.explainNothing(ctx, s, q, 0, unseen, &b)
	var unknown *unknownClusterError
	if errors.Is(err, trail.ErrNotFound) && !errors.As(err, &unknown) {
		return err.Error() + "\n", nil
	}
	return b.String(), err
}

// addListPages names the page of a list and, of loops, that of each row.
func (a *toolAnswer) addListPages(v trail.View, q trail.Query, rows []json.RawMessage) {
	q.Limit, q.Before = 0, nil
	a.addPage("Page", web.ListPage(v, api.ListURL(v, q, "").Query()))
	if v.Name != trail.ViewLoops.Name {
		return
	}
	for _, row := range slices.Backward(rows) {
		var loop struct {
			Cluster string `json:"cluster"`
			trail.Loop
		}
		if json.Unmarshal(row, &loop) == nil {
			about := loop.Node
			if loop.VMI != "" {
				about = loop.Namespace + "/" + loop.VMI
			}
			a.addPage(trail.UpperFirst(loop.Kind.Label().Short)+" of "+about, web.LoopPage(loop.Cluster, loop.ID))
		}
	}
}
