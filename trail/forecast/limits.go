package forecast

import (
	"cmp"
	"slices"
	"time"

	"github.com/evictrail/evictrail/trail"
)

// LimitsLookBack is how far back it is looked whether limits fit: a week, as load has its rhythm.
const LimitsLookBack = 7 * 24 * time.Hour

// SlotUse is a migration as far as KubeVirt's limits matter to it.
type SlotUse struct {
	Node      string    // that the guest leaves
	ReadyAt   time.Time // from when on only a slot was missing
	StartedAt time.Time // when it had one; zero where it never had
	EndedAt   time.Time // zero while it goes on
}

// NewSlotUse returns how a migration used a slot. What waited for something else than a slot was ready when that came.
func NewSlotUse(m *trail.Migration) SlotUse {
	u := SlotUse{Node: m.SourceNode, ReadyAt: m.CreatedAt, StartedAt: m.SchedulingAt, EndedAt: m.FinishedAt}
	switch m.WaitReason {
	case "", trail.WaitClusterLimit, trail.WaitNodeLimit, trail.WaitQueued:
	default:
		if !u.StartedAt.IsZero() {
			u.ReadyAt = u.StartedAt
		}
	}
	if !u.StartedAt.IsZero() && u.StartedAt.Before(u.ReadyAt) {
		u.StartedAt = u.ReadyAt // their clocks differ
	}
	return u
}

// Traffic is what a report about limits rests on.
type Traffic struct {
	Cluster    string
	From, To   time.Time
	PerNode    int
	PerCluster int
	Uses       []SlotUse // that were created from From on, in any order
}

// Limits reports whether KubeVirt's limits on migrations that run side by side fit what is asked of them.
type Limits struct {
	Cluster    string      `json:"cluster"`
	From       time.Time   `json:"from"`
	To         time.Time   `json:"to"`
	PerNode    int         `json:"parallel_per_node"`
	PerCluster int         `json:"parallel_per_cluster"`
	Arrived    int         `json:"arrived"`         // migrations that came
	Unserved   int         `json:"unserved"`        // of which so many ended, or wait, without a slot
	Held       trail.Span  `json:"held_seconds"`    // for how long one has its slot, on average
	PerHour    float64     `json:"served_per_hour"` // so many the limit of the cluster lets through in an hour; zero where nothing was served
	Used       float64     `json:"used"`            // share of the cluster's slots that were taken, from 0 to 1
	Busiest    *BusyHour   `json:"busiest,omitempty"`
	Full       trail.Span  `json:"full_seconds"` // for how long migrations waited for a slot
	Options    []Option    `json:"options"`      // the limits in force first
	Advice     LimitAdvice `json:"advice"`

	Recorder    *trail.RecorderNote `json:"recorder,omitempty"`     // nil: not asked for
	NotObserved []trail.Gap         `json:"not_observed,omitempty"` // gaps since From, the newest first
}

// BusyHour is the hour in which most of the cluster's slots were taken.
type BusyHour struct {
	At      time.Time `json:"at"`
	Arrived int       `json:"arrived"`
	Used    float64   `json:"used"`
}

// Option is what the same migrations would have waited under other limits, had each held its slot as long as it did.
type Option struct {
	PerNode    int        `json:"parallel_per_node"`
	PerCluster int        `json:"parallel_per_cluster"`
	Waited     trail.Span `json:"waited_seconds"` // all migrations added up
	AtOnce     int        `json:"at_once"`        // that would have run side by side, at the most
}

// LimitAdvice says what to do about limits.
type LimitAdvice string

// What to do about limits.
const (
	LimitsUnknown     LimitAdvice = "unknown"       // too little was seen
	LimitsFit         LimitAdvice = "fit"           // higher ones would save next to nothing
	RaiseNodeLimit    LimitAdvice = "raise_node"    // parallelOutboundMigrationsPerNode
	RaiseClusterLimit LimitAdvice = "raise_cluster" // parallelMigrationsPerCluster
	RaiseBothLimits   LimitAdvice = "raise_both"
)

// LimitAdvices lists what may be to be done about limits.
func LimitAdvices() []LimitAdvice {
	return []LimitAdvice{LimitsUnknown, LimitsFit, RaiseNodeLimit, RaiseClusterLimit, RaiseBothLimits}
}

// The bounds of advice.
const (
	leastUses   = 20  // migrations from which on anything is advised
	worthWaits  = 0.1 // of what migrations last, waits included, that higher limits must save to be advised
	mostOfGain  = 0.8 // of what raising both saves, that raising one must save to be advised alone
	raisedTimes = 2
)

