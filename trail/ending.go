package trail

// Ending says why a guest ran no more.
type Ending string

// Why a guest ended. The first five are done to the VM by Kubernetes, which deletes or kills its pod.
const (
	EndingEvicted      Ending = "evicted"       // an eviction was allowed although the pod held the guest
	EndingTaint        Ending = "taint_manager" // a NoExecute taint
	EndingPreempted    Ending = "preempted"     // the scheduler made room for another pod
	EndingNodePressure Ending = "node_pressure" // the kubelet: pressure, a critical pod, the node's shutdown
	EndingPodGC        Ending = "pod_gc"        // the node was gone
	EndingStopped      Ending = "stopped"       // the guest or its owner shut it down
	EndingDeleted      Ending = "deleted"       // the VMI was deleted
	EndingFailed       Ending = "failed"        // it was lost, and nothing seen says why
)

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

// byKubernetes tells whether the guest was taken away by what Kubernetes did to its pod.
func (e Ending) byKubernetes() bool {
	switch e {
	case EndingEvicted, EndingTaint, EndingPreempted, EndingNodePressure, EndingPodGC:
		return true
	case EndingStopped, EndingDeleted, EndingFailed:
	}
	return false
}

// ending is why a VMI ended, with what took its pod away.
type ending struct {
	cause    Ending
	pod      *launcher // nil unless Kubernetes took it away
	request  *request  // the allowed eviction that did it; nil where none was seen
	strategy string    // spec.evictionStrategy of the VMI; empty where unset
}

// endingOf tells why a VMI ended: by what was done to the pod that held the guest last, else by what the VMI says.
func endingOf(l *life, end Fact, pods map[string]*launcher, requests []*request) ending {
	for _, r := range requests {
		if r.life == l && r.Effect == EffectShutdown && !r.RequestedAt.After(end.ObservedAt) {
			return ending{EndingEvicted, r.pod, r, l.strategy()}
		}
	}
	for _, p := range pods {
		d := p.disruption
		if d == nil || p.vmiUID != l.uid || d.OccurredAt.After(end.ObservedAt) || !p.ranGuest(l, d.OccurredAt) {
			continue
		}
		if cause, known := disruptionEndings[d.Value]; known {
			return ending{cause, p, nil, l.strategy()}
		}
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

// whyAllowed says why KubeVirt let an eviction pass (reference: kubevirt-signals §1.1).
func (e ending) whyAllowed() string {
	switch e.strategy {
	case "":
		return "as the VM has no eviction strategy."
	case strategyNone:
		return "as its strategy is None."
	case strategyIfPossible:
		return "as its strategy is LiveMigrateIfPossible and it could not be live-migrated."
	}
	return "although its strategy is " + e.strategy + ": was its webhook away?"
}

// sentence tells what Kubernetes did to a guest: evicted, not moved.
func (e ending) sentence() string {
	text := "The VM was shut down, not moved: "
	switch e.cause {
	case EndingEvicted:
		by := ""
		if e.request != nil {
			by = " by " + e.request.who() + e.request.saying()
		}
		return text + "its pod " + e.pod.name + " was evicted" + by + "; KubeVirt let that pass, " + e.whyAllowed()
	case EndingTaint:
		text += "a taint took its pod " + e.pod.name + " off " + e.pod.node
	case EndingPreempted:
		text += "the scheduler preempted its pod " + e.pod.name
	case EndingNodePressure:
		text += "the kubelet of " + e.pod.node + " ended its pod " + e.pod.name
	case EndingPodGC:
		text += "its pod " + e.pod.name + " was cleaned up with its node " + e.pod.node
	case EndingStopped, EndingDeleted, EndingFailed:
	}
	if d, ok := e.pod.disruption.Detail.(*PodDetail); ok && d.Message != "" {
		text += " (" + d.Message + ")"
	}
	return text + "."
}
