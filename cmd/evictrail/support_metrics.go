package main

import (
	"context"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"

	"github.com/spf13/cobra"
	"k8s.io/client-go/rest"

	"github.com/evictrail/evictrail/api/client"
)

// metricsFlags say where the metrics of an evictrail are read.
type metricsFlags struct{ url, caFile, tokenFile string }

func (m *metricsFlags) addFlags(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.StringVar(&m.url, "metrics-url", "",
		"`URL` of the metrics of an evictrail; by default /metrics at the address of --listen")
	flags.StringVar(&m.caFile, "metrics-ca-file", "",
		"`file` with the CA of its certificate (PEM); by default the certificate of --tls-cert-file, else the system's")
	flags.StringVar(&m.tokenFile, "metrics-token-file", "",
		"`file` with a bearer token that may read them, where --auth=kubernetes asks for one")
}

func (m *metricsFlags) checkFlags() error {
	if m.url == "" {
		return nil
	}
	u, err := url.Parse(m.url)
	switch {
	case err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" || u.User != nil:
		return usageErrorf("metrics-url: expected an address such as https://evictrail.example/metrics")
	case m.tokenFile != "" && client.IsClear(u):
		return usageErrorf("metrics-url: the token would be sent in the clear: use https")
	}
	return nil
}

// mostMetrics is how much of them is read, in bytes.
const mostMetrics = 32 << 20

// fetchMetrics copies the metrics of the evictrail that the flags name, or of the one that runs here with these
// settings.
func (m *metricsFlags) fetchMetrics(ctx context.Context, listen *listenFlags, serves *tlsFlags, out io.Writer) error {
	address := m.url
	trusts := rest.TLSClientConfig{CAFile: m.caFile}
	if address == "" {
		address = localMetrics(listen, serves)
		if serves.isEnabled() && m.caFile == "" {
			trusts = trustCertificate(serves.certFile)
		}
	}
	asks, err := rest.HTTPClientFor(&rest.Config{
		BearerTokenFile: m.tokenFile, UserAgent: rest.DefaultKubernetesUserAgent(), Timeout: checkTimeout,
		TLSClientConfig: trusts,
	})
	if err != nil {
		return fmt.Errorf("read metrics: %w", err)
	}
	defer asks.CloseIdleConnections()
	asks.CheckRedirect = func(*http.Request, []*http.Request) error {
		return http.ErrUseLastResponse // the token is for this host alone
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, address, http.NoBody)
	if err != nil {
		return err
	}
	answer, err := asks.Do(request)
	if err != nil {
		return fmt.Errorf("%w (is it running? --metrics-url names another address)", err)
	}
	defer func() { _ = answer.Body.Close() }()
	switch answer.StatusCode {
	case http.StatusOK:
	case http.StatusUnauthorized, http.StatusForbidden:
		return fmt.Errorf("%s: %s: name a token that may read it with --metrics-token-file", address, answer.Status)
	default:
		return fmt.Errorf("%s: %s", address, answer.Status)
	}
	read, err := io.Copy(out, io.LimitReader(answer.Body, mostMetrics))
	if err == nil && read == mostMetrics {
		err = fmt.Errorf("%s: cut off after %d bytes", address, mostMetrics)
	}
	return err
}

// localMetrics returns where an evictrail with these settings serves its metrics.
func localMetrics(listen *listenFlags, serves *tlsFlags) string {
	u := url.URL{Scheme: "http", Host: listen.listen, Path: "/metrics"}
	if serves.isEnabled() {
		u.Scheme = "https"
	}
	host, port, err := net.SplitHostPort(listen.listen)
	if ip := net.ParseIP(host); err == nil && (host == "" || ip != nil && ip.IsUnspecified()) {
		u.Host = net.JoinHostPort("127.0.0.1", port)
	}
	return u.String()
}

// trustCertificate returns what accepts the certificate of a file, no matter by which of its names we reach who has it.
func trustCertificate(file string) rest.TLSClientConfig {
	trusts := rest.TLSClientConfig{CAFile: file}
	text, err := os.ReadFile(file)
	if block, _ := pem.Decode(text); err == nil && block != nil {
		if c, err := x509.ParseCertificate(block.Bytes); err == nil && len(c.DNSNames) > 0 {
			trusts.ServerName = c.DNSNames[0]
		}
	}
	return trusts
}
