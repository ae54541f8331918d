package main

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/stretchr/testify/require"
)

// assistantTargets returns what an assistant sends, as a target of getAs: a question with each tool.
func assistantTargets(vm, node string) []string {
	var out []string
	for _, tool := range listTools() {
		about := `{}`
		switch tool.name {
		case "why", "why-not":
			out = append(out, assistantTarget(tool.name, fmt.Sprintf(`{"node": %q, "cluster": "shared"}`, node)))
			about = fmt.Sprintf(`{"vm": %q}`, vm)
		case "drain-preview":
			about = fmt.Sprintf(`{"node": %q, "cluster": "shared"}`, node)
		case "search":
			about = `{"q": "vm-1"}`
		case "whatif":
			about = fmt.Sprintf(`{"node": %q, "policies": ["try-once"]}`, node)
		case "advise":
			about = `{"weeks": 1, "learn": 1, "sweep": "node-limit=1..2"}`
		case "backtest":
			about = `{"rule": "EvictrailVMPingPong", "since": "2026-11-20", "until": "2026-11-22"}`
		case "top", "clusters", "settings", "compare", "limits", "weekly":
			out = append(out, assistantTarget(tool.name, `{"cluster": "other"}`))
		default:
			out = append(out, assistantTarget(tool.name, `{"limit": 200, "cluster": "shared"}`))
		}
		out = append(out, assistantTarget(tool.name, about))
	}
	return out
}

func assistantTarget(tool, arguments string) string {
	return fmt.Sprintf(
		`/mcp {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": %q, "arguments": %s}}`,
		tool,
		arguments,
	)
}

// askAsAssistants asks with tokens of tenants: each is answered what its user may see, and refused as the API refuses
// it.
func askAsAssistants(t *testing.T, c *sharedCluster) {
	t.Helper()
	server := httptest.NewServer(c.handler)
	t.Cleanup(server.Close)
	own, foreign := c.vms[0], c.vms[len(c.vms)-1]
	namespace, _, _ := strings.Cut(own, "/")
	require.False(t, strings.HasPrefix(foreign, namespace+"/"))
	c.rights.setNamespaces("assistant", namespace)
	c.rights.setNamespaces("nobody-of-note", "tenant-none")
	tokens := map[string]string{}
	for _, name := range []string{"assistant", "nobody-of-note", "unknown-token"} {
		tokens[name] = filepath.Join(t.TempDir(), "token")
		require.NoError(t, os.WriteFile(tokens[name], []byte(name), 0o600))
	}
	ways := map[string]*mcp.ClientSession{
		"HTTP":   connectByHTTP(t, server.URL, "assistant"),
		"server": connectByCommand(t, "--server", server.URL, "--server-token-file", tokens["assistant"]),
	}
	for way, session := range ways {
		for _, tool := range []string{"why", "why-not"} {
			code, words, stderr := runCommand(
				t,
				tool,
				own,
				"--server",
				server.URL,
				"--server-token-file",
				tokens["assistant"],
			)
			require.Equal(t, exitFound, code, stderr)
			got := callTool(t, session, tool, arguments{"vm": own})
			require.Equal(t, words, got.words, way)

			code, _, stderr = runCommand(
				t,
				tool,
				foreign,
				"--server",
				server.URL,
				"--server-token-file",
				tokens["assistant"],
			)
			require.Equal(t, exitNotFound, code)
			got = callTool(t, session, tool, arguments{"vm": foreign})
			require.True(t, got.failed, "%s: %s of another tenant: %s", way, tool, got.words)
			refusal := strings.TrimPrefix(strings.TrimSpace(stderr), "evictrail: ")
			require.Equal(t, refusal+"; the tool search finds what there is by a part of its name", got.words, way)
			unknown := callTool(t, session, tool, arguments{"vm": namespace + "/no-such-vm"})
			require.Equal(
				t,
				strings.ReplaceAll(got.words, foreign, namespace+"/no-such-vm"),
				unknown.words,
				"as one that there is not",
			)
		}
		migrations := callTool(t, session, "migrations", arguments{"limit": 500})
		require.False(t, migrations.failed)
		for owner, word := range c.findNamespaces(migrations.words + string(migrations.object.Answer) + migrations.more) {
			require.Equal(t, namespace, owner, "%s: %s", way, word)
		}
	}
	for token, says := range map[string]string{"nobody-of-note": "403", "unknown-token": "401", "": "401"} {
		_, err := mcp.NewClient(
			&mcp.Implementation{Name: "test"},
			nil,
		).Connect(
			t.Context(),
			newHTTPTransport(server.URL, token),
			nil,
		)
		require.Error(t, err, token)
		w := c.getAs(t, token, assistantTarget("top", "{}"))
		require.Equal(t, says, fmt.Sprint(w.Code), token)
	}
	refused := connectByCommand(t, "--server", server.URL, "--server-token-file", tokens["nobody-of-note"])
	got := callTool(t, refused, "top", nil)
	require.True(t, got.failed)
	require.Contains(t, got.words, "may get virtualmachineinstances (kubevirt.io) in no namespace")

	// A renewed token counts at once.
	require.NoError(t, os.WriteFile(tokens["nobody-of-note"], []byte("assistant\n"), 0o600))
	require.False(t, callTool(t, refused, "why", arguments{"vm": own}).failed)
	require.NoError(t, os.WriteFile(tokens["nobody-of-note"], nil, 0o600))
	require.False(t, callTool(t, refused, "why", arguments{"vm": own}).failed, "while there is none, the former counts")
}

