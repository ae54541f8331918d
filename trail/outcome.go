package trail

import (
	"cmp"
	"slices"
	"strings"
	"time"
)

// Migration is one VMIM from its creation to its end.
type Migration struct {
	UID                string         `json:"migration_uid"`
	Name               string         `json:"migration"`
	Namespace          string         `json:"namespace"`
	VMI                string         `json:"vmi"`
	VMIUID             string         `json:"vmi_uid,omitempty"`
	Trigger            Trigger        `json:"trigger"`
	TriggerConfidence  Confidence     `json:"trigger_confidence"`
	TriggerEvidence    string         `json:"trigger_evidence"`
	Requester          string         `json:"requester,omitempty"` // user name of who asked for it; empty where unknown
	RequesterClass     RequesterClass `json:"requester_class"`
	Impersonator       string         `json:"impersonator,omitempty"` // user name of who acted as the requester; empty where nobody did
	SourceIP           string         `json:"source_ip,omitempty"`    // of the request, as RequestDetail has it
	EvacuationID       *FactID        `json:"evacuation_id,omitempty"`
	Attempt            int            `json:"attempt,omitempty"` // from 1 within its evacuation; 0 outside of any
	Priority           string         `json:"priority,omitempty"`
	SourceNode         string         `json:"source_node,omitempty"`
	TargetNode         string         `json:"target_node,omitempty"`
	CreatedAt          time.Time      `json:"created_at"`
	PendingAt          time.Time      `json:"pending_at,omitzero"`
	SchedulingAt       time.Time      `json:"scheduling_at,omitzero"`
	ScheduledAt        time.Time      `json:"scheduled_at,omitzero"`
	PreparingTargetAt  time.Time      `json:"preparing_target_at,omitzero"`
	TargetReadyAt      time.Time      `json:"target_ready_at,omitzero"`
	RunningAt          time.Time      `json:"running_at,omitzero"`
	FinishedAt         time.Time      `json:"finished_at,omitzero"`
	Phase              string         `json:"phase,omitempty"`       // the last one seen
	WaitReason         WaitReason     `json:"wait_reason,omitempty"` // why it has no target pod yet or, once it has, for what it waited longest; empty where it did not wait
	WaitDetail         string         `json:"wait_detail,omitempty"`
	Outcome            Outcome        `json:"outcome,omitempty"`
	FailureClass       FailureClass   `json:"failure_class,omitempty"`
	FailureReason      FailureReason  `json:"failure_reason,omitempty"`
	FailureText        string         `json:"failure_text,omitempty"` // migrationState.failureReason as it came
	FailureEvidence    string         `json:"failure_evidence,omitempty"`
	AbortedBy          string         `json:"aborted_by,omitempty"`         // user name of who deleted it; empty where it was not aborted or where unknown
	AbortImpersonator  string         `json:"abort_impersonator,omitempty"` // user name of who acted as AbortedBy; empty where nobody did
	Mode               string         `json:"mode,omitempty"`
	Policy             string         `json:"policy,omitempty"`
	Network            string         `json:"network,omitempty"`              // migrations.network of the KubeVirt configuration when it began; empty: the pod network, or not known
	AllowAutoConverge  bool           `json:"allow_auto_converge,omitempty"`  // KubeVirt might slow the guest down, as the configuration in force said
	AllowPostCopy      bool           `json:"allow_post_copy,omitempty"`      // KubeVirt might move the guest before its memory, as the configuration in force said
	PostCopyAt         time.Time      `json:"post_copy_at,omitzero"`          // when it was first seen in post-copy; zero where only its end showed that
	Convergence        Convergence    `json:"convergence,omitempty"`          // empty where that did not show
	GuestMemory        int64          `json:"guest_memory,omitempty"`         // bytes; zero where unknown
	DataProcessed      *int64         `json:"data_processed,omitempty"`       // bytes; nil where unknown, as all that follows
	DataRemaining      *int64         `json:"data_remaining,omitempty"`       // bytes
	DirtyMemoryRate    *int64         `json:"dirty_memory_rate,omitempty"`    // bytes a second
	MemoryTransferRate *int64         `json:"memory_transfer_rate,omitempty"` // bytes a second
	GuestPause         *float64       `json:"guest_pause,omitempty"`          // seconds
	TransferLack       LoadLack       `json:"transfer_lack,omitempty"`        // why DataProcessed is not known, as the source said that was asked
	SeenLate           bool           `json:"seen_late"`                      // its creation or its end came from a list
	EndEvent           *FactID        `json:"end_event,omitempty"`            // the fact that showed the end
	PhaseSince         time.Time      `json:"phase_since,omitzero"`           // since when it is in its phase
	EndSeenAt          time.Time      `json:"end_seen_at,omitzero"`           // the end by the best clock: finer than FinishedAt where it was seen live
	Need               Need           `json:"need,omitempty"`                 // whether the source had to be relieved when it began; empty where it was not made for that
	NeedBecause        string         `json:"need_because,omitempty"`
	LastOverAt         time.Time      `json:"source_last_over_at,omitzero"` // when the source was last over its threshold before a move that was not needed; zero where that was not seen
	Benefit            Benefit        `json:"benefit,omitempty"`            // what came of it; empty where it did not move the guest, or was not made to relieve its node
	BenefitBecause     string         `json:"benefit_because,omitempty"`
	BenefitFinal       bool           `json:"benefit_final,omitempty"` // nothing is looked at any more
	AskedBy            RequesterClass `json:"-"`                       // who asked for the evacuation that it is an attempt of; empty outside of any
	Phases             []PhaseTime    `json:"-"`                       // in the order of their times

	waited waited
}

