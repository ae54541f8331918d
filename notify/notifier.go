package notify

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/evictrail/evictrail/store/delivery"
	"github.com/evictrail/evictrail/store/pg"
	"github.com/evictrail/evictrail/trail"
)

// Receiver is a program outside of evictrail that is notified of what happens.
type Receiver interface {
	// Name is that under which the database keeps how far it was notified.
	Name() string
	// Wants reports whether it is notified of a kind of notices.
	Wants(kind trail.NoticeKind) bool
	// Delay is how long after a row last changed it is notified of it: then what belongs to it is there, too.
	Delay() time.Duration
	// Send sends it a notice. A RefusedError says that it will never take this one; after others it is sent again.
	Send(ctx context.Context, n trail.Notice) error
}

// RefusedError says that a receiver will never take a notice.
type RefusedError struct{ Err error }

// Error says why.
func (e *RefusedError) Error() string { return "refused for good: " + e.Err.Error() }

// Unwrap returns the reason.
func (e *RefusedError) Unwrap() error { return e.Err }

// The names of the receivers.
const (
	NameCloudEvents      = "cloudevents"
	NameTraces           = "traces"
	NameKubernetesEvents = "kubernetes-events"
)

// Rows lists rows of views: a *read.Reader.
type Rows interface {
	ListJSON(ctx context.Context, v trail.View, q trail.Query) (trail.Page[json.RawMessage], error)
}

// Notifier notifies one receiver about one cluster.
type Notifier struct {
	DB       *pg.DB
	Rows     Rows
	Cluster  string
	Receiver Receiver
	// Sent is called for each notice with what became of it, and the error where it was not taken. Nil calls nobody.
	Sent func(n trail.Notice, became trail.Delivery, err error)
}

// pageRows bounds how many rows are read at a time.
const pageRows = 1000

// SendNews sends the receiver what it does not have yet, in the order in which it happened, and returns how many notices it took. The
// first notice that it does not take for now is the error, and is where the next call begins.
func (t *Notifier) SendNews(ctx context.Context) (sent int, err error) {
	p, err := delivery.Begin(ctx, t.DB, t.Cluster, t.Receiver.Name())
	if err != nil {
		return 0, err
	}
	until := p.Now().Add(-t.Receiver.Delay())
	var news []trail.Notice
	for _, v := range trail.NoticeViews() {
		of, err := t.listNotices(ctx, v, p, until)
		if err != nil {
			return 0, err
		}
		news = append(news, of...)
	}
	if news, err = p.Undelivered(ctx, t.DB, news); err != nil {
		return 0, err
	}
	slices.SortStableFunc(news, func(a, b trail.Notice) int { return a.At.Compare(b.At) })
	for _, n := range news {
		became, err := t.send(ctx, n)
		if t.Sent != nil && ctx.Err() == nil {
			t.Sent(n, became, err)
		}
		if became == trail.DeliveryFailed {
			return sent, fmt.Errorf("notify %s of %s: %w", t.Receiver.Name(), n.ID, err)
		}
		if err := p.Deliver(ctx, t.DB, n); err != nil {
			return sent, err
		}
		if became == trail.DeliveryTaken {
			sent++
		}
	}
	return sent, p.Advance(ctx, t.DB, until)
}

func (t *Notifier) send(ctx context.Context, n trail.Notice) (trail.Delivery, error) {
	err := t.Receiver.Send(ctx, n)
	if err == nil {
		return trail.DeliveryTaken, nil
	}
	if _, is := errors.AsType[*RefusedError](err); is {
		return trail.DeliveryRefused, err
	}
	return trail.DeliveryFailed, err
}

// listNotices returns what rows of a view that changed of late, and no later than a time, have to say to the receiver.
func (t *Notifier) listNotices(ctx context.Context, v trail.View, p delivery.Progress, until time.Time) ([]trail.Notice, error) {
	q := trail.Query{Cluster: t.Cluster, ChangedSince: p.ChangedSince(), Oldest: true, Limit: pageRows}
	var out []trail.Notice
	for {
		page, err := t.Rows.ListJSON(ctx, v, q)
		if err != nil {
			return nil, err
		}
		for _, row := range page.Rows {
			all, err := trail.NoticesOf(v, row)
			if err != nil {
				return nil, err
			}
			for _, n := range all {
				if t.Receiver.Wants(n.Kind) && p.IsNews(n.At) && !n.ChangedAt.After(until) {
					out = append(out, n)
				}
			}
		}
		if page.Next == nil {
			return out, nil
		}
		q.Before = page.Next
	}
}
