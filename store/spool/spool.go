package spool

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"math"
	"net/url"
	"os"
	"path/filepath"
	"strings"
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

// A few facts may wait for more to be accepted beside what the watches see: as many as were stored within prompt, but for the bounds.
const (
	prompt    = 3 * time.Second
	leastRoom = 500
	mostRoom  = batchFacts
)

// retryDisk is how long a disk that could not be written is left alone.
const retryDisk = 5 * time.Second

// Options say where a spool is and what is called about it. All fields are required but for the last two.
type Options struct {
	Dir     string // is made where it is missing
	Cluster string // names the file: clusters may share a directory
	Size    int64  // bytes that may wait; an eighth more may lie on disk, and the states of objects beside it
	Log     *slog.Logger
	Clock   func() time.Time // UTC

	Lost   func(kind trail.Kind, cause Cause, n int) // is called for each loss, under the spool's lock
	Synced func(took time.Duration)                  // is called for each commit to disk, likewise
}

// segmentMost bounds a segment, in bytes. It is a sixteenth of the bound where that is less: so much may lie on disk beside what waits.
const segmentMost = 16 << 20

// Spool is safe for concurrent use; Append and AppendSign by one goroutine, Next and Confirm by another.
type Spool struct {
	Options
	path string // a directory

	stateMu   sync.Mutex     // locked before mu by anyone who reads or replaces the base
	base      base           // under both
	folding   sync.WaitGroup // of fold
	isFolding bool           // one runs

	mu            sync.Mutex
	journal       *journal // nil where there is none that can be read
	problem       error    // why it cannot be written; nil while it can
	retryAt       time.Time
	known         known
	knownText     []byte // of what is known, what is on disk
	letters       *deadLetters
	resumed       bool                 // the states are those that the database has with what waits for it
	breaksClaimed bool                 // a collector records the breaks that are known
	full          bool                 // it was said that something is left out
	refused       map[[32]byte]bool    // requests that were refused, while something waits
	whole         map[string]time.Time // since when nothing of a source is missing
	out           *batch               // what Next returned and Confirm has not confirmed
	reported      uint64               // what is lost of the facts before this number is noted
	since         time.Time            // when something began to wait
	stored        uint64               // facts that were stored
	storedAt      time.Time            // when some were last
	givenAt       time.Time            // when Next returned what is not stored yet
	room          int                  // how many facts may wait while more are accepted
	direct        *direct              // facts that wait in memory for want of a disk
	sign          *trail.Sign          // a sign of life that does
	changed       chan struct{}        // closed and replaced when there is something new
}

// PathOf returns the directory of a cluster's spool.
func PathOf(dir, cluster string) string {
	return filepath.Join(dir, url.PathEscape(cmp.Or(cluster, "unnamed"))+pathExt)
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
		known: known{Cluster: o.Cluster, Doubt: &Doubt{}}, // of one that knows nothing: the database may know more
		room:  mostRoom, letters: &deadLetters{path: LettersPath(o.Dir, o.Cluster), most: min(mostLetters, o.Size/4)},
	}
	err := s.openFiles()
	if errors.Is(err, ErrHeld) {
		return nil, err
	}
	if err != nil {
		s.setProblem(err)
	} else if n := s.currentMark().countFacts(); n > 0 {
		s.Log.Info("facts wait in the spool", "path", s.path, "waiting", n)
	}
	return s, nil
}

