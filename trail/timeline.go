package trail

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"
)

// Line is one entry of a timeline: a sentence that a person can read, and the fact that it is about.
type Line struct {
	EventID   FactID    `json:"event_id"`
	At        time.Time `json:"at"`
	Kind      Kind      `json:"kind"`
	Reason    Reason    `json:"reason"`
	Namespace string    `json:"namespace,omitempty"`
	VMI       string    `json:"vmi,omitempty"`
	VMIUID    string    `json:"vmi_uid,omitempty"`
	Node      string    `json:"node,omitempty"`
	Sentence  string    `json:"sentence"`
	SeenLate  bool      `json:"seen_late"`

	repeatedAt time.Time // of a line that counts the repetitions of a request: when the last of them was
}

// vmiLines returns the facts of a VM and the requests about its pods as sentences, in the order of their times. Facts
// that say nothing to a person who reads a story (a repeated Event, a phase on the way) have no line; they are in the
// stream of events.
func vmiLines(facts []Fact, d Derived, lives []*life, requests []*request, env *Env) []Line {
	s := speaker{migrations: map[string]*Migration{}, evacuations: map[FactID]*Evacuation{}, ends: map[FactID]*evacuation{}, lives: lives, env: env}
	for _, l := range lives {
		for _, e := range l.evacuations {
			s.ends[e.endedBy] = e
		}
	}
	for i := range d.Migrations {
		s.migrations[d.Migrations[i].UID] = &d.Migrations[i]
	}
	for i := range d.Evacuations {
		s.evacuations[d.Evacuations[i].ID] = &d.Evacuations[i]
	}
	return byTime(slices.Concat(s.renderLines(facts), requestLines(requests), decisionLines(d.Decisions), loopLines(d.Loops)))
}

// decisionLines returns the decisions about a VM: what begins to hold it back, and what met that. That the time is over
// needs no line.
func decisionLines(decisions []Decision) []Line {
	var out []Line
	for i := range decisions {
		if text := decisions[i].renderSentence(); text != "" {
			d := decisions[i]
			out = append(out, Line{
				EventID: d.ID, At: maxTime(d.DecidedAt, d.toldAt), Kind: KindCooldownDecided, Reason: Reason(d.Reason), Namespace: d.Namespace, VMI: d.VMI,
				VMIUID: d.VMIUID, Node: d.Node, Sentence: text,
			})
		}
	}
	return out
}

// loopLines returns the openings of loops, and their ends.
func loopLines(loops []Loop) []Line {
	var out []Line
	for _, l := range loops {
		line := Line{
			EventID: l.ID, At: l.OpenedAt, Kind: KindLoopOpened, Reason: Reason(l.Kind), Namespace: l.Namespace, VMI: l.VMI, VMIUID: l.VMIUID,
			Node: l.Node, Sentence: l.renderOpening(),
		}
		out = append(out, line)
		if l.Open() {
			continue
		}
		line.EventID, line.At, line.Kind, line.Reason = hashID("closed", l.ID.String()), l.ClosedAt, KindLoopClosed, Reason(l.ClosedBy)
		line.Sentence = l.renderClosing()
		out = append(out, line)
	}
	return out
}

// drainLines returns the beginnings of drains, and their ends.
func drainLines(drains []Drain) []Line {
	var out []Line
	for _, d := range drains {
		line := Line{EventID: d.ID, At: d.StartedAt, Kind: KindDrainStarted, Reason: Reason(d.RequesterClass), Node: d.Node, Sentence: d.renderOpening()}
		out = append(out, line)
		if d.Outcome == "" {
			continue
		}
		line.EventID, line.At, line.Kind, line.Reason = hashID("ended", d.ID.String()), d.EndedAt, KindDrainEnded, Reason(d.Outcome)
		line.Sentence = d.renderClosing()
		out = append(out, line)
	}
	return out
}

// factLines returns the facts of a subject that nothing is derived of.
func factLines(facts []Fact, env *Env) []Line { return byTime((&speaker{env: env}).renderLines(facts)) }

func byTime(lines []Line) []Line {
	slices.SortStableFunc(lines, func(a, b Line) int { return a.At.Compare(b.At) })
	return lines
}

