package main

import (
	"bytes"
	"context"
	"encoding/json"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"sigs.k8s.io/yaml"

	"github.com/evictrail/evictrail/store/storetest"
)

// lockedBuffer is written by a command and read by a test.
type lockedBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *lockedBuffer) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *lockedBuffer) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

// TestWatch watches open loops while a cluster is played: what is new is written once, and what is over is written as gone. Ctrl-C is no error.
func TestWatch(t *testing.T) {
	t.Parallel()
	storetest.SkipInShort(t)
	url := playedURL(t, "c-node-drain")
	ctx, cancel := context.WithCancel(t.Context())
	var out, errs lockedBuffer
	ended := make(chan int)
	go func() {
		ended <- executeCommand(ctx, []string{"loops", "--open", "--watch", "--every", "100ms", "--database-url", url}, &out, &errs)
	}()
	seen := func(change string) func() bool {
		return func() bool { return regexp.MustCompile(change).MatchString(out.String()) }
	}
	require.Eventually(t, seen(`^No open loops\.\n`), 30*time.Second, 100*time.Millisecond, "%s", &errs)
	playBuiltin(t, url, "k-blocked-slot")
	require.Eventually(t, seen(` new +k-blocked-slot +dual retry loop`), 30*time.Second, 100*time.Millisecond, "%s %s", &out, &errs)
	execSQL(t, url, "UPDATE evictrail.loops SET closed_at = opened_at + interval '1 minute', closed_by = 'quiet' WHERE closed_at IS NULL")
	require.Eventually(t, seen(` gone +k-blocked-slot +dual retry loop`), 30*time.Second, 100*time.Millisecond)
	cancel()
	require.Equal(t, exitFound, <-ended, errs.String())
	require.Equal(t, 1, strings.Count(out.String(), "SEEN (UTC)"))
}

// TestOpenLists asks for what is not over, in every format of programs.
func TestOpenLists(t *testing.T) {
	t.Parallel()
	storetest.SkipInShort(t)
	url := playedURL(t, "k-blocked-slot")
	for _, way := range []string{"--database-url=" + url, "--server=" + serveAPI(t, url)} {
		ask := func(args ...string) string {
			code, out, stderr := runCommand(t, append(args, way)...)
			require.Equal(t, exitFound, code, stderr)
			return out
		}
		asJSON := ask("loops", "--open", "-o", "json")
		var loops []map[string]any
		require.NoError(t, json.Unmarshal([]byte(asJSON), &loops))
		require.Len(t, loops, 1)
		require.Nil(t, loops[0]["closed_at"])
		fromYAML, err := yaml.YAMLToJSON([]byte(ask("loops", "--open", "-o", "yaml")))
		require.NoError(t, err)
		require.JSONEq(t, asJSON, string(fromYAML))
		require.Len(t, strings.Split(strings.TrimSpace(ask("loops")), "\n"), 3)
		require.Len(t, strings.Split(strings.TrimSpace(ask("loops", "--open")), "\n"), 2)
		require.Equal(t, "No open drains.\n", ask("drains", "--open"))
		wide := ask("requests", "-o", "wide", "--limit", "1")
		require.Contains(t, wide, "USER AGENT")
		require.Contains(t, wide, "system:serviceaccount:openshift-kube-descheduler-operator:openshift-descheduler-operand")
		brief := ask("requests", "--limit", "1")
		require.NotContains(t, brief, "system:serviceaccount:")
		require.Contains(t, brief, "REQUESTED AT (UTC)")
	}
	for _, args := range [][]string{{"drains", "--open", "--blockers"}, {"loops", "--watch", "-o", "json"}, {"loops", "--color", "red"}, {"loops", "--watch", "--every", "1ms"}} {
		code, _, stderr := runCommand(t, append(args, "--database-url", url)...)
		require.Equal(t, exitUsage, code, "%s %s", args, stderr)
	}
}
