// Package dashboardstest stands in for Grafana in tests: it fills in what Grafana puts into queries before it sends them. In
// go a query, a time range and the values of variables, out comes what Postgres or Prometheus gets.
package dashboardstest
