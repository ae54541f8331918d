package trail

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"
)

// Need reports whether the source node was still to be relieved when an attempt began.
type Need string

// The verdicts about the need of an attempt.
const (
	Needed      Need = "needed"     // the source was over its threshold
	NotNeeded   Need = "not_needed" // it was not
	NeedUnknown Need = "unknown"
)

// Needs lists the verdicts about need.
func Needs() []Need { return needLabels.values() }

// Benefit says what came of a move that was made to relieve a node.
type Benefit string

// The verdicts about the benefit of a move.
const (
	Helped         Benefit = "helped"    // the source was over its threshold, and is not any more, or less so; the target is not
	NoEffect       Benefit = "no_effect" // the source is as loaded as before, or was not to be relieved; or the target was over its threshold before
	Harmed         Benefit = "harmed"    // the target went over its threshold
	BenefitUnknown Benefit = "unknown"
)

// Benefits lists the verdicts about benefit.
func Benefits() []Benefit { return benefitLabels.values() }

// The bounds of what counts as a relief.
const (
	leastRelief = 0.2              // of what a node was over its threshold, that must be gone for a move to have helped where it still is
	beforeMove  = 30 * time.Second // a sample of so soon after a move is of a time before it
)

// canRelieveLoad reports whether a migration may have been made because its source was overloaded. A drain, an update of KubeVirt, or a user who moves one VM has
// other reasons, and load says nothing about them.
func (m *Migration) canRelieveLoad() bool {
	if m.EvacuationID == nil {
		return false
	}
	return m.Trigger == TriggerDescheduler || m.Trigger == TriggerEviction || m.Trigger == TriggerUnknown
}

// sample is a reading with a threshold, as it was reported about one moment of a migration.
type sample struct {
	Reading
	moment LoadMoment
	after  time.Duration
}

// computeExcess returns by how much the node was over its threshold, below it where negative. What equals the threshold is not over it.
//
// Source: descheduler pkg/framework/plugins/nodeutilization/nodeutilization.go, isNodeAboveThreshold.
func (s sample) computeExcess() float64 { return *s.Value - *s.Threshold }

// String returns the numbers.
func (s sample) String() string { return s.Node + " " + s.describeReading() }

// describeReading returns the numbers of a node that was named before.
func (s sample) describeReading() string {
	return fmt.Sprintf("was at %s at %s, %s its threshold of %s", formatPercent(*s.Value), FormatClock(s.At), s.formatSide(), formatPercent(*s.Threshold))
}

// formatSide says on which side of its threshold the node was.
func (s sample) formatSide() string {
	if s.computeExcess() > 0 {
		return "over"
	}
	return "under"
}

// byDescheduler reports whether the value is the descheduler's own: what it saw in its last cycle, no matter who read it.
func (s sample) byDescheduler() bool {
	return s.Metric == MetricDescheduler || strings.HasPrefix(s.Metric, MetricDescheduler+":")
}

// renderCitation renders the numbers as the ground of a verdict. What the descheduler acted on was read afterwards: the time is then not that of the value.
func (s sample) renderCitation() string {
	if s.Sample != SampleNext {
		return s.String()
	}
	return fmt.Sprintf("the descheduler saw %s at %s, %s its threshold of %s (its own metrics, read afterwards, at %s)",
		s.Node, formatPercent(*s.Value), s.formatSide(), formatPercent(*s.Threshold), FormatClock(s.At))
}

// formatPercent writes a ratio.
func formatPercent(ratio float64) string {
	return strings.TrimSuffix(fmt.Sprintf("%.1f", 100*ratio), ".0") + " %"
}

// selectSamples returns the readings of a node that can be compared with a threshold, in the order of their times: of the kinds given, or of all.
func (m *migration) selectSamples(node string, of func(*LoadDetail) bool, kinds ...LoadSample) []sample {
	var out []sample
	for _, d := range m.loads {
		for _, r := range d.Readings {
			if r.isComparable() && r.Node == node && node != "" && of(d) && (len(kinds) == 0 || slices.Contains(kinds, r.Sample)) {
				out = append(out, sample{r, d.Moment, time.Duration(d.After)})
			}
		}
	}
	slices.SortStableFunc(out, func(a, b sample) int {
		return cmp.Or(a.At.Compare(b.At), cmp.Compare(a.after, b.after), cmp.Compare(a.Metric, b.Metric), cmp.Compare(*a.Value, *b.Value))
	})
	return out
}

// findWorstSample returns the sample that is furthest above its threshold, or nearest to it; nil where there is none.
func findWorstSample(all []sample) *sample {
	var out *sample
	for i := range all {
		if out == nil || all[i].computeExcess() > out.computeExcess() {
			out = &all[i]
		}
	}
	return out
}

