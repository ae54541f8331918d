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

	// What evictrail reports about itself: set where it happens.
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
	StandbyUsed        *prometheus.GaugeVec     // no label, so that it can be absent; 1 when it answers
	StandbyLag         *prometheus.GaugeVec     // no label, so that it can be absent; seconds
	StandbyFallbacks   *prometheus.CounterVec   // cause
	StandbyRepeated    *prometheus.CounterVec   // sqlstate_class
	DrainForecasts     *prometheus.CounterVec   // result
	Notices            *prometheus.CounterVec   // receiver, result
	WatchLastActivity  *prometheus.GaugeVec     // resource; Unix seconds
	WatchRestarts      *prometheus.CounterVec   // resource, reason
	WatchSynced        *prometheus.GaugeVec     // resource; 1 once its first list was taken
	DisplacedEvents    *prometheus.CounterVec   // no label
	TrackedObjects     *prometheus.GaugeVec     // kind
	Leader             prometheus.Gauge         // 1 when this replica derives
	WindowMemory       *prometheus.GaugeVec     // no label, so that it can be absent; bytes
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
		requests: f.newCounters(EvictionRequestsTotal), started: f.newCounters(EvacuationsStartedTotal), ended: f.newCounters(EvacuationsEndedTotal),
		evacuationTime: f.newHistograms(EvacuationDurationSeconds), objectives: f.newCounters(EvacuationObjectiveTotal), phases: f.newCounters(PhaseTransitionsTotal),
		migrations: f.newCounters(MigrationsTotal), moves: f.newCounters(MovesTotal),
		postCopy: f.newCounters(PostCopyFailuresTotal), guestsEnded: f.newCounters(GuestsEndedTotal), migrationTime: f.newHistograms(MigrationDurationSeconds),
		phaseTime: f.newHistograms(MigrationPhaseDurationSeconds), queueWait: f.newHistograms(MigrationQueueWaitSeconds),
		decisions: f.newCounters(CooldownDecisionsTotal), cooldowns: f.newHistograms(EffectiveCooldownSeconds), blocks: f.newCounters(EvictionBlocksTotal),
		loops: f.newCounters(LoopsTotal), commitLag: f.newHistograms(CommitLagSeconds), recovered: f.newCounters(WatchRelistRecoveredTotal),
		unrecoverable: f.newCounters(WatchRelistUnrecoverableTotal), ledger: newLedger(), seriesDropped: f.newCounters(SeriesDroppedTotal),
		partitionsAhead: f.newGauges(PartitionAheadSeconds), strayRows: f.newGauges(DefaultPartitionRows), underived: f.newGauges(UnderivedSubjects),
		schema: f.newGauges(SchemaVersion), schemaExpected: f.newGauges(SchemaVersionExpected),
		factsFrom: f.newGauges(FactsFromTimestamp), Dropped: f.newCounters(RetentionDroppedTotal), RetentionLast: f.newGauges(RetentionLastTimestamp),
		RecorderState: f.newGauges(RecorderState), RecorderStateSince: f.newGauges(RecorderStateSince),
		state: newStateGauges(),

		Facts: f.newCounters(FactsTotal), Lost: f.newCounters(EventsLostTotal), Epochs: f.newCounters(EpochsTotal), SpoolBytes: f.newGauge(SpoolBytes), SpoolCapacity: f.newGauge(SpoolCapacityBytes),
		SpoolFacts: f.newGauge(SpoolFacts), SpoolOldest: f.newGauges(SpoolOldestEventTimestamp), SpoolWritable: f.newGauges(SpoolWritable),
		DeadLetters: f.newGauges(DeadLetters),
		SpoolFsync:  f.newHistograms(SpoolFsyncDurationSeconds), QueueLength: f.newGauge(QueueLength), StoreUp: f.newGauge(StoreUp), StorePool: f.newGauges(StorePoolConnections),
		StoreErrors: f.newCounters(StoreErrorsTotal), StoreWrite: f.newHistograms(StoreWriteDurationSeconds),
		StandbyUsed: f.newGauges(StandbyUsed), StandbyLag: f.newGauges(StandbyLagSeconds),
		StandbyFallbacks: f.newCounters(StandbyFallbacksTotal), StandbyRepeated: f.newCounters(StandbyRepeatedTotal), DrainForecasts: f.newCounters(DrainForecastsTotal), Notices: f.newCounters(NoticesTotal),
		WatchLastActivity: f.newGauges(WatchLastActivityTimestamp), WatchRestarts: f.newCounters(WatchRestartsTotal), WatchSynced: f.newGauges(WatchSynced),
		DisplacedEvents: f.newCounters(DisplacedEventsTotal), TrackedObjects: f.newGauges(TrackedObjects), Leader: f.newGauge(Leader), DeriveLag: f.newGauges(DeriveLagSeconds), WindowMemory: f.newGauges(WindowMemoryBytes), ClockSkew: f.newGauges(ClockSkewSeconds),
		AuditEvents: f.newCounters(AuditEventsTotal), AuditLastEvent: f.newGauge(AuditLastEventTimestamp), AuditEnabled: f.newGauge(AuditEnabled),
		Reviews: f.newCounters(AdmissionReviewsTotal), Scrapes: f.newCounters(ScrapesTotal),
		HTTPRequests: f.newHistograms(HTTPRequestDurationSeconds), Denied: f.newCounters(AuthzDeniedTotal), HTTPShed: f.newCounters(HTTPShedTotal),
	}
	reg.MustRegister(m.state)
	m.startAtZero()
	return m
}

