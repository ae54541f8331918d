package move

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/evictrail/evictrail/store/pg"
	"github.com/evictrail/evictrail/trail"
)

// Mover moves one cluster. Both databases have the present schema.
type Mover struct {
	From, To *pg.DB
	Cluster  string
	Progress func(Progress) // called after each chunk; nil: it is not
}

// Progress is a step of a move.
type Progress struct {
	Doing string // copied, compared, copied again or deleted
	Table string
	Rows  int64 // of this step
}

// Result is what a move did.
type Result struct {
	Rows     int64     // that the destination has of the cluster, all of them compared
	Tables   int       // that were compared
	Repaired int       // parts of tables that were copied again, as the source had changed
	Arrived  time.Time // when the cluster had arrived before this run; zero: it had not
	Deleted  int64     // rows of the source
}

// position is how far a cluster has arrived.
type position struct {
	State    string
	Peer     string
	EndedAt  *time.Time
	Copied   []string
	AfterKey []string
	Digests  map[string]Digest
}

// States of a cluster that moves.
const (
	arriving = "arriving"
	arrived  = "arrived"
	leaving  = "leaving"
)

// Run moves the cluster, or goes on where a move of it ended, and deletes it from the source where that is wanted.
// Errors are those of package pg, and trail.ErrNotFound where the source does not have the cluster.
func (m *Mover) Run(ctx context.Context, dropSource bool) (did Result, err error) {
	peer, err := m.identify(ctx)
	if err != nil {
		return did, err
	}
	all, err := m.tablesOfBoth(ctx)
	if err != nil {
		return did, err
	}
	at, begun, err := m.loadPosition(ctx, all, peer)
	if err != nil {
		return did, err
	}
	from, err := m.lockEnd(ctx, "source", m.From)
	if err != nil {
		return did, err
	}
	defer from.release()
	if at.State != arrived { // else it is recorded there by now
		to, err := m.lockEnd(ctx, "destination", m.To)
		if err != nil {
			return did, err
		}
		defer to.release()
		if from.last.After(to.last) {
			to.last = from.last // what replicas reported to the source is copied
		}
		if err := m.arrive(ctx, all, at, begun, peer, []*guard{from, to}, &did); err != nil {
			return did, err
		}
	} else {
		did.Arrived, did.Tables = at.EndedAt.UTC(), len(at.Digests)
		for _, d := range at.Digests {
			did.Rows += d.Rows
		}
	}
	if dropSource {
		did.Deleted, err = m.dropSource(ctx, all)
	}
	return did, err
}

// arrive copies the cluster, and compares it.
func (m *Mover) arrive(
	ctx context.Context, all []table, at position, begun bool, peer string, ends []*guard, did *Result,
) error {
	if !begun {
		if err := m.begin(ctx, all, peer); err != nil {
			return err
		}
	}
	if err := m.copyTables(ctx, all, at); err != nil {
		return err
	}
	digests, err := m.compareTables(ctx, all, did)
	if err != nil {
		return err
	}
	for _, g := range ends {
		if err := g.check(ctx, m.Cluster); err != nil {
			return err
		}
	}
	did.Tables = len(digests)
	for _, d := range digests {
		did.Rows += d.Rows
	}
	return m.end(ctx, digests)
}

// identityQuery identifies a database among all.
const identityQuery = `
SELECT system_identifier || '/' || current_database()
FROM pg_control_system()`

// identify returns which database the source is. That it is the destination as well is an error.
func (m *Mover) identify(ctx context.Context) (string, error) {
	var from, to string
	for id, db := range map[*string]*pg.DB{&from: m.From, &to: m.To} {
		if err := db.QueryRow(ctx, identityQuery).Scan(id); err != nil {
			return "", pg.Explain("identify databases", err)
		}
	}
	if from == to {
		return "", errors.New("source and destination are the same database: name another one as the destination")
	}
	return from, nil
}

const positionQuery = `
SELECT state, peer, ended_at, copied, after_key, digests
FROM evictrail.moves
WHERE cluster = @cluster`

// positionIn returns how the cluster moves to a database, or from there; false where it does not.
func (m *Mover) positionIn(ctx context.Context, db *pg.DB) (at position, found bool, err error) {
	rows, err := db.Query(ctx, positionQuery, pgx.StrictNamedArgs{"cluster": m.Cluster})
	if err == nil {
		at, err = pgx.CollectExactlyOneRow(rows, pgx.RowToStructByPos[position])
	}
	if errors.Is(err, pgx.ErrNoRows) {
		return at, false, nil
	}
	return at, err == nil, pg.Explain("read how far the cluster has moved", err)
}

