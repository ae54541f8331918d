package main

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/evictrail/evictrail/collector"
	"github.com/evictrail/evictrail/store"
	"github.com/evictrail/evictrail/store/pg"
	"github.com/evictrail/evictrail/store/spool"
	"github.com/evictrail/evictrail/trail"
	"github.com/evictrail/evictrail/trail/tracker"
)

// recorder records one cluster: a collector fills the spool, and what is in it is drained into the database when that is there.
type recorder struct {
	f          *runFlags
	db         *database
	watching   *watcher
	thresholds trail.Thresholds
	config     collector.Config // what all collectors have
	log        *slog.Logger
	addr       string // where we listen

	started      time.Time
	met          chan struct{} // closed once the cluster was found to be the one that is recorded
	meet         sync.Once     // closes it
	unidentified sync.Once     // logs that nobody may say which cluster it is
	cluster      string
	sink         *store.ClusterStore
	spool        atomic.Pointer[spool.Spool] // nil while the cluster is not known

	stores  writeLog                           // of what is drained
	reports writeLog                           // of reports
	leading *leadership                        // who derives
	others  atomic.Pointer[trail.ClusterSigns] // what was read last of all replicas; nil: nothing yet
}

// run records until ctx ends. What was seen then is on disk, and in the database where that takes it.
func (r *recorder) run(ctx context.Context) error {
	cluster, err := r.f.clusterName(ctx, r.config.REST, r.log)
	if err != nil {
		return ignoreCancel(ctx, err)
	}
	s, err := r.f.spool.openSpool(cluster, r.config.Metrics, r.log)
	if err != nil {
		return err
	}
	defer func() { _ = s.Close() }()
	r.met = make(chan struct{})
	r.cluster, r.sink = cluster, r.db.For(cluster, r.f.leader.replica)
	r.spool.Store(s)
	r.watching.name.Store(&cluster)
	storing, stored := context.WithCancel(context.WithoutCancel(ctx))
	defer stored()
	g, ctx := errgroup.WithContext(ctx)
	ended := make(chan struct{}) // the collectors have
	g.Go(func() error {
		defer close(ended)
		return r.collectFacts(ctx, s)
	})
	g.Go(func() error {
		defer stored()
		return r.drainSpool(storing, s, ended)
	})
	g.Go(func() error {
		if !r.waitForDatabase(ctx) {
			return nil
		}
		g.Go(func() error { return keepGauges(ctx, r.db.Store, cluster, r.config.Metrics, r.log) })
		if !r.waitForIdentity(ctx) {
			return nil
		}
		k := &keeper{
			store: r.db.Store, cluster: cluster, retained: r.f.retained.Load, metrics: r.config.Metrics, log: r.log,
		}
		seal := &sealer{db: r.db.DB, cluster: r.cluster, anchor: r.f.evidence.anchor, trouble: trouble{metrics: r.config.Metrics, log: r.log}}
		days := &dayCounter{db: r.db.DB, cluster: r.cluster, trouble: trouble{metrics: r.config.Metrics, log: r.log}}
		drains := &drainForecaster{db: r.db.DB, cluster: r.cluster, trouble: trouble{metrics: r.config.Metrics, log: r.log}}
		for _, c := range []chore{
			{retainFirst, retainEvery, k.dropExpired}, {sealFirst, sealEvery, seal.sealDays}, {countFirst, countEvery, days.countDays},
			{forecastEvery, forecastEvery, drains.forecastDrains},
		} {
			g.Go(func() error { return c.run(ctx, r.sink.Leads) })
		}
		if err := r.notifyAll(ctx, g); err != nil {
			return err
		}
		return leader{r.sink, r.thresholds, r.config.Metrics, r.log, r.leading}.run(ctx, storing, r.config.REST, r.f.leader)
	})
	g.Go(func() error { r.monitorSpool(ctx, s); return nil })
	g.Go(func() error { r.reportStatus(ctx); return nil })
	g.Go(func() error { r.showStatus(ctx); return nil })
	return g.Wait()
}

// waitForDatabase waits for the database; false when ctx ended before.
func (r *recorder) waitForDatabase(ctx context.Context) bool {
	select {
	case <-r.db.ready:
		return true
	case <-ctx.Done():
		return false
	}
}

// waitForIdentity waits until the cluster was found to be the one that is recorded, or for long enough; false when ctx ended before. Where another cluster is recorded
// under the name, the replica that derives must not be deposed. A cluster that cannot be reached must not keep what is recorded from being derived.
func (r *recorder) waitForIdentity(ctx context.Context) bool {
	select {
	case <-r.met:
	case <-time.After(r.f.patience.silence + 10*time.Second):
	case <-ctx.Done():
		return false
	}
	return true
}

