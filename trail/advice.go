package trail

import (
	"fmt"
	"strings"
)

// What to do about a loop or a VM that is stuck: lines of which the indented ones can be pasted. The commands name what is
// to be changed and nothing else.

// adviceCancel returns the command that stops an evacuation, and who may run it. virtctl v1.7 to v1.9 leaves the node's name out and is refused, so the
// call is spelled out. KubeVirt's roles name virtualmachineinstances/evacuate/cancel, but an API server authorizes by the first part of a subresource.
// Before v1.7 there is no such call, and virt-api undoes a change of the status by anybody but KubeVirt.
//
// Source: tried in test/lab on v1.6.0, v1.7.0 and v1.8.4; kubevirt-signals §0.7, §1.3; mutators/vmi-mutator.go.
func adviceCancel(e *Evacuation, s KubeVirtSettings) string {
	if marks, known := s.marksSource(); known && !marks {
		return fmt.Sprintf("  kubectl patch vmi -n %s %s --as=system:serviceaccount:kubevirt:kubevirt-controller --type=json -p '[{\"op\":\"remove\",\"path\":\"/status/evacuationNodeName\"}]'", e.Namespace, e.VMI) +
			"\nKubeVirt before v1.7 lets nobody cancel, so this acts in its name: a cluster administrator may. On OpenShift its namespace is openshift-cnv."
	}
	return fmt.Sprintf("  echo '{\"evacuationNodeName\":%q}' | kubectl replace --raw /apis/subresources.kubevirt.io/v1/namespaces/%s/virtualmachineinstances/%s/evacuate/cancel -f -",
		e.Node, e.Namespace, e.VMI) +
		"\nWho may: a cluster administrator, or anybody with update on virtualmachineinstances/evacuate of subresources.kubevirt.io, which KubeVirt's own roles do not include."
}

// adviceStuck says how an evacuation that fails again and again is ended.
func adviceStuck(e *Evacuation, s KubeVirtSettings) string {
	return strings.Join(nonEmpty([]string{
		adviceWithdraw(e, s),
		"Otherwise fix the cause." + cureText(e.LastFailureClass) + " Each attempt:",
		fmt.Sprintf("  evictrail migrations --vm %s", e.formatVM()),
	}), "\n")
}

// adviceWithdraw says how an evacuation is ended that is needed no more. The descheduler would ask for it again: first it is kept off.
func adviceWithdraw(e *Evacuation, s KubeVirtSettings) string {
	lead := "If " + e.formatVM() + " no longer has to leave " + e.Node + ", "
	if e.RequesterClass == RequesterDescheduler {
		return lead + "keep the descheduler off it, without a restart:\n" + adviceOptOut(e.Namespace, e.VMI, s) + "\nThen cancel the evacuation:\n" + adviceCancel(e, s)
	}
	return lead + "cancel the evacuation:\n" + adviceCancel(e, s)
}

// What keeps a loop from coming about once more.
const (
	preventLost    = "To close this way for good upgrade KubeVirt to v1.7 or later (v1.6.1 has the fix, too): there the annotation stays until the VM has moved."
	preventGateOff = "The descheduler takes accepted evictions for failed ones: " +
		"enable its feature gate EvictionsInBackground (--feature-gates=EvictionsInBackground=true)."
	preventShutdown = "The annotation descheduler.alpha.kubernetes.io/prefer-no-eviction keeps the descheduler off a VM; " +
		"the eviction strategy LiveMigrate has KubeVirt move it instead of shutting it down."
	preventInversion = "Cordon a node some minutes before its drain, and cancel the evacuations of the descheduler that are open there then (evictrail evacuations --node NODE --open): " +
		"what the drain itself asks for has a higher priority."
	preventPostCopy = "Post-copy loses the guest if the transfer breaks after the switch. To forbid it, take allowPostCopy out of the MigrationPolicy or the KubeVirt configuration that allows it."
	preventSwings   = "Whichever of the nodes has these VMs is over the descheduler's threshold: " +
		"widen the distance between its thresholds and targetThresholds, make room on other nodes, or raise the cooldown (migrationCooldown of the plugin KubevirtMigrationAware)"
	preventBounce = "Either nodes go over the descheduler's threshold when this VM comes, or another VM that comes pushes it out: compare their sizes with the free room and the thresholds, " +
		"or raise the cooldown (migrationCooldown of the descheduler's plugin KubevirtMigrationAware)"
)

