package trail

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"
)

// isAboutEviction reports whether a line or a fact is about EvictionRequests and the Eviction of a pod.
func (k Kind) isAboutEviction() bool {
	return k == KindEvictionIntent || k == KindEvictionProgress || k == KindEvictionCondition
}

// evictionLines returns the lines about EvictionRequests for the pods of a VM.
func evictionLines(pods map[string]*launcher, env *Env) []Line {
	var out []Line
	for _, name := range slices.Sorted(maps.Keys(pods)) {
		p := pods[name]
		lines := podEvictionLines(env.findPodRequests(p.podSubject()), name)
		for i := range lines {
			lines[i].VMI, lines[i].VMIUID, lines[i].Node = p.vmi, p.vmiUID, p.node
		}
		out = append(out, lines...)
	}
	return out
}

// podEvictionLines returns the lines about EvictionRequests among the facts about a pod. What an EvictionRequest and
// the Eviction both say is said once, and of the messages of a responder the first and the last are.
func podEvictionLines(facts []Fact, pod string) []Line {
	facts = SortFacts(facts)
	changed := map[FactID]intentChange{}
	for _, c := range podEvictionOf(facts).intents {
		changed[c.fact.ID] = c
	}
	said, reports := map[string]bool{}, outerReports(facts)
	var out []Line
	for i := range facts {
		f, text := &facts[i], ""
		switch f.Kind {
		case KindEvictionIntent:
			if c, is := changed[f.ID]; is {
				text = c.renderSentence(pod)
			}
		case KindEvictionProgress:
			if f.Reason != ReasonResponderReports || reports[f.ID] {
				text = responderSentence(f, pod)
			}
		case KindEvictionCondition:
			if text = evictionConditionSentence(f, pod); said[text] {
				text = ""
			}
			said[text] = true
		default:
		}
		if text != "" {
			out = append(out, Line{
				EventID:   f.ID,
				At:        bestTime(*f),
				Kind:      f.Kind,
				Reason:    f.Reason,
				Namespace: f.Namespace,
				Sentence:  text,
				SeenLate:  f.Late,
			})
		}
	}
	slices.SortStableFunc(out, func(a, b Line) int {
		return cmp.Or(a.At.Compare(b.At), cmp.Compare(rankStep(a.Reason), rankStep(b.Reason)))
	})
	return out
}

// outerReports returns the facts that have the first and the last message of each responder.
func outerReports(facts []Fact) map[FactID]bool {
	outer, last := map[FactID]bool{}, map[string]FactID{}
	for i := range facts {
		d, ok := facts[i].Detail.(*ResponderDetail)
		if !ok || facts[i].Reason != ReasonResponderReports {
			continue
		}
		if _, begun := last[d.Responder]; !begun {
			outer[facts[i].ID] = true
		}
		last[d.Responder] = facts[i].ID
	}
	for _, id := range last {
		outer[id] = true
	}
	return outer
}

// rankStep orders what shows at one time: a message, the end of a responder's turn, the turn of the next, and how the
// eviction ended.
func rankStep(r Reason) int {
	switch r {
	case ReasonResponderReports:
		return 0
	case ReasonResponderInterrupted, ReasonResponderCanceled, ReasonResponderCompleted:
		return 1
	case ReasonResponderActive:
		return 2
	case ReasonConditionSet:
		return 3
	default:
		return 0
	}
}

// renderSentence says what a requester wants from now on.
func (c intentChange) renderSentence(pod string) string {
	d := c.fact.Detail.(*IntentDetail)
	object := ""
	if d.Name != "" {
		object = fmt.Sprintf(" (%s %s)", c.fact.Object.Kind, d.Name)
	}
	switch {
	case c.wants:
		return fmt.Sprintf("%s asked to evict pod %s%s.", c.requester, pod, object)
	case c.fact.What == WhatGone:
		return fmt.Sprintf(
			"%s no longer asks to evict pod %s: its EvictionRequest was deleted%s.",
			c.requester,
			pod,
			object,
		)
	}
	return fmt.Sprintf("%s withdrew its request to evict pod %s%s.", c.requester, pod, object)
}

