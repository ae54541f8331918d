package collector

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/url"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/client-go/rest"
)

// TestSteady has errors of a connection read alike at each attempt, and leaves those that the API server answered with.
func TestSteady(t *testing.T) {
	t.Parallel()
	failed := func(timeout, port int) error {
		return fmt.Errorf("watch: %w", &url.Error{
			Op: "Get", URL: fmt.Sprintf("https://10.0.0.1:6443/api/v1/pods?resourceVersion=%d&timeoutSeconds=%d&watch=true", 7*timeout, timeout),
			Err: &net.OpError{
				Op: "read", Net: "tcp", Source: &net.TCPAddr{IP: net.IPv4(10, 0, 0, 7), Port: port}, Addr: &net.TCPAddr{IP: net.IPv4(10, 0, 0, 1), Port: 6443},
				Err: syscall.ECONNRESET,
			},
		})
	}
	const text = `watch: Get "https://10.0.0.1:6443/api/v1/pods": read tcp 10.0.0.1:6443: connection reset by peer`
	require.EqualError(t, stripVarying(failed(312, 40312)), text)
	require.EqualError(t, stripVarying(failed(589, 51820)), text)
	require.ErrorIs(t, stripVarying(failed(312, 40312)), syscall.ECONNRESET)

	answer := errors.New(`pods "a?b" is forbidden`)
	require.Equal(t, answer, stripVarying(answer))
	require.NoError(t, stripVarying(nil))
}

// TestAnAPIServerThatIsAwayIsLoggedOnce lets each watch try again and again, with another timeout in its URL each time.
func TestAnAPIServerThatIsAwayIsLoggedOnce(t *testing.T) {
	t.Parallel()
	var tries atomic.Int64
	r := startCollector(t, newAPI(), &sink{}, func(c *Config) {
		c.REST = rest.CopyConfig(c.REST)
		c.REST.Dial = func(context.Context, string, string) (net.Conn, error) {
			tries.Add(1)
			return nil, &net.OpError{Op: "dial", Net: "tcp", Addr: &net.TCPAddr{IP: net.IPv4(10, 0, 0, 1), Port: 6443}, Err: syscall.ECONNREFUSED}
		}
	})
	r.requireEventually(t, "each watch tried some times", func() bool { return tries.Load() >= int64(4*len(resources)) })
	require.NoError(t, r.stop())
	for _, of := range resources {
		require.LessOrEqual(t, strings.Count(r.log.String(), "resource="+of.String()+" "), 1, r.log)
	}
	require.Contains(t, r.log.String(), "watch refused")
	require.NotContains(t, r.log.String(), "timeoutSeconds")
}