// cureText says in a sentence where to look for the cause of a class of failures; empty where that is not known.
func cureText(c FailureClass) string {
	switch c {
	case FailureScheduling:
		return " No node takes the target pod: check resources, selectors and the CPU model."
	case FailureControlPlane:
		return " The target pod dies or is refused: check virt-handler, quota and volumes."
	case FailureDataPlane:
		return " The data transfer fails: read what virt-handler and virt-launcher log on both nodes, then check the migration network, its bandwidth, and how fast the guest writes its memory; a MigrationPolicy may allow post-copy, which loses the guest if the transfer breaks after the switch."
	case FailurePostCopy, FailureGuestLost:
		return " The guest was lost: find out why first."
	case FailureAborted, FailureUnknown:
	}
	return ""
}

// adviceDual says how a dual retry loop is ended, and how its path is closed.
func adviceDual(e *Evacuation, path LoopPath, s KubeVirtSettings) string {
	text := adviceStuck(e, s)
	switch path {
	case PathAnnotationLost:
		text += "\n" + preventLost
	case PathFreeSlot:
		text += "\nUntil then stop the descheduler from evicting others (operator: spec.mode Predictive), or give nodes one slot (maxNoOfPodsToEvictPerNode: 1)."
	case PathRequestForgotten:
		text += "\nThe descheduler forgets a request after 10 to 20 minutes, and then asks again, or evicts another VM."
	case PathGateOff:
		text += "\n" + preventGateOff + " Until then it asks for this VM again, or evicts others."
	case PathUnclassified:
	}
	return text
}

// adviceOptOut returns the command that keeps the descheduler off a VM.
func adviceOptOut(namespace, vmi string, s KubeVirtSettings) string {
	return adviceAnnotation(namespace, vmi, s, "=true", `"true"`)
}

// adviceOptIn returns the command that undoes adviceOptOut.
func adviceOptIn(namespace, vmi string, s KubeVirtSettings) string {
	return adviceAnnotation(namespace, vmi, s, "-", "null")
}

// AnnotationPreferNoEviction on a pod asks the descheduler to leave it alone.
const AnnotationPreferNoEviction = "descheduler.alpha.kubernetes.io/prefer-no-eviction"

// adviceAnnotation returns the command that changes the annotation by which the descheduler is kept off a VM: suffix is what follows its name for kubectl
// annotate, value is what a merge patch says. Since v1.7 KubeVirt carries the annotation from the template of a VM to its VMI and on to the pod, and takes it
// off a VMI whose VM does not have it; before, a pod has what its VMI had when it was made.
//
// Source: tried in test/lab on v1.6.0, v1.7.0 and v1.8.4; kubevirt v1.7.0 watch/vm/vm.go, watch/vmi/lifecycle.go.
func adviceAnnotation(namespace, vmi string, s KubeVirtSettings, suffix, value string) string {
	if carries, known := s.marksSource(); known && !carries {
		return fmt.Sprintf("  kubectl annotate pod -n %[1]s -l vm.kubevirt.io/name=%[2]s %[3]s%[4]s && kubectl annotate vmi -n %[1]s %[2]s %[3]s%[4]s", namespace, vmi, AnnotationPreferNoEviction, suffix)
	}
	return fmt.Sprintf(`  kubectl patch vm -n %s %s --type=merge -p '{"spec":{"template":{"metadata":{"annotations":{"%s":%s}}}}}'`, namespace, vmi, AnnotationPreferNoEviction, value)
}

// adviceBounce says how the descheduler is kept from moving a VM again and again.
func adviceBounce(namespace, vmi string, s KubeVirtSettings) string {
	return strings.Join([]string{
		preventBounce + ". To leave it where it is, without a restart:",
		adviceOptOut(namespace, vmi, s),
	}, "\n")
}

