package trail

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"
)

// Ending says why a guest ran no more.
type Ending string

// Why a guest ended. The first seven are done to the VM by the platform: Kubernetes deletes or kills its pod, or a migration loses it.
const (
	EndingEvicted      Ending = "evicted"       // an eviction was allowed although the pod held the guest
	EndingTaint        Ending = "taint_manager" // a NoExecute taint
	EndingPreempted    Ending = "preempted"     // the scheduler made room for another pod
	EndingNodePressure Ending = "node_pressure" // the kubelet: pressure, a critical pod, the node's shutdown
	EndingPodGC        Ending = "pod_gc"        // the node was gone
	EndingPostCopy     Ending = "post_copy"     // a migration failed when the guest already ran on its target
	EndingHandOver     Ending = "hand_over"     // a migration ended, and the guest was on neither node
	EndingStopped      Ending = "stopped"       // the guest or its owner shut it down
	EndingDeleted      Ending = "deleted"       // the VMI was deleted
	EndingFailed       Ending = "failed"        // it was lost, and nothing seen says why
)

// PlatformEndings lists the endings that are done to a VM by the platform: its owner did not ask for them, and its memory is lost.
func PlatformEndings() []Ending {
	return []Ending{EndingEvicted, EndingTaint, EndingPreempted, EndingNodePressure, EndingPodGC, EndingPostCopy, EndingHandOver}
}

// ByPlatform reports whether the platform ended the guest.
func (e Ending) ByPlatform() bool { return slices.Contains(PlatformEndings(), e) }

// disruptionEndings maps the reasons of a pod's condition DisruptionTarget, and its status.reason Evicted.
//
// Source: kubernetes staging/src/k8s.io/api/core/v1/types.go, PodReason constants.
var disruptionEndings = map[string]Ending{
	"EvictionByEvictionAPI":        EndingEvicted,
	"DeletionByTaintManager":       EndingTaint,
	"DeletionByDeviceTaintManager": EndingTaint,
	"PreemptionByScheduler":        EndingPreempted,
	"TerminationByKubelet":         EndingNodePressure,
	"Evicted":                      EndingNodePressure,
	"DeletionByPodGC":              EndingPodGC,
}

// ending is why a VMI ended, and who began that.
type ending struct {
	cause     Ending
	requester string         // user name of who asked for it; empty where nobody did, or where unknown
	class     RequesterClass // of who asked; empty where nobody did, or where unknown
	detail    string         // the taint, the reason that was stated, Kubernetes' message, or the migration
	node      string         // on which the guest ran
	strategy  string         // spec.evictionStrategy of the VMI; empty where unset
	pod       string         // that held the guest; empty where it is not known
}

// endingOf returns why a VMI ended: by what was done to the pod that held the guest last, by the migration that lost it, else by what the VMI says.
func endingOf(l *life, end Fact, surround *endingSources) ending {
	for _, r := range surround.requests {
		if r.life == l && r.Effect == EffectShutdown && !r.RequestedAt.After(end.ObservedAt) {
			return ending{
				cause: EndingEvicted, requester: r.Requester, class: r.RequesterClass, detail: strings.TrimSpace(r.StatedReason),
				node: r.Node, strategy: l.lastStrategy(), pod: r.pod.name,
			}
		}
	}
	for _, p := range surround.pods {
		d := p.disruption
		if d == nil || p.vmiUID != l.uid || d.OccurredAt.After(end.ObservedAt) || !p.ranGuest(l, d.OccurredAt) {
			continue
		}
		if cause, known := disruptionEndings[d.Value]; known {
			return surround.newDisruptedEnding(l, p, cause)
		}
	}
	if m := lostIn(l.selectOwnMigrations(surround.migrations)); m != nil && end.Reason != ReasonGuestStopped {
		return m.newLostEnding(l)
	}
	switch end.Reason {
	case ReasonGuestStopped:
		return ending{cause: EndingStopped}
	case ReasonGuestFailed:
		return ending{cause: EndingFailed}
	default:
		return ending{cause: EndingDeleted}
	}
}

// endingSources is what the ends of guests are explained by.
type endingSources struct {
	pods       map[string]*launcher
	requests   []*request
	migrations []*migration
	facts      []Fact // of the VM, in the order of their times
	env        *Env
}

// newDisruptedEnding returns how a guest ended whose pod Kubernetes took away, and who had begun that as far as it is known.
func (s *endingSources) newDisruptedEnding(l *life, p *launcher, cause Ending) ending {
	e := ending{cause: cause, node: p.node, strategy: l.lastStrategy(), pod: p.name}
	if d, ok := p.disruption.Detail.(*PodDetail); ok {
		e.detail = d.Message
	}
	switch cause {
	case EndingEvicted:
		if e.detail = ""; s.updatesWorkload(l, p.disruption.OccurredAt) {
			e.class = RequesterKubeVirt
		}
	case EndingTaint:
		if p.disruption.Value != "DeletionByTaintManager" { // it is a taint of a device
			break
		}
		taint, who := s.env.noExecute(p.node, p.disruption.OccurredAt)
		if e.detail = cmp.Or(taint, e.detail); who != nil {
			e.requester, e.class = who.User, s.env.classOf(who)
		}
	case EndingPreempted, EndingNodePressure, EndingPodGC, EndingPostCopy, EndingHandOver, EndingStopped, EndingDeleted, EndingFailed:
	}
	return e
}

// eventSlack is how far the Event of an eviction by KubeVirt may be from the condition that the eviction left.
const eventSlack = time.Minute

