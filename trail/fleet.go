package trail

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"
)

// ClusterSummary says in numbers how it stands with a cluster.
type ClusterSummary struct {
	Name       string    `json:"cluster"`
	Source     string    `json:"source,omitempty"`      // the evictrail that records it, of several that a hub asks; else empty
	LastSeenAt time.Time `json:"last_seen_at,omitzero"` // until when it was watched; zero where it never was
	Loops      int       `json:"loops"`                 // that are open
	Closed     int       `json:"loops_closed"`          // that were closed in the last day before
	Stuck      int       `json:"stuck"`                 // evacuations that are open and have failed attempts
	Drains     int       `json:"drains"`                // that go on
	// Marred reports whether a node is not ready, or in the last hour a guest was lost, an evacuation ended without a move, a migration failed, or one
	// overloaded its target.
	Marred bool `json:"marred"`
}

// ReadWeight returns how much there is to read about a cluster before its worst is known; 0: nothing.
func (c ClusterSummary) ReadWeight() int {
	n := 2 * (c.Loops + c.Stuck + c.Drains)
	if c.Marred {
		n++
	}
	return n
}

// FleetLine is how it stands with one cluster among several.
type FleetLine struct {
	ClusterSummary
	Severity Severity  `json:"severity"`
	Oldest   time.Time `json:"oldest,omitzero"` // since when the oldest of what is open is; zero where nothing is
	Text     string    `json:"text,omitempty"`  // the worst, in a sentence; empty where nothing is wrong
	// Recorder is the state of the recorder of the cluster; nil where it is not known.
	Recorder *RecorderStatus `json:"recorder,omitempty"`
}

// NeedsAttention reports whether something is wrong with the cluster or its recorder.
func (l FleetLine) NeedsAttention() bool { return l.Severity >= SeverityWarning }

// NewFleetLine returns the line of a cluster; o is nil where nothing in it needs reading.
func NewFleetLine(c ClusterSummary, recorder *RecorderStatus, o *Overview) FleetLine {
	line := FleetLine{ClusterSummary: c, Recorder: recorder}
	if o != nil {
		incidents := o.Incidents()
		for _, i := range incidents {
			line.Oldest = minNonZeroTime(line.Oldest, i.Since)
		}
		for _, d := range o.Drains {
			line.Oldest = minNonZeroTime(line.Oldest, d.StartedAt)
		}
		if len(incidents) > 0 {
			line.Severity, line.Text = worstSeverity(incidents), describeNewest(incidents, o.At)
		} else if len(o.Drains) > 0 {
			line.Severity, line.Text = SeverityInfo, o.Drains[0].Node+": "+o.Drains[0].Standing(o.At)+"."
		} else if past := o.describePast(); past != "" {
			line.Severity, line.Text = o.pastSeverity(), fmt.Sprintf("In the last %s: %s.", formatAbout(o.At.Sub(o.From)), past)
		}
	}
	switch {
	case line.Severity != SeverityNone:
	case c.Loops > 0:
		line.Severity = SeverityCritical
	case c.Stuck > 0:
		line.Severity = SeverityWarning
	case c.Closed > 0:
		line.Text = FormatCount(c.Closed, "loop") + " closed in the last day."
	}
	if recorder != nil && !recorder.Certain() {
		line.Severity = max(line.Severity, SeverityWarning)
		line.Text = strings.Join(nonEmpty([]string{firstOf(recorder.Why), line.Text}), " ")
	}
	return line
}

// SortFleet sorts lines: the worst first, of equal ones those with more that is open, then the oldest.
func SortFleet(lines []FleetLine) {
	open := func(l FleetLine) int { return l.Loops + l.Stuck }
	slices.SortStableFunc(lines, func(a, b FleetLine) int {
		return cmp.Or(cmp.Compare(b.Severity, a.Severity), cmp.Compare(open(b), open(a)), cmp.Compare(b.Drains, a.Drains), cmp.Compare(b.Closed, a.Closed), cmp.Compare(a.Name, b.Name))
	})
}

// MissingSource is an evictrail whose part is missing in an answer about several.
type MissingSource struct {
	Source  string `json:"source"`
	Refused bool   `json:"refused"` // it answered, and does not let the caller see anything
	Why     string `json:"why"`     // without a stop
}

// String says what is missing and why, in a few words.
func (m MissingSource) String() string {
	if m.Refused {
		return m.Source + " shows you nothing: " + m.Why
	}
	return m.Source + " does not answer: " + m.Why
}

// DescribeMissing names missing sources in one sentence; empty where none is missing.
func DescribeMissing(all []MissingSource) string {
	if len(all) == 0 {
		return ""
	}
	texts := make([]string, len(all))
	for i, m := range all {
		texts[i] = m.String()
	}
	noun := "Source "
	if len(all) > 1 {
		noun = "Missing sources: "
	}
	return noun + strings.Join(texts, "; ") + "."
}
