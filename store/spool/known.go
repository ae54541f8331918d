package spool

import (
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/evictrail/evictrail/trail"
)

// known is what the spool knows of the past, beside the states of objects. It lies in a file of its own, which is replaced
// when it has changed.
type known struct {
	Cluster string               `json:"cluster"`
	Alive   time.Time            `json:"alive,omitzero"` // the last sign of life
	Seen    map[string]time.Time `json:"seen,omitempty"` // up to when each source was seen
	Seq     uint64               `json:"seq,omitempty"`  // the number of the fact that came after them; zero: the database had them
	Doubt   *Doubt               `json:"doubt,omitempty"`
	Losses  trail.Losses         `json:"losses,omitempty"` // by source and cause, until they are recorded as gaps

	Identity trail.Identity `json:"identity,omitzero"`
	Breaks   []trail.Break  `json:"breaks,omitempty"` // until they are recorded as gaps; at most one per key
}

// Identity returns which cluster is recorded, as far as the spool knows.
func (s *Spool) Identity() trail.Identity {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.known.Identity
}

// SetIdentity notes which cluster is recorded. It lasts like facts that were appended; without a disk as long as the process.
func (s *Spool) SetIdentity(id trail.Identity) error {
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

// noteBreak notes a break, which the next collector is to record; the lock must be held.
func (s *Spool) noteBreak(b trail.Break) {
	s.breaksClaimed = false
	if !slices.ContainsFunc(s.known.Breaks, func(noted trail.Break) bool { return noted.Key == b.Key }) {
		s.known.Breaks = append(s.known.Breaks, b)
	}
}

// NoteRewind notes that the database has lost what it acknowledged, which becomes a gap, and that the cluster is to be compared with what it still has.
func (s *Spool) NoteRewind(b trail.Break) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.noteBreak(b)
	s.resumed = false
	s.known.Doubt = &Doubt{Upto: s.currentMark().Tail, Asked: true, Alive: b.From}
	return s.commitKnown()
}

// ClaimBreaks returns the breaks that are not recorded yet, in the order in which they were noted; nil where there are none. It is called for a collector that
// records them: the next sign of life that says that everything is seen lies behind them.
func (s *Spool) ClaimBreaks() []trail.Break {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.breaksClaimed = true
	return s.known.clone().Breaks
}

// commitKnown writes what is known; the lock must be held. After an error it is in memory, and written with the next commit.
func (s *Spool) commitKnown() error {
	return s.commitEntries(nil, s.known)
}

func (s *Spool) knownPath() string { return filepath.Join(s.path, "known") }

// writeKnown writes what is known where that is not on disk yet; the lock must be held.
func (s *Spool) writeKnown(k known) error {
	text := encodeJSON(k)
	if bytes.Equal(text, s.knownText) {
		return nil
	}
	err := replaceSynced(s.knownPath(), func(to *os.File) error {
		_, err := to.WriteAt(frame{form: formKnown, payload: text}.appendTo(nil), 0)
		return err
	})
	if err == nil {
		s.knownText = text
	}
	s.updateProblem(err)
	return err
}

// loadKnown reads what is known; where there is nothing yet the error is fs.ErrNotExist, where it is damaged errKnown.
func (s *Spool) loadKnown() error {
	raw, err := os.ReadFile(s.knownPath())
	if err != nil {
		return err
	}
	f, whole := decodeFrame(raw)
	k := known{Cluster: s.Cluster}
	if !whole || json.Unmarshal(f.payload, &k) != nil {
		return errKnown
	}
	s.known, s.knownText = k, bytes.Clone(f.payload)
	return nil
}

var errKnown = errors.New("what the spool knows beside facts cannot be read")

func (k known) clone() known {
	var out known
	if err := json.Unmarshal(encodeJSON(k), &out); err != nil {
		panic("clone what is known: " + err.Error()) // it was just encoded
	}
	return out
}

