package chaos_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/evictrail/evictrail/store"
	"github.com/evictrail/evictrail/store/storetest"
	"github.com/evictrail/evictrail/trail"
	"github.com/evictrail/evictrail/trail/tracker"
)

// The rows that readers ask for: those of an older recording, in the same database.
const (
	largeRows = 3000
	largeRow  = 20_000 // bytes
)

// storeLargeRows stores facts of another cluster, whose rows are large.
func storeLargeRows(t *testing.T, database string) {
	t.Helper()
	s, err := store.Open(t.Context(), database, "")
	require.NoError(t, err)
	defer s.Close()
	tr, facts := tracker.New("old"), []trail.Fact(nil)
	for i := range largeRows {
		at := time.Now().Add(-time.Hour + time.Duration(i)*time.Millisecond)
		facts = append(facts, tr.Observe(tracker.KubeEventObservation{
			Meta: tracker.Meta{UID: fmt.Sprintf("event-%d", i), Namespace: "shop", Name: fmt.Sprintf("e-%d", i), ResourceVersion: strconv.Itoa(100 + i), CreatedAt: at},
			Seen: tracker.Seen{At: at}, About: tracker.Involved{Kind: "VirtualMachineInstance", Namespace: "shop", Name: "db-1", UID: "uid-db-1"},
			Reason: "FailedMigration", Message: strings.Repeat("x", largeRow), LastAt: at,
		})...)
	}
	for batch := range slices.Chunk(facts, 200) { // 4 MB each: one of all would be idle in its transaction while it is encoded, which Postgres bears for 5 s
		_, err = s.Append(t.Context(), "old", batch)
		require.NoError(t, err)
	}
}

// reader asks evictrail from an address of this machine, and counts for a caller of its own.
type reader struct {
	e    *evictrail
	from string
	http *http.Client
}

// newReader returns the reader of the address 127.0.0.n.
func newReader(t *testing.T, e *evictrail, n int) *reader {
	t.Helper()
	r := &reader{e: e, from: fmt.Sprintf("127.0.0.%d", n)}
	transport := &http.Transport{DialContext: r.dial, MaxConnsPerHost: 0, MaxIdleConnsPerHost: 64}
	t.Cleanup(transport.CloseIdleConnections)
	r.http = &http.Client{Transport: transport, Timeout: 20 * time.Second}
	return r
}

func (r *reader) dial(ctx context.Context, network, address string) (net.Conn, error) {
	dialer := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(r.from)}}
	return dialer.DialContext(ctx, network, address)
}

// get returns the status of an answer, which is read to its end; 0: there was none.
func (r *reader) get(ctx context.Context, path string) int {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+r.e.address+path, http.NoBody)
	if err != nil {
		return 0
	}
	answer, err := r.http.Do(request)
	if err != nil {
		return 0
	}
	defer func() { _ = answer.Body.Close() }()
	if _, err := io.Copy(io.Discard, answer.Body); err != nil {
		return 0
	}
	return answer.StatusCode
}

// stallReads asks on a connection of its own and reads nothing, again whenever it is cut off, until ctx ends. It returns how many answers began.
func (r *reader) stallReads(ctx context.Context, path string) (began int) {
	for ctx.Err() == nil {
		conn, err := r.dial(ctx, "tcp", r.e.address)
		if err != nil {
			continue
		}
		_ = conn.(*net.TCPConn).SetReadBuffer(4 << 10)
		stop := context.AfterFunc(ctx, func() { _ = conn.Close() })
		_, err = fmt.Fprintf(conn, "GET %s HTTP/1.1\r\nHost: %s\r\n\r\n", path, r.e.address)
		status, readErr := bufio.NewReaderSize(conn, 16).ReadString(' ')
		if err == nil && readErr == nil && strings.HasPrefix(status, "HTTP/1.1") {
			began++
			select {
			case <-ctx.Done():
			case <-time.After(15 * time.Second): // longer than evictrail bears
			}
		}
		stop()
		_ = conn.Close()
	}
	return began
}

