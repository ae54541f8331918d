package tracker

import (
	"strings"
	"time"

	"github.com/evictrail/evictrail/trail"
)

// NodeObservation is what is read of a Node.
type NodeObservation struct {
	Seen
	Meta
	Unschedulable bool
	Taints        []Taint
	Ready         *Condition        // condition Ready; nil where the node has none
	Labels        map[string]string // those that are recorded
}

// Taint is one entry of a Node's spec.taints.
type Taint struct {
	Key, Value, Effect string
	AddedAt            time.Time // timeAdded, which the node lifecycle controller sets; zero where nobody did
}

// whatReady is the aspect under which it is recorded whether a node is ready.
const whatReady = "ready"

func (t *Tracker) observeNode(o NodeObservation) []trail.Fact {
	r := t.openRecorder(trail.ObjectNode, o.Meta, o.Seen, trail.Subject{Kind: trail.SubjectNode, Name: o.Name})
	if r == nil {
		return nil
	}
	r.object.namespace = ""
	r.recordCordon(o)
	r.recordTaints(o)
	r.recordReadiness(o.Ready)
	r.recordLabels(o.Labels)
	if o.Gone {
		r.recordNodeGone()
	}
	for i := range r.facts {
		r.facts[i].Node = o.Name
	}
	return r.facts
}

func (r *recorder) recordCordon(o NodeObservation) {
	value, kind, reason := "", trail.KindNodeUncordoned, trail.ReasonUncordoned
	if o.Unschedulable {
		value, kind, reason = "true", trail.KindNodeCordoned, trail.ReasonCordoned
	}
	if r.changeAspect(trail.WhatCordon, value) {
		r.recordChange(kind, reason, trail.WhatCordon, value).withEvidence("spec.unschedulable")
	}
}

// recordTaints records the taints that keep pods away. PreferNoSchedule is left out (the descheduler's soft tainter sets it
// on its own clock), and so is the taint that only repeats the cordon. Which key means "drain" is said by the
// KubeVirt settings in force and decided when deriving.
func (r *recorder) recordTaints(o NodeObservation) {
	now := map[string]string{}
	for _, taint := range o.Taints {
		if taint.Effect == "PreferNoSchedule" || taint.Key == "node.kubernetes.io/unschedulable" {
			continue
		}
		what := trail.WhatTaint + taint.Key + ":" + taint.Effect
		now[what] = "=" + taint.Value
		if r.changeAspect(what, now[what]) {
			r.recordDated(trail.KindNodeTainted, trail.ReasonTainted, what, now[what], clockTime{taint.AddedAt, trail.ClockEmitter}).withEvidence("spec.taints")
		}
	}
	for _, a := range r.object.state {
		if !strings.HasPrefix(a.what, trail.WhatTaint) || a.value == "" {
			continue
		}
		if _, still := now[a.what]; !still && r.changeAspect(a.what, "") {
			r.recordChange(trail.KindNodeUntainted, trail.ReasonUntainted, a.what, "").withEvidence("spec.taints")
		}
	}
}

// recordReadiness records that the node is not ready, and that it is again. The kubelet reports True and False itself; the node lifecycle controller
// makes it Unknown when the kubelet has not renewed its lease for node-monitor-grace-period (40 s or 50 s). A node that is ready when it is first
// seen is as it should be, and no fact.
//
// Source: kubernetes pkg/controller/nodelifecycle/node_lifecycle_controller.go, tryUpdateNodeHealth; pkg/kubelet/nodestatus/setters.go, ReadyCondition.
func (r *recorder) recordReadiness(c *Condition) {
	if c == nil {
		return
	}
	value, kind, reason := "", trail.KindNodeReady, trail.ReasonKubeletReady
	switch c.Status {
	case "True":
	case "False":
		value, kind, reason = c.Status, trail.KindNodeNotReady, trail.ReasonKubeletNotReady
	default:
		value, kind, reason = c.Status, trail.KindNodeNotReady, trail.ReasonKubeletSilent
	}
	if value != "" && !c.ChangedAt.IsZero() { // one that follows an unseen recovery is another
		value += " since " + c.ChangedAt.UTC().Format(time.RFC3339)
	}
	if r.changeAspect(whatReady, value) {
		detail := &trail.ConditionDetail{Type: "Ready", Status: c.Status, Reason: c.Reason, Message: c.Message}
		r.recordDated(kind, reason, whatReady, value, clockTime{c.ChangedAt, trail.ClockEmitter}).withEvidence("status.conditions[Ready]").withDetail(detail)
	}
}

// recordLabels records where the node is and of what kind, when that was first seen and when it changed.
func (r *recorder) recordLabels(labels map[string]string) {
	detail := trail.ReadNodeLabels(labels)
	if r.changeAspect(trail.WhatLabels, detail.String()) {
		r.recordChange(trail.KindNodeLabels, trail.ReasonLabelsSeen, trail.WhatLabels, detail.String()).withEvidence("metadata.labels").withDetail(detail)
	}
}

func (r *recorder) recordNodeGone() {
	if r.addAspect(trail.WhatGone, "true") {
		r.recordOnce(trail.KindNodeGone, trail.ReasonNodeDeleted, trail.WhatGone, "true").withEvidence("DELETED").Node = r.object.name
	}
}
