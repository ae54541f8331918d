package read_test

import (
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/stretchr/testify/require"

	"github.com/evictrail/evictrail/metrics"
	"github.com/evictrail/evictrail/store/storetest"
	"github.com/evictrail/evictrail/trail"
	"github.com/evictrail/evictrail/trail/sim"
	"github.com/evictrail/evictrail/trail/tracker"
)

// TestStateIsThatOfTheRows plays simulated histories into the database and compares the state that is read from it with one
// that is made of all rows in memory, as time goes by.
func TestStateIsThatOfTheRows(t *testing.T) {
	t.Parallel()
	for _, seed := range storetest.Sample([]uint64{2, 4, 8, 12}) {
		run := sim.New(seed)
		t.Run(run.KubeVirt, func(t *testing.T) {
			t.Parallel()
			s := storetest.New(t)
			tr := tracker.New("c1")
			cooldown := trail.CooldownSettings{}.WithDefaults()
			fresh := tr.Observe(tracker.PolicyObservation{
				Seen: tracker.Seen{At: run.Start}, Meta: tracker.Meta{UID: "policy", Name: "policy"}, Text: "stated", Settings: &trail.DeschedulerSettings{
					Cooldown: &cooldown, Model: "4.22",
				},
			})
			var facts []trail.Fact
			var seen stateSights
			next := run.Start.Add(15 * time.Minute)
			for _, o := range run.Observations {
				if _, is := o.(tracker.PolicyObservation); is {
					continue // ours holds VMs back
				}
				made := tr.Observe(o)
				for _, f := range made {
					if f.ObservedAt.Before(next) {
						continue
					}
					facts = append(facts, fresh...)
					_, err := s.Append(t.Context(), "c1", fresh)
					require.NoError(t, err)
					_, _, err = s.DeriveDue(t.Context(), "c1", next)
					require.NoError(t, err)
					got, err := s.State(t.Context(), "c1", next)
					require.NoError(t, err)
					want := stateInMemory(facts, next)
					require.Equal(t, gatherGauges(t, want), gatherGauges(t, got), "at %s", next)
					seen.add(got)
					fresh, next = nil, next.Add(15*time.Minute)
				}
				fresh = append(fresh, made...)
			}
			require.Positive(t, seen.marked, "evacuations")
			require.Positive(t, seen.failing, "failures")
			require.Positive(t, seen.cooling, "cooldowns")
			require.Positive(t, seen.guests, "guests")
			require.Positive(t, seen.loops, "loops")
		})
	}
}

// stateSights counts what there was to compare.
type stateSights struct{ marked, failing, cooling, guests, loops int }

func (c *stateSights) add(s trail.State) {
	c.marked += len(s.Evacuations)
	c.failing += len(s.FailingHour)
	c.cooling += len(s.Cooling)
	c.loops += len(s.Loops)
	for _, n := range s.Nodes {
		c.guests += n.VMIs
	}
}

// gatherGauges returns what is shown of a state.
func gatherGauges(t *testing.T, s trail.State) string {
	t.Helper()
	reg := prometheus.NewRegistry()
	metrics.New(reg).SetState(s)
	families, err := reg.Gather()
	require.NoError(t, err)
	var out strings.Builder
	for _, f := range families {
		if f.GetType() == dto.MetricType_GAUGE {
			_, err := expfmt.MetricFamilyToText(&out, f)
			require.NoError(t, err)
		}
	}
	return out.String()
}

// stateInMemory sums up what facts mean at a time, without a database.
func stateInMemory(facts []trail.Fact, at time.Time) trail.State {
	all := trail.DeriveAll(facts, trail.DefaultThresholds(), at)
	rows := trail.StateRows{
		Guests: map[string]int{}, Loops: map[trail.LoopPlace]int{}, FailingHour: map[trail.FailureClass]int{}, FailingDay: map[trail.FailureClass]int{},
	}
	drains := map[trail.FactID]bool{}
	for _, d := range all.Rows {
		for _, l := range d.Loops {
			if l.ClosedBy == "" {
				rows.Loops[trail.LoopPlace{Kind: l.Kind, Node: l.Node}]++
				if l.Kind == trail.LoopFrequentMoves || l.Kind == trail.LoopRepeatedFailures {
					rows.Repeated = append(rows.Repeated, trail.LoopCount{Namespace: l.Namespace, VMI: l.VMI, Kind: l.Kind, Count: l.Counts["moves"] + l.Counts["failures"]})
				}
			}
		}
		for _, x := range d.Drains {
			if x.Outcome == "" {
				rows.Drains = append(rows.Drains, x)
				drains[x.ID] = true
			}
		}
	}
	for _, d := range all.Rows {
		stateOfVM(&rows, d, at)
		for _, b := range d.Blockers {
			if drains[b.DrainID] {
				rows.Blocked = append(rows.Blocked, trail.DrainBlocked{Namespace: b.Namespace, VMI: b.VMI, Node: b.Node, Blocker: b.Blocker})
			}
		}
	}
	env := trail.NewEnv(facts)
	return trail.NewState(rows, env, at)
}

func stateOfVM(rows *trail.StateRows, d trail.Derived, at time.Time) {
	for _, p := range d.Placements {
		if p.ToAt.IsZero() {
			rows.Guests[p.Node]++
		}
	}
	for _, e := range d.Evacuations {
		if e.Outcome == "" {
			rows.Evacuations = append(rows.Evacuations, e)
		}
	}
	moves := map[trail.Trigger]int{}
	hour, day := map[trail.FailureClass]bool{}, map[trail.FailureClass]bool{}
	var moved []trail.Migration
	for _, m := range d.Migrations {
		age := at.Sub(m.FinishedAt)
		switch {
		case m.FinishedAt.IsZero():
			rows.Migrations = append(rows.Migrations, m)
		case m.Outcome == trail.OutcomeSucceeded && age < 24*time.Hour:
			moves[m.Trigger]++
			if age < 12*time.Hour {
				moved = append(moved, m)
			}
		case m.Outcome == trail.OutcomeFailed && age < 24*time.Hour:
			day[m.FailureClass] = true
			hour[m.FailureClass] = hour[m.FailureClass] || age < time.Hour
		}
	}
	rows.Moved = append(rows.Moved, moved...)
	for trigger, n := range moves {
		if n >= 3 {
			rows.Moves = append(rows.Moves, trail.VMCount{Namespace: d.Migrations[0].Namespace, VMI: d.Migrations[0].VMI, Trigger: trigger, Count: n})
		}
	}
	for class := range day {
		rows.FailingDay[class]++
		rows.FailingHour[class] += 0
		if hour[class] {
			rows.FailingHour[class]++
		}
	}
	for _, p := range d.Placements {
		if p.ToAt.IsZero() {
			coolingOf(rows, d.Decisions, p, at)
		}
	}
}

// coolingOf adds the cooldown that holds a guest, where one does.
func coolingOf(rows *trail.StateRows, decisions []trail.Decision, p trail.Placement, at time.Time) {
	var held *trail.Decision
	for i := range decisions {
		x := &decisions[i]
		switch {
		case x.Layer != trail.LayerCooldown || x.DecidedAt.After(at) || x.VMIUID != p.VMIUID:
		case x.Verdict == trail.VerdictHolds:
			held = x
		case x.Verdict == trail.VerdictReleased:
			held = nil
		}
	}
	if held != nil && held.Until.After(at) {
		rows.Cooling = append(rows.Cooling, trail.Cooling{
			Namespace: held.Namespace, VMI: held.VMI, Node: p.Node, Base: time.Duration(held.Base), Effective: time.Duration(held.Effective), Until: held.Until,
		})
	}
}
