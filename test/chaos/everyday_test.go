package chaos_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/evictrail/evictrail/store/storetest"
	"github.com/evictrail/evictrail/test/ports"
)

// What is promised of everyday load: P3, P4 and P6.
const (
	everydayRate   = 200                    // transitions a second
	everydayAudit  = 50                     // audit events a second, which an API server sends once a second
	everydayReview = 5                      // reviews a second
	soon           = 0.99                   // of facts are committed within a second of their sight
	nearlyAll      = 0.999                  // within five
	answered       = 100 * time.Millisecond // 99 % of who sends
	syncs          = 4                      // that an answer to audit events may wait for: a sign of life that the spool commits, of three, and its own
)

// TestEverydayLoad has a cluster of 10,000 VMs on 500 nodes change 200 times a second, while an API server sends audit events and asks the eviction
// observer, with the database there, away, and there again: memory and goroutines stay as they are, everything is stored once, soon while the database
// is there, and who sends is answered at once either way.
func TestEverydayLoad(t *testing.T) { //nolint:paralleltest // timed decides
	runParallelUnlessLong(t)
	r := newSeededRand(t)
	vms, lasts := chooseCount(1000, 10_000), time.Duration(chooseCount(8, 120))*time.Second // of each part
	database := storetest.NewURL(t)
	p := startProxy(t, database)
	const apart = 5 * time.Millisecond
	total := everydayRate * 3 * int(lasts.Seconds())
	c := startCluster(t, newTraceBy(&clock{at: time.Now().Add(-4 * time.Hour), apart: apart}, r, vms/20, vms, total))
	reviews := ports.Free(t)
	e := newEvictrail(t, c, p.databaseURL(), "evictrail-0", "--eviction-observer", "--admission-listen", reviews)
	e.start()
	e.awaitReady()
	c.releaseTransitions(1)
	awaitDerived(t, database, c)
	calm := e.readLoad()

	file, err := os.CreateTemp(t.TempDir(), "fsync")
	require.NoError(t, err)
	defer func() { _ = file.Close() }()
	s := &senders{e: e, observer: reviews, file: file, answers: map[string][]time.Duration{}}
	stop := s.start(t.Context(), r)
	var there lag
	most := calm.goroutines
	var slow []string
	part := func(name string, isThere bool) {
		s.setPart(name)
		before := e.commitLag()
		c.releaseAtRate(t, everydayRate, lasts, func() { most = max(most, e.readLoad().goroutines) })
		if isThere {
			awaitStored(t, database, c.released)
			now := e.commitLag().minus(before)
			there = there.plus(now)
			t.Logf("everyday load, %-15s %s", name+":", now)
		}
		audit, review, disk := s.answerQuantile("audit "+name, 0.99), s.answerQuantile("review "+name, 0.99), s.answerQuantile("fsync "+name, 0.99)
		t.Logf("everyday load, %-15s audit events answered within %s (p99 of %d), reviews within %s (p99 of %d), an fsync within %s (p99 of %d); %d MiB at most", name+":",
			audit, s.countAnswers("audit "+name), review, s.countAnswers("review "+name), disk, s.countAnswers("fsync "+name), e.peakMemory()>>20)
		if audit > max(answered, syncs*disk) || review > answered {
			slow = append(slow, name)
		}
	}
	part("database there", true)
	p.goOffline()
	part("database away", false)
	p.clearFaults()
	back := time.Now()
	awaitCondition(t, drained, "what waited is stored", func() bool { return e.storeLagSeconds() < 5 })
	drain := time.Since(back)
	part("there again", true)
	stop()
	c.releaseTransitions(len(c.truth))
	awaitStored(t, database, len(c.truth))
	last, again := e.readLoad(), e.sumMetric("evictrail_store_errors_total", `op="retry"`)
	t.Logf("everyday load: %d VMs on %d nodes, %d transitions, %d a second, %d audit events and %d reviews; drained within %s; %s; %.0f transactions done again; %d MiB at most; %.0f goroutines before, %.0f at most, %.0f after",
		vms, c.nodes, len(c.truth), everydayRate, len(s.sent), s.reviews, drain.Round(100*time.Millisecond), there, again, e.peakMemory()>>20, calm.goroutines, most, last.goroutines)
	require.NoError(t, e.Stop())
	requireTruth(t, database, c.truth)
	requireOnce(t, database, s.sent)
	requireRederived(t, database)
	require.Less(t, e.peakMemory(), int64(mostMemory))
	require.LessOrEqual(t, last.goroutines, calm.goroutines+10)
	if !*long { // others keep the machine busy during that time: what was measured is in the log
		return
	}
	require.Empty(t, slow, "answers took too long")
	require.GreaterOrEqual(t, there.second/there.all, soon)
	require.GreaterOrEqual(t, there.five/there.all, nearlyAll)
}

