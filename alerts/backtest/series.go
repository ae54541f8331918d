package backtest

import (
	"context"
	"math"
	"slices"
	"sort"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/histogram"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/model/value"
	"github.com/prometheus/prometheus/promql"
	"github.com/prometheus/prometheus/storage"
	"github.com/prometheus/prometheus/tsdb/chunkenc"
	"github.com/prometheus/prometheus/util/annotations"
)

// database has samples of series at each step of a period. Most values do not change for hours: a series is kept as the
// steps at which it changes.
type database struct {
	from, step int64 // ms
	last       int   // step up to which there are samples
	series     map[uint64]*series
	byName     map[string][]*series
}

// series is the samples of one series.
type series struct {
	labels  labels.Labels
	changes []change // in the order of their steps
}

// change is a value that holds from a step on.
type change struct {
	step  int
	value float64
	ended bool // the series has a stale marker at this step, and nothing after it
}

func newDatabase(from, step int64) *database {
	return &database{from: from, step: step, last: -1, series: map[uint64]*series{}, byName: map[string][]*series{}}
}

// timeOf returns the time of a step.
func (d *database) timeOf(step int) int64 { return d.from + int64(step)*d.step }

// find returns the series with some labels, a new one where there is none.
func (d *database) find(of labels.Labels) *series {
	hash := of.Hash()
	s := d.series[hash]
	if s == nil {
		s = &series{labels: of}
		d.series[hash] = s
		name := of.Get(model.MetricNameLabel)
		d.byName[name] = append(d.byName[name], s)
	}
	return s
}

// set has a series hold a value from a step on.
func (s *series) set(step int, v float64) {
	if n := len(s.changes); n == 0 || s.changes[n-1].ended || s.changes[n-1].value != v {
		s.changes = append(s.changes, change{step: step, value: v})
	}
}

// end ends a series at a step, as a scrape does that does not find it any more.
func (s *series) end(step int) {
	if n := len(s.changes); n > 0 && !s.changes[n-1].ended {
		s.changes = append(s.changes, change{step: step, value: math.Float64frombits(value.StaleNaN), ended: true})
	}
}

// Querier implements storage.Queryable.
func (d *database) Querier(from, to int64) (storage.Querier, error) {
	first := int((max(from, d.from) - d.from + d.step - 1) / d.step)
	last := -1
	if to >= d.from {
		last = min(int((to-d.from)/d.step), d.last)
	}
	return querier{d, first, last}, nil
}

// querier reads the samples of some steps.
type querier struct {
	of          *database
	first, last int
}

// Select implements storage.Querier. Each of our expressions names its metrics.
func (q querier) Select(_ context.Context, sorted bool, _ *storage.SelectHints,
	matchers ...*labels.Matcher) storage.SeriesSet {
	var found []storage.Series
	for _, m := range matchers {
		if m.Name != model.MetricNameLabel || m.Type != labels.MatchEqual {
			continue
		}
		for _, s := range q.of.byName[m.Value] {
			if s.matches(matchers) {
				found = append(found, view{s, q})
			}
		}
	}
	if sorted {
		slices.SortFunc(found, func(a, b storage.Series) int { return labels.Compare(a.Labels(), b.Labels()) })
	}
	return &seriesSet{found, -1}
}

func (s *series) matches(matchers []*labels.Matcher) bool {
	return !slices.ContainsFunc(matchers, func(m *labels.Matcher) bool { return !m.Matches(s.labels.Get(m.Name)) })
}

// LabelValues implements storage.Querier; an engine does not ask.
func (querier) LabelValues(context.Context, string, *storage.LabelHints, ...*labels.Matcher) ([]string,
	annotations.Annotations, error) {
	return nil, nil, nil
}

// LabelNames implements storage.Querier; an engine does not ask.
func (querier) LabelNames(context.Context, *storage.LabelHints, ...*labels.Matcher) ([]string,
	annotations.Annotations, error) {
	return nil, nil, nil
}

