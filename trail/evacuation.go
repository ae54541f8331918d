package trail

import (
	"slices"
	"strings"
	"time"
)

// Outcome is how an evacuation or a migration ended; empty while it goes on.
type Outcome string

// The outcomes of evacuations (migrated, cancelled, vmi_gone) and of migrations (succeeded, failed, aborted).
const (
	OutcomeMigrated  Outcome = "migrated"
	OutcomeCancelled Outcome = "cancelled"
	OutcomeVMIGone   Outcome = "vmi_gone"
	OutcomeSucceeded Outcome = "succeeded"
	OutcomeFailed    Outcome = "failed"
	OutcomeAborted   Outcome = "aborted"
)

// Evacuation is the episode from a mark to its end; it owns the attempts that KubeVirt made for it.
type Evacuation struct {
	ID                 FactID         `json:"evacuation_id"` // of the fact that opened it
	Namespace          string         `json:"namespace"`
	VMI                string         `json:"vmi"`
	VMIUID             string         `json:"vmi_uid"`
	Node               string         `json:"node"` // that the guest is to leave
	Strategy           string         `json:"strategy,omitempty"`
	MarkedAt           time.Time      `json:"marked_at"`
	MarkedBy           string         `json:"marked_by"` // MarkedByMark, MarkedByTaint or MarkedByMigration
	Trigger            Trigger        `json:"trigger"`
	Requester          string         `json:"requester,omitempty"` // user name; empty where unknown
	RequesterClass     RequesterClass `json:"requester_class"`
	Impersonator       string         `json:"impersonator,omitempty"` // user name of who acted as the requester; empty where nobody did
	Confidence         Confidence     `json:"confidence"`
	Evidence           string         `json:"evidence"`
	EndedAt            time.Time      `json:"ended_at,omitzero"`
	Outcome            Outcome        `json:"outcome,omitempty"`
	CancelledBy        string         `json:"cancelled_by,omitempty"`        // user name; empty where it was not cancelled or where by whom is unknown
	CancelImpersonator string         `json:"cancel_impersonator,omitempty"` // user name of who acted as CancelledBy; empty where nobody did
	Attempts           int            `json:"attempts"`
	FailedAttempts     int            `json:"failed_attempts"`          // aborted ones are not counted
	FirstFailedAt      time.Time      `json:"first_failed_at,omitzero"` // when the first of them failed; zero where none has
	LastFailureClass   FailureClass   `json:"last_failure_class,omitempty"`
	LastFailureReason  FailureReason  `json:"last_failure_reason,omitempty"`
	NextRetryAt        time.Time      `json:"next_retry_at,omitzero"`       // before which KubeVirt makes no next attempt; zero unless one waits for that
	FulfilledBy        string         `json:"fulfilled_by,omitempty"`       // UID of the migration that moved the guest, no matter who started it
	InProgress         string         `json:"in_progress,omitempty"`        // value of the pod's annotation eviction-in-progress; empty where none was seen
	InProgressLostAt   time.Time      `json:"in_progress_lost_at,omitzero"` // when it was last taken off while the evacuation was open; zero while it is there
	Objective          Span           `json:"objective_seconds,omitempty"`  // within which it was to be done; zero where its requester has none
	ObjectiveMet       *bool          `json:"objective_met,omitempty"`      // whether it was; nil where that is not decided, or was not put to the test
	Outlook            Outlook        `json:"outlook,omitempty"`            // whether it can succeed as things are; empty where it is over, or nothing is in its way
	OutlookBecause     string         `json:"outlook_because,omitempty"`
	OutlookChange      string         `json:"outlook_change,omitempty"` // the smallest change that would help; empty where none is needed
	SeenLate           bool           `json:"seen_late"`
	Policy             string         `json:"policy,omitempty"` // SettingsInForce.Policy when it began
}

// RetryOverdue returns how long ago the next attempt was due at a time; zero where none is due. Column overdue of the view evacuations is the same, as of when the
// cluster was last seen.
func (e Evacuation) RetryOverdue(now time.Time) time.Duration {
	if e.Outcome != "" || e.NextRetryAt.IsZero() {
		return 0
	}
	return max(now.Sub(e.NextRetryAt), 0)
}

