package api

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"sync"
	"time"

	"golang.org/x/time/rate"

	"github.com/evictrail/evictrail/api/web"
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
	shareSend   = 24 << 20 // bytes of answers that are not sent yet
	shareRate   = 200      // questions a second: more wait
	shareBurst  = 1000
	sharesMost  = 4096 // callers that are remembered
)

// busyError says why a question is not asked, or its answer not sent. To come again after retryCrowded helps.
type busyError struct {
	status int
	text   string
}

func (e *busyError) Error() string { return e.text }

// retryCrowded is when to come again: places are released within seconds.
const retryCrowded = time.Second

// What all callers together, or this one, have used up.
var (
	errCrowded = &busyError{http.StatusServiceUnavailable, "too many questions of all callers at once"}
	errUnsent  = &busyError{http.StatusServiceUnavailable, "too many large answers are being sent"}
	errShare   = &busyError{http.StatusTooManyRequests, fmt.Sprintf("too many questions of yours at once: at most %d, and %d a second", shareAtOnce, shareRate)}
)

// holding is what a caller may hold at once, beside questions.
type holding int

// What callers hold.
const (
	holdLong   holding = iota // questions that take long, and wait or are asked
	holdScrape                // of the metrics
	holdStream                // of what is new
	holdings
)

// holdMost says how many of these one caller may hold, and what the answer says beyond that.
var holdMost = [holdings]struct {
	most    int
	refusal *busyError
}{
	holdLong:   {2, &busyError{http.StatusTooManyRequests, "too many questions of yours at once that take long: at most 2"}},
	holdScrape: {4, &busyError{http.StatusTooManyRequests, "too many scrapes of yours at once: at most 4"}},
	holdStream: {50, &busyError{http.StatusTooManyRequests, "too many pages of yours follow what is new: at most 50"}},
}

// busyProblem returns the problem for a caller who was refused because too much is asked; nil for any other cause.
func busyProblem(err error) *Problem {
	busy, is := errors.AsType[*busyError](err)
	if !is {
		return nil
	}
	p := newProblem(busy.status, busy.text)
	p.retry = retryCrowded
	return p
}

// pageTurn is a turn that says to visitors who are refused what happened and when to try again.
func pageTurn(t turn) web.Turn {
	refusal := func(err error) error {
		if p := busyProblem(err); p != nil {
			return p.ToRefusal()
		}
		return err
	}
	return func(ctx context.Context) (func(int) (func(), error), error) {
		left, err := t(ctx)
		if err != nil {
			return nil, refusal(err)
		}
		return func(size int) (func(), error) {
			sent, err := left(size)
			return sent, refusal(err)
		}, nil
	}
}

// Why something is not answered, or not to its end.
const (
	ShedCrowded = "crowded" // all callers together ask too much
	ShedShare   = "share"   // this caller does
	ShedBytes   = "bytes"   // too many large answers wait to be sent
	ShedSlow    = "slow"    // the reader of an answer has stalled
)

// recordShed reports what a caller was refused, and returns why.
func (c *crowd) recordShed(s *share, cause string, why error) error {
	if c.refused != nil {
		c.refused(cause, s.name)
	}
	return why
}

// crowd bounds how many questions are asked of the database at the same time, how many wait, and how many bytes of their answers wait to be
// sent: of all, and of each caller. Whose turn it is: among those callers of whom the fewest questions are being asked, who had their last turn first.
type crowd struct {
	long    chan struct{}              // who asks what takes long
	refused func(cause, caller string) // Server.Shed
	atOnce  int                        // questions that are asked at the same time

	mu      sync.Mutex
	callers map[string]*share
	waiting []*waiter // in the order in which they came
	inside  int       // who wait or ask
	asking  int
	turns   uint64 // that there were
	sending int    // bytes
}

// share is what one caller has taken.
type share struct {
	name           string // as callerOf returns it
	pace           *rate.Limiter
	inside, asking int
	turn           uint64 // the last one that it had; 0: none
	sending        int    // bytes
	held           [holdings]int
}

// waiter is a question that waits for its turn.
type waiter struct {
	of        *share
	ready     chan struct{} // closed when it is its turn, or displaced
	displaced bool          // before ready is closed: another caller has its place
}

func newCrowd() *crowd {
	return &crowd{long: make(chan struct{}, 1), callers: map[string]*share{}, atOnce: readAtOnce}
}

// leave releases a place, once there is an answer of so many bytes. Sent is to be called when that was sent, or cut. With an error the
// answer is not to be sent.
type leave = func(size int) (sent func(), err error)

// turn waits until it may be asked. With an error there was no turn.
type turn func(ctx context.Context) (leave, error)