// evaluateVerdict reports whether the migration was needed and what came of it. leftAt is when the guest left its target again, zero while it is there.
func (m *migration) evaluateVerdict(leftAt time.Time) {
	if !m.canRelieveLoad() {
		return
	}
	if m.evacuation != nil {
		m.AskedBy = m.evacuation.RequesterClass
	}
	start := m.evaluateNeed()
	if m.Outcome == OutcomeSucceeded {
		m.evaluateBenefit(start, leftAt)
	}
}

// evaluateNeed reports whether the source was over its threshold when the attempt began, and returns the sample to which its load after the move is compared: where it was
// over it the latest that says so, as what came before may be a cycle old; nil where none is known.
//
// A sample from before the act is cited where there is one: of a first attempt one from before the request, then one from before the attempt. What the descheduler
// acted on is in none of these where its cycle was new: it shows that when its metrics are read the next time, and it is cited as that. What somebody else measured
// after the attempt had begun is evidence of nothing: the move itself loads its source. The attempt was needless only where the next sample is known, and none says
// otherwise.
func (m *migration) evaluateNeed() *sample {
	var before, acted, known, measured []sample // known: before and acted, in the order of their times
	for _, s := range m.selectSamples(m.SourceNode, func(d *LoadDetail) bool { return d.Moment == MomentRequest || d.Moment == MomentAttempt }) {
		switch {
		case s.Sample == SampleLastOver:
			m.LastOverAt = s.At
		case s.Sample == SampleBefore:
			before, known = append(before, s), append(known, s)
		case s.byDescheduler():
			acted, known = append(acted, s), append(known, s)
		default:
			measured = append(measured, s)
		}
	}
	lastOverAt := m.LastOverAt
	m.LastOverAt = time.Time{}
	if cited := cmp.Or(lastOver(before, MomentRequest), lastOver(before), lastOver(known)); cited != nil {
		m.Need, m.NeedBecause = Needed, cited.renderCitation()
		return lastOver(known)
	}
	start, after := cmp.Or(findWorstSample(before), findWorstSample(acted)), findWorstSample(measured)
	switch {
	case start == nil && after == nil:
		m.Need, m.NeedBecause = NeedUnknown, m.unknownLoad(m.SourceNode)
	case start == nil:
		m.Need, m.NeedBecause = NeedUnknown, fmt.Sprintf("of %s nothing is known from before it began", m.SourceNode)
	case after != nil && after.computeExcess() > 0:
		m.Need, m.NeedBecause = NeedUnknown, fmt.Sprintf("%s; after it had begun it %s", start.renderCitation(), after.describeReading())
	case after == nil && len(acted) == 0:
		m.Need, m.NeedBecause = NeedUnknown, fmt.Sprintf("%s, and what the descheduler acted on was not seen", start.renderCitation())
	default:
		m.Need, m.NeedBecause, m.LastOverAt = NotNeeded, start.renderCitation(), lastOverAt
		if !lastOverAt.IsZero() {
			m.NeedBecause += fmt.Sprintf("; it was last over it at %s", FormatClock(lastOverAt))
		}
	}
	return start
}

// lastOver returns the latest sample that is over its threshold, of the moments given, or of all; nil where none is. all are in the order of their times.
func lastOver(all []sample, of ...LoadMoment) *sample {
	for i := len(all) - 1; i >= 0; i-- {
		if all[i].computeExcess() > 0 && (len(of) == 0 || slices.Contains(of, all[i].moment)) {
			return &all[i]
		}
	}
	return nil
}

