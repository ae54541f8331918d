package metrics

import (
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/evictrail/evictrail/trail"
)

// Metrics holds the instruments. All are safe for concurrent use.
type Metrics struct {
	// What happened to VMs: counted by Count.
	requests        *prometheus.CounterVec   // requester, answer
	started         *prometheus.CounterVec   // node, requester
	ended           *prometheus.CounterVec   // node, result
	evacuationTime  *prometheus.HistogramVec // requester, result
	objectives      *prometheus.CounterVec   // requester, result
	phases          *prometheus.CounterVec   // phase, trigger
	migrations      *prometheus.CounterVec   // result, class, trigger
	moves           *prometheus.CounterVec   // requester, benefit
	postCopy        *prometheus.CounterVec   // node
	guestsEnded     *prometheus.CounterVec   // cause, requester
	migrationTime   *prometheus.HistogramVec // result, trigger
	phaseTime       *prometheus.HistogramVec // phase
	queueWait       *prometheus.HistogramVec // trigger
	decisions       *prometheus.CounterVec   // reason, origin
	cooldowns       *prometheus.HistogramVec // origin
	blocks          *prometheus.CounterVec   // reason, node, namespace
	loops           *prometheus.CounterVec   // kind
	commitLag       *prometheus.HistogramVec // kind
	recovered       *prometheus.CounterVec   // kind
	unrecoverable   *prometheus.CounterVec   // kind
	ledger          *ledger
	countsBlocks    atomic.Bool            // the descheduler counts blocks itself, and its counters are read
	seriesDropped   *prometheus.CounterVec // metric
	partitionsAhead *prometheus.GaugeVec   // no label, like the four below, so that they are absent until they are known; seconds
	strayRows       *prometheus.GaugeVec
	underived       *prometheus.GaugeVec
	schema          *prometheus.GaugeVec
	schemaExpected  *prometheus.GaugeVec
	factsFrom       *prometheus.GaugeVec // Unix seconds
	state           *stateGauges

	// What evictrail tells of itself: set where it happens.
	Facts              *prometheus.CounterVec   // kind, stage
	Lost               *prometheus.CounterVec   // kind, cause
	SpoolBytes         prometheus.Gauge         // bytes
	SpoolCapacity      prometheus.Gauge         // bytes
	SpoolFacts         prometheus.Gauge         // facts
	SpoolOldest        *prometheus.GaugeVec     // no label, so that it can be absent; Unix seconds
	Epochs             *prometheus.CounterVec   // cause
	SpoolWritable      *prometheus.GaugeVec     // no label, so that it can be absent; 1 when facts are kept on disk
	DeadLetters        *prometheus.GaugeVec     // no label, so that it can be absent; facts
	SpoolFsync         *prometheus.HistogramVec // no label; seconds
	QueueLength        prometheus.Gauge         // facts
	StoreUp            prometheus.Gauge         // 1 when the last write succeeded
	StorePool          *prometheus.GaugeVec     // state
	StoreErrors        *prometheus.CounterVec   // op, sqlstate_class
	StoreWrite         *prometheus.HistogramVec // op; seconds
	WatchLastActivity  *prometheus.GaugeVec     // resource; Unix seconds
	WatchRestarts      *prometheus.CounterVec   // resource, reason
	WatchSynced        *prometheus.GaugeVec     // resource; 1 once its first list was taken
	DisplacedEvents    *prometheus.CounterVec   // no label
	TrackedObjects     *prometheus.GaugeVec     // kind
	Leader             prometheus.Gauge         // 1 when this replica derives
	DeriveLag          *prometheus.GaugeVec     // no label, so that it can be absent; seconds
	ClockSkew          *prometheus.GaugeVec     // peer; seconds
	AuditEvents        *prometheus.CounterVec   // result
	AuditLastEvent     prometheus.Gauge         // Unix seconds
	AuditEnabled       prometheus.Gauge         // 1 when audit events are expected
	Reviews            *prometheus.CounterVec   // result
	Scrapes            *prometheus.CounterVec   // result
	HTTPRequests       *prometheus.HistogramVec // route, method, code; seconds
	Denied             *prometheus.CounterVec   // cause
	HTTPShed           *prometheus.CounterVec   // cause
	Dropped            *prometheus.CounterVec   // kind
	RecorderState      *prometheus.GaugeVec     // state; 1 for the one that holds
	RecorderStateSince *prometheus.GaugeVec     // no label, so that it can be absent; Unix seconds
	RetentionLast      *prometheus.GaugeVec     // no label, so that it can be absent; Unix seconds
}

