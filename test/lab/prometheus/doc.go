// Package prometheus runs a real Prometheus beside the lab: it scrapes evictrail and evaluates the alert rules that evictrail ships with.
//
// The program comes from EVICTRAIL_PROMETHEUS, from PATH, or from bin/debian, where hack/ensure-promtool.sh puts it.
package prometheus
