package trail

import (
	"fmt"
	"math"
	"strconv"
	"time"
)

// moment is the time for which something is derived. It remembers the next time at which time alone would change what
// was asked of it.
type moment struct {
	now  time.Time
	next time.Time // zero: never
}

// hasReached reports whether a time has come.
func (m *moment) hasReached(t time.Time) bool {
	if !m.now.Before(t) {
		return true
	}
	if m.next.IsZero() || t.Before(m.next) {
		m.next = t
	}
	return false
}

// interval is from a time, inclusive, to a time, exclusive; one without an end goes on.
type interval struct{ from, to time.Time }

// containsTime reports whether a time lies in the interval.
func (i interval) containsTime(t time.Time) bool {
	return !t.Before(i.from) && (i.to.IsZero() || t.Before(i.to))
}

// Span is a duration that is stored as a number of seconds.
type Span time.Duration

// MarshalJSON writes seconds.
func (s Span) MarshalJSON() ([]byte, error) {
	return strconv.AppendFloat(nil, time.Duration(s).Seconds(), 'f', -1, 64), nil
}

// UnmarshalJSON reads seconds; null leaves it as it is.
func (s *Span) UnmarshalJSON(text []byte) error {
	if string(text) == "null" {
		return nil
	}
	seconds, err := strconv.ParseFloat(string(text), 64)
	if err != nil {
		return fmt.Errorf("duration %s: expected a number of seconds", text)
	}
	*s = Span(math.Round(seconds * float64(time.Second)))
	return nil
}
