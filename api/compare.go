package api

import (
	"context"
	"net/http"
	"net/url"
	"time"

	"github.com/evictrail/evictrail/trail"
)

const comparePath = "/api/v1/clusters/comparison"

// compareParams are the parameters of a comparison.
func compareParams() []param[trail.CompareQuery] {
	return []param[trail.CompareQuery]{
		{
			name: "cluster", about: "Only this cluster.", schema: newTextSchema(), example: "prod",
			read:  readText("cluster", func(q *trail.CompareQuery) *string { return &q.Cluster }),
			write: func(q trail.CompareQuery) string { return q.Cluster },
		},
		{
			name: "kubevirt", about: "Only clusters whose KubeVirt had a version that begins so on their last day.", schema: newTextSchema(), example: "v1.6",
			read:  readText("kubevirt", func(q *trail.CompareQuery) *string { return &q.KubeVirt }),
			write: func(q trail.CompareQuery) string { return q.KubeVirt },
		},
		{
			name: "since", about: "The first day (UTC): that of a time, a date or an age. Without it, all days that were counted.",
			schema: newTextSchema(), example: "30d",
			read:  readTime("since", func(q *trail.CompareQuery) *time.Time { return &q.Since }),
			write: func(q trail.CompareQuery) string { return writeTime(q.Since) },
		},
		{
			name: "until", about: "The last day. Without it, today.", schema: newTextSchema(), example: "2026-11-21",
			read:  readTime("until", func(q *trail.CompareQuery) *time.Time { return &q.Until }),
			write: func(q trail.CompareQuery) string { return writeTime(q.Until) },
		},
	}
}

// CompareArguments are those of a tool that compares clusters.
func CompareArguments() Arguments[trail.CompareQuery] {
	return Arguments[trail.CompareQuery]{params: compareParams()}
}

// ComparisonURL returns the path, relative to that of evictrail, and the query string of a comparison.
func ComparisonURL(q trail.CompareQuery) *url.URL {
	return &url.URL{Path: comparePath, RawQuery: writeParams(compareParams(), q).Encode()}
}

// compareClusters answers how clusters fared.
func compareClusters(ctx context.Context, reader Reader, r *http.Request) (reply, error) {
	var q trail.CompareQuery
	if err := readParams(compareParams(), r.URL.RawQuery, time.Now().UTC(), &q); err != nil {
		return reply{}, err
	}
	all, err := reader.Compare(ctx, q)
	if all == nil {
		all = []trail.ClusterComparison{} // an empty array, not null
	}
	return newJSONReply(all, err)
}

func comparisonSchema() schema {
	day := func(about string) schema { return newTimeSchema(about + " At midnight UTC.") }
	failures := fields{}
	for _, class := range trail.FailureClasses() {
		failures = append(failures, field{string(class), newCountSchema(class.Label().Text)})
	}
	return withDescription(newObjectSchema([]string{
		"cluster", "first", "last", "days", "gap_days", "moved", "failed", "aborted", "needed", "not_needed", "helped", "harmed",
		"objectives_met", "objectives_missed", "loops", "dual_retry_loops", "failures", "counted_at",
	}, fields{
		{"cluster", newTextSchema()},
		{"source", withDescription(newTextSchema(), "The evictrail that records it. Only a hub says so.")},
		{"kubevirt", withDescription(newTextSchema(), "Version of KubeVirt on the last day. Missing where it is not known.")},
		{"rules", withDescription(newTextSchema(), "Which rules follow from the versions and settings of the last day. Missing where they are not known.")},
		{"first", day("The first day that was counted.")},
		{"last", day("The last.")},
		{"days", newCountSchema("How many days were counted.")},
		{"gap_days", newCountSchema("Of these, days with a gap in the record: their counts may be too low.")},
		{"moved", newCountSchema("Migrations that ended and succeeded.")},
		{"failed", newCountSchema("Those that failed.")},
		{"aborted", newCountSchema("Those that were aborted.")},
		{"needed", newCountSchema("Of which it is known that their source was over its threshold.")},
		{"not_needed", newCountSchema("Of which it is known that it was not.")},
		{"helped", newCountSchema("That relieved their source.")},
		{"harmed", newCountSchema("That overloaded their target.")},
		{"objectives_met", newCountSchema("Evacuations that met their objective.")},
		{"objectives_missed", newCountSchema("Evacuations that missed it.")},
		{"loops", newCountSchema("Loops that were opened.")},
		{"dual_retry_loops", newCountSchema("Of these, dual retry loops.")},
		{"failures", withDescription(newObjectSchema(nil, failures), "The failed ones by class. A class that nothing has is missing.")},
		{"counted_at", newTimeSchema("When the last day was counted.")},
	}), "What happened in a cluster on some days.")
}

func (s *reads) compareRoute() route {
	return route{
		method: http.MethodGet, path: comparePath, tag: tagLists, id: "compareClusters", short: "Compare clusters",
		about: "What happened in each cluster on some days: those with most dual retry loops first, then most loops, then the largest share " +
			"of failed migrations. Nothing to callers who may not see all of a cluster: the counts are those of all.",
		params:   describeParams(compareParams()),
		problems: readProblems,
		answers: []answer{
			{http.StatusOK, "The clusters.", readHeaders, jsonContent(listOf(newRefSchema("Comparison")), nil)},
			newUnchangedAnswer(readHeaders),
		},
		handler: s.newHandler(compareClusters),
	}
}
