package trail

import "time"

// The range of plausible times. What a cluster says of itself lies between the year of KubeVirt's first commit and a year after it was seen:
// nothing that evictrail records is older, and what is ahead by more is a mistake or forged. Times outside cannot all be stored, and each month in
// which something happened costs a partition.
const plausibleAhead = 365 * 24 * time.Hour

// EarliestTime is the earliest plausible time. See CorrectTimes.
var EarliestTime = time.Date(2016, time.January, 1, 0, 0, 0, 0, time.UTC)

// Plausible reports whether a time that a cluster named can be right, where that was seen at a moment. A clock of ours that is itself before
// EarliestTime, as one without a battery is after a start, says nothing of the future.
func Plausible(at, seen time.Time) bool {
	if at.Before(EarliestTime) {
		return false
	}
	if seen.Before(EarliestTime) {
		return at.Year() < 2200
	}
	return !at.After(seen.Add(plausibleAhead))
}

// withPlausibleState returns an observation whose migration state has plausible times, others being zero: what of a state is new is told by its text, and
// not each time has one.
func withPlausibleState(o Observation) Observation {
	switch o := o.(type) {
	case VMIObservation:
		o.State = o.State.plausible(o.At)
		return o
	case MigrationObservation:
		o.State = o.State.plausible(o.At)
		return o
	}
	return o
}

func (s *MigrationState) plausible(seen time.Time) *MigrationState {
	if s == nil {
		return nil
	}
	out := *s
	clearImplausible(seen, &out.StartedAt, &out.EndedAt)
	return &out
}

// clearImplausible makes implausible times zero.
func clearImplausible(seen time.Time, times ...*time.Time) {
	for _, at := range times {
		if !at.IsZero() && !Plausible(*at, seen) {
			*at = time.Time{}
		}
	}
}

// CorrectTimes replaces an implausible time of the fact by the time at which it was seen, by our clock, and says so in Evidence. Implausible
// times of its detail become zero, which is unknown. The fact keeps its ID.
func (f *Fact) CorrectTimes() {
	seen := f.ObservedAt
	if seen.Before(EarliestTime) {
		seen = EarliestTime
	}
	if !f.OccurredAt.IsZero() && !Plausible(f.OccurredAt, f.ObservedAt) {
		f.Evidence += " (implausible time " + f.OccurredAt.UTC().Format(time.RFC3339) + ")"
		f.OccurredAt, f.Clock = seen, ClockObserver
	}
	switch d := f.Detail.(type) {
	case *VMIDetail:
		clearImplausible(f.ObservedAt, &d.CreatedAt, &d.MigrationEnd)
	case *ResultDetail:
		clearImplausible(f.ObservedAt, &d.StartedAt, &d.EndedAt)
	case *PodDetail:
		clearImplausible(f.ObservedAt, &d.CreatedAt)
	case *RequestDetail:
		clearImplausible(f.ObservedAt, &d.AnsweredAt)
	case *BlocksDetail:
		clearImplausible(f.ObservedAt, &d.Since)
	case *LoadDetail:
		for i := range d.Readings {
			clearImplausible(f.ObservedAt, &d.Readings[i].At)
		}
	default:
	}
}
