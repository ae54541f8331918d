package spool

import (
	"bufio"
	"cmp"
	"errors"
	"hash/maphash"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/evictrail/evictrail/trail"
)

// base is the file of states: of each aspect of each object the last that was recorded, without those of objects that are gone. What facts from its number on
// changed is read from the journal.
type base struct {
	upto uint64 // the number of the first fact that is not in it
	size int64  // bytes
}

// foldAfter is how many segments at the most are read at a start, beside the base.
const foldAfter = 32

func (s *Spool) basePath() string { return filepath.Join(s.path, "state") }

// stateKey identifies an aspect of an object; empty where the object is not remembered.
func stateKey(f trail.Fact) string {
	if !f.Object.Kind.Remembered() {
		return ""
	}
	return strings.Join([]string{string(f.Object.Kind), f.Object.UID, f.What}, "\x00")
}

// states are a base and the segments that hold what came after it, as they are at a moment.
type states struct {
	path  string
	base  base
	until uint64 // the number of the first fact that is left out
	segments
}

// errBase says that a base is damaged.
var errBase = errors.New("states of objects in the spool cannot be read")

// viewStates returns what holds the states now: all of them, or those before the last segment, which grows. The lock must be held.
func (s *Spool) viewStates(all bool) states {
	v := states{path: s.basePath(), base: s.base, until: s.journal.mark.Tail, segments: segments{dir: s.path}}
	for i, segment := range s.journal.list {
		switch last := i+1 == len(s.journal.list); {
		case last && !all:
			v.until = segment.first
		case last || s.journal.list[i+1].first > s.base.upto:
			v.list = append(v.list, segment)
		}
	}
	return v
}

// visitLatest visits the last of each aspect of each object that exists. It is read twice, so that memory holds no more than a hash of each. Errors: errBase, where all
// that can be read was visited, those of the system, and what visit returns.
func (v states) visitLatest(visit func(frame) error) error {
	seed := maphash.MakeSeed()
	last, gone := map[uint64]int{}, map[uint64]int{} // of an aspect, and of an object: the place in the order
	damaged, err := v.visitAll(func(n int, f frame) error {
		if object, isGone := strings.CutSuffix(f.key, "\x00"+trail.WhatGone); isGone {
			gone[maphash.String(seed, object)] = n
		} else {
			last[maphash.String(seed, f.key)] = n
		}
		return nil
	})
	if err != nil {
		return err
	}
	_, err = v.visitAll(func(n int, f frame) error {
		object := f.key[:strings.LastIndexByte(f.key, 0)]
		if last[maphash.String(seed, f.key)] != n || gone[maphash.String(seed, object)] > n {
			return nil
		}
		return visit(f)
	})
	if err == nil && damaged {
		err = errBase
	}
	return err
}

// visitAll visits the states of the base and the facts that came after it, numbered from 1 on, and reports whether something is damaged.
func (v states) visitAll(visit func(n int, f frame) error) (damaged bool, err error) {
	n := 0
	number := func(f frame) {
		if n++; err == nil {
			err = visit(n, f)
		}
	}
	if v.base.size > 0 {
		in, openErr := os.Open(v.path)
		if openErr != nil {
			return true, openErr
		}
		defer func() { _ = in.Close() }()
		ends := 0
		reading := scanner{in: in, size: v.base.size}
		for err == nil {
			f, ok, nextErr := reading.nextFrame()
			if err = errors.Join(err, nextErr); err != nil || !ok {
				break
			}
			if f.form == formBase {
				ends++
			} else if f.key != "" {
				number(f)
			}
		}
		damaged = ends != 2 || reading.skipped > 0
	}
	skipped, scanErr := v.scanFrames(position{}, func(f frame, _ position) bool {
		if f.form == formFact && f.key != "" && f.seq >= v.base.upto && f.seq < v.until {
			number(f)
		}
		return err == nil
	})
	return damaged || skipped > 0, errors.Join(err, scanErr)
}