// factory makes instruments as the catalogue describes them.
type factory struct{ reg prometheus.Registerer }

func (f factory) newCounters(name string) *prometheus.CounterVec {
	d := findMetric(name)
	c := prometheus.NewCounterVec(prometheus.CounterOpts{Name: name, Help: d.ExportedHelp()}, d.Labels)
	f.reg.MustRegister(c)
	return c
}

func (f factory) newGauges(name string) *prometheus.GaugeVec {
	d := findMetric(name)
	g := prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: name, Help: d.ExportedHelp()}, d.Labels)
	f.reg.MustRegister(g)
	return g
}

func (f factory) newGauge(name string) prometheus.Gauge { return f.newGauges(name).WithLabelValues() }

// The native histograms: buckets a tenth apart, as many as a scrape can bear, and narrower again after an hour at the earliest.
const (
	nativeFactor  = 1.1
	nativeBuckets = 160
	nativeReset   = time.Hour
)

func (f factory) newHistograms(name string) *prometheus.HistogramVec {
	d := findMetric(name)
	h := prometheus.NewHistogramVec(prometheus.HistogramOpts{
		Name: name, Help: d.ExportedHelp(), Buckets: d.Buckets, NativeHistogramBucketFactor: nativeFactor,
		NativeHistogramMaxBucketNumber: nativeBuckets, NativeHistogramMinResetDuration: nativeReset,
	}, d.Labels)
	f.reg.MustRegister(h)
	return h
}

func (m *Metrics) startAtZero() {
	initCounters(m.Epochs, toStrings(trail.BreakCauses())...)
	initCounters(m.StandbyFallbacks, toStrings(trail.StandbyCauses())...)
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
	initCounters(m.Dropped, DroppedFacts, DroppedRows, DroppedRequesters)
	initCounters(m.AuditEvents, AuditTaken, AuditSkipped, AuditRefused)
	initCounters(m.Reviews, ReviewTaken, ReviewSkipped, ReviewDropped)
	initCounters(m.Scrapes, ScrapeOK, ScrapeFailed)
	initCounters(m.HTTPShed, ShedShare, ShedCrowded, ShedBytes, ShedSlow, ShedConnections)
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
	for _, result := range forecastResults {
		m.DrainForecasts.WithLabelValues(result)
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

func initCounters(c *prometheus.CounterVec, values ...string) {
	for _, v := range values {
		c.WithLabelValues(v)
	}
}

// AddReceiver makes the series of a program that is notified of what happens.
func (m *Metrics) AddReceiver(name string) {
	for _, d := range trail.Deliveries() {
		m.Notices.WithLabelValues(name, string(d))
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

// CountsBlocks reports whether a descheduler counts its blocks itself and these counts are read: then those that are derived are
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

// removeNodeSeries ends the series of a node.
func (m *Metrics) removeNodeSeries(name string) {
	of := prometheus.Labels{LabelNode: name}
	for _, c := range []*prometheus.CounterVec{m.started, m.ended, m.postCopy, m.blocks} {
		c.DeletePartialMatch(of)
	}
}