// openFiles opens the journal and reads what is known. What it cannot read it counts, and notes a doubt.
func (s *Spool) openFiles() error {
	j, err := openJournal(s.path, min(segmentMost, s.Size/16))
	if j == nil {
		return err
	}
	s.journal, s.since = j, time.Now()
	begun := j.intact || len(j.list) > 0
	knownErr, baseErr := s.loadKnown(), s.loadBase()
	if errors.Is(knownErr, errKnown) || begun && errors.Is(knownErr, fs.ErrNotExist) {
		s.reportCorrupted(1, nil) // such as losses that are not recorded as gaps yet
		knownErr = nil
	}
	if !j.intact && begun {
		s.Log.Error("spool does not know what of it is stored: everything that it holds is stored again", "path", s.path)
		s.noteDoubt()
	}
	if errors.Is(baseErr, errBase) {
		s.doubtStates(baseErr)
		baseErr = nil
	}
	if errors.Is(knownErr, fs.ErrNotExist) {
		knownErr = nil
	}
	former := strings.TrimSuffix(s.path, pathExt) + formerExt
	upgraded := !begun && pathExists(former)
	if upgraded {
		s.reportCorrupted(1, nil)
	}
	if err = cmp.Or(err, knownErr, baseErr); err == nil {
		err = s.commitKnown()
	}
	if upgraded && err == nil {
		err = os.Rename(former, former+".old")
		s.Log.Error("spool of an earlier version is set aside: what waited in it is recorded as a gap, and the cluster is compared with the database", "path", former+".old")
	}
	return err
}

// What the path of a spool ends in, and that of the file which versions before had in its place.
const (
	pathExt   = ".queue"
	formerExt = ".spool"
)

// Close returns the files. What waits stays in them.
func (s *Spool) Close() error {
	s.folding.Wait()
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.journal == nil {
		return nil
	}
	j := s.journal
	s.journal, s.problem = nil, fs.ErrClosed
	s.retryAt = time.Now().Add(1 << 40)
	return j.close()
}

