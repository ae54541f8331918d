package prometheus

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"time"

	"sigs.k8s.io/yaml"

	"github.com/evictrail/evictrail/test/build"
	"github.com/evictrail/evictrail/test/cluster/kubetest"
	"github.com/evictrail/evictrail/test/ports"
)

// ErrNotFound is the error of Program where there is none.
var ErrNotFound = errors.New("no program prometheus: run hack/ensure-promtool.sh, or set EVICTRAIL_PROMETHEUS to its path")

// every is the time between two scrapes, and between two evaluations of the rules.
const every = 5 * time.Second

// ready bounds how long Prometheus may take to start.
const ready = time.Minute

// Prometheus is a running Prometheus.
type Prometheus struct{ address string }

// Program returns the path of the program prometheus. The error is ErrNotFound.
func Program() (string, error) {
	if path := os.Getenv("EVICTRAIL_PROMETHEUS"); path != "" {
		return path, nil
	}
	if path, err := exec.LookPath("prometheus"); err == nil {
		return path, nil
	}
	path := filepath.Join(build.Root(), "bin/debian/prometheus")
	if _, err := os.Stat(path); err != nil {
		return "", ErrNotFound
	}
	return path, nil
}

// Start starts Prometheus, which writes below the folder, and has it scrape evictrail at these addresses, whose certificates are of the
// authority in a file. It returns when Prometheus is ready; it ends with tb.
func Start(tb kubetest.TB, dir, caFile string, addresses ...string) (*Prometheus, error) {
	tb.Helper()
	program, err := Program()
	if err != nil {
		return nil, err
	}
	config, err := writeConfig(dir, caFile, addresses)
	if err != nil {
		return nil, err
	}
	p := &Prometheus{address: ports.Free(tb)}
	process := kubetest.StartProcess(tb, filepath.Join(dir, "prometheus.log"), program,
		"--config.file="+config, "--storage.tsdb.path="+filepath.Join(dir, "data"), "--web.listen-address="+p.address)
	for deadline := time.Now().Add(ready); ; {
		err := p.getJSON(tb.Context(), "/-/ready", nil)
		switch {
		case err == nil:
			return p, nil
		case !process.Running() || time.Now().After(deadline):
			return nil, fmt.Errorf("start Prometheus: %w: see %s", err, filepath.Join(dir, "prometheus.log"))
		}
		select {
		case <-time.After(100 * time.Millisecond):
		case <-tb.Context().Done():
			return nil, context.Cause(tb.Context())
		}
	}
}

// writeConfig writes prometheus.yaml and returns its path.
func writeConfig(dir, caFile string, addresses []string) (string, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return "", err
	}
	text, err := yaml.Marshal(map[string]any{
		"global":     map[string]any{"scrape_interval": every.String(), "evaluation_interval": every.String()},
		"rule_files": []string{filepath.Join(build.Root(), "deploy/alerts/rules.yaml")},
		"scrape_configs": []any{map[string]any{
			"job_name": "evictrail", "scheme": "https", "honor_labels": true, "tls_config": map[string]any{"ca_file": caFile},
			"static_configs": []any{map[string]any{"targets": addresses}},
		}},
	})
	if err != nil {
		return "", err
	}
	path := filepath.Join(dir, "prometheus.yaml")
	return path, os.WriteFile(path, text, 0o600)
}

// URL is that of its pages.
func (p *Prometheus) URL() string { return "http://" + p.address }

// Alert is an alert whose expression is true.
type Alert struct {
	Labels map[string]string `json:"labels"`
}

// Name is the name of the alert's rule.
func (a Alert) Name() string { return a.Labels["alertname"] }

// Alerts returns the alerts whose expressions are true now.
func (p *Prometheus) Alerts(ctx context.Context) ([]Alert, error) {
	var answer struct {
		Data struct {
			Alerts []Alert `json:"alerts"`
		} `json:"data"`
	}
	err := p.getJSON(ctx, "/api/v1/alerts", &answer)
	return answer.Data.Alerts, err
}

// PastAlert is how long an alert was in one state since Prometheus started.
type PastAlert struct {
	Alert
	Lasted time.Duration // at all times together, to the step of evaluations
}

// State is "pending" or "firing".
func (a PastAlert) State() string { return a.Labels["alertstate"] }

// PastAlerts returns each alert that was pending or firing since Prometheus started, once for each state. It reads the series ALERTS, which Prometheus writes at
// each evaluation; an alert of now is among them.
func (p *Prometheus) PastAlerts(ctx context.Context) ([]PastAlert, error) {
	var answer struct {
		Data struct {
			Result []struct {
				Metric map[string]string `json:"metric"`
				Value  [2]any            `json:"value"` // time, count as a string
			} `json:"result"`
		} `json:"data"`
	}
	if err := p.getJSON(ctx, "/api/v1/query?query="+url.QueryEscape("count_over_time(ALERTS[1d])"), &answer); err != nil {
		return nil, err
	}
	var past []PastAlert
	for _, r := range answer.Data.Result {
		count, err := strconv.ParseFloat(fmt.Sprint(r.Value[1]), 64)
		if err != nil {
			return nil, fmt.Errorf("count of evaluations of %s: %w", r.Metric, err)
		}
		past = append(past, PastAlert{Alert: Alert{Labels: r.Metric}, Lasted: time.Duration(count) * every})
	}
	return past, nil
}

// getJSON reads what a path answers: JSON into the value, which may be nil.
func (p *Prometheus) getJSON(ctx context.Context, path string, into any) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, p.URL()+path, http.NoBody)
	if err != nil {
		return err
	}
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		return err
	}
	defer func() { _ = answer.Body.Close() }()
	if answer.StatusCode != http.StatusOK {
		return fmt.Errorf("%s answers %s", path, answer.Status)
	}
	if into == nil {
		return nil
	}
	return json.NewDecoder(answer.Body).Decode(into)
}
