package main

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"net/http/pprof"
	"time"

	"github.com/spf13/cobra"
)

// profiling serves profiles of the program itself, to this machine or pod alone: who may forward a port to the pod may
// read them, and nobody else.
type profiling struct {
	address  string
	listener net.Listener // nil: none is asked for
}

func (p *profiling) addFlags(cmd *cobra.Command) {
	cmd.Flags().StringVar(&p.address, "pprof-listen", "", "serve profiles of evictrail itself at this `address` of this machine or pod, such as 127.0.0.1:6060; by default they are not served")
}

// checkFlags refuses an address that others reach: profiles show what is in memory.
func (p *profiling) checkFlags() error {
	if p.address == "" {
		return nil
	}
	host, _, err := net.SplitHostPort(p.address)
	if err != nil {
		return usageErrorf("pprof-listen %q: expected an address such as 127.0.0.1:6060", p.address)
	}
	if ip := net.ParseIP(host); ip == nil || !ip.IsLoopback() {
		return usageErrorf("pprof-listen %q: only a loopback address is allowed, such as 127.0.0.1:6060, as profiles show what is in memory; "+
			"from elsewhere: kubectl port-forward evictrail-0 6060", p.address)
	}
	return nil
}

// bindAddress begins to listen where that is asked for.
func (p *profiling) bindAddress(ctx context.Context) (err error) {
	if p.address == "" {
		return nil
	}
	p.listener, err = (&net.ListenConfig{}).Listen(ctx, "tcp", p.address)
	return err
}

// serveProfiles serves until ctx ends. That it cannot is no reason to stop recording.
func (p *profiling) serveProfiles(ctx context.Context, log *slog.Logger) {
	if p.listener == nil {
		return
	}
	routes := http.NewServeMux()
	routes.HandleFunc("GET /debug/pprof/", pprof.Index)
	routes.HandleFunc("GET /debug/pprof/profile", pprof.Profile)
	routes.HandleFunc("GET /debug/pprof/trace", pprof.Trace)
	server := &http.Server{Handler: routes, ReadHeaderTimeout: 10 * time.Second, ErrorLog: slog.NewLogLogger(log.Handler(), slog.LevelDebug)}
	stop := context.AfterFunc(ctx, func() { _ = server.Close() })
	defer stop()
	log.Info("profiles are served", "pprof", p.listener.Addr().String())
	if err := server.Serve(p.listener); !errors.Is(err, http.ErrServerClosed) {
		log.Warn("profiles are served no more", "err", err)
	}
}
