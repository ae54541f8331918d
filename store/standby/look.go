package standby

import (
	"context"
	"errors"
	"time"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/evictrail/evictrail/store/pg"
)

// Run looks at both servers again and again until ctx ends.
func (s *Servers) Run(ctx context.Context) {
	if s.standby == nil {
		return
	}
	tick := time.NewTicker(checkEvery)
	defer tick.Stop()
	for {
		s.Check(ctx)
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
	}
}

// checkEvery is the time between two looks at both servers.
const checkEvery = time.Second

// Check looks at both servers, and decides which one answers.
func (s *Servers) Check(ctx context.Context) {
	if s.standby == nil {
		return
	}
	s.asking.Lock()
	defer s.asking.Unlock()
	at := time.Now().UTC()
	primary, inserted := s.askPrimary(ctx, at)
	second := s.askStandby(ctx)
	if ctx.Err() != nil {
		return
	}
	s.mu.Lock()
	s.known.note(at, primary, inserted, second)
	signs := s.known.chooseServer(at, s.o.MaxLag)
	changed := signs.Used != s.signs.Used || signs.Cause != s.signs.Cause
	if signs.Since = s.signs.Since; changed {
		signs.Since = at
	}
	s.signs = signs
	switch answering := second.err == nil && second.recovering; {
	case !answering:
		s.end()
	case s.gone.Err() != nil:
		s.gone, s.end = context.WithCancel(context.Background())
	}
	s.mu.Unlock()
	if changed && s.o.Changed != nil {
		s.o.Changed(signs)
	}
	if s.o.Asked != nil {
		s.o.Asked(signs)
	}
}

// askPrimary returns where the primary is at least at a time; nil where it does not answer.
func (s *Servers) askPrimary(ctx context.Context, at time.Time) (w *written, inserted int64) {
	var lsn, end *int64
	if _, err := s.primary.ask(ctx, primaryQuery, &lsn, &end); err != nil || lsn == nil {
		return nil, 0
	}
	return &written{at, *lsn}, *end
}

// askStandby returns where the standby is. Another server than before is accepted from now on, and no longer the former.
func (s *Servers) askStandby(ctx context.Context) (r replayed) {
	if s.second.conn == nil || s.second.conn.IsClosed() {
		s.server.Store(nil)
	}
	var committed *time.Time
	isNew, err := s.second.ask(ctx, standbyQuery, &r.recovering, &r.received, &r.lsn, &committed)
	if err == nil && isNew {
		var server string
		if _, err = s.second.ask(ctx, serverQuery, &server); err == nil {
			s.end() // what is under way may be asked of another server
			s.server.Store(&server)
			s.db.Reset()
		}
	}
	r.committed, r.err = pg.TimeOrZero(committed), err
	return r
}

// errOtherServer says that a connection leads to another server than the one whose position is known.
var errOtherServer = errors.New("another server answers under the URL of the standby")

// acceptServer accepts connections to the one server whose position is known, so that all of an answer is of that one.
func (s *Servers) acceptServer(ctx context.Context, conn *pgconn.PgConn) error {
	known := s.server.Load()
	if known == nil {
		return nil
	}
	results, err := conn.Exec(ctx, serverQuery).ReadAll()
	if err != nil {
		return err
	}
	if len(results) != 1 || len(results[0].Rows) != 1 || string(results[0].Rows[0][0]) != *known {
		return errOtherServer
	}
	return nil
}

// How long AwaitReplay waits at most, and how long between two looks.
const (
	replayWithin = 2 * time.Second
	replayPoll   = 20 * time.Millisecond
)

// AwaitReplay has what was written before it was called read by all that ask from now on. It waits until the standby has
// it, so that other processes find it there, too. Where that takes long it returns, and the primary answers until then.
func (s *Servers) AwaitReplay(ctx context.Context) {
	if s.standby == nil {
		return
	}
	s.asking.Lock() // what is asked now may have begun before
	s.mu.Lock()
	s.known.awaited = unknownPosition
	s.mu.Unlock()
	s.asking.Unlock()
	ctx, cancel := context.WithTimeout(ctx, replayWithin)
	defer cancel()
	for {
		s.Check(ctx)
		if !s.awaitsReplay() {
			return
		}
		select {
		case <-time.After(replayPoll):
		case <-ctx.Done():
			return
		}
	}
}

// awaitsReplay reports whether the standby would answer if it had replayed what is awaited.
func (s *Servers) awaitsReplay() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.signs.Used && s.known.awaited > 0
}
