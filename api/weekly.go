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

const weeklyPath = "/api/v1/weekly"

// weeklyParams are the parameters of a report of weeks.
func weeklyParams() []param[trail.WeeklyQuery] {
	return []param[trail.WeeklyQuery]{
		{
			name: "cluster", about: "Only this cluster.", schema: newTextSchema(), example: "prod",
			read:  readText("cluster", func(q *trail.WeeklyQuery) *string { return &q.Cluster }),
			write: func(q trail.WeeklyQuery) string { return q.Cluster },
		},
		{
			name: "namespace", about: "Only VMs of this namespace.", schema: newTextSchema(), example: "shop",
			read:  readText("namespace", func(q *trail.WeeklyQuery) *string { return &q.Namespace }),
			write: func(q trail.WeeklyQuery) string { return q.Namespace },
		},
		{
			name:    "weeks",
			about:   fmt.Sprintf("How many weeks, the last one among them; without it, %d.", trail.UsualWeeks),
			example: "12",
			schema:  newIntegerSchema(trail.MostWeeks, trail.UsualWeeks),
			read: func(text string, _ time.Time, q *trail.WeeklyQuery) (err error) {
				if q.Weeks, err = strconv.Atoi(text); err != nil || q.Weeks == 0 {
					return fmt.Errorf("weeks %q: expected 1 to %d", text, trail.MostWeeks)
				}
				return q.Bound()
			},
			write: func(q trail.WeeklyQuery) string { return writeNumber(float64(q.Weeks)) },
		},
		{
			name:    "until",
			about:   "A time in the last week: " + timeAbout + ". Without it, now, or when a cluster was last seen.",
			schema:  newTextSchema(),
			example: "2026-11-21",
			read:    readTime("until", func(q *trail.WeeklyQuery) *time.Time { return &q.Until }),
			write:   func(q trail.WeeklyQuery) string { return writeTime(q.Until) },
		},
		{
			name: "target",
			about: fmt.Sprintf(
				"Which share of evacuations is to keep to its objective, in percent, from 50 to less than 100; without it, %d.",
				trail.UsualTarget,
			),
			schema:  schema{Type: types{"number"}},
			example: "99.5",
			read: func(text string, _ time.Time, q *trail.WeeklyQuery) (err error) {
				if q.Target, err = strconv.ParseFloat(text, 64); err != nil || q.Target == 0 {
					return fmt.Errorf("target %q: expected a share in percent, from 50 to less than 100", text)
				}
				return q.Bound()
			},
			write: func(q trail.WeeklyQuery) string { return writeNumber(q.Target) },
		},
	}
}

// writeNumber writes a number of a query string; nothing for zero, which stands for the usual one.
func writeNumber(n float64) string {
	if n == 0 {
		return ""
	}
	return strconv.FormatFloat(n, 'f', -1, 64)
}

// WeeklyArguments are those of a tool that reports weeks.
func WeeklyArguments() Arguments[trail.WeeklyQuery] {
	return Arguments[trail.WeeklyQuery]{params: weeklyParams()}
}

// WeeklyURL returns the path, relative to that of evictrail, and the query string of a report of weeks.
func WeeklyURL(q trail.WeeklyQuery) *url.URL {
	return &url.URL{Path: weeklyPath, RawQuery: writeParams(weeklyParams(), q).Encode()}
}

// ReadWeekly reads what is asked for in a query string. The error is a *Problem.
func ReadWeekly(query string, now time.Time) (q trail.WeeklyQuery, err error) {
	return q, readParams(weeklyParams(), query, now, &q)
}

// reportWeeks answers what happened week by week.
func reportWeeks(ctx context.Context, reader Reader, r *http.Request) (reply, error) {
	q, err := ReadWeekly(r.URL.RawQuery, time.Now().UTC())
	if err != nil {
		return reply{}, err
	}
	all, err := reader.Weekly(ctx, q)
	if all == nil {
		all = []trail.Weekly{} // an empty array, not null
	}
	return newJSONReply(all, err)
}

