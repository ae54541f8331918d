package hub

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/evictrail/evictrail/alerts/backtest"
	"github.com/evictrail/evictrail/api"
	"github.com/evictrail/evictrail/api/client"
	"github.com/evictrail/evictrail/trail"
	"github.com/evictrail/evictrail/trail/forecast"
	"github.com/evictrail/evictrail/trail/whatif"
)

// reader answers for all sources: it implements api.Reader. Whose part is missing stands in the request (missingOf).
type reader struct{ hub *Hub }

// pages is a reader whose errors are those of pages.
type pages struct{ reader }

// gatherAnswers asks the places of a cluster, or all, and adds up what they answer. The first answer that is an error is that of all.
func gatherAnswers[T any](ctx context.Context, cluster string, ask func(context.Context, *client.Client, place) (T, error), add func(*asking, place, T)) error {
	a := askingOf(ctx)
	of, err := a.locate(ctx, cluster)
	if err != nil {
		return err
	}
	if cluster != "" && len(of) == 1 {
		value, err := askOne(ctx, a, of[0], ask)
		if err == nil {
			add(a, of[0], value)
		}
		return err
	}
	for _, got := range askAll(ctx, a, of, ask) {
		if got.err != nil {
			return got.err
		}
		if got.is {
			add(a, got.at, got.value)
		}
	}
	if len(of) > 0 && !slices.ContainsFunc(of, func(at place) bool { return !a.isMissing(at.source) }) {
		return a.newRefusal()
	}
	return nil
}

// Fleet implements api.Reader.
func (r reader) Fleet(ctx context.Context, worst bool) ([]trail.FleetLine, error) {
	var all []trail.FleetLine
	err := gatherAnswers(ctx, "", func(ctx context.Context, c *client.Client, at place) ([]trail.FleetLine, error) {
		if !worst {
			return at.source.clusters(ctx, askingOf(ctx).token, c)
		}
		return c.Fleet(ctx, true)
	}, func(a *asking, at place, lines []trail.FleetLine) {
		for _, l := range lines {
			l.Name, l.Source = a.nameOf(at.source, l.Name), at.source.name
			if l.Recorder != nil { // which others may have, too
				recorder := *l.Recorder
				recorder.Cluster = l.Name
				l.Recorder = &recorder
			}
			all = append(all, l)
		}
	})
	if worst {
		trail.SortFleet(all)
	} else {
		slices.SortFunc(all, func(a, b trail.FleetLine) int { return cmp.Compare(a.Name, b.Name) })
	}
	return all, err
}

// Summaries implements web.FleetReader.
func (r reader) Summaries(ctx context.Context) ([]trail.ClusterSummary, error) {
	lines, err := r.Fleet(ctx, false)
	all := make([]trail.ClusterSummary, len(lines))
	for i, l := range lines {
		all[i] = l.ClusterSummary
	}
	return all, err
}

// Find implements api.Reader.
func (r reader) Find(ctx context.Context, cluster, text string) (found []trail.Found, total int, err error) {
	err = gatherAnswers(ctx, cluster, func(ctx context.Context, c *client.Client, at place) (a api.SearchAnswer, err error) {
		a.Found, a.Total, err = c.Find(ctx, at.cluster, text)
		return a, err
	}, func(a *asking, at place, answer api.SearchAnswer) {
		total += answer.Total
		for _, f := range answer.Found {
			f.Cluster = a.nameOf(at.source, f.Cluster)
			found = append(found, f)
		}
	})
	trail.SortFound(found, text)
	return found[:min(len(found), trail.MostFound)], total, err
}

// Recorders implements api.Reader.
func (r reader) Recorders(ctx context.Context, cluster string, from, to time.Time) ([]trail.RecorderStatus, error) {
	return gatherByCluster(ctx, cluster, func(ctx context.Context, c *client.Client, cluster string) ([]trail.RecorderStatus, error) {
		return c.Recorders(ctx, cluster, from, to)
	}, func(s *trail.RecorderStatus) *string { return &s.Cluster })
}

// gatherByCluster asks all sources for what they say of a cluster, or of each, names these as the hub does, and returns it in the order
// of these names. The name of the cluster is where nameIn says.
func gatherByCluster[T any](
	ctx context.Context, cluster string, ask func(ctx context.Context, c *client.Client, cluster string) ([]T, error), nameIn func(*T) *string,
) ([]T, error) {
	var all []T
	err := gatherAnswers(ctx, cluster, func(ctx context.Context, c *client.Client, at place) ([]T, error) {
		return ask(ctx, c, at.cluster)
	}, func(a *asking, at place, found []T) {
		for i := range found {
			name := nameIn(&found[i])
			*name = a.nameOf(at.source, *name)
		}
		all = append(all, found...)
	})
	slices.SortStableFunc(all, func(a, b T) int { return cmp.Compare(*nameIn(&a), *nameIn(&b)) })
	return all, err
}

