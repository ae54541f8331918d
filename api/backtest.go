package api

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/prometheus/common/model"

	"github.com/evictrail/evictrail/alerts"
	"github.com/evictrail/evictrail/alerts/backtest"
	"github.com/evictrail/evictrail/trail/whatif"
)

// backtestPath is where it is asked what would have come of alerts.
const backtestPath = "/api/v1/alerts/backtest"

// backtestParams are the parameters of a question about alerts.
func backtestParams() []param[backtest.Question] {
	return []param[backtest.Question]{
		{
			name: "cluster", about: "The cluster, where several are recorded.", schema: newTextSchema(), example: "prod",
			read:  readText("cluster", func(q *backtest.Question) *string { return &q.Cluster }),
			write: func(q backtest.Question) string { return q.Cluster },
		},
		{
			name: "since", schema: newTextSchema(), example: "24h",
			about: fmt.Sprintf("From when on: %s. By default a week before until; at most %d days.", timeAbout,
				backtest.MostDays),
			read:  readTime("since", func(q *backtest.Question) *time.Time { return &q.Since }),
			write: func(q backtest.Question) string { return writeTime(q.Since) },
		},
		{
			name: "until", schema: newTextSchema(), example: "2026-11-21T12:00:00Z",
			about: "Until when. By default now or, where the cluster is not watched any more, when it was last seen.",
			read:  readTime("until", func(q *backtest.Question) *time.Time { return &q.Until }),
			write: func(q backtest.Question) string { return writeTime(q.Until) },
		},
		{
			name: "rule", schema: newTextSchema(), example: "EvictrailVMPingPong",
			about: "Only alerts of these names, with commas between them. One alert is answered much sooner than all.",
			read:  readBacktestList(backtest.ParseRules, func(q *backtest.Question) *[]string { return &q.Rules }),
			write: func(q backtest.Question) string { return strings.Join(q.Rules, ",") },
		},
		{
			name: "threshold", schema: newTextSchema(),
			about: "Other thresholds of the one alert of rule, with commas between them: 3600, or 2100=3600 where it has " +
				"several. Without this and for, half and twice each is tried.",
			read: readBacktestList(backtest.ParseThresholds,
				func(q *backtest.Question) *[]backtest.Change { return &q.Thresholds }),
			write: func(q backtest.Question) string { return joinTexts(q.Thresholds, backtest.Change.String) },
		},
		{
			name: "for", schema: newTextSchema(), example: "0s,10m",
			about: "Other durations for which the expression has to hold, with commas between them.",
			read:  readBacktestList(backtest.ParseFor, func(q *backtest.Question) *[]time.Duration { return &q.For }),
			write: func(q backtest.Question) string { return joinTexts(q.For, formatRuleSpan) },
		},
		{
			name: "step", schema: withDefault(newTextSchema(), formatRuleSpan(backtest.UsualStep)), example: "30s",
			about: fmt.Sprintf("Time between two samples, from %s to %s: what your Prometheus has as its interval.",
				formatRuleSpan(backtest.LeastStep), formatRuleSpan(backtest.MostStep)),
			read: func(text string, _ time.Time, q *backtest.Question) (err error) {
				q.Step, err = backtest.ParseStep(text)
				return err
			},
			write: func(q backtest.Question) string {
				if q.Step == 0 {
					return ""
				}
				return formatRuleSpan(q.Step)
			},
		},
		{
			name: "evacuation-target", example: "99.5",
			schema: withDefault(schema{Type: types{"number"}}, alerts.DefaultOptions().EvacuationTarget),
			about: fmt.Sprintf("Share of evacuations, in percent, that are to keep to their objective: %v to %v.",
				alerts.LowestTarget, alerts.HighestTarget),
			read: func(text string, _ time.Time, q *backtest.Question) (err error) {
				if q.EvacuationTarget, err = strconv.ParseFloat(text, 64); err != nil || q.EvacuationTarget == 0 {
					return fmt.Errorf("evacuation-target %q: expected a number", text)
				}
				return nil
			},
			write: func(q backtest.Question) string {
				if q.EvacuationTarget == 0 {
					return ""
				}
				return strconv.FormatFloat(q.EvacuationTarget, 'f', -1, 64)
			},
		},
	}
}

