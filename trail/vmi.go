package trail

import (
	"time"
)

// The eviction strategies of a VMI. An empty one is None.
const (
	strategyNone       = "None"
	strategyMigrate    = "LiveMigrate"
	StrategyIfPossible = "LiveMigrateIfPossible"
	StrategyExternal   = "External" // leaves moving the VM to its owner
)

// The condition types of a VMI that are recorded (reference: kubevirt-signals §5.4).
const (
	ConditionLiveMigratable    = "LiveMigratable"
	ConditionEvictionRequested = "EvictionRequested"
	ConditionPaused            = "Paused"
	ConditionMigrationRequired = "MigrationRequired"
	ConditionHotVCPUChange     = "HotVCPUChange"
	ConditionHotMemoryChange   = "HotMemoryChange"
	ConditionVolumesChange     = "VolumesChange"
	ConditionDecentralized     = "DecentralizedLiveMigrationFailure"
)

// MarkDetail is what is known of a mark at the instant it was set or cleared.
type MarkDetail struct {
	Strategy  string `json:"strategy,omitempty"`
	Source    string `json:"source,omitempty"`    // the eviction-source annotation at that instant
	Inherited bool   `json:"inherited,omitempty"` // the annotation was there before the mark: it may be stale
	GuestNode string `json:"guest_node,omitempty"`
}

func (*MarkDetail) isDetail() {}

// ConditionDetail is a condition as it was seen.
type ConditionDetail struct {
	Type    string `json:"type"`
	Status  string `json:"status,omitempty"` // empty when the condition was removed
	Reason  string `json:"reason,omitempty"`
	Message string `json:"message,omitempty"`
}

func (*ConditionDetail) isDetail() {}

// VMIDetail is what a placement or an end of a VMI knows beyond its node.
type VMIDetail struct {
	CreatedAt    time.Time `json:"created_at,omitzero"`
	MigrationUID string    `json:"migration_uid,omitempty"` // the migration that brought the guest here, where the VMI says so
	MigrationEnd time.Time `json:"migration_end,omitzero"`  // its endTimestamp, on the source node's clock
	Phase        string    `json:"phase,omitempty"`
	Strategy     string    `json:"strategy,omitempty"`
}

func (*VMIDetail) isDetail() {}
