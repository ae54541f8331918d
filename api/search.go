package api

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"time"

	"github.com/evictrail/evictrail/trail"
)

const searchPath = "/api/v1/search"

// SearchQuery asks for what has a text in its name.
type SearchQuery struct {
	Cluster string // empty: of all clusters
	Text    string
}

// SearchAnswer is what a search found.
type SearchAnswer struct {
	Found []trail.Found `json:"found"`
	Total int           `json:"total"` // of what there is, also of what is not in Found
}

// searchParams are the parameters of a search, named as on the page that shows the same.
func searchParams() []param[SearchQuery] {
	return []param[SearchQuery]{
		{
			name: "q",
			about: "A part of the name of a VM (also namespace/name) or of a node, " +
				"the beginning of that of a migration, or a UID.",
			schema:  newTextSchema(),
			example: "db-1",
			must:    true,
			read: readText(
				"q",
				func(q *SearchQuery) *string { return &q.Text },
			),
			write: func(q SearchQuery) string { return q.Text },
		},
		{
			name:    "cluster",
			about:   "Only in this cluster.",
			schema:  newTextSchema(),
			example: "prod",
			read: readText(
				"cluster",
				func(q *SearchQuery) *string { return &q.Cluster },
			),
			write: func(q SearchQuery) string { return q.Cluster },
		},
	}
}

// SearchURL returns the path, relative to that of evictrail, and the query string of a search.
func SearchURL(q SearchQuery) *url.URL {
	return &url.URL{Path: searchPath, RawQuery: writeParams(searchParams(), q).Encode()}
}

// answerSearch answers what has a text in its name.
func answerSearch(ctx context.Context, reader Reader, r *http.Request) (reply, error) {
	var q SearchQuery
	if err := readParams(searchParams(), r.URL.RawQuery, time.Now().UTC(), &q); err != nil {
		return reply{}, err
	}
	found, total, err := reader.Find(ctx, q.Cluster, q.Text)
	if found == nil {
		found = []trail.Found{} // an empty array, not null
	}
	return newJSONReply(SearchAnswer{found, total}, err)
}

func (s *reads) searchRoute() route {
	return route{
		method:   http.MethodGet,
		path:     searchPath,
		tag:      tagNames,
		id:       "search",
		short:    "Search VMs, nodes and migrations",
		about:    fmt.Sprintf("What is named exactly so first, then what begins so; at most %d.", trail.MostFound),
		params:   describeParams(searchParams()),
		problems: readProblems,
		answers: []answer{
			{http.StatusOK, "What was found.", readHeaders, jsonContent(newRefSchema("Search"), exampleSearch)},
			newUnchangedAnswer(readHeaders),
		},
		handler: s.newHandler(answerSearch),
	}
}

var exampleSearch = SearchAnswer{
	Total: 1,
	Found: []trail.Found{
		{
			Cluster:   "prod",
			Kind:      trail.FoundVM,
			Namespace: "shop",
			Name:      "db-1",
			Node:      "worker-1",
			State:     trail.VMRunning,
		},
	},
}

func searchSchema() schema {
	found := newObjectSchema([]string{"cluster", "kind", "name"}, fields{
		{"cluster", newTextSchema()},
		{"kind", withDescription(oneOf(trail.FoundKinds()...), "What it is.")},
		{"namespace", withDescription(newTextSchema(), "Missing for a node.")},
		{"name", newTextSchema()},
		{"vmi", withDescription(newTextSchema(), "The VM that a migration moves. Missing for others.")},
		{"uid", withDescription(newTextSchema(), "Of a migration; of a VM only where it was searched for.")},
		{"node", withDescription(newTextSchema(), "On which a VM runs now. Missing where it does not run.")},
		{"state", withDescription(oneOf(trail.VMStates()...), "Of a VM that runs now. Missing for others.")},
	})
	return withDescription(newObjectSchema([]string{"found", "total"}, fields{
		{"found", listOf(found)},
		{
			"total",
			newCountSchema(
				fmt.Sprintf(
					"Of what there is, also of what is left out. Of migrations that begin so no more than %d count.",
					trail.MostCounted,
				),
			),
		},
	}), "What a search found.")
}
