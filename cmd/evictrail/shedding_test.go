package main

import (
	"bytes"
	"log/slog"
	"net/netip"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/evictrail/evictrail/api"
)

// TestWhatIsShedIsLoggedOnce has many callers refused many times: each is counted, and the log has a line for each cause and kind of caller, and
// another after an hour.
func TestWhatIsShedIsLoggedOnce(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var log bytes.Buffer
		counted := map[string]int{}
		s := newShedding(func(cause string) { counted[cause]++ }, slog.New(slog.NewTextHandler(&log, nil)))
		flood := func() {
			for range 100 {
				s.shedRequest(api.ShedShare, "user mallory")
				s.shedRequest(api.ShedShare, "user eve")
				s.shedRequest(api.ShedShare, "host 10.0.0.1/32")
				s.shedRequest(api.ShedSlow, "user mallory")
				s.shedConnection(netip.MustParseAddr("10.0.0.1"))
			}
		}
		flood()
		require.Equal(t, map[string]int{api.ShedShare: 300, api.ShedSlow: 100, "connections": 100}, counted)
		lines := strings.Split(strings.TrimSpace(log.String()), "\n")
		require.Len(t, lines, 4, log.String())
		for i, want := range []string{`cause=share caller="user mallory"`, `cause=share caller="host 10.0.0.1/32"`, `cause=slow caller="user mallory"`, `cause=connections caller="host 10.0.0.1"`} {
			require.Contains(t, lines[i], want)
		}
		time.Sleep(shedQuiet)
		flood()
		require.Equal(t, 8, strings.Count(log.String(), "\n"))
	})
}
