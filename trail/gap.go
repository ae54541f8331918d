package trail

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"
)

// GapReport says that a source could not see everything for a time. A gap that is not over has no ClosedAt; the same gap is reported again, with the same
// key, when it is.
type GapReport struct {
	Source   string    // the resource of the watch, or SourceSelf
	Key      string    // what distinguishes this gap from others of the source: the last resourceVersion seen, or a time
	OpenedAt time.Time // when the source was last seen whole
	ClosedAt time.Time // when it was whole again; zero while it is not
	Cause    Reason
	Detail   string
}

// Facts returns the facts of a gap that is reported at a moment: that it opened, and, once it is over, that it closed.
func (g GapReport) Facts(cluster string, now time.Time) []Fact {
	facts := []Fact{g.newFact(cluster, now, KindGapOpened, "open", g.OpenedAt)}
	if !g.ClosedAt.IsZero() {
		facts = append(facts, g.newFact(cluster, now, KindGapClosed, "closed", g.ClosedAt))
	}
	return facts
}

func (g GapReport) newFact(cluster string, now time.Time, kind Kind, value string, at time.Time) Fact {
	now = now.Truncate(TimeResolution)
	f := Fact{
		Cluster: cluster, Kind: kind, Reason: g.Cause, Subject: Subject{SubjectSource, g.Source}, Object: Object{Kind: ObjectSource, UID: g.Source},
		What: "gap/" + g.Key, Value: value, OccurredAt: now, Clock: ClockObserver, ObservedAt: now, Evidence: "the collector",
		Detail: &GapDetail{Key: g.Key, Cause: g.Cause, Detail: g.Detail},
	}
	if !at.IsZero() {
		f.OccurredAt = at.UTC().Truncate(TimeResolution)
	}
	f.ID = f.NaturalID("")
	return f
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

func (*GapDetail) isDetail() {}

// Loss is what is missing of a source, until it is recorded as a gap. Its JSON names lie in spools.
type Loss struct {
	Source string       `json:"source"`
	Cause  Reason       `json:"cause"`
	Since  time.Time    `json:"since"`
	Until  time.Time    `json:"until"`
	Kinds  map[Kind]int `json:"kinds"`
}

// Losses are losses by source and cause.
type Losses map[string]*Loss

// Add adds facts of a kind that were seen in a time.
func (l Losses) Add(source string, cause Reason, since, until time.Time, kind Kind, n int) {
	key := source + " " + string(cause)
	loss := l[key]
	if loss == nil {
		loss = &Loss{Source: source, Cause: cause, Since: since, Until: until, Kinds: map[Kind]int{}}
		l[key] = loss
	}
	if since.Before(loss.Since) {
		loss.Since = since
	}
	if until.After(loss.Until) {
		loss.Until = until
	}
	loss.Kinds[kind] += n
}

// Of reports whether something of a source is missing, for any cause.
func (l Losses) Of(source string) bool {
	for _, loss := range l {
		if loss.Source == source {
			return true
		}
	}
	return false
}

// Gaps returns the facts of the gaps that the losses are, in no order, as they are recorded at a moment.
func (l Losses) Gaps(cluster string, now time.Time) []Fact {
	var facts []Fact
	for _, loss := range l {
		facts = append(facts, loss.newGapReport(now).Facts(cluster, now)...)
	}
	return facts
}

func (l *Loss) newGapReport(now time.Time) GapReport {
	gap := GapReport{
		Source: l.Source, Key: string(l.Cause) + " " + l.Since.UTC().Format(time.RFC3339Nano),
		OpenedAt: l.Since, ClosedAt: l.Until, Cause: l.Cause, Detail: l.describeLoss(),
	}
	if !gap.ClosedAt.After(gap.OpenedAt) {
		gap.ClosedAt = now
	}
	return gap
}

// lossTexts say what became of facts that are missing for each cause.
var lossTexts = map[Reason]string{
	ReasonOverflow: "found no room in the spool", ReasonCorrupted: "in the spool could not be read again", ReasonRefused: "refused",
}

func (l *Loss) describeLoss() string {
	n := 0
	var kinds []string
	for kind, count := range l.Kinds {
		n += count
		kinds = append(kinds, fmt.Sprintf("%d %s", count, kind))
	}
	slices.Sort(kinds)
	noun := "facts"
	if n == 1 {
		noun = "fact"
	}
	return fmt.Sprintf("%d %s %s: %s", n, noun, lossTexts[l.Cause], strings.Join(kinds, ", "))
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
			at = minNonZeroTime(at, f.OccurredAt)
		}
	}
	return at
}

// sourceOf names the source that sees each kind of object, as its gaps do: the resource of a watch.
var sourceOf = map[ObjectKind]string{
	ObjectVMI: "virtualmachineinstances", ObjectMigration: "virtualmachineinstancemigrations", ObjectPod: "pods", ObjectNode: "nodes",
	ObjectKubeVirt: "kubevirts", ObjectKubeEvent: "events", ObjectPolicy: "configmaps", ObjectMigrationPolicy: "migrationpolicies",
	ObjectEvictionRequest: "evictionrequests", ObjectEviction: "evictions", ObjectDescheduler: "descheduler",
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
	case *TransferDetail:
		return string(d.Origin)
	}
	return f.Object.Kind.Source()
}

// Source names the source that sees such objects, as its gaps do: the resource of a watch, or evictrail itself where there is none.
func (k ObjectKind) Source() string { return cmp.Or(sourceOf[k], SourceSelf) }
