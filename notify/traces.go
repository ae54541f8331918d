package notify

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/evictrail/evictrail/remote"
	"github.com/evictrail/evictrail/trail"
)

// Traces notifies a receiver of OTLP over HTTP of each evacuation that ended: one trace of the requests that asked for it, its attempts
// and their phases. IDs are those of what was recorded, so that a trace that is sent again is the same one.
type Traces struct {
	to   *poster
	rows Rows
}

// NewTraces makes a receiver of a server, whose URL is that of the collector, without /v1/traces. Its errors are of the URL and the
// files that the server names.
func NewTraces(server remote.Server, rows Rows) (*Traces, error) {
	at, err := url.JoinPath(server.URL, "v1", "traces")
	if err != nil {
		return nil, err
	}
	server.URL = at
	to, err := newPoster(server)
	return &Traces{to, rows}, err
}

// Name implements Receiver.
func (*Traces) Name() string { return NameTraces }

// Wants implements Receiver: of evacuations that ended.
func (*Traces) Wants(kind trail.NoticeKind) bool { return kind == trail.NoticeEvacuationEnded }

// Delay implements Receiver: the last phase of a migration may be seen after the guest has moved.
func (*Traces) Delay() time.Duration { return 30 * time.Second }

// evacuationRow has what a span shows of an evacuation.
type evacuationRow struct {
	ID        trail.FactID  `json:"evacuation_id"`
	MarkedAt  time.Time     `json:"marked_at"`
	EndedAt   time.Time     `json:"ended_at"`
	Trigger   string        `json:"trigger"`
	Requester string        `json:"requester"`
	Class     string        `json:"requester_class"`
	Outcome   trail.Outcome `json:"outcome"`
}

// requestRow has what a span shows of an eviction request.
type requestRow struct {
	ID          trail.FactID  `json:"request_id"`
	Evacuation  *trail.FactID `json:"evacuation_id"`
	RequestedAt time.Time     `json:"requested_at"`
	AnsweredAt  time.Time     `json:"answered_at"`
	Requester   string        `json:"requester"`
	Class       string        `json:"requester_class"`
	Reason      string        `json:"stated_reason"`
	Answer      string        `json:"answer"`
}

// migrationRow has what spans show of a migration and its phases.
type migrationRow struct {
	UID        string        `json:"migration_uid"`
	Evacuation *trail.FactID `json:"evacuation_id"`
	Name       string        `json:"migration"`
	Attempt    *int          `json:"attempt"`
	SourceNode string        `json:"source_node"`
	TargetNode string        `json:"target_node"`
	Outcome    trail.Outcome `json:"outcome"`
	Class      string        `json:"failure_class"`
	Reason     string        `json:"failure_reason"`
	Text       string        `json:"failure_text"`

	CreatedAt    time.Time `json:"created_at"`
	SchedulingAt time.Time `json:"scheduling_at"`
	ScheduledAt  time.Time `json:"scheduled_at"`
	PreparingAt  time.Time `json:"preparing_target_at"`
	ReadyAt      time.Time `json:"target_ready_at"`
	RunningAt    time.Time `json:"running_at"`
	FinishedAt   time.Time `json:"finished_at"`
}

// Send implements Receiver.
func (s *Traces) Send(ctx context.Context, n trail.Notice) error {
	request, err := s.newTrace(ctx, n)
	if err != nil {
		return err
	}
	body, err := json.Marshal(request)
	if err != nil {
		return &RefusedError{fmt.Errorf("write trace: %w", err)}
	}
	text, err := s.to.post(ctx, "application/json", body)
	if err != nil {
		return err
	}
	var answer otlpAnswer
	if json.Unmarshal(text, &answer) == nil && answer.PartialSuccess.RejectedSpans > 0 { // what is no JSON says nothing of the sort
		return &RefusedError{fmt.Errorf("%d spans rejected: %s", answer.PartialSuccess.RejectedSpans, answer.PartialSuccess.ErrorMessage)}
	}
	return nil
}

// before is how long before a mark the first request for it may have come.
const before = time.Hour

