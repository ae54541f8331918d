package spool

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime/debug"
	"strings"
	"syscall"
	"time"

	"go.etcd.io/bbolt"
	berrors "go.etcd.io/bbolt/errors"
)

// ErrHeld says that another process has the spool.
var ErrHeld = errors.New("in use by another evictrail")

// errDamaged says that the structure of the file is damaged.
var errDamaged = errors.New("spool damaged")

var (
	bucketQueue = []byte("queue") // entries by their numbers, without a hole between the first and the last
	bucketState = []byte("state") // frames by object and aspect
	bucketMeta  = []byte("meta")
	keyMark     = []byte("mark")
	keyKnown    = []byte("known")
)

// lockWait is how long is waited for another process that is about to end.
const lockWait = 3 * time.Second

// file is an open file. Where a call finds it damaged it must be abandoned.
type file struct {
	db       *bbolt.DB
	handle   *os.File // bbolt's own
	readOnly bool
}

// openFile opens or makes a file. Errors: ErrHeld, errDamaged, and those of the system.
func openFile(path string, readOnly bool) (*file, error) {
	for {
		f := &file{readOnly: readOnly}
		existed := exists(path)
		err := guarded(func() (err error) {
			f.db, err = bbolt.Open(path, 0o600, &bbolt.Options{
				Timeout: lockWait, ReadOnly: readOnly, FreelistType: bbolt.FreelistMapType, NoStatistics: true,
				OpenFile: func(name string, flag int, mode os.FileMode) (*os.File, error) {
					handle, err := os.OpenFile(name, flag, mode)
					f.handle = handle
					return handle, err
				},
			})
			if err != nil {
				return err
			}
			return checkLayout(f.handle) // which nobody else writes now
		})
		if err != nil {
			f.abandon()
			return nil, explain(path, err)
		}
		if f.is(path) {
			f.db.AllocSize = 4 << 20
			return f, f.prepare(existed)
		}
		_ = f.db.Close() // it was replaced while we waited for its lock
	}
}

// explain says what an error of opening means.
func explain(path string, err error) error {
	switch {
	case errors.Is(err, berrors.ErrTimeout):
		return fmt.Errorf("spool %s: %w", path, ErrHeld)
	case errors.Is(err, berrors.ErrInvalid), errors.Is(err, berrors.ErrChecksum), errors.Is(err, berrors.ErrVersionMismatch),
		strings.Contains(err.Error(), "file size too small"): // bbolt db.go, fileSize
		return fmt.Errorf("%w: %w", errDamaged, err)
	}
	return err
}

func exists(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.Size() > 0
}

// is tells whether the path still leads to the open file.
func (f *file) is(path string) bool {
	ours, err := f.handle.Stat()
	if err != nil {
		return false
	}
	there, err := os.Stat(path)
	return err == nil && os.SameFile(ours, there)
}

// prepare makes the buckets of a new file; an old one without them is damaged.
func (f *file) prepare(existed bool) error {
	names := [][]byte{bucketQueue, bucketState, bucketMeta}
	lacking := 0
	err := f.view(func(tx *bbolt.Tx) error {
		for _, name := range names {
			if tx.Bucket(name) == nil {
				lacking++
			}
		}
		return nil
	})
	switch {
	case err != nil || lacking == 0:
	case existed && lacking < len(names):
		err = fmt.Errorf("%w: a part of it is missing", errDamaged)
	case !f.readOnly:
		err = f.update(func(tx *bbolt.Tx) error {
			for _, name := range names {
				if _, err := tx.CreateBucket(name); err != nil {
					return err
				}
			}
			return nil
		})
	}
	if err != nil {
		f.abandon()
	}
	return err
}

// update changes the file in one transaction, which is synced when update returns.
func (f *file) update(change func(*bbolt.Tx) error) error {
	return guarded(func() error { return f.db.Update(change) })
}

// view reads the file.
func (f *file) view(read func(*bbolt.Tx) error) error {
	return guarded(func() error { return f.db.View(read) })
}

func (f *file) close() error {
	return guarded(f.db.Close)
}

// abandon gives back the lock of a file that cannot be closed: bbolt may hold locks of its own where it gave up in the middle.
func (f *file) abandon() {
	if f.handle != nil {
		_ = f.handle.Close()
	}
}

// guarded gives what bbolt does on finding its file damaged as an error: it panics, reads where no memory is, or takes a value for a bucket.
func guarded(do func() error) (err error) {
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("%w: %v", errDamaged, r)
		}
	}()
	if err = do(); errors.Is(err, berrors.ErrIncompatibleValue) {
		err = fmt.Errorf("%w: %w", errDamaged, err)
	}
	return err
}

// syncDir makes durable that a path was created, or another renamed to it.
func syncDir(path string) error {
	d, err := os.Open(filepath.Dir(path))
	if err != nil {
		return err
	}
	defer func() { _ = d.Close() }()
	if err = d.Sync(); errors.Is(err, syscall.EINVAL) || errors.Is(err, syscall.ENOTSUP) {
		return nil // a file system that syncs no directories, such as some that are mounted over a network
	}
	return err
}

// makeDir creates a directory and those above it that are missing, durably.
func makeDir(dir string) error {
	if isThere(dir) || filepath.Dir(dir) == dir {
		return os.MkdirAll(dir, 0o700) // an error where it is a file
	}
	if err := makeDir(filepath.Dir(dir)); err != nil {
		return err
	}
	if err := os.Mkdir(dir, 0o700); err != nil && !errors.Is(err, os.ErrExist) {
		return err
	}
	return syncDir(dir)
}

// Look tells how it stands with a spool that no process has, without changing it; of one that does not exist, that its directory can be
// written. Errors: ErrHeld, beside which the path is known, and those of the system.
func Look(dir, cluster string) (Condition, error) {
	s := &Spool{Options: Options{Dir: dir, Cluster: cluster}, path: PathOf(dir, cluster), letters: &deadLetters{path: LettersPath(dir, cluster)}}
	c := Condition{Path: s.path, DeadLetters: s.letters.count()}
	if !exists(s.path) {
		return c, canWrite(dir)
	}
	f, err := openFile(s.path, true)
	if err != nil {
		return c, err
	}
	defer func() { _ = f.close() }()
	s.file = f
	if err := s.load(); err != nil {
		return c, err
	}
	c = s.Condition()
	return c, canWrite(dir)
}

// canWrite makes sure that files can be made in a directory, or in the one in which it would be made.
func canWrite(dir string) error {
	for !isThere(dir) && filepath.Dir(dir) != dir {
		dir = filepath.Dir(dir)
	}
	if info, err := os.Stat(dir); err != nil || !info.IsDir() {
		return &os.PathError{Op: "write", Path: dir, Err: syscall.ENOTDIR}
	}
	const write = 2 // W_OK
	if err := syscall.Access(dir, write); err != nil {
		return &os.PathError{Op: "write", Path: dir, Err: err}
	}
	return nil
}

func isThere(path string) bool {
	_, err := os.Stat(path)
	return !errors.Is(err, os.ErrNotExist)
}
