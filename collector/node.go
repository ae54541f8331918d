package collector

import "github.com/evictrail/evictrail/trail"

// slimNode is what is read of a Node.
type slimNode struct {
	slimHead
	Spec struct {
		Unschedulable bool        `json:"unschedulable"`
		Taints        []slimTaint `json:"taints"`
	} `json:"spec"`
}

type slimTaint struct {
	Key    string `json:"key"`
	Value  string `json:"value"`
	Effect string `json:"effect"`
}

func (v *slimNode) decode(m trail.Meta) (Observation, error) {
	taints := make([]trail.Taint, 0, len(v.Spec.Taints))
	for _, t := range v.Spec.Taints {
		taints = append(taints, trail.Taint(t))
	}
	o := trail.NodeObservation{Meta: m, Unschedulable: v.Spec.Unschedulable, Taints: taints}
	return func(s trail.Seen) trail.Observation { o.Seen = s; return o }, nil
}
