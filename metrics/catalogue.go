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
	return slices.Concat(countedMetrics, stateMetrics, upkeepMetrics, ownMetrics, hubMetrics)
}

var countedMetrics = []Metric{
	{Name: EvictionRequestsTotal, Type: Counter, Labels: []string{LabelRequester, LabelAnswer}, Help: "Eviction requests on virt-launcher pods, by requester class and answer, without dry runs."},
	{Name: EvacuationsStartedTotal, Type: Counter, Labels: []string{LabelNode, LabelRequester}, Help: "Evacuations that began, by source node and requester class."},
	{Name: EvacuationsEndedTotal, Type: Counter, Labels: []string{LabelNode, LabelResult}, Help: "Evacuations that ended, by source node and result."},
	{Name: EvacuationDurationSeconds, Type: Histogram, Labels: []string{LabelRequester, LabelResult}, Buckets: movingBuckets, Help: "Time from the mark of an evacuation to its end."},
	{Name: EvacuationObjectiveTotal, Type: Counter, Labels: []string{LabelRequester, LabelResult}, Help: "Evacuations with an objective (--evacuation-objective), counted once it is met or missed. Not counted where the evacuation was cancelled or the VMI ended in time."},
	{Name: DrainForecastsTotal, Type: Counter, Labels: []string{LabelResult}, Help: "Forecasts of drains that emptied their node: sooner than the band, within it, or later. In the long run eight of ten are within."},
	{Name: PhaseTransitionsTotal, Type: Counter, Labels: []string{LabelPhase, LabelTrigger}, Help: "Phases that migrations reached, by trigger."},
	{Name: MigrationsTotal, Type: Counter, Labels: []string{LabelResult, LabelClass, LabelTrigger}, Help: "Migrations that ended, by result, failure class and trigger."},
	{Name: MovesTotal, Type: Counter, Labels: []string{LabelRequester, LabelBenefit}, Help: "Moves made to relieve a node, by requester class and what they brought 15 minutes later. Needs the load of nodes."},
	{Name: PostCopyFailuresTotal, Type: Counter, Labels: []string{LabelNode}, Help: "Migrations that lost the guest after it had left in post-copy, by source node."},
	{Name: GuestsEndedTotal, Type: Counter, Labels: []string{LabelCause, LabelRequester}, Help: "Guests that the platform shut down or lost, by cause and requester class. What the owner of a VM did is not counted."},
	{Name: MigrationDurationSeconds, Type: Histogram, Labels: []string{LabelResult, LabelTrigger}, Buckets: movingBuckets, Help: "Time from the creation of a migration to its end."},
	{Name: MigrationPhaseDurationSeconds, Type: Histogram, Labels: []string{LabelPhase}, Buckets: movingBuckets, Help: "Time that a migration spent in a phase."},
	{Name: MigrationQueueWaitSeconds, Type: Histogram, Labels: []string{LabelTrigger}, Buckets: movingBuckets, Help: "Time from the creation of a migration to its target pod."},
	{Name: CooldownDecisionsTotal, Type: Counter, Labels: []string{LabelReason, LabelOrigin}, Help: "Evictions and attempts that met a cooldown or a running migration: derived by evictrail, or observed in a counter of the descheduler."},
	{Name: EffectiveCooldownSeconds, Type: Histogram, Labels: []string{LabelOrigin}, Buckets: cooldownBuckets, Help: "Cooldowns of the descheduler, each once when it begins."},
	{Name: EvictionBlocksTotal, Type: Counter, Labels: []string{LabelReason, LabelNode, LabelNamespace}, Help: "Evictions that the descheduler held back: its own count where its metrics are read, else as derived."},
	{Name: LoopsTotal, Type: Counter, Labels: []string{LabelKind}, Help: "Loops that opened."},
}

