package client

import (
	"bytes"
	"context"
	"encoding/csv"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/evictrail/evictrail/api"
	"github.com/evictrail/evictrail/trail"
)

// pageRows is how many rows are asked for at once.
const pageRows = 1000

// ListJSON is Store.ListJSON.
func (c *Client) ListJSON(ctx context.Context, v trail.View, q trail.Query) (trail.Page[json.RawMessage], error) {
	read := func(body []byte) (rows []json.RawMessage, err error) {
		err = json.Unmarshal(body, &rows)
		return rows, err
	}
	at := func(row json.RawMessage) (at time.Time, err error) {
		var cells map[string]json.RawMessage
		if err := json.Unmarshal(row, &cells); err != nil {
			return at, err
		}
		err = json.Unmarshal(cells[v.At], &at)
		return at, err
	}
	p := pager[json.RawMessage]{client: c, view: v, format: "json", read: read, at: at, size: pageRows}
	return p.fetchAll(ctx, q)
}

// ListText is Store.ListText, but for empty cells: CSV does not distinguish them from NULL, and so they are nil.
func (c *Client) ListText(ctx context.Context, v trail.View, q trail.Query) (trail.Table, error) {
	var t trail.Table
	read := func(body []byte) ([][]*string, error) {
		one, err := readCSV(body)
		t.Columns = one.Columns
		return one.Rows, err
	}
	at := func(row []*string) (time.Time, error) {
		i := slices.Index(t.Columns, v.At)
		if i < 0 || row[i] == nil {
			return time.Time{}, errors.New("no column " + v.At)
		}
		return time.Parse(trail.CellTime, *row[i])
	}
	p := pager[[]*string]{client: c, view: v, format: "csv", read: read, at: at, size: pageRows}
	page, err := p.fetchAll(ctx, q)
	t.Page = page
	return t, err
}

var mediaTypes = map[string]string{"json": "application/json", "csv": "text/csv"}

// pager gathers the rows of a list, page by page.
type pager[Row any] struct {
	client *Client
	view   trail.View
	format string
	read   func([]byte) ([]Row, error)
	at     func(Row) (time.Time, error) // the time of a row
	size   int                          // of the next page
}

// fetchAll asks page after page until there are as many rows as wanted, or no more. A server refuses ranges of more than 31
// days: of those it asks without since, and stops at the first row that is older.
func (p *pager[Row]) fetchAll(ctx context.Context, q trail.Query) (trail.Page[Row], error) {
	var got trail.Page[Row]
	wanted, since := q.Limit, time.Time{}
	if longerThanAllowed(q) {
		q.Since, since = time.Time{}, q.Since.Truncate(time.Microsecond) // as exact as Postgres
	}
	for {
		q.Limit = p.size
		if wanted > 0 {
			q.Limit = min(p.size, wanted-len(got.Rows))
		}
		page, err := p.fetchPage(ctx, q)
		if err != nil {
			return trail.Page[Row]{}, err
		}
		older, err := p.firstBefore(page.Rows, since)
		if err != nil {
			return trail.Page[Row]{}, fmt.Errorf("read answer of %s: %w", p.client.base, err)
		}
		got.Rows, got.Next = append(got.Rows, page.Rows[:older]...), page.Next
		if older < len(page.Rows) {
			got.Next = nil
		}
		if got.Next == nil || wanted > 0 && len(got.Rows) >= wanted {
			return got, nil
		}
		q.Before = got.Next
	}
}

// longerThanAllowed reports whether a server could refuse the range; its clock may differ from ours by a day.
func longerThanAllowed(q trail.Query) bool {
	until := q.Until
	if until.IsZero() {
		until = time.Now()
	}
	return !q.Since.IsZero() && until.Sub(q.Since) > api.MaxRange-24*time.Hour
}

// fetchPage asks for one page, for fewer rows where so many are too large.
func (p *pager[Row]) fetchPage(ctx context.Context, q trail.Query) (trail.Page[Row], error) {
	body, header, err := p.client.get(ctx, api.ListURL(p.view, q, p.format), mediaTypes[p.format])
	var large *api.Problem
	if errors.As(err, &large) && large.Type == api.ProblemTooLarge && large.FittingLimit < q.Limit {
		p.size = max(1, large.FittingLimit)
		q.Limit = p.size
		return p.fetchPage(ctx, q)
	}
	if err != nil {
		return trail.Page[Row]{}, err
	}
	rows, err := p.read(body)
	if err != nil {
		return trail.Page[Row]{}, fmt.Errorf("read answer of %s: %w", p.client.base, err)
	}
	key, err := parseNextKey(header)
	if err != nil {
		return trail.Page[Row]{}, fmt.Errorf("read answer of %s: %w", p.client.base, err)
	}
	return trail.Page[Row]{Rows: rows, Next: key}, nil
}

// firstBefore returns the index of the first row from before since; the number of rows where there is none, or no since.
func (p *pager[Row]) firstBefore(rows []Row, since time.Time) (int, error) {
	if since.IsZero() {
		return len(rows), nil
	}
	for i, row := range rows {
		at, err := p.at(row)
		if err != nil || at.Before(since) {
			return i, err
		}
	}
	return len(rows), nil
}

// parseNextKey returns the key that the header Link names; nil where there are no older rows.
func parseNextKey(header http.Header) (*trail.Key, error) {
	link := header.Get("Link")
	if link == "" {
		return nil, nil
	}
	target, found := strings.CutSuffix(link, `>; rel="next"`)
	u, err := url.Parse(strings.TrimPrefix(target, "<"))
	if err != nil || !found {
		return nil, fmt.Errorf("header Link: %q", link)
	}
	key := new(trail.Key)
	return key, key.UnmarshalText([]byte(u.Query().Get("page")))
}

// readCSV reads a table. Go's reader drops a carriage return before a line break, also within a cell; so they pass it as
// zero bytes, which no text of Postgres has.
func readCSV(body []byte) (trail.Table, error) {
	records, err := csv.NewReader(bytes.NewReader(bytes.ReplaceAll(body, []byte("\r"), []byte{0}))).ReadAll()
	if err != nil {
		return trail.Table{}, err
	}
	if len(records) == 0 {
		return trail.Table{}, errors.New("the table has no head")
	}
	t := trail.Table{Columns: records[0]}
	for _, record := range records[1:] {
		row := make([]*string, len(record))
		for i, cell := range record {
			if cell != "" {
				text := api.CellText(strings.ReplaceAll(cell, "\x00", "\r"))
				row[i] = &text
			}
		}
		t.Rows = append(t.Rows, row)
	}
	return t, nil
}