// readBacktestList reads what commas part; field says where it goes.
func readBacktestList[T any](
	parse func(string) ([]T, error), field func(*backtest.Question) *[]T,
) func(string, time.Time, *backtest.Question) error {
	return func(text string, _ time.Time, q *backtest.Question) (err error) {
		*field(q), err = parse(text)
		return err
	}
}

// joinTexts writes values with commas between them.
func joinTexts[T any](all []T, format func(T) string) string {
	texts := make([]string, len(all))
	for i, one := range all {
		texts[i] = format(one)
	}
	return strings.Join(texts, ",")
}

// formatRuleSpan writes a duration as rules have it.
func formatRuleSpan(d time.Duration) string { return model.Duration(d).String() }

// BacktestArguments are those of a tool that tries alerts on history.
func BacktestArguments() Arguments[backtest.Question] {
	return Arguments[backtest.Question]{params: backtestParams()}
}

// BacktestURL returns the path, relative to that of evictrail, and the query string of a question about alerts.
func BacktestURL(q backtest.Question) *url.URL {
	return &url.URL{Path: backtestPath, RawQuery: writeParams(backtestParams(), q).Encode()}
}

// ReadBacktest reads what is asked in a query string. The error is a *Problem.
func ReadBacktest(query string, now time.Time) (q backtest.Question, err error) {
	if err = readParams(backtestParams(), query, now, &q); err == nil {
		err = asBadRequest(q.Bound(now))
	}
	return q, err
}

// ReadBacktestArguments reads what is asked with BacktestArguments. The error is a *Problem.
func ReadBacktestArguments(object json.RawMessage, now time.Time) (q backtest.Question, err error) {
	if err = BacktestArguments().Read(object, now, &q); err == nil {
		err = asBadRequest(q.Bound(now))
	}
	return q, err
}

// backtestWithin asks a Reader, and says what to do where it has no time for the answer.
func backtestWithin(ctx context.Context, reader Reader, q backtest.Question) (backtest.Answer, error) {
	a, err := reader.Backtest(ctx, q)
	if errors.Is(err, context.DeadlineExceeded) {
		p := newProblem(http.StatusServiceUnavailable, fmt.Sprintf("replaying that took longer than %s: ask for one alert "+
			"with rule, or for a shorter time with since; `evictrail alerts backtest` on the command line, with the "+
			"database, waits for it", whatif.Within))
		p.retry = retryBusy
		err = p
	}
	return a, err
}

// backtestAlerts answers what would have come of alerts.
func backtestAlerts(ctx context.Context, reader Reader, r *http.Request) (reply, error) {
	q, err := ReadBacktest(r.URL.RawQuery, time.Now().UTC())
	if err != nil {
		return reply{}, err
	}
	answer, err := newJSONReply(backtestWithin(ctx, reader, q))
	if len(answer.body) > readBody {
		return reply{}, newProblem(http.StatusBadRequest, fmt.Sprintf("the firings are more than %d MiB: ask for one alert "+
			"with rule, or for a shorter time with since", readBody>>20))
	}
	return answer, err
}

