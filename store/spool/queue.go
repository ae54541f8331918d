package spool

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"slices"
	"time"

	"go.etcd.io/bbolt"

	"github.com/evictrail/evictrail/trail"
)

// change is a transaction on the file, with what holds once it is committed.
type change struct {
	queue, state, meta *bbolt.Bucket
	mark               mark
	known              known
}

// put puts an entry at the end of the queue.
func (c *change) put(form form, payload []byte) error {
	raw := frame{form, c.mark.Tail, payload}.encode()
	if err := c.queue.Put(keyOf(c.mark.Tail), raw); err != nil {
		return err
	}
	c.mark.Tail++
	c.mark.Bytes += entrySize(raw)
	if form == formFact {
		c.mark.Facts++
	}
	return nil
}

// putFacts puts facts at the end of the queue, and brings the state of their objects up to date.
func (c *change) putFacts(facts []written) error {
	for _, f := range facts {
		if err := c.remember(c.mark.Tail, f); err != nil {
			return err
		}
		if err := c.put(formFact, f.text); err != nil {
			return err
		}
	}
	return nil
}

// entrySize is what an entry takes of the bound: itself, its key, and where bbolt says where it lies.
func entrySize(raw []byte) int64 { return int64(len(raw)) + 8 + 16 }

// commit changes the file in one transaction. When it returns without an error the change is on disk.
func (s *Spool) commit(with func(*change) error) error {
	if s.file == nil {
		return errors.New("spool is not open")
	}
	started := time.Now()
	c := change{mark: s.mark, known: s.known.clone()}
	err := s.file.update(func(tx *bbolt.Tx) error {
		c.queue, c.state, c.meta = tx.Bucket(bucketQueue), tx.Bucket(bucketState), tx.Bucket(bucketMeta)
		c.queue.FillPercent = 0.95 // entries come in order
		for seq := s.onDisk.Head; seq < c.mark.Head; seq++ {
			if err := c.queue.Delete(keyOf(seq)); err != nil {
				return err
			}
		}
		if err := with(&c); err != nil {
			return err
		}
		if err := putJSON(c.meta, keyMark, formMark, c.mark); err != nil {
			return err
		}
		if err := putJSON(c.meta, keyKnown, formKnown, c.known); err != nil {
			return err
		}
		if s.fault != nil {
			return s.fault()
		}
		return nil
	})
	if err != nil {
		return err
	}
	s.mark, s.onDisk, s.known = c.mark, c.mark, c.known
	s.Synced(time.Since(started))
	return nil
}

func putJSON(to *bbolt.Bucket, key []byte, form form, v any) error {
	payload, err := json.Marshal(v)
	if err != nil {
		return err
	}
	return to.Put(key, frame{form, 0, payload}.encode())
}

func getJSON(from *bbolt.Bucket, key []byte, v any) error {
	raw := from.Get(key)
	if raw == nil {
		return nil
	}
	f, err := decodeFrame(raw)
	if err != nil {
		return err
	}
	return json.Unmarshal(f.payload, v)
}

// keep puts facts at the end of the queue, but those for which there is no room, and brings the state of their objects up to date.
func (s *Spool) keep(facts []written) error {
	if s.mark.Facts == 0 {
		clear(s.refused)
	}
	kept, lost := s.admit(facts)
	var gaps []written
	if len(lost) == 0 {
		gaps, _, _ = write(s.tell())
	}
	began := s.mark.Tail == s.mark.Head
	losses := s.known.Losses
	err := s.commit(func(c *change) error {
		if len(gaps) > 0 {
			c.known.Losses = nil
		}
		if err := c.putFacts(slices.Concat(kept, gaps)); err != nil {
			return err
		}
		c.lose(lost)
		return nil
	})
	if err != nil {
		return err
	}
	s.last = nil
	if began {
		s.since = time.Now()
	}
	if len(gaps) > 0 {
		s.told(losses)
	}
	s.wasLost(lost)
	return nil
}

