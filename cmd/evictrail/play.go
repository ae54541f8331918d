package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/rest"

	"github.com/evictrail/evictrail/collector"
	"github.com/evictrail/evictrail/collector/recording"
	"github.com/evictrail/evictrail/metrics"
	"github.com/evictrail/evictrail/store"
)

// playFlags are those of "evictrail play".
type playFlags struct {
	db      databaseFlags
	log     logFlags
	cluster string
	noAudit bool
	server  recording.ServerOptions
	speed   float64
}

func newPlay() *cobra.Command {
	var f playFlags
	cmd := &cobra.Command{
		Use: "play DIR", Short: "Play a recorded cluster into the database", GroupID: "record", Args: asUsage(cobra.ExactArgs(1)),
		Long: `Serve a recording as a Kubernetes API, let the collector list and watch it over HTTP in the recording's own time, store
what it sees, and exit. Playing the same recording again adds nothing. By default it goes as fast as the collector takes
the recording in; nothing of the order or the times is lost by that.`,
		Example: `  evictrail play testdata/recordings/c-node-drain --database-url postgres:///evictrail
  evictrail play rec --cut-every 40       # end each watch after 40 notifications
  evictrail play rec --expire-every 120   # 410 Gone at every 120th line: the client must list again
  evictrail play rec --speed 10           # ten times as fast as it was`,
		RunE: func(cmd *cobra.Command, args []string) error { return f.run(cmd, args[0]) },
	}
	f.db.add(cmd)
	f.log.add(cmd, "warn")
	cmd.Flags().StringVar(&f.cluster, "cluster", "", "`name` under which it is recorded; by default the folder's name")
	cmd.Flags().BoolVar(&f.noAudit, "no-audit", false, "leave out the recording's audit log (this version does not read it in any case)")
	cmd.Flags().IntVar(&f.server.CutEvery, "cut-every", 0, "end each watch after `N` notifications; 0: never")
	cmd.Flags().IntVar(&f.server.ExpireEvery, "expire-every", 0, "answer all watches 410 Gone at every `N`-th line; 0: never")
	cmd.Flags().Float64Var(&f.speed, "speed", 0, "`N` times real time; 0: as fast as it goes")
	return cmd
}

func (f *playFlags) run(cmd *cobra.Command, dir string) error {
	if f.server.CutEvery < 0 || f.server.ExpireEvery < 0 || f.speed < 0 {
		return usagef("cut-every, expire-every and speed must not be negative")
	}
	log, err := f.log.logger(cmd)
	if err != nil {
		return err
	}
	rec, err := recording.Open(os.DirFS(filepath.Dir(filepath.Clean(dir))), filepath.Base(filepath.Clean(dir)), collector.Check)
	if err != nil {
		return err
	}
	ctx := cmd.Context()
	s, err := f.db.open(ctx)
	if err != nil {
		return err
	}
	defer s.Close()
	if err := prepare(ctx, s, log); err != nil {
		return err
	}
	p := player{store: s, log: log, metrics: metrics.New(prometheus.NewRegistry()), progress: cmd.ErrOrStderr()}
	p.options, p.speed = f.server, f.speed
	if f.cluster == "" {
		f.cluster = rec.Name
	}
	started := time.Now()
	if err := p.play(ctx, rec, f.cluster); err != nil {
		return err
	}
	say(cmd.OutOrStdout(), "played %d lines into cluster %s in %s\n", len(rec.Lines), f.cluster, time.Since(started).Round(time.Millisecond))
	return nil
}

// player plays recordings through the collector into a store.
type player struct {
	store    *store.Store
	log      *slog.Logger
	metrics  *metrics.Metrics
	progress io.Writer
	options  recording.ServerOptions
	speed    float64
}

// play returns when everything of the recording is stored.
func (p player) play(ctx context.Context, rec *recording.Recording, cluster string) error {
	server := recording.NewServer(rec, p.options)
	config, stopServing, err := serveLoopback(ctx, server)
	if err != nil {
		return err
	}
	defer stopServing()
	clock := &traceClock{}
	clock.set(rec.Start())
	var extra []collector.Observation
	if len(rec.Policy) > 0 {
		extra = append(extra, collector.Policy(rec.Policy))
	}
	c, err := newCollector(ctx, p.store, cluster, collector.Config{
		REST: config, Log: p.log, Metrics: p.metrics, Clock: clock.now, Extra: extra,
		Backoff: &wait.Backoff{Duration: 5 * time.Millisecond, Factor: 1, Steps: 1},
	})
	if err != nil {
		return err
	}
	running, stop := context.WithCancel(ctx)
	done := make(chan error, 1)
	go func() { done <- c.Run(running) }()
	err = recording.Play(ctx, rec, server, recording.Hooks{
		Clock: clock.set, Watched: collector.Watches, Taken: c.Taken, Progress: p.reporter(rec), Speed: p.speed,
	})
	if err == nil {
		err = c.Flush(ctx)
	}
	stop()
	return errors.Join(err, <-done)
}

// reporter says how far it is every two seconds.
func (p player) reporter(rec *recording.Recording) func(done, total int) {
	next := time.Now().Add(2 * time.Second)
	return func(done, total int) {
		if time.Now().Before(next) {
			return
		}
		next = time.Now().Add(2 * time.Second)
		_, _ = fmt.Fprintf(p.progress, "%s: %d of %d lines\n", rec.Name, done, total)
	}
}

// traceClock is the time of the recording, which the player moves.
type traceClock struct{ at atomic.Pointer[time.Time] }

func (c *traceClock) set(t time.Time) { t = t.UTC(); c.at.Store(&t) }
func (c *traceClock) now() time.Time  { return *c.at.Load() }

// serveLoopback serves a handler on a free port of this machine alone.
func serveLoopback(ctx context.Context, h http.Handler) (*rest.Config, func(), error) {
	var lc net.ListenConfig
	listener, err := lc.Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return nil, nil, fmt.Errorf("serve recording: %w", err)
	}
	server := &http.Server{Handler: h, ReadHeaderTimeout: 5 * time.Second, ErrorLog: slog.NewLogLogger(slog.DiscardHandler, slog.LevelDebug)}
	go func() { _ = server.Serve(listener) }()
	return &rest.Config{Host: "http://" + listener.Addr().String()}, func() { _ = server.Close() }, nil
}
