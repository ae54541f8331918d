package api

import (
	"context"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/evictrail/evictrail/trail/whatif"
)

// advicePath is where it is asked which settings to take.
const advicePath = "/api/v1/whatif/advice"

// adviceParams are the parameters of a question for advice. Clients do not send it: they ask for each week.
func adviceParams() []param[whatif.AdviceQuestion] {
	type readWeeks func(string, time.Time, *whatif.AdviceQuestion) error
	weeks := func(name string, field func(*whatif.AdviceQuestion) *int) readWeeks {
		return func(text string, _ time.Time, q *whatif.AdviceQuestion) error {
			n, err := strconv.Atoi(text)
			if err != nil || n < 1 || n >= whatif.MostAdvised {
				return fmt.Errorf("%s %q: expected 1 to %d", name, text, whatif.MostAdvised-1)
			}
			*field(q) = n
			return nil
		}
	}
	return []param[whatif.AdviceQuestion]{
		{
			name:    "cluster",
			about:   "The cluster, where several are recorded.",
			schema:  newTextSchema(),
			example: "prod",
			read:    readText("cluster", func(q *whatif.AdviceQuestion) *string { return &q.Cluster }),
		},
		{
			name:    "until",
			about:   "When the last week ends: " + timeAbout + ". Without it, now, or when the cluster was last seen.",
			schema:  newTextSchema(),
			example: "2026-11-21",
			read:    readTime("until", func(q *whatif.AdviceQuestion) *time.Time { return &q.Until }),
		},
		{
			name:    "weeks",
			about:   "In how many weeks the advice is checked.",
			schema:  newIntegerSchema(whatif.MostAdvised-1, whatif.UsualAdvised),
			example: "12",
			read:    weeks("weeks", func(q *whatif.AdviceQuestion) *int { return &q.Weeks }),
		},
		{
			name:    "learn",
			about:   fmt.Sprintf("On how many weeks each advice rests. With weeks, at most %d.", whatif.MostAdvised),
			schema:  newIntegerSchema(whatif.MostAdvised-1, whatif.UsualLearn),
			example: "2",
			read:    weeks("learn", func(q *whatif.AdviceQuestion) *int { return &q.Learn }),
		},
		{
			name: "policies",
			about: "Compare these policies: words, such as base=5m cap=1h, with ; between policies. Without any and " +
				"without a sweep, " +
				"the usual values of each setting that can be set today.",
			schema:  newTextSchema(),
			example: "base=5m cap=1h;node-limit=1",
			read: func(text string, _ time.Time, q *whatif.AdviceQuestion) (err error) {
				q.Policies, err = whatif.ParsePolicies(strings.Split(text, ";"))
				return err
			},
		},
		{
			name:    "sweep",
			about:   "Compare a setting from one value to another.",
			schema:  newTextSchema(),
			example: "base=5m..60m",
			read: func(text string, _ time.Time, q *whatif.AdviceQuestion) error {
				s, err := whatif.ParseSweep(text, whatif.Policy{})
				q.Sweep = &s
				return err
			},
		},
	}
}

// AdviceArguments are those of a tool that recommends settings.
func AdviceArguments() Arguments[whatif.AdviceQuestion] {
	return Arguments[whatif.AdviceQuestion]{params: adviceParams()}
}

// ReadAdvice reads what is asked in a query string. The error is a *Problem.
func ReadAdvice(query string, now time.Time) (q whatif.AdviceQuestion, err error) {
	if err = readParams(adviceParams(), query, now, &q); err == nil {
		err = asBadRequest(q.Bound())
	}
	return q, err
}

// asBadRequest returns an error of ours as a *Problem of who asks.
func asBadRequest(err error) error {
	if err == nil {
		return nil
	}
	return newProblem(http.StatusBadRequest, err.Error())
}

// Advise has a Reader replay the weeks of a question for advice. Errors are those of whatif.AdviceQuestion.Ask.
func Advise(ctx context.Context, reader Reader, q whatif.AdviceQuestion) (whatif.Advice, error) {
	known, err := reader.Recorders(ctx, q.Cluster, time.Time{}, time.Time{})
	if err != nil {
		return whatif.Advice{}, err
	}
	return q.Ask(known, func(week whatif.Question) (whatif.Answer, error) { return reader.WhatIf(ctx, week) })
}

