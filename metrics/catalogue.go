package metrics

import (
	"slices"

	"github.com/evictrail/evictrail/trail"
)

// Type is what Prometheus calls the type of a metric.
type Type string

// The types.
const (
	Counter   Type = "counter"
	Gauge     Type = "gauge"
	Histogram Type = "histogram" // native, with classic buckets for those who cannot read native ones
)

// Metric explains one metric. It is the only place where a metric's type, labels and help are written: the instruments,
// docs/metrics.md and the checks of rules and panels are made of it.
type Metric struct {
	Name    string
	Type    Type
	Labels  []string
	Help    string
	Buckets []float64 // upper bounds of the classic buckets of a histogram, +Inf left out
	PerVM   bool      // one series for each VM in an exceptional state, at most as many as --max-vm-series
}

// The classic buckets, in seconds.
var (
	movingBuckets   = []float64{5, 15, 30, 60, 120, 300, 600, 1200, 1800, 3600, 7200, 21600}
	lagBuckets      = []float64{.05, .1, .25, .5, 1, 2.5, 5, 10, 30, 60, 300, 3600}
	cooldownBuckets = []float64{900, 1800, 3600, 7200, 14400, 21600} // those of KubevirtMigrationAware
	callBuckets     = []float64{.001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 5}
)

// ofGuest are the labels of a VM on its node.
var ofGuest = []string{LabelNamespace, LabelVMI, LabelNode}

// Catalogue lists every metric of evictrail, in the order of the documentation. Those of the Go runtime, of the process and
// of the build are left out.
func Catalogue() []Metric {
	return slices.Concat(countedMetrics, stateMetrics, upkeepMetrics, ownMetrics)
}

var countedMetrics = []Metric{
	{Name: EvictionRequestsTotal, Type: Counter, Labels: []string{LabelRequester, LabelAnswer}, Help: "Eviction requests on virt-launcher pods, by what sort of program asked and how it was answered. Dry runs are not counted."},
	{Name: EvacuationsStartedTotal, Type: Counter, Labels: []string{LabelNode, LabelRequester}, Help: "Evacuations that began, by the node that the VM was to leave and by what sort of program asked."},
	{Name: EvacuationsEndedTotal, Type: Counter, Labels: []string{LabelNode, LabelResult}, Help: "Evacuations that ended, by the node that the VM was to leave and by how they ended."},
	{Name: EvacuationDurationSeconds, Type: Histogram, Labels: []string{LabelRequester, LabelResult}, Buckets: movingBuckets, Help: "Time from the mark of an evacuation to its end."},
	{Name: EvacuationObjectiveTotal, Type: Counter, Labels: []string{LabelRequester, LabelResult}, Help: "Evacuations that have an objective (--evacuation-objective), each once it is decided whether the guest left in time. Those that were cancelled or whose VMI ended in time are not counted."},
	{Name: PhaseTransitionsTotal, Type: Counter, Labels: []string{LabelPhase, LabelTrigger}, Help: "Phases that migrations reached, by why the migration exists."},
	{Name: MigrationsTotal, Type: Counter, Labels: []string{LabelResult, LabelClass, LabelTrigger}, Help: "Migrations that ended, by how, by the class of the failure, and by why they existed."},
	{Name: MovesTotal, Type: Counter, Labels: []string{LabelRequester, LabelBenefit}, Help: "Moves that were made to relieve a node, by who asked and by what came of them a quarter of an hour later. Only where the load of nodes is known."},
	{Name: PostCopyFailuresTotal, Type: Counter, Labels: []string{LabelNode}, Help: "Migrations that failed after the guest had left in post-copy, so that it was lost, by the node that it left."},
	{Name: GuestsEndedTotal, Type: Counter, Labels: []string{LabelCause, LabelRequester}, Help: "Guests that the platform shut down or lost, by the cause and by what sort of program began it. What the owner of a VM did is not counted."},
	{Name: MigrationDurationSeconds, Type: Histogram, Labels: []string{LabelResult, LabelTrigger}, Buckets: movingBuckets, Help: "Time from the creation of a migration to its end."},
	{Name: MigrationPhaseDurationSeconds, Type: Histogram, Labels: []string{LabelPhase}, Buckets: movingBuckets, Help: "Time that a migration spent in a phase."},
	{Name: MigrationQueueWaitSeconds, Type: Histogram, Labels: []string{LabelTrigger}, Buckets: movingBuckets, Help: "Time from the creation of a migration to its target pod."},
	{Name: CooldownDecisionsTotal, Type: Counter, Labels: []string{LabelReason, LabelOrigin}, Help: "Acts that met what holds a VM back, by what that was. Derived: by the model of evictrail; observed: a counter of the descheduler."},
	{Name: EffectiveCooldownSeconds, Type: Histogram, Labels: []string{LabelOrigin}, Buckets: cooldownBuckets, Help: "Cooldowns of the descheduler, each once when it begins."},
	{Name: EvictionBlocksTotal, Type: Counter, Labels: []string{LabelReason, LabelNode, LabelNamespace}, Help: "Evictions that the descheduler held back: by its own count where its metrics are read, else as evictrail derives them."},
	{Name: LoopsTotal, Type: Counter, Labels: []string{LabelKind}, Help: "Loops that opened."},
}