// loadBase reads of the base what it holds. One that is missing or does not reach to the journal leaves states unknown: then the error is errBase.
func (s *Spool) loadBase() error {
	s.base = base{}
	in, err := os.Open(s.basePath())
	if err == nil {
		defer func() { _ = in.Close() }()
		info, err := in.Stat()
		if err != nil {
			return err
		}
		reading := scanner{in: in, size: info.Size()}
		f, ok, err := reading.nextFrame()
		if err != nil {
			return err
		}
		if s.base.size = info.Size(); ok && f.form == formBase {
			s.base.upto = f.seq
		}
	} else if !errors.Is(err, os.ErrNotExist) {
		return err
	}
	first := s.journal.mark.Tail
	if len(s.journal.list) > 0 {
		first = s.journal.list[0].first
	}
	if first > max(s.base.upto, 1) {
		return errBase
	}
	return nil
}

// writeBase replaces the base by the states that each puts.
func (s *Spool) writeBase(upto uint64, each func(put func(frame) error) error) error {
	err := replaceSynced(s.basePath(), func(to *os.File) error {
		out := bufio.NewWriterSize(io.NewOffsetWriter(to, 0), readAhead)
		put := func(f frame) error {
			_, err := out.Write(f.appendTo(out.AvailableBuffer()))
			return err
		}
		end := frame{form: formBase, seq: upto}
		return cmp.Or(put(end), each(put), put(end), out.Flush())
	})
	if err != nil {
		return err
	}
	info, err := os.Stat(s.basePath())
	if err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.base = base{upto, info.Size()}
	return nil
}

// stateOf returns the state that a fact leaves behind.
func stateOf(seq uint64, f trail.Fact) (frame, error) {
	text, err := trail.WriteFact(f.State())
	return frame{formState, seq, stateKey(f), text}, err
}

// foldSoon begins to take the states of full segments into the base, where these have grown larger than it. The lock must be held.
func (s *Spool) foldSoon() {
	v := s.viewStates(false)
	if s.isFolding || len(v.list) < foldAfter && v.bytesFrom(position{}) < max(s.journal.limit, s.base.size) {
		return
	}
	s.isFolding = true
	s.folding.Go(s.foldStates)
}

// foldStates takes the states that full segments hold into the base. It holds no lock while it reads and writes: facts are appended and confirmed during that time.
func (s *Spool) foldStates() {
	s.stateMu.Lock()
	defer s.stateMu.Unlock()
	s.mu.Lock()
	v := s.viewStates(false)
	s.mu.Unlock()
	err := s.writeBase(v.until, func(put func(frame) error) error {
		var strange error
		err := v.visitLatest(func(f frame) error {
			if f.form == formFact {
				fact, err := trail.ReadFact(s.Cluster, f.payload)
				if err == nil {
					f, err = stateOf(f.seq, fact)
				}
				if err != nil {
					strange = err
					return nil
				}
			}
			return put(f)
		})
		if err != nil && !errors.Is(err, errBase) {
			return err
		}
		if err = cmp.Or(err, strange); err != nil { // noted before the base is replaced, in which nothing says so
			s.mu.Lock()
			defer s.mu.Unlock()
			s.doubtStates(err)
			return s.commitKnown()
		}
		return nil
	})
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.isFolding = false; err != nil {
		s.Log.Warn("spool keeps its size: states of objects cannot be written", "path", s.path, "err", err)
		return
	}
	s.deleteDrained()
}

// doubtStates notes that states are lost. The lock must be held.
func (s *Spool) doubtStates(err error) {
	s.Log.Error("states of objects in the spool cannot be read, they are compared with the database once it is there", "path", s.path, "err", err)
	s.noteDoubt()
}

// deleteDrained deletes the segments that nobody needs any more. The lock must be held.
func (s *Spool) deleteDrained() {
	if err := s.journal.deleteDrained(s.base.upto); err != nil {
		s.Log.Warn("spool keeps its size: what is stored cannot be deleted", "path", s.path, "err", err)
	}
}
