package nodesim

import (
	"context"
	"fmt"
	"hash/fnv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// runPod returns what a kubelet writes at the end of a stage.
func runPod(s podStage, old *corev1.Pod, now time.Time) *corev1.Pod {
	p := old.DeepCopy()
	switch s {
	case podStart:
		startPod(p, toAPITime(now))
	case podReady:
		setCondition(p, corev1.PodReady, readyNow(p), "", toAPITime(now))
	case podExit:
		endPod(p, corev1.PodSucceeded, 0, "Completed", toAPITime(now))
	case podCrash:
		endPod(p, corev1.PodFailed, 1, "Error", toAPITime(now))
	case podIdle, podRemove:
	}
	return p
}

func startPod(p *corev1.Pod, now metav1.Time) {
	s := &p.Status
	s.Phase, s.StartTime = corev1.PodRunning, &now
	s.HostIP, s.PodIP = addressOf(p.Spec.NodeName), podAddress(p)
	s.HostIPs, s.PodIPs = []corev1.HostIP{{IP: s.HostIP}}, []corev1.PodIP{{IP: s.PodIP}}
	s.ContainerStatuses, s.InitContainerStatuses = nil, nil
	for _, c := range p.Spec.Containers {
		s.ContainerStatuses = append(s.ContainerStatuses, newRunningStatus(c, now))
	}
	for _, c := range p.Spec.InitContainers {
		status := newRunningStatus(c, now)
		if c.RestartPolicy == nil {
			status.Started, status.State = nil, newTerminatedState(0, "Completed", now, now)
		}
		s.InitContainerStatuses = append(s.InitContainerStatuses, status)
	}
	for _, kind := range []corev1.PodConditionType{corev1.PodReadyToStartContainers, corev1.PodInitialized, corev1.ContainersReady} {
		setCondition(p, kind, true, "", now)
	}
	setCondition(p, corev1.PodReady, readyNow(p), "", now)
}

func endPod(p *corev1.Pod, phase corev1.PodPhase, code int32, reason string, now metav1.Time) {
	p.Status.Phase = phase
	for i := range p.Status.ContainerStatuses {
		c := &p.Status.ContainerStatuses[i]
		start := now
		if c.State.Running != nil {
			start = c.State.Running.StartedAt
		}
		c.Ready, c.Started, c.State = false, new(false), newTerminatedState(code, reason, start, now)
	}
	because := "PodCompleted"
	if phase == corev1.PodFailed {
		because = "PodFailed"
	}
	setCondition(p, corev1.PodReadyToStartContainers, false, "", now)
	setCondition(p, corev1.ContainersReady, false, because, now)
	setCondition(p, corev1.PodReady, false, because, now)
}

func newRunningStatus(c corev1.Container, now metav1.Time) corev1.ContainerStatus {
	return corev1.ContainerStatus{
		Name: c.Name, Image: c.Image, ImageID: imageID(c.Image), ContainerID: "cri-o://" + c.Name, Ready: true, Started: new(true),
		State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: now}},
	}
}

// imageID is an image with a digest, from which virt-controller takes the image of a migration's target.
func imageID(image string) string {
	if strings.Contains(image, "@") {
		return image
	}
	return image + "@sha256:" + strings.Repeat("0", 64)
}

func newTerminatedState(code int32, reason string, start, end metav1.Time) corev1.ContainerState {
	return corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{ExitCode: code, Reason: reason, StartedAt: start, FinishedAt: end}}
}

// setCondition sets a condition of a pod. Its time of transition moves only where its status does.
func setCondition(p *corev1.Pod, kind corev1.PodConditionType, is bool, reason string, now metav1.Time) {
	status := corev1.ConditionFalse
	if is {
		status = corev1.ConditionTrue
	} else if kind == corev1.PodReady && reason == "" {
		reason = "ReadinessGatesNotReady"
	}
	for i := range p.Status.Conditions {
		if c := &p.Status.Conditions[i]; c.Type == kind {
			if c.Status != status {
				c.LastTransitionTime = now
			}
			c.Status, c.Reason, c.Message = status, reason, ""
			return
		}
	}
	p.Status.Conditions = append(p.Status.Conditions, corev1.PodCondition{Type: kind, Status: status, Reason: reason, LastTransitionTime: now})
}

// podAddress is an address that follows from the pod's UID. Nothing listens on it.
func podAddress(p *corev1.Pod) string {
	h := fnv.New32a()
	_, _ = h.Write([]byte(p.UID))
	n := h.Sum32()
	return fmt.Sprintf("10.244.%d.%d", n>>8&0xff, 1+n&0x7f)
}

// changePod makes the change of a stage as the pod's kubelet does.
func (s *Simulator) changePod(ctx context.Context, stage podStage, p *corev1.Pod, now time.Time) error {
	n, ok := s.nodes[p.Spec.NodeName]
	if !ok {
		return nil
	}
	pods := n.kubelet.CoreV1().Pods(p.Namespace)
	if stage == podRemove {
		err := pods.Delete(ctx, p.Name, metav1.DeleteOptions{GracePeriodSeconds: new(int64), Preconditions: &metav1.Preconditions{UID: &p.UID}})
		if err != nil {
			return fmt.Errorf("remove pod %s/%s: %w", p.Namespace, p.Name, err)
		}
		return nil
	}
	if _, err := pods.UpdateStatus(ctx, runPod(stage, p, now), metav1.UpdateOptions{}); err != nil {
		return fmt.Errorf("update status of pod %s/%s: %w", p.Namespace, p.Name, err)
	}
	return nil
}