// askedWithin is how long a database that is asked what it knew has to answer once evictrail is to stop.
const askedWithin = 5 * time.Second

func isClosed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

// drainSpool stores what waits in the spool, in order. Before anything is stored the database is asked what it knew, where the spool does not, and of which cluster. Its
// error is that another cluster is being recorded under the name.
func (r *recorder) drainSpool(ctx context.Context, s *spool.Spool, ended <-chan struct{}) error {
	select {
	case <-r.db.ready:
	case <-ended:
		if !r.db.isReady() {
			return nil
		}
	}
	if d := s.Doubt(); d != nil && !d.Asked {
		asking, cancel := context.WithCancel(ctx)
		go func() { // who is stopped as soon as it began asks once: what was seen is stored
			select {
			case <-ended:
				time.AfterFunc(askedWithin, cancel)
			case <-asking.Done():
			}
		}()
		_, err := retryUntilAvailable(asking, r.log, "database does not answer what it has, trying again",
			func() (struct{}, error) { return struct{}{}, r.answerSpoolDoubt(asking, s) }, func(error) bool { return !isClosed(ended) })
		cancel()
		if err != nil {
			return nil
		}
	}
	e := epochs{r, s}
	if err := e.respondToError(e.reconcileEpoch(ctx), r.started); err != nil {
		return err
	}
	storing := collector.Storing{Sink: notedSink{rewindable{r.sink, e}, &r.stores}, Log: r.log, Metrics: r.config.Metrics, Clock: r.config.Clock}
	storing.Drain(ctx, s, ended)
	return nil
}

// answerSpoolDoubt passes the spool what the database knew before anything was stored.
func (r *recorder) answerSpoolDoubt(ctx context.Context, s *spool.Spool) error {
	alive, err := r.db.LastAlive(ctx, r.cluster)
	if err != nil {
		return err
	}
	seen, err := r.sink.LastWatched(ctx)
	if err != nil {
		return err
	}
	return s.AnswerDoubt(alive, seen)
}

// collectFacts watches the cluster until ctx ends. Where the spool is not sure to know what the database has, it begins again once that is there:
// the lists are then compared with what the database has. Its errors are those of keeping what was seen last.
func (r *recorder) collectFacts(ctx context.Context, s *spool.Spool) error {
	for {
		config, err := r.newCollectorConfig(ctx, s)
		if err != nil {
			return ignoreCancel(ctx, err)
		}
		epoch := config.Tracker.Epoch()
		c, err := collector.New(config)
		if err != nil {
			return err
		}
		err = r.runCollector(ctx, s, c, epoch)
		if err := (epochs{r, s}).respondToError(err, c.LastWhole()); err != nil || ctx.Err() != nil {
			return err
		}
		r.log.Info("cluster is listed again, to compare it with the database")
	}
}

// runCollector runs a collector until ctx ends, the cluster is to be compared with the database, or its epoch is over. Its errors are for epochs.respond.
func (r *recorder) runCollector(ctx context.Context, s *spool.Spool, c *collector.Collector, epoch trail.Epoch) error {
	g, ctx := errgroup.WithContext(ctx)
	ctx, end := context.WithCancel(ctx)
	defer end()
	r.log.Info("recording", "cluster", r.cluster, "addr", r.addr)
	r.watching.Store(c)
	if r.f.intake.auditFile != "" {
		g.Go(func() error { return ignoreCancel(ctx, c.Follow(ctx, r.f.intake.auditFile)) })
	}
	sources, err := r.f.prometheus.newLoadSources(r.log)
	if err != nil {
		return err
	}
	if target := r.f.descheduler.newScrapeTarget(); target != nil {
		scraper, err := c.NewScraper(*target)
		if err != nil {
			return err
		}
		sources = append(sources, scraper.Load())
		g.Go(func() error { return ignoreCancel(ctx, scraper.Run(ctx)) })
	}
	if len(sources) > 0 {
		g.Go(func() error { return ignoreCancel(ctx, r.collectNodeLoad(ctx, c, sources)) })
	}
	g.Go(func() error {
		defer end()
		r.untilCompared(ctx, s)
		return nil
	})
	g.Go(func() error { return epochs{r, s}.untilNext(ctx, epoch) })
	g.Go(func() error {
		defer end()
		return c.Run(ctx)
	})
	return g.Wait()
}

// collectNodeLoad looks at the load of nodes once the database is there: its rows say what moved.
func (r *recorder) collectNodeLoad(ctx context.Context, c *collector.Collector, sources []collector.LoadSource) error {
	if !r.waitForDatabase(ctx) {
		return ctx.Err()
	}
	return c.NewLoadContext(r.sink.Moved, sources...).Run(ctx)
}

