package spool

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/evictrail/evictrail/trail"
	"github.com/evictrail/evictrail/trail/tracker"
)

// onTracedDisk makes the test binary run fillForPowerCut with a seed, in a directory.
const (
	onTracedDisk = "EVICTRAIL_TEST_SPOOL_POWER"
	sectorBytes  = 512
	powerRounds  = 150  // operations of the process whose power is cut
	powerFacts   = 5000 // facts that there are for them
)

// disk is what lies on a disk, and what was written and never synced: a power cut may lose any of it.
type disk struct {
	files map[int]*content
	tree  map[string]node
	names map[int][]map[string]node // of each directory: as synced, then as it was after each change since
}

// content is a file: what of it is synced, and what was done since.
type content struct {
	synced  []byte
	pending []event // wrote and truncated
}

// applyEvent brings the disk up to date with an event.
func (d *disk) applyEvent(e event) {
	switch e.sort {
	case wrote, truncated:
		d.fileContent(e.file).pending = append(d.fileContent(e.file).pending, e)
	case synced:
		c := d.fileContent(e.file)
		c.synced, c.pending = c.currentBytes(), nil
		if names := d.names[e.file]; len(names) > 0 {
			d.names[e.file] = names[len(names)-1:]
		}
	case announced:
	case named:
		d.tree = e.tree
		for path, directory := range e.tree {
			if !directory.directory {
				continue
			}
			entries := map[string]node{}
			for below, entry := range e.tree {
				if filepath.Dir(below) == path && below != "." {
					entries[filepath.Base(below)] = entry
				}
			}
			d.names[directory.file] = append(d.names[directory.file], entries)
		}
	}
}

func (d *disk) fileContent(file int) *content {
	if d.files[file] == nil {
		d.files[file] = &content{}
	}
	return d.files[file]
}

// currentBytes returns the content of a file as its process reads it.
func (c *content) currentBytes() []byte {
	out := bytes.Clone(c.synced)
	for _, e := range c.pending {
		out = e.applyTo(out, func() bool { return true })
	}
	return out
}

// applyTo writes or truncates, but for the sectors that do not reach the disk.
func (e event) applyTo(out []byte, reaches func() bool) []byte {
	if e.sort == truncated {
		return resizeBytes(out, int(e.offset))
	}
	for at := 0; at < len(e.data); {
		n := min(sectorBytes-(int(e.offset)+at)%sectorBytes, len(e.data)-at)
		if to := int(e.offset) + at; reaches() {
			out = resizeBytes(out, max(len(out), to+n))
			copy(out[to:], e.data[at:at+n])
		}
		at += n
	}
	return out
}

func resizeBytes(b []byte, size int) []byte {
	if size <= len(b) {
		return b[:size]
	}
	return append(b, make([]byte, size-len(b))...)
}

// fate says what of that which was never synced survives a power cut.
type fate int

const (
	nothing  fate = iota
	some          // sectors, sizes and names at random
	someTorn      // likewise, and of the last sector something else
	fates
)

func randomFate(random *rand.Rand) fate { return fate(random.IntN(int(fates))) }

// cutPower writes what a power cut leaves into a directory.
func (d *disk) cutPower(t *testing.T, into string, fate fate, random *rand.Rand) {
	t.Helper()
	d.cutDirectory(t, d.tree["."].file, into, func() bool { return fate != nothing && random.IntN(2) == 0 }, fate == someTorn)
}

func (d *disk) cutDirectory(t *testing.T, directory int, into string, survives func() bool, torn bool) {
	t.Helper()
	names := d.names[directory]
	entries := names[0]
	for _, later := range names[1:] { // a directory is changed in order
		if !survives() {
			break
		}
		entries = later
	}
	for name, entry := range entries {
		path := filepath.Join(into, name)
		if entry.directory {
			require.NoError(t, os.Mkdir(path, 0o700))
			d.cutDirectory(t, entry.file, path, survives, torn)
			continue
		}
		c := d.fileContent(entry.file)
		left := bytes.Clone(c.synced)
		for i, e := range c.pending {
			if e.sort == truncated && !survives() {
				continue
			}
			left = e.applyTo(left, survives)
			if torn && i == len(c.pending)-1 && e.sort == wrote && int(e.offset)+sectorBytes <= len(left) {
				copy(left[e.offset+40:], bytes.Repeat([]byte{0x5a}, 40))
			}
		}
		require.NoError(t, os.WriteFile(path, left, 0o600))
	}
}

// movesOf are facts of twenty VMs that go from node to node: the state of objects stays small beside them.
func movesOf(n int) []trail.Fact {
	tr := tracker.New("c1")
	var out []trail.Fact
	for i := 0; len(out) < n; i++ {
		name := fmt.Sprintf("vm-%d", i%20)
		out = append(out, tr.Observe(tracker.VMIObservation{
			Seen: tracker.Seen{At: start.Add(time.Duration(i) * time.Millisecond)},
			Meta: tracker.Meta{UID: "uid-" + name, Namespace: "shop", Name: name, ResourceVersion: strconv.Itoa(1000 + i)},
			Node: fmt.Sprintf("worker-%d", i/20%7),
		})...)
	}
	return out[:n]
}

