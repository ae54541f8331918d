package cluster

import (
	"errors"
	"net"
	"net/http"
	"time"
)

// serveLoad serves the load of the simulated nodes until the lab stops.
func (c *Cluster) serveLoad() error {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	server := &http.Server{Handler: c.Nodes.LoadHandler(), ReadHeaderTimeout: time.Minute}
	go func() {
		if err := server.Serve(listener); err != nil && !errors.Is(err, http.ErrServerClosed) {
			c.host.Logf("load is not served any more: %v", err)
		}
	}()
	c.host.Cleanup(func() { _ = server.Close() })
	c.LoadURL = "http://" + listener.Addr().String()
	return nil
}
