package collector

import (
	"time"

	"github.com/evictrail/evictrail/trail"
	"github.com/evictrail/evictrail/trail/tracker"
)

// slimPod is what is read of a virt-launcher pod.
type slimPod struct {
	Metadata struct {
		metadata
		Labels struct {
			CreatedBy       string `json:"kubevirt.io/created-by"`
			MigrationJobUID string `json:"kubevirt.io/migrationJobUID"`
		} `json:"labels"`
		Annotations struct {
			Domain             string  `json:"kubevirt.io/domain"`
			MigrationJobName   string  `json:"kubevirt.io/migrationJobName"`
			EvictionInProgress *string `json:"descheduler.alpha.kubernetes.io/eviction-in-progress"`
			PreferNoEviction   *string `json:"descheduler.alpha.kubernetes.io/prefer-no-eviction"`
		} `json:"annotations"`
		OwnerReferences []struct {
			Kind string `json:"kind"`
			Name string `json:"name"`
			UID  string `json:"uid"`
		} `json:"ownerReferences"`
		DeletionGracePeriodSeconds int64 `json:"deletionGracePeriodSeconds"`
	} `json:"metadata"`
	Spec struct {
		NodeName string `json:"nodeName"`
	} `json:"spec"`
	Status struct {
		Phase      string      `json:"phase"`
		Reason     string      `json:"reason"`
		Message    string      `json:"message" text:"message"`
		Conditions []condition `json:"conditions"`
	} `json:"status"`
}

func (v *slimPod) objectMeta() *metadata { return &v.Metadata.metadata }

func (v *slimPod) decodeObservation(m tracker.Meta) (Observation, error) {
	a := v.Metadata.Annotations
	o := tracker.PodObservation{
		Meta:               m,
		VMI:                a.Domain,
		VMIUID:             v.Metadata.Labels.CreatedBy,
		Node:               v.Spec.NodeName,
		Phase:              v.Status.Phase,
		MigrationUID:       v.Metadata.Labels.MigrationJobUID,
		MigrationName:      a.MigrationJobName,
		EvictionInProgress: derefText(a.EvictionInProgress),
		HasInProgress:      a.EvictionInProgress != nil,
		PreferNoEviction:   a.PreferNoEviction != nil,
		DeletionGrace:      time.Duration(v.Metadata.DeletionGracePeriodSeconds) * time.Second,
	}
	for _, owner := range v.Metadata.OwnerReferences {
		if owner.Kind == string(trail.ObjectVMI) {
			o.VMI, o.VMIUID = owner.Name, owner.UID
		}
	}
	for _, c := range v.Status.Conditions {
		switch {
		case c.Type == "PodScheduled" && c.Status == "False" && c.Reason == "Unschedulable":
			o.Unschedulable = c.Message
		case c.Type == "DisruptionTarget" && c.Status == "True":
			o.Disruption = c.decodeCondition()
		}
	}
	if o.Disruption.Reason == "" && v.Status.Reason == "Evicted" { // node pressure, on kubelets that set no condition
		o.Disruption = tracker.Condition{Reason: v.Status.Reason, Message: v.Status.Message}
	}
	return func(s tracker.Seen) tracker.Observation { o.Seen = s; return o }, nil
}
