package main

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"slices"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/rest"

	"github.com/evictrail/evictrail/api"
	"github.com/evictrail/evictrail/collector"
	"github.com/evictrail/evictrail/collector/recording"
	"github.com/evictrail/evictrail/metrics"
	"github.com/evictrail/evictrail/remote"
	"github.com/evictrail/evictrail/store"
	"github.com/evictrail/evictrail/store/pg"
	"github.com/evictrail/evictrail/store/tally"
	"github.com/evictrail/evictrail/trail"
	"github.com/evictrail/evictrail/trail/tracker"
)

// playFlags are those of "evictrail play".
type playFlags struct {
	db      databaseFlags
	log     logFlags
	cluster string
	noAudit bool
	delay   time.Duration
	server  recording.ServerOptions
	speed   float64
	loops   thresholdFlags
	metrics string // where the metrics are written
	load    prometheusFlags
}

func newPlay() *cobra.Command {
	var f playFlags
	cmd := &cobra.Command{
		Use: "play DIR|FILE", Short: "Play a recorded cluster into the database", GroupID: "record", Args: asUsage(cobra.ExactArgs(1)),
		Long: `Serve a recording as a Kubernetes API, let the collector list and watch it over HTTP in the recording's own time, send it the
recorded audit log as an API server does, serve it the recorded metrics of the descheduler, store what it sees, and exit. Playing the same recording again adds nothing. By default it goes as fast as the collector takes
the recording in; nothing of the order or the times is lost by that.

A FILE has the facts of one incident, as vm/facts.jsonl of "evictrail support-bundle --vm": they are stored and derived as those of a cluster, and the
answer about that VM is the one in the bundle.

Without --database-url it starts a Postgres of its own in --data-dir, prints how to reach it, and stays until you press Ctrl-C, so that you can ask.

--metrics-out is for rules and dashboards: promtool makes blocks for a Prometheus of it. Counters count what is new, so play into a
database that does not have the recording yet. A file cannot say that a series has ended: Prometheus goes on showing it for five minutes.`,
		Example: `  evictrail play testdata/recordings/c-node-drain --database-url postgres:///evictrail
  evictrail play rec                      # into a Postgres of its own, which stays until Ctrl-C
  evictrail play rec --audit-delay 30s    # audit events come as late as an API server's batches
  evictrail play rec --cut-every 40       # end each watch after 40 notifications
  evictrail play rec --expire-every 120   # 410 Gone at every 120th line: the client must list again
  evictrail play rec --speed 10           # ten times as fast as it was
  evictrail play bundle/vm/facts.jsonl    # one incident, of a support bundle
  evictrail play rec --metrics-out rec.om && promtool tsdb create-blocks-from openmetrics rec.om data/`,
		RunE: func(cmd *cobra.Command, args []string) error { return f.run(cmd, args[0]) },
	}
	f.db.addFlags(cmd)
	f.db.addEmbedded(cmd, "play")
	f.log.addFlags(cmd, "warn")
	f.loops.addFlags(cmd)
	f.load.addFlags(cmd)
	cmd.Flags().StringVar(&f.cluster, "cluster", "", "`name` under which it is recorded; by default that of the folder or file")
	cmd.Flags().BoolVar(&f.noAudit, "no-audit", false, "leave out the recording's audit log")
	cmd.Flags().DurationVar(&f.delay, "audit-delay", 0, "send each audit event this `duration` after it was logged; an API server waits up to 30s")
	cmd.Flags().IntVar(&f.server.CutEvery, "cut-every", 0, "end each watch after `N` notifications; 0: never")
	cmd.Flags().IntVar(&f.server.ExpireEvery, "expire-every", 0, "answer all watches 410 Gone at every `N`-th line; 0: never")
	cmd.Flags().StringVar(&f.metrics, "metrics-out", "", "write the metrics that evictrail would have had, every 15 s of the recording's time, into this `file` (OpenMetrics)")
	cmd.Flags().Float64Var(&f.speed, "speed", 0, "`N` times real time; 0: as fast as it goes")
	return cmd
}

func (f *playFlags) run(cmd *cobra.Command, path string) (err error) {
	if f.server.CutEvery < 0 || f.server.ExpireEvery < 0 || f.speed < 0 || f.delay < 0 {
		return usageErrorf("cut-every, expire-every, speed and audit-delay must not be negative")
	}
	if err := f.load.checkFlags(cmd); err != nil {
		return err
	}
	thresholds, err := f.loops.parseThresholds()
	if err != nil {
		return err
	}
	log, err := f.log.newLogger(cmd)
	if err != nil {
		return err
	}
	input, err := f.openInput(cmd, path)
	if err != nil {
		return err
	}
	ctx := cmd.Context()
	db, err := f.db.openOrEmbed(ctx, log)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, db.close(ctx)) }()
	if err := prepareDatabase(ctx, db.Store, log); err != nil {
		return err
	}
	registry := prometheus.NewRegistry()
	p := player{thresholds: thresholds, store: db.Store, log: log, metrics: metrics.New(registry), progress: cmd.ErrOrStderr()}
	p.options, p.speed, p.delay = f.server, f.speed, f.delay
	if p.loads, err = f.load.newLoadSources(log); err != nil {
		return err
	}
	if f.metrics != "" {
		if p.samples, err = newSamples(registry, f.metrics); err != nil {
			return err
		}
	}
	started := time.Now()
	cluster := cmp.Or(f.cluster, input.name)
	if err := input.play(ctx, p, cluster); err != nil {
		return err
	}
	if p.samples != nil {
		if err := p.samples.writeSamples(); err != nil {
			return err
		}
	}
	printTextf(cmd.OutOrStdout(), "played %s into cluster %s in %s\n", input.size, cluster, time.Since(started).Round(time.Millisecond))
	if db.server == nil {
		return nil
	}
	printTextf(cmd.OutOrStdout(), "The database is a Postgres of our own, which ends with Ctrl-C. To ask it from another shell:\n  export EVICTRAIL_DATABASE_URL='%s'\n", db.url)
	<-ctx.Done()
	return nil
}

