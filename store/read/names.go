package read

import (
	"context"

	"github.com/jackc/pgx/v5"

	"github.com/evictrail/evictrail/store/pg"
	"github.com/evictrail/evictrail/trail"
)

// The names of what a reader sees.
const (
	vmSeen   = `@kind = 'vmi:' AND split_part(substr(subject, 5), '/', 1) = ANY(@seen)`
	nodeSeen = `@kind = 'node:' AND substr(subject, 6) IN (` + nodesSeen + `)`
)

const clusterNamesQuery = `
SELECT cluster
FROM evictrail.clusters
WHERE starts_with(cluster, @prefix)
  AND (@cluster = '' OR cluster = @cluster)
ORDER BY cluster COLLATE "C"
LIMIT @limit`

const subjectNamesQuery = `
SELECT DISTINCT substr(subject, length(@kind::text) + 1) COLLATE "C" AS name
FROM evictrail.subjects
WHERE (subject LIKE 'vmi:%' OR subject LIKE 'node:%')
  AND starts_with(subject, @kind || @prefix)
  AND (@cluster = '' OR cluster = @cluster)
  AND (@everyone OR ` + vmSeen + ` OR ` + nodeSeen + `)
ORDER BY name
LIMIT @limit`

const namespaceNamesQuery = `
SELECT DISTINCT split_part(substr(subject, length(@kind::text) + 1), '/', 1) COLLATE "C" AS name
FROM evictrail.subjects
WHERE (subject LIKE 'vmi:%' OR subject LIKE 'node:%')
  AND starts_with(subject, @kind || @prefix)
  AND (@cluster = '' OR cluster = @cluster)
  AND (@everyone OR ` + vmSeen + ` OR ` + nodeSeen + `)
ORDER BY name
LIMIT @limit`

// Names returns the names that a query asks for, each once, sorted by bytes, at most trail.MaxNames. A prefix of a namespace that
// has a slash finds none.
func (s *Reader) Names(ctx context.Context, q trail.NameQuery) ([]string, error) {
	cluster, within := s.scope.Cluster(pg.CleanText(q.Cluster))
	if !within {
		return nil, nil
	}
	args := pgx.StrictNamedArgs{"prefix": pg.CleanText(q.Prefix), "cluster": cluster, "limit": trail.MaxNames}
	var query string
	switch q.Kind {
	case trail.NameCluster:
		query = clusterNamesQuery
	case trail.NameNamespace:
		query, args["kind"] = namespaceNamesQuery, trail.Subject{Kind: trail.SubjectVMI}.String()
	case trail.NameVM:
		query, args["kind"] = subjectNamesQuery, trail.Subject{Kind: trail.SubjectVMI}.String()
	case trail.NameNode:
		query, args["kind"] = subjectNamesQuery, trail.Subject{Kind: trail.SubjectNode}.String()
	}
	if q.Kind != trail.NameCluster {
		args = s.addScopeArgs(args)
	}
	rows, err := s.db.Query(ctx, query, args)
	if err != nil {
		return nil, pg.Explain("look for names", err)
	}
	names, err := pgx.CollectRows(rows, pgx.RowTo[string])
	return names, pg.Explain("look for names", err)
}
