package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/evictrail/evictrail/store"
	"github.com/evictrail/evictrail/store/storetest"
	"github.com/evictrail/evictrail/trail"
)

// writeFactsBehind writes the facts behind an answer into a file, as a support bundle has them.
func writeFactsBehind(t *testing.T, facts []trail.Fact) string {
	t.Helper()
	var out bytes.Buffer
	for _, f := range facts {
		text, err := trail.WriteFact(f)
		require.NoError(t, err)
		out.Write(append(text, '\n'))
	}
	path := filepath.Join(t.TempDir(), "facts.jsonl")
	require.NoError(t, os.WriteFile(path, out.Bytes(), 0o600))
	return path
}

// TestFactsOfAnIncidentLeadToItsAnswer plays the facts behind answers about the VMs of all recordings, each into a database that has nothing else, and asks again.
func TestFactsOfAnIncidentLeadToItsAnswer(t *testing.T) {
	t.Parallel()
	storetest.SkipInShort(t)
	asked := 0
	for _, name := range listRecordings(t) {
		from, err := store.Open(t.Context(), playedURL(t, name), "")
		require.NoError(t, err)
		t.Cleanup(from.Close)
		vms, err := from.Names(t.Context(), trail.NameQuery{Kind: trail.NameVM, Cluster: name})
		require.NoError(t, err)
		for i, vm := range vms {
			if i%7 != 0 {
				continue
			}
			namespace, its, _ := strings.Cut(vm, "/")
			q := trail.Question{Cluster: name, Of: trail.VMISubject(namespace, its)}
			want, err := from.Why(t.Context(), q)
			require.NoError(t, err, vm)
			facts, err := from.FactsBehind(t.Context(), q)
			require.NoError(t, err, vm)
			require.NotEmpty(t, facts)
			url := storetest.NewURL(t)
			code, out, stderr := runCommand(t, "play", writeFactsBehind(t, facts), "--cluster", name, "--database-url", url)
			require.Equal(t, exitFound, code, stderr)
			require.Contains(t, out, " facts into cluster "+name+" in ")
			into, err := store.Open(t.Context(), url, "")
			require.NoError(t, err)
			q.At = want.AsOf
			got, err := into.Why(t.Context(), q)
			require.NoError(t, err, vm)
			require.Equal(t, want.Paragraph, got.Paragraph, "%s of %s", vm, name)
			require.Equal(t, want.Advice, got.Advice, "%s of %s", vm, name)
			require.Equal(t, want.Evidence, got.Evidence, "%s of %s", vm, name)
			into.Close()
			asked++
		}
	}
	require.Greater(t, asked, 10)
}

func TestPlayRefusesWhatAreNoFacts(t *testing.T) {
	t.Parallel()
	fact, err := trail.WriteFact(trail.Fact{Kind: trail.KindEvacuationMarked, Subject: trail.VMISubject("shop", "db-1"), ObservedAt: time.Unix(1, 0)})
	require.NoError(t, err)
	for text, want := range map[string]string{
		"":                               "there are no facts in it",
		string(fact) + "\n{\"id\": 3}\n": "line 2: read fact: ",
		"not JSON\n":                     "expected facts as in vm/facts.jsonl of a support bundle",
	} {
		path := writeText(t, "facts.jsonl", text)
		code, _, stderr := runCommand(t, "play", path, "--database-url", "postgres:///none")
		require.Equal(t, exitError, code)
		require.Contains(t, stderr, want)
		require.Contains(t, stderr, path)
	}
	code, _, stderr := runCommand(t, "play", writeText(t, "facts.jsonl", string(fact)), "--cut-every", "3")
	require.Equal(t, exitUsage, code)
	require.Contains(t, stderr, "cut-every has no meaning for a file of facts")
}