// TestMCPRequests sends what no assistant should.
func TestMCPRequests(t *testing.T) {
	t.Parallel()
	server := serveAll(t, playedURL(t, "c-node-drain"))
	send := func(method, body string, header ...string) (int, string) {
		t.Helper()
		r, err := http.NewRequestWithContext(t.Context(), method, server+"/mcp", strings.NewReader(body))
		require.NoError(t, err)
		r.Header.Set("Content-Type", "application/json")
		r.Header.Set("Accept", "application/json, text/event-stream")
		for i := 0; i < len(header); i += 2 {
			r.Header.Set(header[i], header[i+1])
		}
		answer, err := http.DefaultClient.Do(r)
		require.NoError(t, err)
		defer func() { _ = answer.Body.Close() }()
		text, err := io.ReadAll(answer.Body)
		require.NoError(t, err)
		return answer.StatusCode, string(text)
	}
	const top = `{"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "gaps", "arguments": {}}}`
	code, body := send(http.MethodPost, top)
	require.Equal(t, http.StatusOK, code, "without a session: %s", body)
	require.Contains(t, body, "No gaps recorded.")
	code, body = send(http.MethodPost, "\n["+top+","+top+"]")
	require.Equal(t, http.StatusBadRequest, code)
	require.Contains(t, body, "send those of a batch one by one")
	code, _ = send(http.MethodPost, `{"jsonrpc": "2.0", "id": 1, "method": "`+strings.Repeat("x", 64<<10)+`"}`)
	require.Equal(t, http.StatusRequestEntityTooLarge, code)
	code, body = send(http.MethodPost, top, "Sec-Fetch-Site", "cross-site")
	require.Equal(t, http.StatusForbidden, code)
	require.Contains(t, body, "a page of another site has sent this")
	for _, method := range []string{http.MethodGet, http.MethodDelete} {
		code, _ = send(method, "")
		require.Equal(t, http.StatusMethodNotAllowed, code, "there are no sessions")
	}
	listen := `{"jsonrpc": "2.0", "id": 1, "method": "subscriptions/listen", "params": {"_meta": {"io.modelcontextprotocol/protocolVersion": "2026-07-28"}}}`
	code, body = send(
		http.MethodPost,
		listen,
		"MCP-Protocol-Version",
		"2026-07-28",
		"Mcp-Method",
		"subscriptions/listen",
	)
	require.Contains(t, body, "error", "%d", code)
	require.NotContains(t, body, "acknowledged")
	t.Log(code, body)
}
