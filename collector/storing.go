package collector

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/evictrail/evictrail/metrics"
	"github.com/evictrail/evictrail/trail"
)

// Storing stores facts in a Sink, tries until they are stored, and counts what that brought. All fields are required.
type Storing struct {
	Sink    Sink
	Log     *slog.Logger
	Metrics *metrics.Metrics
	Clock   func() time.Time

	saidSettled bool   // that facts of a time whose facts were dropped come
	saidFailing string // why the Sink takes nothing, as the log said it last; empty while it takes facts

	stopping <-chan struct{} // closed when what is not taken at once may be left where it is; nil: never
	away     func()          // is called when the Sink says that it does not take anything; nil: nobody asks

	setAside    func(facts []trail.Fact, reason error) // keeps what was refused; nil: it is lost
	lost        trail.Losses                           // what was refused and nobody keeps, until it is stored as gaps
	lostOf      string                                 // the cluster of that
	saidRefused time.Time                              // when the log last said that facts are refused
	refused     int                                    // how many were since
}

const (
	leastAtOnce  = 100                    // facts that the Sink is given at once, at the least, where it does not take more
	probeWithin  = 2 * time.Second        // in which a Sink answers a probe that is well; one that is slow for all is not
	suspectAfter = 3                      // failures of one batch, each with a good probe, after which one of its facts is suspected
	aloneTries   = 8                      // attempts with one fact alone, each with a good probe, after which it is set aside
	suspectWait  = 500 * time.Millisecond // longest wait between two attempts while a fact is suspected
	refusedEvery = 10 * time.Second       // between two lines of the log about refused facts
)

// noteFailing logs why the Sink does not take facts, once as long as that stays the same.
func (s *Storing) noteFailing(err error, count int, wait time.Duration) {
	if s.saidFailing != err.Error() {
		s.saidFailing = err.Error()
		s.Log.Warn("database does not take facts, trying again", "count", count, "remaining", wait, "err", err)
	}
}

// noteTaken logs that the Sink takes facts again.
func (s *Storing) noteTaken() {
	if s.saidFailing != "" {
		s.saidFailing = ""
		s.Log.Info("database takes facts again")
	}
}

// storeBatch appends a batch, trying until it is stored or ctx ends. What the Sink does not take is tried in parts, each half as large: it may be more
// than gets done before somebody gives up. So is a fact found that the Sink refuses for good, and one that fails again and again while the Sink takes
// others: it is set aside, so that nothing waits behind it.
func (s *Storing) storeBatch(ctx context.Context, batch []trail.Fact) error {
	wait, within, last, most, suspected := retryFirst, answerWithin, false, len(batch), 0
	for len(batch) > 0 {
		some := batch[:min(most, len(batch))]
		err := s.appendBatch(ctx, some, within)
		refused := errors.Is(err, trail.ErrRefused)
		switch {
		case err == nil:
			batch, wait, suspected = batch[len(some):], retryFirst, 0
			s.noteTaken()
			continue
		case refused && len(some) > 1:
			most = len(some) / 2
			continue
		case refused || len(some) == 1 && suspected >= suspectAfter+aloneTries:
			s.setAsideFact(some[0], err)
			batch, most, wait, suspected = batch[1:], len(batch), retryFirst, 0
			continue
		}
		s.noteFailing(err, len(some), wait)
		probed := s.probeSink(ctx, err)
		switch {
		case probed == nil:
			suspected++
			wait = min(wait, suspectWait)
		case errors.Is(err, context.DeadlineExceeded):
			within *= 2 // it may be slow, not gone
		case s.away != nil:
			s.away()
		}
		if probed != nil {
			suspected = 0
		}
		most = max(len(some)/2, 1)
		if suspected < suspectAfter {
			most = max(most, leastAtOnce)
		} else if len(some) > 1 {
			suspected = suspectAfter
		}
		select {
		case <-time.After(wait):
		case <-s.stopping: // once more: the database may be back
			if last {
				return err
			}
			last = true
		case <-ctx.Done():
			return err
		}
		wait = min(2*wait, retryMost)
	}
	return s.recordLost(ctx)
}