// DescribeLastFailure returns the class and the reason of the last failed attempt, such as "data transfer, libvirt error".
func (e Evacuation) DescribeLastFailure() string {
	return formatFailure(e.LastFailureClass, e.LastFailureReason)
}

// What opened an evacuation.
const (
	MarkedByMark      = "mark"      // status.evacuationNodeName
	MarkedByTaint     = "taint"     // the drain taint: KubeVirt then marks no VMI
	MarkedByMigration = "migration" // its first attempt; the mark itself was not seen
)

// evacuation is an Evacuation with what assigning attempts needs.
type evacuation struct {
	Evacuation
	request *request  // that left the mark; nil where none was seen
	late    bool      // the opening came from a list
	openAt  time.Time // our time of the opening
	closeAt time.Time // our time of the end; zero while it is open
	endLate bool      // the end was not seen when it happened
	endedBy FactID    // the fact that showed the end; zero while it is open

	running    bool      // an attempt goes on
	triedUntil time.Time // when the last of its other attempts was over
	untainted  time.Time // when the drain taint that opened it was taken off; zero where it stands, or none was
}

// markedEvacuations returns the evacuations that marks opened on one VMI, in their order; at most the last is open.
func markedEvacuations(l *life, env *Env) []*evacuation {
	var out []*evacuation
	var open *evacuation
	end := func(f Fact, outcome Outcome) {
		if open != nil {
			open.EndedAt, open.closeAt, open.Outcome = maxTime(l.leftAt(open.Node, f), open.MarkedAt), f.ObservedAt, outcome // clocks may be apart
			open.endLate, open.endedBy = f.Late || f.Kind == KindEvacuationMarked, f.ID
			open.FulfilledBy = l.fulfilledBy(open, f)
			open = nil
		}
	}
	node := ""
	for _, f := range l.facts {
		switch f.Kind {
		case KindVMIPlaced:
			node = f.Node
		case KindEvacuationMarked:
			end(f, outcomeByNode(open, node)) // marked again, the unmarking between was not seen
			open = newEvacuation(l, f, env)
			out = append(out, open)
		case KindEvacuationUnmarked:
			outcome := OutcomeCancelled
			if f.Reason == ReasonMigrated {
				outcome = OutcomeMigrated
			}
			end(f, outcome)
		case KindVMIEnded:
			end(f, OutcomeVMIGone)
		default:
		}
	}
	return out
}

// splitRemarked separates the evacuations that a gap made one: a request that was answered as having marked the VMI proves
// that no mark was there just before. The earlier evacuation ended when somebody cancelled it, at the latest then.
func (l *life) splitRemarked(pods map[string]*launcher, env *Env) {
	for i := 0; i < len(l.evacuations); i++ {
		e := l.evacuations[i]
		again := l.markedAgain(e, pods, env)
		if again == nil {
			continue
		}
		at := again.Detail.(*RequestDetail).AnsweredAt
		next := *e
		next.ID, next.MarkedAt, next.late, next.SeenLate = hashID("marked again", again.ID.String()), at, true, true
		e.EndedAt, e.closeAt, e.Outcome, e.FulfilledBy, e.endLate, e.endedBy = at, at, OutcomeCancelled, "", true, FactID{}
		l.evacuations = slices.Insert(l.evacuations, i+1, &next)
	}
}

// markedAgain finds the first request that left a mark while the evacuation seems to have been open, long after its own. It
// must lie behind a gap: else the watch has seen that the mark never went.
func (l *life) markedAgain(e *evacuation, pods map[string]*launcher, env *Env) *Fact {
	var first *Fact
	if !env.blindBetween(e.MarkedAt, e.EndedAt) {
		return nil
	}
	for _, p := range pods {
		asked := env.findPodRequests(p.podSubject())
		for i := range asked {
			f := &asked[i]
			d, ok := f.Detail.(*RequestDetail)
			if !ok || d.Action != ActionEvict || d.DryRun || d.Answer() != AnswerMarked || p.vmiUID != l.uid || p.node != e.Node {
				continue
			}
			afterwards := f.OccurredAt.After(e.MarkedAt.Add(markFar)) && f.OccurredAt.After(e.openAt) && (e.EndedAt.IsZero() || d.AnsweredAt.Before(e.EndedAt))
			if afterwards && env.blindBetween(e.MarkedAt, d.AnsweredAt) && (first == nil || f.OccurredAt.Before(first.OccurredAt)) {
				first = f
			}
		}
	}
	return first
}