// loadPosition returns how far the cluster has arrived, and whether its move has begun. A cluster that cannot be moved,
// or that the destination has already, is an error.
func (m *Mover) loadPosition(ctx context.Context, all []table, peer string) (at position, begun bool, err error) {
	source, moving, err := m.positionIn(ctx, m.From)
	if err != nil {
		return at, false, err
	}
	if moving && source.State == arriving {
		return at, false, fmt.Errorf("cluster %q is itself being moved into the source, which has only a part of it: "+
			"run that move again until it has ended", m.Cluster)
	}
	if at, begun, err = m.positionIn(ctx, m.To); err != nil {
		return at, false, err
	}
	known, err := m.hasRows(ctx, m.From, "clusters")
	switch {
	case err != nil:
		return at, false, err
	case begun && at.Peer == peer && at.State == arrived:
		return at, true, m.checkSource(ctx, all, at, known && (!moving || source.State != leaving))
	case !known:
		return at, false, fmt.Errorf("cluster %q: %w in the source", m.Cluster, trail.ErrNotFound)
	case moving && source.State == leaving:
		return at, false, fmt.Errorf("cluster %q is being deleted from the source, as it has arrived in another database: "+
			"name that as the destination, and run this again", m.Cluster)
	case begun && at.State == arriving && at.Peer == peer:
		return at, true, nil
	case begun && at.State == arriving:
		return at, false, fmt.Errorf("cluster %q is being moved into the destination from another database: "+
			"finish that move, or remove what it copied with --abandon", m.Cluster)
	}
	for i := range all {
		has, err := m.hasRows(ctx, m.To, all[i].Name)
		if err != nil {
			return at, false, err
		}
		if has {
			return at, false, fmt.Errorf("the destination has a cluster %q already (rows in evictrail.%s), and two histories "+
				"cannot be merged: choose another database, or move that cluster away first", m.Cluster, all[i].Name)
		}
	}
	return position{}, false, nil
}

// checkSource makes sure that the source of a cluster that has arrived is as it was then.
func (m *Mover) checkSource(ctx context.Context, all []table, at position, whole bool) error {
	for i := 0; whole && i < len(all); i++ {
		parts, err := m.digestParts(ctx, m.From, &all[i])
		if err != nil {
			return err
		}
		if digestOf(parts) != at.Digests[all[i].Name] {
			return fmt.Errorf("cluster %q arrived in the destination at %s, and evictrail.%s of the source has changed since: "+
				"is something still recording it with the source? What came since is not in the destination",
				m.Cluster, at.EndedAt.UTC().Format(time.RFC3339), all[i].Name)
		}
	}
	return nil
}

const beginQuery = `
INSERT INTO evictrail.moves (cluster, state, peer)
VALUES (@cluster, 'arriving', @peer)`

// begin notes that the cluster arrives, unless it came into being in the destination since that was looked at.
func (m *Mover) begin(ctx context.Context, all []table, peer string) error {
	if _, begun, err := m.loadPosition(ctx, all, peer); err != nil || begun {
		return err
	}
	_, err := m.To.Exec(ctx, beginQuery, pgx.StrictNamedArgs{"cluster": m.Cluster, "peer": peer})
	return pg.Explain("begin to move", err)
}

const (
	// numberQuery returns the number of the fact that was stored last in the source, of whichever cluster.
	numberQuery = `SELECT coalesce(pg_sequence_last_value('evictrail.events_seq'), 0)`
	// lockNumbers has no fact numbered until the transaction ends: setval alone could take back numbers of others.
	lockNumbers = `ALTER SEQUENCE evictrail.events_seq OWNED BY NONE`
	skipQuery   = `
SELECT setval('evictrail.events_seq', @last)
FROM evictrail.events_seq
WHERE last_value < @last`
	endQuery = `
UPDATE evictrail.moves
SET state = 'arrived', ended_at = clock_timestamp(), after_key = NULL, digests = @digests
WHERE cluster = @cluster`
)

// end has the destination number facts after all those of the source, so that what reads facts in their order misses
// none, and notes that the cluster has arrived.
func (m *Mover) end(ctx context.Context, digests map[string]Digest) error {
	var last int64
	if err := m.From.QueryRow(ctx, numberQuery).Scan(&last); err != nil {
		return pg.Explain("read the number of the last fact", err)
	}
	err := runWriting(ctx, m.To, func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, lockNumbers); err != nil {
			return err
		}
		if _, err := tx.Exec(ctx, skipQuery, pgx.StrictNamedArgs{"last": last}); err != nil {
			return err
		}
		_, err := tx.Exec(ctx, endQuery, pgx.StrictNamedArgs{"cluster": m.Cluster, "digests": digests})
		return err
	})
	return pg.Explain("end the move", err)
}

// report calls Progress.
func (m *Mover) report(p Progress) {
	if m.Progress != nil {
		m.Progress(p)
	}
}

// Size is how much of a cluster a table has.
type Size struct {
	Table string
	Rows  int64
	Bytes int64 // without indexes
}

// Plan returns how much Run would copy, and the error with which it would refuse to begin. Recording goes on.
func (m *Mover) Plan(ctx context.Context) ([]Size, error) {
	peer, err := m.identify(ctx)
	if err != nil {
		return nil, err
	}
	all, err := m.tablesOfBoth(ctx)
	if err != nil {
		return nil, err
	}
	at, _, err := m.loadPosition(ctx, all, peer)
	if err != nil || at.State == arrived {
		return nil, err
	}
	sizes := make([]Size, len(all))
	for i := range all {
		s := &sizes[i]
		s.Table = all[i].Name
		err := runReading(ctx, m.From, func(tx pgx.Tx) error {
			return tx.QueryRow(ctx, fmt.Sprintf("SELECT count(*), coalesce(sum(pg_column_size(t.*)), 0) FROM %s AS t "+
				"WHERE cluster = @cluster", all[i].path()), pg.Planned, pgx.StrictNamedArgs{"cluster": m.Cluster}).
				Scan(&s.Rows, &s.Bytes)
		})
		if err != nil {
			return nil, pg.Explain("measure evictrail."+s.Table, err)
		}
	}
	return sizes, nil
}
