package spool

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net/url"
	"path/filepath"
	"sync"
	"syscall"
	"time"

	"github.com/evictrail/evictrail/trail"
)

// DefaultSize bounds a spool where nobody says otherwise: a day at 50 facts a second.
const DefaultSize = 4 << 30

// The bounds of one batch, and how long a few facts wait for more to be drained with.
const (
	batchFacts = 5000
	batchBytes = 8 << 20
	gather     = 10 * time.Millisecond
)

// A few facts may wait for more to be told beside what the watches see: as many as were stored within prompt, but for the bounds.
const (
	prompt    = 3 * time.Second
	leastRoom = 500
	mostRoom  = batchFacts
)

// retryDisk is how long a disk that could not be written is left alone.
const retryDisk = 5 * time.Second

// Options say where a spool is and who is told of it. All fields are required but for the last two.
type Options struct {
	Dir     string // is made where it is missing
	Cluster string // names the file: clusters may share a directory
	Size    int64  // bytes of entries that may wait; the file may be a third larger, and holds the state of objects beside
	Log     *slog.Logger
	Clock   func() time.Time // UTC

	Lost   func(kind trail.Kind, cause Cause, n int) // is told of each loss, under the spool's lock
	Synced func(took time.Duration)                  // is told of each commit to disk, likewise
}

// mark is where the queue begins and ends.
type mark struct {
	Head  uint64 `json:"head"` // the number of the first entry that waits
	Tail  uint64 `json:"tail"` // the number of the next entry
	Facts int    `json:"facts"`
	Bytes int64  `json:"bytes"`
}

// Spool is safe for concurrent use; Take and Sign by one goroutine, Next and Stored by another.
type Spool struct {
	Options
	path string

	mu          sync.Mutex
	file        *file // nil where there is none that can be read
	problem     error // why the file cannot be written; nil while it can
	retryAt     time.Time
	mark        mark
	onDisk      mark // as it was last committed
	known       known
	letters     *deadLetters
	resumed     bool                 // the state is what the database has with what waits for it
	breaksTaken bool                 // a collector records the breaks that are known
	full        bool                 // it was said that something is left out
	refused     map[[32]byte]bool    // requests that were refused, while something waits
	whole       map[string]time.Time // since when nothing of a source is missing
	out         *batch               // what Next gave and Stored has not confirmed
	last        *trail.Sign          // the last entry of the queue, where that is a sign
	since       time.Time            // when something began to wait
	taken       uint64               // facts that were stored
	takenAt     time.Time            // when some were last
	givenAt     time.Time            // when Next gave what is not stored yet
	room        int                  // how many facts may wait while more are told
	direct      *direct              // facts that wait in memory for want of a disk
	sign        *trail.Sign          // a sign of life that does
	changed     chan struct{}        // closed and replaced when there is something new
	large       int64                // bytes: a file of so many is made anew when its queue is empty
	looked      int64                // bytes of the file when it was last looked at whether it should shrink
	fault       func() error         // of tests: fails a commit as a disk does
}

// batch is what Next gave.
type batch struct {
	to     uint64 // the number of the entry behind
	facts  int
	bytes  int64
	direct *direct
	sign   *trail.Sign // one that was in memory
}

// direct are facts that go to the database without having been on disk.
type direct struct {
	facts  []trail.Fact
	stored chan struct{}
}

// PathOf gives the file of a cluster's spool.
func PathOf(dir, cluster string) string {
	return filepath.Join(dir, url.PathEscape(cmp.Or(cluster, "unnamed"))+".spool")
}

// Open opens the spool of a cluster, or begins one. A disk that cannot be used is no error: the spool goes on without, says so, and tries
// again. Errors: ErrHeld.
func Open(o Options) (*Spool, error) {
	if o.Lost == nil {
		o.Lost = func(trail.Kind, Cause, int) {}
	}
	if o.Synced == nil {
		o.Synced = func(time.Duration) {}
	}
	s := &Spool{
		Options: o, path: PathOf(o.Dir, o.Cluster), refused: map[[32]byte]bool{}, whole: map[string]time.Time{}, changed: make(chan struct{}),
		large: largeFile, room: mostRoom, letters: &deadLetters{path: LettersPath(o.Dir, o.Cluster), most: min(mostLetters, o.Size/4)},
	}
	s.begin()
	err := s.open()
	if errors.Is(err, ErrHeld) {
		return nil, err
	}
	if err != nil {
		s.fails(err)
	} else if s.mark.Facts > 0 {
		s.Log.Info("facts wait in the spool", "path", s.path, "waiting", s.mark.Facts)
	}
	return s, nil
}

// begin makes the spool one that knows nothing, which is a doubt: the database may know more.
func (s *Spool) begin() {
	s.mark = mark{Head: 1, Tail: 1}
	s.onDisk = s.mark
	s.known = known{Cluster: s.Cluster, Doubt: &Doubt{}}
}

