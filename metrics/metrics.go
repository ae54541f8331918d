package metrics

import (
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/collectors/version"

	"github.com/evictrail/evictrail/trail"
)

// Metrics holds the instruments. All are safe for concurrent use.
type Metrics struct {
	Facts             *prometheus.CounterVec   // kind, stage
	CommitLag         prometheus.Histogram     // seconds from our sight of a fact to its commit
	StoreUp           prometheus.Gauge         // 1 when the last write succeeded
	StoreErrors       *prometheus.CounterVec   // op
	StoreWrite        *prometheus.HistogramVec // op; seconds
	WatchLastActivity *prometheus.GaugeVec     // resource; Unix seconds
	WatchRestarts     *prometheus.CounterVec   // resource, reason
	WatchSynced       *prometheus.GaugeVec     // resource; 1 once its first list was taken
	TrackedObjects    *prometheus.GaugeVec     // kind
	QueueLength       prometheus.Gauge
	AuditEvents       *prometheus.CounterVec // result
	AuditLastEvent    prometheus.Gauge       // Unix seconds
	AuditEnabled      prometheus.Gauge       // 1 when audit events are expected
	Reviews           *prometheus.CounterVec // result
	Scrapes           *prometheus.CounterVec // result
}

// New makes the instruments and registers them, with the collectors of the Go runtime, the process and the build.
// Series of closed label sets start at zero. It panics when the registry holds one of the names already, which is a
// mistake in wiring.
func New(reg prometheus.Registerer) *Metrics {
	m := &Metrics{
		Facts: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: FactsTotal, Help: "Facts by kind and by how far they came; for rejected objects the kind is that of the object.",
		}, []string{LabelKind, LabelStage}),
		CommitLag: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name: CommitLagSeconds, Help: "Time from the sight of a fact to its commit in the database.",
			Buckets: []float64{.01, .05, .1, .25, .5, 1, 2.5, 5, 10, 60, 600},
		}),
		StoreUp: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: StoreUp, Help: "Whether the last write to the database succeeded.",
		}),
		StoreErrors: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: StoreErrorsTotal, Help: "Failed calls of the database by operation.",
		}, []string{LabelOp}),
		StoreWrite: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: StoreWriteDurationSeconds, Help: "Time of one call of the database by operation.",
			Buckets: []float64{.001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 5},
		}, []string{LabelOp}),
		WatchLastActivity: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: WatchLastActivityTimestamp, Help: "When a watch last delivered anything, bookmarks included.",
		}, []string{LabelResource}),
		WatchRestarts: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: WatchRestartsTotal, Help: "How often a watch started again, by cause.",
		}, []string{LabelResource, LabelReason}),
		WatchSynced: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: WatchSynced, Help: "Whether the first list of a watch was taken.",
		}, []string{LabelResource}),
		TrackedObjects: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: TrackedObjects, Help: "Objects that the tracker remembers, by kind.",
		}, []string{LabelKind}),
		QueueLength: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: QueueLength, Help: "Facts that wait for the database.",
		}),
		AuditEvents: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: AuditEventsTotal, Help: "Audit events that were read, by what became of them.",
		}, []string{LabelResult}),
		AuditLastEvent: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: AuditLastEventTimestamp, Help: "When audit events were last read.",
		}),
		AuditEnabled: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: AuditEnabled, Help: "Whether audit events are expected: a log is followed, or senders are known.",
		}),
		Reviews: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: AdmissionReviewsTotal, Help: "Admission reviews that the observer answered, by what became of them.",
		}, []string{LabelResult}),
		Scrapes: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: ScrapesTotal, Help: "Scrapes of the descheduler's metrics, by how they went.",
		}, []string{LabelResult}),
	}
	reg.MustRegister(
		m.Facts, m.CommitLag, m.StoreUp, m.StoreErrors, m.StoreWrite, m.WatchLastActivity, m.WatchRestarts,
		m.WatchSynced, m.TrackedObjects, m.QueueLength, m.AuditEvents, m.AuditLastEvent, m.AuditEnabled, m.Reviews, m.Scrapes,
		collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}),
		version.NewCollector("evictrail"),
	)
	m.startAtZero()
	return m
}

func (m *Metrics) startAtZero() {
	for _, k := range trail.Kinds() {
		for _, stage := range []string{StageObserved, StageCommitted, StageDeduplicated} {
			m.Facts.WithLabelValues(string(k.Kind), stage)
		}
	}
	for _, result := range []string{AuditTaken, AuditSkipped, AuditRefused} {
		m.AuditEvents.WithLabelValues(result)
	}
	for _, result := range []string{ReviewTaken, ReviewSkipped, ReviewDropped} {
		m.Reviews.WithLabelValues(result)
	}
	for _, result := range []string{ScrapeOK, ScrapeFailed} {
		m.Scrapes.WithLabelValues(result)
	}
	for _, op := range []string{OpAppend, OpAlive, OpResume} {
		m.StoreErrors.WithLabelValues(op)
	}
}

// Watch starts the series of one watch at zero.
func (m *Metrics) Watch(resource string) {
	m.WatchSynced.WithLabelValues(resource).Set(0)
	for _, reason := range []string{RestartClosed, RestartExpired, RestartError} {
		m.WatchRestarts.WithLabelValues(resource, reason)
	}
}