// evaluateBenefit says what came of a move: of the source it counts how it is when it was last looked at, of the target whether it went over
// its threshold at any time since, as the descheduler may have moved others away from there by then. How the target was when the guest had left it again says
// nothing about this move.
func (m *migration) evaluateBenefit(start *sample, leftAt time.Time) {
	var last *LoadDetail
	for _, d := range m.loads {
		m.BenefitFinal = m.BenefitFinal || d.Moment == MomentAfter && d.Final
		if d.Moment == MomentAfter && (last == nil || d.After > last.After) && d.isAbout(m.SourceNode) {
			last = d
		}
	}
	after := func(d *LoadDetail) bool { return d.Moment == MomentAfter }
	target := slices.DeleteFunc(m.selectSamples(m.TargetNode, after), func(s sample) bool { return isLongGone(s.At, leftAt) })
	peak := findWorstSample(slices.DeleteFunc(slices.Clone(target), func(s sample) bool { return s.At.Sub(m.bestEndTime()) > arrivalShows }))
	if peak != nil && peak.computeExcess() > 0 {
		before := m.targetBefore()
		switch {
		case before == nil:
			m.Benefit, m.BenefitBecause = BenefitUnknown, fmt.Sprintf("%s; how it was before the guest came is not known", peak)
		case before.computeExcess() > 0:
			m.Benefit, m.BenefitBecause = NoEffect, fmt.Sprintf("%s, before the guest came; then it %s", before, peak.describeReading())
		default:
			m.Benefit, m.BenefitBecause = Harmed, fmt.Sprintf("%s; after the guest had come it %s", before, peak.describeReading())
		}
		return
	}
	var end *sample
	if last != nil {
		end = findWorstSample(m.selectSamples(m.SourceNode, func(d *LoadDetail) bool { return d.After == last.After && after(d) }, SampleBefore))
	}
	switch {
	case m.Need == NeedUnknown:
		m.Benefit, m.BenefitBecause = BenefitUnknown, "whether it was needed is not known"
	case end == nil || len(target) == 0:
		m.Benefit, m.BenefitBecause = BenefitUnknown, m.unknownLoad(m.SourceNode)
		if end != nil {
			m.BenefitBecause = m.unknownLoad(m.TargetNode)
		}
		if len(target) == 0 && !leftAt.IsZero() {
			m.BenefitBecause = fmt.Sprintf("no load of %s is known from when the guest was there", m.TargetNode)
		}
	case end.At.Sub(m.bestEndTime()) < beforeMove:
		m.Benefit, m.BenefitBecause = BenefitUnknown, "its nodes were not looked at long enough after it"
	case m.Need == NotNeeded:
		m.Benefit, m.BenefitBecause = NoEffect, fmt.Sprintf("there was nothing to relieve: %s", start.renderCitation())
	case end.computeExcess() <= 0 || end.computeExcess() <= (1-leastRelief)*start.computeExcess():
		m.Benefit, m.BenefitBecause = Helped, fmt.Sprintf("%s; %s after the move it %s", start.renderCitation(), formatSpan(end.At.Sub(m.bestEndTime())), end.describeReading())
	default:
		m.Benefit, m.BenefitBecause = NoEffect, fmt.Sprintf("%s; %s after the move it still %s", start.renderCitation(), formatSpan(end.At.Sub(m.bestEndTime())), end.describeReading())
	}
}

// describeVerdict says in a sentence or two whether the migration was needed and what came of it; empty where neither is known.
func (m *Migration) describeVerdict() string {
	var text []string
	switch m.Need {
	case Needed:
		text = append(text, "The move was needed: "+m.NeedBecause+".")
	case NotNeeded:
		text = append(text, "The move was unnecessary: "+m.NeedBecause+".")
	case NeedUnknown:
	}
	switch m.Benefit {
	case Helped:
		text = append(text, "It helped: "+m.BenefitBecause+".")
	case Harmed:
		text = append(text, "It made things worse: "+m.BenefitBecause+".")
	case NoEffect:
		if m.Need != NotNeeded { // else that is said
			text = append(text, "It relieved nothing: "+m.BenefitBecause+".")
		}
	case BenefitUnknown:
	}
	return strings.Join(text, " ")
}

// describeNeedlessMove says in a loop's summary that the attempt which ended it was not needed any more; empty where it was, or is not known.
func (m *Migration) describeNeedlessMove() string {
	if m.Need != NotNeeded || m.Outcome != OutcomeSucceeded {
		return ""
	}
	text := fmt.Sprintf("Attempt %d then moved it without need", m.Attempt)
	if !m.LastOverAt.IsZero() {
		text += fmt.Sprintf(", %s after %s was last over its threshold", formatSpan(m.SchedulingAt.Sub(m.LastOverAt)), m.SourceNode)
	}
	if m.Benefit == Harmed {
		text += fmt.Sprintf("; %s went over its own", m.TargetNode)
	}
	return text + "."
}

// targetBefore returns the last sample of the target from before the guest came; nil where none is known.
func (m *migration) targetBefore() *sample {
	all := m.selectSamples(m.TargetNode, func(d *LoadDetail) bool { return d.Moment != MomentAfter })
	for i := len(all) - 1; i >= 0; i-- {
		if !all[i].At.After(m.bestEndTime()) {
			return &all[i]
		}
	}
	return nil
}

// isAbout reports whether the load of a node is known that can be compared with a threshold.
func (d *LoadDetail) isAbout(node string) bool {
	return slices.ContainsFunc(d.Readings, func(r Reading) bool { return r.isComparable() && r.Node == node })
}

// unknownLoad says why nothing can be said that rests on the load of a node.
func (m *migration) unknownLoad(node string) string {
	switch {
	case len(m.loads) == 0:
		return "no load of its nodes was recorded"
	case node == "":
		return "its node is not known"
	}
	return "no load of " + node + " that can be compared with a threshold was recorded at that time"
}
