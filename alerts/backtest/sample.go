package backtest

import (
	"fmt"
	"regexp"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/labels"

	"github.com/evictrail/evictrail/metrics"
	"github.com/evictrail/evictrail/trail/rewind"
)

// sampler replays a history into the metrics of "evictrail run" and takes samples of those that rules read.
type sampler struct {
	replay     *rewind.Replay
	metrics    *metrics.Metrics
	collectors []prometheus.Collector
	wanted     map[*prometheus.Desc]string // their names; empty: it is not wanted
	into       *database
	live       map[*series]int // series of the last sample, with its step
	keys       map[string]*series
	settled    time.Time // until when what was stored waits to be counted
}

// newSampler returns a sampler of the metrics of some names.
func newSampler(h *rewind.History, wanted map[string]bool, into *database) *sampler {
	s := &sampler{
		replay: rewind.New(h), into: into, wanted: map[*prometheus.Desc]string{}, live: map[*series]int{},
		keys: map[string]*series{},
	}
	s.metrics = metrics.New(registerer{s, wanted})
	s.metrics.CountSince(h.From)
	s.metrics.CountsBlocks(len(h.Blocks) > 0)
	for _, node := range h.Nodes() {
		s.metrics.Node(node)
	}
	return s
}

// registerer keeps the collectors of the metrics that are wanted.
type registerer struct {
	of     *sampler
	wanted map[string]bool
}

// nameIn finds the name of a metric in the text of its description, which is the only place that has it.
var nameIn = regexp.MustCompile(`fqName: "([^"]*)"`)

// Register implements prometheus.Registerer.
func (r registerer) Register(c prometheus.Collector) error {
	descs := make(chan *prometheus.Desc, 1024)
	go func() {
		c.Describe(descs)
		close(descs)
	}()
	found := false
	for d := range descs {
		name := nameIn.FindStringSubmatch(d.String())
		if len(name) != 2 {
			return fmt.Errorf("metric without a name: %s", d)
		}
		r.of.wanted[d] = ""
		if r.wanted[name[1]] {
			r.of.wanted[d], found = name[1], true
		}
	}
	if found {
		r.of.collectors = append(r.of.collectors, c)
	}
	return nil
}

// MustRegister implements prometheus.Registerer.
func (r registerer) MustRegister(all ...prometheus.Collector) {
	for _, c := range all {
		if err := r.Register(c); err != nil {
			panic(err)
		}
	}
}

// Unregister implements prometheus.Registerer.
func (registerer) Unregister(prometheus.Collector) bool { return false }

// settleTime is for longer than metrics wait to count what was stored.
const settleTime = 2 * time.Minute

// takeSample goes on to a step. Where nothing changed since the last one its sample is that.
func (s *sampler) takeSample(step int) error {
	at := time.UnixMilli(s.into.timeOf(step)).UTC()
	s.into.last = step
	next := s.replay.Next()
	due := !next.IsZero() && !next.After(at)
	if due {
		s.settled = at.Add(settleTime)
	}
	if !due && step > 0 && at.After(s.settled) {
		return nil
	}
	s.metrics.Count(s.replay.Advance(at), at)
	s.metrics.SetState(s.replay.State())
	out := make(chan prometheus.Metric, 1024)
	go func() {
		for _, c := range s.collectors {
			c.Collect(out)
		}
		close(out)
	}()
	var failed error
	for m := range out {
		if name := s.wanted[m.Desc()]; name != "" && failed == nil {
			failed = s.put(step, name, m)
		}
	}
	for its, seen := range s.live {
		if seen != step {
			its.end(step)
			delete(s.live, its)
		}
	}
	return failed
}

// put adds a sample of a counter or a gauge; rules about histograms are about evictrail itself.
func (s *sampler) put(step int, name string, m prometheus.Metric) error {
	var d dto.Metric
	if err := m.Write(&d); err != nil {
		return fmt.Errorf("read %s: %w", name, err)
	}
	key := name
	for _, l := range d.Label {
		key += "\xff" + l.GetName() + "\xff" + l.GetValue()
	}
	its := s.keys[key]
	if its == nil {
		pairs := []string{model.MetricNameLabel, name}
		for _, l := range d.Label {
			if l.GetValue() != "" {
				pairs = append(pairs, l.GetName(), l.GetValue())
			}
		}
		its = s.into.find(labels.FromStrings(pairs...))
		s.keys[key] = its
	}
	switch {
	case d.Counter != nil:
		its.set(step, d.Counter.GetValue())
	case d.Gauge != nil:
		its.set(step, d.Gauge.GetValue())
	default:
		return fmt.Errorf("read %s: neither a counter nor a gauge", name)
	}
	s.live[its] = step
	return nil
}
