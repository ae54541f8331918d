package notify

import (
	"context"
	"encoding/json"
	"fmt"
	"net/url"
	"strings"
	"time"

	"github.com/evictrail/evictrail/remote"
	"github.com/evictrail/evictrail/trail"
)

// CloudEvents notifies a receiver of CloudEvents 1.0 over HTTP, each in structured mode.
//
// Source: https://github.com/cloudevents/spec/blob/v1.0.2/cloudevents/bindings/http-protocol-binding.md
type CloudEvents struct{ to *poster }

// NewCloudEvents makes a receiver. Its errors are of the files that the server names.
func NewCloudEvents(server remote.Server) (*CloudEvents, error) {
	to, err := newPoster(server)
	return &CloudEvents{to}, err
}

// Name implements Receiver.
func (*CloudEvents) Name() string { return NameCloudEvents }

// Wants implements Receiver: of all.
func (*CloudEvents) Wants(trail.NoticeKind) bool { return true }

// Delay implements Receiver: none.
func (*CloudEvents) Delay() time.Duration { return 0 }

// cloudEvent is a CloudEvent. Its data are a row of a view, as lists of the HTTP API have it, with a sentence.
type cloudEvent struct {
	SpecVersion     string    `json:"specversion"`
	ID              string    `json:"id"`
	Source          string    `json:"source"`
	Type            string    `json:"type"`
	Subject         string    `json:"subject,omitempty"`
	Time            time.Time `json:"time"`
	DataContentType string    `json:"datacontenttype"`
	Data            eventData `json:"data"`
}

type eventData struct {
	Sentence string          `json:"sentence"`
	Row      json.RawMessage `json:"row"`
}

// typeOf returns the type of the CloudEvents of a kind of notices: dev.evictrail.loop.opened.
func typeOf(kind trail.NoticeKind) string {
	return "dev.evictrail." + strings.ReplaceAll(string(kind), "_", ".")
}

// subjectOf names the VM, as namespace/name, or the node, as node/name; empty where it is about neither.
func subjectOf(n trail.Notice) string {
	switch {
	case n.VMI != "":
		return n.Namespace + "/" + n.VMI
	case n.Node != "":
		return "node/" + n.Node
	}
	return ""
}

func newCloudEvent(n trail.Notice) cloudEvent {
	return cloudEvent{
		SpecVersion: "1.0", ID: n.ID.String(), Source: "urn:evictrail:cluster:" + url.PathEscape(n.Cluster), Type: typeOf(n.Kind),
		Subject: subjectOf(n), Time: n.At, DataContentType: "application/json", Data: eventData{n.Sentence, n.Row},
	}
}

// Send implements Receiver.
func (c *CloudEvents) Send(ctx context.Context, n trail.Notice) error {
	body, err := json.Marshal(newCloudEvent(n))
	if err != nil {
		return &RefusedError{fmt.Errorf("write CloudEvent: %w", err)}
	}
	_, err = c.to.post(ctx, "application/cloudevents+json; charset=utf-8", body)
	return err
}
