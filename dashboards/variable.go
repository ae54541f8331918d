package dashboards

import (
	"strings"

	"github.com/grafana/grafana-foundation-sdk/go/cog"
	"github.com/grafana/grafana-foundation-sdk/go/dashboard"
)

// The names of the variables.
const (
	VarCluster   = "cluster" // its values are names of clusters (--cluster)
	varNode      = "node"
	varNamespace = "namespace"
	varVMI       = "vmi"
	varCause     = "cause"
	varIncident  = "incident"
)

// The rows that the variables choose, as conditions. An array may be empty where a list may not: a variable without any
// value chooses nothing instead of breaking the query. Rows of no single node or VM are always shown.
const (
	ofCluster    = "cluster = ${cluster:sqlstring}"
	ofNodes      = "(node IS NULL OR node = ANY (ARRAY[${node:sqlstring}]::text[]))"
	ofNamespaces = "(namespace IS NULL OR namespace = ANY (ARRAY[${namespace:sqlstring}]::text[]))"
)

// newSourceVariable is a variable with the data sources of one type.
func newSourceVariable(name, label, kind string) cog.Builder[dashboard.VariableModel] {
	return dashboard.NewDatasourceVariableBuilder(name).Label(label).Type(kind)
}

// newSourceVariables are the variables of every dashboard.
func newSourceVariables() []cog.Builder[dashboard.VariableModel] {
	return []cog.Builder[dashboard.VariableModel]{
		newSourceVariable(varPrometheus, "Prometheus", prometheusType),
		newSourceVariable(varPostgres, "Postgres", postgresType),
	}
}

// newCommonVariables are the variables of every dashboard about one cluster.
func newCommonVariables() []cog.Builder[dashboard.VariableModel] {
	return append(newSourceVariables(), newQueryVariable(VarCluster, "Cluster", clustersSQL))
}

// newQueryVariable is a variable of which one value is chosen, from a query.
func newQueryVariable(name, label, query string) *dashboard.QueryVariableBuilder {
	query = strings.TrimSpace(query)
	return dashboard.NewQueryVariableBuilder(name).Label(label).Datasource(postgresSource()).
		Query(dashboard.StringOrMap{String: cog.ToPtr(query)}).Definition(query).
		Refresh(dashboard.VariableRefreshOnTimeRangeChanged).Sort(dashboard.VariableSortDisabled)
}

// newMultiVariable is a variable of which any number is chosen, all at first.
func newMultiVariable(name, label, query string) *dashboard.QueryVariableBuilder {
	return newQueryVariable(name, label, query).Multi(true).IncludeAll(true).Current(newAllOption())
}

func newAllOption() dashboard.VariableOption {
	return dashboard.VariableOption{
		Selected: cog.ToPtr(true),
		Text:     dashboard.StringOrArrayOfString{ArrayOfString: []string{"All"}},
		Value:    dashboard.StringOrArrayOfString{ArrayOfString: []string{"$__all"}},
	}
}

// newCauseVariable is a variable with the causes of moves.
func newCauseVariable() cog.Builder[dashboard.VariableModel] {
	var names []string
	for _, p := range causePaints() {
		names = append(names, p.of)
	}
	return dashboard.NewCustomVariableBuilder(varCause).Label("Cause").Multi(true).IncludeAll(true).Current(newAllOption()).
		Values(dashboard.StringOrMap{String: cog.ToPtr(strings.Join(names, ","))})
}

// Every cluster has guests, and there is one row for each stay of one.
const clustersSQL = `
SELECT DISTINCT cluster
FROM evictrail_v1.placements
ORDER BY cluster
LIMIT 100`

// The nodes that had guests in the time range, and those that were emptied.
const nodesSQL = `
SELECT node
FROM evictrail_v1.placements
WHERE ` + ofCluster + `
  AND ` + thereInRange + `
UNION
SELECT node
FROM evictrail_v1.drains
WHERE ` + ofCluster + `
  AND ` + drainedInRange + `
ORDER BY node
LIMIT 2000`

// The namespaces that had guests in the time range.
const namespacesSQL = `
SELECT DISTINCT namespace
FROM evictrail_v1.placements
WHERE ` + ofCluster + `
  AND ` + thereInRange + `
ORDER BY namespace
LIMIT 5000`
