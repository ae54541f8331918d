package read

import (
	"cmp"
	"context"
	"slices"

	"github.com/jackc/pgx/v5"

	"github.com/evictrail/evictrail/store/tables"
	"github.com/evictrail/evictrail/trail"
)

const clustersNamedQuery = `
SELECT cluster
FROM evictrail.clusters
WHERE @cluster = '' OR cluster = @cluster
ORDER BY cluster`

// Settings returns the settings that a query asks for, by cluster and from the oldest to the newest; none to a caller who may not see all of a
// cluster.
func (s *Reader) Settings(ctx context.Context, q trail.SettingsQuery) ([]trail.SettingsInForce, error) {
	cluster, within := s.scope.Cluster(q.Cluster)
	if !within || s.scope.Limited() {
		return nil, nil
	}
	var out []trail.SettingsInForce
	err := s.runReadOnly(ctx, "read settings", func(tx pgx.Tx) error {
		out = nil
		clusters, err := loadTexts(ctx, tx, clustersNamedQuery, pgx.StrictNamedArgs{"cluster": cluster})
		if err != nil {
			return err
		}
		for _, name := range clusters {
			history, err := loadSettings(ctx, tx, name)
			if err != nil {
				return err
			}
			out = append(out, q.Select(history)...)
		}
		return nil
	})
	return slices.Clip(out), err
}

// SettingsHistory returns all settings that were in force in a cluster, from the oldest to the newest.
func (s Whole) SettingsHistory(ctx context.Context, cluster string) (history []trail.SettingsInForce, err error) {
	err = s.runReadOnly(ctx, "read settings", func(tx pgx.Tx) (err error) {
		history, err = loadSettings(ctx, tx, cluster)
		return err
	})
	return history, err
}

// loadKubeVirt returns the settings of KubeVirt that are in force in a cluster; none where they were not seen.
func loadKubeVirt(ctx context.Context, tx pgx.Tx, cluster string) (trail.KubeVirtSettings, error) {
	history, err := loadSettings(ctx, tx, cluster)
	if err != nil || len(history) == 0 {
		return trail.KubeVirtSettings{}, err
	}
	return *cmp.Or(history[len(history)-1].KubeVirt, &trail.KubeVirtSettings{}), nil
}

// loadSettings returns all settings that were in force in a cluster, from the oldest to the newest.
func loadSettings(ctx context.Context, tx pgx.Tx, cluster string) ([]trail.SettingsInForce, error) {
	facts, err := tables.FactsBy(ctx, tx, cluster, tables.FactsOfSubjectsQuery, pgx.StrictNamedArgs{"cluster": cluster, "subjects": tables.SubjectTexts(trail.RuleSubjects())})
	if err != nil {
		return nil, err
	}
	return trail.NewEnv(facts).Settings(cluster), nil
}
