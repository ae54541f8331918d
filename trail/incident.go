package trail

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"
)

// Severity says how much something needs a person.
type Severity int

// The severities, from the least to the most.
const (
	SeverityNone     Severity = iota // nothing is wrong
	SeverityInfo                     // it may end by itself
	SeverityWarning                  // it does not end by itself, or is over and left something to look at
	SeverityCritical                 // it does not end by itself, and harms others or is repeated for nothing
)

// String returns the severity as a word at the beginning of a sentence.
func (s Severity) String() string {
	return severityWords[s]
}

var severityWords = []string{"OK", "Info", "Warning", "Critical"}

// MarshalText returns the severity as programs read it: its word in lower case.
func (s Severity) MarshalText() ([]byte, error) { return []byte(strings.ToLower(s.String())), nil }

// UnmarshalText reads what MarshalText returned.
func (s *Severity) UnmarshalText(text []byte) error {
	i := slices.IndexFunc(severityWords, func(word string) bool { return strings.EqualFold(word, string(text)) })
	if i < 0 {
		return fmt.Errorf("severity %q: expected one of %v", text, Severities())
	}
	*s = Severity(i)
	return nil
}

// Severities lists the severities as programs read them, from the least to the most.
func Severities() []string {
	all := slices.Clone(severityWords)
	for i := range all {
		all[i] = strings.ToLower(all[i])
	}
	return all
}

// Trouble says what is the matter with the subject of an incident.
type Trouble int

// The troubles, from the worst: a headline names them in this order.
const (
	TroubleStuck     Trouble = iota // a VM cannot leave its node: attempts fail
	TroubleShutdowns                // a VM is shut down again and again
	TroubleSlots                    // the descheduler can evict nothing from a node, or from any
	TroubleNode                     // a node is not ready
	TroubleBlocker                  // a VM keeps a drain from ending
	TroubleFailures                 // a VM fails to move again and again
	TroubleMoves                    // a VM is moved again and again
	TroubleSwings                   // a node exchanges VMs with others again and again
	TroubleOwner                    // a VM waits for its owner to move it
	TroubleWaiting                  // a VM is marked to leave its node, and there is no attempt
)

// troubleWords say what one subject does, and what several do.
var troubleWords = [...]struct{ one, several string }{
	TroubleStuck:     {"cannot leave its node", "cannot leave their nodes"},
	TroubleShutdowns: {"is shut down again and again", "are shut down again and again"},
	TroubleSlots:     {"has no free descheduler slot", "have no free descheduler slot"},
	TroubleNode:      {"is not ready", "are not ready"},
	TroubleBlocker:   {"blocks a drain", "block drains"},
	TroubleFailures:  {"fails to move again and again", "fail to move again and again"},
	TroubleMoves:     {"is moved again and again", "are moved again and again"},
	TroubleSwings:    {"exchanges VMs with other nodes again and again", "exchange VMs with other nodes again and again"},
	TroubleOwner:     {"waits for its owner to move it", "wait for their owners to move them"},
	TroubleWaiting:   {"is marked to leave its node, without an attempt", "are marked to leave their nodes, without an attempt"},
}

// String says what the subject of one incident does, such as "cannot leave its node".
func (t Trouble) String() string { return troubleWords[t].one }

// IncidentSubject is the VM, the node or the cluster that an incident is about.
type IncidentSubject struct {
	Kind      string // vm, node or cluster
	Namespace string // of a VM
	Name      string
}

// The kinds of subjects of incidents.
const (
	IncidentOfVM      = "vm"
	IncidentOfNode    = "node"
	IncidentOfCluster = "cluster"
)

// String returns namespace/name of a VM, and the name of a node.
func (s IncidentSubject) String() string {
	switch s.Kind {
	case IncidentOfVM:
		return s.Namespace + "/" + s.Name
	case IncidentOfCluster:
		return "the cluster"
	}
	return s.Name
}