// Close implements storage.Querier.
func (querier) Close() error { return nil }

// seriesSet implements storage.SeriesSet.
type seriesSet struct {
	all []storage.Series
	at  int
}

func (s *seriesSet) Next() bool                      { s.at++; return s.at < len(s.all) }
func (s *seriesSet) At() storage.Series              { return s.all[s.at] }
func (*seriesSet) Err() error                        { return nil }
func (*seriesSet) Warnings() annotations.Annotations { return nil }

// view is a series as a querier sees it.
type view struct {
	of *series
	q  querier
}

func (v view) Labels() labels.Labels { return v.of.labels }

func (v view) Iterator(chunkenc.Iterator) chunkenc.Iterator {
	return &iterator{view: v, step: v.q.first - 1, at: -1}
}

// iterator goes from sample to sample: one at each step while the series goes on.
type iterator struct {
	view
	step int
	at   int // the change that holds at the step; -1: none does yet
}

// Next implements chunkenc.Iterator.
func (i *iterator) Next() chunkenc.ValueType { return i.moveTo(i.step + 1) }

// Seek implements chunkenc.Iterator.
func (i *iterator) Seek(t int64) chunkenc.ValueType { //nolint:govet // it is Prometheus' Seek, not that of package io
	step := i.step
	if d := i.q.of; i.at < 0 || d.timeOf(step) < t {
		step = max(i.q.first, int((t-d.from+d.step-1)/d.step))
	}
	return i.moveTo(step)
}

// moveTo goes to the first sample at a step or after it.
func (i *iterator) moveTo(step int) chunkenc.ValueType {
	changes := i.of.changes
	if i.at < 0 { // the last change at the step or before
		i.at = sort.Search(len(changes), func(k int) bool { return changes[k].step > step }) - 1
	}
	for i.at+1 < len(changes) && changes[i.at+1].step <= step {
		i.at++
	}
	if i.at < 0 || changes[i.at].ended && changes[i.at].step < step { // nothing before the next change
		if i.at+1 == len(changes) {
			return chunkenc.ValNone
		}
		i.at++
		step = changes[i.at].step
	}
	if i.step = step; step > i.q.last {
		return chunkenc.ValNone
	}
	return chunkenc.ValFloat
}

// At implements chunkenc.Iterator.
func (i *iterator) At() (int64, float64) { return i.AtT(), i.of.changes[i.at].value }

// AtHistogram implements chunkenc.Iterator; there are none.
func (i *iterator) AtHistogram(*histogram.Histogram) (int64, *histogram.Histogram) {
	return i.AtT(), nil
}

// AtFloatHistogram implements chunkenc.Iterator; there are none.
func (i *iterator) AtFloatHistogram(*histogram.FloatHistogram) (int64, *histogram.FloatHistogram) {
	return i.AtT(), nil
}

// AtT implements chunkenc.Iterator.
func (i *iterator) AtT() int64 { return i.q.of.timeOf(i.step) }

// AtST implements chunkenc.Iterator; start times are not known.
func (*iterator) AtST() int64 { return 0 }

// Err implements chunkenc.Iterator.
func (*iterator) Err() error { return nil }

// write adds the values of a recording rule at some steps.
func (d *database) write(name string, values promql.Matrix, first, last int) {
	written := map[*series]bool{}
	for _, v := range values {
		b := labels.NewBuilder(v.Metric)
		b.Set(model.MetricNameLabel, name)
		s := d.find(b.Labels())
		written[s] = true
		next := first
		for _, p := range v.Floats {
			step := int((p.T - d.from) / d.step)
			if step > next {
				s.end(next)
			}
			s.set(step, p.F)
			next = step + 1
		}
		if next <= last {
			s.end(next)
		}
	}
	for _, s := range d.byName[name] { // those that have no value any more
		if !written[s] {
			s.end(first)
		}
	}
}
