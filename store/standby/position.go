package standby

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/evictrail/evictrail/store/pg"
)

// askWithin bounds a question about a position: who takes longer does not answer.
const askWithin = time.Second

// probe is a connection of its own to one server: positions are asked for while all those of its pool are in use.
type probe struct {
	db   *pg.DB
	conn *pgx.Conn // nil: there is none
}

// ask reads one row; each error ends the connection. It reports whether the connection is a new one.
func (p *probe) ask(ctx context.Context, query string, into ...any) (isNew bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, askWithin)
	defer cancel()
	if p.conn == nil || p.conn.IsClosed() {
		if p.conn, err = p.db.ConnectAside(ctx); err != nil {
			p.conn = nil
			return false, err
		}
		isNew = true
	}
	if err := p.conn.QueryRow(ctx, query).Scan(into...); err != nil {
		p.close()
		return isNew, err
	}
	return isNew, nil
}

// close ends the connection.
func (p *probe) close() {
	if p.conn == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), askWithin)
	defer cancel()
	_ = p.conn.Close(ctx) // the server ends what was asked
	p.conn = nil
}

// Positions are in bytes from the beginning of the log. A primary has none while it is a standby itself.
const primaryQuery = `
SELECT
    CASE WHEN NOT pg_is_in_recovery() THEN pg_wal_lsn_diff(pg_current_wal_lsn(), '0/0')::bigint END,
    CASE WHEN NOT pg_is_in_recovery() THEN pg_wal_lsn_diff(pg_current_wal_insert_lsn(), '0/0')::bigint END`

const standbyQuery = `
SELECT
    pg_is_in_recovery(),
    coalesce(pg_wal_lsn_diff(pg_last_wal_receive_lsn(), '0/0'), 0)::bigint,
    coalesce(pg_wal_lsn_diff(pg_last_wal_replay_lsn(), '0/0'), 0)::bigint,
    pg_last_xact_replay_timestamp()`

// serverQuery identifies a server that runs: no two began in the same microsecond.
const serverQuery = `SELECT extract(epoch FROM pg_postmaster_start_time())::text`

// written is where a primary was in its log at a moment, by our clock.
type written struct {
	at  time.Time
	lsn int64 // up to where it was handed to the kernel, which is sent to standbys
}

// replayed is where a standby is in the log of its primary.
type replayed struct {
	recovering bool  // else it takes writes: it is no standby
	received   int64 // up to where it was received
	lsn        int64 // up to where it was replayed
	committed  time.Time
	err        error // it does not answer
}

// history is where the primary was in its log, oldest first, from the last moment on of which the standby has everything.
type history struct {
	all  []written
	step time.Duration // least time between two moments, but for the last
}

// historyMost bounds a history: while a standby replays nothing for long, moments are further and further apart.
const historyMost = 1000

// add adds a moment. A primary that is before where it was is another one: what the former wrote later is lost.
func (h *history) add(w written) {
	last := len(h.all) - 1
	switch {
	case last >= 0 && w.lsn < h.all[last].lsn:
		h.all, h.step = []written{w}, 0
	case last >= 0 && w.lsn == h.all[last].lsn, last > 0 && w.at.Sub(h.all[last-1].at) < h.step:
		h.all[last] = w
	default:
		h.all = append(h.all, w)
	}
	if len(h.all) > historyMost {
		h.thinOut()
	}
}

// thinOut leaves out every second moment.
func (h *history) thinOut() {
	thinned := make([]written, 0, historyMost)
	for i := 0; i < len(h.all); i += 2 {
		thinned = append(thinned, h.all[i])
	}
	h.all, h.step = thinned, max(2*h.step, 2*checkEvery)
}

// coveredBy returns the last moment of which a position has everything, and forgets those before; zero where there is none.
func (h *history) coveredBy(lsn int64) time.Time {
	for i := len(h.all) - 1; i >= 0; i-- {
		if h.all[i].lsn <= lsn {
			h.all = h.all[i:]
			if len(h.all) == 1 {
				h.step = 0
			}
			return h.all[0].at
		}
	}
	return time.Time{}
}