// Close gives back the file. What waits stays in it.
func (s *Spool) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.file == nil {
		return nil
	}
	f := s.file
	s.file, s.problem = nil, fs.ErrClosed
	s.retryAt = time.Now().Add(1 << 40)
	return f.close()
}

// Take keeps facts and returns when they are on disk. Without a disk it returns when they are stored. Its only error is that of ctx.
func (s *Spool) Take(ctx context.Context, facts []trail.Fact) error {
	texts, refused, err := write(facts)
	if len(refused) > 0 {
		s.SetAside(refused, err)
		facts = make([]trail.Fact, len(texts))
		for i, f := range texts {
			facts[i] = f.Fact
		}
	}
	for {
		s.mu.Lock()
		if s.writable() && s.attempt(func() error { return s.keep(texts) }) == nil {
			s.wake()
			s.mu.Unlock()
			return nil
		}
		d := &direct{facts: append(facts[:len(facts):len(facts)], s.tell()...), stored: make(chan struct{})}
		s.direct = d
		s.wake()
		s.mu.Unlock()
		retry := time.NewTimer(retryDisk)
		select {
		case <-d.stored:
			retry.Stop()
			s.mu.Lock()
			if len(d.facts) > len(facts) {
				s.told(s.known.Losses)
				s.known.Losses = nil
			}
			s.mu.Unlock()
			return nil
		case <-retry.C:
		case <-ctx.Done():
			retry.Stop()
		}
		s.mu.Lock()
		s.direct = nil // what was given out of it is stored all the same: a fact that is stored twice is stored once
		s.mu.Unlock()
		if err := ctx.Err(); err != nil {
			return fmt.Errorf("spool %d facts: %w", len(facts), err)
		}
	}
}

// Sign keeps a sign of life behind what was taken before. It never waits for the database.
func (s *Spool) Sign(at time.Time, watching []trail.Watching) {
	s.mu.Lock()
	defer s.mu.Unlock()
	sign := s.honest(trail.Sign{At: at, Watching: watching})
	complete := false
	for _, w := range watching {
		complete = complete || w.Source == trail.SourceSelf
	}
	if complete && s.breaksTaken {
		s.known.Breaks = nil
	}
	if complete && s.resumed { // what the lists said beside what the database has is in the spool
		s.known.Doubt = nil
	}
	s.known.Alive = at
	if s.known.Seen == nil {
		s.known.Seen = map[string]time.Time{}
	}
	for _, w := range sign.Watching {
		s.known.Seen[w.Source] = at
	}
	if !s.writable() || s.attempt(func() error { return s.keepSign(sign) }) != nil {
		s.sign = &sign
	}
	s.wake()
}

// Next waits for what is to be stored next: facts of the cluster in their order, at most batchFacts, or a sign of life. It gives the same again
// until Stored was called. Its only error is that of ctx.
func (s *Spool) Next(ctx context.Context) ([]trail.Fact, *trail.Sign, error) {
	for {
		s.mu.Lock()
		facts, sign, wait := s.next()
		changed := s.changed
		s.givenAt = time.Now()
		s.mu.Unlock()
		if len(facts) > 0 || sign != nil {
			return facts, sign, nil
		}
		var timer <-chan time.Time
		if wait > 0 {
			t := time.NewTimer(wait)
			defer t.Stop()
			timer = t.C
		}
		select {
		case <-changed:
		case <-timer:
		case <-ctx.Done():
			return nil, nil, ctx.Err()
		}
	}
}

// Stored says that what Next gave is stored.
func (s *Spool) Stored() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.out != nil && s.out.facts > 0 {
		s.makeRoom(s.out.facts, time.Since(s.givenAt))
		s.taken, s.takenAt = s.taken+uint64(s.out.facts), time.Now()
	}
	s.confirm()
	s.wake()
}

// makeRoom lets as many facts wait as are stored promptly, where so many were stored within a time.
func (s *Spool) makeRoom(facts int, took time.Duration) {
	switch {
	case took > prompt:
		s.room = max(leastRoom, min(s.room, int(float64(facts)*prompt.Seconds()/took.Seconds())))
	case facts >= s.room/2:
		s.room = min(2*s.room, mostRoom)
	}
}

// Away says that the database takes nothing, until Stored is called.
func (s *Spool) Away() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.takenAt = time.Time{}
}

// standsStill is how long nothing was stored when a database that says nothing counts as away: longer than one that is behind takes for a batch,
// shorter than an API server comes again with what was not taken.
const standsStill = time.Minute

// Backlog tells whether more facts wait than a database that takes some stores promptly, and how many it has taken since the start.
func (s *Spool) Backlog() (long bool, taken uint64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.mark.Facts > s.room && time.Since(s.takenAt) <= standsStill, s.taken
}

// Behind tells whether more waits behind what Next gave.
func (s *Spool) Behind() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.out != nil && (s.out.to < s.mark.Tail || s.direct != nil)
}

