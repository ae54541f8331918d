package sim

import (
	"slices"
	"time"

	"github.com/evictrail/evictrail/trail"
	"github.com/evictrail/evictrail/trail/tracker"
)

// pod is a virt-launcher pod: the one that runs the guest, or the target of a migration.
type pod struct {
	meta          tracker.Meta
	vmi           *vmi
	node          string
	phase         string
	migration     *migration // that it was made for; nil for the pod that a VMI starts with
	annotated     string     // eviction-in-progress: "kubevirt", "true", or empty where it is absent
	unschedulable string
	disrupted     time.Time // an allowed eviction deleted it
	gone          bool
}

// hasEnded reports whether the pod runs nothing any more.
func (p *pod) hasEnded() bool { return p.gone || p.phase == "Succeeded" || p.phase == "Failed" }

// newPod makes a pod that nobody has seen yet.
func (c *cluster) newPod(v *vmi, m *migration) *pod {
	return &pod{vmi: v, migration: m, phase: "Pending", meta: tracker.Meta{
		UID: c.nextUID("pod"), Namespace: v.vm.namespace, Name: "virt-launcher-" + v.vm.name + "-" + c.dice.newSuffix(), CreatedAt: truncateToSecond(c.clock.now),
	}}
}

// podChanged shows a pod to the collector and to the descheduler's informer.
func (c *cluster) podChanged(p *pod) {
	seen, meta := c.updateObject(trail.ObjectPod, &p.meta, p.gone)
	c.recordSight(seen.At, p.newObservation(seen, meta))
	c.descheduler.handlePodUpdate(p)
}

func (p *pod) newObservation(seen tracker.Seen, meta tracker.Meta) tracker.PodObservation {
	o := tracker.PodObservation{
		Seen: seen, Meta: meta, VMI: p.vmi.vm.name, VMIUID: p.vmi.meta.UID, Node: p.node, Phase: p.phase,
		EvictionInProgress: p.annotated, HasInProgress: p.annotated != "", Unschedulable: p.unschedulable,
	}
	if p.migration != nil {
		o.MigrationUID, o.MigrationName = p.migration.meta.UID, p.migration.meta.Name
	}
	if !p.disrupted.IsZero() {
		o.Disruption = tracker.Condition{
			Type: "DisruptionTarget", Status: "True", Reason: "EvictionByEvictionAPI", Message: "Eviction API: evicting", ChangedAt: truncateToSecond(p.disrupted),
		}
	}
	return o
}

// podsOn returns the launcher pods on a node that have not ended: those of its guests, and targets of migrations.
func (c *cluster) podsOn(n *node) []*pod {
	var pods []*pod
	for _, v := range n.guests {
		pods = append(pods, v.vmi.pod)
	}
	for _, m := range c.active {
		if m.target != nil && m.target.node == n.meta.Name && m.vmi.pod != m.target {
			pods = append(pods, m.target)
		}
	}
	return slices.DeleteFunc(pods, (*pod).hasEnded)
}

// annotatePod sets or removes eviction-in-progress.
func (c *cluster) annotatePod(p *pod, value string) {
	if p == nil || p.hasEnded() || p.annotated == value {
		return
	}
	p.annotated = value
	c.podChanged(p)
}

// endPod lets a pod end; the completed pod stays, with what annotations it has.
func (c *cluster) endPod(p *pod, phase string) {
	if p == nil || p.hasEnded() {
		return
	}
	p.phase = phase
	c.podChanged(p)
}

// deletePod takes a pod away.
func (c *cluster) deletePod(p *pod) {
	if p == nil || p.gone {
		return
	}
	if !p.hasEnded() {
		p.phase = "Failed"
	}
	p.gone = true
	c.podChanged(p)
}