// Incident is what is wrong now with one VM or node: all loops, evacuations, drain blockers and waits about it.
type Incident struct {
	Subject   IncidentSubject
	Trouble   Trouble
	Severity  Severity
	Cause     string    // why, in a few words that are equal for equal causes
	Node      string    // where it is; empty where that is no single node
	Requester string    // who asked, as FormatShortRequester names them; empty where nobody asks for anything
	Since     time.Time // since when the subject is in this trouble
	Attempts  int       // of its evacuation
	Failed    int       // of these
	Effects   []string  // what it does to others, each in a few words
	Held      string    // what it waits for, such as "in backoff until 00:40:00"; empty where it waits for nothing
	NextRetry time.Time // before which there is no next attempt; zero where none is due
	Overdue   time.Duration
	Load      string // how loaded its node was when the last attempt began; empty where that is not known
	Loops     []Loop
	Advice    string // empty where there is none

	Acknowledged *Acknowledgement // who knows of it; nil where nobody said so
}

// isLoopCritical reports whether a kind of loop harms others, or repeats something for nothing.
func isLoopCritical(k LoopKind) bool {
	switch k {
	case LoopDualRetry, LoopEndlessRetry, LoopShutdownChurn, LoopBudgetPinned:
		return true
	case LoopPingPong, LoopChurn, LoopOscillation, LoopFrequentMoves, LoopRepeatedFailures, LoopPriorityInversion, LoopUnansweredExternal:
	}
	return false
}

// loopTrouble returns the trouble that a loop of a kind is, for its subject.
func loopTrouble(k LoopKind) Trouble {
	switch k {
	case LoopDualRetry, LoopEndlessRetry:
		return TroubleStuck
	case LoopShutdownChurn:
		return TroubleShutdowns
	case LoopBudgetPinned:
		return TroubleSlots
	case LoopPriorityInversion:
		return TroubleBlocker
	case LoopPingPong, LoopChurn, LoopFrequentMoves:
		return TroubleMoves
	case LoopOscillation:
		return TroubleSwings
	case LoopRepeatedFailures:
		return TroubleFailures
	case LoopUnansweredExternal:
		return TroubleOwner
	}
	return TroubleStuck
}

// incidentList collects incidents, at most one of each subject.
type incidentList struct {
	at       time.Time
	kubevirt KubeVirtSettings
	all      map[IncidentSubject]*Incident
}

// Incidents returns what is wrong with the cluster now, one for each VM or node: those that nobody has acknowledged first, the worst before others, of equal ones
// the oldest.
func (o *Overview) Incidents() []Incident {
	list := incidentList{o.At, o.KubeVirt, map[IncidentSubject]*Incident{}}
	for _, e := range o.Stuck {
		list.addStuck(e)
	}
	for _, e := range o.Waiting {
		list.addWaiting(e)
	}
	for _, x := range o.Outages {
		list.addOutage(x)
	}
	for _, l := range o.Loops {
		list.addLoop(l)
	}
	for _, b := range o.Blockers {
		list.addBlocker(b)
	}
	for _, h := range o.Held {
		if i := list.all[ofVM(h.Namespace, h.VMI)]; i != nil && !h.Until.Equal(i.NextRetry) { // else the next attempt says it
			i.Held = fmt.Sprintf("%s until %s", h.Layer.Label(), FormatClock(h.Until))
		}
	}
	for _, m := range slices.Backward(o.Recent) {
		if i := list.all[ofVM(m.Namespace, m.VMI)]; i != nil && i.Attempts > 0 && m.Need != NeedUnknown {
			i.Load = m.NeedBecause
		}
	}
	for _, g := range o.Lost {
		if i := list.all[IncidentSubject{Kind: IncidentOfNode, Name: g.Node}]; i != nil && i.Trouble == TroubleNode && g.mayRunTwice() {
			i.addEffect("%s runs on %s, and may still run on %s", ofVM(g.Namespace, g.VMI), g.StartedOn, g.Node)
			i.Advice = fmt.Sprintf("Switch %s off at once (fence it), or make sure that it is off: until then %s may run twice and damage its disks.\n%s", g.Node, ofVM(g.Namespace, g.VMI), i.Advice)
		}
	}
	o.explainMoves(list)
	for i := range slices.Backward(o.Acknowledged) { // the newest counts
		if known := list.all[incidentSubject(o.Acknowledged[i].Subject())]; known != nil {
			known.Acknowledged = &o.Acknowledged[i]
		}
	}
	return list.sorted()
}

