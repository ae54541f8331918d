package trail

import "strings"

// Trigger says why a migration exists.
type Trigger string

// The triggers of a migration (reference: kubevirt-signals §4).
const (
	TriggerDescheduler    Trigger = "descheduler"
	TriggerDrain          Trigger = "drain"
	TriggerDrainTaint     Trigger = "drain_taint"
	TriggerEviction       Trigger = "eviction"
	TriggerWorkloadUpdate Trigger = "workload_update"
	TriggerHotplug        Trigger = "hotplug"
	TriggerStorage        Trigger = "storage"
	TriggerNamedNode      Trigger = "named_node"
	TriggerUser           Trigger = "user"
	TriggerController     Trigger = "controller" // a service account, of a program that is no part of KubeVirt
	TriggerDecentralized  Trigger = "decentralized"
	TriggerUnknown        Trigger = "unknown"
)

// Triggers lists the triggers of a migration.
func Triggers() []Trigger { return triggerLabels.values() }

// Confidence says how a claim is known.
type Confidence string

// The degrees of confidence.
const (
	ConfidenceObserved Confidence = "observed" // the audit log has the request
	ConfidenceAsserted Confidence = "asserted" // a field says so, or the eviction observer alone
	ConfidenceInferred Confidence = "inferred" // deduced from what else was seen
	ConfidenceUnknown  Confidence = "unknown"
)

// attribution is a trigger with its requester and the ground for both.
type attribution struct {
	trigger    Trigger
	class      RequesterClass
	confidence Confidence
	evidence   string
}

// attributeMark says who asked for an eviction, from the mark and the node alone: what is known until the request
// itself is.
func attributeMark(f Fact, d *MarkDetail, env *Env) attribution {
	cordoned := env.isCordoned(f.Node, f.OccurredAt)
	fromDescheduler := d != nil && strings.EqualFold(d.Source, "descheduler")
	marks, known := env.kubevirtSettingsAt(f.OccurredAt).marksSource()
	switch {
	case fromDescheduler && !d.Inherited:
		return attribution{TriggerDescheduler, RequesterDescheduler, ConfidenceAsserted, "annotation kubevirt.io/eviction-source set with the mark"}
	case cordoned:
		return attribution{TriggerDrain, RequesterUnknown, ConfidenceInferred, "node " + f.Node + " was cordoned" + env.cordonedBy(f.Node, f.OccurredAt) + " when the VMI was marked"}
	case fromDescheduler:
		return attribution{TriggerDescheduler, RequesterDescheduler, ConfidenceInferred, "annotation kubevirt.io/eviction-source was there before the mark"}
	case known && marks:
		return attribution{TriggerEviction, RequesterUnknown, ConfidenceInferred, "no eviction-source, node " + f.Node + " schedulable"}
	case known && env.deschedulerKnown():
		return attribution{TriggerDescheduler, RequesterDescheduler, ConfidenceInferred,
			"node " + f.Node + " schedulable, a descheduler is at work, KubeVirt before v1.7 names no source"}
	}
	return attribution{TriggerUnknown, RequesterUnknown, ConfidenceUnknown, "nothing seen names the requester"}
}

// attributeMigrations says why each migration exists and who is behind it, and who ended what was ended by hand.
func attributeMigrations(lives []*life, migrations []*migration, facts []Fact, env *Env) {
	for _, l := range lives {
		for _, e := range l.evacuations {
			if who := e.cancelledBy(facts); who != nil {
				e.CancelledBy, e.CancelImpersonator = who.User, who.Impersonator
				if e.endLate && who.AnsweredAt.Before(e.EndedAt) {
					e.EndedAt = who.AnsweredAt
				}
			}
		}
	}
	for _, m := range migrations {
		a := attributeMigration(m, lifeOf(lives, m.VMIUID))
		m.RequesterClass = RequesterUnknown
		if e := m.evacuation; e != nil {
			m.Requester, m.RequesterClass, m.Impersonator = e.Requester, e.RequesterClass, e.Impersonator
			if e.request != nil {
				m.SourceIP = e.request.SourceIP
			}
			m.SeenLate = m.SeenLate || m.evacuation.request != nil && m.evacuation.request.SeenLate
		} else if who := m.createdBy(facts, env); who != nil {
			m.Requester, m.RequesterClass, m.Impersonator, m.SourceIP = who.User, env.classOf(who), who.Impersonator, who.SourceIP
			if a.trigger == TriggerUser {
				a.confidence, a.evidence = ConfidenceObserved, "audit: "+string(who.Action)
				if m.RequesterClass.isController() {
					a.trigger = TriggerController
				}
			}
		}
		m.Trigger, m.TriggerConfidence, m.TriggerEvidence = a.trigger, a.confidence, a.evidence
		m.attributeAbort(env)
	}
}