var stateMetrics = []Metric{
	{Name: NodeEvacuationsMarked, Type: Gauge, Labels: []string{LabelNode}, Help: "Evacuations from a node that are open."},
	{Name: NodeEvacuationsRetrying, Type: Gauge, Labels: []string{LabelNode}, Help: "Evacuations from a node that are open and have failed at least once."},
	{Name: VMIMarkedTimestamp, Type: Gauge, Labels: []string{LabelNamespace, LabelVMI, LabelNode, LabelRequester, LabelStrategy}, PerVM: true, Help: "When a VM was marked to leave its node. The series exists while the evacuation is open."},
	{Name: VMIAnnotationPresent, Type: Gauge, Labels: ofGuest, PerVM: true, Help: "Whether the pod of a VM that is to leave its node bears the annotation by which the descheduler knows. The series exists while the evacuation is open and the annotation was seen."},
	{Name: VMIFailedAttempts, Type: Gauge, Labels: ofGuest, PerVM: true, Help: "Failed attempts of an open evacuation."},
	{Name: VMINextRetryTimestamp, Type: Gauge, Labels: ofGuest, PerVM: true, Help: "Before when KubeVirt makes no next attempt to move a VM. The series exists while it waits."},
	{Name: MigrationFailingVMIs, Type: Gauge, Labels: []string{LabelWindow, LabelClass}, Help: "VMs with a failed migration in a window of time, by the class of the failure."},
	{Name: MigrationsPending, Type: Gauge, Labels: []string{LabelBlocker}, Help: "Migrations that have no target pod yet, or have it on a node that is not ready, by why."},
	{Name: MigrationPendingOldest, Type: Gauge, Labels: []string{LabelBlocker}, Help: "When the oldest migration that has no target pod yet, or has it on a node that is not ready, was created, by why. Absent where none waits."},
	{Name: MigrationsRunning, Type: Gauge, Help: "Migrations that have their target pod and are not over."},
	{Name: NodeMigrations, Type: Gauge, Labels: []string{LabelNode, LabelDirection}, Help: "Migrations that have their target pod and are not over, by the node that they leave or come to."},
	{Name: MigrationLimit, Type: Gauge, Labels: []string{LabelScope}, Help: "Migrations that may run at once by the settings of KubeVirt."},
	{Name: VMIPingPongReturns, Type: Gauge, Labels: []string{LabelNamespace, LabelVMI, LabelWindow}, PerVM: true, Help: "How often the descheduler brought a VM back to a node that it had taken it from, in a window of time."},
	{Name: VMIMigrationsRecent, Type: Gauge, Labels: []string{LabelNamespace, LabelVMI, LabelWindow, LabelTrigger}, PerVM: true, Help: "Moves of a VM in a window of time, by why. The series exists from three on."},
	{Name: VMICooldownSeconds, Type: Gauge, Labels: ofGuest, PerVM: true, Help: "How long the descheduler leaves a VM alone in all. The series exists where that is longer than the base."},
	{Name: VMICooldownUntil, Type: Gauge, Labels: ofGuest, PerVM: true, Help: "Until when the descheduler leaves a VM alone. The series exists where that is longer than the base."},
	{Name: NodeVMIs, Type: Gauge, Labels: []string{LabelNode}, Help: "VMs that run on a node."},
	{Name: NodeVMIsInCooldown, Type: Gauge, Labels: []string{LabelNode}, Help: "VMs that run on a node and that the descheduler leaves alone after a migration."},
	{Name: CooldownConfigSeconds, Type: Gauge, Labels: []string{LabelParam}, Help: "Settings of KubevirtMigrationAware in force. Absent where the descheduler's policy is not known or does not enable it."},
	{Name: SlotsInUse, Type: Gauge, Labels: []string{LabelScope, LabelNode}, Help: "Evictions that the descheduler counts as under way, as far as the cluster shows them."},
	{Name: SlotOldestTimestamp, Type: Gauge, Labels: []string{LabelScope, LabelNode}, Help: "Since when the oldest of those evictions is under way. Absent where there is none."},
	{Name: SlotsLimit, Type: Gauge, Labels: []string{LabelScope}, Help: "Evictions that the descheduler's policy allows at once. Absent where it sets no limit or is not known."},
	{Name: NodeDraining, Type: Gauge, Labels: []string{LabelNode}, Help: "Whether a node is being drained of VMs. The series exists while it is."},
	{Name: NodeDrainStart, Type: Gauge, Labels: []string{LabelNode}, Help: "When the drain of a node began. The series exists while it lasts."},
	{Name: NodeDrainRemaining, Type: Gauge, Labels: []string{LabelNode, LabelBlocker}, Help: "VMs that are left on a node that is being drained, by why."},
	{Name: VMIDrainBlocked, Type: Gauge, Labels: []string{LabelNamespace, LabelVMI, LabelNode, LabelBlocker, LabelReason}, PerVM: true, Help: "1 for each VM that is left on a node that is being drained, with why; the reason is KubeVirt's where it cannot be migrated."},
	{Name: LoopsOpen, Type: Gauge, Labels: []string{LabelKind, LabelNode}, Help: "Loops that are open, by kind and node. The series exists while one is."},
	{Name: KubeVirtInfo, Type: Gauge, Labels: []string{LabelVersion, LabelAnnotationMode}, Help: "1, with the version of KubeVirt and to what it ties the annotation eviction-in-progress: to the attempt, to the mark, or unknown."},
	{Name: DeschedulerInfo, Type: Gauge, Labels: []string{LabelVersion, LabelNativeBlocks}, Help: "1, with the version of the descheduler and whether it counts blocked evictions itself."},
	{Name: StateTimestamp, Type: Gauge, Help: "When the gauges about the cluster were last read from the database."},
}

