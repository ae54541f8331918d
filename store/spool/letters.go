package spool

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/evictrail/evictrail/trail"
)

// DeadLetter is a fact that was refused, as it lies in the file of dead letters: one JSON object a line.
type DeadLetter struct {
	At     time.Time       `json:"at"`     // when it was refused, UTC
	Reason string          `json:"reason"` // why, as an error says it
	ID     trail.FactID    `json:"id"`
	Kind   trail.Kind      `json:"kind"`
	About  string          `json:"about,omitempty"` // the subject of the fact
	Fact   json.RawMessage `json:"fact,omitempty"`  // as trail.WriteFact writes it
	Dump   string          `json:"dump,omitempty"`  // what there is of a fact that has no text: it cannot be replayed
}

// The bounds of dead letters, in bytes.
const (
	mostLetters = 64 << 20 // of the file; a quarter of the spool where that is less
	mostReason  = 1 << 10
	mostDump    = 16 << 10
)

// LettersPath returns the file of the dead letters of a cluster, which lies beside its spool.
func LettersPath(dir, cluster string) string {
	return filepath.Join(dir, url.PathEscape(cmp.Or(cluster, "unnamed"))+lettersExt)
}

const lettersExt = ".refused"

// LettersOf names the clusters of which a directory has a file of dead letters, sorted.
func LettersOf(dir string) ([]string, error) {
	paths, err := filepath.Glob(filepath.Join(dir, "*"+lettersExt))
	if err != nil {
		return nil, err
	}
	var clusters []string
	for _, path := range paths {
		cluster, err := url.PathUnescape(strings.TrimSuffix(filepath.Base(path), lettersExt))
		if err != nil {
			return nil, fmt.Errorf("file of dead letters %s: %w", path, err)
		}
		clusters = append(clusters, cluster)
	}
	return clusters, nil
}

// deadLetters is the file of dead letters. Any process may append to it and take from it: each locks it while it does. It is not safe for concurrent
// use within a process.
type deadLetters struct {
	path string
	most int64 // bytes

	seen os.FileInfo // the file as it was when ids were read; nil: it was not
	ids  map[trail.FactID]bool
}

// errNoRoom says that the file of dead letters has reached its bound.
var errNoRoom = errors.New("the file of dead letters is full")

// appendLetters adds letters, each fact once, and returns how many of them are in the file once it is synced. Errors: errNoRoom, those of the system.
func (d *deadLetters) appendLetters(letters []DeadLetter) (kept int, err error) {
	f, err := d.openLocked(os.O_RDWR | os.O_CREATE)
	if err != nil {
		return 0, err
	}
	defer func() { _ = f.Close() }()
	size, err := d.refreshIDs(f)
	if err != nil {
		return 0, err
	}
	var out bytes.Buffer
	var added []trail.FactID
	for _, l := range letters {
		if d.ids[l.ID] || slices.Contains(added, l.ID) {
			kept++
			continue
		}
		line, marshalErr := json.Marshal(l)
		if marshalErr != nil {
			err = cmp.Or(err, marshalErr)
			continue
		}
		if size+int64(out.Len()+len(line)) >= d.most {
			err = errNoRoom
			continue
		}
		out.Write(append(line, '\n'))
		added = append(added, l.ID)
	}
	if out.Len() == 0 {
		return kept, err
	}
	if _, writeErr := f.WriteAt(out.Bytes(), size); writeErr != nil {
		return kept, errors.Join(writeErr, f.Truncate(size))
	}
	if syncErr := errors.Join(f.Sync(), syncDir(d.path)); syncErr != nil {
		return kept, syncErr
	}
	for _, id := range added {
		d.ids[id] = true
	}
	d.seen, _ = f.Stat()
	return kept + len(added), err
}

// countLetters returns how many letters the file holds, as far as it can be read.
func (d *deadLetters) countLetters() int {
	info, err := os.Stat(d.path)
	if err != nil {
		return 0
	}
	if !d.isKnown(info) {
		f, err := d.openLocked(os.O_RDONLY)
		if err != nil {
			return 0
		}
		defer func() { _ = f.Close() }()
		if _, err := d.refreshIDs(f); err != nil {
			return 0
		}
	}
	return len(d.ids)
}

func (d *deadLetters) isKnown(info os.FileInfo) bool {
	return d.seen != nil && os.SameFile(d.seen, info) && d.seen.Size() == info.Size() && d.seen.ModTime().Equal(info.ModTime())
}

// refreshIDs reads which facts the locked file holds, unless that is known, and returns where the next line is to begin: behind the last whole one.
func (d *deadLetters) refreshIDs(f *os.File) (size int64, err error) {
	info, err := f.Stat()
	if err != nil {
		return 0, err
	}
	if d.isKnown(info) {
		return info.Size(), nil
	}
	letters, _, size, err := readLetters(f)
	if err != nil {
		return 0, err
	}
	d.ids = make(map[trail.FactID]bool, len(letters))
	for _, l := range letters {
		d.ids[l.ID] = true
	}
	if d.seen = info; size < info.Size() { // its last line was not finished
		d.seen = nil
	}
	return size, nil
}

// openLocked opens the file and waits until nobody else has it locked. The lock goes with the file when it is closed.
func (d *deadLetters) openLocked(flag int) (*os.File, error) {
	if flag&os.O_CREATE != 0 {
		if err := os.MkdirAll(filepath.Dir(d.path), 0o700); err != nil {
			return nil, err
		}
	}
	for {
		f, err := os.OpenFile(d.path, flag, 0o600)
		if err != nil {
			return nil, err
		}
		if err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX); err != nil {
			return nil, errors.Join(err, f.Close())
		}
		ours, err := f.Stat()
		if there, statErr := os.Stat(d.path); err == nil && statErr == nil && os.SameFile(ours, there) {
			return f, nil
		}
		if closeErr := f.Close(); closeErr != nil { // it was replaced while we waited
			return nil, closeErr
		}
	}
}