// player plays recordings through the collector into a store.
type player struct {
	thresholds trail.Thresholds
	store      *store.Store
	log        *slog.Logger
	metrics    *metrics.Metrics
	progress   io.Writer
	options    recording.ServerOptions
	speed      float64
	delay      time.Duration          // of audit events
	samples    *samples               // of the metrics; nil: none are taken
	loads      []collector.LoadSource // beside the descheduler's metrics
}

// playRecording returns when everything of the recording is stored.
func (p player) playRecording(ctx context.Context, rec *recording.Recording, cluster string) error {
	if len(rec.Audit) > 0 {
		p.metrics.AuditEnabled.Set(1)
	}
	server := recording.NewServer(rec, p.options)
	kubernetes, stopCluster, err := serveLoopback(ctx, server)
	if err != nil {
		return err
	}
	defer stopCluster()
	watching := &watcher{}
	intake := api.Server{Audit: &api.Audit{Take: watching.ingestAudit, Access: api.Access{Open: true}}}
	us, stopIntake, err := serveLoopback(ctx, intake.Handler())
	if err != nil {
		return err
	}
	defer stopIntake()
	clock := &traceClock{}
	clock.set(rec.Start())
	var extra []collector.Observation
	if len(rec.Policy) > 0 {
		extra = append(extra, collector.Policy(rec.Policy, ""))
	}
	sink, err := p.beginReplay(ctx, cluster)
	if err != nil {
		return err
	}
	c, err := newCollector(ctx, p.store, sink, cluster, collector.Config{
		REST: &rest.Config{Host: kubernetes}, Log: p.log, Metrics: p.metrics, Clock: clock.now, Extra: extra,
		Since:   rec.Start(), // also where another replica plays it at the same time and has come further
		Backoff: &wait.Backoff{Duration: 5 * time.Millisecond, Factor: 1, Steps: 1},
	})
	if err != nil {
		return err
	}
	watching.Store(c)
	scraper, err := c.NewScraper(collector.ScrapeTarget{Server: remote.Server{URL: kubernetes + recording.ScrapePath}, Interval: collector.ScrapeInterval})
	if err != nil {
		return err
	}
	loads := c.NewLoadContext(sink.Moved, append([]collector.LoadSource{scraper.Load()}, p.loads...)...)
	running, stop := context.WithCancel(ctx)
	done := make(chan error, 1)
	go func() { done <- c.Run(running) }()
	hooks := recording.Hooks{
		Clock: clock.set, Watched: collector.Watches, Taken: c.Taken, Audit: sendAudit(us + "/audit"), Scrape: scraper.Scrape, Delay: p.delay,
		Progress: p.newReporter(rec), Speed: p.speed,
	}
	if p.samples != nil {
		hooks.Every, hooks.Tick = scrapeEvery, func(ctx context.Context, at time.Time) error {
			return errors.Join(c.Flush(ctx), loads.Look(ctx, false), c.Flush(ctx), p.recordSample(ctx, sink, cluster, at))
		}
		hooks.Clock = func(t time.Time) { // what is stored late by the recording's clock was not late
			_ = c.Flush(ctx)
			clock.set(t)
		}
	}
	err = recording.Play(ctx, rec, server, hooks)
	if err == nil {
		err = errors.Join(c.Flush(ctx), loads.Look(ctx, true), c.Flush(ctx))
	}
	stop()
	if err = errors.Join(err, <-done); err != nil {
		return err
	}
	return p.finishRecording(ctx, sink, cluster, clock.now())
}

// beginReplay returns what stores and derives the facts of a cluster that is replayed.
func (p player) beginReplay(ctx context.Context, cluster string) (promptly, error) {
	if err := p.store.MarkReplayed(ctx, cluster); err != nil {
		return promptly{}, err
	}
	sink := promptly{p.store.For(cluster, "play")}
	_, _, err := leader{sink.ClusterStore, p.thresholds, p.metrics, p.log, newLeadership(nowUTC())}.runStep(ctx, false)
	return sink, err
}

