package read

import (
	"time"

	"github.com/evictrail/evictrail/trail"
)

// Under returns the Reader of the same caller that speaks for the moment up to which a standby has what was written, as
// signs say; where these say that the standby is not used, or are nil, for now. What it answers names the signs.
func (s *Reader) Under(signs *trail.StandbySigns) *Reader {
	return &Reader{s.db, s.scope, s.own, signs}
}

// asOf returns the moment for which the reader speaks.
func (s *Reader) asOf() time.Time {
	if s.standby.Answered() {
		return s.standby.AsOf
	}
	return time.Now().UTC()
}

// clampNow returns now, or of a standby the moment up to which it has what was written. That is no earlier than the last
// sign of life of the cluster, as stored: a standby may have more by now than when its position was asked for, and rows
// that are newer than the moment of an answer would be derived again for it.
func (s *Reader) clampNow(now, alive time.Time) time.Time {
	if !s.standby.Answered() || now.Before(s.standby.AsOf) {
		return now
	}
	if alive.After(s.standby.AsOf) {
		return alive
	}
	return s.standby.AsOf
}