// explainMoves says why VMs are moved again and again, where the recent migrations show it, and when the last move was.
func (o *Overview) explainMoves(list incidentList) {
	for vm, m := range o.newestMigrations() {
		i := list.all[vm]
		if i == nil || i.Trouble != TroubleMoves || m.Outcome != OutcomeSucceeded {
			continue
		}
		i.addEffect("the last time at %s", FormatClock(m.FinishedAt))
		if cause := o.findMover(vm); cause != "" {
			i.Cause = cause
		}
	}
}

// findMover returns why a VM is moved again and again: its targets go over the threshold, or another VM that comes pushes it out; empty where the recent
// migrations show neither.
func (o *Overview) findMover(vm IncidentSubject) string {
	pushed := ""
	for _, m := range o.Recent {
		if ofVM(m.Namespace, m.VMI) != vm {
			continue
		}
		if m.Benefit == Harmed {
			return "its targets go over the threshold"
		}
		for _, x := range o.Recent {
			if x.Benefit == Harmed && x.TargetNode == m.SourceNode && m.CreatedAt.After(x.FinishedAt) && m.CreatedAt.Sub(x.FinishedAt) <= causesWithin {
				pushed = "pushed out by " + ofVM(x.Namespace, x.VMI).String()
			}
		}
	}
	return pushed
}

// incidentSubject returns whom an incident is about that is about a VM or a node.
func incidentSubject(of Subject) IncidentSubject {
	if of.Kind == SubjectNode {
		return IncidentSubject{Kind: IncidentOfNode, Name: of.Name}
	}
	namespace, name := of.VM()
	return ofVM(namespace, name)
}

func ofVM(namespace, name string) IncidentSubject {
	return IncidentSubject{Kind: IncidentOfVM, Namespace: namespace, Name: name}
}

// sorted returns the incidents in the order of Incidents.
func (l *incidentList) sorted() []Incident {
	out := make([]Incident, 0, len(l.all))
	for _, i := range l.all {
		if i.Since.IsZero() {
			i.Since = l.at
		}
		out = append(out, *i)
	}
	slices.SortFunc(out, func(a, b Incident) int {
		return cmp.Or(compareAcknowledged(a, b), cmp.Compare(b.Severity, a.Severity), cmp.Compare(a.Trouble, b.Trouble), a.Since.Compare(b.Since), cmp.Compare(a.Subject.String(), b.Subject.String()))
	})
	return out
}

// compareAcknowledged puts what is acknowledged after what is not.
func compareAcknowledged(a, b Incident) int {
	return CompareBools(a.Acknowledged != nil, b.Acknowledged != nil)
}

// CompareBools orders those for which something holds after those for which it does not.
func CompareBools(a, b bool) int {
	switch {
	case a == b:
		return 0
	case a:
		return 1
	}
	return -1
}

// openIncident returns the incident of a subject, which is made where there is none. One that is worse takes the place of what was known.
func (l *incidentList) openIncident(of IncidentSubject, trouble Trouble, severity Severity, cause, node string, since time.Time) *Incident {
	i := l.all[of]
	if i == nil {
		i = &Incident{Subject: of, Trouble: trouble, Cause: cause, Node: node, Since: since}
		l.all[of] = i
	}
	i.Severity = max(i.Severity, severity)
	if trouble < i.Trouble {
		i.Trouble, i.Cause = trouble, cause
	}
	if i.Node == "" {
		i.Node = node
	}
	if since.Before(i.Since) {
		i.Since = since
	}
	return i
}

func (l *incidentList) addStuck(e Evacuation) {
	i := l.openIncident(ofVM(e.Namespace, e.VMI), TroubleStuck, SeverityWarning, formatFailure(e.LastFailureClass, e.LastFailureReason), e.Node, e.MarkedAt)
	i.Requester = FormatShortRequester(e.Requester, e.Impersonator, e.RequesterClass)
	i.Attempts, i.Failed, i.NextRetry, i.Overdue = e.Attempts, e.FailedAttempts, e.NextRetryAt, e.RetryOverdue(l.at)
	i.Advice = adviceStuck(&e, l.kubevirt)
}

