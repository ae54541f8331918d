package metrics_test

import (
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/stretchr/testify/require"

	"github.com/evictrail/evictrail/metrics"
	"github.com/evictrail/evictrail/trail"
)

// counting is metrics and what they are asked.
type counting struct {
	*metrics.Metrics
	reg *prometheus.Registry
	now time.Time
}

func newCounting() *counting {
	reg := prometheus.NewRegistry()
	c := &counting{Metrics: metrics.New(reg), reg: reg, now: start}
	c.CountSince(start)
	return c
}

// countAfter counts some news at a time after the start.
func (c *counting) countAfter(d time.Duration, n trail.News) { c.Count(n, start.Add(d)) }

// readValue returns the value of the series of a metric whose text contains some labels; zero where there is none.
func (c *counting) readValue(t *testing.T, metric string, labels ...string) float64 {
	t.Helper()
	families, err := c.reg.Gather()
	require.NoError(t, err)
	sum := 0.
	for _, f := range families {
		for _, m := range f.Metric {
			text, matches := m.String(), f.GetName() == metric
			for _, l := range labels {
				matches = matches && strings.Contains(text, `value:"`+l+`"`)
			}
			if matches {
				sum += m.GetCounter().GetValue() + float64(m.GetHistogram().GetSampleCount())
			}
		}
	}
	return sum
}

func newFailedMigration(id string, class trail.FailureClass, was string, change trail.Change) trail.News {
	return trail.News{Migrations: []trail.RowChange[trail.Migration]{{ID: id, Was: was, Change: change, Row: trail.Migration{
		UID: id, Trigger: trail.TriggerDescheduler, Outcome: trail.OutcomeFailed, FailureClass: class, SourceNode: "worker-1",
		CreatedAt: start, FinishedAt: start.Add(time.Minute),
	}}}}
}

func TestWhatIsReportedLateIsCountedRight(t *testing.T) {
	t.Parallel()
	c := newCounting()
	c.countAfter(0, newFailedMigration("m1", trail.FailureUnknown, "", trail.ChangeOther))
	require.Zero(t, c.readValue(t, metrics.MigrationsTotal), "it has not settled")
	c.countAfter(30*time.Second, newFailedMigration("m1", trail.FailurePostCopy, "failed", trail.ChangeOther))
	c.countAfter(39*time.Second, trail.News{})
	require.Zero(t, c.readValue(t, metrics.MigrationsTotal))
	c.countAfter(40*time.Second, trail.News{})
	require.InDelta(t, 1, c.readValue(t, metrics.MigrationsTotal), 0)
	require.InDelta(t, 1, c.readValue(t, metrics.MigrationsTotal, "post_copy", "failed", "descheduler"), 0)
	require.InDelta(t, 1, c.readValue(t, metrics.PostCopyFailuresTotal, "worker-1"), 0)
	require.InDelta(t, 1, c.readValue(t, metrics.MigrationDurationSeconds, "failed"), 0)
	c.countAfter(time.Hour, newFailedMigration("m1", trail.FailureUnknown, "failed", trail.ChangeOther))
	c.CountRest()
	require.InDelta(t, 1, c.readValue(t, metrics.MigrationsTotal), 0, "what was counted is not counted again")
}

