package metrics

// The names of the metrics about the pipeline. They are a contract: a renamed metric is a change in CHANGELOG.md.
const (
	FactsTotal                 = "evictrail_facts_total"
	CommitLagSeconds           = "evictrail_commit_lag_seconds"
	StoreUp                    = "evictrail_store_up"
	StoreErrorsTotal           = "evictrail_store_errors_total"
	StoreWriteDurationSeconds  = "evictrail_store_write_duration_seconds"
	WatchLastActivityTimestamp = "evictrail_watch_last_activity_timestamp_seconds"
	WatchRestartsTotal         = "evictrail_watch_restarts_total"
	WatchSynced                = "evictrail_watch_synced"
	TrackedObjects             = "evictrail_tracked_objects"
	QueueLength                = "evictrail_queue_length"
	AuditEventsTotal           = "evictrail_audit_events_total"
	AuditLastEventTimestamp    = "evictrail_audit_last_event_timestamp_seconds"
	AuditEnabled               = "evictrail_audit_enabled"
	AdmissionReviewsTotal      = "evictrail_admission_reviews_total"
	ScrapesTotal               = "evictrail_scrapes_total"
)

// The labels.
const (
	LabelKind     = "kind"
	LabelStage    = "stage"
	LabelResource = "resource"
	LabelReason   = "reason"
	LabelOp       = "op"
	LabelResult   = "result"
)

// The stages of a fact: values of LabelStage.
const (
	StageObserved     = "observed"     // the tracker made it
	StageCommitted    = "committed"    // the store took it, and it was new
	StageDeduplicated = "deduplicated" // the store had it already
	StageRejected     = "rejected"     // the object could not be read; the kind is then that of the object
)

// Why a watch started again: values of LabelReason of WatchRestartsTotal.
const (
	RestartClosed  = "closed"  // the stream ended and is resumed
	RestartExpired = "expired" // 410 Gone: listed anew
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
	OpAppend = "append"
	OpAlive  = "alive"
	OpResume = "resume"
)