// probeSink reports why the Sink takes no facts; nil where it does, so that those that it did not take may be the cause.
func (s *Storing) probeSink(ctx context.Context, cause error) error {
	if ctx.Err() != nil {
		return cause
	}
	ctx, cancel := context.WithTimeout(ctx, probeWithin)
	defer cancel()
	return s.Sink.Probe(ctx, cause)
}

// setAsideFact sets a fact aside that the Sink does not take.
func (s *Storing) setAsideFact(f trail.Fact, err error) {
	s.Metrics.Facts.WithLabelValues(string(f.Kind), metrics.StageRejected).Inc()
	if s.refused++; s.Clock().Sub(s.saidRefused) >= refusedEvery {
		s.Log.Error("fact refused", "kind", f.Kind, "namespace", f.Namespace, "vmi", f.VMI, "count", s.refused, "err", err)
		s.saidRefused, s.refused = s.Clock(), 0
	}
	if s.setAside != nil {
		s.setAside([]trail.Fact{f}, err)
		return
	}
	s.Metrics.Lost.WithLabelValues(string(f.Kind), metrics.LostStoreReject).Inc()
	if _, gap := f.Detail.(*trail.GapDetail); gap { // else its own refusal would be a gap, and so on
		return
	}
	if s.lost == nil {
		s.lost = trail.Losses{}
	}
	s.lostOf = f.Cluster
	s.lost.Add(f.Source(), trail.ReasonRefused, f.ObservedAt, f.ObservedAt, f.Kind, 1)
}

// recordLost stores gaps for what was refused and nobody keeps. Its error is that of storeBatch.
func (s *Storing) recordLost(ctx context.Context) error {
	if len(s.lost) == 0 {
		return nil
	}
	gaps := s.lost.Gaps(s.lostOf, s.Clock())
	s.lost = nil
	return s.storeBatch(ctx, gaps)
}

// appendBatch hands the Sink a batch, and gives up when it has not answered within a while: a connection whose other end stands still never says so.
func (s *Storing) appendBatch(ctx context.Context, batch []trail.Fact, within time.Duration) error {
	ctx, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	start := time.Now()
	news, err := s.Sink.Append(ctx, batch)
	s.Metrics.StoreWrite.WithLabelValues(metrics.OpAppend).Observe(time.Since(start).Seconds())
	s.Metrics.Count(news, s.Clock())
	s.Metrics.Stored(metrics.OpAppend, err)
	if err != nil {
		return err
	}
	s.countDuplicates(batch, news.Facts)
	if !news.Settled.IsZero() && !s.saidSettled {
		s.saidSettled = true
		s.Log.Warn("facts of a time come whose facts were dropped: they are kept, and the rows about that time stay as they are", "before", news.Settled)
	}
	s.Log.Debug("facts appended", "count", len(batch), "added", len(news.Facts), "elapsed", time.Since(start))
	return nil
}

// countDuplicates counts what the Sink had already.
func (s *Storing) countDuplicates(batch, added []trail.Fact) {
	isNew := make(map[trail.FactID]bool, len(added))
	for _, f := range added {
		isNew[f.ID] = true
	}
	for _, f := range batch {
		if !isNew[f.ID] {
			s.Metrics.Facts.WithLabelValues(string(f.Kind), metrics.StageDeduplicated).Inc()
		}
	}
}

// sendHeartbeat returns the Sink that we are alive, and what is seen.
func (s *Storing) sendHeartbeat(ctx context.Context, sign trail.Sign) error {
	ctx, cancel := context.WithTimeout(ctx, answerWithin)
	defer cancel()
	err := s.Sink.Alive(ctx, sign.At, sign.Watching)
	s.Metrics.Stored(metrics.OpAlive, err)
	return err
}
