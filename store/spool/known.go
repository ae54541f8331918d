package spool

import (
	"encoding/json"
	"slices"
	"time"

	"github.com/evictrail/evictrail/trail"
)

// known is what the spool knows of the past, beside the state of objects.
type known struct {
	Cluster string               `json:"cluster"`
	Alive   time.Time            `json:"alive,omitzero"` // the last sign of life
	Seen    map[string]time.Time `json:"seen,omitempty"` // up to when each source was seen
	Seq     uint64               `json:"seq,omitempty"`  // of the entry that brought them; zero: the database had them
	Doubt   *Doubt               `json:"doubt,omitempty"`
	Losses  trail.Losses         `json:"losses,omitempty"` // by source and cause, until they are told as gaps

	Identity trail.Identity `json:"identity,omitzero"`
	Breaks   []trail.Break  `json:"breaks,omitempty"` // until they are recorded as gaps; at most one per key
}

// Identity returns which cluster is recorded, as far as the spool was told.
func (s *Spool) Identity() trail.Identity {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.known.Identity
}

// Identify notes which cluster is recorded. It lasts like facts that were taken; without a disk as long as the process.
func (s *Spool) Identify(id trail.Identity) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.known.Identity == id {
		return nil
	}
	s.known.Identity = id
	return s.commitKnown()
}

// BeginEpoch notes that what is seen from now on does not continue what was recorded, and in which epoch of which cluster it is recorded. Breaks that were noted
// before and are not recorded yet stay: each becomes a gap of its own.
func (s *Spool) BeginEpoch(id trail.Identity, b trail.Break) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.known.Identity = id
	s.noteBreak(b)
	return s.commitKnown()
}

// noteBreak notes a break, of which the next collector is told; the lock must be held.
func (s *Spool) noteBreak(b trail.Break) {
	s.breaksTaken = false
	if !slices.ContainsFunc(s.known.Breaks, func(noted trail.Break) bool { return noted.Key == b.Key }) {
		s.known.Breaks = append(s.known.Breaks, b)
	}
}

// Rewound notes that the database has lost what it acknowledged, which becomes a gap, and that the cluster is to be compared with what it still has.
func (s *Spool) Rewound(b trail.Break) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.noteBreak(b)
	s.resumed = false
	s.known.Doubt = &Doubt{Upto: s.mark.Tail, Asked: true, Alive: b.From}
	return s.commitKnown()
}

// TakeBreaks returns the breaks that are not recorded yet, in the order in which they were noted; nil where there are none. To be called for a collector that
// records them: the next sign of life that says that everything is seen is taken as behind them.
func (s *Spool) TakeBreaks() []trail.Break {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.breaksTaken = true
	return s.known.clone().Breaks
}

// commitKnown writes what is known; the lock must be held. Without a disk it is written with the next commit.
func (s *Spool) commitKnown() error {
	if !s.writable() {
		return nil
	}
	return s.attempt(func() error { return s.commit(func(*change) error { return nil }) })
}

func (k known) clone() known {
	raw, err := json.Marshal(k)
	if err != nil {
		panic("clone what is known: " + err.Error()) // times, texts and numbers: cannot fail
	}
	var out known
	if err := json.Unmarshal(raw, &out); err != nil {
		panic("clone what is known: " + err.Error())
	}
	return out
}

// Doubt says that the state of objects that the spool has may not be what the database has, or will have once all is drained: it was begun
// while the database was away, or something that was recorded got lost. Then the cluster is to be compared with the database, as at a start.
type Doubt struct {
	Upto  uint64               `json:"upto"` // the number of the next entry when it arose: what lies before is to be drained first
	Asked bool                 `json:"asked,omitempty"`
	Alive time.Time            `json:"alive,omitzero"` // the last sign of life that the database had before anything was drained into it, once Asked
	Seen  map[string]time.Time `json:"seen,omitempty"`
}

// Past is from what a collector goes on.
type Past struct {
	Alive time.Time            // the last sign of life; zero where none is known
	Seen  map[string]time.Time // up to when each source was seen
}

// Past gives what the spool knows: all of it, or only what it has and the database does not. The state of objects, of each aspect the last that was
// recorded, goes to resume (Tracker.Resume) one by one: there may be hundreds of thousands.
func (s *Spool) Past(waiting bool, resume func(trail.Fact)) (Past, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	var p Past
	if !waiting || s.known.Seq >= s.mark.Head && s.known.Seq > 0 {
		k := s.known.clone()
		p.Alive, p.Seen = k.Alive, k.Seen
	}
	torn := 0
	err := s.readState(func(seq uint64, f trail.Fact, err error) {
		switch {
		case err != nil:
			torn++
		case !waiting || seq >= s.mark.Head && seq > 0:
			resume(f)
		}
	})
	if torn > 0 {
		s.Log.Error("states of objects in the spool cannot be read, they are compared with the database once it is there", "count", torn)
		s.doubt()
	}
	return p, err
}

// Remember makes what the database knows, with what waits for it, the state that the spool has. To be called before a collector goes on
// from there.
func (s *Spool) Remember(p Past, state func(yield func(trail.Fact) bool)) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.resumed = true
	if s.known.Seq < s.mark.Head || s.known.Seq == 0 {
		s.known.Alive, s.known.Seen, s.known.Seq = p.Alive, p.Seen, 0
	}
	if !s.writable() {
		return nil
	}
	return s.attempt(func() error { return s.replaceState(state) })
}

// Doubted gives the doubt that there is, nil where there is none.
func (s *Spool) Doubted() *Doubt {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.known.Doubt == nil {
		return nil
	}
	d := *s.known.clone().Doubt
	return &d
}

// Ask notes for a doubt what the database said before anything was drained into it. One that never heard of the cluster has nothing that
// could be compared, which ends the doubt.
func (s *Spool) Ask(alive time.Time, seen map[string]time.Time) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch d := s.known.Doubt; {
	case d == nil || d.Asked:
		return nil
	case alive.IsZero():
		s.known.Doubt = nil
	default:
		d.Asked, d.Alive, d.Seen = true, alive, seen
	}
	return s.commitKnown()
}

// Compare tells whether there is a doubt and what lay before it is drained, so that the database can be asked how it stands.
func (s *Spool) Compare() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	d := s.known.Doubt
	return d != nil && d.Asked && !s.resumed && s.mark.Head >= d.Upto && s.mark.Facts < batchFacts && len(s.known.Losses) == 0
}

// doubt notes a doubt. One that arises while evictrail runs needs nothing that the database said before.
func (k *known) doubt(upto uint64) {
	if k.Doubt == nil {
		k.Doubt = &Doubt{Asked: true}
	}
	k.Doubt.Upto = upto
}

// doubt notes a doubt that arose beside a commit; the next one writes it.
func (s *Spool) doubt() {
	s.resumed = false
	s.known.doubt(s.mark.Tail)
}

// Add takes in what another knows of the same past: of each time the later.
func (p *Past) Add(o Past) {
	if o.Alive.After(p.Alive) {
		p.Alive = o.Alive
	}
	for source, at := range o.Seen {
		if at.After(p.Seen[source]) {
			if p.Seen == nil {
				p.Seen = map[string]time.Time{}
			}
			p.Seen[source] = at
		}
	}
}
