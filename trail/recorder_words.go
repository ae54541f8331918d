package trail

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

// Silent reports whether the last sign of life of any replica is older than SilenceAmber.
func (s RecorderStatus) Silent() bool { return s.At.Sub(s.AliveAt) >= SilenceAmber }

// Headline returns the state and the age of the newest event in one line, such as "Recording; last event 3 min ago".
func (s RecorderStatus) Headline() string {
	switch {
	case s.Replayed:
		return "Recording of " + s.AliveAt.UTC().Format("2 Jan 2006") + ", replayed"
	case s.Silent():
		return UpperFirst(s.LastEvent())
	}
	return UpperFirst(s.State.Label().Short) + "; " + s.LastEvent()
}

// LastEvent returns the age of the newest event, and of the last sign of life where the recorder is silent.
func (s RecorderStatus) LastEvent() string {
	last := "no event yet"
	if !s.LastEventAt.IsZero() {
		last = "last event " + Age(s.At.Sub(s.LastEventAt)) + " ago"
	}
	switch {
	case !s.Silent():
		return last
	case s.AliveAt.IsZero():
		return "never recorded"
	}
	return last + "; recorder stopped " + Age(s.At.Sub(s.AliveAt)) + " ago"
}

// Advice returns what to do about the state in one or two sentences. It is empty while recording, and for a replayed recording.
func (s RecorderStatus) Advice() string {
	switch {
	case s.Replayed || s.State == RecorderRecording:
		return ""
	case s.Silent():
		return "Start `evictrail run`, or find out why it does not run or cannot write to the database."
	case s.State == RecorderReadOnly:
		return "Make the database take writes again. What is seen until then waits in the spool and is stored afterwards."
	case s.State == RecorderNoLeader:
		return "Give the service account the rights get, create and update on leases (docs/runbooks/EvictrailNoLeader.md)."
	case s.State == RecorderBehind:
		return "See the log of the leader for what it cannot derive (docs/runbooks/EvictrailFreshnessBudgetBurn.md)."
	}
	return "Run `evictrail doctor` with the flags of `evictrail run`: it names the missing right, the address or the file."
}

// Notice returns the warning that an answer of this recorder carries. It is empty while the cluster is recorded, and for a replayed recording.
func (s RecorderStatus) Notice() string { return s.Note().Notice() }

// RecorderNote is the part of a RecorderStatus that answers carry.
type RecorderNote struct {
	State    RecorderState `json:"state"`
	Since    time.Time     `json:"since,omitzero"`
	Why      []string      `json:"why"`
	Replayed bool          `json:"replayed,omitempty"`
	Standby  *StandbySigns `json:"standby,omitempty"` // that is to answer what is asked; nil: the primary alone does
}

// Note returns the part of the status that answers carry; never nil.
func (s RecorderStatus) Note() *RecorderNote {
	return &RecorderNote{s.State, s.Since, s.Why, s.Replayed, s.Standby}
}

// Notice is RecorderStatus.Notice. It is empty for a nil note.
func (n *RecorderNote) Notice() string {
	if n == nil || n.Replayed || n.State == RecorderRecording {
		return ""
	}
	return strings.ToUpper(n.State.Label().Short) + ": " + firstOf(n.Why) + " What is shown may be incomplete."
}

// DescribeRecording says what may be missing in an answer, by its note and the gaps of its period; nothing where all was recorded.
func DescribeRecording(note *RecorderNote, gaps []Gap) []string {
	lines := []string{note.Notice(), note.StandbyNotice(), DescribeGaps(gaps)}
	return slices.DeleteFunc(lines, func(line string) bool { return line == "" })
}

// StandbyNotice is StandbySigns.Notice. It is empty for a nil note.
func (n *RecorderNote) StandbyNotice() string {
	if n == nil {
		return ""
	}
	return n.Standby.Notice()
}

// DescribeGaps returns one sentence that names gaps, the period and cause of each. Sources that were lost and found together are named
// together. It is empty without gaps.
func DescribeGaps(gaps []Gap) string {
	if len(gaps) == 0 {
		return ""
	}
	var periods []string
	sources := map[string][]string{}
	for _, g := range gaps {
		until := "until now"
		if !g.ClosedAt.IsZero() {
			until = "to " + FormatClock(g.ClosedAt)
		}
		period := fmt.Sprintf("from %s %s (%s)", FormatClock(g.OpenedAt), until, g.Label())
		if sources[period] == nil {
			periods = append(periods, period)
		}
		if source := LabelSource(g.Source).Short; !slices.Contains(sources[period], source) {
			sources[period] = append(sources[period], source)
		}
	}
	for i, p := range periods {
		periods[i] = strings.Join(sources[p], ", ") + " " + p
	}
	return "Not observed in this period: " + strings.Join(periods, "; ") + "."
}
