package collector

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/evictrail/evictrail/metrics"
	"github.com/evictrail/evictrail/trail"
)

// The writer's bounds. A batch is closed by whichever comes first.
const (
	batchFacts    = 2000                   // facts of one Append
	batchWait     = 20 * time.Millisecond  // longest time that a fact waits for others
	aliveInterval = 10 * time.Second       // between two notes that we are alive
	retryFirst    = 200 * time.Millisecond // first wait after a failed Append; doubles
	retryMost     = 15 * time.Second       // longest wait after a failed Append
	stopGrace     = 10 * time.Second       // for storing the rest when stopping
	answerWithin  = time.Minute            // longest wait for an answer of the Sink, at first; doubles while a batch has none
	backlog       = 48 << 20               // bytes of facts that may wait, some 50,000 facts; then the watches wait
	listBacklog   = backlog / 8            // bytes of facts that may wait while a list goes on: it can wait, what happens during that time need not
)

// writer hands facts to the spool, or without one to the Sink, in batches and in order.
type writer struct {
	spool    Spool // nil: the Sink stores
	storing  Storing
	metrics  *metrics.Metrics
	clock    func() time.Time
	watching func(at time.Time) []trail.Watching
	beats    chan struct{} // has an element when the store is to be notified at once of what is seen

	mu      sync.Mutex
	total   uint64 // facts that were ever put
	pending []trail.Fact
	busy    []trail.Fact  // the batch that is being stored
	bytes   int           // of both
	hurry   uint64        // how many of the facts that were ever put somebody waits for: they wait for no others
	closed  bool          // no more facts will come
	changed chan struct{} // closed and replaced at every change of the above
}

func newWriter(c Config, watching func(time.Time) []trail.Watching) *writer {
	if c.Spool == nil {
		c.Metrics.SpoolCapacity.Set(backlog)
	}
	return &writer{
		spool: c.Spool, storing: Storing{Sink: c.Sink, Log: c.Log, Metrics: c.Metrics, Clock: c.Clock}, metrics: c.Metrics, clock: c.Clock,
		watching: watching, changed: make(chan struct{}), beats: make(chan struct{}, 1),
	}
}

// addFacts adds facts, waiting while the backlog is full. When ctx ends it adds them all the same: they were seen.
func (w *writer) addFacts(ctx context.Context, facts []trail.Fact) {
	w.waitForRoom(ctx, backlog)
	w.mu.Lock()
	defer w.mu.Unlock()
	w.pending = append(w.pending, facts...)
	w.total += uint64(len(facts))
	w.bytes += sumSizes(facts)
	w.signalChange()
}

// waitForRoom waits until less than so many bytes of facts wait, or ctx ends.
func (w *writer) waitForRoom(ctx context.Context, most int) {
	for {
		w.mu.Lock()
		full, changed := w.bytes >= most, w.changed
		w.mu.Unlock()
		if !full {
			return
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return
		}
	}
}

// requestHeartbeat has the Sink notified soon that we are alive, and of what is seen.
func (w *writer) requestHeartbeat() {
	select {
	case w.beats <- struct{}{}:
	default: // it will be
	}
}

// close says that no more facts will come.
func (w *writer) close() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.closed = true
	w.signalChange()
}

func sumSizes(facts []trail.Fact) int {
	n := 0
	for i := range facts {
		n += facts[i].Size()
	}
	return n
}

// signalChange wakes everyone who waits; the lock must be held.
func (w *writer) signalChange() {
	var oldest time.Time
	if len(w.busy) > 0 {
		oldest = w.busy[0].ObservedAt
	} else if len(w.pending) > 0 {
		oldest = w.pending[0].ObservedAt
	}
	w.metrics.QueueLength.Set(float64(len(w.pending) + len(w.busy)))
	if w.spool == nil {
		w.metrics.Waiting(w.bytes, oldest)
	}
	close(w.changed)
	w.changed = make(chan struct{})
}

// countAdded counts the facts that were ever put.
func (w *writer) countAdded() uint64 {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.total
}

// countWaiting counts the facts that are not stored yet.
func (w *writer) countWaiting() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return len(w.pending) + len(w.busy)
}

// waitStored waits until as many of the facts that were ever put are stored.
func (w *writer) waitStored(ctx context.Context, upto uint64) error {
	for {
		w.mu.Lock()
		rest, changed := len(w.pending)+len(w.busy), w.changed
		done := w.total - uint64(rest)
		w.mu.Unlock()
		if done >= upto {
			return nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return fmt.Errorf("wait for %d facts to be stored: %w", upto-done, ctx.Err())
		}
	}
}

