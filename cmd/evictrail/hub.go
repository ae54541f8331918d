package main

import (
	"bufio"
	"context"
	"fmt"
	"log/slog"
	"net/url"
	"os"
	"strings"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/spf13/cobra"
	"golang.org/x/sync/errgroup"

	"github.com/evictrail/evictrail/api/client"
	"github.com/evictrail/evictrail/api/hub"
	"github.com/evictrail/evictrail/metrics"
)

// authSources has the sources of a hub say who callers are, and what they may see.
const authSources = "sources"

// hubFlags are those of "evictrail hub".
type hubFlags struct {
	sources     []string // NAME=URL
	sourcesFile string
	caFile      string
	listen      listenFlags
	tls         tlsFlags
	log         logFlags
}

func newHub() *cobra.Command {
	f := hubFlags{listen: listenFlags{gated: authSources}}
	cmd := &cobra.Command{
		Use: "hub", Short: "Serve the pages and the API of several evictrails as one", GroupID: "ask", Args: asUsage(cobra.NoArgs),
		ValidArgsFunction: cobra.NoFileCompletions,
		Long: `Serve one page, one search, one set of lists and one API over several evictrails that run elsewhere, each with its own database. The sources are
asked when something is asked here, at the same time and for 3 s at most; nothing is copied. A source that is down, slow or refuses is named on each
page and in each answer, so that nothing seems complete that is not. Pages of one cluster, VM, node or loop come from the source that records it.

Tokens of callers are passed on: each source says what they may see, by its own cluster (docs/access.md). With --auth=sources other hosts may ask
this hub; a source that runs without --auth=kubernetes then shows all that it has to all of them. Tokens are not sent over plain HTTP to other hosts.

Where two sources have a cluster of the same name, it is called SOURCE/NAME here; who asks for NAME is asked to choose.`,
		Example: `  evictrail hub --source east=https://evictrail.east.example --source west=https://evictrail.west.example
  evictrail hub --sources-file sources.txt   # a line NAME=URL for each source
  evictrail hub --source east=https://evictrail.east.example --source-ca-file ca.crt \
    --listen :8443 --auth=sources --tls-cert-file tls.crt --tls-key-file tls.key
  evictrail why shop/db-1 --cluster prod --server http://127.0.0.1:8080   # ask the hub as one evictrail`,
		RunE: func(cmd *cobra.Command, _ []string) error { return f.run(cmd) },
	}
	flags := cmd.Flags()
	flags.StringArrayVar(&f.sources, "source", nil, "`NAME=URL` of an evictrail that serves; may be repeated")
	flags.StringVar(&f.sourcesFile, "sources-file", "", "`file` with a line NAME=URL for each source; lines that begin with # are comments")
	flags.StringVar(&f.caFile, "source-ca-file", "", "`file` with the CAs of the sources' certificates (PEM), where the system does not know them")
	flags.StringVar(&f.listen.listen, "listen", "127.0.0.1:8080", "`address` of the pages, the API, metrics and health")
	flags.StringVar(&f.listen.auth, "auth", "", "who may ask: `sources`: whom each source lets in, by the token of the caller; none: everybody, also other hosts. Without it only this machine may")
	_ = cmd.RegisterFlagCompletionFunc("auth", cobra.FixedCompletions([]string{authSources, authNone}, cobra.ShellCompDirectiveNoFileComp))
	_ = cmd.RegisterFlagCompletionFunc("source", cobra.NoFileCompletions)
	f.tls.addCertFlags(cmd)
	f.log.addFlags(cmd, "info")
	return cmd
}

func (f *hubFlags) run(cmd *cobra.Command) error {
	log, err := f.log.newLogger(cmd)
	if err != nil {
		return err
	}
	sources, err := f.readSources()
	if err != nil {
		return err
	}
	for _, err := range []error{f.tls.checkFlags(), f.listen.checkTLS(&f.tls)} {
		if err != nil {
			return err
		}
	}
	ctx := cmd.Context()
	s, err := f.listen.bindAddress(ctx, log)
	if err != nil {
		return err
	}
	if s.tls, err = f.tls.newTLSConfig(log); err != nil {
		return err
	}
	h, err := s.newHub(sources, log)
	if err != nil {
		_ = s.listener.Close()
		return err
	}
	defer h.Close()
	g, ctx := errgroup.WithContext(ctx)
	g.Go(func() error { return h.Run(ctx) })
	g.Go(func() error { return s.serveHub(ctx, h) })
	log.Info("hub serves", "addr", s.listener.Addr().String(), "count", len(sources))
	return g.Wait()
}

// serveHub serves a hub until ctx ends.
func (s *service) serveHub(ctx context.Context, h *hub.Hub) error {
	return s.serve(ctx, h.Status, h.Server("kubectl create token SERVICEACCOUNT -n NAMESPACE --audience=evictrail", func(path string, err error) {
		s.log.Warn("page not shown", "path", path, "err", err)
	}))
}

// newHub makes a hub whose metrics are those of the service: what is asked of it, and of its sources.
func (s *service) newHub(sources []hub.Source, log *slog.Logger) (*hub.Hub, error) {
	s.registry = prometheus.NewRegistry()
	registerProcess(s.registry)
	s.metrics.RegisterHTTP(s.registry)
	m := metrics.NewHub(s.registry)
	h, err := hub.New(hub.Config{Sources: sources, Up: m.Up, Observe: m.Asked, Changed: func(source, why string) {
		if why == "" {
			log.Info("source answers", "peer", source)
			return
		}
		log.Warn("source does not answer", "peer", source, "err", why)
	}})
	if err != nil {
		return nil, usageErrorf("%w", err)
	}
	return h, nil
}

// readSources reads the sources that flags and file name.
func (f *hubFlags) readSources() ([]hub.Source, error) {
	lines := f.sources
	if f.sourcesFile != "" {
		file, err := os.Open(f.sourcesFile)
		if err != nil {
			return nil, fmt.Errorf("read sources: %w", err)
		}
		defer func() { _ = file.Close() }()
		in := bufio.NewScanner(file)
		for in.Scan() {
			if line := strings.TrimSpace(in.Text()); line != "" && !strings.HasPrefix(line, "#") {
				lines = append(lines, line)
			}
		}
		if err := in.Err(); err != nil {
			return nil, fmt.Errorf("read sources: %s: %w", f.sourcesFile, err)
		}
	}
	if len(lines) == 0 {
		return nil, usageErrorf("no source: say --source NAME=URL for each evictrail to ask, or --sources-file FILE")
	}
	var sources []hub.Source
	for _, line := range lines {
		name, address, ok := strings.Cut(line, "=")
		if !ok {
			return nil, usageErrorf("source %q: expected NAME=URL, such as east=https://evictrail.east.example", line)
		}
		if u, err := url.Parse(address); err == nil && f.listen.auth == authSources && client.IsClear(u) {
			return nil, usageErrorf("source %s: tokens would be sent in the clear: use https, or a hub without --auth=sources", name)
		}
		sources = append(sources, hub.Source{Name: strings.TrimSpace(name), URL: strings.TrimSpace(address), CAFile: f.caFile})
	}
	return sources, nil
}