// Doubt says that the state of objects that the spool has may not be what the database has, or will have once all is drained: it was begun
// while the database was away, or something that was recorded got lost. Then the cluster is to be compared with the database, as at a start.
type Doubt struct {
	Upto  uint64               `json:"upto"` // the number of the next fact when it arose: what lies before is to be drained first
	Asked bool                 `json:"asked,omitempty"`
	Alive time.Time            `json:"alive,omitzero"` // the last sign of life that the database had before anything was drained into it, once Asked
	Seen  map[string]time.Time `json:"seen,omitempty"`
}

// Past is from what a collector goes on.
type Past struct {
	Alive time.Time            // the last sign of life; zero where none is known
	Seen  map[string]time.Time // up to when each source was seen
}

// LoadPast returns what the spool knows: all of it, or only what it has and the database may not. The states of objects, of each aspect the last that was
// recorded, go to resume (Tracker.Resume) one by one: there may be hundreds of thousands.
func (s *Spool) LoadPast(waiting bool, resume func(trail.Fact)) (Past, error) {
	s.stateMu.Lock()
	defer s.stateMu.Unlock()
	s.mu.Lock()
	var p Past
	head := s.currentMark().Head
	if !waiting || s.known.Seq >= head && s.known.Seq > 0 {
		k := s.known.clone()
		p.Alive, p.Seen = k.Alive, k.Seen
	}
	if s.journal == nil {
		s.mu.Unlock()
		return p, nil
	}
	v := s.viewStates(true)
	s.mu.Unlock()
	var strange error
	err := v.visitLatest(func(f frame) error {
		if waiting && f.seq < head {
			return nil
		}
		fact, err := trail.ReadFact(s.Cluster, f.payload)
		if err != nil {
			strange = err
			return nil
		}
		resume(fact.State())
		return nil
	})
	if errors.Is(err, errBase) {
		strange, err = err, nil
	}
	if strange != nil {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.doubtStates(strange)
		err = errors.Join(err, s.commitKnown())
	}
	return p, err
}

// ReplaceStates makes what the database knows, with what waits for it, what the spool knows. To be called before a collector goes on from there.
func (s *Spool) ReplaceStates(p Past, state func(yield func(trail.Fact) bool)) error {
	s.stateMu.Lock()
	defer s.stateMu.Unlock()
	s.mu.Lock()
	s.resumed = true
	head := s.currentMark().Head
	if s.known.Seq < head || s.known.Seq == 0 {
		s.known.Alive, s.known.Seen, s.known.Seq = p.Alive, p.Seen, 0
	}
	err := s.ensureWritable()
	s.mu.Unlock()
	if err != nil {
		return err
	}
	err = s.writeBase(head, func(put func(frame) error) error {
		for f := range state {
			out, err := stateOf(0, f)
			if err == nil {
				err = put(out)
			}
			if err != nil {
				return err
			}
		}
		return nil
	})
	s.mu.Lock()
	defer s.mu.Unlock()
	if err != nil {
		s.setProblem(err)
		return err
	}
	s.deleteDrained()
	return s.commitKnown()
}

// Doubt returns the doubt that there is, nil where there is none.
func (s *Spool) Doubt() *Doubt {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.known.clone().Doubt
}

// AnswerDoubt notes for a doubt what the database said before anything was drained into it. One that never heard of the cluster has nothing that could be
// compared, which ends the doubt.
func (s *Spool) AnswerDoubt(alive time.Time, seen map[string]time.Time) error {
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

// NeedsComparison reports whether there is a doubt and what lay before it is drained, so that the cluster can be compared with the database.
func (s *Spool) NeedsComparison() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	d, m := s.known.Doubt, s.currentMark()
	return d != nil && d.Asked && !s.resumed && m.Head >= d.Upto && m.countFacts() < batchFacts && len(s.known.Losses) == 0
}

// addDoubt notes a doubt. One that arises while evictrail runs needs nothing that the database said before.
func (k *known) addDoubt(upto uint64) {
	if k.Doubt == nil {
		k.Doubt = &Doubt{Asked: true}
	}
	k.Doubt.Upto = upto
}

// noteDoubt notes a doubt, which the next commit writes; the lock must be held.
func (s *Spool) noteDoubt() {
	s.resumed = false
	s.known.addDoubt(s.currentMark().Tail)
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