// Settings implements api.Reader.
func (r reader) Settings(ctx context.Context, q trail.SettingsQuery) ([]trail.SettingsInForce, error) {
	return gatherByCluster(ctx, q.Cluster, func(ctx context.Context, c *client.Client, cluster string) ([]trail.SettingsInForce, error) {
		q := q
		q.Cluster = cluster
		return c.Settings(ctx, q)
	}, func(s *trail.SettingsInForce) *string { return &s.Cluster })
}

// Compare implements api.Reader.
func (r reader) Compare(ctx context.Context, q trail.CompareQuery) ([]trail.ClusterComparison, error) {
	var all []trail.ClusterComparison
	err := gatherAnswers(ctx, q.Cluster, func(ctx context.Context, c *client.Client, at place) ([]trail.ClusterComparison, error) {
		q := q
		q.Cluster = at.cluster
		return c.Compare(ctx, q)
	}, func(a *asking, at place, compared []trail.ClusterComparison) {
		for _, c := range compared {
			c.Cluster, c.Source = a.nameOf(at.source, c.Cluster), at.source.name
			all = append(all, c)
		}
	})
	trail.SortCompared(all)
	return all, err
}

// Limits implements api.Reader.
func (r reader) Limits(ctx context.Context, cluster string) ([]forecast.Limits, error) {
	return gatherByCluster(ctx, cluster, func(ctx context.Context, c *client.Client, cluster string) ([]forecast.Limits, error) {
		return c.Limits(ctx, cluster)
	}, func(l *forecast.Limits) *string { return &l.Cluster })
}

// Weekly implements api.Reader.
func (r reader) Weekly(ctx context.Context, q trail.WeeklyQuery) ([]trail.Weekly, error) {
	return gatherByCluster(ctx, q.Cluster, func(ctx context.Context, c *client.Client, cluster string) ([]trail.Weekly, error) {
		q := q
		q.Cluster = cluster
		return c.Weekly(ctx, q)
	}, func(w *trail.Weekly) *string { return &w.Cluster })
}

// Nodes implements api.Reader.
func (r reader) Nodes(ctx context.Context, q trail.NodeQuery) ([]trail.NodeSummary, error) {
	var all []trail.NodeSummary
	err := gatherAnswers(ctx, q.Cluster, func(ctx context.Context, c *client.Client, at place) ([]trail.NodeSummary, error) {
		q := q
		q.Cluster = at.cluster
		return c.Nodes(ctx, q)
	}, func(a *asking, at place, nodes []trail.NodeSummary) {
		for _, n := range nodes {
			n.Cluster = a.nameOf(at.source, n.Cluster)
			all = append(all, n)
		}
	})
	slices.SortStableFunc(all, q.Order.Compare)
	if q.Limit > 0 {
		all = all[:min(len(all), q.Limit)]
	}
	return all, err
}

// Names implements api.Reader. Clusters have the names that they have here.
func (r reader) Names(ctx context.Context, q trail.NameQuery) ([]string, error) {
	var all []string
	var err error
	if q.Kind == trail.NameCluster {
		var clusters []trail.ClusterSummary
		clusters, err = r.Summaries(ctx)
		for _, c := range clusters {
			if strings.HasPrefix(c.Name, q.Prefix) && (q.Cluster == "" || q.Cluster == c.Name) {
				all = append(all, c.Name)
			}
		}
	} else {
		err = gatherAnswers(ctx, q.Cluster, func(ctx context.Context, c *client.Client, at place) ([]string, error) {
			q := q
			q.Cluster = at.cluster
			return c.Names(ctx, q)
		}, func(_ *asking, _ place, names []string) { all = append(all, names...) })
	}
	slices.Sort(all)
	all = slices.Compact(all)
	return all[:min(len(all), trail.MaxNames)], err
}

// Why implements api.Reader.
func (r reader) Why(ctx context.Context, q trail.Question) (trail.Answer, error) {
	return askSubject(ctx, q, (*client.Client).Why)
}

