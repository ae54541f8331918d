package main

import (
	"context"
	"encoding/json"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/stretchr/testify/require"

	"github.com/evictrail/evictrail/api"
	"github.com/evictrail/evictrail/store"
	"github.com/evictrail/evictrail/store/storetest"
	"github.com/evictrail/evictrail/trail"
)

// connectByCommand starts `evictrail mcp` as a process, as an assistant does.
func connectByCommand(t *testing.T, args ...string) *mcp.ClientSession {
	t.Helper()
	self, err := os.Executable()
	require.NoError(t, err)
	cmd := exec.CommandContext(context.WithoutCancel(t.Context()), self, append([]string{"mcp"}, args...)...)
	cmd.Env = append(os.Environ(), asCommand+"=1", "EVICTRAIL_SERVER=", "EVICTRAIL_DATABASE_URL=")
	cmd.Stderr = prefixed{t, "mcp: "}
	return connectTo(t, &mcp.CommandTransport{Command: cmd})
}

// connectByHTTP connects to an evictrail that serves, with a token unless it is empty.
func connectByHTTP(t *testing.T, server, token string) *mcp.ClientSession {
	t.Helper()
	return connectTo(t, newHTTPTransport(server, token))
}

func newHTTPTransport(server, token string) *mcp.StreamableClientTransport {
	return &mcp.StreamableClientTransport{
		Endpoint:   server + api.AssistantPath,
		HTTPClient: &http.Client{Transport: bearer(token)},
	}
}

// bearer sends a token with each request.
type bearer string

// RoundTrip implements http.RoundTripper.
func (b bearer) RoundTrip(r *http.Request) (*http.Response, error) {
	if r = r.Clone(r.Context()); b != "" {
		r.Header.Set("Authorization", "Bearer "+string(b))
	}
	return http.DefaultTransport.RoundTrip(r)
}

// connectTo connects a client of the SDK, which negotiates as assistants do.
func connectTo(t *testing.T, transport mcp.Transport) *mcp.ClientSession {
	t.Helper()
	session, err := mcp.NewClient(&mcp.Implementation{Name: "test"}, nil).Connect(t.Context(), transport, nil)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, session.Close()) })
	return session
}

// toolText is what a tool answered: the words of the command, what stands below them, and the object.
type toolText struct {
	words, more string
	failed      bool
	object      struct {
		Answer   json.RawMessage `json:"answer"`
		Notes    []string        `json:"notes"`
		NextPage string          `json:"next_page"`
		Pages    []answerPage    `json:"pages"`
	}
}

type arguments = map[string]any

// callTool asks as an assistant does.
func callTool(t *testing.T, session *mcp.ClientSession, tool string, args arguments) toolText {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	result, err := session.CallTool(ctx, &mcp.CallToolParams{Name: tool, Arguments: args})
	require.NoError(t, err)
	out := toolText{failed: result.IsError, words: result.Content[0].(*mcp.TextContent).Text}
	if len(result.Content) > 1 {
		out.more = result.Content[1].(*mcp.TextContent).Text
	}
	raw, err := json.Marshal(result.StructuredContent)
	require.NoError(t, err)
	require.NoError(t, json.Unmarshal(raw, &out.object))
	return out
}

// serveAll serves what run serves, from a database.
func serveAll(t *testing.T, url string) string {
	t.Helper()
	s, err := store.Open(t.Context(), url, "")
	require.NoError(t, err)
	answers := newReadServer(t.Context(), onlyPrimary(t, s), slog.New(slog.NewTextHandler(prefixed{t, "serve: "}, nil)))
	server := httptest.NewServer(answers.Handler())
	t.Cleanup(func() { server.Close(); s.Close() })
	return server.URL
}