// Append keeps facts and returns when they are on disk. Without a disk it returns when they are stored. Its only error is that of ctx.
func (s *Spool) Append(ctx context.Context, facts []trail.Fact) error {
	texts, refused, err := encodeFacts(facts)
	if len(refused) > 0 {
		s.SetAside(refused, err)
		facts = make([]trail.Fact, len(texts))
		for i, f := range texts {
			facts[i] = f.Fact
		}
	}
	for {
		s.mu.Lock()
		if s.enqueueFacts(texts) == nil {
			s.wakeWaiters()
			s.mu.Unlock()
			return nil
		}
		k := s.known.clone()
		d := &direct{facts: facts[:len(facts):len(facts)], stored: make(chan struct{})}
		for _, gap := range s.lossGaps(&k) {
			d.facts = append(d.facts, gap.Fact)
		}
		s.direct = d
		s.wakeWaiters()
		s.mu.Unlock()
		retry := time.NewTimer(retryDisk)
		select {
		case <-d.stored:
			retry.Stop()
			s.mu.Lock()
			if len(d.facts) > len(facts) {
				s.endLosses(s.known.Losses)
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

// AppendSign keeps a sign of life behind what was appended before. It never waits for the database.
func (s *Spool) AppendSign(at time.Time, watching []trail.Watching) {
	s.mu.Lock()
	defer s.mu.Unlock()
	sign := s.withoutLosses(trail.Sign{At: at, Watching: watching})
	complete := false
	for _, w := range watching {
		complete = complete || w.Source == trail.SourceSelf
	}
	if complete && s.breaksClaimed {
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
	if s.sign = nil; s.keepSign(sign) != nil {
		s.sign = &sign
	}
	s.wakeWaiters()
}

// Next waits for what is to be stored next: facts of the cluster in their order, at most batchFacts, or a sign of life. It returns the same again until Confirm
// was called. Its only error is that of ctx.
func (s *Spool) Next(ctx context.Context) ([]trail.Fact, *trail.Sign, error) {
	for {
		s.mu.Lock()
		facts, sign, wait := s.nextBatch()
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

// Confirm says that what Next returned is stored.
func (s *Spool) Confirm() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.out != nil && s.out.facts > 0 {
		s.makeRoom(s.out.facts, time.Since(s.givenAt))
		s.stored, s.storedAt = s.stored+uint64(s.out.facts), time.Now()
	}
	s.confirmBatch()
	s.wakeWaiters()
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

// MarkAway says that the database accepts nothing, until Confirm is called.
func (s *Spool) MarkAway() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.storedAt = time.Time{}
}

// standsStill is how long nothing was stored when a database that says nothing counts as away: longer than one that is behind takes for a batch,
// shorter than an API server comes again with what was not taken.
const standsStill = time.Minute

// Backlog reports whether more facts wait than a database that accepts some stores promptly, and how many it has stored since the start.
func (s *Spool) Backlog() (long bool, stored uint64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.currentMark().countFacts() > s.room && time.Since(s.storedAt) <= standsStill, s.stored
}

// HasMore reports whether more waits behind what Next returned.
func (s *Spool) HasMore() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.out != nil && (s.bytesFrom(s.out.at) > 0 || s.direct != nil)
}

// WaitEmpty waits until nothing waits. Its only error is that of ctx.
func (s *Spool) WaitEmpty(ctx context.Context) error {
	for {
		s.mu.Lock()
		empty := !s.hasWaiting() && s.direct == nil && s.sign == nil
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

// Condition returns how it stands.
func (s *Spool) Condition() Condition {
	s.mu.Lock()
	defer s.mu.Unlock()
	m := s.currentMark()
	c := Condition{Path: s.path, Facts: m.countFacts(), Bytes: s.bytesFrom(m.At), Capacity: s.Size, Full: s.full, Problem: s.problem, DeadLetters: s.letters.countLetters()}
	if c.Facts > 0 {
		c.Oldest = s.findOldestTime()
	}
	if s.direct != nil {
		c.Facts += len(s.direct.facts)
		if c.Oldest.IsZero() && len(s.direct.facts) > 0 {
			c.Oldest = s.direct.facts[0].ObservedAt
		}
	}
	return c
}

// Inspect returns how it stands with a spool that no process has, without changing it; of one that does not exist, whether its directory can be written. Errors:
// ErrHeld, beside which the path is known, and those of the system.
func Inspect(dir, cluster string) (Condition, error) {
	s := &Spool{path: PathOf(dir, cluster), letters: &deadLetters{path: LettersPath(dir, cluster)}}
	s.Cluster = cluster
	if pathExists(s.path) {
		j, err := readJournal(s.path, false)
		if err != nil {
			return s.Condition(), err
		}
		defer func() { _ = j.close() }()
		s.journal = j
	}
	return s.Condition(), checkWritable(dir)
}

// wakeWaiters wakes who waits for something new; with the lock held.
func (s *Spool) wakeWaiters() {
	close(s.changed)
	s.changed = make(chan struct{})
}

// ensureWritable reports why the disk cannot be written. One that could not is tried again after a while. The lock must be held.
func (s *Spool) ensureWritable() error {
	switch {
	case s.problem == nil:
		return nil
	case time.Now().Before(s.retryAt):
		return s.problem
	case s.journal == nil:
		if err := s.openFiles(); err != nil {
			s.setProblem(err)
			return err
		}
	case errors.Is(s.problem, syscall.ENOSPC):
		s.freeRoom()
	}
	return nil
}

// freeRoom deletes what is stored though states of objects are known from there alone: they are to be compared with the database.
func (s *Spool) freeRoom() {
	before := len(s.journal.list)
	if err := s.journal.deleteDrained(math.MaxUint64); err == nil && len(s.journal.list) < before {
		s.noteDoubt()
	}
}

// updateProblem notes that the disk can be written, or why it cannot after all.
func (s *Spool) updateProblem(err error) {
	switch {
	case err != nil:
		s.setProblem(err)
	case s.problem != nil:
		s.problem = nil
		s.Log.Info("spool works again", "path", s.path, "waiting", s.currentMark().countFacts())
	}
}

// setProblem notes that the disk cannot be used, and says so once.
func (s *Spool) setProblem(err error) {
	s.retryAt = time.Now().Add(retryDisk)
	if s.problem == nil || s.problem.Error() != err.Error() {
		s.Log.Error("spool cannot be written: facts go straight to the database, and wait in memory while that is away", "path", s.path, "err", addDiskAdvice(err))
	}
	s.problem = err
}

// addDiskAdvice says what to do about an error of the disk.
func addDiskAdvice(err error) error {
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