// New makes the instruments and registers them. Series of closed label sets start at zero, so that the first event of each
// is seen as an increase. It panics when the registry holds one of the names already, which is a mistake in wiring.
func New(reg prometheus.Registerer) *Metrics {
	f := factory{reg}
	m := &Metrics{
		requests: f.counters(EvictionRequestsTotal), started: f.counters(EvacuationsStartedTotal), ended: f.counters(EvacuationsEndedTotal),
		evacuationTime: f.histograms(EvacuationDurationSeconds), objectives: f.counters(EvacuationObjectiveTotal), phases: f.counters(PhaseTransitionsTotal),
		migrations: f.counters(MigrationsTotal), moves: f.counters(MovesTotal),
		postCopy: f.counters(PostCopyFailuresTotal), guestsEnded: f.counters(GuestsEndedTotal), migrationTime: f.histograms(MigrationDurationSeconds),
		phaseTime: f.histograms(MigrationPhaseDurationSeconds), queueWait: f.histograms(MigrationQueueWaitSeconds),
		decisions: f.counters(CooldownDecisionsTotal), cooldowns: f.histograms(EffectiveCooldownSeconds), blocks: f.counters(EvictionBlocksTotal),
		loops: f.counters(LoopsTotal), commitLag: f.histograms(CommitLagSeconds), recovered: f.counters(WatchRelistRecoveredTotal),
		unrecoverable: f.counters(WatchRelistUnrecoverableTotal), ledger: newLedger(), seriesDropped: f.counters(SeriesDroppedTotal),
		partitionsAhead: f.gauges(PartitionAheadSeconds), strayRows: f.gauges(DefaultPartitionRows), underived: f.gauges(UnderivedSubjects),
		schema: f.gauges(SchemaVersion), schemaExpected: f.gauges(SchemaVersionExpected),
		factsFrom: f.gauges(FactsFromTimestamp), Dropped: f.counters(RetentionDroppedTotal), RetentionLast: f.gauges(RetentionLastTimestamp),
		RecorderState: f.gauges(RecorderState), RecorderStateSince: f.gauges(RecorderStateSince),
		state: newStateGauges(),

		Facts: f.counters(FactsTotal), Lost: f.counters(EventsLostTotal), Epochs: f.counters(EpochsTotal), SpoolBytes: f.gauge(SpoolBytes), SpoolCapacity: f.gauge(SpoolCapacityBytes),
		SpoolFacts: f.gauge(SpoolFacts), SpoolOldest: f.gauges(SpoolOldestEventTimestamp), SpoolWritable: f.gauges(SpoolWritable),
		DeadLetters: f.gauges(DeadLetters),
		SpoolFsync:  f.histograms(SpoolFsyncDurationSeconds), QueueLength: f.gauge(QueueLength), StoreUp: f.gauge(StoreUp), StorePool: f.gauges(StorePoolConnections),
		StoreErrors: f.counters(StoreErrorsTotal), StoreWrite: f.histograms(StoreWriteDurationSeconds),
		WatchLastActivity: f.gauges(WatchLastActivityTimestamp), WatchRestarts: f.counters(WatchRestartsTotal), WatchSynced: f.gauges(WatchSynced),
		DisplacedEvents: f.counters(DisplacedEventsTotal), TrackedObjects: f.gauges(TrackedObjects), Leader: f.gauge(Leader), DeriveLag: f.gauges(DeriveLagSeconds), ClockSkew: f.gauges(ClockSkewSeconds),
		AuditEvents: f.counters(AuditEventsTotal), AuditLastEvent: f.gauge(AuditLastEventTimestamp), AuditEnabled: f.gauge(AuditEnabled),
		Reviews: f.counters(AdmissionReviewsTotal), Scrapes: f.counters(ScrapesTotal),
		HTTPRequests: f.histograms(HTTPRequestDurationSeconds), Denied: f.counters(AuthzDeniedTotal), HTTPShed: f.counters(HTTPShedTotal),
	}
	reg.MustRegister(m.state)
	m.startAtZero()
	return m
}

// factory makes instruments as the catalogue describes them.
type factory struct{ reg prometheus.Registerer }

func (f factory) counters(name string) *prometheus.CounterVec {
	d := describe(name)
	c := prometheus.NewCounterVec(prometheus.CounterOpts{Name: name, Help: d.Help}, d.Labels)
	f.reg.MustRegister(c)
	return c
}

func (f factory) gauges(name string) *prometheus.GaugeVec {
	d := describe(name)
	g := prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: name, Help: d.Help}, d.Labels)
	f.reg.MustRegister(g)
	return g
}

func (f factory) gauge(name string) prometheus.Gauge { return f.gauges(name).WithLabelValues() }

// The native histograms: buckets a tenth apart, as many as a scrape can bear, and narrower again after an hour at the earliest.
const (
	nativeFactor  = 1.1
	nativeBuckets = 160
	nativeReset   = time.Hour
)

func (f factory) histograms(name string) *prometheus.HistogramVec {
	d := describe(name)
	h := prometheus.NewHistogramVec(prometheus.HistogramOpts{
		Name: name, Help: d.Help, Buckets: d.Buckets, NativeHistogramBucketFactor: nativeFactor,
		NativeHistogramMaxBucketNumber: nativeBuckets, NativeHistogramMinResetDuration: nativeReset,
	}, d.Labels)
	f.reg.MustRegister(h)
	return h
}

