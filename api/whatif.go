package api

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
	"time"

	"github.com/evictrail/evictrail/trail"
	"github.com/evictrail/evictrail/trail/whatif"
)

// WhatIfPath is where it is asked what would have been different.
const WhatIfPath = "/api/v1/whatif"

// The bounds of a question.
const (
	whatIfBody    = 64 << 10        // bytes
	whatIfArrives = 5 * time.Second // in which it arrives
)

// WhatIfBody is the question as it is sent. Policies and the sweep are written as on the command line.
type WhatIfBody struct {
	Cluster   string   `json:"cluster,omitempty"`
	Namespace string   `json:"namespace,omitempty"`
	Node      string   `json:"node,omitempty"`
	Since     string   `json:"since,omitempty"`
	Until     string   `json:"until,omitempty"`
	Policies  []string `json:"policies,omitempty"`
	Sweep     string   `json:"sweep,omitempty"`
	SweepWith string   `json:"sweep_with,omitempty"`
}

// NewWhatIfBody returns a question as it is sent.
func NewWhatIfBody(q whatif.Question) WhatIfBody {
	b := WhatIfBody{Cluster: q.Cluster, Namespace: q.Namespace, Node: q.Node, Since: writeTime(q.Since), Until: writeTime(q.Until)}
	for _, p := range q.Policies {
		b.Policies = append(b.Policies, p.String())
	}
	if q.Sweep != nil {
		b.Sweep, b.SweepWith = q.Sweep.Text, q.Sweep.With.String()
	}
	return b
}

// Question reads what was sent, now being the moment from which ages count. The error says what is wrong.
func (b *WhatIfBody) Question(now time.Time) (whatif.Question, error) {
	q := whatif.Question{Cluster: b.Cluster, Namespace: b.Namespace, Node: b.Node}
	for name, text := range map[string]string{"cluster": b.Cluster, "namespace": b.Namespace, "node": b.Node} {
		if !isText(text) {
			return q, fmt.Errorf("%s: expected text in UTF-8", name)
		}
	}
	var err error
	if q.Since, err = trail.ParseTime(b.Since, now); err != nil {
		return q, fmt.Errorf("since %w", err)
	}
	if q.Until, err = trail.ParseTime(b.Until, now); err != nil {
		return q, fmt.Errorf("until %w", err)
	}
	if q.Policies, err = whatif.ParsePolicies(b.Policies); err != nil {
		return q, err
	}
	if b.Sweep == "" {
		return q, q.Bound(now)
	}
	var with whatif.Policy
	if b.SweepWith != "" {
		if with, err = whatif.ParsePolicy(b.SweepWith); err != nil {
			return q, err
		}
	}
	s, err := whatif.ParseSweep(b.Sweep, with)
	if err != nil {
		return q, err
	}
	q.Sweep = &s
	return q, q.Bound(now)
}

// bodyFirst hands on a request whose body has arrived: else one that never ends would take the only place for questions that take long.
func bodyFirst(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		deadline := http.NewResponseController(w) // a writer that knows none is that of a test
		_ = deadline.SetReadDeadline(time.Now().Add(whatIfArrives))
		raw, err := io.ReadAll(io.LimitReader(r.Body, whatIfBody+1))
		switch {
		case errors.Is(err, os.ErrDeadlineExceeded):
			writeProblem(w, http.StatusRequestTimeout, fmt.Sprintf("the body did not arrive within %s", whatIfArrives))
			return
		case err != nil:
			writeProblem(w, http.StatusBadRequest, "the body cannot be read to its end")
			return
		case len(raw) > whatIfBody:
			writeProblem(w, http.StatusRequestEntityTooLarge, fmt.Sprintf("the body is longer than %d KiB", whatIfBody>>10))
			return
		}
		_ = deadline.SetReadDeadline(time.Time{})
		r.Body = io.NopCloser(bytes.NewReader(raw))
		next.ServeHTTP(w, r)
	})
}

// ReadWhatIf reads a WhatIfBody, now being the moment from which ages count. The error is a *Problem.
func ReadWhatIf(body io.Reader, now time.Time) (whatif.Question, error) {
	var b WhatIfBody
	d := json.NewDecoder(body)
	d.DisallowUnknownFields()
	if err := d.Decode(&b); err != nil && !errors.Is(err, io.EOF) || err == nil && d.More() {
		return whatif.Question{}, newProblem(http.StatusBadRequest, "the body cannot be read: expected one JSON object with cluster, namespace, node, since, until, policies, sweep and sweep_with, all of which may be missing")
	}
	q, err := b.Question(now)
	if err != nil {
		return q, newProblem(http.StatusBadRequest, err.Error())
	}
	return q, nil
}

