// Package played tests rules and dashboards on the recorded incidents. Each recording is played by the built binary into a
// real Postgres, with the metrics that evictrail would have had; promtool makes blocks of these, a real Prometheus has them
// loaded, and its engine evaluates the rules in the recording's own time. The newest Prometheus and promtool are built from the
// module test/promtool.
//
//   - alerts_test.go: which alerts fire on which recording, and on what; rules_test.go has the engine.
//   - simulated_test.go: hours of simulated histories whose truth is known, from what is seen to the alerts.
//   - panels_test.go: every query of every panel.
//   - scrape_test.go: a running service, scraped.
package played