// recommendSettings answers which settings to take.
func recommendSettings(ctx context.Context, reader Reader, r *http.Request) (reply, error) {
	q, err := ReadAdvice(r.URL.RawQuery, time.Now().UTC())
	if err != nil {
		return reply{}, err
	}
	return newJSONReply(Advise(ctx, reader, q))
}

func adviceSchema() schema {
	choice := func(about string) schema {
		return withDescription(
			newObjectSchema(
				[]string{"policy", "migrations_saved", "evictions_held_back", "wait_total_seconds", "stays_hot"},
				fields{
					{"policy", withDescription(newTextSchema(), "As words. recorded: the settings stay.")},
					{"migrations_saved", newCountSchema("Migrations that would not have happened.")},
					{"evictions_held_back", newCountSchema("Evictions that would not have come when they did.")},
					{
						"wait_total_seconds",
						schema{Type: types{"number"}, Description: "For how long, all together, in seconds."},
					},
					{
						"stays_hot",
						newCountSchema(
							"Moves that would not have been made, away from a node that the descheduler went on to relieve.",
						),
					},
				},
			),
			about,
		)
	}
	week := newObjectSchema(
		[]string{"since", "until", "migrations", "advised", "best", "regret", "regret_present"},
		fields{
			{"since", newTimeSchema("Inclusive.")},
			{"until", newTimeSchema("Exclusive.")},
			{"migrations", newCountSchema("That ended, with the settings that were in force.")},
			{"advised", choice("What the weeks before advised, and what would have come of it.")},
			{"best", choice("The best of the policies in hindsight.")},
			{
				"regret",
				newCountSchema(
					"Migrations that the best would have saved beyond the advised one; below 0 where that saves more, at a " +
						"longer wait.",
				),
			},
			{"regret_present", newCountSchema("The same beyond the settings that were in force.")},
		},
	)
	return withDescription(newObjectSchema([]string{
		"cluster",
		"since",
		"until",
		"learned_from_weeks",
		"policies",
		"now",
		"text",
		"caveats",
		"weeks",
		"regret",
		"regret_present",
		"changes",
	}, fields{
		{"cluster", newTextSchema()},
		{"since", newTimeSchema("The advice of today rests on what happened from then on.")},
		{"until", newTimeSchema("Up to then.")},
		{"learned_from_weeks", newCountSchema("On how many weeks each advice rests.")},
		{"policies", withDescription(listOf(newTextSchema()), "Those that were compared.")},
		{"now", choice("The advice of today.")},
		{"text", withDescription(newTextSchema(), "The same in words.")},
		{"caveats", withDescription(listOf(newTextSchema()), "What speaks against it.")},
		{"weeks", withDescription(listOf(week), "The weeks in which advice was checked, the oldest first.")},
		{"regret", newCountSchema("Of all these weeks.")},
		{"regret_present", newCountSchema("Of all these weeks.")},
		{"changes", newCountSchema("How often the advice was another than in the week before.")},
	}), "Which settings to take, and how the same advice would have fared in the weeks before.")
}

func (s *reads) adviceRoute() route {
	return route{
		method: http.MethodGet,
		path:   advicePath,
		tag:    tagWhy,
		id:     "advise",
		short:  "Recommend settings, and check that advice week by week",
		about: "Replays each of the last weeks as whatIf does, recommends one of some policies, and says for each week what " +
			"the same advice, knowing only what " +
			"came before, would have been worth in it. One such question is answered at a time.",
		params: describeParams(
			adviceParams(),
		),
		problems: problemsWith(http.StatusBadRequest, http.StatusNotFound, http.StatusConflict),
		answers: []answer{
			{
				http.StatusOK,
				"The advice.",
				[]string{headerCached, headerVary},
				jsonContent(newRefSchema("Advice"), nil),
			},
		},
		handler: s.newHandlerWithin(whatif.Within, s.crowd.awaitLongTurn, recommendSettings),
	}
}