// keepSign puts a sign of life at the end of the queue. One that says the same of another moment takes the place of the last, unless that
// was given out.
func (s *Spool) keepSign(sign trail.Sign) error {
	payload, err := json.Marshal(sign)
	if err != nil {
		return err
	}
	gaps, _, _ := write(s.tell())
	replaced := len(gaps) == 0 && s.last != nil && slices.Equal(s.last.Watching, sign.Watching) && (s.out == nil || s.out.to < s.mark.Tail) &&
		s.mark.Tail > s.mark.Head
	began := s.mark.Tail == s.mark.Head
	seq := s.mark.Tail
	if replaced {
		seq--
	}
	losses := s.known.Losses
	err = s.commit(func(c *change) error {
		if len(gaps) > 0 {
			c.known.Losses = nil
		}
		if err := c.putFacts(gaps); err != nil {
			return err
		}
		c.known.Seq = seq + uint64(len(gaps))
		if replaced {
			c.mark.Tail--
			c.mark.Bytes -= entrySize(c.queue.Get(keyOf(c.mark.Tail)))
		}
		return c.put(formSign, payload)
	})
	if err != nil {
		return err
	}
	s.last = &sign
	if began {
		s.since = time.Now()
	}
	if len(gaps) > 0 {
		s.told(losses)
	}
	return nil
}

// next gives what is to be stored next. Where there is nothing yet it tells how long to wait for more, zero for as long as nothing comes.
func (s *Spool) next() (facts []trail.Fact, sign *trail.Sign, wait time.Duration) {
	s.out = nil
	for s.file != nil && s.mark.Head < s.mark.Tail {
		if wait := gather - time.Since(s.since); wait > 0 && s.mark.Tail-s.mark.Head < batchFacts {
			return nil, nil, wait
		}
		b, facts, sign, err := s.read()
		switch {
		case errors.Is(err, errDamaged):
			if err := s.rescue(err); err != nil {
				s.fails(err)
			}
			continue
		case err != nil:
			s.fails(err)
			return nil, nil, retryDisk
		}
		if s.out = b; len(facts) > 0 || sign != nil {
			return facts, sign, 0
		}
		s.confirm() // nothing of it could be read
	}
	switch {
	case s.direct != nil:
		s.out = &batch{to: s.mark.Tail, direct: s.direct}
		return s.direct.facts, nil, 0
	case s.sign != nil:
		s.out = &batch{to: s.mark.Tail, sign: s.sign}
		return nil, s.sign, 0
	}
	return nil, nil, 0
}

// read reads the first entries of the queue: facts, or one sign.
func (s *Spool) read() (b *batch, facts []trail.Fact, sign *trail.Sign, err error) {
	b = &batch{to: s.mark.Head}
	torn := 0
	var strange []DeadLetter
	err = s.file.view(func(tx *bbolt.Tx) error {
		queue := tx.Bucket(bucketQueue)
		for ; b.to < s.mark.Tail && len(facts) < batchFacts && b.bytes < batchBytes; b.to++ {
			raw := queue.Get(keyOf(b.to))
			if raw == nil {
				return fmt.Errorf("%w: entry %d is missing", errDamaged, b.to)
			}
			f, err := decodeFrame(raw)
			if err == nil && f.form == formSign && len(facts) > 0 {
				return nil // it is what comes next
			}
			if err == nil && f.form == formHole {
				continue
			}
			b.bytes += entrySize(raw)
			if err == nil && f.form == formSign {
				b.to++
				sign = &trail.Sign{}
				return json.Unmarshal(f.payload, sign)
			}
			b.facts++
			if err != nil || f.seq != b.to {
				torn++
				continue
			}
			fact, err := trail.ReadFact(s.Cluster, f.payload)
			if err != nil {
				strange = append(strange, strangeLetter(f.payload, err, s.Clock()))
				continue
			}
			facts = append(facts, fact)
		}
		return nil
	})
	if err == nil && torn > 0 {
		s.corrupted(torn, facts)
	}
	if err == nil && len(strange) > 0 {
		s.setStrangeAside(strange, facts)
	}
	return b, facts, sign, err
}