// leftAt returns the time of an end: where a list showed it together with the guest's arrival elsewhere, that of the
// arrival.
func (l *life) leftAt(node string, end Fact) time.Time {
	if end.Kind == KindVMIEnded && l.endedAt.Before(end.OccurredAt) {
		return l.endedAt
	}
	for _, p := range l.placements {
		if end.Late && p.SeenLate && p.Node != node && p.seenAt.Equal(end.ObservedAt) {
			return p.FromAt
		}
	}
	return end.OccurredAt
}

// outcomeByNode judges an evacuation by where the guest is.
func outcomeByNode(e *evacuation, node string) Outcome {
	if e != nil && node != "" && node != e.Node {
		return OutcomeMigrated
	}
	return OutcomeCancelled
}

// fulfilledBy names the migration that moved the guest away while the evacuation was open.
func (l *life) fulfilledBy(e *evacuation, end Fact) string {
	if e.Outcome != OutcomeMigrated {
		return ""
	}
	by := ""
	for _, p := range l.placements {
		if p.Node != e.Node && !p.FromAt.After(end.OccurredAt.Add(time.Second)) && p.arrivalMigrationUID() != "" {
			by = p.arrivalMigrationUID()
		}
	}
	return by
}

func newEvacuation(l *life, f Fact, env *Env) *evacuation {
	e := &evacuation{late: f.Late, openAt: f.ObservedAt}
	e.Evacuation = Evacuation{
		ID: f.ID, Namespace: l.namespace, VMI: l.vmi, VMIUID: l.uid, Node: f.Node,
		MarkedAt: f.OccurredAt, MarkedBy: MarkedByMark, SeenLate: f.Late,
	}
	d, _ := f.Detail.(*MarkDetail)
	if d != nil {
		e.Strategy = d.Strategy
	}
	a := attributeMark(f, d, env)
	e.Trigger, e.RequesterClass, e.Confidence, e.Evidence = a.trigger, a.class, a.confidence, a.evidence
	return e
}

// summarizeAttempts counts the attempts of each evacuation of one VMI, and says when the next one may come.
func summarizeAttempts(l *life, migrations []*migration, facts []Fact) {
	for _, e := range l.evacuations {
		for i, m := range migrations {
			if m.evacuation != e {
				continue
			}
			e.Attempts++
			if until := backoffOf(m, migrations[:i]); until.After(m.CreatedAt) { // a failure before this evacuation holds it, too
				e.NextRetryAt = until
			}
			switch {
			case m.Outcome == OutcomeFailed:
				e.FailedAttempts++
				if e.FirstFailedAt.IsZero() {
					e.FirstFailedAt = m.FinishedAt
				}
				e.LastFailureClass, e.LastFailureReason = m.FailureClass, m.FailureReason
				e.NextRetryAt = m.retryAt
			case !m.SchedulingAt.IsZero() || m.Outcome != "": // it waits no more
				e.NextRetryAt = time.Time{}
			}
		}
		if e.Outcome != "" || !l.deletedAt.IsZero() {
			e.NextRetryAt = time.Time{}
		}
		e.setInProgress(l, facts)
	}
}

// setInProgress sets what the annotation eviction-in-progress on the source pod was while the evacuation was open. The watch of
// pods may show it before the one of VMIs shows the mark.
func (e *evacuation) setInProgress(l *life, facts []Fact) {
	for _, f := range facts {
		if f.Reason != ReasonEvictionInProgress || f.VMIUID != l.uid || f.Node != e.Node || !e.EndedAt.IsZero() && !f.OccurredAt.Before(e.EndedAt) {
			continue
		}
		switch set := f.Kind == KindAnnotationSet; {
		case set:
			e.InProgress, e.InProgressLostAt = strings.TrimPrefix(f.Value, "="), time.Time{}
		case f.OccurredAt.Before(e.MarkedAt):
			e.InProgress = ""
		default:
			e.InProgressLostAt = f.OccurredAt
		}
	}
}

// isOpenAt reports whether the evacuation was open at a time.
func (e *Evacuation) isOpenAt(t time.Time) bool {
	return interval{e.MarkedAt, e.EndedAt}.containsTime(t)
}
