package store

import (
	"context"
	"errors"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/evictrail/evictrail/trail"
)

// mayBeOfRecord reports whether an error may lie in what was to be written or derived, and not in the database: then others may succeed.
func mayBeOfRecord(err error) bool {
	var pg *pgconn.PgError
	switch {
	case errors.Is(err, ErrDeposed), errors.Is(err, ErrSchema), errors.Is(err, context.Canceled):
		return false
	case errors.Is(err, trail.ErrRefused), errors.Is(err, context.DeadlineExceeded), !errors.Is(err, ErrUnavailable):
		return true
	case errors.As(err, &pg):
		return !isOfServer(pg.Code)
	}
	return false
}

// isOfServer reports whether a code of Postgres says that the server, the schema, a right or another transaction is in the way, whatever is written. All others
// may come of one record: a statement that takes too long (57014), too much memory (53200), a trigger (P0001), a block that cannot be read (58030), a bug (XX000).
func isOfServer(code string) bool {
	switch code {
	case "53100", "53300", "57P01", "57P02", "57P03", "57P04", "57P05":
		return true
	}
	switch code[:min(2, len(code))] {
	case "08", "25", "28", "3D", "3F", "40", "42", "55":
		return true
	}
	return false
}

// isBroken reports whether a connection broke: what was sent may have made the server end it.
func isBroken(err error) bool {
	var pg *pgconn.PgError
	var connect *pgconn.ConnectError
	return errors.Is(err, ErrUnavailable) && !errors.As(err, &pg) && !errors.As(err, &connect)
}

// probeSubject is that of the fact which a probe writes and takes back.
var probeSubject = trail.Subject{Kind: trail.SubjectSource, Name: "probe"}

// Probe reports why the database takes no facts; nil where it does, so that the cause for which it did not take some may lie in these. It writes a fact as
// Append does and takes that back, and commits what changes nothing: a database that is away, read-only, full or locked fails it, too.
func (c *ClusterStore) Probe(ctx context.Context, cause error) error {
	if !mayBeOfRecord(cause) && !isBroken(cause) {
		return cause
	}
	return c.store.probe(ctx, c.cluster)
}

// probeWithin is how long a probe of our own may take: a database that is slower is so for all.
const probeWithin = 2 * time.Second

func (s *Store) probe(ctx context.Context, cluster string) error {
	ctx, cancel := context.WithTimeout(ctx, probeWithin)
	defer cancel()
	now := time.Now().UTC()
	fact := trail.Fact{
		Cluster: cluster, Kind: trail.KindGapOpened, Reason: trail.ReasonRefused, Subject: probeSubject, What: "probe", Value: "probe",
		Object: trail.Object{Kind: trail.ObjectSource, UID: probeSubject.Name}, OccurredAt: now, ObservedAt: now, Clock: trail.ClockObserver,
	}
	return s.inTx(ctx, "probe whether facts can be stored", func(tx pgx.Tx) error {
		errBack := errors.New("taken back")
		err := pgx.BeginFunc(ctx, tx, func(tx pgx.Tx) error {
			if _, err := recordInTx(ctx, tx, cluster, []trail.Fact{fact}, nil); err != nil {
				return err
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
