package collector

import (
	"context"
	"encoding/pem"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/stretchr/testify/require"

	"github.com/evictrail/evictrail/metrics"
	"github.com/evictrail/evictrail/remote"
	"github.com/evictrail/evictrail/trail"
	"github.com/evictrail/evictrail/trail/tracker"
)

// scrapeText is what a descheduler that was started at a Unix time says of itself.
func scrapeText(started float64, blocks ...string) string {
	return fmt.Sprintf(`# TYPE descheduler_build_info gauge
descheduler_build_info{AppVersion=".",DeschedulerVersion="v0.36.0"} 0
# TYPE descheduler_kubevirt_effective_cooldown_seconds histogram
descheduler_kubevirt_effective_cooldown_seconds_bucket{le="+Inf"} 0
descheduler_kubevirt_effective_cooldown_seconds_sum 0
descheduler_kubevirt_effective_cooldown_seconds_count 0
# TYPE descheduler_kubevirt_eviction_blocks_total counter
%s
# TYPE process_start_time_seconds gauge
process_start_time_seconds %g
`, strings.Join(blocks, "\n"), started)
}

// blocksOf is a series of the counter of blocks in the namespace shop.
func blocksOf(reason, node string, count int) string {
	return fmt.Sprintf(`descheduler_kubevirt_eviction_blocks_total{namespace="shop",node=%q,reason=%q} %d`, node, reason, count)
}

func decodeText(text string) (tracker.ScrapeObservation, error) {
	o, _, err := decodeScrape(strings.NewReader(text))
	return o, err
}

func TestDecodeScrape(t *testing.T) {
	t.Parallel()
	got, err := decodeText(scrapeText(1795221213.59,
		blocksOf("cooldown", "n2", 3),
		`descheduler_kubevirt_eviction_blocks_total{exported_namespace="shop",namespace="openshift-kube-descheduler-operator",node="n1",pod="a",reason="cooldown"} 4`,
		`descheduler_kubevirt_eviction_blocks_total{exported_namespace="shop",namespace="openshift-kube-descheduler-operator",node="n1",pod="b",reason="cooldown"} 1`,
		blocksOf("too_hot", "n1", 1)))
	require.NoError(t, err)
	require.Equal(t, tracker.ScrapeObservation{
		StartedAt: time.Date(2026, 11, 21, 0, 33, 33, 590e6, time.UTC), Version: "v0.36.0", Plugin: true,
		Blocks: []tracker.BlockCount{
			{Reason: "cooldown", Node: "n1", Namespace: "shop", Count: 5},
			{Reason: "too_hot", Node: "n1", Namespace: "shop", Count: 1},
			{Reason: "cooldown", Node: "n2", Namespace: "shop", Count: 3},
		},
	}, got)

	bare, err := decodeText("descheduler_build_info{DeschedulerVersion=\"v0.30.0\"} 0\nprocess_start_time_seconds 1.79522121359e+09\n")
	require.NoError(t, err)
	require.Equal(t, tracker.ScrapeObservation{StartedAt: got.StartedAt, Version: "v0.30.0", Blocks: []tracker.BlockCount{}}, bare, "without the plugin, and untyped")
}

func TestDecodeScrapeSaysWhatIsWrong(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ name, text, want string }{
		{"nothing", "", "no descheduler_build_info: expected the metrics of a descheduler"},
		{"a page", "<html><body>Sign in</body></html>\n", "no descheduler_build_info: expected the metrics of a descheduler"},
		{"another program", "process_start_time_seconds 1.7e9\n", "no descheduler_build_info"},
		{"no start", strings.Replace(scrapeText(1), "process_start", "other", 2), "process_start_time_seconds 0: expected the time"},
		{"a start that is no time", scrapeText(-1), "process_start_time_seconds -1: expected the time"},
		{"a count that is none", strings.Replace(scrapeText(1, blocksOf("cooldown", "n1", 7)), "} 7", "} NaN", 1), "descheduler_kubevirt_eviction_blocks_total NaN: expected a count"},
		{"a count that went below zero", scrapeText(1, blocksOf("cooldown", "n1", -1)), "descheduler_kubevirt_eviction_blocks_total -1: expected a count"},
		{"cut short", scrapeText(1.7e9)[:300], "cut short within a line"},
		{"too large", strings.Repeat("# x\n", scrapeLimit/4+1), "too large: more than 33554432 bytes"},
		{"bad text", strings.Replace(scrapeText(1.7e9), "process_start_time_seconds ", "process_start_time_seconds{ ", 2), "text format parsing error"},
		{"a long line", "# " + strings.Repeat("x", maxLine), "too large: a line of more than 65536 bytes"},
		{"too many series", scrapeText(1.7e9, slices.Repeat([]string{blocksOf("cooldown", "n1", 1)}, maxSeries)...), "too large: more than 50000 series, or 8388608 bytes, of metrics descheduler_*"},
		{"too much text", scrapeText(1.7e9, slices.Repeat([]string{blocksOf("cooldown", strings.Repeat("n", maxLine/2), 1)}, keptLimit/(maxLine/2))...), "too large: more than 50000 series"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			_, err := decodeText(c.text)
			require.ErrorContains(t, err, c.want)
		})
	}
}

