package collector

import (
	"time"

	"github.com/evictrail/evictrail/trail/tracker"
)

// slimNode is what is read of a Node.
type slimNode struct {
	slimHead
	Spec struct {
		Unschedulable bool        `json:"unschedulable"`
		Taints        []slimTaint `json:"taints"`
	} `json:"spec"`
	Status struct {
		Conditions []condition `json:"conditions"`
	} `json:"status"`
}

type slimTaint struct {
	Key    string    `json:"key"`
	Value  string    `json:"value"`
	Effect string    `json:"effect"`
	Added  time.Time `json:"timeAdded"`
}

func (v *slimNode) decodeObservation(m tracker.Meta) (Observation, error) {
	taints := make([]tracker.Taint, 0, len(v.Spec.Taints))
	for _, t := range v.Spec.Taints {
		taints = append(taints, tracker.Taint{Key: t.Key, Value: t.Value, Effect: t.Effect, AddedAt: t.Added.UTC()})
	}
	o := tracker.NodeObservation{Meta: m, Unschedulable: v.Spec.Unschedulable, Taints: taints}
	for _, c := range v.Status.Conditions {
		if c.Type == "Ready" {
			o.Ready = new(c.decodeCondition())
		}
	}
	return func(s tracker.Seen) tracker.Observation { o.Seen = s; return o }, nil
}
