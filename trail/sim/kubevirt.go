package sim

import (
	"cmp"
	"fmt"
	"time"

	"github.com/evictrail/evictrail/trail"
	"github.com/evictrail/evictrail/trail/tracker"
)

// release is a KubeVirt release as far as it matters here (reference: kubevirt-signals §1.2, §1.4, §2.2).
type release struct {
	version string
	follows bool // eviction-in-progress follows the mark, value "true" (v1.6.1); else one attempt, value "kubevirt"
	source  bool // eviction-source, condition EvictionRequested, evacuate/cancel (v1.7.0)
	queue   bool // VMIMs are made at once, with a priority, and wait in Pending (the gate of v1.8, always in v1.9)
	short   bool // v1.9: one text for all aborts, bare libvirt errors, a reason when the target crashed
}

var (
	v160      = release{version: "v1.6.0"}
	v164      = release{version: "v1.6.4", follows: true}
	v184      = release{version: "v1.8.4", follows: true, source: true}
	v184queue = release{version: "v1.8.4", follows: true, source: true, queue: true}
	v190      = release{version: "v1.9.0", follows: true, source: true, queue: true, short: true}
)

// KubeVirt's own limits where its CR names none.
//
// Source: kubevirt pkg/virt-config/configuration.go.
const (
	parallelPerCluster = 5
	parallelPerNode    = 2
)

// buildSettings returns what the KubeVirt CR says.
func (c *cluster) buildSettings() trail.KubeVirtSettings {
	settings := trail.KubeVirtSettings{Version: c.release.version, WorkloadUpdateMethods: c.options.methods}
	if c.release.queue && !c.release.short {
		settings.FeatureGates = []string{"MigrationPriorityQueue"}
	}
	if c.options.perNode > 0 {
		settings.ParallelOutboundPerNode, settings.ParallelPerCluster = new(int64(c.options.perNode)), new(int64(c.options.perCluster))
	}
	if c.options.batch > 0 {
		settings.BatchEvictionSize = new(int64(c.options.batch))
	}
	return settings
}

// recordSettings shows the KubeVirt CR, and the descheduler's policy where the collector was given it.
func (c *cluster) recordSettings() {
	c.kubevirt = tracker.Meta{UID: c.nextUID("kubevirt"), Namespace: "kubevirt", Name: "kubevirt"}
	seen, m := c.listObject(&c.kubevirt)
	c.recordSight(seen.At, tracker.KubeVirtObservation{Seen: seen, Meta: m, Settings: c.buildSettings()})
	if c.options.policySeen {
		policy := tracker.Meta{UID: c.nextUID("policy"), Name: "policy.yaml"}
		seen, m := c.listObject(&policy)
		c.recordSight(seen.At, tracker.PolicyObservation{Seen: seen, Meta: m, Text: c.descheduler.renderPolicy(), Settings: c.descheduler.buildSettings()})
	}
}

// caller is who sends a request.
type caller struct {
	user, agent string
	by, reason  string // annotations of the Eviction
}

const webhook = `admission webhook "virt-launcher-eviction-interceptor.kubevirt.io" denied the request: `

// evictPod answers a request of pods/eviction as KubeVirt's webhook and the API server do, and writes the audit event.
//
// Source: kubevirt pkg/virt-api/webhooks/validating-webhook/admitters/pod-eviction-admitter.go.
func (c *cluster) evictPod(p *pod, who caller) trail.RequestAnswer {
	answer, code, text := c.admitEviction(p, who)
	c.recordAuditEvent(trail.ActionEvict, p.meta.Namespace, p.meta.Name, who, code, text)
	return answer
}

func (c *cluster) admitEviction(p *pod, who caller) (answer trail.RequestAnswer, code int, text string) {
	v := p.vmi
	name := fmt.Sprintf("%q", v.vm.namespace+"/"+v.vm.name)
	switch {
	case p.gone:
		return trail.AnswerNotFound, 404, fmt.Sprintf("pods %q not found", p.meta.Name)
	case p.hasEnded():
		c.deletePod(p)
		return trail.AnswerAllowed, 201, ""
	case v.vm.strategy == "None":
		c.shutDown(p)
		return trail.AnswerAllowed, 201, ""
	case !v.vm.migratable:
		return trail.AnswerNotMigratable, 429, webhook + "VMI " + v.vm.name + " is configured with an eviction strategy but is not live-migratable"
	case v.mark != "":
		return trail.AnswerAlreadyMarked, 429, webhook + "Evacuation in progress: Eviction triggered evacuation of VMI " + name
	case p.node != v.node:
		return trail.AnswerTargetPod, 429, webhook + "Eviction request for target Pod"
	}
	c.markVMI(v, who)
	return trail.AnswerMarked, 429, webhook + "Eviction triggered evacuation of VMI " + name
}

