package api

import (
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/evictrail/evictrail/trail"
)

// The tags of the document.
const (
	tagLists       = "lists"
	tagWhy         = "answers"
	tagAcknowledge = "acknowledgements"
	tagNames       = "names"
	tagAssistants  = "assistants"
	tagStream      = "stream"
	tagIn          = "intake"
	tagHealth      = "health"
	tagDocument    = "document"
)

var about = info{
	Title: "evictrail", Version: "1", License: license{"Apache License 2.0", "Apache-2.0"},
	Description: "Why VMs of KubeVirt clusters move, and why they do not. The lists are the views of schema evictrail_v1; the answers are those of " +
		"`evictrail why` and `why-not`. Within version 1 routes, parameters, columns and headers are only added, and so are values of those that " +
		"are enumerated: ignore what you do not know. All times are UTC. Errors are problem documents (RFC 9457).",
}

var tags = []tag{
	{tagLists, "Rows of the views, the newest first, by pages: the header Link names the next. A filter that a view has no column for is refused, and so is what is not known."},
	{tagWhy, "Answers in words, with what they rest on."},
	{tagAcknowledge, "Who knows a problem, until when. Only an evictrail that runs with --auth writes."},
	{tagNames, "Names, for completion and search."},
	{tagAssistants, "What assistants ask by the Model Context Protocol."},
	{tagStream, "What is new, as it comes."},
	{tagIn, "What clusters send."},
	{tagHealth, "How evictrail does."},
	{tagDocument, "This document."},
}

// The headers of answers.
const (
	headerETag   = "ETag"
	headerLink   = "Link"
	headerVary   = "Vary"
	headerCached = "Cache-Control"
	headerRetry  = "Retry-After"
)

// readHeaders are those of every answer of a reader, whyHeaders of answers about recorded periods, listHeaders of lists.
var (
	readHeaders = []string{headerETag, headerCached, headerVary}
	whyHeaders  = append([]string{RecorderHeader, unobservedHeader, standbyHeader}, readHeaders...)
	listHeaders = append([]string{headerLink, changesHeader}, whyHeaders...)
)

func describeHeaders() fields {
	header := func(about string, always bool, s schema) any {
		return struct {
			Description string `json:"description"`
			Required    bool   `json:"required,omitempty"`
			Schema      schema `json:"schema"`
		}{about, always, s}
	}
	return fields{
		{headerETag, header("Tag of the body: send it in If-None-Match to get 304 where nothing is new.", true, newTextSchema())},
		{headerLink, header(`The next page, relative to this one: <?page=...>; rel="next". Missing where there are no older rows.`, false, newTextSchema())},
		{headerVary, header("What the answer depends on.", true, newTextSchema())},
		{headerRetry, header("After how many seconds to come again.", true, newCountSchema("Seconds."))},
		{headerCached, header("private, no-cache: it is the answer for this caller; ask again each time, with If-None-Match.", true, newTextSchema())},
		{RecorderHeader, header("The state of the recorder of the cluster now, of several clusters the worst: "+recorderStates()+". Missing where the question is about the past.", false, newTextSchema())},
		{unobservedHeader, header("The gaps that overlap the period of the answer, separated by commas: source, from/to (.. while it is open), cause. Missing if there are none.", false, newTextSchema())},
		{standbyHeader, header("The moment for which the answer speaks, where a standby of the database made it. Otherwise missing.", false,
			schema{Type: types{"string"}, Format: "date-time"})},
		{changesHeader, header("The time to go on with in changes-since. It is a minute before the moment of the answer, as rows may still be written that bear an earlier time: a row may come twice, none is missed.", true,
			schema{Type: types{"string"}, Format: "date-time"})},
	}
}

func recorderStates() string {
	var all []string
	for _, s := range trail.RecorderStates() {
		all = append(all, string(s))
	}
	return strings.Join(all, ", ")
}

// newUnchangedAnswer is the answer to a tag that still holds.
func newUnchangedAnswer(headers []string) answer {
	return answer{http.StatusNotModified, "What the client has is still right.", headers, nil}
}

var (
	callProblems = []int{http.StatusUnauthorized, http.StatusForbidden, http.StatusMethodNotAllowed, http.StatusTooManyRequests, http.StatusServiceUnavailable}
	readProblems = problemsWith(http.StatusBadRequest)
	listProblems = problemsWith(http.StatusBadRequest, http.StatusNotAcceptable)
	whyProblems  = problemsWith(http.StatusBadRequest, http.StatusNotFound, http.StatusConflict)
)