// TestScrapedTextsAreClipped: names are labels of series, and anyone who names them may not fill the record. What is not read is not even parsed.
func TestScrapedTextsAreClipped(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("n", 2*maxName)
	o, nodes, err := decodeScrape(strings.NewReader(scrapeText(1.7e9, blocksOf(long, long, 1),
		fmt.Sprintf("%s{node=%q,resource=%q} 1", familyUtilisation, long, long),
		fmt.Sprintf("descheduler_build_info{DeschedulerVersion=%q} 0", long)) + "other{ not the format of metrics\n"))
	require.NoError(t, err)
	short := trail.ClipText(long, maxName)
	require.Equal(t, []tracker.BlockCount{{Reason: short, Node: short, Namespace: "shop", Count: 1}}, o.Blocks)
	require.Len(t, o.Version, maxName)
	require.Contains(t, nodes, trail.LoadKey{Node: short, Metric: "descheduler:" + short})
}

// FuzzScrape holds that no answer makes the scraper panic, and that what it takes can be counted.
func FuzzScrape(f *testing.F) {
	f.Add(scrapeText(1795221213.59, blocksOf("cooldown", "n1", 3)))
	f.Add("# TYPE process_start_time_seconds histogram\nprocess_start_time_seconds_count 1\n")
	f.Add("descheduler_build_info 0\nprocess_start_time_seconds +Inf\n")
	f.Fuzz(func(t *testing.T, text string) {
		o, err := decodeText(text)
		if err != nil {
			return
		}
		require.False(t, o.StartedAt.IsZero())
		for _, b := range o.Blocks {
			require.GreaterOrEqual(t, b.Count, 0.0)
		}
	})
}

// page serves what a test says.
type page struct{ text atomic.Pointer[string] }

func (p *page) setText(text string) { p.text.Store(&text) }

// ServeHTTP answers with the text; where it is a number, with that status.
func (p *page) ServeHTTP(w http.ResponseWriter, _ *http.Request) {
	text := *p.text.Load()
	var status int
	if _, err := fmt.Sscanf(text, "status %d", &status); err == nil {
		w.Header().Set("Location", "http://elsewhere.example/")
		w.WriteHeader(status)
		return
	}
	_, _ = io.WriteString(w, text)
}

// listBlocks returns the blocks that were recorded: reason, node and increase.
func (s *sink) listBlocks() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	var out []string
	for _, f := range s.facts {
		if d, ok := f.Detail.(*trail.BlocksDetail); ok {
			out = append(out, fmt.Sprintf("%s %s +%d", f.Reason, f.Node, d.Increase))
		}
	}
	return out
}

// TestScraperRecordsBlocks scrapes a descheduler that counts, and then one that was started again.
func TestScraperRecordsBlocks(t *testing.T) {
	t.Parallel()
	p := &page{}
	server := httptest.NewServer(p)
	t.Cleanup(server.Close)
	r := startCollector(t, newAPI(), &sink{}, useAuditClock)
	s, err := r.NewScraper(ScrapeTarget{Server: remote.Server{URL: server.URL}, Interval: ScrapeInterval})
	require.NoError(t, err)
	for _, text := range []string{
		scrapeText(1795221213, blocksOf("cooldown", "n1", 2)),
		scrapeText(1795221213, blocksOf("cooldown", "n1", 2)),
		scrapeText(1795221213, blocksOf("cooldown", "n1", 5), blocksOf("migration_in_progress", "n2", 1)),
		scrapeText(1795221313, blocksOf("cooldown", "n1", 4)),
	} {
		p.setText(text)
		require.NoError(t, s.Scrape(t.Context()))
	}
	require.NoError(t, r.Flush(t.Context()))
	require.Equal(t, []string{"cooldown n1 +2", "cooldown n1 +3", "migration_in_progress n2 +1", "cooldown n1 +4"}, r.sink.listBlocks())
	require.Equal(t, 2, r.sink.countKinds()[trail.KindDeschedulerStarted])
	require.InDelta(t, 4, testutil.ToFloat64(r.metrics.Scrapes.WithLabelValues(metrics.ScrapeOK)), 0)
	require.Zero(t, r.sink.countKinds()[trail.KindGapOpened])
}