// requestLines returns the lines of requests: each first one, and its repetitions together.
func requestLines(requests []*request) []Line {
	var out []Line
	repeated := map[FactID]bool{}
	for _, r := range requests {
		fact := cmp.Or(r.review, r.audit)
		if fact == nil {
			continue // the mark says it
		}
		text, repeatedAt := r.renderSentence(), time.Time{}
		if r.RepeatOf != nil {
			if repeated[*r.RepeatOf] {
				continue
			}
			repeated[*r.RepeatOf] = true
			head := headOf(requests, *r.RepeatOf)
			text, repeatedAt = r.repeatSentence(head), head.LastRepeatAt
		}
		out = append(out, Line{
			EventID: fact.ID, At: r.RequestedAt, Kind: KindEvictionRequested, Reason: Reason(r.Answer), Namespace: r.Namespace,
			VMI: r.VMI, VMIUID: r.VMIUID, Node: r.Node, Sentence: text, SeenLate: r.SeenLate,
			repeatedAt: repeatedAt,
		})
	}
	return out
}

func headOf(requests []*request, id FactID) *request {
	return requests[slices.IndexFunc(requests, func(r *request) bool { return r.ID == id })]
}

func gapLines(gaps []Gap) []Line {
	var out []Line
	for _, g := range gaps {
		text := fmt.Sprintf("From here on %s could not be seen (%s).", g.Source, g.Cause)
		if !g.ClosedAt.IsZero() {
			text = fmt.Sprintf("For %s %s could not be seen (%s).", formatSpan(g.ClosedAt.Sub(g.OpenedAt)), g.Source, g.Cause)
		}
		out = append(out, Line{EventID: g.ID, At: g.OpenedAt, Kind: KindGapOpened, Reason: g.Cause, Sentence: text})
	}
	return out
}

// speaker puts facts into words, knowing what was derived around them.
type speaker struct {
	migrations  map[string]*Migration
	evacuations map[FactID]*Evacuation
	ends        map[FactID]*evacuation // by the fact that showed the end
	lives       []*life
	env         *Env // of a node, made of its own facts
}

func (s *speaker) renderLines(facts []Fact) []Line {
	var out []Line
	for _, f := range facts {
		text := s.renderSentence(f)
		if text == "" {
			continue
		}
		line := Line{
			EventID: f.ID, At: bestTime(f), Kind: f.Kind, Reason: f.Reason, Namespace: f.Namespace,
			VMI: f.VMI, VMIUID: f.VMIUID, Node: f.Node, Sentence: text, SeenLate: f.Late,
		}
		if begun, over := s.evacuations[f.ID], s.ends[f.ID]; f.Late && begun != nil {
			line.At = begun.MarkedAt // a mark set again ends the one before, too
		} else if f.Late && over != nil {
			line.At = over.EndedAt
		}
		if m := s.migrations[f.MigrationUID]; m != nil && line.VMIUID == "" {
			line.VMIUID = m.VMIUID
		}
		out = append(out, line)
	}
	return out
}

// bestTime returns a fact's time for reading. A clock with a resolution of 1 s leaves out by how much the second had gone
// on; a live sight within that second is nearer, and keeps what happened in one second in its order. One that was seen
// later is put at the end of its second: after what was asked in it.
func bestTime(f Fact) time.Time {
	if f.Late || !f.ObservedAt.After(f.OccurredAt) {
		return f.OccurredAt
	}
	end := f.OccurredAt.Truncate(time.Second).Add(time.Second - time.Millisecond)
	if f.ObservedAt.Before(end) {
		return f.ObservedAt
	}
	return maxTime(f.OccurredAt, end)
}

