package collector

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	jsonv2 "github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/evictrail/evictrail/trail"
	"github.com/evictrail/evictrail/trail/tracker"
)

// AuditReport counts what a reading of audit events came to.
type AuditReport struct {
	Lines   int    `json:"lines"`
	Taken   int    `json:"taken"`   // events about evictions and migrations
	Skipped int    `json:"skipped"` // events about something else
	Refused int    `json:"refused"` // lines and events that cannot be used
	First   string `json:"first_refused,omitempty"`
}

// Events counts the events that were read.
func (r *AuditReport) Events() int { return r.Taken + r.Skipped + r.Refused }

func (r *AuditReport) addRefused(where string, err error) {
	r.Refused++
	if r.First == "" {
		r.First = fmt.Sprintf("%s: %v", where, clipError(err))
	}
}

// MaxAudit bounds a body of audit events and a line of an audit log, in bytes, unpacked.
//
// Source: kube-apiserver --audit-webhook-truncate-max-batch-size, 10 MiB.
const MaxAudit = 10 << 20

// maxEvents bounds the events of a body and of a list, usable or not: each costs time, and a number in a list has two bytes. 10 MiB of events that an API server sends
// are some 20,000.
const maxEvents = 50_000

// ErrTooLarge says that audit events are more, or unpack to more, than the reader allows.
var ErrTooLarge = errors.New("too large")

// AuditReader reads audit events: an EventList as a kube-apiserver sends it, an array of events, or an audit log with one
// event a line, plain or gzip.
type AuditReader struct {
	Now   time.Time           // events more than a day later are refused
	Limit int64               // of unpacked bytes of a body, which has at most maxEvents; 0: it is a log, without an end
	Take  func(Request) error // is given each event that matters; its error ends the reading

	keep func(*slimAudit) error // where set, is given the events instead
}

// Request is a request without how it was seen.
type Request func(tracker.Seen) tracker.RequestObservation

// Read reads to the end. What cannot be used is counted and left out; the error is that of Take or of a stream that
// breaks off, and what was read before counts all the same.
func (a AuditReader) Read(in io.Reader) (AuditReport, error) {
	var report AuditReport
	plain, err := unpackGzip(in)
	if err != nil {
		return report, err
	}
	if a.Limit > 0 {
		plain = &limited{plain, a.Limit}
	}
	lines := &lineReader{in: bufio.NewReaderSize(plain, 256<<10)}
	first, err := lines.nextLine()
	if err == nil && first != nil && !json.Valid(first) {
		if document, whole := lines.readDocument(first); whole {
			report.Lines = 1
			return report, a.readLine(document, &report)
		}
	}
	for ; err == nil; first, err = lines.nextLine() {
		if a.Limit > 0 && report.Events() >= maxEvents {
			return report, errTooMany
		}
		report.Lines++
		if takeErr := a.readLine(first, &report); takeErr != nil {
			return report, takeErr
		}
	}
	switch {
	case errors.Is(err, io.EOF):
		return report, nil
	case errors.Is(err, ErrTooLarge):
		return report, fmt.Errorf("audit events: %w: at most %d bytes", err, a.Limit)
	}
	return report, fmt.Errorf("audit events are cut short after line %d, what was before is taken: %w", report.Lines, err)
}

// unpackGzip reads gzip where the first bytes say so.
func unpackGzip(in io.Reader) (io.Reader, error) {
	b := bufio.NewReader(in)
	magic, err := b.Peek(2)
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, fmt.Errorf("read audit events: %w", err)
	}
	if !bytes.Equal(magic, []byte{0x1f, 0x8b}) {
		return b, nil
	}
	z, err := gzip.NewReader(b)
	if err != nil {
		return nil, fmt.Errorf("read audit events: bad gzip: %w", err)
	}
	return z, nil
}

// limited fails where a reader returns more bytes than allowed.
type limited struct {
	in   io.Reader
	left int64
}

func (l *limited) Read(p []byte) (int, error) {
	n, err := l.in.Read(p)
	if l.left -= int64(n); l.left < 0 {
		return 0, ErrTooLarge
	}
	return n, err
}

// lineReader cuts a stream into lines. A line longer than MaxAudit comes as nil, and is not held.
type lineReader struct {
	in  *bufio.Reader
	buf []byte
}

// nextLine returns the next line that is not empty; it is valid until the call after. The last line may lack its end.
func (l *lineReader) nextLine() ([]byte, error) {
	for {
		l.buf = l.buf[:0]
		tooLong, err := l.fillLine()
		line := bytes.TrimSpace(l.buf)
		switch {
		case err != nil && (!errors.Is(err, io.EOF) || len(line) == 0 && !tooLong):
			return nil, err
		case tooLong:
			return nil, nil
		case len(line) > 0:
			return line, nil
		}
	}
}