// flushPending waits until everything that was put so far is stored, without waiting for more to store with it.
func (w *writer) flushPending(ctx context.Context) error {
	w.mu.Lock()
	upto := w.total
	w.hurry = upto
	w.signalChange()
	w.mu.Unlock()
	return w.waitStored(ctx, upto)
}

// run stores facts until close was called and all are stored. Once stopping is closed it allows the Sink stopGrace for
// the rest; what is left then is an error.
func (w *writer) run(ctx context.Context, stopping <-chan struct{}) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	go func() {
		select {
		case <-stopping:
			time.AfterFunc(stopGrace, cancel)
		case <-ctx.Done():
		}
	}()
	alive := time.NewTicker(aliveInterval)
	defer alive.Stop()
	for {
		batch, done := w.nextBatch(ctx, alive.C)
		if done {
			w.writeHeartbeat(ctx)
			return nil
		}
		if len(batch) == 0 {
			w.writeHeartbeat(ctx)
			continue
		}
		if err := w.writeBatch(ctx, batch); err != nil {
			return fmt.Errorf("store %d facts: %w: %w", w.countLost(), errStopped, err)
		}
		w.mu.Lock()
		w.busy, w.bytes = nil, w.bytes-sumSizes(batch)
		w.signalChange()
		w.mu.Unlock()
		select {
		case <-alive.C: // also where there is always more to store: loops open and cooldowns end by time alone
			w.writeHeartbeat(ctx)
		case <-w.beats:
			w.writeHeartbeat(ctx)
		default:
		}
	}
}

// nextBatch returns the next batch; an empty one when it is time to say that we are alive; done when nothing more will come.
func (w *writer) nextBatch(ctx context.Context, alive <-chan time.Time) (batch []trail.Fact, done bool) {
	for {
		w.mu.Lock()
		waiting, closed, changed := len(w.pending), w.closed, w.changed
		w.mu.Unlock()
		switch {
		case waiting > 0:
			w.waitForBatch(ctx, waiting, closed)
			return w.cutBatch(), false
		case closed:
			return nil, true
		}
		select {
		case <-changed:
		case <-alive:
			return nil, false
		case <-w.beats:
			return nil, false
		}
	}
}

// waitForBatch allows a small batch a moment to grow. A spool takes what there is at once: during that time the next batch grows.
func (w *writer) waitForBatch(ctx context.Context, waiting int, closed bool) {
	if closed || waiting >= batchFacts || w.spool != nil {
		return
	}
	t := time.NewTimer(batchWait)
	defer t.Stop()
	for {
		w.mu.Lock()
		hurry, changed := w.hurry > w.total-uint64(len(w.pending)), w.changed
		w.mu.Unlock()
		if hurry {
			return
		}
		select {
		case <-t.C:
			return
		case <-changed:
		case <-ctx.Done():
			return
		}
	}
}

func (w *writer) cutBatch() []trail.Fact {
	w.mu.Lock()
	defer w.mu.Unlock()
	n := min(len(w.pending), batchFacts)
	batch := w.pending[:n:n]
	w.pending = w.pending[n:]
	w.busy = batch
	w.signalChange()
	return batch
}

// countLost counts what is left behind, and returns how much that is.
func (w *writer) countLost() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, left := range [][]trail.Fact{w.busy, w.pending} {
		for _, f := range left {
			w.metrics.Lost.WithLabelValues(string(f.Kind), metrics.LostShutdownDeadline).Inc()
		}
	}
	return len(w.busy) + len(w.pending)
}

// writeHeartbeat says that we are alive, and what is seen: up to now or, where facts wait, up to when the first of them was.
func (w *writer) writeHeartbeat(ctx context.Context) {
	at := w.clock()
	w.mu.Lock()
	if len(w.pending) > 0 && w.pending[0].ObservedAt.Before(at) {
		at = w.pending[0].ObservedAt
	}
	w.mu.Unlock()
	if watching := w.watching(at); w.spool != nil {
		w.spool.AppendSign(at, watching)
	} else {
		_ = w.storing.sendHeartbeat(ctx, trail.Sign{At: at, Watching: watching}) // counted; the next one says more
	}
}

// writeBatch has a batch kept: by the spool, or else by the Sink.
func (w *writer) writeBatch(ctx context.Context, batch []trail.Fact) error {
	if w.spool == nil {
		return w.storing.storeBatch(ctx, batch)
	}
	if err := w.spool.Append(ctx, batch); err != nil {
		return err
	}
	for _, f := range batch {
		w.metrics.Facts.WithLabelValues(string(f.Kind), metrics.StageSpooled).Inc()
	}
	return nil
}
