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
		if err := l.lookAtNodes(ctx, source, moved, now, last); err != nil {
			return err
		}
		if transfers, is := source.(TransferSource); is {
			if err := l.lookAtTransfers(ctx, transfers, moved, now, last); err != nil {
				return err
			}
		}
	}
	return nil
}

// handOver passes the collector what was read in a window. Its answer is to go on with the next one: a source that does not answer would not about the others either.
func (l *LoadContext) handOver(ctx context.Context, source LoadSource, seen []Observation, failed error) (goOn bool, err error) {
	l.logSourceState(source.Origin(), failed)
	if _, err := l.c.submitObservations(ctx, seen); err != nil {
		return false, fmt.Errorf("hand over node load: %w", err)
	}
	return failed == nil || len(seen) > 0, nil
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

// spanned is something about a migration that is asked for.
type spanned interface {
	Span() (from, to time.Time) // when samples can matter
	Migrates() string           // the UID of the migration
}

// window is a time of which samples are asked for at once.
type window[S spanned] struct {
	from, to time.Time
	of       []S
}

// eachWindow puts what is due into windows, in the order of time, and reads one after the other, as many as a look may. It ends early where read says so.
func eachWindow[S spanned](due []S, now time.Time, last bool, read func(window[S]) (goOn bool, err error)) error {
	windows := windowsOf(due, now)
	if len(windows) > looksAtOnce && !last {
		windows = windows[:looksAtOnce]
	}
	for _, w := range windows {
		if goOn, err := read(w); err != nil || !goOn {
			return err
		}
	}
	return nil
}

// windowsOf returns what is due in windows, in the order of time.
func windowsOf[S spanned](due []S, now time.Time) []window[S] {
	slices.SortStableFunc(due, func(a, b S) int {
		from, _ := a.Span()
		than, _ := b.Span()
		return cmp.Or(from.Compare(than), strings.Compare(a.Migrates(), b.Migrates()))
	})
	var out []window[S]
	for _, o := range due {
		from, to := o.Span()
		k := len(out) - 1
		if k < 0 || to.Sub(out[k].from) > lookWindow {
			out = append(out, window[S]{from: from, to: to})
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

// lookAtNodes reads how loaded nodes were at the moments that a source has not reported about yet.
func (l *LoadContext) lookAtNodes(ctx context.Context, source LoadSource, moved []trail.Moved, now time.Time, last bool) error {
	var due []trail.Occasion
	for _, m := range moved {
		for _, o := range m.Occasions(now, last) {
			if !m.Has(o, source.Origin()) {
				due = append(due, o)
			}
		}
	}
	return eachWindow(due, now, last, func(w window[trail.Occasion]) (bool, error) {
		seen, failed := readWindow(ctx, source, w, now, last)
		return l.handOver(ctx, source, seen, failed)
	})
}

// readWindow asks a source about a window, and returns what is to be recorded by now.
func readWindow(ctx context.Context, source LoadSource, w window[trail.Occasion], now time.Time, last bool) ([]Observation, error) {
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
		if len(o.Readings) == 0 || !last && !isSettled(o.Known(), o.Origin, failed != nil, now.Sub(occasion.At)) {
			continue
		}
		out = append(out, func(seen tracker.Seen) tracker.Observation {
			o.Seen = seen
			return o
		})
	}
	return out, failed
}

// isSettled reports whether what was read about a moment of such an age is all that there will be. What is not known may come: Prometheus takes late samples, and where it does
// not answer now, it may in an hour; of the descheduler's metrics another replica may know what this one did not read.
func isSettled(known bool, origin trail.LoadOrigin, failed bool, age time.Duration) bool {
	switch {
	case !failed && known:
		return true
	case known || !failed && origin == trail.OriginPrometheus:
		return age > partlyFor
	}
	return age > unansweredAt
}
