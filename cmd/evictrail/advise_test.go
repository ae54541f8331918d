package main

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/evictrail/evictrail/store/storetest"
	"github.com/evictrail/evictrail/trail/whatif"
)

// TestAdvise cuts a recording of some minutes in two: the first half is the last minutes of a week, the second the
// first ones of the next.
func TestAdvise(t *testing.T) {
	t.Parallel()
	storetest.SkipInShort(t)
	url := playedURL(t, "g-churn-cooldown", "c-node-drain")
	server := serveAPI(t, url)
	question := []string{"advise", "--cluster", "g-churn-cooldown", "--until", "2026-11-28T00:38:30Z", "--weeks",
		"1", "--learn", "1", "--sweep", "base=30s..10m"}
	ask := func(way string, more ...string) (out string) {
		t.Helper()
		code, out, stderr := runCommand(t, append(append(question[:len(question):len(question)], more...), way)...)
		require.Equal(t, exitFound, code, stderr)
		return out
	}
	database, remote := "--database-url="+url, "--server="+server
	require.Equal(t, ask(database), ask(remote))
	text := ask(database, "-o", "json")
	require.Equal(t, text, ask(remote, "-o", "json"))

	var a whatif.Advice
	require.NoError(t, json.Unmarshal([]byte(text), &a))
	require.Len(t, a.Weeks, 1)
	require.Positive(t, a.Weeks[0].Migrations)
	// The halves are those that whatif replays.
	for _, half := range []struct {
		since, until string
		migrations   int
	}{{"2026-11-14T00:38:30Z", "2026-11-21T00:38:30Z", -1}, {"2026-11-21T00:38:30Z", "2026-11-28T00:38:30Z",
		a.Weeks[0].Migrations}} {
		code, out, stderr := runCommand(t, "whatif", "--cluster", "g-churn-cooldown", "--since", half.since,
			"--until", half.until, "--sweep", "base=30s..10m", "-o", "json", database)
		require.Equal(t, exitFound, code, stderr)
		var answer whatif.Answer
		require.NoError(t, json.Unmarshal([]byte(out), &answer))
		if half.migrations < 0 {
			r := answer.Recommend()
			want := "recorded"
			if r.Result != nil {
				want = r.Result.Name
			}
			require.Equal(t, want, a.Weeks[0].Advised.Policy)
			continue
		}
		require.Equal(t, half.migrations, answer.Recorded.Migrations)
		r := answer.Recommend()
		require.Equal(t, r.Text, a.Text, "the last week is what the advice of today rests on")
	}
	require.Equal(t, a.Weeks[0].Best.Saved-a.Weeks[0].Advised.Saved, a.Weeks[0].Regret)

	for _, tt := range []struct {
		code int
		says string
		args []string
	}{
		{exitUsage, "several clusters: choose one with --cluster: c-node-drain, g-churn-cooldown", nil},
		{exitUsage, "expected 1 or more of each, and at most 52 together", []string{"--weeks", "50"}},
		{exitUsage, "expected table or json", []string{"-o", "csv"}},
		{exitUsage, "sweep", []string{"--sweep", "base=1..2"}},
		{exitNotFound, "no evacuation began then", []string{"--cluster", "c-node-drain", "--until", "2020-01-01"}},
		{exitNotFound, `no cluster named "nope"`, []string{"--cluster", "nope"}},
	} {
		code, _, stderr := runCommand(t, append(append([]string{"advise"}, tt.args...), database)...)
		require.Equal(t, tt.code, code, "%s %s", tt.args, stderr)
		require.Contains(t, stderr, tt.says)
	}
}
