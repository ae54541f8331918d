package chaos_test

import (
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/evictrail/evictrail/collector/recording"
)

// cluster serves a trace as a Kubernetes API, as far as it was released, and leases.
type cluster struct {
	*trace
	server     *recording.Server
	leases     *leases
	kubeconfig string        // file
	events     http.Handler  // serves the Kubernetes Events instead of the trace; set before anybody watches them
	ahead      time.Duration // its clock of ours, as its answers say
	released   int           // transitions
	next       int           // line that is released next
}

const kubeconfig = `
apiVersion: v1
kind: Config
clusters: [{name: c, cluster: {server: SERVER}}]
contexts: [{name: c, context: {cluster: c}}]
current-context: c
`

// startCluster serves a trace, of which only the lists are released yet.
func startCluster(t *testing.T, tr *trace) *cluster {
	t.Helper()
	return startClusterAhead(t, tr, 0)
}

// startClusterAhead serves a trace on a machine whose clock is ahead of ours.
func startClusterAhead(t *testing.T, tr *trace, ahead time.Duration) *cluster {
	t.Helper()
	c := &cluster{trace: tr, ahead: ahead, leases: newLeases(), kubeconfig: filepath.Join(t.TempDir(), "kubeconfig")}
	c.server = recording.NewServer(&recording.Recording{Name: "chaos", Lines: tr.lines}, recording.ServerOptions{})
	mux := http.NewServeMux()
	mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Date", time.Now().Add(c.ahead).UTC().Format(http.TimeFormat))
		if c.events != nil && r.URL.Path == "/api/v1/events" {
			c.events.ServeHTTP(w, r)
			return
		}
		c.server.ServeHTTP(w, r)
	})
	c.leases.registerHandlers(mux)
	server := httptest.NewServer(mux)
	t.Cleanup(func() {
		server.CloseClientConnections()
		server.Close()
	})
	require.NoError(t, os.WriteFile(c.kubeconfig, []byte(strings.Replace(kubeconfig, "SERVER", server.URL, 1)), 0o600))
	for c.next < tr.first {
		c.releaseLine()
	}
	return c
}

func (c *cluster) releaseLine() {
	c.server.Release(c.next)
	c.next++
}

// releaseTransitions has so many more transitions happen, or what is left. It returns how many have happened.
func (c *cluster) releaseTransitions(n int) int {
	c.released = min(c.released+n, len(c.truth))
	until := len(c.lines)
	if c.released < len(c.truth) {
		until = c.ends[c.released-1] + 1
	}
	for c.next < until {
		c.releaseLine()
	}
	return c.released
}

// isComplete reports whether all has happened.
func (c *cluster) isComplete() bool { return c.released == len(c.truth) }
