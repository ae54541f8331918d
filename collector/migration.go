package collector

import (
	"time"

	"github.com/evictrail/evictrail/trail/tracker"
)

// slimMigration is what is read of a VirtualMachineInstanceMigration.
type slimMigration struct {
	Metadata struct {
		metadata
		Labels struct {
			VolumeUpdate *string `json:"kubevirt.io/volume-update-migration"`
		} `json:"labels"`
		Annotations struct {
			Evacuation     *string `json:"kubevirt.io/evacuationMigration"`
			WorkloadUpdate *string `json:"kubevirt.io/workloadUpdateMigration"`
		} `json:"annotations"`
	} `json:"metadata"`
	Spec struct {
		VMIName           string            `json:"vmiName"`
		Priority          string            `json:"priority"`
		AddedNodeSelector map[string]string `json:"addedNodeSelector"`
		SendTo            *migrationID      `json:"sendTo"`
		Receive           *migrationID      `json:"receive"`
	} `json:"spec"`
	Status struct {
		Phase                     string              `json:"phase"`
		PhaseTransitionTimestamps []phaseTime         `json:"phaseTransitionTimestamps"`
		Conditions                []condition         `json:"conditions"`
		MigrationState            *slimMigrationState `json:"migrationState"`
	} `json:"status"`
}

type migrationID struct {
	MigrationID string `json:"migrationID"`
}

func (i *migrationID) valueOrEmpty() string {
	if i == nil {
		return ""
	}
	return i.MigrationID
}

// slimMigrationState is what is read of a migrationState, on VMIs and on VMIMs.
type slimMigrationState struct {
	MigrationUID           string    `json:"migrationUid"`
	SourceNode             string    `json:"sourceNode"`
	TargetNode             string    `json:"targetNode"`
	SourcePod              string    `json:"sourcePod"`
	TargetPod              string    `json:"targetPod"`
	StartTimestamp         time.Time `json:"startTimestamp"`
	EndTimestamp           time.Time `json:"endTimestamp"`
	Mode                   string    `json:"mode"`
	Completed              bool      `json:"completed"`
	Failed                 bool      `json:"failed"`
	FailureReason          string    `json:"failureReason" text:"message"`
	AbortRequested         bool      `json:"abortRequested"`
	AbortStatus            string    `json:"abortStatus"`
	MigrationPolicyName    string    `json:"migrationPolicyName"`
	MigrationConfiguration struct {
		CompletionTimeoutPerGiB int64 `json:"completionTimeoutPerGiB"`
		ProgressTimeout         int64 `json:"progressTimeout"`
		AllowAutoConverge       bool  `json:"allowAutoConverge"`
		AllowPostCopy           bool  `json:"allowPostCopy"`
	} `json:"migrationConfiguration"`
}

func (s *slimMigrationState) toMigrationState() *tracker.MigrationState {
	if s == nil {
		return nil
	}
	return &tracker.MigrationState{
		UID: s.MigrationUID, SourceNode: s.SourceNode, TargetNode: s.TargetNode, SourcePod: s.SourcePod, TargetPod: s.TargetPod,
		StartedAt: s.StartTimestamp.UTC(), EndedAt: s.EndTimestamp.UTC(), Mode: s.Mode, Completed: s.Completed, Failed: s.Failed,
		FailureReason: s.FailureReason, AbortRequested: s.AbortRequested, AbortStatus: s.AbortStatus, Policy: s.MigrationPolicyName,
		CompletionTimeoutPerGiB: s.MigrationConfiguration.CompletionTimeoutPerGiB,
		ProgressTimeout:         s.MigrationConfiguration.ProgressTimeout,
		AllowAutoConverge:       s.MigrationConfiguration.AllowAutoConverge,
		AllowPostCopy:           s.MigrationConfiguration.AllowPostCopy,
	}
}

func (v *slimMigration) objectMeta() *metadata { return &v.Metadata.metadata }

func (v *slimMigration) decodeObservation(m tracker.Meta) (Observation, error) {
	a := v.Metadata.Annotations
	o := tracker.MigrationObservation{
		Meta:           m,
		VMI:            v.Spec.VMIName,
		Phase:          v.Status.Phase,
		PhaseTimes:     phaseTimesFrom(v.Status.PhaseTransitionTimestamps),
		Conditions:     conditionsFrom(v.Status.Conditions),
		State:          v.Status.MigrationState.toMigrationState(),
		Evacuation:     a.Evacuation != nil,
		EvacuationNode: derefText(a.Evacuation),
		WorkloadUpdate: a.WorkloadUpdate != nil,
		VolumeUpdate:   v.Metadata.Labels.VolumeUpdate != nil,
		Priority:       v.Spec.Priority,
		NodeSelector:   v.Spec.AddedNodeSelector,
		SendTo:         v.Spec.SendTo.valueOrEmpty(),
		Receive:        v.Spec.Receive.valueOrEmpty(),
	}
	return func(s tracker.Seen) tracker.Observation { o.Seen = s; return o }, nil
}

func derefText(s *string) string {
	if s == nil {
		return ""
	}
	return *s
}
