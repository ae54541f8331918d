package main

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"slices"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/collectors/version"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	dto "github.com/prometheus/client_model/go"
	"github.com/spf13/cobra"
	"golang.org/x/sync/errgroup"

	"github.com/evictrail/evictrail/api"
	"github.com/evictrail/evictrail/api/web"
	"github.com/evictrail/evictrail/metrics"
	"github.com/evictrail/evictrail/store"
	"github.com/evictrail/evictrail/store/standby"
	"github.com/evictrail/evictrail/trail"
)

// logFlags say what is logged. Logs go to standard error.
type logFlags struct {
	level   string
	format  string
	inForce slog.LevelVar // what a logger made of it logs
}

func (l *logFlags) addFlags(cmd *cobra.Command, level string) {
	cmd.Flags().StringVar(&l.level, "log-level", level, "least `level` that is logged: debug, info, warn or error")
	cmd.Flags().StringVar(&l.format, "log-format", logText, "`format` of the log: text (key=value) or json, one object a line")
	_ = cmd.RegisterFlagCompletionFunc("log-format", cobra.FixedCompletions([]cobra.Completion{logText, logJSON}, cobra.ShellCompDirectiveNoFileComp))
}

// The formats of logs.
const (
	logText = "text"
	logJSON = "json"
)

func (l *logFlags) newLogger(cmd *cobra.Command) (*slog.Logger, error) {
	level, err := l.parseLevel()
	if err := errors.Join(err, l.checkFormat()); err != nil {
		return nil, err
	}
	l.inForce.Set(level)
	options := &slog.HandlerOptions{Level: &l.inForce}
	if l.format == logJSON {
		options.ReplaceAttr = durationsAsText
		return slog.New(slog.NewJSONHandler(cmd.ErrOrStderr(), options)), nil
	}
	return slog.New(slog.NewTextHandler(cmd.ErrOrStderr(), options)), nil
}

// durationsAsText has durations written as in text, such as 1.5s: JSON would have nanoseconds.
func durationsAsText(_ []string, a slog.Attr) slog.Attr {
	if a.Value.Kind() == slog.KindDuration {
		a.Value = slog.StringValue(a.Value.Duration().String())
	}
	return a
}

func (l *logFlags) parseLevel() (level slog.Level, err error) {
	if err := level.UnmarshalText([]byte(l.level)); err != nil {
		return 0, usageErrorf("log-level %q: expected debug, info, warn or error", l.level)
	}
	return level, nil
}

func (l *logFlags) checkFormat() error {
	if l.format != logText && l.format != logJSON {
		return usageErrorf("log-format %q: expected %s or %s", l.format, logText, logJSON)
	}
	return nil
}

// service is the HTTP side of run and demo.
type service struct {
	listener net.Listener
	registry *prometheus.Registry
	metrics  *metrics.Metrics
	clusters clusterMetrics // of a service that has several clusters
	hosts    []string       // under which it may be called; none: any
	tls      *tls.Config    // nil: plain HTTP
	log      *slog.Logger
}

// listenFlags say where the API, metrics and health are served, and to whom.
type listenFlags struct {
	listen, auth string
	gated        string   // the value of auth with which callers show tokens; empty: authKubernetes
	audiences    []string // of tokens, with authKubernetes
	serverTokens string   // where those for the API server itself are accepted, too
	alertmanager string   // URL; empty: pages link to none
	links        web.Links
}

func (l *listenFlags) addFlags(cmd *cobra.Command) {
	cmd.Flags().StringVar(&l.listen, "listen", "127.0.0.1:8080", "`address` of the API, metrics, health and what is sent to us")
	cmd.Flags().StringVar(&l.auth, "auth", "", "who may read: `kubernetes`: whom the cluster lets get VMs, those of their namespaces; none: everybody, also other hosts. Without it only this machine may")
	cmd.Flags().StringArrayVar(&l.audiences, "auth-audience", []string{"evictrail"}, "with --auth=kubernetes: accept tokens made for this `audience`, as by kubectl create token --audience; may be repeated")
	cmd.Flags().StringVar(&l.alertmanager, "alertmanager-url", "", "`URL` of an Alertmanager as browsers reach it: pages link to a new silence for the alerts of a VM or a node")
	cmd.Flags().StringVar(&l.serverTokens, "auth-api-tokens", string(api.ServerTokensMetrics), "accept tokens made for the API server itself, which are of use elsewhere: `metrics`: from who scrapes /metrics; all: from everybody; none")
}

// authGated returns the value of --auth with which callers show tokens.
func (l *listenFlags) authGated() string { return cmp.Or(l.gated, authKubernetes) }

// addLinkFlags adds the flags that say where pages lead.
func (l *listenFlags) addLinkFlags(cmd *cobra.Command) {
	cmd.Flags().StringVar(&l.links.Grafana, "grafana-url", "", "`URL` of the Grafana with the dashboards: pages link to the one that shows the same")
	cmd.Flags().StringArrayVar(&l.links.Consoles, "console-url", nil, "`URL` of a page of the cluster's console, with {cluster}, {namespace}, {name} or {node}: pages that know these link to it; may be repeated")
}