// responderSentence says what step a responder took. That it waits for its turn, and that an Eviction was cleaned up,
// needs no line.
func responderSentence(f *Fact, pod string) string {
	d, ok := f.Detail.(*ResponderDetail)
	if !ok {
		return ""
	}
	switch f.Reason {
	case ReasonResponderActive:
		if d.Responder == ImperativeEvictor {
			return fmt.Sprintf(
				"The evictor of Kubernetes (%s) has its turn: it calls pods/eviction until pod %s goes.",
				d.Responder,
				pod,
			)
		}
		return fmt.Sprintf("Responder %s has its turn to evict pod %s.", d.Responder, pod)
	case ReasonResponderInterrupted:
		last := "it never sent a heartbeat"
		if !d.HeartbeatAt.IsZero() {
			last = "its last heartbeat was at " + FormatClock(d.HeartbeatAt)
		}
		return fmt.Sprintf("Responder %s was interrupted: %s.", d.Responder, last)
	case ReasonResponderCanceled:
		return fmt.Sprintf(
			"Responder %s was cancelled: no requester wants pod %s to be evicted any more.",
			d.Responder,
			pod,
		)
	case ReasonResponderCompleted:
		return fmt.Sprintf("Responder %s is done.", d.Responder)
	case ReasonResponderReports:
		text := fmt.Sprintf("Responder %s reports: %s", d.Responder, d.Message)
		if d.Last {
			text = strings.TrimSuffix(text, ".") + ". Its later messages are not recorded."
		}
		return text
	case ReasonOther:
		return fmt.Sprintf("Responder %s is in state %s.", d.Responder, d.State)
	default:
		return ""
	}
}

// evictionConditionSentence says how an eviction ended; while it goes on there is nothing to say.
func evictionConditionSentence(f *Fact, pod string) string {
	d, ok := f.Detail.(*ConditionDetail)
	switch {
	case !ok || d.Status != "True":
		return ""
	case d.Type == ConditionTargetEvicted:
		return fmt.Sprintf("The eviction of pod %s by EvictionRequests is done (%s).", pod, conditionText(d))
	}
	return fmt.Sprintf(
		"The eviction of pod %s by EvictionRequests failed or was cancelled (%s).",
		pod,
		conditionText(d),
	)
}

// mostEvictionSentences bounds the sentences of a paragraph about EvictionRequests; the evidence has all lines.
const mostEvictionSentences = 10

// wantedLines returns the lines about EvictionRequests for the pod in which a guest ran on a node, from the first
// request after one time until another.
func (d *Derived) wantedLines(vmiUID, node string, after, until time.Time) []Line {
	var out []Line
	for _, l := range d.Timeline {
		if !l.Kind.isAboutEviction() || l.VMIUID != vmiUID || l.Node != node || !l.At.After(after) ||
			!until.IsZero() && l.At.After(until) {
			continue
		}
		if len(out) > 0 || l.Reason == ReasonEvictionWanted {
			out = append(out, l)
		}
	}
	return out
}

// describeWanted returns lines about EvictionRequests as sentences, the latest ones: who asked, who withdrew, who had
// a turn. What responders report is evidence only.
func describeWanted(lines []Line) []string {
	var text []string
	for _, l := range lines {
		if l.Reason != ReasonResponderReports {
			text = append(text, fmt.Sprintf("At %s: %s", FormatClock(l.At), l.Sentence))
		}
	}
	return text[max(0, len(text)-mostEvictionSentences):]
}

// wantedLinesOf returns the lines about EvictionRequests that belong to an evacuation: those since the one before.
func (d *Derived) wantedLinesOf(e *Evacuation) []Line {
	before := time.Time{}
	for i := range d.Evacuations {
		if o := &d.Evacuations[i]; o.VMIUID == e.VMIUID && o.Node == e.Node && o.MarkedAt.Before(e.MarkedAt) {
			before = maxTime(before, o.EndedAt)
		}
	}
	return d.wantedLines(e.VMIUID, e.Node, before, e.EndedAt)
}

// latestWanted returns the last time that an EvictionRequest asked to evict the pod of the VM, where no evacuation
// was under way.
func latestWanted(d Derived) episode {
	for _, l := range slices.Backward(d.Timeline) {
		evacuated := func(e Evacuation) bool { return e.VMIUID == l.VMIUID && e.isOpenAt(l.At) }
		if l.Reason != ReasonEvictionWanted || slices.ContainsFunc(d.Evacuations, evacuated) {
			continue
		}
		before := time.Time{}
		for _, e := range d.Evacuations {
			if e.VMIUID == l.VMIUID && e.EndedAt.Before(l.At) {
				before = maxTime(before, e.EndedAt)
			}
		}
		lines := d.wantedLines(l.VMIUID, l.Node, before, time.Time{})
		return episode{
			at:      l.At,
			from:    lines[0].At,
			askedBy: fmt.Sprintf("%s, at %s", strings.TrimSuffix(l.Sentence, "."), FormatClock(l.At)),
			story:   func(time.Time) []string { return describeWanted(lines) },
		}
	}
	return episode{}
}
