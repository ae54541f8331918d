package trail

import (
	"cmp"
	"math"
	"slices"
	"time"
)

// Occasion is a moment of a migration at which the load of its nodes matters.
type Occasion struct {
	Namespace, VMI, VMIUID  string
	Migration, MigrationUID string
	SourceNode, TargetNode  string // empty where unknown
	Moment                  LoadMoment
	After                   time.Duration // of MomentAfter: how long after the end; what names it, also where At is earlier
	EndedAt                 time.Time     // of MomentAfter: when the migration ended
	LeftAt                  time.Time     // of MomentAfter: when the guest left the target again, zero while it is there
	At                      time.Time     // UTC
	Final                   bool          // none comes after it
}

// knownNodes returns the nodes that are known.
func (o Occasion) knownNodes() []string {
	return slices.DeleteFunc(slices.Compact([]string{o.SourceNode, o.TargetNode}), func(n string) bool { return n == "" })
}

// looksAfter is how long after a move it is looked at what came of it, in ascending order: the verdict holds from the last one on.
var looksAfter = []time.Duration{5 * time.Minute, 15 * time.Minute}

// The bounds of samples around a moment.
const (
	loadIsStale    = 5 * time.Minute  // a sample older than that says nothing about the moment; Prometheus' own bound
	arrivalShows   = 5 * time.Minute  // how long after a guest came its node may first show it: the load is averaged, and the descheduler looks once in a cycle
	nextWithin     = 2 * time.Minute  // how long after a moment the next sample may come
	departureShows = time.Minute      // how long after a guest left its node may still show it: what the descheduler acted on is read when it is gone
	loadLooksBack  = 30 * time.Minute // how far before an attempt the last time is looked for at which its node was over
	// LoadSettles is how long after a moment the samples around it are there: the next one was scraped, and can be asked for.
	LoadSettles = 90 * time.Second
)

// Moved is a migration as far as it says when the load of its nodes matters.
type Moved struct {
	Migration
	RequestedAt time.Time           // when its evacuation was asked for, as well as it is known; zero outside of any
	LeftAt      time.Time           // when the guest left its target again, zero while it is there
	Looked      map[string]struct{} // the moments that were recorded, each as What and origin with a space between
}

// Has reports whether an origin has reported about an occasion.
func (m Moved) Has(o Occasion, origin LoadOrigin) bool {
	_, has := m.Looked[o.What()+" "+string(origin)]
	return has
}

// Occasions returns the moments of a migration at which the load of its nodes matters, in their order, as far as they have come by a time. While its target is not
// known there are none: it is looked at both nodes at once. Where the time is the last that there will be, what would come later is looked at then.
func (m Moved) Occasions(now time.Time, last bool) []Occasion {
	if m.TargetNode == "" && m.FinishedAt.IsZero() {
		return nil
	}
	var out []Occasion
	add := func(moment LoadMoment, at time.Time, after time.Duration) {
		if at.IsZero() {
			return
		}
		o := Occasion{
			Namespace: m.Namespace, VMI: m.VMI, VMIUID: m.VMIUID, Migration: m.Name, MigrationUID: m.UID, SourceNode: m.SourceNode, TargetNode: m.TargetNode,
			Moment: moment, At: at, After: after,
		}
		if moment == MomentAfter {
			o.EndedAt, o.LeftAt, o.At = m.bestEndTime(), m.LeftAt, at.Add(after)
			o.Final = after == looksAfter[len(looksAfter)-1]
		}
		if last && o.At.After(now) && !m.bestEndTime().After(now) {
			o.At, o.Final = now, true
		}
		if cut := len(out) > 0 && out[len(out)-1].Final; !cut && (last || !o.At.Add(LoadSettles).After(now)) && !o.At.After(now) {
			out = append(out, o)
		}
	}
	if m.Attempt <= 1 {
		asked := m.RequestedAt
		if asked.IsZero() {
			asked = m.CreatedAt
		}
		add(MomentRequest, asked, 0)
	}
	add(MomentAttempt, m.SchedulingAt, 0)
	add(MomentEnd, m.bestEndTime(), 0)
	if m.Outcome == OutcomeSucceeded {
		for _, after := range looksAfter {
			add(MomentAfter, m.bestEndTime(), after)
		}
	}
	return out
}

// bestEndTime returns the end by the best clock, zero while the migration goes on.
func (m *Migration) bestEndTime() time.Time {
	if m.FinishedAt.IsZero() || m.EndSeenAt.IsZero() {
		return m.FinishedAt
	}
	return m.EndSeenAt
}

// Migrates returns the UID of the migration.
func (o Occasion) Migrates() string { return o.MigrationUID }

