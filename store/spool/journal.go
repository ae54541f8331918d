package spool

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"time"
)

// journal is a directory of segments, files of frames that are only ever appended to, of which the last grows. A new one is begun when that is large, by each
// process, and after each failure to write: nothing is appended behind bytes that may not be on disk. It is not safe for concurrent use.
type journal struct {
	segments
	mark   mark
	intact bool // the mark was found whole: it says all that was acknowledged

	limit    int64    // bytes: a segment of so many is followed by another
	lock     *os.File // held as long as the journal is open
	active   *os.File // the last segment; nil: the next append begins another
	markFile *os.File
	sync     func(*os.File) error // what makes an append durable; tests have it fail as a disk does
}

// mark says what of the journal waits. It lies in a file of its own, is written over at each change, and is not synced: after a power cut an older one may be
// there, of which follows only that facts are stored again.
type mark struct {
	Head uint64   `json:"head"` // the number of the first fact that waits
	Tail uint64   `json:"tail"` // the number of the next fact; all before were synced
	At   position `json:"at"`   // where what waits begins
}

// position is a place in the journal.
type position struct {
	Segment uint64 `json:"segment"` // its number
	Offset  int64  `json:"offset"`  // in bytes
}

// segments are the files of a journal in their order.
type segments struct {
	dir  string
	list []segment
}

// segment is one file.
type segment struct {
	number uint64
	first  uint64 // the number of the first fact that it may hold
	size   int64  // bytes
}

// segmentName is the name of a segment: its number and that of its first fact.
const segmentName = "%010d-%020d.facts"

func (s segments) segmentPath(of segment) string {
	return filepath.Join(s.dir, fmt.Sprintf(segmentName, of.number, of.first))
}

// lockWait is how long to wait for another process that is about to end.
const lockWait = 3 * time.Second

// openJournal opens the journal of a directory, or begins one. Beside an error of writing it returns a journal that can be read. Errors: ErrHeld, and those of
// the system.
func openJournal(dir string, limit int64) (*journal, error) {
	if err := makeDir(dir); err != nil {
		return nil, err
	}
	j, err := readJournal(dir, true)
	if err != nil {
		return nil, err
	}
	j.limit = limit
	return j, errors.Join(j.writeMark(), j.syncMark(), syncDir(j.markPath()))
}

// readJournal locks a journal and finds out what it holds, without changing it. Where it is not to be written, others may read it, too.
func readJournal(dir string, write bool) (*journal, error) {
	lock, err := lockDir(dir, write)
	if err != nil {
		return nil, err
	}
	j := &journal{segments: segments{dir: dir}, lock: lock, sync: (*os.File).Sync}
	if err = j.readSegments(); err == nil {
		err = j.recoverTail()
	}
	if err != nil {
		return nil, errors.Join(err, lock.Close())
	}
	return j, nil
}

func (j *journal) markPath() string { return filepath.Join(j.dir, "mark") }

// readSegments lists the segments and reads the mark. A mark that is lost is made of the segments: then everything that they hold waits.
func (j *journal) readSegments() error {
	files, err := os.ReadDir(j.dir)
	if err != nil {
		return err
	}
	for _, file := range files {
		var s segment
		if _, err := fmt.Sscanf(file.Name(), segmentName, &s.number, &s.first); err != nil || filepath.Base(j.segmentPath(s)) != file.Name() {
			continue
		}
		info, err := file.Info()
		if err != nil {
			return err
		}
		s.size = info.Size()
		j.list = append(j.list, s)
	}
	slices.SortFunc(j.list, func(a, b segment) int { return int(a.number) - int(b.number) })
	raw, err := os.ReadFile(j.markPath())
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	f, whole := decodeFrame(raw)
	if j.intact = whole && json.Unmarshal(f.payload, &j.mark) == nil; !j.intact {
		j.mark = mark{Head: 1, Tail: 1}
		if len(j.list) > 0 {
			j.mark = mark{Head: j.list[0].first, At: position{Segment: j.list[0].number}}
		}
	}
	return nil
}

// recoverTail reads the last segment and sets the mark's Tail. What lies behind the last whole frame was not acknowledged, and is no part of the journal: the mark says
// otherwise where it was. Without a mark it counts as a fact that was.
func (j *journal) recoverTail() error {
	if len(j.list) == 0 {
		return nil
	}
	last := &j.list[len(j.list)-1]
	j.mark.Tail = max(j.mark.Tail, last.first)
	end := int64(0)
	_, err := j.scanFrames(position{Segment: last.number}, func(f frame, behind position) bool {
		if f.form == formFact {
			j.mark.Tail = max(j.mark.Tail, f.seq+1)
		}
		end = behind.Offset
		return true
	})
	if !j.intact && end < last.size {
		j.mark.Tail++
	}
	last.size = end
	return err
}

// endPosition returns the place behind all that is written.
func (s segments) endPosition() position {
	if len(s.list) == 0 {
		return position{}
	}
	last := s.list[len(s.list)-1]
	return position{last.number, last.size}
}

