package api

import (
	"context"
	"net/http"
	"net/url"
	"time"

	"github.com/evictrail/evictrail/trail"
	"github.com/evictrail/evictrail/trail/forecast"
)

const limitsPath = "/api/v1/clusters/limits"

// limitsParams are the parameters of a question about limits: the cluster.
func limitsParams() []param[trail.Question] { return questionParams()[:1] }

// LimitsArguments are those of a tool that weighs limits.
func LimitsArguments() Arguments[trail.Question] {
	return Arguments[trail.Question]{params: limitsParams()}
}

// LimitsURL returns the path, relative to that of evictrail, and the query string of a question about limits.
func LimitsURL(cluster string) *url.URL {
	return &url.URL{Path: limitsPath, RawQuery: writeParams(limitsParams(), trail.Question{Cluster: cluster}).Encode()}
}

// weighLimits answers whether KubeVirt's limits fit.
func weighLimits(ctx context.Context, reader Reader, r *http.Request) (reply, error) {
	var q trail.Question
	if err := readParams(limitsParams(), r.URL.RawQuery, time.Now().UTC(), &q); err != nil {
		return reply{}, err
	}
	all, err := reader.Limits(ctx, q.Cluster)
	if all == nil {
		all = []forecast.Limits{} // an empty array, not null
	}
	return newJSONReply(all, err)
}

func limitsSchema() schema {
	seconds := func(about string) schema { return schema{Type: types{"number"}, Description: about + ", in seconds."} }
	share := func(about string) schema { return schema{Type: types{"number"}, Description: about + ", from 0 to 1."} }
	option := newObjectSchema([]string{"parallel_per_node", "parallel_per_cluster", "waited_seconds", "at_once"}, fields{
		{"parallel_per_node", newCountSchema("How many migrations may leave one node at once.")},
		{"parallel_per_cluster", newCountSchema("How many may be under way in the cluster.")},
		{"waited_seconds", seconds("How long the same migrations would have waited for slots, added up, each holding its own for as long as it did")},
		{"at_once", newCountSchema("How many would have run side by side, at the most.")},
	})
	return withDescription(newObjectSchema([]string{
		"cluster", "from", "to", "parallel_per_node", "parallel_per_cluster", "arrived", "unserved", "held_seconds", "served_per_hour", "used", "full_seconds", "options", "advice",
	}, append(fields{
		{"cluster", newTextSchema()},
		{"from", newTimeSchema("Migrations since then count.")},
		{"to", newTimeSchema("Until then: now, or when the cluster was last seen.")},
		{"parallel_per_node", newCountSchema("The limit in force: how many migrations may leave one node at once.")},
		{"parallel_per_cluster", newCountSchema("The limit in force: how many may be under way in the cluster.")},
		{"arrived", newCountSchema("Migrations that were created.")},
		{"unserved", newCountSchema("Of these, how many ended, or still wait, without a slot.")},
		{"held_seconds", seconds("For how long a migration has its slot, on average")},
		{"served_per_hour", schema{Type: types{"number"}, Description: "How many the limit of the cluster lets through in an hour. 0 where none had a slot."}},
		{"used", share("The share of the cluster's slots that was taken")},
		{"busiest", withDescription(newObjectSchema([]string{"at", "arrived", "used"}, fields{
			{"at", newTimeSchema("When the hour begins.")},
			{"arrived", newCountSchema("Migrations that came in it.")},
			{"used", share("The share of the cluster's slots that was taken in it")},
		}), "The hour in which most slots were taken. Missing where none was.")},
		{"full_seconds", seconds("For how long at least one migration waited for a slot")},
		{"options", withDescription(listOf(option), "What other limits would have changed: those in force first, then twice the limit of a node, of the cluster, and of both.")},
		{"advice", withDescription(oneOf(forecast.LimitAdvices()...), "What to do: unknown (too little was seen), fit, or which limit to raise.")},
	}, recordingFields("The gaps since from, newest first, at most ten: migrations of that time may be missing.")...)), "Whether KubeVirt's limits on parallel migrations fit what is asked of them.")
}

func (s *reads) limitsRoute() route {
	return route{
		method: http.MethodGet, path: limitsPath, tag: tagWhy, id: "weighLimits", short: "Say whether limits on parallel migrations fit",
		about: "How many migrations came in the last week, how far they filled KubeVirt's slots, how long they waited for them, and what other limits would " +
			"have changed. Nothing to callers who may not see all of a cluster: slots are shared by all.",
		params:   describeParams(limitsParams()),
		problems: readProblems,
		answers: []answer{
			{http.StatusOK, "The clusters.", readHeaders, jsonContent(listOf(newRefSchema("Limits")), nil)},
			newUnchangedAnswer(readHeaders),
		},
		handler: s.newHandler(weighLimits),
	}
}
