// Package prometheus runs a real Prometheus beside the lab: it scrapes evictrail and evaluates the alert rules that evictrail ships with.
//
//	p, err := prometheus.Start(t, dir, caFile, "127.0.0.1:8443")
//	alerts, err := p.Alerts(ctx)
//
// The program comes from EVICTRAIL_PROMETHEUS, from PATH, or from bin/debian, where hack/ensure-promtool.sh puts it.
package prometheus
