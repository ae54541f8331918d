package trail

import (
	"cmp"
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

// Headline says the worst of the incidents and the oldest, else what happened since From, else that all is clear. It claims that
// nothing is wrong only where the recorder is certain; nil: nothing is known of it.
func (o *Overview) Headline(incidents []Incident, recorder *RecorderStatus) Headline {
	certain := recorder != nil && recorder.Certain()
	span := formatAbout(o.At.Sub(o.From))
	h := Headline{Severity: SeverityWarning}
	past := o.describePast()
	switch {
	case len(incidents) > 0:
		h.Severity = incidents[0].Severity
		h.Text = describeIncidents(incidents, o.At)
		if !certain {
			h.Text += " There may be more: the cluster is not fully recorded."
		}
	case !certain && past == "":
		h.Text = "Not known whether all is well: the cluster is not fully recorded."
	case !certain:
		h.Text = fmt.Sprintf("Not known whether something is wrong now: the cluster is not fully recorded. In the last %s: %s.", span, past)
	case past != "":
		h.Text = fmt.Sprintf("Nothing is wrong %s. In the last %s: %s.", selectNow(recorder), span, past)
	default:
		h.Severity = SeverityNone
		h.Text = fmt.Sprintf("All clear%s: 0 loops, 0 stuck, %s in %s; all sources are watched.", selectEnd(recorder), formatCount(o.countMoves(), "move"), span)
		if recorder.Replayed {
			h.Text = fmt.Sprintf("All clear%s: 0 loops, 0 stuck, %s in %s.", selectEnd(recorder), formatCount(o.countMoves(), "move"), span)
		}
	}
	return h
}

func selectNow(recorder *RecorderStatus) string {
	if recorder.Replayed {
		return "at the end of the recording"
	}
	return "now"
}

func selectEnd(recorder *RecorderStatus) string {
	if recorder.Replayed {
		return " at the end of the recording"
	}
	return ""
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
	var also []string
	for t := range Trouble(len(troubleWords)) {
		if others := of[t]; t != lead.Trouble && len(others) > 0 {
			also = append(also, formatTrouble(others))
		}
	}
	if len(also) > 0 {
		text = append(text, "Also: "+strings.Join(also, "; ")+".")
	}
	return strings.Join(nonEmpty(text), " ")
}

// describeAlone is a sentence about one incident.
func (i Incident) describeAlone(now time.Time) string {
	text := upperFirst(i.Subject.String())
	if i.Subject.Kind == IncidentOfVM {
		text = i.Subject.String()
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
		text += ", " + formatCount(i.Failed, "failed attempt")
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
	return formatCount(len(incidents), noun)
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

// describePast says what was not as it should be since From and is over; empty where nothing was.
func (o *Overview) describePast() string {
	var text []string
	add := func(n int, one, several string) {
		switch n {
		case 0:
		case 1:
			text = append(text, "1 "+one)
		default:
			text = append(text, fmt.Sprintf("%d %s", n, several))
		}
	}
	add(len(o.Closed), "loop closed", "loops closed")
	failed, all := 0, o.countMoves()
	for _, m := range o.Moves {
		if m.Outcome == OutcomeFailed {
			failed += m.Count
		}
	}
	if failed > 0 {
		text = append(text, fmt.Sprintf("%d of %s failed", failed, formatCount(all, "migration")))
	}
	add(len(o.Lost), "guest lost", "guests lost")
	needless, harmful := 0, 0
	for _, m := range o.Recent {
		if m.Outcome == OutcomeSucceeded && m.Need == NotNeeded {
			needless++
		}
		if m.Benefit == Harmed {
			harmful++
		}
	}
	add(needless, "move was not needed", "moves were not needed")
	add(harmful, "move overloaded its target", "moves overloaded their targets")
	over := 0
	for _, x := range o.Outages {
		if x.EndedBy != "" {
			over++
		}
	}
	add(over, "node was not ready", "nodes were not ready")
	abandoned := 0
	for _, d := range o.DrainsEnded {
		if d.Outcome == DrainAbandoned {
			abandoned++
		}
	}
	add(abandoned, "drain abandoned", "drains abandoned")
	return strings.Join(text, ", ")
}

// FleetLine is how it stands with one cluster among several.
type FleetLine struct {
	ClusterSummary
	Severity Severity
	Oldest   time.Time // since when the oldest of what is open is; zero where nothing is
	Text     string    // the worst, in a sentence; empty where nothing is wrong
}

// NeedsAttention reports whether something is wrong with the cluster or its recorder.
func (l FleetLine) NeedsAttention() bool { return l.Severity >= SeverityWarning }

// NewFleetLine returns the line of a cluster; o is nil where nothing is open in it.
func NewFleetLine(c ClusterSummary, recorder *RecorderStatus, o *Overview) FleetLine {
	line := FleetLine{ClusterSummary: c}
	if o != nil {
		incidents := o.Incidents()
		for _, i := range incidents {
			line.Oldest = minNonZeroTime(line.Oldest, i.Since)
		}
		for _, d := range o.Drains {
			line.Oldest = minNonZeroTime(line.Oldest, d.StartedAt)
		}
		if len(incidents) > 0 {
			line.Severity, line.Text = incidents[0].Severity, describeIncidents(incidents, o.At)
		} else if len(o.Drains) > 0 {
			line.Severity, line.Text = SeverityInfo, o.Drains[0].Node+": "+o.Drains[0].Standing(o.At)+"."
		}
	}
	if recorder != nil && !recorder.Certain() {
		line.Severity = max(line.Severity, SeverityWarning)
		line.Text = strings.Join(nonEmpty([]string{firstOf(recorder.Why), line.Text}), " ")
	}
	return line
}

// SortFleet sorts lines: the worst first, of equal ones those with more that is open, then the oldest.
func SortFleet(lines []FleetLine) {
	open := func(l FleetLine) int { return l.Loops + l.Stuck }
	slices.SortStableFunc(lines, func(a, b FleetLine) int {
		return cmp.Or(cmp.Compare(b.Severity, a.Severity), cmp.Compare(open(b), open(a)), cmp.Compare(b.Drains, a.Drains), cmp.Compare(b.Closed, a.Closed), cmp.Compare(a.Name, b.Name))
	})
}
