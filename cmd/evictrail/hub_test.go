package main

import (
	"bytes"
	"context"
	"encoding/csv"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/evictrail/evictrail/api"
	"github.com/evictrail/evictrail/api/hub"
	"github.com/evictrail/evictrail/store"
	"github.com/evictrail/evictrail/store/storetest"
	"github.com/evictrail/evictrail/trail"
)

// serveEvictrail serves the pages and the API of a database until the test ends.
func serveEvictrail(t *testing.T, database string) *httptest.Server {
	t.Helper()
	s, err := store.Open(t.Context(), database, "")
	require.NoError(t, err)
	log := slog.New(slog.NewTextHandler(prefixed{t, "source: "}, nil))
	answers := (&listenFlags{auth: authNone}).newServer(t.Context(), s, onlyPrimary(t, s), log)
	answers.Health = &api.Health{Metrics: http.NotFoundHandler(), Status: func(context.Context) trail.RecorderStatus { return trail.RecorderStatus{} }}
	server := httptest.NewServer(answers.Handler())
	t.Cleanup(func() { server.Close(); s.Close() })
	return server
}

// hubOver serves a hub over sources, as NAME, URL, until the test ends, and returns its address.
func hubOver(t *testing.T, timeout time.Duration, sources ...string) string {
	t.Helper()
	server := httptest.NewServer(newTestHub(t, timeout, sources...))
	t.Cleanup(server.Close)
	return server.URL
}

func newTestHub(t *testing.T, timeout time.Duration, sources ...string) http.Handler {
	t.Helper()
	c := hub.Config{Timeout: timeout}
	for i := 0; i < len(sources); i += 2 {
		c.Sources = append(c.Sources, hub.Source{Name: sources[i], URL: sources[i+1]})
	}
	h, err := hub.New(c)
	require.NoError(t, err)
	t.Cleanup(h.Close)
	server := h.Server("create token", func(path string, err error) { t.Log(path, err) })
	server.Failed = func(err error) { t.Log(err) }
	return server.Handler()
}

// getPage returns the status, the text of a page, and what its header says is missing.
func getPage(t *testing.T, address string) (status int, text, missing string) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, address, http.NoBody)
	require.NoError(t, err)
	answer, err := http.DefaultClient.Do(r)
	require.NoError(t, err)
	defer func() { _ = answer.Body.Close() }()
	body, err := io.ReadAll(answer.Body)
	require.NoError(t, err)
	return answer.StatusCode, string(body), answer.Header.Get(api.MissingHeader)
}

// newDeadURL returns the address of a source that is down.
func newDeadURL(t *testing.T) string {
	t.Helper()
	gone := httptest.NewServer(http.NotFoundHandler())
	gone.Close()
	return gone.URL
}

const (
	retryCluster = "b-dual-retry-loop-v1.8"
	drainCluster = "c-node-drain"
	churnCluster = "g-churn-cooldown"
	slotCluster  = "k-blocked-slot"
)

