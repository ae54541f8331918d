package chaos_test

import (
	"errors"
	"io"
	"math/rand/v2"
	"net/http"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/evictrail/evictrail/store/storetest"
)

const vmsOfFlood = 1000

// TestT10AuditFlood sends audit events as fast as it goes, in bodies of 10 MiB and in small ones, while migrations go on: what is too much is refused
// with the time to come again, what is answered with 200 is stored, memory is bounded, and migrations are recorded as if nothing were.
//
// T10 of the chaos matrix (docs/chaos.md): a flood of audit events.
func TestT10AuditFlood(t *testing.T) { //nolint:paralleltest // timed decides
	runParallelUnlessLong(t)
	const (
		senders  = 4 // of each sort
		full     = 10 << 20
		small    = 10 << 10
		between  = 50 * time.Millisecond // two transitions
		burst    = 112                   // small bodies at once at the beginning: more than are let in, and fewer than the connections of one host
		often    = 5                     // times that they are sent: a slow machine sends the first of them while the limit fills again
		unharmed = 30 * time.Second      // longest time from a transition to its row
	)
	r := newSeededRand(t)
	lasts := time.Duration(chooseCount(20, 300)) * time.Second
	database := storetest.NewURL(t)
	c := startCluster(t, newTrace(r, vmsOfFlood, int(lasts/between)))
	e := newEvictrail(t, c, database, "evictrail-0")
	e.start()
	e.awaitReady()

	code, _, _, err := e.sendAuditBody(t.Context(), []byte(strings.Repeat(" ", full+1)))
	require.NoError(t, err)
	require.Equal(t, http.StatusRequestEntityTooLarge, code)

	answers, stored, events := map[int]int{}, map[string]bool{}, 0
	var mu sync.Mutex
	var flood sync.WaitGroup
	send := func(r *rand.Rand, size int) {
		body, ids := auditBody(r, size)
		code, after, text, err := e.sendAuditBody(t.Context(), body)
		mu.Lock()
		defer mu.Unlock()
		answers[code]++
		events += len(ids)
		switch {
		case errors.Is(err, syscall.EPIPE), errors.Is(err, syscall.ECONNRESET), errors.Is(err, io.EOF):
			// It was answered before all was sent, and the answer lost, or it was one connection too many on a busy machine: an API server comes again.
		case err != nil:
			t.Errorf("send: %v", err)
		case code == http.StatusOK:
			for _, id := range ids {
				stored[id] = true
			}
		case (code != http.StatusTooManyRequests && code != http.StatusServiceUnavailable) || after == "":
			t.Errorf("answered with %d, Retry-After %q: %s", code, after, text)
		}
	}
	for i := range burst {
		mine := rand.New(rand.NewPCG(r.Uint64(), uint64(i)))
		flood.Go(func() {
			for range often {
				send(mine, small)
			}
		})
	}
	flood.Wait()
	end := time.Now().Add(lasts)
	for i := range 2 * senders {
		mine := rand.New(rand.NewPCG(r.Uint64(), uint64(i)))
		flood.Go(func() {
			for time.Now().Before(end) {
				send(mine, []int{small, full - 1}[i%2])
			}
		})
	}
	began := time.Now()
	lag := 0.0
	for time.Now().Before(end) {
		c.releaseTransitions(1)
		lag = max(lag, e.storeLagSeconds())
		time.Sleep(between)
	}
	took := time.Since(began)
	flood.Wait()
	c.releaseTransitions(len(c.truth))
	awaitStored(t, database, len(c.truth))
	t.Logf("T10: %d audit events sent in %s (%.0f a second), answers: %v; %d were stored; lag up to %.1f s, %d MiB at most",
		events, took.Round(time.Second), float64(events)/took.Seconds(), answers, len(stored), lag, e.peakMemory()>>20)
	require.Positive(t, answers[http.StatusTooManyRequests]+answers[http.StatusServiceUnavailable], "not all is let in")
	require.Positive(t, answers[http.StatusOK])
	require.Less(t, lag, unharmed.Seconds())
	require.Less(t, e.peakMemory(), int64(limit))
	requireTruth(t, database, c.truth)
	got := map[string]bool{}
	for _, row := range loadRows[struct {
		ID string `json:"object_uid"`
	}](t, database, "SELECT DISTINCT object_uid FROM evictrail_v1.events WHERE kind = 'eviction_requested'") {
		got[row.ID] = true
	}
	for id := range stored {
		require.True(t, got["audit:"+id], "%s was answered with 200 and is not stored", id)
	}
	require.NoError(t, e.Stop())
}

// auditBody makes a body of audit events that is about so large, and returns the IDs of those that matter.
func auditBody(r *rand.Rand, size int) (body []byte, ids []string) {
	var text strings.Builder
	text.WriteString(`{"kind":"EventList","apiVersion":"audit.k8s.io/v1","items":[`)
	for text.Len() < size-2000 {
		if len(ids) > 0 {
			text.WriteString(",")
		}
		id, line := auditPoll(r, time.Now().UTC().Add(-time.Duration(r.Int64N(int64(time.Hour)))))
		text.WriteString(line)
		ids = append(ids, id)
	}
	text.WriteString("]}")
	return []byte(text.String()), ids
}
