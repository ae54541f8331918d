package client

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net"
	"net/http"
	"net/url"
	"os"
	"strings"
	"sync/atomic"
	"time"

	"github.com/evictrail/evictrail/api"
	"github.com/evictrail/evictrail/trail"
)

// Options say where an evictrail is, whom to trust and what to show.
type Options struct {
	URL       string // http or https; a path is where it is below a proxy
	CAFile    string // PEM; empty: the system's
	TokenFile string // whose first line is a bearer token, read for each question; empty: none is sent
	// Missing is called with what an answer of several evictrails says of those whose part is missing; may be nil.
	Missing func(text string)
	// Wrap returns the transport that is used in place of the one that the other options describe; nil: that one.
	Wrap func(*http.Transport) http.RoundTripper
}

// The bounds of a conversation. A server answers within 5 s, and what would have been within 25 s, with at most 10 MiB.
const (
	timeout   = 30 * time.Second // of one answer
	maxAnswer = 32 << 20         // bytes
)

// Client is an evictrail elsewhere. It is safe for concurrent use.
type Client struct {
	base    *url.URL
	http    *http.Client
	token   func() string // that is sent; nil: none is
	missing func(text string)
	last    *atomic.Pointer[string] // what the last answer said is missing; nil or empty: nothing
}

var _ api.Reader = (*Client)(nil)

// New makes a client; nothing is asked yet.
func New(o Options) (*Client, error) {
	base, err := url.Parse(o.URL)
	if err != nil || base.Scheme != "http" && base.Scheme != "https" || base.Host == "" || base.User != nil || base.RawQuery != "" {
		return nil, errors.New("server URL: expected http://HOST:PORT or https://HOST")
	}
	if o.TokenFile != "" && IsClear(base) {
		return nil, errors.New("server URL: the token would be sent in the clear: use https, or no token")
	}
	transport := http.DefaultTransport.(*http.Transport).Clone()
	if o.CAFile != "" {
		pem, err := os.ReadFile(o.CAFile)
		if err != nil {
			return nil, fmt.Errorf("read CA of the server: %w", err)
		}
		transport.TLSClientConfig = &tls.Config{MinVersion: tls.VersionTLS12, RootCAs: x509.NewCertPool()}
		if !transport.TLSClientConfig.RootCAs.AppendCertsFromPEM(pem) {
			return nil, fmt.Errorf("read CA of the server: %s: expected certificates in PEM", o.CAFile)
		}
	}
	c := &Client{
		base: base, missing: o.Missing, last: new(atomic.Pointer[string]),
		http: &http.Client{Transport: transport, Timeout: timeout, CheckRedirect: refuseRedirect},
	}
	if o.Wrap != nil {
		c.http.Transport = o.Wrap(transport)
	}
	if o.TokenFile != "" {
		file := &tokenFile{path: o.TokenFile}
		if err := file.read(); err != nil {
			return nil, err
		}
		c.token = file.current
	}
	return c, nil
}

// tokenFile is a file whose first line is a token. It is safe for concurrent use.
type tokenFile struct {
	path string
	last atomic.Pointer[string] // that was last read from it
}

// read reads the token.
func (f *tokenFile) read() error {
	raw, err := os.ReadFile(f.path)
	if err != nil {
		return fmt.Errorf("read token for the server: %w", err)
	}
	line, _, _ := strings.Cut(string(raw), "\n")
	token := strings.TrimSpace(line)
	if token == "" {
		return fmt.Errorf("read token for the server: %s: the first line is empty", f.path)
	}
	f.last.Store(&token)
	return nil
}

// current returns the token that the file has now, so that a renewed one counts at once; while there is none, the former.
func (f *tokenFile) current() string {
	_ = f.read()
	return *f.last.Load()
}

// For returns a client that asks the same evictrail with another token; none where it is empty. It shares the connections.
func (c *Client) For(token string, missing func(text string)) *Client {
	other := c.Noting(missing)
	other.token = nil
	if token != "" {
		other.token = func() string { return token }
	}
	return other
}

// Noting returns a client that asks the same evictrail with the same token, and calls missing as Options.Missing is called.
// It shares the connections.
func (c *Client) Noting(missing func(text string)) *Client {
	other := *c
	other.missing = missing
	return &other
}

// Missing returns what the last answer said of the evictrails whose part is missing in it; empty: nothing is.
func (c *Client) Missing() string {
	if text := c.last.Load(); text != nil {
		return *text
	}
	return ""
}

// IsClear reports whether others between us and a server could read what is sent there.
func IsClear(server *url.URL) bool { return server.Scheme == "http" && !isLoopback(server.Hostname()) }