// TestReadersThatAskTooMuch has readers ask for large answers, within the memory of the chart: 220 connections that never read, and 150 questions at once for
// more than an answer may have, each from one address and from several. During that time evictrail lives, another reader and Prometheus are answered, and
// what happens is recorded.
func TestReadersThatAskTooMuch(t *testing.T) {
	t.Parallel()
	const (
		large    = "/api/v1/events?cluster=old&limit=400" // 8 MB
		tooLarge = "/api/v1/events?limit=10000"
	)
	ask := func(ctx context.Context, r *reader) {
		for ctx.Err() == nil {
			if r.get(ctx, tooLarge) != http.StatusBadRequest { // it comes again at once, but leaves a core to others
				select {
				case <-time.After(100 * time.Millisecond):
				case <-ctx.Done():
				}
			}
		}
	}
	stall := func(ctx context.Context, r *reader) { r.stallReads(ctx, large) }
	for _, tt := range []struct {
		name         string
		many, places int // readers, and addresses of theirs
		read         func(context.Context, *reader)
	}{
		{"220 connections that are not read, of one address", 220, 1, stall},
		{"220 connections that are not read, of five addresses", 220, 5, stall},
		{"150 questions for too much, of one address", 150, 1, ask},
		{"150 questions for too much, of five addresses", 150, 5, ask},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			database := storetest.NewURL(t)
			storeLargeRows(t, database)
			c := startCluster(t, newTrace(newSeededRand(t), 10, 400))
			e := newEvictrail(t, c, database, "evictrail-0")
			e.limitMemory()
			e.start()
			e.awaitReady()
			other, prometheus := newReader(t, e, 2), newReader(t, e, 3)
			awaitCondition(t, 3*time.Minute, "an answer that is large", func() bool { return other.get(t.Context(), large) == http.StatusOK }) // the machine does much else
			require.Equal(t, http.StatusBadRequest, other.get(t.Context(), tooLarge))
			ctx, stop := context.WithCancel(t.Context())
			var readers sync.WaitGroup
			for i := range tt.many {
				r := newReader(t, e, 10+i%tt.places)
				readers.Go(func() { tt.read(ctx, r) })
			}
			began, answers, slowest := time.Now(), map[string]int{}, time.Duration(0)
			for time.Since(began) < time.Duration(chooseCount(25, 120))*time.Second {
				c.releaseTransitions(5)
				for name, get := range map[string]func() int{
					"lists":   func() int { return other.get(t.Context(), "/api/v1/migrations?cluster=c1&limit=10") },
					"page":    func() int { return other.get(t.Context(), "/") },
					"metrics": func() int { return prometheus.get(t.Context(), "/metrics") },
					"ready":   func() int { return prometheus.get(t.Context(), "/readyz") },
				} {
					asked := time.Now()
					answers[fmt.Sprint(name, " ", get())]++
					slowest = max(slowest, time.Since(asked))
				}
				require.True(t, e.Running(), "at %d MiB", e.peakMemory()>>20)
			}
			stop()
			readers.Wait()
			c.releaseTransitions(len(c.truth))
			awaitStored(t, database, c.released)
			e.requireBelowMemoryLimit()
			t.Logf("%s: %d MiB at most, others' slowest answer %s, %v, %d stalled and %d refused", tt.name, e.peakMemory()>>20, slowest.Round(time.Millisecond), answers,
				int(e.sumMetric("evictrail_http_shed_total", `"slow"`)), int(e.sumMetric("evictrail_http_shed_total", "")))
			for answer, n := range answers { // what asks the database may wait too long for its turn on a machine that does all this at once
				name, _, _ := strings.Cut(answer, " ")
				busy := answer == "lists 503" || answer == "page 503"
				require.True(t, strings.HasSuffix(answer, " 200") || busy && n < answers[name+" 200"], "%s: %d times of %v", answer, n, answers)
			}
			require.NoError(t, e.Stop())
			requireTruth(t, database, c.truth)
		})
	}
}
