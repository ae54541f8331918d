package collector

import (
	"context"
	"slices"
	"time"

	"github.com/evictrail/evictrail/trail"
)

const (
	silentSince = 30 * time.Second // of a first list that nothing hinders, and that does not come: then it is a gap, too
	reportAgain = time.Minute      // between two reports of a gap that is open: another replica may have covered it until now
)

// openGaps are the gaps of sources that this run has not seen yet. They are the owner goroutine's.
type openGaps struct {
	of         map[string][]trail.GapReport // by source
	reportedAt map[string]time.Time
}

func newOpenGaps(resumed []trail.GapReport) openGaps {
	o := openGaps{of: map[string][]trail.GapReport{}, reportedAt: map[string]time.Time{}}
	for _, g := range resumed {
		o.of[g.Source] = append(o.of[g.Source], g)
	}
	return o
}

// reportUnseen records a gap for each source that could not be seen since this run began. A gap of an earlier run that is open still goes on.
func (c *Collector) reportUnseen(ctx context.Context, now time.Time) {
	for _, w := range c.neverSynced() {
		if since := now.Sub(w.Since); since < c.UnseenAfter || w.Problem == "" && since < silentSince || now.Sub(c.gaps.reportedAt[w.Source]) < reportAgain {
			continue
		}
		if len(c.gaps.of[w.Source]) == 0 {
			c.gaps.of[w.Source] = []trail.GapReport{c.gapOf(w)}
		}
		c.gaps.reportedAt[w.Source] = now
		for _, g := range c.gaps.of[w.Source] {
			c.observeGap(ctx, now, g)
		}
	}
}

// gapOf returns the gap of a source that has not been seen since this run began or, where that is known, since it was last seen before.
func (c *Collector) gapOf(w trail.WatchSign) trail.GapReport {
	opened := c.started
	if last, known := c.LastSeen[w.Source]; known && c.wasAway {
		opened = last
	}
	g := trail.GapReport{Source: w.Source, Key: opened.UTC().Format(time.RFC3339Nano), OpenedAt: opened, Cause: trail.ReasonUnreachable, Detail: w.Cause}
	if w.Cause == causeForbidden || w.Cause == causeUnauthorized {
		g.Cause = trail.ReasonForbidden
	}
	return g
}

// closeUnseen records that the gaps of a source are over, and reports whether there were any.
func (c *Collector) closeUnseen(ctx context.Context, source string, now time.Time) bool {
	open := c.gaps.of[source]
	delete(c.gaps.of, source)
	for _, g := range open {
		g.ClosedAt = now
		c.observeGap(ctx, now, g)
	}
	return len(open) > 0
}

// neverSynced returns the watches whose first list was not taken in this run.
func (c *Collector) neverSynced() []trail.WatchSign {
	c.mu.Lock()
	defer c.mu.Unlock()
	var out []trail.WatchSign
	for _, f := range c.feeds {
		if !f.synced && !f.absent {
			out = append(out, f.newWatchSign())
		}
	}
	return out
}

// isComplete reports whether every source is seen that is not known to be unseen.
func (c *Collector) isComplete() bool {
	all := c.Watches()
	unseen := slices.DeleteFunc(slices.Clone(all), func(w trail.WatchSign) bool { return w.Synced })
	return len(unseen) < len(all) && !slices.ContainsFunc(unseen, func(w trail.WatchSign) bool { return c.gaps.reportedAt[w.Source].IsZero() })
}
