package backtest

import (
	"time"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/promql"
)

// Firing is a time in which an alert would have fired for one set of labels.
type Firing struct {
	Labels    map[string]string `json:"labels"`
	PendingAt time.Time         `json:"pending_at"` // when its expression began to hold
	FiredAt   time.Time         `json:"fired_at"`
	EndedAt   time.Time         `json:"ended_at,omitzero"` // zero while it fires at the end of the period
	Causes    []Cause           `json:"causes"`            // that were recorded beside it
	// CausesMore are those that are only counted.
	CausesMore int `json:"causes_more,omitempty"`
}

// EndOr returns when it ended, or the end of the period.
func (f Firing) EndOr(end time.Time) time.Time {
	if f.EndedAt.IsZero() {
		return end
	}
	return f.EndedAt
}

// ruling follows one alert from step to step, as Prometheus' rule manager does.
//
// Source: prometheus rules/alerting.go, AlertingRule.Eval.
type ruling struct {
	hold, keep time.Duration
	active     map[uint64]*activeAlert
	firings    []Firing
}

// activeAlert is an alert that is pending or firing.
type activeAlert struct {
	labels    labels.Labels
	pendingAt time.Time
	firedAt   time.Time // zero while it is pending
	lostAt    time.Time // when its expression ceased to hold while it fires on; zero while it holds
}

func newRuling(hold, keep time.Duration) *ruling {
	return &ruling{hold: hold, keep: keep, active: map[uint64]*activeAlert{}}
}

// follow takes in the values of the alert's expression at some steps, which come after those before.
func (r *ruling) follow(values promql.Matrix, steps []time.Time) {
	at := map[uint64]promql.Series{}
	for _, s := range values {
		at[s.Metric.Hash()] = s
	}
	for hash, s := range at {
		if r.active[hash] == nil {
			r.active[hash] = &activeAlert{labels: s.Metric}
		}
	}
	for hash, a := range r.active {
		points := at[hash].Floats
		for _, step := range steps {
			holds := len(points) > 0 && points[0].T == step.UnixMilli()
			if holds {
				points = points[1:]
			}
			r.evaluate(a, holds, step)
		}
		if a.pendingAt.IsZero() {
			delete(r.active, hash)
		}
	}
}

// evaluate brings one alert to a step at which its expression holds or does not.
func (r *ruling) evaluate(a *activeAlert, holds bool, at time.Time) {
	switch {
	case holds && a.pendingAt.IsZero():
		a.pendingAt = at
	case holds:
		a.lostAt = time.Time{}
	case a.firedAt.IsZero():
		a.pendingAt = time.Time{}
	default:
		if a.lostAt.IsZero() {
			a.lostAt = at
		}
		if r.keep == 0 || at.Sub(a.lostAt) >= r.keep {
			r.firings = append(r.firings, a.newFiring(at))
			*a = activeAlert{labels: a.labels}
		}
	}
	if !a.pendingAt.IsZero() && a.firedAt.IsZero() && at.Sub(a.pendingAt) >= r.hold {
		a.firedAt = at
	}
}

// finish returns all firings, those that go on among them.
func (r *ruling) finish() []Firing {
	for _, a := range r.active {
		if !a.firedAt.IsZero() {
			r.firings = append(r.firings, a.newFiring(time.Time{}))
		}
	}
	return r.firings
}

func (a *activeAlert) newFiring(ended time.Time) Firing {
	of := a.labels.Map()
	delete(of, model.MetricNameLabel)
	return Firing{Labels: of, PendingAt: a.pendingAt, FiredAt: a.firedAt, EndedAt: ended, Causes: []Cause{}}
}
