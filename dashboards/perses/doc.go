// Package perses writes the dashboards of package dashboards for Perses.
//
//	d, draws, err := perses.Convert(dashboard, "https://evictrail.example")
//	text, err := d.JSON()
//
// A panel is defined once, in package dashboards: Convert reads what that writes for Grafana (grafana.go) and draws the panels that ask Prometheus with
// plugins of Perses (panel.go), in the same rows, with the same expressions. Perses has no released plugin that asks Postgres: what a row shows in
// Grafana beyond these panels is named in a note (note.go). model.go has what Perses and its operator read.
package perses

//go:generate go run ../../cmd/evictrail generate dashboards --format perses --dir ../../deploy/perses
