package trail_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/evictrail/evictrail/trail"
	"github.com/evictrail/evictrail/trail/tracker"
)

func TestOpenUntil(t *testing.T) {
	t.Parallel()
	ten := time.Date(2026, 11, 21, 10, 0, 0, 0, time.UTC)
	past := func(minutes int) time.Time { return ten.Add(time.Duration(minutes) * time.Minute) }
	for _, c := range []struct {
		name string
		row  trail.Row
		want time.Time
	}{
		{"a request", trail.EvictionRequest{RequestedAt: ten}, ten},
		{"a request that was answered", trail.EvictionRequest{RequestedAt: ten, AnsweredAt: past(1)}, past(1)},
		{"a request that was repeated", trail.EvictionRequest{RequestedAt: ten, AnsweredAt: past(1), LastRepeatAt: past(30)}, past(30)},
		{"an open evacuation", trail.Evacuation{MarkedAt: ten}, time.Time{}},
		{"an evacuation", trail.Evacuation{MarkedAt: ten, EndedAt: past(5)}, past(5)},
		{"an evacuation that ends before it began", trail.Evacuation{MarkedAt: ten, EndedAt: past(-5)}, ten},
		{"a migration that runs", trail.Migration{CreatedAt: ten}, time.Time{}},
		{"a migration", trail.Migration{CreatedAt: ten, FinishedAt: past(5)}, past(5)},
		{"where the guest is", trail.Placement{FromAt: ten}, time.Time{}},
		{"where the guest was", trail.Placement{FromAt: ten, ToAt: past(5)}, past(5)},
		{"a cooldown", trail.Decision{DecidedAt: ten, Until: past(15)}, past(15)},
		{"a cooldown that was released", trail.Decision{DecidedAt: ten}, ten},
		{"an open loop", trail.Loop{OpenedAt: ten}, time.Time{}},
		{"a loop", trail.Loop{OpenedAt: ten, ClosedAt: past(5)}, past(5)},
		{"a drain that goes on", trail.Drain{StartedAt: ten}, time.Time{}},
		{"a drain", trail.Drain{StartedAt: ten, EndedAt: past(5)}, past(5)},
		{"what a drain left", trail.DrainBlocker{WaitingSince: ten}, time.Time{}},
		{"a consequence", trail.Consequence{At: ten}, ten},
		{"a node that is not ready", trail.Outage{BeganAt: ten}, time.Time{}},
		{"an outage", trail.Outage{BeganAt: ten, EndedAt: past(5)}, past(5)},
		{"an open gap", trail.Gap{OpenedAt: ten}, time.Time{}},
		{"a gap", trail.Gap{OpenedAt: ten, ClosedAt: past(5)}, past(5)},
		{"a line", trail.Line{At: ten}, ten},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			require.Equal(t, c.want, c.row.OpenUntil())
		})
	}
}

// TestLineOfRepetitionsIsOpen derives the polls of a drain: the line that counts them is open until the last of them, the line of the first request is not.
func TestLineOfRepetitionsIsOpen(t *testing.T) {
	t.Parallel()
	ten := time.Date(2026, 11, 21, 10, 0, 0, 0, time.UTC)
	tr := tracker.New("c1")
	var facts []trail.Fact
	for i := range 4 {
		at := ten.Add(time.Duration(i) * 5 * time.Second)
		facts = append(facts, tr.Observe(tracker.RequestObservation{
			Seen: tracker.Seen{At: at}, Source: trail.SourceAudit, ID: string(rune('a' + i)), Stage: "ResponseComplete", Action: trail.ActionEvict, Namespace: "shop",
			Name: "virt-launcher-db", AskedAt: at, Detail: trail.RequestDetail{User: "alice", AnsweredAt: at, Code: 403, Message: "forbidden"},
		})...)
	}
	lines := trail.Derive(facts[0].Subject, facts, trail.NewEnv(nil), ten.Add(time.Hour)).Timeline
	require.Len(t, lines, 2)
	require.Equal(t, ten, lines[0].OpenUntil())
	require.Equal(t, ten.Add(5*time.Second), lines[1].At)
	require.Equal(t, ten.Add(15*time.Second), lines[1].OpenUntil())
}
