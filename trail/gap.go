package trail

import "time"

// GapObservation reports a hole in what a source could see. A gap that is not over has no ClosedAt; the same gap is
// reported again, with the same key, when it is.
type GapObservation struct {
	Seen
	Source   string    // the resource of the watch, or SourceSelf
	Key      string    // what tells this gap from others of the source: the last resourceVersion seen, or a time
	OpenedAt time.Time // when the source was last seen whole
	ClosedAt time.Time // when it was whole again; zero while it is not
	Cause    Reason
	Detail   string
}

// SourceSelf is the source of gaps in which evictrail itself was not running.
const SourceSelf = "evictrail"

// Watching says since when a source has been seen without a break.
type Watching struct {
	Source string    `json:"source"`
	Since  time.Time `json:"since"`
}

// Sign is a sign of life: everything that was seen until At lies before it, and what was seen then without a break.
type Sign struct {
	At       time.Time  `json:"at"`
	Watching []Watching `json:"watching,omitempty"`
}

// GapDetail says why a source could not be seen.
type GapDetail struct {
	Key    string `json:"key"`
	Cause  Reason `json:"cause"`
	Detail string `json:"detail,omitempty"`
}

func (*GapDetail) detail() {}

func (t *Tracker) observeGap(o GapObservation) []Fact { return o.Facts(t.cluster) }

// Facts gives the facts of a gap, which need nothing that is remembered.
func (o GapObservation) Facts(cluster string) []Fact {
	r := &recorder{
		t: &Tracker{cluster: cluster}, seen: o.Seen,
		object: &object{subject: Subject{SubjectSource, o.Source}},
		id:     Object{Kind: ObjectSource, UID: o.Source},
	}
	detail := &GapDetail{Key: o.Key, Cause: o.Cause, Detail: o.Detail}
	r.event(KindGapOpened, o.Cause, "gap/"+o.Key, "open").from("the collector").at(timeOf{o.OpenedAt, ClockObserver}).with(detail)
	if !o.ClosedAt.IsZero() {
		r.event(KindGapClosed, o.Cause, "gap/"+o.Key, "closed").from("the collector").at(timeOf{o.ClosedAt, ClockObserver}).with(detail)
	}
	return r.facts
}

// Gap is an interval in which a source could not be seen.
type Gap struct {
	ID       FactID    `json:"gap_id"`
	Source   string    `json:"source"`
	OpenedAt time.Time `json:"opened_at"`
	ClosedAt time.Time `json:"closed_at,omitzero"` // zero while the source is still not seen
	Cause    Reason    `json:"cause"`
	Detail   string    `json:"detail,omitempty"`
}

// deriveGaps pairs the openings and closings of sources by their keys, in the order of their openings. A gap that nobody closes, as the
// replica that opened it is gone, ends when another replica saw the source again.
func deriveGaps(facts []Fact) []Gap {
	var gaps []Gap
	at := map[string]int{}
	for _, f := range facts {
		d, ok := f.Detail.(*GapDetail)
		if !ok {
			continue
		}
		key := f.Object.UID + " " + d.Key
		i, known := at[key]
		if !known {
			i = len(gaps)
			at[key] = i
			gaps = append(gaps, Gap{ID: f.ID, Source: f.Object.UID, OpenedAt: f.OccurredAt, Cause: d.Cause, Detail: d.Detail})
		}
		if f.Kind == KindGapClosed {
			gaps[i].ClosedAt = f.OccurredAt
		} else {
			gaps[i].ID, gaps[i].OpenedAt = f.ID, f.OccurredAt
		}
	}
	for i := range gaps {
		if g := &gaps[i]; g.ClosedAt.IsZero() {
			g.ClosedAt = seenAgain(facts, g)
		}
	}
	return gaps
}

// seenAgain returns when the first gap of a source ended that ended after another one of it began; zero where none did.
func seenAgain(facts []Fact, g *Gap) time.Time {
	var at time.Time
	for i := range facts {
		if f := &facts[i]; f.Kind == KindGapClosed && f.Object.UID == g.Source && f.OccurredAt.After(g.OpenedAt) {
			at = earliest(at, f.OccurredAt)
		}
	}
	return at
}

// sourceOf names the source that sees each kind of object, as its gaps do: the resource of a watch.
var sourceOf = map[ObjectKind]string{
	ObjectVMI: "virtualmachineinstances", ObjectMigration: "virtualmachineinstancemigrations", ObjectPod: "pods", ObjectNode: "nodes",
	ObjectKubeVirt: "kubevirts", ObjectKubeEvent: "events", ObjectPolicy: "configmaps", ObjectDescheduler: "descheduler",
}

// Source names the source that saw the fact, as its gaps do.
func (f Fact) Source() string {
	switch d := f.Detail.(type) {
	case *RequestDetail:
		return string(d.Source)
	case *GapDetail:
		return f.Object.UID
	case *LoadDetail:
		return string(d.Origin)
	}
	if source, known := sourceOf[f.Object.Kind]; known {
		return source
	}
	return SourceSelf
}