// TestHub asks a hub over three evictrails of which one is down: the others answer, and the one that is down is named in each answer.
func TestHub(t *testing.T) {
	t.Parallel()
	storetest.SkipInShort(t)
	east, west := serveEvictrail(t, playedURL(t, retryCluster)), serveEvictrail(t, playedURL(t, drainCluster, churnCluster))
	at := hubOver(t, 0, "east", east.URL, "west", west.URL, "north", newDeadURL(t))
	const named = "Source north does not answer: connect: connection refused."
	why := "/vms/demo/vm-d?cluster=" + retryCluster
	for path, says := range map[string][]string{
		"/":      {"1 source missing", retryCluster, drainCluster, churnCluster, ">east<", ">west<", "No answer"},
		"/loops": {retryCluster, "dual retry"},
		"/evacuations?cluster=west/" + drainCluster: {"worker-2"},
		"/nodes":                    {"worker-1", drainCluster, retryCluster},
		"/vms":                      {"demo/"},
		"/search?q=vm-d":            {"demo/vm-d", retryCluster},
		"/?cluster=" + retryCluster: {"<h1>" + retryCluster, `<a href="/">All clusters</a>`},
		why:                         {"demo/vm-d", `<a href="/">All clusters</a>`},
		"/nodes/worker-2?cluster=" + drainCluster: {"worker-2"},
		"/whatif?cluster=" + churnCluster:         {"What"},
	} {
		status, text, missing := getPage(t, at+path)
		require.Equal(t, http.StatusOK, status, path)
		require.Equal(t, named, missing, path)
		require.Contains(t, text, "Source north does not answer", path)
		require.NotContains(t, text, "All clear", path)
		for _, one := range says {
			require.Contains(t, text, one, path)
		}
	}
	t.Run("pages that nobody who answers has", func(t *testing.T) {
		t.Parallel()
		for path, want := range map[string]int{
			"/vms/demo/nobody":                         http.StatusServiceUnavailable, // north may have it
			"/?cluster=nowhere":                        http.StatusServiceUnavailable,
			"/?cluster=north/x":                        http.StatusServiceUnavailable,
			"/nodes/worker-2":                          http.StatusMultipleChoices,
			"/vms/demo/vm-d":                           http.StatusOK,
			"/vms/demo/nobody?cluster=" + retryCluster: http.StatusNotFound,
		} {
			status, text, _ := getPage(t, at+path)
			require.Equal(t, want, status, path)
			require.Contains(t, text, "north", path)
		}
	})
	t.Run("commands", func(t *testing.T) {
		t.Parallel()
		for _, q := range [][]string{
			{"why", "demo/vm-d", "--cluster", retryCluster, "--at", "2026-11-21T00:45:07Z"},
			{"why", "demo/vm-d", "--cluster", "east/" + retryCluster, "--at", "2026-11-21T00:45:07Z", "-o", "json"},
			{"why", "demo/vm-d", "--at", "2026-11-21T00:45:07Z"},
			{"why-not", "node", "worker-2", "--cluster", drainCluster},
			{"timeline", "--cluster", churnCluster, "--limit", "1200"},
			{"whatif", "--cluster", churnCluster},
			{"settings", "--cluster", retryCluster},
			{"search", "vm-d", "--cluster", retryCluster},
		} {
			server := east.URL
			if strings.Contains(strings.Join(q, " "), drainCluster) || strings.Contains(strings.Join(q, " "), churnCluster) {
				server = west.URL
			}
			direct := append([]string{}, q...)
			for i := range direct {
				direct[i] = strings.TrimPrefix(direct[i], "east/")
			}
			_, want, _ := runCommand(t, append(direct, "--server", server)...)
			code, got, notes := runCommand(t, append(q, "--server", at)...)
			require.Equal(t, exitFound, code, "%v: %s", q, notes)
			require.Equal(t, want, got, q)
			require.Contains(t, notes, "evictrail: "+named+" What is shown is incomplete.\n", q)
		}
		code, _, notes := runCommand(t, "why", "demo/nobody", "--server", at)
		require.Equal(t, exitError, code, "north may know it")
		require.Contains(t, notes, "no source that answers knows demo/nobody. "+named)
		code, _, notes = runCommand(t, "loops", "--open", "--since", "2040-01-01", "--server", at)
		require.Equal(t, exitNotFound, code, "that there is none is no good news where a source is missing: "+notes)
		_, out, _ := runCommand(t, "top", "--server", at)
		require.Contains(t, out+notes, "Source north does not answer")
		code, out, notes = runCommand(t, "clusters", "--server", at)
		require.Equal(t, exitFound, code, notes)
		require.Contains(t, out, churnCluster+": 2 VMs are moved again and again.")
		require.Regexp(t, `^CLUSTER +SOURCE +LOOPS +STUCK +DRAINS +RECORDING\n`, out)
		require.Regexp(t, `(?m)^`+retryCluster+` +east +0 +0 +0 +Recording of 21 Nov 2026, replayed$`, out)
		require.Regexp(t, `(?m)^`+churnCluster+` +west +4 +0 +0 `, out)
		require.Contains(t, notes, "evictrail: "+named+" What is shown is incomplete.\n")
	})
	t.Run("assistants", func(t *testing.T) {
		t.Parallel()
		session := connectByCommand(t, "--server", at)
		for tool, args := range map[string]arguments{"loops": nil, "top": nil, "clusters": nil, "search": {"q": "vm-d"}, "why": {"vm": "demo/vm-d"}} {
			got := callTool(t, session, tool, args)
			require.False(t, got.failed, "%s: %s", tool, got.words)
			require.Equal(t, 1, strings.Count(strings.Join(got.object.Notes, " "), named), "%s: %v", tool, got.object.Notes)
		}
		got := callTool(t, connectByCommand(t, "--server", hubOver(t, 0, "east", east.URL)), "loops", nil)
		require.NotContains(t, got.more, "incomplete")
		status, _, _ := getPage(t, at+api.AssistantPath)
		require.Equal(t, http.StatusNotFound, status, "docs/mcp.md says so")
	})
	t.Run("health", func(t *testing.T) {
		t.Parallel()
		_, text, missing := getPage(t, at+"/api/v1/loops")
		require.NotEmpty(t, text)
		require.Equal(t, named, missing)
		status, _, missing := getPage(t, hubOver(t, 0, "north", newDeadURL(t))+"/api/v1/loops")
		require.Equal(t, http.StatusServiceUnavailable, status)
		require.Equal(t, named, missing)
	})
}