// TestMCPAnswersAsTheCommands asks an assistant's questions every way that there is, and compares the words with those
// of the commands, to the byte.
func TestMCPAnswersAsTheCommands(t *testing.T) {
	storetest.SkipInShort(t)
	t.Parallel()
	url := playedURL(t, "b-dual-retry-loop-v1.8", "c-node-drain", "g-churn-cooldown", "k-blocked-slot")
	server := serveAll(t, url)
	const cluster, at = "b-dual-retry-loop-v1.8", "2026-11-21T00:45:07Z"
	ways := map[string]struct {
		session *mcp.ClientSession
		flag    string // of the command that asks the same way
		site    string // of its pages
	}{
		"database": {
			connectByCommand(t, "--database-url", url, "--public-url", "https://evictrail.example/below/"),
			"--database-url=" + url,
			"https://evictrail.example/below",
		},
		"server": {connectByCommand(t, "--server", server), "--server=" + server, server},
		"HTTP":   {connectByHTTP(t, server, ""), "--server=" + server, server},
	}
	for _, c := range []struct {
		tool, command string
		args          arguments
		page          string
	}{
		{"why", "why demo/vm-d --cluster " + cluster + " --at " + at, arguments{"vm": "demo/vm-d", "cluster": cluster, "at": at}, "/vms/demo/vm-d?at=2026-11-21T00%3A45%3A07Z&cluster=" + cluster},
		{"why", "why demo/vm-d --cluster " + cluster + " --verbose --evidence 3", arguments{"vm": "demo/vm-d", "cluster": cluster, "verbose": true, "evidence": 3}, "/vms/demo/vm-d?cluster=" + cluster},
		{"why", "why node worker-2 --cluster c-node-drain", arguments{"node": "worker-2", "cluster": "c-node-drain"}, "/nodes/worker-2?cluster=c-node-drain"},
		{"why-not", "why-not demo/nbr-2 --cluster k-blocked-slot", arguments{"vm": "demo/nbr-2", "cluster": "k-blocked-slot"}, "/vms/demo/nbr-2?cluster=k-blocked-slot"},
		{"why-not", "why-not node worker-2 --cluster c-node-drain", arguments{"node": "worker-2", "cluster": "c-node-drain"}, "/nodes/worker-2?cluster=c-node-drain"},
		{"drain-preview", "drain-preview worker-1 --cluster " + cluster, arguments{"node": "worker-1", "cluster": cluster}, "/nodes/worker-1?cluster=" + cluster},
		{"top", "top --sort attempts", arguments{"sort": "attempts"}, "/"},
		{"search", "search vm-", arguments{"q": "vm-"}, "/search?q=vm-"},
		{"clusters", "clusters", nil, "/"},
		{"limits", "limits --cluster " + cluster, arguments{"cluster": cluster}, "/limits?cluster=" + cluster},
		{
			"advise", "advise --weeks 2 --learn 1 --sweep base=30s..10m --until 2026-11-28 --cluster " + cluster,
			arguments{"weeks": 2, "learn": 1, "sweep": "base=30s..10m", "until": "2026-11-28", "cluster": cluster}, "/advice?cluster=" + cluster,
		},
		{
			"backtest",
			"alerts backtest --since 2026-11-20 --rule EvictrailVMPingPong --threshold 1,4 --cluster g-churn-cooldown",
			arguments{
				"since": "2026-11-20", "rule": "EvictrailVMPingPong", "threshold": "1,4", "cluster": "g-churn-cooldown",
			}, "/backtest?cluster=g-churn-cooldown",
		},
		{"weekly", "weekly --namespace demo --target 99", arguments{"namespace": "demo", "target": 99}, "/weekly"},
		{"compare", "compare --since 2026-11-20 --until 2026-11-22", arguments{"since": "2026-11-20", "until": "2026-11-22"}, "none"},
		{"loops", "loops --limit 2", arguments{"limit": 2}, "/loops"},
		{"loops", "loops --open", arguments{"state": "open"}, "/loops?open=true"},
		{"evacuations", "evacuations --node worker-2 --cluster c-node-drain --limit 50", arguments{"node": "worker-2", "cluster": "c-node-drain"}, "/evacuations?cluster=c-node-drain&node=worker-2"},
		{"migrations", "migrations --vm demo/vm-d --since 2026-11-21T00:34:00Z --until 2026-11-21T00:39:00Z", arguments{"vm": "demo/vm-d", "since": "2026-11-21T00:34:00Z", "until": "2026-11-21T00:39:00Z"}, ""},
		{"migrations-queue", "migrations --queue", nil, "/queue"},
		{"requests", "requests --cluster c-node-drain --limit 5", arguments{"cluster": "c-node-drain", "limit": 5}, "/requests?cluster=c-node-drain"},
		{"drains", "drains", nil, "/drains"},
		{"drains-blockers", "drains --blockers --cluster c-node-drain", arguments{"cluster": "c-node-drain"}, "none"},
		{"cooldowns", "cooldowns --cluster g-churn-cooldown --limit 10", arguments{"cluster": "g-churn-cooldown", "limit": 10}, "/cooldowns?cluster=g-churn-cooldown"},
		{"gaps", "gaps", nil, "/gaps"},
		{"timeline", "timeline --vm demo/vm-d --limit 50", arguments{"vm": "demo/vm-d"}, "none"},
		{"settings", "settings --cluster c-node-drain", arguments{"cluster": "c-node-drain"}, "none"},
		{"whatif", "whatif --cluster " + cluster + " --policy try-once --since 2026-11-20", arguments{"cluster": cluster, "policies": []string{"try-once"}, "since": "2026-11-20"}, "/whatif?cluster=" + cluster},
	} {
		for way, w := range ways {
			code, words, stderr := runCommand(t, append(strings.Fields(c.command), w.flag)...)
			if c.tool == "drains-blockers" { // none was open when these recordings ended
				require.Equal(t, exitNotFound, code, "%s: %s", c.command, words)
				words, code = strings.TrimPrefix(stderr, "evictrail: "), exitFound
			}
			require.Equal(t, exitFound, code, "%s: %s", c.command, stderr)
			require.NotEmpty(t, strings.TrimSpace(words))
			got := callTool(t, w.session, c.tool, c.args)
			require.False(t, got.failed, "%s %s: %s", way, c.tool, got.words)
			require.Equal(t, words, got.words, "%s: %s", way, c.command)
			require.NotEmpty(t, got.object.Answer, "%s: %s", way, c.command)
			switch c.page {
			case "":
			case "none":
				require.Empty(t, got.object.Pages, "%s: %s", way, c.command)
			default:
				require.Equal(t, w.site+c.page, got.object.Pages[0].URL, "%s: %s", way, c.command)
				require.Contains(t, got.more, w.site+c.page)
			}
		}
	}
}

