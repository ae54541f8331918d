package collector

import (
	"strings"
	"time"

	"github.com/evictrail/evictrail/trail/tracker"
)

// evictionTarget is the spec.target of an EvictionRequest and of an Eviction.
//
// Source: k8s.io/api lifecycle/v1alpha1, EvictionRequestTarget and EvictionTarget.
type evictionTarget struct {
	Pod struct {
		Name string `json:"name"`
		UID  string `json:"uid"`
	} `json:"pod"`
}

// isLauncher reports whether the target is a virt-launcher pod, by its name as KubeVirt's webhook goes by it: the
// watch of pods may be behind.
func (t *evictionTarget) isLauncher() bool { return strings.HasPrefix(t.Pod.Name, launcherPrefix) }

// slimEvictionRequest is what is read of an EvictionRequest.
//
// Source: k8s.io/api lifecycle/v1alpha1.
type slimEvictionRequest struct {
	slimHead
	Spec struct {
		Target    evictionTarget `json:"target"`
		Requester string         `json:"requester"`
		Intent    string         `json:"intent"`
	} `json:"spec"`
	Status struct {
		Conditions []condition `json:"conditions"`
	} `json:"status"`
}

// decodeObservation returns no observation of one about a pod that is no VM's.
func (v *slimEvictionRequest) decodeObservation(m tracker.Meta) (Observation, error) {
	if !v.Spec.Target.isLauncher() {
		return nil, nil
	}
	o := tracker.EvictionRequestObservation{
		Meta:   m,
		Pod:    v.Spec.Target.Pod.Name,
		PodUID: v.Spec.Target.Pod.UID,
		EvictionIntent: tracker.EvictionIntent{
			Requester: v.Spec.Requester,
			Intent:    v.Spec.Intent,
		},
		Conditions: conditionsFrom(v.Status.Conditions),
	}
	return func(s tracker.Seen) tracker.Observation { o.Seen = s; return o }, nil
}

// slimEviction is what is read of an Eviction of lifecycle.k8s.io, which is not the Eviction that pods/eviction takes.
//
// Source: k8s.io/api lifecycle/v1alpha1.
type slimEviction struct {
	slimHead
	Spec struct {
		Target evictionTarget `json:"target"`
	} `json:"spec"`
	Status struct {
		Conditions []condition `json:"conditions"`
		Requesters []struct {
			Name   string `json:"name"`
			Intent string `json:"intent"`
		} `json:"requesters"`
		TargetResponders []struct {
			Name     string `json:"name"`
			Priority int32  `json:"priority"`
			State    string `json:"state"`
		} `json:"targetResponders"`
		Responders []responderStatus `json:"responders"`
	} `json:"status"`
}

// responderStatus is what a responder reports itself.
type responderStatus struct {
	Name                   string    `json:"name"`
	StartTime              time.Time `json:"startTime"`
	HeartbeatTime          time.Time `json:"heartbeatTime"`
	ExpectedCompletionTime time.Time `json:"expectedCompletionTime"`
	CompletionTime         time.Time `json:"completionTime"`
	Message                string    `json:"message" text:"message"`
}

// decodeObservation returns no observation of one of a pod that is no VM's.
func (v *slimEviction) decodeObservation(m tracker.Meta) (Observation, error) {
	if !v.Spec.Target.isLauncher() {
		return nil, nil
	}
	o := tracker.EvictionObservation{
		Meta:       m,
		Pod:        v.Spec.Target.Pod.Name,
		PodUID:     v.Spec.Target.Pod.UID,
		Conditions: conditionsFrom(v.Status.Conditions),
	}
	for _, r := range v.Status.Requesters {
		o.Requesters = append(o.Requesters, tracker.EvictionIntent{Requester: r.Name, Intent: r.Intent})
	}
	reported := map[string]responderStatus{}
	for _, r := range v.Status.Responders {
		reported[r.Name] = r
	}
	for _, r := range v.Status.TargetResponders {
		its := reported[r.Name]
		o.Responders = append(o.Responders, tracker.EvictionResponder{
			Name:        r.Name,
			Priority:    r.Priority,
			State:       r.State,
			Message:     its.Message,
			StartedAt:   its.StartTime.UTC(),
			HeartbeatAt: its.HeartbeatTime.UTC(),
			ExpectedAt:  its.ExpectedCompletionTime.UTC(),
			CompletedAt: its.CompletionTime.UTC(),
		})
	}
	return func(s tracker.Seen) tracker.Observation { o.Seen = s; return o }, nil
}
