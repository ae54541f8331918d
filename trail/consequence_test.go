package trail

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// TestConsequence has a VM come to a node and the descheduler take another away from it.
func TestConsequence(t *testing.T) {
	t.Parallel()
	begin := time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)
	cause := Migration{UID: "p", TargetNode: "n1", FinishedAt: begin, EndSeenAt: begin.Add(400 * time.Millisecond), Outcome: OutcomeSucceeded, Need: NotNeeded, Benefit: Harmed}
	effect := Migration{UID: "m", SourceNode: "n1", CreatedAt: begin.Add(time.Minute), Trigger: TriggerDescheduler, Attempt: 1, Need: Needed}
	for _, c := range []struct {
		name   string
		change func(cause, effect *Migration)
		left   time.Duration // how long after the arrival the guest left again; zero: it did not
		want   Likelihood    // empty: none
	}{
		{name: "overloaded, and over its threshold", want: Likely},
		{name: "overloaded by a move that was needed", change: func(p, _ *Migration) { p.Need = Needed }, want: Likely},
		{name: "the load of the later one is not known", change: func(_, m *Migration) { m.Need = NeedUnknown }, want: Possible},
		{name: "what came of the earlier one is not known", change: func(p, _ *Migration) { p.Benefit = BenefitUnknown }, want: Possible},
		{name: "a needed move that did no harm", change: func(p, _ *Migration) { p.Need, p.Benefit = Needed, Helped }},
		{name: "within the second of the arrival", change: func(_, m *Migration) { m.CreatedAt = begin }, want: Likely},
		{name: "before the arrival", change: func(_, m *Migration) { m.CreatedAt = begin.Add(-time.Second) }},
		{name: "half an hour later", change: func(_, m *Migration) { m.CreatedAt = begin.Add(30 * time.Minute) }, want: Likely},
		{name: "long after", change: func(_, m *Migration) { m.CreatedAt = begin.Add(30*time.Minute + time.Second) }},
		{name: "a drain", change: func(_, m *Migration) { m.Trigger, m.Need = TriggerDrain, "" }},
		{name: "a later attempt", change: func(_, m *Migration) { m.Attempt = 2 }},
		{name: "needless itself", change: func(_, m *Migration) { m.Need = NotNeeded }},
		{name: "the guest that had come was gone by then", left: 59 * time.Second},
		{name: "the guest that had come left later", left: 61 * time.Second, want: Likely},
		{name: "the earlier one failed", change: func(p, _ *Migration) { p.Outcome = OutcomeFailed }},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			p, m := cause, effect
			if c.change != nil {
				c.change(&p, &m)
			}
			n := node{name: "n1", Rows: Rows{Migrations: []*Migration{&m}}}
			if p.mayCause() {
				n.Arrivals = []*Migration{&p}
			}
			stay := &Placement{ArrivedBy: p.UID, FromAt: begin}
			if c.left > 0 {
				stay.ToAt = begin.Add(c.left)
			}
			n.Placements = []*Placement{stay}
			got := n.findConsequences()
			if c.want == "" {
				require.Empty(t, got)
				return
			}
			require.Len(t, got, 1)
			require.Equal(t, c.want, got[0].Likelihood)
			require.Equal(t, []string{"m", "p"}, []string{got[0].MigrationUID, got[0].CauseUID})
		})
	}
}