// WhatIfSchema describes a WhatIfBody as a JSON Schema.
func WhatIfSchema() json.RawMessage {
	raw, err := json.Marshal(whatIfSchema())
	if err != nil {
		panic("marshal schema: " + err.Error()) // our own types: cannot fail
	}
	return raw
}

// whatIf answers what would have been different.
func whatIf(ctx context.Context, reader Reader, r *http.Request) (reply, error) {
	q, err := ReadWhatIf(r.Body, time.Now().UTC())
	if err != nil {
		return reply{}, err
	}
	return newJSONReply(reader.WhatIf(ctx, q))
}

func (s *reads) whatIfRoute() route {
	return route{
		method: http.MethodPost, path: WhatIfPath, tag: tagWhy, id: "whatIf", short: "Say what would have been different under other policies",
		about: fmt.Sprintf("Replays what was recorded of a period, a week by default and at most %d days, under policies that were not in force. Without policies and a sweep these are %s. "+
			"At most %d policies at once, those of the sweep among them; one such question is answered at a time.", whatif.MostDays, whatif.Names(whatif.Proposals()), whatif.MostPolicies),
		body:     &requestBody{"What is asked. Nothing of it has to be given.", false, fields{{mediaTypes["json"], content{newRefSchema("WhatIf"), exampleWhatIf}}}},
		answers:  []answer{{http.StatusOK, "The answer.", []string{headerCached, headerVary}, jsonContent(newRefSchema("WhatIfAnswer"), nil)}},
		problems: problemsWith(http.StatusBadRequest, http.StatusNotFound, http.StatusConflict, http.StatusRequestTimeout, http.StatusRequestEntityTooLarge), handler: bodyFirst(s.newHandlerWithin(whatif.Within, s.crowd.awaitLongTurn, whatIf)),
	}
}

var exampleWhatIf = WhatIfBody{Since: "7d", Policies: []string{"try-once", "base=30m cap=4h"}, Sweep: "base=5m..60m"}

func whatIfSchema() schema {
	s := newObjectSchema(nil, fields{
		{"cluster", withDescription(newTextSchema(), "The cluster, where several are recorded.")},
		{"namespace", withDescription(newTextSchema(), "Report only VMs of this namespace; the others are replayed, too.")},
		{"node", withDescription(newTextSchema(), "Report only this node; the others are replayed, too.")},
		{"since", withDescription(newTextSchema(), "From when on: "+timeAbout+". By default a week before until.")},
		{"until", withDescription(newTextSchema(), "Until when. By default now or, where the cluster is not watched any more, when it was last seen.")},
		{"policies", withDescription(listOf(newTextSchema()), "Each as words, such as base=5m cap=1h: "+strings.Join(whatif.Words(), ", ")+". What a policy leaves out is as it was recorded.")},
		{"sweep", withDescription(newTextSchema(), "A setting from one value to another, such as base=5m..60m (in round steps), window=12h..72h/12h or node-limit=1..5.")},
		{"sweep_with", withDescription(newTextSchema(), "What else the policies of the sweep have in common, as words.")},
	})
	return withDescription(s, "A question about what would have been different.")
}

