package truth

import "time"

// History is what happened to the VMs of a cluster. Its lists have no order. Times are UTC.
type History struct {
	Requests   []Request   `json:"requests"`
	Marks      []Mark      `json:"marks"`
	Migrations []Migration `json:"migrations"`
	Stays      []Stay      `json:"stays"`
	Backoffs   []Backoff   `json:"backoffs,omitempty"` // only of evictrail: the components show the wait, not its length
	Waves      []Wave      `json:"waves,omitempty"`
}

// Request is one call of pods/eviction on a virt-launcher pod that was answered. Dry runs are none.
type Request struct {
	At        time.Time `json:"at"` // when the API server received it
	Namespace string    `json:"namespace"`
	Pod       string    `json:"pod"`
	User      string    `json:"user"` // name, as the API server authenticated it
	Code      int       `json:"code"` // HTTP status of the answer
}

// Mark is the time in which status.evacuationNodeName of a VMI named a node.
type Mark struct {
	VMI   string    `json:"vmi"` // namespace/name
	Node  string    `json:"node"`
	From  time.Time `json:"from"`
	Until time.Time `json:"until,omitzero"` // zero while it is set
}

// Migration is one VirtualMachineInstanceMigration.
type Migration struct {
	UID     string               `json:"uid"`
	VMI     string               `json:"vmi"`              // namespace/name
	Source  string               `json:"source,omitempty"` // node; empty where no object says it
	Target  string               `json:"target,omitempty"`
	Phase   string               `json:"phase"`             // the last one that was seen
	Phases  map[string]time.Time `json:"phases"`            // of status.phaseTransitionTimestamps: whole seconds
	Failure string               `json:"failure,omitempty"` // status.migrationState.failureReason
	Update  bool                 `json:"update,omitempty"`  // KubeVirt made it to update the VMI: annotation kubevirt.io/workloadUpdateMigration
}

// Stay is the time in which the guest of a VMI ran on a node.
type Stay struct {
	VMI   string    `json:"vmi"` // namespace/name
	UID   string    `json:"uid"` // of the VMI
	Node  string    `json:"node"`
	From  time.Time `json:"from"`
	Until time.Time `json:"until,omitzero"` // zero while it runs there
}

// Backoff is how long KubeVirt waits after a failed migration before it moves the VMI again.
type Backoff struct {
	VMI   string    `json:"vmi"` // namespace/name
	From  time.Time `json:"from"`
	Until time.Time `json:"until"`
}