// corrupted notes that entries cannot be read, between those around them.
func (s *Spool) corrupted(n int, around []trail.Fact) {
	since, until := s.timesAround(around)
	s.Log.Error("entries of the spool cannot be read: they are lost", "path", s.path, "count", n)
	s.known.missing(trail.SourceSelf, trail.ReasonCorrupted, since, until, KindUnknown, n)
	s.Lost(KindUnknown, LostCorrupt, n)
	s.doubt()
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

// confirm takes what was given out off the queue.
func (s *Spool) confirm() {
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
		s.mark.Head, s.mark.Facts, s.mark.Bytes = b.to, max(0, s.mark.Facts-b.facts), max(0, s.mark.Bytes-b.bytes)
		if s.mark.Head == s.mark.Tail {
			s.last, s.mark.Facts, s.mark.Bytes = nil, 0, 0
		}
		if s.problem == nil && s.attempt(func() error { return s.commit(func(*change) error { return nil }) }) == nil {
			s.shrink()
		}
	}
}

// skip takes entries off the queue that were stored before.
func (s *Spool) skip(head uint64) {
	s.mark.Head = min(head, s.mark.Tail)
	if s.mark.Head == s.mark.Tail {
		s.mark.Facts, s.mark.Bytes = 0, 0
	}
}

// oldest gives when the first fact that waits was seen; zero where that cannot be read.
func (s *Spool) oldest() (at time.Time) {
	if s.file == nil {
		return at
	}
	_ = s.file.view(func(tx *bbolt.Tx) error {
		queue := tx.Bucket(bucketQueue)
		for seq := s.mark.Head; seq < s.mark.Tail; seq++ {
			f, err := decodeFrame(queue.Get(keyOf(seq)))
			if err != nil || f.form != formFact {
				continue
			}
			if fact, err := trail.ReadFact(s.Cluster, f.payload); err == nil {
				at = fact.ObservedAt
				return nil
			}
		}
		return nil
	})
	return at
}

// load reads from an open file what is kept in memory.
func (s *Spool) load() error {
	m, k := mark{Head: 1, Tail: 1}, known{Cluster: s.Cluster, Doubt: &Doubt{}}
	err := s.file.view(func(tx *bbolt.Tx) error {
		meta, queue := tx.Bucket(bucketMeta), tx.Bucket(bucketQueue)
		if meta == nil || queue == nil {
			return fmt.Errorf("%w: a part of it is missing", errDamaged)
		}
		if err := errors.Join(getJSON(meta, keyMark, &m), getJSON(meta, keyKnown, &k)); err != nil {
			return fmt.Errorf("%w: %w", errDamaged, err)
		}
		first, _ := queue.Cursor().First()
		last, raw := queue.Cursor().Last()
		if m.Head == m.Tail {
			if first != nil {
				return fmt.Errorf("%w: entries are where none were", errDamaged)
			}
			return nil
		}
		if string(first) != string(keyOf(m.Head)) || string(last) != string(keyOf(m.Tail-1)) {
			return fmt.Errorf("%w: entries are not where they were", errDamaged)
		}
		s.last = nil
		if f, err := decodeFrame(raw); err == nil && f.form == formSign {
			s.last = &trail.Sign{}
			return json.Unmarshal(f.payload, s.last)
		}
		return nil
	})
	if err != nil {
		return err
	}
	s.mark, s.onDisk, s.known = m, m, k
	s.since = time.Now()
	return nil
}

// largeFile is how large a file is at least that is made anew when its queue is empty: a file of bbolt never gets smaller by itself.
const largeFile = 64 << 20

// shrink makes a large file anew when its queue is empty and the states of objects are the smaller part of it. Where that fails the old one
// stays. A file that was looked at is looked at again when it has grown by half.
func (s *Spool) shrink() {
	info, err := os.Stat(s.path)
	if err != nil || info.Size() < s.large || s.mark.Head < s.mark.Tail || info.Size() < s.looked+s.looked/2 {
		return
	}
	s.looked = info.Size()
	if info.Size() < 4*s.stateBytes() {
		return
	}
	next := s.path + ".new"
	_ = os.Remove(next)
	to, err := openFile(next, false)
	if err == nil {
		if err = guarded(func() error { return copyInto(to, s.file) }); err == nil {
			err = s.replaceFile(to, next)
		}
	}
	if err != nil {
		_ = os.Remove(next)
		s.Log.Warn("spool keeps its size", "path", s.path, "err", err)
		return
	}
	s.looked = 0
}