func TestWhatIsTakenBackIsNotCounted(t *testing.T) {
	t.Parallel()
	c := newCounting()
	mark := func(id string, change trail.Change, class trail.RequesterClass) trail.News {
		return trail.News{Requests: []trail.RowChange[trail.EvictionRequest]{{ID: id, Change: change, Row: trail.EvictionRequest{
			RequestedAt: start, RequesterClass: class, Answer: trail.AnswerMarked,
		}}}}
	}
	c.countAfter(0, mark("refuted", trail.ChangeNew, trail.RequesterUnknown))
	c.countAfter(time.Second, mark("refuted", trail.ChangeGone, ""))
	c.CountRest()
	require.Zero(t, c.readValue(t, metrics.EvictionRequestsTotal))

	here, there := newCounting(), newCounting()
	here.countAfter(0, mark("seen in the audit log", trail.ChangeNew, trail.RequesterUnknown))
	both := mark("seen by the observer, too", trail.ChangeNew, trail.RequesterKubectl)
	both.Requests[0].Instead = "seen in the audit log"
	here.countAfter(time.Second, both)
	there.countAfter(time.Second, both)
	here.CountRest()
	there.CountRest()
	require.InDelta(t, 1, here.readValue(t, metrics.EvictionRequestsTotal), 0)
	require.InDelta(t, 1, here.readValue(t, metrics.EvictionRequestsTotal, "kubectl", "marked"), 0)
	require.Zero(t, there.readValue(t, metrics.EvictionRequestsTotal), "the replica that noted it first counts it")
}

func TestWhatGoesOnAfterAllHasNotEnded(t *testing.T) {
	t.Parallel()
	c := newCounting()
	newsOf := func(change trail.Change, was string, outcome trail.Outcome) trail.News {
		return trail.News{Evacuations: []trail.RowChange[trail.Evacuation]{{ID: "e", Change: change, Was: was, Row: trail.Evacuation{Node: "n", MarkedAt: start, EndedAt: start, Outcome: outcome}}}}
	}
	c.countAfter(0, newsOf(trail.ChangeNew, "", trail.OutcomeCancelled))
	c.countAfter(time.Second, newsOf(trail.ChangeOther, "cancelled", ""))
	c.countAfter(time.Hour, newsOf(trail.ChangeOther, "", trail.OutcomeMigrated))
	c.CountRest()
	require.InDelta(t, 1, c.readValue(t, metrics.EvacuationsEndedTotal), 0)
	require.InDelta(t, 1, c.readValue(t, metrics.EvacuationsEndedTotal, "migrated"), 0)
	require.InDelta(t, 1, c.readValue(t, metrics.EvacuationsStartedTotal), 0)
}

// TestObjectiveIsCountedOnce follows one evacuation that is reported late: missed while it went on, and again when it ended.
func TestObjectiveIsCountedOnce(t *testing.T) {
	t.Parallel()
	newsOf := func(judged bool, met *bool, outcome trail.Outcome) trail.News {
		e := trail.Evacuation{Node: "n", RequesterClass: trail.RequesterKured, MarkedAt: start, Objective: trail.Span(time.Minute), ObjectiveMet: met, Outcome: outcome}
		if outcome != "" {
			e.EndedAt = start.Add(50 * time.Second)
		}
		return trail.News{Evacuations: []trail.RowChange[trail.Evacuation]{{ID: "e", Change: trail.ChangeOther, Judged: judged, Row: e}}}
	}
	counts := func(c *counting) (met, missed float64) {
		return c.readValue(t, metrics.EvacuationObjectiveTotal, "kured", "met"), c.readValue(t, metrics.EvacuationObjectiveTotal, "kured", "missed")
	}
	late := newCounting()
	late.countAfter(0, newsOf(false, nil, ""))
	late.countAfter(time.Minute, newsOf(false, new(false), ""))
	late.countAfter(3*time.Minute, trail.News{})
	late.countAfter(4*time.Minute, newsOf(true, new(false), trail.OutcomeMigrated))
	late.CountRest()
	met, missed := counts(late)
	require.InDelta(t, 0, met, 0)
	require.InDelta(t, 1, missed, 0, "that it ended makes it no other")

	right := newCounting()
	right.countAfter(time.Minute, newsOf(false, new(false), ""))
	right.countAfter(time.Minute+30*time.Second, newsOf(true, new(true), trail.OutcomeMigrated)) // its end was reported late
	right.CountRest()
	met, missed = counts(right)
	require.InDelta(t, 1, met, 0)
	require.InDelta(t, 0, missed, 0, "it had left in time")

	back := newCounting()
	back.countAfter(time.Minute, newsOf(false, new(false), ""))
	back.countAfter(time.Minute+30*time.Second, newsOf(true, nil, trail.OutcomeCancelled))
	back.CountRest()
	met, missed = counts(back)
	require.Zero(t, met+missed, "it was cancelled in time")

	before := newCounting()
	before.CountSince(start.Add(time.Minute + time.Second))
	before.countAfter(2*time.Minute, newsOf(false, new(false), ""))
	before.CountRest()
	_, missed = counts(before)
	require.Zero(t, missed, "its time was over before we came")
}

