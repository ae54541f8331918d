package trail

import (
	"fmt"
	"time"
)

// StandbyCause says why a standby of the database does not answer, or answers although it is too far behind.
type StandbyCause string

// The causes. Without one the standby answers.
const (
	StandbyAway    StandbyCause = "away"        // it does not answer
	StandbyPrimary StandbyCause = "not_standby" // it takes writes: it is no standby, or was promoted
	StandbyLags    StandbyCause = "lag"         // it is further behind than it may be
)

// StandbyCauses returns all causes.
func StandbyCauses() []StandbyCause { return standbyLabels.values() }

// StandbySigns describes the standby of a database that is to answer what callers ask.
type StandbySigns struct {
	Used       bool         `json:"used"`             // it answers; else the primary does
	Since      time.Time    `json:"since,omitzero"`   // since when Used and Cause are as they are
	AsOf       time.Time    `json:"as_of,omitzero"`   // up to when it has what was written; zero: not known
	LagSeconds float64      `json:"lag_seconds"`      // how long ago that is; 0 where it is not known
	Cause      StandbyCause `json:"cause,omitempty"`  // why it is not used; where it is: why it should not be
	Why        string       `json:"reason,omitempty"` // the same in a few words that anybody may read
}

// Answered reports whether a standby made the answer that has the signs. It is false for nil.
func (s *StandbySigns) Answered() bool { return s != nil && s.Used }

// OldestStandby returns the signs of the standby that is furthest behind of those that made an answer about several clusters.
// It is nil where none did.
func OldestStandby(all []RecorderStatus) *StandbySigns {
	var oldest *StandbySigns
	for _, s := range all {
		if s.Standby.Answered() && (oldest == nil || s.Standby.AsOf.Before(oldest.AsOf)) {
			oldest = s.Standby
		}
	}
	return oldest
}

// lagShown is how many seconds a standby may be behind before people read of it: its position is asked for every second.
const lagShown = 2

// Notice returns a sentence about answers that are older than now because a standby has them. It is empty where none are,
// and for nil.
func (s *StandbySigns) Notice() string {
	if !s.Answered() || s.LagSeconds < lagShown {
		return ""
	}
	return fmt.Sprintf("Read from a standby of the database, as of %s (%s behind).", FormatClock(s.AsOf), s.formatLag())
}

// Sentence returns who answers what is asked, and how far the standby is behind.
func (s *StandbySigns) Sentence() string {
	behind := "its position is not known"
	if !s.AsOf.IsZero() {
		behind = s.formatLag() + " behind"
	}
	switch {
	case s.Used && s.Cause == "":
		return "Questions are answered by the standby, " + behind + "."
	case s.Used:
		return "Questions are answered by the standby, " + behind + ": " + s.Why + "."
	}
	return fmt.Sprintf("Questions are answered by the primary since %s: %s.", FormatClock(s.Since), s.Why)
}

func (s *StandbySigns) formatLag() string {
	return (time.Duration(s.LagSeconds * float64(time.Second))).Round(100 * time.Millisecond).String()
}

// checkStandby looks whether answers are from a standby that is too far behind, which happens where the primary does not
// answer. A primary that answers in place of its standby is no finding: answers are whole.
func (s ClusterSigns) checkStandby() []finding {
	if !s.Standby.Answered() || s.Standby.Cause == "" {
		return nil
	}
	return []finding{{state: RecorderDegraded, since: s.Standby.Since, why: []string{s.Standby.Sentence()}}}
}
