package trail

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

// Headline is how it stands with a cluster, in one line.
type Headline struct {
	Severity Severity
	Text     string // sentences
}

// Headline says the worst of the incidents and the oldest, and how many are acknowledged, else what happened since From, else that all is clear. It claims that
// nothing is wrong only where the recorder is certain; nil: nothing is known of it. Of a moment of the past it asks the gaps instead.
func (o *Overview) Headline(incidents []Incident, recorder *RecorderStatus) Headline {
	certain := recorder != nil && recorder.Certain()
	when := "now"
	switch {
	case o.Past:
		certain, when = o.Watched(), "at that time"
	case certain && recorder.Replayed:
		when = "at the end of the recording"
	}
	span := formatAbout(o.At.Sub(o.From))
	h := Headline{Severity: SeverityWarning}
	past := o.describePast()
	switch {
	case len(incidents) > 0:
		h.Severity = worstSeverity(incidents)
		h.Text = describeNewest(incidents, o.At)
		if !certain {
			h.Text += " There may be more: the cluster is not fully recorded."
		}
	case !certain && past == "":
		h.Text = "Not known whether all is well: the cluster is not fully recorded."
	case !certain:
		h.Text = fmt.Sprintf("Not known whether something is open %s: the cluster is not fully recorded. In the last %s: %s.", when, span, past)
	case past != "":
		h.Severity = o.pastSeverity()
		h.Text = fmt.Sprintf("Nothing is open %s, but in the last %s: %s.", when, span, past)
	case when == "now":
		h.Severity = SeverityNone
		h.Text = fmt.Sprintf("All clear: 0 loops, 0 stuck, %s in %s; all sources are watched.", FormatCount(o.countMoves(), "move"), span)
	default:
		h.Severity = SeverityNone
		h.Text = fmt.Sprintf("All clear %s: 0 loops, 0 stuck, %s in %s.", when, FormatCount(o.countMoves(), "move"), span)
	}
	return h
}

// pastSeverity says how much what is over since From needs a person.
func (o *Overview) pastSeverity() Severity {
	if len(o.findChecks(map[IncidentSubject]bool{})) > 0 {
		return SeverityWarning
	}
	return SeverityInfo
}

// Watched reports whether the recording had begun before the moment of an overview, and no gap was open then.
func (o *Overview) Watched() bool {
	if o.RecordedSince.IsZero() || o.RecordedSince.After(o.At) {
		return false
	}
	return !slices.ContainsFunc(o.Gaps, func(g Gap) bool { return !g.OpenedAt.After(o.At) && (g.ClosedAt.IsZero() || g.ClosedAt.After(o.At)) })
}

// formatAbout writes a duration of whole hours or days, such as "6 h".
func formatAbout(d time.Duration) string {
	switch {
	case d%(24*time.Hour) == 0 && d > 24*time.Hour:
		return fmt.Sprintf("%d d", d/(24*time.Hour))
	case d%time.Hour == 0:
		return fmt.Sprintf("%d h", d/time.Hour)
	}
	return Age(d)
}

// countMoves counts the migrations that ended since From.
func (o *Overview) countMoves() int {
	n := 0
	for _, m := range o.Moves {
		n += m.Count
	}
	return n
}

// worstSeverity returns how much incidents, at least one, need a person who does not know of them yet.
func worstSeverity(incidents []Incident) Severity {
	if incidents[0].Acknowledged != nil {
		return SeverityInfo
	}
	return incidents[0].Severity
}

// describeNewest says what nobody has acknowledged, and how much is; where all is acknowledged, that.
func describeNewest(incidents []Incident, now time.Time) string {
	known := slices.IndexFunc(incidents, func(i Incident) bool { return i.Acknowledged != nil })
	switch {
	case known < 0:
		return describeIncidents(incidents, now)
	case known > 0:
		more := len(incidents) - known
		return fmt.Sprintf("%s %d more %s acknowledged.", describeIncidents(incidents[:known], now), more, isOrAre(more))
	case len(incidents) == 1:
		return fmt.Sprintf("%s Acknowledged by %s.", describeIncidents(incidents, now), incidents[0].Acknowledged.Author)
	}
	return describeIncidents(incidents, now) + " All are acknowledged."
}