func (l *incidentList) addWaiting(e Evacuation) {
	severity := SeverityInfo
	if l.at.Sub(e.MarkedAt) >= waitingLong {
		severity = SeverityWarning
	}
	trouble, cause := TroubleWaiting, "no attempt yet"
	if e.Strategy == StrategyExternal {
		trouble, cause = TroubleOwner, "eviction strategy External"
	}
	i := l.openIncident(ofVM(e.Namespace, e.VMI), trouble, severity, cause, e.Node, e.MarkedAt)
	i.Requester = FormatShortRequester(e.Requester, e.Impersonator, e.RequesterClass)
	i.Advice = strings.Join([]string{
		adviceWithdraw(&e, l.kubevirt),
		"Otherwise find out what it waits for:", fmt.Sprintf("  evictrail why-not %s", e.formatVM()),
	}, "\n")
}

// waitingLong is how long after its mark an evacuation without any attempt no longer begins by itself, most likely.
const waitingLong = 10 * time.Minute

func (l *incidentList) addOutage(x Outage) {
	if x.EndedBy != "" {
		return
	}
	i := l.openIncident(IncidentSubject{Kind: IncidentOfNode, Name: x.Node}, TroubleNode, SeverityWarning, x.Cause.Label().Short, x.Node, x.BeganAt)
	i.Advice = adviceOutage(x.Node)
	if x.blocksMigration() {
		i.Severity = SeverityCritical
		i.Effects = append(i.Effects, "no VM can be live-migrated off "+x.Node)
	}
}

// addLoop adds a loop to the incident of its VM. One about slots goes to the VMs that hold them, where they are known.
func (l *incidentList) addLoop(loop Loop) {
	severity := SeverityWarning
	if isLoopCritical(loop.Kind) {
		severity = SeverityCritical
	}
	if loop.Kind == LoopBudgetPinned && l.addPinned(loop) {
		return
	}
	of := ofVM(loop.Namespace, loop.VMI)
	switch {
	case loop.VMI == "" && loop.Node != "":
		of = IncidentSubject{Kind: IncidentOfNode, Name: loop.Node}
	case loop.VMI == "":
		of = IncidentSubject{Kind: IncidentOfCluster}
	}
	i := l.openIncident(of, loopTrouble(loop.Kind), severity, loop.Name(), loop.Node, loop.OpenedAt)
	i.Loops = append(i.Loops, loop)
	i.Advice = cmp.Or(loop.Advice, i.Advice)
	switch loop.Kind {
	case LoopDualRetry:
		if n := loop.Counts[countOtherVMs]; n > 0 {
			i.addEffect("%s evicted from %s instead", FormatCount(n, "other VM"), loop.Node)
		}
	case LoopPriorityInversion:
		i.addEffect("blocks the drain of %s", loop.Node)
	case LoopPingPong:
		i.addEffect("moved back %s", formatRepetition(loop.Counts[countReturns]))
		i.Requester = RequesterDescheduler.Label().Short
	case LoopChurn:
		i.addEffect("moved %s", formatRepetition(loop.Counts[countMoves]))
		i.Requester = RequesterDescheduler.Label().Short
	case LoopOscillation:
		i.addEffect("%s moved away and back", FormatCount(loop.Counts[countMembers], "VM"))
		i.Requester = RequesterDescheduler.Label().Short
	case LoopFrequentMoves:
		i.addEffect("moved %s", formatRepetition(loop.Counts[countMoves]))
	case LoopRepeatedFailures:
		i.addEffect("failed to move %s", formatRepetition(loop.Counts[countFailures]))
	case LoopShutdownChurn:
		i.addEffect("shut down %s", formatRepetition(loop.Counts[countShutdowns]))
		i.Requester = RequesterDescheduler.Label().Short
	case LoopEndlessRetry, LoopBudgetPinned, LoopUnansweredExternal:
	}
}