func (l *lineReader) fillLine() (tooLong bool, err error) {
	for {
		part, err := l.in.ReadSlice('\n')
		if !tooLong {
			l.buf = append(l.buf, part...)
		}
		if len(l.buf) > MaxAudit {
			tooLong, l.buf = true, l.buf[:0]
		}
		if !errors.Is(err, bufio.ErrBufferFull) {
			return tooLong, err
		}
	}
}

// readDocument returns the whole stream where it is one JSON document over several lines. Where it is not, the stream stands
// as if it had not been looked at.
func (l *lineReader) readDocument(first []byte) ([]byte, bool) {
	all := bytes.NewBuffer(append(slices.Clone(first), '\n'))
	_, err := io.Copy(all, io.LimitReader(l.in, MaxAudit))
	if err == nil && all.Len() <= MaxAudit && json.Valid(all.Bytes()) {
		return all.Bytes(), true
	}
	rest := all.Bytes()[len(first)+1:]
	l.in = bufio.NewReaderSize(io.MultiReader(bytes.NewReader(rest), failing{err}, l.in), 256<<10)
	return nil, false
}

// failing returns an error, where there is one.
type failing struct{ err error }

func (f failing) Read([]byte) (int, error) {
	if f.err != nil {
		return 0, f.err
	}
	return 0, io.EOF
}

var (
	errTooLong = fmt.Errorf("longer than %d bytes", MaxAudit)
	errTooMany = fmt.Errorf("audit events: %w: more than %d at once", ErrTooLarge, maxEvents)
)

// readLine takes one line: an event, a list of events, or an array of events. It is not empty; nil is one that was too long.
func (a AuditReader) readLine(raw []byte, report *AuditReport) error {
	where := fmt.Sprintf("line %d", report.Lines)
	if raw == nil {
		report.addRefused(where, errTooLong)
		return nil
	}
	if raw[0] == '[' { // as some log forwarders send them
		return a.readList(raw, where, report, decodeItems)
	}
	var e slimAudit
	err := jsonv2.Unmarshal(raw, &e, lenient)
	if err == nil && e.Kind == "EventList" {
		return a.readList(raw, where, report, func(d *jsontext.Decoder, take func([]byte) error) error {
			_, err := decodeListFrom(d, take)
			return err
		})
	}
	switch {
	case err != nil:
		err = fmt.Errorf("bad JSON: %w", err)
	case !strings.HasPrefix(e.APIVersion, "audit.k8s.io/") || e.Kind != "Event":
		err = fmt.Errorf("apiVersion %q, kind %q: expected an Event or EventList of audit.k8s.io", trail.ClipText(e.APIVersion, 60), trail.ClipText(e.Kind, 60))
	default:
		return a.readEvent(&e, where, report)
	}
	report.addRefused(where, err)
	return nil
}

// readList takes the events of a list one by one, as decode reads them. A list that is no JSON to its end is refused as a whole, one of too many events from there on.
func (a AuditReader) readList(raw []byte, where string, report *AuditReport, decode func(*jsontext.Decoder, func([]byte) error) error) error {
	if !jsontext.Value(raw).IsValid(lenient) {
		report.addRefused(where, errors.New("bad JSON"))
		return nil
	}
	n, ended := 0, error(nil)
	err := decode(jsontext.NewDecoder(bytes.NewBuffer(raw), lenient), func(item []byte) error {
		if n++; n > maxEvents {
			return errTooMany
		}
		var e slimAudit
		at := where
		if report.First == "" { // only the first refusal is shown: there may be millions
			at = fmt.Sprintf("%s, item %d", where, n)
		}
		if err := jsonv2.Unmarshal(item, &e, lenient); err != nil {
			report.addRefused(at, fmt.Errorf("bad JSON: %w", err))
			return nil
		}
		ended = a.readEvent(&e, at, report)
		return ended
	})
	switch {
	case ended != nil:
		return ended
	case err == nil:
	case !errors.Is(err, errTooMany):
		report.addRefused(where, fmt.Errorf("bad JSON: %w", err))
	case a.Limit > 0:
		return errTooMany
	default:
		report.addRefused(where, errTooMany)
	}
	return nil
}

// readEvent takes, skips or refuses one event.
func (a AuditReader) readEvent(e *slimAudit, where string, report *AuditReport) error {
	action, matters := e.classifyAction()
	if !matters {
		report.Skipped++
		return nil
	}
	if err := e.checkEvent(a.Now); err != nil {
		report.addRefused(where, err)
		return nil
	}
	report.Taken++
	if a.keep != nil {
		return a.keep(e)
	}
	return a.Take(e.newRequest(action))
}