func TestObjectivesStartAtZero(t *testing.T) {
	t.Parallel()
	n, err := testutil.GatherAndCount(newCounting().reg, metrics.EvacuationObjectiveTotal)
	require.NoError(t, err)
	require.Equal(t, 2*len(trail.Requesters()), n, "so that the first one is seen as an increase")
}

func TestHistoryIsNotCounted(t *testing.T) {
	t.Parallel()
	c := newCounting()
	before := newFailedMigration("m1", trail.FailureDataPlane, "", trail.ChangeNew)
	before.Migrations[0].Row.FinishedAt = start.Add(-time.Second)
	before.Evacuations = []trail.RowChange[trail.Evacuation]{{ID: "e1", Row: trail.Evacuation{Node: "worker-1", MarkedAt: start.Add(-time.Hour)}}}
	c.countAfter(0, before)
	ended := trail.News{Evacuations: []trail.RowChange[trail.Evacuation]{{ID: "e1", Change: trail.ChangeOther, Row: trail.Evacuation{
		Node: "worker-1", MarkedAt: start.Add(-time.Hour), EndedAt: start.Add(time.Minute), Outcome: trail.OutcomeMigrated,
	}}}}
	c.countAfter(time.Minute, ended)
	c.CountRest()
	require.Zero(t, c.readValue(t, metrics.MigrationsTotal), "it ended before we came")
	require.Zero(t, c.readValue(t, metrics.EvacuationsStartedTotal))
	require.InDelta(t, 1, c.readValue(t, metrics.EvacuationsEndedTotal, "migrated", "worker-1"), 0, "that end we saw")
}

func TestDryRunsAreNotCounted(t *testing.T) {
	t.Parallel()
	c := newCounting()
	c.countAfter(0, trail.News{Requests: []trail.RowChange[trail.EvictionRequest]{{ID: "r", Row: trail.EvictionRequest{RequestedAt: start, DryRun: true}}}})
	c.CountRest()
	require.Zero(t, c.readValue(t, metrics.EvictionRequestsTotal))
}

func TestBlocks(t *testing.T) {
	t.Parallel()
	derived := trail.News{Decisions: []trail.RowChange[trail.Decision]{{ID: "d", Row: trail.Decision{
		Verdict: trail.VerdictBlocked, Layer: trail.LayerCooldown, Reason: trail.DecidedCooldown, Origin: trail.OriginDerived, Node: "worker-1", Namespace: "shop", DecidedAt: start,
	}}}}
	t.Run("derived ones stand for a descheduler whose metrics are not read", func(t *testing.T) {
		t.Parallel()
		c := newCounting()
		c.countAfter(0, derived)
		c.CountRest()
		require.InDelta(t, 1, c.readValue(t, metrics.EvictionBlocksTotal, "cooldown", "worker-1", "shop"), 0)
	})
	t.Run("else its own count is ours", func(t *testing.T) {
		t.Parallel()
		c := newCounting()
		n := derived
		c.CountsBlocks(true)
		n.Facts = []trail.Fact{{
			Kind: trail.KindBlocksObserved, Reason: trail.ReasonCooldown, Node: "worker-1", Namespace: "shop", OccurredAt: start, ObservedAt: start,
			Detail: &trail.BlocksDetail{Reason: "cooldown", Increase: 7},
		}}
		c.countAfter(0, n)
		c.CountRest()
		require.InDelta(t, 7, c.readValue(t, metrics.EvictionBlocksTotal, "cooldown", "worker-1", "shop"), 0)
		require.InDelta(t, 1, c.readValue(t, metrics.CooldownDecisionsTotal, "cooldown", "derived"), 0)
	})
}