// Span returns from when to when samples can matter to the occasion.
func (o Occasion) Span() (from, to time.Time) {
	from, to = o.At.Add(-loadIsStale), o.At
	switch o.Moment {
	case MomentRequest:
		to = to.Add(nextWithin)
	case MomentAttempt:
		from, to = o.At.Add(-loadLooksBack), to.Add(nextWithin)
	case MomentAfter:
		if o.EndedAt.Before(from) {
			from = o.EndedAt
		}
	case MomentEnd:
	}
	return from, to
}

// LoadPoint is a sample of a metric of a node. The threshold is nil where the metric has none.
type LoadPoint struct {
	At        time.Time
	Value     float64
	Threshold *float64
}

// computeExcess returns by how much the value is above the threshold, below it where negative; NaN where either is not known.
func (p LoadPoint) computeExcess() float64 {
	if p.Threshold == nil {
		return math.NaN()
	}
	return p.Value - *p.Threshold
}

// LoadKey names a series of samples.
type LoadKey struct{ Node, Metric string }

// Loads is what an origin reports about a time.
type Loads struct {
	Origin  LoadOrigin
	Metrics []LoadMetric            // in the order in which they are shown
	Points  map[LoadKey][]LoadPoint // in the order of their times
}

// LoadMetric is a metric that an origin was asked for.
type LoadMetric struct {
	Name string
	Lack LoadLack // why there is none of it; empty where there is
}

// Read picks the samples that matter to an occasion, and says of each metric of each node that has none why.
func (l Loads) Read(o Occasion) []Reading {
	var out []Reading
	for _, node := range o.knownNodes() {
		for _, metric := range l.Metrics {
			points := l.Points[LoadKey{node, metric.Name}]
			found := o.selectReadings(node, points)
			for i := range found {
				found[i].Node, found[i].Metric = node, metric.Name
			}
			if len(found) == 0 {
				found = []Reading{{Node: node, Metric: metric.Name, Sample: SampleBefore, Lack: cmp.Or(metric.Lack, LackNoSample)}}
			}
			out = append(out, found...)
		}
	}
	return out
}

// selectReadings returns the samples of one metric of a node that matter to the occasion, each once. What has no threshold is shown as it was at the moment; of what has one it
// also matters how it went around it.
func (o Occasion) selectReadings(node string, points []LoadPoint) []Reading {
	var before, next, peak, lastOver *LoadPoint
	for i := range points {
		p := &points[i]
		switch {
		case p.At.After(o.At):
			if next == nil && p.Threshold != nil && (o.Moment == MomentRequest || o.Moment == MomentAttempt) && p.At.Sub(o.At) <= nextWithin {
				next = p
			}
			continue
		case o.At.Sub(p.At) <= loadIsStale && (o.Moment != MomentAfter || p.At.After(o.EndedAt)):
			before = p
		}
		if o.showsArrival(node, p) && (peak == nil || p.computeExcess() > peak.computeExcess()) {
			peak = p
		}
		if o.Moment == MomentAttempt && node == o.SourceNode && o.At.Sub(p.At) <= loadLooksBack && p.computeExcess() > 0 {
			lastOver = p
		}
	}
	if before != nil && before.computeExcess() > 0 || next != nil && next.computeExcess() > 0 {
		lastOver = nil // it is still
	}
	if peak == before {
		peak = nil
	}
	var out []Reading
	for _, s := range []struct {
		sample LoadSample
		point  *LoadPoint
	}{{SampleLastOver, lastOver}, {SamplePeak, peak}, {SampleBefore, before}, {SampleNext, next}} {
		if s.point != nil {
			out = append(out, s.point.newReading(s.sample))
		}
	}
	return out
}

// showsArrival reports whether a sample of a node says how loaded the target was soon after the guest had come, and while it was there.
func (o Occasion) showsArrival(node string, p *LoadPoint) bool {
	return o.Moment == MomentAfter && node == o.TargetNode && p.At.After(o.EndedAt) && p.At.Sub(o.EndedAt) <= arrivalShows &&
		!isLongGone(p.At, o.LeftAt) && !math.IsNaN(p.computeExcess())
}

// isLongGone reports whether a guest that left a node, zero where it has not, had left it so long before a time that a sample from then no longer shows it.
func isLongGone(at, leftAt time.Time) bool {
	return !leftAt.IsZero() && at.Sub(leftAt) > departureShows
}

func (p LoadPoint) newReading(sample LoadSample) Reading {
	r := Reading{Sample: sample, At: p.At.UTC().Truncate(TimeResolution)}
	if math.IsNaN(p.Value) || math.IsInf(p.Value, 0) {
		r.Lack = LackNotANumber
		return r
	}
	r.Value = &p.Value
	if p.Threshold != nil && !math.IsNaN(*p.Threshold) && !math.IsInf(*p.Threshold, 0) {
		r.Threshold = p.Threshold
	}
	return r
}