func (s *speaker) renderSentence(f Fact) string {
	switch f.Kind {
	case KindEvacuationMarked:
		return s.renderMarked(f)
	case KindEvacuationUnmarked:
		if f.Reason == ReasonMigrated {
			return s.renderFulfilled(f)
		}
		return s.renderCancelled(f)
	case KindMigrationSeen, KindMigrationPhase, KindMigrationDeletionAsked, KindMigrationGone, KindMigrationCondition:
		return s.renderMigration(f)
	case KindVMIPlaced:
		return placedSentence(f)
	case KindVMIDeletionAsked:
		return "The VMI is being deleted."
	case KindVMIEnded:
		return s.renderEnded(f)
	case KindVMICondition:
		return conditionSentence(f)
	case KindAnnotationSet, KindAnnotationCleared:
		return annotationSentence(f)
	case KindLauncherPod:
		return podSentence(f)
	case KindLauncherOutdated:
		return "Its virt-launcher is outdated: KubeVirt now starts another version."
	case KindLauncherCurrent:
		return "Its virt-launcher is current again."
	case KindNodeCordoned:
		return fmt.Sprintf("Node %s was cordoned%s.", f.Node, s.formatNodeChanger(f))
	case KindNodeUncordoned:
		return fmt.Sprintf("Node %s was uncordoned%s.", f.Node, s.formatNodeChanger(f))
	case KindNodeTainted:
		return fmt.Sprintf("Node %s got the taint %s%s.", f.Node, strings.TrimPrefix(f.What, WhatTaint), s.formatNodeChanger(f))
	case KindNodeUntainted:
		return fmt.Sprintf("Node %s lost the taint %s.", f.Node, strings.TrimPrefix(f.What, WhatTaint))
	case KindNodeLabels:
		return labelsSentence(f)
	case KindNodeNotReady:
		return readinessSentence(f)
	case KindNodeReady:
		return fmt.Sprintf("Node %s is ready again.", f.Node)
	case KindNodeGone:
		return fmt.Sprintf("Node %s was deleted.", f.Node)
	case KindKubernetesEvent:
		return eventSentence(f)
	case KindConfigSeen:
		return s.configSentence(f)
	case KindActionRequested:
		return s.renderRefused(f)
	case KindBlocksObserved:
		return blocksSentence(f)
	case KindDeschedulerStarted:
		return "The descheduler was started."
	case KindMigrationResult, KindMigrationCompleted, KindEvictionRequested, KindEvictionIntent, KindEvictionProgress, KindEvictionCondition,
		KindGapOpened, KindGapClosed, KindNodeLoad, KindMigrationTransfer, KindCooldownDecided, KindLoopOpened, KindLoopClosed, KindDrainStarted, KindDrainEnded:
		return "" // said by the migration's phases, by requestLines, evictionLines and gapLines
	}
	return ""
}

// renderFulfilled says that the guest has left, and by which migration where that was no attempt of the evacuation.
func (s *speaker) renderFulfilled(f Fact) string {
	text := fmt.Sprintf("The evacuation from %s is over: the guest has left the node", f.Node)
	if e := s.ends[f.ID]; e != nil {
		if m := s.migrations[e.FulfilledBy]; m != nil && !m.isAttemptOf(e.ID) {
			text += ", by " + m.formatOrigin()
		}
	}
	return text + "."
}

func (s *speaker) renderMarked(f Fact) string {
	e := s.evacuations[f.ID]
	if e == nil {
		return ""
	}
	text := fmt.Sprintf("KubeVirt marked it to leave %s.", e.Node)
	if e.Requester == "" || e.Confidence == ConfidenceInferred { // else its request has a line of its own
		text = fmt.Sprintf("KubeVirt accepted to move it away from %s: asked by %s (%s).", e.Node, e.formatRequester(), e.Confidence)
	}
	if e.Strategy == StrategyExternal {
		text += " Its strategy is External: KubeVirt itself will not move it."
	}
	return text
}

