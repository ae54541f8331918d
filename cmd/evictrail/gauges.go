package main

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/evictrail/evictrail/metrics"
	"github.com/evictrail/evictrail/store"
)

// stateEvery is the time between two readings of the state that the gauges show: less than that between two scrapes.
const stateEvery = 10 * time.Second

// stateTimeout bounds one reading: a database that hangs is one that does not answer.
const stateTimeout = 30 * time.Second

// upkeepEvery is how many of these readings pass until it is looked at again how the database is kept.
const upkeepEvery = 6

// keepGauges reads the state of the cluster again and again until ctx ends. While the database is away the gauges stay as
// they were read last.
func keepGauges(ctx context.Context, s *store.Store, cluster string, m *metrics.Metrics, log *slog.Logger) error {
	tick := time.NewTicker(stateEvery)
	defer tick.Stop()
	failed := false
	for i := 0; ; i++ {
		began := time.Now()
		reading, cancel := context.WithTimeout(ctx, stateTimeout)
		err := showState(reading, s, cluster, m, nowUTC())
		if i%upkeepEvery == 0 {
			err = errors.Join(err, showUpkeep(reading, s, cluster, m, nowUTC()))
		}
		cancel()
		switch {
		case ctx.Err() != nil:
			return nil
		case err != nil && !failed:
			log.Warn("gauges not read, trying again", "err", err)
		case err == nil && failed:
			log.Info("gauges read again")
		}
		log.Debug("gauges read", "elapsed", time.Since(began))
		failed = err != nil
		select {
		case <-tick.C:
		case <-ctx.Done():
			return nil
		}
	}
}

// showState reads how it stands with a cluster at a time, and shows it.
func showState(ctx context.Context, s *store.Store, cluster string, m *metrics.Metrics, at time.Time) error {
	state, err := s.State(ctx, cluster, at)
	if err != nil {
		m.StoreFailed(metrics.OpState, err)
		return err
	}
	m.SetState(state)
	return nil
}

// showUpkeep reads how the database is kept, and shows it. At is the time for which partitions are needed.
func showUpkeep(ctx context.Context, s *store.Store, cluster string, m *metrics.Metrics, at time.Time) error {
	upkeep, err := s.Upkeep(ctx, cluster)
	if err != nil {
		m.StoreFailed(metrics.OpState, err)
		return err
	}
	m.SetUpkeep(upkeep, at)
	return nil
}