// describeIncidents says the worst trouble, its cause and its oldest subject, then the others.
func describeIncidents(incidents []Incident, now time.Time) string {
	lead := incidents[0]
	of := map[Trouble][]Incident{}
	for _, i := range incidents {
		of[i.Trouble] = append(of[i.Trouble], i)
	}
	same := of[lead.Trouble]
	var text []string
	if len(same) == 1 {
		text = append(text, lead.describeAlone(now))
	} else {
		text = append(text, formatSubjects(same)+" "+troubleWords[lead.Trouble].several+".", describeSharedCause(same), describeOldest(same, now))
	}
	var critical, also []string
	for t := range Trouble(len(troubleWords)) {
		switch others := of[t]; {
		case t == lead.Trouble || len(others) == 0:
		case slices.ContainsFunc(others, func(i Incident) bool { return i.Severity == SeverityCritical }):
			critical = append(critical, formatTrouble(others))
		default:
			also = append(also, formatTrouble(others))
		}
	}
	if len(critical) > 0 {
		text = append(text, "Also critical: "+strings.Join(critical, "; ")+".")
	}
	if len(also) > 0 {
		text = append(text, "Also: "+strings.Join(also, "; ")+".")
	}
	return strings.Join(nonEmpty(text), " ")
}

// describeAlone is a sentence about one incident.
func (i Incident) describeAlone(now time.Time) string {
	text := i.Subject.String()
	if i.Subject.Kind == IncidentOfCluster {
		text = UpperFirst(text)
	}
	text += " " + i.Trouble.String()
	if i.Trouble == TroubleStuck && i.Node != "" {
		text = i.Subject.String() + " cannot leave " + i.Node
	}
	if i.Cause != "" {
		text += " (" + i.Cause + ")"
	}
	if len(i.Effects) > 0 {
		text += ": " + strings.Join(i.Effects, ", ")
	}
	text += ". For " + Age(now.Sub(i.Since))
	if i.Failed > 0 {
		text += ", " + FormatCount(i.Failed, "failed attempt")
	}
	if i.Requester != "" {
		text += ", asked by " + i.Requester
	}
	return text + "."
}

// formatSubjects counts the subjects of incidents: 18 VMs, 2 nodes.
func formatSubjects(incidents []Incident) string {
	noun := "VM"
	if incidents[0].Subject.Kind != IncidentOfVM {
		noun = "node"
	}
	return FormatCount(len(incidents), noun)
}

func formatTrouble(incidents []Incident) string {
	words := troubleWords[incidents[0].Trouble]
	if len(incidents) == 1 {
		return incidents[0].Subject.String() + " " + words.one
	}
	return formatSubjects(incidents) + " " + words.several
}

// describeSharedCause names the cause that most of some incidents have; empty where no two have the same.
func describeSharedCause(incidents []Incident) string {
	count := map[string]int{}
	most := ""
	for _, i := range incidents {
		count[i.Cause]++
		if i.Cause != "" && (count[i.Cause] > count[most] || count[i.Cause] == count[most] && i.Cause < most) {
			most = i.Cause
		}
	}
	switch n := count[most]; {
	case most == "" || n < 2:
		return ""
	case n == len(incidents):
		return fmt.Sprintf("Cause: %s.", most)
	default:
		return fmt.Sprintf("Cause in %d of %d: %s.", n, len(incidents), most)
	}
}

func describeOldest(incidents []Incident, now time.Time) string {
	oldest := slices.MinFunc(incidents, func(a, b Incident) int { return a.Since.Compare(b.Since) })
	return fmt.Sprintf("Oldest: %s, %s.", oldest.Subject, Age(now.Sub(oldest.Since)))
}

// pastNamed is how many VMs or nodes a headline names of each thing that is over.
const pastNamed = 2

// pastList collects what is over, in a few words each.
type pastList []string

// addThings adds how many things there were, and about what; none where there were none.
func (p *pastList) addThings(names []string, one, several string) {
	if len(names) == 0 {
		return
	}
	count := "1 " + one
	if len(names) > 1 {
		count = fmt.Sprintf("%d %s", len(names), several)
	}
	*p = append(*p, count+formatNames(names))
}

