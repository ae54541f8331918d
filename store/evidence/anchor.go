package evidence

import (
	"bufio"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"time"
)

// Anchor is a line of an anchor file: a link as it was sealed, without its salt.
type Anchor struct {
	Cluster  string    `json:"cluster"`
	Day      string    `json:"day"`   // 2026-11-20
	Month    string    `json:"month"` // 2026-11
	Last     int64     `json:"last_seq"`
	Facts    int64     `json:"facts"`
	Digest   string    `json:"digest"` // hexadecimal
	SealedAt time.Time `json:"sealed_at"`
}

// NewAnchor returns the anchor of a link.
func NewAnchor(l Link) Anchor {
	return Anchor{
		Cluster: l.Cluster, Day: l.Day.Format(time.DateOnly), Month: l.Month.Format("2006-01"), Last: l.Last, Facts: l.Facts,
		Digest: hex.EncodeToString(l.Digest), SealedAt: l.SealedAt.UTC(),
	}
}

// ReadAnchors reads the lines of an anchor file. A last line without an end was not written whole, and is left out.
// torn reports whether there is one. Another line that cannot be read is an error: nobody but evictrail writes to the
// file.
func ReadAnchors(in io.Reader) (anchors []Anchor, torn bool, err error) {
	lines := bufio.NewReader(in)
	for n := 1; ; n++ {
		line, err := lines.ReadBytes('\n')
		if errors.Is(err, io.EOF) {
			return anchors, len(line) > 0, nil
		}
		if err != nil {
			return anchors, false, err
		}
		var a Anchor
		if err := json.Unmarshal(line, &a); err != nil {
			return anchors, false, fmt.Errorf("line %d: %w", n, err)
		}
		anchors = append(anchors, a)
	}
}

// AnchorFile is a file to which links are appended, each once. It is not safe for concurrent use.
type AnchorFile struct {
	file  *os.File
	known map[string]bool // digests that it has
}

// OpenAnchorFile opens the file, which it makes where there is none. What a crash left of a line is cut off.
func OpenAnchorFile(path string) (*AnchorFile, error) {
	file, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|os.O_APPEND, 0o600)
	if err != nil {
		return nil, fmt.Errorf("open anchor file: %w", err)
	}
	f := &AnchorFile{file: file, known: map[string]bool{}}
	anchors, torn, err := ReadAnchors(file)
	if err == nil && torn {
		err = f.cutTornLine()
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("read anchor file %s: %w", path, err), file.Close())
	}
	for _, a := range anchors {
		f.known[a.Digest] = true
	}
	return f, nil
}

// CheckAnchorFile returns why OpenAnchorFile would fail. It leaves the file as it is, or away: it may be that of another process.
func CheckAnchorFile(path string) error {
	file, err := os.OpenFile(path, os.O_RDWR|os.O_APPEND, 0)
	if errors.Is(err, fs.ErrNotExist) {
		file, err = os.CreateTemp(filepath.Dir(path), ".anchor-*")
		if err == nil {
			defer func() { _ = os.Remove(file.Name()) }()
		}
	}
	if err != nil {
		return fmt.Errorf("open anchor file: %w", err)
	}
	if _, _, err = ReadAnchors(file); err != nil {
		err = fmt.Errorf("read anchor file %s: %w", path, err)
	}
	return errors.Join(err, file.Close())
}

// cutTornLine cuts off what follows the last end of a line.
func (f *AnchorFile) cutTornLine() error {
	if _, err := f.file.Seek(0, io.SeekStart); err != nil {
		return err
	}
	all, err := io.ReadAll(f.file)
	if err != nil {
		return err
	}
	end := len(all)
	for end > 0 && all[end-1] != '\n' {
		end--
	}
	return f.file.Truncate(int64(end))
}

// Append adds a line for each of the links that the file does not have yet, in their order, and returns when they are
// on disk. It returns how many it added.
func (f *AnchorFile) Append(links []Link) (int, error) {
	var lines []byte
	var added []string
	for _, l := range links {
		a := NewAnchor(l)
		if f.known[a.Digest] {
			continue
		}
		line, err := json.Marshal(a)
		if err != nil {
			return 0, err
		}
		lines, added = append(append(lines, line...), '\n'), append(added, a.Digest)
	}
	if len(added) == 0 {
		return 0, nil
	}
	before, err := f.file.Seek(0, io.SeekEnd)
	if err == nil {
		_, err = f.file.Write(lines)
		if err == nil {
			err = f.file.Sync()
		}
		if err != nil { // what is there of a line would stand before the next one
			err = errors.Join(err, f.file.Truncate(before))
		}
	}
	if err != nil {
		return 0, fmt.Errorf("append to anchor file: %w", err)
	}
	for _, digest := range added {
		f.known[digest] = true
	}
	return len(added), nil
}

// Close closes the file.
func (f *AnchorFile) Close() error { return f.file.Close() }
