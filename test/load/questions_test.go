package load_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"regexp"
	"slices"
	"testing"
	"text/tabwriter"
	"time"

	"github.com/evictrail/evictrail/store"
	"github.com/evictrail/evictrail/trail"
)

// question is a kind of question; each time it is asked it is about something else.
type question struct {
	name string
	ask  func(context.Context) error
}

// TestQuestions asks the store each kind of question that the API, the pages, the command line and the dashboards ask, again and again, one after the
// other, and prints how long that takes. Where others use the machine, the fastest of several times that the same is asked says more.
func TestQuestions(t *testing.T) { //nolint:paralleltest // what runs beside it would be measured, too
	s, url := openDatabase(t)
	of, before := loadSample(t, s), logSize(t)
	asked := regexp.MustCompile(*only)
	var table []timing
	for _, q := range append(buildQuestions(s, of), buildPanelQuestions(t, url, of)...) {
		if !asked.MatchString(q.name) {
			continue
		}
		took := timing{name: q.name}
		for began, about := time.Now(), uint64(0); time.Since(began) < *lasts; about++ {
			fastest := time.Duration(math.MaxInt64)
			for range *best {
				of.chance.Seed(about, 0)
				at := time.Now()
				if err := q.ask(t.Context()); err != nil {
					t.Errorf("%s: %v", q.name, err) // the others are asked all the same
				}
				fastest = min(fastest, time.Since(at))
			}
			took.all = append(took.all, fastest)
		}
		table = append(table, took)
	}
	writeTable(t.Output(), "question", table)
	writePlans(t, t.Output(), before)
}

// buildQuestions returns the kinds.
func buildQuestions(s *store.Store, of sample) []question {
	all := []question{
		{"why VM", func(ctx context.Context) error {
			_, err := s.Why(ctx, trail.Question{Cluster: large, Of: pickOne(of, of.vms)})
			return err
		}},
		{"why not VM", func(ctx context.Context) error {
			_, err := s.WhyNot(ctx, trail.Question{Cluster: large, Of: pickOne(of, of.vms)})
			return err
		}},
		{"why not node", func(ctx context.Context) error {
			_, err := s.WhyNot(ctx, trail.Question{Cluster: large, Of: pickOne(of, of.nodes)})
			return err
		}},
		{"why VM, a day ago", func(ctx context.Context) error {
			_, err := s.Why(ctx, trail.Question{Cluster: large, Of: pickOne(of, of.vms[:min(len(of.vms), drawnVMs)]), At: of.seen.Add(-24 * time.Hour)})
			return ignoreNotFound(err)
		}},
		{"why not node, an hour ago", func(ctx context.Context) error {
			_, err := s.WhyNot(ctx, trail.Question{Cluster: large, Of: pickOne(of, of.nodes), At: of.seen.Add(-time.Hour)})
			return ignoreNotFound(err)
		}},
		{"state", func(ctx context.Context) error { _, err := s.State(ctx, large, of.seen); return err }},
	}
	for name, text := range map[string]func() string{
		"a VM":                       func() string { _, name := pickOne(of, of.vms).VM(); return name },
		"a VM with its namespace":    func() string { return pickOne(of, of.vms).Name },
		"within names":               func() string { return fmt.Sprintf("%d", of.dice.IntN(100)) },
		"a node":                     func() string { return pickOne(of, of.nodes).Name },
		"a migration":                func() string { return pickOne(of, of.migrations).Name },
		"a UID":                      func() string { return pickOne(of, of.migrations).UID },
		"how all migrations begin":   func() string { return "kubevirt-evacuation-" },
		"what begins no name":        func() string { return fmt.Sprintf("nothing-%d", of.dice.IntN(1000)) },
		"what nearly all names have": func() string { return "vm" },
	} {
		all = append(all, question{"find " + name, func(ctx context.Context) error { _, _, err := s.Find(ctx, "", text()); return err }})
	}
	slices.SortStableFunc(all[6:], func(a, b question) int { return slices.Compare([]byte(a.name), []byte(b.name)) })
	for _, v := range trail.Views() {
		for _, l := range buildLists(v, of) {
			all = append(all, question{v.Noun + " " + l.name, func(ctx context.Context) error {
				q := l.query()
				q.Limit = 200
				_, err := s.ListJSON(ctx, v, q)
				return err
			}})
		}
	}
	return all
}

