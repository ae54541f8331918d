package metrics

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// Hub holds the instruments of a hub. All are safe for concurrent use.
type Hub struct {
	up       *prometheus.GaugeVec     // source
	requests *prometheus.HistogramVec // source, code; seconds
}

// NewHub makes the instruments of a hub and registers them.
func NewHub(reg prometheus.Registerer) *Hub {
	f := factory{reg}
	return &Hub{f.newGauges(HubSourceUp), f.newHistograms(HubSourceRequestDurationSeconds)}
}

// RegisterHTTP registers the instruments of m about what is asked over HTTP alone: a hub records nothing, and is to say nothing about a database.
func (m *Metrics) RegisterHTTP(reg prometheus.Registerer) {
	reg.MustRegister(m.HTTPRequests, m.Denied, m.HTTPShed)
}

// Up sets whether a source answers.
func (h *Hub) Up(source string, up bool) {
	value := 0.
	if up {
		value = 1
	}
	h.up.WithLabelValues(source).Set(value)
}

// Asked counts a request that was sent to a source: its status class, and how long it took.
func (h *Hub) Asked(source, code string, took time.Duration) {
	h.requests.WithLabelValues(source, code).Observe(took.Seconds())
}
