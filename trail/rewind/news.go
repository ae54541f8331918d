package rewind

import (
	"github.com/evictrail/evictrail/trail"
)

// addMark reports that an evacuation began. What became of it is not known then.
func (r *Replay) addMark(e *trail.Evacuation) {
	row := *e
	row.Outcome, row.ObjectiveMet = "", nil
	r.news.Evacuations = append(r.news.Evacuations, trail.RowChange[trail.Evacuation]{ID: e.ID.String(),
		Change: trail.ChangeNew, Row: row})
}

// addEnd reports that an evacuation ended.
func (r *Replay) addEnd(e *trail.Evacuation) {
	row := *e
	row.ObjectiveMet = nil
	r.news.Evacuations = append(r.news.Evacuations, trail.RowChange[trail.Evacuation]{ID: e.ID.String(),
		Change: trail.ChangeOther, Row: row})
}

// addJudgement reports that it is decided whether an evacuation kept to its objective: when it ends in time, or goes on
// when its time is over.
func (r *Replay) addJudgement(e *trail.Evacuation) {
	row, was := *e, string(e.Outcome)
	if e.EndedAt.IsZero() || e.EndedAt.After(e.JudgedAt()) {
		row.Outcome, was = "", ""
	}
	r.news.Evacuations = append(r.news.Evacuations, trail.RowChange[trail.Evacuation]{
		ID: e.ID.String(), Change: trail.ChangeOther, Row: row, Was: was,
	})
}

// addMigrationEnd reports that a migration ended.
func (r *Replay) addMigrationEnd(m *trail.Migration) {
	row := *m
	row.Benefit, row.BenefitFinal = "", false
	r.news.Migrations = append(r.news.Migrations, trail.RowChange[trail.Migration]{ID: m.UID,
		Change: trail.ChangeOther, Row: row})
}

// addBenefit reports what came of a move.
func (r *Replay) addBenefit(m *trail.Migration) {
	if m.Benefit == "" || !m.BenefitFinal {
		return
	}
	r.news.Migrations = append(r.news.Migrations, trail.RowChange[trail.Migration]{
		ID: m.UID, Change: trail.ChangeOther, Row: *m, Was: string(m.Outcome),
	})
}

func (r *Replay) addPlacementEnd(p *trail.Placement) {
	r.news.Placements = append(r.news.Placements, trail.RowChange[trail.Placement]{ID: p.ID.String(),
		Change: trail.ChangeOther, Row: *p})
}

func (r *Replay) addDecision(d *trail.Decision) {
	r.news.Decisions = append(r.news.Decisions, trail.RowChange[trail.Decision]{ID: d.ID.String(),
		Change: trail.ChangeNew, Row: *d})
}

func (r *Replay) addLoop(l *trail.Loop) {
	r.news.Loops = append(r.news.Loops, trail.RowChange[trail.Loop]{ID: l.ID.String(), Change: trail.ChangeNew,
		Row: *l})
}

func (r *Replay) addRequest(q *trail.EvictionRequest) {
	r.news.Requests = append(r.news.Requests, trail.RowChange[trail.EvictionRequest]{ID: q.ID.String(),
		Change: trail.ChangeNew, Row: *q})
}
