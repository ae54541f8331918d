package spool

import (
	"encoding/json"
	"errors"
	"slices"
	"time"

	"github.com/evictrail/evictrail/trail"
)

// batch is what Next returned, and where the queue goes on behind it.
type batch struct {
	to     uint64 // the number of the fact behind
	at     position
	facts  int
	direct *direct
	sign   *trail.Sign // one that was in memory
}

// direct are facts that go to the database without having been on disk.
type direct struct {
	facts  []trail.Fact
	stored chan struct{}
}

// currentMark returns what waits; the lock must be held, as for all that follows.
func (s *Spool) currentMark() mark {
	if s.journal == nil {
		return mark{Head: 1, Tail: 1}
	}
	return s.journal.mark
}

// countFacts returns how many facts wait.
func (m mark) countFacts() int { return int(m.Tail - m.Head) }

// bytesFrom returns how many bytes wait from a place on.
func (s *Spool) bytesFrom(at position) int64 {
	if s.journal == nil {
		return 0
	}
	return s.journal.bytesFrom(at)
}

// hasWaiting reports whether something on disk does.
func (s *Spool) hasWaiting() bool {
	m := s.currentMark()
	return m.countFacts() > 0 || s.bytesFrom(m.At) > 0
}

// commitEntries writes facts and signs at the end of the queue, and then what is known where that has changed: where it is cut off between, a gap is recorded twice rather
// than not. When it returns without an error the entries are on disk, and k is what is known; after an error nothing has changed.
func (s *Spool) commitEntries(entries []frame, k known) error {
	if err := s.ensureWritable(); err != nil {
		return err
	}
	started, waited, j := time.Now(), s.hasWaiting(), s.journal
	if len(entries) > 0 {
		m, rotates := j.mark, j.needsRotation()
		var raw []byte
		for _, f := range entries {
			f.seq = m.Tail
			raw = f.appendTo(raw)
			if f.form == formFact {
				m.Tail++
			}
		}
		if err := j.appendFrames(raw); err != nil {
			s.setProblem(err)
			return err
		}
		j.mark = m
		if !waited {
			s.since = started
		}
		s.updateProblem(j.writeMark())
		if rotates {
			s.foldSoon()
		}
	}
	err := s.writeKnown(k)
	if len(entries) == 0 && err != nil {
		return err
	}
	s.known = k // where it could not be written it is with the next commit
	s.Synced(time.Since(started))
	return nil
}

// enqueueFacts puts facts at the end of the queue, but those for which there is no room.
func (s *Spool) enqueueFacts(facts []written) error {
	if s.currentMark().countFacts() == 0 {
		clear(s.refused)
	}
	kept, lost := s.admitFacts(facts)
	k := s.known.clone()
	var gaps []written
	if len(lost) == 0 {
		gaps = s.lossGaps(&k)
	}
	k.addLost(lost, s.currentMark().Tail+uint64(len(kept)))
	losses := s.known.Losses
	if err := s.commitEntries(framesOf(kept, gaps), k); err != nil {
		return err
	}
	if len(gaps) > 0 {
		s.endLosses(losses)
	}
	s.reportLost(lost)
	return nil
}

// keepSign puts a sign of life at the end of the queue. One for which there is no room stays in memory.
func (s *Spool) keepSign(sign trail.Sign) error {
	if s.bytesFrom(s.currentMark().At) >= s.Size {
		return errFull
	}
	k := s.known.clone()
	losses := s.known.Losses
	gaps := s.lossGaps(&k)
	k.Seq = s.currentMark().Tail + uint64(len(gaps))
	if err := s.commitEntries(append(framesOf(gaps), frame{form: formSign, payload: encodeJSON(sign)}), k); err != nil {
		return err
	}
	if len(gaps) > 0 {
		s.endLosses(losses)
	}
	return nil
}

var errFull = errors.New("spool is full")

// framesOf returns the frames of facts, not numbered yet.
func framesOf(facts ...[]written) (out []frame) {
	for _, f := range slices.Concat(facts...) {
		out = append(out, f.frame)
	}
	return out
}

// nextBatch returns what is to be stored next. Where there is nothing yet it returns how long to wait for more, zero for as long as nothing comes.
func (s *Spool) nextBatch() (facts []trail.Fact, sign *trail.Sign, wait time.Duration) {
	s.out = nil
	for s.hasWaiting() {
		if wait := gather - time.Since(s.since); wait > 0 && s.currentMark().countFacts() < batchFacts {
			return nil, nil, wait
		}
		b, facts, sign, err := s.readBatch()
		if err != nil {
			s.setProblem(err)
			wait = retryDisk
			break
		}
		if s.out = b; len(facts) > 0 || sign != nil {
			return facts, sign, 0
		}
		s.confirmBatch() // nothing of it could be read
	}
	at := s.currentMark().At
	switch {
	case s.direct != nil:
		s.out = &batch{at: at, direct: s.direct}
		return s.direct.facts, nil, 0
	case s.sign != nil:
		s.out = &batch{at: at, sign: s.sign}
		return nil, s.sign, 0
	}
	return nil, nil, wait
}