// migration is a Migration with what deriving it needs.
type migration struct {
	Migration
	spec       *SeenDetail
	seenAt     time.Time // our time of the first sight
	listed     bool      // the first sight was a list
	evacuation *evacuation
	result     ResultDetail // merged over what the VMI and the VMIM said, latest first
	deletion   *EndDetail
	gone       *EndDetail
	goneAt     time.Time
	goneLate   bool      // a list showed that it was gone: how it ended may not have been seen
	deletedAt  time.Time // when its deletion was asked for
	retryAt    time.Time // the end of the backoff that its failure began; zero where it began none
	conditions []Fact    // in the order of their times
	aborting   bool      // condition migrationAbortRequested
	pods       []Fact
	events     []KubeEventDetail
	loads      []*LoadDetail // in the order of their times
	transfer   *TransferDetail
	failedSeen bool
	epoch      Epoch // in which its VMIM was last recorded from the beginning: what earlier ones recorded of it was undone
}

// migrationsOf gathers the migrations of one VM, in the order of their creation. Only those whose VMIM was seen have
// a row; what a VMI says about others stays a fact.
func migrationsOf(facts []Fact, lives []*life) []*migration {
	byUID := map[string]*migration{}
	var out []*migration
	for _, f := range facts {
		if f.Kind != KindMigrationSeen {
			continue
		}
		epoch := EpochOf(f.Object.ResourceVersion)
		if m := byUID[f.MigrationUID]; m != nil { // a restore of the cluster took it back
			m.epoch = max(m.epoch, epoch)
			continue
		}
		m := newMigration(f)
		m.epoch = epoch
		byUID[m.UID] = m
		out = append(out, m)
	}
	for _, f := range facts {
		m := byUID[f.MigrationUID]
		if m == nil || f.Object.Kind == ObjectMigration && EpochOf(f.Object.ResourceVersion) < m.epoch {
			continue
		}
		m.addFact(f)
	}
	for _, m := range out {
		m.completeFields(lives)
	}
	slices.SortStableFunc(out, func(a, b *migration) int {
		return cmp.Or(a.CreatedAt.Compare(b.CreatedAt), a.seenAt.Compare(b.seenAt), strings.Compare(a.UID, b.UID))
	})
	return out
}

func newMigration(f Fact) *migration {
	m := &migration{seenAt: f.ObservedAt, listed: f.Late, spec: &SeenDetail{}}
	m.Migration = Migration{
		UID: f.MigrationUID, Name: f.Migration, Namespace: f.Namespace, VMI: f.VMI, CreatedAt: f.OccurredAt, SeenLate: f.Late,
	}
	if d, ok := f.Detail.(*SeenDetail); ok {
		m.spec = d
		m.Priority, m.SourceNode = d.Priority, d.EvacuationNode
	}
	return m
}

// addFact takes in one fact that names the migration.
func (m *migration) addFact(f Fact) {
	switch d := f.Detail.(type) {
	case *ResultDetail:
		m.addResult(f, d)
	case *EndDetail:
		if f.Kind == KindMigrationGone {
			m.gone, m.goneAt, m.goneLate = d, f.OccurredAt, f.Late
		} else {
			m.deletion, m.deletedAt = d, f.OccurredAt
		}
	case *ConditionDetail:
		m.conditions = append(m.conditions, f)
		if d.Type == ConditionAbortRequested {
			m.aborting = m.aborting || d.Status == "True"
		}
	case *PodDetail:
		m.pods = append(m.pods, f)
		m.VMIUID = cmp.Or(f.VMIUID, m.VMIUID)
	case *KubeEventDetail:
		m.events = append(m.events, *d)
	case *LoadDetail:
		m.loads = append(m.loads, d)
	case *TransferDetail:
		if m.transfer == nil || d.Known() {
			m.transfer = d
		}
	}
	if f.Kind == KindMigrationPhase {
		m.addPhase(f)
	}
}

