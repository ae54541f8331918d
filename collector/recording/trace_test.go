package recording

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/stretchr/testify/require"
)

func TestOpenReadsAFileThatIsNotCompressed(t *testing.T) {
	t.Parallel()
	later, sooner := good, strings.Replace(good, "T00:", "T23:", 1)
	fsys := fstest.MapFS{"rec/trace.jsonl": {Data: []byte(sooner + "\n" + later)}}
	rec, err := Open(fsys, "rec", nil)
	require.NoError(t, err)
	require.Equal(t, []int{23, 0}, []int{rec.Start().Hour(), rec.End().Hour()}, "in the order of the file, not of time")

	fsys["rec/trace.jsonl"].Data = []byte(good + "\n{")
	_, err = Open(fsys, "rec", nil)
	require.ErrorContains(t, err, "read recording: rec/trace.jsonl:2: bad JSON")
}

func TestOpenRefusesWhatIsNoObject(t *testing.T) {
	t.Parallel()
	object := good[strings.Index(good, `{"metadata"`) : len(good)-1]
	for instead, want := range map[string]string{
		"null": "SYNC without an object",
		"[]":   "object of nodes: json: cannot unmarshal array",
		`{"metadata":{"uid":"u1","resourceVersion":"3"}}`: "object / of nodes without a name or uid",
	} {
		_, err := Open(zipRecording(t, good, strings.Replace(good, object, instead, 1)), "rec", nil)
		require.ErrorContains(t, err, "rec/trace.jsonl.gz:2: "+want)
	}
}

// Wherever the file ends, the last whole line is named; what is left of the next is not taken for a line.
func TestOpenNamesTheLastWholeLineOfACutFile(t *testing.T) {
	t.Parallel()
	var all []string
	for i := range 500 {
		all = append(all, strings.Replace(good, "n1", fmt.Sprintf("n%d", i*7919%500), 1))
	}
	fsys := zipRecording(t, all...)
	whole := fsys["rec/trace.jsonl.gz"].Data
	for cut := 0; cut < len(whole); cut += 83 {
		last := 0
		if unzipped, err := gzip.NewReader(bytes.NewReader(whole[:cut])); err == nil {
			var readable bytes.Buffer
			_, _ = readable.ReadFrom(unzipped)
			last = bytes.Count(readable.Bytes(), []byte("\n"))
		}
		fsys["rec/trace.jsonl.gz"].Data = whole[:cut]
		_, err := Open(fsys, "rec", nil)
		require.EqualError(t, err, fmt.Sprintf("read recording: rec/trace.jsonl.gz:%d: the file is cut short after this line: copy it again", last))
	}
}

func TestOpenRefusesDamagedAndEmptyFiles(t *testing.T) {
	t.Parallel()
	fsys := zipRecording(t, good, good)
	data := fsys["rec/trace.jsonl.gz"].Data
	data[len(data)-8]++ // the checksum
	_, err := Open(fsys, "rec", nil)
	require.ErrorIs(t, err, gzip.ErrChecksum)
	require.ErrorContains(t, err, "rec/trace.jsonl.gz:2: after this line")

	_, err = Open(fstest.MapFS{"rec/trace.jsonl": {}}, "rec", nil)
	require.EqualError(t, err, "read recording: rec/trace.jsonl: no lines")
}

func TestOpenTakesLinesUpToTheBound(t *testing.T) {
	t.Parallel()
	long := func(size int) string {
		return strings.Replace(good, "n1", strings.Repeat("n", size-len(good)+len("n1")), 1)
	}
	rec, err := Open(zipRecording(t, good, long(maxLine), good), "rec", nil)
	require.NoError(t, err)
	require.Len(t, rec.Lines, 3)
	_, err = Open(zipRecording(t, good, long(maxLine+1)), "rec", nil)
	require.EqualError(t, err, "read recording: rec/trace.jsonl.gz:2: longer than 4194304 bytes")
}

func TestLineTimes(t *testing.T) {
	t.Parallel()
	rec, err := Open(zipRecording(t, renderLines("SYNC a 1", "WATCH_CLOSED", "BOOKMARK - 3")...), "rec", nil)
	require.NoError(t, err)
	require.Equal(t, time.Date(2026, 11, 21, 0, 0, 0, 0, time.UTC), rec.Start())
	require.Equal(t, 2*time.Second, rec.End().Sub(rec.Start()))
}
