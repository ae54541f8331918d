package storetest

import (
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/evictrail/evictrail/trail"
	"github.com/evictrail/evictrail/trail/tracker"
)

// Start is when incidents begin.
var Start = time.Date(2026, 11, 21, 0, 0, 0, 0, time.UTC)

// Incident returns the facts of VMs that are marked, fail once and then move, one after the other.
func Incident(cluster string, vms int) []trail.Fact { return IncidentAt(Start, cluster, vms) }

// IncidentAt is Incident with another beginning.
func IncidentAt(begin time.Time, cluster string, vms int) []trail.Fact {
	tr := tracker.New(cluster)
	var facts []trail.Fact
	rv, at := 100, begin
	meta := func(uid, name string) tracker.Meta {
		rv++
		at = at.Add(time.Second)
		return tracker.Meta{UID: uid, Namespace: "shop", Name: name, ResourceVersion: strconv.Itoa(rv), CreatedAt: begin}
	}
	see := func(o tracker.Observation) { facts = append(facts, tr.Observe(o)...) }
	see(tracker.NodeObservation{Meta: meta("node-1", "n1"), Seen: tracker.Seen{At: at, Listed: true}})
	see(tracker.KubeVirtObservation{Meta: meta("kv", "kubevirt"), Seen: tracker.Seen{At: at}, Settings: trail.KubeVirtSettings{Version: "v1.8.4"}})
	for i := range vms {
		name := fmt.Sprintf("db-%d", i)
		uid := "uid-" + name
		see(tracker.VMIObservation{Meta: meta(uid, name), Seen: tracker.Seen{At: at}, Node: "n1", Phase: "Running"})
		see(tracker.VMIObservation{Meta: meta(uid, name), Seen: tracker.Seen{At: at}, Node: "n1", Phase: "Running", Mark: "n1", Strategy: "LiveMigrate"})
		for attempt := range 2 {
			m := tracker.MigrationObservation{
				Meta: meta(fmt.Sprintf("m-%d-%d", i, attempt), fmt.Sprintf("evac-%d-%d", i, attempt)), Seen: tracker.Seen{At: at}, VMI: name,
				Evacuation: true, EvacuationNode: "n1", Phase: trail.PhasePending, PhaseTimes: []trail.PhaseTime{{Phase: trail.PhasePending, At: at}},
			}
			m.CreatedAt = at
			see(m)
			end := trail.PhaseFailed
			if attempt == 1 {
				end = trail.PhaseSucceeded
				see(tracker.VMIObservation{Meta: meta(uid, name), Seen: tracker.Seen{At: at}, Node: "n2", Phase: "Running", State: &tracker.MigrationState{
					UID: m.UID, SourceNode: "n1", TargetNode: "n2", StartedAt: at, EndedAt: at,
				}})
			}
			created := m.CreatedAt
			m.Meta = meta(m.UID, m.Name)
			m.CreatedAt, m.At, m.Phase = created, at, end
			m.PhaseTimes = append(slices.Clone(m.PhaseTimes), trail.PhaseTime{Phase: end, At: at})
			see(m)
		}
	}
	return facts
}

// Readiness returns a sight of a node that is silent or ready since a time. It is another object than the node of the history, which has no conditions.
func Readiness(name string, at time.Time, version int, silent bool) tracker.Observation {
	o := tracker.NodeObservation{
		Seen: tracker.Seen{At: at}, Meta: tracker.Meta{UID: "readiness of " + name, Name: name, ResourceVersion: fmt.Sprint(1000 + version)},
		Ready: &tracker.Condition{Type: "Ready", Status: "True", Reason: "KubeletReady", ChangedAt: at.Truncate(time.Second)},
	}
	if silent {
		o.Ready.Status, o.Ready.Reason = "Unknown", "NodeStatusUnknown"
		o.Taints = []tracker.Taint{{Key: "node.kubernetes.io/unreachable", Effect: "NoExecute", AddedAt: at.Truncate(time.Second)}}
	}
	return o
}
