package collector

import (
	"context"
	"encoding/pem"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	v1 "github.com/prometheus/client_golang/api/prometheus/v1"
	"github.com/stretchr/testify/require"

	"github.com/evictrail/evictrail/remote"
	"github.com/evictrail/evictrail/trail"
)

// oracle answers range queries as a Prometheus does, with what a test says: series as JSON, by query.
type oracle struct {
	mu      sync.Mutex
	answers map[string]string // series, by query; none: an empty matrix
	status  map[string]int    // of queries that are refused
	asked   []string
	header  http.Header // of the last question
}

func (o *oracle) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	o.mu.Lock()
	defer o.mu.Unlock()
	query := r.FormValue("query")
	o.asked, o.header = append(o.asked, query), r.Header
	w.Header().Set("Content-Type", "application/json")
	if status := o.status[query]; status != 0 {
		w.Header().Set("Location", "http://elsewhere.example/")
		w.WriteHeader(status)
		_, _ = io.WriteString(w, `{"status":"error","errorType":"bad_data","error":"this and that"}`)
		return
	}
	if text, whole := strings.CutPrefix(o.answers[query], "whole:"); whole {
		_, _ = io.WriteString(w, text)
		return
	}
	_, _ = fmt.Fprintf(w, `{"status":"success","data":{"resultType":"matrix","result":[%s]},"warnings":["partial"]}`, o.answers[query])
}

func (o *oracle) popAsked() []string {
	o.mu.Lock()
	defer o.mu.Unlock()
	asked := o.asked
	o.asked = nil
	return asked
}

func promAt(second int) string {
	return fmt.Sprintf("%d", auditNow.Truncate(time.Minute).Unix()+int64(second))
}

func secondOf(at time.Time) float64 { return at.Sub(auditNow.Truncate(time.Minute)).Seconds() }

func newOracle(t *testing.T, o *oracle, change func(*PrometheusTarget)) (*Prometheus, *lockedBuffer) {
	t.Helper()
	server := httptest.NewServer(o)
	t.Cleanup(server.Close)
	target := PrometheusTarget{Server: remote.Server{URL: server.URL}, Queries: []LoadQuery{{Name: "view", Values: []string{"view"}, Threshold: "limit"}, {Name: "cpu", Values: []string{"rule", "raw"}}}}
	if change != nil {
		change(&target)
	}
	log := &lockedBuffer{}
	p, err := NewPrometheus(target, slog.New(slog.NewTextHandler(log, nil)))
	require.NoError(t, err)
	return p, log
}

// asked for are the samples of a minute.
func minuteOf(t *testing.T, p *Prometheus, nodes ...string) (trail.Loads, error) {
	t.Helper()
	of := map[string]bool{}
	for _, n := range nodes {
		of[n] = true
	}
	from := auditNow.Truncate(time.Minute)
	return p.Loads(t.Context(), of, from, from.Add(time.Minute))
}

// TestPrometheusLoads reads series: values, when they were sampled, and thresholds of each node and resource, of each node, or of all.
func TestPrometheusLoads(t *testing.T) {
	t.Parallel()
	series := func(labels string, pairs ...string) string {
		return fmt.Sprintf(`{"metric":{%s},"values":[%s]}`, labels, strings.Join(pairs, ","))
	}
	pair := func(second int, value string) string { return fmt.Sprintf(`[%s,%q]`, promAt(second), value) }
	o := &oracle{answers: map[string]string{
		"view": strings.Join([]string{
			series(`"node":"target","exported_node":"n1","resource":"cpu"`, pair(0, "0.4"), pair(15, "0.4"), pair(30, "0.7")),
			series(`"node":"n1","resource":"memory"`, pair(0, "NaN")),
			series(`"node":"n2","resource":"cpu"`, pair(0, "0.1")),
			series(`"node":"n3","resource":"cpu"`, pair(0, "0.2")),
		}, ","),
		"timestamp(view)": strings.Join([]string{
			series(`"node":"n1","resource":"cpu"`, pair(0, promAt(-9)), pair(15, promAt(-9)), pair(30, promAt(21)+".5")),
		}, ","),
		"limit": strings.Join([]string{
			series(`"node":"n1","resource":"cpu"`, pair(0, "0.5"), pair(15, "0.5"), pair(30, "0.6")),
			series(`"resource":"cpu"`, pair(0, "0.3")),
		}, ","),
		"raw": series(`"instance":"n1"`, pair(0, "0.9"), pair(15, "0.8")),
	}}
	p, log := newOracle(t, o, nil)
	loads, err := minuteOf(t, p, "n1", "n2")
	require.NoError(t, err)
	require.Equal(t, []trail.LoadMetric{{Name: "view:cpu"}, {Name: "view:memory"}, {Name: "cpu"}}, loads.Metrics)
	require.Equal(t, []string{"view", "timestamp(view)", "limit", "rule", "raw"}, o.popAsked())
	samplesOf := func(node, metric string) []string {
		var out []string
		for _, p := range loads.Points[trail.LoadKey{Node: node, Metric: metric}] {
			limit := "-"
			if p.Threshold != nil {
				limit = fmt.Sprint(*p.Threshold)
			}
			out = append(out, fmt.Sprintf("%g: %g of %s", secondOf(p.At), p.Value, limit))
		}
		return out
	}
	require.Equal(t, []string{"-9: 0.4 of 0.5", "21.5: 0.7 of 0.6"}, samplesOf("n1", "view:cpu"), "each sample once, at its own time")
	require.Equal(t, []string{"0: NaN of -"}, samplesOf("n1", "view:memory"))
	require.Equal(t, []string{"0: 0.1 of 0.3"}, samplesOf("n2", "view:cpu"), "the threshold of all nodes")
	require.Equal(t, []string{"0: 0.9 of -", "15: 0.8 of -"}, samplesOf("n1", "cpu"))
	require.Empty(t, samplesOf("n3", "view:cpu"), "nobody asked about it")
	require.Contains(t, log.String(), "answer of Prometheus with a warning")
	warned := strings.Count(log.String(), "query=view ")

	_, err = minuteOf(t, p, "n1")
	require.NoError(t, err)
	require.Equal(t, []string{"view", "timestamp(view)", "limit", "raw"}, o.popAsked(), "what returned something the last time is asked first")
	require.Equal(t, warned, strings.Count(log.String(), "query=view "), "a warning is logged once")

	o.mu.Lock()
	o.answers = nil
	o.mu.Unlock()
	loads, err = minuteOf(t, p, "n1")
	require.NoError(t, err)
	require.Equal(t, []trail.LoadMetric{{Name: "view", Lack: trail.LackNoSeries}, {Name: "cpu", Lack: trail.LackNoSeries}}, loads.Metrics)
	require.Equal(t, []string{"view", "raw", "rule"}, o.popAsked())
}

