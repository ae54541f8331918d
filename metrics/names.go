package metrics

// The names of what is counted when it is stored: what happened to VMs. Each is counted once, by the replica that stored it.
const (
	EvictionRequestsTotal         = "evictrail_eviction_requests_total"
	EvacuationsStartedTotal       = "evictrail_evacuations_started_total"
	EvacuationsEndedTotal         = "evictrail_evacuations_ended_total"
	EvacuationDurationSeconds     = "evictrail_evacuation_duration_seconds"
	EvacuationObjectiveTotal      = "evictrail_evacuation_objective_total"
	PhaseTransitionsTotal         = "evictrail_migration_phase_transitions_total"
	MigrationsTotal               = "evictrail_migrations_total"
	MovesTotal                    = "evictrail_moves_total"
	PostCopyFailuresTotal         = "evictrail_migration_postcopy_failures_total"
	GuestsEndedTotal              = "evictrail_guests_ended_total"
	MigrationDurationSeconds      = "evictrail_migration_duration_seconds"
	MigrationPhaseDurationSeconds = "evictrail_migration_phase_duration_seconds"
	MigrationQueueWaitSeconds     = "evictrail_migration_queue_wait_seconds"
	CooldownDecisionsTotal        = "evictrail_cooldown_decisions_total"
	EffectiveCooldownSeconds      = "evictrail_effective_cooldown_seconds"
	EvictionBlocksTotal           = "evictrail_eviction_blocks_total"
	LoopsTotal                    = "evictrail_loops_total"
)

// The names of what is read from the database: how it stands with the cluster. Every replica reports the same.
const (
	NodeEvacuationsMarked   = "evictrail_node_evacuations_marked"
	NodeEvacuationsRetrying = "evictrail_node_evacuations_retrying"
	VMIMarkedTimestamp      = "evictrail_vmi_evacuation_marked_timestamp_seconds"
	VMIAnnotationPresent    = "evictrail_vmi_evacuation_annotation_present"
	VMIFailedAttempts       = "evictrail_vmi_evacuation_failed_attempts"
	VMINextRetryTimestamp   = "evictrail_vmi_evacuation_next_retry_timestamp_seconds"
	MigrationFailingVMIs    = "evictrail_migration_failing_vmis"
	MigrationsPending       = "evictrail_migrations_pending"
	MigrationPendingOldest  = "evictrail_migration_pending_oldest_timestamp_seconds"
	MigrationsRunning       = "evictrail_migrations_running"
	NodeMigrations          = "evictrail_node_migrations"
	MigrationLimit          = "evictrail_migration_limit"
	VMIPingPongReturns      = "evictrail_vmi_pingpong_returns"
	VMILoopRepetitions      = "evictrail_vmi_loop_repetitions"
	VMIMigrationsRecent     = "evictrail_vmi_migrations_recent"
	VMICooldownSeconds      = "evictrail_vmi_cooldown_seconds"
	VMICooldownUntil        = "evictrail_vmi_cooldown_until_timestamp_seconds"
	NodeVMIs                = "evictrail_node_vmis"
	NodeVMIsInCooldown      = "evictrail_node_vmis_in_cooldown"
	CooldownConfigSeconds   = "evictrail_cooldown_config_seconds"
	SlotsInUse              = "evictrail_descheduler_slots_in_use"
	SlotOldestTimestamp     = "evictrail_descheduler_slot_oldest_timestamp_seconds"
	SlotsLimit              = "evictrail_descheduler_slots_limit"
	NodeDraining            = "evictrail_node_draining"
	NodeDrainStart          = "evictrail_node_drain_start_timestamp_seconds"
	NodeDrainRemaining      = "evictrail_node_drain_remaining_vmis"
	VMIDrainBlocked         = "evictrail_vmi_drain_blocked"
	LoopsOpen               = "evictrail_loops_open"
	KubeVirtInfo            = "evictrail_kubevirt_info"
	DeschedulerInfo         = "evictrail_descheduler_info"
	StateTimestamp          = "evictrail_state_timestamp_seconds"
	PartitionAheadSeconds   = "evictrail_partition_ahead_seconds"
	DefaultPartitionRows    = "evictrail_default_partition_rows"
	UnderivedSubjects       = "evictrail_underived_subjects"
	SchemaVersion           = "evictrail_schema_version"
	SchemaVersionExpected   = "evictrail_schema_version_expected"
	SeriesDroppedTotal      = "evictrail_series_dropped_total"
	FactsFromTimestamp      = "evictrail_facts_from_timestamp_seconds"
)