// addResult merges a migration state: what a later one leaves out, an earlier one may have said. The state of the VMI
// names the VMI's own UID, which the VMIM does not.
func (m *migration) addResult(f Fact, d *ResultDetail) {
	m.VMIUID = cmp.Or(f.VMIUID, m.VMIUID)
	r := &m.result
	r.SourceNode, r.TargetNode = cmp.Or(d.SourceNode, r.SourceNode), cmp.Or(d.TargetNode, r.TargetNode)
	r.Mode, r.Policy = cmp.Or(d.Mode, r.Mode), cmp.Or(d.Policy, r.Policy)
	r.FailureReason, r.AbortStatus = cmp.Or(d.FailureReason, r.FailureReason), cmp.Or(d.AbortStatus, r.AbortStatus)
	r.Failed, r.Completed = r.Failed || d.Failed, r.Completed || d.Completed
	r.AbortRequested = r.AbortRequested || d.AbortRequested
	r.CompletionTimeoutPerGiB = cmp.Or(d.CompletionTimeoutPerGiB, r.CompletionTimeoutPerGiB)
	r.ProgressTimeout = cmp.Or(d.ProgressTimeout, r.ProgressTimeout)
	r.GuestMemory = cmp.Or(d.GuestMemory, r.GuestMemory)
	m.AllowAutoConverge, m.AllowPostCopy = m.AllowAutoConverge || d.AllowAutoConverge, m.AllowPostCopy || d.AllowPostCopy
	if d.Mode == modePostCopy && m.PostCopyAt.IsZero() && d.EndedAt.IsZero() && !f.Late {
		m.PostCopyAt = f.ObservedAt
	}
	if !d.StartedAt.IsZero() {
		r.StartedAt = d.StartedAt
	}
	if !d.EndedAt.IsZero() {
		r.EndedAt = d.EndedAt
	}
}

func (m *migration) addPhase(f Fact) {
	m.Phases = append(m.Phases, PhaseTime{f.Value, f.OccurredAt})
	switch f.Value {
	case PhasePending:
		m.PendingAt = f.OccurredAt
	case PhaseScheduling:
		m.SchedulingAt = f.OccurredAt
	case PhaseScheduled:
		m.ScheduledAt = f.OccurredAt
	case PhasePreparingTarget:
		m.PreparingTargetAt = f.OccurredAt
	case PhaseTargetReady:
		m.TargetReadyAt = f.OccurredAt
	case PhaseRunning:
		m.RunningAt = f.OccurredAt
	case PhaseSucceeded, PhaseFailed:
		m.FinishedAt = f.OccurredAt
		m.failedSeen = f.Value == PhaseFailed
		id := f.ID
		m.EndEvent, m.EndSeenAt = &id, bestTime(f)
		m.SeenLate = m.SeenLate || f.Late
	}
}

// restorePhases derives the phases of a migration that was read from its row from their times. Those of halves that wait for each other
// (WaitingForSync, Synchronizing) have no time there once they are over.
func (m *Migration) restorePhases() {
	if m.Phases != nil {
		return
	}
	times := []PhaseTime{
		{PhasePending, m.PendingAt}, {PhaseScheduling, m.SchedulingAt}, {PhaseScheduled, m.ScheduledAt},
		{PhasePreparingTarget, m.PreparingTargetAt}, {PhaseTargetReady, m.TargetReadyAt}, {PhaseRunning, m.RunningAt},
	}
	if m.Phase == PhaseSucceeded || m.Phase == PhaseFailed {
		times = append(times, PhaseTime{m.Phase, m.FinishedAt})
	}
	if !slices.ContainsFunc(times, func(p PhaseTime) bool { return p.Phase == m.Phase }) {
		times = append(times, PhaseTime{m.Phase, m.PhaseSince})
	}
	m.Phases = slices.DeleteFunc(times, func(p PhaseTime) bool { return p.At.IsZero() })
	lastPhase(m.Phases)
}

