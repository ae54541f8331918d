package trail

import (
	"strconv"
	"time"
)

// LoadOrigin says who reported how loaded a node was.
type LoadOrigin string

// The origins of node load.
const (
	OriginPrometheus  LoadOrigin = "prometheus"  // a Prometheus was asked
	OriginDescheduler LoadOrigin = "descheduler" // the descheduler's metrics, which we read ourselves: what it saw in its last cycle
)

// LoadMoment says to what in the course of a migration a load belongs.
type LoadMoment string

// The moments of a migration at which the load of its nodes matters.
const (
	MomentRequest LoadMoment = "request" // the eviction was asked for; outside of evacuations, the migration was made. First attempts only
	MomentAttempt LoadMoment = "attempt" // the attempt began: it got its target pod
	MomentEnd     LoadMoment = "end"     // the migration was over
	MomentAfter   LoadMoment = "after"   // the guest has been on its new node for a while
)

// LoadMoments lists the moments, in their order.
func LoadMoments() []LoadMoment { return momentLabels.values() }

// LoadSample says which sample of a metric a reading is, as a moment has more than one that matters.
type LoadSample string

// The samples around a moment.
const (
	SampleBefore   LoadSample = "before"    // the last one at the moment or before
	SampleNext     LoadSample = "next"      // the first one after the moment: the descheduler shows what it acts on when it is read the next time
	SamplePeak     LoadSample = "peak"      // of the target, after the move: the one in the first minutes since its end that is furthest above the threshold, or nearest to it
	SampleLastOver LoadSample = "last_over" // of an attempt: the last one before in which the node was over its threshold, where it is not now
)

// LoadLack says why a reading has no value.
type LoadLack string

// The causes for which a value is not known.
const (
	LackNoSeries   LoadLack = "no_series"    // the origin answered, and has no such metric of any node
	LackNoSample   LoadLack = "no_sample"    // it has the metric, and not of this node at that time
	LackNotANumber LoadLack = "not_a_number" // the value is none
	LackRefused    LoadLack = "refused"      // the origin does not take the query
	LackUnanswered LoadLack = "unanswered"   // the origin was asked for hours, and returned no answer that can be used
	LackNotAsked   LoadLack = "not_asked"    // there was no origin to ask
)

// LoadLacks lists the causes for which a value is not known.
func LoadLacks() []LoadLack { return lackLabels.values() }

// Reading is one metric of one node at one time. Ratios go from 0 to 1.
type Reading struct {
	Node      string     `json:"node"`
	Metric    string     `json:"metric"`
	Sample    LoadSample `json:"sample"`
	At        time.Time  `json:"at,omitzero"`         // of the sample, UTC; zero where there is none
	Value     *float64   `json:"value,omitempty"`     // nil where it is not known
	Threshold *float64   `json:"threshold,omitempty"` // above which the node is to be relieved; nil where the metric has none
	Lack      LoadLack   `json:"lack,omitempty"`      // why there is no value
}

// MetricDescheduler is the metric of the descheduler's own view of a node; where it has one for each resource, their names begin with it and a colon.
const MetricDescheduler = "descheduler"

// isComparable reports whether the reading can be compared with a threshold.
func (r Reading) isComparable() bool { return r.Value != nil && r.Threshold != nil }

// LoadDetail is how loaded the nodes of a migration were at one moment of it, as one origin reports.
type LoadDetail struct {
	Moment   LoadMoment `json:"moment"`
	After    Span       `json:"after_seconds,omitempty"` // how long after the end; zero but for MomentAfter
	Final    bool       `json:"final,omitempty"`         // no later moment of the migration will be looked at
	Origin   LoadOrigin `json:"origin"`
	Readings []Reading  `json:"readings"` // of the source node, then the target node; of each the metrics in their order
}

func (*LoadDetail) isDetail() {}

// What names the moment within its migration: the aspect of the fact.
func (o Occasion) What() string {
	if o.Moment != MomentAfter {
		return "load/" + string(o.Moment)
	}
	return "load/" + string(o.Moment) + "/" + strconv.Itoa(int(o.After.Seconds()))
}
