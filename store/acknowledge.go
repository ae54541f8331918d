package store

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/evictrail/evictrail/store/pg"
	"github.com/evictrail/evictrail/store/read"
	"github.com/evictrail/evictrail/trail"
)

// Acknowledger writes acknowledgements of what one caller may see. Whether the caller may write them is asked elsewhere (api.Gate).
type Acknowledger struct {
	*read.Reader

	db *pg.DB
}

// AcknowledgerOf returns the Acknowledger for a caller who sees so much.
func (s *Store) AcknowledgerOf(scope trail.Scope) *Acknowledger {
	return &Acknowledger{s.SeenBy(scope), s.DB}
}

// An acknowledgement replaces the one that the subject has.
const insertAcknowledgementQuery = `
WITH replaced AS (
  UPDATE evictrail.acknowledgements
  SET ended_at = now(), ended_by = @author, changed_at = now()
  WHERE cluster = @cluster
    AND subject = @subject
    AND ended_at IS NULL
    AND expires_at > now()
)
INSERT INTO evictrail.acknowledgements (cluster, subject, namespace, vmi, node, author, note, ticket, expires_at)
VALUES (@cluster, @subject, @namespace, @vmi, @node, @author, @note, @ticket, @expires_at)
RETURNING acknowledgement_id::text`

// Acknowledge stores an acknowledgement, which has been cleaned, and returns it as it is stored. It ends the one that the VM or the node had. Errors: trail.ErrNotFound
// where the VM or the node is not known, *trail.AmbiguousError where it is in several clusters.
func (s *Acknowledger) Acknowledge(ctx context.Context, a trail.Acknowledgement) (trail.Acknowledgement, error) {
	cluster, err := s.ClusterOf(ctx, a.Cluster, a.Subject())
	if err != nil {
		return trail.Acknowledgement{}, err
	}
	return s.writeAndRead(ctx, "acknowledge", insertAcknowledgementQuery, pgx.StrictNamedArgs{
		"cluster": cluster, "subject": a.Subject().String(), "namespace": pg.NullText(a.Namespace), "vmi": pg.NullText(a.VMI), "node": pg.NullText(a.Node),
		"author": a.Author, "note": pg.NullText(a.Note), "ticket": pg.NullText(a.Ticket), "expires_at": a.ExpiresAt,
	})
}

const withdrawQuery = `
UPDATE evictrail.acknowledgements
SET ended_at = now(), ended_by = @by, changed_at = now()
WHERE acknowledgement_id = @id
  AND ended_at IS NULL
  AND expires_at > now()
RETURNING acknowledgement_id::text`

// Withdraw ends an acknowledgement before it expires, and returns it. The error is trail.ErrNotFound where there is none, or it has ended.
func (s *Acknowledger) Withdraw(ctx context.Context, id trail.FactID, by string) (trail.Acknowledgement, error) {
	if _, err := s.Acknowledgement(ctx, id); err != nil {
		return trail.Acknowledgement{}, err
	}
	a, err := s.writeAndRead(ctx, "withdraw an acknowledgement", withdrawQuery, pgx.StrictNamedArgs{"id": id.String(), "by": by})
	if errors.Is(err, pgx.ErrNoRows) {
		return a, fmt.Errorf("acknowledgement %s: %w: it has ended already", id, trail.ErrNotFound)
	}
	return a, err
}

// writeAndRead runs a statement that returns the ID of the acknowledgement that it wrote.
func (s *Acknowledger) writeAndRead(ctx context.Context, doing, query string, args pgx.StrictNamedArgs) (trail.Acknowledgement, error) {
	var text string
	var id trail.FactID
	err := s.db.QueryRow(ctx, query, args).Scan(&text)
	switch {
	case errors.Is(err, pgx.ErrNoRows):
		return trail.Acknowledgement{}, err
	case err != nil:
		return trail.Acknowledgement{}, pg.Explain(doing, err)
	}
	if err := id.UnmarshalText([]byte(text)); err != nil {
		return trail.Acknowledgement{}, err
	}
	return s.Acknowledgement(ctx, id)
}
