package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"sync/atomic"

	"github.com/spf13/cobra"

	"github.com/evictrail/evictrail/api"
	"github.com/evictrail/evictrail/collector"
)

// intakeFlags say how requests are reported to us, other than by what they change: audit events and admission reviews.
type intakeFlags struct {
	auditFile string
	tokenFile string
	tls       tlsFlags
	clients   []string
	observer  observerFlags
}

func (f *intakeFlags) addFlags(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.StringVar(&f.auditFile, "audit-file", "", "follow the audit log of a kube-apiserver at this `path`, through its rotation")
	flags.StringVar(&f.tokenFile, "audit-token-file", "", "`file` with the bearer tokens that may send to /audit, one a line")
	f.tls.addFlags(cmd)
	flags.StringArrayVar(&f.clients, "audit-client", nil, "accept only client certificates of this common or DNS `name`; may be repeated")
	f.observer.addFlags(cmd)
}

func (f *intakeFlags) checkFlags() error {
	if err := f.tls.checkFlags(); err != nil {
		return err
	}
	if len(f.clients) > 0 && f.tls.clientCAFile == "" {
		return usageErrorf("audit-client: give the CA of the certificates with --tls-client-ca-file")
	}
	if err := f.observer.checkFlags(&f.tls); err != nil {
		return err
	}
	if f.tokenFile != "" {
		_, err := f.readTokens()
		return err
	}
	return nil
}

// expectsAudit reports whether audit events are to come: a log is followed, or senders are known.
func (f *intakeFlags) expectsAudit() bool {
	return f.auditFile != "" || f.tokenFile != "" || f.tls.clientCAFile != ""
}

// readTokens reads the bearer tokens that are accepted now.
func (f *intakeFlags) readTokens() ([]string, error) {
	text, err := os.ReadFile(f.tokenFile)
	if err != nil {
		return nil, fmt.Errorf("read audit tokens: %w", err)
	}
	tokens := strings.Fields(string(text))
	if len(tokens) == 0 {
		return nil, fmt.Errorf("read audit tokens: %s is empty: expected one token a line", f.tokenFile)
	}
	return tokens, nil
}

// newAccess says who may send audit events: those that were named, else everybody who can reach us where that is only this
// machine or was said aloud. Denied is called for those who may not.
func (f *intakeFlags) newAccess(l *listenFlags, denied func(cause string)) api.Access {
	a := api.Access{Clients: f.clients, Certificates: f.tls.clientCAFile != "", Denied: denied}
	if f.tokenFile != "" {
		a.Tokens = f.readTokens
	}
	a.Open = a.Tokens == nil && !a.Certificates && (l.isLoopback() || l.auth == authNone)
	return a
}

// watcher is the collector once there is one: the API answers before the cluster does.
type watcher struct {
	atomic.Pointer[collector.Collector]

	name atomic.Pointer[string] // of the cluster; nil while it is not known
}

// currentCluster names the cluster that is watched; empty while that is not known.
func (w *watcher) currentCluster() string {
	if name := w.name.Load(); name != nil {
		return *name
	}
	return ""
}

var errNoCluster = errors.New("the cluster has not answered yet")

// ingestAudit takes the audit events of one body.
func (w *watcher) ingestAudit(ctx context.Context, body io.Reader) (any, bool, error) {
	c := w.Load()
	if c == nil {
		return nil, false, fmt.Errorf("%w: %w", api.ErrBusy, errNoCluster)
	}
	report, err := c.Audit(ctx, body)
	switch {
	case errors.Is(err, collector.ErrBusy):
		err = fmt.Errorf("%w: %w", api.ErrBusy, err)
	case errors.Is(err, collector.ErrTooLarge):
		err = fmt.Errorf("%w: %w", api.ErrTooLarge, err)
	}
	return report, report.Refused > 0 && report.Refused == report.Events(), err
}

// answerReview answers an admission review, which is handed on once it was.
func (w *watcher) answerReview(raw []byte) ([]byte, func(), error) {
	r, err := collector.ReadReview(raw)
	if err != nil {
		return nil, nil, err
	}
	return r.Answer(), func() {
		if c := w.Load(); c != nil {
			c.Reviewed(r)
		}
	}, nil
}