// The names of what evictrail reports about itself.
const (
	FactsTotal                    = "evictrail_facts_total"
	EventsLostTotal               = "evictrail_events_lost_total"
	CommitLagSeconds              = "evictrail_commit_lag_seconds"
	SpoolBytes                    = "evictrail_spool_bytes"
	SpoolCapacityBytes            = "evictrail_spool_capacity_bytes"
	SpoolFsyncDurationSeconds     = "evictrail_spool_fsync_duration_seconds"
	SpoolWritable                 = "evictrail_spool_writable"
	EpochsTotal                   = "evictrail_epochs_total"
	SpoolFacts                    = "evictrail_spool_facts"
	DeadLetters                   = "evictrail_dead_letters"
	SpoolOldestEventTimestamp     = "evictrail_spool_oldest_event_timestamp_seconds"
	QueueLength                   = "evictrail_queue_length"
	StoreUp                       = "evictrail_store_up"
	StorePoolConnections          = "evictrail_store_pool_connections"
	StoreErrorsTotal              = "evictrail_store_errors_total"
	StoreWriteDurationSeconds     = "evictrail_store_write_duration_seconds"
	StandbyUsed                   = "evictrail_standby_used"
	StandbyLagSeconds             = "evictrail_standby_lag_seconds"
	StandbyFallbacksTotal         = "evictrail_standby_fallbacks_total"
	DrainForecastsTotal           = "evictrail_drain_forecasts_total"
	NoticesTotal                  = "evictrail_notices_total"
	StandbyRepeatedTotal          = "evictrail_standby_repeated_total"
	WatchLastActivityTimestamp    = "evictrail_watch_last_activity_timestamp_seconds"
	WatchRestartsTotal            = "evictrail_watch_restarts_total"
	WatchSynced                   = "evictrail_watch_synced"
	WatchRelistRecoveredTotal     = "evictrail_watch_relist_recovered_total"
	DisplacedEventsTotal          = "evictrail_displaced_events_total"
	WatchRelistUnrecoverableTotal = "evictrail_watch_relist_unrecoverable_total"
	TrackedObjects                = "evictrail_tracked_objects"
	Leader                        = "evictrail_leader"
	WindowMemoryBytes             = "evictrail_window_memory_bytes"
	DeriveLagSeconds              = "evictrail_derive_lag_seconds"
	ClockSkewSeconds              = "evictrail_clock_skew_seconds"
	AuditEventsTotal              = "evictrail_audit_events_total"
	AuditLastEventTimestamp       = "evictrail_audit_last_event_timestamp_seconds"
	AuditEnabled                  = "evictrail_audit_enabled"
	AdmissionReviewsTotal         = "evictrail_admission_reviews_total"
	ScrapesTotal                  = "evictrail_scrapes_total"
	HTTPRequestDurationSeconds    = "evictrail_http_request_duration_seconds"
	HTTPShedTotal                 = "evictrail_http_shed_total"
	AuthzDeniedTotal              = "evictrail_authz_denied_total"
	RetentionDroppedTotal         = "evictrail_retention_dropped_total"
	RecorderState                 = "evictrail_recorder_state"
	RecorderStateSince            = "evictrail_recorder_state_since_timestamp_seconds"
	RetentionLastTimestamp        = "evictrail_retention_last_timestamp_seconds"
)

// The names of what a hub says about the evictrails that it asks. No other evictrail has them.
const (
	HubSourceUp                     = "evictrail_hub_source_up"
	HubSourceRequestDurationSeconds = "evictrail_hub_source_request_duration_seconds"
)

// The metrics of the descheduler that rules and panels use. evictrail never exports them.
//
// Source: kubevirt-descheduler-plugins plugins/kubevirtmigrationaware/metrics.go; descheduler metrics/metrics.go.
const (
	DeschedulerBlocksTotal      = "descheduler_kubevirt_eviction_blocks_total"
	DeschedulerCooldownSeconds  = "descheduler_kubevirt_effective_cooldown_seconds"
	DeschedulerPodsEvictedTotal = "descheduler_pods_evicted_total"
)

// The labels.
const (
	LabelAnnotationMode = "annotation_mode"
	LabelAnswer         = "answer"
	LabelBlocker        = "blocker"
	LabelCause          = "cause"
	LabelClass          = "class"
	LabelCode           = "code"
	LabelDirection      = "direction"
	LabelKind           = "kind"
	LabelMethod         = "method"
	LabelMetric         = "metric"
	LabelNamespace      = "namespace"
	LabelNativeBlocks   = "native_block_metrics"
	LabelNode           = "node"
	LabelOp             = "op"
	LabelOrigin         = "origin"
	LabelParam          = "param"
	LabelPeer           = "peer"
	LabelPhase          = "phase"
	LabelReason         = "reason"
	LabelReceiver       = "receiver"
	LabelRequester      = "requester"
	LabelBenefit        = "benefit"
	LabelResource       = "resource"
	LabelResult         = "result"
	LabelRoute          = "route"
	LabelScope          = "scope"
	LabelSource         = "source"
	LabelSQLStateClass  = "sqlstate_class"
	LabelStage          = "stage"
	LabelState          = "state"
	LabelStrategy       = "strategy"
	LabelTrigger        = "trigger"
	LabelVersion        = "version"
	LabelVMI            = "vmi"
	LabelWindow         = "window"
)