// awaitLongTurn is turn for a question that takes long: only one is asked at a time, so that others find room.
func (c *crowd) awaitLongTurn(ctx context.Context) (leave, error) {
	done, err := c.acquireHolding(ctx, holdLong)
	if err != nil {
		return nil, err
	}
	select {
	case c.long <- struct{}{}:
	case <-ctx.Done():
		done()
		return nil, c.recordShed(c.shareOf(ctx), ShedCrowded, errCrowded)
	}
	left, err := c.awaitTurn(ctx)
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

// awaitTurn waits until it is the turn of the caller whom the context names.
func (c *crowd) awaitTurn(ctx context.Context) (leave, error) {
	s := c.shareOf(ctx)
	if err := c.enterQueue(s); err != nil {
		return nil, err
	}
	if s.pace.Wait(ctx) != nil {
		c.leaveQueue(s)
		return nil, c.recordShed(s, ShedShare, errShare)
	}
	w := &waiter{of: s, ready: make(chan struct{})}
	c.mu.Lock()
	c.waiting = append(c.waiting, w)
	c.admitWaiters()
	c.mu.Unlock()
	select {
	case <-w.ready:
	case <-ctx.Done():
		if c.removeWaiter(w) {
			c.leaveQueue(s)
			return nil, c.recordShed(s, ShedCrowded, errCrowded)
		}
	}
	if w.displaced {
		return nil, c.recordShed(s, ShedCrowded, errCrowded)
	}
	return func(size int) (func(), error) { return c.startSending(s, size) }, nil
}

func (c *crowd) enterQueue(s *share) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case s.inside >= shareAtOnce:
		return c.recordShed(s, ShedShare, errShare)
	case c.inside >= readQueue && !c.displaceWaiter(s):
		return c.recordShed(s, ShedCrowded, errCrowded)
	}
	s.inside++
	c.inside++
	return nil
}

// displaceWaiter makes room for a question: the last one that waits of the caller who has most is refused, where that caller has more than this one would have.
// So a few callers who fill the queue keep out nobody. It reports whether there is room now.
func (c *crowd) displaceWaiter(s *share) bool {
	last := -1
	for i, w := range c.waiting {
		if last < 0 || w.of.inside >= c.waiting[last].of.inside {
			last = i
		}
	}
	if last < 0 || c.waiting[last].of.inside <= s.inside+1 {
		return false
	}
	w := c.waiting[last]
	c.waiting = slices.Delete(c.waiting, last, last+1)
	w.of.inside--
	c.inside--
	w.displaced = true
	close(w.ready)
	return true
}

// leaveQueue ends a question that was not asked.
func (c *crowd) leaveQueue(s *share) {
	c.mu.Lock()
	defer c.mu.Unlock()
	s.inside--
	c.inside--
}

func (c *crowd) giveBack(s *share) {
	s.asking--
	c.asking--
	c.admitWaiters()
}

// admitWaiters assigns free places to those whose turn it is.
func (c *crowd) admitWaiters() {
	for c.asking < c.atOnce {
		next := -1
		for i, w := range c.waiting {
			if w.of.asking < shareAsking && (next < 0 || w.of.isBefore(c.waiting[next].of)) {
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
		c.turns++
		w.of.turn = c.turns
		close(w.ready)
	}
}

// isBefore reports whether it is the turn of a caller before it is that of another.
func (s *share) isBefore(other *share) bool {
	return s.asking < other.asking || s.asking == other.asking && s.turn < other.turn
}

// removeWaiter reports whether the question was still waiting, and now is not.
func (c *crowd) removeWaiter(w *waiter) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	i := slices.Index(c.waiting, w)
	if i < 0 {
		return false
	}
	c.waiting = slices.Delete(c.waiting, i, i+1)
	return true
}

// startSending releases the place and counts the bytes of an answer until they are sent.
func (c *crowd) startSending(s *share, size int) (func(), error) {
	if size <= sendFree {
		size = 0
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.inside--
	c.giveBack(s)
	if s.sending+size > shareSend || c.sending+size > sendBytes {
		s.inside--
		return nil, c.recordShed(s, ShedBytes, errUnsent)
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

// acquireHolding takes one of what the caller whom the context names may hold. Done releases it; it is nil with an error.
func (c *crowd) acquireHolding(ctx context.Context, what holding) (done func(), err error) {
	s, bound := c.shareOf(ctx), holdMost[what]
	c.mu.Lock()
	defer c.mu.Unlock()
	if s.held[what] >= bound.most {
		return nil, c.recordShed(s, ShedShare, bound.refusal)
	}
	s.held[what]++
	return func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		s.held[what]--
	}, nil
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
			if s.inside == 0 && s.held == [holdings]int{} {
				delete(c.callers, other)
			}
		}
	}
	s := &share{name: name, pace: rate.NewLimiter(shareRate, shareBurst)}
	c.callers[name] = s
	return s
}
