package main

import (
	"context"
	"log/slog"
	"time"

	"github.com/evictrail/evictrail/metrics"
	"github.com/evictrail/evictrail/store/foresight"
	"github.com/evictrail/evictrail/store/pg"
	"github.com/evictrail/evictrail/store/tally"
)

// chore is what the replica that derives does beside that, from time to time.
type chore struct {
	first, every time.Duration // until it is done first, and from then on
	do           func(ctx context.Context, at time.Time)
}

// run does a chore while this replica leads, until ctx ends.
func (c chore) run(ctx context.Context, leads func() bool) error {
	next := time.NewTimer(c.first)
	defer next.Stop()
	for {
		select {
		case <-next.C:
			if leads() {
				c.do(ctx, nowUTC())
			}
			next.Reset(c.every)
		case <-ctx.Done():
			return nil
		}
	}
}

// trouble says once what is in the way of a chore.
type trouble struct {
	metrics *metrics.Metrics
	log     *slog.Logger

	said string // what was last said
}

// isNew reports whether the error of an operation of the store is to be said, and counts it then: it is not that which was
// said last. Nil: nothing is in the way.
func (t *trouble) isNew(ctx context.Context, op string, err error) bool {
	switch {
	case ctx.Err() != nil:
		return false
	case err == nil:
		t.said = ""
		return false
	case err.Error() == t.said:
		return false
	}
	t.metrics.StoreFailed(op, err)
	t.said = err.Error()
	return true
}

// How often days are counted: what a fleet is compared by need not be of this minute.
const (
	countFirst = 2 * time.Minute
	countEvery = 10 * time.Minute
)

// dayCounter counts what happened on each day.
type dayCounter struct {
	db      *pg.DB
	cluster string
	trouble
}

// countDays counts the days that are due at a time. What is in the way is logged once.
func (c *dayCounter) countDays(ctx context.Context, at time.Time) {
	n, err := tally.Count(ctx, c.db, c.cluster, at)
	if err == nil {
		c.log.Debug("days counted", "count", n)
	}
	if c.isNew(ctx, metrics.OpCount, err) {
		c.log.Warn("days are not counted, trying again in ten minutes", "err", err)
	}
}

// forecastEvery is how often new drains are looked for: a drain of a few VMs takes minutes.
const forecastEvery = 30 * time.Second

// drainForecaster forecasts each drain when it begins, and counts how forecasts fared.
type drainForecaster struct {
	db      *pg.DB
	cluster string
	trouble
}

// forecastDrains forecasts drains that began, and counts the forecasts of those that ended. What is in the way is logged
// once.
func (f *drainForecaster) forecastDrains(ctx context.Context, at time.Time) {
	_, err := foresight.Record(ctx, f.db, f.cluster, at)
	var results []string
	if err == nil {
		results, err = foresight.Judge(ctx, f.db, f.cluster, at)
	}
	for _, result := range results {
		f.metrics.DrainForecasts.WithLabelValues(result).Inc()
	}
	if f.isNew(ctx, metrics.OpForecast, err) {
		f.log.Warn("drains are not forecast, trying again in half a minute", "err", err)
	}
}