// completeFields fills in what follows from the gathered facts: nodes, VMI, last phase, outcome.
func (m *migration) completeFields(lives []*life) {
	l := lifeOf(lives, m.VMIUID)
	if l == nil && m.VMIUID == "" {
		l = lifeAt(lives, m.CreatedAt)
	}
	if l != nil {
		m.VMIUID = l.uid
	}
	m.SourceNode = cmp.Or(m.result.SourceNode, m.SourceNode)
	m.TargetNode = m.result.TargetNode
	for _, p := range m.pods {
		m.TargetNode = cmp.Or(m.TargetNode, p.Node)
	}
	m.Mode, m.Policy, m.FailureText = m.result.Mode, m.result.Policy, m.result.FailureReason
	m.Phase = lastPhase(m.Phases)
	if n := len(m.Phases); n > 0 {
		m.PhaseSince = m.Phases[n-1].At
	}
	m.Outcome = m.computeOutcome(l)
	switch {
	case !m.FinishedAt.IsZero():
	case m.gone != nil:
		m.FinishedAt = m.goneAt
		if end := m.result.EndedAt; !end.IsZero() && end.Before(m.goneAt) { // the VMI kept what the migration took with it
			m.FinishedAt = end
		}
	case m.Outcome != "":
		m.FinishedAt = maxTime(m.deletedAt, l.endedAt)
	}
	if m.EndSeenAt.IsZero() {
		m.EndSeenAt = m.FinishedAt
	}
}

// phaseOrder ranks the phases that share a second: their times have a resolution of 1 s.
var phaseOrder = []string{
	PhaseWaitingForSync, PhaseSynchronizing, PhasePending, PhaseScheduling, PhaseScheduled, PhasePreparingTarget,
	PhaseTargetReady, PhaseRunning, PhaseSucceeded, PhaseFailed,
}

func lastPhase(phases []PhaseTime) string {
	slices.SortStableFunc(phases, func(a, b PhaseTime) int {
		return cmp.Or(a.At.Compare(b.At), cmp.Compare(slices.Index(phaseOrder, a.Phase), slices.Index(phaseOrder, b.Phase)))
	})
	if len(phases) == 0 {
		return ""
	}
	return phases[len(phases)-1].Phase
}

// computeOutcome returns how the migration of a VMI ended; the VMI is nil where it is not known. The VMIM's phase wins over the VMI's state
// (KubeVirt before v1.9 may leave that half open). One that vanished unseen is judged by what the VMI says of it; where nothing does,
// the outcome stays empty and the failure reason says that the end was not seen.
func (m *migration) computeOutcome(l *life) Outcome {
	stopped := m.abortedByUser() || m.endedWithVMI(l)
	switch {
	case m.failedSeen && stopped:
		return OutcomeAborted
	case m.failedSeen:
		return OutcomeFailed
	case !m.FinishedAt.IsZero():
		return OutcomeSucceeded
	case m.gone == nil && stopped && m.leftBehind(l):
		return OutcomeAborted
	case m.gone == nil:
		return ""
	case m.abortedByUser():
		return OutcomeAborted
	case m.result.Failed && stopped:
		return OutcomeAborted
	case m.result.Failed:
		return OutcomeFailed
	case !m.result.EndedAt.IsZero():
		return OutcomeSucceeded
	case stopped && !m.goneLate:
		return OutcomeAborted
	}
	return ""
}

// abortedByUser reports whether somebody deleted the VMIM before it was final. KubeVirt's own monitor leaves the same
// texts and abortStatus since v1.9, but none of these three signs (reference: kubevirt-signals §6.2).
func (m *migration) abortedByUser() bool {
	return m.result.AbortRequested || m.aborting || m.deletion != nil && !m.deletion.Final
}

// endedWithVMI reports whether the VMI was being deleted, or was gone, when the migration ended or its own deletion was asked for. That
// is no failure: KubeVirt takes down all pods of such a VMI, and says of its migration that the target pod was shut down or removed, that
// the VMI was shut down, or whatever the cut transfer says. It deletes the migrations of a VMI that is gone.
//
// Source: kubevirt pkg/virt-controller/watch/vmi/lifecycle.go, sync; watch/migration/migration.go, execute and updateStatus.
func (m *migration) endedWithVMI(l *life) bool {
	if l == nil || l.deletedAt.IsZero() {
		return false
	}
	end := m.FinishedAt
	switch {
	case m.deletion != nil && !m.deletion.Final:
		end = m.deletedAt
	case end.IsZero():
		end = m.goneAt
	}
	return !end.IsZero() && !l.deletedAt.After(end)
}

// goneWithVMI reports whether the migration ended because its VMI was deleted.
func (m *Migration) goneWithVMI() bool {
	return m.Outcome == OutcomeAborted && m.FailureReason == CauseVMIGone
}

// leftBehind reports whether the VMI is gone and the deletion of the migration was asked for: KubeVirt does nothing more with it, also
// where a finalizer keeps the object.
func (m *migration) leftBehind(l *life) bool {
	return l != nil && !l.endedAt.IsZero() && m.deletion != nil && !m.deletion.Final
}
