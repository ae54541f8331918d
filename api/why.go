package api

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/url"
	"time"

	"github.com/gorilla/mux"

	"github.com/evictrail/evictrail/trail"
)

// The paths of questions.
const (
	vmPath   = "/api/v1/vms/{namespace}/{name}/"
	nodePath = "/api/v1/nodes/{node}/"
	whyEnd   = "why"
	notEnd   = "why-not"
)

// questionParams are the parameters of a question, named as on the command line.
func questionParams() []param[trail.Question] {
	return []param[trail.Question]{
		{name: "cluster", about: "The cluster, where it is known in several.", schema: newTextSchema(), example: "prod",
			read: readText("cluster", func(q *trail.Question) *string { return &q.Cluster }), write: func(q trail.Question) string { return q.Cluster }},
		{name: "at", about: "Answer as of then: " + timeAbout + ". By default as of now or, where the cluster is not watched any more, of when it was last seen.", schema: newTextSchema(), example: "2026-11-21T00:40:00Z",
			read: readTime("at", func(q *trail.Question) *time.Time { return &q.At }), write: func(q trail.Question) string { return writeTime(q.At) }},
	}
}

// parseQuestion reads a question about a VM or a node.
func parseQuestion(r *http.Request, of trail.Subject) (trail.Question, error) {
	q := trail.Question{Of: of}
	if !isText(of.Name) {
		return q, newProblem(http.StatusBadRequest, "the path is no text in UTF-8")
	}
	return q, readParams(questionParams(), r.URL.RawQuery, time.Now().UTC(), &q)
}

// QuestionURL returns the path, relative to that of evictrail, and the query string of a question.
func QuestionURL(q trail.Question, not bool) *url.URL {
	u, end := &url.URL{RawQuery: writeParams(questionParams(), q).Encode()}, whyEnd
	if not {
		end = notEnd
	}
	if q.Of.Kind == trail.SubjectNode {
		return u.JoinPath("api", "v1", "nodes", url.PathEscape(q.Of.Name), end)
	}
	namespace, name := q.Of.VM()
	return u.JoinPath("api", "v1", "vms", url.PathEscape(namespace), url.PathEscape(name), end)
}

func vmOf(r *http.Request) trail.Subject {
	vars := mux.Vars(r)
	return trail.VMISubject(vars["namespace"], vars["name"])
}

func nodeOf(r *http.Request) trail.Subject {
	return trail.Subject{Kind: trail.SubjectNode, Name: mux.Vars(r)["node"]}
}

// answerWhy answers why a VM moved, or why VMs left a node.
func answerWhy(of func(*http.Request) trail.Subject) asking {
	return func(ctx context.Context, reader Reader, r *http.Request) (reply, error) {
		q, err := parseQuestion(r, of(r))
		if err != nil {
			return reply{}, err
		}
		a, err := reader.Why(ctx, q)
		answer, err := newJSONReply(a, err)
		return withRecorder(answer, err, a.Recorder, a.NotObserved)
	}
}

// whyNot answers what keeps a VM, or the VMs of a node, from moving.
func whyNot(of func(*http.Request) trail.Subject) asking {
	return func(ctx context.Context, reader Reader, r *http.Request) (reply, error) {
		q, err := parseQuestion(r, of(r))
		if err != nil {
			return reply{}, err
		}
		a, err := reader.WhyNot(ctx, q)
		answer, err := newJSONReply(a, err)
		return withRecorder(answer, err, a.Recorder, a.NotObserved)
	}
}

func newJSONReply(answer any, err error) (reply, error) {
	if err != nil {
		return reply{}, err
	}
	var b bytes.Buffer
	err = WriteJSON(&b, answer)
	return reply{contentType: mediaTypes["json"], body: b.Bytes()}, err
}

// WriteJSON writes JSON for people and programs, as evictrail prints it, too.
func WriteJSON(out io.Writer, v any) error {
	e := json.NewEncoder(out)
	e.SetIndent("", "  ")
	e.SetEscapeHTML(false) // it is not put into a page
	return e.Encode(v)
}

func (s *reads) whyRoutes() []route {
	vm := []parameter{pathParam("namespace", "The namespace of the VM.", "shop"), pathParam("name", "The name of the VM.", "db-1")}
	node := []parameter{pathParam("node", "The name of the node.", "worker-1")}
	one := func(path, id, short, schema string, in []parameter, ask asking, example any) route {
		return route{
			method: http.MethodGet, path: path, tag: tagWhy, id: id, short: short, params: append(in, describeParams(questionParams())...), problems: whyProblems,
			answers: []answer{{http.StatusOK, "The answer.", whyHeaders, jsonContent(newRefSchema(schema), example)}, newUnchangedAnswer(whyHeaders)}, handler: s.newHandler(ask),
		}
	}
	return []route{
		one(vmPath+whyEnd, "why", "Say why a VM moved, and on what that rests", "Answer", vm, answerWhy(vmOf), exampleAnswer),
		one(vmPath+notEnd, "whyNot", "Say what keeps a VM from moving", "NotAnswer", vm, whyNot(vmOf), exampleNotAnswer),
		one(nodePath+whyEnd, "whyNode", "Say why VMs left a node, and on what that rests", "Answer", node, answerWhy(nodeOf), nil),
		one(nodePath+notEnd, "whyNotNode", "Say what keeps the VMs of a node from moving", "NotAnswer", node, whyNot(nodeOf), nil),
	}
}

var exampleMoment = time.Date(2026, 11, 21, 0, 45, 7, 0, time.UTC)

var exampleAnswer = trail.Answer{
	Namespace: "shop", VMI: "db-1", AsOf: exampleMoment,
	Brief: trail.Brief{
		Status: "On worker-2 (zone zone-a) for 57 s; free to move", AskedBy: "The descheduler, at 2026-11-21 00:32:56Z",
		Attempts: "5 failed, 1 succeeded (to worker-2 at 2026-11-21 00:44:10Z, after 11 min)", Verdict: "The move was not needed, and made worker-2 worse: worker-1 was at 40 %, under its threshold of 50 %",
	},
	Paragraph: "shop/db-1: At 2026-11-21 00:32:56Z the descheduler asked to evict it from worker-1. It moved at 2026-11-21 00:44:10Z, 11 min after the request.",
	Evidence: []trail.Line{{
		At: exampleMoment.Add(-12 * time.Minute), Kind: trail.KindEvacuationMarked, Namespace: "shop", VMI: "db-1", Node: "worker-1",
		Sentence: "KubeVirt marked it to leave worker-1.",
	}},
}

var exampleNotAnswer = trail.NotAnswer{
	Node: "worker-1", Namespace: "shop", VMI: "db-1", AsOf: exampleMoment, Paragraph: "shop/db-1 on worker-1: Its migrations fail.",
	Obstacles: []trail.Obstacle{{Kind: trail.ObstacleFailing, Namespace: "shop", VMI: "db-1", Text: "its migrations fail"}},
}