// markVMI sets evacuationNodeName. The controllers see it a little later, in any order.
func (c *cluster) markVMI(v *vmi, who caller) {
	v.mark = v.node
	if c.release.source && who.by != "" {
		v.source = "descheduler"
	}
	c.curseVM(v)
	v.evacuation = c.openEvacuation(v)
	c.vmiChanged(v)
	c.clock.scheduleAfter(c.dice.pickDuration(20*time.Millisecond, 90*time.Millisecond), func() { c.reconcileVMI(v) })
	c.clock.scheduleAfter(c.dice.pickDuration(30*time.Millisecond, 150*time.Millisecond), func() { c.evacuateVMI(v) })
	if v.vm.strategy == "External" {
		c.clock.scheduleAfter(c.dice.pickDuration(2*time.Minute, 50*time.Minute), func() { c.actForKubeVirt(v) })
	}
}

// shutDown is what an allowed eviction does: the pod is deleted, and the guest goes down.
func (c *cluster) shutDown(p *pod) {
	c.runAfterActs(p.node, func() {
		if p.hasEnded() {
			return
		}
		p.disrupted = c.clock.now
		c.podChanged(p)
		c.stopVMI(p.vmi, "Failed")
	})
}

// reconcileVMI is virt-controller's VMI controller: the condition and the annotation follow the mark.
//
// Source: kubevirt pkg/virt-controller/watch/vmi/lifecycle.go (v1.9.0).
func (c *cluster) reconcileVMI(v *vmi) {
	if v.over || v.phase != "Running" {
		return
	}
	if c.release.source && v.requested.IsZero() == (v.mark != "") {
		v.requested = time.Time{}
		if v.mark != "" {
			v.requested = c.clock.now
		}
		c.vmiChanged(v)
	}
	if !c.release.follows {
		return
	}
	value := ""
	if v.mark != "" {
		value = "true"
	}
	c.annotatePod(v.pod, value)
}

// evacuateVMI is the evacuation controller: it makes a migration for a marked VMI that has none. Without the priority
// queue it waits for a slot first.
//
// Source: kubevirt pkg/virt-controller/watch/drain/evacuation/evacuation.go.
func (c *cluster) evacuateVMI(v *vmi) {
	if v.over || v.phase != "Running" || v.mark == "" || v.mark != v.node || v.vm.strategy != "LiveMigrate" || v.findUnfinishedMigration() != nil {
		return
	}
	if !c.release.queue && c.slotsFull(v.node) {
		c.clock.scheduleAfter(5*time.Second, func() { c.evacuateVMI(v) })
		return
	}
	m := c.newMigration(v, "kubevirt-evacuation-"+c.dice.newSuffix())
	m.evacuation, m.evacuates = v.evacuation, v.mark
	if c.release.queue {
		m.priority = "system-critical"
		if v.source != "" {
			m.priority = "system-maintenance"
		}
	}
	c.startMigration(m)
}

// requeueVMI lets the evacuation controller look at a VMI again. It is driven by events: often at once, by that of the
// migration which ended, else by the next heartbeat of the node (reference: seen-running).
func (c *cluster) requeueVMI(v *vmi) {
	in := c.dice.pickDuration(0, time.Minute)
	if c.dice.chance(0.4) {
		in = c.dice.pickDuration(20*time.Millisecond, 1500*time.Millisecond)
	}
	c.clock.scheduleAfter(in, func() { c.evacuateVMI(v) })
}

// slotsFull reports whether KubeVirt's limits forbid another migration from the node.
func (c *cluster) slotsFull(name string) bool {
	outbound := 0
	for _, m := range c.active {
		if m.from == name {
			outbound++
		}
	}
	return len(c.active) >= cmp.Or(c.options.perCluster, parallelPerCluster) || outbound >= cmp.Or(c.options.perNode, parallelPerNode)
}

// recordAuditEvent writes down a call of the API server as its audit log has it: after the answer, up to 30 s after where a
// webhook sends it in batches.
func (c *cluster) recordAuditEvent(action trail.Action, namespace, name string, who caller, code int, text string) {
	c.watch.uids++
	asked := c.clock.now
	answered := asked.Add(c.dice.pickDuration(5*time.Millisecond, 60*time.Millisecond))
	o := tracker.RequestObservation{
		Source: trail.SourceAudit, ID: fmt.Sprintf("audit-%d", c.watch.uids), Stage: "ResponseComplete", Action: action, Namespace: namespace, Name: name, AskedAt: asked,
		Detail: trail.RequestDetail{
			User: who.user, Agent: who.agent, AnsweredAt: answered, Code: code, Message: text, RequestedBy: who.by, StatedReason: who.reason,
		},
	}
	o.Detail.Status = "Success"
	if code >= 400 {
		o.Detail.Status = "Failure"
	}
	if n := c.findNode(name); action == trail.ActionChangeNode && n != nil {
		cordoned := n.cordoned
		o.Detail.Unschedulable = &cordoned
	}
	o.At = answered.Add(c.dice.pickDuration(10*time.Millisecond, c.options.auditDelay))
	c.recordSight(o.At, o)
}