// addPinned adds a loop about slots to the VMs that hold them, and reports whether there is any.
func (l *incidentList) addPinned(loop Loop) bool {
	added := false
	for _, x := range loop.Evidence {
		namespace, name, _ := strings.Cut(x.VMI, "/")
		i := l.all[ofVM(namespace, name)]
		if i == nil {
			continue
		}
		added = true
		i.Severity, i.Loops = SeverityCritical, append(i.Loops, loop)
		if loop.Node == "" {
			i.addEffect("blocks the descheduler")
		} else {
			i.addEffect("blocks the descheduler on %s", loop.Node)
		}
	}
	return added
}

// addBlocker adds what keeps a drain from ending. A VM that is on its way, or whose turn comes, is none of its own.
func (l *incidentList) addBlocker(b DrainBlocker) {
	of := ofVM(b.Namespace, b.VMI)
	switch b.Blocker {
	case BlockerMigrating, BlockerQueued:
		if l.all[of] == nil {
			return
		}
	case BlockerNotMigratable, BlockerFailing, BlockerExternal, BlockerOptedOut, BlockerPDB, BlockerNodeNotReady:
	}
	i := l.openIncident(of, TroubleBlocker, SeverityWarning, b.Blocker.Label().Short, b.Node, b.WaitingSince)
	if i.Trouble == TroubleStuck {
		i.Severity = SeverityCritical
	}
	i.addEffect("blocks the drain of %s", b.Node)
	if i.Advice == "" {
		i.Advice = UpperFirst(b.Reason) + ".\nNext: " + b.Next + "."
	}
}

// addEffect adds what the subject does to others, once.
func (i *Incident) addEffect(format string, args ...any) {
	if text := fmt.Sprintf(format, args...); !slices.Contains(i.Effects, text) {
		i.Effects = append(i.Effects, text)
	}
}

// IncidentGroup are incidents of one trouble and one cause, all of which are acknowledged, or none.
type IncidentGroup struct {
	Trouble   Trouble
	Cause     string
	Incidents []Incident
}

// Heading says what the incidents of the group have in common, such as "12 VMs cannot leave their nodes: data transfer, libvirt error".
func (g IncidentGroup) Heading() string {
	if g.Incidents[0].Acknowledged != nil {
		return formatTrouble(g.Incidents) + ": " + g.Cause + " (acknowledged)"
	}
	return formatTrouble(g.Incidents) + ": " + g.Cause
}

// GroupIncidents groups incidents by what causes them where that shortens the list, else it returns one group without a cause. Groups that are not acknowledged come
// first, the worst before others, of equal ones the largest.
func GroupIncidents(incidents []Incident) []IncidentGroup {
	type key struct {
		trouble      Trouble
		cause        string
		acknowledged bool
	}
	place := map[key]int{}
	var groups []IncidentGroup
	for _, i := range incidents {
		k := key{i.Trouble, i.Cause, i.Acknowledged != nil}
		at, known := place[k]
		if !known {
			at = len(groups)
			place[k], groups = at, append(groups, IncidentGroup{Trouble: i.Trouble, Cause: i.Cause})
		}
		groups[at].Incidents = append(groups[at].Incidents, i)
	}
	if len(incidents) < 4 || 2*len(groups) > len(incidents) {
		return []IncidentGroup{{Incidents: incidents}}
	}
	slices.SortStableFunc(groups, func(a, b IncidentGroup) int {
		return cmp.Or(compareAcknowledged(a.Incidents[0], b.Incidents[0]), cmp.Compare(b.Incidents[0].Severity, a.Incidents[0].Severity), cmp.Compare(len(b.Incidents), len(a.Incidents)))
	})
	return groups
}

// FormatShortRequester names who asked in a few words: a known program by its name, another service account by namespace/name, a user by name.
func FormatShortRequester(user, impersonator string, class RequesterClass) string {
	name := ShortRequester(user, class)
	switch {
	case user == "" || class.isController() && class != RequesterServiceAccount && strings.HasPrefix(user, "system:"):
		name = class.Label().Short
	case class == RequesterKubectl:
		name += " (kubectl)"
	}
	if impersonator != "" {
		name += ", impersonated by " + FormatShortRequester(impersonator, "", RequesterOther)
	}
	return name
}