// TestHubAnswersAsOneDatabase asks a hub over three databases, and one database with all that they have.
func TestHubAnswersAsOneDatabase(t *testing.T) {
	storetest.SkipInShort(t)
	t.Parallel()
	at := hubOver(t, 0, "east", serveEvictrail(t, playedURL(t, retryCluster)).URL, "west", serveEvictrail(t, playedURL(t, drainCluster, churnCluster)).URL, "north", serveEvictrail(t, playedURL(t, slotCluster)).URL)
	one := serveEvictrail(t, playedURL(t, retryCluster, drainCluster, churnCluster, slotCluster)).URL
	var questions [][]string
	for _, noun := range [][]string{{"requests"}, {"evacuations"}, {"migrations"}, {"cooldowns"}, {"cooldowns", "--now"}, {"loops"}, {"drains"}, {"drains", "--blockers"}, {"downtimes"}, {"gaps"}, {"timeline"}, {"outages"}} {
		for _, more := range [][]string{{}, {"--limit", "0"}, {"--limit", "7"}, {"--cluster", slotCluster}, {"--since", "2026-11-21", "--until", "2026-11-22"}} {
			questions = append(questions, append(append([]string{}, noun...), more...))
		}
	}
	questions = append(questions, []string{"top"}, []string{"timeline", "--limit", "2500"}, []string{"settings"}, []string{"search", "vm-"}, []string{"search", "worker"}, []string{"search", "nobody"}, []string{"clusters", "--cluster", "nowhere"}, []string{"limits"}, []string{"weekly"}, []string{"weekly", "--cluster", slotCluster, "--weeks", "1"}, []string{"compare", "--since", "2026-11-20"}, []string{"compare", "--since", "2026-11-20", "--until", "2026-11-20"}, []string{"why-not", "node", "worker-2"}, []string{"why", "demo/nobody"}, []string{"whatif"},
		[]string{"alerts", "backtest", "--since", "2026-11-20"},
		[]string{"alerts", "backtest", "--since", "2026-11-20", "--cluster", drainCluster},
		[]string{"alerts", "backtest", "--since", "2026-11-20", "--cluster", "nowhere"},
		[]string{"evacuations", "--cluster", "nowhere"}, []string{"evacuations", "--cluster", "nowhere", "-o", "csv"}, []string{"loops", "-n", "demo", "--node", "worker-1"})
	atOnce := make(chan struct{}, 2)
	for _, q := range questions {
		t.Run(strings.Join(q, " "), func(t *testing.T) {
			t.Parallel()
			atOnce <- struct{}{}
			defer func() { <-atOnce }()
			code, out, errs := runCommand(t, append(q, "--server", one)...)
			gotCode, gotOut, gotErrs := runCommand(t, append(q, "--server", at)...)
			require.Equal(t, code, gotCode, gotErrs)
			require.Equal(t, out, gotOut)
			require.Equal(t, strings.ReplaceAll(errs, one, at), gotErrs)
		})
	}
	t.Run("pages by key", func(t *testing.T) {
		t.Parallel()
		for _, order := range []string{"newest", "oldest"} {
			require.Equal(t, listIDs(t, one, order), listIDs(t, at, order))
		}
	})
	for _, path := range []string{"/api/v1/nodes?order=name", "/api/v1/nodes", "/api/v1/names?kind=cluster&prefix=c", "/api/v1/names?kind=vm", "/api/v1/search?q=vm", "/api/v1/search?q=demo/vm-d"} {
		_, want, _ := getPage(t, one+path)
		_, got, missing := getPage(t, at+path)
		require.Equal(t, want, got, path)
		require.Empty(t, missing)
	}
}

