package standby

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/evictrail/evictrail/store/pg"
	"github.com/evictrail/evictrail/store/read"
	"github.com/evictrail/evictrail/trail"
)

// Options say which servers there are.
type Options struct {
	Primary   read.Whole // of the primary
	PrimaryDB *pg.DB
	// URL and PasswordFile lead to the standby, as pg.Connect has them. Without a URL the primary answers everything.
	URL, PasswordFile string
	// MaxLag is how far the standby may be behind to answer while the primary does, too.
	MaxLag time.Duration
	// Changed is called with each change of which server answers, or of why; nil calls nobody. So is Asked with each look at
	// both, and Repeated with the error of a standby for each answer that was made again by the primary.
	Changed  func(trail.StandbySigns)
	Asked    func(trail.StandbySigns)
	Repeated func(error)
}

// Servers has questions answered. It is safe for concurrent use.
type Servers struct {
	o       Options
	standby *read.Whole // nil: there is none
	db      *pg.DB      // of the standby
	server  atomic.Pointer[string]

	asking  sync.Mutex // of probes
	primary probe
	second  probe

	mu    sync.Mutex
	known noted
	signs trail.StandbySigns
	// gone ends when the standby goes away that answers now: what is under way there is asked of the primary.
	gone context.Context
	end  context.CancelFunc
}

// Open returns the servers; none of them need be there yet. Close ends their connections, but for those of the primary.
func Open(ctx context.Context, o Options) (*Servers, error) {
	s := &Servers{o: o, primary: probe{db: o.PrimaryDB}}
	if o.URL == "" {
		return s, nil
	}
	db, err := pg.ConnectAccepted(ctx, o.URL, o.PasswordFile, s.acceptServer)
	if err != nil {
		return nil, err
	}
	whole := read.New(db)
	s.db, s.standby, s.second = db, &whole, probe{db: db}
	s.signs = trail.StandbySigns{Since: time.Now().UTC(), Why: "the standby was not asked yet"}
	s.gone, s.end = context.WithCancel(context.Background())
	s.end()
	return s, nil
}

// Close ends the connections to the standby, and those that asked for positions.
func (s *Servers) Close() {
	if s.standby == nil {
		return
	}
	s.asking.Lock()
	defer s.asking.Unlock()
	s.primary.close()
	s.second.close()
	s.end()
	s.db.Close()
}

// OverlaySigns is read.Reader.OverlaySigns of both servers.
func (s *Servers) OverlaySigns(overlay read.Overlay) {
	s.o.Primary.OverlaySigns(overlay)
	if s.standby != nil {
		s.standby.OverlaySigns(overlay)
	}
}

// Answer has an answer made for a caller who sees so much: by the standby, or by the primary where that is to answer, or the
// standby could not. Then it is made from the beginning, with nothing of what the standby said. The error is that of the last.
func (s *Servers) Answer(ctx context.Context, of trail.Scope, answer func(context.Context, *read.Reader) error) error {
	if s.standby == nil {
		return answer(ctx, s.o.Primary.SeenBy(of))
	}
	signs, gone := s.current()
	if signs.Used {
		asking, cancel := context.WithCancel(ctx)
		defer cancel()
		defer context.AfterFunc(gone, cancel)()
		err := answer(asking, s.standby.SeenBy(of).Under(&signs))
		if err == nil || ctx.Err() != nil || asking.Err() == nil && !pg.MayAnswerElsewhere(err) {
			return err
		}
		if s.o.Repeated != nil {
			s.o.Repeated(err)
		}
		signs.Used, signs.Cause, signs.Why = false, trail.StandbyAway, "the standby could not answer this: "+pg.Brief(err)
	}
	return answer(ctx, s.o.Primary.SeenBy(of).Under(&signs))
}

// Signs returns how the standby is; nil where there is none.
func (s *Servers) Signs() *trail.StandbySigns {
	if s == nil || s.standby == nil {
		return nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	signs := s.signs
	return &signs
}

// current returns which server is to answer now, and what ends when it no longer can.
func (s *Servers) current() (trail.StandbySigns, context.Context) {
	s.mu.Lock()
	defer s.mu.Unlock()
	signs := s.signs
	if signs.Used && s.known.awaited > 0 {
		signs.Used, signs.Cause, signs.Why = false, trail.StandbyLags, "the standby has not replayed what was written here last"
	}
	return signs, s.gone
}