func TestLabelsStayClosed(t *testing.T) {
	t.Parallel()
	c := newCounting()
	c.countAfter(0, trail.News{Facts: []trail.Fact{{Kind: trail.KindMigrationPhase, Value: "Levitating", OccurredAt: start, ObservedAt: start}}})
	require.InDelta(t, 1, c.readValue(t, metrics.PhaseTransitionsTotal, "other", "unknown"), 0)
}

func TestExemplarsAndCreatedTimestamps(t *testing.T) {
	t.Parallel()
	c := newCounting()
	event := trail.FactID{1, 2, 3}
	n := newFailedMigration("m1", trail.FailureDataPlane, "", trail.ChangeNew)
	n.Migrations[0].Row.EndEvent = &event
	c.countAfter(0, n)
	c.CountRest()
	families, err := c.reg.Gather()
	require.NoError(t, err)
	for _, f := range families {
		for _, m := range f.Metric {
			switch {
			case f.GetName() == metrics.MigrationsTotal && m.GetCounter().GetValue() > 0:
				require.Equal(t, event.String(), m.GetCounter().GetExemplar().GetLabel()[0].GetValue())
				require.NotNil(t, m.GetCounter().GetCreatedTimestamp())
			case f.GetName() == metrics.MigrationDurationSeconds:
				require.NotNil(t, m.GetHistogram().GetCreatedTimestamp())
				require.NotZero(t, m.GetHistogram().GetSchema(), "a native histogram")
				require.Len(t, m.GetHistogram().GetBucket(), 12, "with classic buckets")
			}
		}
	}
}

// TestTwoLivesOfOneName gathers a state in which the rows of two VMI objects of one name stand beside each other.
func TestTwoLivesOfOneName(t *testing.T) {
	t.Parallel()
	c := newCounting()
	s := bigState(3)
	s.Evacuations = append(s.Evacuations, s.Evacuations...)
	s.Cooling = append(s.Cooling, s.Cooling...)
	s.DrainBlocked = append(s.DrainBlocked, s.DrainBlocked...)
	s.Moves = append(s.Moves, s.Moves...)
	s.Returns = append(s.Returns, s.Returns...)
	s.Repeated = append(s.Repeated, s.Repeated...)
	s.Descheduler = &trail.DeschedulerDetail{Version: "v0\xff"}
	c.SetState(s)
	_, err := c.reg.Gather()
	require.NoError(t, err)
	n, err := testutil.GatherAndCount(c.reg, metrics.VMIMarkedTimestamp, metrics.VMICooldownSeconds, metrics.VMIDrainBlocked)
	require.NoError(t, err)
	require.Equal(t, 9, n)
}

func TestNodesComeAndGo(t *testing.T) {
	t.Parallel()
	c := newCounting()
	c.Node("worker-1")
	c.Node("worker-2")
	require.NoError(t, testutil.GatherAndCompare(c.reg, strings.NewReader(`
# HELP evictrail_migration_postcopy_failures_total [STABLE] Migrations that lost the guest after it had left in post-copy, by source node.
# TYPE evictrail_migration_postcopy_failures_total counter
evictrail_migration_postcopy_failures_total{node="worker-1"} 0
evictrail_migration_postcopy_failures_total{node="worker-2"} 0
`), metrics.PostCopyFailuresTotal))
	gone := trail.News{Facts: []trail.Fact{{Kind: trail.KindNodeGone, Node: "worker-1", OccurredAt: start, ObservedAt: start}, {Kind: trail.KindNodeGone, Node: "worker-2", OccurredAt: start, ObservedAt: start}}}
	c.countAfter(0, gone)
	c.Node("worker-2") // it is back
	c.countAfter(4*time.Minute, trail.News{})
	n, err := testutil.GatherAndCount(c.reg, metrics.PostCopyFailuresTotal)
	require.NoError(t, err)
	require.Equal(t, 2, n, "what ended with a node is still to be seen")
	c.countAfter(6*time.Minute, trail.News{})
	n, err = testutil.GatherAndCount(c.reg, metrics.PostCopyFailuresTotal, metrics.EvacuationsStartedTotal, metrics.EvacuationsEndedTotal)
	require.NoError(t, err)
	require.Equal(t, 1+4+3, n, "also where nobody knows who asked: then the audit log is silent")
}

