package bundle

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"
)

// Part is a file of the archive.
type Part struct {
	File  string                                 // with slashes
	About string                                 // what it is, for README.txt
	Write func(context.Context, io.Writer) error // what it wrote before an error stays, if it is anything
}

// ErrLeftOut is wrapped by errors of parts that were not asked for: these are no failure.
var ErrLeftOut = errors.New("not asked for")

// Options say how parts are collected.
type Options struct {
	Name     string              // the folder in which the files are
	Made     time.Time           // UTC
	Timeout  time.Duration       // of each part
	Mask     func(string) string // hides secrets
	Notes    string              // the last section of README.txt
	Progress func(Part, error)   // called after each part; the error is masked
}

// Bundle is an archive that is to be written.
type Bundle struct {
	name  string
	made  time.Time
	files []file
}

type file struct {
	name string
	text []byte
}

// Names of the files that are made here.
const (
	readmeName = "README.txt"
	sumsName   = "sha256sums.txt"
)

// Collect has all parts written, one after the other. Its error says that there is none, or is that of ctx: those of
// parts stand in README.txt.
func Collect(ctx context.Context, parts []Part, o Options) (*Bundle, error) {
	b := &Bundle{name: o.Name, made: o.Made}
	var has, problems []string
	for _, p := range parts {
		text, err := collectPart(ctx, p, o)
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		if len(text) > 0 {
			b.files = append(b.files, file{p.File, text})
			has = append(has, formatFile(p.File, p.About))
		}
		if err != nil {
			verdict := "left out: "
			if len(text) > 0 {
				verdict = "is there, but: "
			}
			problems = append(problems, p.File+": "+verdict+strings.TrimSpace(err.Error()))
		}
		o.Progress(p, err)
	}
	if len(b.files) == 0 {
		return nil, errors.New("nothing could be collected: " + strings.Join(problems, "; "))
	}
	readme := file{readmeName, []byte(renderReadme(o, has, problems))}
	b.files = append([]file{readme}, b.files...)
	b.files = append(b.files, file{sumsName, b.sumFiles()})
	return b, nil
}

// collectPart returns what a part wrote, and its error, without secrets.
func collectPart(ctx context.Context, p Part, o Options) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, o.Timeout)
	defer cancel()
	var out bytes.Buffer
	err := p.Write(ctx, &out)
	if err != nil {
		err = maskedError{o.Mask(err.Error()), err}
	}
	return []byte(o.Mask(out.String())), err
}

// maskedError is an error whose text has no secrets.
type maskedError struct {
	text string
	err  error
}

func (e maskedError) Error() string { return e.text }
func (e maskedError) Unwrap() error { return e.err }

// formatFile returns the line of a file in README.txt.
func formatFile(name, about string) string { return fmt.Sprintf("%-18s  %s", name, about) }

func renderReadme(o Options, has, problems []string) string {
	has = append(has, formatFile(sumsName, "checks the files: sha256sum -c "+sumsName))
	sections := []string{
		"Support bundle of evictrail, made at " + o.Made.Format(time.RFC3339) + ".",
		"What is in it:\n  " + strings.Join(has, "\n  "),
	}
	if len(problems) > 0 {
		lines := strings.ReplaceAll(strings.Join(problems, "\n"), "\n", "\n  ")
		sections = append(sections, "What was left out, and why:\n  "+lines)
	}
	return strings.Join(append(sections, strings.TrimSpace(o.Notes)), "\n\n") + "\n"
}

// sumFiles returns the digests of all files, as sha256sum writes them.
func (b *Bundle) sumFiles() []byte {
	var out bytes.Buffer
	for _, f := range b.files {
		fmt.Fprintf(&out, "%x  %s\n", sha256.Sum256(f.text), f.name)
	}
	return out.Bytes()
}

// Write writes the archive, a tar that is compressed with gzip.
func (b *Bundle) Write(out io.Writer) error {
	compressed := gzip.NewWriter(out)
	archive := tar.NewWriter(compressed)
	for _, f := range b.files {
		h := &tar.Header{
			Name: b.name + "/" + f.name, Mode: 0o600, Size: int64(len(f.text)), ModTime: b.made, Format: tar.FormatPAX,
		}
		if err := archive.WriteHeader(h); err != nil {
			return fmt.Errorf("write %s: %w", f.name, err)
		}
		if _, err := archive.Write(f.text); err != nil {
			return fmt.Errorf("write %s: %w", f.name, err)
		}
	}
	return errors.Join(archive.Close(), compressed.Close())
}
