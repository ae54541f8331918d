package collector

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"time"

	"github.com/evictrail/evictrail/metrics"
	"github.com/evictrail/evictrail/trail"
	"github.com/evictrail/evictrail/trail/tracker"
)

// ErrBusy says that too many facts wait in memory, or too many bodies for the database to get on, or that the collector ends: come again
// later.
var ErrBusy = errors.New("too many facts wait for the database")

// busyBacklog is how many facts may wait in memory before audit events are refused: they come again, what the watches see does not.
const busyBacklog = 25_000

// reviewed bounds the reviews that wait for the owner goroutine.
const reviewed = 1000

// submission is observations for the owner goroutine that no watch made, and where it says how many facts the writer must
// have stored for them to be durable.
type submission struct {
	seen   []Observation
	ticket chan uint64
}

// Audit takes the audit events of one body and returns when they are kept: on disk in the Spool, or without one stored. Errors: ErrBusy,
// ErrTooLarge, of a body that breaks off, and of ctx; what was read before a body broke off is kept all the same.
func (c *Collector) Audit(ctx context.Context, body io.Reader) (AuditReport, error) {
	if c.out.countWaiting() > busyBacklog || c.isPacingFull() {
		return AuditReport{}, ErrBusy
	}
	var requests []Request
	reader := AuditReader{Now: c.Clock(), Limit: MaxAudit, Take: func(r Request) error { requests = append(requests, r); return nil }}
	report, readErr := reader.Read(body)
	c.countAudit(report)
	if err := c.submitRequests(ctx, requests); err != nil {
		return report, errors.Join(readErr, err)
	}
	return report, readErr
}

func (c *Collector) countAudit(r AuditReport) {
	c.Metrics.AuditEvents.WithLabelValues(metrics.AuditTaken).Add(float64(r.Taken))
	c.Metrics.AuditEvents.WithLabelValues(metrics.AuditSkipped).Add(float64(r.Skipped))
	c.Metrics.AuditEvents.WithLabelValues(metrics.AuditRefused).Add(float64(r.Refused))
	c.Metrics.Lost.WithLabelValues(string(trail.KindEvictionRequested), metrics.LostAuditGap).Add(float64(r.Refused))
	if r.Events() > 0 {
		c.Metrics.AuditLastEvent.Set(metrics.Unix(c.Clock()))
	}
	if r.Refused > 0 && !c.refusedLogged.Swap(true) {
		c.Log.Warn("audit events refused; said once, evictrail_audit_events_total counts them", "count", r.Refused, "reason", r.First)
	}
}

// keptAtOnce bounds the requests of one body that are kept at once. What the watches see waits behind them, whatever an API server
// sends: a body of 10 MiB has more than ten thousand.
const keptAtOnce = 400

// submitRequests hands requests to the owner goroutine, some at a time, and returns when their facts are kept. With an error some of them may be.
func (c *Collector) submitRequests(ctx context.Context, requests []Request) error {
	for some := range slices.Chunk(requests, keptAtOnce) {
		if err := c.sendPaced(ctx, some); err != nil {
			return err
		}
	}
	return nil
}

// sendPaced hands over some requests: those of one body after those of the other, and not while more facts wait than are stored promptly.
func (c *Collector) sendPaced(ctx context.Context, requests []Request) error {
	if c.Spool != nil {
		c.paced.Add(1)
		defer c.paced.Add(-1)
		select {
		case c.pacing <- struct{}{}:
			defer func() { <-c.pacing }()
		case <-ctx.Done():
			return ctx.Err()
		}
		if err := c.waitForBacklog(ctx, len(requests)); err != nil {
			return err
		}
	}
	return c.sendBatch(ctx, requests)
}

// mostPaced bounds the bodies that are held back; paceEvery is how often one looks whether it may go on.
const (
	mostPaced = 4
	paceEvery = 20 * time.Millisecond
)

// isPacingFull reports whether too many bodies are held back.
func (c *Collector) isPacingFull() bool {
	if c.Spool == nil || c.paced.Load() < mostPaced {
		return false
	}
	long, _ := c.Spool.Backlog()
	return long
}

