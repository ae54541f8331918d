package collector

import (
	"time"

	"github.com/evictrail/evictrail/trail/tracker"
)

// slimKubeEvent is what is read of a Kubernetes Event.
type slimKubeEvent struct {
	slimHead
	InvolvedObject struct {
		Kind      string `json:"kind"`
		Namespace string `json:"namespace"`
		Name      string `json:"name"`
		UID       string `json:"uid"`
	} `json:"involvedObject"`
	Reason         string    `json:"reason"`
	Message        string    `json:"message" text:"message"`
	Type           string    `json:"type"`
	Count          int64     `json:"count"`
	LastTimestamp  time.Time `json:"lastTimestamp"`
	EventTime      time.Time `json:"eventTime"`
	Source         component `json:"source"`
	ReportingField string    `json:"reportingComponent"`
	Series         *struct {
		Count            int64     `json:"count"`
		LastObservedTime time.Time `json:"lastObservedTime"`
	} `json:"series"`
}

type component struct {
	Component string `json:"component"`
}

func (v *slimKubeEvent) decodeObservation(m tracker.Meta) (Observation, error) {
	o := tracker.KubeEventObservation{
		Meta: m, Reason: v.Reason, Message: v.Message, Type: v.Type, Component: v.Source.Component,
		About: tracker.Involved(v.InvolvedObject),
	}
	if o.Component == "" {
		o.Component = v.ReportingField
	}
	o.Count, o.LastAt = v.countOccurrences()
	return func(s tracker.Seen) tracker.Observation { o.Seen = s; return o }, nil
}

// countOccurrences returns how often the Event occurred and when last: the older API writes count and lastTimestamp, the newer
// eventTime and, once it recurs, a series.
func (v *slimKubeEvent) countOccurrences() (int64, time.Time) {
	count, last := max(v.Count, 1), v.LastTimestamp.UTC()
	if last.IsZero() {
		last = v.EventTime.UTC()
	}
	if v.Series != nil {
		count, last = max(v.Series.Count, count), v.Series.LastObservedTime.UTC()
	}
	return count, last
}
