package recording

import (
	"bytes"
	"compress/gzip"
	"errors"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/stretchr/testify/require"
)

// zipRecording returns a recording folder "rec" with these lines.
func zipRecording(t *testing.T, lines ...string) fstest.MapFS {
	t.Helper()
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	_, err := z.Write([]byte(strings.Join(lines, "\n") + "\n"))
	require.NoError(t, err)
	require.NoError(t, z.Close())
	return fstest.MapFS{"rec/trace.jsonl.gz": {Data: b.Bytes()}}
}

const good = `{"t":"2026-11-21T00:00:00Z","resource":"nodes","kind":"SYNC","listResourceVersion":"5","object":{"metadata":{"name":"n1","uid":"u1","resourceVersion":"3"}}}`

func TestOpen(t *testing.T) {
	t.Parallel()
	fsys := zipRecording(t, good, strings.Replace(good, `"kind":"SYNC","listResourceVersion":"5"`, `"kind":"MODIFIED"`, 1))
	fsys["rec/descheduler-policy.yaml"] = &fstest.MapFile{Data: []byte("a: b")}
	rec, err := Open(fsys, "rec", nil)
	require.NoError(t, err)
	require.Equal(t, "rec", rec.Name)
	require.Len(t, rec.Lines, 2)
	require.Equal(t, "/n1", rec.Lines[1].Key)
	require.Equal(t, []byte("a: b"), rec.Policy)
}

func TestOpenSaysWhatIsWrongAndWhere(t *testing.T) {
	t.Parallel()
	change := func(old, text string) string { return strings.Replace(good, old, text, 1) }
	for _, c := range []struct{ name, line, want string }{
		{"bad JSON", `{"t":`, "rec/trace.jsonl.gz:2: bad JSON"},
		{"no time", change(`"t":"2026-11-21T00:00:00Z",`, ""), `rec/trace.jsonl.gz:2: no time`},
		{"no resource", change(`"resource":"nodes",`, ""), "rec/trace.jsonl.gz:2: no resource"},
		{"unknown kind", change("SYNC", "TELEPORTED"), `rec/trace.jsonl.gz:2: unknown kind "TELEPORTED": expected one of [SYNC`},
		{"list without a version", change(`"listResourceVersion":"5",`, ""), "rec/trace.jsonl.gz:2: listResourceVersion"},
		{"no object", change(`,"object":{"metadata":{"name":"n1","uid":"u1","resourceVersion":"3"}}`, ""), "rec/trace.jsonl.gz:2: SYNC without an object"},
		{"no uid", change(`"uid":"u1",`, ""), "rec/trace.jsonl.gz:2: object /n1 of nodes without a name or uid"},
		{"no resourceVersion", change(`"resourceVersion":"3"`, `"x":1`), `rec/trace.jsonl.gz:2: object /n1 of nodes: resourceVersion ""`},
		{"refused by the check", change("n1", "bad"), "rec/trace.jsonl.gz:2: nothing good"},
		{"line too long", change("n1", strings.Repeat("n", maxLine)), "rec/trace.jsonl.gz:2: longer than"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			_, err := Open(zipRecording(t, good, c.line), "rec", func(_ string, object []byte) error {
				if bytes.Contains(object, []byte("bad")) {
					return errors.New("nothing good")
				}
				return nil
			})
			require.ErrorContains(t, err, c.want)
		})
	}
}

func TestOpenOfACutFile(t *testing.T) {
	t.Parallel()
	fsys := zipRecording(t, good, good, good, strings.Replace(good, "n1", strings.Repeat("x1", 300), 1))
	whole := fsys["rec/trace.jsonl.gz"].Data
	fsys["rec/trace.jsonl.gz"].Data = whole[:len(whole)-12]
	_, err := Open(fsys, "rec", nil)
	require.ErrorContains(t, err, "the file is cut short after this line")
	require.ErrorContains(t, err, "rec/trace.jsonl.gz:")

	fsys["rec/trace.jsonl.gz"].Data = []byte("not zipped")
	_, err = Open(fsys, "rec", nil)
	require.ErrorContains(t, err, "rec/trace.jsonl.gz: gzip")

	_, err = Open(fsys, "other", nil)
	require.ErrorContains(t, err, "expected a folder with trace.jsonl.gz")
}

// addScrapes adds scrapes to a recording folder.
func addScrapes(fsys fstest.MapFS, lines ...string) fstest.MapFS {
	fsys["rec/scrapes.jsonl"] = &fstest.MapFile{Data: []byte(strings.Join(lines, "\n") + "\n")}
	return fsys
}

func TestOpenReadsScrapes(t *testing.T) {
	t.Parallel()
	rec, err := Open(addScrapes(zipRecording(t, good),
		`{"t":"2026-11-21T00:01:00Z","target":"descheduler","text":"b 2\n"}`,
		`{"t":"2026-11-21T00:00:30Z","target":"virt-controller","text":"x 1\n"}`,
		`{"t":"2026-11-21T00:00:30Z","target":"descheduler","text":"a 1\n"}`), "rec", nil)
	require.NoError(t, err)
	require.Equal(t, []ScrapeLine{{rec.Start().Add(30 * time.Second), "a 1\n"}, {rec.Start().Add(time.Minute), "b 2\n"}}, rec.Scrapes)

	const line = `{"t":"2026-11-21T00:01:00Z","target":"descheduler","text":"a 1\n"}`
	for _, c := range []struct{ name, line, want string }{
		{"bad JSON", `{"t":`, "bad JSON"},
		{"no time", strings.Replace(line, `"t"`, `"x"`, 1), `no time: expected "t"`},
		{"no target", strings.Replace(line, `"target"`, `"x"`, 1), `no target: expected "target"`},
		{"no text", strings.Replace(line, `"text"`, `"x"`, 1), `no text: expected "text"`},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			_, err := Open(addScrapes(zipRecording(t, good), line, c.line), "rec", nil)
			require.ErrorContains(t, err, "rec/scrapes.jsonl:2: "+c.want)
		})
	}
}