// readLetters reads the whole lines of a file: the letters, the lines that are none, and where the last line ends.
func readLetters(in io.ReadSeeker) (letters []DeadLetter, strange [][]byte, end int64, err error) {
	if _, err := in.Seek(0, io.SeekStart); err != nil {
		return nil, nil, 0, err
	}
	text, err := io.ReadAll(in)
	if err != nil {
		return nil, nil, 0, err
	}
	last := bytes.LastIndexByte(text, '\n') + 1
	for line := range bytes.Lines(text[:last]) {
		var l DeadLetter
		if json.Unmarshal(line, &l) != nil || l.ID == (trail.FactID{}) {
			strange = append(strange, line)
			continue
		}
		letters = append(letters, l)
	}
	return letters, strange, int64(last), nil
}

// DeadLetters reads the dead letters of a cluster, in the order in which they were refused; none where there is no file. Lines that cannot be read are
// counted. A running evictrail may add more during that time.
func DeadLetters(dir, cluster string) (letters []DeadLetter, unreadable int, err error) {
	d := deadLetters{path: LettersPath(dir, cluster)}
	f, err := d.openLocked(os.O_RDONLY)
	if errors.Is(err, os.ErrNotExist) {
		return nil, 0, nil
	}
	if err != nil {
		return nil, 0, err
	}
	defer func() { _ = f.Close() }()
	letters, strange, _, err := readLetters(f)
	return letters, len(strange), err
}

// DropLetters removes letters from the file, as their facts are stored. What was added during that time stays, and so do lines that cannot be read.
func DropLetters(dir, cluster string, stored map[trail.FactID]bool) error {
	d := deadLetters{path: LettersPath(dir, cluster)}
	f, err := d.openLocked(os.O_RDONLY)
	if err != nil {
		return err
	}
	defer func() { _ = f.Close() }()
	letters, strange, _, err := readLetters(f)
	if err != nil {
		return err
	}
	rest := bytes.Join(strange, nil)
	for _, l := range letters {
		if stored[l.ID] {
			continue
		}
		line, err := json.Marshal(l)
		if err != nil {
			return err
		}
		rest = append(append(rest, line...), '\n')
	}
	if len(rest) == 0 {
		return errors.Join(os.Remove(d.path), syncDir(d.path))
	}
	return replaceSynced(d.path, func(to *os.File) error {
		_, err := to.Write(rest)
		return err
	})
}

// letterOf makes the letter of a fact that was refused.
func letterOf(f trail.Fact, reason error, at time.Time) DeadLetter {
	l := DeadLetter{At: at, Reason: trail.ClipText(reason.Error(), mostReason), ID: f.ID, Kind: f.Kind, About: trail.ClipText(f.Subject.String(), mostReason)}
	text, err := trail.WriteFact(f)
	if err != nil {
		l.Dump = trail.ClipText(fmt.Sprintf("%+v %+v", f, f.Detail), mostDump)
		return l
	}
	l.Fact = text
	return l
}

// strangeLetter makes the letter of an entry that is whole and that this version does not understand: one that a newer version wrote.
func strangeLetter(text []byte, reason error, at time.Time) DeadLetter {
	l := DeadLetter{At: at, Reason: trail.ClipText(reason.Error(), mostReason), Kind: KindUnknown}
	var known struct {
		ID   trail.FactID `json:"id"`
		Kind trail.Kind   `json:"kind"`
	}
	if json.Unmarshal(text, &known) == nil && known.ID != (trail.FactID{}) {
		l.ID, l.Kind, l.Fact = known.ID, known.Kind, bytes.Clone(text)
		return l
	}
	sum := sha256.Sum256(text)
	l.ID, l.Dump = trail.FactID(sum[:len(l.ID)]), trail.ClipText(string(text), mostDump)
	return l
}

// setStrangeAside puts entries that this version does not understand, which lay among others, into the file of dead letters; with the lock held.
func (s *Spool) setStrangeAside(letters []DeadLetter, around []trail.Fact) {
	since, until := s.timesAround(around)
	for _, l := range letters {
		s.setAside(l, trail.SourceSelf, since, until)
	}
	s.Log.Error("entries of the spool are not understood: they are set aside, for a newer version to store", "path", s.letters.path, "count", len(letters), "err", letters[0].Reason)
	s.noteDoubt()
}

// SetAside puts facts that were refused for a reason into the file of dead letters, and notes that they are missing. What finds no room there, or cannot be
// replayed, is counted as lost. When it returns the file is synced; a crash before Stored sets the same facts aside again, which adds nothing.
func (s *Spool) SetAside(facts []trail.Fact, reason error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, f := range facts {
		s.setAside(letterOf(f, reason, s.Clock()), f.Source(), f.ObservedAt, f.ObservedAt)
	}
}

// setAside puts one letter into the file, and notes that what was seen of a source in a time is missing; with the lock held.
func (s *Spool) setAside(l DeadLetter, source string, since, until time.Time) {
	kept, err := s.letters.appendLetters([]DeadLetter{l})
	if err != nil {
		s.Log.Error("refused fact is lost: it cannot be set aside", "path", s.letters.path, "kind", l.Kind, "err", err)
	}
	if kept == 0 || l.Fact == nil {
		s.Lost(l.Kind, LostReject, 1)
	}
	if l.Kind == trail.KindGapOpened || l.Kind == trail.KindGapClosed { // else its own refusal would be a gap, and so on
		return
	}
	s.known.addLoss(source, trail.ReasonRefused, since, until, l.Kind, 1)
}