// TestMCPObjects compares the structured answers with what the commands print for programs, and follows the pages that
// they name.
func TestMCPObjects(t *testing.T) {
	storetest.SkipInShort(t)
	t.Parallel()
	url := playedURL(t, "b-dual-retry-loop-v1.8", "c-node-drain", "g-churn-cooldown", "k-blocked-slot")
	server := serveAll(t, url)
	session := connectByHTTP(t, server, "")
	for _, c := range []struct {
		tool, command string
		args          arguments
	}{
		{"why", "why demo/vm-d --at 2026-11-21T00:33:10Z", arguments{"vm": "demo/vm-d", "at": "2026-11-21T00:33:10Z"}},
		{"why-not", "why-not demo/nbr-2", arguments{"vm": "demo/nbr-2"}},
		{"drain-preview", "drain-preview worker-2 --cluster c-node-drain", arguments{"node": "worker-2", "cluster": "c-node-drain"}},
		{"loops", "loops", nil},
		{"migrations", "migrations --vm demo/vm-d", arguments{"vm": "demo/vm-d"}},
		{"search", "search worker-2", arguments{"q": "worker-2"}},
		{"clusters", "clusters", nil},
		{"limits", "limits --cluster c-node-drain", arguments{"cluster": "c-node-drain"}},
		{"weekly", "weekly --weeks 2", arguments{"weeks": 2}},
		{
			"backtest",
			"alerts backtest --since 2026-11-20 --rule EvictrailDualRetryLoop --step 15s --cluster b-dual-retry-loop-v1.8",
			arguments{
				"since": "2026-11-20", "rule": "EvictrailDualRetryLoop", "step": "15s", "cluster": "b-dual-retry-loop-v1.8",
			},
		},
		{"compare", "compare --since 2026-11-20", arguments{"since": "2026-11-20"}},
		{"settings", "settings --at 2026-11-21T00:40:00Z", arguments{"at": "2026-11-21T00:40:00Z"}},
	} {
		code, want, stderr := runCommand(t, append(strings.Fields(c.command), "-o", "json", "--server", server)...)
		require.Equal(t, exitFound, code, stderr)
		got := callTool(t, session, c.tool, c.args)
		if c.tool == "clusters" { // says the time of the answer
			var a, b []trail.FleetLine
			require.NoError(t, json.Unmarshal([]byte(want), &a))
			require.NoError(t, json.Unmarshal(got.object.Answer, &b))
			require.Len(t, b, len(a))
			continue
		}
		require.JSONEq(t, want, string(got.object.Answer), c.command)
		for _, page := range got.object.Pages {
			answer, err := http.Get(page.URL) //nolint:noctx // a page of ours
			require.NoError(t, err)
			require.NoError(t, answer.Body.Close())
			require.Equal(t, http.StatusOK, answer.StatusCode, page.URL)
		}
	}
	loops := callTool(t, session, "loops", nil)
	require.Greater(t, len(loops.object.Pages), 2, "the list, and each loop")
	require.Contains(t, loops.more, "Dual retry loop of demo/vm-d: "+server+"/loops/")
}