func weeklySchema() schema {
	seconds := func(about string) schema { return schema{Type: types{"number"}, Description: about + ", in seconds."} }
	week, namespace := field{
		"week",
		newTimeSchema("Monday on which the week begins, at midnight UTC."),
	}, field{
		"namespace",
		newTextSchema(),
	}
	downtimes := newObjectSchema(
		[]string{"week", "namespace", "unplanned", "unplanned_seconds", "planned", "planned_seconds"},
		fields{
			week, namespace,
			{"unplanned", newCountSchema("Downtimes that the platform began, or of which nothing seen says who did.")},
			{"unplanned_seconds", seconds("For how long, in that week, all VMs added up")},
			{"planned", newCountSchema("Downtimes that owners, or guests themselves, began.")},
			{"planned_seconds", seconds("For how long; one that was stopped and not started again counts none")},
		},
	)
	objectives := newObjectSchema([]string{"week", "namespace", "met", "missed", "budget_left"}, fields{
		week,
		namespace,
		{
			"pool",
			withDescription(
				newTextSchema(),
				"Pool of the nodes that VMs were to leave. Missing where it is not known, and for callers who may not see "+
					"all of a cluster.",
			),
		},
		{"met", newCountSchema("Evacuations that met their objective, in the week of their mark.")},
		{"missed", newCountSchema("Those that missed it.")},
		{
			"budget_left",
			schema{
				Type:        types{"number"},
				Description: "How many more might miss it under the target. Below 0: so many too many did.",
			},
		},
	})
	moves := newObjectSchema(
		[]string{
			"week",
			"namespace",
			"moves",
			"failed",
			"not_needed",
			"reserved_seconds",
			"data_processed",
			"measured",
			"not_measured",
		},
		fields{
			week,
			namespace,
			{"moves", newCountSchema("Migrations that moved a guest, in the week of their end.")},
			{"failed", newCountSchema("Those that failed or were aborted.")},
			{"not_needed", newCountSchema("Those that were to relieve a node that was not over its threshold.")},
			{
				"reserved_seconds",
				seconds("For how long two pods held the resources of one guest, all migrations added up"),
			},
			{"data_processed", newCountSchema("Bytes that were copied, of measured migrations.")},
			{"measured", newCountSchema("Migrations of which Prometheus had that.")},
			{"not_measured", newCountSchema("Migrations whose data moved, and of which that is not known.")},
		},
	)
	return withDescription(
		newObjectSchema([]string{"cluster", "from", "to", "target", "downtimes", "objectives", "moves"}, append(fields{
			{"cluster", newTextSchema()},
			{"from", newTimeSchema("Monday on which the first week begins.")},
			{
				"to",
				newTimeSchema("Up to then it is known: now, when the cluster was last seen, or what was asked for."),
			},
			{
				"target",
				schema{
					Type:        types{"number"},
					Description: "Which share of evacuations is to keep to its objective, in percent.",
				},
			},
			{
				"downtimes",
				withDescription(
					listOf(downtimes),
					"Time in which VMs did not run. View weekly_downtimes has more of it.",
				),
			},
			{
				"objectives",
				withDescription(
					listOf(objectives),
					"How often evacuations met their objective. View weekly_objectives has more of it.",
				),
			},
			{"moves", withDescription(listOf(moves), "What migrations cost. View weekly_move_costs has more of it.")},
		}, recordingFields("The gaps since from, newest first, at most ten: what happened then may be missing.")...)),
		"What happened in a cluster week by week, the newest week first, then by namespace.",
	)
}

func (s *reads) weeklyRoute() route {
	return route{
		method: http.MethodGet,
		path:   weeklyPath,
		tag:    tagLists,
		id:     "reportWeeks",
		short:  "Report what happened week by week",
		about: "For how long VMs did not run, how often evacuations met their objective and what is left of the error " +
			"budget, and what migrations cost: " +
			"by week and namespace.",
		params:   describeParams(weeklyParams()),
		problems: readProblems,
		answers: []answer{
			{http.StatusOK, "The clusters.", readHeaders, jsonContent(listOf(newRefSchema("Weekly")), nil)},
			newUnchangedAnswer(readHeaders),
		},
		handler: s.newHandler(reportWeeks),
	}
}