// bindAddress takes the address, so that a taken port is an error before anything is started.
func (l *listenFlags) bindAddress(ctx context.Context, log *slog.Logger) (*service, error) {
	if err := l.checkFlags(); err != nil {
		return nil, err
	}
	var lc net.ListenConfig
	listener, err := lc.Listen(ctx, "tcp", l.listen)
	if err != nil {
		return nil, fmt.Errorf("listen on %s: %w: choose another address with --listen", l.listen, err)
	}
	s := &service{listener: listener, registry: prometheus.NewRegistry(), hosts: l.listAllowedHosts(), log: log}
	s.metrics = metrics.New(s.registry)
	registerProcess(s.registry)
	return s, nil
}

// registerProcess registers the metrics of the process and of the build.
func registerProcess(registry *prometheus.Registry) {
	registry.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}), version.NewCollector("evictrail"))
}

// checkFlags refuses to serve a network without protection unless that is said aloud.
func (l *listenFlags) checkFlags() error {
	if _, _, err := net.SplitHostPort(l.listen); err != nil {
		return usageErrorf("listen %q: expected HOST:PORT, such as 127.0.0.1:8080", l.listen)
	}
	if l.auth != "" && l.auth != authNone && l.auth != l.authGated() {
		return usageErrorf("auth %q: expected %s or none", l.auth, l.authGated())
	}
	if u, err := url.Parse(l.alertmanager); l.alertmanager != "" && (err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" || u.RawQuery != "" || u.Fragment != "") {
		return usageErrorf("alertmanager-url %q: expected an address such as https://alertmanager.example", l.alertmanager)
	}
	if err := l.checkTokens(); err != nil {
		return err
	}
	if err := l.links.Check(); err != nil {
		return usageErrorf("%w", err)
	}
	if !l.isLoopback() && l.auth == "" {
		return usageErrorf("listen %s: other hosts could read VM names there; listen on 127.0.0.1, or say --auth=%s, or --auth=none", l.listen, l.authGated())
	}
	return nil
}

// checkTokens refuses tokens that nobody could have.
func (l *listenFlags) checkTokens() error {
	switch accepted := []api.ServerTokens{api.ServerTokensNone, api.ServerTokensMetrics, api.ServerTokensAll}; {
	case l.auth != authKubernetes:
		return nil
	case !slices.Contains(accepted, api.ServerTokens(l.serverTokens)):
		return usageErrorf("auth-api-tokens %q: expected metrics, all or none", l.serverTokens)
	case slices.Contains(l.audiences, ""):
		return usageErrorf("auth-audience: it is empty; --auth-api-tokens=all accepts tokens that were made without --audience")
	}
	return nil
}

// checkTLS refuses to have tokens sent over a network that anybody can read.
func (l *listenFlags) checkTLS(f *tlsFlags) error {
	if l.auth == l.authGated() && !l.isLoopback() && !f.isEnabled() {
		return usageErrorf("auth %s: tokens would be sent in the clear; give --tls-cert-file and --tls-key-file", l.auth)
	}
	return nil
}

// parseHost returns the host that we listen on; empty: all of them.
func (l *listenFlags) parseHost() string {
	host, _, _ := net.SplitHostPort(l.listen)
	return host
}

// isLoopback reports whether only this machine can reach the address.
func (l *listenFlags) isLoopback() bool {
	ip := net.ParseIP(l.parseHost())
	return l.parseHost() == "localhost" || ip != nil && ip.IsLoopback()
}

// How many scrapes are answered at once, of all callers, and how long one may take: a Prometheus gives up after 10 s by default.
const (
	scrapesMost  = 40
	scrapeWithin = 10 * time.Second
)

// Gather implements prometheus.Gatherer: the metrics of the service, and those of each cluster.
func (s *service) Gather() ([]*dto.MetricFamily, error) {
	return append(s.clusters.listGatherers(), s.registry).Gather()
}

// clusterMetrics are metrics of several clusters in one process, distinguished by the label cluster, as those of several processes are by the label of their target.
// It is safe for concurrent use; its zero value has none.
type clusterMetrics struct {
	mu  sync.Mutex
	all prometheus.Gatherers
}

// addCluster makes the metrics of a cluster.
func (c *clusterMetrics) addCluster(name string) *metrics.Metrics {
	registry := prometheus.NewRegistry()
	m := metrics.New(prometheus.WrapRegistererWith(prometheus.Labels{"cluster": name}, registry))
	c.mu.Lock()
	defer c.mu.Unlock()
	c.all = append(c.all, registry)
	return m
}

func (c *clusterMetrics) listGatherers() prometheus.Gatherers {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.all)
}

