package main

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/evictrail/evictrail"
	"github.com/evictrail/evictrail/collector/recording"
	"github.com/evictrail/evictrail/store/storetest"
	"github.com/evictrail/evictrail/trail"
)

func TestDeschedulerFlags(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name string
		args []string
		want string
	}{
		{"two sources", []string{"--descheduler-policy=p", "--descheduler-configmap=a/b"}, "settings come from one place"},
		{"two others", []string{"--descheduler-configmap=a/b", "--max-migration-cooldown=1h"}, "settings come from one place"},
		{"no namespace", []string{"--descheduler-configmap=b"}, `descheduler-configmap "b": expected NAMESPACE/NAME`},
		{"too many names", []string{"--descheduler-configmap=a/b/c"}, "expected NAMESPACE/NAME"},
		{"cap below base", []string{"--migration-cooldown=2h", "--max-migration-cooldown=1h"}, "must be >= migrationCooldown (2h0m0s)"},
		{"negative window", []string{"--migration-history-window=-1h"}, "migrationHistoryWindow must be non-negative"},
		{"unknown model", []string{"--descheduler-model=5"}, `descheduler-model "5": expected one of auto, 4.22, 4.21, none`},
		{"a model of nothing", []string{"--descheduler-model=4.21"}, "say where its settings are"},
		{"no URL", []string{"--descheduler-metrics-url=descheduler:10258"}, "expected such as https://"},
		{"a password", []string{"--descheduler-metrics-url=https://me:secret@d/metrics"}, "no user or password"},
		{"a token for nobody", []string{"--descheduler-metrics-token-file=t"}, "say where the metrics are"},
		{"checked and not", []string{"--descheduler-metrics-url=https://d/", "--descheduler-metrics-ca-file=c", "--descheduler-metrics-insecure"}, "exclude each other"},
		{"too often", []string{"--descheduler-metrics-url=https://d/", "--descheduler-metrics-interval=10ms"}, "at least 1s"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			code, _, stderr := runCommand(t, append([]string{"run"}, c.args...)...)
			require.Equal(t, exitUsage, code, stderr)
			require.Contains(t, stderr, c.want)
			require.NotContains(t, stderr, "secret")
		})
	}
	code, _, stderr := runCommand(t, "run", "--kubeconfig", writeKubeconfig(t, "http://127.0.0.1:1"), "--descheduler-metrics-url=https://d/", "--descheduler-metrics-ca-file=/none")
	require.NotEqual(t, exitFound, code)
	require.Contains(t, stderr, "descheduler-metrics-ca-file: open /none")
}

type factRow struct {
	Kind      string          `json:"kind"`
	Reason    string          `json:"reason"`
	Namespace string          `json:"namespace"`
	Node      string          `json:"node"`
	At        time.Time       `json:"at"`
	Detail    json.RawMessage `json:"detail"`
}

// factsOf returns the recorded facts of a kind with their details.
func factsOf[D any](t *testing.T, url string, kind trail.Kind) (facts []factRow, details []D) {
	t.Helper()
	facts = queryRows[factRow](t, url, "SELECT * FROM evictrail_v1.events WHERE kind = '"+string(kind)+"' ORDER BY at, node, reason")
	for _, f := range facts {
		var d D
		require.NoError(t, json.Unmarshal(f.Detail, &d))
		details = append(details, d)
	}
	return facts, details
}

