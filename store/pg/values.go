package pg

import (
	"strings"
	"time"
)

// CleanText returns a text with what Postgres cannot hold in one, NUL, replaced by U+FFFD.
func CleanText(s string) string { return strings.ReplaceAll(s, "\x00", "\uFFFD") }

// NullText returns a text as a column that may be NULL has it (CleanText): nil for an empty one, which says that something is not known.
func NullText(s string) *string {
	if s == "" {
		return nil
	}
	s = CleanText(s)
	return &s
}

// TextOrEmpty returns a text that may be NULL; empty where it is.
func TextOrEmpty(s *string) string {
	if s == nil {
		return ""
	}
	return *s
}

// TimeOrZero returns a time that may be NULL, in UTC; zero where it is.
func TimeOrZero(t *time.Time) time.Time {
	if t == nil {
		return time.Time{}
	}
	return t.UTC()
}

// NullTime returns a time as a column that may be NULL has it: nil for the zero time.
func NullTime(t time.Time) *time.Time {
	if t.IsZero() {
		return nil
	}
	return &t
}

// EarlierTime returns the earlier of two times. A zero one is not known: then it is the other.
func EarlierTime(a, b time.Time) time.Time {
	if a.IsZero() || !b.IsZero() && b.Before(a) {
		return b
	}
	return a
}

// SendableTime returns a time that Postgres can read: Beginning for the zero time and others before it.
func SendableTime(at time.Time) time.Time {
	if at.Before(Beginning) {
		return Beginning
	}
	return at
}

var (
	// Beginning is before everything that is recorded.
	Beginning = time.Date(1900, 1, 1, 0, 0, 0, 0, time.UTC)
	// Never is after it.
	Never = time.Date(9999, 1, 1, 0, 0, 0, 0, time.UTC)
)
