package collector

import (
	"encoding/json"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/evictrail/evictrail/trail"
)

// slimKubeEvent is what is read of a Kubernetes Event.
type slimKubeEvent struct {
	InvolvedObject struct {
		Kind      string `json:"kind"`
		Namespace string `json:"namespace"`
		Name      string `json:"name"`
		UID       string `json:"uid"`
	} `json:"involvedObject"`
	Reason         string            `json:"reason"`
	Message        string            `json:"message"`
	Type           string            `json:"type"`
	Count          int64             `json:"count"`
	LastTimestamp  *metav1.Time      `json:"lastTimestamp"`
	EventTime      *metav1.MicroTime `json:"eventTime"`
	Source         component         `json:"source"`
	ReportingField string            `json:"reportingComponent"`
	Series         *struct {
		Count            int64            `json:"count"`
		LastObservedTime metav1.MicroTime `json:"lastObservedTime"`
	} `json:"series"`
}

type component struct {
	Component string `json:"component"`
}

func decodeKubeEvent(raw []byte, m trail.Meta) (Observation, error) {
	var v slimKubeEvent
	if err := json.Unmarshal(raw, &v); err != nil {
		return nil, err
	}
	o := trail.KubeEventObservation{
		Meta: m, Reason: v.Reason, Message: v.Message, Type: v.Type, Component: v.Source.Component,
		About: trail.Involved(v.InvolvedObject),
	}
	if o.Component == "" {
		o.Component = v.ReportingField
	}
	o.Count, o.LastAt = v.repeated()
	return func(s trail.Seen) trail.Observation { o.Seen = s; return o }, nil
}

// repeated tells how often the Event occurred and when last: the older API writes count and lastTimestamp, the newer
// eventTime and, once it recurs, a series.
func (v slimKubeEvent) repeated() (int64, time.Time) {
	count, last := max(v.Count, 1), utc(v.LastTimestamp)
	if last.IsZero() && v.EventTime != nil {
		last = v.EventTime.UTC()
	}
	if v.Series != nil {
		count, last = max(v.Series.Count, count), v.Series.LastObservedTime.UTC()
	}
	return count, last
}