// TestPlayRecordsBlocks plays scrapes: the increases add up to the last counts, and playing them again adds nothing.
func TestPlayRecordsBlocks(t *testing.T) {
	t.Parallel()
	storetest.SkipInShort(t)
	const name = "g-churn-cooldown"
	rec, err := recording.Open(evictrail.Recordings(), name, nil)
	require.NoError(t, err)
	require.Len(t, rec.Scrapes, 19)
	want := map[string]int64{}
	series := regexp.MustCompile(`(?m)^descheduler_kubevirt_eviction_blocks_total\{namespace="(.*)",node="(.*)",reason="(.*)"\} (\d+)$`)
	for _, m := range series.FindAllStringSubmatch(rec.Scrapes[18].Text, -1) {
		want[strings.Join(m[1:4], " ")], err = strconv.ParseInt(m[4], 10, 64)
		require.NoError(t, err)
	}
	require.Len(t, want, 6)

	url := playedURL(t, name)
	facts, blocks := factsOf[trail.BlocksDetail](t, url, trail.KindBlocksObserved)
	got := map[string]int64{}
	for i, f := range facts {
		got[strings.Join([]string{f.Namespace, f.Node, f.Reason}, " ")] += blocks[i].Increase
		require.Equal(t, f.Reason, blocks[i].Reason)
		require.True(t, blocks[i].Since.Before(f.At))
		require.LessOrEqual(t, f.At.Sub(blocks[i].Since), 31*time.Second, "since the scrape before, or since the start")
	}
	require.Equal(t, want, got)
	starts, processes := factsOf[trail.DeschedulerDetail](t, url, trail.KindDeschedulerStarted)
	require.Equal(t, []trail.DeschedulerDetail{{Target: "descheduler", Version: "openshift-main-c0a1bbee3", Plugin: true}}, processes)
	require.Equal(t, time.Date(2026, 11, 21, 0, 33, 33, 590e6, time.UTC), starts[0].At.UTC())
	_, policies := factsOf[trail.ConfigDetail](t, url, trail.KindConfigSeen)
	require.Contains(t, policies, trail.ConfigDetail{Policy: string(rec.Policy), Descheduler: &trail.DeschedulerSettings{
		Cooldown:   &trail.CooldownSettings{Base: 30 * time.Second, Max: 4 * time.Minute, Window: time.Hour},
		LimitTotal: policies[0].Descheduler.LimitTotal, LimitPerNode: policies[0].Descheduler.LimitPerNode,
	}})
	before := readPublicViews(t, url)
	playBuiltin(t, url, name)
	require.Equal(t, before, readPublicViews(t, url))
	code, out, stderr := runCommand(t, "timeline", "--database-url", url)
	require.Equal(t, exitFound, code, stderr)
	require.Contains(t, out, "from worker-3 in namespace demo (cooldown).")
	require.Contains(t, out, "The descheduler was started.")
}

// oneConfigMap serves the list and the watch of one ConfigMap; all else another handler serves.
func oneConfigMap(path, object string, rest http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case r.URL.Path != path:
			rest.ServeHTTP(w, r)
		case r.URL.Query().Get("watch") == "":
			_, _ = fmt.Fprintf(w, `{"kind":"ConfigMapList","apiVersion":"v1","metadata":{"resourceVersion":"9"},"items":[%s]}`, object)
		default:
			if r.URL.Query().Get("sendInitialEvents") == "true" {
				_, _ = fmt.Fprintf(w, `{"type":"ADDED","object":%s}`+"\n", object)
				_, _ = fmt.Fprintln(w, `{"type":"BOOKMARK","object":{"metadata":{"resourceVersion":"9","annotations":{"k8s.io/initial-events-end":"true"}}}}`)
			}
			_ = http.NewResponseController(w).Flush()
			<-r.Context().Done()
		}
	})
}

