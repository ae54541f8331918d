package main

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"log/slog"
	"os"
	"sync"

	"github.com/spf13/cobra"
)

// tlsFlags say with which certificate we serve, and whose client certificates count.
type tlsFlags struct{ certFile, keyFile, clientCAFile string }

func (f *tlsFlags) addFlags(cmd *cobra.Command) {
	f.addCertFlags(cmd)
	cmd.Flags().StringVar(&f.clientCAFile, "tls-client-ca-file", "", "`file` with the CA of the client certificates that may send to /audit (PEM)")
}

// addCertFlags adds the flags that say with which certificate we serve.
func (f *tlsFlags) addCertFlags(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.StringVar(&f.certFile, "tls-cert-file", "", "serve HTTPS with the certificate in this `file` (PEM); read again for each connection")
	flags.StringVar(&f.keyFile, "tls-key-file", "", "`file` with its key (PEM)")
}

// isEnabled reports whether HTTPS is served.
func (f *tlsFlags) isEnabled() bool { return f.certFile != "" }

func (f *tlsFlags) checkFlags() error {
	switch {
	case (f.certFile == "") != (f.keyFile == ""):
		return usageErrorf("tls-cert-file and tls-key-file go together")
	case f.clientCAFile != "" && f.certFile == "":
		return usageErrorf("tls-client-ca-file: client certificates need HTTPS: give --tls-cert-file and --tls-key-file")
	case !f.isEnabled():
		return nil
	}
	_, err := f.readFiles()
	return err
}

// newTLSConfig returns a configuration that reads its files for each connection, so that renewed ones count at once; nil without a certificate.
// Files that cannot be read, or do not fit each other, as while they are being replaced, leave what was read before in force. API servers and
// Prometheus speak TLS 1.3, and so do browsers: nothing older is needed.
func (f *tlsFlags) newTLSConfig(log *slog.Logger) (*tls.Config, error) {
	if !f.isEnabled() {
		return nil, nil
	}
	last, err := f.readFiles()
	if err != nil {
		return nil, err
	}
	var mu sync.Mutex
	said := ""
	return &tls.Config{MinVersion: tls.VersionTLS13, GetConfigForClient: func(*tls.ClientHelloInfo) (*tls.Config, error) {
		c, err := f.readFiles()
		mu.Lock()
		defer mu.Unlock()
		switch {
		case err == nil:
			last, said = c, ""
		case err.Error() != said:
			said = err.Error()
			log.Warn("new certificate not read, the one before stays", "err", err)
		}
		return last, nil
	}}, nil
}

// readFiles reads the files.
func (f *tlsFlags) readFiles() (*tls.Config, error) {
	cert, err := tls.LoadX509KeyPair(f.certFile, f.keyFile)
	if err != nil {
		return nil, fmt.Errorf("read certificate: %w", err)
	}
	c := &tls.Config{MinVersion: tls.VersionTLS13, Certificates: []tls.Certificate{cert}, NextProtos: []string{"h2", "http/1.1"}}
	if f.clientCAFile == "" {
		return c, nil
	}
	pem, err := os.ReadFile(f.clientCAFile)
	if err != nil {
		return nil, fmt.Errorf("read client CA: %w", err)
	}
	c.ClientAuth, c.ClientCAs = tls.VerifyClientCertIfGiven, x509.NewCertPool()
	if !c.ClientCAs.AppendCertsFromPEM(pem) {
		return nil, fmt.Errorf("read client CA: no certificate in %s", f.clientCAFile)
	}
	return c, nil
}
