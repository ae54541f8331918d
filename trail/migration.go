package trail

import (
	"time"
)

// The priorities of a migration (reference: kubevirt-signals §3.1).
const (
	priorityUser        = "user-triggered"
	priorityCritical    = "system-critical"
	priorityMaintenance = "system-maintenance" // the descheduler asked for it
)

// The phases of a migration (reference: kubevirt-signals §3.3). Others are recorded as they come.
const (
	PhasePending         = "Pending"
	PhaseScheduling      = "Scheduling"
	PhaseScheduled       = "Scheduled"
	PhasePreparingTarget = "PreparingTarget"
	PhaseTargetReady     = "TargetReady"
	PhaseRunning         = "Running"
	PhaseSucceeded       = "Succeeded"
	PhaseFailed          = "Failed"
	PhaseWaitingForSync  = "WaitingForSync"
	PhaseSynchronizing   = "Synchronizing"
)

// Phases lists the phases of a migration that are known.
func Phases() []string { return phaseLabels.values() }

// PhaseTime is one entry of status.phaseTransitionTimestamps: the first time of each phase, 1 s resolution.
type PhaseTime struct {
	Phase string
	At    time.Time
}

// ConditionAbortRequested is the condition of a VMIM that has a deletionTimestamp.
const ConditionAbortRequested = "migrationAbortRequested"

// SeenDetail is what a VMIM says from its beginning on: its spec never changes.
type SeenDetail struct {
	Evacuation     bool              `json:"evacuation,omitempty"`
	EvacuationNode string            `json:"evacuation_node,omitempty"`
	WorkloadUpdate bool              `json:"workload_update,omitempty"`
	VolumeUpdate   bool              `json:"volume_update,omitempty"`
	Priority       string            `json:"priority,omitempty"`
	NodeSelector   map[string]string `json:"node_selector,omitempty"`
	SendTo         string            `json:"send_to,omitempty"`
	Receive        string            `json:"receive,omitempty"`
}

func (*SeenDetail) isDetail() {}

// ResultDetail is a migration state as one object showed it.
type ResultDetail struct {
	SourceNode              string    `json:"source_node,omitempty"`
	TargetNode              string    `json:"target_node,omitempty"`
	SourcePod               string    `json:"source_pod,omitempty"`
	TargetPod               string    `json:"target_pod,omitempty"`
	StartedAt               time.Time `json:"started_at,omitzero"`
	EndedAt                 time.Time `json:"ended_at,omitzero"`
	Mode                    string    `json:"mode,omitempty"`
	Completed               bool      `json:"completed,omitempty"`
	Failed                  bool      `json:"failed,omitempty"`
	FailureReason           string    `json:"failure_reason,omitempty"`
	AbortRequested          bool      `json:"abort_requested,omitempty"`
	AbortStatus             string    `json:"abort_status,omitempty"`
	Policy                  string    `json:"policy,omitempty"`
	CompletionTimeoutPerGiB int64     `json:"completion_timeout_per_gib,omitempty"` // seconds
	ProgressTimeout         int64     `json:"progress_timeout,omitempty"`           // seconds
	GuestMemory             int64     `json:"guest_memory,omitempty"`               // bytes
	AllowAutoConverge       bool      `json:"allow_auto_converge,omitempty"`
	AllowPostCopy           bool      `json:"allow_post_copy,omitempty"`
}

func (*ResultDetail) isDetail() {}

// EndDetail is the state of a VMIM when its deletion was asked for or when it was gone.
type EndDetail struct {
	Phase string `json:"phase,omitempty"` // the last phase seen
	Final bool   `json:"final,omitempty"` // the migration had ended by itself before
}

func (*EndDetail) isDetail() {}