var stateMetrics = []Metric{
	{Name: NodeEvacuationsMarked, Type: Gauge, Labels: []string{LabelNode}, Help: "Open evacuations from a node."},
	{Name: NodeEvacuationsRetrying, Type: Gauge, Labels: []string{LabelNode}, Help: "Open evacuations from a node with at least one failed attempt."},
	{Name: VMIMarkedTimestamp, Type: Gauge, Labels: []string{LabelNamespace, LabelVMI, LabelNode, LabelRequester, LabelStrategy}, PerVM: true, Help: "When a VM was marked, while its evacuation is open."},
	{Name: VMIAnnotationPresent, Type: Gauge, Labels: ofGuest, PerVM: true, Help: "Whether the pod of a marked VM has the annotation eviction-in-progress, which the descheduler counts. Only while the evacuation is open and the annotation was seen."},
	{Name: VMIFailedAttempts, Type: Gauge, Labels: ofGuest, PerVM: true, Help: "Failed attempts of an open evacuation."},
	{Name: VMINextRetryTimestamp, Type: Gauge, Labels: ofGuest, PerVM: true, Help: "The earliest time of the next attempt, while KubeVirt waits."},
	{Name: MigrationFailingVMIs, Type: Gauge, Labels: []string{LabelWindow, LabelClass}, Help: "VMs with a failed migration in the window, by failure class."},
	{Name: MigrationsPending, Type: Gauge, Labels: []string{LabelBlocker}, Help: "Migrations without a target pod, or with one on a node that is not ready, by what they wait for."},
	{Name: MigrationPendingOldest, Type: Gauge, Labels: []string{LabelBlocker}, Help: "When the oldest pending migration was created, by what it waits for. Absent where none waits."},
	{Name: MigrationsRunning, Type: Gauge, Help: "Migrations that have a target pod and have not ended."},
	{Name: NodeMigrations, Type: Gauge, Labels: []string{LabelNode, LabelDirection}, Help: "Running migrations by source or target node."},
	{Name: MigrationLimit, Type: Gauge, Labels: []string{LabelScope}, Help: "How many migrations KubeVirt runs at once."},
	{Name: VMIPingPongReturns, Type: Gauge, Labels: []string{LabelNamespace, LabelVMI, LabelWindow}, PerVM: true, Help: "How often the descheduler moved a VM back to a node that it had taken it from, in the window."},
	{Name: VMIMigrationsRecent, Type: Gauge, Labels: []string{LabelNamespace, LabelVMI, LabelWindow, LabelTrigger}, PerVM: true, Help: "Moves of a VM in the window, by trigger, from three on."},
	{Name: VMILoopRepetitions, Type: Gauge, Labels: []string{LabelNamespace, LabelVMI, LabelKind}, PerVM: true, Help: "What an open loop of a VM counts, no matter who asked: moves (frequent_moves) or failures in a row (repeated_failures)."},
	{Name: VMICooldownSeconds, Type: Gauge, Labels: ofGuest, PerVM: true, Help: "Cooldown of a VM, where it is longer than the base."},
	{Name: VMICooldownUntil, Type: Gauge, Labels: ofGuest, PerVM: true, Help: "When the cooldown of a VM ends, where it is longer than the base."},
	{Name: NodeVMIs, Type: Gauge, Labels: []string{LabelNode}, Help: "VMs that run on a node."},
	{Name: NodeVMIsInCooldown, Type: Gauge, Labels: []string{LabelNode}, Help: "VMs on a node that are in cooldown."},
	{Name: CooldownConfigSeconds, Type: Gauge, Labels: []string{LabelParam}, Help: "Settings of KubevirtMigrationAware in force. Absent where the policy is unknown or does not enable it."},
	{Name: SlotsInUse, Type: Gauge, Labels: []string{LabelScope, LabelNode}, Help: "Slots of the descheduler in use, as far as the cluster shows."},
	{Name: SlotOldestTimestamp, Type: Gauge, Labels: []string{LabelScope, LabelNode}, Help: "Since when the oldest slot of the descheduler is in use. Absent where none is."},
	{Name: SlotsLimit, Type: Gauge, Labels: []string{LabelScope}, Help: "Slots that the descheduler's policy allows. Absent where it sets no limit or is unknown."},
	{Name: NodeDraining, Type: Gauge, Labels: []string{LabelNode}, Help: "1 while a node is being drained of VMs."},
	{Name: NodeDrainStart, Type: Gauge, Labels: []string{LabelNode}, Help: "When the drain of a node began, while it lasts."},
	{Name: NodeDrainRemaining, Type: Gauge, Labels: []string{LabelNode, LabelBlocker}, Help: "VMs left on a node that is being drained, by blocker."},
	{Name: VMIDrainBlocked, Type: Gauge, Labels: []string{LabelNamespace, LabelVMI, LabelNode, LabelBlocker, LabelReason}, PerVM: true, Help: "1 for each VM left on a node that is being drained. The reason is KubeVirt's, for a VM that cannot be migrated."},
	{Name: LoopsOpen, Type: Gauge, Labels: []string{LabelKind, LabelNode}, Help: "Open loops by kind and node."},
	{Name: KubeVirtInfo, Type: Gauge, Labels: []string{LabelVersion, LabelAnnotationMode}, Help: "1, with the version of KubeVirt and how long the annotation eviction-in-progress stays: for the attempt or for the mark."},
	{Name: DeschedulerInfo, Type: Gauge, Labels: []string{LabelVersion, LabelNativeBlocks}, Help: "1, with the version of the descheduler and whether it counts blocked evictions."},
	{Name: StateTimestamp, Type: Gauge, Help: "When the gauges about the cluster were last read from the database."},
}

