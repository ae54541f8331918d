package played_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/evictrail/evictrail/test/ports"
)

// server is a running Prometheus.
type server struct{ url string }

// startPrometheus starts a Prometheus on a data directory, with a configuration, until the test ends.
func startPrometheus(t *testing.T, data, config string) server {
	t.Helper()
	file := filepath.Join(t.TempDir(), "prometheus.yml")
	require.NoError(t, os.WriteFile(file, []byte(config), 0o600))
	address := ports.Free(t)
	startProgram(t, "prometheus", "--config.file="+file, "--storage.tsdb.path="+data, "--web.listen-address="+address, "--log.level=warn",
		"--storage.tsdb.retention.time=100y", "--query.max-samples=10000000")
	s := server{"http://" + address}
	require.Eventually(t, func() bool { return s.isReady(t) }, 3*time.Minute, 50*time.Millisecond, "Prometheus gets ready")
	return s
}

func (s server) isReady(t *testing.T) bool {
	t.Helper()
	answer, err := http.Get(s.url + "/-/ready")
	if err != nil {
		return false
	}
	defer func() { _ = answer.Body.Close() }()
	return answer.StatusCode == http.StatusOK
}

// callAPI asks the API, and reads the data of its answer.
func (s server) callAPI(t *testing.T, path string, query url.Values, into any) error {
	t.Helper()
	answer, err := http.Get(s.url + "/api/v1/" + path + "?" + query.Encode())
	require.NoError(t, err)
	defer func() { _ = answer.Body.Close() }()
	var body struct {
		Status, Error string
		Data          json.RawMessage
	}
	require.NoError(t, json.NewDecoder(answer.Body).Decode(&body))
	if body.Status != "success" {
		return fmt.Errorf("%s", body.Error)
	}
	return json.Unmarshal(body.Data, into)
}

// result is what a query returns.
type result struct {
	ResultType string
	Result     []struct {
		Metric    map[string]string
		Value     [2]any
		Values    [][2]any
		Histogram []any
	}
}

// queryNow evaluates an expression at the present time.
func (s server) queryNow(t *testing.T, expr string) (result, error) {
	t.Helper()
	var r result
	err := s.callAPI(t, "query", url.Values{"query": {expr}}, &r)
	return r, err
}

// queryRange evaluates an expression over the time of an incident.
func (s server) queryRange(t *testing.T, expr string, i incident) (result, error) {
	t.Helper()
	var r result
	err := s.callAPI(t, "query_range", url.Values{
		"query": {expr}, "start": {i.from.Format(time.RFC3339)}, "end": {i.to.Format(time.RFC3339)}, "step": {"15"},
	}, &r)
	return r, err
}
