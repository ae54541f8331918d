package bench_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"github.com/stretchr/testify/require"

	"github.com/evictrail/evictrail/metrics"
)

// scrapes is how often the metrics are read; the middle one counts.
const scrapes = 21

// TestScrape reads the metrics of a cluster after its facts were counted, against those of a registry with as many plain counters.
func TestScrape(t *testing.T) { //nolint:paralleltest // what runs beside it would be measured, too
	for _, nodes := range listSizes(50) {
		s, _ := newStore(t)
		facts := simulateFacts(min(20*nodes, 10_000))
		ours, theirs := prometheus.NewRegistry(), prometheus.NewRegistry()
		m := metrics.New(ours)
		for i := range nodes {
			m.Node(fmt.Sprintf("worker-%d", i))
		}
		news, err := s.Append(t.Context(), "bench", facts)
		require.NoError(t, err)
		now := facts[len(facts)-1].ObservedAt
		m.Count(news, now)
		m.CountRest()
		state, err := s.State(t.Context(), "bench", now)
		require.NoError(t, err)
		m.SetState(state)
		series := 0
		families, err := ours.Gather()
		require.NoError(t, err)
		for _, f := range families {
			series += len(f.GetMetric())
		}
		plain := prometheus.NewCounterVec(prometheus.CounterOpts{Name: "plain_total", Help: "As many series without any meaning."}, []string{"of"})
		theirs.MustRegister(plain)
		for i := range series {
			plain.WithLabelValues(fmt.Sprint(i)).Inc()
		}
		var our, their []float64
		for range scrapes {
			our, their = append(our, measureScrape(ours)), append(their, measureScrape(theirs))
		}
		addRows(row{fmt.Sprintf("scrape of %d nodes, %d series", nodes, series), "ms", our, "as many counters", their})
	}
}

// measureScrape returns how long it takes to answer, in ms.
func measureScrape(r *prometheus.Registry) float64 {
	handler := promhttp.HandlerFor(r, promhttp.HandlerOpts{EnableOpenMetrics: true})
	began := time.Now()
	handler.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest(http.MethodGet, "/metrics", http.NoBody))
	return float64(time.Since(began).Microseconds()) / 1000
}
