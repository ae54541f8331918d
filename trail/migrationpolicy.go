package trail

import "time"

// MigrationPolicyObservation is what is read of a MigrationPolicy: settings of KubeVirt for the migrations of some VMs.
type MigrationPolicyObservation struct {
	Seen
	Meta
	Settings MigrationPolicySettings // its Name and CreatedAt are those of Meta
}

// MigrationPolicySettings are the settings of a MigrationPolicy. Nil and empty mean that it leaves the setting to the KubeVirt CR.
//
// Source: kubevirt staging/src/kubevirt.io/api/migrations/v1alpha1/types.go, MigrationPolicySpec.
type MigrationPolicySettings struct {
	Name                    string            `json:"name"`
	CreatedAt               time.Time         `json:"created_at,omitzero"` // the API server's clock, 1 s resolution
	Namespaces              map[string]string `json:"namespace_selector,omitempty"`
	VMIs                    map[string]string `json:"vmi_selector,omitempty"`
	AllowAutoConverge       *bool             `json:"allow_auto_converge,omitempty"`
	AllowPostCopy           *bool             `json:"allow_post_copy,omitempty"`
	AllowWorkloadDisruption *bool             `json:"allow_workload_disruption,omitempty"`
	Bandwidth               string            `json:"bandwidth_per_migration,omitempty"`    // bytes per second, as Kubernetes writes quantities
	CompletionTimeoutPerGiB *int64            `json:"completion_timeout_per_gib,omitempty"` // seconds
}

func (t *Tracker) observeMigrationPolicy(o MigrationPolicyObservation) []Fact {
	o.Settings.Name, o.Settings.CreatedAt = o.Name, o.CreatedAt
	if o.Gone {
		r := t.take(ObjectMigrationPolicy, o.Meta, o.Seen, Subject{Kind: SubjectConfig, Name: string(ObjectMigrationPolicy)})
		if r == nil {
			return nil
		}
		r.migrationPolicyGone()
		return r.facts
	}
	return t.config(ObjectMigrationPolicy, o.Meta, o.Seen, ReasonMigrationPolicy, ConfigDetail{MigrationPolicy: &o.Settings}, "spec")
}

// migrationPolicyGone records that a MigrationPolicy exists no more. Which one that was, its earlier facts tell.
func (r *recorder) migrationPolicyGone() {
	if r.once(WhatGone, "true") {
		r.event(KindConfigSeen, ReasonMigrationPolicyDeleted, WhatGone, "true").from("DELETED")
	}
}
