package store

import (
	"context"
	"errors"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/evictrail/evictrail/store/pg"
	"github.com/evictrail/evictrail/trail"
)

// probeSubject is that of the fact which a probe writes and takes back.
var probeSubject = trail.Subject{Kind: trail.SubjectSource, Name: "probe"}

// Probe reports why the database takes no facts; nil where it does, so that the cause for which it did not take some may lie in these. It writes a fact as
// Append does and takes that back, and commits what changes nothing: a database that is away, read-only, full or locked fails it, too.
func (c *ClusterStore) Probe(ctx context.Context, cause error) error {
	if !pg.MayBeOfRecord(cause) && !pg.IsBroken(cause) {
		return cause
	}
	return c.store.probeWrites(ctx, c.cluster)
}

// probeWithin is how long a probe of our own may take: a database that is slower is so for all.
const probeWithin = 2 * time.Second

func (s *Store) probeWrites(ctx context.Context, cluster string) error {
	ctx, cancel := context.WithTimeout(ctx, probeWithin)
	defer cancel()
	now := time.Now().UTC()
	fact := trail.Fact{
		Cluster: cluster, Kind: trail.KindGapOpened, Reason: trail.ReasonRefused, Subject: probeSubject, What: "probe", Value: "probe",
		Object: trail.Object{Kind: trail.ObjectSource, UID: probeSubject.Name}, OccurredAt: now, ObservedAt: now, Clock: trail.ClockObserver,
	}
	return s.DB.InTx(ctx, "probe whether facts can be stored", func(tx pgx.Tx) error {
		errBack := errors.New("taken back")
		err := pgx.BeginFunc(ctx, tx, func(tx pgx.Tx) error {
			_, left, err := recordInTx(ctx, tx, cluster, []trail.Fact{fact}, func(*pgx.Batch) {})
			if err != nil {
				return err
			}
			if err := tx.SendBatch(ctx, left).Close(); err != nil {
				return pg.Explain("record facts", err)
			}
			return errBack
		})
		if !errors.Is(err, errBack) {
			return err
		}
		_, err = tx.Exec(ctx, aliveQuery, pgx.StrictNamedArgs{"cluster": cluster, "at": time.Unix(0, 0)})
		return err
	})
}
