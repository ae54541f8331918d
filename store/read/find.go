package read

import (
	"context"
	"strings"

	"github.com/jackc/pgx/v5"

	"github.com/evictrail/evictrail/store/pg"
	"github.com/evictrail/evictrail/trail"
)

// VMs and nodes are looked through, which takes as long as there are many; migrations, of which there are many more, are found
// by the beginning of their names and by their UIDs. What is named exactly comes first, then what begins so, then the rest.
const findQuery = `
SELECT
    f.cluster, f.kind, f.namespace, f.name, f.vmi, f.uid, f.total,
    coalesce(p.node, ''), p.not_migratable IS NOT NULL, p.terminating_since IS NOT NULL, e.failed_attempts IS NOT NULL, coalesce(e.failed_attempts, 0)
FROM (
  SELECT *, count(*) OVER () AS total
  FROM (
    SELECT cluster, kind, namespace, name, '' AS vmi, '' AS uid,
        CASE WHEN @text IN (name, namespace || '/' || name) THEN 0 WHEN strpos(within, @text) = 1 THEN 1 ELSE 2 END AS rank
    FROM (
      SELECT cluster, 'vm' AS kind, namespace, name, CASE WHEN strpos(@text, '/') > 0 THEN namespace || '/' || name ELSE name END AS within
      FROM (
        SELECT cluster, split_part(substr(subject, 5), '/', 1) AS namespace, split_part(subject, '/', 2) AS name
        FROM evictrail.subjects
        WHERE subject LIKE 'vmi:%'
      ) AS vms
      UNION ALL
      SELECT cluster, 'node', '', substr(subject, 6), substr(subject, 6)
      FROM evictrail.subjects
      WHERE subject LIKE 'node:%'
    ) AS named
    WHERE strpos(within, @text) > 0
    UNION ALL
    SELECT DISTINCT cluster, 'vm', namespace, vmi, '', vmi_uid, 0
    FROM evictrail.placements
    WHERE vmi_uid = @text
    UNION ALL
    SELECT cluster, 'migration', namespace, migration, vmi, migration_uid, 0
    FROM evictrail.migrations
    WHERE migration_uid = @text
    UNION ALL
    (
      SELECT cluster, 'migration', namespace, migration, vmi, migration_uid, CASE WHEN migration = @text THEN 0 ELSE 1 END
      FROM evictrail.migrations
      WHERE migration COLLATE "C" >= @text
        AND migration COLLATE "C" < @text || chr(1114111)
        AND (@cluster = '' OR cluster = @cluster)
        AND (@everyone OR namespace = ANY(@seen))
      ORDER BY migration COLLATE "C"
      LIMIT @counted
    )
  ) AS found
  WHERE (@cluster = '' OR cluster = @cluster)
    AND (@everyone OR kind <> 'node' AND namespace = ANY(@seen) OR kind = 'node' AND name IN (` + nodesSeen + `))
  ORDER BY rank, kind DESC, name COLLATE "C", namespace, cluster, uid
  LIMIT @limit
) AS f
LEFT JOIN LATERAL (
  SELECT node, not_migratable, terminating_since
  FROM evictrail.placements AS p
  WHERE f.kind = 'vm'
    AND p.cluster = f.cluster
    AND p.namespace = f.namespace
    AND p.vmi = f.name
    AND p.to_at IS NULL
  ORDER BY from_at DESC
  LIMIT 1
) AS p ON true
LEFT JOIN LATERAL (
  SELECT failed_attempts
  FROM evictrail.evacuations AS e
  WHERE f.kind = 'vm'
    AND e.cluster = f.cluster
    AND e.namespace = f.namespace
    AND e.vmi = f.name
    AND e.ended_at IS NULL
  ORDER BY marked_at DESC
  LIMIT 1
) AS e ON true
ORDER BY rank, kind DESC, name COLLATE "C", namespace, cluster, uid`

// Find searches a cluster, or all of them where none is named, for a text: in the names of VMs (with a slash in it, in namespace/name)
// and of nodes, at the beginning of the names of migrations, and among the UIDs of migrations and VMIs. It returns what is named
// exactly first, then what begins so; at most trail.MostFound, none for an empty text. total is how many there are; of the migrations that begin so no more than
// trail.MostCounted count. Of a VM that runs it says where, and how it stands with it.
func (s *Reader) Find(ctx context.Context, cluster, text string) (found []trail.Found, total int, err error) {
	text = strings.ToLower(strings.TrimSpace(pg.CleanText(text)))
	cluster, within := s.scope.Cluster(cluster)
	if text == "" || !within {
		return nil, 0, nil
	}
	err = s.runReadOnly(ctx, "search", func(tx pgx.Tx) error {
		rows, err := tx.Query(ctx, findQuery, pg.Planned, s.addScopeArgs(pgx.StrictNamedArgs{"cluster": cluster, "text": text, "limit": trail.MostFound, "counted": trail.MostCounted}))
		if err != nil {
			return err
		}
		found, err = pgx.CollectRows(rows, func(row pgx.CollectableRow) (f trail.Found, err error) {
			var signs trail.VMSigns
			err = row.Scan(&f.Cluster, &f.Kind, &f.Namespace, &f.Name, &f.VMI, &f.UID, &total, &f.Node, &signs.NotMigratable, &signs.Terminating, &signs.Marked, &signs.FailedAttempts)
			if f.Node != "" {
				f.State = signs.State()
			}
			return f, err
		})
		return err
	})
	return found, total, err
}
