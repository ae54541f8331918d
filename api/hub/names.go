package hub

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"github.com/evictrail/evictrail/api"
	"github.com/evictrail/evictrail/trail"
)

// nameClusters finds under which name each cluster is known here: its own, or SOURCE/NAME where two sources have one of that name.
func (a *asking) nameClusters() {
	count := map[string]int{}
	for _, lines := range a.clusters {
		for _, l := range lines {
			count[l.Name]++
		}
	}
	a.names = map[place]string{}
	for i, s := range a.hub.sources {
		for _, l := range a.clusters[i] {
			name := l.Name
			if count[l.Name] > 1 {
				name = s.name + "/" + l.Name
			}
			a.names[place{s, l.Name}] = name
		}
	}
}

// nameOf returns the name under which a cluster of a source is known here. One that is new since the survey has that of its source.
func (a *asking) nameOf(s *source, cluster string) string {
	if name, known := a.names[place{s, cluster}]; known || cluster == "" {
		return name
	}
	return cluster
}

// nameOfSource returns a name by which all that a source records can be asked for: that of its only cluster, or SOURCE/.
func (a *asking) nameOfSource(s *source) string {
	if lines := a.clusters[slices.Index(a.hub.sources, s)]; len(lines) == 1 {
		return a.nameOf(s, lines[0].Name)
	}
	return s.name + "/"
}

// locate returns the places of a cluster that is asked for; of all sources that answer where none is. None: nobody who answers knows it. Errors: an
// *api.Problem where a source is missing that may know it, *trail.AmbiguousError where several have one of that name.
func (a *asking) locate(ctx context.Context, cluster string) ([]place, error) {
	if name, of, qualified := strings.Cut(cluster, "/"); qualified && !a.isKnown(ctx, cluster) {
		if s := a.hub.find(name); s != nil {
			return []place{{s, of}}, nil
		}
	}
	if err := a.survey(ctx); err != nil {
		return nil, err
	}
	var found []place
	for i, s := range a.hub.sources {
		if a.clusters[i] == nil {
			continue
		}
		if cluster == "" {
			found = append(found, place{source: s})
		} else if slices.ContainsFunc(a.clusters[i], func(l trail.FleetLine) bool { return l.Name == cluster }) {
			found = append(found, place{s, cluster})
		}
	}
	switch missing := a.listMissing(); {
	case cluster == "" || len(found) == 1:
		return found, nil
	case len(found) > 1:
		ambiguous := &trail.AmbiguousError{Name: cluster}
		for _, at := range found {
			ambiguous.Clusters = append(ambiguous.Clusters, a.names[at])
		}
		return nil, ambiguous
	case slices.ContainsFunc(missing, func(m trail.MissingSource) bool { return !m.Refused }):
		return nil, api.NewProblem(http.StatusServiceUnavailable, fmt.Sprintf("no source that answers has a cluster named %q. %s", cluster, trail.DescribeMissing(missing)))
	}
	return nil, nil
}

// isKnown reports whether a source that answers has a cluster of exactly this name.
func (a *asking) isKnown(ctx context.Context, cluster string) bool {
	if a.survey(ctx) != nil {
		return false
	}
	for _, lines := range a.clusters {
		if slices.ContainsFunc(lines, func(l trail.FleetLine) bool { return l.Name == cluster }) {
			return true
		}
	}
	return false
}
