package collector

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/evictrail/evictrail/trail"
	"github.com/evictrail/evictrail/trail/tracker"
)

// LoadSource reads how loaded nodes were.
type LoadSource interface {
	// Origin names it. Within a collector there is one of each.
	Origin() trail.LoadOrigin
	// Loads returns the samples of some nodes, from a time to another. Beside an error stands what was learned all the same; metrics that it does not have for the
	// error's sake are trail.LackUnanswered.
	Loads(ctx context.Context, nodes map[string]bool, from, to time.Time) (trail.Loads, error)
}

// The bounds of looking at the load of nodes.
const (
	lookEvery    = 30 * time.Second // between two looks
	lookWithin   = time.Minute      // longest time that a look takes
	lookFor      = 6 * time.Hour    // how long after its end a migration is looked at: what happened while nobody could look
	lookWindow   = time.Hour        // the samples of how long are asked for at once, at most
	looksAtOnce  = 6                // windows of a look; the rest has time until the next one
	partlyFor    = 10 * time.Minute // how long a moment waits for what is not known of it, where something is, or the origin says that it has nothing
	unansweredAt = lookFor - 30*time.Minute
)

// LoadContext looks at how loaded the nodes of migrations were at the moments that matter. Which those are, and what was recorded of them before, the rows
// of migrations say: nothing is remembered here, and what was missed while evictrail was not running is asked for later. It is not safe for concurrent use.
type LoadContext struct {
	c       *Collector
	moved   func(ctx context.Context, since time.Time) ([]trail.Moved, error)
	sources []LoadSource
	said    map[trail.LoadOrigin]bool // that an origin does not answer
}

// NewLoadContext makes one that hands what it reads to the collector. moved returns the migrations that go on or have ended since a time.
func (c *Collector) NewLoadContext(moved func(context.Context, time.Time) ([]trail.Moved, error), sources ...LoadSource) *LoadContext {
	return &LoadContext{c: c, moved: moved, sources: sources, said: map[trail.LoadOrigin]bool{}}
}

// Run looks at an interval until ctx ends. Its only error is that of ctx.
func (l *LoadContext) Run(ctx context.Context) error {
	tick := time.NewTicker(lookEvery)
	defer tick.Stop()
	failed := false
	for {
		select {
		case <-tick.C:
		case <-ctx.Done():
			return ctx.Err()
		}
		looking, cancel := context.WithTimeout(ctx, lookWithin)
		err := l.Look(looking, false)
		cancel()
		switch {
		case ctx.Err() != nil:
			return ctx.Err()
		case err != nil && !failed:
			l.c.Log.Warn("node load not looked at, trying again", "err", err)
		case err == nil && failed:
			l.c.Log.Info("node load looked at again")
		}
		failed = err != nil
	}
}

// Look reads what is due, and returns when the collector has taken it. The last look of a recording takes what it can get. That a source does not answer is no error:
// it is logged, and tried again.
func (l *LoadContext) Look(ctx context.Context, last bool) error {
	now := l.c.Clock()
	moved, err := l.moved(ctx, now.Add(-lookFor))
	if err != nil {
		return err
	}
	for _, source := range l.sources {
		windows := windowsOf(moved, source.Origin(), now, last)
		if len(windows) > looksAtOnce && !last {
			windows = windows[:looksAtOnce]
		}
		for _, w := range windows {
			seen, err := l.readWindow(ctx, source, w, now, last)
			l.logSourceState(source.Origin(), err)
			if _, err := l.c.submitObservations(ctx, seen); err != nil {
				return fmt.Errorf("hand over node load: %w", err)
			}
			if err != nil && len(seen) == 0 {
				break // it does not answer: neither would it about the others
			}
		}
	}
	return nil
}

// logSourceState logs how a source answered when that is other than before.
func (l *LoadContext) logSourceState(origin trail.LoadOrigin, err error) {
	switch {
	case err != nil && !l.said[origin]:
		l.c.Log.Warn("node load not read, trying again", "origin", origin, "err", err)
	case err == nil && l.said[origin]:
		l.c.Log.Info("node load read again", "origin", origin)
	}
	l.said[origin] = err != nil
}

// window is a time of which samples are asked for at once.
type window struct {
	from, to time.Time
	of       []trail.Occasion
}

// windowsOf returns what a source has not reported about yet, in windows in the order of time.
func windowsOf(moved []trail.Moved, origin trail.LoadOrigin, now time.Time, last bool) []window {
	var due []trail.Occasion
	for _, m := range moved {
		for _, o := range m.Occasions(now, last) {
			if !m.Has(o, origin) {
				due = append(due, o)
			}
		}
	}
	slices.SortStableFunc(due, func(a, b trail.Occasion) int {
		from, _ := a.Span()
		than, _ := b.Span()
		return cmp.Or(from.Compare(than), strings.Compare(a.MigrationUID, b.MigrationUID))
	})
	var out []window
	for _, o := range due {
		from, to := o.Span()
		k := len(out) - 1
		if k < 0 || to.Sub(out[k].from) > lookWindow {
			out = append(out, window{from: from, to: to})
			k++
		}
		if to.After(out[k].to) {
			out[k].to = to
		}
		out[k].of = append(out[k].of, o)
	}
	for i := range out {
		if out[i].to.After(now) {
			out[i].to = now
		}
	}
	return out
}

// readWindow asks a source about a window, and returns what is to be recorded by now.
func (l *LoadContext) readWindow(ctx context.Context, source LoadSource, w window, now time.Time, last bool) ([]Observation, error) {
	nodes := map[string]bool{}
	for _, o := range w.of {
		for _, n := range []string{o.SourceNode, o.TargetNode} {
			if n != "" {
				nodes[n] = true
			}
		}
	}
	loads, failed := source.Loads(ctx, nodes, w.from, w.to)
	var out []Observation
	for _, occasion := range w.of {
		o := tracker.LoadObservation{Of: occasion, Origin: source.Origin(), Readings: loads.Read(occasion)}
		if len(o.Readings) == 0 || !last && !isSettled(o, failed != nil, now) {
			continue
		}
		out = append(out, func(seen tracker.Seen) tracker.Observation {
			o.Seen = seen
			return o
		})
	}
	return out, failed
}

// isSettled reports whether what was read about a moment is all that there will be. What is not known may come: Prometheus takes late samples, and where it does
// not answer now, it may in an hour; of the descheduler's metrics another replica may know what this one did not read.
func isSettled(o tracker.LoadObservation, failed bool, now time.Time) bool {
	age := now.Sub(o.Of.At)
	switch {
	case !failed && o.Known():
		return true
	case o.Known() || !failed && o.Origin == trail.OriginPrometheus:
		return age > partlyFor
	}
	return age > unansweredAt
}
