package collector

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"sync"
	"time"

	dto "github.com/prometheus/client_model/go"

	"github.com/evictrail/evictrail/trail"
)

// The families in which a descheduler reports how it sees the nodes: what it saw in its last cycle, and above which value it relieves a node. Only that of OpenShift has
// them, from 4.21 on.
//
// Source: openshift/descheduler metrics/metrics.go.
const (
	familyUtilisation = "descheduler_lownodeutilization_node_utilization_value"
	familyThreshold   = "descheduler_lownodeutilization_node_utilization_threshold"
	thresholdHigh     = "high" // of its label threshold_type
)

// The bounds of what is kept of the descheduler's view.
const (
	viewFor  = 2 * time.Hour
	viewMost = 24 << 20 // bytes of the samples of all nodes and of their names
	viewSize = 48       // bytes of a sample
)

// nodeView keeps what the descheduler said of the nodes when its metrics were read, for as long as it may be asked for: a source of load. It is safe for concurrent
// use.
type nodeView struct {
	mu     sync.Mutex
	points map[trail.LoadKey][]trail.LoadPoint // in the order of their times
	bytes  int
}

// decodeNodes reads how the descheduler sees the nodes.
func decodeNodes(families map[string]*dto.MetricFamily) map[trail.LoadKey]trail.LoadPoint {
	out := map[trail.LoadKey]trail.LoadPoint{}
	for _, m := range families[familyUtilisation].GetMetric() {
		out[viewKey(collectLabels(m))] = trail.LoadPoint{Value: readValue(m)}
	}
	for _, m := range families[familyThreshold].GetMetric() {
		l := collectLabels(m)
		key := viewKey(l)
		if p, seen := out[key]; seen && l["threshold_type"] == thresholdHigh {
			limit := readValue(m)
			p.Threshold = &limit
			out[key] = p
		}
	}
	return out
}

func viewKey(l map[string]string) trail.LoadKey {
	return trail.LoadKey{Node: cmp.Or(l["exported_node"], l["node"]), Metric: trail.MetricDescheduler + ":" + l["resource"]}
}

// add takes in what was read at a time, and forgets what is too old.
func (v *nodeView) add(at time.Time, seen map[trail.LoadKey]trail.LoadPoint) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.points == nil {
		v.points = map[trail.LoadKey][]trail.LoadPoint{}
	}
	for key, p := range seen {
		p.At = at
		if len(v.points[key]) == 0 {
			v.bytes += sizeOfKey(key)
		}
		v.points[key] = append(v.points[key], p)
		v.bytes += viewSize
	}
	for keep := viewFor; ; keep /= 2 {
		if v.dropPointsBefore(at.Add(-keep)); v.bytes <= viewMost || keep == 0 {
			return
		}
	}
}

func sizeOfKey(key trail.LoadKey) int { return len(key.Node) + len(key.Metric) }

// dropPointsBefore drops what is older than a time.
func (v *nodeView) dropPointsBefore(before time.Time) {
	for key, points := range v.points {
		old := 0
		for old < len(points) && points[old].At.Before(before) {
			old++
		}
		v.bytes -= old * viewSize
		if old == len(points) {
			v.bytes -= sizeOfKey(key)
			delete(v.points, key)
		} else if old > 0 {
			v.points[key] = slices.Clone(points[old:])
		}
	}
}

// Origin names the source.
func (v *nodeView) Origin() trail.LoadOrigin { return trail.OriginDescheduler }

// Loads returns what was read of some nodes. A descheduler that says nothing of nodes has no metric at all.
func (v *nodeView) Loads(_ context.Context, nodes map[string]bool, from, to time.Time) (trail.Loads, error) {
	v.mu.Lock()
	defer v.mu.Unlock()
	out := trail.Loads{Origin: trail.OriginDescheduler, Points: map[trail.LoadKey][]trail.LoadPoint{}}
	names := map[string]bool{}
	for key, points := range v.points {
		names[key.Metric] = true
		if !nodes[key.Node] {
			continue
		}
		for _, p := range points {
			if !p.At.Before(from) && !p.At.After(to) {
				out.Points[key] = append(out.Points[key], p)
			}
		}
	}
	for _, name := range slices.Sorted(maps.Keys(names)) {
		out.Metrics = append(out.Metrics, trail.LoadMetric{Name: name})
	}
	return out, nil
}
