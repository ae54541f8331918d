package collector

import (
	"context"
	"errors"
	"fmt"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/evictrail/evictrail/remote"
	"github.com/evictrail/evictrail/trail"
)

// loadSource is a source of load that a test makes up.
type loadSource struct {
	origin trail.LoadOrigin
	knows  bool  // of each node that it is asked about
	err    error // it answers with
	asked  []string
}

func (s *loadSource) Origin() trail.LoadOrigin { return s.origin }

func (s *loadSource) Loads(_ context.Context, nodes map[string]bool, from, to time.Time) (trail.Loads, error) {
	out := trail.Loads{Origin: s.origin, Metrics: []trail.LoadMetric{{Name: "cpu"}}, Points: map[trail.LoadKey][]trail.LoadPoint{}}
	var names []string
	for n := range nodes {
		names = append(names, n)
		for at := from; s.knows && !at.After(to); at = at.Add(time.Minute) {
			key := trail.LoadKey{Node: n, Metric: "cpu"}
			out.Points[key] = append(out.Points[key], trail.LoadPoint{At: at, Value: 0.5})
		}
	}
	slices.Sort(names)
	s.asked = append(s.asked, fmt.Sprintf("%s for %s", strings.Join(names, " "), to.Sub(from)))
	return out, s.err
}

// listLoads returns what was recorded: the moment, and whether it is known.
func (s *sink) listLoads() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	var out []string
	for _, f := range s.facts {
		if d, ok := f.Detail.(*trail.LoadDetail); ok {
			out = append(out, fmt.Sprintf("%s %s of %s %s", d.Origin, f.What, f.MigrationUID, f.Reason))
		}
	}
	slices.Sort(out)
	return out
}

// TestLookRecordsWhatIsDue looks at the load of nodes once, at migrations of several ages.
func TestLookRecordsWhatIsDue(t *testing.T) {
	t.Parallel()
	failed := func(uid string, ago time.Duration) trail.Moved {
		end := auditNow.Add(-ago)
		return trail.Moved{Migration: trail.Migration{UID: uid, Attempt: 2, SourceNode: "n1", TargetNode: "n2", FinishedAt: end, CreatedAt: end, Outcome: trail.OutcomeFailed}}
	}
	gone := errors.New("away")
	for _, c := range []struct {
		name    string
		moved   []trail.Moved
		source  loadSource
		last    bool
		want    []string // moments of Prometheus
		asked   []string
		refused error
	}{
		{
			name: "known", moved: []trail.Moved{failed("a", 2*time.Minute), failed("b", 3*time.Minute), failed("now", time.Second)}, source: loadSource{knows: true},
			want: []string{"load/end of a sampled", "load/end of b sampled"}, asked: []string{"n1 n2 for 6m0s"},
		},
		{
			name: "hours apart", moved: []trail.Moved{failed("a", 5*time.Hour), failed("b", 3*time.Minute)}, source: loadSource{knows: true},
			want: []string{"load/end of a sampled", "load/end of b sampled"}, asked: []string{"n1 n2 for 5m0s", "n1 n2 for 5m0s"},
		},
		{
			name: "recorded before", moved: []trail.Moved{func() trail.Moved {
				m := failed("a", 2*time.Minute)
				m.Looked = map[string]struct{}{"load/end prometheus": {}}
				return m
			}()}, source: loadSource{knows: true},
		},
		{name: "it may come", moved: []trail.Moved{failed("a", 9*time.Minute)}, asked: []string{"n1 n2 for 5m0s"}},
		{name: "it will not come", moved: []trail.Moved{failed("a", 11*time.Minute)}, want: []string{"load/end of a not_sampled"}, asked: []string{"n1 n2 for 5m0s"}},
		{name: "away", moved: []trail.Moved{failed("a", 5*time.Hour), failed("b", 3*time.Hour)}, source: loadSource{err: gone}, asked: []string{"n1 n2 for 5m0s"}},
		{name: "away for hours", moved: []trail.Moved{failed("a", 335*time.Minute), failed("b", 3*time.Hour)}, source: loadSource{err: gone}, want: []string{"load/end of a not_sampled"}, asked: []string{"n1 n2 for 5m0s", "n1 n2 for 5m0s"}},
		{name: "partly known", moved: []trail.Moved{failed("a", 9*time.Minute)}, source: loadSource{knows: true, err: gone}, asked: []string{"n1 n2 for 5m0s"}},
		{name: "partly known for long", moved: []trail.Moved{failed("a", 11*time.Minute)}, source: loadSource{knows: true, err: gone}, want: []string{"load/end of a sampled"}, asked: []string{"n1 n2 for 5m0s"}},
		{name: "a recording ends", moved: []trail.Moved{failed("a", time.Second)}, source: loadSource{err: gone}, last: true, want: []string{"load/end of a not_sampled"}, asked: []string{"n1 n2 for 5m0s"}},
		{name: "nothing moved", source: loadSource{knows: true}},
		{name: "no database", refused: errors.New("no database")},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			r := startCollector(t, newAPI(), &sink{}, useAuditClock)
			s := c.source
			s.origin = trail.OriginPrometheus
			var since time.Time
			l := r.NewLoadContext(func(_ context.Context, from time.Time) ([]trail.Moved, error) {
				since = from
				return c.moved, c.refused
			}, &s)
			require.ErrorIs(t, l.Look(t.Context(), c.last), c.refused)
			require.Equal(t, auditNow.Add(-lookFor), since)
			require.NoError(t, r.Flush(t.Context()))
			var want []string
			for _, w := range c.want {
				want = append(want, "prometheus "+w)
			}
			require.Equal(t, want, r.sink.listLoads())
			require.Equal(t, c.asked, s.asked)
			require.Equal(t, s.err != nil && len(c.asked) > 0, strings.Contains(r.log.String(), "node load not read"))
		})
	}
}

