package spool

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"time"

	"go.etcd.io/bbolt"

	"github.com/evictrail/evictrail/trail"
)

// rescue begins a new file with what is whole in a damaged one, puts the damaged one aside, and notes what is missing.
func (s *Spool) rescue(found error) error {
	s.Log.Error("spool damaged: what is whole in it goes on in a new file", "path", s.path, "err", found)
	if s.file != nil {
		s.file.abandon()
		s.file = nil
	}
	old, err := os.Open(s.path)
	if err != nil {
		return err
	}
	defer func() { _ = old.Close() }()
	next := s.path + ".new"
	if err := os.Remove(next); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	to, err := openFile(next, false)
	if err != nil {
		return err
	}
	r := rescued{mark: mark{Head: s.mark.Head, Tail: s.mark.Tail}, known: s.known}
	if err := errors.Join(r.find(old), s.salvage(old, to, &r)); err != nil {
		to.abandon()
		return err
	}
	aside, err := s.putAside(old)
	if err != nil {
		to.abandon()
		return err
	}
	if err := s.replaceFile(to, next); err != nil {
		return err
	}
	s.mark, s.known = r.mark, r.known
	s.onDisk, s.last, s.out, s.since = s.mark, nil, nil, time.Now()
	s.doubt()
	s.Log.Error("spool goes on in a new file", "path", s.path, "aside", aside, "waiting", s.mark.Facts, "lost", r.missing)
	if r.missing > 0 {
		s.known.missing(trail.SourceSelf, trail.ReasonCorrupted, r.since, r.until, KindUnknown, r.missing)
		s.Lost(KindUnknown, LostCorrupt, r.missing)
	}
	return nil
}

// rescued is what was found in a damaged file.
type rescued struct {
	mark         mark
	known        known
	missing      int
	since, until time.Time // the sights of the entries around what is missing
}

// find looks for the latest of what is written with every commit: the queue only moves on. Values that were replaced may lie there still.
func (r *rescued) find(in *os.File) error {
	return scan(in, func(f frame) error {
		switch f.form {
		case formMark:
			var m mark
			if json.Unmarshal(f.payload, &m) == nil {
				r.mark.Head, r.mark.Tail = max(r.mark.Head, m.Head), max(r.mark.Tail, m.Tail)
			}
		case formKnown:
			var k known
			if json.Unmarshal(f.payload, &k) == nil && k.Alive.After(r.known.Alive) {
				r.known = k
			}
		case formFact, formSign:
			r.mark.Tail = max(r.mark.Tail, f.seq+1)
		case formState, formHole:
		}
		return nil
	})
}

// salvage copies entries that wait and states of objects, and tells what is missing between.
func (s *Spool) salvage(in *os.File, to *file, r *rescued) error {
	var chunk []frame
	write := func() error {
		defer func() { chunk = chunk[:0] }()
		return to.update(func(tx *bbolt.Tx) error {
			for _, f := range chunk {
				if err := salvaged(tx, f); err != nil {
					return err
				}
			}
			return nil
		})
	}
	err := scan(in, func(f frame) error {
		waits := f.form != formMark && f.form != formKnown && f.seq >= r.mark.Head && f.seq < r.mark.Tail
		if !waits && f.form != formState {
			return nil
		}
		f.payload = bytes.Clone(f.payload)
		if chunk = append(chunk, f); len(chunk) == batchFacts {
			return write()
		}
		return nil
	})
	if err := errors.Join(err, write()); err != nil {
		return err
	}
	return s.complete(to, r)
}

// salvaged takes in one frame; of a state, the last.
func salvaged(tx *bbolt.Tx, f frame) error {
	if f.form != formState {
		return tx.Bucket(bucketQueue).Put(keyOf(f.seq), f.encode())
	}
	fact, err := trail.ReadFact("", f.payload)
	if err != nil {
		return nil //nolint:nilerror // a state that another version wrote is compared with the database, as all are after a rescue
	}
	key := stateKey(fact.Object, fact.What)
	if old, err := decodeFrame(tx.Bucket(bucketState).Get(key)); err == nil && old.seq > f.seq {
		return nil
	}
	return tx.Bucket(bucketState).Put(key, f.encode())
}

