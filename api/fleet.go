package api

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"github.com/evictrail/evictrail/trail"
)

const (
	clustersPath = "/api/v1/clusters"
	searchPath   = "/api/v1/search"
)

// clusterParams are the parameters of the list of clusters: whether the worst of each is wanted.
func clusterParams() []param[bool] {
	return []param[bool]{{
		name: "worst", about: "Sort the worst first, and say of each what that is. It costs more.", schema: schema{Type: types{"boolean"}}, example: "true",
		read:  readBool("worst", func(worst *bool, yes bool) { *worst = yes }),
		write: func(worst bool) string { return onlyIf(worst, "true") },
	}}
}

// ClustersURL returns the path, relative to that of evictrail, and the query string of the list of clusters.
func ClustersURL(worst bool) *url.URL {
	return &url.URL{Path: clustersPath, RawQuery: writeParams(clusterParams(), worst).Encode()}
}

// listClusters answers how it stands with each cluster.
func listClusters(ctx context.Context, reader Reader, r *http.Request) (reply, error) {
	var worst bool
	if err := readParams(clusterParams(), r.URL.RawQuery, time.Now().UTC(), &worst); err != nil {
		return reply{}, err
	}
	lines, err := reader.Fleet(ctx, worst)
	if lines == nil {
		lines = []trail.FleetLine{} // an empty array, not null
	}
	return newJSONReply(lines, err)
}

// searchQuery is what is searched for.
type searchQuery struct{ cluster, text string }

func searchParams() []param[searchQuery] {
	return []param[searchQuery]{
		{name: "q", about: "A part of the name of a VM or a node, namespace/name, the beginning of the name of a migration, or the UID of a VM or a migration.", schema: newTextSchema(), example: "db-1", must: true,
			read: readText("q", func(q *searchQuery) *string { return &q.text }), write: func(q searchQuery) string { return q.text }},
		{name: "cluster", about: "Only in this cluster.", schema: newTextSchema(), example: "prod",
			read: readText("cluster", func(q *searchQuery) *string { return &q.cluster }), write: func(q searchQuery) string { return q.cluster }},
	}
}

// SearchURL returns the path, relative to that of evictrail, and the query string of a search.
func SearchURL(cluster, text string) *url.URL {
	return &url.URL{Path: searchPath, RawQuery: writeParams(searchParams(), searchQuery{cluster, text}).Encode()}
}

// SearchAnswer is the answer to a search.
type SearchAnswer struct {
	Found []trail.Found `json:"found"`
	Total int           `json:"total"`
}

// answerSearch answers with what is named so.
func answerSearch(ctx context.Context, reader Reader, r *http.Request) (reply, error) {
	var q searchQuery
	if err := readParams(searchParams(), r.URL.RawQuery, time.Now().UTC(), &q); err != nil {
		return reply{}, err
	}
	found, total, err := reader.Find(ctx, q.cluster, q.text)
	if found == nil {
		found = []trail.Found{} // an empty array, not null
	}
	return newJSONReply(SearchAnswer{found, total}, err)
}

func clusterSchema() schema {
	return withDescription(newObjectSchema([]string{"cluster", "loops", "loops_closed", "stuck", "drains", "marred", "severity"}, fields{
		{"cluster", newTextSchema()},
		{"source", withDescription(newTextSchema(), "The evictrail that records it. Only a hub says so.")},
		{"last_seen_at", newTimeSchema("Until when it was watched. Missing where it never was.")},
		{"loops", newCountSchema("Loops that are open.")},
		{"loops_closed", newCountSchema("Loops that were closed in the last day.")},
		{"stuck", newCountSchema("Open evacuations with failed attempts.")},
		{"drains", newCountSchema("Drains in progress.")},
		{"marred", schema{Type: types{"boolean"}, Description: "A node is not ready, or in the last hour a guest was lost, an evacuation ended without a move, a migration failed, or one overloaded its target."}},
		{"severity", withDescription(oneOf(trail.Severities()...), "How much it needs a person.")},
		{"oldest", newTimeSchema("Since when the oldest of what is open is. Missing without worst, and where nothing is open.")},
		{"text", withDescription(newTextSchema(), "The worst, in sentences. Missing where nothing is wrong.")},
	}), "A cluster, with how it stands with it.")
}

func foundSchema() schema {
	return withDescription(newObjectSchema([]string{"cluster", "kind", "name"}, fields{
		{"cluster", newTextSchema()},
		{"kind", oneOf(trail.FoundKinds()...)},
		{"namespace", withDescription(newTextSchema(), "Missing for a node.")},
		{"name", newTextSchema()},
		{"vmi", withDescription(newTextSchema(), "The VM that a migration moves.")},
		{"uid", withDescription(newTextSchema(), "Of a migration; of a VM only where the search named it.")},
		{"node", withDescription(newTextSchema(), "The node on which a VM runs now.")},
		{"state", withDescription(newTextSchema(), "The state of a VM that runs now.")},
	}), "Something that answers a search.")
}

func (s *reads) fleetRoutes() []route {
	return []route{
		{
			method: http.MethodGet, path: clustersPath, tag: tagLists, id: "listClusters", short: "List clusters",
			about:  "Each cluster that the caller may see, with numbers of what is open.",
			params: describeParams(clusterParams()), problems: readProblems,
			answers: []answer{{http.StatusOK, "The clusters.", readHeaders, jsonContent(listOf(newRefSchema("Cluster")), nil)}, newUnchangedAnswer(readHeaders)},
			handler: s.newHandler(listClusters),
		},
		{
			method: http.MethodGet, path: searchPath, tag: tagNames, id: "search", short: "Search for VMs, nodes and migrations",
			about:  "What is named exactly comes first, then what begins so; at most " + strconv.Itoa(trail.MostFound) + ".",
			params: describeParams(searchParams()), problems: readProblems,
			answers: []answer{{http.StatusOK, "What was found, and how many there are.", readHeaders, jsonContent(newObjectSchema([]string{"found", "total"}, fields{
				{"found", listOf(newRefSchema("Found"))},
				{"total", newCountSchema(fmt.Sprintf("How many there are; of migrations at most %d are counted.", trail.MostCounted))},
			}), nil)}, newUnchangedAnswer(readHeaders)},
			handler: s.newHandler(answerSearch),
		},
	}
}
