package collector

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/stretchr/testify/require"

	"github.com/evictrail/evictrail/metrics"
	"github.com/evictrail/evictrail/trail"
	"github.com/evictrail/evictrail/trail/tracker"
)

// countRequests counts the requests that a sink has.
func (s *sink) countRequests() int { return s.countKinds()[trail.KindEvictionRequested] }

func useAuditClock(c *Config) { c.Clock = func() time.Time { return auditNow } }

func TestAuditIsStoredBeforeItReturns(t *testing.T) {
	t.Parallel()
	var away atomic.Bool
	away.Store(true)
	s := &sink{fail: func(int, []trail.Fact) error {
		if away.Load() {
			return errors.New("the database is away")
		}
		return nil
	}}
	r := startCollector(t, newAPI(), s, useAuditClock)
	ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer cancel()
	_, err := r.Audit(ctx, strings.NewReader(newEvictionEvent()))
	require.ErrorIs(t, err, context.DeadlineExceeded, "not stored, so no good answer")
	require.Zero(t, s.countRequests())

	away.Store(false)
	report, err := r.Audit(t.Context(), strings.NewReader(newEvictionEvent("6728f619", "00000000")+"\n"+"{"))
	require.NoError(t, err)
	require.Equal(t, AuditReport{Lines: 2, Taken: 1, Refused: 1, First: "line 2: bad JSON: jsontext: unexpected EOF after offset 1"}, report)
	require.Equal(t, 2, s.countRequests(), "the first was taken, and is stored by now too")
	require.InDelta(t, 2, testutil.ToFloat64(r.metrics.AuditEvents.WithLabelValues(metrics.AuditTaken)), 0)
	require.InDelta(t, 1, testutil.ToFloat64(r.metrics.AuditEvents.WithLabelValues(metrics.AuditRefused)), 0)
	require.Contains(t, r.log.String(), "audit events refused")
}

func TestAuditIsRefusedWhileTooMuchWaits(t *testing.T) {
	t.Parallel()
	r := startCollector(t, newAPI(), &sink{fail: func(int, []trail.Fact) error { return errors.New("away") }}, useAuditClock)
	r.out.addFacts(t.Context(), make([]trail.Fact, busyBacklog+1))
	_, err := r.Audit(t.Context(), strings.NewReader(newEvictionEvent()))
	require.ErrorIs(t, err, ErrBusy)
	r.out.mu.Lock()
	r.out.pending = nil // let it stop
	r.out.mu.Unlock()
}

func TestReviewsAreTakenOrCounted(t *testing.T) {
	t.Parallel()
	block := make(chan struct{})
	s := &sink{}
	c := startCollector(t, newAPI(), s, useAuditClock)
	review, err := ReadReview([]byte(reviewJSON("u-1", "alice", "virt-launcher-db-x")))
	require.NoError(t, err)
	c.Reviewed(review)
	c.requireEventually(t, "the review is stored", func() bool { return s.countRequests() == 1 })
	other, err := ReadReview([]byte(reviewJSON("u-2", "alice", "nginx-1")))
	require.NoError(t, err)
	c.Reviewed(other)
	require.InDelta(t, 1, testutil.ToFloat64(c.metrics.Reviews.WithLabelValues(metrics.ReviewSkipped)), 0)

	c.submissions <- submission{ticket: make(chan uint64, 1), seen: []Observation{func(s tracker.Seen) tracker.Observation { // the owner stands still
		<-block
		return review.Request(s)
	}}}
	for range reviewed + 5 {
		c.Reviewed(review)
	}
	require.InDelta(t, 5, testutil.ToFloat64(c.metrics.Reviews.WithLabelValues(metrics.ReviewDropped)), 0)
	require.Equal(t, 1, strings.Count(c.log.String(), "reviews dropped"), "said once")
	close(block)
	_ = c.stop()
}