// Weigh compares the limits with others.
func (t Traffic) Weigh() Limits {
	t.PerNode, t.PerCluster = max(t.PerNode, 1), max(t.PerCluster, 1) // what was served had a slot
	l := Limits{Cluster: t.Cluster, From: t.From, To: t.To, PerNode: t.PerNode, PerCluster: t.PerCluster, Arrived: len(t.Uses), Advice: LimitsUnknown}
	var served []SlotUse
	var held time.Duration
	for _, u := range t.Uses {
		if u.StartedAt.IsZero() {
			l.Unserved++
			continue
		}
		if u.EndedAt.IsZero() || u.EndedAt.After(t.To) {
			u.EndedAt = t.To
		}
		if u.EndedAt.Before(u.StartedAt) {
			u.EndedAt = u.StartedAt
		}
		served, held = append(served, u), held+u.EndedAt.Sub(u.StartedAt)
	}
	slices.SortStableFunc(served, func(a, b SlotUse) int {
		return cmp.Or(a.ReadyAt.Compare(b.ReadyAt), a.StartedAt.Compare(b.StartedAt), cmp.Compare(a.Node, b.Node), a.EndedAt.Compare(b.EndedAt))
	})
	if n := len(served); n > 0 {
		mean := held / time.Duration(n)
		l.Held = trail.Span(mean)
		if mean > 0 {
			l.PerHour = float64(t.PerCluster) * float64(time.Hour) / float64(mean)
		}
		l.Used = float64(held) / float64(t.To.Sub(t.From)) / float64(t.PerCluster)
		l.Busiest = t.findBusiestHour(served)
		l.Full = trail.Span(measureWaits(served))
	}
	for _, o := range []Option{
		{PerNode: t.PerNode, PerCluster: t.PerCluster},
		{PerNode: raisedTimes * t.PerNode, PerCluster: t.PerCluster},
		{PerNode: t.PerNode, PerCluster: raisedTimes * t.PerCluster},
		{PerNode: raisedTimes * t.PerNode, PerCluster: raisedTimes * t.PerCluster},
	} {
		waited, most := replaySlots(served, o.PerNode, o.PerCluster)
		o.Waited, o.AtOnce = trail.Span(waited), most
		l.Options = append(l.Options, o)
	}
	if len(served) >= leastUses {
		l.Advice = adviseLimits(l.Options, held)
	}
	return l
}

// adviseLimits returns what to do, by what the options save of what migrations last.
func adviseLimits(options []Option, held time.Duration) LimitAdvice {
	saved := func(i int) float64 { return float64(options[0].Waited - options[i].Waited) }
	both := saved(3)
	switch {
	case both < worthWaits*(float64(held)+float64(options[0].Waited)):
		return LimitsFit
	case saved(1) >= mostOfGain*both:
		return RaiseNodeLimit
	case saved(2) >= mostOfGain*both:
		return RaiseClusterLimit
	}
	return RaiseBothLimits
}

// findBusiestHour returns the hour (UTC) in which most of the cluster's slots were taken; the first of several.
func (t Traffic) findBusiestHour(served []SlotUse) *BusyHour {
	hours := map[time.Time]*BusyHour{}
	at := func(hour time.Time) *BusyHour {
		if hours[hour] == nil {
			hours[hour] = &BusyHour{At: hour}
		}
		return hours[hour]
	}
	for _, u := range served {
		at(u.ReadyAt.UTC().Truncate(time.Hour)).Arrived++
		for hour := u.StartedAt.UTC().Truncate(time.Hour); hour.Before(u.EndedAt); hour = hour.Add(time.Hour) {
			from, to := maxTime(u.StartedAt, hour), minTime(u.EndedAt, hour.Add(time.Hour))
			at(hour).Used += float64(to.Sub(from)) / float64(time.Hour) / float64(t.PerCluster)
		}
	}
	var busiest *BusyHour
	for _, h := range hours {
		if busiest == nil || cmp.Or(cmp.Compare(h.Used, busiest.Used), busiest.At.Compare(h.At)) > 0 {
			busiest = h
		}
	}
	return busiest
}

// measureWaits returns for how long at least one of the migrations waited for a slot; they are in the order of ReadyAt.
func measureWaits(served []SlotUse) time.Duration {
	var sum time.Duration
	var until time.Time
	for _, u := range served {
		from := maxTime(u.ReadyAt, until)
		if u.StartedAt.After(from) {
			sum += u.StartedAt.Sub(from)
			until = u.StartedAt
		}
	}
	return sum
}

// replaySlots lets migrations, in the order in which they were ready, have slots under limits, each for as long as it had its own. It returns how long
// they waited, added up, and how many ran side by side at the most.
func replaySlots(served []SlotUse, perNode, perCluster int) (waited time.Duration, most int) {
	var running, waiting []SlotUse // running in the order of EndedAt
	onNode := map[string]int{}
	start := func(now time.Time) {
		waiting = slices.DeleteFunc(waiting, func(u SlotUse) bool {
			if len(running) >= perCluster || onNode[u.Node] >= perNode {
				return false
			}
			waited += now.Sub(u.ReadyAt)
			u.EndedAt = now.Add(u.EndedAt.Sub(u.StartedAt))
			at, _ := slices.BinarySearchFunc(running, u, func(a, b SlotUse) int { return a.EndedAt.Compare(b.EndedAt) })
			running = slices.Insert(running, at, u)
			onNode[u.Node]++
			most = max(most, len(running))
			return true
		})
	}
	finish := func() {
		now := running[0].EndedAt
		for len(running) > 0 && !running[0].EndedAt.After(now) {
			onNode[running[0].Node]--
			running = running[1:]
		}
		start(now)
	}
	for _, u := range served {
		for len(running) > 0 && !running[0].EndedAt.After(u.ReadyAt) {
			finish()
		}
		waiting = append(waiting, u)
		start(u.ReadyAt)
	}
	for len(waiting) > 0 {
		finish()
	}
	return waited, most
}

func maxTime(a, b time.Time) time.Time {
	if b.After(a) {
		return b
	}
	return a
}

func minTime(a, b time.Time) time.Time {
	if b.Before(a) {
		return b
	}
	return a
}
