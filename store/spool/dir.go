package spool

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
	"time"
)

// ErrHeld says that another process has the spool.
var ErrHeld = errors.New("in use by another evictrail")

// lockDir locks a directory until the returned file is closed: alone for anyone who writes it, else together with others that read it. It waits for lockWait.
// Errors: ErrHeld, and those of the system.
func lockDir(dir string, write bool) (*os.File, error) {
	path, flag, how := filepath.Join(dir, "lock"), os.O_RDONLY, syscall.LOCK_SH
	if write {
		flag, how = os.O_RDWR|os.O_CREATE, syscall.LOCK_EX
	}
	f, err := os.OpenFile(path, flag, 0o600)
	if errors.Is(err, syscall.EROFS) { // what waits can be drained all the same
		f, err = os.Open(path)
	}
	if err != nil {
		return nil, err
	}
	for deadline := time.Now().Add(lockWait); ; time.Sleep(50 * time.Millisecond) {
		err := syscall.Flock(int(f.Fd()), how|syscall.LOCK_NB)
		if err == nil {
			return f, nil
		}
		if !errors.Is(err, syscall.EWOULDBLOCK) {
			return nil, errors.Join(fmt.Errorf("lock spool %s: %w", dir, err), f.Close())
		}
		if time.Now().After(deadline) {
			return nil, errors.Join(fmt.Errorf("spool %s: %w", dir, ErrHeld), f.Close())
		}
	}
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
	if pathExists(dir) || filepath.Dir(dir) == dir {
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

// replaceSynced replaces a file in one step by what write makes of an empty one.
func replaceSynced(path string, write func(*os.File) error) error {
	next := path + ".new"
	to, err := os.OpenFile(next, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	err = write(to)
	if err == nil {
		err = to.Sync()
	}
	if err = errors.Join(err, to.Close()); err != nil {
		return errors.Join(err, os.Remove(next))
	}
	return errors.Join(os.Rename(next, path), syncDir(path))
}

// checkWritable makes sure that files can be made in a directory, or in the one in which it would be made.
func checkWritable(dir string) error {
	for !pathExists(dir) && filepath.Dir(dir) != dir {
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

func pathExists(path string) bool {
	_, err := os.Stat(path)
	return !errors.Is(err, os.ErrNotExist)
}