// serve answers until ctx ends: health, metrics, the API, and what else the server has.
func (s *service) serve(ctx context.Context, status func(context.Context) trail.RecorderStatus, more api.Server) error {
	more.Health = &api.Health{Status: status, Metrics: promhttp.HandlerFor(s, promhttp.HandlerOpts{
		EnableOpenMetrics: true, ErrorHandling: promhttp.ContinueOnError, ErrorLog: slog.NewLogLogger(s.log.Handler(), slog.LevelWarn),
		MaxRequestsInFlight: scrapesMost, CoalesceGather: true, Timeout: scrapeWithin,
	})}
	more.Observe, more.Denied, more.Hosts = s.metrics.Answered, s.metrics.Refused, s.hosts
	more.Failed = func(err error) { s.log.Warn("question not answered", "err", err) }
	shed := newShedding(s.metrics.Shed, s.log)
	more.Shed = shed.shedRequest
	return serveUntil(ctx, s.httpServer(more.Handler()), newFairListener(s.listener, shed.shedConnection), s.log)
}

// serveUntil serves until ctx ends.
func serveUntil(ctx context.Context, server *http.Server, listener net.Listener, log *slog.Logger) error {
	serve := server.Serve
	if server.TLSConfig != nil {
		serve = func(l net.Listener) error { return server.ServeTLS(l, "", "") }
	}
	g, ctx := errgroup.WithContext(ctx)
	g.Go(func() error {
		if err := serve(listener); !errors.Is(err, http.ErrServerClosed) {
			return fmt.Errorf("serve %s: %w", listener.Addr(), err)
		}
		return nil
	})
	g.Go(func() error {
		<-ctx.Done()
		stop, cancel := context.WithTimeout(context.WithoutCancel(ctx), 3*time.Second)
		defer cancel()
		err := server.Shutdown(stop)
		if errors.Is(err, context.DeadlineExceeded) { // somebody is slow, or opened a connection and never asked: that is no failure of ours
			log.Warn("connections were in use when evictrail stopped, and are cut")
			return server.Close()
		}
		return err
	})
	return g.Wait()
}

// httpServer returns the server of a handler, with bounds of how long requests may take to arrive. How long answers may take is the
// handler's: api.Server cuts off who stalls.
func (s *service) httpServer(handler http.Handler) *http.Server {
	return &http.Server{
		Handler: handler, TLSConfig: s.tls, ReadHeaderTimeout: 5 * time.Second, ReadTimeout: time.Minute, IdleTimeout: 2 * time.Minute,
		MaxHeaderBytes: 64 << 10,
		HTTP2:          &http.HTTP2Config{MaxConcurrentStreams: 64, WriteByteTimeout: 10 * time.Second, SendPingTimeout: 30 * time.Second, PingTimeout: 10 * time.Second},
		ErrorLog:       slog.NewLogLogger(s.log.Handler(), slog.LevelWarn), // such as a sender that does not trust our certificate
	}
}

// retryUntilAvailable tries until it succeeds, the error is not one to wait for, or ctx ends, with 1 s to 30 s between two attempts. An error that is the same as at the attempt
// before is not logged again. The error is that of the last attempt.
func retryUntilAvailable[T any](ctx context.Context, log *slog.Logger, message string, try func() (T, error), waitFor func(error) bool) (T, error) {
	const least, most = time.Second, 30 * time.Second
	said := ""
	for wait := least; ; wait = min(2*wait, most) {
		got, err := try()
		if err == nil || !waitFor(err) {
			return got, err
		}
		if said != err.Error() {
			said = err.Error()
			log.Warn(message, "remaining", wait, "err", err) //nolint:sloglint // each caller passes a constant
		}
		select {
		case <-time.After(wait):
		case <-ctx.Done():
			return got, err
		}
	}
}

// nowUTC is the clock of a live cluster.
func nowUTC() time.Time { return time.Now().UTC() }

// newServer is newReadServer that takes acknowledgements, too, where it was said who may read: else nothing is written.
func (l *listenFlags) newServer(ctx context.Context, s *store.Store, reads *standby.Servers, log *slog.Logger) api.Server {
	server := newReadServer(ctx, reads, log)
	server.Site.Alertmanager = l.alertmanager
	if l.auth != "" {
		server.Acknowledgers = func(scope trail.Scope) api.Acknowledger { return awaitedAcknowledger{s.AcknowledgerOf(scope), reads} }
	}
	return server
}

// newReadServer is what answers callers until ctx ends: the web page, and the stream that keeps it up to date.
func newReadServer(ctx context.Context, reads *standby.Servers, log *slog.Logger) api.Server {
	callers := callersOf{reads}
	return api.Server{
		Readers: callers.answerPrograms, Assistant: serveAssistants(log),
		Site: &web.Site{Readers: callers.answerPages, Failed: func(path string, err error) {
			log.Warn("page not shown", "path", path, "err", err)
		}},
		Stream: &api.Stream{Done: ctx.Done(), Changes: callers.listChanges},
	}
}
