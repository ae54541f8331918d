package api

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/evictrail/evictrail/trail"
)

const forecastEnd = "drain-forecast"

// DrainForecastURL returns the path, relative to that of evictrail, and the query string of a forecast of a drain.
func DrainForecastURL(q trail.Question) *url.URL {
	u := &url.URL{RawQuery: writeParams(forecastParams(), q).Encode()}
	return u.JoinPath("api", "v1", "nodes", url.PathEscape(q.Of.Name), forecastEnd)
}

// forecastParams are the parameters of a forecast, which is as of now.
func forecastParams() []param[trail.Question] { return questionParams()[:1] }

// ForecastArguments are those of a tool that forecasts the drain of a node.
func ForecastArguments() Arguments[trail.Question] {
	node := param[trail.Question]{
		name: "node", about: "The node that would be drained.", must: true, schema: newTextSchema(), example: "worker-1",
		read: func(text string, _ time.Time, q *trail.Question) error {
			if !isText(text) || text == "" || strings.Contains(text, "/") {
				return fmt.Errorf("node %q: expected the name of a node", text)
			}
			q.Of = trail.Subject{Kind: trail.SubjectNode, Name: text}
			return nil
		},
	}
	return Arguments[trail.Question]{params: append([]param[trail.Question]{node}, forecastParams()...)}
}

// forecastDrain answers how a drain of a node would go.
func forecastDrain(ctx context.Context, reader Reader, r *http.Request) (reply, error) {
	q := trail.Question{Of: nodeOf(r)}
	if !isText(q.Of.Name) {
		return reply{}, newProblem(http.StatusBadRequest, "the path is no text in UTF-8")
	}
	if err := readParams(forecastParams(), r.URL.RawQuery, time.Now().UTC(), &q); err != nil {
		return reply{}, err
	}
	d, err := reader.DrainForecast(ctx, q)
	answer, err := newJSONReply(d, err)
	return withRecorder(answer, err, d.Recorder, d.NotObserved)
}

func (s *reads) forecastRoute() route {
	return route{
		method: http.MethodGet, path: nodePath + forecastEnd, tag: tagWhy, id: "forecastDrain", short: "Say how a drain of a node would go, and how long it takes",
		about: "What an eviction does to each VM of the node, and how long it takes until those that move have left, estimated from how " +
			"migrations of this cluster went. While a drain goes on: how much longer it takes. Nothing is changed.",
		params:   append([]parameter{pathParam("node", "The name of the node.", "worker-1")}, describeParams(forecastParams())...),
		problems: whyProblems,
		answers: []answer{
			{http.StatusOK, "The forecast.", whyHeaders, jsonContent(newRefSchema("DrainForecast"), nil)},
			newUnchangedAnswer(whyHeaders),
		},
		handler: s.newHandler(forecastDrain),
	}
}

func drainForecastSchema() schema {
	seconds := func(about string) schema { return schema{Type: types{"number"}, Description: about + ", in seconds."} }
	band := func(about string) schema {
		return withDescription(newObjectSchema([]string{"low_seconds", "mid_seconds", "high_seconds"}, fields{
			{"low_seconds", seconds("One in ten takes less")},
			{"mid_seconds", seconds("Half take less")},
			{"high_seconds", seconds("One in ten takes more")},
		}), about+" Missing where it cannot be estimated.")
	}
	guest := newObjectSchema([]string{"namespace", "vmi", "vmi_uid", "effect", "moved", "failed"}, fields{
		{"namespace", newTextSchema()},
		{"vmi", newTextSchema()},
		{"vmi_uid", newTextSchema()},
		{"effect", withDescription(oneOf(trail.DrainEffects()...), "What the drain does to it: it moves, it is shut down, or it stays as things are.")},
		{"because", withDescription(newTextSchema(), "Why it does not move. Missing where it does.")},
		{"left", band("Until it has left the node.")},
		{"decides", schema{Type: types{"number"}, Description: "The share of plays in which it was the last to leave, from 0 to 1. Missing where in none."}},
		{"moved", newCountSchema("Its successful migrations in the history.")},
		{"failed", newCountSchema("Its failed ones.")},
	})
	return withDescription(newObjectSchema([]string{
		"node", "at", "moves", "shuts_down", "stays", "parallel_per_node", "parallel_per_cluster", "others", "succeeded", "failed", "never_moved", "guests",
	}, append(fields{
		{"node", newTextSchema()},
		{"at", newTimeSchema("The forecast is as of then: now, or when the cluster was last seen.")},
		{"draining_since", newTimeSchema("Since when the node is being drained. Missing where it is not.")},
		{"moves", newCountSchema("VMs that move.")},
		{"shuts_down", newCountSchema("VMs that are shut down.")},
		{"stays", newCountSchema("VMs that do not leave as things are.")},
		{"left", band("Until the last VM that moves has left.")},
		{"parallel_per_node", newCountSchema("How many migrations may leave one node at once.")},
		{"parallel_per_cluster", newCountSchema("How many may be under way in the cluster.")},
		{"raised", withDescription(newObjectSchema([]string{"parallel_per_node", "left"}, fields{
			{"parallel_per_node", newCountSchema("How many migrations may leave one node at once.")},
			{"left", band("Until the last VM that moves has left.")},
		}), "How long it takes with twice the limit of a node, if migrations side by side do not slow each other down. Missing where that is not much sooner.")},
		{"others", newCountSchema("Migrations of other nodes that are under way.")},
		{"succeeded", newCountSchema("Successful migrations that the estimate rests on.")},
		{"failed", newCountSchema("Failed ones that it rests on.")},
		{"never_moved", newCountSchema("VMs that move, of which no migration is known: they are taken to be like others.")},
		{"guests", withDescription(listOf(guest), "Those that stay, those that are shut down, then those that move, the last to leave first.")},
		{"limited", schema{Type: types{"boolean"}, Description: "True where VMs of other namespaces may be there, which you may not see: they are neither listed nor counted."}},
	}, recordingFields("The gaps since the drain began, at least of the last hour, newest first, at most ten.")...)), "How a drain of a node would go, or goes on.")
}
