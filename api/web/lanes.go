package web

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/evictrail/evictrail/trail"
)

// draft draws the rows of one cluster on lanes.
type draft struct {
	window
	cluster *trail.Cluster
	closer  func(from, to time.Time) string // address of the same page with another span of time
}

func (v *visit) newDraft(w window, c *trail.Cluster) draft { return draft{w, c, v.linkToSpan} }

// around is how much time before and after a mark the facts that it leads to may lie.
const around = 5 * time.Second

// linkToFacts returns the address of the raw facts of a VM in a span of time; id is marked among them.
func (d draft) linkToFacts(namespace, vmi string, from, to time.Time, id *trail.FactID, migration string) string {
	if to.IsZero() {
		to = d.Now
	}
	return factsHref(d.cluster.Name, namespace+"/"+vmi, "", from.Add(-around), to.Add(around), id, migration)
}

func factsHref(cluster, vm, node string, from, to time.Time, id *trail.FactID, migration string) string {
	address := buildHref("/facts", "cluster", cluster, "vm", vm, "node", node, "from", formatTimestamp(from), "to", formatTimestamp(to), "migration", migration)
	if id != nil {
		address += "#e-" + id.String()
	}
	return address
}

// causeClass says in which colour something is drawn that a trigger caused.
func causeClass(t trail.Trigger) string {
	switch t {
	case trail.TriggerDescheduler:
		return "descheduler"
	case trail.TriggerDrain, trail.TriggerDrainTaint:
		return "drain"
	case trail.TriggerUser, trail.TriggerNamedNode:
		return "user"
	case trail.TriggerWorkloadUpdate, trail.TriggerHotplug, trail.TriggerStorage:
		return "kubevirt"
	case trail.TriggerEviction, trail.TriggerDecentralized, trail.TriggerController:
		return "other"
	case trail.TriggerUnknown:
	}
	return "unknown"
}

// requesterClass says in which colour a request is drawn.
func requesterClass(c trail.RequesterClass) string {
	switch c {
	case trail.RequesterDescheduler:
		return "descheduler"
	case trail.RequesterUnknown:
		return "unknown"
	case trail.RequesterKubeVirt:
		return "kubevirt"
	case trail.RequesterKubectl, trail.RequesterClusterAutoscaler, trail.RequesterKarpenter, trail.RequesterMachineConfig,
		trail.RequesterClusterAPI, trail.RequesterNodeMaintenance, trail.RequesterKured, trail.RequesterForklift, trail.RequesterHarvester,
		trail.RequesterConsole, trail.RequesterArgoCD, trail.RequesterFlux, trail.RequesterEvictionRequest, trail.RequesterServiceAccount,
		trail.RequesterOther, trail.AnyRequester:
		return "drain"
	}
	return "drain"
}

// styleOutcome is how an outcome is drawn: in which colour, and what it bears so that colour is not all.
func styleOutcome(o trail.Outcome) (class, sign string) {
	switch o {
	case trail.OutcomeSucceeded, trail.OutcomeMigrated:
		return "good", "✓"
	case trail.OutcomeFailed:
		return "bad", "✗"
	case trail.OutcomeAborted, trail.OutcomeCancelled, trail.OutcomeVMIGone:
		return "blocked", "–"
	}
	return "running", "…"
}

// drawPlacement draws where a guest ran.
func (d draft) drawPlacement(l *lane, p trail.Placement) {
	title := fmt.Sprintf("%s/%s ran on %s from %s", p.Namespace, p.VMI, p.Node, formatTime(p.FromAt))
	if !p.ToAt.IsZero() {
		title += " to " + formatTime(p.ToAt)
	}
	l.addMark(d.window, p.FromAt, p.ToAt, mark{
		Shape: shapeBar, Class: "placed", Title: title, Href: d.linkToFacts(p.Namespace, p.VMI, p.FromAt, p.FromAt, &p.ID, ""), of: "placements",
	})
}