// TestPrometheusSaysWhatIsWrong asks a Prometheus that answers otherwise than it should.
func TestPrometheusSaysWhatIsWrong(t *testing.T) {
	t.Parallel()
	const good = `{"metric":{"node":"n1"},"values":[[1795221213,"0.4"]]}`
	for _, c := range []struct {
		name    string
		answers map[string]string
		status  map[string]int
		want    string // in the error
		lacks   []trail.LoadLack
		asked   int
	}{
		{name: "a query that it does not take", answers: map[string]string{"rule": good}, status: map[string]int{"view": 400}, want: `ask Prometheus "view": bad_data: this and that`, lacks: []trail.LoadLack{trail.LackRefused, ""}, asked: 2},
		{name: "a threshold that it does not take", answers: map[string]string{"view": good, "rule": good}, status: map[string]int{"limit": 422}, want: `"limit"`, lacks: []trail.LoadLack{trail.LackRefused, ""}, asked: 4},
		{name: "no right", status: map[string]int{"view": 401}, want: "client_error: client error: 401", lacks: []trail.LoadLack{trail.LackUnanswered, trail.LackUnanswered}, asked: 1},
		{name: "elsewhere", status: map[string]int{"view": 302}, want: "302", lacks: []trail.LoadLack{trail.LackUnanswered, trail.LackNoSeries}, asked: 3},
		{name: "it is ill", answers: map[string]string{"rule": good}, status: map[string]int{"view": 500}, want: "server_error: server error: 500", lacks: []trail.LoadLack{trail.LackUnanswered, ""}, asked: 2},
		{name: "a page", answers: map[string]string{"view": "whole:<html>", "rule": good}, want: "bad_response", lacks: []trail.LoadLack{trail.LackUnanswered, ""}, asked: 2},
		{name: "another type", answers: map[string]string{"view": `whole:{"status":"success","data":{"resultType":"scalar","result":[1,"2"]}}`}, want: "answered with a scalar: expected a matrix", lacks: []trail.LoadLack{trail.LackUnanswered, trail.LackUnanswered}, asked: 1},
		{name: "too much", answers: map[string]string{"view": "whole:" + strings.Repeat(" ", queryLimit+1)}, want: "too large: more than 67108864 bytes", lacks: []trail.LoadLack{trail.LackUnanswered, trail.LackUnanswered}, asked: 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			o := &oracle{answers: c.answers, status: c.status}
			p, _ := newOracle(t, o, nil)
			loads, err := minuteOf(t, p, "n1")
			require.ErrorContains(t, err, c.want)
			var lacks []trail.LoadLack
			for _, m := range loads.Metrics {
				lacks = append(lacks, m.Lack)
			}
			require.Equal(t, c.lacks, lacks)
			require.Len(t, o.popAsked(), c.asked)
		})
	}
	t.Run("it is away", func(t *testing.T) {
		t.Parallel()
		p, _ := newOracle(t, &oracle{}, func(target *PrometheusTarget) { target.URL = "http://127.0.0.1:1" })
		_, err := minuteOf(t, p, "n1")
		require.ErrorContains(t, err, "refused")
	})
	t.Run("it never answers", func(t *testing.T) {
		t.Parallel()
		server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
			_, _ = io.Copy(io.Discard, r.Body)
			<-r.Context().Done()
		}))
		t.Cleanup(server.Close)
		p, _ := newOracle(t, &oracle{}, func(target *PrometheusTarget) { target.URL = server.URL })
		ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
		defer cancel()
		_, err := p.Loads(ctx, nil, auditNow, auditNow)
		require.ErrorIs(t, err, context.DeadlineExceeded)
	})
}

