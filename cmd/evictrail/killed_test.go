package main

import (
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/evictrail/evictrail/store/storetest"
)

// TestPlayKilled kills play with SIGKILL at random points and plays again: the rows are those of an undisturbed run.
func TestPlayKilled(t *testing.T) {
	storetest.SkipInShort(t)
	t.Parallel()
	const name = "b2-dual-retry-same-vm"
	undisturbed := storetest.NewURL(t)
	started := time.Now()
	require.NoError(t, playProcess(t, undisturbed, name).Run())
	took := time.Since(started)
	want := readPublicViews(t, undisturbed)

	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d, an undisturbed play takes %s", seed, took)
	r := rand.New(rand.NewPCG(seed, 0))
	partial, kills := 0, storetest.Count(15, 50)
	for kill := range kills {
		url := storetest.NewURL(t)
		cmd := playProcess(t, url, name)
		require.NoError(t, cmd.Start())
		after := time.Duration(r.Int64N(int64(took)))
		time.Sleep(after) // a real process is killed at a real moment
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
		left := len(readPublicViews(t, url)["events"])
		if left > 0 && left < len(want["events"]) {
			partial++
		}
		require.NoError(t, playProcess(t, url, name).Run())
		require.Equal(t, want, readPublicViews(t, url), "kill %d of seed %d, after %s, left %d facts", kill, seed, after, left)
	}
	t.Logf("%d of %d kills left a part of the facts", partial, kills)
	require.Positive(t, partial, "no kill hit a play in the middle")
}

// playProcess is a play as a process of its own.
func playProcess(t *testing.T, url, name string) *exec.Cmd {
	t.Helper()
	self, err := os.Executable()
	require.NoError(t, err)
	cmd := exec.CommandContext(t.Context(), self, "play", recordingDir(name), "--database-url", url)
	cmd.Env = append(os.Environ(), asCommand+"=1")
	cmd.Stderr = prefixed{t, fmt.Sprintf("play %s: ", name)}
	return cmd
}

// prefixed logs what a process writes.
type prefixed struct {
	t      *testing.T
	prefix string
}

func (p prefixed) Write(b []byte) (int, error) {
	p.t.Log(p.prefix + string(b))
	return len(b), nil
}
