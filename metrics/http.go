package metrics

import (
	"strconv"
	"time"
)

// Answered counts a request that was answered: the template of its route, its method, its status and how long it took.
func (m *Metrics) Answered(route, method string, status int, took time.Duration) {
	m.HTTPRequests.WithLabelValues(route, method, strconv.Itoa(status/100)+"xx").Observe(took.Seconds())
}

// Refused counts a request that was refused for want of credentials.
func (m *Metrics) Refused(cause string) { m.Denied.WithLabelValues(cause).Inc() }

// The causes of HTTPShedTotal. All but the last are those of package api.
const (
	ShedShare       = "share"
	ShedCrowded     = "crowded"
	ShedBytes       = "bytes"
	ShedSlow        = "slow"
	ShedConnections = "connections"
)

// Shed counts what was not answered, or not to its end, as too much was asked.
func (m *Metrics) Shed(cause string) { m.HTTPShed.WithLabelValues(cause).Inc() }
