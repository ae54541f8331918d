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
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// readArchive returns the texts of the files of an archive.
func readArchive(t *testing.T, from io.Reader) map[string]string {
	t.Helper()
	compressed, err := gzip.NewReader(from)
	require.NoError(t, err)
	archive, files := tar.NewReader(compressed), map[string]string{}
	for {
		h, err := archive.Next()
		if errors.Is(err, io.EOF) {
			return files
		}
		require.NoError(t, err)
		require.Equal(t, int64(0o600), h.Mode)
		text, err := io.ReadAll(archive)
		require.NoError(t, err)
		files[h.Name] = string(text)
	}
}

// TestPartsFailAlone: a part that fails, hangs or stops on the way leaves the others, and README.txt says why, without
// secrets.
func TestPartsFailAlone(t *testing.T) {
	t.Parallel()
	write := func(text string, err error) func(context.Context, io.Writer) error {
		return func(_ context.Context, out io.Writer) error {
			_, _ = io.WriteString(out, text)
			return err
		}
	}
	var progress []string
	b, err := Collect(t.Context(), []Part{
		{"a.txt", "all of it", write("one canary\n", nil)},
		{"b.txt", "the beginning", write("two\n", errors.New("stopped at canary"))},
		{"c.txt", "nothing", write("", fmt.Errorf("%w: say --c", ErrLeftOut))},
		{"d.txt", "for ever", func(ctx context.Context, _ io.Writer) error { <-ctx.Done(); return ctx.Err() }},
	}, Options{
		Name: "x", Made: time.Date(2026, 11, 28, 12, 0, 0, 0, time.UTC), Timeout: 50 * time.Millisecond, Notes: "\nLook.\n",
		Mask: func(text string) string { return strings.ReplaceAll(text, "canary", "xxxxx") },
		Progress: func(p Part, err error) {
			progress = append(progress, fmt.Sprint(p.File, " ", err, " ", errors.Is(err, ErrLeftOut)))
		},
	})
	require.NoError(t, err)
	var out bytes.Buffer
	require.NoError(t, b.Write(&out))
	files := readArchive(t, &out)
	require.Equal(t, "one xxxxx\n", files["x/a.txt"])
	require.Equal(t, "two\n", files["x/b.txt"])
	require.Equal(t, `Support bundle of evictrail, made at 2026-11-28T12:00:00Z.

What is in it:
  a.txt               all of it
  b.txt               the beginning
  sha256sums.txt      checks the files: sha256sum -c sha256sums.txt

What was left out, and why:
  b.txt: is there, but: stopped at xxxxx
  c.txt: left out: not asked for: say --c
  d.txt: left out: context deadline exceeded

Look.
`, files["x/README.txt"])
	sums := ""
	for _, name := range []string{"README.txt", "a.txt", "b.txt"} {
		sums += fmt.Sprintf("%x  %s\n", sha256.Sum256([]byte(files["x/"+name])), name)
	}
	require.Equal(t, sums, files["x/sha256sums.txt"])
	require.Len(t, files, 4)
	require.Equal(t, []string{
		"a.txt <nil> false", "b.txt stopped at xxxxx false", "c.txt not asked for: say --c true",
		"d.txt context deadline exceeded false",
	}, progress)
}

// TestNothingCollected is an error, as is what was interrupted.
func TestNothingCollected(t *testing.T) {
	t.Parallel()
	o := Options{Timeout: time.Minute, Mask: func(text string) string { return text }, Progress: func(Part, error) {}}
	fails := Part{"a.txt", "", func(context.Context, io.Writer) error { return errors.New("no") }}
	_, err := Collect(t.Context(), []Part{fails}, o)
	require.EqualError(t, err, "nothing could be collected: a.txt: left out: no")
	ctx, cancel := context.WithCancel(t.Context())
	cancels := Part{"b.txt", "", func(_ context.Context, out io.Writer) error {
		cancel()
		_, err := io.WriteString(out, "b")
		return err
	}}
	_, err = Collect(ctx, []Part{cancels, fails}, o)
	require.ErrorIs(t, err, context.Canceled)
}

// TestReadTail reads files and pipes that are shorter, longer, and without an end of line.
func TestReadTail(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		text, want  string
		lines, size int
	}{
		"short":               {"a\nb\n", "a\nb\n", 5, 100},
		"nothing":             {"", "", 5, 100},
		"last lines":          {"a\nb\nc\nd\n", "c\nd\n", 2, 100},
		"no end of line":      {"a\nb\nc", "b\nc", 2, 100},
		"last bytes":          {"first\nsecond\nthird\n", "third\n", 5, 10},
		"at the end of one":   {"first\nsecond\nthird\n", "second\nthird\n", 5, 13},
		"one line too long":   {strings.Repeat("x", 50) + "\n", "", 5, 10},
		"much more than that": {strings.Repeat("line\n", 100_000) + "last\n", "line\nlast\n", 2, 1000},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			path := filepath.Join(t.TempDir(), "log")
			require.NoError(t, os.WriteFile(path, []byte(c.text), 0o600))
			f, err := os.Open(path)
			require.NoError(t, err)
			defer func() { require.NoError(t, f.Close()) }()
			for _, from := range []io.Reader{f, strings.NewReader(c.text)} {
				got, err := ReadTail(from, c.lines, c.size)
				require.NoError(t, err)
				require.Equal(t, c.want, string(got))
			}
		})
	}
}
