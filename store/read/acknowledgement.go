package read

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/evictrail/evictrail/store/pg"
	"github.com/evictrail/evictrail/trail"
)

// A limited reader sees the acknowledgements of its VMs: those of nodes name users and problems that are not its own.
const acknowledgementQuery = `
SELECT to_jsonb(a)
FROM evictrail_v1.acknowledgements AS a
WHERE acknowledgement_id = @id
  AND (@cluster = '' OR cluster = @cluster)
  AND (@everyone OR namespace = ANY(@seen))`

// Acknowledgement returns one acknowledgement, whether it holds or has ended. The error is trail.ErrNotFound where there is none.
func (s *Reader) Acknowledgement(ctx context.Context, id trail.FactID) (trail.Acknowledgement, error) {
	cluster, within := s.scope.Cluster("")
	if !within {
		return trail.Acknowledgement{}, unknownAcknowledgement(id)
	}
	var all []trail.Acknowledgement
	err := s.runReadOnly(ctx, "look for an acknowledgement", func(tx pgx.Tx) error {
		rows, err := tx.Query(ctx, acknowledgementQuery, s.addScopeArgs(pgx.StrictNamedArgs{"cluster": cluster, "id": id.String()}))
		if err != nil {
			return err
		}
		all, err = pgx.CollectRows(rows, scanAcknowledgement)
		return err
	})
	switch {
	case err != nil:
		return trail.Acknowledgement{}, err
	case len(all) == 0:
		return trail.Acknowledgement{}, unknownAcknowledgement(id)
	}
	return all[0], nil
}

func unknownAcknowledgement(id trail.FactID) error {
	return fmt.Errorf("acknowledgement %s: %w: `evictrail ack list` lists those that are known", id, trail.ErrNotFound)
}

func scanAcknowledgement(row pgx.CollectableRow) (a trail.Acknowledgement, err error) {
	var raw []byte
	if err := row.Scan(&raw); err != nil {
		return a, err
	}
	err = json.Unmarshal(raw, &a)
	a.CreatedAt, a.ExpiresAt, a.EndedAt = a.CreatedAt.UTC(), a.ExpiresAt.UTC(), a.EndedAt.UTC()
	return a, err
}

// Those of a cluster that hold now and may be seen.
const acknowledgementsHolding = `
FROM evictrail.acknowledgements AS k
JOIN evictrail_v1.acknowledgements AS a USING (acknowledgement_id)
WHERE k.cluster = @cluster
  AND k.ended_at IS NULL
  AND k.expires_at > now()
  AND (@everyone OR k.namespace = ANY(@seen))`

// Of one VM or node the newest counts.
const (
	acknowledgedQuery    = "SELECT DISTINCT ON (k.subject) to_jsonb(a)" + acknowledgementsHolding + "\n  AND k.subject = ANY(@subjects)\nORDER BY k.subject, k.created_at DESC"
	acknowledgedNowQuery = "SELECT to_jsonb(a)" + acknowledgementsHolding + "\nORDER BY k.created_at DESC\nLIMIT 1000"
)

// Acknowledged returns the acknowledgements that hold now of some VMs and nodes of a cluster.
func (s *Reader) Acknowledged(ctx context.Context, cluster string, of []trail.Subject) (map[trail.Subject]trail.Acknowledgement, error) {
	cluster, within := s.scope.Cluster(cluster)
	if !within || len(of) == 0 {
		return nil, nil
	}
	subjects := make([]string, len(of))
	for i, subject := range of {
		subjects[i] = pg.CleanText(subject.String())
	}
	out := map[trail.Subject]trail.Acknowledgement{}
	err := s.runReadOnly(ctx, "look for acknowledgements", func(tx pgx.Tx) error {
		rows, err := tx.Query(ctx, acknowledgedQuery, s.addScopeArgs(pgx.StrictNamedArgs{"cluster": cluster, "subjects": subjects}))
		if err != nil {
			return err
		}
		all, err := pgx.CollectRows(rows, scanAcknowledgement)
		for _, a := range all {
			out[a.Subject()] = a
		}
		return err
	})
	return out, err
}
