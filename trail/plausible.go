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

// ClearImplausible makes those of some times zero that are implausible in what was seen at a moment.
func ClearImplausible(seen time.Time, times ...*time.Time) {
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
		ClearImplausible(f.ObservedAt, &d.CreatedAt, &d.MigrationEnd)
	case *ResultDetail:
		ClearImplausible(f.ObservedAt, &d.StartedAt, &d.EndedAt)
	case *PodDetail:
		ClearImplausible(f.ObservedAt, &d.CreatedAt)
	case *RequestDetail:
		ClearImplausible(f.ObservedAt, &d.AnsweredAt)
	case *BlocksDetail:
		ClearImplausible(f.ObservedAt, &d.Since)
	case *LoadDetail:
		for i := range d.Readings {
			ClearImplausible(f.ObservedAt, &d.Readings[i].At)
		}
	default:
	}
}
