package truth

import "time"

// History is what happened to the VMs of a cluster. Its lists have no order. Times are UTC.
type History struct {
	Requests   []Request
	Marks      []Mark
	Migrations []Migration
	Stays      []Stay
	Backoffs   []Backoff // only of evictrail: the components show the wait, not its length
}

// Request is one call of pods/eviction on a virt-launcher pod that was answered. Dry runs are none.
type Request struct {
	At        time.Time // when the API server received it
	Namespace string
	Pod       string
	User      string // name, as the API server authenticated it
	Code      int    // HTTP status of the answer
}

// Mark is the time in which status.evacuationNodeName of a VMI named a node.
type Mark struct {
	VMI   string // namespace/name
	Node  string
	From  time.Time
	Until time.Time // zero while it is set
}

// Migration is one VirtualMachineInstanceMigration.
type Migration struct {
	UID     string
	VMI     string // namespace/name
	Source  string // node; empty where no object says it
	Target  string
	Phase   string               // the last one that was seen
	Phases  map[string]time.Time // of status.phaseTransitionTimestamps: whole seconds
	Failure string               // status.migrationState.failureReason
}

// Stay is the time in which the guest of a VMI ran on a node.
type Stay struct {
	VMI   string // namespace/name
	UID   string // of the VMI
	Node  string
	From  time.Time
	Until time.Time // zero while it runs there
}

// Backoff is how long KubeVirt waits after a failed migration before it moves the VMI again.
type Backoff struct {
	VMI   string // namespace/name
	From  time.Time
	Until time.Time
}
