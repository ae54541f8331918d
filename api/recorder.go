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

const recordersPath = "/api/v1/recorders"

// The headers that describe the recording behind an answer: its state, and the gaps in it.
const (
	RecorderHeader   = "Evictrail-Recorder-State"
	unobservedHeader = "Evictrail-Not-Observed"
	standbyHeader    = "Evictrail-Standby-As-Of"
)

// MissingHeader names the evictrails whose part is missing in an answer about several; without it none is.
const MissingHeader = "Evictrail-Missing-Sources"

// recorderQuery asks for the state of recorders.
type recorderQuery struct {
	cluster  string
	from, to time.Time
}

// recorderParams returns the parameters of a recorderQuery.
func recorderParams() []param[recorderQuery] {
	return []param[recorderQuery]{
		{name: "cluster", about: "Only this cluster.", schema: newTextSchema(), example: "prod",
			read: readText("cluster", func(q *recorderQuery) *string { return &q.cluster }), write: func(q recorderQuery) string { return q.cluster }},
		{name: "from", about: "Include the gaps that were open after this time: " + timeAbout + ".", schema: newTextSchema(), example: "24h",
			read: readTime("from", func(q *recorderQuery) *time.Time { return &q.from }), write: func(q recorderQuery) string { return writeTime(q.from) }},
		{name: "to", about: "With from: only gaps that opened before this time: " + timeAbout + ".", schema: newTextSchema(), example: "1h",
			read: readTime("to", func(q *recorderQuery) *time.Time { return &q.to }), write: func(q recorderQuery) string { return writeTime(q.to) }},
	}
}

// RecordersURL returns the path, relative to that of evictrail, and the query string of a question about recorders.
func RecordersURL(cluster string, from, to time.Time) *url.URL {
	return &url.URL{Path: recordersPath, RawQuery: writeParams(recorderParams(), recorderQuery{cluster, from, to}).Encode()}
}

// listRecorders answers with the state of the recorder of each cluster.
func listRecorders(ctx context.Context, reader Reader, r *http.Request) (reply, error) {
	var q recorderQuery
	if err := readParams(recorderParams(), r.URL.RawQuery, time.Now().UTC(), &q); err != nil {
		return reply{}, err
	}
	all, err := reader.Recorders(ctx, q.cluster, q.from, q.to)
	if all == nil {
		all = []trail.RecorderStatus{} // an empty array, not null
	}
	return newJSONReply(all, err)
}

// addListRecorders adds to the headers of a list the worst state of the recorders of its clusters, which it returns, and the gaps that overlap its
// period. It is nil where no recorder is known.
func addListRecorders(ctx context.Context, reader Reader, header http.Header, cluster string, from, to time.Time) (note *trail.RecorderNote, err error) {
	all, err := reader.Recorders(ctx, cluster, from, to)
	if err != nil {
		return nil, err
	}
	if worst, is := trail.Worst(all); is {
		note = worst.Note()
		if oldest := trail.OldestStandby(all); oldest != nil {
			note.Standby = oldest
		}
	}
	var gaps []trail.Gap
	for _, s := range all {
		gaps = append(gaps, s.NotObserved...)
	}
	addRecorder(header, note, gaps)
	return note, nil
}

// addRecorder adds the headers that describe the recording behind an answer. Note may be nil.
func addRecorder(header http.Header, note *trail.RecorderNote, gaps []trail.Gap) {
	if note != nil {
		header.Set(RecorderHeader, string(note.State))
		if s := note.Standby; s.Answered() {
			header.Set(standbyHeader, s.AsOf.UTC().Format(time.RFC3339Nano))
		}
	}
	var texts []string
	for _, g := range gaps {
		until := ".."
		if !g.ClosedAt.IsZero() {
			until = g.ClosedAt.UTC().Format(time.RFC3339)
		}
		texts = append(texts, fmt.Sprintf("%s %s/%s %s", g.Source, g.OpenedAt.UTC().Format(time.RFC3339), until, g.Cause))
	}
	if len(texts) > 0 {
		header.Set(unobservedHeader, strings.Join(texts, ", "))
	}
}

