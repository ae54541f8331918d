package main

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/evictrail/evictrail/collector"
	"github.com/evictrail/evictrail/store/pg"
	"github.com/evictrail/evictrail/trail"
)

const (
	reportEvery  = 5 * time.Second  // between two reports
	reportWithin = 4 * time.Second  // that one may take
	unanswered   = 15 * time.Second // a write that has not been answered for so long counts as one that fails
)

// writeLog notes how writes of one kind go. It is safe for concurrent use.
type writeLog struct {
	mu      sync.Mutex
	begun   time.Time // of the write that is not answered yet; zero: none is under way
	failing time.Time // since when they fail; zero while they succeed
	err     error     // of the last one
	worked  bool      // one was answered
	due     time.Time // when the first one was to be made; zero: not yet
}

// begin notes that a write is sent.
func (l *writeLog) begin(at time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.begun = at
}

// end notes how the write went that was sent last. One that the database refuses was answered.
func (l *writeLog) end(at time.Time, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.begun = time.Time{}
	if l.err = err; err == nil || errors.Is(err, trail.ErrRefused) {
		l.err, l.failing, l.worked = nil, time.Time{}, true
		return
	}
	if l.failing.IsZero() {
		l.failing = at
	}
}

// signs returns how writes go at a time.
func (l *writeLog) signs(at time.Time) trail.WriteSigns {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case !l.failing.IsZero():
		return trail.WriteSigns{FailingSince: l.failing, Cause: pg.Brief(l.err), Problem: l.err.Error()}
	case !l.begun.IsZero() && at.Sub(l.begun) > unanswered:
		return trail.WriteSigns{FailingSince: l.begun, Cause: "a write is not answered. Does another session hold a lock?"}
	}
	return trail.WriteSigns{}
}

// expect notes that the first write is due.
func (l *writeLog) expect(at time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.due = at
}

// overdue reports since when a first write has been due that was not answered yet.
func (l *writeLog) overdue() (since time.Time, is bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.due, !l.due.IsZero() && !l.worked
}

// notedSink notes how writes to a Sink go.
type notedSink struct {
	collector.Sink
	log *writeLog
}

// Append implements collector.Sink.
func (s notedSink) Append(ctx context.Context, facts []trail.Fact) (trail.News, error) {
	s.log.begin(now())
	news, err := s.Sink.Append(ctx, facts)
	s.log.end(now(), err)
	return news, err
}

// Alive implements collector.Sink.
func (s notedSink) Alive(ctx context.Context, at time.Time, watching []trail.Watching) error {
	s.log.begin(now())
	err := s.Sink.Alive(ctx, at, watching)
	s.log.end(now(), err)
	return err
}

// signs returns what this process knows of its own recording at a time.
func (r *recorder) signs(at time.Time) trail.ReplicaSigns {
	s := trail.ReplicaSigns{Replica: r.f.leader.replica, StartedAt: r.started, Leader: r.leading.signs(at), Writes: r.stores.signs(at)}
	if asked := r.reports.signs(at); s.Writes.FailingSince.IsZero() || !asked.FailingSince.IsZero() && asked.FailingSince.Before(s.Writes.FailingSince) {
		s.Writes = asked
	}
	if since, is := r.reports.overdue(); is {
		s.Writes.FailingSince, s.Writes.Never, s.Writes.Cause = since, true, cmp.Or(s.Writes.Cause, "it does not answer")
	}
	if spooled := r.spool.Load(); spooled != nil {
		c := spooled.Condition()
		s.Spool = trail.SpoolSigns{Facts: c.Facts, Oldest: c.Oldest, Full: c.Full, DeadLetters: c.DeadLetters}
		if c.Problem != nil {
			s.Spool.Problem = c.Problem.Error()
		}
	}
	switch c := r.watching.Load(); {
	case c != nil:
		s.Watches = c.Watches()
	case r.watching.cluster() == "":
		s.ClusterProblem = "its API server does not answer, or does not allow get on the namespace kube-system. Allow it, or name the cluster with --cluster"
	default:
		s.ClusterProblem = errNoCluster.Error()
	}
	return s
}

// status judges how it stands with the recording of our cluster: by what this process knows now, and by what the other replicas said last.
func (r *recorder) status(context.Context) trail.RecorderStatus {
	at := now()
	return r.overlay(r.others.Load(), at).Status(at)
}

// overlayRead implements read.Overlay. A recorder that does not know its cluster yet has a place of its own, without a name.
func (r *recorder) overlayRead(signs []trail.ClusterSigns, named string) []trail.ClusterSigns {
	own := r.watching.cluster()
	i, known := slices.BinarySearchFunc(signs, own, func(s trail.ClusterSigns, name string) int { return strings.Compare(s.Cluster, name) })
	switch {
	case known:
		signs[i] = r.overlay(&signs[i], now())
	case named == "" || named == own:
		signs = slices.Insert(signs, i, r.overlay(nil, now()))
	}
	return signs
}

// overlay puts what this process knows now in the place of what it reported last.
func (r *recorder) overlay(read *trail.ClusterSigns, at time.Time) trail.ClusterSigns {
	own := r.signs(at).Report(at)
	signs := trail.ClusterSigns{Cluster: r.watching.cluster()}
	if read != nil {
		signs = *read
	}
	reports := []trail.ReplicaReport{own}
	for _, other := range signs.Replicas {
		if other.Replica != own.Replica {
			reports = append(reports, other)
		}
	}
	signs.Replicas = reports
	return signs
}

// report tells the others how it stands with our recording, reads what they tell, and shows both as metrics, until ctx ends. It is a write
// like others, so that a database that takes none is noticed while nothing happens in the cluster.
func (r *recorder) report(ctx context.Context) {
	r.reports.expect(now())
	tick := time.NewTicker(reportEvery)
	defer tick.Stop()
	for {
		r.reportOnce(ctx)
		r.config.Metrics.SetRecorder(r.status(ctx))
		r.config.Metrics.SetLeader(r.leading.signs(now()), now())
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
	}
}

func (r *recorder) reportOnce(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, reportWithin)
	defer cancel()
	began := now()
	err := r.reach(ctx)
	if err == nil {
		err = r.sink.Report(ctx, r.signs(began).Report(began))
	}
	r.reports.end(began, err)
	if read, err := r.db.Signs(ctx, r.cluster); err == nil && len(read) > 0 {
		r.others.Store(&read[0])
	}
}
