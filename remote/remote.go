package remote

import (
	"bytes"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"time"

	"k8s.io/client-go/rest"
)

// Server says where a server is, and how it is reached.
type Server struct {
	URL       string
	TokenFile string // with the bearer token to send, read again when it changes; empty: none
	CAFile    string // with the CA of its certificate (PEM), read again when it changes; empty: those of the system
	Insecure  bool   // do not check its certificate
}

// String returns the URL without what may be secret: a user, a password and a query.
func (s Server) String() string {
	u, err := url.Parse(s.URL)
	if err != nil {
		return "the server"
	}
	u.User, u.RawQuery = nil, ""
	return u.String()
}

// Client has an HTTP client of a server. It is not safe for concurrent use.
type Client struct {
	server Server
	within time.Duration
	ca     []byte
	http   *http.Client
}

// NewClient makes a client whose requests may each take so long. Its errors are of the files that the server names.
func NewClient(server Server, within time.Duration) (*Client, error) {
	c := &Client{server: server, within: within}
	_, _, err := c.Current()
	return c, err
}

// Current returns the HTTP client to use now, and whether it is another one than before: the CA has changed. It follows no redirects: the
// token is for this server alone.
func (c *Client) Current() (client *http.Client, renewed bool, err error) {
	var ca []byte
	if c.server.CAFile != "" {
		if ca, err = os.ReadFile(c.server.CAFile); err != nil {
			return nil, false, fmt.Errorf("reach %s: %w", c.server, err)
		}
	}
	if c.http != nil && bytes.Equal(ca, c.ca) {
		return c.http, false, nil
	}
	client, err = rest.HTTPClientFor(&rest.Config{
		BearerTokenFile: c.server.TokenFile, UserAgent: rest.DefaultKubernetesUserAgent(), Timeout: c.within,
		TLSClientConfig: rest.TLSClientConfig{CAData: ca, Insecure: c.server.Insecure},
	})
	if err != nil {
		return nil, false, fmt.Errorf("reach %s: %w", c.server, err)
	}
	client.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	c.http, c.ca = client, ca
	return client, true, nil
}
