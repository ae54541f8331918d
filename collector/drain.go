package collector

import (
	"context"
	"errors"
	"time"

	"github.com/evictrail/evictrail/trail"
)

// Spool keeps facts until a Sink has them.
type Spool interface {
	// Append keeps facts and returns when they would outlive us. Its only error is that of ctx.
	Append(ctx context.Context, facts []trail.Fact) error
	// AppendSign keeps a sign of life behind the facts that were appended before: it says the same as Sink.Alive.
	AppendSign(at time.Time, watching []trail.Watching)
	// Backlog reports whether more facts wait than a Sink that accepts some stores promptly, and how many it has stored so far. While it accepts none, waiting is
	// what a Spool is for.
	Backlog() (long bool, stored uint64)
}

// SpoolReader is the other end of a Spool.
type SpoolReader interface {
	// Next waits for what comes next: facts, or a sign of life. It returns the same again until Confirm was called. Its only error is that of ctx.
	Next(ctx context.Context) ([]trail.Fact, *trail.Sign, error)
	// Confirm says that what Next returned is stored.
	Confirm()
	// SetAside keeps facts that the Sink refuses, of what Next returned, for somebody to look at and to store later.
	SetAside(facts []trail.Fact, reason error)
	// MarkAway says that the Sink accepts nothing, until Confirm is called.
	MarkAway()
	// HasMore reports whether more waits behind what Next returned.
	HasMore() bool
	// WaitEmpty waits until nothing waits. Its only error is that of ctx.
	WaitEmpty(ctx context.Context) error
}

// signRetry is the longest wait between two attempts to send the Sink a sign of life.
const signRetry = time.Second

// Drain stores what a spool holds, in its order, until ctx ends. Once stopping is closed it ends when nothing is left, or as soon as the
// Sink does not accept something, which then stays in the spool.
func (s Storing) Drain(ctx context.Context, from SpoolReader, stopping <-chan struct{}) {
	s.stopping, s.away, s.setAside = stopping, from.MarkAway, from.SetAside
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	go func() {
		select {
		case <-stopping:
			if from.WaitEmpty(ctx) == nil {
				cancel()
			}
		case <-ctx.Done():
		}
	}()
	for {
		facts, sign, err := from.Next(ctx)
		if err != nil {
			return
		}
		attempt, end := stopAt(ctx, stopping)
		if sign != nil {
			err = s.storeSign(attempt, *sign, from)
		} else {
			err = s.storeBatch(attempt, facts)
		}
		end()
		if err != nil {
			return
		}
		from.Confirm()
	}
}

// stopAt returns a context that ends a while after stopping was closed: what is being stored then has that time.
func stopAt(ctx context.Context, stopping <-chan struct{}) (context.Context, func()) {
	ctx, cancel := context.WithCancel(ctx)
	var last *time.Timer
	done := make(chan struct{})
	go func() {
		defer close(done)
		select {
		case <-stopping:
			last = time.AfterFunc(stopGrace, cancel)
		case <-ctx.Done():
		}
	}()
	return ctx, func() {
		cancel()
		<-done
		if last != nil {
			last.Stop()
		}
	}
}

// errSignLeft says that a sign of life was left in the spool.
var errSignLeft = errors.New("sign of life not stored")

// storeSign sends the Sink a sign of life, trying again as long as nothing waits behind it: what comes later says more.
func (s *Storing) storeSign(ctx context.Context, sign trail.Sign, from SpoolReader) error {
	for wait := retryFirst; ; wait = min(2*wait, signRetry) {
		if err := s.sendHeartbeat(ctx, sign); err == nil || from.HasMore() {
			return nil
		}
		select {
		case <-time.After(wait):
		case <-s.stopping:
			return errSignLeft
		case <-ctx.Done():
			return errSignLeft
		}
	}
}
