package dashboards

import (
	"errors"
	"strings"

	"github.com/grafana/grafana-foundation-sdk/go/cog"
	"github.com/grafana/grafana-foundation-sdk/go/cog/variants"
	"github.com/grafana/grafana-foundation-sdk/go/common"
)

// postgresType is the type of Grafana's data source plugin.
const postgresType = "grafana-postgresql-datasource"

// format says what Grafana makes of the rows of a query.
type format string

const (
	// formatTable keeps the columns as they are.
	formatTable format = "table"
	// formatSeries makes one series of each value of column metric, or of each column of numbers without that. Rows have a
	// column time and are sorted by it, ascending.
	formatSeries format = "time_series"
)

// postgresQuery is a query of Postgres as Grafana saves it; the SDK has none. It is its own builder.
//
// Source: grafana/grafana pkg/tsdb/grafana-postgresql-datasource/sqleng (QueryJson).
type postgresQuery struct {
	Datasource common.DataSourceRef `json:"datasource"`
	EditorMode string               `json:"editorMode"`
	Format     format               `json:"format"`
	RawQuery   bool                 `json:"rawQuery"`
	RawSQL     string               `json:"rawSql"`
	RefID      string               `json:"refId"`
}

var (
	_ variants.Dataquery              = postgresQuery{}
	_ cog.Builder[variants.Dataquery] = postgresQuery{}
)

// newPostgresQuery makes a query whose letter is unique within its panel.
func newPostgresQuery(refID string, f format, query string) postgresQuery {
	return postgresQuery{
		Datasource: postgresSource(), EditorMode: "code", Format: f, RawQuery: true, RawSQL: strings.TrimSpace(query), RefID: refID,
	}
}

// What overlaps the time range: rows of loops and gaps, of evacuations, of drains, and stays on nodes. What has no end goes on.
const (
	openInRange    = "opened_at <= $__timeTo()\n  AND coalesce(closed_at, 'infinity') >= $__timeFrom()"
	markedInRange  = "marked_at <= $__timeTo()\n  AND coalesce(ended_at, 'infinity') >= $__timeFrom()"
	drainedInRange = "started_at <= $__timeTo()\n  AND coalesce(ended_at, 'infinity') >= $__timeFrom()"
	thereInRange   = "from_at <= $__timeTo()\n  AND coalesce(to_at, 'infinity') >= $__timeFrom()"
)

// clipDrawn ends a query for lanes: the states of a common table drawn (from_at, to_at, lane, state), cut to the time range.
const clipDrawn = `SELECT
  greatest(from_at, $__timeFrom()) AS time,
  least(to_at, $__timeTo()) AS time_end,
  lane,
  state AS "Value"
FROM drawn
WHERE to_at > from_at
  AND to_at > $__timeFrom()`

// ImplementsDataqueryVariant marks the type.
func (postgresQuery) ImplementsDataqueryVariant() {}

// DataqueryType names the plugin.
func (postgresQuery) DataqueryType() string { return postgresType }

// Equals compares all fields but the data source, which all queries share.
func (q postgresQuery) Equals(other variants.Dataquery) bool {
	o, ok := other.(postgresQuery)
	return ok && q.Format == o.Format && q.RawSQL == o.RawSQL && q.RefID == o.RefID
}

// Validate refuses a query without text or letter.
func (q postgresQuery) Validate() error {
	if q.RawSQL == "" || q.RefID == "" {
		return errors.New("query of Postgres: its text and its letter must be set")
	}
	return nil
}

// Build returns the query itself.
func (q postgresQuery) Build() (variants.Dataquery, error) { return q, q.Validate() }

// The two data sources are variables, so that a dashboard can be imported anywhere.
const (
	varPrometheus = "ds_prom"
	varPostgres   = "ds_pg"
	varLoki       = "ds_loki"
)

func dataSource(kind, variable string) common.DataSourceRef {
	return common.DataSourceRef{Type: cog.ToPtr(kind), Uid: cog.ToPtr("${" + variable + "}")}
}

func postgresSource() common.DataSourceRef   { return dataSource(postgresType, varPostgres) }
func prometheusSource() common.DataSourceRef { return dataSource(prometheusType, varPrometheus) }