// TestGuestsAreCountedOnceTheirEndIsKnown counts a guest that had failed for nobody knew what, until its pod said it: once, and not what its owner did.
func TestGuestsAreCountedOnceTheirEndIsKnown(t *testing.T) {
	t.Parallel()
	c := newCounting()
	newsOf := func(id string, by trail.Ending, was string, change trail.Change) trail.News {
		return trail.News{Placements: []trail.RowChange[trail.Placement]{{ID: id, Was: was, Change: change, Row: trail.Placement{Node: "worker-1", EndedBy: by, ToAt: start}}}}
	}
	c.countAfter(0, newsOf("p1", "", "", trail.ChangeNew))
	c.countAfter(0, newsOf("p2", trail.EndingStopped, "", trail.ChangeOther))
	c.countAfter(0, newsOf("p1", trail.EndingFailed, "", trail.ChangeOther))
	c.countAfter(time.Minute, newsOf("p1", trail.EndingTaint, "failed", trail.ChangeOther))
	c.countAfter(90*time.Second, trail.News{})
	require.Zero(t, c.readValue(t, metrics.GuestsEndedTotal), "who began it may be reported late")
	c.countAfter(2*time.Minute, trail.News{})
	require.InDelta(t, 1, c.readValue(t, metrics.GuestsEndedTotal, "taint_manager", "unknown"), 0)
	c.countAfter(3*time.Minute, newsOf("p1", trail.EndingEvicted, "taint_manager", trail.ChangeOther))
	c.countAfter(4*time.Minute, newsOf("p3", trail.EndingPreempted, "", trail.ChangeOther))
	c.countAfter(4*time.Minute, newsOf("p3", "", "preempted", trail.ChangeOther)) // a restore of the cluster undid it
	c.CountRest()
	require.InDelta(t, 1, c.readValue(t, metrics.GuestsEndedTotal), 0, "what was counted is not counted again")
}

// TestMovesAreCountedOnceJudged counts a move when it is known for good what came of it.
func TestMovesAreCountedOnceJudged(t *testing.T) {
	t.Parallel()
	c := newCounting()
	newsOf := func(benefit trail.Benefit, final bool, was string, judged bool, change trail.Change) trail.News {
		return trail.News{Migrations: []trail.RowChange[trail.Migration]{{ID: "m1", Was: was, Judged: judged, Change: change, Row: trail.Migration{
			UID: "m1", Trigger: trail.TriggerDescheduler, Outcome: trail.OutcomeSucceeded, CreatedAt: start, FinishedAt: start.Add(time.Minute), AskedBy: trail.RequesterDescheduler,
			Benefit: benefit, BenefitFinal: final,
		}}}}
	}
	c.countAfter(0, newsOf(trail.Helped, false, "", false, trail.ChangeNew))
	c.countAfter(time.Minute, trail.News{})
	require.Zero(t, c.readValue(t, metrics.MovesTotal), "it may change")
	c.countAfter(15*time.Minute, newsOf(trail.Harmed, true, "succeeded", false, trail.ChangeOther))
	c.countAfter(16*time.Minute, trail.News{})
	require.InDelta(t, 1, c.readValue(t, metrics.MovesTotal, "descheduler", "harmed"), 0)
	c.countAfter(17*time.Minute, newsOf(trail.Helped, true, "succeeded", true, trail.ChangeOther))
	c.CountRest()
	require.InDelta(t, 1, c.readValue(t, metrics.MovesTotal), 0, "what was counted is not counted again")
	require.InDelta(t, 1, c.readValue(t, metrics.MigrationsTotal), 0)
}