// adviceSwings says how to find out why VMs go to and fro between nodes, and how that is ended for the one that the evidence shows first: who may see that
// VM sees the advice (Scope.Loop).
func adviceSwings(node string, first *Migration, s KubeVirtSettings) string {
	return strings.Join([]string{
		preventSwings + ". What each move did to them:",
		fmt.Sprintf("  evictrail migrations --node %s", node),
		"To leave one of the VMs where it is, without a restart:",
		adviceOptOut(first.Namespace, first.VMI, s),
	}, "\n")
}

// adviceMoves says how to find out who has a VM moved so often.
func adviceMoves(namespace, vmi string) string {
	return "Find out who asks, and why none of the moves lasts:\n" + fmt.Sprintf("  evictrail migrations --vm %s/%s", namespace, vmi)
}

// adviceFailures says how to find out why the migrations of a VM fail, no matter who asks for them.
func adviceFailures(last *Migration) string {
	return "Do not ask for another migration before the cause is fixed." + cureText(last.FailureClass) + " Each attempt:\n" +
		fmt.Sprintf("  evictrail migrations --vm %s/%s", last.Namespace, last.VMI)
}

// adviceShutdown says how a VM is kept from being shut down by the descheduler: what KubeVirt can move, it moves instead.
func adviceShutdown(namespace, vmi, strategy string, s KubeVirtSettings) string {
	return "To keep the descheduler off this VM, without a restart:\n" + adviceOptOut(namespace, vmi, s) + "\nOtherwise:\n" + adviceMovable(namespace, vmi, strategy)
}

// adviceOwner says how evictions of a VM are kept away that are left to its owner.
func adviceOwner(e Evacuation, s KubeVirtSettings) string {
	text := "If it has an owner that moves it (such as Cluster API's provider for KubeVirt), find out why that did not:\n" +
		fmt.Sprintf("  kubectl get vmi -n %s %s -o jsonpath='{.metadata.ownerReferences}'", e.Namespace, e.VMI)
	if e.RequesterClass == RequesterDescheduler {
		text += "\nTo keep the descheduler off this VM, without a restart:\n" + adviceOptOut(e.Namespace, e.VMI, s)
	}
	return text + "\nIf it has none:\n" + adviceMovable(e.Namespace, e.VMI, strategyNone)
}

// adviceMovable says how KubeVirt comes to move a VM that is evicted, instead of letting it be shut down.
func adviceMovable(namespace, vmi, strategy string) string {
	switch strategy {
	case "", strategyNone:
		return "Have KubeVirt move it when it is evicted, from its next start on:\n" +
			fmt.Sprintf(`  kubectl patch vm -n %s %s --type=merge -p '{"spec":{"template":{"spec":{"evictionStrategy":"LiveMigrate"}}}}'`, namespace, vmi)
	case StrategyIfPossible:
		return "Remove what keeps it from being live-migrated:\n" +
			fmt.Sprintf("  kubectl get vmi -n %s %s -o jsonpath='{.status.conditions[?(@.type==\"LiveMigratable\")]}'", namespace, vmi)
	}
	return "Find out why KubeVirt's webhook let the eviction pass: virt-api was away, or the webhook is not there.\n" +
		"  kubectl get validatingwebhookconfigurations virt-api-validator"
}

// adviceExternal says who has to move a VM.
func adviceExternal(e *Evacuation, s KubeVirtSettings) string {
	return strings.Join([]string{
		"Find the controller that owns the VM (such as Cluster API's provider for KubeVirt) and why it does not act:",
		fmt.Sprintf("  kubectl get vmi -n %s %s -o jsonpath='{.metadata.ownerReferences}'", e.Namespace, e.VMI),
		"To withdraw the eviction instead:",
		adviceCancel(e, s),
	}, "\n")
}

// adviceInversion says how a drain gets past a migration of low priority: a new mark brings a new priority.
func adviceInversion(e *Evacuation, low *Migration, s KubeVirtSettings) string {
	return strings.Join([]string{
		"Cancel the descheduler's evacuation and delete its migration; the drain then asks again, and that one comes first:",
		adviceCancel(e, s),
		fmt.Sprintf("  kubectl delete vmim -n %s %s", e.Namespace, low.Name),
	}, "\n")
}