// waitForBacklog holds back who brings some requests while many facts wait in the spool for a database that takes some, until that took as many: so
// requests do not come faster than they are stored, also where a caller gives up in between, and what the watches see does not wait long behind it.
func (c *Collector) waitForBacklog(ctx context.Context, n int) error {
	long, from := c.Spool.Backlog()
	if !long {
		return nil
	}
	tick := time.NewTicker(paceEvery)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
		case <-ctx.Done():
			return ctx.Err()
		}
		if long, taken := c.Spool.Backlog(); !long || taken-from >= uint64(n) {
			return nil
		}
	}
}

func (c *Collector) sendBatch(ctx context.Context, requests []Request) error {
	seen := make([]Observation, 0, len(requests))
	for _, r := range requests {
		seen = append(seen, func(s tracker.Seen) tracker.Observation { return r(s) })
	}
	upto, err := c.submitObservations(ctx, seen)
	if err != nil {
		return fmt.Errorf("take %d audit events: %w", len(requests), err)
	}
	return c.out.waitStored(ctx, upto)
}

// submitObservations hands observations to the owner goroutine and returns when they are taken, with how many facts the writer must
// have stored for theirs to be durable.
func (c *Collector) submitObservations(ctx context.Context, seen []Observation) (upto uint64, err error) {
	t := submission{seen: seen, ticket: make(chan uint64, 1)}
	select {
	case c.submissions <- t:
	case <-c.ended:
		return 0, ErrBusy
	case <-ctx.Done():
		return 0, ctx.Err()
	}
	select {
	case upto := <-t.ticket:
		return upto, nil
	case <-ctx.Done():
		return 0, ctx.Err()
	}
}

// handleRequests observes what was handed over: the owner's.
func (c *Collector) handleRequests(ctx context.Context, t submission) {
	now := c.Clock()
	for _, o := range t.seen {
		c.recordObservation(ctx, o(tracker.Seen{At: now}))
	}
	t.ticket <- c.out.countAdded()
}

// Reviewed takes a request that the observer saw. It never waits: what finds no room is counted and becomes a gap.
func (c *Collector) Reviewed(r *Review) {
	if r.Request == nil {
		c.Metrics.Reviews.WithLabelValues(metrics.ReviewSkipped).Inc()
		return
	}
	now := c.Clock()
	select {
	case c.reviews <- r.Request(tracker.Seen{At: now}):
		c.Metrics.Reviews.WithLabelValues(metrics.ReviewTaken).Inc()
	default:
		c.Metrics.Reviews.WithLabelValues(metrics.ReviewDropped).Inc()
		c.Metrics.Lost.WithLabelValues(string(trail.KindEvictionRequested), metrics.LostSpoolFull).Inc()
		c.mu.Lock()
		defer c.mu.Unlock()
		if c.dropped == 0 {
			c.droppedAt = now
			c.Log.Error("reviews dropped: the database does not keep up")
		}
		c.dropped++
	}
}

// drainRequests observes the reviews that still wait when the collector stops: the owner's.
func (c *Collector) drainRequests(ctx context.Context) {
	for {
		select {
		case o := <-c.reviews:
			c.handleReview(ctx, o)
		default:
			return
		}
	}
}

// SourceObserver is the source of gaps in which reviews found no room.
const SourceObserver = "admission"

// handleReview observes a review, after the gap of those that found no room before it: the owner's.
func (c *Collector) handleReview(ctx context.Context, o tracker.RequestObservation) {
	c.mu.Lock()
	lost, since := c.dropped, c.droppedAt
	c.dropped, c.droppedAt = 0, time.Time{}
	c.mu.Unlock()
	if lost > 0 {
		now := c.Clock()
		c.observeGap(ctx, now, trail.GapReport{
			Source: SourceObserver, Key: since.UTC().Format(time.RFC3339Nano), OpenedAt: since, ClosedAt: now,
			Cause: trail.ReasonOverflow, Detail: strconv.Itoa(lost) + " reviews found no room",
		})
	}
	c.recordObservation(ctx, o)
}
