package tracker

import (
	"strings"
	"time"

	"github.com/evictrail/evictrail/trail"
)

// PodObservation is what is read of a virt-launcher pod.
type PodObservation struct {
	Seen
	Meta
	VMI                string // annotation kubevirt.io/domain, else the owning VMI's name
	VMIUID             string // label kubevirt.io/created-by
	Node               string
	Phase              string
	MigrationUID       string // label kubevirt.io/migrationJobUID: the migration that this pod was made for
	MigrationName      string
	EvictionInProgress string        // annotation descheduler.alpha.kubernetes.io/eviction-in-progress: its value shows KubeVirt's generation
	HasInProgress      bool          // the annotation is there
	PreferNoEviction   bool          // annotation descheduler.alpha.kubernetes.io/prefer-no-eviction is there; its value means nothing
	Unschedulable      string        // message of PodScheduled=False with reason Unschedulable; empty when it does not say so
	Disruption         Condition     // DisruptionTarget=True, or one with the reason Evicted for status.reason; else zero
	DeletionGrace      time.Duration // deletionGracePeriodSeconds: by how much DeletionAt is later than its deletion was asked for
}

// The aspects of a pod that are recorded.
const (
	whatSeen          = "seen"
	whatPodPhase      = "phase"
	whatUnschedulable = "unschedulable"
	whatDisruption    = "disruption"
	whatTerminating   = "terminating"
	whatAnnotation    = "annotation/"
	whatInProgress    = whatAnnotation + "descheduler.alpha.kubernetes.io/eviction-in-progress"
	whatPreferNo      = whatAnnotation + trail.AnnotationPreferNoEviction
)

func (t *Tracker) observePod(o PodObservation) []trail.Fact {
	subject := trail.Subject{Kind: trail.SubjectUnknown, Name: o.Namespace + "/" + o.Name}
	if o.VMI != "" {
		subject = trail.VMISubject(o.Namespace, o.VMI)
	}
	r := t.openRecorder(trail.ObjectPod, o.Meta, o.Seen, subject)
	if r == nil {
		return nil
	}
	r.object.vmi, r.object.vmiUID = o.VMI, o.VMIUID
	r.recordPodSteps(o)
	r.recordPodAnnotations(o)
	if o.Gone {
		r.recordPodGone()
	}
	return r.facts
}

// recordPodSteps records the steps of a pod's life, each once.
func (r *recorder) recordPodSteps(o PodObservation) {
	step := func(reason trail.Reason, what, value, field string, when clockTime) {
		if !r.addAspect(what, value) {
			return
		}
		detail := &trail.PodDetail{Pod: o.Name, Phase: o.Phase, CreatedAt: o.CreatedAt}
		switch reason {
		case trail.ReasonUnschedulable:
			detail.Message = o.Unschedulable
		case trail.ReasonDisrupted:
			detail.Message = o.Disruption.Message
		default:
		}
		f := r.recordOnce(trail.KindLauncherPod, reason, what, value).withEvidence(field).withTime(when).withDetail(detail)
		f.Node, f.MigrationUID, f.Migration = o.Node, o.MigrationUID, o.MigrationName
	}
	step(trail.ReasonPodCreated, whatSeen, o.MigrationUID, "metadata.creationTimestamp", clockTime{o.CreatedAt, trail.ClockAPIServer})
	if o.Unschedulable != "" {
		step(trail.ReasonUnschedulable, whatUnschedulable, "true", "status.conditions[PodScheduled]", clockTime{})
	}
	if o.Node != "" {
		step(trail.ReasonScheduled, whatNode, o.Node, "spec.nodeName", clockTime{})
	}
	if o.Disruption.Reason != "" {
		step(trail.ReasonDisrupted, whatDisruption, o.Disruption.Reason, "status.conditions[DisruptionTarget]", clockTime{o.Disruption.ChangedAt, trail.ClockAPIServer})
	}
	ended := o.Phase == "Succeeded" || o.Phase == "Failed"
	if !o.DeletionAt.IsZero() && !ended && !o.Gone { // one that ended before leaves nothing to wait for
		step(trail.ReasonPodTerminating, whatTerminating, "true", "metadata.deletionTimestamp", clockTime{o.DeletionAt.Add(-o.DeletionGrace), trail.ClockAPIServer})
	}
	if ended {
		step(trail.ReasonPodEnded, whatPodPhase, o.Phase, "status.phase", clockTime{})
	}
}

// recordPodAnnotations records those of the descheduler: that an eviction is under way, and that the pod is to be left alone.
func (r *recorder) recordPodAnnotations(o PodObservation) {
	inProgress, preferNo := "", ""
	if o.HasInProgress {
		inProgress = "=" + o.EvictionInProgress
	}
	if o.PreferNoEviction {
		preferNo = "true"
	}
	r.recordPodAnnotation(o, trail.ReasonEvictionInProgress, whatInProgress, inProgress)
	r.recordPodAnnotation(o, trail.ReasonPreferNoEviction, whatPreferNo, preferNo)
}

// recordPodAnnotation records an annotation, whose value is empty where it is not there.
func (r *recorder) recordPodAnnotation(o PodObservation, reason trail.Reason, what, value string) {
	if !r.changeAspect(what, value) {
		return
	}
	kind := trail.KindAnnotationSet
	if value == "" {
		kind = trail.KindAnnotationCleared
	}
	f := r.recordChange(kind, reason, what, value).withEvidence("metadata.annotations[" + strings.TrimPrefix(what, whatAnnotation) + "]")
	f.Node = o.Node
}

func (r *recorder) recordPodGone() {
	if r.addAspect(trail.WhatGone, "true") {
		f := r.recordOnce(trail.KindLauncherPod, trail.ReasonPodGone, trail.WhatGone, "true").withEvidence("DELETED").withDetail(&trail.PodDetail{Pod: r.object.name})
		f.Node, _ = r.object.aspectValue(whatNode)
		f.MigrationUID, _ = r.object.aspectValue(whatSeen)
	}
}
