package nodesim

import (
	"cmp"
	"time"

	corev1 "k8s.io/api/core/v1"
)

// podStage is what a kubelet does next to a pod.
type podStage string

const (
	podIdle   podStage = ""
	podStart  podStage = "start"  // the containers run
	podReady  podStage = "ready"  // the condition Ready follows the readiness gates
	podExit   podStage = "exit"   // the containers end in order
	podCrash  podStage = "crash"  // the containers end with an error
	podRemove podStage = "remove" // a deleted pod is gone
)

// nextPodStage returns what the pod's kubelet does next. The VMI is that of a launcher pod; nil: there is none any more.
func nextPodStage(p *corev1.Pod, v *vmi, m Migration) podStage {
	deleted := p.DeletionTimestamp != nil
	switch {
	case p.Spec.NodeName == "":
		return podIdle
	case deleted && p.Status.Phase != corev1.PodRunning:
		return podRemove
	case deleted:
		return podExit
	case p.Status.Phase == corev1.PodPending:
		return podStart
	case p.Status.Phase != corev1.PodRunning:
		return podIdle
	}
	if isLauncher(p) {
		if s := launcherStage(p, v, m); s != podIdle {
			return s
		}
	}
	if readyNow(p) != conditionTrue(p, corev1.PodReady) {
		return podReady
	}
	return podIdle
}

// launcherStage returns whether virt-launcher ends: with its guest, as the target of a migration that failed, or as the source of one
// that succeeded.
func launcherStage(p *corev1.Pod, v *vmi, m Migration) podStage {
	if v == nil || v.isFinal() {
		return podExit
	}
	state := v.Status.Migration
	switch {
	case state == nil:
		return podIdle
	case string(state.UID) == p.Labels[labelMigrationJob] && v.Status.NodeName != p.Spec.NodeName:
		if state.Failed {
			return podExit
		}
		if m.Outcome == OutcomeCrash && state.TargetNodeAddress == "" {
			return podCrash
		}
	case state.SourcePod == p.Name && state.Completed && !state.Failed:
		return podExit
	}
	return podIdle
}

// delay returns how long a pod is in the stage before the change is made.
func (s podStage) delay(p *corev1.Pod, pace Pace, m Migration) time.Duration {
	switch s {
	case podStart:
		if p.Labels[labelMigrationJob] == "" {
			return pace.PodStart
		}
		if m.Outcome == OutcomeNeverReady {
			return never
		}
		return cmp.Or(m.PodStart, pace.PodStart)
	case podExit:
		return pace.PodExit
	case podCrash:
		return cmp.Or(m.Prepare, pace.Prepare)
	case podReady, podRemove:
		return 0
	case podIdle:
	}
	return never
}

func isLauncher(p *corev1.Pod) bool { return p.Labels["kubevirt.io"] == "virt-launcher" }

// readyNow reports whether the pod's containers and its readiness gates are ready.
func readyNow(p *corev1.Pod) bool {
	ready := conditionTrue(p, corev1.ContainersReady)
	for _, gate := range p.Spec.ReadinessGates {
		ready = ready && conditionTrue(p, gate.ConditionType)
	}
	return ready
}

func conditionTrue(p *corev1.Pod, kind corev1.PodConditionType) bool {
	for _, c := range p.Status.Conditions {
		if c.Type == kind {
			return c.Status == corev1.ConditionTrue
		}
	}
	return false
}
