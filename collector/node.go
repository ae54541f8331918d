package collector

import (
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/evictrail/evictrail/trail"
	"github.com/evictrail/evictrail/trail/tracker"
)

// slimNode is what is read of a Node.
type slimNode struct {
	Metadata struct {
		metadata
		Labels slimNodeLabels `json:"labels"`
	} `json:"metadata"`
	Spec struct {
		Unschedulable bool        `json:"unschedulable"`
		Taints        []slimTaint `json:"taints"`
	} `json:"spec"`
	Status struct {
		Conditions []condition `json:"conditions"`
	} `json:"status"`
}

// slimNodeLabels are the labels of a Node that are recorded.
type slimNodeLabels map[string]string

// UnmarshalJSONFrom skips the others.
func (l *slimNodeLabels) UnmarshalJSONFrom(d *jsontext.Decoder) error {
	return decodeKnown(d, (*map[string]string)(l), l.readsKey)
}

func (slimNodeLabels) readsKey(key string) bool { return trail.IsRecordedLabel(key) }

type slimTaint struct {
	Key    string    `json:"key"`
	Value  string    `json:"value"`
	Effect string    `json:"effect"`
	Added  time.Time `json:"timeAdded"`
}

func (v *slimNode) objectMeta() *metadata { return &v.Metadata.metadata }

func (v *slimNode) decodeObservation(m tracker.Meta) (Observation, error) {
	taints := make([]tracker.Taint, 0, len(v.Spec.Taints))
	for _, t := range v.Spec.Taints {
		taints = append(taints, tracker.Taint{Key: t.Key, Value: t.Value, Effect: t.Effect, AddedAt: t.Added.UTC()})
	}
	o := tracker.NodeObservation{Meta: m, Unschedulable: v.Spec.Unschedulable, Taints: taints, Labels: v.Metadata.Labels}
	for _, c := range v.Status.Conditions {
		if c.Type == "Ready" {
			o.Ready = new(c.decodeCondition())
		}
	}
	return func(s tracker.Seen) tracker.Observation { o.Seen = s; return o }, nil
}
