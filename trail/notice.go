package trail

import (
	"cmp"
	"encoding/json"
	"fmt"
	"time"
)

// NoticeKind is what programs outside of evictrail are notified of.
type NoticeKind string

// The kinds of notices.
const (
	NoticeLoopOpened      NoticeKind = "loop_opened"
	NoticeLoopClosed      NoticeKind = "loop_closed"
	NoticeEvacuationStuck NoticeKind = "evacuation_stuck" // its first attempt has failed
	NoticeEvacuationEnded NoticeKind = "evacuation_ended"
	NoticeGuestLost       NoticeKind = "guest_lost"
	NoticeDrainStarted    NoticeKind = "drain_started"
	NoticeDrainEnded      NoticeKind = "drain_ended"
)

// NoticeKinds lists all of them.
func NoticeKinds() []NoticeKind { return noticeLabels.values() }

// Label returns the label of the kind.
func (k NoticeKind) Label() Label { return noticeLabels.of(k) }

// IsTrouble reports whether a notice is of the beginning of a problem.
func (k NoticeKind) IsTrouble() bool {
	return k == NoticeLoopOpened || k == NoticeEvacuationStuck || k == NoticeGuestLost
}

// Delivery is what became of a notice that was sent.
type Delivery string

// What may become of a notice.
const (
	DeliveryTaken   Delivery = "taken"
	DeliveryRefused Delivery = "refused" // for good: it is left out
	DeliveryFailed  Delivery = "failed"  // it is sent again
)

// Deliveries lists all of them.
func Deliveries() []Delivery { return deliveryLabels.values() }

// Label returns the label of what became of it.
func (d Delivery) Label() Label { return deliveryLabels.of(d) }

// Notice is one thing that programs outside of evictrail are notified of. It comes from a row of a view.
type Notice struct {
	ID        FactID // of its kind and row: the same however often it is sent
	Kind      NoticeKind
	Cluster   string
	At        time.Time // when it happened
	Namespace string    // of the VM; empty where it is about no one VM
	VMI       string
	VMIUID    string
	Node      string          // empty where it is about no one node
	Sentence  string          // for people
	Discreet  string          // the same for anyone who may see the VM or node: it names no other VM, and not who asked
	Key       FactID          // of the row
	Row       json.RawMessage // of the view, as lists of the HTTP API have it
	ChangedAt time.Time       // when the row last changed, by the clock of the database
}

// NoticeViews lists the views of whose rows notices are made.
func NoticeViews() []View { return []View{ViewLoops, ViewEvacuations, ViewDrains, ViewPlacements} }

// noticeRow has the columns of NoticeViews that notices need.
type noticeRow struct {
	Cluster   string `json:"cluster"`
	Namespace string `json:"namespace"`
	VMI       string `json:"vmi"`
	VMIUID    string `json:"vmi_uid"`
	Node      string `json:"node"`

	ChangedAt time.Time `json:"changed_at"`

	LoopID   FactID    `json:"loop_id"`
	LoopKind LoopKind  `json:"kind"`
	OpenedAt time.Time `json:"opened_at"`
	ClosedAt time.Time `json:"closed_at"`
	ClosedBy LoopEnd   `json:"closed_by"`
	Summary  string    `json:"summary"`

	EvacuationID      FactID        `json:"evacuation_id"`
	FailedAttempts    int           `json:"failed_attempts"`
	FirstFailedAt     time.Time     `json:"first_failed_at"`
	LastFailureClass  FailureClass  `json:"last_failure_class"`
	LastFailureReason FailureReason `json:"last_failure_reason"`
	Attempts          int           `json:"attempts"`

	DrainID   FactID    `json:"drain_id"`
	StartedAt time.Time `json:"started_at"`
	Requester string    `json:"requester"`
	VMIsTotal int       `json:"vmis_total"`
	VMIsLeft  int       `json:"vmis_left"`

	EndedAt time.Time `json:"ended_at"` // of evacuations and drains
	Outcome string    `json:"outcome"`

	PlacementID FactID    `json:"placement_id"`
	ToAt        time.Time `json:"to_at"`
	EndedBy     Ending    `json:"ended_by"`
}

