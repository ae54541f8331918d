package metrics

import (
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/evictrail/evictrail/trail"
)

// DefaultMaxVMSeries is how many series a metric about single VMs has at most, where nothing else is said.
const DefaultMaxVMSeries = 2000

// LimitVMSeries bounds the series of each metric about single VMs. It is to be called before the first SetState.
func (m *Metrics) LimitVMSeries(n int) { m.state.maxVMs = n }

// stateGauges shows a State. What it shows is made when the state is read, not when it is scraped.
type stateGauges struct {
	descs  map[string]*prometheus.Desc
	shown  atomic.Pointer[[]prometheus.Metric]
	maxVMs int // series of a metric about single VMs
}

// newStateGauges describes the metrics of a State.
func newStateGauges() *stateGauges {
	g := &stateGauges{descs: map[string]*prometheus.Desc{}, maxVMs: DefaultMaxVMSeries}
	for _, m := range stateMetrics {
		g.descs[m.Name] = prometheus.NewDesc(m.Name, m.ExportedHelp(), m.Labels, nil)
	}
	return g
}

// Describe implements prometheus.Collector.
func (g *stateGauges) Describe(out chan<- *prometheus.Desc) {
	for _, d := range g.descs {
		out <- d
	}
}

// Collect implements prometheus.Collector.
func (g *stateGauges) Collect(out chan<- prometheus.Metric) {
	shown := g.shown.Load()
	if shown == nil {
		return
	}
	for _, m := range *shown {
		out <- m
	}
}

// SetState shows how it stands with the cluster, until the next time.
func (m *Metrics) SetState(s trail.State) {
	w := &stateWriter{g: m.state, made: make([]prometheus.Metric, 0, 8*len(s.Nodes)+1024), known: map[string]bool{}, perVM: map[string]int{}}
	w.putRules(s)
	w.putNodes(s)
	w.putMigrations(s)
	w.putEvacuations(s)
	w.putVMs(s)
	for at, n := range s.Loops {
		w.put(LoopsOpen, float64(n), string(at.Kind), at.Node)
	}
	w.put(StateTimestamp, Unix(s.At))
	m.state.shown.Store(&w.made)
	for name, n := range w.perVM {
		if n > m.state.maxVMs {
			m.seriesDropped.WithLabelValues(name).Add(float64(n - m.state.maxVMs))
		}
	}
}

// stateWriter makes the gauges of one State.
type stateWriter struct {
	g     *stateGauges
	made  []prometheus.Metric
	known map[string]bool // series that were asked for
	perVM map[string]int  // series asked for, by metric about single VMs
}

// put makes a series.
func (w *stateWriter) put(name string, value float64, labels ...string) {
	if w.isFirst(name, labels) {
		w.addMetric(name, value, labels)
	}
}

// putVM is put for a metric about single VMs: those that come first are kept.
func (w *stateWriter) putVM(name string, value float64, labels ...string) {
	if !w.isFirst(name, labels) {
		return
	}
	if w.perVM[name]++; w.perVM[name] <= w.g.maxVMs {
		w.addMetric(name, value, labels)
	}
}

// isFirst reports whether a series was not asked for before. Of two with the same labels the first is kept: the same VM in two lives,
// of which the State begins with the one that needs somebody more. Two would fail the whole scrape.
func (w *stateWriter) isFirst(name string, labels []string) bool {
	key := name + "\xff" + strings.Join(labels, "\xff")
	known := w.known[key]
	w.known[key] = true
	return !known
}

func (w *stateWriter) addMetric(name string, value float64, labels []string) {
	for i, l := range labels {
		labels[i] = strings.ToValidUTF8(l, "\uFFFD") // a version may be any text
	}
	w.made = append(w.made, prometheus.MustNewConstMetric(w.g.descs[name], prometheus.GaugeValue, value, labels...))
}

func (w *stateWriter) putRules(s trail.State) {
	w.put(MigrationLimit, float64(s.PerCluster), ScopeCluster)
	w.put(MigrationLimit, float64(s.PerNode), ScopeNodeOutbound)
	if s.KubeVirt.Version != "" {
		w.put(KubeVirtInfo, 1, s.KubeVirt.Version, s.KubeVirt.AnnotationMode())
	}
	if s.Descheduler != nil {
		w.put(DeschedulerInfo, 1, s.Descheduler.Version, strconv.FormatBool(s.Descheduler.Plugin))
	}
	if s.Policy == nil {
		return
	}
	if n := s.Policy.LimitTotal; n != nil {
		w.put(SlotsLimit, float64(*n), ScopeTotal)
	}
	if n := s.Policy.LimitPerNode; n != nil {
		w.put(SlotsLimit, float64(*n), ScopeNode)
	}
	if s.Policy.Cooldown != nil {
		c := s.Policy.Cooldown.WithDefaults()
		w.put(CooldownConfigSeconds, c.Base.Seconds(), ParamBase)
		w.put(CooldownConfigSeconds, c.Max.Seconds(), ParamMax)
		w.put(CooldownConfigSeconds, c.Window.Seconds(), ParamHistoryWindow)
	}
}

