package collector

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"net/http"
	"slices"
	"strings"
	"time"

	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"

	"github.com/evictrail/evictrail/metrics"
	"github.com/evictrail/evictrail/remote"
	"github.com/evictrail/evictrail/trail"
	"github.com/evictrail/evictrail/trail/tracker"
)

// The bounds of scraping.
const (
	ScrapeInterval = 30 * time.Second // between two scrapes, where nothing else is said
	scrapeTimeout  = 10 * time.Second // of one, from its connection to its last byte
	scrapesMissed  = 3                // intervals without an answer that are no gap yet
	startAhead     = time.Minute      // how far ahead of ours the clock may be that reports the start of the process
)

// SourceDescheduler is the source of gaps in which the descheduler's metrics could not be read, and the name under which it is
// recorded: its address may change, and what it counts does not.
const SourceDescheduler = "descheduler"

// ScrapeTarget says where the metrics of a descheduler are, and how they are read.
type ScrapeTarget struct {
	remote.Server
	Interval time.Duration // between two scrapes
}

// Scraper reads the metrics of a descheduler. It is not safe for concurrent use.
type Scraper struct {
	c       *Collector
	target  ScrapeTarget
	client  *remote.Client
	last    time.Time // when it was last read, or when we began to try; zero before
	problem string    // why it cannot be read, which was logged; empty while it can
	view    nodeView  // what the descheduler said of nodes
}

// Load returns what the descheduler says of nodes as a source of their load.
func (s *Scraper) Load() LoadSource { return &s.view }

// NewScraper makes a scraper that hands what it reads to the collector. Its errors are of the files that the target names.
func (c *Collector) NewScraper(target ScrapeTarget) (*Scraper, error) {
	client, err := target.newClient()
	if err != nil {
		return nil, err
	}
	return &Scraper{c: c, target: target, client: client}, nil
}

func (t *ScrapeTarget) newClient() (*remote.Client, error) {
	client, err := remote.NewClient(t.Server, scrapeTimeout)
	if err != nil {
		return nil, fmt.Errorf("read descheduler metrics: %w", err)
	}
	return client, nil
}

// fetchMetrics asks for the metrics. The caller closes the body.
func (t *ScrapeTarget) fetchMetrics(ctx context.Context, from *remote.Client) (io.ReadCloser, error) {
	client, _, err := from.Current()
	if err != nil {
		return nil, err
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, t.URL, nil)
	if err != nil {
		return nil, err
	}
	request.Header.Set("Accept", string(expfmt.NewFormat(expfmt.TypeTextPlain)))
	answer, err := client.Do(request)
	if err != nil {
		return nil, err
	}
	if answer.StatusCode != http.StatusOK {
		_ = answer.Body.Close()
		return nil, fmt.Errorf("%s: %s", t.URL, answer.Status)
	}
	return answer.Body, nil
}

