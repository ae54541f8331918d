package trail

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// TestVerdict judges a move from n1 to n2 by what was recorded of their load. Thresholds are 50 %.
func TestVerdict(t *testing.T) {
	t.Parallel()
	half := 0.5
	begin := time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)
	end := begin.Add(time.Minute)
	reading := func(metric, node string, sample LoadSample, at time.Duration, value float64) Reading {
		return Reading{Node: node, Metric: metric, Sample: sample, At: begin.Add(at), Value: &value, Threshold: &half}
	}
	r := func(node string, sample LoadSample, at time.Duration, value float64) Reading {
		return reading("descheduler:MetricResource", node, sample, at, value)
	}
	measured := func(sample LoadSample, at time.Duration, value float64) Reading {
		return reading("cpu", "n1", sample, at, value)
	}
	load := func(moment LoadMoment, after time.Duration, readings ...Reading) *LoadDetail {
		return &LoadDetail{Moment: moment, After: Span(after), Final: after == 15*time.Minute, Readings: readings}
	}
	attempt := func(value float64) *LoadDetail {
		return load(MomentAttempt, 0, r("n1", SampleBefore, -time.Second, value), r("n1", SampleNext, 20*time.Second, value-0.1), r("n2", SampleBefore, -time.Second, 0.2))
	}
	later := func(source, target float64) *LoadDetail {
		return load(MomentAfter, 15*time.Minute, r("n1", SampleBefore, 16*time.Minute, source), r("n2", SamplePeak, 3*time.Minute, target), r("n2", SampleBefore, 16*time.Minute, 0.3))
	}
	plain := func(d *LoadDetail) *LoadDetail {
		for i := range d.Readings {
			d.Readings[i].Threshold = nil
		}
		return d
	}
	for _, c := range []struct {
		name    string
		change  func(*migration)
		left    time.Duration // how long after the end the guest left its target again; zero: it did not
		loads   []*LoadDetail
		need    Need
		benefit Benefit
		because string // of need, and of benefit
		final   bool
	}{
		{name: "nothing recorded", need: NeedUnknown, benefit: BenefitUnknown, because: "no load of its nodes was recorded"},
		{name: "no threshold", loads: []*LoadDetail{plain(attempt(0.9))}, need: NeedUnknown, benefit: BenefitUnknown, because: "no load of n1 that can be compared"},
		{name: "needed", loads: []*LoadDetail{attempt(0.6)}, need: Needed, benefit: BenefitUnknown, because: "n1 was at 60 % at 2026-11-21 11:59:59Z, over its threshold of 50 %"},
		{name: "at the threshold", loads: []*LoadDetail{attempt(0.5)}, need: NotNeeded, benefit: BenefitUnknown, because: "n1 was at 50 % at 2026-11-21 11:59:59Z, under its threshold of 50 %"},
		{name: "needed, as is seen next", loads: []*LoadDetail{attempt(0.4), load(MomentRequest, 0, r("n1", SampleNext, time.Minute, 0.6))}, need: Needed, benefit: BenefitUnknown,
			because: "the descheduler saw n1 at 60 %, over its threshold of 50 % (its own metrics, read afterwards, at 2026-11-21 12:01:00Z)"},
		{name: "what was known before the request is cited, not what was seen later", loads: []*LoadDetail{
			load(MomentRequest, 0, r("n1", SampleBefore, -3*time.Minute, 0.6), r("n1", SampleNext, -100*time.Second, 0.9)),
			load(MomentAttempt, 0, r("n1", SampleBefore, -time.Second, 0.7), r("n1", SampleNext, 20*time.Second, 0.8)),
		}, need: Needed, benefit: BenefitUnknown, because: "n1 was at 60 % at 2026-11-21 11:57:00Z, over"},
		{name: "what was known before the attempt is cited, not what was seen later", loads: []*LoadDetail{
			load(MomentRequest, 0, r("n1", SampleBefore, -3*time.Minute, 0.4), r("n1", SampleNext, -100*time.Second, 0.9)),
			load(MomentAttempt, 0, r("n1", SampleBefore, -time.Second, 0.7), r("n1", SampleNext, 20*time.Second, 0.8)),
		}, need: Needed, benefit: BenefitUnknown, because: "n1 was at 70 % at 2026-11-21 11:59:59Z, over"},
		{name: "under it before, and just under it next", loads: []*LoadDetail{
			load(MomentAttempt, 0, r("n1", SampleBefore, -time.Second, 0.3), r("n1", SampleNext, 20*time.Second, 0.45)),
		}, need: NotNeeded, benefit: BenefitUnknown, because: "n1 was at 30 % at 2026-11-21 11:59:59Z, under"},
		{name: "measured over it after the attempt began, which loads the source itself", loads: []*LoadDetail{
			load(MomentAttempt, 0, measured(SampleBefore, -time.Second, 0.4), measured(SampleNext, 20*time.Second, 0.6)),
		}, need: NeedUnknown, benefit: BenefitUnknown,
			because: "n1 was at 40 % at 2026-11-21 11:59:59Z, under its threshold of 50 %; after it had begun it was at 60 % at 2026-11-21 12:00:20Z, over"},
		{name: "measured after the attempt began alone", loads: []*LoadDetail{load(MomentAttempt, 0, measured(SampleNext, 20*time.Second, 0.6))},
			need: NeedUnknown, benefit: BenefitUnknown, because: "of n1 nothing is known from before it began"},
		{name: "measured under it before and after", loads: []*LoadDetail{
			load(MomentAttempt, 0, measured(SampleBefore, -time.Second, 0.4), measured(SampleNext, 20*time.Second, 0.45)),
		}, need: NotNeeded, benefit: BenefitUnknown, because: "n1 was at 40 % at 2026-11-21 11:59:59Z, under"},
		{name: "what it acted on was not seen", loads: []*LoadDetail{load(MomentAttempt, 0, r("n1", SampleBefore, -time.Second, 0.4))}, need: NeedUnknown, benefit: BenefitUnknown, because: "what the descheduler acted on was not seen"},
		{name: "overloaded by others, long after", loads: []*LoadDetail{attempt(0.6), load(MomentAfter, 15*time.Minute, r("n1", SampleBefore, 16*time.Minute, 0.3), r("n2", SampleBefore, 16*time.Minute, 0.8))}, need: Needed, benefit: Helped, final: true},
		{name: "needed, as was seen before", loads: []*LoadDetail{attempt(0.6), load(MomentRequest, 0, r("n1", SampleNext, time.Minute, 0.4))}, need: Needed, benefit: BenefitUnknown},
		{name: "balanced since", loads: []*LoadDetail{attempt(0.4), load(MomentAttempt, 0, r("n1", SampleLastOver, -10*time.Minute, 0.7))}, need: NotNeeded, benefit: BenefitUnknown, because: "it was last over it at 2026-11-21 11:50:00Z"},
		{name: "helped", loads: []*LoadDetail{attempt(0.6), later(0.4, 0.45)}, need: Needed, benefit: Helped, because: "15m0s after the move it was at 40 % at 2026-11-21 12:16:00Z, under its threshold", final: true},
		{name: "helped a little", loads: []*LoadDetail{attempt(0.8), later(0.65, 0.45)}, need: Needed, benefit: Helped, final: true},
		{name: "too little", loads: []*LoadDetail{attempt(0.8), later(0.67, 0.45)}, need: Needed, benefit: NoEffect, final: true},
		{name: "needless", loads: []*LoadDetail{attempt(0.4), later(0.3, 0.45)}, need: NotNeeded, benefit: NoEffect, because: "there was nothing to relieve", final: true},
		{name: "harmed", loads: []*LoadDetail{attempt(0.6), later(0.3, 0.55)}, need: Needed, benefit: Harmed, because: "n2 was at 20 % at 2026-11-21 11:59:59Z, under its threshold of 50 %; after the guest had come it was at 55 %", final: true},
		{name: "the target was overloaded before", loads: []*LoadDetail{attempt(0.6), load(MomentEnd, 0, r("n2", SampleBefore, 30*time.Second, 0.6)), later(0.3, 0.65)}, need: Needed, benefit: NoEffect, because: "before the guest came", final: true},
		{name: "the target is overloaded, and was not seen before", loads: []*LoadDetail{load(MomentAttempt, 0, r("n1", SampleBefore, 0, 0.6), r("n2", SampleNext, 70*time.Second, 0.6)), later(0.3, 0.65)}, need: Needed, benefit: BenefitUnknown, final: true},
		{name: "too early", loads: []*LoadDetail{attempt(0.6), load(MomentAfter, 5*time.Minute, r("n1", SampleBefore, 89*time.Second, 0.3), r("n2", SampleBefore, 89*time.Second, 0.3))}, need: Needed, benefit: BenefitUnknown, because: "not looked at long enough"},
		{name: "early enough", loads: []*LoadDetail{attempt(0.6), load(MomentAfter, 5*time.Minute, r("n1", SampleBefore, 90*time.Second, 0.3), r("n2", SampleBefore, 90*time.Second, 0.3))}, need: Needed, benefit: Helped},
		{name: "later counts", loads: []*LoadDetail{attempt(0.6), later(0.7, 0.3), load(MomentAfter, 5*time.Minute, r("n1", SampleBefore, 6*time.Minute, 0.3), r("n2", SampleBefore, 6*time.Minute, 0.3))}, need: Needed, benefit: NoEffect, final: true},
		{name: "over its threshold when the guest had left again", left: 59 * time.Second, loads: []*LoadDetail{attempt(0.6), later(0.3, 0.55)}, need: Needed, benefit: BenefitUnknown,
			because: "no load of n2 is known from when the guest was there", final: true},
		{name: "over its threshold when it may still show", left: time.Minute, loads: []*LoadDetail{attempt(0.6), later(0.3, 0.55)}, need: Needed, benefit: Harmed, final: true},
		{name: "failed", change: func(m *migration) { m.Outcome = OutcomeFailed }, loads: []*LoadDetail{attempt(0.4)}, need: NotNeeded},
		{name: "a drain", change: func(m *migration) { m.Trigger = TriggerDrain }, loads: []*LoadDetail{attempt(0.4), later(0.3, 0.6)}},
		{name: "somebody else's eviction", change: func(m *migration) { m.Trigger = TriggerEviction }, loads: []*LoadDetail{attempt(0.4)}, need: NotNeeded, benefit: BenefitUnknown},
		{name: "a user", change: func(m *migration) { m.Trigger, m.EvacuationID = TriggerUnknown, nil }, loads: []*LoadDetail{attempt(0.4)}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			m := &migration{Migration: Migration{
				SourceNode: "n1", TargetNode: "n2", Trigger: TriggerDescheduler, EvacuationID: &FactID{}, FinishedAt: end, EndSeenAt: end, Outcome: OutcomeSucceeded,
			}, loads: c.loads}
			if c.change != nil {
				c.change(m)
			}
			var leftAt time.Time
			if c.left > 0 {
				leftAt = end.Add(c.left)
			}
			m.evaluateVerdict(leftAt)
			require.Equal(t, c.need, m.Need, m.NeedBecause)
			require.Equal(t, c.benefit, m.Benefit, m.BenefitBecause)
			require.Contains(t, m.NeedBecause+"; "+m.BenefitBecause, c.because)
			require.Equal(t, c.final, m.BenefitFinal)
		})
	}
}
