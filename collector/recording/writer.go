package recording

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/watch"
)

// Writer writes a recording. What it is given it packs in memory; Flush writes that to disk as a whole piece of gzip, so that the
// files can be read up to the last Flush whatever ends the program. It is safe for concurrent use: lines stand in the order
// in which they were given, and have the time of that.
type Writer struct {
	dir   string
	clock func() time.Time

	mu      sync.Mutex
	trace   packed
	audit   packed
	scrapes packed
	policy  bool // it was written
}

// Written counts what was written.
type Written struct {
	Lines, Audit, Scrapes int
	Bytes                 int64 // on disk
	Policy                bool
}

// packed is a file of lines, packed.
type packed struct {
	name  string
	file  *os.File // nil before the first Flush that has something for it
	size  int64
	piece bytes.Buffer // what waits for Flush
	gzip  *gzip.Writer // of the piece; nil while it is empty
	lines int
}

// Create makes the folder of a recording, or takes an empty one. Nobody else may read it: it shows who runs what where.
func Create(dir string, clock func() time.Time) (*Writer, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("make recording: %w", err)
	}
	inside, err := os.ReadDir(dir)
	switch {
	case err != nil:
		return nil, fmt.Errorf("make recording: %w", err)
	case len(inside) > 0:
		return nil, fmt.Errorf("make recording: %s is not empty, it has %s: name another folder, or empty this one", dir, inside[0].Name())
	}
	return &Writer{
		dir: dir, clock: clock, trace: packed{name: traceFile}, audit: packed{name: auditFile}, scrapes: packed{name: scrapesFile},
	}, nil
}

// written is a line of the trace as it is written; Line is the same as it is read.
type written struct {
	At          time.Time       `json:"t"`
	Resource    string          `json:"resource"`
	Kind        Kind            `json:"kind"`
	ListVersion string          `json:"listResourceVersion,omitempty"`
	Object      json.RawMessage `json:"object,omitempty"`
}

// List writes a whole list.
func (w *Writer) List(resource, version string, items []json.RawMessage) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(items) == 0 {
		w.writeTraceLine(written{Resource: resource, Kind: KindSyncEmpty, ListVersion: version})
	}
	for _, item := range items {
		w.writeTraceLine(written{Resource: resource, Kind: KindSync, ListVersion: version, Object: item})
	}
}

// Event writes a notification of a watch: ADDED, MODIFIED, DELETED or BOOKMARK.
func (w *Writer) Event(resource string, kind watch.EventType, object json.RawMessage) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.writeTraceLine(written{Resource: resource, Kind: Kind(kind), Object: object})
}

// ListFailed writes that the resource could not be listed.
func (w *Writer) ListFailed(resource string) { w.writeBreak(resource, KindListError) }

// WatchEnded writes that a watch ended, of its own accord or with an error.
func (w *Writer) WatchEnded(resource string, failed bool) {
	if failed {
		w.writeBreak(resource, KindWatchError)
		return
	}
	w.writeBreak(resource, KindWatchClosed)
}

func (w *Writer) writeBreak(resource string, kind Kind) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.writeTraceLine(written{Resource: resource, Kind: kind})
}

// Audit writes an event of the audit log.
func (w *Writer) Audit(event json.RawMessage) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.audit.addLine(event)
}

// Scrape writes what the descheduler's metrics say.
func (w *Writer) Scrape(text string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.scrapes.addLine(scrape{At: w.clock(), Target: deschedulerTarget, Text: text})
}

type scrape struct {
	At     time.Time `json:"t"`
	Target string    `json:"target"`
	Text   string    `json:"text"`
}

// Policy writes the descheduler's policy: the first that was seen, since a recording has one. It reports whether this was it.
func (w *Writer) Policy(text []byte) (bool, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.policy {
		return false, nil
	}
	w.policy = true
	if err := os.WriteFile(filepath.Join(w.dir, policyFile), text, 0o600); err != nil {
		return true, fmt.Errorf("write recording: %w", err)
	}
	return true, nil
}

// writeTraceLine writes a line of the trace; the lock must be held.
func (w *Writer) writeTraceLine(l written) {
	l.At = w.clock()
	w.trace.addLine(l)
}

func (p *packed) addLine(v any) {
	if p.gzip == nil {
		p.gzip = gzip.NewWriter(&p.piece)
	}
	e := json.NewEncoder(p.gzip)
	e.SetEscapeHTML(false)
	_ = e.Encode(v) // texts, times and valid JSON, into memory
	p.lines++
}

// Flush writes to disk what was given since the last time. After an error what is on disk is as before, and Flush may be called again.
func (w *Writer) Flush() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	err := errors.Join(w.trace.flushTo(w.dir), w.audit.flushTo(w.dir), w.scrapes.flushTo(w.dir))
	if err != nil {
		return fmt.Errorf("write recording: %w", err)
	}
	return nil
}

func (p *packed) flushTo(dir string) error {
	if p.file == nil && p.lines > 0 {
		var err error
		p.file, err = os.OpenFile(filepath.Join(dir, p.name), os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
		if err != nil {
			return err
		}
	}
	if p.gzip != nil {
		if err := p.gzip.Close(); err != nil {
			return err
		}
		p.gzip = nil
	}
	if p.piece.Len() == 0 {
		return nil
	}
	n, err := p.file.WriteAt(p.piece.Bytes(), p.size) // at once: anyone who reads during that time sees a whole piece
	if err != nil {
		return errors.Join(err, p.file.Truncate(p.size))
	}
	p.size += int64(n)
	p.piece.Reset()
	return nil
}

// Written returns how much was written.
func (w *Writer) Written() Written {
	w.mu.Lock()
	defer w.mu.Unlock()
	return Written{
		Lines: w.trace.lines, Audit: w.audit.lines, Scrapes: w.scrapes.lines, Bytes: w.trace.size + w.audit.size + w.scrapes.size, Policy: w.policy,
	}
}

// Close writes what is left and closes the files.
func (w *Writer) Close() error {
	err := w.Flush()
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, p := range []*packed{&w.trace, &w.audit, &w.scrapes} {
		if p.file != nil {
			err = errors.Join(err, p.file.Sync(), p.file.Close())
		}
	}
	return err
}