func backtestSchema() schema {
	seconds := func(about string) schema { return schema{Type: types{"number"}, Description: about + ", in seconds."} }
	cause := newObjectSchema([]string{"kind", "what", "from"}, fields{
		{"kind", withDescription(oneOf(backtest.CauseLoop, backtest.CauseGuestLost, backtest.CauseOutage,
			backtest.CauseObjective), "What sort of thing was wrong.")},
		{"what", withDescription(newTextSchema(), "The kind of loop, how a guest ended, or the cause of an outage.")},
		{"namespace", newTextSchema()}, {"vmi", newTextSchema()}, {"node", newTextSchema()},
		{"from", newTimeSchema("When it began.")},
		{"to", newTimeSchema("When it ended. Missing while it goes on.")},
	})
	firing := newObjectSchema([]string{"labels", "pending_at", "fired_at", "causes"}, fields{
		{"labels", schema{
			Type: types{"object"}, Values: &schema{Type: types{"string"}}, Description: "Whom the alert would have named.",
		}},
		{"pending_at", newTimeSchema("When its expression began to hold.")},
		{"fired_at", newTimeSchema("When it would have fired.")},
		{"ended_at", newTimeSchema("Until when. Missing where it would still have been firing at the end.")},
		{"causes", withDescription(listOf(cause), "What evictrail recorded as wrong beside it.")},
		{"causes_more", newCountSchema("Causes that are only counted.")},
	})
	change := newObjectSchema([]string{"present", "other"}, fields{
		{"present", schema{Type: types{"number"}, Description: "The number to which the expression compares."}},
		{"other", schema{Type: types{"number"}, Description: "The number that was tried in its place."}},
	})
	variant := newObjectSchema([]string{
		"for", "present", "firings", "firing_seconds", "with_cause", "without_cause", "still_firing",
	}, fields{
		{"threshold", withDescription(change, "Missing where the thresholds are those of today.")},
		{"for", withDescription(newTextSchema(), "For how long its expression has to hold.")},
		{"present", schema{Type: types{"boolean"}, Description: "It is the alert of today."}},
		{"firings", newCountSchema("How often it would have fired, for each set of labels.")},
		{"firing_seconds", seconds("How long all of them together would have lasted")},
		{"with_cause", newCountSchema("Firings beside which something wrong is recorded.")},
		{"without_cause", newCountSchema("The other firings.")},
		{"still_firing", newCountSchema("Firings that go on at the end.")},
	})
	rule := newObjectSchema([]string{"alert", "severity", "expr", "for", "variants", "firings"}, fields{
		{"alert", newTextSchema()}, {"severity", newTextSchema()},
		{"expr", withDescription(newTextSchema(), "The expression of today.")},
		{"for", withDescription(newTextSchema(), "For how long it has to hold today.")},
		{"variants", withDescription(listOf(variant), "What was tried; the first is the alert of today.")},
		{"firings", withDescription(listOf(firing), "Of the alert of today, the earliest first.")},
	})
	missing := newObjectSchema([]string{"alert", "severity", "reads", "reason"}, fields{
		{"alert", newTextSchema()}, {"severity", newTextSchema()},
		{"reads", withDescription(listOf(newTextSchema()), "The metrics that it reads.")},
		{"reason", withDescription(newTextSchema(), "What the history does not have.")},
	})
	return withDescription(newObjectSchema([]string{
		"cluster", "not_observed", "since", "until", "step_seconds", "rules", "not_in_history",
	}, fields{
		{"cluster", newTextSchema()},
		{"not_observed", withDescription(listOf(gapSchema()), "The gaps that overlap the period, newest first, at most "+
			"20: what happened then may be missing.")},
		{"since", newTimeSchema("From then on; not before anything was recorded.")},
		{"until", newTimeSchema("Up to then.")},
		{"step_seconds", seconds("Time between two samples")},
		{"rules", withDescription(listOf(rule), "The alerts that were tried.")},
		{"not_in_history", withDescription(listOf(missing), "Alerts of which nothing can be said.")},
	}), "How often alerts would have fired in a period.")
}

func (s *reads) backtestRoute() route {
	return route{
		method: http.MethodGet, path: backtestPath, tag: tagWhy, id: "backtestAlerts",
		short: "Say how often alerts would have fired, with their thresholds and with others",
		about: fmt.Sprintf("Replays the recorded period of a cluster into the metrics that alerts read, and evaluates the "+
			"alerts over it with Prometheus' own engine (docs/backtest.md). At most %d combinations of threshold and for. "+
			"One such question is answered at a time, within %s. Nothing (404) to callers who may not see all of a "+
			"cluster: alerts speak of all of it.", backtest.MostVariants, whatif.Within),
		params:   describeParams(backtestParams()),
		problems: problemsWith(http.StatusBadRequest, http.StatusNotFound, http.StatusConflict),
		answers: []answer{
			{
				http.StatusOK, "What would have come of the alerts.", []string{headerCached, headerVary},
				jsonContent(newRefSchema("Backtest"), nil),
			},
		},
		handler: s.newHandlerWithin(whatif.Within, s.crowd.awaitLongTurn, backtestAlerts),
	}
}
