package metrics

// Stability says what may change about a metric, in the terms of Kubernetes.
type Stability string

// The levels. They stand before the help of a metric, as in Kubernetes.
const (
	Alpha  Stability = "ALPHA"  // anything may change with any version; the changelog says so
	Stable Stability = "STABLE" // its name, type, labels and their meaning stay; testdata/stable.txt keeps them
)

// stable are the metrics that rules and dashboards of others may rely on: what happens to VMs, what holds it up, and whether evictrail
// records. How evictrail does that inside is not among them.
var stable = map[string]bool{
	EvictionRequestsTotal: true, EvacuationsStartedTotal: true, EvacuationsEndedTotal: true, EvacuationDurationSeconds: true,
	EvacuationObjectiveTotal: true, MigrationsTotal: true, MigrationDurationSeconds: true, MigrationQueueWaitSeconds: true,
	PhaseTransitionsTotal: true, PostCopyFailuresTotal: true, GuestsEndedTotal: true, LoopsTotal: true, LoopsOpen: true,
	CooldownDecisionsTotal: true, EvictionBlocksTotal: true,
	NodeEvacuationsMarked: true, NodeEvacuationsRetrying: true, VMIMarkedTimestamp: true, VMIFailedAttempts: true,
	MigrationsPending: true, MigrationsRunning: true, MigrationLimit: true, NodeVMIsInCooldown: true, VMICooldownUntil: true,
	NodeDraining: true, NodeDrainStart: true, NodeDrainRemaining: true, KubeVirtInfo: true, StateTimestamp: true,
	EventsLostTotal: true, StoreUp: true, SpoolBytes: true, WatchSynced: true, CommitLagSeconds: true,
}

// Stability returns what may change about the metric.
func (m *Metric) Stability() Stability {
	if stable[m.Name] {
		return Stable
	}
	return Alpha
}

// ExportedHelp returns the help that Prometheus gets.
func (m *Metric) ExportedHelp() string { return "[" + string(m.Stability()) + "] " + m.Help }