// attributeAbort says who aborted a migration. One that vanished unseen was aborted if somebody deleted it.
func (m *migration) attributeAbort(env *Env) {
	vanished := m.Outcome == "" && m.gone != nil
	if m.Outcome != OutcomeAborted && !vanished {
		return
	}
	who := m.deletedBy(env)
	if who == nil {
		return
	}
	m.AbortedBy, m.AbortImpersonator = who.User, who.Impersonator
	if vanished {
		m.Outcome, m.FinishedAt = OutcomeAborted, who.AnsweredAt
	}
}

// attributeMigration says why a migration exists. One that belongs to an evacuation shares its cause.
func attributeMigration(m *migration, l *life) attribution {
	d := m.spec
	switch {
	case (d.SendTo == "") != (d.Receive == ""):
		return attribution{trigger: TriggerDecentralized, confidence: ConfidenceAsserted, evidence: "spec.sendTo or spec.receive"}
	case m.evacuation != nil:
		e := m.evacuation
		return attribution{e.Trigger, e.RequesterClass, e.Confidence, e.Evidence}
	case d.Evacuation && d.Priority == priorityMaintenance:
		return attribution{trigger: TriggerDescheduler, confidence: ConfidenceAsserted, evidence: "spec.priority system-maintenance"}
	case d.Evacuation:
		return attribution{trigger: TriggerUnknown, confidence: ConfidenceUnknown, evidence: "annotation kubevirt.io/evacuationMigration without a mark or drain taint"}
	case d.VolumeUpdate:
		return attribution{trigger: TriggerStorage, confidence: ConfidenceAsserted, evidence: "label kubevirt.io/volume-update-migration"}
	case d.WorkloadUpdate:
		return attributeUpdate(m, l)
	case len(d.NodeSelector) > 0:
		return attribution{trigger: TriggerNamedNode, confidence: ConfidenceAsserted, evidence: "spec.addedNodeSelector"}
	case strings.HasPrefix(m.Name, "kubevirt-migrate-vm-"):
		return attribution{trigger: TriggerUser, confidence: ConfidenceInferred, evidence: "name prefix of the migrate subresource"}
	}
	return attribution{trigger: TriggerUser, confidence: ConfidenceInferred, evidence: "no sign of a controller"}
}

// attributeUpdate returns a hot-plug from an update of the launcher: both come from KubeVirt's workload updater.
func attributeUpdate(m *migration, l *life) attribution {
	switch m.spec.Priority {
	case priorityUser:
		return attribution{trigger: TriggerHotplug, confidence: ConfidenceAsserted, evidence: "spec.priority user-triggered"}
	case priorityCritical:
		return attribution{trigger: TriggerWorkloadUpdate, confidence: ConfidenceAsserted, evidence: "spec.priority system-critical"}
	}
	for _, c := range []string{ConditionHotVCPUChange, ConditionHotMemoryChange, ConditionMigrationRequired} {
		if l != nil && l.conditionAt(c, m) {
			return attribution{trigger: TriggerHotplug, confidence: ConfidenceInferred, evidence: "condition " + c + " when the migration was created"}
		}
	}
	if l != nil && l.conditionAt(ConditionVolumesChange, m) {
		return attribution{trigger: TriggerStorage, confidence: ConfidenceInferred, evidence: "condition VolumesChange when the migration was created"}
	}
	return attribution{trigger: TriggerWorkloadUpdate, confidence: ConfidenceInferred, evidence: "annotation kubevirt.io/workloadUpdateMigration"}
}

// conditionAt reports whether a condition of the VMI was True when the migration was first seen.
func (l *life) conditionAt(typ string, m *migration) bool {
	on := false
	for _, f := range l.facts {
		d, ok := f.Detail.(*ConditionDetail)
		if ok && d.Type == typ && !f.ObservedAt.After(m.seenAt) {
			on = d.Status == "True"
		}
	}
	return on
}
