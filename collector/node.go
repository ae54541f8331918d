package collector

import (
	"encoding/json"

	"github.com/evictrail/evictrail/trail"
)

// slimNode is what is read of a Node.
type slimNode struct {
	Spec struct {
		Unschedulable bool          `json:"unschedulable"`
		Taints        []trail.Taint `json:"taints"`
	} `json:"spec"`
}

func decodeNode(raw []byte, m trail.Meta) (Observation, error) {
	var v slimNode
	if err := json.Unmarshal(raw, &v); err != nil {
		return nil, err
	}
	o := trail.NodeObservation{Meta: m, Unschedulable: v.Spec.Unschedulable, Taints: v.Spec.Taints}
	return func(s trail.Seen) trail.Observation { o.Seen = s; return o }, nil
}