// drawEvacuation draws an evacuation as long as it is open.
func (d draft) drawEvacuation(l *lane, e trail.Evacuation) {
	class := "by " + causeClass(e.Trigger)
	if e.FailedAttempts > 0 {
		class += " bad"
	}
	title := fmt.Sprintf("%s/%s was to leave %s from %s", e.Namespace, e.VMI, e.Node, formatTime(e.MarkedAt))
	if e.Outcome != "" {
		title += fmt.Sprintf(" to %s: %s", formatTime(e.EndedAt), e.Outcome.Label())
	}
	title += fmt.Sprintf("; trigger %s, %d attempts, %d failed", e.Trigger.Label(), e.Attempts, e.FailedAttempts)
	id := &e.ID
	if e.MarkedBy != trail.MarkedByMark {
		id = nil // no fact of its own opened it
	}
	l.addMark(d.window, e.MarkedAt, e.EndedAt, mark{
		Shape: shapeBar, Class: class, Title: title, Href: d.linkToFacts(e.Namespace, e.VMI, e.MarkedAt, e.EndedAt, id, ""), of: "evacuations",
	})
}

// styleMigration is how a migration is drawn: its colour says who caused it, its pattern and its sign how it ended.
func styleMigration(m trail.Migration) (class, sign string) {
	outcome, sign := styleOutcome(m.Outcome)
	return "by " + causeClass(m.Trigger) + " " + outcome, sign
}

// drawMigration draws a migration from its creation to its end, and its phases below.
func (d draft) drawMigration(l *lane, m trail.Migration) {
	class, sign := styleMigration(m)
	label := sign
	if m.Attempt > 0 {
		label = fmt.Sprintf("%d %s", m.Attempt, sign)
	}
	l.addMark(d.window, m.CreatedAt, m.FinishedAt, mark{
		Shape: shapeBar, Class: class, Label: label, Short: sign, Title: migrationTitle(m), Href: d.linkToFacts(m.Namespace, m.VMI, m.CreatedAt, m.FinishedAt, nil, m.UID),
		of: "migrations", what: formatState(m),
	})
	for i, p := range m.Phases {
		if p.Phase == trail.PhaseSucceeded || p.Phase == trail.PhaseFailed {
			continue
		}
		until := m.FinishedAt
		if i+1 < len(m.Phases) {
			until = m.Phases[i+1].At
		}
		l.addMark(d.window, p.At, until, mark{
			Shape: shapeStrip, Class: phaseClass(p.Phase), Title: trail.LabelPhase(p.Phase).Short + " from " + formatTime(p.At), Href: d.linkToFacts(m.Namespace, m.VMI, p.At, p.At, nil, m.UID), of: "phases",
		})
	}
}

// migrationTitle returns a migration in a line.
func migrationTitle(m trail.Migration) string {
	title := fmt.Sprintf("%s: %s, trigger %s, created %s", m.Name, formatState(m), m.Trigger.Label(), formatTime(m.CreatedAt))
	if m.Attempt > 0 {
		title = fmt.Sprintf("Attempt %d, %s", m.Attempt, title)
	}
	if m.FailureClass != "" {
		title += fmt.Sprintf("; %s, %s", m.FailureClass.Label(), m.FailureReason.Label())
	}
	if m.WaitReason != "" {
		title += fmt.Sprintf("; waited: %s", m.WaitReason.Label())
	}
	return title
}

func formatState(m trail.Migration) string {
	if m.Outcome == "" {
		return "under way"
	}
	return m.Outcome.Label().Short
}

func phaseClass(phase string) string {
	switch phase {
	case trail.PhasePending:
		return "waits"
	case trail.PhaseRunning:
		return "moves"
	}
	return "prepares"
}

// drawRequest draws requests as flags. Those that only repeat another are drawn small.
func (d draft) drawRequest(l *lane, r trail.EvictionRequest) {
	shape, class, of := shapeFlag, requesterClass(r.RequesterClass), "requests"
	if r.RepeatOf != nil {
		shape, of = shapeTick, "repeats of requests"
	}
	if r.Answer != trail.AnswerMarked && r.Answer != trail.AnswerAllowed {
		class += " vain"
	}
	who := r.Requester
	if who == "" {
		who = trail.UpperFirst(r.RequesterClass.Label().Short)
	}
	title := fmt.Sprintf("%s asked to evict %s/%s from %s at %s: %s", who, r.Namespace, r.VMI, r.Node, formatTime(r.RequestedAt),
		r.Answer.Label())
	if r.StatedReason != "" {
		title += fmt.Sprintf(", saying %q", strings.TrimSpace(r.StatedReason))
	}
	l.addMark(d.window, r.RequestedAt, r.RequestedAt, mark{
		Shape: shape, Class: class, Title: title, Href: d.linkToFacts(r.Namespace, r.VMI, r.RequestedAt, r.AnsweredAt, r.EventID, ""), of: of,
	})
}

