package collector

import (
	"context"
	"errors"
	"time"

	"github.com/evictrail/evictrail/trail"
)

// Spool keeps facts until a Sink has them.
type Spool interface {
	// Take keeps facts and returns when they would outlive us. Its only error is that of ctx.
	Take(ctx context.Context, facts []trail.Fact) error
	// Sign keeps a sign of life behind the facts that were taken before: it says the same as Sink.Alive.
	Sign(at time.Time, watching []trail.Watching)
	// Backlog tells whether more facts wait than a Sink that takes some stores promptly, and how many it has taken so far. While it takes
	// none, waiting is what a Spool is for.
	Backlog() (long bool, taken uint64)
}

// Drained is the other end of a Spool.
type Drained interface {
	// Next waits for what comes next: facts, or a sign of life. It gives the same again until Stored was called. Its only error is that of
	// ctx.
	Next(ctx context.Context) ([]trail.Fact, *trail.Sign, error)
	// Stored says that what Next gave is stored.
	Stored()
	// SetAside keeps facts that the Sink refuses, of what Next gave, for somebody to look at and to store later.
	SetAside(facts []trail.Fact, reason error)
	// Away says that the Sink takes nothing, until Stored is called.
	Away()
	// Behind tells whether more waits behind what Next gave.
	Behind() bool
	// Empty waits until nothing waits. Its only error is that of ctx.
	Empty(ctx context.Context) error
}

// signRetry is the longest wait between two attempts to tell the Sink a sign of life.
const signRetry = time.Second

// Drain stores what a spool holds, in its order, until ctx ends. Once stopping is closed it ends when nothing is left, or as soon as the
// Sink does not take something, which then stays in the spool.
func (s Storing) Drain(ctx context.Context, from Drained, stopping <-chan struct{}) {
	s.stopping, s.away, s.setAside = stopping, from.Away, from.SetAside
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	go func() {
		select {
		case <-stopping:
			if from.Empty(ctx) == nil {
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
			err = s.tell(attempt, *sign, from)
		} else {
			err = s.store(attempt, facts)
		}
		end()
		if err != nil {
			return
		}
		from.Stored()
	}
}

// stopAt gives a context that ends a while after stopping was closed: what is being stored then has that time.
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

// errNotTold says that a sign of life was left in the spool.
var errNotTold = errors.New("sign of life not told")

// tell tells the Sink a sign of life, trying again as long as nothing waits behind it: what comes later says more.
func (s *Storing) tell(ctx context.Context, sign trail.Sign, from Drained) error {
	for wait := retryFirst; ; wait = min(2*wait, signRetry) {
		if err := s.alive(ctx, sign); err == nil || from.Behind() {
			return nil
		}
		select {
		case <-time.After(wait):
		case <-s.stopping:
			return errNotTold
		case <-ctx.Done():
			return errNotTold
		}
	}
}