// formatNames names the first different ones of some things, in parentheses.
func formatNames(names []string) string {
	var first []string
	more := false
	for _, n := range names {
		switch {
		case slices.Contains(first, n):
		case len(first) == pastNamed:
			more = true
		default:
			first = append(first, n)
		}
	}
	text := strings.Join(first, ", ")
	if more {
		text += ", ..."
	}
	return " (" + text + ")"
}

// describePast says what was not as it should be since From and is over; empty where nothing was.
func (o *Overview) describePast() string {
	var text pastList
	var loops, lost, unmoved, needless, overloaded, failed, outages, abandoned []string
	for _, l := range o.Closed {
		if l.ClosedBy == LoopBecameDualRetry {
			continue // it went on
		}
		loops = append(loops, l.Kind.Label().Short+formatLoopSubject(l))
	}
	for _, g := range o.Lost {
		lost = append(lost, ofVM(g.Namespace, g.VMI).String())
	}
	for _, m := range o.Recent {
		vm := ofVM(m.Namespace, m.VMI).String()
		if m.Outcome == OutcomeFailed {
			failed = append(failed, vm)
		}
		if m.Outcome == OutcomeSucceeded && m.Need == NotNeeded {
			needless = append(needless, vm)
		}
		if m.Benefit == Harmed {
			overloaded = append(overloaded, m.TargetNode)
		}
	}
	for _, x := range o.Outages {
		if x.EndedBy != "" {
			outages = append(outages, x.Node)
		}
	}
	for _, d := range o.DrainsEnded {
		if d.Outcome == DrainAbandoned {
			abandoned = append(abandoned, d.Node)
		}
	}
	text.addThings(loops, "loop closed", "loops closed")
	text.addThings(lost, "VM shut down or lost", "VMs shut down or lost")
	if how := o.describeSharedLoss(); how != "" {
		text[len(text)-1] += ": " + how
	}
	for _, e := range o.Unmoved {
		if !o.isLost(e.Evacuation) {
			unmoved = append(unmoved, ofVM(e.Namespace, e.VMI).String())
		}
	}
	text.addThings(unmoved, "evacuation ended without a move", "evacuations ended without a move")
	if len(unmoved) > 0 && o.haveMoved(unmoved) {
		text[len(text)-1] += ", moved later"
	}
	count := 0
	for _, m := range o.Moves {
		if m.Outcome == OutcomeFailed {
			count += m.Count
		}
	}
	if count > 0 {
		text = append(text, fmt.Sprintf("%d of %s failed", count, FormatCount(o.countMoves(), "migration")))
		if len(failed) > 0 { // else they are older than what is named
			text[len(text)-1] += formatNames(failed)
			if o.haveMoved(failed) {
				text[len(text)-1] += ", moved later"
			}
		}
	}
	text.addThings(needless, "needless move", "needless moves")
	text.addThings(overloaded, "move overloaded its target", "moves overloaded their targets")
	text.addThings(outages, "node was not ready", "node outages")
	text.addThings(abandoned, "drain abandoned", "drains abandoned")
	return strings.Join(text, "; ")
}

// haveMoved reports whether each of some VMs has moved since From after it had failed to.
func (o *Overview) haveMoved(vms []string) bool {
	moved := map[string]bool{}
	for vm, m := range o.newestMigrations() {
		moved[vm.String()] = m.Outcome == OutcomeSucceeded
	}
	return !slices.ContainsFunc(vms, func(vm string) bool { return !moved[vm] })
}

// describeSharedLoss says how, where and by whom the guests were lost, where that is the same of all; empty where it is not, or where none was lost.
func (o *Overview) describeSharedLoss() string {
	text := ""
	for _, g := range o.Lost {
		how := g.EndedBy.Label().Short + " on " + g.Node
		if who := g.whoAsked(); who != "" {
			how += ", asked by " + who
		}
		if text != "" && how != text {
			return ""
		}
		text = how
	}
	return text
}

// formatLoopSubject names what a loop is about, after its kind.
func formatLoopSubject(l Loop) string {
	switch {
	case l.VMI != "":
		return " of " + l.Namespace + "/" + l.VMI
	case l.Node != "":
		return " on " + l.Node
	}
	return ""
}
