package hub

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/evictrail/evictrail/api"
	"github.com/evictrail/evictrail/api/client"
	"github.com/evictrail/evictrail/trail"
	"github.com/evictrail/evictrail/trail/forecast"
)

// lastName comes after all names of clusters.
const lastName = "\uffff"

// never is the time of a row without one: Postgres has it after all others.
var never = time.Date(9999, 12, 31, 0, 0, 0, 0, time.UTC)

func textOf(cell *string) string {
	if cell == nil {
		return ""
	}
	return *cell
}

// row is a row of a list: what it says, where it stands, and in which source.
type row[R any] struct {
	value R
	key   trail.Key
	at    place
}

// mergeRows gathers the rows of a list. They are ordered by time, then ID, as those of each source; of equal ones those of an earlier source come first. A key
// names its source, so that each source goes on behind it.
func mergeRows[P, R any](ctx context.Context, h *Hub, q trail.Query, ask func(context.Context, *client.Client, trail.Query) (P, error), split func(*asking, place, P) (trail.Page[row[R]], error)) (trail.Page[row[R]], error) {
	var all [][]row[R]
	var wrong error
	more := false
	err := gatherAnswers(ctx, q.Cluster, func(ctx context.Context, c *client.Client, at place) (P, error) {
		q := q
		q.Cluster, q.Before = at.cluster, h.keyIn(at.source, q)
		return ask(ctx, c, q)
	}, func(a *asking, at place, answer P) {
		page, err := split(a, at, answer)
		wrong = cmp.Or(wrong, err)
		all, more = append(all, page.Rows), more || page.Next != nil
	})
	if err = cmp.Or(err, wrong); err != nil {
		return trail.Page[row[R]]{}, err
	}
	out := trail.Page[row[R]]{}
	for {
		next := -1
		for i, rows := range all {
			if len(rows) > 0 && (next < 0 || isBefore(rows[0].key, all[next][0].key, q.Oldest)) {
				next = i
			}
		}
		if next < 0 || q.Limit > 0 && len(out.Rows) == q.Limit {
			more = more || next >= 0
			break
		}
		out.Rows, all[next] = append(out.Rows, all[next][0]), all[next][1:]
	}
	if more && len(out.Rows) > 0 {
		last := out.Rows[len(out.Rows)-1]
		out.Next = &trail.Key{At: last.key.At, ID: last.key.ID, Cluster: last.at.source.name + "/" + last.key.Cluster}
	}
	return out, nil
}

// isBefore reports whether a row comes before another one of a later source.
func isBefore(a, b trail.Key, oldest bool) bool {
	order := cmp.Or(a.At.Compare(b.At), cmp.Compare(a.ID, b.ID))
	return oldest && order < 0 || !oldest && order > 0
}

// keyIn returns the key behind which a source goes on: of rows with the time and the ID of the key, those of an earlier source have been listed, and those of
// a later one have not.
func (h *Hub) keyIn(s *source, q trail.Query) *trail.Key {
	if q.Before == nil {
		return nil
	}
	key := *q.Before
	name, cluster, _ := strings.Cut(key.Cluster, "/")
	of := slices.IndexFunc(h.sources, func(s *source) bool { return s.name == name })
	switch here := slices.Index(h.sources, s); {
	case here == of:
		key.Cluster = cluster
	case here < of != q.Oldest:
		key.Cluster = ""
	default:
		key.Cluster = lastName
	}
	return &key
}

// ListJSON implements api.Reader.
func (r reader) ListJSON(ctx context.Context, v trail.View, q trail.Query) (out trail.Page[json.RawMessage], err error) {
	merged, err := mergeRows(ctx, r.hub, q, func(ctx context.Context, c *client.Client, q trail.Query) (trail.Page[json.RawMessage], error) {
		return c.ListJSON(ctx, v, q)
	}, func(a *asking, at place, page trail.Page[json.RawMessage]) (split trail.Page[row[json.RawMessage]], err error) {
		split.Next = page.Next
		for _, value := range page.Rows {
			var cells map[string]json.RawMessage
			one := row[json.RawMessage]{value: value, at: at, key: trail.Key{At: never}}
			if err := json.Unmarshal(value, &cells); err != nil {
				return split, fmt.Errorf("read row of source %s: %w", at.source.name, err)
			}
			for column, into := range map[string]any{"cluster": &one.key.Cluster, v.Key: &one.key.ID, v.At: &one.key.At} {
				if err := json.Unmarshal(cells[column], into); err != nil {
					return split, fmt.Errorf("read row of source %s: column %s: %w", at.source.name, column, err)
				}
			}
			if name := a.nameOf(at.source, one.key.Cluster); name != one.key.Cluster {
				if one.value, err = renameCluster(value, name); err != nil {
					return split, err
				}
			}
			split.Rows = append(split.Rows, one)
		}
		return split, nil
	})
	for _, one := range merged.Rows {
		out.Rows = append(out.Rows, one.value)
	}
	out.Next = merged.Next
	return out, err
}

// renameCluster sets the column cluster of a row, and leaves the rest of it as it is.
func renameCluster(value json.RawMessage, name string) (json.RawMessage, error) {
	d := json.NewDecoder(bytes.NewReader(value))
	if _, err := d.Token(); err != nil {
		return nil, err
	}
	for d.More() {
		column, err := d.Token()
		if err != nil {
			return nil, err
		}
		from := d.InputOffset()
		var cell json.RawMessage
		if err := d.Decode(&cell); err != nil {
			return nil, err
		}
		if column == "cluster" {
			quoted, err := json.Marshal(name)
			return slices.Concat(value[:from], []byte(":"), quoted, value[d.InputOffset():]), err
		}
	}
	return value, nil
}