// TestRunReadsTheDescheduler runs the service with a ConfigMap to watch and metrics to scrape, stops it, and starts it
// again when the metrics have gone on: what they counted during that time is neither lost nor counted twice.
func TestRunReadsTheDescheduler(t *testing.T) {
	t.Parallel()
	storetest.SkipInShort(t)
	rec, err := recording.Open(evictrail.Recordings(), "a-descheduler-eviction-success", nil)
	require.NoError(t, err)
	server := recording.NewServer(rec, recording.ServerOptions{})
	for i := range rec.Lines {
		server.Release(i)
	}
	policy := fmt.Sprintf(`{"metadata":{"namespace":"d","name":"descheduler","uid":"u-1","resourceVersion":"7"},"data":{"policy.yaml":%q}}`, rec.Policy)
	cluster := httptest.NewServer(oneConfigMap("/api/v1/namespaces/d/configmaps", policy, server))
	t.Cleanup(cluster.Close)
	var count atomic.Int64
	count.Store(3)
	metrics := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = fmt.Fprintf(w, "descheduler_build_info 0\nprocess_start_time_seconds 1.79522121359e+09\n"+
			"descheduler_kubevirt_eviction_blocks_total{namespace=\"demo\",node=\"worker-1\",reason=\"cooldown\"} %d\n", count.Load())
	}))
	t.Cleanup(metrics.Close)
	url := storetest.NewURL(t)
	args := []string{
		"run", "--kubeconfig", writeKubeconfig(t, cluster.URL), "--cluster", "c1", "--listen", "127.0.0.1:0", "--database-url", url,
		"--descheduler-configmap", "d/descheduler", "--descheduler-model", "4.22",
		"--descheduler-metrics-url", metrics.URL, "--descheduler-metrics-insecure", "--descheduler-metrics-interval", "1s",
	}
	recorded := func() (sum int64) {
		_, blocks := factsOf[trail.BlocksDetail](t, url, trail.KindBlocksObserved)
		for _, b := range blocks {
			sum += b.Increase
		}
		return sum
	}
	first := startRun(t, args, nil)
	require.Eventually(t, func() bool { return recorded() == 3 }, 2*time.Minute, 50*time.Millisecond)
	require.Contains(t, first.getBody(t, "/metrics"), `evictrail_scrapes_total{result="failed"} 0`)
	require.Equal(t, exitFound, first.stop())
	count.Store(5)
	second := startRun(t, args, nil)
	require.Eventually(t, func() bool { return recorded() == 5 }, 2*time.Minute, 50*time.Millisecond)
	require.Equal(t, exitFound, second.stop())
	_, settings := factsOf[trail.ConfigDetail](t, url, trail.KindConfigSeen)
	require.Len(t, settings, 2, "of KubeVirt and of the descheduler, each once")
	models := settings[0].Descheduler
	if models == nil {
		models = settings[1].Descheduler
	}
	require.Equal(t, "4.22", models.Model)
	_, starts := factsOf[trail.DeschedulerDetail](t, url, trail.KindDeschedulerStarted)
	require.Len(t, starts, 1)
}

// TestRunTakesStatedSettings runs the service with settings by hand: they are recorded once, with the defaults.
func TestRunTakesStatedSettings(t *testing.T) {
	t.Parallel()
	cluster := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "{}") }))
	t.Cleanup(cluster.Close)
	file := filepath.Join(t.TempDir(), "policy.yaml")
	require.NoError(t, os.WriteFile(file, []byte("kind: Nothing"), 0o600))
	for _, c := range []struct {
		name string
		args []string
		want trail.ConfigDetail
	}{
		{"by hand", []string{"--migration-cooldown", "5m", "--descheduler-model", "none"}, trail.ConfigDetail{Descheduler: &trail.DeschedulerSettings{
			Cooldown: &trail.CooldownSettings{Base: 5 * time.Minute, Max: 6 * time.Hour, Window: 48 * time.Hour}, Model: "none",
		}}},
		{"a bad file", []string{"--descheduler-policy", file}, trail.ConfigDetail{
			Policy: "kind: Nothing", Problem: `apiVersion "", kind "Nothing": expected descheduler/v1alpha2, DeschedulerPolicy`,
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			url := storetest.NewURL(t)
			args := append([]string{
				"run", "--kubeconfig", writeKubeconfig(t, cluster.URL), "--cluster", "c1", "--listen", "127.0.0.1:0", "--database-url", url,
			}, c.args...)
			for range 2 {
				log, stop := startUnready(t, args)
				require.Eventually(t, func() bool {
					_, settings := factsOf[trail.ConfigDetail](t, url, trail.KindConfigSeen)
					return len(settings) > 0
				}, 20*time.Second, 50*time.Millisecond)
				require.Equal(t, exitFound, stop(), log)
				require.Equal(t, c.want.Problem != "", strings.Contains(log.String(), "settings of the descheduler are not known"))
			}
			_, settings := factsOf[trail.ConfigDetail](t, url, trail.KindConfigSeen)
			require.Equal(t, []trail.ConfigDetail{c.want}, settings)
		})
	}
}