// withRecorder adds the headers to an answer that has the same in its body.
func withRecorder(answer reply, err error, note *trail.RecorderNote, gaps []trail.Gap) (reply, error) {
	if err == nil {
		answer.header = http.Header{}
		addRecorder(answer.header, note, gaps)
	}
	return answer, err
}

func recorderSchema() schema {
	return withDescription(newObjectSchema([]string{"cluster", "state", "why", "unseen", "replayed", "at"}, append(append(fields{{"cluster", newTextSchema()}}, stateFields()...), fields{
		{"unseen", withDescription(listOf(newTextSchema()), "The sources that no replica watches now.")},
		{"alive_at", newTimeSchema("The last sign of life. Missing if there never was one.")},
		{"last_event_at", newTimeSchema("When the newest event was observed. Missing if there is none.")},
		{"at", newTimeSchema("The time of this answer.")},
		{"not_observed", withDescription(listOf(gapSchema()), "The gaps that overlap from..to, newest first, at most ten.")},
	}...)), "The state of the recorder of a cluster.")
}

// stateFields returns the fields of a trail.RecorderNote.
func stateFields() fields {
	return fields{
		{"state", oneOf(trail.RecorderStates()...)},
		{"since", newTimeSchema("When that state began.")},
		{"why", withDescription(listOf(newTextSchema()), "The reasons in sentences, those of the state first. Empty while recording.")},
		{"replayed", schema{Type: types{"boolean"}, Description: "The cluster was played from a recording; it is not being recorded."}},
		{"standby", standbySchema()},
	}
}

// standbySchema describes a trail.StandbySigns.
func standbySchema() schema {
	return withDescription(newObjectSchema([]string{"used", "lag_seconds"}, fields{
		{"used", schema{Type: types{"boolean"}, Description: "The standby made this answer. Otherwise the primary did."}},
		{"since", newTimeSchema("When it became so.")},
		{"as_of", newTimeSchema("The moment up to which the standby has everything. Missing while that is not known.")},
		{"lag_seconds", schema{Type: types{"number"}, Description: "How long ago that was when the answer began."}},
		{"cause", withDescription(oneOf(trail.StandbyCauses()...), "Why the standby is not used, or is although it is too far behind. Missing where neither is so.")},
		{"reason", withDescription(newTextSchema(), "The same in a few words.")},
	}), "The standby of the database that is to answer questions. Missing without --database-read-url.")
}

func gapSchema() schema {
	return newObjectSchema([]string{"gap_id", "source", "opened_at", "cause"}, fields{
		{"gap_id", schema{Type: types{"string"}, Format: "uuid"}},
		{"source", withDescription(newTextSchema(), "What was not observed: the resource of a watch, or evictrail.")},
		{"opened_at", newTimeSchema("When the source was last observed completely.")},
		{"closed_at", newTimeSchema("When it was observed completely again. Missing while it is not.")},
		{"cause", withDescription(newTextSchema(), "Why.")},
		{"detail", newTextSchema()},
	})
}

// recordingFields returns the fields by which an answer describes its recording.
func recordingFields(gaps string) fields {
	return fields{
		{"recorder", withDescription(newObjectSchema([]string{"state", "why"}, stateFields()), "The state of the recorder of the cluster now. Missing where the question is about the past.")},
		{"not_observed", withDescription(listOf(gapSchema()), gaps)},
	}
}

func (s *reads) recordersRoute() route {
	return route{
		method: http.MethodGet, path: recordersPath, tag: tagHealth, id: "listRecorders", short: "Get the state of the recorder of each cluster",
		about:  "The state that /readyz reports of one process, for each cluster that the caller may see, also where no recorder runs.",
		params: describeParams(recorderParams()), problems: readProblems,
		answers: []answer{{http.StatusOK, "The clusters, ordered by name.", readHeaders, jsonContent(listOf(newRefSchema("Recorder")), nil)}, newUnchangedAnswer(readHeaders)},
		handler: s.newHandler(listRecorders),
	}
}