// listIDs returns the IDs of the timeline, asked for page by page.
func listIDs(t *testing.T, at, order string) []string {
	t.Helper()
	var ids []string
	address := at + "/api/v1/timeline?format=csv&limit=97"
	if order == "oldest" {
		address += "&order=oldest"
	}
	for address != "" {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, address, http.NoBody)
		require.NoError(t, err)
		answer, err := http.DefaultClient.Do(r)
		require.NoError(t, err)
		body, err := io.ReadAll(answer.Body)
		require.NoError(t, err)
		require.NoError(t, answer.Body.Close())
		require.Equal(t, http.StatusOK, answer.StatusCode, string(body))
		records, err := csv.NewReader(bytes.NewReader(body)).ReadAll()
		require.NoError(t, err)
		id := slices.Index(records[0], "event_id")
		for _, record := range records[1:] {
			ids = append(ids, record[id])
		}
		next, _, more := strings.Cut(answer.Header.Get("Link"), ">")
		if address = ""; more {
			address = at + "/api/v1/timeline" + strings.TrimPrefix(next, "<")
		}
	}
	return ids
}

// TestHubOfClustersOfOneName asks about a cluster whose name two sources have: who asks is asked to choose, and what is chosen is shown, with links that
// lead to the same.
func TestHubOfClustersOfOneName(t *testing.T) {
	t.Parallel()
	source := serveEvictrail(t, playedURL(t, drainCluster))
	at := hubOver(t, 0, "east", source.URL, "west", source.URL)
	code, _, notes := runCommand(t, "why-not", "node", "worker-2", "--cluster", drainCluster, "--server", at)
	require.Equal(t, exitUsage, code)
	require.Contains(t, notes, "choose one with --cluster: east/c-node-drain, west/c-node-drain")
	code, out, notes := runCommand(t, "why-not", "node", "worker-2", "--cluster", "west/"+drainCluster, "--server", at)
	require.Equal(t, exitFound, code, notes)
	require.NotEmpty(t, out)
	_, out, _ = runCommand(t, "timeline", "--limit", "2", "-o", "json", "--server", at)
	require.Contains(t, out, `"cluster": "east/c-node-drain"`)
	require.Contains(t, out, `"cluster": "west/c-node-drain"`)
	require.Len(t, listIDs(t, at, "newest"), 2*len(listIDs(t, source.URL, "newest")), "pages of rows that both have skip none")
	require.Len(t, listIDs(t, at, "oldest"), 2*len(listIDs(t, source.URL, "newest")))
	status, page, _ := getPage(t, at+"/nodes/worker-2?cluster="+drainCluster)
	require.Equal(t, http.StatusMultipleChoices, status)
	require.Contains(t, page, `/nodes/worker-2?cluster=west%2Fc-node-drain`)
	status, page, _ = getPage(t, at+"/nodes/worker-2?cluster="+url.QueryEscape("west/"+drainCluster))
	require.Equal(t, http.StatusOK, status)
	require.Contains(t, page, "cluster=west%2Fc-node-drain")
	require.NotContains(t, page, "cluster=c-node-drain", "a link that leads to the choice")
	require.Contains(t, page, `name="cluster" value="west/c-node-drain"`)
}