// complete puts holes where entries are missing, and writes where the queue begins and ends.
func (s *Spool) complete(to *file, r *rescued) error {
	lost := map[uint64]bool{}
	m := mark{Head: r.mark.Head, Tail: r.mark.Tail}
	err := to.view(func(tx *bbolt.Tx) error {
		queue := tx.Bucket(bucketQueue)
		var before time.Time
		open := false // something is missing since before
		for seq := m.Head; seq < m.Tail; seq++ {
			raw := queue.Get(keyOf(seq))
			if raw == nil {
				lost[seq], open = true, true
				continue
			}
			f, err := decodeFrame(raw)
			if err != nil {
				return err
			}
			if f.form == formHole {
				continue
			}
			m.Bytes += entrySize(raw)
			if f.form == formFact {
				m.Facts++
			}
			if open || before.IsZero() {
				at := seenAt(f)
				if open {
					r.around(before, at)
				}
				before, open = at, false
			}
			if next := queue.Get(keyOf(seq + 1)); next == nil {
				before = seenAt(f)
			}
		}
		if open {
			r.around(before, s.Clock())
		}
		return nil
	})
	if err != nil {
		return err
	}
	r.missing, r.mark = len(lost), m
	var holes []frame
	for seq := range lost {
		holes = append(holes, frame{form: formHole, seq: seq})
	}
	for chunk := range slices.Chunk(holes, 10*batchFacts) {
		err := to.update(func(tx *bbolt.Tx) error {
			for _, f := range chunk {
				if err := salvaged(tx, f); err != nil {
					return err
				}
			}
			return nil
		})
		if err != nil {
			return err
		}
	}
	return to.update(func(tx *bbolt.Tx) error {
		meta := tx.Bucket(bucketMeta)
		return errors.Join(
			unremember(tx.Bucket(bucketState), lost), putJSON(meta, keyMark, formMark, m), putJSON(meta, keyKnown, formKnown, r.known),
		)
	})
}

// around widens the time in which something is missing.
func (r *rescued) around(from, to time.Time) {
	if from.IsZero() {
		from = to
	}
	if r.since.IsZero() || from.Before(r.since) {
		r.since = from
	}
	if to.After(r.until) {
		r.until = to
	}
}

// unremember forgets the states that lost entries brought.
func unremember(state *bbolt.Bucket, lost map[uint64]bool) error {
	var gone [][]byte
	err := state.ForEach(func(k, raw []byte) error {
		if f, err := decodeFrame(raw); err != nil || lost[f.seq] {
			gone = append(gone, bytes.Clone(k))
		}
		return nil
	})
	for _, k := range gone {
		if err == nil {
			err = state.Delete(k)
		}
	}
	return err
}

// seenAt gives when an entry was seen.
func seenAt(f frame) time.Time {
	if f.form == formSign {
		var sign trail.Sign
		_ = json.Unmarshal(f.payload, &sign)
		return sign.At
	}
	fact, _ := trail.ReadFact("", f.payload)
	return fact.ObservedAt
}

// putAside gives a damaged file another name, of which there is one at most; it is deleted where there would be no room for both.
func (s *Spool) putAside(old *os.File) (string, error) {
	info, err := old.Stat()
	if err != nil {
		return "", err
	}
	if info.Size() > s.Size/4 {
		return "", os.Remove(s.path)
	}
	aside := s.path + ".damaged"
	return aside, os.Rename(s.path, aside)
}

// replaceFile makes another file ours.
func (s *Spool) replaceFile(to *file, path string) error {
	if err := os.Rename(path, s.path); err != nil {
		to.abandon()
		return err
	}
	if s.file != nil {
		if err := s.file.close(); err != nil {
			s.file.abandon()
		}
	}
	s.file = to
	return syncDir(s.path)
}

// copyInto copies everything of a file into a new one.
func copyInto(to, from *file) error {
	return from.db.View(func(tx *bbolt.Tx) error {
		return to.db.Update(func(into *bbolt.Tx) error {
			for _, name := range [][]byte{bucketState, bucketMeta} {
				b := into.Bucket(name)
				b.FillPercent = 0.9
				if err := tx.Bucket(name).ForEach(b.Put); err != nil {
					return err
				}
			}
			return nil
		})
	})
}

// scanChunk is how much of a file is looked through at once.
const scanChunk = 1 << 20

// scan finds all whole frames of a file, wherever they lie.
func scan(in *os.File, take func(frame) error) error {
	buf := make([]byte, scanChunk+len(magic)-1)
	for base := int64(0); ; base += scanChunk {
		n, err := in.ReadAt(buf, base)
		if err != nil && !errors.Is(err, io.EOF) {
			return fmt.Errorf("read damaged spool: %w", err)
		}
		for at := 0; ; {
			i := bytes.Index(buf[at:n], []byte(magic))
			if i < 0 || at+i >= scanChunk {
				break
			}
			f, ok := frameAt(in, base+int64(at+i))
			if ok {
				if err := take(f); err != nil {
					return err
				}
			}
			at += i + 1
		}
		if err != nil {
			return nil //nolint:nilerror // the end of the file
		}
	}
}

// frameAt reads the frame at a place; false where none is whole there.
func frameAt(in *os.File, at int64) (frame, bool) {
	header := make([]byte, headerSize)
	if _, err := in.ReadAt(header, at); err != nil {
		return frame{}, false
	}
	size, ok := sizeOf(header)
	if !ok {
		return frame{}, false
	}
	raw := make([]byte, size)
	if n, err := in.ReadAt(raw, at); n < size && err != nil {
		return frame{}, false
	}
	f, err := decodeFrame(raw)
	return f, err == nil
}
