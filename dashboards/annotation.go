package dashboards

import (
	"github.com/grafana/grafana-foundation-sdk/go/cog"
	"github.com/grafana/grafana-foundation-sdk/go/dashboard"
)

// newAnnotations are those of every dashboard: loops and drains from begin to end, changes of the rules, and gaps, which are shaded
// as they take part of the picture away.
func newAnnotations() []cog.Builder[dashboard.AnnotationQuery] {
	return []cog.Builder[dashboard.AnnotationQuery]{
		newAnnotation("Loops", colourBad, loopAnnotationsSQL),
		newAnnotation("Drains", colourDrain, drainAnnotationsSQL),
		newAnnotation("Changes of the rules", colourKubeVirt, configAnnotationsSQL),
		newAnnotation("Gaps in the record", colourUnknown, gapAnnotationsSQL),
	}
}

// newAnnotation marks what a query returns: time, timeend, text and tags.
func newAnnotation(name, colour, query string) cog.Builder[dashboard.AnnotationQuery] {
	return dashboard.NewAnnotationQueryBuilder().Name(name).Datasource(postgresSource()).Enable(true).IconColor(colour).
		Target(newPostgresQuery("Anno", formatTable, query))
}

const loopAnnotationsSQL = `
SELECT
  opened_at AS time,
  coalesce(closed_at, $__timeTo()::timestamptz) AS timeend,
  summary AS text,
  'loop,' || kind AS tags
FROM evictrail_v1.loops
WHERE ` + ofCluster + `
  AND closed_by IS DISTINCT FROM 'refuted'
  AND ` + openInRange + `
ORDER BY opened_at DESC
LIMIT 200`

const drainAnnotationsSQL = `
SELECT
  started_at AS time,
  coalesce(ended_at, $__timeTo()::timestamptz) AS timeend,
  'Drain of ' || node || coalesce(' by ' || requester, '') || ': ' || coalesce(outcome, 'under way') AS text,
  'drain,' || node AS tags
FROM evictrail_v1.drains
WHERE ` + ofCluster + `
  AND ` + drainedInRange + `
ORDER BY started_at DESC
LIMIT 200`

const configAnnotationsSQL = `
SELECT
  at AS time,
  CASE reason
    WHEN 'descheduler_policy' THEN 'The policy of the descheduler as of here'
    WHEN 'migration_policy' THEN 'The MigrationPolicy ' || (detail -> 'migration_policy' ->> 'name') || ' as of here'
    WHEN 'migration_policy_deleted' THEN 'A MigrationPolicy deleted here'
    ELSE 'The settings of KubeVirt as of here'
  END AS text,
  'rules,' || reason AS tags
FROM evictrail_v1.events
WHERE ` + ofCluster + `
  AND kind = 'config_seen'
  AND $__timeFilter(at)
ORDER BY at DESC
LIMIT 200`

const gapAnnotationsSQL = `
SELECT
  opened_at AS time,
  coalesce(closed_at, $__timeTo()::timestamptz) AS timeend,
  'Not seen: ' || source || ' (' || cause || ')' || coalesce('. ' || detail, '') AS text,
  'gap,' || source AS tags
FROM evictrail_v1.gaps
WHERE ` + ofCluster + `
  AND ` + openInRange + `
ORDER BY opened_at DESC
LIMIT 200`

// deschedulerEvictions is for dashboards with the variable node, one or several.
func deschedulerEvictions() cog.Builder[dashboard.AnnotationQuery] {
	return newAnnotation("Evictions by the descheduler", colourDescheduler, deschedulerEvictionsSQL)
}

const deschedulerEvictionsSQL = `
SELECT
  marked_at AS time,
  'The descheduler evicts ' || namespace || '/' || vmi || ' from ' || node AS text,
  'eviction,' || node AS tags
FROM evictrail_v1.evacuations
WHERE ` + ofCluster + `
  AND ` + ofNodes + `
  AND requester_class = 'descheduler'
  AND $__timeFilter(marked_at)
ORDER BY marked_at DESC
LIMIT 500`
