package api

import (
	"context"
	"net/http"
	"net/url"
	"time"

	"github.com/evictrail/evictrail/trail"
)

const clustersPath = "/api/v1/clusters"

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
		{"recorder", newRefSchema("Recorder")},
	}), "A cluster, with how it stands with it.")
}

func (s *reads) clustersRoute() route {
	return route{
		method: http.MethodGet, path: clustersPath, tag: tagLists, id: "listClusters", short: "List clusters",
		about:    "How it stands with each cluster that the caller may see, and with its recorder.",
		params:   describeParams(clusterParams()),
		problems: readProblems,
		answers: []answer{
			{http.StatusOK, "The clusters.", readHeaders, jsonContent(listOf(newRefSchema("Cluster")), nil)},
			newUnchangedAnswer(readHeaders),
		},
		handler: s.newHandler(listClusters),
	}
}
