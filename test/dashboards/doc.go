// Package dashboards tests the expressions of the dashboards with Prometheus' own parser: that each parses, and names metrics
// and labels that exist.
package dashboards
