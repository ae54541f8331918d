package spool

import (
	"errors"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/evictrail/evictrail/trail"
)

func TestDeadLetters(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	r := openRig(t, dir, 1<<30)
	facts := makePlacementFacts(0, 5)
	reason := errors.New("CHECK is violated")
	r.SetAside(facts[:2], reason)
	r.SetAside(facts[1:3], reason) // as after a crash between setting aside and taking off the queue
	require.Equal(t, 3, r.Condition().DeadLetters)
	require.Empty(t, r.lost)
	info, err := os.Stat(LettersPath(dir, "c1"))
	require.NoError(t, err)
	require.Equal(t, os.FileMode(0o600), info.Mode().Perm())

	letters, unreadable, err := DeadLetters(dir, "c1")
	require.NoError(t, err)
	require.Zero(t, unreadable)
	require.Len(t, letters, 3)
	for i, l := range letters {
		require.Equal(t, "CHECK is violated", l.Reason)
		fact, err := trail.ReadFact("c1", l.Fact)
		require.NoError(t, err)
		require.Equal(t, facts[i], fact)
	}
	r.appendFacts(t, facts[4:])
	got, _ := r.drainAll(t)
	gaps, _ := splitGaps(got[1:])
	require.Equal(t, []string{"virtualmachineinstances refused: 4 facts refused: 4 vmi_placed"}, gaps)

	require.NoError(t, DropLetters(dir, "c1", map[trail.FactID]bool{facts[0].ID: true, facts[2].ID: true}))
	require.Equal(t, 1, r.Condition().DeadLetters, "another process took two out")
	r.SetAside(facts[3:4], reason)
	require.Equal(t, 2, r.Condition().DeadLetters)
	require.NoError(t, DropLetters(dir, "c1", map[trail.FactID]bool{facts[1].ID: true, facts[3].ID: true}))
	require.NoFileExists(t, LettersPath(dir, "c1"))
	require.Zero(t, r.Condition().DeadLetters)
}

// TestDeadLettersAreBounded: what finds no room is counted as lost, and the file does not grow.
func TestDeadLettersAreBounded(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	r := openRig(t, dir, 64<<10)
	facts := makePlacementFacts(0, 100)
	r.SetAside(facts, errors.New(strings.Repeat("long ", 1000)))
	kept := r.Condition().DeadLetters
	require.Positive(t, kept)
	require.Equal(t, map[string]int{"vmi_placed store_reject": 100 - kept}, r.lost)
	info, err := os.Stat(LettersPath(dir, "c1"))
	require.NoError(t, err)
	require.LessOrEqual(t, info.Size(), int64(16<<10))
}

// TestADeadLetterThatWasNotFinished: a crash in the middle of a line costs that line alone.
func TestADeadLetterThatWasNotFinished(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	r := openRig(t, dir, 1<<30)
	facts := makePlacementFacts(0, 3)
	r.SetAside(facts[:2], errors.New("refused"))
	path := LettersPath(dir, "c1")
	text, err := os.ReadFile(path)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(path, text[:len(text)-10], 0o600))
	require.Equal(t, 1, r.Condition().DeadLetters)
	r.SetAside(facts[1:], errors.New("refused"))
	letters, unreadable, err := DeadLetters(dir, "c1")
	require.NoError(t, err)
	require.Zero(t, unreadable)
	require.Len(t, letters, 3)
}

// TestARefusedGapIsNoGap: else its refusal would be recorded as a gap, which is refused, and so on.
func TestARefusedGapIsNoGap(t *testing.T) {
	t.Parallel()
	r := openRig(t, t.TempDir(), 1<<30)
	gap := trail.GapReport{Source: "pods", Key: "k", OpenedAt: start, ClosedAt: start, Cause: trail.ReasonRefused}
	r.SetAside(gap.Facts("c1", start), errors.New("refused"))
	require.Equal(t, 2, r.Condition().DeadLetters)
	require.Empty(t, r.known.Losses)
}
