package api

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/evictrail/evictrail/trail"
)

var queryNow = time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)

func TestReadQuery(t *testing.T) {
	t.Parallel()
	day := time.Date(2026, 11, 21, 0, 0, 0, 0, time.UTC)
	key := &trail.Key{At: day.AddDate(0, 0, -1), ID: "x", Cluster: "c"}
	page := writePage(asked{Query: trail.Query{Before: key}})
	for _, c := range []struct {
		name  string
		view  trail.View
		query string
		want  asked
		says  string
	}{
		{"nothing", trail.ViewGaps, "", asked{Query: trail.Query{Limit: 200}}, ""},
		{"everything", trail.ViewRequests, "cluster=c&namespace=n&vm=v&node=w&since=1h&until=2026-11-21&changes-since=2026-11-21&repeats=false&limit=10000&format=csv",
			asked{trail.Query{Cluster: "c", Namespace: "n", VMI: "v", Node: "w", Since: queryNow.Add(-time.Hour), Until: day, ChangedSince: day, First: true, Limit: 10000}, "csv"}, ""},
		{"open", trail.ViewLoops, "open=true", asked{Query: trail.Query{Open: true, Limit: 200}}, ""},
		{"not only open", trail.ViewLoops, "open=false", asked{Query: trail.Query{Limit: 200}}, ""},
		{"the state open", trail.ViewLoops, "state=open", asked{Query: trail.Query{Open: true, Limit: 200}}, ""},
		{"the state closed, the oldest first", trail.ViewLoops, "state=closed&order=oldest", asked{Query: trail.Query{Closed: true, Oldest: true, Limit: 200}}, ""},
		{"values of closed sets", trail.ViewMigrations, "phase=Failed&trigger=drain", asked{Query: trail.Query{Values: map[string]string{"phase": "Failed", "trigger": "drain"}, Limit: 200}}, ""},
		{"another value", trail.ViewMigrations, "phase=Broken", asked{}, `phase "Broken": expected one of Pending, `},
		{"open and closed", trail.ViewLoops, "open=true&state=closed", asked{}, "are of no row at once"},
		{"no state", trail.ViewLoops, "state=half", asked{}, "expected open or closed"},
		{"no order", trail.ViewLoops, "order=random", asked{}, "expected newest or oldest"},
		{"a page of the oldest leaves as much", trail.ViewLoops, "since=32d&order=oldest&page=" + page, asked{}, "more than 31 days"},
		{"a month", trail.ViewLoops, "since=31d", asked{Query: trail.Query{Since: queryNow.AddDate(0, 0, -31), Limit: 200}}, ""},
		{"more", trail.ViewLoops, "since=32d", asked{}, "more than 31 days: ask for less at once, or leave out since"},
		{"more, long ago", trail.ViewLoops, "since=2020-01-01&until=2020-02-02", asked{}, "more than 31 days"},
		{"a month, long ago", trail.ViewLoops, "since=2020-01-01&until=2020-02-01",
			asked{Query: trail.Query{Since: time.Date(2020, 1, 1, 0, 0, 0, 0, time.UTC), Until: time.Date(2020, 2, 1, 0, 0, 0, 0, time.UTC), Limit: 200}}, ""},
		{"what a page leaves of more", trail.ViewLoops, "since=32d&page=" + page, asked{Query: trail.Query{Since: queryNow.AddDate(0, 0, -32), Before: key, Limit: 200}}, ""},
		{"unknown", trail.ViewGaps, "vm=x", asked{}, `there is no parameter "vm" here: there are cluster, since, until, changes-since, open, state, ended-since, ended-until, source, order, limit, page, format`},
		{"a view that does not last", trail.ViewTimeline, "open=true", asked{}, "there is no parameter"},
		{"twice", trail.ViewGaps, "cluster=a&cluster=a", asked{}, "cluster is given 2 times"},
		{"empty", trail.ViewGaps, "cluster=", asked{}, "cluster is empty: leave it out"},
		{"no time", trail.ViewGaps, "since=yesterday", asked{}, `since "yesterday": expected a time`},
		{"no number", trail.ViewGaps, "limit=many", asked{}, "expected a number from 1 to 10000"},
		{"too many", trail.ViewGaps, "limit=10001", asked{}, "expected a number from 1 to 10000"},
		{"all", trail.ViewGaps, "limit=0", asked{}, "more rows come by pages"},
		{"no page", trail.ViewGaps, "page=2", asked{}, "expected what the header Link"},
		{"no format", trail.ViewGaps, "format=xml", asked{}, "expected json or csv"},
		{"neither", trail.ViewLoops, "open=1", asked{}, "expected true or false"},
		{"two namespaces", trail.ViewLoops, "namespace=a&vm=b/c", asked{}, "vm b/c is not in namespace a"},
		{"no text", trail.ViewLoops, "cluster=%ff", asked{}, "expected text in UTF-8"},
		{"nothing to compare", trail.ViewLoops, "vm=%00", asked{}, "expected text in UTF-8"},
		{"no query string", trail.ViewLoops, "a;b", asked{}, "the query string cannot be read"},
		{"no code", trail.ViewLoops, "vm=%zz", asked{}, "the query string cannot be read"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			got, err := readQuery(c.view, c.query, queryNow)
			if c.says != "" {
				require.ErrorContains(t, err, c.says)
				var p *Problem
				require.ErrorAs(t, err, &p)
				return
			}
			require.NoError(t, err)
			require.Equal(t, c.want, got)
		})
	}
}

// FuzzQuery reads what anybody may send. What is understood keeps within its bounds, and means the same when a client writes it.
func FuzzQuery(f *testing.F) {
	views := trail.Views()
	f.Fuzz(func(t *testing.T, view uint8, raw string) {
		v := views[int(view)%len(views)]
		got, err := readQuery(v, raw, queryNow)
		if err != nil {
			var p *Problem
			require.ErrorAs(t, err, &p)
			require.Equal(t, 400, p.Status)
			require.NotEmpty(t, p.Detail)
			return
		}
		require.True(t, got.Limit >= 1 && got.Limit <= MaxLimit)
		require.True(t, got.Since.IsZero() || got.rangeEnd(queryNow).Sub(got.Since) <= MaxRange)
		for _, text := range []string{got.Cluster, got.Namespace, got.VMI, got.Node} {
			require.True(t, isText(text))
		}
		require.False(t, strings.Contains(got.VMI, "/") || got.First && v.Repeat == "" || got.Open && v.End == "")
		again, err := readQuery(v, ListURL(v, got.Query, got.format).RawQuery, queryNow)
		require.NoError(t, err)
		require.Equal(t, got, again)
	})
}
