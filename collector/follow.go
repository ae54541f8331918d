package collector

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// The bounds of following an audit log.
const (
	followEvery = time.Second      // between two looks at the files
	followBatch = 500              // requests that are stored at once
	followBack  = 10 * time.Minute // how much older than our last sign of life a rotated log may be and still be read
)

// follower reads an audit log as it grows, through its rotation. It knows how far it read each file that was the log:
// what was rotated away is read to its end, whether it was renamed or copied. It keeps nothing on disk: after a restart
// it reads again what is there, and the same event is the same fact.
type follower struct {
	path  string
	since time.Time // rotated logs that were last written before are left alone
	log   *slog.Logger
	take  func(ctx context.Context, part io.Reader, name string, offset int64) error // takes whole lines of a file
	files []followed
	quiet bool // the log's absence was said
}

type followed struct {
	info   os.FileInfo
	offset int64  // up to which it was read: the end of a line
	head   []byte // its first bytes: a file system may give a new file the identity of a removed one
}

// headBytes is how much of a file's beginning distinguishes it from others: the first event's auditID is in it.
const headBytes = 1024

// Follow takes the audit events of a log file until ctx ends. Its only error is that of ctx.
func (c *Collector) Follow(ctx context.Context, path string) error {
	f := &follower{path: path, since: c.lastHere().Add(-followBack), log: c.Log, take: c.readAuditPart}
	if c.lastHere().IsZero() {
		f.since = c.Clock()
	}
	return f.followLog(ctx)
}

// followLog reads what is added to the log until ctx ends. Its only error is that of ctx.
func (f *follower) followLog(ctx context.Context) error {
	tick := time.NewTicker(followEvery)
	defer tick.Stop()
	for {
		for _, name := range f.findLogs() {
			if err := f.readNewLines(ctx, name); err != nil && ctx.Err() == nil {
				f.log.Warn("audit log not read, trying again", "path", name, "err", err)
			}
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// findLogs names the logs to look at: those rotated away, oldest first, then the log itself. The API server puts a
// time before the ending of a rotated log's name, logrotate a number behind it.
func (f *follower) findLogs() []string {
	ext := filepath.Ext(f.path)
	rotated, errTimed := filepath.Glob(escapeGlob(strings.TrimSuffix(f.path, ext)) + "-*" + escapeGlob(ext))
	numbered, errNumbered := filepath.Glob(escapeGlob(f.path) + ".*")
	if err := errors.Join(errTimed, errNumbered); err != nil {
		f.log.Error("rotated audit logs not found", "path", f.path, "err", err) // an escaped path is no bad pattern
	}
	rotated = append(rotated, numbered...)
	times := map[string]time.Time{}
	rotated = slices.DeleteFunc(rotated, func(name string) bool {
		info, err := os.Stat(name)
		if err != nil || name == f.path || info.IsDir() || strings.HasSuffix(name, ".gz") || info.ModTime().Before(f.since) {
			return true
		}
		times[name] = info.ModTime()
		return false
	})
	slices.SortFunc(rotated, func(a, b string) int { return times[a].Compare(times[b]) })
	if _, err := os.Stat(f.path); err != nil {
		if !f.quiet {
			f.log.Warn("audit log is not there, waiting for it", "path", f.path, "err", err)
		}
		f.quiet = true
		return rotated
	}
	f.quiet = false
	return append(rotated, f.path)
}

// escapeGlob keeps a path from being read as a pattern.
func escapeGlob(path string) string {
	return strings.NewReplacer(`\`, `\\`, `*`, `\*`, `?`, `\?`, `[`, `\[`).Replace(path)
}

// readNewLines takes the whole lines that were added to a file since it was last read.
func (f *follower) readNewLines(ctx context.Context, name string) error {
	file, err := os.Open(name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil // rotated away between two looks: it is found under its new name
	}
	if err != nil {
		return err
	}
	defer func() { _ = file.Close() }()
	info, err := file.Stat()
	if err != nil {
		return err
	}
	at := f.trackFile(info)
	head := make([]byte, headBytes)
	n, err := file.ReadAt(head, 0)
	if err != nil && !errors.Is(err, io.EOF) {
		return err
	}
	head = head[:n]
	if info.Size() < at.offset || !bytes.HasPrefix(head, at.head) { // emptied, or another file
		at.offset, at.head = 0, nil
	}
	end, err := lastLine(file, at.offset, info.Size())
	if err != nil || end == at.offset {
		return err
	}
	if err := f.take(ctx, io.NewSectionReader(file, at.offset, end-at.offset), name, at.offset); err != nil {
		return err
	}
	at.offset, at.head = end, head[:min(end, int64(n))] // as it began before its lines were taken: it may have been emptied during that time
	return nil
}

// trackFile returns what is known of a file, whatever its name is now.
func (f *follower) trackFile(info os.FileInfo) *followed {
	for i := range f.files {
		if os.SameFile(f.files[i].info, info) {
			return &f.files[i]
		}
	}
	f.files = append(f.files, followed{info: info})
	return &f.files[len(f.files)-1]
}

// lastLine returns the end of the last whole line between two offsets, the first of them where there is none.
func lastLine(file io.ReaderAt, from, to int64) (int64, error) {
	buf := make([]byte, 64<<10)
	for to > from {
		n := min(int64(len(buf)), to-from)
		if _, err := file.ReadAt(buf[:n], to-n); err != nil {
			return from, err
		}
		if i := bytes.LastIndexByte(buf[:n], '\n'); i >= 0 {
			return to - n + int64(i) + 1, nil
		}
		to -= n
	}
	return from, nil
}

// readAuditPart stores the audit events of a part of a file.
func (c *Collector) readAuditPart(ctx context.Context, part io.Reader, name string, offset int64) error {
	var batch []Request
	store := func() error {
		err := c.submitRequests(ctx, batch)
		batch = batch[:0]
		return err
	}
	reader := AuditReader{Now: c.Clock(), Take: func(r Request) error {
		if batch = append(batch, r); len(batch) < followBatch {
			return nil
		}
		return store()
	}}
	report, err := reader.Read(part)
	c.countAudit(report)
	if report.Refused > 0 {
		c.Log.Debug("audit events refused", "path", name, "offset", offset, "count", report.Refused, "reason", report.First)
	}
	if err != nil {
		return fmt.Errorf("follow %s: %w", name, err)
	}
	return store()
}
