package rewind_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/evictrail/evictrail/trail"
	"github.com/evictrail/evictrail/trail/rewind"
)

func parseClock(clock string) time.Time {
	t, err := time.Parse("15:04", clock)
	if err != nil {
		panic(err)
	}
	return t.AddDate(2026, 0, 0)
}

// newHistory is an hour in which a VM is moved at the third attempt while its node is drained, with another VM there
// that cannot be migrated from 10:15 on.
func newHistory() *rewind.History {
	missed, id := false, trail.FactID{1}
	attempt := func(uid, from, to string, outcome trail.Outcome) trail.Migration {
		return trail.Migration{
			UID: uid, Namespace: "shop", VMI: "db", VMIUID: "u1", EvacuationID: &id, SourceNode: "a", TargetNode: "b",
			Trigger:   trail.TriggerDrain,
			CreatedAt: parseClock(from), SchedulingAt: parseClock(from).Add(time.Minute), FinishedAt: parseClock(to),
			Outcome: outcome, FailureClass: trail.FailureDataPlane,
		}
	}
	return &rewind.History{
		From: parseClock("09:00"), To: parseClock("12:00"), Thresholds: trail.DefaultThresholds(),
		Evacuations: []trail.Evacuation{{
			ID: id, Namespace: "shop", VMI: "db", VMIUID: "u1", Node: "a", MarkedAt: parseClock("10:00"),
			MarkedBy: trail.MarkedByMark, EndedAt: parseClock("10:40"),
			Outcome: trail.OutcomeMigrated, FailedAttempts: 2, FirstFailedAt: parseClock("10:05"), InProgress: "x",
			InProgressLostAt: parseClock("10:20"),
			RequesterClass:   trail.RequesterKubectl, Objective: trail.Span(30 * time.Minute), ObjectiveMet: &missed,
		}},
		Migrations: []trail.Migration{
			attempt("m1", "10:01", "10:05", trail.OutcomeFailed), attempt("m2", "10:10", "10:20", trail.OutcomeFailed),
			attempt("m3", "10:30", "10:40", trail.OutcomeSucceeded),
		},
		Annotations: []trail.Fact{
			{Kind: trail.KindAnnotationSet, Reason: trail.ReasonEvictionInProgress, VMIUID: "u1", Node: "a",
				OccurredAt: parseClock("10:00")},
			{Kind: trail.KindAnnotationCleared, Reason: trail.ReasonEvictionInProgress, VMIUID: "u1", Node: "a",
				OccurredAt: parseClock("10:20")},
		},
		Placements: []trail.Placement{
			{ID: trail.FactID{2}, Namespace: "shop", VMI: "db", VMIUID: "u1", Node: "a",
				FromAt: parseClock("08:00"), ToAt: parseClock("10:40")},
			{ID: trail.FactID{3}, Namespace: "shop", VMI: "db", VMIUID: "u1", Node: "b", FromAt: parseClock("10:40")},
			{
				ID: trail.FactID{4}, Namespace: "shop", VMI: "gpu", VMIUID: "u2", Node: "a",
				FromAt: parseClock("08:00"), Strategy: "LiveMigrate",
				NotMigratable: "HostDeviceNotLiveMigratable x", NotMigratableSince: parseClock("10:15"),
			},
		},
		Drains: []trail.Drain{{ID: trail.FactID{5}, Node: "a", StartedAt: parseClock("09:55"),
			EndedAt: parseClock("11:00"), Outcome: trail.DrainAbandoned}},
		Loops: []trail.Loop{{
			ID: trail.FactID{6}, Kind: trail.LoopEndlessRetry, Node: "a", VMI: "db", OpenedAt: parseClock("10:20"),
			ClosedAt: parseClock("10:40"), ClosedBy: trail.LoopMigrated,
		}},
	}
}

