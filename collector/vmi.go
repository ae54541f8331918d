package collector

import (
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/evictrail/evictrail/trail/tracker"
)

// slimVMI is what is read of a VirtualMachineInstance.
type slimVMI struct {
	Metadata struct {
		metadata
		Annotations struct {
			EvictionSource string `json:"kubevirt.io/eviction-source"`
		} `json:"annotations"`
		Labels struct {
			Outdated *string `json:"kubevirt.io/outdatedLauncherImage"`
		} `json:"labels"`
	} `json:"metadata"`
	Spec struct {
		EvictionStrategy string `json:"evictionStrategy"`
	} `json:"spec"`
	Status struct {
		NodeName                  string              `json:"nodeName"`
		Phase                     string              `json:"phase"`
		EvacuationNodeName        string              `json:"evacuationNodeName"`
		Conditions                []condition         `json:"conditions"`
		PhaseTransitionTimestamps []phaseTime         `json:"phaseTransitionTimestamps"`
		MigrationState            *slimMigrationState `json:"migrationState"`
		Memory                    struct {
			GuestCurrent string `json:"guestCurrent"`
		} `json:"memory"`
	} `json:"status"`
}

func (v *slimVMI) objectMeta() *metadata { return &v.Metadata.metadata }

func (v *slimVMI) decodeObservation(m tracker.Meta) (Observation, error) {
	o := tracker.VMIObservation{
		Meta:           m,
		Node:           v.Status.NodeName,
		Phase:          v.Status.Phase,
		Strategy:       v.Spec.EvictionStrategy,
		Mark:           v.Status.EvacuationNodeName,
		EvictionSource: v.Metadata.Annotations.EvictionSource,
		Outdated:       v.Metadata.Labels.Outdated != nil,
		Conditions:     conditionsFrom(v.Status.Conditions),
		PhaseTimes:     phaseTimesFrom(v.Status.PhaseTransitionTimestamps),
		State:          v.Status.MigrationState.toMigrationState(),
	}
	if o.State != nil {
		o.State.GuestMemory = bytesOf(v.Status.Memory.GuestCurrent)
	}
	return func(s tracker.Seen) tracker.Observation { o.Seen = s; return o }, nil
}

// bytesOf reads a quantity such as "2Gi"; zero where there is none or it cannot be read.
func bytesOf(text string) int64 {
	q, err := resource.ParseQuantity(text)
	if err != nil {
		return 0
	}
	return q.Value()
}