// isLoopback reports whether only this machine is between us and a host.
func isLoopback(host string) bool {
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && ip.IsLoopback()
}

// refuseRedirect follows no redirect: evictrail sends none, and a token is not for others.
func refuseRedirect(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }

// Close closes the connections.
func (c *Client) Close() { c.http.CloseIdleConnections() }

// remoteError is what the server said, and what that means to a caller.
type remoteError struct {
	text     string
	sentinel error
}

func (e *remoteError) Error() string { return e.text }

func (e *remoteError) Unwrap() error { return e.sentinel }

// get asks for a path below the server's URL, and returns the body and the headers of an answer of a media type. A problem becomes
// the error that it describes; *api.Problem where that is none of the sentinels.
func (c *Client) get(ctx context.Context, at *url.URL, mediaType string) ([]byte, http.Header, error) {
	return c.sendRequest(ctx, http.MethodGet, at, mediaType, http.NoBody)
}

// sendRequest is get with a method and a body.
func (c *Client) sendRequest(ctx context.Context, method string, at *url.URL, mediaType string, body io.Reader) ([]byte, http.Header, error) {
	answer, err := c.do(ctx, method, at, mediaType, body)
	if err != nil {
		return nil, nil, err
	}
	defer func() { _ = answer.Body.Close() }()
	got, err := io.ReadAll(io.LimitReader(answer.Body, maxAnswer))
	if err != nil {
		return nil, nil, fmt.Errorf("ask %s: %w", c.base, err)
	}
	text := answer.Header.Get(api.MissingHeader)
	if c.last.Store(&text); text != "" && c.missing != nil {
		c.missing(text)
	}
	sort, _, _ := mime.ParseMediaType(answer.Header.Get("Content-Type"))
	switch {
	case (answer.StatusCode == http.StatusOK || answer.StatusCode == http.StatusCreated) && sort == mediaType:
		return got, answer.Header, nil
	case sort == "application/problem+json":
		return nil, nil, c.parseProblem(got)
	}
	return nil, nil, fmt.Errorf("ask %s: it does not answer as evictrail does (%s, %s): is the URL right?", c.base, answer.Status, sort)
}

// do sends a request, and returns the answer before it was read.
func (c *Client) do(ctx context.Context, method string, at *url.URL, mediaType string, body io.Reader) (*http.Response, error) {
	target := c.base.JoinPath(at.EscapedPath())
	target.RawQuery = at.RawQuery
	r, err := http.NewRequestWithContext(ctx, method, target.String(), body)
	if err != nil {
		return nil, fmt.Errorf("ask %s: %w", c.base, err)
	}
	if body != http.NoBody {
		r.Header.Set("Content-Type", "application/json")
	}
	r.Header.Set("Accept", mediaType+", application/problem+json")
	if c.token != nil {
		r.Header.Set("Authorization", "Bearer "+c.token())
	}
	answer, err := c.http.Do(r)
	if err != nil {
		var failed *url.Error
		if errors.As(err, &failed) {
			err = failed.Err // without the whole URL
		}
		return nil, fmt.Errorf("ask %s: %w: is evictrail serving there?", c.base, err)
	}
	return answer, nil
}

// parseProblem returns the error that a problem describes.
func (c *Client) parseProblem(body []byte) error {
	var p api.Problem
	if err := json.Unmarshal(body, &p); err != nil {
		return fmt.Errorf("ask %s: read problem: %w", c.base, err)
	}
	switch p.Type {
	case api.ProblemUnknown:
		return &remoteError{p.Detail, trail.ErrNotFound}
	case api.ProblemSeveral:
		return &trail.AmbiguousError{Name: p.Name, Clusters: p.Clusters}
	}
	switch {
	case p.Status == http.StatusUnauthorized && c.token == nil:
		return fmt.Errorf("ask %s: %w: give it with --server-token-file, such as `kubectl create token SERVICEACCOUNT --audience=evictrail > FILE`", c.base, &p)
	case p.Status == http.StatusUnauthorized:
		return fmt.Errorf("ask %s: %w: has that of --server-token-file expired?", c.base, &p)
	}
	return fmt.Errorf("ask %s: %w", c.base, &p)
}

// getJSON asks for JSON and reads it.
func getJSON[T any](ctx context.Context, c *Client, at *url.URL) (answer T, err error) {
	body, _, err := c.get(ctx, at, "application/json")
	if err != nil {
		return answer, err
	}
	err = c.parseJSON(body, &answer)
	return answer, err
}

// parseJSON reads JSON.
func (c *Client) parseJSON(body []byte, into any) error {
	if err := json.Unmarshal(body, into); err != nil {
		return fmt.Errorf("read answer of %s: %w", c.base, err)
	}
	return nil
}