// drawHolds draws what held a VM back, until it was over or released.
func (d draft) drawHolds(l *lane, decisions []trail.Decision) {
	for i, h := range decisions {
		if h.Verdict != trail.VerdictHolds {
			continue
		}
		until := h.Until
		for _, later := range decisions[i+1:] {
			if later.Layer == h.Layer && later.Verdict != trail.VerdictBlocked && later.DecidedAt.Before(until) {
				until = later.DecidedAt
			}
		}
		class, name, what := "cooling", "The descheduler's cooldown", "cooldowns"
		if h.Layer == trail.LayerBackoff {
			class, name, what = "backoff", "KubeVirt's backoff", "backoffs"
		}
		title := fmt.Sprintf("%s of %s holds %s/%s until %s", name, formatSpan(time.Duration(h.Effective)), h.Namespace, h.VMI, formatTime(h.Until))
		l.addMark(d.window, h.DecidedAt, until, mark{
			Shape: shapeBar, Class: class, Label: formatSpan(time.Duration(h.Effective)), Title: title,
			Href: d.linkToFacts(h.Namespace, h.VMI, h.DecidedAt, h.DecidedAt, h.EventID, ""), of: "waits", what: what,
		})
	}
}

// loopLanes draws loops, a lane for each kind, and bands behind all lanes in their time.
func (d draft) loopLanes(loops []trail.Loop) (lanes []lane, bands []mark) {
	for _, x := range loops {
		if x.ClosedBy == trail.LoopRefuted || !d.overlapsSpan(x.OpenedAt, x.ClosedAt) {
			continue
		}
		title := fmt.Sprintf("%s from %s", x.Name(), formatTime(x.OpenedAt))
		if !x.Open() {
			title += fmt.Sprintf(" to %s: %s", formatTime(x.ClosedAt), x.ClosedBy.Label())
		}
		i := slices.IndexFunc(lanes, func(l lane) bool { return l.Name == x.Kind.Label().Short })
		if i < 0 {
			i = len(lanes)
			lanes = append(lanes, lane{Name: x.Kind.Label().Short})
		}
		lanes[i].addMark(d.window, x.OpenedAt, x.ClosedAt, mark{Shape: shapeBar, Class: "loop", Label: x.Name(), Title: title, Href: loopHref(d.cluster.Name, x.ID), of: "loops"})
		bands = append(bands, d.newSpanMark(shapeBand, "loop", x.OpenedAt, x.ClosedAt))
	}
	return lanes, bands
}

// keys explain all that is drawn: colours say who, patterns and signs how it ended.
var keys = []key{
	{"descheduler", "by the descheduler"}, {"drain", "by a drain or another caller"}, {"user", "by a person"}, {"kubevirt", "by KubeVirt itself"},
	{"other", "by a single eviction"}, {"unknown", "unknown requester"},
	{"by good", "✓ succeeded"}, {"by bad", "✗ failed or failing"}, {"by blocked", "– aborted"}, {"by running", "… under way"}, {"vain", "request refused, or without effect"},
	{"waits", "waits"}, {"prepares", "gets a target"}, {"moves", "moves"},
	{"backoff", "KubeVirt's backoff"}, {"cooling", "the descheduler's cooldown"},
	{"slots", "descheduler slots in use"}, {"slots full", "all slots in use"}, {"slots over", "more than the limit"}, {"annotated", "counted by the descheduler"},
	{"placed", "runs there"}, {"loop", "a loop is open"}, {"joined", "several, joined"},
}

// explainMarks adds the keys of what the chart draws.
func (c *chart) explainMarks() {
	drawn := map[string]bool{}
	for _, l := range append([]lane{{Marks: c.Bands}}, c.Lanes...) {
		for _, m := range l.Marks {
			drawn[m.Class] = true
		}
	}
	for _, k := range keys {
		for class := range drawn {
			if containsWords(class, k.Class) {
				c.Legend = append(c.Legend, k)
				break
			}
		}
	}
}

// containsWords reports whether a text has all words of another.
func containsWords(text, words string) bool {
	all := strings.Fields(text)
	for word := range strings.FieldsSeq(words) {
		if !slices.Contains(all, word) {
			return false
		}
	}
	return true
}
