package trail

// NodeObservation is what is read of a Node.
type NodeObservation struct {
	Seen
	Meta
	Unschedulable bool
	Taints        []Taint
}

// Taint is one entry of a Node's spec.taints.
type Taint struct{ Key, Value, Effect string }

// The aspects of a node that are recorded.
const (
	whatCordon = "cordon"
	whatTaint  = "taint/"
)

// EffectNoSchedule is the effect that KubeVirt's drain taint carries.
const EffectNoSchedule = "NoSchedule"

func (t *Tracker) observeNode(o NodeObservation) []Fact {
	r := t.take(ObjectNode, o.Meta, o.Seen, Subject{SubjectNode, o.Name})
	if r == nil {
		return nil
	}
	r.object.namespace = ""
	r.cordon(o)
	r.taints(o)
	if o.Gone {
		r.nodeGone()
	}
	for i := range r.facts {
		r.facts[i].Node = o.Name
	}
	return r.facts
}

func (r *recorder) cordon(o NodeObservation) {
	value, kind, reason := "", KindNodeUncordoned, ReasonUncordoned
	if o.Unschedulable {
		value, kind, reason = "true", KindNodeCordoned, ReasonCordoned
	}
	if r.became(whatCordon, value) {
		r.change(kind, reason, whatCordon, value).from("spec.unschedulable")
	}
}

// taints records the taints that keep pods away. PreferNoSchedule is left out (the descheduler's soft tainter sets it
// on its own clock), and so is the taint that only repeats the cordon. Which key means "drain" is told by the
// KubeVirt settings in force and decided when deriving.
func (r *recorder) taints(o NodeObservation) {
	now := map[string]string{}
	for _, taint := range o.Taints {
		if taint.Effect == "PreferNoSchedule" || taint.Key == "node.kubernetes.io/unschedulable" {
			continue
		}
		what := whatTaint + taint.Key + ":" + taint.Effect
		now[what] = "=" + taint.Value
		if r.became(what, now[what]) {
			r.change(KindNodeTainted, ReasonTainted, what, now[what]).from("spec.taints")
		}
	}
	for _, a := range r.object.state {
		if len(a.what) <= len(whatTaint) || a.what[:len(whatTaint)] != whatTaint || a.value == "" {
			continue
		}
		if _, still := now[a.what]; !still && r.became(a.what, "") {
			r.change(KindNodeUntainted, ReasonUntainted, a.what, "").from("spec.taints")
		}
	}
}

func (r *recorder) nodeGone() {
	if r.once(WhatGone, "true") {
		r.event(KindNodeGone, ReasonNodeDeleted, WhatGone, "true").from("DELETED").Node = r.object.name
	}
}