// TestHubDoesNotWaitForASlowSource has one source that never answers: the others' answers come within its time, and then at once.
func TestHubDoesNotWaitForASlowSource(t *testing.T) {
	t.Parallel()
	storetest.SkipInShort(t)
	end := make(chan struct{})
	slow := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { <-end }))
	t.Cleanup(func() { close(end); slow.Close() })
	const timeout = 2 * time.Second
	at := hubOver(t, timeout, "east", serveEvictrail(t, playedURL(t, drainCluster)).URL, "slow", slow.URL)
	began := time.Now()
	status, page, missing := getPage(t, at+"/")
	first := time.Since(began)
	require.Equal(t, http.StatusOK, status)
	require.Contains(t, page, drainCluster)
	require.Equal(t, "Source slow does not answer: no answer within 2s.", missing)
	require.GreaterOrEqual(t, first, timeout)
	require.Less(t, first, timeout+3*time.Second)
	began = time.Now()
	status, _, missing = getPage(t, at+"/api/v1/evacuations")
	require.Equal(t, http.StatusOK, status)
	require.Contains(t, missing, "Source slow does not answer: no answer within 2s (since ")
	require.Less(t, time.Since(began), timeout, "it is left out for a while")
}

// TestHubFlags refuses what a hub cannot be started with.
func TestHubFlags(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		args []string
		says string
	}{
		"no source":           {nil, "say --source NAME=URL"},
		"no name":             {[]string{"--source", "https://x"}, "expected NAME=URL"},
		"a name with a slash": {[]string{"--source", "a/b=https://x"}, "expected a name of letters"},
		"twice":               {[]string{"--source", "a=https://x", "--source", "a=https://y"}, "it is named twice"},
		"a database":          {[]string{"--source", "a=postgres://x/y"}, "expected http://HOST:PORT or https://HOST"},
		"other hosts":         {[]string{"--source", "a=https://x", "--listen", ":0"}, "say --auth=sources, or --auth=none"},
		"tokens in the clear": {[]string{"--source", "a=https://x", "--listen", ":0", "--auth", "sources"}, "give --tls-cert-file"},
		"to a source":         {[]string{"--source", "a=http://x", "--auth", "sources"}, "tokens would be sent in the clear"},
		"another way":         {[]string{"--source", "a=https://x", "--auth", "kubernetes"}, "expected sources or none"},
		"no file":             {[]string{"--sources-file", "/nowhere"}, "read sources"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			args := append([]string{"hub"}, c.args...)
			if name != "other hosts" && name != "tokens in the clear" {
				args = append(args, "--listen", "127.0.0.1:0")
			}
			code, _, notes := runCommand(t, args...)
			require.NotEqual(t, exitFound, code)
			require.Contains(t, notes, c.says)
		})
	}
}