// TestFollow follows an audit log through rotation by renaming and by copying, and a restart.
func TestFollow(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	path := filepath.Join(dir, "audit.log")
	write := func(name, text string) {
		f, err := os.OpenFile(name, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
		require.NoError(t, err)
		_, err = f.WriteString(text)
		require.NoError(t, err)
		require.NoError(t, f.Close())
	}
	event := func(id string) string { return newEvictionEvent("6728f619", id) }
	s := &sink{}
	follow := func(r *running) {
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error, 1)
		go func() { done <- r.Follow(ctx, path) }()
		t.Cleanup(func() { cancel(); require.ErrorIs(t, <-done, context.Canceled) })
	}
	has := func(r *running, n int) {
		t.Helper()
		r.requireEventually(t, "requests are stored", func() bool { return s.countRequests() == n })
	}
	r := startCollector(t, newAPI(), s, nil)
	follow(r)
	r.requireEventually(t, "its absence is said", func() bool { return strings.Contains(r.log.String(), "audit log is not there") })
	write(path, event("00000001")+"\n"+event("00000002")+"\n"+event("00000003")[:100])
	has(r, 2)
	write(path, event("00000003")[100:]+"\n")
	has(r, 3)
	write(path, event("00000004")+"\n")
	require.NoError(t, os.Rename(path, filepath.Join(dir, "audit-2026-11-21T06-00-00.000.log")))
	write(filepath.Join(dir, "audit-2026-11-21T06-00-00.000.log"), event("00000005")+"\n") // still open in the API server
	write(path, event("00000006")+"\n")
	has(r, 6)
	require.NoError(t, os.Remove(path))
	write(path, event("00000007")+"\n"+event("00000017")+"\n") // another file of the same name, perhaps of the same inode
	has(r, 8)
	require.NoError(t, os.Truncate(path, 0))
	write(path, event("00000008")+"\nnonsense\n"+event("00000009")+"\n")
	has(r, 10)
	require.Contains(t, r.log.String(), "audit events refused")

	again := &sink{}
	old := filepath.Join(dir, "audit-2026-11-20T06-00-00.000.log")
	write(old, event("0000000a")+"\n")
	require.NoError(t, os.Chtimes(old, time.Now().Add(-time.Hour), time.Now().Add(-time.Hour)))
	s = again
	restarted := startCollector(t, newAPI(), again, func(c *Config) { c.LastSeen = map[string]time.Time{vmis: time.Now().Add(-time.Minute)} })
	follow(restarted)
	has(restarted, 7) // what was rotated while we were away, and the log itself; not what is older
}

// TestFollowALogThatIsEmptiedWhileRead empties the log while its lines are taken, and writes more than there was.
func TestFollowALogThatIsEmptiedWhileRead(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "audit.log")
	const before, after = "one\ntwo\n", "three\nfour\nfive\n"
	require.NoError(t, os.WriteFile(path, []byte(before), 0o600))
	var taken []string
	f := &follower{path: path, log: slog.New(slog.DiscardHandler), take: func(_ context.Context, part io.Reader, _ string, _ int64) error {
		text, err := io.ReadAll(part)
		taken = append(taken, string(text))
		return errors.Join(err, os.WriteFile(path, []byte(after), 0o600))
	}}
	require.NoError(t, f.readNewLines(t.Context(), path))
	require.NoError(t, f.readNewLines(t.Context(), path))
	require.Equal(t, []string{before, after}, taken)
}

// pacedSpool is a Spool with a backlog.
type pacedSpool struct {
	memorySpool
	long  bool
	taken uint64
}

func (p *pacedSpool) Backlog() (bool, uint64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.long, p.taken
}

func (p *pacedSpool) setBacklog(long bool, taken uint64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.long, p.taken = long, taken
}

// TestPace holds requests back while many facts wait in the spool, until as many as they are were stored: one body after the other, of which
// only some may wait.
func TestPace(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		spool := &pacedSpool{}
		c := &Collector{Config: Config{Spool: spool, Clock: time.Now}, pacing: make(chan struct{}, 1), submissions: make(chan submission), out: &writer{}}
		handed := 0
		go func() {
			for s := range c.submissions {
				handed += len(s.seen)
				s.ticket <- 0
			}
		}()
		defer close(c.submissions)
		some := make([]Request, keptAtOnce)
		for i := range some {
			some[i] = func(tracker.Seen) tracker.RequestObservation { return tracker.RequestObservation{} }
		}
		require.NoError(t, c.submitRequests(t.Context(), some), "not that many wait")
		require.Equal(t, keptAtOnce, handed)

		spool.setBacklog(true, 50)
		done := make(chan error, mostPaced)
		for range mostPaced {
			go func() { done <- c.submitRequests(t.Context(), some) }()
		}
		time.Sleep(time.Second)
		require.Empty(t, done)
		_, err := c.Audit(t.Context(), strings.NewReader(newEvictionEvent()))
		require.ErrorIs(t, err, ErrBusy)

		spool.setBacklog(true, 50+keptAtOnce)
		time.Sleep(time.Second)
		require.Len(t, done, 1, "what the database took is for one")
		spool.setBacklog(false, 60+keptAtOnce)
		time.Sleep(time.Second)
		require.Len(t, done, mostPaced)
		for range mostPaced {
			require.NoError(t, <-done)
		}

		spool.setBacklog(true, 0)
		handed = 0
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		require.ErrorIs(t, c.submitRequests(ctx, some), context.DeadlineExceeded)
		require.Zero(t, handed, "who gives up leaves nothing")
	})
}