func (s *speaker) renderMigration(f Fact) string {
	m := s.migrations[f.MigrationUID]
	if m == nil {
		return ""
	}
	switch {
	case f.Kind == KindMigrationSeen:
		return fmt.Sprintf("%s was created%s (%s).", UpperFirst(m.formatLabel()), m.formatCreator(), m.formatTrigger())
	case f.Kind == KindMigrationDeletionAsked && m.goneWithVMI():
		return fmt.Sprintf("%s deleted %s, whose VMI had been deleted.", cmp.Or(m.AbortedBy, "Somebody"), m.formatLabel())
	case m.goneWithVMI() && (f.Value == PhaseFailed || f.Kind == KindMigrationGone && m.Phase != PhaseFailed):
		return fmt.Sprintf("%s ended because the VMI was deleted.", UpperFirst(m.formatLabel()))
	case f.Kind == KindMigrationDeletionAsked && m.Outcome == OutcomeAborted:
		return fmt.Sprintf("%s deleted %s before it was over.", m.whoAborted(), m.formatLabel())
	case f.Kind == KindMigrationCondition && f.Value != "":
		d, _ := f.Detail.(*ConditionDetail)
		if d == nil || d.Type == ConditionAbortRequested {
			return ""
		}
		return fmt.Sprintf("%s reports %s.", UpperFirst(m.formatLabel()), strings.TrimSpace(d.Type+" "+d.Message))
	case f.Kind == KindMigrationGone && f.Late && m.Phase != PhaseFailed && m.AbortedBy != "":
		return fmt.Sprintf("%s deleted %s before it was over, at %s.", m.whoAborted(), m.formatLabel(), FormatClock(m.FinishedAt))
	case f.Kind == KindMigrationGone && m.FailureReason == CauseEndNotSeen:
		return fmt.Sprintf("%s is gone; how it ended was not seen.", UpperFirst(m.formatLabel()))
	case f.Value == PhaseRunning:
		return fmt.Sprintf("%s began to move data%s.", UpperFirst(m.formatLabel()), formatRoute(m))
	case f.Value == PhaseSucceeded:
		return fmt.Sprintf("%s succeeded%s.", UpperFirst(m.formatLabel()), formatRoute(m))
	case f.Value == PhaseFailed:
		return fmt.Sprintf("%s %s%s: %s.", UpperFirst(m.formatLabel()), formatOutcome(m.Outcome), formatRoute(m), m.whyFailed())
	}
	return ""
}

// formatNodeChanger names who changed a node, as far as it is known.
func (s *speaker) formatNodeChanger(change Fact) string {
	if who := s.env.nodeChangedBy(change); who != nil {
		return " by " + s.env.formatRequester(who)
	}
	return ""
}

func (s *speaker) renderCancelled(f Fact) string {
	who := ""
	if e := s.ends[f.ID]; e != nil {
		who = formatByUser(e.CancelledBy, e.CancelImpersonator)
	}
	return fmt.Sprintf("The evacuation from %s was cancelled%s: the mark is gone and the guest is still there.", f.Node, who)
}

// whoAborted names who deleted the migration, at the beginning of a sentence.
func (m *Migration) whoAborted() string {
	if m.AbortedBy == "" {
		return "Somebody"
	}
	return formatRequester(m.AbortedBy, m.AbortImpersonator, RequesterOther)
}

// renderRefused returns what was asked and refused; what was granted shows on the object, with who asked.
func (s *speaker) renderRefused(f Fact) string {
	d, ok := f.Detail.(*RequestDetail)
	switch {
	case !ok || d.isAccepted() || d.DryRun || f.Kind != KindActionRequested:
		return ""
	case f.Reason == ReasonMigrationCreated || f.Reason == ReasonMigrateCalled:
		return fmt.Sprintf("%s asked for a migration%s and was refused%s: %s", s.env.formatRequester(d), formatName(d.Name), codeText(d.Code), d.Message)
	case f.Reason == ReasonCancelCalled:
		return fmt.Sprintf("%s asked to cancel the evacuation and was refused%s: %s", s.env.formatRequester(d), codeText(d.Code), d.Message)
	}
	return ""
}

func formatName(name string) string {
	if name == "" {
		return ""
	}
	return " (" + name + ")"
}

func placedSentence(f Fact) string {
	switch f.Reason {
	case ReasonStarted:
		return fmt.Sprintf("The guest was started on %s.", f.Node)
	case ReasonFound:
		return fmt.Sprintf("The guest was found on %s.", f.Node)
	default:
		return fmt.Sprintf("The guest now runs on %s.", f.Node)
	}
}

// renderEnded says that a VMI ended: by what Kubernetes did to its pod, where that is why.
func (s *speaker) renderEnded(f Fact) string {
	if l := lifeOf(s.lives, f.Object.UID); l != nil && f.What != WhatGone && l.ending.cause.ByPlatform() {
		return l.ending.renderSentence()
	}
	switch f.Reason {
	case ReasonGuestStopped:
		return "The guest was shut down."
	case ReasonGuestFailed:
		return "The guest failed: it was lost, or its pod was taken away."
	case ReasonDeletedUnseen:
		return "The VMI is gone; it was deleted while nobody watched."
	case ReasonNotRestored:
		return "The VMI is gone: it was not there any more when the cluster had been restored from a backup or rebuilt."
	default:
		return "The VMI was deleted."
	}
}