var upkeepMetrics = []Metric{
	{Name: PartitionAheadSeconds, Type: Gauge, Help: "For how long from now on there are partitions for new facts."},
	{Name: DefaultPartitionRows, Type: Gauge, Help: "Facts of the last three months, or of a time to come, in the default partition, where they are only when their own was missing. Counted up to 1000."},
	{Name: UnderivedSubjects, Type: Gauge, Help: "VMs, nodes and others that could not be derived from their facts, and are left out until they are tried again."},
	{Name: FactsFromTimestamp, Type: Gauge, Help: "Since when all facts are there; of older ones those that what came after rests on. Absent where none were dropped."},
	{Name: SchemaVersion, Type: Gauge, Help: "Version of the schema that the database has."},
	{Name: SchemaVersionExpected, Type: Gauge, Help: "Version of the schema that this evictrail needs."},
	{Name: SeriesDroppedTotal, Type: Counter, Labels: []string{LabelMetric}, Help: "Series of single VMs that were left out at a reading of the state because there were more than --max-vm-series."},
}

var ownMetrics = []Metric{
	{Name: FactsTotal, Type: Counter, Labels: []string{LabelKind, LabelStage}, Help: "Facts by kind and by how far they came; for rejected objects the kind is that of the object."},
	{Name: EventsLostTotal, Type: Counter, Labels: []string{LabelKind, LabelCause}, Help: "What evictrail knows to be missing from its record, by kind and cause."},
	{Name: EpochsTotal, Type: Counter, Labels: []string{LabelCause}, Help: "Breaks in the record, by cause: the cluster was restored from a backup or rebuilt, or the database lost what it had confirmed. After each everything is compared, and a gap says so."},
	{Name: CommitLagSeconds, Type: Histogram, Labels: []string{LabelKind}, Buckets: lagBuckets, Help: "Time from the sight of a fact to its commit in the database."},
	{Name: SpoolBytes, Type: Gauge, Help: "Facts that wait for the database, in bytes."},
	{Name: SpoolCapacityBytes, Type: Gauge, Help: "How many bytes of facts may wait for the database. Before it is full what matters least is left out."},
	{Name: SpoolFacts, Type: Gauge, Help: "Facts that wait for the database in the spool."},
	{Name: DeadLetters, Type: Gauge, Help: "Facts that were refused and set aside, until `evictrail spool replay` stores them. Absent where there is no spool."},
	{Name: SpoolOldestEventTimestamp, Type: Gauge, Help: "When the oldest fact that waits for the database was seen. Absent where none waits."},
	{Name: SpoolWritable, Type: Gauge, Help: "Whether facts are kept on disk before the database has them. Where they are not they go straight to the database, and wait in memory while that is away. Absent where there is no spool."},
	{Name: SpoolFsyncDurationSeconds, Type: Histogram, Buckets: callBuckets, Help: "Time of one commit of the spool to disk."},
	{Name: QueueLength, Type: Gauge, Help: "Facts that wait in memory for the spool, or where there is none for the database."},
	{Name: RecorderState, Type: Gauge, Help: "How it stands with the recording of the cluster: 1 for the state that holds, 0 for the others. It is what /readyz and the pages say.", Labels: []string{LabelState}},
	{Name: RecorderStateSince, Type: Gauge, Help: "Since when that state holds."},
	{Name: StoreUp, Type: Gauge, Help: "Whether the last write to the database succeeded."},
	{Name: StorePoolConnections, Type: Gauge, Labels: []string{LabelState}, Help: "Connections to the database: used, idle, and how many there may be."},
	{Name: StoreErrorsTotal, Type: Counter, Labels: []string{LabelOp, LabelSQLStateClass}, Help: "Failed calls of the database by operation and by class of SQLSTATE, none where it did not answer. retry is a transaction that was done again, of class 40 after a deadlock."},
	{Name: StoreWriteDurationSeconds, Type: Histogram, Labels: []string{LabelOp}, Buckets: callBuckets, Help: "Time of one call of the database by operation."},
	{Name: WatchLastActivityTimestamp, Type: Gauge, Labels: []string{LabelResource}, Help: "When a watch last delivered anything, bookmarks included. Where the API server never sent a bookmark on it, when that last answered a request for it, too."},
	{Name: WatchRestartsTotal, Type: Counter, Labels: []string{LabelResource, LabelReason}, Help: "How often a watch started again, by cause."},
	{Name: WatchSynced, Type: Gauge, Labels: []string{LabelResource}, Help: "Whether the first list of a watch was taken."},
	{Name: WatchRelistRecoveredTotal, Type: Counter, Labels: []string{LabelKind}, Help: "Facts that were not seen when they happened, and were rebuilt from what the objects still say."},
	{Name: WatchRelistUnrecoverableTotal, Type: Counter, Labels: []string{LabelKind}, Help: "Objects that went while nobody watched, so that nothing shows what became of them."},
	{Name: DisplacedEventsTotal, Type: Counter, Help: "Kubernetes Events that were recorded without their VM, because too many waited for migrations that were not seen."},
	{Name: TrackedObjects, Type: Gauge, Labels: []string{LabelKind}, Help: "Objects that the tracker remembers, by kind."},
	{Name: Leader, Type: Gauge, Help: "Whether this replica derives what facts mean."},
	{Name: DeriveLagSeconds, Type: Gauge, Help: "How long ago nothing was left to derive: how far rows are behind facts. Absent where another replica derives."},
	{Name: ClockSkewSeconds, Type: Gauge, Labels: []string{LabelPeer}, Help: "How far another clock is ahead of ours, less than zero where it is behind."},
	{Name: AuditEventsTotal, Type: Counter, Labels: []string{LabelResult}, Help: "Audit events that were read, by what became of them."},
	{Name: AuditLastEventTimestamp, Type: Gauge, Help: "When audit events were last read."},
	{Name: AuditEnabled, Type: Gauge, Help: "Whether audit events are expected: a log is followed, or senders are known."},
	{Name: AdmissionReviewsTotal, Type: Counter, Labels: []string{LabelResult}, Help: "Admission reviews that the observer answered, by what became of them."},
	{Name: ScrapesTotal, Type: Counter, Labels: []string{LabelResult}, Help: "Scrapes of the descheduler's metrics, by how they went."},
	{Name: HTTPRequestDurationSeconds, Type: Histogram, Labels: []string{LabelRoute, LabelMethod, LabelCode}, Buckets: callBuckets, Help: "Time to answer a request, by the template of its route and by class of status."},
	{Name: HTTPShedTotal, Type: Counter, Labels: []string{LabelCause}, Help: "What was not answered, or not to its end, as too much was asked: a caller had used up its share, all together asked too much (crowded), too many bytes of answers were unread, a reader was slow, or there were too many connections."},
	{Name: AuthzDeniedTotal, Type: Counter, Labels: []string{LabelCause}, Help: "Requests to evictrail that were refused for want of credentials, by cause."},
	{Name: RetentionDroppedTotal, Type: Counter, Labels: []string{LabelKind}, Help: "What was dropped as it was kept long enough: facts, derived rows, or names of people who asked (requesters). Counted by the replica that did it."},
	{Name: RetentionLastTimestamp, Type: Gauge, Help: "When this replica last dropped what was kept long enough, if there was any. Absent where it did not yet, as only the one that derives does."},
}

