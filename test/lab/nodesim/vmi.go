package nodesim

import (
	"encoding/json"
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
)

var vmiResource = schema.GroupVersionResource{Group: "kubevirt.io", Version: "v1", Resource: "virtualmachineinstances"}

// Phases of a VMI.
const (
	phaseScheduled = "Scheduled"
	phaseRunning   = "Running"
	phaseSucceeded = "Succeeded"
	phaseFailed    = "Failed"
)

// Labels and annotations of KubeVirt: staging/src/kubevirt.io/api/core/v1/types.go.
const (
	labelCreatedBy      = "kubevirt.io/created-by"
	labelMigrationJob   = "kubevirt.io/migrationJobUID"
	labelNode           = "kubevirt.io/nodeName"
	labelTargetNode     = "kubevirt.io/migrationTargetNodeName"
	annotationDomain    = "kubevirt.io/domain"
	annotationHeartbeat = "kubevirt.io/heartbeat"
	annotationSource    = "kubevirt.io/eviction-source"
)

// vmi is what virt-handler reads of a VirtualMachineInstance.
type vmi struct {
	metav1.ObjectMeta `json:"metadata"`

	object *unstructured.Unstructured // all of it, which belongs to the informer

	Spec struct {
		Domain struct {
			Devices struct {
				Interfaces []struct {
					Name string `json:"name"`
				} `json:"interfaces"`
			} `json:"devices"`
		} `json:"domain"`
	} `json:"spec"`
	Status struct {
		Phase              string            `json:"phase"`
		NodeName           string            `json:"nodeName"`
		EvacuationNodeName string            `json:"evacuationNodeName"`
		Conditions         []condition       `json:"conditions"`
		Transitions        []phaseTransition `json:"phaseTransitionTimestamps"`
		Migration          *migrationState   `json:"migrationState"`
	} `json:"status"`
}

// migrationState is what virt-handler reads of status.migrationState.
type migrationState struct {
	UID               types.UID    `json:"migrationUid"`
	SourceNode        string       `json:"sourceNode"`
	SourcePod         string       `json:"sourcePod"`
	TargetNode        string       `json:"targetNode"`
	TargetPod         string       `json:"targetPod"`
	TargetNodeAddress string       `json:"targetNodeAddress"`
	Start             *metav1.Time `json:"startTimestamp"`
	End               *metav1.Time `json:"endTimestamp"`
	TargetDomainSeen  bool         `json:"targetNodeDomainDetected"`
	TargetDomainReady *metav1.Time `json:"targetNodeDomainReadyTimestamp"`
	Completed         bool         `json:"completed"`
	Failed            bool         `json:"failed"`
	AbortRequested    bool         `json:"abortRequested"`
	AbortStatus       string       `json:"abortStatus"`
	Settings          struct {
		ProgressTimeout int64 `json:"progressTimeout"` // seconds
	} `json:"migrationConfiguration"`
}

// condition is a condition of a VMI. It keeps what it does not know of.
type condition map[string]any

// newCondition returns a condition as KubeVirt writes it: times that it does not know are null.
func newCondition(kind, status string) condition {
	return condition{"type": kind, "status": status, "lastProbeTime": nil, "lastTransitionTime": nil}
}

type phaseTransition struct {
	Phase string      `json:"phase"`
	At    metav1.Time `json:"phaseTransitionTimestamp"`
}

func decodeVMI(o *unstructured.Unstructured) (*vmi, error) {
	raw, err := o.MarshalJSON()
	if err != nil {
		return nil, err
	}
	v := &vmi{object: o}
	if err := json.Unmarshal(raw, v); err != nil {
		return nil, fmt.Errorf("decode vmi %s/%s: %w", o.GetNamespace(), o.GetName(), err)
	}
	return v, nil
}

func (v *vmi) isFinal() bool {
	return v.Status.Phase == phaseSucceeded || v.Status.Phase == phaseFailed
}

// withConditions returns the VMI's conditions with these instead of those of the same type.
func (v *vmi) withConditions(more ...condition) []condition {
	out := make([]condition, 0, len(v.Status.Conditions)+len(more))
	for _, old := range v.Status.Conditions {
		replaced := false
		for _, c := range more {
			replaced = replaced || c["type"] == old["type"]
		}
		if !replaced {
			out = append(out, old)
		}
	}
	return append(out, more...)
}

// withPhase returns the VMI's phase transitions with one more.
func (v *vmi) withPhase(phase string, at time.Time) []phaseTransition {
	return append(append([]phaseTransition{}, v.Status.Transitions...), phaseTransition{phase, metav1.NewTime(at)})
}

// handledBy returns the nodes whose virt-handlers change the VMI: its own and, while a migration is under way, the target's.
func (v *vmi) handledBy() []string {
	nodes := []string{v.Status.NodeName}
	if m := v.Status.Migration; m != nil && m.End.IsZero() {
		nodes = append(nodes, m.TargetNode)
	}
	return nodes
}
