package metrics

import (
	"errors"
	"time"

	"github.com/evictrail/evictrail/trail"
)

// Stored notes how a write to the database went.
func (m *Metrics) Stored(op string, err error) {
	if err != nil {
		m.StoreFailed(op, err)
		m.StoreUp.Set(0)
		return
	}
	m.StoreUp.Set(1)
}

// StoreFailed counts a call of the database that failed; it does not say whether the database takes writes.
func (m *Metrics) StoreFailed(op string, err error) {
	m.StoreErrors.WithLabelValues(op, sqlStateClass(err)).Inc()
}

// sqlStateClass returns the first two characters of the SQLSTATE that an error carries, ClassNone where it carries none.
func sqlStateClass(err error) string {
	var state interface{ SQLState() string }
	if errors.As(err, &state) && len(state.SQLState()) >= 2 {
		return state.SQLState()[:2]
	}
	return ClassNone
}

// Waiting notes what waits for the database: in how many bytes, and since when the oldest; zero where nothing does.
func (m *Metrics) Waiting(bytes int, oldest time.Time) {
	m.SpoolBytes.Set(float64(bytes))
	if oldest.IsZero() {
		m.SpoolOldest.Reset()
		return
	}
	m.SpoolOldest.WithLabelValues().Set(Unix(oldest))
}

// Unix returns a time as metrics have it, in seconds.
func Unix(t time.Time) float64 { return float64(t.UnixMilli()) / 1000 }

// SetLeader shows how far a leader is behind at a time, and how many bytes of history it holds in memory; nothing of a follower.
func (m *Metrics) SetLeader(s trail.LeaderSigns, windows int64, now time.Time) {
	if !s.Leads {
		m.DeriveLag.Reset()
		m.WindowMemory.Reset()
		return
	}
	m.WindowMemory.WithLabelValues().Set(float64(windows))
	m.DeriveLag.WithLabelValues().Set(now.Sub(s.Behind()).Seconds())
}

// SetRecorder shows the state of the recorder.
func (m *Metrics) SetRecorder(s trail.RecorderStatus) {
	for _, state := range trail.RecorderStates() {
		holds := 0.0
		if state == s.State {
			holds = 1
		}
		m.RecorderState.WithLabelValues(string(state)).Set(holds)
	}
	m.RecorderStateSince.WithLabelValues().Set(Unix(s.Since))
}

// SetStandby shows how the standby is that is to answer what is asked.
func (m *Metrics) SetStandby(s trail.StandbySigns) {
	used := 0.0
	if s.Used {
		used = 1
	}
	m.StandbyUsed.WithLabelValues().Set(used)
	if s.AsOf.IsZero() {
		m.StandbyLag.Reset()
		return
	}
	m.StandbyLag.WithLabelValues().Set(s.LagSeconds)
}

// StandbyChanged counts that something else than the standby as it should be answers from now on.
func (m *Metrics) StandbyChanged(s trail.StandbySigns) {
	if s.Cause != "" {
		m.StandbyFallbacks.WithLabelValues(string(s.Cause)).Inc()
	}
}

// AnswerRepeated counts an answer that the standby failed to make.
func (m *Metrics) AnswerRepeated(err error) {
	m.StandbyRepeated.WithLabelValues(sqlStateClass(err)).Inc()
}
