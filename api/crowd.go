package api

import (
	"context"
	"errors"
	"slices"
	"sync"

	"golang.org/x/time/rate"
)

// What all callers together may ask. The database's pool has four connections at least: one is left for the collector.
const (
	readAtOnce = 3        // questions that are asked of the database at the same time
	readQueue  = 64       // those, and those that wait
	sendBytes  = 64 << 20 // of answers that are made and not sent yet
	sendFree   = 64 << 10 // bytes of an answer that count for nothing: the connection takes them at once
)

// What one caller may, of that: a user or, where nobody is asked who they are, a host.
const (
	shareAtOnce = 16       // questions that wait, are asked, or whose answer is being sent
	shareAsking = 2        // that are asked of the database at the same time: one place is left for others
	shareLong   = 2        // that take long, and wait or are asked
	shareSend   = 24 << 20 // bytes of answers that are not sent yet
	shareRate   = 200      // questions a second: more wait
	shareBurst  = 1000
	sharesMost  = 4096 // callers that are remembered
)

// Why a question is not asked, or its answer not sent.
var (
	errCrowded = errors.New("too many questions at once")            // of all callers
	errShare   = errors.New("too many questions of yours at once")   // of this one
	errUnsent  = errors.New("too many large answers are being sent") // of either
)

// Why something is not answered, or not to its end.
const (
	ShedCrowded = "crowded" // all callers together ask too much
	ShedShare   = "share"   // this caller does
	ShedBytes   = "bytes"   // too many large answers wait to be sent
	ShedSlow    = "slow"    // the reader of an answer has stalled
)

// shed counts what was refused, and returns why.
func (c *crowd) shed(cause string, why error) error {
	if c.refused != nil {
		c.refused(cause)
	}
	return why
}

// crowd bounds how many questions are asked of the database at the same time, how many wait, and how many bytes of their answers wait to be
// sent: of all, and of each caller. Whose turn it is: who came first among those callers of whom the fewest questions are being asked.
type crowd struct {
	long    chan struct{}      // who asks what takes long
	refused func(cause string) // Server.Shed

	mu      sync.Mutex
	callers map[string]*share
	waiting []*waiter // in the order in which they came
	inside  int       // who wait or ask
	asking  int
	sending int // bytes
}

// share is what one caller has taken.
type share struct {
	pace                 *rate.Limiter
	inside, asking, long int
	sending              int // bytes
}

// waiter is a question that waits for its turn.
type waiter struct {
	of    *share
	ready chan struct{} // closed when it is its turn
}

func newCrowd() *crowd {
	return &crowd{long: make(chan struct{}, 1), callers: map[string]*share{}}
}

// leave gives a place back, once there is an answer of so many bytes. Sent is to be called when that was sent, or cut. With an error the
// answer is not to be sent.
type leave = func(size int) (sent func(), err error)

// turn waits until it may be asked. With an error there was no turn.
type turn func(ctx context.Context) (leave, error)

// replay is turn for a question that takes long: only one is asked at a time, so that others find room.
func (c *crowd) replay(ctx context.Context) (leave, error) {
	s := c.shareOf(ctx)
	if !c.count(&s.long, shareLong) {
		return nil, c.shed(ShedShare, errShare)
	}
	done := func() { c.uncount(&s.long) }
	select {
	case c.long <- struct{}{}:
	case <-ctx.Done():
		done()
		return nil, c.shed(ShedCrowded, errCrowded)
	}
	left, err := c.turn(ctx)
	if err != nil {
		<-c.long
		done()
		return nil, err
	}
	return func(size int) (func(), error) {
		defer done()
		defer func() { <-c.long }()
		return left(size)
	}, nil
}

// turn waits until it is the turn of the caller whom the context names.
func (c *crowd) turn(ctx context.Context) (leave, error) {
	s := c.shareOf(ctx)
	if err := c.enter(s); err != nil {
		return nil, err
	}
	if s.pace.Wait(ctx) != nil {
		c.exit(s)
		return nil, c.shed(ShedShare, errShare)
	}
	w := &waiter{s, make(chan struct{})}
	c.mu.Lock()
	c.waiting = append(c.waiting, w)
	c.admit()
	c.mu.Unlock()
	select {
	case <-w.ready:
	case <-ctx.Done():
		if c.abandon(w) {
			c.exit(s)
			return nil, c.shed(ShedCrowded, errCrowded)
		}
	}
	return func(size int) (func(), error) { return c.send(s, size) }, nil
}

func (c *crowd) enter(s *share) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case s.inside >= shareAtOnce:
		return c.shed(ShedShare, errShare)
	case c.inside >= readQueue:
		return c.shed(ShedCrowded, errCrowded)
	}
	s.inside++
	c.inside++
	return nil
}

// exit ends a question that was not asked.
func (c *crowd) exit(s *share) {
	c.mu.Lock()
	defer c.mu.Unlock()
	s.inside--
	c.inside--
}

func (c *crowd) giveBack(s *share) {
	s.asking--
	c.asking--
	c.admit()
}

// admit gives places that are free to those whose turn it is.
func (c *crowd) admit() {
	for c.asking < readAtOnce {
		next := -1
		for i, w := range c.waiting {
			if w.of.asking < shareAsking && (next < 0 || w.of.asking < c.waiting[next].of.asking) {
				next = i
			}
		}
		if next < 0 {
			return
		}
		w := c.waiting[next]
		c.waiting = slices.Delete(c.waiting, next, next+1)
		w.of.asking++
		c.asking++
		close(w.ready)
	}
}

// abandon reports whether the question was still waiting, and now is not.
func (c *crowd) abandon(w *waiter) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	i := slices.Index(c.waiting, w)
	if i < 0 {
		return false
	}
	c.waiting = slices.Delete(c.waiting, i, i+1)
	return true
}

// send gives the place back and counts the bytes of an answer until they are sent.
func (c *crowd) send(s *share, size int) (func(), error) {
	if size <= sendFree {
		size = 0
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.inside--
	c.giveBack(s)
	if s.sending+size > shareSend || c.sending+size > sendBytes {
		s.inside--
		return nil, c.shed(ShedBytes, errUnsent)
	}
	s.sending += size
	c.sending += size
	return func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		s.inside--
		s.sending -= size
		c.sending -= size
	}, nil
}

// count takes one of what a caller may have at once, and reports whether there was one left.
func (c *crowd) count(of *int, most int) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if *of >= most {
		return false
	}
	*of++
	return true
}

func (c *crowd) uncount(of *int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	*of--
}

// shareOf returns the share of the caller whom the context names. Where there are too many, those are forgotten who have nothing in it.
func (c *crowd) shareOf(ctx context.Context) *share {
	name := callerOf(ctx)
	c.mu.Lock()
	defer c.mu.Unlock()
	if s := c.callers[name]; s != nil {
		return s
	}
	if len(c.callers) >= sharesMost {
		for other, s := range c.callers {
			if s.inside == 0 && s.long == 0 {
				delete(c.callers, other)
			}
		}
	}
	s := &share{pace: rate.NewLimiter(shareRate, shareBurst)}
	c.callers[name] = s
	return s
}