// newCollector resumes a cluster's tracker from the store and makes the collector that goes on from there.
func newCollector(ctx context.Context, s *store.Store, sink promptly, cluster string, c collector.Config) (_ *collector.Collector, err error) {
	c.Tracker = tracker.New(cluster)
	if err := s.Resume(ctx, cluster, c.Tracker.Resume); err != nil {
		return nil, err
	}
	if c.LastAlive, err = s.LastAlive(ctx, cluster); err != nil {
		return nil, err
	}
	if c.LastSeen, err = sink.LastWatched(ctx); err != nil {
		return nil, err
	}
	c.Sink = sink
	return collector.New(c)
}

// promptly derives what a batch leaves with the batch: a recording is played faster than its clock goes.
type promptly struct{ *store.ClusterStore }

// Append stores facts and derives all that they mean.
func (p promptly) Append(ctx context.Context, facts []trail.Fact) (trail.News, error) {
	news, err := p.ClusterStore.Append(ctx, facts)
	if err != nil {
		return news, err
	}
	_, more, err := p.CatchUp(ctx, nil)
	if news.Add(more); errors.Is(err, pg.ErrDeposed) {
		err = nil // who plays it, too, does
	}
	return news, err
}

// recordSample derives what is due, shows how it stands with the cluster, and takes a sample of all metrics.
func (p player) recordSample(ctx context.Context, sink promptly, cluster string, at time.Time) error {
	if err := p.updateClusterMetrics(ctx, sink, cluster, at); err != nil {
		return err
	}
	return p.samples.gatherSample(at)
}

// updateClusterMetrics derives what is due and shows how it stands with the cluster.
func (p player) updateClusterMetrics(ctx context.Context, sink promptly, cluster string, at time.Time) error {
	news, err := sink.CatchUpTo(ctx, at)
	if err != nil && !errors.Is(err, pg.ErrDeposed) {
		return err
	}
	p.metrics.Count(news, at)
	return errors.Join(showState(ctx, p.store, cluster, p.metrics, at), showUpkeep(ctx, p.store, cluster, p.metrics, at))
}

// finishRecording shows how a recording ended. The samples end a little later, when everything has settled and was counted.
func (p player) finishRecording(ctx context.Context, sink promptly, cluster string, at time.Time) error {
	if err := p.updateClusterMetrics(ctx, sink, cluster, at); err != nil {
		return err
	}
	if _, err := tally.Count(ctx, p.store.DB, cluster, at); err != nil {
		return err
	}
	p.metrics.CountRest()
	if p.samples == nil {
		return nil
	}
	return p.samples.gatherSample(at.Truncate(time.Millisecond).Add(scrapeEvery))
}

// newReporter says how far it is every two seconds.
func (p player) newReporter(rec *recording.Recording) func(done, total int) {
	next := time.Now().Add(2 * time.Second)
	return func(done, total int) {
		if time.Now().Before(next) {
			return
		}
		next = time.Now().Add(2 * time.Second)
		_, _ = fmt.Fprintf(p.progress, "%s: %d of %d lines\n", rec.Name, done, total)
	}
}

// sendAudit sends events to our own endpoint as a kube-apiserver does: an EventList, again where it is asked to come later.
func sendAudit(url string) func(context.Context, [][]byte) error {
	return func(ctx context.Context, events [][]byte) error {
		body := slices.Concat([]byte(`{"kind":"EventList","apiVersion":"audit.k8s.io/v1","metadata":{},"items":[`), bytes.Join(events, []byte(",")), []byte("]}\n"))
		for {
			request, err := http.NewRequestWithContext(ctx, http.MethodPost, url, bytes.NewReader(body))
			if err != nil {
				return err
			}
			request.Header.Set("Content-Type", "application/json")
			answer, err := http.DefaultClient.Do(request)
			if err != nil {
				return err
			}
			text, err := io.ReadAll(answer.Body)
			_ = answer.Body.Close()
			switch {
			case err != nil:
				return err
			case answer.StatusCode == http.StatusOK:
				return nil
			case answer.StatusCode != http.StatusServiceUnavailable && answer.StatusCode != http.StatusTooManyRequests:
				return fmt.Errorf("%s: %s", answer.Status, bytes.TrimSpace(text))
			}
			select {
			case <-time.After(time.Second):
			case <-ctx.Done():
				return ctx.Err()
			}
		}
	}
}

// traceClock is the time of the recording, which the player moves.
type traceClock struct{ at atomic.Pointer[time.Time] }

func (c *traceClock) set(t time.Time) { t = t.UTC(); c.at.Store(&t) }
func (c *traceClock) now() time.Time  { return *c.at.Load() }

// serveLoopback serves a handler on a free port of this machine alone.
func serveLoopback(ctx context.Context, h http.Handler) (url string, stop func(), err error) {
	var lc net.ListenConfig
	listener, err := lc.Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return "", nil, fmt.Errorf("serve recording: %w", err)
	}
	server := &http.Server{Handler: h, ReadHeaderTimeout: 5 * time.Second, ErrorLog: slog.NewLogLogger(slog.DiscardHandler, slog.LevelDebug)}
	go func() { _ = server.Serve(listener) }()
	return "http://" + listener.Addr().String(), func() { _ = server.Close() }, nil
}
