package spool

import (
	"bufio"
	"context"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"os"
	"os/exec"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// killed makes the test binary use a spool until it is killed: seed, number of the first fact, directory.
const killed = "EVICTRAIL_TEST_SPOOL_KILL"

// useUntilKilled is the process of TestKills.
func useUntilKilled(what string) error {
	var seed uint64
	var from int
	var dir string
	if _, err := fmt.Sscan(what, &seed, &from, &dir); err != nil {
		return err
	}
	s, err := Open(Options{Dir: dir, Cluster: "c1", Size: 1 << 30, Log: slog.New(slog.DiscardHandler), Clock: func() time.Time { return start.Add(time.Hour) }})
	if err != nil {
		return err
	}
	s.journal.limit = 8 << 10 // bytes: there are many segments
	return exerciseSpool(context.Background(), s, seed, from, func() {})
}

// TestKills kills a process that uses a spool, again and again, and wants what it had acknowledged and not stored to be there, each fact once and in order, and
// nothing to count as lost.
func TestKills(t *testing.T) {
	if testing.Short() {
		t.Skip("takes long: make check runs it")
	}
	t.Parallel()
	const kills = 40
	self, err := os.Executable()
	require.NoError(t, err)
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	random := rand.New(rand.NewPCG(seed, 0))
	dir, facts := t.TempDir(), movesOf(powerFacts)
	kept, stored, noted := 0, 0, 0
	for kill := range kills {
		note := fmt.Sprintf("kill %d of seed %d", kill, seed)
		cmd := exec.CommandContext(t.Context(), self)
		cmd.Env = append(os.Environ(), fmt.Sprintf("%s=%d %d %s", killed, random.Uint64(), kept, dir))
		out, err := cmd.StdoutPipe()
		require.NoError(t, err)
		require.NoError(t, cmd.Start())
		wanted, lines := kept, bufio.NewScanner(out)
		for last := 1 + random.IntN(30); lines.Scan(); last-- {
			var what string
			var n int
			_, err := fmt.Sscan(lines.Text(), &what, &n)
			require.NoError(t, err, lines.Text())
			*map[string]*int{"keeping": &wanted, "kept": &kept, "stored": &stored, "noted": &noted}[what] = n
			if last == 0 { // what it does until it dies comes on the lines that follow
				require.NoError(t, cmd.Process.Kill())
			}
		}
		_ = cmd.Wait()
		r := openRig(t, dir, 1<<30)
		require.Empty(t, r.lost, "%s: %s", note, r.log)
		files, waiting := r.imageOf(t), r.Condition().Facts
		require.NoError(t, r.Close())
		copied := files.openSpool(t)
		got, _ := copied.drainAll(t)
		require.Len(t, got, waiting, note)
		require.Empty(t, copied.lost, note)
		require.GreaterOrEqual(t, int(copied.Identity().Epoch), noted, note)
		require.GreaterOrEqual(t, len(got), kept-stored, note)
		first := 0
		if len(got) > 0 {
			for facts[first].ID != got[0].ID {
				first++
			}
			require.LessOrEqual(t, first, stored, "%s: what was not stored is gone", note)
			require.Equal(t, facts[first:first+len(got)], got, note)
		}
		if kept = max(kept, first+len(got)); len(got) == 0 {
			kept = max(kept, wanted) // what was not written never will be
			stored = kept
		}
	}
	require.Greater(t, kept, 1000)
}
