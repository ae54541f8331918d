package main

import (
	"context"
	"crypto/tls"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os"
	"regexp"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/evictrail/evictrail/api"
	"github.com/evictrail/evictrail/metrics"
)

// observerFlags say whether evictions are observed, and how API servers prove to be some. Reviews have a listener of their own: anyone who
// may read the page or scrape metrics has no way to it.
type observerFlags struct {
	on           bool
	at           listenFlags
	secretFile   string
	clientCAFile string
	clients      []string
}

func (f *observerFlags) addFlags(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.BoolVar(&f.on, "eviction-observer", false, "serve /admission on --admission-listen: an admission webhook that sees evictions and allows them all")
	flags.StringVar(&f.at.listen, "admission-listen", "127.0.0.1:9443", "`address` of /admission, for API servers alone; other hosts need a secret or a client certificate")
	flags.StringVar(&f.secretFile, "admission-secret-file", "", "`file` with the secret that follows /admission/ in the path, one a line; read again for each review")
	flags.StringVar(&f.clientCAFile, "admission-client-ca-file", "", "`file` with the CA of the client certificates that may send reviews (PEM)")
	flags.StringArrayVar(&f.clients, "admission-client", nil, "accept only reviews with a client certificate of this common or DNS `name`; may be repeated")
}

// checkFlags refuses an observer to which anybody on the network could report requests that were never made.
func (f *observerFlags) checkFlags(server *tlsFlags) error {
	if !f.on {
		return nil
	}
	if _, _, err := net.SplitHostPort(f.at.listen); err != nil {
		return usageErrorf("admission-listen %q: expected HOST:PORT, such as 127.0.0.1:9443", f.at.listen)
	}
	switch known := f.secretFile != "" || f.clientCAFile != ""; {
	case len(f.clients) > 0 && f.clientCAFile == "":
		return usageErrorf("admission-client: give the CA of the certificates with --admission-client-ca-file")
	case f.clientCAFile != "" && !server.isEnabled():
		return usageErrorf("admission-client-ca-file: client certificates need HTTPS: give --tls-cert-file and --tls-key-file")
	case !f.at.isLoopback() && !known:
		return usageErrorf("admission-listen %s: anyone who reaches it could record evictions that nobody asked for: give --admission-secret-file or --admission-client-ca-file, or listen on 127.0.0.1 (docs/audit.md)", f.at.listen)
	case !f.at.isLoopback() && !server.isEnabled():
		return usageErrorf("admission-listen %s: API servers call webhooks over HTTPS alone, and the secret would be sent in the clear: give --tls-cert-file and --tls-key-file", f.at.listen)
	}
	if f.secretFile != "" {
		if _, err := f.readSecretFile(); err != nil {
			return err
		}
	}
	return f.newTLSFlags(server).checkFlags()
}

// secretForm is what may follow /admission/ in a path as it is, and is not guessed.
var secretForm = regexp.MustCompile(`^[a-z0-9][a-z0-9-]{18,126}[a-z0-9]$`)

// readSecrets reads the secrets of a file, one a line.
func readSecrets(file string) ([]string, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, fmt.Errorf("read admission secret: %w", err)
	}
	secrets := strings.Fields(string(text))
	if len(secrets) == 0 {
		return nil, fmt.Errorf("read admission secret: %s is empty: expected one secret a line, such as `openssl rand -hex 32` makes", file)
	}
	for _, s := range secrets {
		if !secretForm.MatchString(s) {
			return nil, fmt.Errorf("read admission secret: a line of %s is no secret: expected 20 to 128 lower-case letters, digits or -, as API servers take no others in a path, such as `openssl rand -hex 32` makes", file)
		}
	}
	return secrets, nil
}

// readSecretFile reads those that are accepted now.
func (f *observerFlags) readSecretFile() ([]string, error) { return readSecrets(f.secretFile) }

// newAccess says who may send reviews: whom the flags name, else anyone who is on this machine.
func (f *observerFlags) newAccess(denied func(cause string)) api.Access {
	a := api.Access{Clients: f.clients, Certificates: f.clientCAFile != "", Denied: denied}
	if f.secretFile != "" {
		a.Tokens = f.readSecretFile
	}
	a.Open = a.Tokens == nil && !a.Certificates
	return a
}

// newTLSFlags is the certificate that we serve with elsewhere, with the CA of those who send reviews.
func (f *observerFlags) newTLSFlags(server *tlsFlags) *tlsFlags {
	return &tlsFlags{certFile: server.certFile, keyFile: server.keyFile, clientCAFile: f.clientCAFile}
}

// observer is the listener of reviews; nil: there is none.
type observer struct {
	listener net.Listener
	tls      *tls.Config // nil: plain HTTP
	access   api.Access
	hosts    []string
	metrics  *metrics.Metrics
	log      *slog.Logger
}

// bindAddress takes the address; nil where evictions are not observed.
func (f *observerFlags) bindAddress(ctx context.Context, server *tlsFlags, m *metrics.Metrics, log *slog.Logger) (*observer, error) {
	if !f.on {
		return nil, nil
	}
	config, err := f.newTLSFlags(server).newTLSConfig(log)
	if err != nil {
		return nil, err
	}
	var lc net.ListenConfig
	listener, err := lc.Listen(ctx, "tcp", f.at.listen)
	if err != nil {
		return nil, fmt.Errorf("listen on %s: %w: choose another address with --admission-listen", f.at.listen, err)
	}
	o := &observer{listener: listener, tls: config, access: f.newAccess(m.Refused), metrics: m, log: log}
	if f.at.isLoopback() {
		o.hosts = f.at.listAllowedHosts()
	}
	log.Info("reviews of evictions are taken", "admission", listener.Addr().String())
	return o, nil
}

// serveReviews answers reviews until ctx ends.
func (o *observer) serveReviews(ctx context.Context, review func(raw []byte) ([]byte, func(), error)) error {
	if o == nil {
		return nil
	}
	handler := api.Server{
		Admission: &api.Admission{Review: review, Access: o.access}, Hosts: o.hosts, Observe: o.metrics.Answered, Denied: o.metrics.Refused,
	}.Handler()
	server := &http.Server{
		Handler: handler, TLSConfig: o.tls, ReadHeaderTimeout: 2 * time.Second, ReadTimeout: 5 * time.Second, WriteTimeout: 10 * time.Second,
		IdleTimeout: 2 * time.Minute, MaxHeaderBytes: 16 << 10, ErrorLog: slog.NewLogLogger(o.log.Handler(), slog.LevelWarn),
	}
	return serveUntil(ctx, server, newFairListener(o.listener, newShedding(o.metrics.Shed, o.log).shedConnection), o.log)
}
