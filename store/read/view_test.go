package read_test

import (
	"errors"
	"fmt"
	"io"
	"net"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/stretchr/testify/require"

	"github.com/evictrail/evictrail/store"
	"github.com/evictrail/evictrail/store/storetest"
	"github.com/evictrail/evictrail/trail"
	"github.com/evictrail/evictrail/trail/tracker"
)

// countBytes returns the URL of a database by way of a relay, which counts the bytes that the database sends.
func countBytes(t *testing.T, database string) (by string, sent *atomic.Int64) {
	t.Helper()
	config, err := pgconn.ParseConfig(database)
	require.NoError(t, err)
	network, address := pgconn.NetworkAddress(config.Host, config.Port)
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	t.Cleanup(func() { _ = listener.Close() })
	sent = new(atomic.Int64)
	go func() {
		for {
			near, err := listener.Accept()
			if err != nil {
				return
			}
			far, err := net.Dial(network, address)
			if err != nil {
				_ = near.Close()
				return
			}
			go func() { _, _ = io.Copy(far, near); _ = far.Close() }()
			go func() { _, _ = io.Copy(countingWriter{near, sent}, far); _ = near.Close() }()
		}
	}()
	u, err := url.Parse(database)
	require.NoError(t, err)
	q := u.Query()
	q.Set("host", "127.0.0.1")
	q.Set("port", strconv.Itoa(listener.Addr().(*net.TCPAddr).Port))
	u.RawQuery = q.Encode()
	return u.String(), sent
}

// countingWriter counts what it writes.
type countingWriter struct {
	io.Writer

	count *atomic.Int64
}

func (w countingWriter) Write(p []byte) (int, error) {
	w.count.Add(int64(len(p)))
	return w.Writer.Write(p)
}

// TestRowsAreReadWithinABound asks for rows of 30 MB that may have 1 MiB: the database is not asked for more than that, the error says how many rows would
// do, and that many are returned, with a word on whether there are more. As many rows as allowed are the bound where they are small.
func TestRowsAreReadWithinABound(t *testing.T) {
	storetest.SkipInShort(t)
	t.Parallel()
	database := storetest.NewURL(t)
	by, sent := countBytes(t, database)
	s, err := store.Open(t.Context(), by, "")
	require.NoError(t, err)
	t.Cleanup(s.Close)
	tr, facts := tracker.New("c1"), []trail.Fact(nil)
	for i := range 1500 {
		at := start.Add(time.Duration(i) * time.Second)
		facts = append(facts, tr.Observe(tracker.KubeEventObservation{
			Meta: tracker.Meta{UID: fmt.Sprintf("event-%d", i), Namespace: "shop", Name: fmt.Sprintf("e-%d", i), ResourceVersion: strconv.Itoa(100 + i), CreatedAt: at},
			Seen: tracker.Seen{At: at}, About: tracker.Involved{Kind: "VirtualMachineInstance", Namespace: "shop", Name: "db-1", UID: "uid-db-1"}, Reason: "FailedMigration", Message: strings.Repeat("x", 20_000), LastAt: at,
		})...)
	}
	for some := range slices.Chunk(facts, 200) { // 4 MB at once, as evictrail stores no more: the server ends a transaction that is idle for long
		_, err = s.Append(t.Context(), "c1", some)
		require.NoError(t, err)
	}

	q := trail.Query{Limit: 10_000, MaxBytes: 1 << 20}
	for name, list := range map[string]func(trail.Query) (rows int, next *trail.Key, err error){
		"JSON": func(q trail.Query) (int, *trail.Key, error) {
			page, err := s.ListJSON(t.Context(), trail.ViewEvents, q)
			return len(page.Rows), page.Next, err
		},
		"text": func(q trail.Query) (int, *trail.Key, error) {
			table, err := s.ListText(t.Context(), trail.ViewEvents, q)
			return len(table.Rows), table.Next, err
		},
	} {
		before := sent.Load()
		_, _, err := list(q)
		large, is := errors.AsType[*trail.TooLargeError](err)
		require.True(t, is, "%s: %v", name, err)
		require.InDelta(t, 51, large.Rows, 1, name)
		require.Less(t, sent.Load()-before, int64(8<<20), "%s: bytes that the database sent", name)
		few := q
		few.Limit = large.Rows
		rows, next, err := list(few)
		require.NoError(t, err, name)
		require.Equal(t, large.Rows, rows, name)
		require.NotNil(t, next, name)
		whole := trail.Query{Limit: len(facts)}
		rows, _, err = list(whole)
		require.NoError(t, err)
		require.Equal(t, len(facts), rows, name)
	}
}
