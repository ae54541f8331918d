package notify

import (
	"context"
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	typedcorev1 "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/rest"

	"github.com/evictrail/evictrail/trail"
)

// KubernetesEvents writes what happens as Events on VMIs and Nodes, where kubectl describe shows it. The name of an Event is made of the
// ID of its notice, so that one that is sent again is not a second one.
type KubernetesEvents struct {
	events typedcorev1.EventsGetter
}

// How fast Events are written: a storm is not to become one of the API server.
const (
	eventsPerSecond = 2
	eventsAtOnce    = 20
)

// NewKubernetesEvents makes a receiver of a cluster. It needs create on events.
func NewKubernetesEvents(config *rest.Config) (*KubernetesEvents, error) {
	c := rest.CopyConfig(config)
	c.QPS, c.Burst, c.Timeout, c.RateLimiter = eventsPerSecond, eventsAtOnce, sendWithin, nil
	client, err := typedcorev1.NewForConfig(c)
	if err != nil {
		return nil, fmt.Errorf("make Kubernetes client: %w", err)
	}
	return &KubernetesEvents{client}, nil
}

// Name implements Receiver.
func (*KubernetesEvents) Name() string { return NameKubernetesEvents }

// Wants implements Receiver: of all that is about one VM or node, but for evacuations that ended, which KubeVirt has Events of.
func (*KubernetesEvents) Wants(kind trail.NoticeKind) bool {
	return kind != trail.NoticeEvacuationEnded
}

// Delay implements Receiver: none.
func (*KubernetesEvents) Delay() time.Duration { return 0 }

// reasonOf returns the reason of the Events of a kind of notices: LoopOpened.
func reasonOf(kind trail.NoticeKind) string {
	var b strings.Builder
	for word := range strings.SplitSeq(string(kind), "_") {
		b.WriteString(trail.UpperFirst(word))
	}
	return b.String()
}

// messageMost bounds the message of an Event, in bytes; the API server takes 1024.
const messageMost = 1000

// newEvent makes the Event of a notice; nil where it is about no one VM or node.
func newEvent(n trail.Notice) *corev1.Event {
	about := corev1.ObjectReference{APIVersion: "kubevirt.io/v1", Kind: "VirtualMachineInstance", Namespace: n.Namespace, Name: n.VMI, UID: types.UID(n.VMIUID)}
	switch {
	case n.VMI != "":
	case n.Node != "":
		about = corev1.ObjectReference{APIVersion: "v1", Kind: "Node", Name: n.Node, UID: types.UID(n.Node)} // as kubelet and kubectl have it
	default:
		return nil
	}
	severity := corev1.EventTypeNormal
	if n.Kind.IsTrouble() {
		severity = corev1.EventTypeWarning
	}
	namespace := n.Namespace
	if n.VMI == "" {
		namespace = metav1.NamespaceDefault
	}
	at := metav1.NewTime(n.At)
	return &corev1.Event{
		ObjectMeta:     metav1.ObjectMeta{Name: about.Name + "." + n.ID.String(), Namespace: namespace},
		InvolvedObject: about, Reason: reasonOf(n.Kind), Message: trail.ClipText(n.Discreet, messageMost), Type: severity,
		FirstTimestamp: at, LastTimestamp: at, Count: 1,
		Source: corev1.EventSource{Component: "evictrail"}, ReportingController: "evictrail",
	}
}

// Send implements Receiver.
func (k *KubernetesEvents) Send(ctx context.Context, n trail.Notice) error {
	event := newEvent(n)
	if event == nil {
		return nil
	}
	_, err := k.events.Events(event.Namespace).Create(ctx, event, metav1.CreateOptions{})
	switch {
	case err == nil, apierrors.IsAlreadyExists(err):
		return nil
	case apierrors.IsInvalid(err), apierrors.IsBadRequest(err), apierrors.IsNotFound(err), apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause):
		return &RefusedError{err} // the namespace may be gone
	}
	return fmt.Errorf("write Event: %w", err)
}