// TestMCPTools compares what an assistant reads of the tools, which decides how well it asks, with what was read by
// people.
func TestMCPTools(t *testing.T) {
	t.Parallel()
	session := connectByCommand(t, "--server", "http://127.0.0.1:1") // is not asked
	listed, err := session.ListTools(t.Context(), nil)
	require.NoError(t, err)
	for _, tool := range listed.Tools {
		require.True(t, tool.Annotations.ReadOnlyHint, tool.Name)
		require.False(t, *tool.Annotations.DestructiveHint, tool.Name)
		require.False(t, *tool.Annotations.OpenWorldHint, tool.Name)
	}
	raw, err := json.MarshalIndent(listed.Tools, "", "  ")
	require.NoError(t, err)
	compareGolden(t, filepath.Join("testdata", "mcp", "tools.json"), string(raw)+"\n")
	require.Equal(t, instructions, session.InitializeResult().Instructions)
	require.Less(t, len(raw), 64<<10, "an assistant reads it all before the first question")
}

// TestMCPErrors asks what cannot be answered: the assistant learns what to do.
func TestMCPErrors(t *testing.T) {
	t.Parallel()
	storetest.SkipInShort(t)
	url := playedURL(t, "c-node-drain", "k-blocked-slot")
	sessions := []*mcp.ClientSession{connectByCommand(t, "--database-url", url), connectByHTTP(t, serveAll(t, url), "")}
	const known = "known clusters: c-node-drain, k-blocked-slot"
	for _, c := range []struct {
		tool string
		args arguments
		says string
	}{
		{"why", arguments{"vm": "demo/vm-d", "cluster": "nope"}, `no cluster named "nope"; ` + known},
		{"loops", arguments{"cluster": "nope"}, `no cluster named "nope"; ` + known},
		{"top", arguments{"cluster": "nope"}, `no cluster named "nope"; ` + known},
		{"search", arguments{"q": "vm-d", "cluster": "nope"}, `no cluster named "nope"; ` + known},
		{"clusters", arguments{"cluster": "nope"}, `no cluster named "nope"; ` + known},
		{"compare", arguments{"cluster": "nope"}, `no cluster named "nope"; ` + known},
		{"settings", arguments{"cluster": "nope"}, `no cluster named "nope"; ` + known},
		{"whatif", arguments{"cluster": "nope"}, `no cluster named "nope"; ` + known},
		{"why", arguments{"vm": "demo/nope"}, "VM demo/nope: nothing found: `evictrail timeline` lists the VMs that are known; the tool search finds what there is by a part of its name"},
		{"why-not", arguments{"node": "nope"}, "node nope: nothing found: `evictrail timeline` lists the nodes that are known; the tool search finds what there is by a part of its name"},
		{"why", arguments{"node": "worker-1"}, "worker-1 is known in several clusters: choose one with the argument cluster: c-node-drain, k-blocked-slot"},
		{"why", nil, "one question is about one VM or one node: give either vm, such as shop/db-1, or node"},
		{"why", arguments{"vm": "demo/vm-d", "node": "worker-1"}, "one question is about one VM or one node: give either vm, such as shop/db-1, or node"},
		{"why", arguments{"vm": "vm-d"}, `vm "vm-d": expected namespace/name, such as shop/db-1; the tool search finds the namespace`},
		{"why", arguments{"vm": "demo/vm-d", "at": "last night"}, `at "last night": expected a time such as 2026-11-21T00:30:00Z, a date, or an age such as 90m or 7d`},
		{"why", arguments{"vm": "demo/vm-d", "evidence": 501}, `evidence "501": expected a number from 1 to 500`},
		{"why-not", arguments{"vm": "demo/vm-d", "verbose": true}, `there is no parameter "verbose" here: there are vm, node, cluster, at`},
		{"loops", arguments{"kind": "endless"}, `kind "endless": expected one of dual_retry, endless_retry,`},
		{"loops", arguments{"limit": 501}, `limit "501": expected a number from 1 to 500`},
		{"loops", arguments{"since": "2026-01-01", "until": "2026-11-22"}, "from since to until are more than 31 days"},
		{"loops", arguments{"vm": arguments{"name": "vm-d"}}, "vm: expected text, a number, true or false"},
		{"loops", arguments{"page": "x"}, `page "x": expected`},
		{"migrations", arguments{"namespace": "a", "vm": "b/c"}, "is not in namespace a"},
		{"drain-preview", nil, "node is missing"},
		{"drain-preview", arguments{"node": "nope"}, "node nope: nothing found"},
		{"search", nil, "q is missing"},
		{"whatif", arguments{"policy": "try-once"}, "expected one JSON object with cluster, namespace,"},
		{"whatif", arguments{"policies": []string{"no-such"}}, "no-such"},
	} {
		for _, session := range sessions {
			got := callTool(t, session, c.tool, c.args)
			require.True(t, got.failed, "%s %v: %s", c.tool, c.args, got.words)
			require.Contains(t, got.words, c.says, "%s %v", c.tool, c.args)
		}
	}
	for _, session := range sessions {
		for tool, says := range map[string]string{
			"evacuations": "evacuations: nothing found: try without filters, or `evictrail timeline` to see what is there\n", "search": "Nothing has \"nope\" in its name.\n",
			"loops": "No open loops.\n",
		} {
			args := arguments{"evacuations": arguments{"vm": "demo/nope"}, "search": arguments{"q": "nope"}, "loops": arguments{"vm": "demo/nope", "state": "open"}}[tool]
			got := callTool(t, session, tool, args.(arguments))
			require.False(t, got.failed, "an empty answer is one")
			require.Equal(t, says, got.words, tool)
		}
		_, err := session.CallTool(t.Context(), &mcp.CallToolParams{Name: "ack"})
		require.ErrorContains(t, err, `unknown tool "ack"`)
	}
}