// Run scrapes at once and then at each interval until ctx ends. Its only error is that of ctx.
func (s *Scraper) Run(ctx context.Context) error {
	s.last = s.c.Clock()
	tick := time.NewTicker(s.target.Interval)
	defer tick.Stop()
	for {
		err := s.Scrape(ctx)
		if ctx.Err() != nil {
			return ctx.Err()
		}
		s.logOutcome(err)
		select {
		case <-tick.C:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// logOutcome logs how a scrape went when that is other than before.
func (s *Scraper) logOutcome(err error) {
	switch {
	case err != nil && s.problem == "":
		s.c.Log.Warn("descheduler metrics not read, trying again", "err", err)
		s.problem = err.Error()
	case err == nil && s.problem != "":
		s.c.Log.Info("descheduler metrics read again")
		s.problem = ""
	}
}

// Scrape reads the metrics once and returns when the collector has taken them. What was not seen since the last time is a
// gap, recorded now that it is over.
func (s *Scraper) Scrape(ctx context.Context) error {
	o, nodes, err := s.readMetrics(ctx)
	if err != nil {
		s.c.Metrics.Scrapes.WithLabelValues(metrics.ScrapeFailed).Inc()
		if s.c.Clock().Sub(s.last) > scrapesMissed*s.target.Interval {
			s.c.Metrics.CountsBlocks(false)
			s.c.clearSeenSince(SourceDescheduler)
		}
		return err
	}
	s.c.Metrics.Scrapes.WithLabelValues(metrics.ScrapeOK).Inc()
	s.c.Metrics.CountsBlocks(o.Plugin)
	seen := []Observation{func(tracker.Seen) tracker.Observation { return o }}
	if !s.last.IsZero() && o.At.Sub(s.last) > scrapesMissed*s.target.Interval {
		gap := tracker.GapObservation{Seen: o.Seen, GapReport: trail.GapReport{
			Source: SourceDescheduler, Key: s.last.Format(time.RFC3339Nano), OpenedAt: s.last, ClosedAt: o.At,
			Cause: trail.ReasonUnreachable, Detail: s.problem,
		}}
		seen = append(seen, func(tracker.Seen) tracker.Observation { return gap })
		s.c.clearSeenSince(SourceDescheduler)
	}
	s.c.ensureSeenSince(SourceDescheduler, o.At)
	s.last = o.At
	s.view.add(o.At, nodes)
	_, err = s.c.submitObservations(ctx, seen)
	return err
}

func (s *Scraper) readMetrics(ctx context.Context) (tracker.ScrapeObservation, map[trail.LoadKey]trail.LoadPoint, error) {
	body, err := s.target.fetchMetrics(ctx, s.client)
	if err != nil {
		return tracker.ScrapeObservation{}, nil, err
	}
	defer func() { _ = body.Close() }()
	o, nodes, err := decodeScrape(body)
	if err != nil {
		return o, nil, fmt.Errorf("%s: %w", s.target.URL, err)
	}
	o.At, o.Target = s.c.Clock(), SourceDescheduler
	if o.StartedAt.After(o.At.Add(startAhead)) {
		return o, nil, fmt.Errorf("%s: %s is %s, which is to come: its clock or ours is wrong", s.target.URL, familyProcess, o.StartedAt.Format(time.RFC3339))
	}
	return o, nodes, nil
}

// The families that are read.
//
// Source: k8s.io/component-base and client_golang for the process, sigs.k8s.io/descheduler metrics/metrics.go for the build,
// kubevirt-descheduler-plugins plugins/kubevirtmigrationaware/metrics.go for the others.
const (
	familyProcess  = "process_start_time_seconds"
	familyBuild    = "descheduler_build_info"
	familyCooldown = "descheduler_kubevirt_effective_cooldown_seconds"
	familyBlocks   = "descheduler_kubevirt_eviction_blocks_total"
)

// decodeScrape reads the text of a descheduler's metrics.
func decodeScrape(body io.Reader) (tracker.ScrapeObservation, map[trail.LoadKey]trail.LoadPoint, error) {
	families, err := readFamilies(body)
	if err != nil {
		return tracker.ScrapeObservation{}, nil, err
	}
	return decodeFamilies(families)
}

// decodeFamilies reads the metrics of a descheduler. Without the start of its process its counters mean nothing, and
// what has neither a build nor the plugin's metrics is no descheduler: both are errors.
func decodeFamilies(families map[string]*dto.MetricFamily) (tracker.ScrapeObservation, map[trail.LoadKey]trail.LoadPoint, error) {
	o := tracker.ScrapeObservation{Plugin: families[familyCooldown] != nil}
	for _, m := range families[familyBuild].GetMetric() {
		o.Version = collectLabels(m)["DeschedulerVersion"]
	}
	started := 0.0
	for _, m := range families[familyProcess].GetMetric() {
		started = readValue(m)
	}
	switch {
	case families[familyBuild] == nil && !o.Plugin:
		return o, nil, errors.New("no " + familyBuild + ": expected the metrics of a descheduler")
	case !(started > 0 && started < 1e11): // the year 5138
		return o, nil, fmt.Errorf("%s %v: expected the time at which the descheduler was started", familyProcess, started)
	}
	o.StartedAt = time.UnixMilli(int64(math.Round(started * 1000))).UTC()
	var err error
	o.Blocks, err = decodeBlocks(families[familyBlocks])
	return o, decodeNodes(families), err
}

// decodeBlocks reads the counter of blocks, sorted, one entry for each reason, node and namespace. Where Prometheus stands between, the namespace
// is that of the descheduler and the pod's is in exported_namespace.
func decodeBlocks(family *dto.MetricFamily) ([]tracker.BlockCount, error) {
	counts := map[tracker.BlockCount]float64{}
	for _, m := range family.GetMetric() {
		l := collectLabels(m)
		n := readValue(m)
		if !(n >= 0 && n < 1<<53) {
			return nil, fmt.Errorf("%s %v: expected a count", familyBlocks, n)
		}
		counts[tracker.BlockCount{Reason: l["reason"], Node: l["node"], Namespace: cmp.Or(l["exported_namespace"], l["namespace"])}] += n
	}
	out := make([]tracker.BlockCount, 0, len(counts))
	for b, n := range counts {
		b.Count = n
		out = append(out, b)
	}
	slices.SortFunc(out, func(a, b tracker.BlockCount) int {
		return cmp.Or(strings.Compare(a.Node, b.Node), strings.Compare(a.Namespace, b.Namespace), strings.Compare(a.Reason, b.Reason))
	})
	return out, nil
}

func collectLabels(m *dto.Metric) map[string]string {
	out := map[string]string{}
	for _, l := range m.GetLabel() {
		out[l.GetName()] = l.GetValue()
	}
	return out
}

// readValue returns the value of a metric whatever the text says of its type.
func readValue(m *dto.Metric) float64 {
	return m.GetCounter().GetValue() + m.GetGauge().GetValue() + m.GetUntyped().GetValue()
}