func conditionSentence(f Fact) string {
	d, ok := f.Detail.(*ConditionDetail)
	if !ok {
		return ""
	}
	switch {
	case d.Type == ConditionEvictionRequested:
		return "" // the mark says it
	case d.Type == ConditionLiveMigratable && d.Status == "":
		return "It can be live-migrated again."
	case d.Type == ConditionLiveMigratable:
		return fmt.Sprintf("It cannot be live-migrated: %s.", strings.TrimSpace(d.Reason+" "+d.Message))
	case d.Status == "":
		return fmt.Sprintf("Condition %s went away.", d.Type)
	}
	return fmt.Sprintf("Condition %s is %s %s.", d.Type, d.Status, d.Reason)
}

func annotationSentence(f Fact) string {
	switch {
	case f.Reason == ReasonPreferNoEviction && f.Kind == KindAnnotationCleared:
		return "The pod no longer asks the descheduler to leave it alone (prefer-no-eviction)."
	case f.Reason == ReasonPreferNoEviction:
		return "The pod asks the descheduler to leave it alone (prefer-no-eviction)."
	case f.Reason != ReasonEvictionInProgress:
		return ""
	case f.Kind == KindAnnotationCleared:
		return "The annotation eviction-in-progress was taken off the pod: the descheduler now believes that nothing is under way."
	}
	return "The pod got the annotation eviction-in-progress: a descheduler that heeds it counts the eviction as under way."
}

func blocksSentence(f Fact) string {
	d, ok := f.Detail.(*BlocksDetail)
	if !ok {
		return ""
	}
	what := "1 eviction"
	if d.Increase != 1 {
		what = fmt.Sprintf("%d evictions", d.Increase)
	}
	return fmt.Sprintf("The descheduler held back %s from %s in namespace %s (%s).", what, f.Node, f.Namespace, d.Reason)
}

func podSentence(f Fact) string {
	d, ok := f.Detail.(*PodDetail)
	if !ok || f.Reason != ReasonUnschedulable {
		return ""
	}
	return fmt.Sprintf("The scheduler finds no node for pod %s: %s", d.Pod, d.Message)
}

// readinessSentence says that a node is not ready any more, and why.
func readinessSentence(f Fact) string {
	if f.Reason == ReasonKubeletSilent {
		return fmt.Sprintf("Node %s is not ready: its kubelet does not answer.", f.Node)
	}
	o := Outage{Cause: OutageReported}
	if d, ok := f.Detail.(*ConditionDetail); ok {
		o.Message = conditionText(d)
	}
	return fmt.Sprintf("Node %s is not ready: %s.", f.Node, o.describeCause())
}

func eventSentence(f Fact) string {
	d, ok := f.Detail.(*KubeEventDetail)
	if !ok || d.Count > 1 || d.Type != "Warning" {
		return ""
	}
	switch d.Reason {
	case "Migrated", "FailedMigration":
		return "" // the migration's own end says it
	case "MigrationBackoff":
		return "" // its own decision says it, with the time
	}
	return fmt.Sprintf("KubeVirt reports %s: %s", d.Reason, d.Message)
}

func (s *speaker) configSentence(f Fact) string {
	d, ok := f.Detail.(*ConfigDetail)
	switch {
	case f.Reason == ReasonMigrationPolicyDeleted:
		return fmt.Sprintf("The MigrationPolicy %s was deleted.", s.env.migrationPolicyName(f))
	case !ok:
		return ""
	case d.KubeVirt != nil:
		return fmt.Sprintf("The settings of KubeVirt %s were seen.", d.KubeVirt.Version)
	case d.MigrationPolicy != nil:
		return fmt.Sprintf("The MigrationPolicy %s was seen.", d.MigrationPolicy.Name)
	case d.Problem != "":
		return fmt.Sprintf("The policy of the descheduler was seen; its settings cannot be read: %s.", d.Problem)
	}
	return "The policy of the descheduler was seen."
}