// TestMCPBounds asks for more than an assistant should read: what is left out is said, and comes with the next page.
func TestMCPBounds(t *testing.T) {
	storetest.SkipInShort(t)
	t.Parallel()
	c := shareCluster(t)
	server := httptest.NewServer(c.handler)
	t.Cleanup(server.Close)
	c.rights.setNamespaces("all", everythingThere)
	session := connectByHTTP(t, server.URL, "all")
	var want []string
	page, err := c.store.SeenBy(trail.Within("shared")).ListJSON(t.Context(), trail.ViewMigrations, trail.Query{})
	require.NoError(t, err)
	uid := func(row json.RawMessage) string {
		var m trail.Migration
		require.NoError(t, json.Unmarshal(row, &m))
		return m.UID
	}
	for _, row := range page.Rows {
		want = append(want, uid(row))
	}
	require.Greater(t, len(want), 500)
	var got []string
	next, answers := "", 0
	for {
		args := arguments{"limit": 500}
		if next != "" {
			args["page"] = next
		}
		a := callTool(t, session, "migrations", args)
		require.False(t, a.failed, a.words)
		require.LessOrEqual(t, len(a.words), mostAnswerText)
		require.LessOrEqual(t, len(a.object.Answer), mostAnswerData)
		var rows []json.RawMessage
		require.NoError(t, json.Unmarshal(a.object.Answer, &rows))
		require.NotEmpty(t, rows)
		require.Equal(t, len(rows), strings.Count(a.words, "\n")-1, "the table has the same rows")
		for i := range rows {
			got = append(got, uid(rows[len(rows)-1-i]))
		}
		if answers++; a.object.NextPage == "" {
			break
		}
		require.Contains(t, a.more, "Older rows are left out")
		require.Contains(t, a.more, "next_page: "+a.object.NextPage)
		next = a.object.NextPage
	}
	require.Equal(t, want, got, "each row once, in order")
	require.Greater(t, answers, len(want)/500+1, "answers were cut by their size, too")

	long := toolAnswer{
		text: strings.Repeat("words\n", mostAnswerText),
		data: []byte(`"` + strings.Repeat("x", mostAnswerData) + `"`),
	}.newResult(
		"",
	)
	require.LessOrEqual(t, len(long.Content[0].(*mcp.TextContent).Text), mostAnswerText)
	require.Contains(t, long.Content[1].(*mcp.TextContent).Text, "The text is cut off")
	require.Contains(t, long.Content[1].(*mcp.TextContent).Text, "The structured answer of")
}