// TestHubPassesAcknowledgementsOn writes what is acknowledged at a hub at the source that records the VM.
func TestHubPassesAcknowledgementsOn(t *testing.T) {
	t.Parallel()
	storetest.SkipInShort(t)
	east, west := serveEvictrail(t, playedURL(t, drainCluster)).URL, serveEvictrail(t, playedURL(t, slotCluster)).URL
	at := hubOver(t, 0, "east", east, "west", west)
	code, _, notes := runCommand(t, "ack", "vm", "demo/nbr-1", "--note", "known", "--author", "anna", "--server", at)
	require.Equal(t, exitFound, code, notes)
	_, page, _ := getPage(t, at+"/vms/demo/nbr-1")
	require.Contains(t, page, "Acknowledged by <b>anna</b>")
	_, listed, _ := getPage(t, west+"/api/v1/acknowledgements")
	require.Contains(t, listed, `"author": "anna"`)
	code, out, notes := runCommand(t, "ack", "list", "-o", "json", "--server", at)
	require.Equal(t, exitFound, code, notes)
	_, id, _ := strings.Cut(out, `"acknowledgement_id": "`)
	id, _, _ = strings.Cut(id, `"`)
	form := url.Values{"id": {id}, "author": {"ben"}, "back": {"/vms/demo/nbr-1?cluster=" + slotCluster}}
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, at+"/acknowledgements/withdraw", strings.NewReader(form.Encode()))
	require.NoError(t, err)
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	answer, err := http.DefaultTransport.RoundTrip(r)
	require.NoError(t, err)
	require.NoError(t, answer.Body.Close())
	require.Equal(t, http.StatusSeeOther, answer.StatusCode)
	_, listed, _ = getPage(t, west+"/api/v1/acknowledgements")
	require.Contains(t, listed, `"ended_by": "ben"`)
	code, _, notes = runCommand(t, "ack", "withdraw", id, "--author", "ben", "--server", hubOver(t, 0, "east", east))
	require.Equal(t, exitNotFound, code, notes)
}

// TestHubCommand starts a hub as its users do, and reads what it says of itself.
func TestHubCommand(t *testing.T) {
	storetest.SkipInShort(t)
	t.Parallel()
	file := writeFile(t, []byte("# of the north\nnorth="+newDeadURL(t)+"\n\n"))
	var lc net.ListenConfig
	free, err := lc.Listen(t.Context(), "tcp", "127.0.0.1:0")
	require.NoError(t, err)
	address := free.Addr().String()
	require.NoError(t, free.Close())
	east := serveEvictrail(t, playedURL(t, drainCluster))
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan int)
	go func() {
		ended <- executeCommand(ctx, []string{"hub", "--source", "east=" + east.URL, "--sources-file", file, "--listen", address}, prefixed{t, "hub: "}, prefixed{t, "hub: "})
	}()
	require.Eventually(t, func() bool {
		conn, err := (&net.Dialer{}).DialContext(t.Context(), "tcp", address)
		if err == nil {
			_ = conn.Close()
		}
		return err == nil
	}, 20*time.Second, 50*time.Millisecond)
	var said string
	require.Eventually(t, func() bool {
		_, said, _ = getPage(t, "http://"+address+"/metrics")
		return strings.Contains(said, `evictrail_hub_source_up{source="east"} 1`) && strings.Contains(said, `evictrail_hub_source_up{source="north"} 0`)
	}, 10*time.Second, 100*time.Millisecond)
	require.Contains(t, said, `evictrail_hub_source_request_duration_seconds_count{code="2xx",source="east"}`)
	require.Contains(t, said, `evictrail_hub_source_request_duration_seconds_count{code="none",source="north"}`)
	require.NotContains(t, said, "evictrail_store_up", "a hub has no database that could be down")
	status, ready, _ := getPage(t, "http://"+address+"/readyz")
	require.Equal(t, http.StatusOK, status, "it can be asked")
	require.Regexp(t, `^degraded since .*\nSource north does not answer: connect: connection refused\.\n`, ready)
	code, _, notes := runCommand(t, "why-not", "node", "worker-2", "--server", "http://"+address)
	require.Equal(t, exitFound, code, notes)
	require.Contains(t, notes, "Source north does not answer: connect: connection refused (since ")
	stop()
	require.Equal(t, exitFound, <-ended)
}