// newTrace makes the trace of an evacuation.
func (s *Traces) newTrace(ctx context.Context, n trail.Notice) (otlpRequest, error) {
	var e evacuationRow
	if err := json.Unmarshal(n.Row, &e); err != nil {
		return otlpRequest{}, &RefusedError{fmt.Errorf("read evacuation: %w", err)}
	}
	q := trail.Query{Cluster: n.Cluster, Namespace: n.Namespace, VMI: n.VMI, Since: e.MarkedAt.Add(-before), Oldest: true}
	requests, err := listRows[requestRow](ctx, s.rows, trail.ViewRequests, q)
	if err != nil {
		return otlpRequest{}, err
	}
	migrations, err := listRows[migrationRow](ctx, s.rows, trail.ViewMigrations, q)
	if err != nil {
		return otlpRequest{}, err
	}
	t := traceOf{id: hex.EncodeToString(e.ID[:])}
	vm := []string{"k8s.namespace.name", n.Namespace, "evictrail.vmi", n.VMI}
	root := t.add("", "evacuation", e.ID.String(), e.MarkedAt, e.EndedAt, e.Outcome != trail.OutcomeMigrated, n.Sentence, append(vm,
		"k8s.node.name", n.Node, "evictrail.trigger", e.Trigger, "evictrail.requester", e.Requester, "evictrail.requester_class", e.Class,
		"evictrail.outcome", string(e.Outcome))...)
	for _, r := range requests {
		if r.Evacuation != nil && *r.Evacuation == e.ID {
			t.add(root, "eviction request", r.ID.String(), r.RequestedAt, r.AnsweredAt, false, "", append(vm,
				"evictrail.requester", r.Requester, "evictrail.requester_class", r.Class, "evictrail.stated_reason", r.Reason, "evictrail.answer", r.Answer)...)
		}
	}
	for _, m := range migrations {
		if m.Evacuation != nil && *m.Evacuation == e.ID && !m.FinishedAt.IsZero() {
			t.addMigration(root, m, vm)
		}
	}
	return otlpRequest{[]otlpResourceSpans{{
		Resource:   otlpResource{listAttributes("service.name", "evictrail", "k8s.cluster.name", n.Cluster)},
		ScopeSpans: []otlpScopeSpans{{otlpScope{"github.com/evictrail/evictrail"}, t.spans}},
	}}}, nil
}

// listRows reads the rows of a view.
func listRows[Row any](ctx context.Context, from Rows, v trail.View, q trail.Query) ([]Row, error) {
	page, err := from.ListJSON(ctx, v, q)
	if err != nil {
		return nil, err
	}
	out := make([]Row, len(page.Rows))
	for i, raw := range page.Rows {
		if err := json.Unmarshal(raw, &out[i]); err != nil {
			return nil, &RefusedError{fmt.Errorf("read a row of %s: %w", v.Name, err)}
		}
	}
	return out, nil
}

// traceOf is a trace that is being made.
type traceOf struct {
	id    string
	spans []otlpSpan
}

// add adds a span of something that was recorded, and returns its ID. One without an end has none of its own time.
func (t *traceOf) add(parent, name, key string, start, end time.Time, failed bool, message string, pairs ...string) string {
	if end.Before(start) {
		end = start
	}
	sum := sha256.Sum256([]byte(name + " " + key))
	s := otlpSpan{
		TraceID: t.id, SpanID: hex.EncodeToString(sum[:8]), ParentID: parent, Name: name, Kind: otlpInternal, Start: otlpTime(start), End: otlpTime(end),
		Attributes: listAttributes(pairs...),
	}
	if failed {
		s.Status = otlpStatus{otlpError, message}
	}
	t.spans = append(t.spans, s)
	return s.SpanID
}

// addMigration adds the span of a migration with those of its phases. Phases that were not seen have none.
func (t *traceOf) addMigration(parent string, m migrationRow, vm []string) {
	attempt := ""
	if m.Attempt != nil {
		attempt = strconv.Itoa(*m.Attempt)
	}
	failed := m.Outcome == trail.OutcomeFailed
	of := t.add(parent, "migration", m.UID, m.CreatedAt, m.FinishedAt, failed, strings.TrimSpace(m.Text), append(vm,
		"evictrail.migration", m.Name, "evictrail.attempt", attempt, "evictrail.source_node", m.SourceNode, "evictrail.target_node", m.TargetNode,
		"evictrail.outcome", string(m.Outcome), "evictrail.failure_class", m.Class, "evictrail.failure_reason", m.Reason)...)
	phases := []struct {
		name string
		at   time.Time
	}{
		{"queue", m.CreatedAt}, {"scheduling", m.SchedulingAt}, {"scheduled", m.ScheduledAt}, {"preparing target", m.PreparingAt},
		{"target ready", m.ReadyAt}, {"running", m.RunningAt}, {"", m.FinishedAt},
	}
	begun := 0
	for i := 1; i < len(phases); i++ {
		if phases[i].at.IsZero() {
			continue
		}
		t.add(of, phases[begun].name, m.UID, phases[begun].at, phases[i].at, false, "")
		begun = i
	}
}