// TestStateIsThatOfTheMoment goes through the hour and wants nothing of what comes later in what is shown.
func TestStateIsThatOfTheMoment(t *testing.T) {
	t.Parallel()
	r := rewind.New(newHistory())
	for _, want := range []struct {
		clock                      string
		open, failed               int
		slots, running, pending    int
		loops, guestsA, guestsB    int
		left, notMigratable, hours int // of the drain; VMs that failed within an hour
		shown                      bool
	}{
		{clock: "09:30", guestsA: 2},
		{clock: "10:00", open: 1, slots: 1, guestsA: 2, left: 2, shown: true},
		{clock: "10:01", open: 1, slots: 1, pending: 1, guestsA: 2, left: 2, shown: true},
		{clock: "10:03", open: 1, slots: 1, running: 1, guestsA: 2, left: 2, shown: true},
		{clock: "10:05", open: 1, slots: 1, failed: 1, guestsA: 2, left: 2, shown: true, hours: 1},
		{clock: "10:19", open: 1, slots: 1, failed: 1, running: 1, guestsA: 2, left: 2, notMigratable: 1,
			shown: true, hours: 1},
		{clock: "10:25", open: 1, slots: 1, failed: 2, loops: 1, guestsA: 2, left: 2, notMigratable: 1, hours: 1},
		{clock: "10:41", guestsA: 1, guestsB: 1, left: 1, notMigratable: 1, hours: 1},
		{clock: "11:19", guestsA: 1, guestsB: 1, hours: 1},
		{clock: "11:20", guestsA: 1, guestsB: 1},
	} {
		r.Advance(parseClock(want.clock))
		s := r.State()
		require.Len(t, s.Evacuations, want.open, want.clock)
		if want.open > 0 {
			e := s.Evacuations[0]
			require.Equal(t, want.failed, e.FailedAttempts, want.clock)
			require.Empty(t, e.Outcome)
			require.True(t, e.EndedAt.IsZero())
			shown, known := e.AnnotationShown()
			require.True(t, known, want.clock)
			require.Equal(t, want.shown, shown, want.clock)
		}
		left, pending := 0, 0
		for _, n := range s.Nodes["a"].Remaining {
			left += n
		}
		for _, p := range s.Pending {
			pending += p.Count
		}
		guestsB := 0
		if b := s.Nodes["b"]; b != nil {
			guestsB = b.VMIs
		}
		got := []int{s.Slots.InUse, s.Running, pending, len(s.Loops), s.Nodes["a"].VMIs, guestsB, left,
			s.Nodes["a"].Remaining[trail.BlockerNotMigratable], s.FailingHour[trail.FailureDataPlane]}
		require.Equal(t, []int{want.slots, want.running, want.pending, want.loops, want.guestsA, want.guestsB,
			want.left, want.notMigratable, want.hours}, got, want.clock)
	}
}

// TestNewsComesOnce wants each thing to be reported when it happened, as far as it was known then.
func TestNewsComesOnce(t *testing.T) {
	t.Parallel()
	r := rewind.New(newHistory())
	var marked, ended, judged, finished, loops []time.Time
	for now := parseClock("09:00"); !now.After(parseClock("12:00")); now = now.Add(time.Minute) {
		news := r.Advance(now)
		for _, c := range news.Evacuations {
			switch {
			case c.Began():
				marked = append(marked, now)
				require.Empty(t, c.Row.Outcome)
			case c.Row.ObjectiveMet != nil:
				judged = append(judged, now)
				require.False(t, c.Ended(string(c.Row.Outcome)), "that it is judged ends nothing")
			case c.Ended(string(c.Row.Outcome)):
				ended = append(ended, now)
			}
		}
		for _, c := range news.Migrations {
			require.True(t, c.Ended(string(c.Row.Outcome)))
			require.Equal(t, trail.RequesterKubectl, c.Row.AskedBy)
			finished = append(finished, now)
		}
		for range news.Loops {
			loops = append(loops, now)
		}
	}
	require.Equal(t, []time.Time{parseClock("10:00")}, marked)
	require.Equal(t, []time.Time{parseClock("10:30")}, judged, "when its time was over")
	require.Equal(t, []time.Time{parseClock("10:40")}, ended)
	require.Equal(t, []time.Time{parseClock("10:05"), parseClock("10:20"), parseClock("10:40")}, finished)
	require.Equal(t, []time.Time{parseClock("10:20")}, loops)
	require.True(t, r.Next().After(parseClock("12:00")), "what is left is that windows pass: %s", r.Next())
}
