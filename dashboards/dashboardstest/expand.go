package dashboardstest

import (
	"fmt"
	"regexp"
	"strings"
	"time"
)

// Values of the variables; one without a value chooses nothing.
type Values map[string][]string

var (
	macro     = regexp.MustCompile(`\$([_a-zA-Z0-9]+)\(([^)]*)\)`)
	formatted = regexp.MustCompile(`\$\{(\w+)(?::(\w+))?\}`)
	plain     = regexp.MustCompile(`\$(\w+)`)
)

// SQL fills in a query of Postgres. It knows the macros and formats that the dashboards use and refuses others, as Grafana does
// or as it should. interval is what Grafana takes for one point.
//
// Source: grafana/grafana pkg/tsdb/grafana-postgresql-datasource/macros.go, sqleng/sql_engine.go (Interpolate).
func SQL(query string, from, to time.Time, interval time.Duration, vars Values) (string, error) {
	var bad error
	query = formatted.ReplaceAllStringFunc(query, func(found string) string {
		part := formatted.FindStringSubmatch(found)
		values, ok := vars[part[1]]
		if !ok || part[2] != "sqlstring" {
			bad = fmt.Errorf("%s: unknown, or not as sqlstring", found)
		}
		quoted := make([]string, len(values))
		for i, v := range values {
			quoted[i] = "'" + strings.ReplaceAll(v, "'", "''") + "'"
		}
		return strings.Join(quoted, ",")
	})
	query = strings.ReplaceAll(query, "$__interval_ms", fmt.Sprint(interval.Milliseconds()))
	at := func(t time.Time) string { return "'" + t.UTC().Format(time.RFC3339Nano) + "'" }
	query = macro.ReplaceAllStringFunc(query, func(found string) string {
		part := macro.FindStringSubmatch(found)
		switch part[1] {
		case "__timeFrom":
			return at(from)
		case "__timeTo":
			return at(to)
		case "__timeFilter":
			return part[2] + " BETWEEN " + at(from) + " AND " + at(to)
		}
		bad = fmt.Errorf("%s: unknown macro", found)
		return found
	})
	if bad == nil && strings.Contains(query, "$") {
		bad = fmt.Errorf("%s: left in the query", plain.FindString(query))
	}
	return query, bad
}

// PromQL fills in an expression of Prometheus: the intervals, and the variables as regular expressions.
func PromQL(expr string, rateInterval, timeRange time.Duration, vars Values) (string, error) {
	var bad error
	expr = plain.ReplaceAllStringFunc(expr, func(found string) string {
		switch name := found[1:]; name {
		case "__rate_interval":
			return formatSeconds(rateInterval)
		case "__range":
			return formatSeconds(timeRange)
		default:
			values, ok := vars[name]
			if !ok {
				bad = fmt.Errorf("%s: unknown", found)
			}
			quoted := make([]string, len(values))
			for i, v := range values {
				quoted[i] = strings.ReplaceAll(regexp.QuoteMeta(v), `\`, `\\`)
			}
			if len(quoted) == 1 {
				return quoted[0]
			}
			return "(" + strings.Join(quoted, "|") + ")"
		}
	})
	if bad == nil && strings.Contains(expr, "$") {
		bad = fmt.Errorf("a $ is left in %s", expr)
	}
	return expr, bad
}

func formatSeconds(d time.Duration) string { return fmt.Sprintf("%ds", int(d.Seconds())) }
