// Package alerts holds the recording rules, the alerts and the inhibition rules that Prometheus and Alertmanager get. In go
// an address or two (Options), out come groups of rules (Groups), YAML of them (PrometheusRule, RulesFile) and inhibition
// rules (InhibitRules). It makes no requests and runs nothing; "evictrail generate alerts" prints what it returns.
//
//	groups := alerts.Groups(alerts.DefaultOptions())
//	err := alerts.Lint(groups)            // nil: every alert has what it must have
//	text, err := alerts.RulesFile(groups) // YAML for Prometheus
//
// One file for each group, named by its noun: read loops.go first, then promql.go for how expressions are put together and
// lint.go for what every alert must have. Names of metrics come from package metrics, values of labels from package trail.
// Each alert has a page in docs/runbooks and cases in testdata, where it fires and where it does not; test/prometheus runs
// them with promtool and takes every threshold away once to see that a case notices.
//
// The files under deploy/alerts are what the command prints, and the command is the only way to write them: "make
// generate" runs the line below, "make verify" fails where they are out of date.
//
//go:generate go run github.com/evictrail/evictrail/cmd/evictrail generate alerts --dir ../deploy/alerts
package alerts
