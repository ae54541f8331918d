package trail

import (
	"fmt"
	"strings"
	"time"
)

// shutdownChurn finds the times in which the descheduler shut one VM down again and again: each time it evicted the pod, KubeVirt did not
// move the VM instead, and the VM was started again. A guest ends with each, so that the loop goes over several VMIs of one name.
func shutdownChurn(lives []*life, env *Env, now *moment) []Loop {
	var down []*life
	for _, l := range lives {
		if l.ending.cause == EndingEvicted && l.ending.class == RequesterDescheduler {
			down = append(down, l)
		}
	}
	var loops []Loop
	for _, b := range findBursts(down, func(l *life) time.Time { return l.endedAt }, env.thresholds.Shutdowns, env.thresholds.DownWithin) {
		loops = append(loops, shutdownLoop(b.of, b.opened, b.quiet, env, now))
	}
	if len(loops) == 0 {
		return nil
	}
	vm := VMISubject(loops[0].Namespace, loops[0].VMI)
	return env.settled.numberLoops(vm, vm.Name, LoopShutdownChurn, loops)
}

// shutdownLoop makes the loop of some shutdowns. It is over at a time.
func shutdownLoop(down []*life, opened, quiet time.Time, env *Env, now *moment) Loop {
	l := down[0]
	loop := Loop{Kind: LoopShutdownChurn, Namespace: l.namespace, VMI: l.vmi, OpenedAt: opened, Counts: map[string]int{countShutdowns: len(down)}}
	if now.hasReached(quiet) {
		loop.close(quiet, LoopQuiet)
	}
	name := l.namespace + "/" + l.vmi
	var proof []Exhibit
	for _, l := range down {
		proof = append(proof, Exhibit{l.endEvent(), l.endedAt, name, "shut down" + formatOnNode(l.ending.node) + ": " + l.ending.describeAction("its pod "+l.ending.pod)})
	}
	loop.setEvidence(proof)
	last := down[len(down)-1]
	loop.Summary = fmt.Sprintf("The descheduler shut %s down %s in %s: it evicted its pod, and KubeVirt let that pass, %s.",
		name, formatRepetition(len(down)), formatSpan(last.endedAt.Sub(l.endedAt)), strings.TrimSuffix(whyAllowed(last.ending.strategy), ": was its webhook away?"))
	loop.Advice = loop.selectTense(adviceShutdown(l.namespace, l.vmi, last.ending.strategy, env.kubevirtSettingsAt(opened)), adviceOver(loop))
	return loop
}

// endEvent returns the fact that showed the end of a VMI first, nil where it goes on.
func (l *life) endEvent() *FactID {
	for i := range l.facts {
		if l.facts[i].Kind == KindVMIEnded {
			return new(l.facts[i].ID)
		}
	}
	return nil
}

// shutdown is what the platform did to a guest, and when the VM ran again.
type shutdown struct {
	Placement
	backAt time.Time // zero where it does not run again
	backOn string    // the node
}

// lastShutdown returns the last time that the platform ended a guest of the VM; false where it never did.
func (d Derived) lastShutdown() (shutdown, bool) {
	var s shutdown
	found := false
	for _, p := range d.Placements {
		switch {
		case p.EndedBy.ByPlatform():
			s, found = shutdown{Placement: p}, true
		case found && s.backAt.IsZero() && p.VMIUID != s.VMIUID && !p.FromAt.Before(s.ToAt.Truncate(time.Second)):
			s.backAt, s.backOn = p.FromAt, p.Node
		}
	}
	return s, found
}

// lostLately is how long it is said of a VM whatever else is said that the platform had ended its guest.
const lostLately = 24 * time.Hour

// describeRecentShutdown says that the platform ended the guest of a VM not long ago, and that it runs without the memory that it had; empty where it did not.
func (d Derived) describeRecentShutdown(now time.Time) string {
	s, found := d.lastShutdown()
	switch {
	case !found || now.Sub(s.ToAt) > lostLately:
		return ""
	case s.backAt.IsZero():
		return addFullStop(fmt.Sprintf("Its guest ended at %s, and its memory is lost: %s", FormatClock(s.ToAt), s.newEnding().describeAction("its pod")))
	}
	text := addFullStop(fmt.Sprintf("It was restarted at %s without its memory: at %s %s", FormatClock(s.backAt), FormatClock(s.ToAt), s.newEnding().describeAction("its pod")))
	if s.mayRunOn() && s.backOn != s.Node {
		text += " " + warnOfTwo(s.Node)
	}
	return text
}

// taintUnreachable is set on nodes whose kubelet does not answer.
const taintUnreachable = "node.kubernetes.io/unreachable"

// mayRunOn reports whether the guest may run on although its pod is gone: its node was silent, so it is unknown whether it stopped.
func (p Placement) mayRunOn() bool {
	return p.EndedBy == EndingPodGC || p.EndedBy == EndingTaint && strings.HasPrefix(p.EndedDetail, taintUnreachable)
}

// warnOfTwo says what to make sure of where a VM was started elsewhere while its guest may run on.
func warnOfTwo(node string) string {
	return fmt.Sprintf("Make sure that %s is off, or was restarted since: else the VM may run twice.", node)
}

// describeAftermath says what the guest lost, and when the VM ran again.
func (s shutdown) describeAftermath() string {
	if s.backAt.IsZero() {
		return "Its memory is lost, and it was not started again so far."
	}
	return fmt.Sprintf("Its memory is lost; it was started again on %s at %s, after %s.", s.backOn, FormatClock(s.backAt), formatSpan(s.backAt.Sub(s.ToAt)))
}
