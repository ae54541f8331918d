package export

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"time"
)

// manifestName begins with what engines that read folders of files take for hidden.
const manifestName = "_manifest.jsonl"

// header says what a folder has: the first line of its manifest.
type header struct {
	What   string    `json:"what"`
	Format Format    `json:"format"`
	Since  time.Time `json:"since,omitzero"` // of facts: those that were stored before are left out
}

// File is a file that is complete.
type File struct {
	Path        string `json:"path"` // below the folder, with slashes
	Cluster     string `json:"cluster"`
	Date        string `json:"date"` // 2026-11-20
	Rows        int64  `json:"rows"`
	Bytes       int64  `json:"bytes"`
	Fingerprint int64  `json:"fingerprint,omitempty"` // of rows that may change
}

// cursor is up to which fact those of a cluster are exported.
type cursor struct {
	Cluster  string    `json:"cluster"`
	Seq      int64     `json:"seq"`
	StoredAt time.Time `json:"stored_at,omitzero"`
	EventID  string    `json:"event_id,omitempty"`
	At       time.Time `json:"at,omitzero"`
	Numbered bool      `json:"numbered,omitempty"` // all facts without a number are exported
}

// entry is a line of a manifest. It is on disk before what comes next is begun.
type entry struct {
	Dataset *header `json:"dataset,omitempty"`
	Writing string  `json:"writing,omitempty"` // a file is being written: without the line of that file it was not completed
	File    *File   `json:"file,omitempty"`    // in place of an earlier one with its path
	Cursor  *cursor `json:"cursor,omitempty"`
	Removed string  `json:"removed,omitempty"`
}

// manifest is what a folder of a dataset has. It is not safe for concurrent use.
type manifest struct {
	dir     string
	lock    *os.File // the folder, locked; nil: the manifest is only read
	out     *os.File
	header  header
	files   map[string]File
	cursors map[string]cursor
	writing string
	lines   int
}

// openManifest opens the manifest of a folder, and makes both where they are not there; to only read it makes nothing.
// What an export left that was cut off is removed.
func openManifest(dir string, want header, onlyRead bool) (*manifest, error) {
	m := &manifest{dir: dir, header: want, files: map[string]File{}, cursors: map[string]cursor{}}
	if onlyRead {
		_, err := m.readEntries()
		if errors.Is(err, fs.ErrNotExist) {
			err = nil
		}
		return m, errors.Join(err, m.checkHeader(want))
	}
	if err := os.MkdirAll(dir, 0o755); err != nil { //nolint:gosec // readers of the files are other users
		return nil, err
	}
	var err error
	if m.lock, err = os.Open(dir); err != nil {
		return nil, err
	}
	if err := m.openLocked(want); err != nil {
		return nil, errors.Join(err, m.close())
	}
	return m, nil
}

// openLocked opens the manifest for writing, alone.
func (m *manifest) openLocked(want header) error {
	if err := syscall.Flock(int(m.lock.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		return fmt.Errorf("%s: another export is writing to it: wait until it has ended, or use another folder", m.dir)
	}
	whole, err := m.readEntries()
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if err := m.checkHeader(want); err != nil {
		return err
	}
	name := filepath.Join(m.dir, manifestName)
	if m.lines > 1000 && m.lines > 4*len(m.files) {
		if err := m.rewrite(name); err != nil {
			return err
		}
	} else if m.lines > 0 {
		if err := os.Truncate(name, whole); err != nil { // of a line that was not written whole
			return err
		}
	}
	if m.out, err = os.OpenFile(name, os.O_WRONLY|os.O_APPEND|os.O_CREATE, 0o644); err != nil {
		return err
	}
	if m.lines == 0 {
		if err := errors.Join(m.add(entry{Dataset: &m.header}), syncDir(m.dir)); err != nil {
			return err
		}
	}
	return m.removeUnfinished()
}

// readEntries reads the manifest, and returns how long it is but for a line that was not written whole.
func (m *manifest) readEntries() (whole int64, err error) {
	name := filepath.Join(m.dir, manifestName)
	in, err := os.Open(name)
	if err != nil {
		return 0, err
	}
	defer func() { _ = in.Close() }()
	lines := bufio.NewReader(in)
	for {
		line, err := lines.ReadBytes('\n')
		if errors.Is(err, io.EOF) {
			return whole, nil
		}
		if err != nil {
			return whole, err
		}
		var e entry
		if err := json.Unmarshal(line, &e); err != nil {
			return whole, fmt.Errorf("%s: line %d: %w: restore the file, or export into another folder", name, m.lines+1, err)
		}
		m.apply(e)
		whole += int64(len(line))
	}
}

// apply notes what an entry says.
func (m *manifest) apply(e entry) {
	m.lines++
	if e.Dataset != nil {
		m.header = *e.Dataset
	}
	if e.Cursor != nil {
		m.cursors[e.Cursor.Cluster] = *e.Cursor
	}
	if e.File != nil {
		m.files[e.File.Path] = *e.File
	}
	delete(m.files, e.Removed)
	m.writing = e.Writing
}

// checkHeader refuses a folder that has something else. What it has no of facts from before its first export it cannot
// get any more.
func (m *manifest) checkHeader(want header) error {
	have := m.header
	switch {
	case have.What != want.What:
		return fmt.Errorf("%s has %s, not %s: use another folder", m.dir, have.What, want.What)
	case have.Format != want.Format:
		return fmt.Errorf("%s has %s files, not %s: use another folder, or --format %s", m.dir, have.Format, want.Format,
			have.Format)
	case want.Since.Before(have.Since) && !want.Since.IsZero():
		return fmt.Errorf("%s has facts since %s, and goes on from there: leave out --since, or use another folder for those "+
			"from before", m.dir, have.Since.Format(time.DateOnly))
	}
	return nil
}

// add writes an entry, which is on disk when it returns.
func (m *manifest) add(e entry) error {
	line, err := json.Marshal(e)
	if err != nil {
		return err
	}
	if _, err := m.out.Write(append(line, '\n')); err != nil {
		return err
	}
	m.apply(e)
	return m.out.Sync()
}

// removeUnfinished removes the file that was being written when an export was cut off. One that it would have replaced
// is complete, and stays.
func (m *manifest) removeUnfinished() error {
	if m.writing == "" {
		return nil
	}
	name := filepath.Join(m.dir, filepath.FromSlash(m.writing))
	remove := []string{temporaryName(name)}
	if _, known := m.files[m.writing]; !known {
		remove = append(remove, name)
	}
	for _, name := range remove {
		if err := os.Remove(name); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return nil
}

// rewrite replaces the manifest by one with a line for each file and cursor.
func (m *manifest) rewrite(name string) error {
	var all bytes.Buffer
	e := json.NewEncoder(&all)
	entries := []entry{{Dataset: &m.header}}
	for _, f := range m.files {
		entries = append(entries, entry{File: &f})
	}
	for _, c := range m.cursors {
		entries = append(entries, entry{Cursor: &c})
	}
	entries = append(entries, entry{Writing: m.writing})
	for _, line := range entries {
		if err := e.Encode(line); err != nil {
			return err
		}
	}
	m.lines = len(entries)
	f, err := createFile(name)
	if err != nil {
		return err
	}
	if _, err := f.Write(all.Bytes()); err != nil {
		f.abort()
		return err
	}
	return f.publish()
}

// close closes the manifest, and lets others write to the folder.
func (m *manifest) close() error {
	var errs []error
	for _, f := range []*os.File{m.out, m.lock} {
		if f != nil {
			errs = append(errs, f.Close())
		}
	}
	return errors.Join(errs...)
}