func (w *stateWriter) putNodes(s trail.State) {
	for name, n := range s.Nodes {
		w.put(NodeVMIs, float64(n.VMIs), name)
		w.put(NodeVMIsInCooldown, float64(n.InCooldown), name)
		w.put(NodeEvacuationsMarked, float64(n.Marked), name)
		w.put(NodeEvacuationsRetrying, float64(n.Retrying), name)
		w.put(NodeMigrations, float64(n.Outgoing), name, DirectionOut)
		w.put(NodeMigrations, float64(n.Incoming), name, DirectionIn)
		w.putSlots(n.Slots, ScopeNode, name)
		if n.DrainSince.IsZero() {
			continue
		}
		w.put(NodeDraining, 1, name)
		w.put(NodeDrainStart, Unix(n.DrainSince), name)
		for _, b := range trail.Blockers() {
			w.put(NodeDrainRemaining, float64(n.Remaining[b]), name, string(b))
		}
	}
	w.putSlots(s.Slots, ScopeTotal, "")
}

func (w *stateWriter) putSlots(s trail.SlotState, scope, node string) {
	w.put(SlotsInUse, float64(s.InUse), scope, node)
	if !s.Oldest.IsZero() {
		w.put(SlotOldestTimestamp, Unix(s.Oldest), scope, node)
	}
}

func (w *stateWriter) putMigrations(s trail.State) {
	w.put(MigrationsRunning, float64(s.Running))
	for _, reason := range trail.WaitReasons() {
		p := s.Pending[reason]
		w.put(MigrationsPending, float64(p.Count), string(reason))
		if p.Count > 0 {
			w.put(MigrationPendingOldest, Unix(p.Oldest), string(reason))
		}
	}
	for _, class := range trail.FailureClasses() {
		if class == trail.FailureAborted {
			continue // an abort is no failure
		}
		w.put(MigrationFailingVMIs, float64(s.FailingHour[class]), Window1h, string(class))
		w.put(MigrationFailingVMIs, float64(s.FailingDay[class]), Window24h, string(class))
	}
}

func (w *stateWriter) putEvacuations(s trail.State) {
	for i := range s.Evacuations {
		e := &s.Evacuations[i]
		w.putVM(VMIMarkedTimestamp, Unix(e.MarkedAt), e.Namespace, e.VMI, e.Node, string(e.RequesterClass), e.Strategy)
		w.putVM(VMIFailedAttempts, float64(e.FailedAttempts), e.Namespace, e.VMI, e.Node)
		if shown, known := e.AnnotationShown(); known {
			w.putVM(VMIAnnotationPresent, boolToFloat(shown), e.Namespace, e.VMI, e.Node)
		}
		if e.NextRetryAt.After(s.At) {
			w.putVM(VMINextRetryTimestamp, Unix(e.NextRetryAt), e.Namespace, e.VMI, e.Node)
		}
	}
}

func (w *stateWriter) putVMs(s trail.State) {
	for _, c := range s.Returns {
		w.putVM(VMIPingPongReturns, float64(c.Count), c.Namespace, c.VMI, Window6h)
	}
	for _, c := range s.Moves {
		w.putVM(VMIMigrationsRecent, float64(c.Count), c.Namespace, c.VMI, Window24h, string(c.Trigger))
	}
	for _, c := range s.Repeated {
		w.putVM(VMILoopRepetitions, float64(c.Count), c.Namespace, c.VMI, string(c.Kind))
	}
	for _, c := range s.Cooling {
		if c.Effective > c.Base {
			w.putVM(VMICooldownSeconds, c.Effective.Seconds(), c.Namespace, c.VMI, c.Node)
			w.putVM(VMICooldownUntil, Unix(c.Until), c.Namespace, c.VMI, c.Node)
		}
	}
	for _, b := range s.DrainBlocked {
		w.putVM(VMIDrainBlocked, 1, b.Namespace, b.VMI, b.Node, string(b.Blocker), b.Cause())
	}
}

func boolToFloat(b bool) float64 {
	if b {
		return 1
	}
	return 0
}

// SetUpkeep shows how the database is kept. Now is the time for which partitions are needed.
func (m *Metrics) SetUpkeep(u trail.Upkeep, now time.Time) {
	m.partitionsAhead.WithLabelValues().Set(max(u.PartitionsUntil.Sub(now), 0).Seconds())
	m.strayRows.WithLabelValues().Set(float64(u.StrayRows))
	m.underived.WithLabelValues().Set(float64(u.Underived))
	if !u.FactsFrom.IsZero() {
		m.factsFrom.WithLabelValues().Set(float64(u.FactsFrom.Unix()))
	}
	m.schema.WithLabelValues().Set(float64(u.Schema))
	m.schemaExpected.WithLabelValues().Set(float64(u.SchemaExpected))
	m.ClockSkew.WithLabelValues(PeerPostgres).Set(u.ClockSkew.Seconds())
	m.StorePool.WithLabelValues(ConnectionsUsed).Set(float64(u.ConnectionsUsed))
	m.StorePool.WithLabelValues(ConnectionsIdle).Set(float64(u.ConnectionsIdle))
	m.StorePool.WithLabelValues(ConnectionsMost).Set(float64(u.ConnectionsMost))
}
