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

	saidSettled bool // that facts of a time whose facts were dropped come

	stopping <-chan struct{} // closed when what is not taken at once may be left where it is; nil: never
	away     func()          // told when the Sink says that it does not take anything; nil: nobody asks
}

// leastAtOnce is what the Sink is given at once, at the least, where it does not take more.
const leastAtOnce = 100

// store appends a batch, trying until it is stored or ctx ends. What the Sink does not take is tried in parts, each half as large: it may be more
// than gets done before somebody gives up. So is a fact found that the Sink refuses for good: it is counted, logged and left out, so that nothing
// good is lost with it.
func (s *Storing) store(ctx context.Context, batch []trail.Fact) error {
	wait, within, last, most := retryFirst, answerWithin, false, len(batch)
	for len(batch) > 0 {
		some := batch[:min(most, len(batch))]
		err := s.append(ctx, some, within)
		switch {
		case err == nil:
			batch, wait = batch[len(some):], retryFirst
			continue
		case errors.Is(err, trail.ErrRefused) && len(some) > 1:
			most = len(some) / 2
			continue
		case errors.Is(err, trail.ErrRefused):
			s.refuse(some[0], err)
			batch, most = batch[1:], len(batch)
			continue
		}
		s.Log.Warn("database does not take facts, trying again", "count", len(some), "remaining", wait, "err", err)
		if errors.Is(err, context.DeadlineExceeded) {
			within *= 2 // it may be slow, not gone
		} else if s.away != nil {
			s.away()
		}
		most = max(len(some)/2, leastAtOnce)
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
	return nil
}

// refuse counts a fact that the Sink refuses for good.
func (s *Storing) refuse(f trail.Fact, err error) {
	s.Metrics.Facts.WithLabelValues(string(f.Kind), metrics.StageRejected).Inc()
	s.Metrics.Lost.WithLabelValues(string(f.Kind), metrics.LostStoreReject).Inc()
	s.Log.Error("fact refused", "kind", f.Kind, "namespace", f.Namespace, "vmi", f.VMI, "err", err)
}

// append gives the Sink a batch, and up when it has not answered within a while: a connection whose other end stands still never says so.
func (s *Storing) append(ctx context.Context, batch []trail.Fact, within time.Duration) error {
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
	s.known(batch, news.Facts)
	if !news.Settled.IsZero() && !s.saidSettled {
		s.saidSettled = true
		s.Log.Warn("facts of a time come whose facts were dropped: they are kept, and what is told of that time stays as it is", "before", news.Settled)
	}
	s.Log.Debug("facts appended", "count", len(batch), "added", len(news.Facts), "elapsed", time.Since(start))
	return nil
}

// known counts what the Sink had already.
func (s *Storing) known(batch, added []trail.Fact) {
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

// alive tells the Sink that we are alive, and what is seen.
func (s *Storing) alive(ctx context.Context, sign trail.Sign) error {
	ctx, cancel := context.WithTimeout(ctx, answerWithin)
	defer cancel()
	news, err := s.Sink.Alive(ctx, sign.At, sign.Watching)
	s.Metrics.Count(news, s.Clock())
	s.Metrics.Stored(metrics.OpAlive, err)
	return err
}