// problemsWith returns the statuses of problems of a route that is for callers only, in their order.
func problemsWith(more ...int) []int {
	return slices.Sorted(slices.Values(append(more, callProblems...)))
}

// problemAbout says what a problem means, by its status.
var problemAbout = map[int]string{
	http.StatusBadRequest:            "What was sent cannot be understood, or asks for too much at once.",
	http.StatusUnauthorized:          "The sender, or the caller, is not known.",
	http.StatusForbidden:             "No sender is known, the caller may see nothing, or a page of another site sent what would write.",
	http.StatusNotFound:              "No record of what was asked for.",
	http.StatusMethodNotAllowed:      "The method does nothing here.",
	http.StatusNotAcceptable:         "It does not come in the formats that Accept names.",
	http.StatusRequestTimeout:        "The body did not arrive in time.",
	http.StatusConflict:              "The name is known in several clusters: choose one.",
	http.StatusRequestEntityTooLarge: "The body is too large.",
	http.StatusTooManyRequests:       "Too much at once of this caller, or too many tokens that are not known from its address: come again, after the seconds of Retry-After. Audit events: send larger batches.",
	http.StatusServiceUnavailable:    "It cannot be answered now: come again, after the seconds of Retry-After.",
}

// describeSchemas are the named schemas: a row of each view, the answers, the problem.
func describeSchemas(columns []trail.Column) fields {
	var all fields
	for _, v := range trail.Views() {
		all = append(all, field{rowName(v), withDescription(rowSchema(v, columns), "A row of "+v.About+". View evictrail_v1."+v.Name+".")})
	}
	return append(all, field{"Answer", answerSchema()}, field{"NotAnswer", notAnswerSchema()}, field{"WhatIf", whatIfSchema()}, field{"WhatIfAnswer", whatIfAnswerSchema()}, field{"Advice", adviceSchema()},
		field{"Backtest", backtestSchema()}, field{"Recorder", recorderSchema()}, field{"Settings", settingsSchema()}, field{"Node", nodeSchema()},
		field{"Cluster", clusterSchema()}, field{"Comparison", comparisonSchema()}, field{"DrainForecast", drainForecastSchema()}, field{"Limits", limitsSchema()}, field{"Weekly", weeklySchema()}, field{"Search", searchSchema()}, field{"Acknowledgement", acknowledgementSchema()},
		field{"Problem", problemSchema()})
}

// rowName names the schema of a view's rows.
func rowName(v trail.View) string { return "row_" + v.Name }

func newCountSchema(about string) schema { return schema{Type: types{"integer"}, Description: about} }

func newTimeSchema(about string) schema {
	return schema{Type: types{"string"}, Format: "date-time", Description: about}
}

func answerSchema() schema {
	brief := newObjectSchema([]string{"status"}, fields{
		{"status", withDescription(newTextSchema(), "Where the guest is, and what keeps it there.")},
		{"asked_by", withDescription(newTextSchema(), "Who asked for what happened last, when, and with which words. Missing where nothing happened.")},
		{"attempts", withDescription(newTextSchema(), "How often it was tried to move it, how that ended, and why it last failed. Missing where nothing was tried.")},
		{"outlook", withDescription(newTextSchema(), "Whether an open evacuation can succeed as things are, on what that rests, and what would help. Missing where nothing is in its way.")},
		{"verdict", withDescription(newTextSchema(), "Whether the move was needed, and what came of it. Missing where load was not its reason.")},
	})
	attempts := newObjectSchema([]string{"text", "count", "first_at", "last_at"}, fields{
		{"text", withDescription(newTextSchema(), "What came of it, or of all of them.")}, {"count", newCountSchema("How many migrations.")},
		{"first_at", newTimeSchema("When the first was created.")}, {"last_at", newTimeSchema("When the last was created.")},
	})
	line := newObjectSchema([]string{"event_id", "at", "kind", "reason", "sentence", "seen_late"}, fields{
		{"event_id", schema{Type: types{"string"}, Format: "uuid", Description: "The fact, in the list events."}},
		{"at", newTimeSchema("When it happened.")},
		{"kind", withDescription(newTextSchema(), "Kind of the fact.")},
		{"reason", withDescription(newTextSchema(), "Reason of the fact.")},
		{"namespace", newTextSchema()}, {"vmi", newTextSchema()}, {"vmi_uid", newTextSchema()}, {"node", newTextSchema()},
		{"sentence", withDescription(newTextSchema(), "The line.")},
		{"seen_late", schema{Type: types{"boolean"}, Description: "It was read from a list, not seen when it happened."}},
	})
	return withDescription(newObjectSchema([]string{"namespace", "vmi", "paragraph", "as_of", "evidence", "semantics"}, append(fields{
		{"namespace", newTextSchema()}, {"vmi", newTextSchema()},
		{"node", withDescription(newTextSchema(), "Missing where the question is about a VM.")},
		{"brief", withDescription(brief, "The answer in a few lines. Missing where the question is about a node.")},
		{"attempts", withDescription(listOf(attempts), "Its migrations, newest first, and those that failed alike as one. Missing where there was one at most.")},
		{"attempts_older", newCountSchema("How many of the oldest are in none of attempts.")},
		{"paragraph", withDescription(newTextSchema(), "The full account.")},
		{"advice", withDescription(newTextSchema(), "What to do: indented lines can be pasted. Missing where there is nothing to do.")},
		{"as_of", newTimeSchema("The moment for which it speaks.")},
		{"evidence", withDescription(orNull(listOf(line)), "What it rests on, in the order of time.")},
	}, append(restsFields(), recordingFields("The gaps that overlap the period of the answer, newest first, at most ten.")...)...)), "Why a VM moved, or what happened on a node.")
}

