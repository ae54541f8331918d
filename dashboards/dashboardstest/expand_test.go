package dashboardstest

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestSQL(t *testing.T) {
	t.Parallel()
	from := time.Date(2026, 11, 21, 0, 0, 0, 0, time.UTC)
	vars := Values{"cluster": {"east"}, "node": {"n1", "o'2"}, "incident": nil}
	tests := []struct{ name, query, want, refused string }{
		{"macros", "a > $__timeFrom() AND $__timeFilter(b.at)", "a > '2026-11-21T00:00:00Z' AND b.at BETWEEN '2026-11-21T00:00:00Z' AND '2026-11-21T01:00:00Z'", ""},
		{"intervals", "$__interval_ms * 2", "30000 * 2", ""},
		{"one value", "c = ${cluster:sqlstring}", "c = 'east'", ""},
		{"several values, quoted", "ARRAY[${node:sqlstring}]", "ARRAY['n1','o''2']", ""},
		{"no value", "ARRAY[${incident:sqlstring}]::text[]", "ARRAY[]::text[]", ""},
		{"an unknown variable", "${vmi:sqlstring}", "", "${vmi:sqlstring}: unknown"},
		{"a variable without quotes", "${node}", "", "not as sqlstring"},
		{"an unknown macro", "$__timeGroup(a, '1m')", "", "unknown macro"},
		{"a bare variable", "node = $node", "", "$node: left in the query"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			got, err := SQL(tt.query, from, from.Add(time.Hour), 30*time.Second, vars)
			if tt.refused != "" {
				require.ErrorContains(t, err, tt.refused)
				return
			}
			require.NoError(t, err)
			require.Equal(t, tt.want, got)
		})
	}
}

func TestPromQL(t *testing.T) {
	t.Parallel()
	got, err := PromQL(`rate(a{node=~"$node", vmi="$vmi"}[$__rate_interval]) + increase(b[$__range])`, time.Minute, time.Hour,
		Values{"node": {"n1.x", "n2"}, "vmi": {"db"}})
	require.NoError(t, err)
	require.Equal(t, `rate(a{node=~"(n1\\.x|n2)", vmi="db"}[60s]) + increase(b[3600s])`, got)
	_, err = PromQL(`a{node="$node"}`, time.Minute, time.Hour, nil)
	require.ErrorContains(t, err, "$node: unknown")
}
