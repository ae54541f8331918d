package delivery

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/evictrail/evictrail/store/pg"
	"github.com/evictrail/evictrail/trail"
)

const (
	// beginQuery adds a receiver that is not known yet, and reads where it stands.
	beginQuery = `
WITH added AS (
  INSERT INTO evictrail.receivers (cluster, receiver, since, notified_to)
  VALUES (@cluster, @receiver, now(), now())
  ON CONFLICT (cluster, receiver) DO NOTHING
  RETURNING since, notified_to
)
SELECT since, notified_to, now()
FROM added
UNION ALL
SELECT since, notified_to, now()
FROM evictrail.receivers
WHERE cluster = @cluster
  AND receiver = @receiver
LIMIT 1`
	deliveredQuery = `
SELECT notice_id
FROM evictrail.deliveries
WHERE cluster = @cluster
  AND receiver = @receiver
  AND notice_id = ANY(@ids::uuid[])`
	deliverQuery = `
INSERT INTO evictrail.deliveries (cluster, receiver, notice_id, at)
VALUES (@cluster, @receiver, @id, @at)
ON CONFLICT (cluster, receiver, notice_id) DO NOTHING`
	advanceQuery = `
UPDATE evictrail.receivers
SET notified_to = @until
WHERE cluster = @cluster
  AND receiver = @receiver
  AND notified_to < @until`
	// forgetQuery deletes what is too old to be sent again.
	forgetQuery = `
DELETE FROM evictrail.deliveries
WHERE cluster = @cluster
  AND receiver = @receiver
  AND at < @oldest`
)

const (
	// slack is how long a transaction may have begun before what it wrote is seen: views order changes by when it began.
	slack = time.Minute
	// stale is how long before what a receiver was notified of last something must have happened to be sent no more.
	stale = 7 * 24 * time.Hour
)

// Progress is how far a receiver has been notified about a cluster. Its times are of the database's clock.
type Progress struct {
	cluster, receiver string

	since      time.Time // when the receiver was first known
	notifiedTo time.Time // what changed before was sent
	now        time.Time // when this was read
}

// Begin returns how far a receiver has been notified about a cluster; it is noted as known from now on where it was not.
func Begin(ctx context.Context, db *pg.DB, cluster, receiver string) (Progress, error) {
	p := Progress{cluster: cluster, receiver: receiver}
	err := db.QueryRow(ctx, beginQuery, p.args(nil)).Scan(&p.since, &p.notifiedTo, &p.now)
	return p, pg.Explain("read what was sent", err)
}

// args returns the arguments of a query, with those that all have.
func (p Progress) args(more pgx.StrictNamedArgs) pgx.StrictNamedArgs {
	args := pgx.StrictNamedArgs{"cluster": p.cluster, "receiver": p.receiver}
	for name, value := range more {
		args[name] = value
	}
	return args
}

// Now returns when the progress was read, by the clock of the database.
func (p Progress) Now() time.Time { return p.now }

// ChangedSince returns since when rows must have changed for something in them to be sent.
func (p Progress) ChangedSince() time.Time { return p.notifiedTo.Add(-slack) }

// oldest returns when something must have happened, at the latest, not to be too old to be sent.
func (p Progress) oldest() time.Time {
	if begun := p.notifiedTo.Add(-stale); begun.After(p.since) {
		return begun
	}
	return p.since
}

// IsNews reports whether what happened at a time is not too old to be sent.
func (p Progress) IsNews(at time.Time) bool { return !at.Before(p.oldest()) }

// Undelivered returns those of some notices that were not sent yet, in their order.
func (p Progress) Undelivered(ctx context.Context, db *pg.DB, notices []trail.Notice) ([]trail.Notice, error) {
	if len(notices) == 0 {
		return nil, nil
	}
	ids := make([][16]byte, len(notices))
	for i, n := range notices {
		ids[i] = n.ID
	}
	rows, err := db.Query(ctx, deliveredQuery, p.args(pgx.StrictNamedArgs{"ids": ids}))
	if err != nil {
		return nil, pg.Explain("read what was sent", err)
	}
	taken, err := pgx.CollectRows(rows, pgx.RowTo[[16]byte])
	if err != nil {
		return nil, pg.Explain("read what was sent", err)
	}
	delivered := map[trail.FactID]bool{}
	for _, id := range taken {
		delivered[id] = true
	}
	var out []trail.Notice
	for _, n := range notices {
		if !delivered[n.ID] {
			out = append(out, n)
		}
	}
	return out, nil
}

// Deliver notes that a notice was sent.
func (p Progress) Deliver(ctx context.Context, db *pg.DB, n trail.Notice) error {
	_, err := db.Exec(ctx, deliverQuery, p.args(pgx.StrictNamedArgs{"id": [16]byte(n.ID), "at": n.At}))
	return pg.Explain("note what was sent", err)
}

// Advance notes that all that changed before a time was sent, and forgets what is too old to be sent again.
func (p Progress) Advance(ctx context.Context, db *pg.DB, until time.Time) error {
	if !until.After(p.notifiedTo) {
		return nil
	}
	if _, err := db.Exec(ctx, advanceQuery, p.args(pgx.StrictNamedArgs{"until": until})); err != nil {
		return pg.Explain("note what was sent", err)
	}
	p.notifiedTo = until
	_, err := db.Exec(ctx, forgetQuery, p.args(pgx.StrictNamedArgs{"oldest": p.oldest()}))
	return pg.Explain("forget what was sent", err)
}

// Standing is how far a receiver has been notified about a cluster, by the clock of the database.
type Standing struct {
	Receiver string
	SentTo   time.Time // what changed before was sent
	Now      time.Time
}

const standingsQuery = `
SELECT receiver, notified_to, now()
FROM evictrail.receivers
WHERE cluster = @cluster
ORDER BY receiver`

// Standings returns how far the receivers have been notified about a cluster. Those that never were are not among them.
func Standings(ctx context.Context, db *pg.DB, cluster string) ([]Standing, error) {
	rows, err := db.Query(ctx, standingsQuery, pgx.StrictNamedArgs{"cluster": cluster})
	if err != nil {
		return nil, pg.Explain("read what was sent", err)
	}
	out, err := pgx.CollectRows(rows, pgx.RowToStructByPos[Standing])
	return out, pg.Explain("read what was sent", err)
}