// Empty waits until nothing waits. Its only error is that of ctx.
func (s *Spool) Empty(ctx context.Context) error {
	for {
		s.mu.Lock()
		empty := s.mark.Head == s.mark.Tail && s.direct == nil && s.sign == nil
		changed := s.changed
		s.mu.Unlock()
		if empty {
			return nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// Condition is how it stands with a spool.
type Condition struct {
	Path     string
	Facts    int       // that wait
	Bytes    int64     // of all that waits
	Capacity int64     // bytes
	Oldest   time.Time // when the first that waits was seen; zero where none does
	Full     bool      // something is left out
	Problem  error     // why facts are not kept on disk; nil while they are

	DeadLetters int // facts that were refused and lie in the file of dead letters
}

// Condition tells how it stands.
func (s *Spool) Condition() Condition {
	s.mu.Lock()
	defer s.mu.Unlock()
	c := Condition{Path: s.path, Facts: s.mark.Facts, Bytes: s.mark.Bytes, Capacity: s.Size, Full: s.full, Problem: s.problem, DeadLetters: s.letters.count()}
	if s.mark.Facts > 0 {
		c.Oldest = s.oldest()
	}
	if s.direct != nil {
		c.Facts += len(s.direct.facts)
		if c.Oldest.IsZero() && len(s.direct.facts) > 0 {
			c.Oldest = s.direct.facts[0].ObservedAt
		}
	}
	return c
}

// wake wakes who waits for something new; with the lock held.
func (s *Spool) wake() {
	close(s.changed)
	s.changed = make(chan struct{})
}

// writable tells whether the disk can be written, trying again where it could not for a while.
func (s *Spool) writable() bool {
	if s.problem == nil {
		return true
	}
	if time.Now().Before(s.retryAt) {
		return false
	}
	err := s.reopen()
	if err != nil {
		s.fails(err)
		return false
	}
	s.Log.Info("spool works again", "path", s.path, "waiting", s.mark.Facts)
	s.problem = nil
	return true
}

// attempt does what writes the disk, once more where the file was found damaged.
func (s *Spool) attempt(do func() error) error {
	err := do()
	if errors.Is(err, errDamaged) {
		if err = s.rescue(err); err == nil {
			err = do()
		}
	}
	if err != nil {
		s.fails(err)
	}
	return err
}

// fails notes that the disk cannot be used, and says so once.
func (s *Spool) fails(err error) {
	s.retryAt = time.Now().Add(retryDisk)
	if s.problem == nil || s.problem.Error() != err.Error() {
		s.Log.Error("spool cannot be written: facts go straight to the database, and wait in memory while that is away", "path", s.path, "err", advise(err))
	}
	s.problem = err
}

// advise says what to do about an error of the disk.
func advise(err error) error {
	switch {
	case errors.Is(err, syscall.ENOSPC):
		return fmt.Errorf("%w: free space, give the spool a larger volume, or bound it with --spool-size", err)
	case errors.Is(err, syscall.EROFS), errors.Is(err, fs.ErrPermission):
		return fmt.Errorf("%w: name a directory that can be written with --spool-dir", err)
	case errors.Is(err, syscall.EIO):
		return fmt.Errorf("%w: the disk is failing", err)
	}
	return err
}

// open opens the file and reads where its queue begins and ends. A damaged one is rescued.
func (s *Spool) open() error {
	if err := makeDir(filepath.Dir(s.path)); err != nil {
		return err
	}
	f, err := openFile(s.path, false)
	if err == nil {
		if err = syncDir(s.path); err != nil { // a file that was just created has no name on the disk yet
			_ = f.close()
		}
	}
	switch {
	case errors.Is(err, errDamaged):
		return s.rescue(err)
	case errors.Is(err, syscall.EROFS), errors.Is(err, fs.ErrPermission): // what waits in it can be drained all the same
		if !exists(s.path) {
			return err
		}
		reading, readErr := openFile(s.path, true)
		if readErr != nil {
			return err
		}
		s.file = reading
		if loadErr := s.load(); loadErr != nil {
			reading.abandon()
			s.file = nil
		}
		return err
	case err != nil:
		return err
	}
	s.file = f
	if err := s.load(); err != nil {
		if errors.Is(err, errDamaged) {
			return s.rescue(err)
		}
		return err
	}
	return nil
}

// reopen tries the disk again.
func (s *Spool) reopen() error {
	head := s.mark.Head
	memory := s.known.clone()
	fresh := s.file == nil
	if s.file != nil {
		if err := s.file.close(); err != nil {
			s.file.abandon()
		}
		s.file = nil
	}
	if err := s.open(); err != nil {
		return err
	}
	if !fresh {
		s.known = memory
	}
	if head > s.mark.Head { // stored meanwhile, and could not be deleted
		s.skip(head)
	}
	return nil
}