// byName finds metrics. A name that is not in the catalogue is a mistake in wiring.
var byName = func() map[string]Metric {
	out := map[string]Metric{}
	for _, m := range Catalogue() {
		out[m.Name] = m
	}
	return out
}()

func findMetric(name string) Metric {
	m, known := byName[name]
	if !known {
		panic("metric " + name + " is not in the catalogue")
	}
	return m
}

// The results that evacuations and migrations have, and the requesters that every node has series for.
var (
	evacuationResults = []string{string(trail.OutcomeMigrated), string(trail.OutcomeCancelled), string(trail.OutcomeVMIGone)}
	objectiveResults  = []string{ObjectiveMet, ObjectiveMissed}
	migrationResults  = []string{string(trail.OutcomeSucceeded), string(trail.OutcomeFailed), string(trail.OutcomeAborted)}
	usualRequesters   = []string{string(trail.RequesterDescheduler), string(trail.RequesterKubectl), string(trail.RequesterOther), string(trail.RequesterUnknown)}
)

// LabelSet is a closed set of values of a label.
type LabelSet struct {
	Label  string
	Of     string // the metrics whose label it is; empty: all that have it
	Values []string
}

// LabelSets lists the closed sets of label values that come from the domain; those of evictrail's own metrics are constants in
// names.go.
func LabelSets() []LabelSet {
	return []LabelSet{
		{LabelRequester, "", toStrings(trail.Requesters())},
		{LabelAnswer, "", toStrings(trail.Answers())},
		{LabelResult, EvacuationsEndedTotal + ", " + EvacuationDurationSeconds, evacuationResults},
		{LabelResult, EvacuationObjectiveTotal, objectiveResults},
		{LabelResult, "evictrail_migration*", migrationResults},
		{LabelClass, "", append([]string{ClassNone}, toStrings(trail.FailureClasses())...)},
		{LabelTrigger, "", toStrings(trail.Triggers())},
		{LabelPhase, "", append(trail.Phases(), labelOther)},
		{LabelReason, "evictrail_cooldown_decisions_total, evictrail_eviction_blocks_total", []string{trail.DecidedCooldown, trail.DecidedInProgress, labelOther}},
		{LabelReason, VMIDrainBlocked, append(trail.NotMigratableReasons(), labelOther)},
		{LabelCause, EpochsTotal, toStrings(trail.BreakCauses())},
		{LabelCause, GuestsEndedTotal, toStrings(trail.PlatformEndings())},
		{LabelOrigin, "", []string{trail.OriginDerived, trail.OriginObserved}},
		{LabelKind, "evictrail_loops*", toStrings(trail.LoopKinds())},
		{LabelBlocker, "evictrail_migration*", toStrings(trail.WaitReasons())},
		{LabelBlocker, "evictrail_node_drain_remaining_vmis, " + VMIDrainBlocked, toStrings(trail.Blockers())},
		{LabelAnnotationMode, "", []string{trail.AnnotatedByAttempt, trail.AnnotatedByMark, trail.AnnotatedUnknown}},
	}
}

func toStrings[S ~string](values []S) []string {
	out := make([]string, len(values))
	for i, v := range values {
		out[i] = string(v)
	}
	return out
}
