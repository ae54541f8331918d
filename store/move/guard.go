package move

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/evictrail/evictrail/store/pg"
	"github.com/evictrail/evictrail/store/tables"
	"github.com/evictrail/evictrail/trail"
)

// lockWithin is how long one who is recording the cluster is waited for.
const lockWithin = 10 * time.Second

// keepLocked begins a transaction that lasts as long as the move, in which nothing is read.
const keepLocked = `BEGIN;
SET LOCAL idle_in_transaction_session_timeout = 0;
SET LOCAL statement_timeout = 0;
SET LOCAL lock_timeout = `

// guard keeps others from recording the cluster in one database.
type guard struct {
	name string // of the end, for people
	db   *pg.DB
	conn *pgx.Conn
	last time.Time // when a replica reported last; zero: none ever did
}

// lockEnd keeps others from recording the cluster until release. A replica that goes on reporting is an error.
func (m *Mover) lockEnd(ctx context.Context, name string, db *pg.DB) (*guard, error) {
	g := &guard{name: name, db: db}
	var err error
	if err = g.awaitSilence(ctx, m.Cluster); err != nil {
		return nil, err
	}
	if g.conn, err = db.ConnectAside(ctx); err != nil {
		return nil, pg.Explain("connect to the "+name, err)
	}
	_, err = g.conn.Exec(ctx, keepLocked+fmt.Sprintf("'%ds'", int(lockWithin.Seconds())))
	if err == nil {
		_, err = g.conn.Exec(ctx, tables.RecordAloneQuery, pgx.StrictNamedArgs{"cluster": m.Cluster})
	}
	if pg.IsLocked(err) {
		err = fmt.Errorf("something is recording cluster %q in the %s, or moving it: stop it, and run this again",
			m.Cluster, name)
	}
	if err != nil {
		g.release()
		return nil, pg.Explain("lock the "+name, err)
	}
	return g, nil
}

// release ends the lock.
func (g *guard) release() {
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	_ = g.conn.Close(ctx)
}

// check makes sure that the lock is still held, and that no replica has reported since the move began.
func (g *guard) check(ctx context.Context, cluster string) error {
	if _, err := g.conn.Exec(ctx, "SELECT 1"); err != nil {
		return pg.Explain("keep the "+g.name+" locked", err)
	}
	replica, last, _, err := g.lastReport(ctx, cluster)
	if err == nil && last.After(g.last) {
		err = g.recordingError(cluster, replica)
	}
	return err
}

const lastReportQuery = `
SELECT replica, alive_at, clock_timestamp() - alive_at
FROM evictrail.recorders
WHERE cluster = @cluster
ORDER BY alive_at DESC
LIMIT 1`

// lastReport returns which replica reported last, when, and how long ago that is; zero where none ever did.
func (g *guard) lastReport(
	ctx context.Context, cluster string,
) (replica string, at time.Time, age time.Duration, err error) {
	row := g.db.QueryRow(ctx, lastReportQuery, pgx.StrictNamedArgs{"cluster": cluster})
	if err = row.Scan(&replica, &at, &age); errors.Is(err, pgx.ErrNoRows) {
		err = nil
	}
	return replica, at.UTC(), age, pg.Explain("read who records in the "+g.name, err)
}

// awaitSilence waits until it is sure that no replica records the cluster: one that was stopped a moment ago is waited
// out, one that reports again is an error.
func (g *guard) awaitSilence(ctx context.Context, cluster string) error {
	for {
		replica, at, age, err := g.lastReport(ctx, cluster)
		switch {
		case err != nil:
			return err
		case replica == "":
			return nil
		case !g.last.IsZero() && at.After(g.last):
			return g.recordingError(cluster, replica)
		}
		if g.last = at; age >= trail.ReportGrace {
			return nil
		}
		select {
		case <-time.After(time.Second):
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// recordingError says who records.
func (g *guard) recordingError(cluster, replica string) error {
	return fmt.Errorf("replica %q is recording cluster %q with the %s: stop all replicas of the cluster "+
		"(`kubectl scale deployment/evictrail --replicas=0`), and run this again; what happens until they run again is a gap",
		replica, cluster, g.name)
}
