package metrics

import (
	"errors"
	"time"
)

// Stored notes how a call of the database went.
func (m *Metrics) Stored(op string, err error) {
	if err != nil {
		m.StoreErrors.WithLabelValues(op, SQLStateClass(err)).Inc()
		m.StoreUp.Set(0)
		return
	}
	m.StoreUp.Set(1)
}

// SQLStateClass gives the first two characters of the SQLSTATE that an error carries, ClassNone where it carries none.
func SQLStateClass(err error) string {
	var state interface{ SQLState() string }
	if errors.As(err, &state) && len(state.SQLState()) >= 2 {
		return state.SQLState()[:2]
	}
	return ClassNone
}

// Waiting notes what waits for the database: how many facts, in how many bytes, and since when the oldest.
func (m *Metrics) Waiting(facts, bytes int, oldest time.Time) {
	m.QueueLength.Set(float64(facts))
	m.SpoolBytes.Set(float64(bytes))
	if facts == 0 {
		m.SpoolOldest.Reset()
		return
	}
	m.SpoolOldest.WithLabelValues().Set(unix(oldest))
}

// unix gives a time in seconds.
func unix(t time.Time) float64 { return float64(t.UnixMilli()) / 1000 }