// NoticesOf returns the notices that a row of one of NoticeViews makes, in the order of their times. The row is as lists of the HTTP
// API have it.
func NoticesOf(v View, row json.RawMessage) ([]Notice, error) {
	var r noticeRow
	if err := json.Unmarshal(row, &r); err != nil {
		return nil, fmt.Errorf("read a row of %s: %w", v.Name, err)
	}
	var out []Notice
	add := func(kind NoticeKind, at time.Time, key FactID, sentence, discreet string) {
		if at.IsZero() {
			return
		}
		out = append(out, Notice{
			ID: hashID("notice", r.Cluster, string(kind), key.String()), Kind: kind, Cluster: r.Cluster, At: at.UTC(),
			Namespace: r.Namespace, VMI: r.VMI, VMIUID: r.VMIUID, Node: r.Node, Sentence: sentence, Discreet: cmp.Or(discreet, sentence), Key: key, Row: row, ChangedAt: r.ChangedAt,
		})
	}
	switch v.Name {
	case ViewLoops.Name:
		if r.ClosedBy != LoopRefuted { // of which it turned out that it never was
			add(NoticeLoopOpened, r.OpenedAt, r.LoopID, r.Summary, r.describeLoop())
		}
		add(NoticeLoopClosed, r.ClosedAt, r.LoopID, r.Summary+r.describeLoopEnd(), r.describeLoop()+r.describeLoopEnd())
	case ViewEvacuations.Name:
		add(NoticeEvacuationStuck, r.FirstFailedAt, r.EvacuationID, r.describeStuck(), "")
		add(NoticeEvacuationEnded, r.EndedAt, r.EvacuationID, r.describeEvacuationEnd(), "")
	case ViewDrains.Name:
		add(NoticeDrainStarted, r.StartedAt, r.DrainID, r.describeDrain(r.Requester), r.describeDrain(""))
		add(NoticeDrainEnded, r.EndedAt, r.DrainID, r.describeDrainEnd(), "")
	case ViewPlacements.Name:
		if r.EndedBy.ByPlatform() || r.EndedBy == EndingFailed {
			add(NoticeGuestLost, r.ToAt, r.PlacementID, fmt.Sprintf("%s/%s went down on %s. %s", r.Namespace, r.VMI, r.Node, r.EndedBy.Label().Text), "")
		}
	}
	return out, nil
}

func (r noticeRow) describeLoop() string {
	l := r.LoopKind.Label()
	return fmt.Sprintf("A loop, %s: %s", l.Short, l.Text)
}

func (r noticeRow) describeLoopEnd() string {
	return fmt.Sprintf(" It is over: %s.", r.ClosedBy.Label().Short)
}

func (r noticeRow) describeStuck() string {
	return fmt.Sprintf("%s/%s is to leave %s, and %s failed, the last one by %s.",
		r.Namespace, r.VMI, r.Node, FormatCount(r.FailedAttempts, "attempt"), formatFailure(r.LastFailureClass, r.LastFailureReason))
}

func (r noticeRow) describeEvacuationEnd() string {
	return fmt.Sprintf("The evacuation of %s/%s from %s is over after %s: %s.",
		r.Namespace, r.VMI, r.Node, FormatCount(r.Attempts, "attempt"), Outcome(r.Outcome).Label().Short)
}

func (r noticeRow) describeDrain(requester string) string {
	by := ""
	if requester != "" {
		by = " by " + requester
	}
	return fmt.Sprintf("%s is drained%s: %s to leave it.", r.Node, by, FormatCount(r.VMIsTotal, "VM"))
}

func (r noticeRow) describeDrainEnd() string {
	return fmt.Sprintf("The drain of %s is over: %s. %s left, of %d.", r.Node, DrainOutcome(r.Outcome).Label().Short, FormatCount(r.VMIsLeft, "VM"), r.VMIsTotal)
}