var upkeepMetrics = []Metric{
	{Name: PartitionAheadSeconds, Type: Gauge, Help: "For how long from now there are partitions for new facts."},
	{Name: DefaultPartitionRows, Type: Gauge, Help: "Recent or future facts in the default partition, whose own partition was missing. Counted up to 1000."},
	{Name: UnderivedSubjects, Type: Gauge, Help: "VMs, nodes and other subjects that could not be derived and are left out until they are tried again."},
	{Name: FactsFromTimestamp, Type: Gauge, Help: "Since when all facts are kept. Absent where none were dropped."},
	{Name: SchemaVersion, Type: Gauge, Help: "Version of the schema in the database."},
	{Name: SchemaVersionExpected, Type: Gauge, Help: "Version of the schema that this evictrail needs."},
	{Name: NoticesTotal, Type: Counter, Labels: []string{LabelReceiver, LabelResult}, Help: "Notices sent to programs outside of evictrail (--cloudevents-url, --otlp-url, --kubernetes-events), by what became of them."},
	{Name: SeriesDroppedTotal, Type: Counter, Labels: []string{LabelMetric}, Help: "Series of VMs left out because there were more than --max-vm-series, counted at each reading."},
}

var ownMetrics = []Metric{
	{Name: FactsTotal, Type: Counter, Labels: []string{LabelKind, LabelStage}, Help: "Facts by kind and stage. For rejected objects the kind is that of the object."},
	{Name: EventsLostTotal, Type: Counter, Labels: []string{LabelKind, LabelCause}, Help: "Facts known to be missing from the record, by kind and cause."},
	{Name: EpochsTotal, Type: Counter, Labels: []string{LabelCause}, Help: "Breaks of history: the cluster was restored or rebuilt, or the database lost what it had confirmed."},
	{Name: CommitLagSeconds, Type: Histogram, Labels: []string{LabelKind}, Buckets: lagBuckets, Help: "Time from the observation of a fact to its commit in the database."},
	{Name: SpoolBytes, Type: Gauge, Help: "Facts waiting for the database, in bytes."},
	{Name: SpoolCapacityBytes, Type: Gauge, Help: "How many bytes of facts may wait for the database."},
	{Name: SpoolFacts, Type: Gauge, Help: "Facts in the spool that wait for the database."},
	{Name: DeadLetters, Type: Gauge, Help: "Facts that were refused, until `evictrail spool replay` stores them. Absent without a spool."},
	{Name: SpoolOldestEventTimestamp, Type: Gauge, Help: "When the oldest waiting fact was observed. Absent where none waits."},
	{Name: SpoolWritable, Type: Gauge, Help: "Whether facts reach the disk before the database. If not, they go straight to the database. Absent without a spool."},
	{Name: SpoolFsyncDurationSeconds, Type: Histogram, Buckets: callBuckets, Help: "Time of one sync of the spool."},
	{Name: QueueLength, Type: Gauge, Help: "Facts in memory that wait for the spool, or without one for the database."},
	{Name: RecorderState, Type: Gauge, Help: "1 for the state of recording that holds, 0 for the others, as in /readyz.", Labels: []string{LabelState}},
	{Name: RecorderStateSince, Type: Gauge, Help: "Since when the state of recording holds."},
	{Name: StoreUp, Type: Gauge, Help: "Whether the last write to the database succeeded."},
	{Name: StorePoolConnections, Type: Gauge, Labels: []string{LabelState}, Help: "Connections to the database: used, idle and allowed."},
	{Name: StoreErrorsTotal, Type: Counter, Labels: []string{LabelOp, LabelSQLStateClass}, Help: "Failed database calls by operation and class of SQLSTATE (none: no answer). retry is a transaction that was repeated."},
	{Name: StoreWriteDurationSeconds, Type: Histogram, Labels: []string{LabelOp}, Buckets: callBuckets, Help: "Time of one database call by operation."},
	{Name: StandbyUsed, Type: Gauge, Help: "Whether questions are answered by the standby of the database, and not by its primary. Absent without --database-read-url."},
	{Name: StandbyLagSeconds, Type: Gauge, Help: "How far the standby is behind the primary. Absent without a standby, and where that is not known."},
	{Name: StandbyFallbacksTotal, Type: Counter, Labels: []string{LabelCause}, Help: "How often the primary, or a standby that is too far behind, began to answer in place of the standby as it should be, by cause."},
	{Name: StandbyRepeatedTotal, Type: Counter, Labels: []string{LabelSQLStateClass}, Help: "Answers that the standby failed to make and the primary made, by class of SQLSTATE (none: no answer)."},
	{Name: WatchLastActivityTimestamp, Type: Gauge, Labels: []string{LabelResource}, Help: "When a watch last delivered anything, bookmarks included. Without bookmarks, also when the API server last answered a request for it."},
	{Name: WatchRestartsTotal, Type: Counter, Labels: []string{LabelResource, LabelReason}, Help: "Restarts of a watch, by cause."},
	{Name: WatchSynced, Type: Gauge, Labels: []string{LabelResource}, Help: "Whether the first list of a watch was read."},
	{Name: WatchRelistRecoveredTotal, Type: Counter, Labels: []string{LabelKind}, Help: "Facts that were missed when they happened and rebuilt from what the objects still say."},
	{Name: WatchRelistUnrecoverableTotal, Type: Counter, Labels: []string{LabelKind}, Help: "Objects that were deleted while nobody watched."},
	{Name: DisplacedEventsTotal, Type: Counter, Help: "Kubernetes Events recorded without their VM, because too many waited for their migration."},
	{Name: TrackedObjects, Type: Gauge, Labels: []string{LabelKind}, Help: "Objects that the tracker remembers, by kind."},
	{Name: Leader, Type: Gauge, Help: "Whether this replica derives."},
	{Name: DeriveLagSeconds, Type: Gauge, Help: "How far rows are behind facts. Absent where another replica derives."},
	{Name: WindowMemoryBytes, Type: Gauge, Help: "History that is held in memory to derive rows; at its bound (run --window-memory) VMs are loaded again when something happens to them. Absent where another replica derives."},
	{Name: ClockSkewSeconds, Type: Gauge, Labels: []string{LabelPeer}, Help: "How far another clock is ahead of ours; negative where it is behind."},
	{Name: AuditEventsTotal, Type: Counter, Labels: []string{LabelResult}, Help: "Audit events that were read, by result."},
	{Name: AuditLastEventTimestamp, Type: Gauge, Help: "When audit events were last read."},
	{Name: AuditEnabled, Type: Gauge, Help: "Whether audit events are expected: a log is followed, or senders are known."},
	{Name: AdmissionReviewsTotal, Type: Counter, Labels: []string{LabelResult}, Help: "Admission reviews that the observer answered, by result."},
	{Name: ScrapesTotal, Type: Counter, Labels: []string{LabelResult}, Help: "Scrapes of the descheduler's metrics, by result."},
	{Name: HTTPRequestDurationSeconds, Type: Histogram, Labels: []string{LabelRoute, LabelMethod, LabelCode}, Buckets: callBuckets, Help: "Time to answer a request, by route template and status class."},
	{Name: HTTPShedTotal, Type: Counter, Labels: []string{LabelCause}, Help: "Requests that were refused or cut off: a caller used up its share, all together asked too much (crowded), too many bytes were unread, a reader was slow, or there were too many connections."},
	{Name: AuthzDeniedTotal, Type: Counter, Labels: []string{LabelCause}, Help: "Requests refused for want of credentials, by cause."},
	{Name: RetentionDroppedTotal, Type: Counter, Labels: []string{LabelKind}, Help: "Facts, derived rows and names of people (requesters) dropped for their age, by the replica that did it."},
	{Name: RetentionLastTimestamp, Type: Gauge, Help: "When this replica last dropped what was old enough. Absent where it never did; only the leader does."},
}

