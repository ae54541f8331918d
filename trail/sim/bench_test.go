package sim

import (
	"maps"
	"reflect"
	"slices"
	"testing"
	"time"

	"github.com/evictrail/evictrail/trail"
	"github.com/evictrail/evictrail/trail/tracker"
)

// BenchmarkDetector takes an hour of a cluster of 10,000 VMIs on 200 nodes through the Tracker, observation by observation,
// and derives what each changes, as a store does that gets one fact at a time. It reports what each step costs per observation:
// observing, deriving VMs, and detecting loops and drains on the nodes that they touch.
func BenchmarkDetector(b *testing.B) {
	r := Big(1)
	b.ResetTimer()
	for b.Loop() {
		l := newLive()
		for _, o := range r.Observations {
			l.addObservation(o)
		}
		n := float64(len(r.Observations))
		b.ReportMetric(float64(l.observing.Nanoseconds())/n, "observe-ns/observation")
		b.ReportMetric(float64(l.deriving.Nanoseconds())/n, "vms-ns/observation")
		b.ReportMetric(float64(l.detecting.Nanoseconds())/n, "detector-ns/observation")
		b.ReportMetric(float64(l.detecting.Nanoseconds())/float64(l.detections), "ns/detection")
		b.ReportMetric(float64(l.countLoops()), "loops")
		b.ReportMetric(n, "observations")
	}
}

// BenchmarkDeriveAll derives the same hour at once.
func BenchmarkDeriveAll(b *testing.B) {
	r := Big(1)
	facts := factsOf(r)
	b.ReportAllocs()
	for b.Loop() {
		deriveLoops(facts, r.End)
	}
	b.ReportMetric(float64(len(facts))*float64(b.N)/b.Elapsed().Seconds(), "facts/s")
}

// live derives a cluster observation by observation.
type live struct {
	tracker *tracker.Tracker
	now     time.Time
	facts   map[trail.Subject][]trail.Fact
	owners  map[trail.Subject]trail.Subject // the VM of each pod
	vms     map[trail.Subject]trail.Derived
	on      map[string]map[trail.Subject]trail.Rows // the rows of the VMs that touch each node
	nodes   map[string]trail.Derived

	observing, deriving, detecting time.Duration
	detections                     int
}

func newLive() *live {
	return &live{
		tracker: tracker.New("big"), facts: map[trail.Subject][]trail.Fact{}, owners: map[trail.Subject]trail.Subject{},
		vms: map[trail.Subject]trail.Derived{}, on: map[string]map[trail.Subject]trail.Rows{}, nodes: map[string]trail.Derived{},
	}
}

func (l *live) countLoops() int {
	n := 0
	for _, d := range l.nodes {
		n += len(d.Loops)
	}
	return n
}

func (l *live) addObservation(o tracker.Observation) {
	began := time.Now()
	facts := l.tracker.Observe(o)
	l.observing += time.Since(began)
	dirty := map[trail.Subject]bool{}
	for _, f := range facts {
		if f.ObservedAt.After(l.now) {
			l.now = f.ObservedAt
		}
		l.facts[f.Subject] = append(l.facts[f.Subject], f)
		switch vm, known := l.owners[f.Subject]; {
		case f.Subject.Kind == trail.SubjectVMI:
			dirty[f.Subject] = true
			if d, ok := f.Detail.(*trail.PodDetail); ok {
				l.owners[trail.Subject{Kind: trail.SubjectPod, Name: f.Namespace + "/" + d.Pod}] = f.Subject
			}
		case known:
			dirty[vm] = true
		}
	}
	for vm := range dirty {
		for node := range l.deriveVM(vm) {
			l.deriveNode(node)
		}
	}
}

// deriveVM derives a VM and returns the nodes whose rows that changes.
func (l *live) deriveVM(vm trail.Subject) map[string]bool {
	began := time.Now()
	defer func() { l.deriving += time.Since(began) }()
	own := l.facts[vm]
	around := slices.Clone(own)
	for _, s := range trail.EnvSubjects(own) {
		around = append(around, l.facts[s]...)
	}
	before := l.vms[vm]
	after := trail.Derive(vm, own, trail.NewEnv(around), l.now)
	l.vms[vm] = after
	changed := map[string]bool{}
	was, is := before.Around(), after.Around()
	for s := range maps.Keys(is) {
		if s.Kind == trail.SubjectNode && !reflect.DeepEqual(was[s], is[s]) {
			changed[s.Name] = true
			if l.on[s.Name] == nil {
				l.on[s.Name] = map[trail.Subject]trail.Rows{}
			}
			l.on[s.Name][vm] = is[s]
		}
	}
	return changed
}

// deriveNode derives a node of the rows of the VMs that touch it.
func (l *live) deriveNode(name string) {
	node := trail.Subject{Kind: trail.SubjectNode, Name: name}
	env := trail.NewEnv(slices.Concat(l.facts[trail.Subject{Kind: trail.SubjectConfig, Name: string(trail.ObjectPolicy)}],
		l.facts[trail.Subject{Kind: trail.SubjectConfig, Name: string(trail.ObjectKubeVirt)}]))
	var rows trail.Rows
	began := time.Now()
	for _, of := range l.on[name] {
		rows.Add(of)
	}
	env.Around(node, rows)
	l.nodes[name] = trail.Derive(node, l.facts[node], env, l.now)
	l.detecting += time.Since(began)
	l.detections++
}
