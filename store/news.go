package store

import (
	"slices"
	"strings"

	"github.com/evictrail/evictrail/trail"
)

// tell adds to the news how the rows of one table changed. Of some tables nothing is told.
func (t *tables) tell(d *diff, news *trail.News) {
	if len(d.rows) == 0 {
		return
	}
	rows := t.rows[d.of.name]
	switch d.of.name {
	case "eviction_requests":
		news.Requests = append(news.Requests, told(d, rows, func(r requestRow) (string, trail.EvictionRequest) { return r.ID.String(), r.EvictionRequest })...)
	case "evacuations":
		news.Evacuations = append(news.Evacuations, told(d, rows, func(r evacuationRow) (string, trail.Evacuation) { return r.ID.String(), r.Evacuation })...)
	case "migrations":
		news.Migrations = append(news.Migrations, told(d, rows, func(r migrationRow) (string, trail.Migration) { return r.UID, r.Migration })...)
	case "placements":
		news.Placements = append(news.Placements, told(d, rows, func(r placementRow) (string, trail.Placement) { return r.ID.String(), r.Placement })...)
	case "cooldown_decisions":
		news.Decisions = append(news.Decisions, told(d, rows, func(r decisionRow) (string, trail.Decision) { return r.ID.String(), r.Decision })...)
	case "loops":
		news.Loops = append(news.Loops, told(d, rows, func(r loopRow) (string, trail.Loop) { return r.ID.String(), r.Loop })...)
	}
}

// told gives the rows that changed, each once, with what became of them. In a table whose rows may get another key, a row that came
// where another of the same subject went is taken for the same told anew: a request that the audit log names, once only its mark told of it.
func told[Row interface{ subject() string }, R any](d *diff, rows []any, of func(Row) (string, R)) []trail.Told[R] {
	gone := map[string][]changedRow{}
	for _, changes := range d.rows {
		if len(changes) == 1 && changes[0].Gone {
			gone[changes[0].Subject] = append(gone[changes[0].Subject], changes[0])
		}
	}
	for _, rows := range gone {
		slices.SortFunc(rows, func(a, b changedRow) int { return strings.Compare(a.Key, b.Key) })
	}
	out := make([]trail.Told[R], 0, len(d.rows))
	for _, row := range rows {
		id, r := of(row.(Row))
		changes := d.rows[clean(id)]
		if len(changes) == 0 {
			continue
		}
		t := trail.Told[R]{ID: id, Row: r}
		for _, c := range changes {
			if c.Gone {
				t.Change, t.Was, t.Judged = trail.ChangeOther, known(c.Ended), c.Judged
			}
		}
		if before := gone[row.(Row).subject()]; d.of.renamed && t.Change == trail.ChangeNew && len(before) > 0 {
			t.Instead, t.Was, t.Judged = before[0].Key, known(before[0].Ended), before[0].Judged
			gone[row.(Row).subject()] = before[1:]
		}
		out = append(out, t)
	}
	for _, left := range gone {
		for _, c := range left {
			out = append(out, trail.Told[R]{ID: c.Key, Change: trail.ChangeGone})
		}
	}
	return out
}