// readBatch reads the first entries of the queue: facts, or the last of the signs that say the same one after the other.
func (s *Spool) readBatch() (*batch, []trail.Fact, *trail.Sign, error) {
	m := s.currentMark()
	b := &batch{to: m.Head, at: m.At}
	var facts []trail.Fact
	var sign *trail.Sign
	var strange []DeadLetter
	size, lost := 0, 0
	pass := func(upto uint64) { // what was lost among facts that were read before is noted
		lost += max(0, int(upto)-int(max(b.to, s.reported)))
		b.to = upto
	}
	more := false
	_, err := s.journal.scanFrames(m.At, func(f frame, behind position) bool {
		switch f.form {
		case formFact:
			if sign != nil || b.to-m.Head >= batchFacts || size >= batchBytes {
				more = true
				return false
			}
			if f.seq < b.to {
				break
			}
			pass(f.seq)
			b.to++
			size += len(f.payload)
			fact, err := trail.ReadFact(s.Cluster, f.payload)
			if err != nil {
				if f.seq >= s.reported {
					strange = append(strange, strangeLetter(f.payload, err, s.Clock()))
				}
				break
			}
			facts = append(facts, fact)
		case formSign:
			var next trail.Sign
			if json.Unmarshal(f.payload, &next) != nil {
				break // of another version: there will be more
			}
			if b.to > m.Head || sign != nil && !slices.Equal(sign.Watching, next.Watching) {
				more = true
				return false
			}
			sign = &next
		case formState, formBase, formKnown, formMark:
		}
		b.at = behind
		return true
	})
	if err != nil {
		return nil, nil, nil, err
	}
	if !more {
		if sign == nil {
			pass(m.Tail)
		}
		b.at = s.journal.endPosition()
	}
	b.facts = int(b.to - m.Head)
	s.reported = max(s.reported, b.to)
	if lost > 0 {
		s.reportCorrupted(lost, facts)
	}
	if len(strange) > 0 {
		s.setStrangeAside(strange, facts)
	}
	return b, facts, sign, nil
}

// reportCorrupted notes that facts cannot be read, between those around them.
func (s *Spool) reportCorrupted(n int, around []trail.Fact) {
	since, until := s.timesAround(around)
	s.Log.Error("facts in the spool cannot be read: they are lost", "path", s.path, "count", n)
	s.known.addLoss(trail.SourceSelf, trail.ReasonCorrupted, since, until, KindUnknown, n)
	s.Lost(KindUnknown, LostCorrupt, n)
	s.noteDoubt()
}

// timesAround returns in which time was seen what lay among some facts of the queue.
func (s *Spool) timesAround(facts []trail.Fact) (since, until time.Time) {
	since, until = s.Clock(), s.Clock()
	if len(facts) > 0 {
		return facts[0].ObservedAt, facts[len(facts)-1].ObservedAt
	}
	if !s.known.Alive.IsZero() {
		since = s.known.Alive
	}
	return since, until
}

// confirmBatch removes what was given out from the queue.
func (s *Spool) confirmBatch() {
	b := s.out
	s.out = nil
	switch {
	case b == nil:
	case b.direct != nil:
		close(b.direct.stored)
		if s.direct == b.direct {
			s.direct = nil
		}
	case b.sign != nil:
		if s.sign == b.sign {
			s.sign = nil
		}
	default:
		j := s.journal
		before := j.mark
		j.mark.Head, j.mark.At = b.to, b.at
		if s.commitKnown() != nil { // such as what turned out to be lost
			return // the mark on disk is an older one: after a restart it is read again, and noted again
		}
		if err := j.writeMark(); err != nil && s.problem == nil {
			s.setProblem(err)
		}
		if j.mark.At.Segment > before.At.Segment {
			s.deleteDrained()
		}
	}
}

// findOldestTime returns when the first fact that waits was seen; zero where that cannot be read.
func (s *Spool) findOldestTime() (at time.Time) {
	if s.journal == nil {
		return at
	}
	_, _ = s.journal.scanFrames(s.journal.mark.At, func(f frame, _ position) bool {
		if f.form == formFact {
			if fact, err := trail.ReadFact(s.Cluster, f.payload); err == nil {
				at = fact.ObservedAt
			}
		}
		return at.IsZero()
	})
	return at
}
