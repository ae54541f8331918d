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
	unanswered   = 10 * time.Second // a write that has not been answered for so long counts as one that fails
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

// beginWrite notes that a write is sent.
func (l *writeLog) beginWrite(at time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.begun = at
}

// endWrite notes how the write went that was sent last. One that the database refuses was answered.
func (l *writeLog) endWrite(at time.Time, err error) {
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

// snapshotSigns returns how writes go at a time.
func (l *writeLog) snapshotSigns(at time.Time) trail.WriteSigns {
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

// expectWrite notes that the first write is due.
func (l *writeLog) expectWrite(at time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.due = at
}

// checkOverdue reports since when a first write has been due that was not answered yet.
func (l *writeLog) checkOverdue() (since time.Time, is bool) {
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
	s.log.beginWrite(nowUTC())
	news, err := s.Sink.Append(ctx, facts)
	s.log.endWrite(nowUTC(), err)
	return news, err
}

// Alive implements collector.Sink.
func (s notedSink) Alive(ctx context.Context, at time.Time, watching []trail.Watching) error {
	s.log.beginWrite(nowUTC())
	err := s.Sink.Alive(ctx, at, watching)
	s.log.endWrite(nowUTC(), err)
	return err
}

// collectSigns returns what this process knows of its own recording at a time.
func (r *recorder) collectSigns(at time.Time) trail.ReplicaSigns {
	s := trail.ReplicaSigns{Replica: r.f.leader.replica, StartedAt: r.started, Leader: r.leading.snapshotSigns(at), Writes: r.stores.snapshotSigns(at)}
	if asked := r.reports.snapshotSigns(at); s.Writes.FailingSince.IsZero() || !asked.FailingSince.IsZero() && asked.FailingSince.Before(s.Writes.FailingSince) {
		s.Writes = asked
	}
	if since, is := r.reports.checkOverdue(); is {
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
	case r.watching.currentCluster() == "":
		s.ClusterProblem = "its API server does not answer, or does not allow get on the namespace kube-system. Allow it, or name the cluster with --cluster"
	default:
		s.ClusterProblem = errNoCluster.Error()
	}
	return s
}

// evaluateStatus judges how it stands with the recording of our cluster: by what this process knows now, and by what the other replicas said last. As long as this
// process is not ready by what it knows itself, it is not, whatever the others record: an update of all replicas, one after the other, waits for each.
func (r *recorder) evaluateStatus(context.Context) trail.RecorderStatus {
	at := nowUTC()
	signs := r.overlaySigns(r.others.Load(), at)
	signs.Standby = r.db.reads.Signs()
	status := signs.Status(at)
	status.Unready = status.Unready || signs.Replicas[0].Unready // its own report
	return status
}

// overlayRead implements read.Overlay. A recorder that does not know its cluster yet has a place of its own, without a name.
func (r *recorder) overlayRead(signs []trail.ClusterSigns, named string) []trail.ClusterSigns {
	own := r.watching.currentCluster()
	i, known := slices.BinarySearchFunc(signs, own, func(s trail.ClusterSigns, name string) int { return strings.Compare(s.Cluster, name) })
	switch {
	case known:
		signs[i] = r.overlaySigns(&signs[i], nowUTC())
	case named == "" || named == own:
		signs = slices.Insert(signs, i, r.overlaySigns(nil, nowUTC()))
	}
	return signs
}

// overlaySigns puts what this process knows now in the place of what it reported last.
func (r *recorder) overlaySigns(read *trail.ClusterSigns, at time.Time) trail.ClusterSigns {
	own := r.collectSigns(at).Report(at)
	signs := trail.ClusterSigns{Cluster: r.watching.currentCluster()}
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

// reportStatus reports the state of our recording to the others and reads what they report, until ctx ends. It is a write like others, so that a
// database that takes none is noticed while nothing happens in the cluster.
func (r *recorder) reportStatus(ctx context.Context) {
	r.reports.expectWrite(nowUTC())
	repeatUntil(ctx, reportEvery, func() { r.reportOnce(ctx) })
}

// showStatus shows the state of our recording as metrics until ctx ends. It waits for no database, so that the metrics change while one does not answer.
func (r *recorder) showStatus(ctx context.Context) {
	repeatUntil(ctx, showEvery, func() {
		r.config.Metrics.SetRecorder(r.evaluateStatus(ctx))
		r.config.Metrics.SetLeader(r.leading.snapshotSigns(nowUTC()), r.sink.WindowMemory(), nowUTC())
	})
}

// repeatUntil calls do at once and after each period until ctx ends.
func repeatUntil(ctx context.Context, period time.Duration, do func()) {
	tick := time.NewTicker(period)
	defer tick.Stop()
	for {
		do()
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
	began := nowUTC()
	err := r.checkDatabase(ctx)
	if err == nil {
		err = r.sink.Report(ctx, r.collectSigns(began).Report(began))
	}
	r.reports.endWrite(began, err)
	if read, err := r.db.Signs(ctx, r.cluster); err == nil && len(read) > 0 {
		r.others.Store(&read[0])
	}
}
