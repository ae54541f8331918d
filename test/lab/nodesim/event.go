package nodesim

import (
	"cmp"
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

const eventWarning = corev1.EventTypeWarning

// vmiEvent is a Kubernetes Event of a virt-handler about a VMI. An empty kind is Normal.
type vmiEvent struct{ node, kind, reason, message string }

// recordEvent writes the Event. A lost Event is logged: nothing waits for it.
func (s *Simulator) recordEvent(ctx context.Context, v *vmi, e *vmiEvent, now time.Time) {
	at := toAPITime(now)
	event := &corev1.Event{
		ObjectMeta: metav1.ObjectMeta{Namespace: v.Namespace, Name: fmt.Sprintf("%s.%x", v.Name, now.UnixNano())},
		InvolvedObject: corev1.ObjectReference{
			APIVersion: "kubevirt.io/v1", Kind: "VirtualMachineInstance", Namespace: v.Namespace, Name: v.Name, UID: v.UID,
			ResourceVersion: v.ResourceVersion,
		},
		Type: cmp.Or(e.kind, corev1.EventTypeNormal), Reason: e.reason, Message: e.message,
		Source: corev1.EventSource{Component: "virt-handler", Host: e.node}, ReportingController: "virt-handler",
		FirstTimestamp: at, LastTimestamp: at, Count: 1,
	}
	if _, err := s.events.CoreV1().Events(v.Namespace).Create(ctx, event, metav1.CreateOptions{}); err != nil {
		s.log.Warn("event lost", "namespace", v.Namespace, "vmi", v.Name, "reason", e.reason, "err", err)
	}
}