// releaseAtRate has so many transitions a second happen for a while, and looks at something every second.
func (c *cluster) releaseAtRate(t *testing.T, rate int, lasts time.Duration, look func()) {
	t.Helper()
	began, before := time.Now(), c.released
	tick := time.NewTicker(time.Second / time.Duration(rate))
	defer tick.Stop()
	looked := began
	for now := range tick.C {
		due := int(min(now.Sub(began), lasts).Seconds() * float64(rate))
		if due > c.released-before {
			c.releaseTransitions(due - (c.released - before))
		}
		if now.Sub(looked) > time.Second {
			looked = now
			look()
		}
		if now.Sub(began) >= lasts {
			return
		}
	}
}

// lag is how many facts were committed, and how many of them within which time of their sight.
type lag struct{ quarter, second, five, all float64 }

func (e *evictrail) commitLag() lag {
	e.t.Helper()
	n := e.sumMetricByLabels("evictrail_commit_lag_seconds_bucket", `le="0.25"`, `le="1"`, `le="5"`, `le="+Inf"`)
	return lag{n[0], n[1], n[2], n[3]}
}

func (l lag) minus(o lag) lag {
	return lag{l.quarter - o.quarter, l.second - o.second, l.five - o.five, l.all - o.all}
}

func (l lag) plus(o lag) lag {
	return lag{l.quarter + o.quarter, l.second + o.second, l.five + o.five, l.all + o.all}
}

// String returns the shares.
func (l lag) String() string {
	return fmt.Sprintf("of %.0f facts %.2f %% committed within 250 ms, %.2f %% within 1 s, %.3f %% within 5 s", l.all, 100*l.quarter/l.all, 100*l.second/l.all, 100*l.five/l.all)
}

// senders is what API servers send to evictrail, and how long it, and the disk, took.
type senders struct {
	observer string // address of reviews
	e        *evictrail
	file     *os.File // that nobody else writes

	mu      sync.Mutex
	now     string                     // the part of the test
	answers map[string][]time.Duration // by what was sent and the part
	sent    []string                   // IDs of audit events that were answered with 200
	reviews int
}

// start sends until stop is called, which waits for the answers.
func (s *senders) start(ctx context.Context, r *rand.Rand) (stop func()) {
	ctx, cancel := context.WithCancel(ctx)
	var running sync.WaitGroup
	every := func(between time.Duration, send func(r *rand.Rand)) {
		mine := rand.New(rand.NewPCG(r.Uint64(), 0))
		running.Go(func() {
			tick := time.NewTicker(between)
			defer tick.Stop()
			for {
				select {
				case <-tick.C:
					send(mine)
				case <-ctx.Done():
					return
				}
			}
		})
	}
	every(time.Second/4, func(*rand.Rand) { s.measureFsync() })
	every(time.Second, func(r *rand.Rand) { s.sendAuditEvents(context.WithoutCancel(ctx), r) })
	every(time.Second/everydayReview, func(r *rand.Rand) { s.sendReview(context.WithoutCancel(ctx), r) })
	return func() {
		cancel()
		running.Wait()
	}
}

// setPart says which part of the test it is.
func (s *senders) setPart(part string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.now = part
}