// WhyNot implements api.Reader.
func (r reader) WhyNot(ctx context.Context, q trail.Question) (trail.NotAnswer, error) {
	return askSubject(ctx, q, (*client.Client).WhyNot)
}

// DrainForecast implements api.Reader.
func (r reader) DrainForecast(ctx context.Context, q trail.Question) (forecast.Drain, error) {
	return askSubject(ctx, q, (*client.Client).DrainForecast)
}

// askSubject asks about a VM or a node: its cluster or, where none is named, all sources, of which one alone may know it.
func askSubject[T any](ctx context.Context, q trail.Question, ask func(*client.Client, context.Context, trail.Question) (T, error)) (answer T, err error) {
	a := askingOf(ctx)
	of, err := a.locate(ctx, q.Cluster)
	if err != nil {
		return answer, err
	}
	asked := func(ctx context.Context, c *client.Client, at place) (T, error) {
		q := q
		q.Cluster = at.cluster
		return ask(c, ctx, q)
	}
	if q.Cluster != "" && len(of) == 1 {
		answer, err = askOne(ctx, a, of[0], asked)
		return answer, a.renameAmbiguous(of[0].source, err)
	}
	var known []string
	for _, got := range askAll(ctx, a, of, asked) {
		switch ambiguous, is := asAmbiguous(got.err); {
		case got.is && got.err == nil:
			answer = got.value
			known = append(known, a.nameOfSource(got.at.source))
		case is:
			known = append(known, a.namesOf(got.at.source, ambiguous.Clusters)...)
		case got.err != nil && !isNotFound(got.err):
			return answer, got.err
		}
	}
	return answer, a.chooseOne(q.Of.Name, known, trail.NewNotFoundError(q.Of))
}

// chooseOne returns nil where one place knows something, else why there is no answer: none, where nobody is missing who may know it.
func (a *asking) chooseOne(what string, known []string, none error) error {
	missing := a.listMissing()
	switch {
	case len(known) == 1:
		return nil
	case len(known) > 1:
		return &trail.AmbiguousError{Name: what, Clusters: known}
	case slices.ContainsFunc(missing, func(m trail.MissingSource) bool { return !m.Refused }):
		return api.NewProblem(http.StatusServiceUnavailable, fmt.Sprintf("no source that answers knows %s. %s", what, trail.DescribeMissing(missing)))
	}
	return none
}

// WhatIf implements api.Reader.
func (r reader) WhatIf(ctx context.Context, q whatif.Question) (whatif.Answer, error) {
	return askHistory(ctx, r, q.Cluster, func(
		ctx context.Context, c *client.Client, cluster string,
	) (whatif.Answer, error) {
		q := q
		q.Cluster = cluster
		return c.WhatIf(ctx, q)
	}, func(a *whatif.Answer) *string { return &a.Cluster })
}

// Backtest implements api.Reader.
func (r reader) Backtest(ctx context.Context, q backtest.Question) (backtest.Answer, error) {
	return askHistory(ctx, r, q.Cluster, func(
		ctx context.Context, c *client.Client, cluster string,
	) (backtest.Answer, error) {
		q := q
		q.Cluster = cluster
		return c.Backtest(ctx, q)
	}, func(a *backtest.Answer) *string { return &a.Cluster })
}

// askHistory asks the source of a cluster, or of the only one, about its history, and names the cluster as the hub does.
// The name is where nameIn says.
func askHistory[T any](
	ctx context.Context, r reader, cluster string,
	ask func(ctx context.Context, c *client.Client, cluster string) (T, error), nameIn func(*T) *string,
) (answer T, err error) {
	a := askingOf(ctx)
	if cluster == "" {
		clusters, err := r.Summaries(ctx)
		if err != nil {
			return answer, err
		}
		var names []string
		for _, c := range clusters {
			names = append(names, c.Name)
		}
		none := fmt.Errorf("history: %w: no cluster is recorded yet", trail.ErrNotFound)
		if err := a.chooseOne("the history", names, none); err != nil {
			return answer, err
		}
		cluster = names[0]
	}
	of, err := a.locate(ctx, cluster)
	switch {
	case err != nil:
		return answer, err
	case len(of) != 1:
		return answer, fmt.Errorf("cluster %s: %w", cluster, trail.ErrNotFound)
	}
	answer, err = askOne(ctx, a, of[0], func(ctx context.Context, c *client.Client, at place) (T, error) {
		return ask(ctx, c, at.cluster)
	})
	if err == nil {
		*nameIn(&answer) = cluster
	}
	return answer, a.renameAmbiguous(of[0].source, err)
}