// TestMCPFailure has a tool fail as none should: the process goes on, and the assistant learns of it.
func TestMCPFailure(t *testing.T) {
	t.Parallel()
	a := assistant{log: slog.New(slog.NewTextHandler(prefixed{t, "log: "}, nil))} // without a reader
	result := a.callTool(t.Context(), listTools()[0], nil)
	require.True(t, result.IsError)
	require.Equal(t, "evictrail failed to answer that: its log says more", result.Content[0].(*mcp.TextContent).Text)
}

// TestMCPUsage configures the command wrongly.
func TestMCPUsage(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		args []string
		says string
	}{
		{[]string{"--database-url", ""}, "no database or server configured"},
		{[]string{"--server", "http://127.0.0.1:1", "--public-url", "/below"}, `public-url "/below": expected http or https://HOST[/PATH]`},
		{[]string{"--server", "http://127.0.0.1:1", "--log-level", "loud"}, `log-level "loud"`},
	} {
		code, _, stderr := runCommand(t, append([]string{"mcp"}, c.args...)...)
		require.Equal(t, exitUsage, code)
		require.Contains(t, stderr, c.says)
	}
	session := connectByCommand(t, "--server", "http://127.0.0.1:1")
	got := callTool(t, session, "top", nil)
	require.True(t, got.failed)
	require.Contains(t, got.words, "is evictrail serving there?")
}