// ignoreNotFound takes it that something was not known yet in the past.
func ignoreNotFound(err error) error {
	if err != nil && !errors.Is(err, trail.ErrNotFound) {
		return err
	}
	return nil
}

// list is a way to ask for a list.
type list struct {
	name  string
	query func() trail.Query
}

// buildLists returns those that fit a view.
func buildLists(v trail.View, of sample) []list {
	all := []list{
		{"newest", func() trail.Query { return trail.Query{} }},
		{"newest of a cluster", func() trail.Query { return trail.Query{Cluster: large} }},
		{"of a day", func() trail.Query { return trail.Query{Cluster: large, Since: of.seen.Add(-24 * time.Hour)} }},
		{"of an hour weeks ago", func() trail.Query {
			until := of.seen.Add(-time.Duration(of.dice.IntN(14*24)) * time.Hour)
			return trail.Query{Since: until.Add(-time.Hour), Until: until}
		}},
	}
	if v.Changed != "" {
		all = append(all, list{"changed lately", func() trail.Query { return trail.Query{ChangedSince: time.Now().Add(-time.Minute)} }})
	}
	if v.End != "" {
		all = append(all, list{"open", func() trail.Query { return trail.Query{Open: true} }}, list{"open of a cluster", func() trail.Query { return trail.Query{Cluster: large, Open: true} }})
	}
	if v.HasVM() {
		for cluster, name := range map[string]string{"": "", large: " and cluster"} {
			all = append(all,
				list{"by VM" + name, func() trail.Query {
					namespace, vmi := pickOne(of, of.vms).VM()
					return trail.Query{Cluster: cluster, Namespace: namespace, VMI: vmi}
				}},
				list{"by namespace" + name, func() trail.Query { return trail.Query{Cluster: cluster, Namespace: pickOne(of, of.namespaces)} }},
				list{"by name alone" + name, func() trail.Query { _, vmi := pickOne(of, of.vms).VM(); return trail.Query{Cluster: cluster, VMI: vmi} }},
			)
		}
	}
	if v.HasNode() {
		for cluster, name := range map[string]string{"": "", large: " and cluster"} {
			all = append(all,
				list{"by node" + name, func() trail.Query { return trail.Query{Cluster: cluster, Node: pickOne(of, of.nodes).Name} }},
				list{"by node, of a day" + name, func() trail.Query {
					return trail.Query{Cluster: cluster, Node: pickOne(of, of.nodes).Name, Since: of.seen.Add(-24 * time.Hour)}
				}},
			)
		}
	}
	for i, key := range of.pages[v.Noun] {
		if i == 0 || i == 8 {
			all = append(all, list{fmt.Sprintf("page %d", i+2), func() trail.Query { return trail.Query{Cluster: large, Before: &key} }})
		}
	}
	slices.SortStableFunc(all[4:], func(a, b list) int { return slices.Compare([]byte(a.name), []byte(b.name)) })
	return all
}

// timing is how long each of some questions took.
type timing struct {
	name string
	all  []time.Duration
}

// quantile returns the time that a share of them did not exceed.
func (t timing) quantile(q float64) time.Duration {
	slices.Sort(t.all)
	return t.all[min(int(q*float64(len(t.all))), len(t.all)-1)]
}

func writeTable(to io.Writer, what string, table []timing) {
	w := tabwriter.NewWriter(to, 0, 0, 2, ' ', tabwriter.AlignRight)
	_, _ = fmt.Fprintf(w, "%s\ttimes\tp50\tp95\tp99\tmost\t\n", what)
	for _, t := range table {
		_, _ = fmt.Fprintf(w, "%s\t%d\t%s\t%s\t%s\t%s\t\n", t.name, len(t.all), formatMilliseconds(t.quantile(0.5)), formatMilliseconds(t.quantile(0.95)), formatMilliseconds(t.quantile(0.99)), formatMilliseconds(t.quantile(1)))
	}
	_ = w.Flush()
}

func formatMilliseconds(d time.Duration) string {
	return fmt.Sprintf("%.1f ms", float64(d.Microseconds())/1000)
}