// bytesFrom returns how many bytes lie behind a position.
func (s segments) bytesFrom(at position) (n int64) {
	for _, segment := range s.list {
		switch {
		case segment.number == at.Segment:
			n += max(0, segment.size-at.Offset)
		case segment.number > at.Segment:
			n += segment.size
		}
	}
	return n
}

// scanFrames visits the whole frames from a position on, each with the position behind it, until visit returns false. It returns how many bytes were skipped, as they
// belong to none. A payload is valid while it is visited.
func (s segments) scanFrames(from position, visit func(f frame, behind position) bool) (skipped int64, err error) {
	for i, segment := range s.list {
		if segment.number < from.Segment {
			continue
		}
		in, err := os.Open(s.segmentPath(segment))
		if errors.Is(err, os.ErrNotExist) {
			skipped += segment.size
			continue
		}
		if err != nil {
			return skipped, err
		}
		reading := scanner{in: in, size: segment.size}
		if segment.number == from.Segment {
			reading.at = from.Offset
		}
		goesOn := true
		for goesOn {
			f, ok, nextErr := reading.nextFrame()
			if err = nextErr; err != nil || !ok {
				break
			}
			if f.form == formFact && i+1 < len(s.list) && f.seq >= s.list[i+1].first {
				continue // of an append that failed, after which its numbers were used again
			}
			goesOn = visit(f, position{segment.number, reading.at})
		}
		skipped += reading.skipped
		if err := errors.Join(err, in.Close()); err != nil || !goesOn {
			return skipped, err
		}
	}
	return skipped, nil
}

// needsRotation reports whether the next append begins a segment.
func (j *journal) needsRotation() bool {
	return j.active == nil || j.list[len(j.list)-1].size >= j.limit
}

// appendFrames writes frames and syncs them. After an error none of them counts.
func (j *journal) appendFrames(raw []byte) error {
	if j.needsRotation() {
		if err := j.beginSegment(); err != nil {
			return err
		}
	}
	last := &j.list[len(j.list)-1]
	_, err := j.active.WriteAt(raw, last.size)
	if err == nil {
		err = j.sync(j.active)
	}
	if err == nil {
		last.size += int64(len(raw))
		return nil
	}
	if last.size == 0 {
		_ = os.Remove(j.segmentPath(*last))
		j.list = j.list[:len(j.list)-1]
	} else {
		_ = j.active.Truncate(last.size) // where that fails, too, its numbers are those of the next segment, see scan
	}
	j.sealSegment()
	return err
}

// sealSegment has the next append begin a segment.
func (j *journal) sealSegment() {
	if j.active != nil {
		_ = j.active.Close()
		j.active = nil
	}
}

// beginSegment begins a segment.
func (j *journal) beginSegment() error {
	j.sealSegment()
	next := segment{number: max(j.endPosition().Segment, j.mark.At.Segment) + 1, first: j.mark.Tail}
	f, err := os.OpenFile(j.segmentPath(next), os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	if err := syncDir(f.Name()); err != nil {
		return errors.Join(err, f.Close(), os.Remove(f.Name()))
	}
	j.active, j.list = f, append(j.list, next)
	return nil
}

// writeMark writes the mark.
func (j *journal) writeMark() error {
	if j.markFile == nil {
		f, err := os.OpenFile(j.markPath(), os.O_RDWR|os.O_CREATE, 0o600)
		if err != nil {
			return err
		}
		j.markFile = f
	}
	_, err := j.markFile.WriteAt(frame{form: formMark, payload: encodeJSON(j.mark)}.appendTo(nil), 0)
	return err
}

// syncMark has the mark outlast a power cut.
func (j *journal) syncMark() error {
	if j.markFile == nil {
		return nil
	}
	return j.markFile.Sync()
}

// deleteDrained deletes the first segments, of which nothing waits, and the facts before a number are not needed.
func (j *journal) deleteDrained(before uint64) error {
	drained := func() bool {
		if len(j.list) == 0 {
			return false
		}
		needed := j.mark.Tail // of the last one
		if len(j.list) > 1 {
			needed = j.list[1].first
		}
		waits := j.list[0].number >= j.mark.At.Segment && j.bytesFrom(j.mark.At) > 0
		return !waits && needed <= before && (len(j.list) > 1 || j.active == nil)
	}
	if !drained() {
		return nil
	}
	if err := j.syncMark(); err != nil { // else it may come back as one that says that what is deleted waits
		return err
	}
	for drained() {
		if err := os.Remove(j.segmentPath(j.list[0])); err != nil && !errors.Is(err, os.ErrNotExist) {
			return err
		}
		j.list = j.list[1:]
	}
	return nil
}

// close closes the files and releases the lock.
func (j *journal) close() error {
	j.sealSegment()
	err := j.syncMark()
	if j.markFile != nil {
		err = errors.Join(err, j.markFile.Close())
	}
	return errors.Join(err, j.lock.Close())
}

// encodeJSON encodes what consists of times, texts and numbers.
func encodeJSON(v any) []byte {
	raw, err := json.Marshal(v)
	if err != nil {
		panic("encode what the spool says of itself: " + err.Error())
	}
	return raw
}