// TestPrometheusIsBounded: anyone who has metrics of their own collected names their labels, and a server may answer with any text.
func TestPrometheusIsBounded(t *testing.T) {
	t.Parallel()
	var series []string
	for i := range 3 * maxResources {
		series = append(series, fmt.Sprintf(`{"metric":{"node":"n1","resource":"r%03d%s"},"values":[[%s,"1"]]}`, i, strings.Repeat("x", 2*maxName), promAt(0)))
	}
	o := &oracle{answers: map[string]string{"view": strings.Join(series, ",")}}
	p, log := newOracle(t, o, nil)
	loads, err := minuteOf(t, p, "n1")
	require.NoError(t, err)
	require.Len(t, loads.Points, maxResources)
	for key := range loads.Points {
		require.LessOrEqual(t, len(key.Metric), len("view:")+maxName)
	}
	require.Contains(t, log.String(), "96 resources: the first 32 are kept")

	long := strings.Repeat("x", 10*maxEcho)
	o.answers["view"] = `whole:{"status":"error","errorType":"execution","error":"` + long + `"}`
	_, err = minuteOf(t, p, "n1")
	var refused *v1.Error
	require.ErrorAs(t, err, &refused)
	require.Less(t, len(err.Error()), 2*maxEcho)
	o.answers["view"] = `whole:{"status":"success","data":{"resultType":"matrix","result":[]},"warnings":["` + long + `"]}`
	before := len(log.String())
	_, err = minuteOf(t, p, "n1")
	require.NoError(t, err)
	require.Contains(t, log.String()[before:], "xxx")
	require.Less(t, len(log.String()[before:]), 4*maxEcho)
}

// TestPrometheusFilesAreReadAgain has the CA of the certificate replaced while evictrail runs.
func TestPrometheusFilesAreReadAgain(t *testing.T) {
	t.Parallel()
	o := &oracle{}
	server := httptest.NewTLSServer(o)
	t.Cleanup(server.Close)
	dir := t.TempDir()
	ca, token := filepath.Join(dir, "ca.pem"), filepath.Join(dir, "token")
	write := func(file, text string) { require.NoError(t, os.WriteFile(file, []byte(text), 0o600)) }
	write(token, "secret\n")
	write(ca, wrongCA)
	p, err := NewPrometheus(PrometheusTarget{Server: remote.Server{URL: server.URL, TokenFile: token, CAFile: ca}, Queries: []LoadQuery{{Name: "cpu", Values: []string{"cpu"}}}}, slog.New(slog.DiscardHandler))
	require.NoError(t, err)
	_, err = minuteOf(t, p, "n1")
	require.ErrorContains(t, err, "certificate")
	write(ca, string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})))
	_, err = minuteOf(t, p, "n1")
	require.NoError(t, err)
	o.mu.Lock()
	defer o.mu.Unlock()
	require.Equal(t, "Bearer secret", o.header.Get("Authorization"))

	_, err = NewPrometheus(PrometheusTarget{Server: remote.Server{URL: server.URL, CAFile: filepath.Join(dir, "none")}}, nil)
	require.ErrorIs(t, err, os.ErrNotExist)
}

// wrongCA is a certificate that signed nothing here.
const wrongCA = `-----BEGIN CERTIFICATE-----
MIIBdzCCAR2gAwIBAgIUfKneqjSAc7wuTc+tmFHA39RBVcEwCgYIKoZIzj0EAwIw
ETEPMA0GA1UEAwwGbm9ib2R5MB4XDTI2MTEyMjA3MzUyNVoXDTM2MTExOTA3MzUy
NVowETEPMA0GA1UEAwwGbm9ib2R5MFkwEwYHKoZIzj0CAQYIKoZIzj0DAQcDQgAE
8dcST7TcRlDXXz3lnw4MeSWGoCBWvF9bWmIl0IvRgQbVGy0pIc+ny5c4UViCBjDY
0b/Mh35eInLatTK7+fvk46NTMFEwHQYDVR0OBBYEFIJNuMecUNQJrtc9dRzOquMt
RWMiMB8GA1UdIwQYMBaAFIJNuMecUNQJrtc9dRzOquMtRWMiMA8GA1UdEwEB/wQF
MAMBAf8wCgYIKoZIzj0EAwIDSAAwRQIhAJ5XGR2Suvj1kLzdLJ+/qM9m2iqh8gt2
9PuwpPtuc0ZnAiA8bpjz4pXbvbq6JUO8HYcU9oBr4PSORu163SME/7wMQw==
-----END CERTIFICATE-----
`
