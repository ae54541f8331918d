package recording

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"slices"
	"time"
)

// Kind says what a line records.
type Kind string

// The kinds of lines.
const (
	KindSync        Kind = "SYNC"       // an item of a list
	KindSyncEmpty   Kind = "SYNC_EMPTY" // a list without items
	KindAdded       Kind = "ADDED"
	KindModified    Kind = "MODIFIED"
	KindDeleted     Kind = "DELETED"
	KindBookmark    Kind = "BOOKMARK"
	KindWatchClosed Kind = "WATCH_CLOSED" // the recorder's own watch ended
	KindWatchError  Kind = "WATCH_ERROR"
	KindListError   Kind = "LIST_ERROR"
)

var kinds = []Kind{
	KindSync, KindSyncEmpty, KindAdded, KindModified, KindDeleted, KindBookmark, KindWatchClosed, KindWatchError, KindListError,
}

// isBreak reports whether the line records that the recorder could not see.
func (k Kind) isBreak() bool {
	return k == KindWatchClosed || k == KindWatchError || k == KindListError
}

// isList reports whether the line belongs to a list.
func (k Kind) isList() bool { return k == KindSync || k == KindSyncEmpty }

// Line is one line of a recording.
type Line struct {
	Number              int // in the file, from 1
	At                  time.Time
	Resource            string // plural
	Kind                Kind
	ListResourceVersion string          // of SYNC and SYNC_EMPTY
	Object              json.RawMessage // nil for lists without items and for breaks
	Key                 string          // namespace/name of the object
	ResourceVersion     string          // of the object
}

// AuditLine is one event of the audit log.
type AuditLine struct {
	At    time.Time // its stageTimestamp, UTC: when the API server logged it
	Event []byte    // as it was logged: JSON without a newline
}

// ScrapeLine is what the descheduler's metrics said at one moment.
type ScrapeLine struct {
	At   time.Time // UTC
	Text string    // exposition format
}

// Recording is a recorded cluster, in memory.
type Recording struct {
	Name    string       // of its folder
	Lines   []Line       // in the order of the file, at least one
	Audit   []AuditLine  // in the order in which the API server logged them; none where no audit log was recorded
	Scrapes []ScrapeLine // of the descheduler, in the order of their times; none where none were recorded
	Policy  []byte       // the descheduler's policy; nil where none was recorded
}

// Start returns the time of the first line, UTC.
func (r *Recording) Start() time.Time { return r.Lines[0].At }

// End returns the time of the last line, UTC.
func (r *Recording) End() time.Time { return r.Lines[len(r.Lines)-1].At }

// maxLine bounds a line, in bytes. No object of an API server comes near it.
const maxLine = 4 << 20

// The files of a recording: what the watches saw, the audit log, the metrics, and the policy that the descheduler ran with. The
// packed ones may also lie there unpacked, without packedExt; all but the first may be missing.
const (
	traceFile   = "trace.jsonl.gz"
	auditFile   = "audit.jsonl.gz"
	scrapesFile = "scrapes.jsonl.gz"
	policyFile  = "descheduler-policy.yaml"
	packedExt   = ".gz"
)

// Open reads the recording in a folder of fsys. check, which may be nil, says what makes an object of a resource
// unreadable. Every error names the file and, where there is one, the line; a recording is taken whole or not at all.
func Open(fsys fs.FS, folder string, check func(resource string, object []byte) error) (*Recording, error) {
	r := &Recording{Name: path.Base(folder)}
	name, err := readLines(fsys, path.Join(folder, traceFile), func(number int, raw []byte) error {
		line, err := parseLine(raw, check)
		line.Number = number
		r.Lines = append(r.Lines, line)
		return err
	})
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, fmt.Errorf("read recording: %w: expected a folder with %s", err, traceFile)
	case err != nil:
		return nil, fmt.Errorf("read recording: %w", err)
	case len(r.Lines) == 0:
		return nil, fmt.Errorf("read recording: %s: no lines", name)
	}
	_, err = readLines(fsys, path.Join(folder, auditFile), func(_ int, raw []byte) error {
		line, err := parseAudit(raw)
		r.Audit = append(r.Audit, line)
		return err
	})
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("read recording: %w", err)
	}
	slices.SortStableFunc(r.Audit, func(a, b AuditLine) int { return a.At.Compare(b.At) })
	_, err = readLines(fsys, path.Join(folder, scrapesFile), func(_ int, raw []byte) error {
		line, target, err := parseScrape(raw)
		if target == deschedulerTarget {
			r.Scrapes = append(r.Scrapes, line)
		}
		return err
	})
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("read recording: %w", err)
	}
	slices.SortStableFunc(r.Scrapes, func(a, b ScrapeLine) int { return a.At.Compare(b.At) })
	r.Policy, err = fs.ReadFile(fsys, path.Join(folder, policyFile))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("read recording: %w", err)
	}
	return r, nil
}

// cutShort takes the file's name and the number of its last whole line, 0 if there is none.
const cutShort = "%s:%d: the file is cut short after this line: copy it again"

// readLines returns each line of a packed file, or of the same unpacked where that is what there is: its name is the first
// result.
func readLines(fsys fs.FS, name string, each func(number int, raw []byte) error) (string, error) {
	file, err := fsys.Open(name)
	if errors.Is(err, fs.ErrNotExist) {
		plain := name[:len(name)-len(packedExt)]
		if unpacked, plainErr := fsys.Open(plain); plainErr == nil {
			defer func() { _ = unpacked.Close() }()
			return plain, scanLines(unpacked, plain, each)
		}
	}
	if err != nil {
		return name, err
	}
	defer func() { _ = file.Close() }()
	unzipped, err := gzip.NewReader(file)
	switch {
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		return name, fmt.Errorf(cutShort, name, 0)
	case err != nil:
		return name, fmt.Errorf("%s: %w", name, err)
	}
	return name, scanLines(unzipped, name, each)
}