// Whether an evacuation kept to its objective: values of LabelResult of EvacuationObjectiveTotal.
const (
	ObjectiveMet    = "met"
	ObjectiveMissed = "missed" // the guest was still there when the time was over
)

// The stages of a fact: values of LabelStage.
const (
	StageObserved     = "observed"     // the tracker made it
	StageSpooled      = "spooled"      // it is on disk, until the store has it
	StageCommitted    = "committed"    // the store took it, and it was new
	StageDeduplicated = "deduplicated" // the store had it already
	StageRejected     = "rejected"     // the object could not be read; the kind is then that of the object
	StageSkipped      = "skipped"      // a state of an EvictionRequest or Eviction about a pod that is no VM's; the kind is that of the object
	StageSettled      = "settled"      // the store took it, and the rows about its time stay: other facts of that time were dropped
)

// What was dropped: values of LabelKind of RetentionDroppedTotal.
const (
	DroppedFacts      = "facts"
	DroppedRows       = "rows"
	DroppedRequesters = "requesters" // facts and rows in which the name of a person was erased
)

// Why something was lost: values of LabelCause of EventsLostTotal.
const (
	LostSpoolFull        = "spool_full"        // no room was left for it
	LostDecode           = "decode"            // it could not be read
	LostGCBeforeSeen     = "gc_before_seen"    // the object went while nobody watched, before its end was seen
	LostShare            = "share"             // its namespace had more Kubernetes Events than its share
	LostAuditGap         = "audit_gap"         // audit events that could not be used
	LostSpoolCorrupt     = "spool_corrupt"     // it was on disk and could not be read again
	LostStoreReject      = "store_reject"      // the database refuses it, and there was no room to set it aside
	LostShutdownDeadline = "shutdown_deadline" // the database did not take it before evictrail had to end
)

// KindUnknown stands for the kind of what cannot be read: a value of LabelKind of EventsLostTotal.
const KindUnknown = "unknown"

// Why a watch started again: values of LabelReason of WatchRestartsTotal.
const (
	RestartClosed  = "closed"  // the stream ended and is resumed
	RestartExpired = "expired" // 410 Gone: listed again
	RestartError   = "error"   // the request failed and is tried again
)

// What became of an audit event: values of LabelResult of AuditEventsTotal. Those taken again and again show as
// deduplicated facts.
const (
	AuditTaken   = "taken"
	AuditSkipped = "skipped" // about something else
	AuditRefused = "refused" // cannot be used
)

// What became of an admission review: values of LabelResult of AdmissionReviewsTotal. All are answered: allowed.
const (
	ReviewTaken   = "taken"
	ReviewSkipped = "skipped" // of something else than a virt-launcher pod
	ReviewDropped = "dropped" // found no room
)

// How a scrape of the descheduler's metrics went: values of LabelResult of ScrapesTotal.
const (
	ScrapeOK     = "ok"
	ScrapeFailed = "failed"
)

// The operations of the store: values of LabelOp.
const (
	OpAppend   = "append"
	OpAlive    = "alive"
	OpResume   = "resume"
	OpState    = "state"
	OpRetain   = "retain"
	OpSeal     = "seal"
	OpCount    = "count"
	OpForecast = "forecast"
	OpNotify   = "notify"
	OpRetry    = "retry" // a transaction, of whichever of them, that is done again
)

// The windows over which is counted: values of LabelWindow.
const (
	Window1h  = "1h"
	Window6h  = "6h"
	Window24h = "24h"
)

// To whom a limit applies: values of LabelScope.
const (
	ScopeTotal        = "total"         // the descheduler's slots in all
	ScopeNode         = "node"          // its slots of one node
	ScopeCluster      = "cluster"       // migrations of the cluster
	ScopeNodeOutbound = "node_outbound" // migrations that leave one node
)

// The sides of a migration: values of LabelDirection.
const (
	DirectionIn  = "in"
	DirectionOut = "out"
)

// The settings of KubevirtMigrationAware: values of LabelParam.
const (
	ParamBase          = "base"
	ParamMax           = "max"
	ParamHistoryWindow = "history_window"
)

// Whose clock is compared with ours: values of LabelPeer.
const (
	PeerAPIServer = "apiserver"
	PeerPostgres  = "postgres"
)

// The connections of the pool: values of LabelState.
const (
	ConnectionsUsed = "used"
	ConnectionsIdle = "idle"
	ConnectionsMost = "max" // that there may be
)

// ClassNone stands for no failure: a value of LabelClass of MigrationsTotal.
const ClassNone = "none"