func (m *Metrics) startAtZero() {
	zero(m.Epochs, texts(trail.BreakCauses())...)
	for _, k := range trail.Kinds() { // an increase of what is lost is an alert; of facts it is none, and they have no series before the first
		for _, cause := range []string{LostSpoolFull, LostStoreReject, LostShutdownDeadline} {
			m.Lost.WithLabelValues(string(k.Kind), cause)
		}
	}
	m.Lost.WithLabelValues(string(trail.KindEvictionRequested), LostAuditGap)
	m.Lost.WithLabelValues(KindUnknown, LostSpoolCorrupt)
	m.Lost.WithLabelValues(string(trail.ObjectKubeEvent), LostShare)
	m.SpoolFsync.WithLabelValues()
	m.DisplacedEvents.WithLabelValues()
	m.Lost.WithLabelValues(string(trail.ObjectMigration), LostGCBeforeSeen)
	zero(m.Dropped, DroppedFacts, DroppedRows, DroppedRequesters)
	zero(m.AuditEvents, AuditTaken, AuditSkipped, AuditRefused)
	zero(m.Reviews, ReviewTaken, ReviewSkipped, ReviewDropped)
	zero(m.Scrapes, ScrapeOK, ScrapeFailed)
	zero(m.HTTPShed, ShedShare, ShedCrowded, ShedBytes, ShedSlow, ShedConnections)
	for _, op := range []string{OpAppend, OpAlive, OpResume, OpState, OpRetry} {
		m.StoreErrors.WithLabelValues(op, ClassNone)
	}
	for _, kind := range trail.LoopKinds() {
		m.loops.WithLabelValues(string(kind))
	}
	for _, trigger := range trail.Triggers() {
		m.migrations.WithLabelValues(string(trail.OutcomeSucceeded), ClassNone, string(trigger))
		m.migrations.WithLabelValues(string(trail.OutcomeAborted), string(trail.FailureAborted), string(trigger))
		for _, class := range trail.FailureClasses() {
			if class != trail.FailureAborted {
				m.migrations.WithLabelValues(string(trail.OutcomeFailed), string(class), string(trigger))
			}
		}
	}
	for _, requester := range usualRequesters {
		for _, benefit := range trail.Benefits() {
			m.moves.WithLabelValues(requester, string(benefit))
		}
		for _, answer := range trail.Answers() {
			m.requests.WithLabelValues(requester, string(answer))
		}
	}
	for _, requester := range trail.Requesters() {
		for _, cause := range trail.PlatformEndings() {
			m.guestsEnded.WithLabelValues(string(cause), string(requester))
		}
		for _, result := range objectiveResults {
			m.objectives.WithLabelValues(string(requester), result)
		}
	}
	for _, origin := range []string{trail.OriginDerived, trail.OriginObserved} {
		m.decisions.WithLabelValues(trail.DecidedCooldown, origin)
		m.decisions.WithLabelValues(trail.DecidedInProgress, origin)
	}
	for _, metric := range Catalogue() {
		if metric.PerVM {
			m.seriesDropped.WithLabelValues(metric.Name)
		}
	}
}

func zero(c *prometheus.CounterVec, values ...string) {
	for _, v := range values {
		c.WithLabelValues(v)
	}
}

// Watch starts the series of one watch at zero. Kind is that of its objects.
func (m *Metrics) Watch(resource, kind string) {
	m.WatchSynced.WithLabelValues(resource).Set(0)
	for _, reason := range []string{RestartClosed, RestartExpired, RestartError} {
		m.WatchRestarts.WithLabelValues(resource, reason)
	}
	m.Lost.WithLabelValues(kind, LostDecode)
	m.recovered.WithLabelValues(kind)
	m.unrecoverable.WithLabelValues(kind)
}

// NoWatch takes back what Watch says of a resource that the cluster does not have: that nothing is heard of it is no fault.
func (m *Metrics) NoWatch(resource string) {
	m.WatchSynced.DeleteLabelValues(resource)
	m.WatchLastActivity.DeleteLabelValues(resource)
}

// CountsBlocks says whether a descheduler counts its blocks itself and these counts are read: then those that are derived are
// not counted beside them.
func (m *Metrics) CountsBlocks(yes bool) { m.countsBlocks.Store(yes) }

// Node starts the series of a node at zero.
func (m *Metrics) Node(name string) {
	m.ledger.mu.Lock()
	delete(m.ledger.gone, name)
	m.ledger.mu.Unlock()
	for _, requester := range usualRequesters {
		m.started.WithLabelValues(name, requester)
	}
	for _, result := range evacuationResults {
		m.ended.WithLabelValues(name, result)
	}
	m.postCopy.WithLabelValues(name)
}

// forget ends the series of a node.
func (m *Metrics) forget(name string) {
	of := prometheus.Labels{LabelNode: name}
	for _, c := range []*prometheus.CounterVec{m.started, m.ended, m.postCopy, m.blocks} {
		c.DeletePartialMatch(of)
	}
}
