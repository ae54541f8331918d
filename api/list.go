package api

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"time"

	"github.com/evictrail/evictrail/trail"
)

// changesHeader names the time to go on with in changes-since: ours when the list was asked for, or that for which a standby answered, less changesSlack. Rows
// that others were writing during that time bear a time from before they could be seen, and the database's clock is not ours: so a
// row may come twice, and none is missed as long as a transaction and the difference of the clocks are shorter together.
const (
	changesHeader = "Evictrail-Changes-Since"
	changesSlack  = time.Minute
)

// listRows answers with rows of a view, the newest first.
func listRows(v trail.View) asking {
	return func(ctx context.Context, reader Reader, r *http.Request) (reply, error) {
		now := time.Now().UTC()
		a, err := readQuery(v, r.URL.RawQuery, now)
		if err != nil {
			return reply{}, err
		}
		if a.format == "" {
			if a.format, err = acceptedFormat(r.Header.Values("Accept")); err != nil {
				return reply{}, err
			}
		}
		body, next, err := renderRows(ctx, reader, v, a)
		if err != nil {
			return reply{}, err
		}
		header := http.Header{"Vary": {"Accept"}}
		if next != nil {
			header.Set("Link", formatNextLink(r.URL.Query(), next))
		}
		from, to := a.Period(next, now)
		note, err := addListRecorders(ctx, reader, header, a.Cluster, from, to)
		if err != nil {
			return reply{}, err
		}
		if note != nil && note.Standby.Answered() && note.Standby.AsOf.Before(now) {
			now = note.Standby.AsOf
		}
		header.Set(changesHeader, now.Add(-changesSlack).Format(time.RFC3339))
		return reply{contentTypes[a.format], header, body}, nil
	}
}

var contentTypes = map[string]string{"json": "application/json", "csv": "text/csv; charset=utf-8; header=present"}

// formatNextLink names the next page, relative to this one, so that it holds behind whatever leads to us.
func formatNextLink(query url.Values, next *trail.Key) string {
	query.Set("page", writePage(asked{Query: trail.Query{Before: next}}))
	return "<?" + query.Encode() + `>; rel="next"`
}

// renderRows asks for a page, no larger than an answer may be, and writes it in the format asked for.
func renderRows(ctx context.Context, reader Reader, v trail.View, a asked) ([]byte, *trail.Key, error) {
	a.MaxBytes = readBody
	if a.format == "csv" {
		t, err := reader.ListText(ctx, v, a.Query)
		if err != nil {
			return nil, nil, orTooLarge(err)
		}
		var b bytes.Buffer
		err = WriteCSV(&b, t)
		return b.Bytes(), t.Next, cmp.Or(err, checkSize(len(t.Rows), b.Len()))
	}
	page, err := reader.ListJSON(ctx, v, a.Query)
	if err != nil {
		return nil, nil, orTooLarge(err)
	}
	body := jsonRows(page.Rows)
	return body, page.Next, checkSize(len(page.Rows), len(body))
}

// jsonRows writes rows as an array, a row a line.
func jsonRows(rows []json.RawMessage) []byte {
	size := len("[\n]\n")
	for _, row := range rows {
		size += len(",\n") + len(row)
	}
	var b bytes.Buffer
	b.Grow(size) // doubled as it grows, it would take twice as much
	b.WriteByte('[')
	for i, row := range rows {
		if i > 0 {
			b.WriteByte(',')
		}
		b.WriteByte('\n')
		b.Write(row)
	}
	if len(rows) > 0 {
		b.WriteByte('\n')
	}
	b.WriteString("]\n")
	return b.Bytes()
}

// checkSize refuses an answer that is too large as it is written, with quotes and line breaks. The rows that it names are fewer than there were.
func checkSize(rows, size int) error {
	if size <= readBody {
		return nil
	}
	return tooLarge(int(int64(rows) * readBody / int64(size)))
}

// orTooLarge returns what a client learns about an error of a Reader.
func orTooLarge(err error) error {
	if large, is := errors.AsType[*trail.TooLargeError](err); is {
		return tooLarge(large.Rows)
	}
	return err
}

// tooLarge refuses an answer of which only the newest so many rows would fit.
func tooLarge(fit int) error {
	fit = max(1, fit)
	p := newProblem(http.StatusBadRequest, fmt.Sprintf("the rows are more than %d MiB: lower the limit to %d, or ask for less, with a namespace, a VM, a node or since", readBody>>20, fit))
	p.Type, p.FittingLimit = ProblemTooLarge, fit
	return p
}

func (s *reads) listRoute(v trail.View) route {
	rows := mediaTypeEntry{mediaTypes["json"], listOf(newRefSchema(rowName(v))), nil}
	table := mediaTypeEntry{mediaTypes["csv"], newTextSchema(), nil}
	return route{
		method: http.MethodGet, path: listsPath + v.Noun, tag: tagLists, id: "list_" + v.Name, short: "List " + v.About,
		about: "The columns are those of the view evictrail_v1." + v.Name + ", ordered by " + v.At + ", the newest first.", params: describeParams(listParams(v)),
		answers:  []answer{{http.StatusOK, "Rows. CSV has a head, and nothing where a value is null. " + csvAbout, listHeaders, []mediaTypeEntry{rows, table}}, newUnchangedAnswer(listHeaders)},
		problems: listProblems, handler: s.newHandler(listRows(v)),
	}
}