// compareEvery is how often is looked whether the cluster is to be compared with the database.
const compareEvery = time.Second

// untilCompared waits until ctx ends or the cluster is to be compared with the database.
func (r *recorder) untilCompared(ctx context.Context, s *spool.Spool) {
	tick := time.NewTicker(compareEvery)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
			if r.db.isReady() && s.NeedsComparison() {
				return
			}
		case <-ctx.Done():
			return
		}
	}
}

// unseenAfter is how long a source is refused from the start on before that is recorded as a gap: an API server may just be restarting.
const unseenAfter = 5 * time.Second

// newCollectorConfig returns from what a collector goes on: what the database has with what waits for it, or while it is away what the spool knows.
func (r *recorder) newCollectorConfig(ctx context.Context, s *spool.Spool) (collector.Config, error) {
	e := epochs{r, s}
	if err := e.respondToError(e.reconcileEpoch(ctx), r.started); err != nil {
		return collector.Config{}, err
	}
	c := r.config
	c.Spool, c.Tracker, c.Identify, c.Breaks, c.UnseenAfter = s, tracker.New(r.cluster), e.identifyCluster, s.ClaimBreaks(), unseenAfter
	stored := false
	var past spool.Past
	if r.db.isReady() {
		var err error
		if past, err = r.loadPast(ctx, c.Tracker); err == nil {
			c.OpenGaps, err = r.db.OpenGaps(ctx, r.cluster)
		}
		switch {
		case err == nil:
			stored = true
		case ctx.Err() != nil || errors.Is(err, pg.ErrSchema):
			return c, err
		default:
			r.log.Warn("database does not say what it has: going on from what the spool knows", "err", err)
			c.Tracker = tracker.New(r.cluster)
		}
	}
	c.Tracker.BeginEpoch(s.Identity().Epoch)
	kept, err := s.LoadPast(stored, c.Tracker.Resume)
	if err != nil {
		r.log.Error("spool does not say what it knows, going on without", "err", err)
	}
	past.Add(kept)
	if d := s.Doubt(); stored && d != nil && !d.Alive.IsZero() {
		past.Alive, past.Seen = d.Alive, d.Seen
	}
	c.LastAlive, c.LastSeen, c.Since = past.Alive, past.Seen, past.Alive
	if waits := s.Condition().Oldest; !waits.IsZero() && waits.Before(c.Since) {
		c.Since = waits // it is stored from now on
	}
	if stored {
		if err := s.ReplaceStates(past, c.Tracker.State()); err != nil {
			r.log.Error("spool does not remember what the database has", "err", err)
		}
	}
	return c, nil
}

// loadPast reads what the database has.
func (r *recorder) loadPast(ctx context.Context, t *tracker.Tracker) (past spool.Past, err error) {
	if err := r.db.Resume(ctx, r.cluster, t.Resume); err != nil {
		return past, err
	}
	if past.Alive, err = r.db.LastAlive(ctx, r.cluster); err != nil {
		return past, err
	}
	past.Seen, err = r.sink.LastWatched(ctx)
	return past, err
}

// How often metrics show the state of recording and of the spool, and how long something waits before the log does.
const (
	showEvery   = time.Second
	saidWaiting = time.Minute
)

// monitorSpool reports the state of the spool until ctx ends: metrics always, the log when facts begin to wait for long and when they no longer do.
func (r *recorder) monitorSpool(ctx context.Context, s *spool.Spool) {
	tick := time.NewTicker(showEvery)
	defer tick.Stop()
	said := false
	for {
		c := s.Condition()
		m := r.config.Metrics
		m.SpoolCapacity.Set(float64(c.Capacity))
		m.SpoolFacts.Set(float64(c.Facts))
		m.Waiting(int(c.Bytes), c.Oldest)
		m.DeadLetters.WithLabelValues().Set(float64(c.DeadLetters))
		m.SpoolWritable.WithLabelValues().Set(1)
		if c.Problem != nil {
			m.SpoolWritable.WithLabelValues().Set(0)
		}
		switch waits := !c.Oldest.IsZero() && nowUTC().Sub(c.Oldest) > saidWaiting; {
		case waits && !said:
			r.log.Warn("facts wait in the spool for the database", "count", c.Facts, "since", c.Oldest, "path", c.Path)
		case !waits && said:
			r.log.Info("no facts wait in the spool any more")
		}
		said = !c.Oldest.IsZero() && nowUTC().Sub(c.Oldest) > saidWaiting
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
	}
}

// checkDatabase reports whether the database is there and prepared.
func (r *recorder) checkDatabase(ctx context.Context) error {
	if err := r.db.DB.Ping(ctx); err != nil {
		return err
	}
	if !r.db.isReady() {
		return errors.New("the database's schema is not ready")
	}
	return nil
}