// updatesWorkload reports whether KubeVirt's workload updater evicted the pod of a VMI at a time, as its Event says. It evicts what it
// cannot migrate where the method Evict is among spec.workloadUpdateStrategy.workloadUpdateMethods.
//
// Source: kubevirt pkg/virt-controller/watch/workload-updater/workload-updater.go, SuccessfulEvictVirtualMachineInstanceReason.
func (s *endingSources) updatesWorkload(l *life, at time.Time) bool {
	return slices.ContainsFunc(s.facts, func(f Fact) bool {
		d, ok := f.Detail.(*KubeEventDetail)
		return ok && d.Reason == "SuccessfulEvict" && f.VMIUID == l.uid && computeDistance(at, f.OccurredAt, f.OccurredAt) <= eventSlack
	})
}

// noExecute returns the NoExecute taint that a node got last before a time, and who set it; empty where none was seen, nil where nobody
// saw who did.
func (e *Env) noExecute(node string, at time.Time) (taint string, who *RequestDetail) {
	for _, f := range e.nodes[node] {
		if f.Kind == KindNodeTainted && strings.HasSuffix(f.What, ":NoExecute") && !f.OccurredAt.After(at.Add(envSlack)) {
			taint, who = strings.TrimPrefix(f.What, WhatTaint), e.nodeChangedBy(f)
		}
	}
	return taint, who
}

// lostIn returns the migration that lost its guest, which is the last; nil where none did.
func lostIn(migrations []*migration) *migration {
	if n := len(migrations); n > 0 {
		m := migrations[n-1]
		if m.FailureClass == FailureGuestLost || m.FailureClass == FailurePostCopy || m.Outcome == OutcomeFailed && m.Mode == modePostCopy {
			return m
		}
	}
	return nil
}

// newLostEnding returns how a guest ended that the migration lost. Who began it is who asked for the migration.
func (m *migration) newLostEnding(l *life) ending {
	e := ending{cause: EndingPostCopy, requester: m.Requester, detail: m.Name, node: m.SourceNode, strategy: l.lastStrategy()}
	if m.FailureClass == FailureGuestLost {
		e.cause = EndingHandOver
	}
	switch {
	case m.evacuation != nil:
		e.requester, e.class = m.evacuation.Requester, m.evacuation.RequesterClass
	case m.Trigger == TriggerWorkloadUpdate || m.Trigger == TriggerHotplug || m.Trigger == TriggerStorage:
		e.class = RequesterKubeVirt
	case m.Requester != "":
		e.class = m.RequesterClass
	}
	return e
}

// whyAllowed says why KubeVirt let an eviction of a VM with an eviction strategy pass (reference: kubevirt-signals §1.1).
func whyAllowed(strategy string) string {
	switch strategy {
	case "":
		return "as the VM has no eviction strategy"
	case strategyNone:
		return "as its strategy is None"
	case StrategyIfPossible:
		return "as its strategy is LiveMigrateIfPossible and it could not be live-migrated"
	}
	return "although its strategy is " + strategy + ": was its webhook away?"
}

// formatRequester names who began it, empty where that is not known.
func (e ending) formatRequester() string {
	switch {
	case e.class == RequesterKubeVirt:
		return "KubeVirt, which updates its VMs"
	case e.class == "" || e.class == RequesterUnknown && e.requester == "":
		return ""
	}
	return formatRequester(e.requester, "", e.class)
}

// describeAction says what the platform did, as a clause; empty where it did nothing. The pod is called as it is given.
func (e ending) describeAction(pod string) string {
	by, note := "", ""
	if who := e.formatRequester(); who != "" {
		by = " by " + who
	}
	if e.detail != "" {
		note = " (" + strings.TrimSuffix(e.detail, ".") + ")"
	}
	switch e.cause {
	case EndingEvicted:
		saying := ""
		if e.detail != "" {
			saying = fmt.Sprintf(", saying %q", e.detail)
		}
		return pod + " was evicted" + by + saying + "; KubeVirt let that pass, " + whyAllowed(e.strategy)
	case EndingTaint:
		if by != "" {
			by = ", set" + by + ","
		}
		return "a taint" + note + by + " took " + pod + " off " + e.node
	case EndingPreempted:
		return "the scheduler preempted " + pod + " to make room for another" + note
	case EndingNodePressure:
		return "the kubelet of " + e.node + " ended " + pod + note
	case EndingPodGC:
		return pod + " was cleaned up with its node " + e.node + note
	case EndingPostCopy:
		return "migration " + e.detail + formatAskedBy(by) + " failed in post-copy mode, when the guest already ran on its target"
	case EndingHandOver:
		return "migration " + e.detail + formatAskedBy(by) + " ended, and the guest was on neither node"
	case EndingStopped, EndingDeleted, EndingFailed:
	}
	return ""
}

// formatAskedBy says of a migration who asked for it, between its name and what became of it.
func formatAskedBy(by string) string {
	if by == "" {
		return ""
	}
	return ", asked for" + by + ","
}

// renderSentence says what the platform did to a guest: evicted, not moved.
func (e ending) renderSentence() string {
	verdict := "The VM was shut down, not moved: "
	if e.cause == EndingPostCopy || e.cause == EndingHandOver {
		verdict = "The guest was lost: "
	}
	return addFullStop(verdict + e.describeAction(strings.TrimSpace("its pod "+e.pod)))
}

// addFullStop ends a sentence, which may be a question.
func addFullStop(text string) string {
	if strings.HasSuffix(text, "?") {
		return text
	}
	return text + "."
}