func whatIfAnswerSchema() schema {
	seconds := func(about string) schema { return schema{Type: types{"number"}, Description: about + ", in seconds."} }
	yes := func(about string) schema { return schema{Type: types{"boolean"}, Description: about} }
	tally := newObjectSchema([]string{"evictions", "evacuations", "migrations", "failed_attempts", "moves", "loops"}, fields{
		{"evictions", newCountSchema("Of the descheduler, each once however often it was repeated.")},
		{"evacuations", newCountSchema("No matter who asked.")},
		{"migrations", newCountSchema("That ended.")},
		{"failed_attempts", newCountSchema("Of these.")},
		{"moves", newCountSchema("Of these: guests that came to another node.")},
		{"loops", newCountSchema("That opened.")},
	})
	change := newObjectSchema([]string{"kind", "at", "namespace", "vmi", "vmi_uid", "node", "migrations_saved", "failed_attempts_saved", "stays", "sentence"}, fields{
		{"kind", withDescription(oneOf(whatif.ChangeHeldBack, whatif.ChangeGaveUp, whatif.ChangeSooner), "What is different.")},
		{"at", newTimeSchema("When the eviction was asked, given up, or would have come.")},
		{"namespace", newTextSchema()}, {"vmi", newTextSchema()}, {"vmi_uid", newTextSchema()}, {"node", newTextSchema()},
		{"rule", withDescription(oneOf(whatif.RuleInProgress, whatif.RuleCooldown, whatif.RuleNodeSlots, whatif.RuleTotalSlots), "By what it would have been held back.")},
		{"until", newTimeSchema("When nothing would have been in the way any more. Missing where that is not within the period.")},
		{"asked_again", newTimeSchema("When the descheduler asked for the VM, and might have it. Missing where it did not.")},
		{"migrations_saved", newCountSchema("Migrations that would not have happened.")},
		{"failed_attempts_saved", newCountSchema("Of these.")},
		{"stays", yes("It moved, and would not have then.")},
		{"left_at", newTimeSchema("When it moved.")},
		{"hot_seen_at", newTimeSchema("When the descheduler last asked for a VM of the node after that.")},
		{"sentence", withDescription(newTextSchema(), "The same in words.")},
	})
	cooldown := newObjectSchema(nil, fields{
		{"off", yes("There is none.")}, {"base_seconds", seconds("After the first migration in the window")}, {"cap_seconds", seconds("Most that it is")},
		{"window_seconds", seconds("In which migrations count")},
	})
	policy := newObjectSchema(nil, fields{
		{"cooldown", cooldown},
		{"node_limit", newCountSchema("Evictions under way from one node.")}, {"total_limit", newCountSchema("Evictions under way from all nodes.")},
		{"keep_mark", yes("The in-progress mark stays until the evacuation ends.")}, {"try_once", yes("KubeVirt tries an eviction of the descheduler once.")},
		{"give_up_after", newCountSchema("Attempts after which KubeVirt gives up.")},
	})
	result := newObjectSchema([]string{"name", "policy", "would", "changed", "migrations_saved", "failed_attempts_saved", "requests_saved", "evictions_held_back", "asked_again", "wait_total_seconds",
		"wait_longest_seconds", "evictions_sooner", "gave_up", "stays", "stays_hot", "vms_staying", "loops_avoided", "unknown", "changes", "changes_more"}, fields{
		{"name", withDescription(newTextSchema(), "The policy as it is written.")},
		{"policy", withDescription(policy, "What is different of it; what is missing is as it was recorded.")},
		{"swept", yes("It is a point of the sweep.")},
		{"value", schema{Type: types{"number"}, Description: "Of the setting that was swept: seconds, or a number."}},
		{"would", withDescription(tally, "What would have happened.")},
		{"changed", yes("Anything at all.")},
		{"migrations_saved", newCountSchema("Migrations that would not have happened.")},
		{"failed_attempts_saved", newCountSchema("Of these.")},
		{"requests_saved", newCountSchema("Repetitions that the descheduler would not have sent.")},
		{"evictions_held_back", newCountSchema("Evictions that would not have come when they did.")},
		{"asked_again", newCountSchema("Of these: whose VM the descheduler asked for later, when it might have it.")},
		{"wait_total_seconds", seconds("From when they were asked until nothing would have been in the way, all together")},
		{"wait_longest_seconds", seconds("The longest of these")},
		{"evictions_sooner", newCountSchema("Evictions that were kept back, and would not have been.")},
		{"gave_up", newCountSchema("Evacuations that KubeVirt would have given up while it went on.")},
		{"stays", newCountSchema("Moves away from a node that would not have been made when they were.")},
		{"stays_hot", newCountSchema("Of these: whose node the descheduler went on to relieve.")},
		{"vms_staying", newCountSchema("How many VMs that are.")},
		{"loops_avoided", schema{Type: types{"object"}, Description: "Numbers, by kind of loop."}},
		{"unknown", withDescription(listOf(newObjectSchema([]string{"reason", "text", "count"}, fields{{"reason", newTextSchema()}, {"text", newTextSchema()}, {"count", newCountSchema("How often it came up.")}})), "What the history does not show, the most frequent first.")},
		{"changes", withDescription(listOf(change), "The first differences, in the order of their times.")},
		{"changes_more", newCountSchema("Differences that are only counted.")},
	})
	return withDescription(newObjectSchema([]string{"cluster", "since", "until", "recorded", "policies", "assumptions"}, fields{
		{"cluster", newTextSchema()}, {"namespace", newTextSchema()}, {"node", newTextSchema()},
		{"since", newTimeSchema("Inclusive.")}, {"until", newTimeSchema("Exclusive.")},
		{"recorded", withDescription(tally, "What really happened.")},
		{"rules", withDescription(newObjectSchema([]string{"model"}, fields{
			{"model", withDescription(newTextSchema(), "Of the cooldown: the versions of the descheduler that behave so, or none.")},
			{"cooldown", withDescription(cooldown, "Missing where there was none.")},
			{"node_limit", newCountSchema("Evictions under way from one node. Missing where there was no limit.")}, {"total_limit", newCountSchema("The same from all nodes.")},
		}), "Of the descheduler, as they were seen in force at the end. Missing where none were.")},
		{"policies", withDescription(listOf(result), "In the order in which they were asked about, those of the sweep last.")},
		{"sweep_of", withDescription(newTextSchema(), "The setting that was swept.")},
		{"assumptions", withDescription(listOf(newObjectSchema([]string{"name", "text"}, fields{{"name", newTextSchema()}, {"text", newTextSchema()}})), "What is taken for granted.")},
	}), "What would have been different.")
}
