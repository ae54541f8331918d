// Package dashboardstest stands in for Grafana in tests: it fills in what Grafana puts into queries before it sends them. In
// go a query, a time range and the values of variables, out comes what Postgres or Prometheus gets.
//
//	text, err := dashboardstest.SQL("SELECT 1 WHERE now() > $__timeFrom()", from, to, time.Minute, dashboardstest.Values{"cluster": {"prod"}})
package dashboardstest