func notAnswerSchema() schema {
	obstacle := newObjectSchema([]string{"kind", "namespace", "vmi", "text"}, fields{
		{"kind", withDescription(newTextSchema(), "What sort of thing is in the way.")},
		{"namespace", newTextSchema()}, {"vmi", newTextSchema()},
		{"text", withDescription(newTextSchema(), "A sentence without a stop.")},
		{"until", newTimeSchema("When it is over by itself. Missing where it is not, or nobody knows.")},
		{"reason", withDescription(newTextSchema(), "Finer: a wait_reason, a failure class or the cause of an outage.")},
	})
	outage := newObjectSchema([]string{"outage_id", "node", "began_at", "cause"}, fields{
		{"outage_id", withDescription(newTextSchema(), "Its identity.")}, {"node", newTextSchema()},
		{"began_at", newTimeSchema("Since when the node is not ready.")},
		{"ended_at", newTimeSchema("When it was ready again. Missing while it is not.")}, {"ended_by", withDescription(newTextSchema(), "How it ended.")},
		{"cause", withDescription(oneOf(trail.OutageSilent, trail.OutageReported), "Whether its kubelet does not answer, or reports that it is not ready.")},
		{"message", withDescription(newTextSchema(), "What Kubernetes says of it.")},
	})
	return withDescription(newObjectSchema([]string{"node", "paragraph", "as_of", "obstacles", "semantics"}, append(fields{
		{"node", withDescription(newTextSchema(), "The node, or that of the VM.")},
		{"namespace", withDescription(newTextSchema(), "Missing where the question is about a node.")}, {"vmi", newTextSchema()},
		{"paragraph", withDescription(newTextSchema(), "The answer.")},
		{"advice", withDescription(newTextSchema(), "What to do. Missing where there is nothing to do.")},
		{"as_of", newTimeSchema("The moment for which it speaks.")},
		{"obstacles", withDescription(orNull(listOf(obstacle)), "What is in the way, the most important first.")},
		{"outage", withDescription(outage, "The outage of the node, which goes on. Missing where the node is ready, or nothing is known of it.")},
	}, append(restsFields(), recordingFields("The gaps that overlap the time from since to as_of, at least the hour before as_of; newest first, at most ten.")...)...)),
		"What keeps a VM, or the VMs of a node, from moving.")
}

func problemSchema() schema {
	return withDescription(newObjectSchema([]string{"title", "status", "detail"}, fields{
		{"type", withDescription(schema{Type: types{"string"}, Format: "uri"}, "What sort of problem it is, where programs may want to know: "+ProblemUnknown+", "+ProblemSeveral+", "+ProblemTooLarge+". Missing, which means about:blank, where the status says it all.")},
		{"title", withDescription(newTextSchema(), "The status in words.")},
		{"status", newCountSchema("The status.")},
		{"detail", withDescription(newTextSchema(), "What is wrong, and what to do.")},
		{"name", withDescription(newTextSchema(), "Of a 409: what is known in several clusters.")},
		{"clusters", withDescription(listOf(newTextSchema()), "Of a 409: those clusters.")},
		{"fitting_limit", newCountSchema("Of a 400: a limit with which the answer would not be too large, about " + strconv.Itoa(readBody>>20) + " MiB.")},
	}), "A problem document (RFC 9457).")
}
