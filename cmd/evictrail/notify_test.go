package main

import (
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/evictrail/evictrail/store/storetest"
)

// TestNotifyFlags refuses receivers that cannot be notified, before anything starts.
func TestNotifyFlags(t *testing.T) {
	t.Parallel()
	missing := filepath.Join(t.TempDir(), "missing")
	for _, c := range []struct {
		args []string
		want string
	}{
		{[]string{"--cloudevents-token-file=token"}, "cloudevents-token-file: say where it is with --cloudevents-url"},
		{[]string{"--otlp-insecure"}, "otlp-insecure: say where it is with --otlp-url"},
		{[]string{"--cloudevents-url=events.example"}, `cloudevents-url "events.example": expected such as https://cloudevents.example`},
		{[]string{"--otlp-url=http://me:secret@otel.example"}, "otlp-url: no user or password in it: give a token with --otlp-token-file"},
		{[]string{"--cloudevents-url=https://events.example", "--cloudevents-ca-file=" + missing}, "cloudevents-ca-file: open " + missing},
	} {
		code, _, errOut := runCommand(t, append([]string{"run", "--database-url", "postgres:///none"}, c.args...)...)
		require.NotZero(t, code)
		require.Contains(t, errOut, c.want)
		require.NotContains(t, errOut, "secret")
	}
}

// TestRunNotifiesOfWhatHappens has a service notify a receiver of what is derived while it runs. It hears nothing of the history before.
func TestRunNotifiesOfWhatHappens(t *testing.T) {
	t.Parallel()
	var sent atomic.Int64
	receiver := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		if strings.HasPrefix(r.Header.Get("Content-Type"), "application/cloudevents+json") {
			sent.Add(1)
		}
	}))
	t.Cleanup(receiver.Close)
	cluster, url := spoiledCluster(t, spoilNothing), storetest.NewURL(t)
	s := startAnyhow(t, recorderArgs(cluster.kubeconfig, url, "--cloudevents-url", receiver.URL))
	require.Eventually(t, func() bool { return s.getBody(t, "/readyz") == "ok\n" }, saidWithin, 100*time.Millisecond)
	require.Eventually(t, func() bool {
		return len(queryRows[struct{}](t, url, "SELECT 1 AS n FROM evictrail.receivers WHERE notified_to > since")) == 1
	}, saidWithin, 100*time.Millisecond, "it was looked for what is new")
	require.Zero(t, sent.Load())
	const series = `evictrail_notices_total{receiver="cloudevents",result="taken"} `
	require.Contains(t, s.getBody(t, "/metrics"), series+"0\n")

	execSQL(t, url, `
INSERT INTO evictrail.loops (cluster, subject, loop_id, kind, namespace, vmi, node, opened_at, summary, advice, counts, evidence)
VALUES ('c1', 'vmi:shop/db-1', gen_random_uuid(), 'endless_retry', 'shop', 'db-1', 'worker-1', now(), 'It goes on.', 'Stop it.', '{}', '[]')`)
	require.Eventually(t, func() bool { return sent.Load() == 1 }, saidWithin, 100*time.Millisecond)
	require.Eventually(t, func() bool { return strings.Contains(s.getBody(t, "/metrics"), series+"1\n") }, saidWithin, 100*time.Millisecond)

	check := func() string {
		_, text, _ := runCommand(t, append([]string{"doctor"}, recorderArgs(cluster.kubeconfig, url, "--cloudevents-url", receiver.URL, "--otlp-url", receiver.URL)[1:]...)...)
		return text
	}
	text := check()
	require.Regexp(t, `(?m)^ok    receiver cloudevents +has all that changed until 20`, text)
	require.Regexp(t, `(?m)^warn  receiver traces +nothing was sent yet -> the replica that derives begins with it`, text)
	require.Equal(t, exitFound, s.stop())
	execSQL(t, url, "UPDATE evictrail.receivers SET notified_to = '2020-01-02'")
	require.Regexp(t, `(?m)^warn  receiver cloudevents +does not have what changed since 2020-01-02T00:00:00Z -> see the log`, check())
}