func scanLines(from io.Reader, name string, each func(number int, raw []byte) error) error {
	lines := bufio.NewScanner(from)
	lines.Buffer(make([]byte, 64<<10), maxLine+len("\n"))
	lines.Split(func(data []byte, atEOF bool) (int, []byte, error) {
		return bufio.ScanLines(data, atEOF && lines.Err() == nil) // what a broken file ends with is no line
	})
	last := 0
	for lines.Scan() {
		if err := each(last+1, lines.Bytes()); err != nil {
			return fmt.Errorf("%s:%d: %w", name, last+1, err)
		}
		last++
	}
	switch err := lines.Err(); {
	case errors.Is(err, io.ErrUnexpectedEOF):
		return fmt.Errorf(cutShort, name, last)
	case errors.Is(err, bufio.ErrTooLong):
		return fmt.Errorf("%s:%d: longer than %d bytes", name, last+1, maxLine)
	case err != nil:
		return fmt.Errorf("%s:%d: after this line: %w", name, last, err)
	}
	return nil
}

// parseAudit reads as much of an audit event as its delivery needs.
func parseAudit(raw []byte) (AuditLine, error) {
	var e struct {
		StageAt time.Time `json:"stageTimestamp"`
	}
	if err := json.Unmarshal(raw, &e); err != nil {
		return AuditLine{}, fmt.Errorf("bad JSON: %w", err)
	}
	if e.StageAt.IsZero() {
		return AuditLine{}, errors.New("no stageTimestamp")
	}
	return AuditLine{At: e.StageAt.UTC(), Event: bytes.Clone(raw)}, nil
}

// deschedulerTarget is the target of the scrapes that are kept. Those of others, such as virt-controller, are not needed.
const deschedulerTarget = "descheduler"

func parseScrape(raw []byte) (line ScrapeLine, target string, err error) {
	var l struct {
		T      *time.Time `json:"t"`
		Target string     `json:"target"`
		Text   *string    `json:"text"`
	}
	if err := json.Unmarshal(raw, &l); err != nil {
		return line, "", fmt.Errorf("bad JSON: %w", err)
	}
	switch {
	case l.T == nil:
		return line, "", errors.New(`no time: expected "t"`)
	case l.Target == "":
		return line, "", errors.New(`no target: expected "target"`)
	case l.Text == nil:
		return line, "", errors.New(`no text: expected "text"`)
	}
	return ScrapeLine{At: l.T.UTC(), Text: *l.Text}, l.Target, nil
}

func parseLine(raw []byte, check func(string, []byte) error) (Line, error) {
	var l struct {
		T                   *time.Time      `json:"t"`
		Resource            string          `json:"resource"`
		Kind                Kind            `json:"kind"`
		ListResourceVersion string          `json:"listResourceVersion"`
		Object              json.RawMessage `json:"object"`
	}
	if err := json.Unmarshal(raw, &l); err != nil {
		return Line{}, fmt.Errorf("bad JSON: %w", err)
	}
	switch {
	case l.T == nil:
		return Line{}, errors.New(`no time: expected "t"`)
	case l.Resource == "":
		return Line{}, errors.New(`no resource: expected "resource"`)
	case !slices.Contains(kinds, l.Kind):
		return Line{}, fmt.Errorf("unknown kind %q: expected one of %v", l.Kind, kinds)
	case l.Kind.isList() && !isVersion(l.ListResourceVersion):
		return Line{}, fmt.Errorf("listResourceVersion %q: expected a number", l.ListResourceVersion)
	}
	line := Line{At: l.T.UTC(), Resource: l.Resource, Kind: l.Kind, ListResourceVersion: l.ListResourceVersion}
	if l.Kind.isBreak() || l.Kind == KindSyncEmpty {
		return line, nil
	}
	line.Object = l.Object
	return line, line.parseObject(check)
}

// parseObject reads the names of the line's object and has it checked.
func (l *Line) parseObject(check func(string, []byte) error) error {
	var o struct {
		Metadata struct {
			Namespace       string `json:"namespace"`
			Name            string `json:"name"`
			UID             string `json:"uid"`
			ResourceVersion string `json:"resourceVersion"`
		} `json:"metadata"`
	}
	if l.Object == nil || string(l.Object) == "null" {
		return fmt.Errorf("%s without an object", l.Kind)
	}
	if err := json.Unmarshal(l.Object, &o); err != nil {
		return fmt.Errorf("object of %s: %w", l.Resource, err)
	}
	m := o.Metadata
	l.Key, l.ResourceVersion = m.Namespace+"/"+m.Name, m.ResourceVersion
	switch {
	case !isVersion(m.ResourceVersion):
		return fmt.Errorf("object %s of %s: resourceVersion %q: expected a number", l.Key, l.Resource, m.ResourceVersion)
	case l.Kind == KindBookmark:
		return nil
	case m.Name == "" || m.UID == "":
		return fmt.Errorf("object %s of %s without a name or uid", l.Key, l.Resource)
	case check == nil:
		return nil
	}
	return check(l.Resource, l.Object)
}