var hubMetrics = []Metric{
	{Name: HubSourceUp, Type: Gauge, Labels: []string{LabelSource}, Help: "Whether a source of a hub (evictrail hub) answered when it was last looked at, every 5 s."},
	{Name: HubSourceRequestDurationSeconds, Type: Histogram, Labels: []string{LabelSource, LabelCode}, Buckets: callBuckets, Help: "Time until a source of a hub began to answer a request, by status class (none: no answer)."},
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
	forecastResults   = []string{"sooner", "within", "later"} // of view drain_forecasts
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
		{LabelResult, DrainForecastsTotal, forecastResults},
		{LabelResult, NoticesTotal, toStrings(trail.Deliveries())},
		{LabelClass, "", append([]string{ClassNone}, toStrings(trail.FailureClasses())...)},
		{LabelTrigger, "", toStrings(trail.Triggers())},
		{LabelPhase, "", append(trail.Phases(), labelOther)},
		{LabelReason, "evictrail_cooldown_decisions_total, evictrail_eviction_blocks_total", []string{trail.DecidedCooldown, trail.DecidedInProgress, labelOther}},
		{LabelReason, VMIDrainBlocked, append(trail.NotMigratableReasons(), labelOther)},
		{LabelCause, EpochsTotal, toStrings(trail.BreakCauses())},
		{LabelCause, StandbyFallbacksTotal, toStrings(trail.StandbyCauses())},
		{LabelCause, GuestsEndedTotal, toStrings(trail.PlatformEndings())},
		{LabelOrigin, "", []string{trail.OriginDerived, trail.OriginObserved}},
		{LabelKind, "evictrail_loops*", toStrings(trail.LoopKinds())},
		{LabelKind, VMILoopRepetitions, []string{string(trail.LoopFrequentMoves), string(trail.LoopRepeatedFailures)}},
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

// IsReplayable reports whether a metric follows from what is recorded of a cluster: what happened to its VMs, and how it stood with it. The others are about
// evictrail itself.
func IsReplayable(name string) bool {
	is := func(m Metric) bool { return m.Name == name && m.Type != Histogram && name != DrainForecastsTotal }
	return slices.ContainsFunc(countedMetrics, is) || slices.ContainsFunc(stateMetrics, is)
}