// TestScraperOfATargetThatIsAway runs against a target that answers, fails in each way, and answers again.
func TestScraperOfATargetThatIsAway(t *testing.T) {
	t.Parallel()
	p := &page{}
	p.setText(scrapeText(1795221213, blocksOf("cooldown", "n1", 2)))
	server := httptest.NewServer(p)
	t.Cleanup(server.Close)
	r := startCollector(t, newAPI(), &sink{}, nil)
	s, err := r.NewScraper(ScrapeTarget{Server: remote.Server{URL: server.URL}, Interval: 10 * time.Millisecond})
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- s.Run(ctx) }()
	failed := func() float64 { return testutil.ToFloat64(r.metrics.Scrapes.WithLabelValues(metrics.ScrapeFailed)) }
	r.requireEventually(t, "it was read", func() bool { return len(r.sink.listBlocks()) == 1 })
	for _, trouble := range []string{"status 503", "status 302", "garbage", scrapeText(0), scrapeText(9e9)} {
		p.setText(trouble)
		was := failed()
		r.requireEventually(t, trouble, func() bool { return failed() >= was+5 })
	}
	p.setText(scrapeText(1795221213, blocksOf("cooldown", "n1", 3)))
	r.requireEventually(t, "it was read again", func() bool { return len(r.sink.listBlocks()) == 2 })
	r.requireEventually(t, "the time between is a gap", func() bool {
		return r.sink.countKinds()[trail.KindGapOpened] > 0 && r.sink.countKinds()[trail.KindGapClosed] > 0
	})
	r.requireEventually(t, "it is said", func() bool { return strings.Contains(r.log.String(), "descheduler metrics read again") })
	require.Equal(t, 1, strings.Count(r.log.String(), "descheduler metrics not read"), r.log)
	require.Contains(t, r.log.String(), "503 Service Unavailable")
	cancel()
	require.ErrorIs(t, <-done, context.Canceled)
}

// TestScraperReportsGaps scrapes by a clock of its own: up to three intervals are no gap.
func TestScraperReportsGaps(t *testing.T) {
	t.Parallel()
	var now atomic.Pointer[time.Time]
	clock := func(after time.Duration) { at := auditNow.Add(after); now.Store(&at) }
	clock(0)
	p := &page{}
	p.setText(scrapeText(1795221213))
	server := httptest.NewServer(p)
	t.Cleanup(server.Close)
	r := startCollector(t, newAPI(), &sink{}, func(c *Config) { c.Clock = func() time.Time { return *now.Load() } })
	s, err := r.NewScraper(ScrapeTarget{Server: remote.Server{URL: server.URL}, Interval: 30 * time.Second})
	require.NoError(t, err)
	for _, after := range []time.Duration{0, 30 * time.Second, 120 * time.Second, 211 * time.Second} {
		clock(after)
		require.NoError(t, s.Scrape(t.Context()))
	}
	require.NoError(t, r.Flush(t.Context()))
	r.sink.mu.Lock()
	defer r.sink.mu.Unlock()
	var gaps []string
	for _, f := range r.sink.facts {
		if f.Kind == trail.KindGapOpened || f.Kind == trail.KindGapClosed {
			gaps = append(gaps, fmt.Sprintf("%s %s %s %s", f.Subject, f.Kind, f.Reason, f.OccurredAt.Sub(auditNow)))
		}
	}
	require.Equal(t, []string{"source:descheduler gap_opened unreachable 2m0s", "source:descheduler gap_closed unreachable 3m31s"}, gaps)
}

// TestScraperShowsItsTokenAndChecksTheCertificate scrapes over HTTPS with a certificate that only its CA file vouches for.
func TestScraperShowsItsTokenAndChecksTheCertificate(t *testing.T) {
	t.Parallel()
	server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") != "Bearer sesame" {
			w.WriteHeader(http.StatusForbidden)
			return
		}
		_, _ = io.WriteString(w, scrapeText(1795221213))
	}))
	t.Cleanup(server.Close)
	dir := t.TempDir()
	token, ca := filepath.Join(dir, "token"), filepath.Join(dir, "ca.pem")
	require.NoError(t, os.WriteFile(token, []byte("sesame\n"), 0o600))
	require.NoError(t, os.WriteFile(ca, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw}), 0o600))
	r := startCollector(t, newAPI(), &sink{}, nil)
	for _, c := range []struct {
		name   string
		target ScrapeTarget
		want   string
	}{
		{"with the CA", ScrapeTarget{Server: remote.Server{TokenFile: token, CAFile: ca}}, ""},
		{"unchecked", ScrapeTarget{Server: remote.Server{TokenFile: token, Insecure: true}}, ""},
		{"without the CA", ScrapeTarget{Server: remote.Server{TokenFile: token}}, "certificate"},
		{"without the token", ScrapeTarget{Server: remote.Server{CAFile: ca}}, "403 Forbidden"},
	} {
		c.target.URL, c.target.Interval = server.URL, ScrapeInterval
		s, err := r.NewScraper(c.target)
		require.NoError(t, err, c.name)
		if err = s.Scrape(t.Context()); c.want == "" {
			require.NoError(t, err, c.name)
		} else {
			require.ErrorContains(t, err, c.want, c.name)
		}
	}
	_, err := r.NewScraper(ScrapeTarget{Server: remote.Server{URL: server.URL, CAFile: filepath.Join(dir, "missing")}})
	require.ErrorContains(t, err, "read descheduler metrics: ")
}