// fillForPowerCut is the process whose power is cut.
func fillForPowerCut(dir string, seed uint64) error {
	s, err := Open(Options{Dir: dir, Cluster: "c1", Size: 1 << 30, Log: slog.New(slog.DiscardHandler), Clock: func() time.Time { return start.Add(time.Hour) }})
	if err != nil {
		return err
	}
	s.journal.limit = 8 << 10                                               // bytes: segments are begun and deleted all the time
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute) // where a fact is missing Next waits for it
	defer cancel()
	if err := s.AnswerDoubt(time.Time{}, nil); err != nil { // the database has nothing that could be compared
		return err
	}
	fmt.Println("noted", 0)
	s.isFolding = true // not beside us: of two threads that create and delete files the test would not see which came first
	fold := func() { s.foldStates(); s.isFolding = true }
	if err := exerciseSpool(ctx, s, seed, 0, fold); err != nil {
		return err
	}
	return s.Close()
}

// exerciseSpool appends to a spool and drains it, at random, the facts from a number on. It announces before it acts and after: how many facts it wants kept, how many are
// kept, how many the database has, and the epoch that was noted.
func exerciseSpool(ctx context.Context, s *Spool, seed uint64, kept int, after func()) error {
	random, facts := rand.New(rand.NewPCG(seed, 0)), movesOf(powerFacts)
	stored := kept - s.currentMark().countFacts()
	for round := 0; round < powerRounds || kept <= powerFacts/4; round++ { // by chance most appends may be small
		switch op := random.IntN(10); {
		case op < 6:
			wanted := min(kept+1+random.IntN(powerFacts/powerRounds), len(facts))
			fmt.Println("keeping", wanted)
			if err := s.Append(ctx, facts[kept:wanted]); err != nil {
				return err
			}
			kept = wanted
			fmt.Println("kept", kept)
		case op < 7:
			s.AppendSign(start.Add(time.Duration(round)*time.Second), []trail.Watching{{Source: "pods", Since: start}})
			epoch := s.Identity().Epoch + 1
			if err := s.SetIdentity(trail.Identity{UID: "a", Epoch: epoch}); err != nil {
				return err
			}
			fmt.Println("noted", epoch)
		case stored < kept || random.IntN(2) == 0:
			for stored < kept {
				got, _, err := s.Next(ctx)
				if err != nil {
					return err
				}
				stored += len(got)
				fmt.Println("stored", stored)
				s.Confirm()
			}
		}
		after()
	}
	return nil
}

// TestPowerCut takes the power away from a process that writes a spool: after each acknowledgement, when nothing survives but what was synced, and at random
// moments, when some sectors, sizes and names of files survive that were not. Every fact whose keeping was acknowledged, and that the database did not
// have, comes out of what is left.
func TestPowerCut(t *testing.T) {
	t.Parallel()
	cuts := 150 / everyNinthInShort() // at random, beside one after each acknowledgement
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	random := rand.New(rand.NewPCG(seed, 0))
	root := t.TempDir()
	events := traceSelf(t, root, fmt.Sprintf("%s=%d %s", onTracedDisk, seed, filepath.Join(root, "data", "spool")))
	require.NotEmpty(t, events)
	facts := movesOf(powerFacts)
	d := disk{files: map[int]*content{}, names: map[int][]map[string]node{}}
	var wanted, kept, stored, renamed, syncs int
	noted := -1 // the epoch; nothing yet
	for i, e := range events {
		d.applyEvent(e)
		switch e.sort {
		case announced:
			var what string
			var n int
			_, err := fmt.Sscan(e.line, &what, &n)
			require.NoError(t, err, e.line)
			*map[string]*int{"keeping": &wanted, "kept": &kept, "stored": &stored, "noted": &noted}[what] = n
		case named:
			renamed++
		case synced:
			syncs++
		case wrote, truncated:
		}
		fate := nothing
		if !strings.HasPrefix(e.line, "kept") && !strings.HasPrefix(e.line, "noted") {
			if random.IntN(len(events)) >= cuts {
				continue
			}
			fate = randomFate(random)
		}
		note := fmt.Sprintf("after event %d of %d, fate %d, seed %d: %d facts kept, %d stored", i, len(events), fate, seed, kept, stored)
		left := t.TempDir()
		d.cutPower(t, left, fate, random)
		r := openRig(t, filepath.Join(left, "data", "spool"), 1<<30)
		if noted >= 0 {
			require.GreaterOrEqual(t, int(r.Identity().Epoch), noted, note)
		}
		_, _ = r.loadPast(t, false)
		got, _ := r.drainAll(t)
		_, got = splitGaps(got)
		requirePart(t, facts[:wanted], got, note)
		if fate == nothing && noted >= 0 {
			require.Empty(t, r.lost, "%s: what was synced is whole: %s", note, r.log)
			require.Nil(t, r.Doubt(), "%s: the states are: %s", note, r.log)
		}
		there := map[trail.FactID]bool{}
		for _, f := range got {
			there[f.ID] = true
		}
		for n, f := range facts[stored:max(stored, kept)] {
			require.True(t, there[f.ID], "%s: fact %d is lost, %d came out: %s", note, stored+n, len(got), r.log)
		}
		require.NoError(t, r.Close())
	}
	for path, file := range d.tree {
		if !file.directory {
			raw, err := os.ReadFile(filepath.Join(root, path))
			require.NoError(t, err)
			require.True(t, bytes.Equal(raw, d.fileContent(file.file).currentBytes()), "%s was written in a way that the test does not see", path)
		}
	}
	require.Greater(t, kept, powerFacts/4)
	require.Greater(t, renamed, 20, "segments were begun and deleted, and states folded")
	t.Logf("%d events, %d syncs, %d changes of names, %d facts kept, %d stored", len(events), syncs, renamed, kept, stored)
}