// TestNodeViewIsKeptForAWhile reads a descheduler that reports how it sees the nodes.
func TestNodeViewIsKeptForAWhile(t *testing.T) {
	t.Parallel()
	p := &page{}
	server := httptest.NewServer(p)
	t.Cleanup(server.Close)
	r := startCollector(t, newAPI(), &sink{}, useAuditClock)
	s, err := r.NewScraper(ScrapeTarget{Server: remote.Server{URL: server.URL}, Interval: ScrapeInterval})
	require.NoError(t, err)
	view := func(value string) string {
		return scrapeText(1795221213) + `descheduler_lownodeutilization_node_utilization_value{node="n1",resource="cpu"} ` + value + `
descheduler_lownodeutilization_node_utilization_value{node="n2",resource="cpu"} 0.1
descheduler_lownodeutilization_node_utilization_threshold{node="n1",resource="cpu",threshold_type="high"} 0.5
descheduler_lownodeutilization_node_utilization_threshold{node="n1",resource="cpu",threshold_type="low"} 0.2
`
	}
	p.setText(scrapeText(1795221213))
	require.NoError(t, s.Scrape(t.Context()))
	loads, err := s.Load().Loads(t.Context(), map[string]bool{"n1": true}, auditNow.Add(-time.Hour), auditNow)
	require.NoError(t, err)
	require.Empty(t, loads.Metrics, "one that says nothing of nodes has no metric")

	p.setText(view("0.6"))
	require.NoError(t, s.Scrape(t.Context()))
	loads, err = s.Load().Loads(t.Context(), map[string]bool{"n1": true}, auditNow.Add(-time.Hour), auditNow)
	require.NoError(t, err)
	require.Equal(t, []trail.LoadMetric{{Name: "descheduler:cpu"}}, loads.Metrics)
	half := 0.5
	require.Equal(t, map[trail.LoadKey][]trail.LoadPoint{{Node: "n1", Metric: "descheduler:cpu"}: {{At: auditNow, Value: 0.6, Threshold: &half}}}, loads.Points)

	v := &s.view
	v.add(auditNow.Add(viewFor), map[trail.LoadKey]trail.LoadPoint{{Node: "n1", Metric: "descheduler:cpu"}: {Value: 0.7}})
	const key = len("n1descheduler:cpu")
	require.Equal(t, 2*key+3*viewSize, v.bytes, "what is two hours old is kept")
	v.add(auditNow.Add(viewFor+time.Second), map[trail.LoadKey]trail.LoadPoint{{Node: "n1", Metric: "descheduler:cpu"}: {Value: 0.7}})
	require.Equal(t, key+2*viewSize, v.bytes, "what is older is not, and a node that is reported no more is forgotten")
	many := map[trail.LoadKey]trail.LoadPoint{}
	for i := range viewMost/viewSize - 100_000 {
		many[trail.LoadKey{Node: fmt.Sprint(i)}] = trail.LoadPoint{}
	}
	v.add(auditNow.Add(viewFor+time.Hour), many)
	require.LessOrEqual(t, v.bytes, viewMost)
	require.NotEmpty(t, v.points[trail.LoadKey{Node: "0"}], "the oldest go first")
}
