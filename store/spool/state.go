package spool

import (
	"bytes"
	"hash/maphash"
	"strings"

	"go.etcd.io/bbolt"

	"github.com/evictrail/evictrail/trail"
)

// stateKey is the key of an aspect of an object; without the aspect, what the keys of the object begin with.
func stateKey(o trail.Object, what string) []byte {
	return []byte(strings.Join([]string{string(o.Kind), o.UID, what}, "\x00"))
}

// remember brings the state of a fact's object up to date. An object that is gone is forgotten.
func (c *change) remember(seq uint64, f written) error {
	switch {
	case !f.Object.Kind.Remembered():
		return nil
	case f.What == trail.WhatGone:
		prefix := stateKey(f.Object, "")
		var gone [][]byte
		at := c.state.Cursor()
		for k, _ := at.Seek(prefix); bytes.HasPrefix(k, prefix); k, _ = at.Next() {
			gone = append(gone, bytes.Clone(k))
		}
		for _, k := range gone {
			if err := c.state.Delete(k); err != nil {
				return err
			}
		}
		return nil
	}
	text, err := trail.WriteFact(f.State())
	if err != nil {
		return err
	}
	return c.state.Put(stateKey(f.Object, f.What), frame{formState, seq, text}.encode())
}

// readState reads the state of all objects. What cannot be read comes with an error.
func (s *Spool) readState(take func(seq uint64, f trail.Fact, err error)) error {
	if s.file == nil {
		return nil
	}
	return s.file.view(func(tx *bbolt.Tx) error {
		return tx.Bucket(bucketState).ForEach(func(_, raw []byte) error {
			f, err := decodeFrame(raw)
			if err != nil {
				take(0, trail.Fact{}, err)
				return nil
			}
			fact, err := trail.ReadFact(s.Cluster, f.payload)
			take(f.seq, fact, err)
			return nil
		})
	})
}

// stateChunk is how many states are written in one transaction.
const stateChunk = 5000

// replaceState makes the state in the file the given one, but for what still waits, which is newer. Little of it differs as a rule, so
// only what does is written.
func (s *Spool) replaceState(state func(yield func(trail.Fact) bool)) error {
	there, seed := map[uint64]struct{}{}, maphash.MakeSeed() // hashes: there may be millions
	var chunk []trail.Fact
	flush := func() error {
		defer func() { chunk = chunk[:0] }()
		return s.commit(func(c *change) error {
			for _, f := range chunk {
				key := stateKey(f.Object, f.What)
				raw := c.state.Get(key)
				if old, err := decodeFrame(raw); err == nil && old.seq >= s.mark.Head && old.seq > 0 {
					continue
				}
				text, err := trail.WriteFact(f)
				if err != nil {
					return err
				}
				if now := (frame{formState, 0, text}).encode(); !bytes.Equal(now, raw) {
					if err := c.state.Put(key, now); err != nil {
						return err
					}
				}
			}
			return nil
		})
	}
	var err error
	for f := range state {
		there[maphash.Bytes(seed, stateKey(f.Object, f.What))] = struct{}{}
		if chunk = append(chunk, f); len(chunk) == stateChunk {
			if err = flush(); err != nil {
				return err
			}
		}
	}
	if err := flush(); err != nil {
		return err
	}
	return s.forget(func(key []byte) bool {
		_, is := there[maphash.Bytes(seed, key)]
		return !is
	})
}

// forget deletes the states of the file that are outdated and do not wait.
func (s *Spool) forget(outdated func(key []byte) bool) error {
	return s.commit(func(c *change) error {
		var gone [][]byte
		err := c.state.ForEach(func(k, raw []byte) error {
			f, err := decodeFrame(raw)
			if waits := err == nil && f.seq >= s.mark.Head && f.seq > 0; !waits && outdated(k) {
				gone = append(gone, bytes.Clone(k))
			}
			return nil
		})
		for _, k := range gone {
			if err == nil {
				err = c.state.Delete(k)
			}
		}
		return err
	})
}

// stateBytes is about how much the file holds beside its queue.
func (s *Spool) stateBytes() (n int64) {
	_ = s.file.view(func(tx *bbolt.Tx) error {
		stats := tx.Bucket(bucketState).Stats()
		n = int64(stats.LeafAlloc + stats.BranchAlloc)
		return nil
	})
	return n
}