// recordDuration notes how long an answer took.
func (s *senders) recordDuration(what string, since time.Time) {
	s.answers[what+" "+s.now] = append(s.answers[what+" "+s.now], time.Since(since))
}

// measureFsync asks the disk itself how long it takes, on which the spool is: the one limit that answers have, as they are given when what they are about is on disk.
func (s *senders) measureFsync() {
	began := time.Now()
	_, err := s.file.WriteAt(make([]byte, 16<<10), 0)
	err = errors.Join(err, s.file.Sync())
	s.mu.Lock()
	defer s.mu.Unlock()
	s.recordDuration("fsync", began)
	if err != nil {
		s.e.t.Errorf("the disk: %v", err)
	}
}

// sendAuditEvents sends the audit events of a second.
func (s *senders) sendAuditEvents(ctx context.Context, r *rand.Rand) {
	var ids, lines []string
	for range everydayAudit {
		id, line := auditPoll(r, time.Now().UTC().Add(-time.Duration(r.Int64N(int64(time.Second)))))
		ids, lines = append(ids, id), append(lines, line)
	}
	began := time.Now()
	code, _, text, err := s.e.sendAuditBody(ctx, []byte(`{"kind":"EventList","apiVersion":"audit.k8s.io/v1","items":[`+strings.Join(lines, ",")+`]}`))
	s.mu.Lock()
	defer s.mu.Unlock()
	s.recordDuration("audit", began)
	if err != nil || code != http.StatusOK {
		s.e.t.Errorf("audit events answered with %d %s: %v", code, text, err)
	}
	s.sent = append(s.sent, ids...)
}

// sendReview asks the eviction observer about one.
func (s *senders) sendReview(ctx context.Context, r *rand.Rand) {
	uid := fmt.Sprintf("%08x-1b2c-47d4-ad93-%012x", r.Uint32(), r.Uint64N(1<<48))
	pod := launcherPodName(fmt.Sprintf("db-%d", r.IntN(vmsOfFlood)))
	body := fmt.Sprintf(`{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview","request":{"uid":%q,"resource":{"group":"","version":"v1","resource":"pods"},`+
		`"subResource":"eviction","name":%q,"namespace":%q,"operation":"CREATE","userInfo":{"username":"alice"},"object":{"metadata":{"name":%q,"namespace":%q}}}}`,
		uid, pod, namespace, pod, namespace)
	began := time.Now()
	text, err := s.postReview(ctx, []byte(body))
	s.mu.Lock()
	defer s.mu.Unlock()
	s.recordDuration("review", began)
	s.reviews++
	if err != nil || !strings.Contains(text, `"allowed":true`) {
		s.e.t.Errorf("review answered with %s: %v", text, err)
	}
}

// postReview sends a review to the eviction observer.
func (s *senders) postReview(ctx context.Context, review []byte) (string, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://"+s.observer+"/admission", bytes.NewReader(review))
	if err != nil {
		return "", err
	}
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		return "", err
	}
	defer func() { _ = answer.Body.Close() }()
	text, err := io.ReadAll(answer.Body)
	return string(text), err
}

// answerQuantile returns within which time a share of what was sent was answered.
func (s *senders) answerQuantile(what string, q float64) time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	all := slices.Sorted(slices.Values(s.answers[what]))
	require.NotEmpty(s.e.t, all, what)
	return all[min(int(q*float64(len(all))), len(all)-1)].Round(100 * time.Microsecond)
}

func (s *senders) countAnswers(what string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.answers[what])
}

// requireOnce wants each of the audit events stored, once, and no others.
func requireOnce(t *testing.T, database string, ids []string) {
	t.Helper()
	got := map[string]int{}
	for _, row := range loadRows[struct {
		ID string `json:"object_uid"`
	}](t, database, "SELECT object_uid FROM evictrail_v1.events WHERE kind = 'eviction_requested' AND object_uid LIKE 'audit:%'") {
		got[row.ID]++
	}
	for _, id := range ids {
		require.Equal(t, 1, got["audit:"+id], id)
	}
	require.Len(t, got, len(ids))
}