// ListText implements api.Reader. The columns are those of the first source that has rows: another version of evictrail may have others, and is
// refused.
func (r reader) ListText(ctx context.Context, v trail.View, q trail.Query) (t trail.Table, err error) {
	merged, err := mergeRows(ctx, r.hub, q, func(ctx context.Context, c *client.Client, q trail.Query) (trail.Table, error) {
		return c.ListText(ctx, v, q)
	}, func(a *asking, at place, part trail.Table) (split trail.Page[row[[]*string]], err error) {
		if t.Columns == nil {
			t.Columns = part.Columns
		}
		if !slices.Equal(t.Columns, part.Columns) {
			a.markMissing(at.source, trail.MissingSource{Why: "it has other columns of " + v.Noun + ": run the same version of evictrail as the other sources"}, http.StatusBadGateway)
			return split, nil
		}
		split.Next = part.Next
		cell := func(cells []*string, column string) *string { return cells[slices.Index(part.Columns, column)] }
		for _, cells := range part.Rows {
			one := row[[]*string]{value: cells, at: at}
			key, cluster, when := cell(cells, v.Key), cell(cells, "cluster"), cell(cells, v.At)
			one.key = trail.Key{ID: textOf(key), Cluster: textOf(cluster), At: never}
			if when != nil {
				if one.key.At, err = time.Parse(trail.CellTime, *when); err != nil {
					return split, fmt.Errorf("read row of source %s: %w", at.source.name, err)
				}
			}
			if name := a.nameOf(at.source, one.key.Cluster); name != one.key.Cluster {
				one.value = slices.Clone(cells)
				one.value[slices.Index(part.Columns, "cluster")] = &name
			}
			split.Rows = append(split.Rows, one)
		}
		return split, nil
	})
	if t.Columns == nil { // nobody was asked
		for _, c := range api.Columns() {
			if c.View == v.Name {
				t.Columns = append(t.Columns, c.Name)
			}
		}
	}
	for _, one := range merged.Rows {
		t.Rows = append(t.Rows, one.value)
	}
	t.Next = merged.Next
	return t, err
}

// asAmbiguous returns the clusters among which a source cannot choose.
func asAmbiguous(err error) (*trail.AmbiguousError, bool) {
	return errors.AsType[*trail.AmbiguousError](err)
}

func isNotFound(err error) bool { return errors.Is(err, trail.ErrNotFound) }

// namesOf returns the names under which clusters of a source are known here.
func (a *asking) namesOf(s *source, clusters []string) []string {
	names := make([]string, len(clusters))
	for i, c := range clusters {
		names[i] = a.nameOf(s, c)
	}
	return names
}

// renameAmbiguous has an error name clusters as they are known here.
func (a *asking) renameAmbiguous(s *source, err error) error {
	if ambiguous, is := asAmbiguous(err); is {
		return &trail.AmbiguousError{Name: ambiguous.Name, Clusters: a.namesOf(s, ambiguous.Clusters)}
	}
	return err
}

// The errors of pages are refusals, where a source or nobody answers.

// Summaries implements web.FleetReader.
func (p pages) Summaries(ctx context.Context) ([]trail.ClusterSummary, error) {
	all, err := p.reader.Summaries(ctx)
	return all, refuseVisitor(err)
}

// Recorders implements web.FleetReader.
func (p pages) Recorders(ctx context.Context, cluster string, from, to time.Time) ([]trail.RecorderStatus, error) {
	all, err := p.reader.Recorders(ctx, cluster, from, to)
	return all, refuseVisitor(err)
}

// Fleet implements web.FleetReader.
func (p pages) Fleet(ctx context.Context, worst bool) ([]trail.FleetLine, error) {
	all, err := p.reader.Fleet(ctx, worst)
	return all, refuseVisitor(err)
}

// Compare implements web.FleetReader.
func (p pages) Compare(ctx context.Context, q trail.CompareQuery) ([]trail.ClusterComparison, error) {
	all, err := p.reader.Compare(ctx, q)
	return all, refuseVisitor(err)
}

// Limits implements web.FleetReader.
func (p pages) Limits(ctx context.Context, cluster string) ([]forecast.Limits, error) {
	all, err := p.reader.Limits(ctx, cluster)
	return all, refuseVisitor(err)
}

// Weekly implements web.FleetReader.
func (p pages) Weekly(ctx context.Context, q trail.WeeklyQuery) ([]trail.Weekly, error) {
	all, err := p.reader.Weekly(ctx, q)
	return all, refuseVisitor(err)
}

// Find implements web.FleetReader.
func (p pages) Find(ctx context.Context, cluster, text string) ([]trail.Found, int, error) {
	found, total, err := p.reader.Find(ctx, cluster, text)
	return found, total, refuseVisitor(err)
}

// ListText implements web.FleetReader.
func (p pages) ListText(ctx context.Context, v trail.View, q trail.Query) (trail.Table, error) {
	t, err := p.reader.ListText(ctx, v, q)
	return t, refuseVisitor(err)
}

// Nodes implements web.FleetReader.
func (p pages) Nodes(ctx context.Context, q trail.NodeQuery) ([]trail.NodeSummary, error) {
	all, err := p.reader.Nodes(ctx, q)
	return all, refuseVisitor(err)
}

var _ api.Reader = reader{}
