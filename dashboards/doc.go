// Package dashboards makes the eight Grafana dashboards of evictrail. In goes at most the address of the pages (LinkPages), out come dashboards as JSON, as
// ConfigMaps for Grafana's sidecar, as resources of the Grafana operator, and the table of docs/dashboards.md. It asks
// nobody and runs nothing: panels hold queries, which Grafana sends to Prometheus and to Postgres.
//
//	for _, d := range dashboards.All() {
//		text, err := d.JSON() // for Grafana's import
//	}
//
// There is one file per dashboard; a function holds one panel with its title, description, unit and queries. What panels
// have in common is in panel.go, the colours are in colour.go, the labels of values in label.go, the query type of Postgres, which the SDK does not have, in
// postgres.go, variables in variable.go, annotations in annotation.go. "evictrail generate dashboards" writes the files,
// the golden ones are in deploy/dashboards. Read dashboard.go first, then loop.go.
// Package perses makes dashboards for Perses of them.
//
// Queries of Postgres read the views of schema evictrail_v1 alone. That each runs, and on which recording it has rows, is
// tested in cmd/evictrail; that expressions of Prometheus parse and name metrics that exist, in test/dashboards.
package dashboards

//go:generate go run ../cmd/evictrail generate dashboards --dir ../deploy/dashboards
//go:generate go run ../cmd/evictrail generate dashboards --format markdown --dir ../docs
